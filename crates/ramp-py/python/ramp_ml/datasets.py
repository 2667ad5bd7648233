"""Data with a tree behind it, made up: to try things out, and what the examples of this package stand on."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt

if TYPE_CHECKING:
    Array = npt.NDArray[np.float64]
else:
    Array = Any

__all__ = ["make_questionnaire", "make_walks"]


def make_questionnaire(n_samples: int = 300, *, missing: float = 0.0, random_state: int = 0) -> dict[str, Array]:
    """Answers to six questions: ``q1`` to ``q3`` about anxiety, ``q4`` to ``q6`` about anger, which share a cause.

    Parameters
    ----------
    n_samples : int, default 300
        How many people.
    missing : float, default 0
        The part of the answers that is missing.
    random_state : int, default 0
        The seed.

    Returns
    -------
    dict of ndarray
        Every column of answers by its name.

    Examples
    --------
    >>> from ramp_ml import Ramp, datasets
    >>> answers = datasets.make_questionnaire(missing=0.1)
    >>> model = Ramp("((q1,q2,q3)anxiety,(q4,q5,q6)anger)distress;", iterations=10, verbose=False).fit(answers)
    >>> model.latents_
    ['distress', 'anxiety', 'anger']
    """
    rng = np.random.default_rng(random_state)
    distress = rng.normal(size=n_samples)
    answers = {}
    for first in (1, 4):
        trait = distress + rng.normal(size=n_samples)
        for item in range(first, first + 3):
            answers[f"q{item}"] = np.clip(np.round(3 + trait + rng.normal(size=n_samples)), 1, 5)
    for values in answers.values():
        values[rng.random(n_samples) < missing] = np.nan
    return answers


def make_walks(n_samples: int = 40, steps: int = 12, *, random_state: int = 0) -> dict[str, npt.NDArray[np.float32]]:
    """Sequences in an array ``walk[sample, time]``: places of random walkers, seen through noise.

    Parameters
    ----------
    n_samples, steps : int
        How many walkers, and how many steps of each.
    random_state : int, default 0
        The seed.

    Returns
    -------
    dict of ndarray
        The one array, by its name.

    Examples
    --------
    >>> from ramp_ml import Chain, Ramp, datasets
    >>> walks = datasets.make_walks()
    >>> Ramp(Chain(observe=["walk"]), iterations=10, verbose=False).fit(walks).transform(walks).shape
    (40, 12, 1)
    """
    rng = np.random.default_rng(random_state)
    walk = rng.normal(size=(n_samples, steps)).cumsum(axis=1)
    return {"walk": (walk + 0.3 * rng.normal(size=walk.shape)).astype(np.float32)}
