"""Segmentation into a dominant motion and what deviates from it, and measures of segmentations by
that deviation."""

from collections.abc import Sequence

import numpy as np
from scipy.cluster.hierarchy import fcluster, linkage
from scipy.spatial.distance import squareform

from .pairs.dominant import MODELS
from .pairs.measures import motions_of
from .tracks import MIN_POINTS_PER_MOTION, Tracks

_NEAR = 10.0  # distance in pixels that counts as one pixel of displacement; a choice
_FLOOR = 0.3  # pixels: smaller differences of displacement are noise; a choice
_N_AROUND = 5  # nearest points of others around each point of a group; a choice
_N_NEAR = 60  # nearest points among which those of others are searched; a choice
_MOVING = 0.4  # share of deviating pairs of frames of a moving point, for the measures; a choice
_DEVIATIONS = ("outliers of the essential matrix", "outliers of the homography", "points behind")
_SHARES = (
    "mean in the largest motion",
    "mean in the other motions",
    "mean deviation within motions",
    "share of them in the largest motion",
    "share of the others in other motions",
)
MEASURES = (
    *(f"{name}, {share}" for name in _DEVIATIONS for share in _SHARES),
    "spread of depth within motions",
    "mean depth gap of the other motions",
    "smallest depth gap of an obedient motion",
    "break of the displacement at boundaries",
)
_MAX_CLUSTERS = 40  # of deviating points; more are errors of tracking; a choice


def dominant_and_moving(
    tracks: Tracks,
    model: str,
    level: float,
    n_groups: int,
    neighbours: np.ndarray,
    n_motions: int,
) -> np.ndarray:
    """Label the dominant motion and the largest groups of deviating points.

    Parameters
    ----------
    tracks : Tracks
    model : str
        A name in :data:`.pairs.dominant.MODELS`.
    level : float
        Share of the pairs of frames in which a moving point deviates.
    n_groups : int
        Maximum number of groups of deviating points.
    neighbours : ndarray of shape (P,), int
        Clusters of neighbours with similar motion, in the canonical order of the tracks.
    n_motions : int

    Returns
    -------
    ndarray of shape (P,), int
        Labels in the canonical order; 0 is the dominant motion.
    """
    deviating = tracks.dominant.deviating(model)
    groups = _groups(tracks, np.flatnonzero(deviating > level), n_groups)
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
    """At most ``n_groups`` clusters of the points ``moving`` by place and displacement, the largest
    first; the coarsest clustering that has so many with enough points."""
    if len(moving) < MIN_POINTS_PER_MOTION or not n_groups:
        return []
    inside = np.ix_(moving, moving)
    apart = tracks.displacements_apart()[inside] + tracks.places_apart[inside] / _NEAR
    tree = linkage(squareform(apart, checks=False), "single")
    result: list[np.ndarray] = []
    for n_clusters in range(1, min(len(moving), _MAX_CLUSTERS) + 1):
        labels = fcluster(tree, n_clusters, "maxclust") - 1
        sizes = np.bincount(labels)
        large = np.argsort(-sizes, kind="stable")[:n_groups]
        large = large[sizes[large] >= MIN_POINTS_PER_MOTION]
        if len(large) > len(result):
            result = [moving[labels == one] for one in large]
        if len(result) == n_groups:
            break
    return result


def depth_gap(tracks: Tracks, members: np.ndarray) -> float:
    """How much nearer some points are than those around them, by the dominant motion.

    Parameters
    ----------
    tracks : Tracks
    members : ndarray of shape (n,), int
        Points in the canonical order of the tracks.

    Returns
    -------
    float
        Lower quartile of the logarithmic depths of the neighbours minus the median of the points; 0
        if unknown. Where a static object stands, the ground is as near.
    """
    outside = np.ones(tracks.n_points, bool)
    outside[members] = False
    near = tracks.nearest[members, 1:_N_NEAR]
    count = np.cumsum(outside[near], axis=1)
    around = np.unique(near[outside[near] & (count <= _N_AROUND)])
    depth = tracks.dominant.depth
    if np.isnan(depth[around]).all() or np.isnan(depth[members]).all():
        return 0.0
    return float(np.nanquantile(depth[around], 0.25) - np.nanmedian(depth[members]))


def dominant_measures(tracks: Tracks, segmentations: Sequence[np.ndarray]) -> np.ndarray:
    """``MEASURES`` of segmentations.

    Those of a model from which too many points deviate are zero. An obedient motion is one of the
    others whose points obey the dominant motion: it may be an oncoming car, or a piece of the
    static scene.

    Parameters
    ----------
    tracks : Tracks
    segmentations : sequence of ndarray of shape (P,), int
        In the canonical order of the tracks.

    Returns
    -------
    ndarray of shape (n_segmentations, 19)
    """
    dominant = tracks.dominant
    votes = np.array([*(dominant.outlying[model] for model in MODELS), dominant.behind])
    deviating = dominant.deviating("essential")
    known = np.isfinite(dominant.depth)
    depth = np.where(known, dominant.depth, 0.0)
    members, rows = motions_of(segmentations)
    gaps: dict[int, float] = {}
    near = tracks.nearest[:, 1 : _N_AROUND + 1]
    apart = np.log(np.take_along_axis(tracks.displacements_apart(), near, axis=1) + _FLOOR)
    values = np.zeros((len(segmentations), len(MEASURES)))
    for s, (labels, motions) in enumerate(zip(segmentations, rows)):
        sizes = members[motions].sum(axis=1)
        largest = motions[int(np.argmax(sizes))]
        inside = members[largest]
        weights = members[motions] / sizes[:, None]
        within = votes - (votes @ weights.T) @ members[motions]
        moving = votes > _MOVING
        values[s, :15] = np.column_stack(
            [
                votes[:, inside].mean(axis=1),
                _mean(votes[:, ~inside]),
                np.abs(within).mean(axis=1),
                moving[:, inside].sum(axis=1) / np.maximum(moving.sum(axis=1), 1),
                _mean(~moving[:, ~inside]),
            ]
        ).ravel()
        count = np.maximum(members[motions] @ known.astype(float), 1.0)
        mean = (members[motions] @ depth / count) @ members[motions]
        values[s, 15] = np.abs(depth - mean)[known].mean() if known.any() else 0.0
        others = [int(motion) for motion in motions if motion != largest]
        for motion in others:
            if motion not in gaps:
                gaps[motion] = depth_gap(tracks, np.flatnonzero(members[motion]))
        obedient = [gaps[m] for m in others if deviating[members[m]].mean() < _MOVING]
        values[s, 16] = np.mean([gaps[motion] for motion in others]) if others else 0.0
        values[s, 17] = min(obedient, default=0.0)
        cut = labels[near] != labels[:, None]
        if cut.any() and not cut.all():
            values[s, 18] = apart[cut].mean() - apart[~cut].mean()
    essential, homography = (dominant.exists(model) for model in MODELS)
    values[:, :5] *= essential
    values[:, 5:10] *= homography
    values[:, 10:18] *= essential
    return values


def _mean(votes: np.ndarray) -> np.ndarray:
    """Mean by row; 0 of no columns."""
    return votes.sum(axis=1) / max(votes.shape[1], 1)
