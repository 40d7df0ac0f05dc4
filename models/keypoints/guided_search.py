"""Regression-guided detection: a sparse grid instead of every window, Algorithm 3 of Barbu et al. (2014)."""

from __future__ import annotations

from dataclasses import dataclass, replace
from enum import StrEnum

import numpy as np

from ...vision.pyramid import pixel_of
from ...vision.windows.feature_pool import FeaturePool
from ...vision.windows.level_features import LevelChannels
from ...vision.windows.scan import predict_windows, windows_around
from .non_maximum_suppression import Localisation
from .window_models import OffsetModel


class Mode(StrEnum):
    """Which windows a keypoint's classifier scores."""

    SCAN = "scan"
    """All windows."""
    REGRESS = "regress"
    """Those that a regressor points at from a sparse grid."""
    PRUNE = "prune+regress"
    """The same from the grid points next to which a cascade sees a face."""


MAX_OFFSET = 20
"""Pixels of a level: longer predicted offsets are ignored. A choice: the regressor is trained on windows within 10 pixels."""

_MAX_LOCALISATION_OFFSET = 2  # pixels of a level by which windows are shifted, at most


@dataclass(frozen=True)
class Guide:
    """Proposes the windows of a level that a keypoint's classifier scores, Algorithm 3 of Barbu et al. (2014), section 7.2.

    ``offsets`` is the regressor f, from a grid point to the keypoint. Grid points lie ``grid`` pixels of the level apart; the
    classifier scores all windows within ``reach`` of a predicted pixel, in x and y.

    References
    ----------
    .. [1] A. Barbu, Y. She, L. Ding, G. Gramajo, "Feature Selection with Annealing for Regression, Classification and Ranking",
       arXiv:1310.2880v2 (2014), section 7.2.
    """

    offsets: OffsetModel
    grid: int = 10
    reach: int = 2

    @property
    def margin(self) -> int:
        """Largest distance of a proposed window from its grid point, in pixels of the level."""
        return MAX_OFFSET + self.reach + _MAX_LOCALISATION_OFFSET + 1

    def mirrored(self, pool: FeaturePool) -> Guide:
        """Return the guide of the mirror image of this keypoint."""
        return replace(self, offsets=self.offsets.mirrored(pool))

    def grid_points(self, channels: LevelChannels) -> tuple[np.ndarray, np.ndarray]:
        """All grid points x, y (n,) in the level's own rows."""
        first = self.grid // 2
        x = np.arange(first, channels.width, self.grid)
        y = np.arange(first, channels.bottom, self.grid)
        y = y[y >= channels.top]
        return np.tile(x, len(y)), np.repeat(y, len(x))

    def windows(
        self,
        channels: LevelChannels,
        pool: FeaturePool,
        points: tuple[np.ndarray, np.ndarray],
        reference_ied: float,
        localisation: Localisation | None = None,
    ) -> tuple[np.ndarray, np.ndarray]:
        """Propose the windows that the classifier c1 scores: their pixels x, y (n,), each once, row by row.

        They lie where grid points x, y (m,) lead. The best windows of a classifier lie its localisation's offset before the
        keypoint, and those of a mirrored one a pixel off: the windows are centred on these, not on the keypoint.
        """
        xs, ys = points
        offset = predict_windows(channels, self.offsets.compiled(pool), xs, ys)
        near = np.abs(offset).max(axis=1, initial=0) <= MAX_OFFSET
        place = Localisation() if localisation is None else localisation
        before = reference_ied * np.array([place.offset_x, place.offset_y])
        before = np.clip(before, -_MAX_LOCALISATION_OFFSET, _MAX_LOCALISATION_OFFSET)
        at = pixel_of(np.column_stack([xs, ys])[near] + offset[near] - before)
        x, y = windows_around(channels, at[:, 0], at[:, 1], self.reach).T
        return x, y
