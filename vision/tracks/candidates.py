"""Candidate segmentations of point tracks into rigid motions, and the error of a segmentation.

The candidates are those of velocity clustering (arXiv text, section 6.1 and Algorithm 2), with the recipe kept as data: a
:class:`Family` names a representation of the tracks, the exponent of the affinity and the range of dimensions.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
from numba import njit
from scipy.linalg import eigh
from scipy.optimize import linear_sum_assignment
from scipy.spatial.distance import cdist


def velocities(tracks: np.ndarray) -> np.ndarray:
    """Velocity vectors with the last position, eq. (20) of the arXiv text.

    Parameters
    ----------
    tracks : ndarray of shape (F, P, 2)
        Positions in pixels.

    Returns
    -------
    ndarray of shape (P, 2F)
        Row p holds ``x1 - x2, y1 - y2, ..., xF, yF`` of point p.
    """
    return np.concatenate([tracks[:-1] - tracks[1:], tracks[-1:]]).transpose(1, 0, 2).reshape(tracks.shape[1], -1)


def positions(tracks: np.ndarray) -> np.ndarray:
    """Coordinates of each point one after another, (P, 2F), in pixels."""
    return tracks.transpose(1, 0, 2).reshape(tracks.shape[1], -1)


REPRESENTATIONS = {"velocity": velocities, "raw": positions}


@dataclass(frozen=True)
class Family:
    """A recipe for candidate segmentations: the angular affinity of projected tracks (arXiv text, section 6.1).

    Parameters
    ----------
    representation : str
        A name in ``REPRESENTATIONS``.
    alpha : float
        The affinity is the squared cosine to this power, eq. (21).
    lowest, highest : float
        The dimensions run over all integers from ``lowest`` K to ``highest`` K.
    """

    representation: str = "velocity"
    alpha: float = 2.0
    lowest: float = 2.0
    highest: float = 4.0

    @property
    def name(self) -> str:
        """Name in lists of candidates."""
        return self.representation

    def affinities(self, tracks: np.ndarray, n_motions: int) -> Iterator[tuple[int, np.ndarray]]:
        """Dimensions and affinities (P, P); a dimension that the tracks do not have is replaced by the greatest they have."""
        dimensions = range(int(np.ceil(self.lowest * n_motions)), int(np.floor(self.highest * n_motions)) + 1)
        vectors, _ = right_vectors(REPRESENTATIONS[self.representation](tracks), dimensions[-1])
        for d in sorted({min(d, vectors.shape[1]) for d in dimensions}):
            yield d, angular_affinity(vectors[:, :d], self.alpha)


@dataclass(frozen=True)
class NeighbourFamily:
    """A recipe for videos: neighbours in the image that move alike belong together.

    Where the background does not move, or only shifts, all its points have one velocity, and neither the angle between tracks nor
    their subspace tells it from what moves over it. Differences of velocity between neighbours do.

    Parameters
    ----------
    neighbours : tuple of int
        Each point is joined to so many nearest ones; one candidate for each number (its "dimension").
    span : int
        Frames over which displacements are taken.
    floor : float
        Differences of displacement below this many pixels are noise.
    """

    neighbours: tuple[int, ...] = (8, 14, 25)
    span: int = 5
    floor: float = 0.3

    @property
    def name(self) -> str:
        """Name in lists of candidates."""
        return "neighbours"

    def affinities(self, tracks: np.ndarray, n_motions: int) -> Iterator[tuple[int, np.ndarray]]:
        """Numbers of neighbours and affinities (P, P)."""
        n_frames, n_points, _ = tracks.shape
        span = min(self.span, n_frames - 1)
        moved = positions(tracks[span:] - tracks[:-span]) / np.sqrt(n_frames - span)
        unlike = cdist(moved, moved)
        place = positions(tracks)
        near = np.argsort(cdist(place, place), axis=1, kind="stable")
        for k in sorted({min(k, n_points - 1) for k in self.neighbours}):
            joined = np.zeros((n_points, n_points), bool)
            np.put_along_axis(joined, near[:, : k + 1], True, axis=1)
            joined |= joined.T
            np.fill_diagonal(joined, False)
            # A heavy tail rather than a Gaussian: a lost point must stay joined a little, or it becomes a cluster of its own.
            scale = max(float(np.median(unlike[joined])), self.floor)
            yield k, np.where(joined, (1.0 + (unlike / scale) ** 2) ** -4.0, 0.0)


PAPER_FAMILIES = (Family("velocity", 2.0),)
JOINED_FAMILIES = (Family("velocity", 3.0), Family("raw", 3.0))
VIDEO_FAMILIES = (*JOINED_FAMILIES, NeighbourFamily())


@dataclass(frozen=True)
class Candidate:
    """A segmentation and where it came from: labels (P,), int, 0 .. K-1."""

    labels: np.ndarray
    family: str
    dimension: int


def right_vectors(rows: np.ndarray, n_vectors: int) -> tuple[np.ndarray, np.ndarray]:
    """Leading right singular vectors of the measurement matrix, not scaled by the singular values (Algorithm 2, step 2).

    Parameters
    ----------
    rows : ndarray of shape (P, D)
        One point per row: the transposed measurement matrix.
    n_vectors : int
        How many; fewer come back when the matrix has fewer.

    Returns
    -------
    vectors : ndarray of shape (P, <= n_vectors)
        Column i is v_{i+1}. Directions without any energy (singular value below 1e-9 of the largest) are left out.
    strengths : ndarray of shape (<= n_vectors,)
        Their singular values.
    """
    left, strengths, _ = np.linalg.svd(rows, full_matrices=False)
    useful = int((strengths > 1e-9 * max(strengths[0], 1e-300)).sum())
    n = max(1, min(n_vectors, useful))
    return left[:, :n], strengths[:n]


def angular_affinity(points: np.ndarray, alpha: float) -> np.ndarray:
    """Affinity of eq. (21) with a zero diagonal.

    Parameters
    ----------
    points : ndarray of shape (P, d)
    alpha : float

    Returns
    -------
    ndarray of shape (P, P)
        ``cos^2 alpha``; the diagonal is zero, as Ng, Jordan and Weiss ask (left at one, it makes single points into clusters).
    """
    unit = points / np.maximum(np.linalg.norm(points, axis=1, keepdims=True), 1e-300)
    affinity = np.square(unit @ unit.T) ** alpha
    np.fill_diagonal(affinity, 0.0)
    return affinity


@njit(cache=True)
def _assign(points, centres, labels):
    """Nearest centres; returns the sum of the squared distances."""
    total = 0.0
    for i in range(points.shape[0]):
        best = np.inf
        for c in range(centres.shape[0]):
            distance = 0.0
            for j in range(points.shape[1]):
                distance += (points[i, j] - centres[c, j]) ** 2
            if distance < best:
                best = distance
                labels[i] = c
        total += best
    return total


@njit(cache=True)
def _k_means(points, uniforms, n_iterations):
    """Best of several runs of k-means; row r of ``uniforms`` (n_runs, K) seeds run r by the k-means++ rule."""
    n, width = points.shape
    n_runs, k = uniforms.shape
    best_labels = np.zeros(n, np.int64)
    best = np.inf
    labels = np.zeros(n, np.int64)
    previous = np.empty(n, np.int64)
    for run in range(n_runs):
        centres = np.zeros((k, width))
        nearest = np.ones(n)
        for c in range(k):
            threshold = uniforms[run, c] * nearest.sum()
            chosen = n - 1
            running = 0.0
            for i in range(n):
                running += nearest[i]
                if running > threshold:
                    chosen = i
                    break
            centres[c] = points[chosen]
            for i in range(n):
                distance = 0.0
                for j in range(width):
                    distance += (points[i, j] - centres[c, j]) ** 2
                nearest[i] = distance if c == 0 else min(nearest[i], distance)
        previous[:] = -1
        total = np.inf
        for _ in range(n_iterations):
            total = _assign(points, centres, labels)
            if np.all(labels == previous):
                break
            previous[:] = labels
            counts = np.zeros(k)
            sums = np.zeros((k, width))
            for i in range(n):
                counts[labels[i]] += 1.0
                for j in range(width):
                    sums[labels[i], j] += points[i, j]
            for c in range(k):
                if counts[c] > 0:
                    centres[c] = sums[c] / counts[c]
        # A tie in the last digits must not depend on the order of the runs: only a real gain replaces the best.
        if total < best * (1.0 - 1e-9):
            best = total
            best_labels[:] = labels
    return best_labels


def k_means(points: np.ndarray, n_clusters: int, n_runs: int = 30) -> np.ndarray:
    """Labels (P,) of the best of ``n_runs`` runs of k-means with k-means++ seeds from a fixed stream."""
    uniforms = np.random.RandomState(0).uniform(size=(n_runs, n_clusters))
    return _k_means(np.ascontiguousarray(points, float), uniforms, 100)


def spectral_clustering(affinity: np.ndarray, n_clusters: int, n_runs: int = 30) -> np.ndarray:
    """Cluster by the eigenvectors of the normalised affinity (Ng, Jordan and Weiss, NIPS 2001).

    Parameters
    ----------
    affinity : ndarray of shape (P, P)
        Symmetric, not negative, zero diagonal.
    n_clusters : int
    n_runs : int
        Restarts of k-means.

    Returns
    -------
    ndarray of shape (P,), int
        Labels 0 .. n_clusters-1; a cluster may stay empty when points coincide.
    """
    root = 1.0 / np.sqrt(np.maximum(affinity.sum(axis=1), 1e-300))
    n = len(affinity)
    vectors = eigh(
        affinity * root[:, None] * root[None, :], subset_by_index=(n - n_clusters, n - 1), check_finite=False, overwrite_a=True
    )[1]
    vectors /= np.maximum(np.linalg.norm(vectors, axis=1, keepdims=True), 1e-300)
    return k_means(vectors, n_clusters, n_runs)


def renamed(labels: np.ndarray) -> np.ndarray:
    """Labels renamed 0, 1, 2, ... in the order of first appearance: equal for equal partitions."""
    _, first, inverse = np.unique(labels, return_index=True, return_inverse=True)
    return np.argsort(np.argsort(first))[inverse]


def canonical_order(tracks: np.ndarray) -> np.ndarray:
    """Order of the points (P,) that depends on their coordinates alone, so that the given order has no influence."""
    return np.lexsort(positions(tracks).T[::-1])


def check_tracks(tracks: np.ndarray, n_motions: int | None = None) -> np.ndarray:
    """Return complete tracks as float64, or say what is wrong.

    Raises
    ------
    ValueError
        If the shape is not (F, P, 2), there are fewer than two frames, a value is not finite, ``n_motions`` is below 1 or above
        the number of points, or there are fewer than four points per motion.
    """
    tracks = np.asarray(tracks, dtype=float)
    if tracks.ndim != 3 or tracks.shape[2] != 2:
        raise ValueError(f"tracks have shape {tracks.shape}; expected (frames, points, 2)")
    n_frames, n_points, _ = tracks.shape
    if n_frames < 2:
        raise ValueError(f"tracks have {n_frames} frame{'s' * (n_frames != 1)}; motion needs at least 2")
    if n_motions is not None:
        if not 1 <= n_motions <= n_points:
            raise ValueError(f"motions is {n_motions}; expected a number from 1 to the number of points, {n_points}")
        if n_points < 4 * n_motions:
            raise ValueError(f"{n_points} points for {n_motions} motions; expected at least 4 points per motion, {4 * n_motions}")
    if not np.isfinite(tracks).all():
        raise ValueError("tracks have missing or infinite entries; complete them first (complete_tracks)")
    return tracks


def candidates(
    tracks: np.ndarray, n_motions: int, families: tuple[Family | NeighbourFamily, ...] = JOINED_FAMILIES, n_runs: int = 30
) -> list[Candidate]:
    """Candidate segmentations by all families in all their dimensions, each partition once.

    Parameters
    ----------
    tracks : ndarray of shape (F, P, 2)
        Complete tracks in pixels.
    n_motions : int
        Number of motions K.
    families : tuple of Family or NeighbourFamily
    n_runs : int
        Restarts of k-means.

    Returns
    -------
    list of Candidate
        The order of the points has no influence on the partitions. A partition found twice keeps the name of the first.

    Raises
    ------
    ValueError
        For tracks that :func:`check_tracks` refuses.

    Examples
    --------
    >>> import numpy as np
    >>> t = np.arange(10.0)[:, None, None]
    >>> corners = np.random.default_rng(0).uniform(0, 100, (20, 2))
    >>> tracks = corners + t * np.where(np.arange(20) < 8, 1.0, -2.0)[:, None]
    >>> found = candidates(tracks, 2)
    >>> min(misclassification(np.arange(20) < 8, one.labels) for one in found) < 0.1
    True
    """
    tracks = check_tracks(tracks, n_motions)
    if n_motions == 1:
        return [Candidate(np.zeros(tracks.shape[1], np.int64), "one motion", 0)]
    order = canonical_order(tracks)
    back = np.argsort(order)
    found: dict[bytes, Candidate] = {}
    for family in families:
        for dimension, affinity in family.affinities(tracks[:, order], n_motions):
            labels = renamed(spectral_clustering(affinity, n_motions, n_runs))
            found.setdefault(labels.tobytes(), Candidate(labels[back], family.name, dimension))
    return list(found.values())


def misclassification(truth: np.ndarray, labels: np.ndarray) -> float:
    """Share of points with a wrong label under the best matching of the names, eq. (22) of the arXiv text.

    Parameters
    ----------
    truth, labels : array-like of shape (P,)
        The numbers of labels may differ.

    Returns
    -------
    float
        In [0, 1).

    Examples
    --------
    >>> misclassification([0, 0, 1, 1], [7, 7, 3, 7])
    0.25
    """
    truth_names, t = np.unique(truth, return_inverse=True)
    label_names, l = np.unique(labels, return_inverse=True)
    if len(t) != len(l):
        raise ValueError(f"truth has {len(t)} labels, the segmentation {len(l)}; expected as many")
    counts = np.zeros((len(truth_names), len(label_names)), np.int64)
    np.add.at(counts, (t, l), 1)
    return float(1.0 - counts[linear_sum_assignment(-counts)].sum() / len(t))
