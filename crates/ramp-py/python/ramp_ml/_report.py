"""The page of a fit, in a notebook or a browser."""

from __future__ import annotations

import os
import sys
import tempfile
from html import escape
from pathlib import Path

from ._progress import _in_notebook


class Page:
    """The report of a fit: one HTML page that needs nothing from outside."""

    def __init__(self, html: str) -> None:
        #: The page.
        self.html = html

    def save(self, path: str | os.PathLike[str]) -> None:
        """Writes the page into a file."""
        Path(path).write_text(self.html, encoding="utf-8")

    def show(self) -> None:
        """Opens a browser, unless a notebook shows the page anyway or nobody sits in front of the machine."""
        if _in_notebook() or not sys.stdout or not sys.stdout.isatty():
            return
        import webbrowser

        with tempfile.NamedTemporaryFile(
            "w", suffix=".html", prefix="ramp-report-", delete=False, encoding="utf-8"
        ) as file:
            file.write(self.html)
        webbrowser.open(Path(file.name).as_uri())

    def _repr_html_(self) -> str:
        # In a frame of its own, so that its style and the notebook's leave each other alone.
        return (
            '<iframe title="report" sandbox="allow-scripts" style="width: 100%; height: 70vh; border: 1px solid #ccc" '
            f'srcdoc="{escape(self.html, quote=True)}"></iframe>'
        )
