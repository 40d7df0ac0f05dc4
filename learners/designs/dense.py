"""Design with one linear term per column of a dense matrix, which is read in place."""

from typing import Self

import numpy as np

from ..compilation import parallel_ranges
from ..objective.base import Loss
from ..sources.matrix import CHUNK
from . import kernels
from .base import COMPACT_RATIO, FirstReadDesign, moments

# Ratio of mean to standard deviation above which products use centred values, for precision
_MAX_RATIO = {"float32": 1e3, "float64": 1e8}
# rows read at once, so that scores and gradient find them in the L2 cache
BLOCK_BYTES = 1 << 20


class DenseDesign(FirstReadDesign):
    """Design with one linear term per column of a dense matrix.

    The matrix may be row- or column-major, in float32 or float64, and is read in place. Dropped
    columns stay in memory, with a zero coefficient. Once fewer than a third of the stored columns
    are in use, these are copied to a smaller matrix.

    Parameters
    ----------
    X : ndarray of shape (n_samples, n_features)
        Matrix of values; it is not changed.
    sample_weight : ndarray of shape (n_samples,) or None
        Row weights that sum to one; not needed if the moments are given.
    moments : (ndarray, ndarray) or None, default None
        Known means, of shape (m, 1), and inverse scales, of shape (m,), of the m columns in use,
        for example those of a larger matrix of which X is a part.
    columns : ndarray of int or None, default None
        Indices of the columns to use, in the order of ``moments``; by default, all columns.
    """

    def __init__(
        self,
        X: np.ndarray,
        sample_weight: np.ndarray | None,
        *,
        moments: tuple[np.ndarray, np.ndarray] | None = None,
        columns: np.ndarray | None = None,
    ):
        if not (X.flags.c_contiguous or X.flags.f_contiguous):
            X = np.ascontiguousarray(X)
        self._stored = X
        self.n_samples, self.n_features = len(X), X.shape[1] if columns is None else len(columns)
        self._columns = columns
        # A row-major matrix and the column indices (uint32) that the next read compacts
        self._pending: tuple[np.ndarray, np.ndarray] | None = None
        self._weight, self._moments = sample_weight, moments

    @property
    def _by_rows(self) -> bool:
        return self._stored.flags.c_contiguous

    def _first_read(self, residual: np.ndarray) -> np.ndarray:
        assert self._weight is not None
        # Values are taken relative to the first row: a large offset costs no precision
        shift = self._stored[0].copy()
        total, square, product = first_sums(self._stored, shift, self._weight, residual[:, 0])
        self._moments = moments(total, square, shift)
        product = product + shift * residual[:, 0].sum()
        return self._standardised(product[:, None, None], residual)

    def _gathered(self) -> np.ndarray:
        if self._pending is not None:
            parallel_ranges(kernels.gather_rows, self.n_samples, *self._pending, self._stored)
            self._pending = None
        return self._stored

    def _row_blocks(self) -> list[slice]:
        step = (
            max(16, BLOCK_BYTES // max(1, self._stored.shape[1] * self._stored.itemsize))
            if self._by_rows
            else 16 * CHUNK  # column-major
        )
        return [slice(start, start + step) for start in range(0, self.n_samples, step)]

    def _spread(self, values: np.ndarray) -> np.ndarray:
        """Expand values to one entry per stored column, with 0 for dropped columns."""
        if self._columns is None:
            return values
        full = np.zeros((self._stored.shape[1], *values.shape[1:]))
        full[self._columns] = values
        return full

    def _rounded_mean(self) -> np.ndarray | None:
        """Return the means in the matrix's precision if products are centred, else None."""
        mean = self.mean[:, 0]
        large = np.abs(mean) * self.inv > _MAX_RATIO[self._stored.dtype.name]
        return mean.astype(self._stored.dtype) if large.any() else None

    def scores(self, coef: np.ndarray) -> np.ndarray:
        raw, shift = coef[:, 0] * self.inv[:, None], self._rounded_mean()
        stored_raw = self._spread(raw).astype(self._stored.dtype)
        if shift is None:
            return (self._gathered() @ stored_raw).astype(np.float64) - self.mean[:, 0] @ raw
        X, stored_shift = self._gathered(), self._spread(shift).astype(self._stored.dtype)
        centred = [(X[rows] - stored_shift) @ stored_raw for rows in self._row_blocks()]
        return np.concatenate(centred).astype(np.float64) - (self.mean[:, 0] - shift) @ raw

    def gradient(self, residual: np.ndarray) -> np.ndarray:
        X = self._gathered()
        product = np.zeros((X.shape[1], residual.shape[1]))
        narrow, shift = residual.astype(X.dtype), self._rounded_mean()
        stored_shift = None if shift is None else self._spread(shift).astype(X.dtype)
        for rows in self._row_blocks():
            product += (X[rows] if stored_shift is None else X[rows] - stored_shift).T @ narrow[
                rows
            ]
        if self._columns is not None:
            product = product[self._columns]
        if shift is not None:
            product += shift[:, None].astype(np.float64) * residual.sum(axis=0)
        return self._standardised(product[:, None], residual)

    def scores_and_gradient(
        self,
        coef: np.ndarray,
        intercept: np.ndarray,
        loss: Loss,
        y: np.ndarray,
        sample_weight: np.ndarray,
    ) -> tuple[np.ndarray, np.ndarray, float]:
        code = loss.kernel_code
        if code is None or y.shape[1] > 1:
            return super().scores_and_gradient(coef, intercept, loss, y, sample_weight)
        if self._moments is None and not coef.any():
            value, residual = loss.value_and_gradient(
                y, np.broadcast_to(intercept, y.shape), sample_weight
            )
            return self._first_read(residual), residual.sum(axis=0), value
        raw = coef[:, 0, 0] * self.inv
        shift = self.mean[:, 0].astype(self._stored.dtype)
        constant = float(intercept[0] - (self.mean[:, 0] - shift) @ raw)
        raw = self._spread(raw).astype(self._stored.dtype)
        shift_stored = self._spread(shift).astype(self._stored.dtype)
        partial = np.zeros((-(-self.n_samples // CHUNK), self._stored.shape[1]), self._stored.dtype)
        sums = np.empty((len(partial), 2))
        if self._by_rows:
            nothing, none = np.empty((0, 0), self._stored.dtype), np.empty(0, np.uint32)
            gather = (
                (nothing, none, nothing)
                if self._pending is None
                else (*self._pending, self._stored)
            )
            data = (*gather, self._stored)
            self._pending = None
        else:
            data = (self._stored,)
        run = kernels.fused_rows if self._by_rows else kernels.fused_columns
        parallel_ranges(
            run,
            len(partial),
            *data,
            shift_stored,
            raw,
            constant,
            y,
            sample_weight,
            *code,
            partial,
            sums,
        )
        product = partial.sum(axis=0, dtype=np.float64)
        value, residual_sum = sums.sum(axis=0)
        if self._columns is not None:
            product = product[self._columns]
        product -= (self.mean[:, 0] - shift) * residual_sum
        product *= self.inv
        return product[:, None, None], np.array([residual_sum]), float(value)

    def keep(self, kept: np.ndarray) -> Self:
        stored = self._gathered()
        new = super().keep(kept)
        new._moments = self.mean[kept], self.inv[kept]
        columns = np.asarray(kept) if self._columns is None else self._columns[kept]
        if COMPACT_RATIO * len(kept) >= stored.shape[1]:
            new._columns = columns
            return new
        new._columns = None
        if self._by_rows:
            new._stored = np.empty((self.n_samples, len(kept)), stored.dtype)
            new._pending = stored, columns.astype(np.uint32)
        else:
            new._stored = stored.T[columns].T
        return new

    def stored_columns(self, positions: np.ndarray) -> np.ndarray:
        """Return the raw values of the features at ``positions``, one column per feature."""
        return self._gathered()[:, positions if self._columns is None else self._columns[positions]]

    def matrix(self) -> np.ndarray:
        return self.matrix_rows(None)

    def matrix_rows(self, rows: np.ndarray | None) -> np.ndarray:
        X, columns = self._gathered(), self._columns
        # rows first, since a copy of all rows may not fit into memory
        if rows is not None:
            X, columns = X[rows if columns is None else np.ix_(rows, columns)], None
        block = X.copy() if columns is None else np.take(X, columns, axis=1)
        mean = self.mean[:, 0]
        block -= mean.astype(block.dtype)
        if block.dtype != np.float64:
            block -= (mean - mean.astype(block.dtype)).astype(block.dtype)
        block *= self.inv.astype(block.dtype)
        return block


def first_sums(
    X: np.ndarray, shift: np.ndarray, sample_weight: np.ndarray, residual: np.ndarray
) -> np.ndarray:
    """Compute the sums of w d, w d^2 and r d over the rows, with d = x - shift, in one pass.

    Parameters
    ----------
    X : ndarray of shape (n_samples, n_features)
        Matrix, row- or column-major.
    shift : ndarray of shape (n_features,)
        Values subtracted from each row, so that a large offset does not reduce precision.
    sample_weight : ndarray of shape (n_samples,)
        Row weights w.
    residual : ndarray of shape (n_samples,)
        Residual r.

    Returns
    -------
    ndarray of shape (3, n_features)
        Sums in float64. Each chunk of rows is summed in the precision of X.
    """
    partial = np.zeros((-(-len(X) // CHUNK), 3, X.shape[1]), X.dtype)
    run = kernels.first_rows if X.flags.c_contiguous else kernels.first_columns
    parallel_ranges(
        run,
        len(partial),
        X,
        shift,
        sample_weight.astype(X.dtype),
        residual.astype(X.dtype),
        partial,
    )
    return partial.sum(axis=0, dtype=np.float64)
