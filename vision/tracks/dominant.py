"""Robust fit of the dominant motion of a sequence, and segmentation by deviation from it."""

from collections.abc import Sequence
from dataclasses import dataclass

import cv2
import numpy as np
from scipy.cluster.hierarchy import fcluster, linkage
from scipy.spatial.distance import squareform

from .pairs.frame_pairs import FramePairs
from .pairs.measures import motions_of
from .tracks import MIN_POINTS_PER_MOTION, Tracks

_N_ITERATIONS = 200  # RANSAC iterations in each pair of frames (heuristic)
_LEVEL = 1.0  # pixels: larger distances from the essential matrix are outliers (heuristic)
_MIN_PARALLAX = 1.0  # pixels: the sign of a smaller parallax is unreliable (heuristic)
_RELIABLE = 0.25  # maximum share of deviating pairs of a point with a known depth (heuristic)
# One motion dominates if the mean share of deviating pairs over all points does not exceed this
# value; chosen by cross-validation on the training sequences (experiments/notebook/motion.md)
_MAX_DEVIATING = {"essential": 0.12, "homography": 0.3}
MODELS = ("essential", "homography")
_NEAR = 10.0  # distance in pixels that counts as one pixel of displacement (heuristic)
_N_AROUND = 5  # number of nearest outside points around each point of a group (heuristic)
_N_NEAR = 60  # number of nearest points among which outside points are searched (heuristic)
_MOVING = 0.4  # share of deviating pairs above which a point counts as moving (heuristic)
_DEVIATIONS = ("outliers of the essential matrix", "outliers of the homography", "points behind")
_SHARES = (
    "mean in the other motions",
    "mean deviation within motions",
    "share of the others in other motions",
)
MEASURES = (
    *(f"{name}, {share}" for name in _DEVIATIONS for share in _SHARES),
    "spread of depth within motions",
    "smallest depth gap of a motion that follows the dominant one",
)
_MAX_CLUSTERS = 40  # of deviating points; further clusters are tracking errors (heuristic)


@dataclass(frozen=True)
class DominantMotion:
    """Fraction of the frame pairs in which each point deviates from the dominant motion.

    To estimate the essential matrix, the unknown focal length is assumed to equal the extent of the
    points in the image. An object that moves away, directly ahead of the camera, satisfies the
    epipolar geometry of the static scene, but lies behind the camera when triangulated [1]_.

    Attributes
    ----------
    outlying : dict of str to ndarray of shape (P,)
        Fraction of the pairs in which the distance of a point from a model exceeds one pixel. The
        keys are the models: "essential" for the essential matrix, and "homography" for a
        homography, which describes a plane or a rotating camera.
    behind : ndarray of shape (P,)
        Fraction of the pairs in which a point satisfies the essential matrix but lies behind the
        camera.
    depth : ndarray of shape (P,)
        Median log depth of each point, relative to the median over all points; NaN if unknown.

    References
    ----------
    .. [1] R. Hartley, A. Zisserman, "Multiple View Geometry in Computer Vision", 2nd edition
           (2004), chapters 9 and 21.
    """

    outlying: dict[str, np.ndarray]
    behind: np.ndarray
    depth: np.ndarray

    def deviating(self, model: str) -> np.ndarray:
        """Return the fraction of frame pairs in which each of the P points deviates from a model.

        For the essential matrix, points behind the camera are also considered to deviate.
        """
        return self.outlying[model] + (self.behind if model == "essential" else 0.0)

    def exists(self, model: str) -> bool:
        """Return whether a dominant motion exists, that is, whether few points deviate from it."""
        return bool(self.deviating(model).mean() < _MAX_DEVIATING[model])


def dominant_motion(tracks: Tracks) -> DominantMotion:
    """Fit the models of the dominant motion to each pair of frames.

    Parameters
    ----------
    tracks : Tracks
        Tracks of one sequence.

    Returns
    -------
    DominantMotion
        Deviation of each point, in the order :attr:`.Tracks.canonical_order`.
    """
    return tracks.cached("dominant", lambda: _fitted(tracks.pairs, tracks.in_canonical_order))


def _fitted(pairs: FramePairs, coordinates: np.ndarray) -> DominantMotion:
    extent = coordinates[:, pairs.in_a_pair].reshape(-1, 2)
    low, high = np.quantile(extent, (0.01, 0.99), axis=0) if len(extent) else np.zeros((2, 2))
    focal = max(float((high - low).max()), 1e-6)
    votes = np.full((4, len(pairs.pairs), pairs.n_points), np.nan)
    for t, pair in enumerate(pairs.pairs):
        centred = coordinates[[pair.first, pair.second]][:, pair.points] - (low + high) / 2
        votes[:, t, pair.points] = _votes(centred[0], centred[1], focal)
    shares = np.nansum(votes, axis=1) / np.maximum(np.isfinite(votes).sum(axis=1), 1)
    known = np.isfinite(votes[3]).any(axis=0) & (shares[0] + shares[2] < _RELIABLE)
    depth = np.full(pairs.n_points, np.nan)
    depth[known] = np.nanmedian(votes[3][:, known], axis=0)
    return DominantMotion(dict(zip(MODELS, shares)), shares[2], depth)


def _votes(first: np.ndarray, second: np.ndarray, focal: float) -> np.ndarray:
    """Return four rows (4, n) that state whether each point is an outlier of the essential matrix,
    whether it is an outlier of the homography, whether it lies behind the camera, and its
    logarithmic depth. Unknown values are NaN."""
    votes = np.full((4, len(first)), np.nan)
    plane, inside = cv2.findHomography(first, second, cv2.RANSAC, 1.0, maxIters=_N_ITERATIONS)
    if plane is not None:
        votes[1] = inside.ravel() == 0
    essential, inside = cv2.findEssentialMat(
        first, second, focal, (0.0, 0.0), cv2.RANSAC, 0.999, 0.5, _N_ITERATIONS
    )
    if essential is None or essential.shape != (3, 3):
        return votes
    _, turn, shift, _ = cv2.recoverPose(
        essential, first, second, np.diag([focal, focal, 1.0]), mask=inside.copy()
    )
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


def dominant_and_moving(
    tracks: Tracks,
    model: str,
    level: float,
    n_nearest: int,
    neighbours: np.ndarray,
    n_motions: int,
) -> np.ndarray:
    """Segment the tracks into the dominant motion and the motions of groups of points.

    Parameters
    ----------
    tracks : Tracks
        Tracks of one sequence.
    model : str
        Model of the dominant motion, "essential" or "homography".
    level : float
        Threshold, as a fraction of the frame pairs. A point that deviates from the dominant motion
        in a larger fraction of the pairs is considered to be moving.
    n_nearest : int
        Minimum number of motions that are taken from ``neighbours``.
    neighbours : ndarray of shape (P,), int
        Cluster of each point, from a clustering of neighbouring points with similar motion, in the
        canonical order of the tracks.
    n_motions : int
        Number of motions, including the dominant motion.

    Returns
    -------
    ndarray of shape (P,), int
        Labels in the canonical order of the tracks; 0 is the dominant motion.
    """
    moving = np.flatnonzero(dominant_motion(tracks).deviating(model) > level)
    groups = _groups(tracks, moving, n_motions - 1 - n_nearest)
    labels = np.zeros(tracks.n_points, np.int64)
    for number, members in enumerate(groups, 1):
        labels[members] = number
    parts = [np.flatnonzero((neighbours == part) & (labels == 0)) for part in np.unique(neighbours)]
    parts = [part for part in parts if len(part) >= MIN_POINTS_PER_MOTION]
    gaps = [depth_gap(tracks, part) for part in parts]
    for best in np.argsort(gaps, kind="stable")[::-1][: n_motions - 1 - len(groups)]:
        labels[parts[best]] = labels.max() + 1
    return labels


def _groups(tracks: Tracks, moving: np.ndarray, n_groups: int) -> list[np.ndarray]:
    """Cluster the points ``moving`` by position and displacement, and return at most ``n_groups``
    clusters, largest first. They come from the coarsest clustering that has this many clusters of
    sufficient size."""
    if len(moving) < MIN_POINTS_PER_MOTION or n_groups < 1:
        return []
    inside = np.ix_(moving, moving)
    apart = tracks.displacement_distances()[inside] + tracks.position_distances[inside] / _NEAR
    tree = linkage(squareform(apart, checks=False), "single")

    def large(n_clusters: int) -> list[np.ndarray]:
        labels = fcluster(tree, n_clusters, "maxclust")
        sizes = np.bincount(labels)
        numbers = np.argsort(-sizes, kind="stable")[:n_groups]
        return [moving[labels == one] for one in numbers if sizes[one] >= MIN_POINTS_PER_MOTION]

    return max(map(large, range(1, min(len(moving), _MAX_CLUSTERS) + 1)), key=len)


def depth_gap(tracks: Tracks, members: np.ndarray) -> float:
    """Compute how much nearer the given points are to the camera than their surroundings.

    Depths are triangulated from the dominant motion.

    Parameters
    ----------
    tracks : Tracks
        Tracks of one sequence.
    members : ndarray of shape (n,), int
        Indices of the points in the canonical order of the tracks.

    Returns
    -------
    float
        Lower quartile of the log depths of the nearest other points minus the median log depth of
        the given points; 0 if unknown. The value is small for a static object, since the ground on
        which it stands is as near as the object.
    """
    outside = ~np.isin(np.arange(tracks.n_points), members)
    near = tracks.nearest[members, 1:_N_NEAR]
    count = np.cumsum(outside[near], axis=1)
    around = np.unique(near[outside[near] & (count <= _N_AROUND)])
    depth = dominant_motion(tracks).depth
    if np.isnan(depth[around]).all() or np.isnan(depth[members]).all():
        return 0.0
    return float(np.nanquantile(depth[around], 0.25) - np.nanmedian(depth[members]))


def dominant_measures(tracks: Tracks, segmentations: Sequence[np.ndarray]) -> np.ndarray:
    """Compute features that compare segmentations with the dominant motion; see ``MEASURES``.

    If too many points deviate from a model, the features based on it are zero. The last feature is
    the smallest depth gap of a motion whose points follow the dominant motion. It distinguishes an
    oncoming car from a part of the static scene.

    Parameters
    ----------
    tracks : Tracks
        Tracks of one sequence.
    segmentations : sequence of ndarray of shape (P,), int
        Labels, in the canonical order of the tracks.

    Returns
    -------
    ndarray of shape (n_segmentations, 11)
    """
    dominant = dominant_motion(tracks)
    votes = np.array([*(dominant.outlying[model] for model in MODELS), dominant.behind])
    deviating = dominant.deviating("essential")
    known = np.isfinite(dominant.depth)
    depth = np.where(known, dominant.depth, 0.0)
    members, rows = motions_of(segmentations)
    gaps = np.array([depth_gap(tracks, np.flatnonzero(one)) for one in members])
    follows = np.array([deviating[one].mean() < _MOVING for one in members])
    values = np.zeros((len(segmentations), len(MEASURES)))
    for row, motions in zip(values, rows):
        inside = members[motions]
        sizes = inside.sum(axis=1)
        largest = int(np.argmax(sizes))
        beside = votes[:, ~inside[largest]]
        n_beside = max(beside.shape[1], 1)
        within = votes - (votes @ (inside / sizes[:, None]).T) @ inside
        shares = (
            beside.sum(axis=1) / n_beside,
            np.abs(within).mean(axis=1),
            (beside <= _MOVING).sum(axis=1) / n_beside,
        )
        row[:9] = np.column_stack(shares).ravel()
        mean = inside @ depth / np.maximum(inside @ known.astype(float), 1.0)
        row[9] = np.abs(depth - mean @ inside)[known].mean() if known.any() else 0.0
        others = np.delete(motions, largest)
        row[10] = min(gaps[others[follows[others]]], default=0.0)
    exist = [dominant.exists(model) for model in (*MODELS, MODELS[0])]
    return values * np.repeat(exist, (3, 3, 5))
