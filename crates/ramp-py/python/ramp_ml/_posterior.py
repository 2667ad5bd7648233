"""Posteriors of many samples: means, standard deviations, natural parameters and draws."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt

from . import _lib
from ._errors import MissingColumnError

if TYPE_CHECKING:
    Array = npt.NDArray[np.float64]
else:
    Array = Any

__all__ = ["LatentPosterior", "Posterior"]


@dataclass(frozen=True)
class LatentPosterior:
    """The posterior of one latent.

    Attributes
    ----------
    name : str
        The latent; ``z`` for a chain.
    family : str
        Its family, such as ``"gaussian(1)"``.
    coordinates : list of str
        What its numbers are called: the latent's name where it has one.
    mean, sd : ndarray
        ``[sample, coordinate]``, of a chain ``[sample, time, coordinate]``; without the last axis where there is one coordinate. For
        a categorical, means are the probabilities of its levels. ``NaN`` after the end of a sequence.
    natural : ndarray
        Natural parameters, ``[sample, (time,) parameter]``.

    Examples
    --------
    >>> from ramp_ml import Ramp, datasets
    >>> data = datasets.make_questionnaire()
    >>> model = Ramp("(q1,q2,q3)anxiety;", iterations=20, verbose=False).fit(data)
    >>> anxiety = model.posterior(data)["anxiety"]
    >>> anxiety.mean.shape, anxiety.natural.shape
    ((300,), (300, 2))
    """

    name: str
    family: str
    coordinates: list[str]
    mean: Array
    sd: Array
    natural: Array

    def draws(self, count: int = 1, random_state: int = 0) -> Array:
        """Draws from the posterior, ``[draw, sample, (time,) coordinate]``; without the last axis where there is one coordinate.

        A draw of a categorical has a one for its level and zeros for the others.

        >>> from ramp_ml import Ramp, datasets
        >>> data = datasets.make_questionnaire()
        >>> model = Ramp("(q1,q2,q3)anxiety;", iterations=10, verbose=False).fit(data)
        >>> model.posterior(data)["anxiety"].draws(5).shape
        (5, 300)
        """
        drawn = _lib.draws(self.family, np.ascontiguousarray(self.natural), int(count), int(random_state))
        return drawn[..., 0] if len(self.coordinates) == 1 else drawn


class Posterior(Mapping[str, LatentPosterior]):
    """The posteriors of all latents: a mapping from their names.

    Examples
    --------
    >>> from ramp_ml import Ramp, datasets
    >>> data = datasets.make_questionnaire()
    >>> model = Ramp("((q1,q2,q3)anxiety,(q4,q5,q6)anger)distress;", iterations=20, verbose=False).fit(data)
    >>> posterior = model.posterior(data)
    >>> sorted(posterior)
    ['anger', 'anxiety', 'distress']
    >>> posterior.mean.shape
    (300, 3)
    """

    def __init__(
        self, latents: list[LatentPosterior], samples: Any = None, steps: Any = None
    ) -> None:
        self._latents = {latent.name: latent for latent in latents}
        #: For every row of a long table, which sequence it belongs to, counted from 0; None elsewhere.
        self.samples = samples
        #: For every row of a long table, its step, counted from 0; None elsewhere.
        self.steps = steps

    def __getitem__(self, name: str) -> LatentPosterior:
        try:
            return self._latents[name]
        except KeyError:
            known = ", ".join(self._latents)
            raise MissingColumnError(f"there is no latent `{name}`; the tree has {known}") from None

    def __iter__(self) -> Iterator[str]:
        return iter(self._latents)

    def __len__(self) -> int:
        return len(self._latents)

    def __repr__(self) -> str:
        latents = ", ".join(f"{l.name} {l.family}" for l in self._latents.values())
        rows = next(iter(self._latents.values())).mean.shape[0] if self._latents else 0
        return f"<ramp_ml.Posterior of {rows} samples: {latents}>"

    def _beside(self, part: str) -> Array:
        columns = []
        for latent in self._latents.values():
            values = getattr(latent, part)
            columns.append(values[..., None] if len(latent.coordinates) == 1 else values)
        return np.concatenate(columns, axis=-1)

    @property
    def mean(self) -> Array:
        """Means of all coordinates beside each other."""
        return self._beside("mean")

    @property
    def sd(self) -> Array:
        """Standard deviations of all coordinates beside each other."""
        return self._beside("sd")

    @property
    def names(self) -> list[str]:
        """The names of all coordinates."""
        return [name for latent in self._latents.values() for name in latent.coordinates]

    def to_xarray(self) -> Any:
        """An ``xarray.Dataset`` with a mean and an sd of every coordinate, over the dimensions sample and, of a chain, time.

        >>> from ramp_ml import Ramp, datasets
        >>> data = datasets.make_questionnaire()
        >>> model = Ramp("(q1,q2,q3)anxiety;", iterations=10, verbose=False).fit(data)
        >>> sorted(model.posterior(data).to_xarray().data_vars)
        ['anxiety', 'anxiety_sd']
        """
        import xarray

        variables = {}
        for latent in self._latents.values():
            single = len(latent.coordinates) == 1
            for i, name in enumerate(latent.coordinates):
                for part, suffix in ((latent.mean, ""), (latent.sd, "_sd")):
                    values = part if single else part[..., i]
                    dims = ("sample", "time")[: values.ndim]
                    variables[name + suffix] = (dims, values)
        return xarray.Dataset(variables)

    def to_arviz(self, draws: int = 100, random_state: int = 0) -> Any:
        """Draws as ``arviz.InferenceData``: one chain of independent draws.

        >>> from ramp_ml import Ramp, datasets
        >>> data = datasets.make_questionnaire()
        >>> model = Ramp("(q1,q2,q3)anxiety;", iterations=10, verbose=False).fit(data)
        >>> dict(model.posterior(data).to_arviz(draws=4).posterior.sizes)["draw"]
        4
        """
        import arviz

        drawn = {}
        for at, latent in enumerate(self._latents.values()):
            values = latent.draws(draws, random_state + at)
            drawn[latent.name] = values[None]
        return arviz.from_dict(drawn)
