"""Candidate segmentations of point tracks into rigid motions.

The candidates are those of velocity clustering (arXiv text, section 6.1 and Algorithm 2), with the recipe kept as data: a
:class:`Family` names a representation of the tracks, the exponent of the affinity and the range of dimensions.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
from scipy.spatial.distance import cdist

from .clustering import angular_affinity, spectral_clustering
from .labels import renamed
from .representations import REPRESENTATIONS, positions, right_vectors
from .tracks import canonical_order, check_tracks


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
    >>> from annealed.vision.tracks.labels import misclassification
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
