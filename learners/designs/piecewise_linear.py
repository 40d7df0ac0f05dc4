"""Piecewise-linear responses computed from one-byte codes."""

from typing import Any, Self

import numpy as np
import numpy.typing as npt

from ..compilation import parallel_ranges
from ..parameters import check_integer
from . import kernels
from .base import COMPACT_RATIO, Design, inverse_scale


class CodedDesign(Design):
    """Base class for designs with piecewise-linear responses computed from one-byte codes.

    A subclass stores the codes. It implements sums of table entries (``_table_scores``), histograms
    (``_histograms``) and access to the codes of a feature (``_codes_of``).
    """

    dtype: Any = np.float32

    def _set_bins(self, n_bins: int, missing: bool) -> None:
        self.n_bins, self.n_knots, self.width = n_bins, n_bins + 1, n_bins + 1 + missing
        self.basis = hat_basis(n_bins, missing)

    def _table_scores(self, table: np.ndarray) -> np.ndarray:
        """Sum ``table[j, c_ij]`` over the features j, where c_ij is the code of row i."""
        raise NotImplementedError

    def _histograms(self, column: np.ndarray) -> np.ndarray:
        """Sum the entries of a column (n_samples,) by feature and code, as an array (m, 256)."""
        raise NotImplementedError

    def _codes_of(self, feature: int) -> np.ndarray:
        """Return the codes (n_samples,) of one feature."""
        raise NotImplementedError

    def has_missing(self, rows: np.ndarray) -> np.ndarray:
        return np.array(
            [(self._codes_of(j)[rows] == kernels.MISSING).any() for j in range(self.n_features)],
            bool,
        )

    def matrix(self) -> np.ndarray:
        table = ((self.basis - self.mean[:, None]) * self.inv[:, None, None]).astype(self.dtype)
        out = np.empty((self.n_samples, self.n_features, self.width), self.dtype)
        for j in range(self.n_features):
            out[:, j] = table[j, self._codes_of(j)]
        return out.reshape(self.n_samples, -1)

    def scores(self, coef: np.ndarray) -> np.ndarray:
        out = np.zeros((self.n_samples, coef.shape[2]))
        if not coef.any():  # at the start of annealing
            return out
        raw = coef * self.inv[:, None, None]
        for q in range(coef.shape[2]):
            scores = self._table_scores((raw[:, :, q] @ self.basis.T).astype(self.dtype))
            out[:, q] = scores - (self.mean * raw[:, :, q]).sum()
        return out

    def gradient(self, residual: np.ndarray) -> np.ndarray:
        columns = [self._histograms(residual[:, q]) @ self.basis for q in range(residual.shape[1])]
        return self._standardised(np.stack(columns, axis=2), residual)


class PiecewiseDesign(CodedDesign):
    """Design with piecewise-linear responses ([1]_, section 4.1) and one-byte codes in memory.

    The code of a value is its position between the knots, in steps of 1 / ``sublevels`` bins. The
    expanded matrix is never formed.

    Parameters
    ----------
    codes : ndarray of shape (n_blocks, n_features, kernels.ROWS), uint8
        Codes of the values. Padding rows have code 0. Dropped features remain stored until few
        features are left.
    n_samples : int
        Number of rows.
    n_bins : int
        Number B of bins, from 1 to 126.
    missing : bool
        Whether NaN has a separate coefficient.
    sample_weight : ndarray of shape (n_samples,) or None
        Weights that sum to one; not needed if the moments are known.
    dtype : dtype, default float32
        Precision of the tables and of the sums over features.
    moments : (ndarray, ndarray) or None, default None
        Known means, of shape (m, width), and inverse scales, of shape (m,), for example those of a
        larger matrix of which the rows are a part.
    features : ndarray of int or None, default None
        Indices of the features of ``codes`` to use, in the order of ``moments`` and ``knots``; by
        default, all features.
    knots : ndarray of shape (m, B + 1) or None, default None
        Knots that define the codes.

    References
    ----------
    .. [1] A. Barbu, Y. She, L. Ding, G. Gramajo, "Feature Selection with Annealing for Regression,
           Classification and Ranking", arXiv:1310.2880v2 (2014), section 4.1.
    """

    per_feature = ("mean", "inv", "features", "knots")

    def __init__(
        self,
        codes: np.ndarray,
        n_samples: int,
        n_bins: int,
        missing: bool,
        sample_weight: np.ndarray | None,
        dtype: npt.DTypeLike = np.float32,
        *,
        moments: tuple[np.ndarray, np.ndarray] | None = None,
        features: np.ndarray | None = None,
        knots: np.ndarray | None = None,
    ):
        self.codes = codes
        self.features = np.arange(codes.shape[1]) if features is None else features
        self.dtype, self.knots = dtype, knots
        self.n_samples, self.n_features = n_samples, len(self.features)
        self._set_bins(n_bins, missing)
        if moments is None:
            moments = block_moments(self._histograms(sample_weight), self.basis)  # type: ignore[arg-type]
        self.mean, self.inv = moments

    @classmethod
    def from_matrix(
        cls,
        X: np.ndarray,
        knots: np.ndarray,
        sample_weight: np.ndarray,
        missing: bool | None = None,
    ) -> Self:
        """Encode a dense matrix of m columns with ascending knots, of shape (m, n_bins + 1).

        If ``missing`` is None, it is determined from X.
        """
        codes, has_missing = encoded(X, knots, evenly_spaced(knots))
        return cls(
            codes,
            len(X),
            knots.shape[1] - 1,
            has_missing if missing is None else missing,
            sample_weight,
            X.dtype,
            knots=knots,
        )

    def _histograms(self, column: np.ndarray) -> np.ndarray:
        return histograms(self.codes, self.features, np.asarray(column, np.float64))

    def _codes_of(self, feature: int) -> np.ndarray:
        return self.codes[:, self.features[feature]].ravel()[: self.n_samples]

    def _table_scores(self, table: np.ndarray) -> np.ndarray:
        total = np.zeros((self.codes.shape[0], kernels.ROWS), self.dtype)
        parallel_ranges(
            kernels.table_scores, len(self.codes), self.codes, self.features, table, total
        )
        return total.ravel()[: self.n_samples]

    def keep(self, kept: np.ndarray) -> Self:
        new = super().keep(kept)
        if COMPACT_RATIO * len(kept) < self.codes.shape[1]:
            new.codes = np.take(self.codes, new.features, axis=1)
            new.features = np.arange(len(kept))
        return new

    def stored_columns(self, positions: np.ndarray) -> np.ndarray:
        """Return the codes of the features at ``positions``."""
        return self.codes[:, self.features[positions]]


def in_blocks(column: np.ndarray) -> np.ndarray:
    """Reshape a column to blocks of rows, of shape (n_blocks, ROWS), padded with zeros."""
    padded = np.zeros((-(-len(column) // kernels.ROWS), kernels.ROWS), column.dtype)
    padded.ravel()[: len(column)] = column
    return padded


def histograms(codes: np.ndarray, features: np.ndarray, column: np.ndarray) -> np.ndarray:
    """For each feature and each code, sum the entries of ``column`` over the rows with this code.

    ``codes`` has shape (n_blocks, m, ROWS), and ``features`` contains f indices along its second
    axis. The result has shape (f, 256).
    """
    out = np.empty((len(features), 256))
    parallel_ranges(
        kernels.table_histograms, (len(features) + 1) // 2, codes, features, in_blocks(column), out
    )
    return out


def sublevels(n_bins: int) -> int:
    """Compute the number of steps per bin, so that all codes are at most 252.

    Parameters
    ----------
    n_bins : int
        Number B of bins, from 1 to 126.

    Returns
    -------
    int
        252 // B.

    Raises
    ------
    ValueError
        If ``n_bins`` is not in 1..126.
    """
    check_integer("n_bins", n_bins, 1, 126)
    return 252 // n_bins


def evenly_spaced(knots: np.ndarray) -> bool:
    """Return whether the knots of every column are equidistant up to rounding."""
    span = knots[:, -1:] - knots[:, :1]
    gap = np.abs(np.diff(knots, axis=1) - span / (knots.shape[1] - 1))
    return bool(gap.max(initial=0.0) <= 1e-9 * np.abs(knots).max(initial=0.0))


def encode(X: np.ndarray, knots: np.ndarray, even: bool, codes: np.ndarray, start: int = 0) -> bool:
    """Encode rows of a matrix.

    Parameters
    ----------
    X : ndarray of shape (n, m)
        Rows, row- or column-major; may contain NaN.
    knots : ndarray of shape (m, B + 1)
        Ascending knots.
    even : bool
        Whether the knots are equidistant.
    codes : ndarray of shape (n_blocks, m, kernels.ROWS), uint8
        Output array.
    start : int, default 0
        Position of the first row of X among the rows of ``codes``.

    Returns
    -------
    bool
        Whether X contains NaN.
    """
    n_bins = knots.shape[1] - 1
    steps = sublevels(n_bins)
    span = knots[:, -1] - knots[:, 0]
    scale = np.where(span > 0, n_bins * steps / np.where(span > 0, span, 1.0), 0.0)
    line = knots[:, 0].astype(X.dtype), scale.astype(X.dtype), X.dtype.type(n_bins * steps)
    run = kernels.encode_even_columns if X.flags.f_contiguous else kernels.encode_even
    first_block, end_block = start // kernels.ROWS, -(-(start + len(X)) // kernels.ROWS)
    missing = np.zeros(end_block - first_block, bool)

    def encode_blocks(begin: int, end: int) -> None:
        for b in range(begin, end):
            first, stop = (max(0, (first_block + i) * kernels.ROWS - start) for i in (b, b + 1))
            rows, block = X[first:stop], codes[first_block + b]
            lane = (start + first) % kernels.ROWS
            # Kernels write whole words, starting at the first lane
            out = np.zeros_like(block) if lane else block
            if even:
                missing[b] = run(rows, *line, out)
            else:
                kernels.encode_knots(rows, knots, steps, out)
                missing[b] = (out[:, : len(rows)] == kernels.MISSING).any()
            if lane:
                block[:, lane : lane + len(rows)] = out[:, : len(rows)]

    parallel_ranges(encode_blocks, len(missing))
    return bool(missing.any())


def encoded(X: np.ndarray, knots: np.ndarray, even: bool) -> tuple[np.ndarray, bool]:
    """Return the codes of all rows, and whether X contains NaN."""
    codes = np.zeros((-(-len(X) // kernels.ROWS), X.shape[1], kernels.ROWS), np.uint8)
    return codes, encode(X, knots, even, codes)


def hat_basis(n_bins: int, missing: bool = False) -> np.ndarray:
    """Evaluate the hat functions u_0, ..., u_B at every code.

    Parameters
    ----------
    n_bins : int
        Number B of bins, from 1 to 126.
    missing : bool, default False
        Whether to add a column that is 1 for NaN and 0 otherwise.

    Returns
    -------
    ndarray of shape (256, B + 1 + missing)
        One row per code.

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
    """Compute the means of the hat functions, and one inverse scale per feature.

    Parameters
    ----------
    histogram : ndarray of shape (m, 256)
        Total weight of the rows with each code, for each feature.
    basis : ndarray of shape (256, width)
        Basis from :func:`hat_basis`.

    Returns
    -------
    mean : ndarray of shape (m, width)
        Mean of each hat function.
    inv : ndarray of shape (m,)
        Inverse square root of the summed variances; 0 for constant features.
    """
    mean = histogram @ basis
    second = histogram @ basis**2
    variance = np.maximum(second - mean**2, 0.0).sum(axis=1)
    return mean, inverse_scale(variance, second.sum(axis=1))
