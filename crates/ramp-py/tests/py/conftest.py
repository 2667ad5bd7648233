"""Data that has a tree behind it, small enough to learn in a moment."""

from __future__ import annotations

import signal

import numpy as np
import pytest

# A shell's background jobs ignore Ctrl-C, and Python inherits that; its tests are of a Python that heeds it.
signal.signal(signal.SIGINT, signal.default_int_handler)

TREE = "((q1,q2,q3)anxiety,(q4,q5)anger)distress;"


@pytest.fixture(scope="session")
def answers() -> dict[str, np.ndarray]:
    """Five items of two traits that share a cause; some cells are missing."""
    rng = np.random.default_rng(3)
    n = 600
    distress = rng.normal(size=n)
    anxiety = distress + 0.7 * rng.normal(size=n)
    anger = distress + 0.7 * rng.normal(size=n)
    data = {f"q{i}": anxiety + 0.6 * rng.normal(size=n) for i in (1, 2, 3)}
    data |= {f"q{i}": anger + 0.6 * rng.normal(size=n) for i in (4, 5)}
    data["q1"][::7] = np.nan
    data["q5"][3::11] = np.nan
    return data


@pytest.fixture(scope="session")
def fitted(answers):
    from ramp_ml import Ramp

    return Ramp(TREE, iterations=60, random_state=0, verbose=False).fit(answers)


@pytest.fixture(scope="session")
def walks() -> dict[str, np.ndarray]:
    """Sequences in an array: a slow walk seen through noise."""
    rng = np.random.default_rng(5)
    walk = np.cumsum(0.3 * rng.normal(size=(80, 20)), axis=1)
    return {"place": (walk + 0.2 * rng.normal(size=walk.shape)).astype(np.float32)}
