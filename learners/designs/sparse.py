"""Linear responses to a sparse matrix in memory or in files, without densifying it."""

from collections.abc import Iterator
from tempfile import TemporaryDirectory
from typing import Any, Self

import numpy as np
import scipy.sparse as sp

from ..objective.base import Loss
from ..sources.sparse_files import SparseSource, write_rows
from ..types import Matrix
from .base import COMPACT_RATIO, Design, NotFiniteError, check_underflow, inverse_scale, rounding_of
from .out_of_core import MEMORY_LIMIT

_BLOCK_ENTRIES = 1 << 22  # stored values per product; the float64 copy takes 34 MB
# Stored values of a block in the first pass: a minimum, and a number per column
_READ_ENTRIES, _READ_ENTRIES_PER_COLUMN = 1 << 18, 4
_BLOCK_BYTES = 64  # bytes per stored value of a block from a file, including copies
_LOADED_BYTES = 16  # the same in memory: value and index, twice while columns are dropped


def canonical(X: Any) -> Any:
    """Return a sparse matrix in canonical format.

    A matrix that is not canonical is copied, with sorted entries and summed duplicates.
    """
    if X.has_canonical_format:
        return X
    X = X.copy()
    X.sum_duplicates()
    return X


class SparseDesign(Design):
    """Design with one linear term per column of a SciPy sparse matrix in CSR or CSC format.

    Centring is applied to the results, so the matrix is neither densified nor copied. Dropped
    columns stay in memory with a zero coefficient. Once few columns are in use, they are copied.

    Parameters
    ----------
    X : sparse matrix of shape (n_samples, n_features)
        Sparse matrix in any format; CSR and CSC matrices are not copied.
    sample_weight : ndarray of shape (n_samples,)
        Weights that sum to one.
    """

    per_feature: tuple[str, ...] = ("mean", "inv", "stored")
    X: Any

    def __init__(self, X: Matrix, sample_weight: np.ndarray):
        self.X = canonical(sp.csc_array(X) if X.format == "csc" else sp.csr_array(X))
        self.n_samples, self.n_features = self.X.shape
        self.stored = np.arange(self.n_features)  # indices of the features in X
        self._first_read(sample_weight)

    def _first_read(self, sample_weight: np.ndarray) -> None:
        """Compute the column moments in one pass, and count the stored values.

        A column without zeros in the first block is shifted by its mean in this block, so that a
        large mean costs no precision. Other columns do not need this, since zeros make the variance
        as large as the squared mean.
        """
        share, total, square, shift = np.zeros((4, self.n_features))
        present, self._counts = np.zeros(self.n_features), np.zeros(self.n_features, np.int64)
        size = max(_READ_ENTRIES, _READ_ENTRIES_PER_COLUMN * self.n_features)
        for rows, columns, part in self._blocks(size):
            weight, d, ones = sample_weight[rows], part.data, np.ones(part.nnz)
            positive = np.count_nonzero(weight)

            def sums(values: np.ndarray, weight: np.ndarray = weight, part: Any = part) -> Any:
                return part._with_data(values, copy=False).T @ weight

            mass, counts = sums(ones), sums(ones, np.ones(len(weight)))
            number = counts if positive == len(weight) else sums(ones, (weight > 0).astype(float))
            full = (number == positive) & (mass > 0)
            if full.any() and not share[columns].any():  # the first rows of these columns
                shift[columns] = np.divide(sums(d), mass, np.zeros(len(mass)), where=full)
            if shift.any():
                d = d - shift[columns][part.tocoo(copy=False).col]
            total[columns] += sums(d)
            square[columns] += sums(np.square(d, dtype=float))
            share[columns] += mass
            present[columns] += number
            self._counts[columns] += counts.astype(np.int64)
        full = present == np.count_nonzero(sample_weight)
        mean = total + shift * np.where(full, 1.0, share)
        about = np.where(full, total, mean - shift)
        zeros = np.where(full, 0.0, (1.0 - share) * mean**2)
        variance = np.maximum(square - (2.0 * total - share * about) * about + zeros, 0.0)
        if not np.isfinite(variance).all():
            column = int(np.argmin(np.isfinite(variance)))
            raise NotFiniteError(
                f"X contains NaN or infinity (first in column {column}); expected finite numbers"
            )
        second = variance + mean**2
        check_underflow(mean, second)
        self._mean_square = second.sum() / max(share.sum(), 1e-300)  # mean square of stored values
        self.mean = mean[:, None]
        self.inv = inverse_scale(variance, second, rounding_of(self.X.dtype))

    def _blocks(self, n_values: int | None = None) -> Iterator[tuple[Any, Any, Any]]:
        """Iterate over small blocks of adjacent rows or columns.

        Each block consists of a row range, a column range and the entries. Products convert one
        block at a time to float64, which limits the memory.
        """
        X, start, n, by_rows = self.X, 0, len(self.X.indptr) - 1, self.X.format == "csr"
        n_values = n_values or _BLOCK_ENTRIES
        if X.nnz <= n_values:
            yield slice(None), slice(None), X
            return
        while start < n:
            most = X.indptr[start] + n_values
            stop = max(start + 1, int(np.searchsorted(X.indptr, most, side="right")) - 1)
            first, last, some = X.indptr[start], X.indptr[stop], slice(start, stop)
            parts = X.data[first:last], X.indices[first:last], X.indptr[start : stop + 1] - first
            shape = (stop - start, X.shape[1]) if by_rows else (X.shape[0], stop - start)
            where = (some, slice(None)) if by_rows else (slice(None), some)
            yield *where, type(X)(parts, shape=shape, copy=False)
            start = stop

    def _raw(self, coef: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Return the raw coefficients of all stored columns, and the scores of the column means."""
        raw = coef[:, 0] * self.inv[:, None]
        every = np.zeros((self.X.shape[1], raw.shape[1]))
        every[self.stored] = raw
        return every, self.mean[:, 0] @ raw

    def scores(self, coef: np.ndarray) -> np.ndarray:
        total = np.zeros((self.n_samples, coef.shape[2]))
        if not coef.any():  # before the first step
            return total
        every, offset = self._raw(coef)
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
            new.X, new.stored = self.X[:, new.stored].tocsc(), np.arange(len(kept))
        return new

    def damp(self, n_rows: float) -> None:
        """Increase the variance of each column as if it had one more non-zero value.

        Columns with few non-zero values among the ``n_rows`` rows then do not dominate the others.
        """
        self.inv = self.inv / np.sqrt(1.0 + self._mean_square / n_rows * self.inv**2)

    def uncentred(self) -> sp.csr_array:
        """Return the columns of :meth:`matrix` as a sparse matrix, each shifted by a constant."""
        return self.X[:, self.stored] @ sp.diags_array(self.inv)

    def matrix(self) -> np.ndarray:
        columns = self.X[:, self.stored].toarray()
        columns -= self.mean[:, 0]
        columns *= self.inv
        return columns


class SparseBlockDesign(SparseDesign):
    """Design with one linear term per column of a sparse matrix stored in files.

    Each annealing step reads the files once, and the first pass computes the moments. Columns are
    loaded into a :class:`SparseDesign` once the memory limit allows. Until then, whenever half of
    the stored values have been dropped, the remaining values are written to a temporary folder, so
    that later steps read only those.

    Parameters
    ----------
    source : SparseSource
        Source of the full matrix. Its ``memory_limit`` also limits the memory of the design.
    sample_weight : ndarray of shape (n_samples,)
        Weights that sum to one.

    References
    ----------
    .. [1] A. Barbu, Y. She, L. Ding, G. Gramajo, "Feature Selection with Annealing for Computer
           Vision and Big Data Learning", IEEE Transactions on Pattern Analysis and Machine
           Intelligence 39, 2017, section 2.2, "Large Scale Implementation".
    """

    per_feature = (*SparseDesign.per_feature, "numbers")

    def __init__(self, source: SparseSource, sample_weight: np.ndarray):
        self.X = source
        self.limit = MEMORY_LIMIT if source.memory_limit is None else source.memory_limit
        self.n_samples, self.n_features = source.shape
        self.stored = self.numbers = np.arange(self.n_features)
        self._weight = sample_weight
        self._folder: TemporaryDirectory | None = None
        # Shared by all designs of the source: indices of the columns in memory, in ascending order
        self._pieces: list[tuple[np.ndarray, SparseDesign]] = []
        self._first_read(sample_weight)

    def _blocks(self, n_values: int | None = None) -> Iterator[tuple[Any, Any, Any]]:
        for rows, part in self.X.blocks(max(1, self.limit // (2 * _BLOCK_BYTES))):
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
        moved = coef.any()  # not before the first step
        for rows, _, part in self._blocks():
            scores = part @ every - offset if moved else np.zeros((part.shape[0], len(intercept)))
            block_value, residual = loss.value_and_gradient(
                y[rows], scores + intercept, sample_weight[rows]
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
        n_values = int(self._counts[new.numbers].sum())
        if n_values * _LOADED_BYTES <= self.limit:
            return new.in_memory()
        if 2 * n_values <= self.X.nnz:
            new._folder = TemporaryDirectory()  # removed with the last design that reads it
            new.X = write_rows(new._remaining(), new._folder.name, len(kept), self.X.dtype)
            new.stored = np.arange(len(kept))
        return new

    def _remaining(self) -> Iterator[tuple[np.ndarray, sp.csr_array]]:
        """Iterate over blocks of rows, restricted to the columns of the features."""
        for rows, _, part in self._blocks():
            yield rows, part[:, self.stored]

    def in_memory(self) -> SparseDesign:
        """Return the design in memory, without reading columns a second time."""
        have, design = next(
            ((c, d) for c, d in self._pieces if np.isin(self.numbers, c).all()),
            (self.numbers, None),
        )
        if design is None:
            n_values, start, order = int(self._counts[self.numbers].sum()), 0, []
            data, indices = np.empty(n_values, self.X.dtype), np.empty(n_values, np.int32)
            lengths = [np.zeros(1, np.int64)]
            for rows, part in self._remaining():
                stop = start + part.nnz
                data[start:stop], indices[start:stop], start = part.data, part.indices, stop
                order.append(rows)
                lengths.append(np.diff(part.indptr))
            parts = data, indices, np.cumsum(np.concatenate(lengths))
            X = sp.csr_array(parts, (self.n_samples, self.n_features))
            positions = np.concatenate(order)
            if np.any(np.diff(positions) < 0):  # blocks are in file order
                X = X[np.argsort(positions)]
            design = SparseDesign(X, self._weight)
            self._pieces[1:] = [(have, design)]  # the first has the most columns
        reduced = design.keep(np.searchsorted(have, self.numbers))
        reduced.mean, reduced.inv = self.mean, self.inv
        return reduced

    def uncentred(self) -> sp.csr_array:
        return self.in_memory().uncentred()

    def matrix(self) -> np.ndarray:
        return self.in_memory().matrix()
