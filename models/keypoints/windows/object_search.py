"""Search for whole objects by a cascade of two nodes.

The cascade is the classifier c0 of Barbu et al. (2014), section 7.2.2. The first node scores a
sparse grid of windows, and accepts nearly all objects. The second node verifies the local maxima of
this score, with larger windows on a finer level.
"""

from collections.abc import Sequence
from dataclasses import dataclass

import cv2
import numpy as np

from ....vision.pyramid import Level, nearest_pixel, shrink
from ....vision.windows import Buffers, FeaturePool, level_channels, scan_level, score_windows
from .non_maximum_suppression import suppress_non_maxima
from .window_models import STRIP_PIXELS, FaceCascade, Localisation, SecondNode, regions

#: Key of whole objects among the local maxima of keypoints.
WHOLE = "(object)"
#: Maxima within this number of reference lengths and octaves of a better one are suppressed
#: (heuristic).
SAME_RADIUS, SAME_OCTAVES = 0.35, 0.6
_AS_SCORED = Localisation(radius=0.0, octaves=0.0, margin=0.0)
# distance to neighbouring windows, in pixels of the second node's level (heuristic)
_SHIFTS = ((-2, 0), (2, 0), (0, -2), (0, 2))


@dataclass(frozen=True)
class ObjectSearch:
    """Search with a cascade whose first node scans every ``step``-th level and row.

    The other parameters are those of the detector.
    """

    cascade: FaceCascade
    pool: FeaturePool
    reference_length: float
    scales_per_octave: int
    step: int = 2

    def find(self, levels: Sequence[Level]) -> np.ndarray:
        """Return the objects, best first, as an array of shape (n, 4).

        The columns are the x and y of the centre, the score of the last node, and the scale of the
        level of the keypoints.
        """
        node, rows, scale = self.cascade.second, self.first_maxima(levels), self.cascade.coarser
        if node is not None:
            rows, scale = self.second_scores(rows, levels), scale * node.finer
            rows = rows[rows[:, 2] >= node.classifier.threshold]
        rows[:, 3] /= scale
        return _distinct(rows, self.reference_length)

    def first_maxima(self, levels: Sequence[Level]) -> np.ndarray:
        """Return the local maxima of the first node above its threshold.

        The result has shape (n, 4), with the columns x, y, score and scale.
        """
        cascade, buffers, passed = self.cascade, Buffers(), [np.empty((0, 4))]
        pool = cascade.pool or self.pool
        model = cascade.classifier.compiled(pool)
        for number in range(0, len(levels), self.step):
            coarse = cascade.level(levels, number)
            height, width = coarse.image.shape[:2]
            rows = max(1, STRIP_PIXELS // width)
            for top in range(0, height, rows):
                strip = top, min(height, top + rows)
                channels = level_channels(coarse.image, pool, strip, 0, buffers)
                scores = scan_level(channels, model, self.step)
                beside = cv2.dilate(scores, np.ones((2 * self.step + 1,) * 2))
                peak = (scores >= beside) & (scores > -np.inf)
                ys, xs = np.nonzero(peak & (scores >= cascade.classifier.threshold))
                xy = coarse.to_image(np.column_stack([xs, ys + top]))
                passed.append(np.column_stack([xy, scores[ys, xs], np.full(len(xs), coarse.scale)]))
        return _distinct(np.concatenate(passed), self.reference_length * cascade.coarser)

    def second_scores(self, maxima: np.ndarray, levels: Sequence[Level]) -> np.ndarray:
        """Return the best windows around the maxima of the first node.

        The maxima and the windows are arrays of shape (n, 4), with the columns x, y, score and
        scale of the level. If the second node accepts the window at the maximum, this window is
        compared with four neighbours on its level and one window each on the levels above and
        below.
        """
        node, buffers, chosen = self.cascade.second, Buffers(), [np.empty((0, 4))]
        assert node is not None
        for scale in sorted(set(maxima[:, 3].tolist())):
            centres = maxima[maxima[:, 3] == scale, :2]
            best = np.full((len(centres), 4), -np.inf)
            for octaves in (0.0, -1 / self.scales_per_octave, 1 / self.scales_per_octave):
                level = level_at(levels, scale * node.finer * 2.0**octaves)
                if level is None or not len(centres):
                    continue
                rows = _best_around(level, centres, node, () if octaves else _SHIFTS, buffers)
                best = np.where(rows[:, 2:3] > best[:, 2:3], rows, best)
                passed = best[:, 2] > -np.inf
                centres, best = centres[passed], best[passed]
            chosen.append(best)
        return np.concatenate(chosen)


def _distinct(rows: np.ndarray, reference_length: float) -> np.ndarray:
    x, y, score, scale = rows.T
    limits = SAME_RADIUS, -np.inf, max(len(rows), 1), SAME_OCTAVES
    return suppress_non_maxima(x, y, scale, score, _AS_SCORED, reference_length, *limits)


def _best_around(
    level: Level,
    centres: np.ndarray,
    node: SecondNode,
    shifts: Sequence[tuple[int, int]],
    buffers: Buffers,
) -> np.ndarray:
    """Return the best windows (n, 4), x, y, score and scale, at points (n, 2) of the image. Shifted
    windows are also tried if the first one is not rejected; otherwise, the score is -inf."""
    pool, model = node.pool, node.classifier.compiled(node.pool)
    shape = level.image.shape[:2]
    last = np.array(shape[::-1]) - 1
    at = nearest_pixel(level.from_image(centres)).clip(0, last)
    best, score = at.copy(), np.full(len(at), -np.inf, np.float32)
    margin = pool.window // 2 + 1 + (max(_SHIFTS)[0] if shifts else 0)
    for rows, columns, members in regions(at, margin, shape, STRIP_PIXELS):
        channels = level_channels(level.image[rows, columns], pool, None, 0, buffers)
        corner = [columns.start, rows.start]
        score[members] = score_windows(channels, model, *(at[members] - corner).T)
        members = members[score[members] > -np.inf]
        if not shifts or not len(members):
            continue
        around = (at[members] + np.array(shifts)[:, None]).clip(0, last)
        scores = score_windows(channels, model, *(around - corner).reshape(-1, 2).T)
        scores = scores.reshape(len(shifts), -1)
        chosen = scores.argmax(axis=0), np.arange(len(members))
        better = scores[chosen] > score[members]
        score[members[better]], best[members[better]] = (
            scores[chosen][better],
            around[chosen][better],
        )
    return np.column_stack([level.to_image(best), score, np.full(len(at), level.scale)])


def level_at(levels: Sequence[Level], scale: float) -> Level | None:
    """Return the level with a given scale; None if the scale exceeds that of the largest level.

    If no level has this scale, the next larger level is resampled. The levels are sorted from large
    to small.
    """
    larger = [level for level in levels if level.scale >= scale * (1 - 1e-6)]
    if not larger:
        return None
    factor = scale / larger[-1].scale
    return larger[-1] if factor > 1 - 1e-6 else shrink(larger[-1], factor)
