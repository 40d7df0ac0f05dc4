"""Linear and piecewise-linear responses to a feature, and the knots of piecewise-linear ones."""

import numpy as np

from ..compilation import parallel_ranges
from ..parameters import check_choice, check_integer
from ..sklearn_bases import BaseEstimator

# number of values sorted together; the values and their order take about 8 MB each
_SORTED_VALUES = 1 << 20
_ROWS = 1 << 14  # rows copied at a time, to drop those of zero weight


class PiecewiseLinear(BaseEstimator):
    """Settings of piecewise-linear responses: number and positions of their knots.

    The response of a feature is its contribution to the score ([1]_). A fitted estimator has three
    attributes for its k selected columns: ``knots_`` of shape (k, n_bins + 1); ``responses_`` of
    shape (k, n_bins + 1, n_scores), the values at the knots, whose mean over the training rows is
    zero; and ``missing_responses_`` of shape (k, n_scores), the values for NaN (0 if the column had
    no NaN in training).

    Parameters
    ----------
    n_bins : int, default 6
        Number B of bins, from 1 to 126. A response has B + 1 knots and is linear between
        consecutive knots.
    bins : {"range", "quantile"}, default "range"
        Positions of the knots. "range" means equidistant between the minimum and maximum of each
        column, and "quantile" means at its quantiles.

    References
    ----------
    .. [1] A. Barbu, Y. She, L. Ding, G. Gramajo, "Feature Selection with Annealing for Regression,
           Classification and Ranking", arXiv:1310.2880v2 (2014), section 4.1.

    Examples
    --------
    >>> import numpy as np
    >>> from annealed.learners import PiecewiseLinear
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
            If a parameter is out of range.
        """
        check_integer("n_bins", self.n_bins, 1, 126)
        check_choice("bins", self.bins, ("range", "quantile"))

    def knots(self, X: np.ndarray, sample_weight: np.ndarray) -> np.ndarray:
        """Compute the ascending knots of each column.

        The knots are equidistant between the minimum and maximum of the column, or its weighted
        quantiles at the levels b / n_bins for b = 0, ..., n_bins. If ties make quantiles coincide,
        the knots are quantiles of the distinct values.

        Parameters
        ----------
        X : ndarray of shape (n_samples, n_features)
            Values; NaN is ignored.
        sample_weight : ndarray of shape (n_samples,)
            Row weights; rows of weight zero are ignored.

        Returns
        -------
        ndarray of shape (n_features, n_bins + 1)
            Knots. A column that contains only NaN has knots from 0 to 1. All knots of a constant
            column are equal to its value.

        Raises
        ------
        ValueError
            If a column contains infinity.
        """
        if self.bins == "range":
            low, high = np.full(X.shape[1], np.inf, X.dtype), np.full(X.shape[1], -np.inf, X.dtype)
            add_ranges(X, sample_weight, low, high)
            return even_knots(low, high, self.n_bins)
        knots = np.empty((X.shape[1], self.n_bins + 1))
        parallel_ranges(_quantiles, X.shape[1], X, sample_weight, knots)
        _check_finite(knots)
        return knots


def as_response(response: str | PiecewiseLinear, n_bins: int = 6) -> PiecewiseLinear | None:
    """Convert the name of a response to an object.

    Parameters
    ----------
    response : {"linear", "piecewise"} or PiecewiseLinear
        Name of a response, or a response object.
    n_bins : int, default 6
        Number B of bins for "piecewise".

    Returns
    -------
    PiecewiseLinear or None
        Response object, or None for linear responses.

    Raises
    ------
    ValueError
        If the response is unknown, or a parameter is out of range.
    """
    if isinstance(response, PiecewiseLinear):
        response.check()
        return response
    if not isinstance(response, str) or response not in ("linear", "piecewise"):
        raise ValueError(
            f"response={response!r} is not valid; "
            "expected 'linear', 'piecewise' or a PiecewiseLinear"
        )
    return PiecewiseLinear(n_bins) if response == "piecewise" else None


def width_of(response: PiecewiseLinear | None) -> int:
    """Return the number of columns per feature, excluding the column for NaN.

    This is the number of knots for piecewise-linear responses, and 1 for linear responses.
    """
    return 1 if response is None else response.n_bins + 1


def even_knots(low: np.ndarray, high: np.ndarray, n_bins: int) -> np.ndarray:
    """Compute equidistant knots between the minimum and maximum of each column.

    Parameters
    ----------
    low, high : ndarray of shape (m,)
        Minimum and maximum of each column. For a column that contains only NaN, ``low`` exceeds
        ``high``.
    n_bins : int
        Number B of bins.

    Returns
    -------
    ndarray of shape (m, B + 1)
        Knots. Columns that contain only NaN have knots from 0 to 1.

    Raises
    ------
    ValueError
        If a column contains infinity.
    """
    empty = low > high
    low, high = np.where(empty, 0.0, low), np.where(empty, 1.0, high)
    _check_finite(np.column_stack([low, high]))
    return low[:, None] + (high - low)[:, None] * np.linspace(0.0, 1.0, n_bins + 1)


def _check_finite(knots: np.ndarray) -> None:
    wrong = np.flatnonzero(~np.isfinite(knots).all(axis=1))
    if len(wrong):
        raise ValueError(
            f"X contains infinity (in column {wrong[0]}); "
            "response='piecewise' requires finite numbers or NaN"
        )


def add_ranges(X: np.ndarray, weight: np.ndarray, low: np.ndarray, high: np.ndarray) -> None:
    """Update the minimum and maximum of each column in place with more rows.

    NaN and rows of zero weight are ignored.
    """
    for first in range(0, len(X), _ROWS):
        rows, used = X[first : first + _ROWS], weight[first : first + _ROWS] > 0
        rows = rows if used.all() else rows[used]
        np.fmin(low, np.fmin.reduce(rows, axis=0, initial=np.inf), out=low)
        np.fmax(high, np.fmax.reduce(rows, axis=0, initial=-np.inf), out=high)


def _quantiles(begin: int, end: int, X: np.ndarray, weight: np.ndarray, out: np.ndarray) -> None:
    """Write the weighted quantiles of the columns ``begin`` .. ``end - 1`` to ``out`` (m, B + 1).

    If ties make quantiles coincide, the quantiles of the distinct values are written.
    """
    shares, used = np.linspace(0.0, 1.0, out.shape[1]), weight > 0
    step = max(1, _SORTED_VALUES // len(X))
    for first in range(begin, end, step):
        part = X[:, first : min(end, first + step)]
        columns = np.ascontiguousarray((part if used.all() else part[used]).T, dtype=np.float64)
        order = np.argsort(columns, axis=1)  # NaN comes last
        columns = np.take_along_axis(columns, order, axis=1)
        below = np.cumsum(np.where(np.isnan(columns), 0.0, weight[used][order]), axis=1)
        for j, (values, mass) in enumerate(zip(columns, below), first):
            if mass[-1] == 0:
                out[j] = shares
                continue
            out[j] = values[np.searchsorted(mass, mass[-1] * (shares - 1e-9))]
            if (np.diff(out[j]) <= 0).any():
                values = np.unique(values[~np.isnan(values)])
                rank = np.arange(len(shares)) * (len(values) - 1) / (len(shares) - 1)
                floor = rank.astype(int)
                share = rank - floor
                out[j] = (
                    values[floor] * (1.0 - share)
                    + values[np.minimum(floor + 1, len(values) - 1)] * share
                )
