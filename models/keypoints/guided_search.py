"""Regression-guided detection, Algorithm 3 of the arXiv text: a sparse grid instead of every window."""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np

from ...vision.windows.feature_pool import FeaturePool
from ...vision.windows.level_features import LevelChannels
from ...vision.windows.patches import pixel_of
from ...vision.windows.sparse_scan import predict_windows, score_windows, windows_around
from .non_maximum_suppression import IED, Localisation
from .window_models import KeypointModel, OffsetModel

MODES = ("scan", "regress", "prune+regress")
"""How windows are chosen: all of them; where a regressor points from a grid; the same from what is left of a pruned grid."""

FARTHEST = 20  # pixels of a level: the regressor has learnt from nearer windows, a longer way is not believed
_OFF = 2  # pixels of a level, at most, by which windows are laid beside the keypoint


@dataclass(frozen=True)
class Guide:
    """What leads to the windows of a level that are worth a look.

    Attributes
    ----------
    prune : tuple of KeypointModel
        The cascade c0: a grid point goes on when each node scores at least its threshold.
    offsets : OffsetModel
        The regressor f: where the keypoint lies, seen from a grid point.
    grid : int
        Distance between grid points, in pixels of the level.
    reach : int
        The classifier looks at all windows within so many pixels of the predicted one, in x and y.
    verifier : KeypointModel, optional
        The classifier c1 of the mode "prune+regress", trained on what c0 lets through; without it, that of the scan.
    """

    prune: tuple[KeypointModel, ...]
    offsets: OffsetModel
    grid: int = 10
    reach: int = 2
    verifier: KeypointModel | None = None

    @property
    def margin(self) -> int:
        """How far from a grid point windows may lie, in pixels of the level."""
        return FARTHEST + self.reach + _OFF + 1

    def mirrored(self, pool: FeaturePool) -> Guide:
        """Return the guide to the mirror image of this keypoint."""
        prune = tuple(node.mirrored(pool) for node in self.prune)
        verifier = None if self.verifier is None else self.verifier.mirrored(pool)
        return replace(self, prune=prune, offsets=self.offsets.mirrored(pool), verifier=verifier)

    def points(self, channels: LevelChannels, pool: FeaturePool, prune: bool) -> tuple[np.ndarray, np.ndarray]:
        """Grid points x, y in the level's own rows; pruned if asked for."""
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
        self, channels: LevelChannels, pool: FeaturePool, prune: bool, localisation: Localisation | None = None
    ) -> tuple[np.ndarray, np.ndarray]:
        """Pixels x, y of the windows that the classifier c1 is to look at, each once, row by row.

        ``localisation`` is that of c1: its best windows lie its offset before the keypoint, and those of a mirrored classifier a
        pixel off; the windows are laid around them, not around the keypoint.
        """
        xs, ys = self.points(channels, pool, prune)
        offset = predict_windows(channels, self.offsets.compiled(pool), xs, ys)
        near = np.abs(offset).max(axis=1, initial=0) <= FARTHEST
        place = Localisation() if localisation is None else localisation
        before = np.clip(IED * np.array([place.offset_x, place.offset_y]), -_OFF, _OFF)
        at = pixel_of(np.column_stack([xs, ys])[near] + offset[near] - before)
        x, y = windows_around(channels, at[:, 0], at[:, 1], self.reach).T
        return x, y
