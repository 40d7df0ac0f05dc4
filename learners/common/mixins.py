"""Parts of the scikit-learn interface that several estimators share."""

import functools
from collections.abc import Callable
from types import MethodType
from typing import Any

import numpy as np
from sklearn.utils import Tags
from sklearn.utils.validation import check_is_fitted

from ..sklearn_bases import SelectorMixin


class SupportMixin(SelectorMixin):
    """Mixin for selectors whose ``fit`` method sets ``support_``."""

    support_: np.ndarray

    def _get_support_mask(self) -> np.ndarray:
        check_is_fitted(self)
        return self.support_


class SparseInputMixin:
    """Mixin for estimators that accept sparse matrices."""

    def __sklearn_tags__(self) -> Tags:
        tags = super().__sklearn_tags__()  # type: ignore[misc]
        tags.input_tags.sparse = True
        return tags


class AvailableWhere:
    """Method that is available only if a check passes; otherwise, access raises the check's error.

    Unlike :func:`sklearn.utils.metaestimators.available_if`, it raises an error that states the
    reason.
    """

    def __init__(self, check: Callable[[Any], object], method: Callable[..., Any]) -> None:
        functools.update_wrapper(self, method)  # type: ignore[arg-type]
        self.check, self.method = check, method

    def __get__(self, instance: Any, owner: type | None = None) -> Any:
        if instance is None:
            return self.method
        self.check(instance)
        return MethodType(self.method, instance)


def available_where(check: Callable[[Any], object]) -> Callable[[Callable[..., Any]], Any]:
    """Return a decorator that makes a method an :class:`AvailableWhere`."""
    return functools.partial(AvailableWhere, check)
