"""The estimator: settings, posteriors, scores, saving, pickling, errors and warnings."""

from __future__ import annotations

import json
import pickle
import re
import warnings

import numpy as np
import pytest
from conftest import TREE

from ramp_ml import Chain, Ramp, RampWarning, _lib
from ramp_ml._settings import SECTIONS


def test_posteriors_are_of_the_trait(answers, fitted):
    posterior = fitted.posterior(answers)
    assert list(posterior) == ["distress", "anxiety", "anger"]
    anxiety = posterior["anxiety"]
    assert anxiety.mean.shape == anxiety.sd.shape == (600,)
    assert anxiety.natural.shape == (600, 2)
    # h = precision * mean.
    assert np.allclose(anxiety.natural[:, 0] / anxiety.natural[:, 1], anxiety.mean)
    assert np.allclose(anxiety.natural[:, 1] ** -0.5, anxiety.sd)
    assert np.array_equal(posterior.mean, fitted.transform(answers))
    assert posterior.names == fitted.get_feature_names_out().tolist()
    with pytest.raises(KeyError, match="there is no latent `joy`; the tree has distress"):
        posterior["joy"]


def test_draws_have_the_posteriors_moments(answers, fitted):
    anxiety = fitted.posterior(answers)["anxiety"]
    draws = anxiety.draws(2000, random_state=1)
    assert draws.shape == (2000, 600)
    assert np.abs(draws.mean(axis=0) - anxiety.mean).max() < 6 * anxiety.sd.max() / 2000**0.5
    assert np.abs(draws.std(axis=0) / anxiety.sd - 1).max() < 0.12
    assert np.array_equal(draws, anxiety.draws(2000, random_state=1))
    assert not np.array_equal(draws, anxiety.draws(2000, random_state=2))


def test_xarray_and_arviz(answers, fitted):
    posterior = fitted.posterior(answers)
    data = posterior.to_xarray()
    assert dict(data.sizes) == {"sample": 600}
    assert np.array_equal(data["anger"].values, posterior["anger"].mean)
    drawn = posterior.to_arviz(draws=5)
    assert drawn.posterior["anger"].shape == (1, 5, 600)


def test_scores_are_in_nats_and_flag_what_does_not_belong_together(answers, fitted):
    by_latent = fitted.score_samples(answers, by_latent=True)
    assert by_latent.shape == fitted.free_energy(answers).shape == (600, 3)
    assert np.allclose(fitted.score_samples(answers), by_latent.sum(axis=1))
    assert fitted.score(answers) == pytest.approx(by_latent.sum(axis=1).mean())
    # The root explains what it explains; others only what lies away from it.
    free = fitted.free_energy(answers)
    assert np.allclose(by_latent[:, 0], free[:, 0])
    assert (by_latent[:, 1:].mean(axis=0) < free[:, 1:].mean(axis=0) - 0.05).all()
    rng = np.random.default_rng(0)
    torn = {name: rng.permutation(values) for name, values in answers.items()}
    assert fitted.score(torn) < fitted.score(answers) - 0.1
    nothing = {name: np.full(3, np.nan) for name in answers}
    assert np.array_equal(fitted.score_samples(nothing), np.zeros(3))


def test_scores_are_nats_against_independence():
    def linear(seed, n):
        rng = np.random.default_rng(seed)
        top = rng.normal(size=n)
        halves = [0.8 * top + 0.6 * rng.normal(size=n) for _ in range(2)]
        return {f"x{i}": 0.8 * halves[i // 3] + 0.6 * rng.normal(size=n) for i in range(6)}

    unseen = linear(1, 4000)
    correlation = np.corrcoef(np.stack(list(linear(2, 200_000).values())))
    total = -0.5 * np.linalg.slogdet(correlation)[1]
    tree = Ramp("((x0,x1,x2)a,(x3,x4,x5)b)c;", random_state=0, verbose=False).fit(linear(0, 4000))
    star = Ramp(random_state=0, verbose=False).fit(linear(0, 4000))
    # A bound from below that a good fit nearly reaches; a standard error of 0.03 and the mixture's 0.01 above it.
    assert total - 0.15 < tree.score(unseen) < total + 0.06
    # One latent for two explains less: the scale is the same.
    assert star.score(unseen) < tree.score(unseen) - 0.1
    rng = np.random.default_rng(3)
    apart = {name: rng.permutation(values) for name, values in unseen.items()}
    alone = Ramp("((x0,x1,x2)a,(x3,x4,x5)b)c;", random_state=0, verbose=False, iterations=200).fit(apart)
    assert abs(alone.score({n: rng.permutation(v) for n, v in unseen.items()})) < 0.03


def test_imputation_with_draws(answers, fitted):
    drawn = fitted.impute(answers, draws=4, random_state=1)
    assert sorted(set(drawn["draw"].tolist())) == [1, 2, 3, 4]
    gone = np.isnan(answers["q1"])
    copies = np.stack([drawn["q1"][drawn["draw"] == d] for d in (1, 2, 3, 4)])
    assert (copies[:, ~gone] == answers["q1"][~gone]).all()
    assert (copies[:, gone].std(axis=0) > 0).all()


def test_every_setting_of_the_model_file_is_a_parameter():
    parameters = Ramp().get_params()
    # The data is what `fit` gets; the four ways to say a tree are what `tree` takes; settings of one observation are in a dict.
    elsewhere = {"data": {"file"}, "tree": {"newick", "edges", "factors", "chain"}}
    for section, keys in _lib.settings():
        for key in set(keys) - elsewhere.get(section, set()):
            if section == "observations":
                assert key in Ramp.__doc__, key
                continue
            assert key in parameters, (section, key)
            assert key in SECTIONS[section], (section, key)


def test_settings_reach_the_library(answers):
    model = Ramp(
        TREE,
        holdout=0.2,
        validation=0.15,
        split_seed=7,
        family="gaussian(2)",
        latents={"anger": "categorical(3)"},
        observations={"q4": {"kind": "number", "scale": "standard"}},
        message={"hidden": [8]},
        inputs="natural",
        iterations=7,
        batch=np.int64(50),
        learning_rate=np.float32(0.5),
        clip=3,
        patience=2,
        random_state=np.int32(5),
        verbose=False,
    )
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        model.fit(answers)
    settings = json.loads(model._run.settings())
    assert settings["data"] == {"holdout": 0.2, "validation": 0.15, "split_seed": 7}
    train = settings["train"]
    assert (train["iterations"], train["batch"], train["learning_rate"], train["seed"]) == (7, 50, 0.5, 5)
    assert train["clip"] == 3 and train["patience"] == 2
    assert settings["networks"]["inputs"] == "natural"
    assert settings["networks"]["message"]["hidden"] == [8]
    assert settings["observations"]["q4"] == {"kind": "number", "scale": "standard"}
    names = model.get_feature_names_out().tolist()
    assert names == ["distress.1", "distress.2", "anxiety.1", "anxiety.2", "anger.p1", "anger.p2", "anger.p3"]
    assert model.posterior(answers)["anger"].draws(3).sum(axis=-1).max() == 1
    loaded = Ramp.load(save(model))
    assert np.array_equal(loaded.transform(answers), model.transform(answers))
    assert loaded.latents == {"anger": {"family": "categorical(3)"}}
    assert loaded.random_state == 5 and loaded.tree == TREE


def save(model):
    import tempfile

    folder = tempfile.mkdtemp() + "/run"
    model.save(folder)
    return folder


def test_saved_runs_are_the_commands_and_are_not_written_over(answers, fitted, tmp_path):
    run = tmp_path / "run"
    fitted.save(run)
    names = sorted(path.name for path in run.iterdir() if not path.name.startswith("."))
    assert names == ["metrics.jsonl", "model.toml", "readout.safetensors", "report.html", "run.json", "support.csv", "weights.safetensors"]
    loaded = Ramp.load(run)
    assert np.array_equal(loaded.transform(answers), fitted.transform(answers))
    assert loaded.free_energy_ == fitted.free_energy_
    with pytest.raises(FileExistsError, match="run"):
        fitted.save(run)
    fitted.save(run, overwrite=True)
    # A loaded model needs its folder no more.
    import shutil

    shutil.rmtree(run)
    assert np.isfinite(loaded.score(answers))
    with pytest.raises(FileNotFoundError, match="no finished run"):
        Ramp.load(run)
    (tmp_path / "mine").mkdir()
    (tmp_path / "mine" / "model.toml").write_text("my own")
    with pytest.raises(ValueError, match="model.toml"):
        fitted.save(tmp_path / "mine")


def test_damaged_runs_are_refused(fitted, tmp_path):
    fitted.save(tmp_path / "run")
    weights = tmp_path / "run" / "weights.safetensors"
    weights.write_bytes(weights.read_bytes()[:-4] + b"abcd")
    with pytest.raises(ValueError, match="weights.safetensors"):
        Ramp.load(tmp_path / "run")


def test_pickles_hold_bytes_of_the_run(answers, fitted):
    text = pickle.dumps(fitted)
    again = pickle.loads(text)
    assert np.array_equal(again.transform(answers), fitted.transform(answers))
    assert again.get_params() == fitted.get_params()
    # Every object that a pickle may build is ours or NumPy's.
    import pickletools

    modules = {arg.split()[0] for op, arg, _ in pickletools.genops(text) if op.name in ("GLOBAL",)}
    assert all(module.split(".")[0] in ("ramp_ml", "numpy", "copyreg") for module in modules), modules


def test_mistakes_are_said_in_the_librarys_sentences(answers):
    cases = [
        (lambda: Ramp("((q1,q2)a").fit(answers), ValueError, "tree"),
        (lambda: Ramp("(q1,q2,q9)a;").fit(answers), KeyError, "q9"),
        (lambda: Ramp(TREE, family="gausian").fit(answers), ValueError, "gausian"),
        (lambda: Ramp(TREE, iterations=0.5).fit(answers), ValueError, "iterations"),
        (lambda: Ramp(TREE, batch=0).fit(answers), ValueError, "batch must be at least 1"),
        (lambda: Ramp(TREE, holdout=2).fit(answers), ValueError, "holdout"),
        (lambda: Ramp(TREE, latents={"joy": "beta"}).fit(answers), ValueError, "joy"),
        (lambda: Ramp(TREE, observations={"q1": "colour"}).fit(answers), ValueError, "q1"),
        (lambda: Ramp(TREE, decay={1, 2}).fit(answers), TypeError, "no setting"),
        (lambda: Ramp(TREE, seed=1, random_state=2).fit(answers), ValueError, "same setting"),
        (lambda: Ramp(TREE, n_jobs=0).fit(answers), ValueError, "n_jobs"),
        (lambda: Ramp(7).fit(answers), TypeError, "a tree is"),
        (lambda: Ramp(TREE).fit(answers | {"q1": np.full(600, np.inf)}), ValueError, "q1"),
        (lambda: Ramp(TREE).fit(answers | {"q1": np.full(600, 1.0)}), ValueError, "q1"),
        (lambda: Ramp(TREE).fit(answers | {"anger": answers["q1"]}), ValueError, "`anger` is a latent"),
        (lambda: Ramp(TREE).fit(None), ValueError, "no data"),
        (lambda: Ramp(TREE).transform(answers), ValueError, "not fitted"),
        (lambda: Ramp(TREE).fit(answers, resume=True), ValueError, "stopped"),
        (lambda: Ramp(TREE, tree_="x"), TypeError, "tree_"),
    ]
    for call, error, part in cases:
        with pytest.raises(error, match=re.escape(part)):
            call()


def test_fits_warn(answers):
    rng = np.random.default_rng(0)
    noise = {f"q{i}": rng.normal(size=300) for i in range(1, 6)}
    with pytest.warns(RampWarning, match="anger|anxiety|distress"):
        Ramp(TREE, iterations=30, verbose=False).fit(noise)


def test_logs(answers, caplog):
    import logging

    with caplog.at_level(logging.INFO, logger="ramp_ml"):
        Ramp(TREE, iterations=3, folds=0, verbose=False).fit(answers)
    assert "fitting Ramp(tree=" in caplog.text and "3 of 3 iterations" in caplog.text


def test_the_same_on_any_number_of_threads(answers, fitted):
    one = Ramp(TREE, iterations=60, random_state=0, n_jobs=1, verbose=False).fit(answers)
    assert np.array_equal(one.transform(answers), fitted.transform(answers))
    other = Ramp(TREE, iterations=60, random_state=1, verbose=False).fit(answers)
    assert not np.array_equal(other.transform(answers), fitted.transform(answers))


def test_reports_and_drawings(fitted):
    page = fitted.report()
    assert "<title>" in page.html and "sandbox" in page._repr_html_()
    drawn = fitted._repr_html_()
    assert drawn.count("<circle") == 3 and drawn.count("<rect") == 5
    assert f"anxiety  {fitted.free_energy_['anxiety']:.2f} nats" in drawn
    assert "nats" not in Ramp(TREE)._repr_html_()
    hostile = Ramp("('<script>',b,c)'&z';")._repr_html_()
    assert "<script>" not in hostile
    assert repr(fitted) == f"Ramp(tree='{TREE}', iterations=60, random_state=0, verbose=False)"


def test_trees_as_edges_and_groups(answers):
    edges = [("distress", "anxiety"), ("distress", "anger"), ("distress", "q5")]
    edges += [("anxiety", q) for q in ("q1", "q2", "q3")] + [("anger", "q4"), ("anger", "q5")]
    with pytest.raises(ValueError):
        Ramp(edges).fit(answers)
    edges.remove(("distress", "q5"))
    assert Ramp(edges, iterations=5, verbose=False).fit(answers).latents_ == ["distress", "anxiety", "anger"]
    groups = [["z", "q1", "q2"], ["z", "q3"], ["z", "q4", "q5"]]
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        try:
            Ramp(groups, iterations=5, verbose=False).fit(answers)
        except ValueError as error:
            assert "factor" in str(error) or "leaf" in str(error) or "observ" in str(error)
