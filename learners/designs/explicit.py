"""Explicit matrix of standardised columns, used for small data without compilation."""

from typing import Self

import numpy as np

from . import kernels
from .base import Design, inverse_scale
from .piecewise_linear import encoded, evenly_spaced, hat_basis


class ExplicitDesign(Design):
    """Design that stores the matrix of all standardised columns in memory.

    Scores and gradients are BLAS products. Other designs give the same results without forming the
    matrix; tests compare them with this design.

    Parameters
    ----------
    columns : ndarray of shape (n_features, width, n_samples)
        Standardised columns in the precision of the data. The values of a column are contiguous, so
        that dropping columns is cheap.
    mean : ndarray of shape (n_features, width)
        Mean of each column.
    inv : ndarray of shape (n_features,)
        Inverse scale of each feature.
    n_knots : int, default 1
        Number of columns per feature other than the column for NaN.
    knots : ndarray of shape (n_features, n_knots) or None, default None
        Knots of each feature; None for linear responses.
    missing : ndarray of shape (n_features, n_samples), bool, or None, default None
        Mask of the NaN values.
    """

    per_feature = ("columns", "mean", "inv", "knots", "missing")

    def __init__(
        self,
        columns: np.ndarray,
        mean: np.ndarray,
        inv: np.ndarray,
        n_knots: int = 1,
        knots: np.ndarray | None = None,
        missing: np.ndarray | None = None,
    ):
        self.n_features, self.width, self.n_samples = columns.shape
        self.columns, self.mean, self.inv = columns, mean, inv
        self.n_knots, self.knots, self.missing = n_knots, knots, missing

    @classmethod
    def linear(cls, X: np.ndarray, mean: np.ndarray, inv: np.ndarray) -> Self:
        """Create a design of linear terms from a dense matrix and the moments of its columns."""
        with np.errstate(over="ignore", invalid="ignore"):
            columns = X.T - mean.astype(X.dtype)
            columns -= (mean - mean.astype(X.dtype)).astype(X.dtype)  # 0 in float64
        columns *= inv.astype(X.dtype)[:, None]
        return cls(np.ascontiguousarray(columns)[:, None], mean, inv)

    @classmethod
    def piecewise_linear(cls, X: np.ndarray, knots: np.ndarray, sample_weight: np.ndarray) -> Self:
        """Create a design with piecewise-linear responses.

        Values are rounded to the one-byte codes that larger designs use.
        """
        n_samples, n_features = X.shape
        blocks, has_missing = encoded(X, knots, evenly_spaced(knots))
        codes = blocks.transpose(1, 0, 2).reshape(n_features, -1)[:, :n_samples]
        basis = hat_basis(knots.shape[1] - 1, has_missing)
        mean, second = np.empty((2, n_features, basis.shape[1]))
        columns = np.empty((n_features, basis.shape[1], n_samples), X.dtype)
        for j in range(n_features):
            values = basis[codes[j]]
            mean[j], second[j] = sample_weight @ values, sample_weight @ values**2
            columns[j] = (values - mean[j]).T
        inv = inverse_scale(np.maximum(second - mean**2, 0.0).sum(axis=1), second.sum(axis=1))
        columns *= inv.astype(X.dtype)[:, None, None]
        return cls(
            columns,
            mean,
            inv,
            knots.shape[1],
            knots,
            codes == kernels.MISSING if has_missing else None,
        )

    def rescale(self, inv: np.ndarray) -> None:
        ratio = np.where(self.inv > 0, inv / np.where(self.inv > 0, self.inv, 1.0), 0.0)
        self.columns = self.columns * ratio.astype(self.columns.dtype)[:, None, None]
        self.inv = inv

    def _flat(self) -> np.ndarray:
        return self.columns.reshape(-1, self.n_samples)

    def scores(self, coef: np.ndarray) -> np.ndarray:
        flat = coef.reshape(-1, coef.shape[2]).astype(self.columns.dtype)
        return (self._flat().T @ flat).astype(np.float64)

    def gradient(self, residual: np.ndarray) -> np.ndarray:
        product = self._flat() @ residual.astype(self.columns.dtype)
        return product.astype(np.float64).reshape(self.n_features, self.width, -1)

    def has_missing(self, rows: np.ndarray) -> np.ndarray:
        return (
            np.zeros(self.n_features, bool)
            if self.missing is None
            else np.asarray(self.missing[:, rows].any(axis=1))
        )

    def matrix(self) -> np.ndarray:
        return np.array(self._flat().T, order="C")
