"""scikit-learn's manners without scikit-learn: it is asked for only where it is there already, so that importing stays quick."""

from __future__ import annotations

import inspect
import sys
import warnings
from typing import TYPE_CHECKING, Any

import numpy as np

from . import _lib
from ._data import Source

if TYPE_CHECKING:
    from typing_extensions import Self


class Manners:
    """Parameters, output containers, tags: what pipelines and searches expect of an estimator."""

    n_features_in_: int

    def _fitted(self) -> _lib.Run:
        raise NotImplementedError

    @classmethod
    def _parameters(cls) -> list[inspect.Parameter]:
        signature = inspect.signature(cls.__init__)
        return [p for p in signature.parameters.values() if p.name != "self"]

    def get_params(self, deep: bool = True) -> dict[str, Any]:
        """The parameters and their values.

        >>> from ramp_ml import Ramp
        >>> Ramp("(a,b,c)z;", iterations=50).get_params()["iterations"]
        50
        """
        return {p.name: getattr(self, p.name) for p in self._parameters()}

    def set_params(self, **params: Any) -> Self:
        """Sets parameters by their names.

        >>> from ramp_ml import Ramp
        >>> Ramp("(a,b,c)z;").set_params(iterations=50).iterations
        50
        """
        known = [p.name for p in self._parameters()]
        for name, value in params.items():
            if name not in known:
                raise ValueError(
                    f"Invalid parameter {name!r} for estimator {self!r}. Valid parameters are: {known!r}."
                )
            setattr(self, name, value)
        return self

    def set_output(self, *, transform: str | None = None) -> Self:
        """What ``transform`` gives: ``"default"`` for NumPy, ``"pandas"`` or ``"polars"``.

        >>> from ramp_ml import Ramp
        >>> model = Ramp("(a,b,c)z;").set_output(transform="pandas")
        """
        if transform is not None:
            if transform not in ("default", "pandas", "polars"):
                raise ValueError(
                    f"output config must be in ['default', 'pandas', 'polars'], got {transform}"
                )
            self._sklearn_output_config = {"transform": transform}
        return self

    def get_feature_names_out(self, input_features: Any = None) -> Any:
        """The names of the columns that ``transform`` gives: latents, with a place where one has several coordinates.

        >>> import numpy as np
        >>> from ramp_ml import Ramp
        >>> rng = np.random.default_rng(0)
        >>> model = Ramp("(x0,x1,x2)place;", dim=2, iterations=10, verbose=False).fit(rng.normal(size=(200, 3)))
        >>> model.get_feature_names_out().tolist()
        ['place.1', 'place.2']
        """
        run = self._fitted()
        names = getattr(self, "feature_names_in_", None)
        if input_features is not None:
            if names is not None and list(input_features) != list(names):
                raise ValueError("input_features is not equal to feature_names_in_")
            if len(input_features) != self.n_features_in_:
                raise ValueError(
                    "input_features should have length equal to number of features "
                    f"({self.n_features_in_}), got {len(input_features)}"
                )
        return np.asarray([n for _, _, names in run.latents() for n in names], dtype=object)

    def __sklearn_is_fitted__(self) -> bool:
        return getattr(self, "_run", None) is not None

    def __sklearn_tags__(self) -> Any:
        from sklearn.utils import InputTags, Tags, TargetTags, TransformerTags

        return Tags(
            estimator_type="transformer",
            target_tags=TargetTags(required=False),
            transformer_tags=TransformerTags(preserves_dtype=[]),
            classifier_tags=None,
            regressor_tags=None,
            input_tags=InputTags(allow_nan=True, string=False),
        )

    def __repr__(self) -> str:
        said = []
        for parameter in self._parameters():
            value = getattr(self, parameter.name, parameter.default)
            if value is not parameter.default and not _equal(value, parameter.default):
                said.append(f"{parameter.name}={value!r}")
        return f"{type(self).__name__}({', '.join(said)})"


def _equal(a: Any, b: Any) -> bool:
    try:
        return type(a) is type(b) and bool(a == b)
    except Exception:
        return False


def not_fitted(estimator: Any) -> Exception:
    """scikit-learn's own exception where it is there, and one of the same kind elsewhere."""
    sentence = (
        f"This {type(estimator).__name__} instance is not fitted yet. Call 'fit' with appropriate arguments before using "
        "this estimator."
    )
    if "sklearn" in sys.modules:
        from sklearn.exceptions import NotFittedError

        error: Exception = NotFittedError(sentence)
        return error
    return NotFittedYetError(sentence)


class NotFittedYetError(ValueError, AttributeError):
    """As scikit-learn's ``NotFittedError``."""


def check_features(estimator: Any, source: Source) -> None:
    """The same columns in the same order as in ``fit``, in scikit-learn's words."""
    if source.names is None or source.is_arrays:
        return
    fitted = getattr(estimator, "feature_names_in_", None)
    name = type(estimator).__name__
    if fitted is not None and source.named:
        if list(fitted) != list(source.names):
            raise ValueError(_other_names(list(fitted), list(source.names)))
    elif fitted is not None:
        warnings.warn(
            f"X does not have valid feature names, but {name} was fitted with feature names",
            UserWarning,
            stacklevel=4,
        )
        if len(source.names) == len(fitted) and isinstance(source.payload, dict):
            columns = source.payload.values()
            source.payload = dict(zip(fitted, columns))
            source.names = list(fitted)
    elif source.named:
        warnings.warn(
            f"X has feature names, but {name} was fitted without feature names",
            UserWarning,
            stacklevel=4,
        )
        source.rename([f"x{i}" for i in range(len(source.names))])
    if len(source.names) != estimator.n_features_in_:
        raise ValueError(
            f"X has {len(source.names)} features, but {name} is expecting {estimator.n_features_in_} features as input"
        )


def _other_names(fitted: list[str], given: list[str]) -> str:
    sentence = "The feature names should match those that were passed during fit.\n"
    unseen = sorted(set(given) - set(fitted))
    missing = sorted(set(fitted) - set(given))

    def listed(names: list[str]) -> str:
        text = "".join(f"- {name}\n" for name in names[:5])
        return text + ("- ...\n" if len(names) > 5 else "")

    if unseen:
        sentence += "Feature names unseen at fit time:\n" + listed(unseen)
    if missing:
        sentence += "Feature names seen at fit time, yet now missing:\n" + listed(missing)
    if not unseen and not missing:
        sentence += "Feature names must be in the same order as they were in fit.\n"
    return sentence


def as_wished(estimator: Any, values: Any, source: Source) -> Any:
    """Values in the container that ``set_output`` asks for."""
    wish = getattr(estimator, "_sklearn_output_config", {}).get("transform")
    if wish is None and "sklearn" in sys.modules:
        from sklearn import get_config

        wish = get_config().get("transform_output")
    if wish in (None, "default") or values.ndim != 2:
        return values
    names = [str(name) for name in estimator.get_feature_names_out()]
    if wish == "pandas":
        import pandas

        return pandas.DataFrame(values, columns=names, index=source.index)
    if wish == "polars":
        import polars

        return polars.DataFrame(values, schema=names, orient="row")
    raise ValueError(f"output config must be in ['default', 'pandas', 'polars'], got {wish}")
