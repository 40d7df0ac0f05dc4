"""Designs: how the data look to the annealing loop.

A design stands for a matrix whose columns are centred and scaled without being copied. Feature j owns ``width`` neighbouring
columns u_j(x) (one for a linear response, the B + 1 hat functions for a piecewise-linear one); with m_j their means and s_j one
scale per feature, the scores are

    sum_j (u_j(x_j) - m_j) s_j . coef_j

Coefficients are (n_features, width, n_outputs) in these standardised coordinates; :meth:`Design.unstandardise` takes them back.
Sums over rows go through blocks of fixed size in fixed order, so results do not depend on the number of threads.
"""

from __future__ import annotations

from typing import Self

import numpy as np
import scipy.sparse as sp

from . import kernels

BLOCK_BYTES = 1 << 20  # rows read at once: scores and gradient find them in the second-level cache
GATHER = 3  # survivors are copied together when fewer than one in so many stored columns is left: a copy costs some reads


def _inverse_scale(variance: np.ndarray, second_moment: np.ndarray, rounding: float = 1e-12) -> np.ndarray:
    """1 / standard deviation, and 0 for columns that are constant to rounding: those never score."""
    constant = variance <= rounding * np.maximum(second_moment, 1e-300)
    return np.where(constant, 0.0, 1.0 / np.sqrt(np.where(constant, 1.0, variance)))


class NotFiniteError(ValueError):
    """The data hold NaN or infinity: found in the first read that is made of them."""


class Design:
    """Base of all designs.

    Attributes
    ----------
    n_samples, n_features, width, n_knots : int
        Rows, features, columns per feature, and how many of these form the response curve.
    mean : ndarray of shape (n_features, width)
    inv : ndarray of shape (n_features,)
        Inverse scale of each feature; 0 for constant ones.
    """

    n_samples: int
    n_features: int
    width: int = 1
    n_knots: int = 1
    mean: np.ndarray
    inv: np.ndarray

    def scores(self, coef: np.ndarray) -> np.ndarray:
        """Scores (n_samples, n_outputs) of standardised coefficients."""
        raise NotImplementedError

    def gradient(self, residual: np.ndarray) -> np.ndarray:
        """Sum over rows of residual (n_samples, n_outputs) times standardised columns: shaped like coef."""
        raise NotImplementedError

    def covariance(self, direction: np.ndarray, sample_weight: np.ndarray) -> np.ndarray:
        """Weighted second moments of the standardised columns times ``direction``, both shaped like coef; of one output."""
        return self.gradient(self.scores(direction) * sample_weight[:, None])

    def keep(self, kept: np.ndarray) -> Self:
        """A new design with the features ``kept`` (ascending positions); this one stays usable."""
        raise NotImplementedError

    def matrix(self) -> np.ndarray:
        """The standardised columns themselves, (n_samples, n_features * width), in the data's precision: for small designs."""
        raise NotImplementedError

    def scores_and_gradient(self, coef, intercept, loss, y, sample_weight):
        """Gradient of the loss at ``scores(coef) + intercept``.

        Returns
        -------
        gradient : ndarray, shaped like coef
        residual_sum : ndarray of shape (n_outputs,)
            Gradient with respect to the intercept.
        value : float
            The loss.
        """
        scores = self.scores(coef) + intercept
        value, residual = loss.value_and_gradient(y, scores, sample_weight)
        return self.gradient(residual), residual.sum(axis=0), value

    def unstandardise(self, coef: np.ndarray, intercept: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Coefficients and intercept for the raw columns u_j(x)."""
        raw = coef * self.inv[:, None, None]
        return raw, intercept - np.einsum("mw,mwq->q", self.mean, raw)

    def _standardised(self, product: np.ndarray, residual: np.ndarray) -> np.ndarray:
        """Gradient in standardised coordinates from the raw columns' product with the residual."""
        return (product - self.mean[:, :, None] * residual.sum(axis=0)) * self.inv[:, None, None]


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


def canonical(X):
    """A sparse matrix whose entries stand once each, in order: itself, or a copy where they do not (squares would not add up)."""
    if X.has_canonical_format:
        return X
    X = X.copy()
    X.sum_duplicates()
    return X


class SparseDesign(Design):
    """A scipy sparse matrix, held by columns; centring is applied to the results, so nothing is densified."""

    def __init__(self, X, sample_weight: np.ndarray):
        self.X = canonical(sp.csc_array(X))
        self.n_samples, self.n_features = self.X.shape
        mean = np.asarray(self.X.T @ sample_weight)
        square = self.X.copy()
        square.data = square.data.astype(np.float64) ** 2
        second = np.asarray(square.T @ sample_weight)
        self.mean = mean[:, None]
        self.inv = _inverse_scale(np.maximum(second - mean**2, 0.0), second)

    def scores(self, coef):
        raw = coef[:, 0] * self.inv[:, None]
        return self.X @ raw - self.mean[:, 0] @ raw

    def gradient(self, residual):
        return self._standardised((self.X.T @ residual)[:, None], residual)

    def keep(self, kept):
        new = object.__new__(type(self))
        new.X = self.X[:, kept]
        new.n_samples, new.n_features = self.n_samples, len(kept)
        new.mean, new.inv = self.mean[kept], self.inv[kept]
        return new

    def matrix(self):
        return (self.X.toarray() - self.mean[:, 0]) * self.inv


class PiecewiseDesign(Design):
    """Piecewise-linear responses, section 4.1 of the arXiv text, on stored one-byte codes (see ``kernels``).

    Positions are rounded to 1 / ``sublevels`` of a bin; the expanded matrix is never formed.

    Parameters
    ----------
    codes : ndarray of shape (n_blocks, n_features, kernels.ROWS), uint8
        Rows past the last sample have code 0. Kept features stay where they are until few are left.
    n_samples : int
    n_bins : int
        B.
    missing : bool
        Whether NaN has a coefficient of its own.
    sample_weight : ndarray of shape (n_samples,)
    dtype : dtype
        Precision of the tables and of the sums over features.
    """

    knots: np.ndarray | None = None  # (n_features, B + 1), where the codes were made from a matrix

    def __init__(self, codes, n_samples: int, n_bins: int, missing: bool, sample_weight: np.ndarray, dtype=np.float32):
        self._set(codes, n_samples, n_bins, missing, dtype)
        self.mean, self.inv = block_moments(self._histograms(sample_weight), self.basis)

    def _set(self, codes, n_samples, n_bins, missing, dtype):
        self.codes, self.features = codes, np.arange(codes.shape[1])
        self.dtype = dtype
        self.n_samples, self.n_features = n_samples, codes.shape[1]
        self.n_bins, self.n_knots = n_bins, n_bins + 1
        self.width = self.n_knots + missing
        self.basis = hat_basis(n_bins, missing)

    @classmethod
    def standardised(cls, codes, n_samples: int, n_bins: int, missing: bool, mean, inv, dtype=np.float32, features=None) -> Self:
        """Codes of some features (all by default) whose moments are known: part of a larger matrix."""
        new = object.__new__(cls)
        new._set(codes, n_samples, n_bins, missing, dtype)
        if features is not None:
            new.features, new.n_features = features, len(features)
        new.mean, new.inv = mean, inv
        return new

    @classmethod
    def from_matrix(cls, X: np.ndarray, knots: np.ndarray, sample_weight: np.ndarray, missing: bool | None = None) -> Self:
        """Encode a dense matrix (n, m) on ascending knots (m, B + 1); ``missing`` None: where there is NaN."""
        codes = np.zeros((-(-len(X) // kernels.ROWS), X.shape[1], kernels.ROWS), np.uint8)
        found = encode(X, knots, evenly_spaced(knots), codes)
        new = cls(codes, len(X), knots.shape[1] - 1, found if missing is None else missing, sample_weight, X.dtype)
        new.knots = knots
        return new

    def _histograms(self, column):
        padded = np.zeros(self.codes.shape[0] * kernels.ROWS)
        padded[: self.n_samples] = column
        out = np.empty((self.n_features, 256))
        kernels.table_histograms(self.codes, self.features, padded.reshape(-1, kernels.ROWS), out)
        return out

    def scores(self, coef):
        out = np.zeros((self.n_samples, coef.shape[2]))
        if not coef.any():  # as annealing starts
            return out
        raw = coef * self.inv[:, None, None]
        for q in range(coef.shape[2]):
            table = (raw[:, :, q] @ self.basis.T).astype(self.dtype)
            total = np.zeros((self.codes.shape[0], kernels.ROWS), self.dtype)
            kernels.table_scores(self.codes, self.features, table, total)
            out[:, q] = total.ravel()[: self.n_samples] - (self.mean * raw[:, :, q]).sum()
        return out

    def gradient(self, residual):
        columns = [self._histograms(residual[:, q]) @ self.basis for q in range(residual.shape[1])]
        return self._standardised(np.stack(columns, axis=2), residual)

    def keep(self, kept):
        new = object.__new__(type(self))
        new.__dict__.update(self.__dict__)
        new.n_features, new.features = len(kept), self.features[kept]
        if GATHER * len(kept) < self.codes.shape[1]:
            new.codes = np.empty((self.codes.shape[0], len(kept), kernels.ROWS), np.uint8)
            kernels.keep_codes(self.codes, new.features, new.codes)
            new.features = np.arange(len(kept))
        new.mean, new.inv = self.mean[kept], self.inv[kept]
        new.knots = None if self.knots is None else self.knots[kept]
        return new

    def met_missing(self, rows: np.ndarray) -> np.ndarray:
        """Whether each feature had NaN in one of the chosen rows (n_samples,), bool."""
        chosen = np.zeros(self.codes.shape[0] * kernels.ROWS, bool)
        chosen[: self.n_samples] = rows
        codes = self.codes[:, self.features]
        return ((codes == kernels.MISSING) & chosen.reshape(-1, 1, kernels.ROWS)).any(axis=(0, 2))

    def matrix(self):
        table = ((self.basis - self.mean[:, None]) * self.inv[:, None, None]).astype(self.dtype)
        out = np.empty((self.n_samples, self.n_features * self.width), self.dtype)
        kernels.expand_codes(self.codes, self.features, table, out)
        return out


def sublevels(n_bins: int) -> int:
    """Steps per bin of the codes: as many as one byte holds, with 253 to 255 left free.

    Raises
    ------
    ValueError
        If ``n_bins`` is not in 1..126.
    """
    if not 1 <= n_bins <= 126:
        raise ValueError(f"n_bins={n_bins} is out of range; expected 1 to 126")
    return 252 // n_bins


def evenly_spaced(knots: np.ndarray) -> bool:
    """Whether each column's knots (m, B + 1) are equidistant, to rounding."""
    span = knots[:, -1:] - knots[:, :1]
    gap = np.abs(np.diff(knots, axis=1) - span / (knots.shape[1] - 1))
    return bool(gap.max(initial=0.0) <= 1e-9 * np.abs(knots).max(initial=0.0))


def encode(X: np.ndarray, knots: np.ndarray, even: bool, codes: np.ndarray, start: int = 0) -> bool:
    """Codes of rows (n, m), of which the first is row ``start`` of ``codes`` (n_blocks, m, kernels.ROWS).

    Returns
    -------
    bool
        Whether there was NaN.
    """
    n_bins = knots.shape[1] - 1
    steps = sublevels(n_bins)
    span = knots[:, -1] - knots[:, 0]
    low = knots[:, 0].astype(X.dtype)
    scale = np.where(span > 0, n_bins * steps / np.where(span > 0, span, 1.0), 0.0).astype(X.dtype)
    run = kernels.encode_even_columns if X.flags.f_contiguous else kernels.encode_even
    missing = False
    first = 0
    while first < len(X):
        b, lane = divmod(start + first, kernels.ROWS)
        rows = X[first : first + kernels.ROWS - lane]
        out = codes[b, :, lane:]
        if even:
            missing |= bool(run(rows, low, scale, X.dtype.type(n_bins * steps), out))
        else:
            kernels.encode_knots(rows, knots, steps, out)
            missing |= bool((out[:, : len(rows)] == kernels.MISSING).any())
        first += len(rows)
    return missing


def hat_basis(n_bins: int, missing: bool = False) -> np.ndarray:
    """Hat functions u_0..u_B at every code, (256, B + 1); with ``missing`` one more column that marks NaN alone.

    Examples
    --------
    >>> hat_basis(6)[21][:3]  # half way through the first bin
    array([0.5, 0.5, 0. ])
    """
    position = np.minimum(np.arange(256) / sublevels(n_bins), n_bins)
    basis = np.maximum(0.0, 1.0 - np.abs(position[:, None] - np.arange(n_bins + 1)))
    basis[kernels.MISSING] = 0.0
    if missing:
        basis = np.hstack([basis, np.zeros((256, 1))])
        basis[kernels.MISSING, -1] = 1.0
    return basis


def block_moments(histogram: np.ndarray, basis: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Means (m, width) of the hat functions and one inverse scale per feature, from weighted histograms (m, 256) of codes."""
    mean = histogram @ basis
    second = histogram @ basis**2
    variance = np.maximum(second - mean**2, 0.0).sum(axis=1)
    return mean, _inverse_scale(variance, second.sum(axis=1))


def range_knots(low: np.ndarray, high: np.ndarray, n_bins: int) -> np.ndarray:
    """Equidistant knots (m, B + 1) between each column's least and greatest value."""
    return low[:, None] + (high - low)[:, None] * np.linspace(0.0, 1.0, n_bins + 1)
