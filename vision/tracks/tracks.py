"""Complete, validated point tracks with their visibility, and the vectors that represent them."""

from collections.abc import Callable, Hashable
from functools import cached_property
from typing import Any

import numpy as np
import numpy.typing as npt
from scipy.spatial.distance import cdist

from .completion import check_shape, complete_tracks
from .pairs.frame_pairs import FramePairs

MIN_POINTS_PER_MOTION = 4  # an affine subspace of dimension 3 fits any four points


def velocities(tracks: np.ndarray) -> np.ndarray:
    """Compute velocity vectors followed by the last position, eq. (20) of Barbu et al. (2014).

    Parameters
    ----------
    tracks : ndarray of shape (F, P, 2)
        Positions in pixels.

    Returns
    -------
    ndarray of shape (P, 2F)
        Row p contains ``x1 - x2, y1 - y2, ..., xF, yF`` of point p.
    """
    return (
        np.concatenate([tracks[:-1] - tracks[1:], tracks[-1:]])
        .transpose(1, 0, 2)
        .reshape(tracks.shape[1], -1)
    )


def positions(tracks: np.ndarray) -> np.ndarray:
    """Return the concatenated coordinates of each point, as an array of shape (P, 2F)."""
    return tracks.transpose(1, 0, 2).reshape(tracks.shape[1], -1)


REPRESENTATIONS = {"velocity": velocities, "raw": positions}


def right_vectors(rows: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Compute the unscaled right singular vectors of the measurement matrix.

    These are steps 1 and 2 of Algorithm 2 of Barbu et al. (2014).

    Parameters
    ----------
    rows : ndarray of shape (P, D)
        Transposed measurement matrix, with one row per point.

    Returns
    -------
    vectors : ndarray of shape (P, n)
        Singular vectors as columns. All vectors but the first are dropped if their singular value
        is below 1e-9 times the largest.
    strengths : ndarray of shape (n,)
        Singular values, in descending order.
    """
    left, strengths, _ = np.linalg.svd(rows, full_matrices=False)
    useful = max(1, int((strengths > 1e-9 * max(strengths[0], 1e-300)).sum()))
    return left[:, :useful], strengths[:useful]


class Tracks:
    """Point tracks without missing entries.

    Tracks are validated once, when the object is created.

    Parameters
    ----------
    coordinates : array_like of shape (F, P, 2)
        Coordinates x and y, in pixels, of P points in F frames, without missing entries.
    seen : array_like of shape (F, P), bool, or None, default None
        Whether each point was seen in each frame. The coordinates of unseen points are estimates.
        None means that all points were seen in all frames.

    Attributes
    ----------
    coordinates : ndarray of shape (F, P, 2), float64
        Coordinates in pixels.
    seen : ndarray of shape (F, P), bool
        Whether each point was seen in each frame.

    Raises
    ------
    ValueError
        If the shape is not (F, P, 2), there are fewer than two frames, or a value is not finite.

    Examples
    --------
    >>> Tracks(np.zeros((5, 12, 2))).n_points
    12
    """

    def __init__(self, coordinates: npt.ArrayLike, seen: npt.ArrayLike | None = None):
        array = np.asarray(coordinates, dtype=float)
        check_shape(array)
        check_frames(len(array))
        if not np.isfinite(array).all():
            raise ValueError("tracks contain NaN or infinity; call complete_tracks first")
        self.coordinates = array
        self.seen = np.ones(array.shape[:2], bool) if seen is None else np.asarray(seen, dtype=bool)
        self._cache: dict[Hashable, Any] = {}

    @classmethod
    def completed(cls, coordinates: npt.ArrayLike) -> "Tracks":
        """Fill the gaps in tracks, and record in which frames the points were seen.

        Parameters
        ----------
        coordinates : array_like of shape (F, P, 2)
            Positions in pixels; NaN where a point is not visible.

        Returns
        -------
        Tracks

        Raises
        ------
        ValueError
            As in :func:`.completion.complete_tracks`.
        """
        array = np.asarray(coordinates, dtype=float)
        return cls(complete_tracks(array), np.isfinite(array).all(axis=2))

    def cached(self, key: Hashable, compute: Callable[[], Any]) -> Any:
        """Return a value from the cache, and compute it on first use.

        Parameters
        ----------
        key : hashable
            Key of the value in the cache.
        compute : function
            Function without arguments that computes the value if it is not in the cache.

        Returns
        -------
        object
            Cached value.
        """
        if key not in self._cache:
            self._cache[key] = compute()
        return self._cache[key]

    @property
    def n_frames(self) -> int:
        """Number of frames F."""
        return self.coordinates.shape[0]

    @property
    def n_points(self) -> int:
        """Number of points P."""
        return self.coordinates.shape[1]

    @cached_property
    def canonical_order(self) -> np.ndarray:
        """Permutation that sorts the points by their coordinates."""
        return np.lexsort(positions(self.coordinates).T[::-1])

    @cached_property
    def in_canonical_order(self) -> np.ndarray:
        """Coordinates, of shape (F, P, 2), with the points in :attr:`canonical_order`."""
        return self.coordinates[:, self.canonical_order]

    def right_vectors(self, representation: str) -> tuple[np.ndarray, np.ndarray]:
        """Return the right singular vectors and singular values of a representation.

        The points are in :attr:`canonical_order`, and the result is cached.

        Parameters
        ----------
        representation : str
            Representation of the tracks, "velocity" or "raw".

        Returns
        -------
        vectors : ndarray of shape (P, n)
            Singular vectors as columns.
        strengths : ndarray of shape (n,)
            Singular values, in descending order.
        """
        return self.cached(
            representation,
            lambda: right_vectors(REPRESENTATIONS[representation](self.in_canonical_order)),
        )

    @cached_property
    def position_distances(self) -> np.ndarray:
        """Distances in pixels between all points, in :attr:`canonical_order`, of shape (P, P).

        They are root mean squares over the frames.
        """
        place = positions(self.in_canonical_order) / np.sqrt(self.n_frames)
        return cdist(place, place)

    @cached_property
    def nearest(self) -> np.ndarray:
        """Indices of all points, sorted by their distance from each point, of shape (P, P).

        The first point in each row is the point itself. Distances are :attr:`position_distances`.
        """
        return np.argsort(self.position_distances, axis=1, kind="stable")

    def displacement_distances(self, span: int = 5) -> np.ndarray:
        """Compute the root mean square difference in displacement between each pair of points.

        The result is cached for each span.

        Parameters
        ----------
        span : int, default 5
            Number of frames over which displacements are measured.

        Returns
        -------
        ndarray of shape (P, P)
            Differences in pixels, in :attr:`canonical_order`.
        """
        span = min(span, self.n_frames - 1)
        rows = positions(
            self.in_canonical_order[span:] - self.in_canonical_order[:-span]
        ) / np.sqrt(self.n_frames - span)
        return self.cached(("displacements", span), lambda: cdist(rows, rows))

    def neighbour_affinity(
        self, n_neighbours: int, span: int = 5, floor: float = 0.3
    ) -> np.ndarray:
        """Compute an affinity that connects neighbouring points with similar displacements.

        The points are in :attr:`canonical_order`.

        Parameters
        ----------
        n_neighbours : int
            Number of nearest neighbours to which each point is connected.
        span : int, default 5
            Number of frames over which displacements are measured.
        floor : float, default 0.3
            Difference in displacement, in pixels, below which differences are treated as noise.

        Returns
        -------
        ndarray of shape (P, P)
            Affinity with a zero diagonal.
        """
        difference = self.displacement_distances(span)
        joined = np.zeros(difference.shape, bool)
        np.put_along_axis(joined, self.nearest[:, : n_neighbours + 1], True, axis=1)
        joined |= joined.T
        np.fill_diagonal(joined, False)
        # A heavy-tailed kernel replaces the Gaussian to keep outliers weakly connected; otherwise,
        # they would form separate clusters.
        scale = max(float(np.median(difference[joined])), floor)
        return np.where(joined, (1.0 + (difference / scale) ** 2) ** -4.0, 0.0)

    @cached_property
    def pairs(self) -> FramePairs:
        """Pairs of frames, with the points in :attr:`canonical_order`.

        Estimated coordinates of unseen points are not used.
        """
        return FramePairs(self.in_canonical_order, self.seen[:, self.canonical_order])


def check_motions(n_motions: int, n_points: int) -> None:
    """Check that there are enough points for ``n_motions`` motions; raise a ValueError if not."""
    n_min = MIN_POINTS_PER_MOTION
    if not 1 <= n_motions <= n_points:
        raise ValueError(
            f"n_motions={n_motions} is not valid; "
            f"expected an integer from 1 to {n_points}, the number of points"
        )
    if n_points < n_min * n_motions:
        raise ValueError(
            f"there are {n_points} points for {n_motions} motions; "
            f"expected at least {n_min} points per motion, {n_min * n_motions} in total"
        )


def check_frames(n_frames: int) -> None:
    """Check that there are at least two frames; raise a ValueError if not."""
    if n_frames < 2:
        raise ValueError(
            f"tracks have {n_frames} frame{'s' * (n_frames != 1)}; expected at least 2"
        )


def as_tracks(tracks: Tracks | npt.ArrayLike) -> Tracks:
    """Validate an array and convert it to :class:`Tracks`, or return :class:`Tracks` unchanged."""
    return tracks if isinstance(tracks, Tracks) else Tracks(tracks)


def observed(tracks: npt.ArrayLike, n_motions: int) -> tuple[Tracks, np.ndarray]:
    """Select the points that are seen in both frames of a compared pair, and fill their gaps.

    Parameters
    ----------
    tracks : array_like of shape (F, P, 2)
        Positions in pixels; NaN where a point is not visible.
    n_motions : int
        Number of motions K. If it is 1, all points that are seen at least once are selected.

    Returns
    -------
    tracks : Tracks
        Completed tracks of the selected points.
    known : ndarray of shape (P,), bool
        Mask of the selected points.

    Raises
    ------
    ValueError
        If the shape is not (F, P, 2), there are fewer than two frames, or too few points remain.
    """
    array = np.asarray(tracks, dtype=float)
    check_shape(array)
    check_frames(len(array))
    n_points = array.shape[1]
    check_motions(n_motions, n_points)
    seen = np.isfinite(array).all(axis=2)
    known = seen.any(axis=0) if n_motions == 1 else FramePairs(array, seen).in_a_pair
    left = int(known.sum())
    if left < MIN_POINTS_PER_MOTION * n_motions:
        unseen = int((~seen.any(axis=0)).sum())
        reason = (
            f"{unseen} of {n_points} points are not visible in any frame"
            if unseen
            else "the tracks overlap too little"
        )
        n_min = MIN_POINTS_PER_MOTION * n_motions
        raise ValueError(
            f"{reason}, so only {left} points are visible in both frames of a compared pair; "
            f"expected at least {n_min}"
        )
    return Tracks.completed(array[:, known]), known
