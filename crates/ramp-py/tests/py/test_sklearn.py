"""scikit-learn's own checks, and its company: pipelines, searches, clones."""

from __future__ import annotations

import warnings

import numpy as np
import pytest
from conftest import TREE
from sklearn.base import clone
from sklearn.model_selection import GridSearchCV
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.utils.estimator_checks import parametrize_with_checks
from sklearn.utils.validation import check_is_fitted

from ramp_ml import Ramp

# Each expected failure with its reason.
EXPECTED: dict[str, str] = {}


@pytest.mark.filterwarnings("ignore")
@parametrize_with_checks(
    [Ramp(iterations=5, verbose=False)], expected_failed_checks=lambda estimator: EXPECTED
)
def test_checks_of_scikit_learn(estimator, check):
    check(estimator)


def test_clones_and_parameters(fitted):
    copy = clone(fitted)
    assert copy.get_params() == fitted.get_params()
    with pytest.raises(ValueError, match="not fitted"):
        check_is_fitted(copy)
    check_is_fitted(fitted)
    assert copy.set_params(iterations=3).iterations == 3
    with pytest.raises(ValueError, match="Invalid parameter 'iteration'"):
        copy.set_params(iteration=3)


def test_pipelines_and_searches(answers):
    import pandas as pd

    frame = pd.DataFrame(answers)
    pipeline = make_pipeline(StandardScaler(), Ramp(TREE, iterations=20, verbose=False))
    pipeline.set_output(transform="pandas")
    found = pipeline.fit_transform(frame)
    assert list(found.columns) == ["distress", "anxiety", "anger"]
    assert list(pipeline[-1].feature_names_in_) == ["q1", "q2", "q3", "q4", "q5"]
    search = GridSearchCV(
        # From weights that know nothing yet: a linear factor model would be as good at either rate.
        Ramp(TREE, iterations=15, init="shared", verbose=False), {"learning_rate": [1e-5, 0.03]}, cv=2
    )
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        search.fit(frame)
    assert search.best_params_ == {"learning_rate": 0.03}
    assert np.isfinite(search.best_score_)


def test_names_in_and_out(answers, fitted):
    assert fitted.n_features_in_ == 5
    assert fitted.feature_names_in_.tolist() == ["q1", "q2", "q3", "q4", "q5"]
    # Columns that the tree does not name are nobody's business.
    more = answers | {"age": np.arange(600.0)}
    assert np.array_equal(fitted.transform(more), fitted.transform(answers))
    import polars as pl

    out = fitted.set_output(transform="polars").transform(answers)
    fitted.set_output(transform="default")
    assert isinstance(out, pl.DataFrame) and out.columns == ["distress", "anxiety", "anger"]
    with pytest.raises(ValueError, match="output config"):
        fitted.set_output(transform="excel")
