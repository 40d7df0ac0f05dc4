"""Conversion of classifiers to cascades: order of the features and rejection thresholds."""

from collections.abc import Callable
from dataclasses import replace

import numpy as np

from .....models.keypoints.windows.window_models import KeypointModel
from .....vision.windows import Column, FeaturePool

_ORDER_ROWS = 2000  # number of windows used to compute the order of the features (heuristic)
# number of Haar features that take as long as the orientation histograms of one window (measured)
_HISTOGRAMS = 150.0
# numbers of leading Haar features that are tried, which are the ends of the scan's stages
_PLAIN = (8, 24, 56, 120, 248, 504)
# shares of positive windows that a threshold rejects, tried in turn
_SHARES = (0.001, 0.0025, 0.005, 0.0075, 0.01, 0.015, 0.02, 0.03, 0.05)


def with_order(
    model: KeypointModel,
    pool: FeaturePool,
    positives: np.ndarray,
    negatives: np.ndarray,
    plain: int = 0,
) -> KeypointModel:
    """Order the features greedily by how well they separate negatives from positives.

    The separation of a set of features is the difference between the two class means of their
    summed responses, divided by the square root of the sum of the two class variances. Each
    successive feature is chosen to maximise the separation on an evenly spaced subset of the
    windows, which are given as patches of shape (n, 26, 26, 3). In the result, the first ``plain``
    features are Haar features, the scores are the same up to rounding, and the rejection thresholds
    are reset so that no window is rejected.
    """
    responses = []
    for patches in (positives, negatives):
        step = max(1, len(patches) // _ORDER_ROWS)
        sums = model.partial_scores(patches[::step], pool).astype(np.float64)
        responses.append(np.diff(sums, axis=1, prepend=model.intercept))
    order = separation_order(*responses)
    if plain:
        haar = np.flatnonzero(model.features[:, Column.KIND] < len(pool.kinds))
        first = haar[separation_order(*(part[:, haar] for part in responses))][:plain]
        order = np.concatenate([first, order[~np.isin(order, first)]])
    return replace(model.take(order), thresholds=np.full(len(order), -np.inf, np.float32))


def separation_order(positives: np.ndarray, negatives: np.ndarray) -> np.ndarray:
    """Return a greedy order of the columns of two matrices of responses; see :func:`with_order`.

    Examples
    --------
    >>> noise = np.array([[0.1], [-0.1]])
    >>> up = np.array([[0.0, 2.0, 1.0]]) + noise
    >>> separation_order(up, -np.array([[0.0, 2.0, 1.0]]) + noise)
    array([1, 2, 0])
    """
    gain = positives.mean(axis=0) - negatives.mean(axis=0)
    covariance = np.cov(positives, rowvar=False, bias=True) + np.cov(
        negatives, rowvar=False, bias=True
    )
    n = len(gain)
    left, order = np.ones(n, bool), np.empty(n, np.int64)
    # Gain and variance of the current sum, and its covariance with every column.
    total, variance, cross = 0.0, 0.0, np.zeros(n)
    variances = np.diag(covariance)
    least = 1e-12 + 1e-3 * variances.max()
    for t in range(n):
        quality = (total + gain) / np.sqrt(
            np.maximum(variance + 2 * cross + variances, 0.0) + least
        )
        best = int(np.argmax(np.where(left, quality, -np.inf)))
        order[t], left[best] = best, False
        total += gain[best]
        variance += 2 * cross[best] + variances[best]
        cross = cross + covariance[best]
    return order


def cheapest_order(
    model: KeypointModel,
    pool: FeaturePool,
    positives: np.ndarray,
    negatives: np.ndarray,
    thresholds: Callable[[KeypointModel], KeypointModel],
    after: float,
) -> KeypointModel:
    """Order the features and set the rejection thresholds to minimise the mean cost per window.

    Each evaluated feature costs 1, the first histogram feature of a window costs an additional 150,
    and a window that is not rejected costs ``after``. Evaluating Haar features first may therefore
    reduce the cost, so several numbers of leading Haar features are tried. The mean is taken over
    ``negatives``. ``thresholds`` is a function that takes a model and returns it with rejection
    thresholds.
    """
    n_haar = int(np.count_nonzero(model.features[:, Column.KIND] < len(pool.kinds)))
    trials = []
    for plain in [0, *(n for n in _PLAIN if n < n_haar), n_haar]:
        trial = thresholds(with_order(model, pool, positives, negatives, plain))
        trials.append((expected_cost(trial, pool, negatives, after), trial))
    return min(trials, key=lambda trial: trial[0])[1]


def expected_cost(
    model: KeypointModel, pool: FeaturePool, windows: np.ndarray, after: float = 0.0
) -> float:
    """Compute the mean cost per window, as defined in :func:`cheapest_order`."""
    sums = model.partial_scores(windows, pool)
    left = np.logical_and.accumulate(sums >= model.thresholds, axis=1).mean(axis=0)
    entered = np.concatenate([[1.0], left])
    hog = np.flatnonzero(model.features[:, Column.KIND] == len(pool.kinds))
    return float(
        entered[:-1].sum()
        + (_HISTOGRAMS * entered[hog[0]] if len(hog) else 0.0)
        + after * entered[-1]
    )


def rejection_thresholds(
    model: KeypointModel, pool: FeaturePool, positives: np.ndarray, share: float, margin: float
) -> KeypointModel:
    """Set the rejection thresholds based on the partial scores of held-out positives.

    The partial scores of a window are the running sums of its responses. The threshold after each
    feature is the quantile of the partial scores with probability ``share``, minus ``margin``.
    """
    sums = model.partial_scores(positives, pool)
    limits = np.quantile(sums, share, axis=0, method="lower") - np.float32(margin)
    return replace(model, thresholds=limits.astype(np.float32))


def cascade_for_recall(
    model: KeypointModel,
    pool: FeaturePool,
    positives: np.ndarray,
    keypoint_of: np.ndarray,
    loss: float,
) -> tuple[KeypointModel, float]:
    """Set the highest rejection thresholds at which at most a given fraction of keypoints is lost.

    ``keypoint_of`` contains the index of the keypoint in each window. A keypoint is lost if all its
    windows, on all levels, are rejected. All thresholds are the same quantile of the partial scores
    of the held-out positives: the largest of several quantiles at which at most ``ceil(loss *
    number of keypoints)`` keypoints are lost. The function returns the model and the probability of
    the quantile.
    """
    sums = model.partial_scores(positives, pool)
    names = np.unique(keypoint_of)
    allowed = int(np.ceil(loss * len(names)))
    limits, chosen = sums.min(axis=0), 0.0
    for share in _SHARES:
        trial = np.quantile(sums, share, axis=0, method="lower")
        accepted = np.unique(keypoint_of[(sums >= trial).all(axis=1)])
        if len(names) - len(accepted) > allowed:
            break
        limits, chosen = trial, share
    return replace(model, thresholds=limits.astype(np.float32)), chosen
