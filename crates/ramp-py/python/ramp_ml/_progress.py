"""A progress bar in one line: in a terminal, in a notebook, and silent elsewhere."""

from __future__ import annotations

import sys
import time
from typing import Any

__all__ = ["progress_bar"]

WIDTH = 24
EVERY = 0.1


def progress_bar(verbose: bool | None) -> Bar | None:
    """The bar that suits the place: none where nobody looks, unless ``verbose`` says that someone does."""
    if verbose is False:
        return None
    if _in_notebook():
        return NotebookBar()
    if sys.stderr is not None and sys.stderr.isatty():
        return TerminalBar()
    return None


def _in_notebook() -> bool:
    if "IPython" not in sys.modules:
        return False
    from IPython import get_ipython

    shell = get_ipython()
    return shell is not None and type(shell).__name__ == "ZMQInteractiveShell"


def clock(seconds: float) -> str:
    """Minutes and seconds, as tqdm has them.

    >>> clock(75)
    '01:15'
    >>> clock(4000)
    '1:06:40'
    """
    whole = int(seconds)
    minutes, second = divmod(whole, 60)
    hours, minute = divmod(minutes, 60)
    return f"{hours}:{minute:02}:{second:02}" if hours else f"{minute:02}:{second:02}"


class Bar:
    """One line: stage, share, steps, time gone and left, steps a second, free energies."""

    def __init__(self) -> None:
        self.stage = ""
        self.began = time.monotonic()
        self.first = 0
        self.drawn = 0.0

    def __call__(
        self,
        stage: str,
        iteration: int,
        iterations: int,
        free_energy: float | None,
        held_out: float | None,
    ) -> None:
        now = time.monotonic()
        if stage != self.stage:
            self.stage, self.began, self.first = stage, now, iteration
        elif iteration < iterations and now - self.drawn < EVERY:
            return
        self.drawn = now
        self.draw(self.line(now, iteration, iterations, free_energy, held_out), iteration, iterations)

    def line(
        self,
        now: float,
        iteration: int,
        iterations: int,
        free_energy: float | None,
        held_out: float | None,
    ) -> str:
        share = iteration / max(iterations, 1)
        gone, done = now - self.began, iteration - self.first
        left = clock(gone / done * (iterations - iteration)) if done else "?"
        rate = f"{done / gone:.1f}it/s" if done and gone > 0 else "?it/s"
        full = int(share * WIDTH)
        bar = "█" * full + " " * (WIDTH - full)
        line = f"{self.stage}: {share:4.0%}|{bar}| {iteration}/{iterations} [{clock(gone)}<{left}, {rate}"
        if free_energy is not None:
            line += f", free energy {free_energy:.3f}"
        if held_out is not None:
            line += f", validation {held_out:.3f}"
        return line + "]"

    def draw(self, line: str, iteration: int, iterations: int) -> None:
        raise NotImplementedError

    def close(self) -> None:
        """Leaves the last line where it is."""


class TerminalBar(Bar):
    def __init__(self) -> None:
        super().__init__()
        self.length = 0

    def draw(self, line: str, iteration: int, iterations: int) -> None:
        sys.stderr.write("\r" + line.ljust(self.length))
        sys.stderr.flush()
        self.length = len(line)

    def close(self) -> None:
        if self.length:
            sys.stderr.write("\n")
            sys.stderr.flush()


class NotebookBar(Bar):
    def __init__(self) -> None:
        super().__init__()
        self.handle: Any = None

    def draw(self, line: str, iteration: int, iterations: int) -> None:
        from html import escape

        from IPython.display import HTML, display

        label, _, rest = line.partition("|")
        numbers = rest.partition("|")[2]
        page = HTML(
            f'<div style="font-family: monospace">{escape(label)} <progress value="{iteration}" max="{max(iterations, 1)}">'
            f"</progress>{escape(numbers)}</div>"
        )
        if self.handle is None:
            self.handle = display(page, display_id=True)
        else:
            self.handle.update(page)
