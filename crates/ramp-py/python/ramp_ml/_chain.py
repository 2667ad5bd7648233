"""Sequences: one latent for every time step."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

__all__ = ["Chain"]


@dataclass(frozen=True)
class Chain:
    """A tree in time: one latent ``z`` for every step, each with its observations.

    Parameters
    ----------
    observe : list of str
        What is observed at each step: columns of a long table, or arrays of samples × time × ….
    sequence : str, optional
        The column that says which sequence a row belongs to. Not for arrays.
    time : str, optional
        The column that orders the rows of a sequence; their own order without it. Not for arrays.
    step : float or str, optional
        The time between steps, such as ``1`` or ``"1d"``: rows further apart leave missing steps between.
    window : int, optional
        Longer sequences are cut into windows of so many steps to learn from.
    season : list of (float or str), optional
        Periods after which numbers come back to what they are like, such as ``"1y"``; an empty list switches seasons off.

    Examples
    --------
    >>> from ramp_ml import Chain
    >>> diary = Chain(observe=["sleep", "steps"], sequence="person", time="day")
    >>> diary.observe
    ['sleep', 'steps']
    """

    observe: Sequence[str]
    sequence: str | None = None
    time: str | None = None
    step: float | str | None = None
    window: int | None = None
    season: Sequence[float | str] | float | str | None = None

    def _settings(self) -> dict[str, Any]:
        observe = [self.observe] if isinstance(self.observe, str) else list(self.observe)
        season = self.season
        if season is not None and not isinstance(season, (str, int, float)):
            season = list(season)
        settings = {
            "observe": observe,
            "sequence": self.sequence,
            "time": self.time,
            "step": self.step,
            "window": self.window,
            "season": season,
        }
        return {key: value for key, value in settings.items() if value is not None}
