"""Models compared, trees doubted and grown: the command's numbers, in memory."""

from __future__ import annotations

import csv
import os
import pickle
import re
import subprocess
import time
import tomllib

import numpy as np
import pytest
from test_interrupt import press_after

from ramp_ml import Ramp, compare, grow

COMMAND = os.environ.get("RAMP_COMMAND")
RIGHT = "((q1,q2,q3)anxiety,(q4,q5,q6)anger)distress;"
MOVED = "((q1,q2)anxiety,(q3,q4,q5,q6)anger)distress;"
SETTINGS = dict(holdout=0.25, iterations=80, random_state=0, verbose=False)


def questionnaire(n=1200):
    from ramp_ml import datasets

    return datasets.make_questionnaire(n, missing=0.05, random_state=3)


@pytest.fixture(scope="module")
def data():
    return questionnaire()


@pytest.fixture(scope="module")
def right(data):
    return Ramp(RIGHT, **SETTINGS).fit(data)


@pytest.fixture(scope="module")
def moved(data):
    return Ramp(MOVED, **SETTINGS).fit(data)


@pytest.fixture(scope="module")
def file(data, tmp_path_factory):
    import pandas as pd

    path = tmp_path_factory.mktemp("which") / "answers.csv"
    pd.DataFrame(data).to_csv(path, index=False)
    return path


def command(*arguments: object) -> str:
    if COMMAND is None:
        pytest.skip("the command `ramp` is not built")
    done = subprocess.run([str(COMMAND), *map(str, arguments)], check=True, capture_output=True, text=True)
    return done.stdout


def test_models_are_compared_as_the_command_does(data, right, moved, file, tmp_path):
    found = compare({"right": right, "moved": moved}, data)
    assert found.rows == 300 and len(found) == 2
    second = found[1]
    assert second.difference < 0 and second.is_clear
    assert found[0].difference is None and found[0].nats > second.nats
    assert "moved explains" in found.sentences[0] and "less per row than right" in repr(found)
    # By paths too, whose data is remembered by nobody.
    right.save(tmp_path / "right")
    moved.save(tmp_path / "moved")
    again = compare([tmp_path / "right", tmp_path / "moved"], data)
    assert (again[1].nats, again[1].difference) == (second.nats, second.difference)
    said = command("compare", tmp_path / "right", tmp_path / "moved", "--data", file)
    numbers = [f"{second.nats:.3f}", f"{second.standard_error:.3f}", f"{second.difference:+.3f}", f"{second.difference_error:.3f}"]
    line = next(line for line in said.splitlines() if "moved" in line and re.search(r"\d", line) and "explains" not in line)
    assert line.split()[2:6] == numbers or all(number in line for number in numbers), said
    with pytest.raises(ValueError, match="two models"):
        compare([right], data)
    other = Ramp(RIGHT, **SETTINGS | {"random_state": 1}).fit(questionnaire(1100))
    with pytest.raises(ValueError, match="not what|was not fitted"):
        compare([right, other], data)
    with pytest.raises(ValueError, match="gone from memory"):
        compare([tmp_path / "right", tmp_path / "moved"])


def test_a_misplaced_item_is_named_and_listed_in_the_report(data, moved, file, tmp_path):
    found = moved.diagnose(iterations=40)
    # Beside distress, which may be as near to anxiety as it likes, q3 explains as much: of the two either may come first.
    best = next(c for c in found if c.sentence == "q3 belongs to anxiety rather than anger")
    assert best.is_clear and best in found[:2] and found[0].gain - best.gain < 0.1 * best.standard_error
    assert best.p_value < 0.001 and found.rows == 300 and found.clear[0] is found[0]
    assert best.sentence in repr(found)
    assert best.sentence in moved.report().html
    moved.save(tmp_path / "moved")
    out = tmp_path / "changes.csv"
    command("diagnose", tmp_path / "moved", "--data", file, "--out", out, "--iterations", 40)
    with open(out) as lines:
        rows = list(csv.DictReader(lines))
    assert [row["change"] for row in rows] == [change.sentence for change in found]
    assert [float(row["gain"]) for row in rows] == [change.gain for change in found]
    assert [float(row["p_value"]) for row in rows] == [change.p_value for change in found]
    # The best change as a tree to fit.
    again = Ramp(best.tree, **SETTINGS).fit(data)
    assert compare([moved, again], data)[1].difference > 0.02


def test_diagnosing_needs_the_data_and_can_be_stopped(data, moved):
    from ramp_ml import datasets

    copy = pickle.loads(pickle.dumps(moved))
    with pytest.raises(ValueError, match="gone from memory"):
        copy.diagnose()
    with pytest.raises(ValueError, match="not what"):
        copy.diagnose(datasets.make_questionnaire(1200, random_state=5))
    found = None
    pressed = press_after(0.05)
    with pytest.raises(KeyboardInterrupt):
        found = copy.diagnose(data, iterations=100_000)
        # Were it done first, the key must not reach another test.
        while not pressed:
            time.sleep(0.01)
        time.sleep(5.0)
    assert pressed and found is None


def test_trees_are_grown_as_the_command_grows_them(data, file, tmp_path):
    from ramp_ml import Ramp as Estimator

    grown = grow(data, rounds=1, bootstraps=30, verbose=False)
    newick = tmp_path / "grown.toml"
    said = command("grow", file, "--out", newick, "--rounds", 1, "--bootstraps", 30)
    assert tomllib.loads(newick.read_text())["tree"]["newick"] == grown.tree
    assert grown.total["sentence"] in said
    assert (tmp_path / "grown.svg").read_text() == grown.drawing == grown._repr_svg_()
    assert all(0 <= part <= 1 for part in grown.support.values())
    model = Estimator(grown.tree, **SETTINGS).fit(data)
    assert model.n_features_in_ == 6
    # What hangs together in truth does in the tree.
    drawn = {frozenset(group.split(",")) for group in re.findall(r"\(([^()]*)\)", grown.tree)}
    assert drawn & {frozenset(["q1", "q2", "q3"]), frozenset(["q4", "q5", "q6"])}
    kept = grow(data, rounds=0, bootstraps=10, keep="(q1,q4)pair;", verbose=False)
    assert "pair" in kept.tree and kept.total is None
    with pytest.raises(ValueError, match="four and more"):
        grow({name: data[name] for name in ("q1", "q2", "q3")}, verbose=False)
    with pytest.raises(ValueError, match="`a9`"):
        grow(data, keep="(q1,a9)pair;", verbose=False)


def test_growth_can_be_stopped_and_goes_on(data, tmp_path):
    state = tmp_path / "growth.json"
    settings = dict(bootstraps=10, rounds=2, checkpoint=state, verbose=False)
    pressed = press_after(1.5)
    done = False
    try:
        grow(data, **settings)
        done = True
        # A fast machine may be done first; the key is pressed all the same, and must not reach another test.
        while not pressed:
            time.sleep(0.01)
        time.sleep(5.0)
    except KeyboardInterrupt:
        pass
    if not done:
        assert state.exists()
        with pytest.raises(ValueError, match="is not of `the data`"):
            grow(questionnaire(900), **settings)
    grown = grow(data, **settings)
    assert not state.exists()
    assert grown.tree == grow(data, bootstraps=10, rounds=2, verbose=False).tree


def test_mixed_columns_are_grown(data):
    import pandas as pd

    frame = pd.DataFrame(data)
    frame["q2"] = frame["q2"].map({1: "never", 2: "seldom", 3: "at times", 4: "often", 5: "always"})
    frame["q5"] = np.exp(frame["q5"])
    grown = grow(frame, rounds=0, bootstraps=20, verbose=False)
    assert {f"q{i}" for i in range(1, 7)} <= set(re.findall(r"q\d", grown.tree))
