"""Units of columns and rows: what makes features comparable."""

from __future__ import annotations

import numpy as np
import scipy.sparse as sp

from ..sources.matrix import OutOfCoreMatrix
from .base import Design, FirstReadDesign


def row_length(X):
    """sign(x) ln(1 + abs(x)), then rows of length one: counts of words in texts of different lengths.

    Parameters
    ----------
    X : ndarray or sparse matrix of shape (n_samples, n_features)
        Not changed.

    Returns
    -------
    ndarray or sparse matrix of shape (n_samples, n_features)
        Rows of zeros stay.

    Examples
    --------
    >>> row_length(np.array([[3.0, 0.0], [0.0, 0.0]]))
    array([[1., 0.],
           [0., 0.]])
    """
    if not sp.issparse(X):
        X = np.sign(X) * np.log1p(np.abs(X))
        length = np.sqrt(np.einsum("np,np->n", X, X))
        return X / np.where(length > 0, length, 1)[:, None]
    X = X.tocsr(copy=True)
    X.data = np.sign(X.data) * np.log1p(np.abs(X.data))
    length = np.sqrt(np.asarray((X**2 if isinstance(X, sp.sparray) else X.power(2)).sum(axis=1)).ravel())
    X.data /= np.repeat(np.where(length > 0, length, 1), np.diff(X.indptr)).astype(X.dtype)
    return X


def rescaled(design: Design, X, scaling: str) -> Design:
    """The design with columns in other units: divided by their greatest absolute value, or by nothing ("none").

    All columns have one more factor in common, which makes their mean variance one: step sizes stay right.

    Parameters
    ----------
    design : Design
        Linear responses on ``X``; changed.
    X : ndarray or sparse matrix of shape (n_samples, n_features)
    scaling : {"maximum", "none"}

    Returns
    -------
    Design

    Raises
    ------
    ValueError
        For other data.
    """
    if isinstance(X, OutOfCoreMatrix) or design.width > 1:
        raise ValueError(
            f"scaling={scaling!r} is for linear responses on arrays and sparse matrices; expected 'unit_variance' here"
        )
    moving = design.inv > 0
    deviation = np.where(moving, 1.0 / np.where(moving, design.inv, 1.0), 0.0)
    inverse = moving.astype(float)
    if scaling == "maximum":
        greatest = np.asarray(abs(X).max(axis=0).todense()).ravel() if sp.issparse(X) else np.abs(X).max(axis=0)
        inverse = np.where(moving, 1.0 / np.where(greatest > 0, greatest, 1.0), 0.0)
    variance = np.mean((deviation * inverse)[moving] ** 2) if moving.any() else 1.0
    inverse = inverse / np.sqrt(variance)
    if isinstance(design, FirstReadDesign):
        design._moments = design.mean, inverse
    else:
        design.inv = inverse
    return design
