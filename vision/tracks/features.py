"""Likelihood and prior features of a segmentation (arXiv text, section 6.2).

Every feature exists for every number of motions, points and frames, so that one ranking function serves all sequences; none depends
on the order of the points or on the names of the labels.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from scipy.linalg import eigh

from .representations import REPRESENTATIONS, right_vectors
from .tracks import canonical_order, check_tracks

# Distances are compared on a logarithmic scale (differences within a sequence are then ratios); this keeps perfect fits finite.
_FLOOR = 1e-6
_MEASURES = ("euclidean", "angular")


@dataclass(frozen=True)
class FeaturePool:
    """Which features are computed: a pool as data.

    Parameters
    ----------
    representations : tuple of str
        Names in ``REPRESENTATIONS``. Each gives the space of its full vectors, in pixels (rms over the frames), and spaces of
        projected points.
    dimensions : tuple of float
        Dimensions of the projections as multiples of K (the paper's range is 2 to 4), so that their number is the same for every K.
    scaled : tuple of bool
        Whether the rows of V are scaled by the singular values: ``False``, ``True`` or both. Scaled ones are in pixels; those that
        are not are brought to unit variance, so that one set of thresholds fits every number of points.
    n_thresholds : int
        Number of thresholds of the third type of likelihood features, in geometric order from 0.02 to 10, in each space.
    neighbours : tuple of int
        Sizes k of the neighbourhoods of the kNN graphs.
    n_smallest : int
        How many of the smallest average distances over the dimensions are features, as in velocity clustering.
    """

    representations: tuple[str, ...] = ("velocity", "raw")
    dimensions: tuple[float, ...] = (2.0, 2.5, 3.0, 3.5, 4.0)
    scaled: tuple[bool, ...] = (False,)
    n_thresholds: int = 24
    neighbours: tuple[int, ...] = (3, 5, 7, 10, 15, 20, 30)
    n_smallest: int = 4

    def __post_init__(self):
        if self.n_smallest > len(self.dimensions):
            raise ValueError(f"n_smallest is {self.n_smallest}; expected at most the number of dimensions, {len(self.dimensions)}")

    @property
    def thresholds(self) -> np.ndarray:
        """Thresholds tau of the third type of likelihood features, (n_thresholds,)."""
        return np.geomspace(0.02, 10.0, self.n_thresholds)

    def spaces(self) -> list[tuple[str, float | None, bool]]:
        """All spaces: representation, dimension over K (None for the full vectors), scaled."""
        whole: list[tuple[str, float | None, bool]] = [(r, None, True) for r in self.representations]
        return whole + [(r, d, s) for r in self.representations for s in self.scaled for d in self.dimensions]

    def get_feature_names_out(self) -> np.ndarray:
        """Names of the features, (n_features,), in the order of :func:`segmentation_features`.

        Examples
        --------
        >>> names = FeaturePool().get_feature_names_out()
        >>> len(names), names[0]
        (496, 'velocity: likelihood, mean distance')
        """
        names = []
        for representation, dimension, scaled in self.spaces():
            space = representation
            if dimension is not None:
                space += f" projected to {dimension:g}K" + (" scaled" if scaled else "")
            names += [f"{space}: likelihood, mean distance", f"{space}: likelihood, mean squared distance"]
            names += [f"{space}: likelihood, share above {t:.3g}" for t in self.thresholds]
            names += [f"{space}: prior, {m}, {k} neighbours" for m in _MEASURES for k in self.neighbours]
        for representation in self.representations:
            for kind in ("distance", "squared distance"):
                names += [f"{representation} projected: likelihood, mean {kind}, smallest {i + 1}" for i in range(self.n_smallest)]
        return np.array(names, dtype=object)

    def is_prior(self) -> np.ndarray:
        """Mask of the prior features, (n_features,)."""
        return np.array([": prior" in name for name in self.get_feature_names_out()])


PAPER_POOL = FeaturePool(
    dimensions=tuple(np.linspace(2.0, 4.0, 9)),
    scaled=(False, True),
    n_thresholds=32,
    neighbours=(2, 3, 4, 5, 7, 10, 14, 20, 28, 40),
)


def subspace_distances(points: np.ndarray, labels: np.ndarray) -> np.ndarray:
    """Distance of each point to the 3-D affine subspace fitted to the points of its label in the least squares sense.

    Parameters
    ----------
    points : ndarray of shape (P, D)
    labels : ndarray of shape (P,)

    Returns
    -------
    ndarray of shape (P,)
        In units of the points.
    """
    distances = np.empty(len(points))
    for label in np.unique(labels):
        members = labels == label
        centred = points[members] - points[members].mean(axis=0)
        n, width = centred.shape
        rank = min(3, n - 1, width)
        if rank == 0:
            distances[members] = 0.0
            continue
        # The smaller of the two Gram matrices gives the same subspace.
        if width <= n:
            axes = eigh(centred.T @ centred, subset_by_index=(width - rank, width - 1), check_finite=False)[1]
        else:
            axes = centred.T @ eigh(centred @ centred.T, subset_by_index=(n - rank, n - 1), check_finite=False)[1]
            norms = np.linalg.norm(axes, axis=0)
            axes = axes[:, norms > 1e-9 * norms[-1]] / norms[norms > 1e-9 * norms[-1]]
        distances[members] = np.linalg.norm(centred - (centred @ axes) @ axes.T, axis=1)
    return distances


def nearest_neighbours(points: np.ndarray, n_neighbours: int, measure: str) -> np.ndarray:
    """Indices of each point's nearest neighbours, the nearest first.

    Parameters
    ----------
    points : ndarray of shape (P, D)
    n_neighbours : int
        At most P - 1.
    measure : {"euclidean", "angular"}
        The angular distance falls with the affinity of eq. (21): lines through the origin are compared.

    Returns
    -------
    ndarray of shape (P, n_neighbours), int
    """
    if measure == "angular":
        unit = points / np.maximum(np.linalg.norm(points, axis=1, keepdims=True), 1e-300)
        far = -np.square(unit @ unit.T)
    else:
        square = np.einsum("pd,pd->p", points, points)
        far = square[:, None] + square - 2.0 * points @ points.T
    np.fill_diagonal(far, np.inf)
    near = np.argpartition(far, n_neighbours - 1, axis=1)[:, :n_neighbours]
    order = np.argsort(np.take_along_axis(far, near, axis=1), axis=1, kind="stable")
    return np.take_along_axis(near, order, axis=1)


def segmentation_features(tracks: np.ndarray, segmentations: Sequence[np.ndarray], pool: FeaturePool | None = None) -> np.ndarray:
    """Features of several segmentations of the same tracks into the same number of motions.

    Parameters
    ----------
    tracks : ndarray of shape (F, P, 2)
        Complete tracks in pixels.
    segmentations : sequence of ndarray of shape (P,)
        Labels.
    pool : FeaturePool or None
        None means the default pool.

    Returns
    -------
    ndarray of shape (n_segmentations, n_features)
        Named by ``pool.get_feature_names_out()``. Average distances are logarithms; all other features are shares in [0, 1].

    Raises
    ------
    ValueError
        If the segmentations have another length than the tracks.
    """
    pool = pool or FeaturePool()
    tracks = check_tracks(tracks)
    n_frames, n_points = tracks.shape[:2]
    for labels in segmentations:
        if len(labels) != n_points:
            raise ValueError(f"a segmentation has {len(labels)} labels for {n_points} points")
    order = canonical_order(tracks)
    tracks = tracks[:, order]
    segmentations = [np.asarray(labels)[order] for labels in segmentations]
    n_motions = max(len(np.unique(labels)) for labels in segmentations)

    rows = {r: REPRESENTATIONS[r](tracks) for r in pool.representations}
    bases = {r: right_vectors(rows[r], round(max(pool.dimensions) * n_motions)) for r in pool.representations}
    n_neighbours = min(max(pool.neighbours), n_points - 1)
    columns: list[np.ndarray] = []
    averages: dict[str, list[np.ndarray]] = {r: [] for r in pool.representations}
    for representation, dimension, scaled in pool.spaces():
        if dimension is None:
            points = rows[representation] / np.sqrt(n_frames)
        else:
            vectors, strengths = bases[representation]
            d = min(round(dimension * n_motions), vectors.shape[1])
            points = vectors[:, :d] * (strengths[:d] / np.sqrt(n_frames) if scaled else np.sqrt(n_points))
        distances = np.array([subspace_distances(points, labels) for labels in segmentations])
        average = np.array([np.log(distances.mean(axis=1) + _FLOOR), np.log((distances**2).mean(axis=1) + _FLOOR**2)])
        columns += list(average)
        columns += [(distances >= t).mean(axis=1) for t in pool.thresholds]
        if dimension is not None and scaled == pool.scaled[0]:
            averages[representation].append(average)
        for measure in _MEASURES:
            near = nearest_neighbours(points, n_neighbours, measure)
            cut = np.array([(labels[near] != labels[:, None]).mean(axis=0) for labels in segmentations])
            # Edges of the k-graph are those of the first k columns: the mean over all points of the first k shares.
            running = np.cumsum(cut, axis=1)
            columns += [running[:, min(k, n_neighbours) - 1] / min(k, n_neighbours) for k in pool.neighbours]
    for representation in pool.representations:
        ordered = np.sort(np.array(averages[representation]), axis=0)[: pool.n_smallest]
        columns += [ordered[i, kind] for kind in (0, 1) for i in range(pool.n_smallest)]
    return np.column_stack(columns)
