"""Where the knots of piecewise-linear responses lie."""

from __future__ import annotations

import numpy as np
from numba import njit, prange


def knots(X: np.ndarray, sample_weight: np.ndarray, n_bins: int, bins: str = "range") -> np.ndarray:
    """Ascending knots of each column.

    Parameters
    ----------
    X : ndarray of shape (n_samples, n_features)
        May hold NaN, which is left out.
    sample_weight : ndarray of shape (n_samples,)
        Rows of weight zero are left out.
    n_bins : int
        B.
    bins : {"range", "quantile"}
        Equidistant from the least to the greatest value (arXiv text, section 4.1), or at the weighted quantiles b / B; where many
        equal values make quantiles coincide, equidistant in the rank among the DIFFERENT values.

    Returns
    -------
    ndarray of shape (n_features, B + 1)
        A column without any value gets 0..1, a constant one B + 1 times its value.
    """
    out = np.empty((X.shape[1], n_bins + 1))
    if bins == "quantile":
        _quantiles(X, sample_weight, out)
    else:
        low, high = _ranges(X, sample_weight)
        out[:] = low[:, None] + (high - low)[:, None] * np.linspace(0.0, 1.0, n_bins + 1)
    return out


@njit(cache=True)
def _ranges(X, weight):
    n, m = X.shape
    low, high = np.full(m, np.inf), np.full(m, -np.inf)
    for i in range(n):
        if weight[i] > 0:
            for j in range(m):
                x = X[i, j]
                if x < low[j]:
                    low[j] = x
                if x > high[j]:
                    high[j] = x
    for j in range(m):
        if low[j] > high[j]:
            low[j], high[j] = 0.0, 1.0
    return low, high


@njit(cache=True, parallel=True)
def _quantiles(X, weight, out):
    n, m = X.shape
    n_knots = out.shape[1]
    for j in prange(m):
        values, mass, d = np.empty(n), np.empty(n), 0
        column = X[:, j].copy()
        for i in np.argsort(column):  # NaN comes last
            x = column[i]
            if np.isnan(x) or weight[i] <= 0:
                continue
            if d == 0 or x > values[d - 1]:
                values[d], mass[d] = x, 0.0
                d += 1
            mass[d - 1] += weight[i]
        if d == 0:
            out[j] = np.linspace(0.0, 1.0, n_knots)
            continue
        total = mass[:d].sum()
        at, below, strict = 0, mass[0], True
        for b in range(n_knots):
            while at < d - 1 and below < total * (b / (n_knots - 1) - 1e-9):
                at += 1
                below += mass[at]
            out[j, b] = values[at]
            if b > 0 and out[j, b] <= out[j, b - 1]:
                strict = False
        if not strict:
            for b in range(n_knots):
                place = b * (d - 1) / (n_knots - 1)
                floor = min(int(place), d - 1)
                part = place - floor
                above = min(floor + 1, d - 1)
                out[j, b] = values[floor] * (1.0 - part) + values[above] * part
