"""Filtering online: one observation after the other."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt

from . import _lib
from ._data import array_of, column_of

if TYPE_CHECKING:
    Array = npt.NDArray[np.float64]
else:
    Array = Any

__all__ = ["Belief", "Filter"]


@dataclass(frozen=True)
class Belief:
    """What is known about the present of a sequence: means and standard deviations of the latent's coordinates, natural parameters.

    >>> import numpy as np
    >>> from ramp_ml import Belief
    >>> Belief(np.array([0.5]), np.array([0.1]), np.array([50.0, 100.0])).mean.tolist()
    [0.5]
    """

    mean: Array
    sd: Array
    natural: Array


class Filter:
    """The belief about the present of one sequence, given all that has been seen of it so far. Time and memory per step do not grow.

    Examples
    --------
    >>> from ramp_ml import Chain, Ramp, datasets
    >>> model = Ramp(Chain(observe=["walk"]), iterations=20, verbose=False).fit(datasets.make_walks())
    >>> online = model.filter()
    >>> for place in (0.1, None, 0.4):
    ...     belief = online.step({"walk": place})
    >>> belief.sd.shape
    (1,)
    """

    def __init__(self, filter: _lib.Filter, columns: list[str]) -> None:
        self._filter = filter
        self._columns = columns
        self._more = [] if filter.time is None else [filter.time]

    def step(self, observations: Mapping[str, Any]) -> Belief:
        """The belief after one more step. What is None, NaN or not there is missing; a chain with seasons needs its column of times.

        >>> from ramp_ml import Filter
        >>> Filter.step.__name__
        'step'
        """
        unknown = set(observations) - set(self._columns) - set(self._more)
        if unknown:
            known = ", ".join(self._columns + self._more)
            raise KeyError(f"{sorted(unknown)[0]!r} is not observed; the chain has {known}")
        missing = [name for name in self._columns if observations.get(name) is None]
        payload: Any
        if self._filter.in_arrays:
            shapes = self._filter.shapes
            payload = tuple(
                (name, _array(observations.get(name), name, *shapes[name])) for name in self._columns
            )
        else:
            payload = {
                name: column_of(np.array([observations.get(name)], dtype=object), name)
                for name in self._columns + self._more
            }
        return Belief(*self._filter.step(payload, missing))

    def reset(self) -> None:
        """Forgets everything: the next step is the first of another sequence.

        >>> from ramp_ml import Filter
        >>> Filter.reset.__name__
        'reset'
        """
        self._filter.reset()


def _array(value: Any, name: str, features: int, image: bool) -> Any:
    """One step of one sequence; zeros stand for what is missing."""
    if value is None:
        return np.zeros((1, 1, features), dtype=np.uint8 if image else np.float32)
    return array_of(np.asarray(value).reshape(1, 1, -1), name)
