"""Ctrl-C ends training soon, the best weights stay, and a fit can go on; the interpreter is free meanwhile; bars are one line."""

from __future__ import annotations

import _thread
import io
import pickle
import sys
import threading
import time

import numpy as np
import pytest
from conftest import TREE

from ramp_ml import Chain, Ramp
from ramp_ml._progress import NotebookBar, TerminalBar, progress_bar


@pytest.fixture()
def many(answers):
    return {name: np.tile(values, 8) for name, values in answers.items()}


def press_after(seconds: float) -> list[tuple[float, float]]:
    pressed: list[tuple[float, float]] = []

    def press() -> None:
        time.sleep(seconds)
        pressed.append((time.monotonic(), time.process_time()))
        _thread.interrupt_main()

    threading.Thread(target=press, daemon=True).start()
    return pressed


def stopped(model, data, **settings) -> None:
    """Presses Ctrl-C in a fit, which must end within a second: counted in processor time of all threads, as a busy machine lets us wait."""
    pressed = press_after(1.0)
    with pytest.raises(KeyboardInterrupt):
        model.fit(data, **settings)
    wall, work = pressed[0]
    assert time.process_time() - work < 1.0
    assert time.monotonic() - wall < 10.0


def test_ctrl_c_keeps_the_best_weights_and_resume_goes_on(many):
    settings = dict(iterations=3000, patience=10_000, validation=0.1, random_state=0, verbose=False)
    model = Ramp(TREE, **settings, evaluate_every=5)
    stopped(model, many)
    assert 0 < model.n_iter_ < 3000
    assert np.isfinite(model.transform(many)).all()
    half = model.n_iter_
    assert np.array_equal(pickle.loads(pickle.dumps(model)).transform(many), model.transform(many))
    stopped(model, many, resume=True)
    assert model.n_iter_ > half


def test_what_a_stopped_fit_has_left_to_measure_comes_when_it_is_asked_for(many):
    model = Ramp(TREE, iterations=3000, patience=10_000, random_state=0, verbose=False)
    stopped(model, many)
    means = model.transform(many)
    assert model._run.is_unmeasured
    assert set(model.free_energy_) == {"distress", "anxiety", "anger"} and not model._run.is_unmeasured
    # The same model as before, with its page and what fills gaps.
    assert np.array_equal(model.transform(many), means)
    assert f"stopped after iteration {model.n_iter_}" in model.report().html
    assert not np.isnan(model.impute(many)["q1"]).any()
    model.fit(many, resume=True) if model.n_iter_ == 3000 else stopped(model, many, resume=True)


def test_ctrl_c_of_a_large_fit(walks):
    rng = np.random.default_rng(0)
    hidden = rng.normal(size=60_000)
    wide = {f"x{i}": hidden + rng.normal(size=60_000) for i in range(20)}
    stopped(Ramp(iterations=3000, patience=10_000, verbose=False), wide)
    stopped(Ramp(Chain(observe=["place"]), iterations=30_000, patience=10_000, verbose=False), walks)


@pytest.mark.filterwarnings("ignore::ramp_ml.RampWarning")
def test_resumed_fits_end_where_others_do(many):
    settings = dict(iterations=150, evaluate_every=5, patience=1000, random_state=0)

    class Stop(Exception):
        pass

    model = Ramp(TREE, **settings, verbose=False)
    calls = 0

    def stop(stage, iteration, iterations, free_energy, held_out):
        nonlocal calls
        calls += 1
        if iteration > 20:
            raise Stop

    from ramp_ml import _estimator

    before, _estimator.progress_bar = _estimator.progress_bar, lambda verbose: Callback(stop)
    try:
        with pytest.raises(Stop):
            model.fit(many)
    finally:
        _estimator.progress_bar = before
    assert 20 < model.n_iter_ < 150 and calls > 1
    model.fit(many, resume=True)
    assert model.n_iter_ == 150
    whole = Ramp(TREE, **settings, verbose=False).fit(many)
    assert np.array_equal(model.transform(many), whole.transform(many))
    with pytest.raises(ValueError, match="no fit that was stopped"):
        model.fit(many, resume=True)


class Callback:
    def __init__(self, call):
        self.call = call

    def __call__(self, *arguments):
        self.call(*arguments)

    def close(self):
        pass


def test_other_threads_run_meanwhile(many):
    ticks = []
    done = threading.Event()

    def tick() -> None:
        while not done.is_set():
            ticks.append(time.monotonic())
            time.sleep(0.005)

    thread = threading.Thread(target=tick)
    thread.start()
    began = time.monotonic()
    Ramp(TREE, iterations=100, verbose=False, random_state=0).fit(many)
    took = time.monotonic() - began
    done.set()
    thread.join()
    within = [t for t in ticks if began < t < began + took]
    assert len(within) > 5


def test_bars(monkeypatch, answers):
    class Terminal(io.StringIO):
        def isatty(self):
            return True

    monkeypatch.setattr(sys, "stderr", Terminal())
    # All of the steps are taken: no cross-validation says how many, and no start is good enough to stay with.
    Ramp(TREE, iterations=20, random_state=0, init="shared", folds=0).fit(answers)
    text = sys.stderr.getvalue()
    # Blanks take away what is left of a longer line of the stage before.
    assert text.count("\n") == 1 and text.rstrip(" \n").endswith("]")
    last = text.strip().split("\r")[-1]
    assert last.startswith("fitting: 100%|████") and "| 20/20 [" in last and "free energy" in last and "it/s" in last
    monkeypatch.setattr(sys, "stderr", Terminal())
    Ramp(TREE, iterations=5, random_state=0, verbose=False).fit(answers)
    assert sys.stderr.getvalue() == ""
    monkeypatch.setattr(sys, "stderr", io.StringIO())
    assert progress_bar(True) is None
    assert isinstance(TerminalBar(), TerminalBar)


def test_notebook_bars(monkeypatch):
    shown = []

    class Handle:
        def update(self, page):
            shown.append(page.data)

    import IPython.display

    monkeypatch.setattr(IPython.display, "display", lambda page, display_id: shown.append(page.data) or Handle())
    bar = NotebookBar()
    bar("fitting", 0, 100, None, None)
    bar("fitting", 100, 100, 0.5, 0.4)
    assert len(shown) == 2 and '<progress value="100" max="100">' in shown[1] and "100/100" in shown[1]
