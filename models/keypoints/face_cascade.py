"""A cascade that rejects all of a photograph but the surroundings of faces, before any keypoint is searched."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from ...vision.pyramid import Level, shrink
from .window_models import KeypointModel


@dataclass(frozen=True)
class FaceCascade:
    """The cascade c0 of Algorithm 3 of Barbu et al. (2014), shared by all keypoints: one window shows the whole face.

    A face whose keypoints are searched on one level of the pyramid fits into a window of the pool on a level that is ``coarser``.
    Every window there that the classifier does not reject says where each keypoint is expected.

    Parameters
    ----------
    classifier : KeypointModel
        Of windows whose pixel is the middle of a face; its rejection thresholds decide.
    expected : dict of str to tuple of float
        Vector from the middle of a face to each keypoint, in units of the detector's reference IED on the keypoint's level.
    coarser : float
        Scale of the face's level relative to that of the keypoints.

    References
    ----------
    .. [1] A. Barbu, Y. She, L. Ding, G. Gramajo, "Feature Selection with Annealing for Regression, Classification and Ranking",
       arXiv:1310.2880v2 (2014), section 7.2.
    """

    classifier: KeypointModel
    expected: dict[str, tuple[float, float]]
    coarser: float

    def level(self, levels: Sequence[Level], number: int) -> Level:
        """Return the level on which to search faces whose keypoints lie on ``levels[number]``: one of them, or a smaller one."""
        wanted = levels[number].scale * self.coarser
        for level in levels[number:]:
            if abs(level.scale / wanted - 1) < 1e-6:
                return level
        return shrink(levels[number], self.coarser)

    def grid_points(
        self, centres: np.ndarray, keypoint: str, shape: tuple[int, int], grid: int, reference_ied: float
    ) -> tuple[np.ndarray, np.ndarray]:
        """Grid points around the places where a keypoint is expected, four of each.

        Parameters
        ----------
        centres : ndarray of shape (n, 2)
            Middles of faces in pixels of the keypoint's level.
        keypoint : str
            Its name.
        shape : tuple of int
            Rows and columns of that level.
        grid : int
            Spacing of the grid in pixels.
        reference_ied : float
            Inter-eye distance in pixels of that level.

        Returns
        -------
        xs, ys : ndarray of shape (m,), int
            Each grid point once, row by row.
        """
        first = grid // 2
        sides = [max(0, -(-(side - first) // grid)) for side in shape]
        corner = np.floor((centres + reference_ied * np.array(self.expected[keypoint]) - first) / grid).astype(np.int64)
        column = (corner[:, :1] + [0, 1, 0, 1]).ravel()
        row = (corner[:, 1:] + [0, 0, 1, 1]).ravel()
        inside = (column >= 0) & (column < sides[1]) & (row >= 0) & (row < sides[0])
        number = np.unique(row[inside] * sides[1] + column[inside])
        return first + grid * (number % max(1, sides[1])), first + grid * (number // max(1, sides[1]))


def regions(points: np.ndarray, margin: int, shape: tuple[int, int], most: int) -> list[tuple[slice, slice, np.ndarray]]:
    """Parts of a level that hold all pixels within a margin of some points: rows, columns, and which points they belong to.

    Points (n, 2) whose margins touch share a part, unless it would have more than about ``most`` pixels.

    Examples
    --------
    >>> for part in regions(np.array([[5, 5], [90, 5], [9, 6]]), 4, (20, 100), 10_000):
    ...     print(*part)
    slice(1, 11, None) slice(1, 14, None) [0 2]
    slice(1, 10, None) slice(86, 95, None) [1]
    """
    found = []
    for band in _clusters(points, np.arange(len(points)), 1, 2 * margin):
        for cluster in _clusters(points, band, 0, 2 * margin):
            x, y = points[cluster].T
            columns = slice(max(0, int(x.min()) - margin), min(shape[1], int(x.max()) + margin + 1))
            height = max(2 * margin, most // (columns.stop - columns.start))
            piece = (y - y.min()) // height
            for number in np.unique(piece):
                own = y[piece == number]
                rows = slice(max(0, int(own.min()) - margin), min(shape[0], int(own.max()) + margin + 1))
                found.append((rows, columns, np.sort(cluster[piece == number])))
    return found


def _clusters(points: np.ndarray, chosen: np.ndarray, axis: int, gap: int) -> list[np.ndarray]:
    """Some of the points in groups that no step larger than ``gap`` along one axis separates."""
    order = chosen[np.argsort(points[chosen, axis], kind="stable")]
    return np.split(order, np.flatnonzero(np.diff(points[order, axis]) > gap) + 1)
