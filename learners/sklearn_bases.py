"""scikit-learn's base classes, with type annotations.

scikit-learn has no annotations, and a type checker cannot infer the constructor of a dataclass with
a base of unknown type. It reads the declarations below; at run time the bases are scikit-learn's.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Self, TypeVar

if TYPE_CHECKING:
    from collections.abc import Callable

    import numpy as np
    from sklearn.utils import Tags

    _Function = TypeVar("_Function", bound=Callable[..., Any])
    _Estimator = TypeVar("_Estimator")

    class _Base:
        n_features_in_: int
        feature_names_in_: np.ndarray

        def __sklearn_tags__(self) -> Tags: ...

    class BaseEstimator(_Base):
        def get_params(self, deep: bool = True) -> dict[str, Any]: ...
        def set_params(self, **params: Any) -> Self: ...

    class ClassifierMixin(_Base):
        def score(self, X: Any, y: Any, sample_weight: Any = None) -> float: ...

    class RegressorMixin(_Base):
        def score(self, X: Any, y: Any, sample_weight: Any = None) -> float: ...

    class TransformerMixin(_Base):
        def fit_transform(self, X: Any, y: Any = None, **fit_params: Any) -> Any: ...
        def set_output(self, *, transform: str | None = None) -> Self: ...

    class SelectorMixin(TransformerMixin):
        def get_support(self, indices: bool = False) -> np.ndarray: ...
        def transform(self, X: Any) -> Any: ...
        def inverse_transform(self, X: Any) -> Any: ...
        def get_feature_names_out(self, input_features: Any = None) -> np.ndarray: ...

    class ClassNamePrefixFeaturesOutMixin:
        def get_feature_names_out(self, input_features: Any = None) -> np.ndarray: ...

    class MetaEstimatorMixin: ...

    class CallbackSupportMixin:
        def set_callbacks(self, *callbacks: Any) -> Self: ...

    def clone(estimator: _Estimator, *, safe: bool = True) -> _Estimator: ...

    def with_callbacks(method: _Function) -> _Function: ...

else:
    from sklearn.base import (  # noqa: F401
        BaseEstimator,
        ClassifierMixin,
        ClassNamePrefixFeaturesOutMixin,
        MetaEstimatorMixin,
        RegressorMixin,
        TransformerMixin,
        clone,
    )
    from sklearn.feature_selection import SelectorMixin  # noqa: F401

    try:
        from sklearn.callback import CallbackSupportMixin, with_callbacks
    except ImportError:  # scikit-learn before 1.9

        class CallbackSupportMixin:
            """Fallback for scikit-learn before version 1.9, which has no callbacks."""

        def with_callbacks(method):
            """Return the method unchanged, since there are no callbacks to manage."""
            return method
