"""The dominant motion of a sequence, fitted robustly in each pair of frames, and what deviates."""

from __future__ import annotations

from dataclasses import dataclass

import cv2
import numpy as np

from .frame_pairs import FramePairs

_N_ITERATIONS = 200  # of RANSAC in each pair of frames; a choice
_LEVEL = 1.0  # pixels: larger distances from the essential matrix are outliers; a choice
_MIN_PARALLAX = 1.0  # pixels: smaller ones have no reliable sign; a choice
_RELIABLE = 0.25  # maximum share of deviating pairs of a point with a depth; a choice
# Maximum mean share of deviating pairs of all points, where a motion dominates; by cross-validation
# on the training sequences (experiments/notebook/motion.md)
_MAX_DEVIATING = {"essential": 0.12, "homography": 0.3}
MODELS = ("essential", "homography")


@dataclass(frozen=True)
class DominantMotion:
    """Shares of the pairs of frames in which each point deviates from the dominant motion.

    The essential matrix is for any focal length that is not known: that of an image as wide as the
    extent of the points. A body that draws away ahead of a moving camera obeys the epipolar
    geometry of the static scene, but lies behind the camera when it is triangulated [1]_.

    Attributes
    ----------
    outlying : dict of str to ndarray of shape (P,)
        Share of the pairs in which the point is farther from the model than a pixel, for the
        essential matrix ("essential") and for a plane or a rotating camera ("homography").
    behind : ndarray of shape (P,)
        Share of the pairs in which the point obeys the essential matrix from behind the camera.
    depth : ndarray of shape (P,)
        Median logarithm of the depth relative to the median of the points; NaN where
        unknown.

    References
    ----------
    .. [1] R. Hartley, A. Zisserman, "Multiple View Geometry in Computer Vision", 2nd edition
           (2004), chapters 9 and 21.
    """

    outlying: dict[str, np.ndarray]
    behind: np.ndarray
    depth: np.ndarray

    def deviating(self, model: str) -> np.ndarray:
        """Share of the pairs in which each point deviates from a model, (P,); for the essential
        matrix also from behind the camera."""
        return self.outlying[model] + (self.behind if model == "essential" else 0.0)

    def exists(self, model: str) -> bool:
        """Whether one motion dominates: few points deviate from the model."""
        return bool(self.deviating(model).mean() < _MAX_DEVIATING[model])

    @classmethod
    def of(cls, pairs: FramePairs, coordinates: np.ndarray) -> DominantMotion:
        """Fit the models in all pairs of frames of tracks (F, P, 2)."""
        n = pairs.n_points
        extent = coordinates[:, pairs.in_a_pair].reshape(-1, 2)
        low, high = np.quantile(extent, (0.01, 0.99), axis=0) if len(extent) else np.zeros((2, 2))
        focal = max(float((high - low).max()), 1e-6)
        votes = np.full((4, len(pairs.pairs), n), np.nan)
        for t, pair in enumerate(pairs.pairs):
            first, second = (
                np.ascontiguousarray(coordinates[frame, pair.points] - (low + high) / 2)
                for frame in (pair.first, pair.second)
            )
            votes[:, t, pair.points] = _votes(first, second, focal)
        seen = np.maximum(np.isfinite(votes).sum(axis=1), 1)
        shares = np.nansum(votes, axis=1) / seen
        known = np.isfinite(votes[3]).any(axis=0) & (shares[0] + shares[2] < _RELIABLE)
        depth = np.full(n, np.nan)
        depth[known] = np.nanmedian(votes[3][:, known], axis=0)
        return cls(dict(zip(MODELS, shares)), shares[2], depth)


def _votes(first: np.ndarray, second: np.ndarray, focal: float) -> np.ndarray:
    """For each point whether it is an outlier of the essential matrix, of the homography,
    whether it lies behind the camera, and its logarithmic depth, (4, n); NaN where unknown."""
    votes = np.full((4, len(first)), np.nan)
    plane, inside = cv2.findHomography(first, second, cv2.RANSAC, 1.0, maxIters=_N_ITERATIONS)
    if plane is not None:
        votes[1] = inside.ravel() == 0
    essential, inside = cv2.findEssentialMat(
        first, second, focal, (0.0, 0.0), cv2.RANSAC, 0.999, 0.5, _N_ITERATIONS
    )
    if essential is None or essential.shape != (3, 3):
        return votes
    camera = np.diag([focal, focal, 1.0])
    _, turn, shift, _ = cv2.recoverPose(essential, first, second, camera, mask=inside.copy())
    rays, rays2 = (np.column_stack([one / focal, np.ones(len(one))]) for one in (first, second))
    lines, lines2 = rays @ essential.T, rays2 @ essential
    size = np.sqrt(np.square(lines[:, :2]).sum(axis=1) + np.square(lines2[:, :2]).sum(axis=1))
    votes[0] = focal * np.abs((rays2 * lines).sum(axis=1)) / np.maximum(size, 1e-12) > _LEVEL
    across = np.cross(rays2, rays @ turn.T)
    square = np.square(across).sum(axis=1)
    depths = -(np.cross(rays2, shift.ravel()) * across).sum(axis=1) / np.maximum(square, 1e-24)
    clear = (focal * np.sqrt(square) > _MIN_PARALLAX) & (votes[0] == 0)
    votes[2] = clear & (depths < 0)
    front = clear & (depths > 0)
    if front.any():
        logs = np.log(depths[front])
        votes[3, front] = logs - np.median(logs)
    return votes
