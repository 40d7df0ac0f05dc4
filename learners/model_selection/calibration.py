"""Calibration of probabilities on out-of-fold scores."""

import numpy as np
from scipy.optimize import minimize_scalar
from scipy.special import log_softmax

from ..objective.base import effective_rows

# Candidate fractions of flipped labels, and limits of the slope (heuristic). Priors of half or
# twice the weight are not better. Without a minimum fraction, a single new row far on the wrong
# side would cost more than all other rows (benchmarks/probabilities.py).
FLIPS = (0.0025, 0.005, 0.01, 0.02, 0.04, 0.07, 0.1)
MAX_LOG_SLOPE = (np.log(0.1), np.log(3.0))


def calibrate(
    scores: np.ndarray, codes: np.ndarray, weight: np.ndarray | None = None
) -> tuple[float, float]:
    """Estimate the slope and the flip rate that convert scores to calibrated probabilities.

    With slope a and flip rate f (the assumed fraction of wrong labels), the probabilities are f +
    (1 - 2 f) / (1 + exp(-a score)) for two classes and softmax(a scores) for more than two. The
    slope and flip rate minimise the mean log loss plus a weak penalty 2 / n (ln a)^2, where n is
    the effective number of rows. There is no intercept, so the predicted labels do not change. For
    two classes, the flip rate is at least 1 / (2 n), or 0.0025 with fewer than 200 rows, since a
    sample without errors does not prove that errors never occur.

    Parameters
    ----------
    scores : ndarray of shape (n_rows,) or (n_rows, n_classes)
        Out-of-fold scores. Columns must be selected separately in each fold; otherwise, the
        probabilities are overconfident.
    codes : ndarray of shape (n_rows,), int
        Class index of each row.
    weight : ndarray of shape (n_rows,) or None, default None
        Row weights; None means equal weights.

    Returns
    -------
    slope, flip : float
        Slope a and flip rate f.

    Examples
    --------
    >>> rng = np.random.default_rng(0)
    >>> score = 2.0 * rng.standard_normal(2000)
    >>> slope, flip = calibrate(score, score + 2.0 * rng.logistic(size=2000) > 0)
    >>> round(slope, 1), flip  # scores twice as large as the log odds
    (0.5, 0.00025)
    """
    weight = np.ones(len(scores)) if weight is None else weight
    share, n = weight / weight.sum(), effective_rows(weight)
    several = scores.ndim == 2
    flips = (0.0,) if several else (min(0.5 / n, FLIPS[0]), *FLIPS)
    margin = 0.0 if several else np.where(codes, scores, -scores)

    def objective(log_slope: float, flip: float) -> float:
        slope = np.exp(log_slope)
        if several:
            log_p = log_softmax(slope * scores, axis=1)[np.arange(len(codes)), codes]
        else:
            log_p = -np.logaddexp(0.0, -slope * margin)
        if flip:
            log_p = np.log(flip + (1.0 - 2.0 * flip) * np.exp(log_p))
        return 2.0 / n * log_slope**2 - float(share @ log_p)

    fits = [
        (minimize_scalar(objective, bounds=MAX_LOG_SLOPE, args=(flip,), method="bounded"), flip)
        for flip in flips
    ]
    best, flip = min(fits, key=lambda fit: fit[0].fun)
    return float(np.exp(best.x)), flip
