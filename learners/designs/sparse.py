"""Linear responses on a sparse matrix, never densified."""

from __future__ import annotations

import numpy as np
import scipy.sparse as sp

from .base import Design, check_underflow, inverse_scale


def canonical(X):
    """A sparse matrix whose entries stand once each, in order: itself, or a copy where they do not (squares would not add up)."""
    if X.has_canonical_format:
        return X
    X = X.copy()
    X.sum_duplicates()
    return X


class SparseDesign(Design):
    """Linear responses on a scipy sparse matrix, held by columns; centring is applied to the results, so nothing is densified.

    Parameters
    ----------
    X : sparse matrix of shape (n_samples, n_features)
        Of any format.
    sample_weight : ndarray of shape (n_samples,)
        Sums to one.
    """

    def __init__(self, X, sample_weight: np.ndarray):
        self.X = canonical(sp.csc_array(X))
        self.n_samples, self.n_features = self.X.shape
        mean = np.asarray(self.X.T @ sample_weight)
        square = self.X.copy()
        square.data = square.data.astype(np.float64) ** 2
        second = np.asarray(square.T @ sample_weight)
        check_underflow(mean, second)
        self.mean = mean[:, None]
        self.inv = inverse_scale(np.maximum(second - mean**2, 0.0), second)

    def scores(self, coef):
        raw = coef[:, 0] * self.inv[:, None]
        return self.X @ raw - self.mean[:, 0] @ raw

    def gradient(self, residual):
        return self._standardised((self.X.T @ residual)[:, None], residual)

    def keep(self, kept):
        new = self._subset(kept)
        new.X = self.X[:, kept]
        new.mean, new.inv = self.mean[kept], self.inv[kept]
        return new

    def matrix(self):
        return (self.X.toarray() - self.mean[:, 0]) * self.inv
