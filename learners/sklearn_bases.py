"""Base classes of scikit-learn with type annotations.

scikit-learn has no annotations, and a type checker cannot infer the constructor of a dataclass that
has an untyped base class. The checker reads the declarations in the stub file beside this module
instead.
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
