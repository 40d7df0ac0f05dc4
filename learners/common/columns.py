"""Columns specified by index, by name, or as a mask."""

from numbers import Integral
from typing import TYPE_CHECKING, Any

import numpy as np

if TYPE_CHECKING:  # a saved model predicts without scikit-learn
    from ..sklearn_bases import BaseEstimator


def included_and_excluded(
    include: Any, exclude: Any, n_features: int, names: np.ndarray | None
) -> tuple[np.ndarray, np.ndarray]:
    """Return the masks of the included and the excluded columns.

    Parameters
    ----------
    include, exclude : int, str, array of these, or mask of shape (n_features,), or None
        Included and excluded columns, given by index, by name or as a mask.
    n_features : int
        Number of columns.
    names : ndarray of shape (n_features,) or None
        Names of the columns.

    Returns
    -------
    included, excluded : ndarray of shape (n_features,), bool
        Masks of the columns.

    Raises
    ------
    ValueError
        If a column is unknown, a column is both included and excluded, or all columns are excluded.
    """
    included = column_mask("include", include, n_features, names)
    excluded = column_mask("exclude", exclude, n_features, names)
    both = np.flatnonzero(included & excluded)
    if len(both):
        name = str(both[0]) if names is None else repr(names[both[0]])
        raise ValueError(
            f"column {name} is in both include and exclude; name it in only one of them"
        )
    if excluded.all():
        raise ValueError(
            f"exclude={exclude!r} leaves no columns to select from; exclude fewer columns"
        )
    return included, excluded


def column_mask(
    parameter: str, which: Any, n_features: int, names: np.ndarray | None
) -> np.ndarray:
    """Return a Boolean mask of columns that are given by index, by name or by a mask."""
    mask = np.zeros(n_features, bool)
    if which is None:
        return mask
    chosen = np.asarray([which] if isinstance(which, (str, Integral)) else which)
    if chosen.dtype == bool:
        if chosen.shape != (n_features,):
            raise ValueError(
                f"{parameter} has shape {chosen.shape}; "
                f"expected one entry for each of the {n_features} features"
            )
        return chosen.copy()
    for column in chosen.ravel().tolist():
        mask[column_position(parameter, column, n_features, names)] = True
    return mask


def column_position(parameter: str, column: Any, n_features: int, names: np.ndarray | None) -> int:
    """Return the index of a column that is given by index or by name."""
    if isinstance(column, str):
        matches: np.ndarray = np.flatnonzero([] if names is None else names == column)
        if not len(matches):
            known = "X has no column names" if names is None else "X has no column with this name"
            raise ValueError(f"{parameter}: {column!r} is not a column ({known})")
        return int(matches[0])
    if not isinstance(column, Integral) or not 0 <= int(column) < n_features:
        raise ValueError(
            f"{parameter}: {column!r} is not a column; "
            f"expected a name or a number from 0 to {n_features - 1}"
        )
    return int(column)


def feature_names(estimator: "BaseEstimator") -> np.ndarray:
    """Return the names of the training columns; the default names are x0, x1, ..."""
    names = getattr(estimator, "feature_names_in_", None)
    return (
        np.array([f"x{i}" for i in range(estimator.n_features_in_)], dtype=object)
        if names is None
        else names
    )
