"""Regression-guided detection: a sparse grid instead of every window, Algorithm 3 of Barbu et al. (2014)."""

from __future__ import annotations

from dataclasses import dataclass, replace
from enum import StrEnum

import numpy as np

from ...vision.windows.feature_pool import FeaturePool
from ...vision.windows.level_features import LevelChannels
from ...vision.windows.patches import pixel_of
from ...vision.windows.sparse_scan import predict_windows, score_windows, windows_around
from .non_maximum_suppression import Localisation
from .window_models import KeypointModel, OffsetModel


class Mode(StrEnum):
    """Which windows a keypoint's classifier scores."""

    SCAN = "scan"
    """All windows."""
    REGRESS = "regress"
    """Those that a regressor points at from a sparse grid."""
    PRUNE = "prune+regress"
    """The same from the grid points that a cascade does not reject."""


MAX_OFFSET = 20
"""Pixels of a level: longer predicted offsets are ignored. A choice: the regressor is trained on windows within 10 pixels."""

_MAX_LOCALISATION_OFFSET = 2  # pixels of a level by which windows are shifted, at most


@dataclass(frozen=True)
class Guide:
    """Proposes the windows of a level that a keypoint's classifier scores, Algorithm 3 of Barbu et al. (2014), section 7.2.

    ``prune`` is the cascade c0: a grid point is kept when each node scores at least its threshold. ``offsets`` is the regressor
    f, from a grid point to the keypoint. Grid points lie ``grid`` pixels of the level apart; the classifier scores all windows
    within ``reach`` of a predicted pixel, in x and y. ``verifier`` is the classifier c1, trained on what c0 keeps; without it,
    that of the scan.

    References
    ----------
    .. [1] A. Barbu, Y. She, L. Ding, G. Gramajo, "Feature Selection with Annealing for Regression, Classification and Ranking",
       arXiv:1310.2880v2 (2014), section 7.2.
    """

    prune: tuple[KeypointModel, ...]
    offsets: OffsetModel
    grid: int = 10
    reach: int = 2
    verifier: KeypointModel | None = None

    @property
    def margin(self) -> int:
        """Largest distance of a proposed window from its grid point, in pixels of the level."""
        return MAX_OFFSET + self.reach + _MAX_LOCALISATION_OFFSET + 1

    def mirrored(self, pool: FeaturePool, reference_ied: float) -> Guide:
        """Return the guide of the mirror image of this keypoint."""
        prune = tuple(node.mirrored(pool, reference_ied) for node in self.prune)
        verifier = None if self.verifier is None else self.verifier.mirrored(pool, reference_ied)
        return replace(self, prune=prune, offsets=self.offsets.mirrored(pool), verifier=verifier)

    def points(self, channels: LevelChannels, pool: FeaturePool, prune: bool) -> tuple[np.ndarray, np.ndarray]:
        """Grid points x, y in the level's own rows, pruned if asked for."""
        first = self.grid // 2
        x = np.arange(first, channels.width, self.grid)
        y = np.arange(first, channels.bottom, self.grid)
        y = y[y >= channels.top]
        xs, ys = np.tile(x, len(y)), np.repeat(y, len(x))
        for node in self.prune if prune else ():
            left = score_windows(channels, node.compiled(pool), xs, ys) >= node.threshold
            xs, ys = xs[left], ys[left]
        return xs, ys

    def windows(
        self,
        channels: LevelChannels,
        pool: FeaturePool,
        prune: bool,
        reference_ied: float,
        localisation: Localisation | None = None,
    ) -> tuple[np.ndarray, np.ndarray]:
        """Propose the windows that the classifier c1 scores: their pixels x, y (n,), each once, row by row.

        The best windows of a classifier lie its localisation's offset before the keypoint, and those of a mirrored one a pixel
        off: the windows are centred on these, not on the keypoint.
        """
        xs, ys = self.points(channels, pool, prune)
        offset = predict_windows(channels, self.offsets.compiled(pool), xs, ys)
        near = np.abs(offset).max(axis=1, initial=0) <= MAX_OFFSET
        place = Localisation() if localisation is None else localisation
        before = reference_ied * np.array([place.offset_x, place.offset_y])
        before = np.clip(before, -_MAX_LOCALISATION_OFFSET, _MAX_LOCALISATION_OFFSET)
        at = pixel_of(np.column_stack([xs, ys])[near] + offset[near] - before)
        x, y = windows_around(channels, at[:, 0], at[:, 1], self.reach).T
        return x, y
