"""Responses of the scores to one feature: a line, or a piecewise-linear function."""

from __future__ import annotations

from numbers import Integral

import numpy as np
from sklearn.base import BaseEstimator

from .knots import knots


class PiecewiseLinear(BaseEstimator):
    """Piecewise-linear responses, and where their knots lie.

    Parameters
    ----------
    n_bins : int, default 6
        B, 1 to 126: a response is linear between B + 1 knots.
    bins : {"range", "quantile"}, default "range"
        Knots equidistant between each column's least and greatest value, or at its quantiles.

    References
    ----------
    .. [1] A. Barbu, Y. She, L. Ding, G. Gramajo, "Feature Selection with Annealing for Regression, Classification and Ranking",
       arXiv:1310.2880v2 (2014), section 4.1.

    Examples
    --------
    >>> import numpy as np
    >>> PiecewiseLinear(n_bins=2).knots(np.array([[0.0], [1.0], [4.0]]), np.ones(3))
    array([[0., 2., 4.]])
    """

    def __init__(self, n_bins: int = 6, bins: str = "range"):
        self.n_bins = n_bins
        self.bins = bins

    def check(self) -> None:
        """Check the parameters.

        Raises
        ------
        ValueError
            Naming the parameter, its value and what was expected.
        """
        if not isinstance(self.n_bins, Integral) or isinstance(self.n_bins, bool) or not 1 <= self.n_bins <= 126:
            raise ValueError(f"n_bins={self.n_bins!r} is not valid; expected an integer from 1 to 126")
        if self.bins not in ("range", "quantile"):
            raise ValueError(f"bins={self.bins!r} is not valid; expected 'range' or 'quantile'")

    def knots(self, X: np.ndarray, sample_weight: np.ndarray) -> np.ndarray:
        """Ascending knots (n_features, B + 1) of each column, see `annealed.learners.designs.knots.knots`.

        Parameters
        ----------
        X : ndarray of shape (n_samples, n_features)
            Columns.
        sample_weight : ndarray of shape (n_samples,)
            Weights of the rows.

        Returns
        -------
        ndarray of shape (n_features, n_bins + 1)
            The knots.
        """
        return knots(X, sample_weight, self.n_bins, self.bins)


def as_response(response: str | PiecewiseLinear, n_bins: int = 6) -> PiecewiseLinear | None:
    """The response as an object.

    Parameters
    ----------
    response : {"linear", "piecewise"} or PiecewiseLinear
    n_bins : int, default 6
        B of "piecewise".

    Returns
    -------
    PiecewiseLinear or None
        None for linear responses.

    Raises
    ------
    ValueError
        For anything else, and for parameters out of range.
    """
    if isinstance(response, PiecewiseLinear):
        response.check()
        return response
    if not isinstance(response, str) or response not in ("linear", "piecewise"):
        raise ValueError(f"response={response!r} is not valid; expected 'linear', 'piecewise' or a PiecewiseLinear")
    return PiecewiseLinear(n_bins) if response == "piecewise" else None
