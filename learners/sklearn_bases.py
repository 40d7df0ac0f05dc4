"""scikit-learn's base classes, with type annotations.

scikit-learn has no annotations, and a type checker cannot infer the constructor of a dataclass with
a base of unknown type. It reads the declarations in the stub file beside this module.
"""

from sklearn.base import (  # noqa: F401
    BaseEstimator,
    ClassifierMixin,
    ClassNamePrefixFeaturesOutMixin,
    MetaEstimatorMixin,
    MultiOutputMixin,
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
