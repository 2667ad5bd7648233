"""Nothing that comes in can crash the interpreter: odd data and settings give exceptions, with a sentence, and nothing else."""

from __future__ import annotations

import ctypes
import random
import string

import numpy as np
import pytest
from conftest import TREE

from ramp_ml import Chain, Ramp, _lib


def survives(call) -> None:
    """It works or it raises an exception with words in it; never a panic, which is no Exception."""
    try:
        call()
    except Exception as error:
        assert str(error), repr(error)
        assert "mistake of its own" not in str(error), error


ODD = [
    None,
    True,
    7,
    2.5,
    "x",
    b"x",
    [],
    {},
    (),
    [[]],
    [1, 2, 3],
    [[1, 2], [3]],
    {"q1": []},
    {"q1": [1], "q2": [2]},
    {"q1": 1},
    {"q1": None},
    {1: [1, 2]},
    {"": [1, 2]},
    {f"q{i}": [] for i in range(1, 6)},
    {f"q{i}": ["a"] * 9 for i in range(1, 6)},
    {f"q{i}": [None] * 9 for i in range(1, 6)},
    {f"q{i}": [float("inf")] * 9 for i in range(1, 6)},
    {f"q{i}": [10**400] * 9 for i in range(1, 6)},
    {f"q{i}": np.zeros((9, 2)) for i in range(1, 6)},
    {f"q{i}": np.zeros((0, 2)) for i in range(1, 6)},
    {f"q{i}": np.zeros((2, 0)) for i in range(1, 6)},
    {f"q{i}": np.zeros(9, dtype=complex) for i in range(1, 6)},
    {f"q{i}": np.zeros(9, dtype="V4") for i in range(1, 6)},
    {f"q{i}": np.zeros(9, dtype="datetime64[s]") for i in range(1, 6)},
    {f"q{i}": np.zeros(9, dtype=np.longdouble) for i in range(1, 6)},
    {f"q{i}": np.broadcast_to(np.float64(3), 9) for i in range(1, 6)},
    {f"q{i}": np.ma.masked_array(np.arange(9.0), np.arange(9) % 2) for i in range(1, 6)},
    np.zeros((3, 5)),
    np.zeros((0, 5)),
    np.zeros((5, 0)),
    np.zeros((2, 3, 4, 5, 6)),
    np.array(3.0),
    np.array([["a", "b"]] * 9),
    np.array([[object()] * 5] * 9),
    object(),
    type,
    lambda: 0,
    float("nan"),
    range(5),
    "no/such/file.csv",
    "/",
    "\0",
    ".",
]


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("at", range(len(ODD)))
def test_odd_data(at, fitted):
    data = ODD[at]
    for tree in (TREE, None, Chain(observe=["q1"]), Chain(observe=["q1"], sequence="q2", time="q3")):
        survives(lambda: Ramp(tree, iterations=2, verbose=False).fit(data))
    for method in (fitted.transform, fitted.posterior, fitted.score, fitted.impute):
        survives(lambda: method(data))


@pytest.mark.filterwarnings("ignore")
def test_odd_settings(answers):
    values = [-1, 0, 1, 2**63, -(2**63), 1e308, -1.0, 0.5, float("nan"), float("inf"), "", "x", [], {}, [None], {"a": 1}, True]
    names = [name for name in Ramp().get_params() if name not in ("tree", "verbose", "n_jobs", "iterations")]
    rng = random.Random(0)
    small = {name: column[:40] for name, column in answers.items()}
    for name in names:
        for value in rng.sample(values, 6):
            settings = {"iterations": 1, "verbose": False, name: value}
            survives(lambda: Ramp(TREE, **settings).fit(small))
    for tree in ["", ";", "(" * 5000, "()" * 50, "(a,b)" * 20, "a;", "(q1,q1)z;", [["a"]], [[]], [], {}, {"newick": 3}, 3, Chain(observe=[])]:
        survives(lambda: Ramp(tree, iterations=1, verbose=False).fit(small))


def test_random_trees(answers):
    rng = random.Random(1)
    for _ in range(300):
        text = "".join(rng.choice("(),;q12a' \\\n\x00é") for _ in range(rng.randrange(30)))
        survives(lambda: Ramp(text)._repr_html_())


def test_false_capsules(fitted):
    new = ctypes.pythonapi.PyCapsule_New
    new.restype, new.argtypes = ctypes.py_object, [ctypes.c_void_p, ctypes.c_char_p, ctypes.c_void_p]
    memory = ctypes.create_string_buffer(256)
    named = new(ctypes.addressof(memory), b"something else", None)
    # A stream of zeros is one that has been released.
    released = new(ctypes.addressof(memory), b"arrow_array_stream", None)

    class Liar:
        def __init__(self, answer):
            self.answer = answer

        def __arrow_c_stream__(self, requested_schema=None):
            if isinstance(self.answer, Exception):
                raise self.answer
            return self.answer

    for answer in (None, 3, named, released, OSError("gone")):
        survives(lambda: fitted.transform(Liar(answer)))


def test_streams_that_break_in_the_middle(fitted, answers):
    import pyarrow as pa

    schema = pa.schema([(name, pa.float64()) for name in answers])
    batch = pa.record_batch([pa.array(v) for v in answers.values()], schema=schema)

    def batches():
        yield batch
        raise RuntimeError("the wire was cut")

    with pytest.raises(ValueError, match="the wire was cut"):
        fitted.transform(pa.RecordBatchReader.from_batches(schema, batches()))


def test_false_files_of_a_run(fitted):
    files = fitted._run.files()
    rng = random.Random(2)
    for name in files:
        for change in range(4):
            other = dict(files)
            if change == 0:
                other.pop(name)
            else:
                # Records of no steps are an empty file.
                text = bytearray(other[name] or b"\n")
                for _ in range(change * 3):
                    text[rng.randrange(len(text))] = rng.randrange(256)
                other[name] = bytes(text)
            survives(lambda: _lib.Run.from_files(list(other.items())).report_data())
    survives(lambda: _lib.Run.from_files([]))
    survives(lambda: _lib.Run.from_files([("../evil", b"x"), ("/evil", b"x"), ("", b"x"), ("..", b"x")]))


def test_random_names_of_columns():
    rng = random.Random(3)
    for _ in range(20):
        names = ["".join(rng.choice(string.printable + "é🙂") for _ in range(rng.randrange(1, 8))) for _ in range(3)]
        data = {name: np.arange(12.0) * (i + 1) % 7 for i, name in enumerate(names)}
        survives(lambda: Ramp(iterations=1, verbose=False).fit(data).transform(data))
