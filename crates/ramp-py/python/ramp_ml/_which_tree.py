"""Which tree? Models compared, trees doubted and grown."""

from __future__ import annotations

import json
import os
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from . import _lib
from ._data import source_of
from ._progress import progress_bar
from ._settings import seed_of

if TYPE_CHECKING:
    from typing import TypeAlias

    from ._estimator import Ramp

    Model: TypeAlias = Ramp | str | os.PathLike[str]

__all__ = ["Change", "ComparedModel", "Comparison", "Diagnosis", "Grown", "compare", "grow"]


@dataclass(frozen=True)
class ComparedModel:
    """One of the models of a comparison.

    Attributes
    ----------
    name : str
        What it is called.
    latents : int
        How many latents its tree has.
    nats, standard_error : float
        Nats a row more than independent columns, and the standard error of that.
    difference, difference_error : float or None
        Nats a row more than the first model, and its standard error, rows paired; None for the first itself.
    by_latent : dict
        The same for every latent that divides the columns as one of the first model's does: ``{name: (nats, standard error)}``.

    Examples
    --------
    >>> from ramp_ml import ComparedModel
    >>> ComparedModel("star", 1, 0.9, 0.1, -0.12, 0.02).is_clear
    True
    """

    name: str
    latents: int
    nats: float
    standard_error: float
    difference: float | None = None
    difference_error: float | None = None
    by_latent: Mapping[str, tuple[float, float]] = field(default_factory=dict)

    @property
    def is_clear(self) -> bool:
        """Whether the difference is more than two standard errors."""
        return self.difference is not None and abs(self.difference) > 2 * (self.difference_error or 0.0)


class Comparison(Sequence[ComparedModel]):
    """Which of some models explains more: the models in their order, on the rows that none has learned from.

    Attributes
    ----------
    rows : int
        How many rows.
    sentences : list of str
        The finding of every model but the first, in words.

    Examples
    --------
    >>> from ramp_ml import Ramp, compare, datasets
    >>> data = datasets.make_questionnaire(600)
    >>> settings = dict(holdout=0.3, iterations=60, verbose=False)
    >>> one = Ramp("(q1,q2,q3,q4,q5,q6)z;", **settings).fit(data)
    >>> two = Ramp("((q1,q2,q3)anxiety,(q4,q5,q6)anger)distress;", **settings).fit(data)
    >>> found = compare({"one": one, "two": two}, data)
    >>> found.rows, [model.name for model in found]
    (180, ['one', 'two'])
    """

    def __init__(self, models: list[ComparedModel], rows: int, sentences: list[str]) -> None:
        self._models = models
        self.rows = rows
        self.sentences = sentences

    def __getitem__(self, at: Any) -> Any:
        return self._models[at]

    def __len__(self) -> int:
        return len(self._models)

    def __repr__(self) -> str:
        head = ["model", "latents", "nats", "± error", "more than the first", "± error"]
        rows = []
        for m in self._models:
            more = ["", ""] if m.difference is None else [f"{m.difference:+.3f}", f"{m.difference_error:.3f}"]
            rows.append([m.name, str(m.latents), f"{m.nats:.3f}", f"{m.standard_error:.3f}", *more])
        return "\n".join([_columns(head, rows), *self.sentences])


def compare(models: Mapping[str, Model] | Sequence[Model], X: Any = None) -> Comparison:
    """Which of some models explains more of rows that none of them has learned from, in nats against independent columns: trees, families and
    dimensions on one scale. What ``ramp compare`` prints.

    Parameters
    ----------
    models : dict or list of Ramp or path
        Two or more, fitted with the same ``random_state`` and ``holdout`` so that they hold out the same rows; a dict says what each is called. Paths are run folders.
    X : see ``Ramp.fit``, optional
        The data that all were fitted to; runs of the command know their file.

    Returns
    -------
    Comparison
        Every model beside the first.

    Examples
    --------
    >>> from ramp_ml import Ramp, compare, datasets
    >>> data = datasets.make_questionnaire(600)
    >>> settings = dict(holdout=0.3, iterations=60, verbose=False)
    >>> one = Ramp("(q1,q2,q3,q4,q5,q6)z;", **settings).fit(data)
    >>> two = Ramp("((q1,q2,q3)anxiety,(q4,q5,q6)anger)distress;", **settings).fit(data)
    >>> compare({"one": one, "two": two}, data)[1].difference > 0
    True
    """
    from ._estimator import Ramp

    names: list[str] = []
    fitted: list[Ramp] = []
    pairs: Iterable[tuple[str | None, Model]] = models.items() if isinstance(models, Mapping) else [(None, model) for model in models]
    for at, (name, model) in enumerate(pairs):
        if isinstance(model, Ramp):
            fitted.append(model)
            names.append(name or f"model {at + 1}")
        else:
            fitted.append(Ramp.load(model))
            names.append(name or os.fspath(model))
    if len(fitted) < 2:
        raise ValueError("two models at least can be compared; give a list or a dict of them")
    if X is None:
        X = fitted[0]._learned_from()
    payload = None if X is None else source_of(X, fitted[0].tree, fitted[0]._fitted().columns).payload
    runs = [(name, model._measured()) for name, model in zip(names, fitted)]
    found = json.loads(_lib.compare(runs, payload))
    compared = []
    for run in found["runs"]:
        difference = run["difference"] or {}
        compared.append(
            ComparedModel(
                run["name"],
                run["latents"],
                run["nats"],
                run["standard_error"],
                difference.get("mean"),
                difference.get("standard_error"),
                {name: (mean, error) for name, mean, error in difference.get("latents", [])},
            )
        )
    return Comparison(compared, found["rows"], found["sentences"])


@dataclass(frozen=True)
class Change:
    """What one change of a tree gains on rows that were not learned from.

    Attributes
    ----------
    sentence : str
        The change, in words.
    gain, standard_error : float
        Nats a row that it explains more, and the standard error of that, rows paired.
    p_value : float
        The chance of such a gain if the change gained nothing, corrected for how many were tried (Holm).
    tree : str
        The tree after it, in Newick's notation.

    Examples
    --------
    >>> from ramp_ml import Change
    >>> Change("q7 belongs to anger rather than anxiety", 0.031, 0.004, 0.001, "((q1,q2)a,(q3,q7)b)c;").is_clear
    True
    """

    sentence: str
    gain: float
    standard_error: float
    p_value: float
    tree: str

    @property
    def is_clear(self) -> bool:
        """Whether chance does not explain it."""
        return self.gain > 0 and self.p_value < 0.05


class Diagnosis(Sequence[Change]):
    """What changes of a tree gain, the greatest gain first; see :meth:`Ramp.diagnose`.

    Attributes
    ----------
    rows : int
        How many held-out rows judged.

    Examples
    --------
    >>> from ramp_ml import Change, Diagnosis
    >>> Diagnosis([Change("q7 belongs to anger", 0.031, 0.004, 0.001, "(q1,q7)a;")], 500)[0].gain
    0.031
    """

    def __init__(self, changes: list[Change], rows: int) -> None:
        self._changes = changes
        self.rows = rows

    def __getitem__(self, at: Any) -> Any:
        return self._changes[at]

    def __len__(self) -> int:
        return len(self._changes)

    def __iter__(self) -> Iterator[Change]:
        return iter(self._changes)

    @property
    def clear(self) -> list[Change]:
        """The changes that gain more than chance."""
        return [change for change in self._changes if change.is_clear]

    def __repr__(self) -> str:
        rows = []
        for change in self._changes[:10]:
            p = "< 0.001" if change.p_value < 0.001 else f"{change.p_value:.3f}"
            rows.append([f"{change.gain:+.3f}", f"{change.standard_error:.3f}", p, change.sentence])
        said = f"{len(self.clear)} of {len(self)} changes gain more than chance on {self.rows} held-out rows"
        return "\n".join([_columns(["gain", "± error", "p", "change"], rows), said])


@dataclass(frozen=True)
class Grown:
    """A tree that was grown from data; see :func:`grow`.

    Attributes
    ----------
    tree : str
        The tree in Newick's notation: ``Ramp(grown.tree)`` fits it. Latents are named after their items.
    support : dict
        For every latent but the root, in which part of the bootstrap's trees its edge towards the root is.
    accepted : list of dict
        What was changed by what it explains: ``round``, ``sentence``, ``gain`` and ``standard_error``.
    total : dict or None
        What the last fit explains of rows that had no part in any of it: ``nats`` a row against independent columns, ``standard_error``, ``rows``; None
        without rounds.
    left_out : dict
        Columns that were left out, and why.
    start : str
        The tree of distances that the search began with.
    drawing : str
        The drawing with supports, as SVG: notebooks show it.

    Examples
    --------
    >>> from ramp_ml import Ramp, datasets, grow
    >>> data = datasets.make_questionnaire(1500)
    >>> grown = grow(data, rounds=0, bootstraps=20, verbose=False)
    >>> Ramp(grown.tree, iterations=10, verbose=False).fit(data).n_features_in_
    6
    """

    tree: str
    support: Mapping[str, float]
    accepted: Sequence[Mapping[str, Any]]
    total: Mapping[str, Any] | None
    left_out: Mapping[str, str]
    start: str
    drawing: str
    _text: str = ""

    def _repr_svg_(self) -> str:
        return self.drawing

    def __repr__(self) -> str:
        changes = [f"round {a['round']}: {a['sentence']}: {a['gain']:+.3f} ± {a['standard_error']:.3f} nats a row" for a in self.accepted]
        total = [] if self.total is None else [str(self.total["sentence"])]
        return "\n".join([self._text.rstrip(), *changes, *total])


def grow(
    X: Any,
    *,
    keep: str | None = None,
    rounds: int | None = None,
    bootstraps: int | None = None,
    random_state: Any = None,
    checkpoint: str | os.PathLike[str] | None = None,
    verbose: bool = True,
) -> Grown:
    """A tree from data: what ``ramp grow`` does.

    Columns are joined by distances that gaps and monotone distortions do not disturb, edges that the bootstrap does not insist on are contracted, then the tree is
    changed as long as a change explains more of rows that were not learned from.

    Parameters
    ----------
    X : table, dict of arrays, matrix or path
        See ``Ramp.fit``; four columns and more. What cannot be observed (identifiers, dates) is left out.
    keep : str, optional
        Parts that are known, in Newick's notation: groups with a name stay together, such as ``"((q1,q2)calm,(q3,q4)kind);"``.
    rounds : int, default 5
        Rounds of changes by what they explain; 0 leaves the tree of distances.
    bootstraps : int, default 100
        Trees of the bootstrap.
    random_state : int, RandomState or None
        The seed; 0 for None, as in the command.
    checkpoint : path, optional
        A file in which the growth keeps how far it is: after Ctrl-C, the same call goes on with the last round. It is removed at the end.
    verbose : bool, default True
        Whether a progress bar is shown in terminals and notebooks.

    Returns
    -------
    Grown
        The tree, its supports and its drawing.

    Examples
    --------
    >>> from ramp_ml import datasets, grow
    >>> grown = grow(datasets.make_questionnaire(1500), rounds=0, bootstraps=20, verbose=False)
    >>> grown.tree
    '(q1,q2,q3,(q4,q5,q6)q4_to_q6)q1_to_q3;'
    """
    seed = seed_of(random_state, None)
    bar = progress_bar(verbose)
    try:
        text = _lib.grow(
            source_of(X, None, None).payload,
            keep,
            rounds,
            bootstraps,
            0 if seed is None else seed,
            None if checkpoint is None else os.fspath(checkpoint),
            bar,
        )
    finally:
        if bar is not None:
            bar.close()
    found = json.loads(text)
    return Grown(
        found["tree"],
        found["support"],
        found["accepted"],
        found["total"],
        dict(found["left_out"]),
        found["start"],
        found["drawing"],
        found["text"],
    )


def _columns(head: list[str], rows: list[list[str]]) -> str:
    """A table in plain text; numbers to the right."""
    widths = [max(len(row[i]) for row in [head, *rows]) for i in range(len(head))]
    lines = []
    for row in [head, *rows]:
        cells = []
        for cell, width in zip(row, widths):
            number = cell[:1].isdigit() or cell[:1] in "+-<±" or cell in ("gain", "p", "nats", "latents")
            cells.append(cell.rjust(width) if number else cell.ljust(width))
        lines.append("  ".join(cells).rstrip())
    return "\n".join(lines)
