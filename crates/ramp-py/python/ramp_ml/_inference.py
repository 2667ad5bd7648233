"""What a fitted model says of data: posteriors, scores, filled gaps, steps to come."""

from __future__ import annotations

import json
import warnings
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt

from . import _lib, _sklearn, _table
from ._chain import Chain
from ._errors import RampWarning
from ._filter import Filter
from ._fitted import Fitted
from ._posterior import LatentPosterior, Posterior
from ._progress import progress_bar
from ._which_tree import Change, Diagnosis

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence

    Array = npt.NDArray[np.float64]
else:
    Array = Any


class Inference(Fitted):
    """Answers of a fitted model."""

    def transform(self, X: Any) -> Any:
        """Posterior means, a row for every row and a column for every coordinate; of arrays of sequences ``[sample, time, coordinate]``.

        >>> import pandas as pd
        >>> from ramp_ml import Ramp, datasets
        >>> frame = pd.DataFrame(datasets.make_questionnaire())
        >>> model = Ramp("(q1,q2,q3)anxiety;", iterations=10, verbose=False).fit(frame)
        >>> list(model.set_output(transform="pandas").transform(frame).columns)
        ['anxiety']
        """
        run, source = self._ready(X)
        means, unseen = run.transform(source.payload)
        _warn_unseen(unseen)
        return _sklearn.as_wished(self, means, source)

    def posterior(self, X: Any) -> Posterior:
        """Posteriors of all latents: means, standard deviations, natural parameters and draws.

        >>> from ramp_ml import Ramp, datasets
        >>> data = datasets.make_questionnaire()
        >>> model = Ramp("(q1,q2,q3)anxiety;", iterations=10, verbose=False).fit(data)
        >>> model.posterior(data)["anxiety"].sd.shape
        (300,)
        """
        run, source = self._ready(X)
        found = run.posterior(source.payload)
        _warn_unseen(found["unseen"])
        coordinates = {name: names for name, _, names in run.latents()}
        latents = []
        for name, family, mean, sd, natural in found["latents"]:
            names = coordinates[name]
            if len(names) == 1:
                mean, sd = mean[..., 0], sd[..., 0]
            latents.append(LatentPosterior(name, family, names, mean, sd, natural))
        return Posterior(latents, found.get("samples"), found.get("steps"))

    def infer(self, X: Any, *, keep: Sequence[str] = (), long: bool = False) -> Any:
        """The table that ``ramp infer`` writes: mean and standard deviation of every coordinate, or probabilities of levels.

        Parameters
        ----------
        X : see ``fit``
        keep : list of str
            Columns of the data to keep in front.
        long : bool, default False
            For sequences in arrays: one row for every time step.

        Examples
        --------
        >>> from ramp_ml import Ramp, datasets
        >>> data = datasets.make_questionnaire()
        >>> model = Ramp("(q1,q2,q3)anxiety;", iterations=10, verbose=False).fit(data)
        >>> list(model.infer(data, keep=["q1"]))
        ['q1', 'anxiety.mean', 'anxiety.sd']
        """
        run, source = self._ready(X)
        table, unseen = run.infer(source.payload, list(keep), long)
        _warn_unseen(unseen)
        return _table.like(table, source)

    def infer_batches(
        self, batches: Iterable[Any], *, keep: Sequence[str] = ()
    ) -> Iterator[Any]:
        """``infer`` for one ``pyarrow.RecordBatch`` after the other, in the memory of one: where the data are.

        Rows are independent, so any engine that cuts a table into batches can run it: Dask, Ray Data, Spark (see the book,
        "From a laptop to a cluster"). A fitted model can be pickled to their workers.

        Parameters
        ----------
        batches : iterable of pyarrow.RecordBatch
            With the columns that the model was fitted on, and those to keep.
        keep : list of str
            Columns of the data to keep in front.

        Yields
        ------
        pyarrow.RecordBatch
            One for each that has rows, in order, row for row.

        Examples
        --------
        >>> import pyarrow as pa
        >>> from ramp_ml import Ramp, datasets
        >>> table = pa.table(datasets.make_questionnaire(200))
        >>> model = Ramp("(q1,q2,q3)anxiety;", iterations=10, verbose=False).fit(table)
        >>> parts = list(model.infer_batches(table.to_batches(max_chunksize=64)))
        >>> [part.num_rows for part in parts]
        [64, 64, 64, 8]
        >>> pa.Table.from_batches(parts).equals(model.infer(table))
        True
        """
        if isinstance(self.tree, Chain):
            raise ValueError(
                "the rows of a sequence may lie in several batches; give `infer` whole sequences instead"
            )
        self._fitted()
        for batch in batches:
            if batch.num_rows:
                table = self.infer(batch, keep=keep).combine_chunks()
                yield from table.to_batches()

    def score_samples(self, X: Any, *, by_latent: bool = False) -> Array:
        """How much the whole tree explains of each row against independent columns, in nats: what ``ramp score --total`` writes.

        It is the log-likelihood ratio of a row's values together and each for itself, bounded from below; on average over rows that were not learned from, it
        is at most the total correlation of the columns. The scale is the same for every tree, family and dimension over the same columns. Low
        values flag rows whose parts do not belong together. It is no log-density of the row: a common row and a rare one score alike if
        their parts go together alike.

        Parameters
        ----------
        X : see ``fit``
        by_latent : bool, default False
            Whether every latent has a column, in place of their sum: what each adds as seen from the tree's root.

        Returns
        -------
        ndarray
            Of tables one number a row; of sequences in arrays one a sequence, or one a step with ``by_latent``. A row that is a step of a sequence has what
            its own latent adds.

        Examples
        --------
        >>> from ramp_ml import Ramp, datasets
        >>> data = datasets.make_questionnaire()
        >>> tree = "((q1,q2,q3)anxiety,(q4,q5,q6)anger)distress;"
        >>> model = Ramp(tree, iterations=50, verbose=False).fit(data)
        >>> model.score_samples(data).shape, model.score_samples(data, by_latent=True).shape
        ((300,), (300, 3))
        """
        run, source = self._ready(X)
        totals, parts, unseen = run.total(source.payload)
        _warn_unseen(unseen)
        return parts if by_latent else totals

    def score(self, X: Any, y: Any = None) -> float:
        """The mean of ``score_samples``, in nats a row: what ``GridSearchCV`` compares. Independent columns have 0.

        >>> from ramp_ml import Ramp, datasets
        >>> data = datasets.make_questionnaire()
        >>> model = Ramp("(q1,q2,q3)anxiety;", iterations=50, verbose=False).fit(data)
        >>> model.score(datasets.make_questionnaire(random_state=1)) > 0
        True
        """
        return float(np.nanmean(self.score_samples(X)))

    def free_energy(self, X: Any) -> Array:
        """How much better each row's parts are explained together, through each latent, than apart, in nats, ``[row, latent]``: what ``ramp score``
        writes. Free energies of several latents overlap and do not add up; see ``score_samples`` for what does.

        >>> from ramp_ml import Ramp, datasets
        >>> data = datasets.make_questionnaire()
        >>> model = Ramp("(q1,q2,q3)anxiety;", iterations=10, verbose=False).fit(data)
        >>> model.free_energy(data).shape
        (300, 1)
        """
        run, source = self._ready(X)
        scores, unseen = run.score(source.payload)
        _warn_unseen(unseen)
        return scores

    def impute(self, X: Any, *, draws: int | None = None, random_state: int = 0) -> Any:
        """Fills what is missing, and only that: numbers by their conditional mean, categories by the likeliest level.

        Parameters
        ----------
        X : see ``fit``
            Tables only.
        draws : int, optional
            Give so many copies of every row, filled with draws and told apart by a column ``draw``, in place of one best guess.
        random_state : int, default 0
            The seed of the draws.

        Returns
        -------
        table
            Of the same library as ``X``.

        Examples
        --------
        >>> import numpy as np
        >>> from ramp_ml import Ramp, datasets
        >>> data = datasets.make_questionnaire(missing=0.1)
        >>> model = Ramp("(q1,q2,q3)anxiety;", iterations=30, verbose=False).fit(data)
        >>> bool(np.isnan(model.impute(data)["q1"]).any())
        False
        >>> len(model.impute(data, draws=5)["draw"])
        1500
        """
        run, source = self._ready(X, measured=True)
        table, unseen = run.impute(source.payload, draws, random_state)
        _warn_unseen(unseen)
        if source.kind == "numpy" and draws is None:
            return np.column_stack([table.column(i) for i in range(len(table.column_names))])
        return _table.like(table, source)

    def forecast(self, X: Any, *, steps: int, interval: float = 0.8) -> Any:
        """The next steps of every sequence, a row each: the latent's posterior, and for every number its mean and an interval.

        Parameters
        ----------
        X : see ``fit``
        steps : int
            Steps after the end of every sequence.
        interval : float, default 0.8
            The chance that a value lies in its interval.

        Examples
        --------
        >>> from ramp_ml import Chain, Ramp, datasets
        >>> walks = datasets.make_walks()
        >>> model = Ramp(Chain(observe=["walk"]), iterations=20, verbose=False).fit(walks)
        >>> len(model.forecast(walks, steps=3))
        120
        """
        run, source = self._ready(X, measured=True)
        table, unseen = run.forecast(source.payload, steps, interval)
        _warn_unseen(unseen)
        return _table.like(table, source)

    def diagnose(self, X: Any = None, *, iterations: int | None = None, around: int | None = None) -> Diagnosis:
        """Which change of the tree would explain more of the held-out rows, in nats with standard errors: what ``ramp diagnose`` prints, and what modification
        indices are to structural equations. Only the latents around a change and those beside them are fitted again. The report lists the changes.

        Parameters
        ----------
        X : see ``fit``, optional
            The data that the model was fitted to; it is remembered as long as it is in memory.
        iterations : int, optional
            Steps of each small fit.
        around : int, optional
            How many steps from the latents of a change others are fitted again with it, 1 by default; 0 is quicker, and blind to what their neighbours would make of it.

        Returns
        -------
        Diagnosis
            The changes, the greatest gain first.

        Examples
        --------
        >>> from ramp_ml import Ramp, datasets
        >>> data = datasets.make_questionnaire(600)
        >>> model = Ramp("((q1,q2)anxiety,(q3,q4,q5,q6)anger)distress;", holdout=0.3, iterations=60, verbose=False).fit(data)
        >>> best = model.diagnose(data, iterations=30)[0]
        >>> best.is_clear, "q3 belongs to" in best.sentence
        (True, True)
        """
        self._measured()
        if X is None:
            X = self._learned_from()
        payload = None if X is None else self._ready(X)[1].payload
        bar = progress_bar(getattr(self, "verbose", None))
        try:
            text, self._run = _lib.diagnose(self._measured(), payload, iterations, around, bar)
        finally:
            if bar is not None:
                bar.close()
        self.__dict__.pop("_page", None)
        found = json.loads(text)
        changes = [Change(c["sentence"], c["gain"], c["standard_error"], c["p_value"], c["newick"]) for c in found["changes"]]
        return Diagnosis(changes, found["rows"])

    def filter(self) -> Filter:
        """A filter that has seen nothing: what is known about the present of a sequence, one step after the other.

        >>> from ramp_ml import Chain, Ramp, datasets
        >>> model = Ramp(Chain(observe=["walk"]), iterations=20, verbose=False).fit(datasets.make_walks())
        >>> belief = model.filter().step({"walk": 0.5})
        >>> belief.mean.shape
        (1,)
        """
        run = self._fitted()
        return Filter(run.filter(), run.columns)


def _warn_unseen(cells: int) -> None:
    if cells:
        warnings.warn(
            f"{cells} cells hold levels that training never saw; they count as missing",
            RampWarning,
            stacklevel=3,
        )
