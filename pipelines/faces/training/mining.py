"""Hard negatives: the false alarms of a detector in a view."""

from __future__ import annotations

import numpy as np

from ....models.keypoints.detector import KeypointDetector
from ....models.keypoints.window_models import Mode
from ..data import FaceImage
from .sampling import Windows, cut_keys, pack_keys
from .views import open_view


def mine_view(
    image: FaceImage,
    mirrored: bool,
    number: int,
    keypoint: str,
    detector: KeypointDetector,
    known: np.ndarray,
    *,
    most: int,
    distance: float = 0.5,
    pixels: float = 0.0,
    mode: str = Mode.SCAN,
) -> tuple[Windows, int]:
    """Find the highest-scoring new false alarms of a detector among ALL windows of a view, or all
    that its mode scores.

    View, distance and pixels as in :func:`sample_view`. The detector's rejection thresholds are
    lowered; ``known`` are the sorted keys of the negatives so far. Returns at most ``most`` windows
    by falling score, and how many passed the thresholds wrongly, new or not.
    """
    view = open_view(image, keypoint, mirrored)
    levels = detector.search.pyramid(view.pixels)
    keys, scores, n_alarms = [np.empty(0, np.int64)], [np.empty(0, np.float32)], 0
    for k, (level, found) in enumerate(zip(levels, detector.search.score_levels(levels, keypoint, mode))):
        found = found[view.is_background(found[:, :2], distance, pixels / level.scale)]
        n_alarms += len(found)
        xy = np.rint(level.from_image(found[:, :2])).astype(np.int64)
        keys.append(pack_keys(number, k, xy[:, 1], xy[:, 0]))
        scores.append(found[:, 3].astype(np.float32))
    key, score = np.concatenate(keys), np.concatenate(scores)
    new = ~np.isin(key, known)
    key, score = key[new], score[new]
    best = np.lexsort((key, -score))[:most]
    key, score = key[best], score[best]
    return cut_keys(levels, key, score, detector.pool.window), n_alarms
