"""Search for whole objects by a cascade of two nodes.

The cascade is the classifier c0 of Barbu et al. (2014), section 7.2.2. The first node scores a
sparse grid of windows and accepts nearly all objects. The second node verifies the local maxima of
this score, using larger windows on a finer level.
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from ....vision.pyramid import Level, shrink
from ....vision.windows import (
    Buffers,
    FeaturePool,
    level_channels,
    patch_channels,
    scan_level,
    score_windows,
)
from .non_maximum_suppression import suppress_non_maxima
from .window_models import STRIP_PIXELS, FaceCascade, Localisation

#: Key of whole objects among the local maxima of keypoints.
WHOLE = "(object)"
#: Maxima within this number of reference lengths and octaves of a better one are suppressed
#: (heuristic).
SAME_RADIUS, SAME_OCTAVES = 0.35, 0.6
_AS_SCORED = Localisation(radius=0.0, octaves=0.0, margin=0.0)
# distance to neighbouring windows, in pixels of the second node's level (heuristic)
_SHIFTS = ((-2, 0), (2, 0), (0, -2), (0, 2))
_MIN_SIDE = 12  # pixels: no level is smaller, since the anchors of a face would not fit (heuristic)
_PATCHES = 256  # maximum number of windows of the second node in memory


@dataclass(frozen=True)
class ObjectSearch:
    """Search for whole objects by a cascade of one or two classifiers (nodes).

    The first node scans every ``step``-th level and row. The other parameters are those of
    :class:`.KeypointDetector`; ``cascade`` is its ``face_cascade``.
    """

    cascade: FaceCascade
    pool: FeaturePool
    reference_length: float
    scales_per_octave: int
    step: int = 2

    def find(self, levels: Sequence[Level]) -> np.ndarray:
        """Return the detected objects, sorted by score, as an array of shape (n, 4).

        The columns are x and y of the centre, the score of the last node, and the scale of the
        level on which the keypoints of the object are to be detected.
        """
        node, rows = self.cascade.second, self.first_maxima(levels)
        scale = self.cascade.coarser * (1.0 if node is None else node.finer)
        if node is not None:
            rows = self.second_scores(rows, levels)
            rows = rows[rows[:, 2] >= node.classifier.threshold]
        rows[:, 3] /= scale
        return _distinct(rows, self.reference_length)

    def first_maxima(self, levels: Sequence[Level]) -> np.ndarray:
        """Return the local maxima of the score of the first node that reach its threshold.

        The result has shape (n, 4), with the columns x, y, score and scale.
        """
        cascade, buffers, passed = self.cascade, Buffers(), [np.empty((0, 4))]
        pool = cascade.pool or self.pool
        model = cascade.classifier.compiled(pool)
        threshold = max(cascade.classifier.threshold, -3e38)  # rejected windows: -inf
        beside = np.arange(-self.step, self.step + 1)
        for number in range(0, len(levels), self.step):
            coarse = level_at(levels, levels[number].scale * cascade.coarser) or levels[number]
            height, width = coarse.shape
            if min(height, width) < _MIN_SIDE:
                break
            rows = max(1, STRIP_PIXELS // width)
            for top in range(0, height, rows):
                strip = top, min(height, top + rows)
                channels = level_channels(coarse.image, pool, strip, 0, buffers)
                scores = scan_level(channels, model, self.step, coarse.spans(*strip))
                ys, xs = np.nonzero(scores >= threshold)
                down = np.add.outer(ys, beside).clip(0, len(scores) - 1)
                across = np.add.outer(xs, beside).clip(0, width - 1)
                best = scores[down[:, :, None], across[:, None]].max(axis=(1, 2), initial=threshold)
                peaks = scores[ys, xs] >= best
                ys, xs = ys[peaks], xs[peaks]
                xy = coarse.to_image(np.column_stack([xs, ys + top]))
                passed.append(np.column_stack([xy, scores[ys, xs], np.full(len(xs), coarse.scale)]))
        return _distinct(np.concatenate(passed), self.reference_length * cascade.coarser)

    def second_scores(self, maxima: np.ndarray, levels: Sequence[Level]) -> np.ndarray:
        """Return the window with the highest score of the second node around each given maximum.

        Maxima and windows are rows of arrays with the columns x, y, score and scale of the level.
        Maxima at which the second node rejects the window are dropped. For each of the others, the
        window is compared with four neighbours on its level, and with one window on each adjacent
        level.
        """
        # By level, since the large levels of a large image are recomputed on access
        maxima = maxima[np.argsort(maxima[:, 3], kind="stable")]
        best, some = np.full((len(maxima), 4), -np.inf), np.arange(len(maxima))
        for octaves in (0.0, -1 / self.scales_per_octave, 1 / self.scales_per_octave):
            for begin in range(0, len(some), _PATCHES):
                block = some[begin : begin + _PATCHES]
                rows = self._best_around(maxima[block], levels, octaves, () if octaves else _SHIFTS)
                best[block] = np.where(rows[:, 2:3] > best[block, 2:3], rows, best[block])
            some = np.flatnonzero(best[:, 2] > -np.inf)
        return best[some]

    def _best_around(
        self,
        maxima: np.ndarray,
        levels: Sequence[Level],
        octaves: float,
        shifts: tuple[tuple[int, int], ...],
    ) -> np.ndarray:
        """Return the best windows (n, 4) at maxima of the first node.

        Their levels are some octaves finer than those of the second node. Shifted windows are also
        tried if the first one is not rejected; otherwise, and if there is no such level, the score
        is -inf.
        """
        node, best = self.cascade.second, np.full((len(maxima), 4), -np.inf)
        assert node is not None
        pool, model, reach = node.pool, node.classifier.compiled(node.pool), max(_SHIFTS)[0]
        middle, side = pool.window // 2 + 1 + reach, pool.window + 2 + 2 * reach
        rows, patches, places = [], [], []
        scales = {scale: scale * node.finer * 2.0**octaves for scale in maxima[:, 3].tolist()}
        level_of = {scale: level_at(levels, finer) for scale, finer in scales.items()}
        for row, (x, y, _, scale) in enumerate(maxima.tolist()):
            level = level_of[scale]
            if level is not None:  # nearest_pixel
                column, line = (math.floor((at + 0.5) * level.scale) for at in (x, y))
                patches.append(level.part(column - middle, line - middle, side, side))
                places.append([column, line, level.scale])
                rows.append(row)
        if not rows:
            return best
        channels, first = patch_channels(patches, pool), side * np.arange(len(rows))
        scores = np.full((len(shifts) + 1, len(rows)), -np.inf, np.float32)
        scores[0] = score_windows(channels, model, first + reach, np.full(len(rows), reach))
        tried = np.flatnonzero(scores[0] > -np.inf)
        if shifts and len(tried):
            across, down = np.repeat(np.array(shifts).T + reach, len(tried), axis=1)
            across += np.tile(first[tried], len(shifts))
            scores[1:, tried] = score_windows(channels, model, across, down).reshape(
                len(shifts), -1
            )
        x, y, scale = np.array(places).T
        dx, dy = np.array([(0, 0), *shifts])[scores.argmax(axis=0)].T
        xy = [(at + 0.5) / scale - 0.5 for at in (x + dx, y + dy)]
        best[rows] = np.column_stack([*xy, scores.max(axis=0), scale])
        return best


def _distinct(rows: np.ndarray, reference_length: float) -> np.ndarray:
    x, y, score, scale = rows.T
    return suppress_non_maxima(
        x,
        y,
        scale,
        score,
        _AS_SCORED,
        reference_length,
        SAME_RADIUS,
        -np.inf,
        max(len(rows), 1),
        SAME_OCTAVES,
    )


def level_at(levels: Sequence[Level], scale: float) -> Level | None:
    """Return a level with the given scale, or None if all levels are smaller.

    If no level has this scale, the next larger level is resampled. ``levels`` is sorted from large
    to small.
    """
    larger = [level for level in levels if level.scale >= scale * (1 - 1e-6)]
    if not larger:
        return None
    factor = scale / larger[-1].scale
    return larger[-1] if factor > 1 - 1e-6 else shrink(larger[-1], factor)
