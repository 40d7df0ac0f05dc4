"""Priors on the coefficients, summed over features and outputs.

Coefficients have the shape (n_features, width, n_outputs). The width is 1 for linear responses and
B + 1 for piecewise-linear responses, plus one if missing values have a separate coefficient, which
is shrunk but not smoothed.
"""

import numpy as np

from ..parameters import check_real
from ..sklearn_bases import BaseEstimator


class Prior(BaseEstimator):
    """Penalties on the coefficients and on the roughness of piecewise-linear responses.

    Parameters
    ----------
    shrinkage : float, default 0.0
        Non-negative factor lambda of ``lambda ||beta_j||^2``, where beta_j are the coefficients of
        feature j (eqs. (13) and (19) of [1]_). There is no factor of one half, as in the ridge
        penalty of :class:`Refinement`.
    second_order : float, default 0.0
        Non-negative factor c of the penalty on curvature, ``c sum_k (beta_{k+1} + beta_{k-1} - 2
        beta_k)^2`` (eq. (13) of [1]_), where beta_k is the coefficient of knot k.
    total_variation : float, default 0.0
        Non-negative factor q of the smoothed total variation, ``q sum_k h(beta_k - beta_{k-1})``
        (eq. (14) of [1]_). Here h(d) is d^2 / (2 ``huber``) for small differences d, and |d| -
        ``huber`` / 2 for others.
    huber : float, default 0.01
        Positive limit: h is quadratic for differences up to ``huber`` in absolute value.

    References
    ----------
    .. [1] A. Barbu, Y. She, L. Ding, G. Gramajo, "Feature Selection with Annealing for Regression,
           Classification and Ranking", arXiv:1310.2880v2 (2014).
    """

    def __init__(
        self,
        shrinkage: float = 0.0,
        second_order: float = 0.0,
        total_variation: float = 0.0,
        huber: float = 0.01,
    ):
        self.shrinkage = shrinkage
        self.second_order = second_order
        self.total_variation = total_variation
        self.huber = huber

    def check(self) -> None:
        """Check the parameters.

        Raises
        ------
        ValueError
            If a parameter is out of range.
        """
        for name in ("shrinkage", "second_order", "total_variation", "huber"):
            low = 1e-12 if name == "huber" else 0.0
            check_real(f"Prior: {name}", getattr(self, name), low)

    def value(self, coef: np.ndarray, n_knots: int) -> float:
        """Compute the sum of the penalties.

        The first ``n_knots`` coefficients of a feature are the values of its response at the knots.
        A further coefficient, if any, is the response to NaN.

        Parameters
        ----------
        coef : ndarray of shape (n_features, width)
            Coefficients of each feature.
        n_knots : int
            Number of knots: B + 1 for piecewise-linear responses with B bins, 1 for linear
            responses.

        Returns
        -------
        float
            Sum of the penalties.
        """
        total = self.shrinkage * float((coef**2).sum())
        curve = coef[:, :n_knots]
        if self.second_order and n_knots > 2:
            total += self.second_order * float((np.diff(curve, 2, axis=1) ** 2).sum())
        if self.total_variation and n_knots > 1:
            d = np.abs(np.diff(curve, axis=1))
            h = self.huber
            total += self.total_variation * float(
                np.where(d <= h, d * d / (2 * h), d - h / 2).sum()
            )
        return total

    def gradient(self, coef: np.ndarray, n_knots: int) -> np.ndarray:
        """Compute the gradient of :meth:`value`.

        Parameters
        ----------
        coef : ndarray of shape (n_features, width)
            Coefficients of each feature.
        n_knots : int
            Number of knots: B + 1 for piecewise-linear responses with B bins, 1 for linear
            responses.

        Returns
        -------
        ndarray of shape (n_features, width)
            Gradient with respect to ``coef``.
        """
        out = (2.0 * self.shrinkage) * coef
        curve = coef[:, :n_knots]
        if self.second_order and n_knots > 2:
            bend = (2.0 * self.second_order) * np.diff(curve, 2, axis=1)
            out[:, : n_knots - 2] += bend
            out[:, 1 : n_knots - 1] -= 2.0 * bend
            out[:, 2:n_knots] += bend
        if self.total_variation and n_knots > 1:
            slope = self.total_variation * np.clip(np.diff(curve, axis=1) / self.huber, -1.0, 1.0)
            out[:, 1:n_knots] += slope
            out[:, : n_knots - 1] -= slope
        return out

    def curvature(self, n_knots: int, width: int) -> np.ndarray:
        """Return an upper bound on the Hessian with respect to the coefficients of one feature.

        Parameters
        ----------
        n_knots : int
            Number of knots: B + 1 for piecewise-linear responses with B bins, 1 for linear
            responses.
        width : int
            Number of coefficients of a feature.

        Returns
        -------
        ndarray of shape (width, width)
            Upper bound (majorant) of the Hessian.
        """
        out = 2.0 * self.shrinkage * np.eye(width)
        if self.second_order and n_knots > 2:
            second = np.diff(np.eye(n_knots), 2, axis=0)
            out[:n_knots, :n_knots] += 2.0 * self.second_order * second.T @ second
        if self.total_variation and n_knots > 1:
            first = np.diff(np.eye(n_knots), axis=0)
            out[:n_knots, :n_knots] += self.total_variation / self.huber * first.T @ first
        return out
