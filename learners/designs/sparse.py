"""Linear responses on a sparse matrix, never densified."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
import scipy.sparse as sp

from .base import COMPACT_RATIO, Design, check_underflow, inverse_scale, rounding_of

_BLOCK_ENTRIES = 1 << 22  # of a product at a time: their copy in float64 takes 34 MB


def canonical(X):
    """A sparse matrix whose entries stand once each, in order: itself, or a copy where they do not
    (squares would not add up)."""
    if X.has_canonical_format:
        return X
    X = X.copy()
    X.sum_duplicates()
    return X


def _blocks(X: sp.csc_array) -> Iterator[tuple[slice, sp.csc_array]]:
    """Neighbouring columns of a matrix with few entries in all, as views: products cast float32 to
    float64, a block at a time."""
    start, n_features = 0, X.shape[1]
    while start < n_features:
        stop = max(start + 1, int(np.searchsorted(X.indptr, X.indptr[start] + _BLOCK_ENTRIES, side="right")) - 1)
        first, last = X.indptr[start], X.indptr[stop]
        parts = X.data[first:last], X.indices[first:last], X.indptr[start : stop + 1] - first
        yield slice(start, stop), sp.csc_array(parts, shape=(X.shape[0], stop - start), copy=False)
        start = stop


def _moments(X: sp.csc_array, sample_weight: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Means and variances (n_features,) of columns, in two passes over the stored values: no digits
    are lost to a large mean."""
    mean, variance = np.empty(X.shape[1]), np.empty(X.shape[1])
    present = sample_weight > 0
    for columns, part in _blocks(X):
        m = part.T @ sample_weight
        counts = (
            np.diff(part.indptr)
            if present.all()
            else np.bincount(np.repeat(np.arange(len(m)), np.diff(part.indptr)), present[part.indices], len(m))
        )
        full = counts == np.count_nonzero(present)  # nothing but rows of weight zero is not stored
        part.data = part.data - np.repeat(m, np.diff(part.indptr))
        # Rounding of the mean where all is stored; else the mean times the weight of the zeros
        rest = part.T @ sample_weight
        part.data *= part.data
        mean[columns] = m + np.where(full, rest, 0.0)
        variance[columns] = np.maximum(part.T @ sample_weight + np.where(full, -(rest**2), m * rest), 0.0)
    return mean, variance


class SparseDesign(Design):
    """Linear responses on a scipy sparse matrix, held by columns; centring is applied to the
    results, so nothing is densified.

    Dropped columns stay stored, with coefficient zero, until few remain: then these are copied
    together.

    Parameters
    ----------
    X : sparse matrix of shape (n_samples, n_features)
        Of any format; one that is held by columns is not copied.
    sample_weight : ndarray of shape (n_samples,)
        Sums to one.
    """

    per_feature = ("mean", "inv", "stored")

    def __init__(self, X, sample_weight: np.ndarray):
        self.X = canonical(sp.csc_array(X))  # all stored columns
        self.n_samples, self.n_features = self.X.shape
        self.stored = np.arange(self.n_features)  # positions of the features among them
        mean, variance = _moments(self.X, sample_weight)
        second = variance + mean**2
        check_underflow(mean, second)
        self.mean = mean[:, None]
        self.inv = inverse_scale(variance, second, rounding_of(self.X.dtype))

    def scores(self, coef):
        raw = coef[:, 0] * self.inv[:, None]
        every = np.zeros((self.X.shape[1], raw.shape[1]))
        every[self.stored] = raw
        total = np.zeros((self.n_samples, raw.shape[1]))
        for columns, part in _blocks(self.X):
            total += part @ every[columns]
        return total - self.mean[:, 0] @ raw

    def gradient(self, residual):
        product = np.empty((self.X.shape[1], residual.shape[1]))
        for columns, part in _blocks(self.X):
            product[columns] = part.T @ residual
        return self._standardised(product[self.stored][:, None], residual)

    def keep(self, kept):
        new = super().keep(kept)
        if len(kept) * COMPACT_RATIO < self.X.shape[1]:
            new.X, new.stored = self.X[:, new.stored], np.arange(len(kept))
        return new

    def damp(self, sample_weight: np.ndarray, n_rows: float) -> None:
        """Add to each column's variance what one row adds to that of a column: values that occur in
        one or two rows are then not louder than those that many have.

        Parameters
        ----------
        sample_weight : ndarray of shape (n_samples,)
            Sums to one.
        n_rows : float
            Rows, each as often as its weight.
        """
        weight = sample_weight[self.X.indices]
        one = weight @ self.X.data.astype(float) ** 2 / max(weight.sum(), 1e-300) / n_rows
        self.inv = self.inv / np.sqrt(1.0 + one * self.inv**2)

    def uncentred(self) -> sp.csr_array:
        """The columns that :meth:`matrix` has, each up to a constant, as they are stored."""
        return self.X[:, self.stored] @ sp.diags_array(self.inv)

    def matrix(self):
        return (self.X[:, self.stored].toarray() - self.mean[:, 0]) * self.inv
