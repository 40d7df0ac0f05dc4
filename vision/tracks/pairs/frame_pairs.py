"""Pairs of frames, and kernels of the motion hypotheses that points share in them."""

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np
from scipy.spatial.distance import cdist

from .geometry import GEOMETRIES, Geometry, distances, fit, moments

GAPS = (16, 8, 4, 2)  # gaps between the two frames: the number of frames divided by each value
N_STARTS = 5  # number of first frames for each gap
MIN_POINTS = 8  # minimum number of points in a pair of frames
N_HYPOTHESES = 100  # number of hypotheses per pair of frames and model
BEST_SHARE = 0.1  # two points share a hypothesis if it is among the best tenth of both
# number of nearest points from which hypotheses are drawn; None: a third of all points
NEIGHBOURS = (12, 20, 40, None)
SUMS = {
    "affinity+homography+fundamental": ("affinity", "homography", "fundamental"),
    "all": tuple(g.name for g in GEOMETRIES),
}
KERNELS = (*(g.name for g in GEOMETRIES), *SUMS)


@dataclass(frozen=True)
class FramePair:
    """Two frames, and the points that are visible in both of them.

    Attributes
    ----------
    first, second : int
        Indices of the frames.
    is_long : bool
        Whether the frames are far apart: a quarter or half of the length of the sequence.
    points : ndarray of shape (n,), int
        Indices of the points in the tracks.
    rows : ndarray of shape (n, 4)
        Coordinates x, y in the first frame and x', y' in the second frame, centred in each frame
        and divided by ``scale``, which is the same for both frames.
    scale : float
        Number of pixels per unit of ``rows``.
    """

    first: int
    second: int
    is_long: bool
    points: np.ndarray
    rows: np.ndarray
    scale: float

    @cached_property
    def moments(self) -> dict[str, np.ndarray]:
        """Moments of the points for each model; see :func:`.geometry.moments`.

        The keys are the names of the models, and the arrays have shape (n, q, q).
        """
        moments_of = {g.name: moments(g.name, self.rows) for g in GEOMETRIES[:3]}
        return moments_of | {"epipolar": moments_of["affinity"]}  # uses the same products


def frame_pairs(coordinates: np.ndarray, seen: np.ndarray) -> list[FramePair]:
    """Choose pairs of frames from a sixteenth to a half of the sequence apart.

    For each gap, the first frames of the pairs are evenly spaced.

    Parameters
    ----------
    coordinates : ndarray of shape (F, P, 2)
        Coordinates in pixels.
    seen : ndarray of shape (F, P), bool
        Whether each point is seen in each frame.

    Returns
    -------
    list of FramePair
        Pairs of frames, in order of increasing gap. Pairs with fewer than 8 points that are visible
        in both frames are omitted.
    """
    n_frames = len(coordinates)
    listed: dict[tuple[int, int], bool] = {}
    for number, divisor in enumerate(GAPS):
        gap = max(1, min(round(n_frames / divisor), n_frames - 1))
        for first in np.unique(
            np.round(np.linspace(0, n_frames - 1 - gap, N_STARTS)).astype(int)
        ).tolist():
            listed.setdefault((first, first + gap), number >= len(GAPS) / 2)
    pairs = []
    for (first, second), is_long in listed.items():
        points = np.flatnonzero(seen[first] & seen[second])
        if len(points) < MIN_POINTS:
            continue
        rows = np.concatenate([coordinates[first, points], coordinates[second, points]], axis=1)
        rows = rows - rows.mean(axis=0)
        # the squares of the coordinates overflow, so all rows become zero
        with np.errstate(over="ignore"):
            scale = max(float(np.sqrt(np.square(rows).sum(axis=1).mean()) / 2.0), 1e-9)
        pairs.append(FramePair(first, second, is_long, points, rows / scale, scale))
    return pairs


class FramePairs:
    """Pairs of frames of one sequence, and kernels that compare its points [1]_.

    Parameters
    ----------
    coordinates : ndarray of shape (F, P, 2)
        Coordinates in pixels.
    seen : ndarray of shape (F, P), bool
        Whether each point is seen in each frame. The coordinates of unseen points are ignored.

    References
    ----------
    .. [1] X. Xu, L.-F. Cheong, Z. Li, "Motion segmentation by exploiting complementary geometric
           models", CVPR 2018.
    """

    def __init__(self, coordinates: np.ndarray, seen: np.ndarray):
        self.n_points = coordinates.shape[1]
        self.pairs = frame_pairs(coordinates, seen)

    @cached_property
    def in_a_pair(self) -> np.ndarray:
        """Mask of the points that are seen in both frames of at least one pair."""
        inside = np.zeros(self.n_points, bool)
        for pair in self.pairs:
            inside[pair.points] = True
        return inside

    @cached_property
    def moments_of_all(self) -> dict[str, np.ndarray]:
        """Sums of :attr:`FramePair.moments` over the points of each pair.

        The keys are the names of the models, and the arrays have shape (n_pairs, q, q).
        """
        return {
            g.name: np.array([pair.moments[g.name].sum(axis=0) for pair in self.pairs])
            for g in GEOMETRIES
        }

    @cached_property
    def rows(self) -> np.ndarray:
        """Concatenation of :attr:`FramePair.rows` for all pairs, of shape (n, 4)."""
        return np.concatenate([pair.rows for pair in self.pairs])

    @cached_property
    def point_of_row(self) -> np.ndarray:
        """Index of the point in the tracks to which each of the :attr:`rows` refers."""
        return np.concatenate([pair.points for pair in self.pairs])

    @cached_property
    def pair_of_row(self) -> np.ndarray:
        """Index of the pair of frames to which each of the :attr:`rows` belongs."""
        return np.repeat(np.arange(len(self.pairs)), [len(pair.points) for pair in self.pairs])

    @cached_property
    def scale_of_row(self) -> np.ndarray:
        """Number of pixels per unit, :attr:`FramePair.scale`, for each of the :attr:`rows`."""
        return np.array([pair.scale for pair in self.pairs], np.float32)[self.pair_of_row]

    @cached_property
    def kernels(self) -> dict[str, np.ndarray]:
        """Kernel matrix, of shape (P, P) and with a zero diagonal, for each name in ``KERNELS``.

        A hypothesis is a model fitted to a minimal random subset of the points. Two points share a
        hypothesis if it is among the best tenth for both. An entry of the kernel of a model is the
        number of shared hypotheses, as a fraction of that tenth, averaged over the pairs of frames
        in which both points are seen. In a sum of kernels, each kernel is divided by its mean.
        """
        rng = np.random.default_rng(0)
        subsets = [_subsets(pair.rows, rng) for pair in self.pairs]
        together = np.zeros((self.n_points, len(self.pairs)), np.float32)
        for column, pair in enumerate(self.pairs):
            together[pair.points, column] = 1.0
        common = np.maximum(together @ together.T, 1.0)
        kernels_by_name: dict[str, np.ndarray] = {}
        for geometry in GEOMETRIES:
            shared = _best_hypotheses(geometry, self.pairs, subsets, self.n_points)
            kernel = (shared @ shared.T) / (common * round(BEST_SHARE * N_HYPOTHESES))
            np.fill_diagonal(kernel, 0.0)
            kernels_by_name[geometry.name] = kernel
        normalised = {
            name: kernel / max(float(kernel.mean()), 1e-12)
            for name, kernel in kernels_by_name.items()
        }
        return kernels_by_name | {
            name: sum((normalised[part] for part in parts), np.zeros(1)) / len(parts)
            for name, parts in SUMS.items()
        }


def _subsets(rows: np.ndarray, rng: np.random.Generator) -> np.ndarray:
    """Draw the points (n_hypotheses, 8) of minimal fits in random order. Each fit has a random
    point and others drawn from its nearest points in both frames."""
    n, width = len(rows), max(g.n_minimal for g in GEOMETRIES)
    seeds = rng.integers(n, size=N_HYPOTHESES)
    near = np.argsort(cdist(rows[seeds], rows), axis=1, kind="stable")[:, 1:]
    sizes = np.array([min(max(n // 3 if k is None else k, width - 1), n - 1) for k in NEIGHBOURS])
    keys = rng.random((N_HYPOTHESES, sizes.max()))
    keys[np.arange(sizes.max()) >= np.resize(sizes, N_HYPOTHESES)[:, None]] = 2.0
    chosen = np.argsort(keys, axis=1)[:, : width - 1]
    return np.column_stack([seeds, np.take_along_axis(near, chosen, axis=1)])


def _best_hypotheses(
    geometry: Geometry, pairs: Sequence[FramePair], subsets: Sequence[np.ndarray], n_points: int
) -> np.ndarray:
    """Return a mask (P, n_pairs x n_hypotheses) of the hypotheses that are among the best of each
    point, as float32 for fast products."""
    best = round(BEST_SHARE * N_HYPOTHESES)
    shared = np.zeros((n_points, len(pairs), N_HYPOTHESES), np.float32)
    for column, (pair, subset) in enumerate(zip(pairs, subsets)):
        sums = pair.moments[geometry.name][subset[:, : geometry.n_minimal]].sum(axis=1)
        apart = distances(geometry.name, fit(geometry.name, sums), pair.rows).T
        order = np.argpartition(apart, best - 1, axis=1)[:, :best]
        shared[pair.points[:, None], column, order] = 1.0
    return shared.reshape(n_points, -1)
