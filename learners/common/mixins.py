"""Parts of scikit-learn's interface that several estimators share."""

import numpy as np
from sklearn.utils import Tags
from sklearn.utils.validation import check_is_fitted

from ..sklearn_bases import SelectorMixin


class SupportMixin(SelectorMixin):
    """A selector whose fit sets ``support_``."""

    support_: np.ndarray

    def _get_support_mask(self) -> np.ndarray:
        check_is_fitted(self)
        return self.support_


class SparseInputMixin:
    """An estimator that accepts sparse matrices."""

    def __sklearn_tags__(self) -> Tags:
        tags = super().__sklearn_tags__()  # type: ignore[misc]
        tags.input_tags.sparse = True
        return tags
