"""The estimator: scikit-learn's manners around a run of the library."""

from __future__ import annotations

import json
import logging
import os
import warnings
from typing import TYPE_CHECKING, Any

import numpy as np

from . import _lib
from ._data import Source, source_of
from ._errors import RampWarning
from ._inference import Inference
from ._pictures import Pictures
from ._progress import progress_bar
from ._settings import model_file, parameters_of, seed_of

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from typing_extensions import Self

    from ._chain import Chain

__all__ = ["Ramp"]

log = logging.getLogger("ramp_ml")


class Ramp(Inference, Pictures):
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
    folds : int, optional
        Into how many parts a small table is divided, each of which judges a fit to the others; 0 for none. By default 5 for at most
        1,000 rows.
    split_seed : int, optional
        What decides which samples are held out and which choose the weights; ``random_state`` by default. Give it to compare
        several starts on the same samples.
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
        How networks begin; by default ``"factors"`` on trees of Gaussian latents without images, ``"dynamics"`` on chains, else ``"shared"``.
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
    noise : float, optional
        The standard deviation of noise that every step adds to images, in units of their pixels' own.
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
        How much each latent explains of what hangs on it, in nats a sample: on held-out samples where there are any. Free energies overlap;
        ``score`` says how much the whole tree explains.
    n_iter_ : int
        Iterations that training took.
    n_features_in_ : int
        Columns seen in ``fit``; those of the model where a tree names them.
    feature_names_in_ : ndarray of str
        Their names, where the data has any.

    Examples
    --------
    >>> from ramp_ml import Ramp, datasets
    >>> data = datasets.make_questionnaire(500, missing=0.1)
    >>> model = Ramp("((q1,q2,q3)anxiety,(q4,q5,q6)anger)distress;", random_state=0, verbose=False)
    >>> model.fit_transform(data).shape
    (500, 3)
    >>> model.get_feature_names_out().tolist()
    ['distress', 'anxiety', 'anger']
    """

    def __init__(
        self,
        tree: str | Sequence[Sequence[str]] | Chain | None = None,
        *,
        holdout: float | None = None,
        validation: float | None = None,
        folds: int | None = None,
        split_seed: int | None = None,
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
        noise: float | None = None,
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
        self.folds = folds
        self.split_seed = split_seed
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
        self.noise = noise
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
        >>> from ramp_ml import Ramp, datasets
        >>> Ramp("(q1,q2,q3)anxiety;", iterations=10, verbose=False).fit(datasets.make_questionnaire()).latents_
        ['anxiety']
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
        self._hold(X)
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

        >>> from ramp_ml import Ramp, datasets
        >>> Ramp("(q1,q2,q3)anxiety;", iterations=10, verbose=False).fit_transform(datasets.make_questionnaire()).shape
        (300, 1)
        """
        self._fit(X, False, stacklevel=3)
        return self.transform(X)

    # Saving and loading.

    def save(self, path: str | os.PathLike[str], *, overwrite: bool = False) -> None:
        """Writes the run folder that the command reads: ``ramp infer PATH --data …``.

        >>> import tempfile
        >>> from ramp_ml import Ramp, datasets
        >>> data = datasets.make_questionnaire()
        >>> model = Ramp("(q1,q2,q3)anxiety;", iterations=10, verbose=False).fit(data)
        >>> with tempfile.TemporaryDirectory() as folder:
        ...     model.save(folder + "/run")
        ...     again = Ramp.load(folder + "/run")
        >>> bool((again.transform(data) == model.transform(data)).all())
        True
        """
        self._measured().save(os.fspath(path), overwrite)

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
        state.pop("_page", None)
        # A pickle has the run, not the data.
        state.pop("_held", None)
        if state.pop("_run", None) is not None:
            state["_files"] = self._measured().files()
            # The state of a stopped training stays where it was.
            state["_stopped"] = False
        return state

    def __setstate__(self, state: dict[str, Any]) -> None:
        state = dict(state)
        files = state.pop("_files", None)
        self.__dict__.update(state)
        if files is not None:
            self._run = _lib.Run.from_files(list(files.items()))

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
