"""Probabilities calibrated by out-of-fold scores."""

import numpy as np
from scipy.optimize import minimize_scalar
from scipy.special import log_softmax

from ..objective.base import effective_rows

# Candidates for the share of labels on the wrong side, and limits of the slope: choices. Priors of
# half and of twice the weight are no better (benchmarks/probabilities.py)
FLIPS = (0.0, 0.0025, 0.005, 0.01, 0.02, 0.04, 0.07, 0.1)
MAX_LOG_SLOPE = (np.log(0.1), np.log(3.0))


def calibrate(
    scores: np.ndarray, codes: np.ndarray, weight: np.ndarray | None = None
) -> tuple[float, float]:
    """Slope a and flip f of probabilities: f + (1 - 2 f) / (1 + exp(-a score)) of two classes,
    softmax(a scores) of several.

    They minimise the mean log loss + 2 / n (ln a)^2, a weak prior. There is no intercept, so the
    predicted labels do not change.

    Parameters
    ----------
    scores : ndarray of shape (n_rows,) or (n_rows, n_classes)
        Out-of-fold scores; the columns are selected separately in each fold, otherwise the
        probabilities are overconfident.
    codes : ndarray of shape (n_rows,), int
        Class of each row, 0, 1, ...
    weight : ndarray of shape (n_rows,) or None, default None

    Returns
    -------
    slope, flip : float

    Examples
    --------
    >>> rng = np.random.default_rng(0)
    >>> score = 2.0 * rng.standard_normal(2000)
    >>> slope, flip = calibrate(score, score + 2.0 * rng.logistic(size=2000) > 0)
    >>> round(slope, 1), flip  # scores twice as large as the log odds
    (0.5, 0.0)
    """
    weight = np.ones(len(scores)) if weight is None else weight
    share, prior = weight / weight.sum(), 2.0 / effective_rows(weight)
    several = scores.ndim == 2
    margin = 0.0 if several else np.where(codes, scores, -scores)

    def objective(log_slope: float, flip: float) -> float:
        slope = np.exp(log_slope)
        if several:
            log_p = log_softmax(slope * scores, axis=1)[np.arange(len(codes)), codes]
        else:
            log_p = -np.logaddexp(0.0, -slope * margin)
        if flip:
            log_p = np.log(flip + (1.0 - 2.0 * flip) * np.exp(log_p))
        return prior * log_slope**2 - float(share @ log_p)

    fits = [
        (minimize_scalar(objective, bounds=MAX_LOG_SLOPE, args=(flip,), method="bounded"), flip)
        for flip in (FLIPS[:1] if several else FLIPS)
    ]
    best, flip = min(fits, key=lambda fit: fit[0].fun)
    return float(np.exp(best.x)), flip
