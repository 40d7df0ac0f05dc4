"""Linear responses on a sparse matrix, in memory or in files, never densified."""

from collections.abc import Iterator
from typing import Any, Self

import numpy as np
import numpy.typing as npt
import scipy.sparse as sp

from ..objective.base import Loss
from ..sources.sparse_files import SparseSource
from ..types import Matrix
from .base import COMPACT_RATIO, Design, NotFiniteError, check_underflow, inverse_scale, rounding_of
from .out_of_core import MEMORY_LIMIT

_BLOCK_ENTRIES = 1 << 22  # stored values per product: their copy in float64 takes 34 MB
_BLOCK_BYTES = 128  # bytes per stored value of a block read from a file, including copies
_LOADED_BYTES = 128  # and of one kept in memory: its row, its column, and the sorted copy


def canonical(X: Any) -> Any:
    """Return a sparse matrix in canonical format: itself, or a copy with sorted entries and summed
    duplicates."""
    if X.has_canonical_format:
        return X
    X = X.copy()
    X.sum_duplicates()
    return X


def _moments(
    total: np.ndarray, rest: np.ndarray, square: np.ndarray, full: np.ndarray, dtype: npt.DTypeLike
) -> tuple[np.ndarray, np.ndarray]:
    """Compute means (m, 1) and inverse scales (m,) of columns in two passes over their stored
    values, so that a large mean costs no precision.

    Parameters
    ----------
    total : ndarray of shape (m,)
        Weighted sums of the columns, with weights that sum to one.
    rest, square : ndarray of shape (m,)
        Weighted sums of the differences between stored values and ``total``, and of their squares.
    full : ndarray of shape (m,), bool
        Mask of columns with stored values in all rows of positive weight.
    """
    # Rounding of the mean if all values are stored; else the mean times the weight of the zeros
    mean = total + np.where(full, rest, 0.0)
    variance = np.maximum(square + np.where(full, -(rest**2), total * rest), 0.0)
    if not np.isfinite(variance).all():
        column = int(np.argmin(np.isfinite(variance)))
        raise NotFiniteError(
            f"X contains NaN or infinity (first in column {column}); expected finite numbers"
        )
    second = variance + mean**2
    check_underflow(mean, second)
    return mean[:, None], inverse_scale(variance, second, rounding_of(dtype))


class SparseDesign(Design):
    """Linear responses on a scipy sparse matrix in CSC format; centring is applied to the results,
    so nothing is densified.

    Dropped columns stay stored with coefficient zero; once few columns remain, those are copied.

    Parameters
    ----------
    X : sparse matrix of shape (n_samples, n_features)
        Sparse matrix in any format; CSC is not copied.
    sample_weight : ndarray of shape (n_samples,)
        Weights that sum to one.
    """

    per_feature = ("mean", "inv", "stored")

    def __init__(self, X: Matrix, sample_weight: np.ndarray):
        self.X = canonical(sp.csc_array(X))  # all stored columns
        self.n_samples, self.n_features = self.X.shape
        self.stored = np.arange(self.n_features)  # positions of the features among them
        total, rest, square, counts = np.empty((4, self.n_features))
        present = sample_weight > 0
        for _, columns, part in self._blocks():
            total[columns] = mean = part.T @ sample_weight
            each = np.repeat(np.arange(len(mean)), np.diff(part.indptr))
            counts[columns] = np.bincount(each, present[part.indices], len(mean))
            part.data = part.data - mean[each]
            rest[columns] = part.T @ sample_weight
            part.data *= part.data
            square[columns] = part.T @ sample_weight
        self.mean, self.inv = _moments(
            total, rest, square, counts == np.count_nonzero(present), self.X.dtype
        )

    def _blocks(self) -> Iterator[tuple[Any, Any, Any]]:
        """Iterate over the rows, columns and entries of views of neighbouring columns with few
        stored values in total, since products convert float32 to float64 one part at a time."""
        X, start = self.X, 0
        while start < X.shape[1]:
            most = X.indptr[start] + _BLOCK_ENTRIES
            stop = max(start + 1, int(np.searchsorted(X.indptr, most, side="right")) - 1)
            first, last = X.indptr[start], X.indptr[stop]
            parts = X.data[first:last], X.indices[first:last], X.indptr[start : stop + 1] - first
            part = sp.csc_array(parts, shape=(X.shape[0], stop - start), copy=False)
            yield slice(None), slice(start, stop), part
            start = stop

    def _raw(self, coef: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Return the raw coefficients of all stored columns, and the scores of the means."""
        raw = coef[:, 0] * self.inv[:, None]
        every = np.zeros((self.X.shape[1], raw.shape[1]))
        every[self.stored] = raw
        return every, self.mean[:, 0] @ raw

    def scores(self, coef: np.ndarray) -> np.ndarray:
        every, offset = self._raw(coef)
        total = np.zeros((self.n_samples, every.shape[1]))
        for rows, columns, part in self._blocks():
            total[rows] += part @ every[columns]
        return total - offset

    def gradient(self, residual: np.ndarray) -> np.ndarray:
        product = np.zeros((self.X.shape[1], residual.shape[1]))
        for rows, columns, part in self._blocks():
            product[columns] += part.T @ residual[rows]
        return self._standardised(product[self.stored][:, None], residual)

    def keep(self, kept: np.ndarray) -> Self:
        new = super().keep(kept)
        if len(kept) * COMPACT_RATIO < self.X.shape[1]:
            new.X, new.stored = self.X[:, new.stored], np.arange(len(kept))
        return new

    def damp(self, sample_weight: np.ndarray, n_rows: float) -> None:
        """Add the contribution of one row to each variance, so that rare columns do not dominate
        frequent ones.

        Parameters
        ----------
        sample_weight : ndarray of shape (n_samples,)
            Weights that sum to one.
        n_rows : float
            Sum of the row weights.
        """
        weight = sample_weight[self.X.indices]
        one = weight @ self.X.data.astype(float) ** 2 / max(weight.sum(), 1e-300) / n_rows
        self.inv = self.inv / np.sqrt(1.0 + one * self.inv**2)

    def uncentred(self) -> sp.csr_array:
        """Return the columns of :meth:`matrix` in sparse form, each shifted by a constant."""
        return self.X[:, self.stored] @ sp.diags_array(self.inv)

    def matrix(self) -> np.ndarray:
        return (self.X[:, self.stored].toarray() - self.mean[:, 0]) * self.inv


class SparseBlockDesign(SparseDesign):
    """Linear responses on a sparse matrix in files, which a step reads once.

    The first two reads compute the moments. Columns are loaded into a :class:`SparseDesign` once
    the memory limit allows.

    Parameters
    ----------
    source : SparseSource
        Matrix of all columns; its ``memory_limit`` applies.
    sample_weight : ndarray of shape (n_samples,)
        Weights that sum to one.

    References
    ----------
    .. [1] A. Barbu, Y. She, L. Ding, G. Gramajo, "Feature Selection with Annealing for Computer
           Vision and Big Data Learning", IEEE Transactions on Pattern Analysis and Machine
           Intelligence 39, 2017, section 2.2, "Large Scale Implementation".
    """

    def __init__(self, source: SparseSource, sample_weight: np.ndarray):
        self.X, self.limit = (
            source,
            MEMORY_LIMIT if source.memory_limit is None else source.memory_limit,
        )
        self.n_samples, self.n_features = source.shape
        self.stored, self._weight = np.arange(self.n_features), sample_weight
        self._pieces: list[
            tuple[np.ndarray, SparseDesign]
        ] = []  # shared: columns in memory, ascending
        m = self.n_features
        total, rest, square, present = np.zeros(m), np.zeros(m), np.zeros(m), np.zeros(m)
        self._counts, energy, mass = np.zeros(m, np.int64), 0.0, 0.0
        for rows, _, part in self._blocks():
            weight = np.repeat(sample_weight[rows], np.diff(part.indptr))
            total += part.T @ sample_weight[rows]
            self._counts += np.bincount(part.indices, minlength=m)
            present += np.bincount(part.indices, weight > 0, m)
            energy, mass = (
                energy + float(weight @ part.data.astype(float) ** 2),
                mass + float(weight.sum()),
            )
        self._one = energy / max(mass, 1e-300)
        for rows, _, part in self._blocks():  # about the mean: a large mean costs no precision
            part.data = part.data - total[part.indices]
            rest += part.T @ sample_weight[rows]
            part.data *= part.data
            square += part.T @ sample_weight[rows]
        full = present == np.count_nonzero(sample_weight)
        self.mean, self.inv = _moments(total, rest, square, full, source.dtype)

    def _blocks(self) -> Iterator[tuple[Any, Any, Any]]:
        for rows, part in self.X.blocks(max(1, self.limit // (4 * _BLOCK_BYTES))):
            yield rows, slice(None), part

    def scores_and_gradient(
        self,
        coef: np.ndarray,
        intercept: np.ndarray,
        loss: Loss,
        y: np.ndarray,
        sample_weight: np.ndarray,
    ) -> tuple[np.ndarray, np.ndarray, float]:
        if not loss.pointwise:
            return super().scores_and_gradient(coef, intercept, loss, y, sample_weight)
        every, offset = self._raw(coef)
        product, residual_sum, value = np.zeros(every.shape), np.zeros((1, every.shape[1])), 0.0
        for rows, _, part in self._blocks():
            block_value, residual = loss.value_and_gradient(
                y[rows], part @ every - offset + intercept, sample_weight[rows]
            )
            product += part.T @ residual
            residual_sum += residual.sum(axis=0)
            value += block_value
        return (
            self._standardised(product[self.stored][:, None], residual_sum),
            residual_sum[0],
            value,
        )

    def keep(self, kept: np.ndarray) -> SparseDesign:  # type: ignore[override]
        new = Design.keep(self, kept)
        return (
            new.in_memory()
            if int(self._counts[new.stored].sum()) * _LOADED_BYTES <= self.limit
            else new
        )

    def in_memory(self) -> SparseDesign:
        """Return the design in memory, without reading columns a second time."""
        have, design = next(
            ((c, d) for c, d in self._pieces if np.isin(self.stored, c).all()), (self.stored, None)
        )
        if design is None:
            parts = [(rows, part[:, self.stored].tocoo()) for rows, _, part in self._blocks()]
            row = np.concatenate([rows[part.row] for rows, part in parts])
            column, data = (
                np.concatenate([getattr(part, name) for _, part in parts])
                for name in ("col", "data")
            )
            design = SparseDesign(
                sp.csc_array((data, (row, column)), (self.n_samples, self.n_features)), self._weight
            )
            self._pieces[1:] = [(have, design)]  # the first, the most columns, and the last
        reduced = design.keep(np.searchsorted(have, self.stored))
        reduced.mean, reduced.inv = self.mean, self.inv
        return reduced

    def damp(self, sample_weight: np.ndarray, n_rows: float) -> None:
        self.inv = self.inv / np.sqrt(1.0 + self._one / n_rows * self.inv**2)

    def uncentred(self) -> sp.csr_array:
        return self.in_memory().uncentred()

    def matrix(self) -> np.ndarray:
        return self.in_memory().matrix()
