"""What a fitted estimator holds on to: its run, what was learned, and the data it is asked about."""

from __future__ import annotations

import json
import weakref
from typing import TYPE_CHECKING, Any

import numpy as np

from . import _lib, _sklearn
from ._data import Source, source_of
from ._settings import model_file
from ._tree import Drawing

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from ._chain import Chain


class Fitted(_sklearn.Manners):
    """The run behind an estimator, and what it was learned from."""

    tree: str | Sequence[Sequence[str]] | Chain | None
    latents_: list[str]

    @property
    def free_energy_(self) -> dict[str, float]:
        """How much each latent explains of what hangs on it, in nats a sample: on held-out samples where there are any.

        >>> from ramp_ml import Ramp, datasets
        >>> model = Ramp("(q1,q2,q3)anxiety;", iterations=10, verbose=False).fit(datasets.make_questionnaire())
        >>> list(model.free_energy_)
        ['anxiety']
        """
        latents = self._report()["latents"]
        return {name: _free_energy(latent) for name, latent in zip(self.latents_, latents)}

    def _take(self, run: _lib.Run) -> None:
        self._run = run
        self.__dict__.pop("_page", None)
        self.latents_ = [name for name, _, _ in run.latents()]

    def _remember(self, source: Source) -> None:
        """What scikit-learn wants to know of the data that was learned from."""
        self._strict = self.tree is None or not source.named
        names = source.names if self._strict else self._run.columns
        if names is None:
            names = self._run.columns
        self.n_features_in_ = len(names)
        self.__dict__.pop("feature_names_in_", None)
        if source.named:
            self.feature_names_in_ = np.asarray(names, dtype=object)

    def _hold(self, X: Any) -> None:
        """Remembers the data that was learned from, as long as somebody else needs it too: where that cannot be known, as long as the model lives."""
        try:
            self._held: Callable[[], Any] = weakref.ref(X)
        except TypeError:
            self._held = lambda: X

    def _learned_from(self) -> Any:
        """The data that was learned from: what is remembered, or else None for a run that knows its file."""
        held: Callable[[], Any] | None = self.__dict__.get("_held")
        data = None if held is None else held()
        if data is None and json.loads(self._fitted().settings())["data"].get("file") is None:
            raise ValueError("the data that the model was fitted to is gone from memory; give it once more, as X")
        return data

    def _fitted(self) -> _lib.Run:
        run: _lib.Run | None = getattr(self, "_run", None)
        if run is None:
            raise _sklearn.not_fitted(self)
        return run

    def _measured(self) -> _lib.Run:
        """The run with its page and its readout, which a training that was stopped has left undone."""
        run = self._fitted()
        if run.is_unmeasured:
            run = self._run = run.measured()
        return run

    def _ready(self, X: Any, *, measured: bool = False) -> tuple[_lib.Run, Source]:
        run = self._measured() if measured else self._fitted()
        source = source_of(X, self.tree, run.columns)
        if getattr(self, "_strict", False):
            _sklearn.check_features(self, source)
        return run, source

    def _report(self) -> dict[str, Any]:
        page: dict[str, Any] | None = self.__dict__.get("_page")
        if page is None:
            page = json.loads(self._measured().report_data())
            self._page = page
        return page

    def _drawing(self) -> Drawing:
        if getattr(self, "_run", None) is not None:
            return Drawing.of_report(self._report())
        if self.tree is None:
            return Drawing([("z", True)], [], 0)
        variables, factors, root = _lib.check(model_file(self.get_params(deep=False), self.tree, None))
        return Drawing(variables, factors, root)


def _free_energy(latent: dict[str, Any]) -> float:
    found = latent["free_energy"]
    value = found["train"] if found["held_out"] is None else found["held_out"]
    return float("nan") if value is None else float(value)
