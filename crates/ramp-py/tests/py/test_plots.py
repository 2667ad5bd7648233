"""Pictures are axes with the numbers of the fit in them."""

from __future__ import annotations

import matplotlib

matplotlib.use("agg")

import matplotlib.pyplot as plt
import numpy as np
import pytest
from conftest import TREE

from ramp_ml import Chain, Ramp


@pytest.fixture(autouse=True)
def closed():
    yield
    plt.close("all")


def test_trees_and_training(fitted):
    axes = fitted.plot_tree()
    texts = [text.get_text() for text in axes.texts]
    assert f"anger  {fitted.free_energy_['anger']:.2f} nats" in texts and "q3" in texts
    assert len(Ramp(TREE).plot_tree().texts) == 8
    # A small table is cross-validated, and the page shows that curve.
    axes = fitted.plot_training()
    assert [line.get_label() for line in axes.lines][-1] == "cross-validation"
    own = plt.subplots()[1]
    assert fitted.plot_training(ax=own) is own


def test_training_with_rows_that_choose(answers):
    model = Ramp(TREE, iterations=60, folds=0, init="shared", random_state=0, verbose=False).fit(answers)
    axes = model.plot_training()
    assert axes.lines[0].get_xdata()[-1] == model.n_iter_


def test_items_and_latents(answers):
    items = {name: np.clip(np.round(values), -2, 2) for name, values in answers.items()}
    model = Ramp(TREE, iterations=40, random_state=0, verbose=False).fit(items)
    axes = model.plot_items()
    assert len(axes.lines) == 5
    axes = model.plot_latents("anxiety", "anger", color="q1")
    assert len(axes.collections[0].get_offsets()) == 600
    with pytest.raises(KeyError, match="there is no coordinate `joy`; there are distress"):
        model.plot_latents("joy")
    with pytest.raises(KeyError, match="there is no column `age`"):
        model.plot_latents(color="age")
    with pytest.raises(ValueError, match="no chain"):
        model.plot_forecast()
    with pytest.raises(ValueError, match="not fitted"):
        Ramp(TREE).plot_training()


@pytest.mark.filterwarnings("ignore::ramp_ml.RampWarning")
def test_forecasts():
    import pandas as pd

    rng = np.random.default_rng(0)
    walk = np.cumsum(rng.normal(size=(40, 15)), axis=1)
    frame = pd.DataFrame({"who": np.repeat(np.arange(40), 15), "place": walk.ravel()})
    model = Ramp(Chain(observe=["place"], sequence="who"), iterations=20, verbose=False).fit(frame)
    axes = model.plot_forecast()
    assert axes.get_ylabel() == "place"
    observed = axes.lines[0].get_ydata()
    assert np.isfinite(observed).any() and np.isnan(observed[-1])
    assert model.plot_forecast("z").get_ylabel() == "z"
