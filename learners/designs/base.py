"""Base classes of designs, the interface between the solvers and the data.

A design represents a matrix with centred and scaled columns without copying it. Feature j consists
of ``width`` adjacent columns u_j(x): one column for a linear response, or B + 1 hat functions for a
piecewise-linear response with B bins. With the column means m_j and one scale s_j per feature, the
scores are

    sum_j (u_j(x_j) - m_j) s_j . coef_j

Coefficients have shape (n_features, width, n_outputs) and refer to the standardised columns;
:meth:`Design.unstandardise` converts them to the raw columns. Sums over rows are taken in blocks of
fixed size and in a fixed order, so results do not depend on the number of threads.
"""

import warnings
from copy import copy
from typing import Self

import numpy as np
import numpy.typing as npt

from ..objective.base import Loss

# Columns are compacted when fewer than one in this many stored columns remains. A copy costs as
# much as a few reads.
COMPACT_RATIO = 3
# Ratio of mean to standard deviation above which scores have fewer than six digits (heuristic)
_LOST_DIGITS = 1e10


def inverse_scale(
    variance: np.ndarray, second_moment: np.ndarray, rounding: float = 1e-12
) -> np.ndarray:
    """Compute the inverse standard deviations of columns; 0 for constant columns.

    Parameters
    ----------
    variance : ndarray of shape (m,)
        Variance of each column.
    second_moment : ndarray of shape (m,)
        Mean square of each column.
    rounding : float, default 1e-12
        Maximum ratio of variance to second moment of a column that counts as constant.

    Returns
    -------
    ndarray of shape (m,)
        Inverse standard deviations.

    Examples
    --------
    >>> inverse_scale(np.array([4.0, 0.0]), np.array([5.0, 1.0]))
    array([0.5, 0. ])
    """
    constant = variance <= rounding * np.maximum(second_moment, 1e-300)
    return np.where(constant, 0.0, 1.0 / np.sqrt(np.where(constant, 1.0, variance)))


def rounding_of(dtype: npt.DTypeLike) -> float:
    """Return the maximum ratio of variance to second moment of a constant column.

    The maximum allows for rounding in the given data type. Float32 data are usually rounded once,
    by half a unit in the last place, whereas float64 data are usually the result of several
    computations.
    """
    return float((np.finfo(dtype).eps * (1.0 if dtype == np.float32 else 4.0)) ** 2)


def check_underflow(
    mean: np.ndarray, square: np.ndarray, dtype: npt.DTypeLike = np.float64
) -> None:
    """Check that the squares of non-zero values do not underflow.

    The scale of a column whose squares underflow would be unknown.

    Parameters
    ----------
    mean, square : ndarray of shape (m,)
        Mean of the values and mean of their squares for each column.
    dtype : dtype, default float64
        Precision in which the squares were summed.

    Raises
    ------
    ValueError
        If the squares of a column underflow. The message names the first such column.
    """
    small = (square < 100 * np.finfo(dtype).tiny) & (mean != 0)
    if small.any():
        column = int(np.argmax(small))
        raise ValueError(
            f"column {column} of X contains values around {mean[column]:g}, whose squares "
            f"underflow {np.dtype(dtype)}; rescale the column"
        )


def warn_if_constant(inv: np.ndarray) -> None:
    """Warn if all selectable features are constant, that is, if all inverse scales are 0."""
    if len(inv) and not np.any(inv > 0):
        warnings.warn(
            "all columns of X that may be selected are constant, so the selection is arbitrary and "
            "the model predicts a constant",
            stacklevel=4,
        )


def warn_of_lost_digits(mean: np.ndarray, inv: np.ndarray, columns: np.ndarray) -> None:
    """Warn if a column mean is so large that scores computed from raw values lose precision."""
    ratio = np.abs(mean[:, 0]) * inv
    if len(ratio) and ratio.max() > _LOST_DIGITS:
        worst = int(ratio.argmax())
        warnings.warn(
            f"the mean of column {columns[worst]} is {ratio[worst]:.0e} times its standard "
            f"deviation, so scores lose about {np.log10(ratio[worst]):.0f} of 16 digits; "
            "subtract a constant from the column",
            stacklevel=4,
        )


class NotFiniteError(ValueError):
    """Error raised if the first pass over the data encounters NaN or infinity."""


def moments(
    total: np.ndarray, square: np.ndarray, shift: np.ndarray
) -> tuple[np.ndarray, np.ndarray]:
    """Compute means and inverse scales from the first two sums returned by :func:`first_sums`.

    Parameters
    ----------
    total, square : ndarray of shape (m,)
        Sums of w d and w d^2, where d = x - shift and the weights w sum to one.
    shift : ndarray of shape (m,)
        Offset subtracted from the data.

    Returns
    -------
    mean : ndarray of shape (m, 1)
        Mean of each column.
    inv : ndarray of shape (m,)
        Inverse standard deviations, 0 for constant columns.

    Raises
    ------
    NotFiniteError
        If the data or their squares are not finite.
    """
    if not (np.isfinite(total).all() and np.isfinite(square).all()):
        column = np.flatnonzero(~np.isfinite(total + square))[0]
        raise NotFiniteError(
            f"X contains NaN or infinity, or values whose squares overflow {shift.dtype} (first "
            f"in column {column}); expected finite values of moderate magnitude"
        )
    check_underflow(total, square, shift.dtype)
    variance = np.maximum(square - total**2, 0.0)
    mean = total + shift
    return mean[:, None], inverse_scale(variance, variance + mean**2, rounding_of(shift.dtype))


def moments_of(X: np.ndarray, sample_weight: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Compute the :func:`moments` of a dense matrix of shape (n, m).

    The values are taken relative to the first row, so that a large offset does not reduce
    precision.
    """
    shift = X[0].copy()
    with np.errstate(over="ignore", invalid="ignore"):
        centred = X - shift
        return moments(sample_weight @ centred, sample_weight @ (centred * centred), shift)


class Design:
    """Base class for designs, which compute scores and gradients for standardised columns.

    Attributes
    ----------
    n_samples, n_features, width, n_knots : int
        Number of rows, number of features, number of columns per feature, and number of these
        columns other than the column for NaN.
    mean : ndarray of shape (n_features, width)
        Mean of each column.
    inv : ndarray of shape (n_features,)
        Inverse scale of each feature; 0 for constant features.
    streams : bool
        Whether :meth:`matrix_rows` reads the data block by block, so that its memory use depends
        only on the size of the result.

    References
    ----------
    .. [1] A. Barbu, Y. She, L. Ding, G. Gramajo, "Feature Selection with Annealing for Computer
           Vision and Big Data Learning", IEEE Transactions on Pattern Analysis and Machine
           Intelligence 39, 2017, Algorithm 1 (the loop over scores, gradient and keep).
    """

    n_samples: int
    n_features: int
    width: int = 1
    n_knots: int = 1
    mean: np.ndarray
    inv: np.ndarray
    streams: bool = False
    # names of the arrays that :meth:`keep` subsets along the first axis
    per_feature: tuple[str, ...] = ("mean", "inv")

    def scores(self, coef: np.ndarray) -> np.ndarray:
        """Compute the scores for given standardised coefficients.

        Parameters
        ----------
        coef : ndarray of shape (n_features, width, n_outputs)
            Coefficients of the standardised columns.

        Returns
        -------
        ndarray of shape (n_samples, n_outputs)
            Scores without an intercept.
        """
        raise NotImplementedError

    def gradient(self, residual: np.ndarray) -> np.ndarray:
        """Compute the sum over rows of the residual times the standardised columns.

        Parameters
        ----------
        residual : ndarray of shape (n_samples, n_outputs)
            Residual, for example the gradient of a loss with respect to the scores.

        Returns
        -------
        ndarray of shape (n_features, width, n_outputs)
            Gradient with respect to the coefficients.
        """
        raise NotImplementedError

    def covariance(self, direction: np.ndarray, sample_weight: np.ndarray) -> np.ndarray:
        """Multiply the weighted covariance matrix of the standardised columns by ``direction``.

        ``direction`` has shape (n_features, width, 1).
        """
        return self.gradient(self.scores(direction) * sample_weight[:, None])

    def keep(self, kept: np.ndarray) -> Self:
        """Return a new design with a subset of the features; the original is unchanged.

        Parameters
        ----------
        kept : ndarray of int
            Indices of the remaining features in this design, in ascending order.

        Returns
        -------
        Design
            Design with only the features in ``kept``, standardised as before.
        """
        new = copy(self)
        new.n_features = len(kept)
        for name in self.per_feature:
            values = getattr(self, name)
            setattr(new, name, None if values is None else values[kept])
        return new

    def rescale(self, inv: np.ndarray) -> None:
        """Replace the inverse scales in place.

        Parameters
        ----------
        inv : ndarray of shape (n_features,)
            New inverse scales; must be non-negative.
        """
        self.inv = inv

    def has_missing(self, rows: np.ndarray) -> np.ndarray:
        """Return, for each feature, whether it is NaN in any of the rows selected by a mask.

        The result is always False for linear responses.
        """
        return np.zeros(self.n_features, bool)

    def matrix(self) -> np.ndarray:
        """Return the standardised columns of a small design.

        The matrix has shape (n_samples, n_features * width) and the precision of the data.
        """
        raise NotImplementedError

    def matrix_rows(self, rows: np.ndarray | None) -> np.ndarray:
        """Return :meth:`matrix` for all rows, or for the ascending row indices ``rows``."""
        return self.matrix() if rows is None else self.matrix()[rows]

    def scores_and_gradient(
        self,
        coef: np.ndarray,
        intercept: np.ndarray,
        loss: Loss,
        y: np.ndarray,
        sample_weight: np.ndarray,
    ) -> tuple[np.ndarray, np.ndarray, float]:
        """Compute the loss and its gradient at ``scores(coef) + intercept``.

        The data are read only once if possible.

        Parameters
        ----------
        coef : ndarray of shape (n_features, width, n_outputs)
            Coefficients of the standardised columns.
        intercept : ndarray of shape (n_outputs,)
            Intercept that is added to the scores.
        loss : Loss
            Pairwise or pointwise loss.
        y : ndarray of shape (n_samples, n_outputs)
            Targets encoded for the loss.
        sample_weight : ndarray of shape (n_samples,)
            Weights that sum to one.

        Returns
        -------
        gradient : ndarray of shape (n_features, width, n_outputs)
            Gradient with respect to the coefficients.
        residual_sum : ndarray of shape (n_outputs,)
            Gradient with respect to the intercept.
        value : float
            Value of the loss.
        """
        scores = self.scores(coef) + intercept
        value, residual = loss.value_and_gradient(y, scores, sample_weight)
        return self.gradient(residual), residual.sum(axis=0), value

    def unstandardise(
        self, coef: np.ndarray, intercept: np.ndarray
    ) -> tuple[np.ndarray, np.ndarray]:
        """Convert coefficients and intercept from standardised to raw columns.

        Parameters
        ----------
        coef : ndarray of shape (n_features, width, n_outputs)
            Coefficients of the standardised columns.
        intercept : ndarray of shape (n_outputs,)
            Intercept for the standardised columns.

        Returns
        -------
        coef : ndarray of shape (n_features, width, n_outputs)
            Coefficients of the raw columns.
        intercept : ndarray of shape (n_outputs,)
            Intercept for the raw columns.
        """
        raw = coef * self.inv[:, None, None]
        return raw, intercept - np.einsum("mw,mwq->q", self.mean, raw)

    def _standardised(self, product: np.ndarray, residual: np.ndarray) -> np.ndarray:
        """Convert the product of raw columns and residual to a standardised gradient."""
        return (product - self.mean[:, :, None] * residual.sum(axis=0)) * self.inv[:, None, None]


class FirstReadDesign(Design):
    """Design that computes the moments and the first gradient in one pass over the data."""

    per_feature = ()
    _moments: tuple[np.ndarray, np.ndarray] | None = None

    @property
    def mean(self) -> np.ndarray:  # type: ignore[override]
        """Means of the columns, of shape (n_features, width)."""
        return self._found_moments()[0]

    @property
    def inv(self) -> np.ndarray:  # type: ignore[override]
        """Inverse scale of each feature; 0 for constant features."""
        return self._found_moments()[1]

    def _found_moments(self) -> tuple[np.ndarray, np.ndarray]:
        if self._moments is None:
            self._first_read(np.zeros((self.n_samples, 1)))
        assert self._moments is not None
        return self._moments

    def rescale(self, inv: np.ndarray) -> None:
        self._moments = self.mean, inv

    def _first_read(self, residual: np.ndarray) -> np.ndarray:
        """Compute the moments, and return the gradient for a residual (n_samples, n_outputs)."""
        raise NotImplementedError
