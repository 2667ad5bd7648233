"""Sequences: long tables, arrays, forecasts, filters."""

from __future__ import annotations

import numpy as np
import pytest

from ramp_ml import Chain, Ramp


@pytest.fixture(scope="module")
def diary():
    import pandas as pd

    rng = np.random.default_rng(1)
    people, days = 60, 15
    mood = np.zeros((people, days))
    for day in range(1, days):
        mood[:, day] = 0.8 * mood[:, day - 1] + rng.normal(size=people)
    frame = pd.DataFrame(
        {
            "person": np.repeat([f"p{i}" for i in range(people)], days),
            "day": np.tile(np.arange(days), people),
            "sleep": (mood + 0.5 * rng.normal(size=mood.shape)).ravel(),
            "steps": (-mood + 0.5 * rng.normal(size=mood.shape)).ravel(),
        }
    )
    frame.loc[5::17, "sleep"] = np.nan
    return frame.sample(frac=1, random_state=0)


CHAIN = Chain(observe=["sleep", "steps"], sequence="person", time="day")


@pytest.fixture(scope="module")
def model(diary):
    return Ramp(CHAIN, iterations=40, verbose=False).fit(diary)


def test_rows_stay_where_they_were(diary, model):
    found = model.transform(diary)
    assert found.shape == (len(diary), 1)
    ordered = diary.sort_values(["person", "day"])
    at = {(p, d): z for p, d, z in zip(diary.person, diary.day, found[:, 0])}
    again = model.transform(ordered)[:, 0]
    assert all(at[p, d] == z for p, d, z in zip(ordered.person, ordered.day, again))
    posterior = model.posterior(diary)
    z = posterior["z"]
    assert z.mean.shape == (60, 15)
    assert np.array_equal(z.mean[posterior.samples, posterior.steps], found[:, 0])
    assert dict(posterior.to_xarray().sizes) == {"sample": 60, "time": 15}


def test_forecasts(diary, model):
    import pandas as pd

    ahead = model.forecast(diary, steps=4, interval=0.9)
    assert isinstance(ahead, pd.DataFrame)
    assert len(ahead) == 60 * 4
    assert {"person", "ahead", "z.mean"} <= set(ahead.columns)
    low, high = [c for c in ahead.columns if "sleep" in c and ("low" in c or "high" in c)]
    assert (ahead[low] < ahead[high]).all()
    with pytest.raises(ValueError, match="0 steps"):
        model.forecast(diary, steps=0)
    with pytest.raises(ValueError, match="interval"):
        model.forecast(diary, steps=1, interval=2)


def test_gaps_of_sequences_are_filled(diary, model):
    filled = model.impute(diary)
    there = diary["sleep"].notna()
    assert filled["sleep"].notna().all()
    assert np.array_equal(filled["sleep"][there], diary["sleep"][there])


def test_filters_believe_what_the_last_step_of_a_sequence_is(diary, model):
    # The belief about the last step of a sequence is the same with and without a future.
    person = diary[diary.person == "p7"].sort_values("day")
    online = model.filter()
    for _, row in person.iterrows():
        belief = online.step({"sleep": row["sleep"], "steps": row["steps"]})
    z = model.posterior(person)["z"]
    assert belief.mean[0] == pytest.approx(z.mean[0, -1], abs=1e-5)
    assert belief.sd[0] == pytest.approx(z.sd[0, -1], rel=1e-5)
    online.reset()
    first = online.step({"sleep": 1.0})
    online.reset()
    assert online.step({"sleep": 1.0, "steps": None}).mean == first.mean
    with pytest.raises(KeyError, match="joy"):
        online.step({"joy": 1})


def test_filters_of_arrays(walks):
    model = Ramp(Chain(observe=["place"]), iterations=20, verbose=False).fit(walks)
    online = model.filter()
    for value in walks["place"][4]:
        belief = online.step({"place": value})
    z = model.posterior(walks)["z"]
    assert belief.mean[0] == pytest.approx(z.mean[4, -1], abs=1e-5)
    before = belief
    assert online.step({"place": None}).sd[0] > before.sd[0] * 0.99
    assert len(model.forecast(walks, steps=2)["ahead"]) == 160


def test_trees_have_no_steps_to_come(answers, fitted):
    with pytest.raises(ValueError, match="no chain"):
        fitted.forecast(answers, steps=1)
    with pytest.raises(ValueError, match="chain"):
        fitted.filter()
