"""The estimator: scikit-learn's manners around a run of the library."""

from __future__ import annotations

import json
import logging
import os
import warnings
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt

from . import _lib, _sklearn, _table
from ._chain import Chain
from ._data import Source, source_of
from ._errors import RampWarning
from ._filter import Filter
from ._posterior import LatentPosterior, Posterior
from ._progress import progress_bar
from ._settings import model_file, parameters_of, seed_of
from ._tree import Drawing

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping, Sequence

    from typing_extensions import Self

    Array = npt.NDArray[np.float64]
else:
    Array = Any

__all__ = ["Ramp"]

log = logging.getLogger("ramp_ml")


class Ramp(_sklearn.Manners):
    """Uncovers the latent variables behind data whose dependencies form a tree.

    Every setting of the model file is a parameter of the same name; what is None is left to the library, which has good defaults for
    trees and for sequences. The estimator follows scikit-learn's conventions: use it in a ``Pipeline``, in ``GridSearchCV``, with
    ``set_output`` and ``clone``.

    Parameters
    ----------
    tree : str, list, Chain or None
        Who hangs together: a tree in Newick's notation such as ``"((q1,q2,q3)anxiety,(q4,q5)anger)distress;"``, a list of pairs or
        groups of names, or a :class:`Chain` for sequences. Leaves are columns, all other names are latents. By default one latent
        ``z`` over all columns.
    holdout : float, default 0.1
        The fraction of samples that training never touches: they judge.
    validation : float, default 0.1
        The fraction of samples that are not learned from but choose the weights.
    family : str, default "gaussian"
        The family of latents that are not named in ``latents``, such as ``"gaussian(2)"``, ``"categorical(3)"``, ``"beta"``, or a product
        such as ``"von_mises x gaussian"``.
    dim, levels : int, optional
        The family's size, where its name does not say it.
    latents : dict, optional
        Families of single latents: ``{"anger": "categorical(3)"}``.
    observations : dict, optional
        What observations are, where they are not what their columns look like: ``{"q1": "ordinal"}`` or
        ``{"q1": {"kind": "categorical", "levels": ["no", "yes"]}}``. Kinds are number, categorical, ordinal, vector and image; other
        settings are columns, scale, levels, monotone and network.
    message, observation : dict, optional
        The networks from beliefs and from observations to messages, such as ``{"hidden": [64, 64], "activation": "tanh"}``.
    inputs : {"moments", "natural"}, optional
        What networks see of a belief.
    tying : {"separate", "role", ...}, optional
        Which messages share a network.
    init : str, optional
        How networks begin; by dynamics on chains and shared on other trees by default.
    monotone : bool, optional
        Whether what an ordered observation says of its latent's mean must rise, or fall, all along.
    iterations : int, optional
        Steps of training, at most.
    batch : int, optional
        Samples per step.
    learning_rate : float, optional
        The step size at its highest.
    optimizer : str or dict, optional
        The update rule.
    even_rates : bool, optional
        Whether Adam has one rate for all weights.
    warmup : int, optional
        Iterations over which the learning rate rises from zero.
    decay : str or dict, optional
        What the learning rate does afterwards.
    clip : float, optional
        The largest norm of the gradient.
    mixture : int, optional
        Samples of the batch in the mixture, redrawn each step.
    population : int, optional
        The population that sets the weight of a sample's own term.
    mask : float, optional
        The chance with which each observation is left out of a step, as if it were missing.
    mask_span : float, optional
        How many observations in a row are left out together, on average.
    mask_warmup : int, optional
        Iterations over which masking rises from nothing.
    evaluate_every : int, optional
        Iterations between evaluations on validation samples.
    patience : int, optional
        Evaluations without improvement after which training stops.
    seed : int, optional
        The model file's name for ``random_state``.
    random_state : int, RandomState or None
        The seed; 0 for None, as in the command. The same seed gives the same bits, on any number of threads.
    n_jobs : int, optional
        Threads; all of the machine's for None and -1.
    verbose : bool, default True
        Whether a progress bar is shown in terminals and notebooks.

    Attributes
    ----------
    latents_ : list of str
        The latents, in the order of the tree.
    free_energy_ : dict
        How much each latent explains of what hangs on it, in nats a sample: on held-out samples where there are any.
    n_iter_ : int
        Iterations that training took.
    n_features_in_ : int
        Columns seen in ``fit``; those of the model where a tree names them.
    feature_names_in_ : ndarray of str
        Their names, where the data has any.

    Examples
    --------
    >>> import numpy as np
    >>> from ramp_ml import Ramp
    >>> rng = np.random.default_rng(0)
    >>> distress = rng.normal(size=500)
    >>> anxiety, anger = distress + rng.normal(size=500), distress + rng.normal(size=500)
    >>> data = {f"q{i}": anxiety + rng.normal(size=500) for i in (1, 2, 3)}
    >>> data |= {f"q{i}": anger + rng.normal(size=500) for i in (4, 5, 6)}
    >>> model = Ramp("((q1,q2,q3)anxiety,(q4,q5,q6)anger)distress;", random_state=0, verbose=False)
    >>> found = model.fit_transform(data)
    >>> found.shape
    (500, 3)
    >>> model.get_feature_names_out().tolist()
    ['distress', 'anxiety', 'anger']
    >>> bool(abs(np.corrcoef(found[:, 1], anxiety)[0, 1]) > 0.7)
    True
    """

    def __init__(
        self,
        tree: str | Sequence[Sequence[str]] | Chain | None = None,
        *,
        holdout: float | None = None,
        validation: float | None = None,
        family: str | None = None,
        dim: int | None = None,
        levels: int | None = None,
        latents: Mapping[str, str | Mapping[str, Any]] | None = None,
        observations: Mapping[str, str | Mapping[str, Any]] | None = None,
        message: Mapping[str, Any] | None = None,
        observation: Mapping[str, Any] | None = None,
        inputs: str | None = None,
        tying: str | None = None,
        init: str | None = None,
        monotone: bool | None = None,
        iterations: int | None = None,
        batch: int | None = None,
        learning_rate: float | None = None,
        optimizer: str | Mapping[str, Any] | None = None,
        even_rates: bool | None = None,
        warmup: int | None = None,
        decay: str | Mapping[str, Any] | None = None,
        clip: float | None = None,
        mixture: int | None = None,
        population: int | None = None,
        mask: float | None = None,
        mask_span: float | None = None,
        mask_warmup: int | None = None,
        evaluate_every: int | None = None,
        patience: int | None = None,
        seed: int | None = None,
        random_state: Any = None,
        n_jobs: int | None = None,
        verbose: bool = True,
    ) -> None:
        self.tree = tree
        self.holdout = holdout
        self.validation = validation
        self.family = family
        self.dim = dim
        self.levels = levels
        self.latents = latents
        self.observations = observations
        self.message = message
        self.observation = observation
        self.inputs = inputs
        self.tying = tying
        self.init = init
        self.monotone = monotone
        self.iterations = iterations
        self.batch = batch
        self.learning_rate = learning_rate
        self.optimizer = optimizer
        self.even_rates = even_rates
        self.warmup = warmup
        self.decay = decay
        self.clip = clip
        self.mixture = mixture
        self.population = population
        self.mask = mask
        self.mask_span = mask_span
        self.mask_warmup = mask_warmup
        self.evaluate_every = evaluate_every
        self.patience = patience
        self.seed = seed
        self.random_state = random_state
        self.n_jobs = n_jobs
        self.verbose = verbose

    # Fitting.

    def fit(self, X: Any, y: Any = None, *, resume: bool = False) -> Self:
        """Learns from data.

        Parameters
        ----------
        X : table, dict of arrays, array or path
            A table of pandas, polars, pyarrow or DuckDB (anything that speaks Arrow), a dict of NumPy arrays, a matrix whose columns
            are called ``x0``, ``x1``, …, or the path of a file that the command reads. NaN, None and NA are missing.
        y : ignored
            There for scikit-learn.
        resume : bool, default False
            Whether to go on with a fit of the same data that was stopped by Ctrl-C.

        Returns
        -------
        self : Ramp
            The fitted estimator.

        Examples
        --------
        >>> import numpy as np
        >>> from ramp_ml import Ramp
        >>> rng = np.random.default_rng(0)
        >>> data = {f"q{i}": rng.normal(size=200) for i in (1, 2, 3)}
        >>> Ramp("(q1,q2,q3)calm;", iterations=10, verbose=False).fit(data).latents_
        ['calm']
        """
        return self._fit(X, resume, stacklevel=3)

    def _fit(self, X: Any, resume: bool, stacklevel: int) -> Self:
        tree = self.tree
        source = source_of(X, tree, self._observed())
        if isinstance(source.payload, dict) and any(len(c) == 1 for c in source.payload.values()):
            raise ValueError("1 sample cannot be learned from; a few hundred are a start")
        if tree is None:
            tree = self._star(source)
        before = None
        if resume:
            before = getattr(self, "_run", None)
            if before is None or not getattr(self, "_stopped", False):
                raise ValueError("there is no fit that was stopped to go on with; leave resume out")
        file = model_file(self.get_params(deep=False), tree, seed_of(self.random_state, self.seed))
        bar = progress_bar(self.verbose)
        log.info("fitting %s", self)
        try:
            run, found, stopped = _lib.fit(
                file,
                source.payload,
                resume=before,
                threads=self._threads(),
                name=type(self).__name__,
                command=f"{self!r}.fit(...)",
                progress=bar,
            )
        finally:
            if bar is not None:
                bar.close()
        self._take(run)
        self.n_iter_ = found["steps"]
        self._remember(source)
        log.info("%d of %d iterations", found["steps"], found["iterations"])
        for warning in found["warnings"]:
            warnings.warn(warning, RampWarning, stacklevel=stacklevel)
        self._stopped = stopped is not None
        if stopped is not None:
            log.warning(
                "stopped after iteration %d of %d; the best weights so far are kept, and fit(X, resume=True) goes on",
                found["steps"],
                found["iterations"],
            )
            raise stopped
        return self

    def fit_transform(self, X: Any, y: Any = None) -> Any:
        """Learns from data and gives its posterior means.

        >>> import numpy as np
        >>> from ramp_ml import Ramp
        >>> rng = np.random.default_rng(0)
        >>> data = {f"q{i}": rng.normal(size=200) for i in (1, 2, 3)}
        >>> Ramp("(q1,q2,q3)calm;", iterations=10, verbose=False).fit_transform(data).shape
        (200, 1)
        """
        self._fit(X, False, stacklevel=3)
        return self.transform(X)

    # What a fitted model says of data.

    def transform(self, X: Any) -> Any:
        """Posterior means, a row for every row and a column for every coordinate; of arrays of sequences ``[sample, time, coordinate]``.

        >>> import pandas as pd
        >>> import numpy as np
        >>> from ramp_ml import Ramp
        >>> rng = np.random.default_rng(0)
        >>> frame = pd.DataFrame(rng.normal(size=(200, 3)), columns=["q1", "q2", "q3"])
        >>> model = Ramp("(q1,q2,q3)calm;", iterations=10, verbose=False).fit(frame)
        >>> list(model.set_output(transform="pandas").transform(frame).columns)
        ['calm']
        """
        run, source = self._ready(X)
        means, unseen = run.transform(source.payload)
        _warn_unseen(unseen)
        return self._output(means, source)

    def posterior(self, X: Any) -> Posterior:
        """Posteriors of all latents: means, standard deviations, natural parameters and draws.

        >>> import numpy as np
        >>> from ramp_ml import Ramp
        >>> rng = np.random.default_rng(0)
        >>> data = {f"q{i}": rng.normal(size=200) for i in (1, 2, 3)}
        >>> model = Ramp("(q1,q2,q3)calm;", iterations=10, verbose=False).fit(data)
        >>> model.posterior(data)["calm"].sd.shape
        (200,)
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
        >>> import numpy as np
        >>> from ramp_ml import Ramp
        >>> rng = np.random.default_rng(0)
        >>> data = {f"q{i}": rng.normal(size=200) for i in (1, 2, 3)}
        >>> model = Ramp("(q1,q2,q3)calm;", iterations=10, verbose=False).fit(data)
        >>> list(model.infer(data, keep=["q1"]))
        ['q1', 'calm.mean', 'calm.sd']
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
        >>> import numpy as np, pyarrow as pa
        >>> from ramp_ml import Ramp
        >>> rng = np.random.default_rng(0)
        >>> table = pa.table({f"q{i}": rng.normal(size=200) for i in (1, 2, 3)})
        >>> model = Ramp("(q1,q2,q3)calm;", iterations=10, verbose=False).fit(table)
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
        """How much better each row's parts are explained together than apart, in nats: low values flag rows whose parts do not belong together.

        Parameters
        ----------
        X : see ``fit``
        by_latent : bool, default False
            Whether every latent has a column, in place of their mean.

        Examples
        --------
        >>> import numpy as np
        >>> from ramp_ml import Ramp
        >>> rng = np.random.default_rng(0)
        >>> data = {f"q{i}": rng.normal(size=200) for i in (1, 2, 3)}
        >>> model = Ramp("(q1,q2,q3)calm;", iterations=10, verbose=False).fit(data)
        >>> model.score_samples(data).shape, model.score_samples(data, by_latent=True).shape
        ((200,), (200, 1))
        """
        run, source = self._ready(X)
        scores, unseen = run.score(source.payload)
        _warn_unseen(unseen)
        if by_latent:
            return scores
        with warnings.catch_warnings():
            # A row without any observation has no score.
            warnings.simplefilter("ignore", RuntimeWarning)
            return np.nanmean(scores, axis=1) if scores.size else scores[:, 0]

    def score(self, X: Any, y: Any = None) -> float:
        """The mean of ``score_samples``, in nats a row: what ``GridSearchCV`` compares.

        >>> import numpy as np
        >>> from ramp_ml import Ramp
        >>> rng = np.random.default_rng(0)
        >>> data = {f"q{i}": rng.normal(size=200) for i in (1, 2, 3)}
        >>> model = Ramp("(q1,q2,q3)calm;", iterations=10, verbose=False).fit(data)
        >>> isinstance(model.score(data), float)
        True
        """
        return float(np.nanmean(self.score_samples(X)))

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
        >>> from ramp_ml import Ramp
        >>> rng = np.random.default_rng(0)
        >>> calm = rng.normal(size=300)
        >>> data = {f"q{i}": calm + rng.normal(size=300) for i in (1, 2, 3)}
        >>> data["q1"][:50] = np.nan
        >>> model = Ramp("(q1,q2,q3)calm;", iterations=30, verbose=False).fit(data)
        >>> bool(np.isnan(model.impute(data)["q1"]).any())
        False
        >>> len(model.impute(data, draws=5)["draw"])
        1500
        """
        run, source = self._ready(X)
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
        >>> import numpy as np
        >>> from ramp_ml import Chain, Ramp
        >>> rng = np.random.default_rng(0)
        >>> walks = {"walk": rng.normal(size=(40, 12)).cumsum(axis=1).astype(np.float32)}
        >>> model = Ramp(Chain(observe=["walk"]), iterations=20, verbose=False).fit(walks)
        >>> len(model.forecast(walks, steps=3))
        120
        """
        run, source = self._ready(X)
        table, unseen = run.forecast(source.payload, steps, interval)
        _warn_unseen(unseen)
        return _table.like(table, source)

    def filter(self) -> Filter:
        """A filter that has seen nothing: what is known about the present of a sequence, one step after the other.

        >>> import numpy as np
        >>> from ramp_ml import Chain, Ramp
        >>> rng = np.random.default_rng(0)
        >>> walks = {"walk": rng.normal(size=(40, 12)).cumsum(axis=1).astype(np.float32)}
        >>> model = Ramp(Chain(observe=["walk"]), iterations=20, verbose=False).fit(walks)
        >>> online = model.filter()
        >>> belief = online.step({"walk": 0.5})
        >>> belief.mean.shape
        (1,)
        """
        run = self._fitted()
        return Filter(run.filter(), run.columns)

    # Saving and loading.

    def save(self, path: str | os.PathLike[str], *, overwrite: bool = False) -> None:
        """Writes the run folder that the command reads: ``ramp infer PATH --data …``.

        >>> import numpy as np, tempfile
        >>> from ramp_ml import Ramp
        >>> rng = np.random.default_rng(0)
        >>> data = {f"q{i}": rng.normal(size=200) for i in (1, 2, 3)}
        >>> model = Ramp("(q1,q2,q3)calm;", iterations=10, verbose=False).fit(data)
        >>> with tempfile.TemporaryDirectory() as folder:
        ...     model.save(folder + "/run")
        ...     again = Ramp.load(folder + "/run")
        >>> bool((again.transform(data) == model.transform(data)).all())
        True
        """
        self._fitted().save(os.fspath(path), overwrite)

    @classmethod
    def load(cls, path: str | os.PathLike[str]) -> Self:
        """A fitted model from a run folder, of the command's or of ``save``. Files are data, never code.

        >>> from ramp_ml import Ramp
        >>> try:
        ...     Ramp.load("no/such/run")
        ... except FileNotFoundError as error:
        ...     print(str(error).split(";")[0])
        `no/such/run` is no finished run
        """
        # The run keeps reading its folder, which may go: the files are held apart.
        run = _lib.Run.from_files(list(_lib.Run.open(os.fspath(path)).files().items()))
        model = cls(**parameters_of(json.loads(run.settings())))
        model._take(run)
        model._stopped = False
        training = model._report()["training"]
        model.n_iter_ = training[-1]["iteration"] if training else 0
        names = run.columns
        model.n_features_in_ = len(names)
        model.feature_names_in_ = np.asarray(names, dtype=object)
        model._strict = False
        return model

    def __getstate__(self) -> dict[str, Any]:
        state = self.__dict__.copy()
        run = state.pop("_run", None)
        state.pop("_page", None)
        if run is not None:
            state["_files"] = run.files()
            # The state of a stopped training stays where it was.
            state["_stopped"] = False
        return state

    def __setstate__(self, state: dict[str, Any]) -> None:
        state = dict(state)
        files = state.pop("_files", None)
        self.__dict__.update(state)
        if files is not None:
            self._run = _lib.Run.from_files(list(files.items()))

    # Looking at it.

    def report(self) -> Any:
        """The page of the fit: shown in a notebook, opened in a browser elsewhere.

        >>> import numpy as np
        >>> from ramp_ml import Ramp
        >>> rng = np.random.default_rng(0)
        >>> data = {f"q{i}": rng.normal(size=200) for i in (1, 2, 3)}
        >>> model = Ramp("(q1,q2,q3)calm;", iterations=10, verbose=False).fit(data)
        >>> page = model.report().html
        >>> "<title>Ramp" in page
        True
        """
        from ._report import Page

        page = Page(self._fitted().report())
        page.show()
        return page

    def _repr_html_(self) -> str:
        return self._drawing().html(repr(self))

    def plot_tree(self, ax: Any = None) -> Any:
        """Draws the tree with what each latent explains; matplotlib's axes.

        >>> import matplotlib; matplotlib.use("agg")
        >>> from ramp_ml import Ramp
        >>> axes = Ramp("((q1,q2)calm,(q3,q4)kind)mood;").plot_tree()
        """
        from . import _plots

        return _plots.tree(self._drawing(), ax)

    def plot_training(self, ax: Any = None) -> Any:
        """Draws the free energy over the iterations, on training and on validation samples.

        >>> import matplotlib; matplotlib.use("agg")
        >>> import numpy as np
        >>> from ramp_ml import Ramp
        >>> rng = np.random.default_rng(0)
        >>> data = {f"q{i}": rng.normal(size=200) for i in (1, 2, 3)}
        >>> axes = Ramp("(q1,q2,q3)calm;", iterations=20, verbose=False).fit(data).plot_training()
        >>> axes.get_xlabel()
        'iteration'
        """
        from . import _plots

        return _plots.training(self._report(), ax)

    def plot_items(self, ax: Any = None) -> Any:
        """Draws the mean of the latent by the answers to each of its items.

        >>> import matplotlib; matplotlib.use("agg")
        >>> import numpy as np
        >>> from ramp_ml import Ramp
        >>> rng = np.random.default_rng(0)
        >>> calm = rng.normal(size=300)
        >>> data = {f"q{i}": np.clip(np.round(calm + rng.normal(size=300)), -2, 2) for i in (1, 2, 3)}
        >>> axes = Ramp("(q1,q2,q3)calm;", iterations=20, verbose=False).fit(data).plot_items()
        """
        from . import _plots

        return _plots.items(self._report(), ax)

    def plot_latents(
        self,
        x: str | None = None,
        y: str | None = None,
        *,
        color: str | None = None,
        ax: Any = None,
    ) -> Any:
        """Draws two coordinates of the latents for some of the rows that were learned from, coloured by a column of the data; one
        coordinate is drawn as a histogram.

        >>> import matplotlib; matplotlib.use("agg")
        >>> import numpy as np
        >>> from ramp_ml import Ramp
        >>> rng = np.random.default_rng(0)
        >>> data = {f"q{i}": rng.normal(size=200) for i in range(1, 5)}
        >>> model = Ramp("((q1,q2)calm,(q3,q4)kind)mood;", iterations=20, verbose=False).fit(data)
        >>> axes = model.plot_latents("calm", "kind", color="q1")
        >>> axes.get_xlabel(), axes.get_ylabel()
        ('calm', 'kind')
        """
        from . import _plots

        return _plots.latents(self._report(), x, y, color, ax)

    def plot_forecast(self, name: str | None = None, ax: Any = None) -> Any:
        """Draws a sequence over its last steps and what is foretold of it, with an interval: a column, or a coordinate of the latent.

        >>> import matplotlib; matplotlib.use("agg")
        >>> import pandas as pd, numpy as np
        >>> from ramp_ml import Chain, Ramp
        >>> rng = np.random.default_rng(0)
        >>> walk = pd.DataFrame({"who": np.repeat(np.arange(40), 12), "place": rng.normal(size=480)})
        >>> model = Ramp(Chain(observe=["place"], sequence="who"), iterations=20, verbose=False).fit(walk)
        >>> axes = model.plot_forecast("place")
        >>> axes.get_ylabel()
        'place'
        """
        from . import _plots

        return _plots.forecast(self._report(), name, ax)

    # Within.

    def _threads(self) -> int | None:
        if self.n_jobs is None or self.n_jobs == -1:
            return None
        if self.n_jobs < 0:
            return max(1, (os.cpu_count() or 1) + 1 + int(self.n_jobs))
        if self.n_jobs == 0:
            raise ValueError("n_jobs == 0 in Parallel has no meaning; give a number of threads, or -1 for all")
        return int(self.n_jobs)

    def _observed(self) -> list[str] | None:
        if self.tree is None:
            return None
        variables, _, _ = _lib.check(model_file(self.get_params(deep=False), self.tree, None))
        return [name for name, latent in variables if not latent]

    def _star(self, source: Source) -> list[list[str]]:
        """One latent over all columns."""
        if source.names is None:
            raise ValueError("a file needs a tree: Ramp('((q1,q2)a,(q3,q4)b)c;')")
        names = source.names
        if len(names) < 2:
            raise ValueError(
                f"Found array with {len(names)} feature(s) while a minimum of 2 is required: a latent explains what hangs together"
            )
        latent = "z"
        while latent in names:
            latent += "_"
        return [[latent, name] for name in names]

    def _take(self, run: _lib.Run) -> None:
        self._run = run
        self.__dict__.pop("_page", None)
        self.latents_ = [name for name, _, _ in run.latents()]
        self.free_energy_ = {
            name: _free_energy(latent)
            for name, latent in zip(self.latents_, self._report()["latents"])
        }

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

    def _fitted(self) -> _lib.Run:
        run: _lib.Run | None = getattr(self, "_run", None)
        if run is None:
            raise _sklearn.not_fitted(self)
        return run

    def _ready(self, X: Any) -> tuple[_lib.Run, Source]:
        run = self._fitted()
        source = source_of(X, self.tree, run.columns)
        if getattr(self, "_strict", False):
            _sklearn.check_features(self, source)
        return run, source

    def _report(self) -> dict[str, Any]:
        page: dict[str, Any] | None = self.__dict__.get("_page")
        if page is None:
            page = json.loads(self._fitted().report_data())
            self._page = page
        return page

    def _drawing(self) -> Drawing:
        if getattr(self, "_run", None) is not None:
            return Drawing.of_report(self._report())
        if self.tree is None:
            return Drawing([("z", True)], [], 0)
        variables, factors, root = _lib.check(
            model_file(self.get_params(deep=False), self.tree, None)
        )
        return Drawing(variables, factors, root)

    def _output(self, values: Array, source: Source) -> Any:
        return _sklearn.as_wished(self, values, source)


def _free_energy(latent: dict[str, Any]) -> float:
    found = latent["free_energy"]
    value = found["train"] if found["held_out"] is None else found["held_out"]
    return float("nan") if value is None else float(value)


def _warn_unseen(cells: int) -> None:
    if cells:
        warnings.warn(
            f"{cells} cells hold levels that training never saw; they count as missing",
            RampWarning,
            stacklevel=3,
        )
