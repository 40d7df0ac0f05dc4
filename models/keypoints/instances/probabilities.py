"""Probabilities: that a refined shape is a face, and that its points lie where they should."""

from dataclasses import dataclass
from functools import cached_property

import numpy as np

POINT_INPUTS = 8
_MAX_LOG_ODDS = 30.0  # log-odds beyond this are cut: the exponential stays finite
_EXACT = 0.003  # reference lengths: answers that agree better than this are alike. A choice


def probability_of(log_odds: float | np.ndarray) -> float | np.ndarray:
    """Probability of log-odds."""
    return 1.0 / (1.0 + np.exp(-np.clip(log_odds, -_MAX_LOG_ODDS, _MAX_LOG_ODDS)))


def log_odds_of(probability: float | np.ndarray) -> float | np.ndarray:
    """Log-odds of a probability, finite for 0 and 1 too."""
    p = np.clip(probability, 1e-12, 1 - 1e-12)
    return np.log(p / (1 - p))


@dataclass(frozen=True)
class ShapeClassifier:
    """Whether a refined shape is a face: a linear classifier of selected histogram values around
    its points.

    Parameters
    ----------
    features : ndarray of shape (k,), int32
        Selected values: 128 times the point's number plus the value's.
    coefficients : ndarray of shape (k,), float32
    intercept : float
    """

    features: np.ndarray
    coefficients: np.ndarray
    intercept: float

    @cached_property
    def _positions(self) -> np.ndarray:
        return self.features.astype(np.int64)

    def score(self, histograms: np.ndarray) -> float:
        """Score of the histograms (n, 128) that are the input of the last stage of the
        refinement."""
        return float(histograms.ravel()[self._positions] @ self.coefficients) + self.intercept


@dataclass(frozen=True)
class InstanceProbabilities:
    """Logistic regressions that were fitted on photographs kept back from training.

    Parameters
    ----------
    face : ndarray of shape (4,)
        Log-odds of a face: weights of the classifier's score, of the sum of the anchors' log-odds
        and of the logarithm of the reference length, and a constant.
    within_10, within_5 : ndarray of shape (n_keypoints, 8)
        Log-odds that a keypoint of a true face lies within 10 % and 5 % of the reference length:
        weights of the face's log-odds, of the own detection's log-odds, whether there is one, its
        distance from the refined point in tenths of the reference length, the logarithm of the
        distance of two refinements, the face's turn to a side, the logarithm of the reference
        length, and a constant.
    alone : float
        Added to the log-odds of a detection that belongs to no assembled face.

    Notes
    -----
    The reference length is in units of 30 pixels.
    """

    face: np.ndarray
    within_10: np.ndarray
    within_5: np.ndarray
    alone: float

    def instance_log_odds(self, score: float, support: float, ied: float) -> float:
        """Log-odds of a face: from the classifier's score, the sum of its anchors' log-odds, and
        the reference length in pixels."""
        return float(self.face @ instance_inputs(score, support, ied))


def instance_inputs(score: float, support: float, ied: float) -> np.ndarray:
    """Inputs (4,) of the regression for a face."""
    return np.array([score, support, np.log(ied / 30.0), 1.0])


def point_inputs(
    instance_log_odds: float, own: np.ndarray, distance: np.ndarray, disagreement: np.ndarray, yaw: float, ied: float
) -> np.ndarray:
    """Inputs (n_keypoints, 8) of the regressions for the points of a face.

    Parameters
    ----------
    instance_log_odds : float
    own, distance : ndarray of shape (n_keypoints,)
        Log-odds of own detections, NaN where there is none, and how far they lie from the refined
        points, in reference lengths.
    disagreement : ndarray of shape (n_keypoints,)
        Distance of what two refinements from different starts give, in reference lengths.
    yaw : float
        In radians.
    ied : float
        In pixels.
    """
    present = np.isfinite(own)
    of_own = np.where(present, np.clip(own, -6.0, 6.0), 0.0), present, np.where(present, distance * 10, 0.0)
    columns = np.clip(instance_log_odds, -8.0, 8.0), *of_own, np.log(disagreement + _EXACT), abs(yaw), np.log(ied / 30.0), 1.0
    return np.stack(np.broadcast_arrays(*columns), axis=1)
