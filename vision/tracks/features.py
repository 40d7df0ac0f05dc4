"""Likelihood and prior features of a segmentation (Barbu et al. (2014), section 6.2).

Every feature is defined for any number of motions, points and frames, so that one ranking function
applies to all sequences. No feature depends on the order of the points or on the values of the
labels.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from functools import cache, partial
from typing import Literal, NamedTuple

import numpy as np
from scipy.linalg import eigh

from .tracks import REPRESENTATIONS, Tracks, as_tracks

# Distances are compared on a logarithmic scale (differences within a sequence are then ratios);
# this floor keeps the logarithm of a perfect fit finite.
_FLOOR = 1e-6
_MEASURES = ("euclidean", "angular")


class Feature(NamedTuple):
    """Feature of a segmentation.

    A likelihood feature measures how well the points of each motion fit a model of the motion. A
    prior feature measures how compact the motions are.
    """

    kind: Literal["likelihood", "prior"]
    space: str
    quantity: str

    @property
    def name(self) -> str:
        """Name of the feature, such as "velocity: likelihood, mean distance"."""
        return f"{self.space}: {self.kind}, {self.quantity}"


class Space(NamedTuple):
    """Space in which points are compared: a representation of the tracks, or a projection of it."""

    representation: str
    dimension: float | None = None  # multiple of the number of motions; None: full vectors
    scaled: bool = True

    @property
    def name(self) -> str:
        """Name of the space, with which the names of its features begin."""
        if self.dimension is None:
            return self.representation
        return f"{self.representation} projected to {self.dimension:g}K" + (
            " scaled" if self.scaled else ""
        )


class FeatureSet:
    """Base class for sets of features."""

    def features(self) -> list[Feature]:
        """Return all features, in the order of the columns.

        Returns
        -------
        list of Feature
            Features in the order of the columns.
        """
        raise NotImplementedError

    def get_feature_names_out(self) -> np.ndarray:
        """Return the names of the features, in the order of the columns.

        Returns
        -------
        ndarray of shape (n_features,)
            Names of the features.
        """
        return np.array([feature.name for feature in self.features()], dtype=object)

    def is_prior(self) -> np.ndarray:
        """Return a mask of the prior features.

        Returns
        -------
        ndarray of shape (n_features,), bool
            True for prior features, and False for likelihood features.
        """
        return np.array([feature.kind == "prior" for feature in self.features()])


@dataclass(frozen=True)
class SegmentationFeatures(FeatureSet):
    """Likelihood and prior features of segmentations.

    The features follow section 6.2 of Barbu et al. (2014) [1]_.

    Parameters
    ----------
    representations : tuple of str, default ("velocity", "raw")
        Representations of the tracks. Each representation yields one space for the full vectors and
        one space for each projection. In the former, distances are root mean squares over the
        frames, in pixels.
    dimensions : tuple of float, default (2.0, 2.5, 3.0, 3.5, 4.0)
        Dimensions of the projections, divided by the number of motions K, so that the number of
        features is the same for every K. The default range from 2 to 4 is that of [1]_.
    scaled : tuple of bool, default (False,)
        Whether projections are scaled by the singular values: ``False``, ``True``, or both
        variants. Scaled projections are in pixels. Unscaled projections are standardised to unit
        variance, so that the same thresholds apply to any number of points.
    n_thresholds : int, default 24
        Number of thresholds tau in each space. For each tau, a feature is the fraction of points
        whose distance from the subspace of their motion is at least tau. The thresholds are spaced
        geometrically from 0.02 to 10.
    neighbours : tuple of int, default (3, 5, 7, 10, 15, 20, 30)
        Numbers k of neighbours. For each k, a prior feature is the fraction of edges of the
        k-nearest-neighbour graph that join two motions.
    n_smallest : int, default 4
        Number n of additional features for each representation and type of average, as in [1]_: the
        n smallest average distances over all dimensions.

    Raises
    ------
    ValueError
        If ``n_smallest`` exceeds the number of dimensions.

    References
    ----------
    .. [1] A. Barbu, Y. She, L. Ding, G. Gramajo, "Feature Selection with Annealing for Regression,
           Classification and Ranking", arXiv:1310.2880v2 (2014).

    Examples
    --------
    >>> names = SegmentationFeatures().get_feature_names_out()
    >>> len(names), names[0]
    (496, 'velocity: likelihood, mean distance')
    """

    representations: tuple[str, ...] = ("velocity", "raw")
    dimensions: tuple[float, ...] = (2.0, 2.5, 3.0, 3.5, 4.0)
    scaled: tuple[bool, ...] = (False,)
    n_thresholds: int = 24
    neighbours: tuple[int, ...] = (3, 5, 7, 10, 15, 20, 30)
    n_smallest: int = 4

    def __post_init__(self) -> None:
        if self.n_smallest > len(self.dimensions):
            raise ValueError(
                f"n_smallest={self.n_smallest} is not valid; "
                f"expected at most {len(self.dimensions)}, the number of dimensions"
            )

    @property
    def thresholds(self) -> np.ndarray:
        """Thresholds tau on the distances, as an array of shape (n_thresholds,)."""
        return np.geomspace(0.02, 10.0, self.n_thresholds)

    def spaces(self) -> list[Space]:
        """Return all spaces in which points are compared.

        Returns
        -------
        list of Space
            Spaces of the full vectors, followed by those of the projections.
        """
        projected = [
            Space(r, d, s)
            for r in self.representations
            for s in self.scaled
            for d in self.dimensions
        ]
        return [Space(r) for r in self.representations] + projected

    def features(self) -> list[Feature]:
        """Return all features, in the order of the columns of :meth:`compute`.

        Returns
        -------
        list of Feature
            Features in the order of the columns.
        """
        listed = []
        for space in self.spaces():
            quantities = [
                "mean distance",
                "mean squared distance",
                *(f"share above {t:.3g}" for t in self.thresholds),
            ]
            listed += [Feature("likelihood", space.name, quantity) for quantity in quantities]
            listed += [
                Feature("prior", space.name, f"{m}, {k} neighbours")
                for m in _MEASURES
                for k in self.neighbours
            ]
        for representation in self.representations:
            for mean in ("mean distance", "mean squared distance"):
                for i in range(self.n_smallest):
                    listed.append(
                        Feature(
                            "likelihood", f"{representation} projected", f"{mean}, smallest {i + 1}"
                        )
                    )
        return listed

    def compute(
        self,
        tracks: Tracks | np.ndarray,
        segmentations: Sequence[np.ndarray],
        columns: np.ndarray | None = None,
    ) -> np.ndarray:
        """Compute the features of several segmentations into the same number of motions.

        Parameters
        ----------
        tracks : Tracks or ndarray of shape (F, P, 2)
            Complete tracks in pixels.
        segmentations : sequence of ndarray of shape (P,)
            Labels of each segmentation.
        columns : ndarray of int or None, default None
            Columns to compute; the values of other columns are undefined. None means all columns.

        Returns
        -------
        ndarray of shape (n_segmentations, n_features)
            Features. Average distances are on a logarithmic scale, and all other features are
            fractions in [0, 1].

        Raises
        ------
        ValueError
            If the tracks are incomplete, or the length of a segmentation differs from the number of
            tracks.
        """
        tracks = as_tracks(tracks)
        for labels in segmentations:
            if len(labels) != tracks.n_points:
                raise ValueError(
                    f"a segmentation has {len(labels)} labels; "
                    f"expected one for each of the {tracks.n_points} points"
                )
        segmentations = [np.asarray(labels)[tracks.canonical_order] for labels in segmentations]
        n_motions = max(len(np.unique(labels)) for labels in segmentations)
        points = cache(partial(_points, tracks, n_motions=n_motions))

        @cache
        def likelihoods(space: Space) -> np.ndarray:
            known: dict[bytes, np.ndarray] = {}
            distances = np.array(
                [subspace_distances(points(space), labels, known) for labels in segmentations]
            )
            average = [
                np.log(distances.mean(axis=1) + _FLOOR),
                np.log((distances**2).mean(axis=1) + _FLOOR**2),
            ]
            return np.column_stack(
                average + [(distances >= t).mean(axis=1) for t in self.thresholds]
            )

        def smallest(representation: str) -> np.ndarray:
            spaces = [
                s
                for s in self.spaces()
                if s.dimension is not None and s[::2] == (representation, self.scaled[0])
            ]
            return (
                np.sort([likelihoods(space)[:, :2].T for space in spaces], axis=0)[
                    : self.n_smallest
                ]
                .transpose(1, 0, 2)
                .reshape(-1, len(segmentations))
                .T
            )

        blocks: list[tuple[int, Callable[[], np.ndarray]]] = []
        for space in self.spaces():
            blocks.append((2 + self.n_thresholds, partial(likelihoods, space)))
            blocks += [
                (len(self.neighbours), partial(self._cut_shares, points, space, m, segmentations))
                for m in _MEASURES
            ]
        blocks += [
            (2 * self.n_smallest, partial(smallest, representation))
            for representation in self.representations
        ]
        return evaluated(blocks, len(segmentations), columns)

    def _cut_shares(
        self,
        points: Callable[[Space], np.ndarray],
        space: Space,
        measure: str,
        segmentations: Sequence[np.ndarray],
    ) -> np.ndarray:
        """Compute the fraction of edges that join two motions, for all k-nearest-neighbour
        graphs."""
        n_neighbours = min(max(self.neighbours), len(points(space)) - 1)
        near = nearest_neighbours(points(space), n_neighbours, measure)
        cut = np.array([(labels[near] != labels[:, None]).mean(axis=0) for labels in segmentations])
        # The edges of the k-nearest-neighbour graph are the first k columns, so its share is the
        # mean of the first k column means.
        running = np.cumsum(cut, axis=1)
        return np.column_stack(
            [running[:, min(k, n_neighbours) - 1] / min(k, n_neighbours) for k in self.neighbours]
        )


def evaluated(
    blocks: Sequence[tuple[int, Callable[[], np.ndarray]]],
    n_rows: int,
    columns: np.ndarray | None = None,
) -> np.ndarray:
    """Compute the blocks of features that contain the requested columns, and concatenate them.

    Parameters
    ----------
    blocks : sequence of (int, callable)
        Number of features in each block, and a function without arguments that returns them as an
        array of shape (n_rows, number of features).
    n_rows : int
        Number of rows, i.e. of segmentations.
    columns : ndarray of int or None, default None
        Columns to compute; blocks without any of these columns are filled with zeros. None means
        all columns.

    Returns
    -------
    ndarray of shape (n_rows, n_features)
    """
    ends = np.cumsum([width for width, _ in blocks])
    needed = set(
        range(len(blocks))
        if columns is None
        else np.searchsorted(ends, columns, side="right").tolist()
    )
    return np.concatenate(
        [
            compute() if i in needed else np.zeros((n_rows, n))
            for i, (n, compute) in enumerate(blocks)
        ],
        axis=1,
    )


PAPER_FEATURES = SegmentationFeatures(
    dimensions=tuple(np.linspace(2.0, 4.0, 9)),
    scaled=(False, True),
    n_thresholds=32,
    neighbours=(2, 3, 4, 5, 7, 10, 14, 20, 28, 40),
)
# Another interpretation of the same paper: trajectories and their projections, without velocities,
# in enough dimensions for its pool of "more than 2000" columns.
TRAJECTORY_FEATURES = replace(
    PAPER_FEATURES, representations=("raw",), dimensions=tuple(np.linspace(2.0, 4.0, 18))
)


def _points(tracks: Tracks, space: Space, n_motions: int) -> np.ndarray:
    """Return the points (P, D) of a space."""
    if space.dimension is None:
        return REPRESENTATIONS[space.representation](tracks.in_canonical_order) / np.sqrt(
            tracks.n_frames
        )
    vectors, strengths = tracks.right_vectors(space.representation)
    d = min(round(space.dimension * n_motions), vectors.shape[1])
    return vectors[:, :d] * (
        strengths[:d] / np.sqrt(tracks.n_frames) if space.scaled else np.sqrt(tracks.n_points)
    )


def subspace_distances(
    points: np.ndarray, labels: np.ndarray, known: dict[bytes, np.ndarray] | None = None
) -> np.ndarray:
    """Compute the distance of each point from the subspace fitted to all points with its label.

    The subspace is affine and has three dimensions.

    Parameters
    ----------
    points : ndarray of shape (P, D)
        Points as vectors, one per row.
    labels : ndarray of shape (P,)
        Motion of each point.
    known : dict or None, default None
        Cache of the distances of each motion, indexed by its members and updated in place.

    Returns
    -------
    ndarray of shape (P,)
        Distances, in the same units as ``points``.
    """
    distances, known = np.empty(len(points)), {} if known is None else known
    for label in np.unique(labels):
        members = labels == label
        key = members.tobytes()
        if key not in known:
            known[key] = _distances_within(points[members])
        distances[members] = known[key]
    return distances


def _distances_within(points: np.ndarray) -> np.ndarray:
    """Compute the distance of each point to the subspace fitted to all points."""
    centred = points - points.mean(axis=0)
    n, width = centred.shape
    rank = min(3, n - 1, width)
    if rank == 0:
        return np.zeros(n)
    # The smaller of the two Gram matrices gives the same subspace.
    if width <= n:
        axes = eigh(
            centred.T @ centred, subset_by_index=(width - rank, width - 1), check_finite=False
        )[1]
    else:
        axes = (
            centred.T
            @ eigh(centred @ centred.T, subset_by_index=(n - rank, n - 1), check_finite=False)[1]
        )
        norms = np.linalg.norm(axes, axis=0)
        axes = axes[:, norms > 1e-9 * norms[-1]] / norms[norms > 1e-9 * norms[-1]]
    return np.linalg.norm(centred - (centred @ axes) @ axes.T, axis=1)


def nearest_neighbours(points: np.ndarray, n_neighbours: int, measure: str) -> np.ndarray:
    """Return the indices of the nearest neighbours of each point, in order of increasing distance.

    Parameters
    ----------
    points : ndarray of shape (P, D)
        Points as vectors, one per row.
    n_neighbours : int
        Number of neighbours, at most P - 1.
    measure : {"euclidean", "angular"}
        Distance measure. The angular distance between two points is the negative squared cosine of
        the angle between their lines through the origin, as in the angular affinity, eq. (21) of
        Barbu et al. (2014).

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
