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
