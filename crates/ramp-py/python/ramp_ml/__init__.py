"""RAMP uncovers the latent variables behind data whose dependencies form a tree.

Say which observations hang together; RAMP learns small networks that pass messages along the tree, without labels and without a
generative model. Then every latent of every sample has a posterior.

>>> import numpy as np
>>> from ramp_ml import Ramp
>>> rng = np.random.default_rng(0)
>>> mood = rng.normal(size=400)
>>> data = {f"q{i}": mood + rng.normal(size=400) for i in range(1, 5)}
>>> model = Ramp("(q1,q2,q3,q4)mood;", iterations=100, verbose=False).fit(data)
>>> found = model.posterior(data)["mood"].mean
>>> bool(abs(np.corrcoef(found, mood)[0, 1]) > 0.8)
True
"""

from . import datasets
from ._chain import Chain
from ._errors import MissingColumnError, RampWarning
from ._estimator import Ramp
from ._filter import Belief, Filter
from ._lib import __version__
from ._posterior import LatentPosterior, Posterior
from ._table import Table
from ._which_tree import Change, ComparedModel, Comparison, Diagnosis, Grown, compare, grow

__all__ = [
    "Belief",
    "Chain",
    "Change",
    "ComparedModel",
    "Comparison",
    "Diagnosis",
    "Filter",
    "Grown",
    "LatentPosterior",
    "MissingColumnError",
    "Posterior",
    "Ramp",
    "RampWarning",
    "Table",
    "__version__",
    "compare",
    "datasets",
    "grow",
]
