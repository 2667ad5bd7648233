"""Python and the command give the same bits: both examples, and sequences in an `.npz`."""

from __future__ import annotations

import os
import json
import subprocess
import tomllib
from pathlib import Path

import numpy as np
import pytest

from ramp_ml import Chain, Ramp
from ramp_ml._settings import parameters_of

ROOT = Path(__file__).resolve().parents[4]
COMMAND = os.environ.get("RAMP_COMMAND")

pytestmark = pytest.mark.skipif(COMMAND is None, reason="the command `ramp` is not built")


def command(*arguments: object) -> None:
    subprocess.run([str(COMMAND), *map(str, arguments)], check=True, capture_output=True)


def weights(run: Path) -> tuple[object, dict[str, bytes]]:
    """What the weights' file says of the model and of how data is encoded, and all of its numbers. Only a fit to a file knows its rows again, which its
    checksum counts too."""
    text = (run / "weights.safetensors").read_bytes()
    start = 8 + int.from_bytes(text[:8], "little")
    header = json.loads(text[8:start])
    about = {key: json.loads(value) for key, value in header.pop("__metadata__").items() if value.startswith("{")}
    for part in about.values():
        part.pop("learned_rows", None)
    del header["sha256"]
    arrays = {name: text[start + array["data_offsets"][0] : start + array["data_offsets"][1]] for name, array in header.items()}
    assert about and arrays
    return about, arrays


def same_runs(run: Path, other: Path) -> None:
    """Weights and how data is encoded, to the byte; the records of training; settings but for the data's name."""
    assert weights(run) == weights(other)
    assert (run / "metrics.jsonl").read_bytes() == (other / "metrics.jsonl").read_bytes()
    one, two = (tomllib.loads((r / "model.toml").read_text()) for r in (run, other))
    one["data"].pop("file", None), two["data"].pop("file", None)
    assert one == two


@pytest.mark.parametrize("example, data", [("questionnaire", "answers.csv"), ("diary", "diary.csv")])
@pytest.mark.filterwarnings("ignore::ramp_ml.RampWarning")
def test_examples(example, data, tmp_path):
    import pandas as pd

    folder = ROOT / "examples" / example
    settings = tomllib.loads((folder / "model.toml").read_text())
    run = tmp_path / "command"
    command("fit", folder / "model.toml", "--out", run, "--iterations", 30, "--seed", 3)
    table = pd.read_csv(folder / data)
    model = Ramp(**parameters_of(settings) | {"iterations": 30, "random_state": 3, "verbose": False})
    model.fit(table)
    model.save(tmp_path / "python")
    same_runs(run, tmp_path / "python")

    command("infer", run, "--data", folder / data, "--out", tmp_path / "z.parquet")
    inferred = pd.read_parquet(tmp_path / "z.parquet")
    names = [c for c in inferred.columns if c.endswith(".mean")]
    assert np.array_equal(model.transform(table), inferred[names].to_numpy())
    # Either reads what the other wrote.
    assert np.array_equal(Ramp.load(run).transform(folder / data), model.transform(table))
    command("score", tmp_path / "python", "--data", folder / data, "--out", tmp_path / "score.parquet")
    scored = pd.read_parquet(tmp_path / "score.parquet")
    names = [c for c in scored.columns if c.endswith(".free_energy")]
    assert np.array_equal(model.free_energy(table), scored[names].to_numpy(), equal_nan=True)
    command("score", run, "--data", folder / data, "--out", tmp_path / "total.parquet", "--total")
    scored = pd.read_parquet(tmp_path / "total.parquet")
    names = [c for c in scored.columns if c.endswith(".nats")]
    assert np.array_equal(model.score_samples(table, by_latent=True), scored[names].to_numpy(), equal_nan=True)
    whole = scored["nats"] if "nats" in scored else scored["z.nats"]
    assert np.array_equal(model.score_samples(table), whole.to_numpy(), equal_nan=True)


@pytest.mark.filterwarnings("ignore::ramp_ml.RampWarning")
def test_sequences_in_an_archive(walks, tmp_path):
    import pandas as pd

    rng = np.random.default_rng(0)
    arrays = walks | {"pace": rng.normal(size=(80, 20, 2)).astype(np.float32)}
    np.savez(tmp_path / "walks.npz", **arrays)
    (tmp_path / "model.toml").write_text(
        'version = 1\n[data]\nfile = "walks.npz"\n[tree.chain]\nobserve = ["place", "pace"]\n[train]\niterations = 30\nseed = 4\n'
    )
    command("fit", tmp_path / "model.toml", "--out", tmp_path / "command")
    model = Ramp(Chain(observe=["place", "pace"]), iterations=30, random_state=4, verbose=False).fit(arrays)
    model.save(tmp_path / "python")
    same_runs(tmp_path / "command", tmp_path / "python")
    out = tmp_path / "z.parquet"
    command("infer", tmp_path / "command", "--long", "--out", out)
    inferred = pd.read_parquet(out)
    posterior = model.posterior(arrays)["z"]
    assert np.array_equal(posterior.mean.ravel(), inferred["z.mean"].to_numpy())
    assert np.array_equal(posterior.sd.ravel(), inferred["z.sd"].to_numpy())
    command("forecast", tmp_path / "python", "--data", tmp_path / "walks.npz", "--steps", 3, "--out", out)
    ahead = model.forecast(arrays, steps=3).to_pandas()
    pd.testing.assert_frame_equal(ahead, pd.read_parquet(out), check_exact=True)
