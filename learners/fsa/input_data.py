"""Checks of X for the FSA estimators: arrays and sparse matrices as scikit-learn does it, data out of core without reading them."""

from __future__ import annotations

from typing import Any

import numpy as np
import scipy.sparse as sp
from sklearn.utils.validation import validate_data

from ..designs.factory import as_out_of_core, local
from ..sources.matrix import OutOfCoreMatrix


def check_data(estimator, X, y: Any = "no_validation", *, piecewise: bool, allow_nan: bool, reset: bool = True, **options):
    """X, or X and y, checked; sets ``n_features_in_`` and ``feature_names_in_`` where ``reset``; NaN in dense matrices alone."""
    out_of_core = as_out_of_core(X)
    if out_of_core is not None:
        return _check_out_of_core(estimator, out_of_core, y, reset=reset, **options)
    checked = validate_data(
        estimator,
        X,
        y,
        reset=reset,
        accept_sparse=False if piecewise else ("csr", "csc"),
        dtype=[np.float64, np.float32],
        ensure_all_finite="allow-nan" if allow_nan and not reset and not sp.issparse(X) else False,
        **options,
    )
    matrix = checked[0] if isinstance(checked, tuple) else checked
    # A dense matrix to fit is checked by the first read that is made of it.
    if sp.issparse(matrix) or not (allow_nan or reset):
        check_finite(estimator, matrix)
    return checked


def _check_out_of_core(estimator, X: OutOfCoreMatrix, y, *, reset: bool, **options):
    """The checks that need no values: shapes, names and targets."""
    like = np.broadcast_to(np.zeros((), X.dtype), X.shape)
    if not reset:
        named = like
        if X.names is not None:
            import pandas as pd

            named = pd.DataFrame(columns=X.names)
        validate_data(estimator, named, reset=False, skip_check_array=True)
        return X
    checked = validate_data(estimator, like, local(y), dtype=X.dtype, ensure_all_finite=False, **options)
    if X.names is not None:
        estimator.feature_names_in_ = np.asarray(X.names, dtype=object)
    return (X, checked[1]) if isinstance(checked, tuple) else X


def check_finite(estimator, X) -> None:
    """Raise a ValueError that says where X holds NaN or infinity."""
    values = X.data if sp.issparse(X) else X
    with np.errstate(over="ignore", invalid="ignore"):
        if np.isfinite(values.sum()) or np.isfinite(values).all():  # the sum is cheap and nearly always enough
            return
    rows, columns = (a[0] for a in np.nonzero(~np.isfinite(X.toarray() if sp.issparse(X) else X)))
    name = getattr(estimator, "feature_names_in_", np.arange(X.shape[1]))[columns]
    raise ValueError(
        f"X contains NaN or infinity (first in row {rows}, column {name}); response='linear' needs finite numbers, "
        "response='piecewise' accepts NaN, and so does missing='median'"
    )


def medians(X) -> np.ndarray:
    """Median of each column's values that are there; 0 where there are none, and for sparse matrices, which hold no NaN."""
    found = np.zeros(X.shape[1])
    if not sp.issparse(X):
        for j in range(X.shape[1]):
            there = X[:, j][~np.isnan(X[:, j])]
            found[j] = np.median(there) if len(there) else 0.0
    return found


def filled(X, values: np.ndarray):
    """X with ``values`` of its columns in place of NaN; X itself where there is none."""
    if sp.issparse(X):
        return X
    gone = np.isnan(X)
    return np.where(gone, values.astype(X.dtype), X) if gone.any() else X
