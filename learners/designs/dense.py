"""Linear responses on a dense matrix, read in place."""

from __future__ import annotations

from typing import Self

import numpy as np

from . import kernels
from .base import GATHER, Design, NotFiniteError, _inverse_scale

BLOCK_BYTES = 1 << 20  # rows read at once: scores and gradient find them in the second-level cache


class DenseDesign(Design):
    """A dense matrix, row- or column-major, float32 or float64, read in place.

    The moments are found in the first read that is made, together with the first gradient. Survivors are copied together when less
    than a quarter of the stored columns are left, in the next read; until then the others count zero.
    """

    def __init__(self, X: np.ndarray, sample_weight: np.ndarray):
        if not (X.flags.c_contiguous or X.flags.f_contiguous):
            X = np.ascontiguousarray(X)
        self.X = X
        self.n_samples, self.n_features = X.shape
        self._columns: np.ndarray | None = None
        self._source: np.ndarray | None = None  # where the columns still have to be gathered from, and which
        self._wanted = np.empty(0, np.uint32)
        self._weight = sample_weight
        self._moments: tuple[np.ndarray, np.ndarray] | None = None

    @property
    def mean(self) -> np.ndarray:  # type: ignore[override]
        """Means (n_features, 1)."""
        return self._found_moments()[0]

    @property
    def inv(self) -> np.ndarray:  # type: ignore[override]
        """Inverse standard deviations (n_features,), 0 for constant columns."""
        return self._found_moments()[1]

    def _found_moments(self) -> tuple[np.ndarray, np.ndarray]:
        if self._moments is None:
            self._first_read(np.zeros(self.n_samples))
        assert self._moments is not None
        return self._moments

    @property
    def _by_rows(self):
        return self.X.flags.c_contiguous

    def _n_chunks(self):
        return -(-self.n_samples // kernels.CHUNK)

    @classmethod
    def standardised(cls, X: np.ndarray, mean: np.ndarray, inv: np.ndarray, columns: np.ndarray | None = None) -> Self:
        """Columns (all by default) of a matrix whose moments are known: part of a larger one."""
        new = cls(X, np.empty(0))
        new._moments, new._columns, new.n_features = (mean, inv), columns, len(inv)
        return new

    def _first_read(self, residual):
        """Moments about the first row (no digits are lost to a large common offset) and the product with the residual."""
        shift = self.X[0].copy()
        total, square, product = first_sums(self.X, shift, self._weight, residual)
        self._moments = moments(total, square, shift)
        return product + shift * residual.sum()

    def _gathered(self):
        if self._source is not None:
            kernels.kernel("gather_rows")(self._source, self._wanted, self.X)
            self._source = None
        return self.X

    def _row_blocks(self):
        step = max(16, BLOCK_BYTES // max(1, self.X.shape[1] * self.X.itemsize))
        return [slice(start, start + step) for start in range(0, self.n_samples, step)]

    def _spread(self, values):
        """One entry per stored column, 0 for those that have fallen."""
        if self._columns is None:
            return values
        full = np.zeros((self.X.shape[1], *values.shape[1:]))
        full[self._columns] = values
        return full

    def _raw(self, coef):
        """Coefficients for the stored columns, in the matrix' own precision, and the constant that centring takes off."""
        raw = coef[:, 0] * self.inv[:, None]
        return self._spread(raw).astype(self.X.dtype), self.mean[:, 0] @ raw

    def scores(self, coef):
        raw, offset = self._raw(coef)
        return (self._gathered() @ raw).astype(np.float64) - offset

    def gradient(self, residual):
        X = self._gathered()
        product = np.zeros((X.shape[1], residual.shape[1]))
        narrow = residual.astype(X.dtype)
        for rows in self._row_blocks():
            product += X[rows].T @ narrow[rows]
        return self._finish(product, residual.sum(axis=0))

    def _finish(self, product, residual_sum):
        if self._columns is not None:
            product = product[self._columns]
        product = product - self.mean * residual_sum
        product *= self.inv[:, None]
        return product[:, None]

    def scores_and_gradient(self, coef, intercept, loss, y, sample_weight):
        code = loss.kernel_code
        if code is None or y.shape[1] > 1:
            return super().scores_and_gradient(coef, intercept, loss, y, sample_weight)
        if self._moments is None and not coef.any():
            value, residual = loss.value_and_gradient(y, np.broadcast_to(intercept, y.shape), sample_weight)
            return self._finish(self._first_read(residual[:, 0])[:, None], residual.sum(axis=0)), residual.sum(axis=0), value
        raw = coef[:, 0, 0] * self.inv
        shift = self.mean[:, 0].astype(self.X.dtype)
        constant = float(intercept[0] - (self.mean[:, 0] - shift) @ raw)
        raw, shift_stored = self._spread(raw).astype(self.X.dtype), self._spread(shift).astype(self.X.dtype)
        partial = np.zeros((self._n_chunks(), self.X.shape[1]), self.X.dtype)
        sums = np.empty((len(partial), 2))
        if self._by_rows:
            nothing = np.empty((0, 0), self.X.dtype)
            gather = (nothing, self._wanted[:0], nothing) if self._source is None else (self._source, self._wanted, self.X)
            run = kernels.kernel("fused_rows")
            run(*gather, self.X, shift_stored, raw, constant, y, sample_weight, *code, partial, sums)
            self._source = None
        else:
            run = kernels.kernel("fused_columns")
            run(self.X, shift_stored, raw, constant, y, sample_weight, *code, partial, sums)
        product = partial.sum(axis=0, dtype=np.float64)
        value, residual_sum = sums.sum(axis=0)
        if self._columns is not None:
            product = product[self._columns]
        product -= (self.mean[:, 0] - shift) * residual_sum
        product *= self.inv
        return product[:, None, None], np.array([residual_sum]), float(value)

    def keep(self, kept):
        new = object.__new__(type(self))
        new.n_samples, new.n_features = self.n_samples, len(kept)
        new._moments = self.mean[kept], self.inv[kept]
        new._source, new._wanted = None, np.empty(0, np.uint32)
        columns = np.asarray(kept) if self._columns is None else self._columns[kept]
        stored = self._gathered()
        if GATHER * len(kept) >= stored.shape[1]:
            new.X, new._columns = stored, columns
            return new
        new._columns = None
        if self._by_rows:
            new.X = np.empty((self.n_samples, len(kept)), stored.dtype)
            new._source, new._wanted = stored, columns.astype(np.uint32)
        else:
            new.X = stored.T[columns].T
        return new

    def matrix(self):
        X = self._gathered()
        block = X.copy() if self._columns is None else np.take(X, self._columns, axis=1)
        block -= self.mean[:, 0].astype(block.dtype)
        block *= self.inv.astype(block.dtype)
        return block


def first_sums(X: np.ndarray, shift: np.ndarray, sample_weight: np.ndarray, residual: np.ndarray) -> np.ndarray:
    """Sums of w d, w d^2 and r d over the rows, d = x - shift, in one read: (3, n_features), float64."""
    partial = np.zeros((-(-len(X) // kernels.CHUNK), 3, X.shape[1]), X.dtype)
    run = kernels.kernel("first_rows" if X.flags.c_contiguous else "first_columns")
    run(X, shift, sample_weight.astype(X.dtype), residual.astype(X.dtype), partial)
    return partial.sum(axis=0, dtype=np.float64)


def moments(total: np.ndarray, square: np.ndarray, shift: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Means (m, 1) and inverse scales (m,) from the first two of :func:`first_sums`.

    Raises
    ------
    NotFiniteError
        If the data were not finite, or their squares.
    """
    if not (np.isfinite(total).all() and np.isfinite(square).all()):
        column = np.flatnonzero(~np.isfinite(total + square))[0]
        raise NotFiniteError(
            f"X contains NaN or infinity, or values whose squares overflow {shift.dtype} (first in column {column}); "
            "expected finite numbers of moderate size"
        )
    variance = np.maximum(square - total**2, 0.0)
    mean = total + shift
    return mean[:, None], _inverse_scale(variance, variance + mean**2, (4.0 * np.finfo(shift.dtype).eps) ** 2)
