"""Candidate segmentations of point tracks into rigid motions.

The method is velocity clustering (Barbu et al. (2014), section 6.1 and Algorithm 2). Each family of
candidates is a data class with the settings of a method. For example, :class:`SubspaceFamily`
contains the representation of the tracks, the exponent of the affinity and the range of dimensions.
"""

from collections.abc import Iterable
from dataclasses import dataclass

import numpy as np

from .clustering import angular_affinity, embedded_clusters, leading_eigenvectors
from .dominant import dominant_and_moving, dominant_motion
from .labels import canonical_labels
from .merging import merged
from .pairs.frame_pairs import KERNELS
from .tracks import MIN_POINTS_PER_MOTION, Tracks, as_tracks, check_motions


@dataclass(frozen=True)
class SubspaceFamily:
    """Family of segmentations based on the angular affinity of projected tracks.

    Parameters
    ----------
    representation : {"velocity", "raw"}, default "velocity"
        Vectors that represent the tracks: velocities (eq. (20) of [1]_) or positions.
    alpha : float, default 2.0
        Exponent of the squared cosine in the affinity, eq. (21) of [1]_.
    lowest, highest : float, default 2.0 and 4.0
        Smallest and largest dimension of the projections, as multiples of the number of motions K.
        The tracks are projected to each dimension from ``lowest * K`` to ``highest * K``.

    References
    ----------
    .. [1] A. Barbu, Y. She, L. Ding, G. Gramajo, "Feature Selection with Annealing for Regression,
           Classification and Ranking", arXiv:1310.2880v2 (2014), section 6.1.
    """

    representation: str = "velocity"
    alpha: float = 2.0
    lowest: float = 2.0
    highest: float = 4.0

    @property
    def name(self) -> str:
        """Name of the family, which is also stored in its candidates."""
        return self.representation

    def dimensions(self, tracks: Tracks, n_motions: int) -> list[int]:
        """Return the dimensions of the projections, which never exceed the rank of the tracks.

        Parameters
        ----------
        tracks : Tracks
            Tracks of one sequence.
        n_motions : int
            Number of motions K.

        Returns
        -------
        list of int
            Dimensions in ascending order.
        """
        listed = range(
            int(np.ceil(self.lowest * n_motions)), int(np.floor(self.highest * n_motions)) + 1
        )
        rank = tracks.right_vectors(self.representation)[0].shape[1]
        return sorted({min(d, rank) for d in listed})

    def affinity(self, tracks: Tracks, dimension: int) -> np.ndarray:
        """Compute the affinity between tracks after projecting them to ``dimension`` dimensions.

        Parameters
        ----------
        tracks : Tracks
            Tracks of one sequence.
        dimension : int
            Dimension of the projection, from :meth:`dimensions`.

        Returns
        -------
        ndarray of shape (P, P)
        """
        return angular_affinity(
            tracks.right_vectors(self.representation)[0][:, :dimension], self.alpha
        )


@dataclass(frozen=True)
class NeighbourFamily:
    """Family of segmentations that group neighbouring points with similar motion.

    If the background is stationary or only translates, all its points have the same velocity.
    Objects that move in front of it can then be separated from it only by differences in velocity
    between neighbours, not by the angles between tracks or by the subspaces of the motions.

    Parameters
    ----------
    neighbours : tuple of int, default (8, 14, 25)
        Numbers of nearest neighbours to which each point is connected. Each number yields one
        candidate, and is stored in the attribute ``dimension`` of the candidate.
    span : int, default 5
        Number of frames over which displacements are measured.
    floor : float, default 0.3
        Difference in displacement, in pixels, below which differences are treated as noise.
    """

    name = "neighbours"  # in lists of candidates; not a parameter

    neighbours: tuple[int, ...] = (8, 14, 25)
    span: int = 5
    floor: float = 0.3

    def dimensions(self, tracks: Tracks, n_motions: int) -> list[int]:
        """Return the numbers of neighbours, which are less than the number of points.

        Parameters
        ----------
        tracks : Tracks
            Tracks of one sequence.
        n_motions : int
            Number of motions K; ignored.

        Returns
        -------
        list of int
            Dimensions in ascending order.
        """
        return sorted({min(k, tracks.n_points - 1) for k in self.neighbours})

    def affinity(self, tracks: Tracks, dimension: int) -> np.ndarray:
        """Compute the affinity from the differences in displacement between neighbours.

        Parameters
        ----------
        tracks : Tracks
            Tracks of one sequence.
        dimension : int
            Number of neighbours.

        Returns
        -------
        ndarray of shape (P, P)
        """
        return tracks.neighbour_affinity(dimension, self.span, self.floor)


@dataclass(frozen=True)
class PairFamily:
    """Family of segmentations based on the motion hypotheses that points share in two frames [1]_.

    Parameters
    ----------
    kernel : str, default "all"
        Name of a kernel in :data:`.pairs.frame_pairs.KERNELS`: that of a model ("affinity",
        "homography", "fundamental", "epipolar"), or a sum of these kernels.
    powers : tuple of int, default (5, 10, 15, 25)
        Exponents of the kernel, multiplied by 4: the affinity is ``kernel ** (power / 4)``. Higher
        powers result in a sparser affinity. Each power yields one candidate, and is stored in the
        attribute ``dimension`` of the candidate.

    References
    ----------
    .. [1] X. Xu, L.-F. Cheong, Z. Li, "Motion segmentation by exploiting complementary geometric
           models", CVPR 2018.
    """

    kernel: str = "all"
    powers: tuple[int, ...] = (5, 10, 15, 25)

    @property
    def name(self) -> str:
        """Name of the family, which is also stored in its candidates."""
        return f"pairs, {self.kernel}"

    def dimensions(self, tracks: Tracks, n_motions: int) -> list[int]:
        """Return ``powers``.

        Parameters
        ----------
        tracks : Tracks
            Tracks of one sequence; ignored.
        n_motions : int
            Number of motions K; ignored.

        Returns
        -------
        list of int
        """
        return list(self.powers)

    def affinity(self, tracks: Tracks, dimension: int) -> np.ndarray:
        """Compute the affinity ``kernel ** (dimension / 4)``.

        Parameters
        ----------
        tracks : Tracks
            Tracks of one sequence.
        dimension : int
            Power, from :meth:`dimensions`.

        Returns
        -------
        ndarray of shape (P, P)
        """
        return tracks.pairs.kernels[self.kernel].astype(float) ** (dimension / 4.0)


@dataclass(frozen=True)
class MergedFamily(PairFamily):
    """Family of segmentations for scenes with a deep background, by clustering and merging.

    Clustering splits a background of varying depth before it separates a small object. The tracks
    are therefore divided into more clusters than there are motions, so that a small object forms a
    separate cluster. Clusters with the same motion, such as the parts of the background, are then
    merged (:func:`.merging.merged`).

    Parameters
    ----------
    kernel : str, default "all"
        Name of the kernel, as in :class:`PairFamily`.
    powers : tuple of int, default (25,)
        Powers, as in :class:`PairFamily`.
    extra : int, default 4
        Number of clusters minus the number of motions.
    """

    powers: tuple[int, ...] = (25,)
    extra: int = 4

    @property
    def name(self) -> str:
        """Name of the family, which is also stored in its candidates."""
        return f"merged, {self.kernel}"


@dataclass(frozen=True)
class DominantFamily:
    """Family of segmentations for scenes with a dominant motion, such as a street seen from a car.

    The tracks that deviate from the dominant motion (:class:`.DominantMotion`) are clustered by
    position and displacement. If these clusters are fewer than the other motions, the remaining
    motions are taken from clusters of neighbouring points: those that are much nearer to the camera
    than their surroundings. An example is an oncoming car on the optical axis, which moves like a
    near part of the static scene, but is not connected to the ground.

    Parameters
    ----------
    model : {"essential", "homography"}, default "essential"
        Model of the dominant motion.
    levels : tuple of int, default (40,)
        Thresholds, as percentages of the frame pairs. A point that deviates from the dominant
        motion in a larger percentage of the pairs is considered to be moving. Each threshold yields
        one candidate, and is stored in the attribute ``dimension`` of the candidate.
    nearest : int, default 0
        Minimum number of motions that are taken from the clusters of neighbouring points.
    clusters : int, default 30
        Number of clusters of neighbouring points.
    """

    model: str = "essential"
    levels: tuple[int, ...] = (40,)
    nearest: int = 0
    clusters: int = 30

    @property
    def name(self) -> str:
        """Name of the family, which is also stored in its candidates."""
        return f"dominant, {self.model}"

    def dimensions(self, tracks: Tracks, n_motions: int) -> list[int]:
        """Return ``levels``, or an empty list if there is no dominant motion.

        Parameters
        ----------
        tracks : Tracks
            Tracks of one sequence.
        n_motions : int
            Number of motions K; ignored.

        Returns
        -------
        list of int
        """
        return list(self.levels) if dominant_motion(tracks).exists(self.model) else []


Family = SubspaceFamily | NeighbourFamily | PairFamily | MergedFamily | DominantFamily
PAPER_FAMILIES: tuple[Family, ...] = (SubspaceFamily("velocity", 2.0),)
JOINED_FAMILIES: tuple[Family, ...] = (SubspaceFamily("velocity", 3.0), SubspaceFamily("raw", 3.0))
VIDEO_FAMILIES: tuple[Family, ...] = (*JOINED_FAMILIES, NeighbourFamily())
PAIR_FAMILIES: tuple[Family, ...] = tuple(PairFamily(kernel) for kernel in KERNELS)
ALL_FAMILIES: tuple[Family, ...] = (*VIDEO_FAMILIES, *PAIR_FAMILIES)
MERGED_FAMILIES: tuple[Family, ...] = tuple(
    MergedFamily(kernel) for kernel in ("all", "epipolar", "fundamental", "affinity")
)
DOMINANT_FAMILIES: tuple[Family, ...] = (
    DominantFamily("essential", (25, 60)),
    DominantFamily("essential", (25, 60), nearest=1),
    DominantFamily("homography", (40,)),
)
# Recipes that improve the best candidate on Hopkins155 and on the synthetic training scenes.
# Without the other recipes, a fitted ranking is more accurate and takes half the time
# (experiments/notebook/motion.md).
SHIPPED_FAMILIES: tuple[Family, ...] = (
    *VIDEO_FAMILIES,
    PairFamily("affinity", (5, 10, 25)),
    *(PairFamily(kernel, (25,)) for kernel in ("homography", "epipolar", "all")),
    PairFamily("fundamental", (5,)),
    *MERGED_FAMILIES,
    *DOMINANT_FAMILIES,
)
# number of eigenvectors of each affinity, sufficient for every number of motions that a ranker
# considers
_N_VECTORS = 9


@dataclass(frozen=True)
class Candidate:
    """Candidate segmentation and the method that produced it.

    Attributes
    ----------
    labels : ndarray of shape (P,), int
        Motion of each point, from 0 to K - 1.
    family : str
        Name of the family that produced the candidate.
    dimension : int
        Setting with which the family produced the candidate: the dimension of the projection, the
        number of neighbours, the power of the kernel, or the percentage of frame pairs.
    """

    labels: np.ndarray
    family: str
    dimension: int


def distinct(candidates: Iterable[Candidate]) -> dict[bytes, Candidate]:
    """Return the first candidate with each distinct partition, in a dict keyed by partition."""
    kept: dict[bytes, Candidate] = {}
    for candidate in candidates:
        kept.setdefault(canonical_labels(candidate.labels).tobytes(), candidate)
    return kept


def candidates(
    tracks: Tracks | np.ndarray,
    n_motions: int,
    families: Iterable[Family] = JOINED_FAMILIES,
    n_runs: int = 30,
) -> list[Candidate]:
    """Compute the distinct candidates of several families.

    Parameters
    ----------
    tracks : Tracks or ndarray of shape (F, P, 2)
        Complete tracks in pixels.
    n_motions : int
        Number of motions K, at least 1.
    families : iterable of SubspaceFamily, NeighbourFamily or PairFamily, default JOINED_FAMILIES
        Families of candidates. All candidates of each family are computed.
    n_runs : int, default 30
        Number of runs of k-means; the best run is used.

    Returns
    -------
    list of Candidate
        One candidate for each distinct partition, which is attributed to the first family that
        produces it. The partitions do not depend on the order of the points.

    Raises
    ------
    ValueError
        If the tracks are not complete, or there are fewer than four points per motion.

    Examples
    --------
    >>> import numpy as np
    >>> from annealed.vision import candidates, misclassification
    >>> t = np.arange(10.0)[:, None, None]
    >>> corners = np.random.default_rng(0).uniform(0, 100, (20, 2))
    >>> tracks = corners + t * np.where(np.arange(20) < 8, 1.0, -2.0)[:, None]
    >>> listed = candidates(tracks, 2)
    >>> min(misclassification(np.arange(20) < 8, candidate.labels) for candidate in listed) < 0.1
    True
    """
    tracks = as_tracks(tracks)
    check_motions(n_motions, tracks.n_points)
    if n_motions == 1:
        return [Candidate(np.zeros(tracks.n_points, np.int64), "one motion", 0)]
    back = np.argsort(tracks.canonical_order)
    result = []
    for family in families:
        for dimension in family.dimensions(tracks, n_motions):
            labels = _clusters(tracks, family, dimension, n_motions, n_runs)
            if isinstance(family, DominantFamily) and len(np.unique(labels)) < n_motions:
                continue  # all points deviate
            result.append(Candidate(canonical_labels(labels)[back], family.name, dimension))
    return list(distinct(result).values())


def _clusters(
    tracks: Tracks, family: Family, dimension: int, n_motions: int, n_runs: int
) -> np.ndarray:
    """Return the labels (P,) of the points in their canonical order."""
    most = tracks.n_points // MIN_POINTS_PER_MOTION
    if isinstance(family, DominantFamily):
        few = max(n_motions, min(family.clusters, most))
        near = _clusters(tracks, NeighbourFamily(), 14, few, n_runs)
        return dominant_and_moving(
            tracks, family.model, dimension / 100.0, family.nearest, near, n_motions
        )
    if isinstance(family, MergedFamily):
        n_clusters = max(n_motions, min(n_motions + family.extra, most))
        parts = _clusters(tracks, PairFamily(family.kernel), dimension, n_clusters, n_runs)
        return merged(tracks, parts, n_motions)
    n_vectors = min(max(n_motions, _N_VECTORS), tracks.n_points)
    vectors = tracks.cached(
        (family, dimension, n_vectors),
        lambda: leading_eigenvectors(family.affinity(tracks, dimension), n_vectors),
    )
    return tracks.cached(
        (family, dimension, n_motions, n_runs),
        lambda: embedded_clusters(vectors, n_motions, n_runs),
    )
