"""What is fitted on held-out photographs: how positions are averaged, their offset, the default threshold."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import numpy as np

from ....models.keypoints.detector import KeypointDetector, KeypointModel
from ....models.keypoints.non_maximum_suppression import IED, Localisation, find_peaks
from ..average_precision import NEAR, judge, pooled
from ..data import FaceImage
from .views import each, open_view

_LEAST_RECALL = 0.1  # of the default threshold
_WIDE = 0.15  # IED: detections this near tell how far off the positions are
_RADII = (0.18, 0.25, 0.35, 0.5)  # of the windows that the position is averaged over: the held-out views choose
_SHARPNESS = (0.25, 0.5, 1.0, 2.0)  # of their weights


def calibrate(
    detector: KeypointDetector,
    keypoint: str,
    views: Sequence[tuple[FaceImage, bool]],
    precision: float,
    n_jobs: int = 1,
    mode: str = "scan",
) -> tuple[KeypointModel, dict[str, float]]:
    """Choose how positions are averaged, their offset and the default threshold on held-out views.

    Parameters
    ----------
    detector : KeypointDetector
        Holds a model of ``keypoint``; its localisation is replaced.
    keypoint : str
        Which one.
    views : list of (FaceImage, bool)
        Photographs that were not fitted, and whether to mirror them.
    precision : float
        What the detections above the default threshold reach at a tolerance of 10 % IED.
    n_jobs : int
        Threads.
    mode : {"scan", "regress", "prune+regress"}
        Of the detector; its classifier is the one that is calibrated.

    Returns
    -------
    model : KeypointModel
    scores : dict of str to float
        AP at 5 % and 10 % on the held-out views, and the recall at the default threshold.
    """
    model = detector.classifier(keypoint, mode)

    def look(item: tuple[FaceImage, bool]):
        view = open_view(item[0], keypoint, item[1])
        levels = detector.pyramid(view.pixels)
        windows = [detector.score_level(level, keypoint, mode) for level in levels]
        return view, np.concatenate([np.empty((0, 4)), *windows]).T

    looks = list(each(views, look, n_jobs))

    def answers(place: Localisation):
        """Peaks of every view, and the unit of the offset (in image pixels) at each."""
        for view, (x, y, scale, score) in looks:
            peaks = find_peaks(x, y, scale, score, place, detector.suppression)
            yield view, peaks[:, :2], peaks[:, 2], IED / peaks[:, 3]

    def curve_of(place: Localisation, tolerance: float):
        return pooled([judge(xy, score, v.points, v.visible, v.ied, v.ignore, tolerance) for v, xy, score, _ in answers(place)])

    def errors(place: Localisation) -> list[np.ndarray]:
        """Of every view: where the keypoints lie, seen from what was found nearby, in units of ``IED``."""
        found = []
        for view, xy, score, unit in answers(place):
            hits = judge(xy, score, view.points, view.visible, view.ied, view.ignore, _WIDE)
            order = np.argsort(-score, kind="stable")[: len(hits.face)]
            chosen = hits.face >= 0
            found.append((view.points[hits.face[chosen]] - hits.xy[chosen]) / unit[order][chosen, None])
        return found

    def centred(place: Localisation) -> Localisation:
        """The same with the median offset of what was found."""
        found = np.concatenate([np.empty((0, 2)), *errors(place)])
        dx, dy = np.median(found, axis=0) if len(found) else np.zeros(2)
        return replace(place, offset_x=float(dx), offset_y=float(dy))

    def marked(place: Localisation) -> Localisation:
        """The same with how much further right the marks lie, in mirror images further left."""
        signed = [(-error if flip else error)[:, 0] for (_, flip), error in zip(views, errors(place), strict=True)]
        found = np.concatenate([np.empty(0), *signed])
        return replace(place, mark_x=float(np.median(found)) if len(found) else 0.0)

    places = [centred(Localisation(radius=r, sharpness=s)) for r in _RADII for s in _SHARPNESS]
    place = max(places, key=lambda place: curve_of(place, 0.05).average_precision)
    fine, coarse = curve_of(place, 0.05), curve_of(place, NEAR)
    recall, threshold = coarse.at_precision(precision)
    if recall < _LEAST_RECALL:  # that precision is out of reach: the best balance of both
        balance = coarse.precision * coarse.recall / np.maximum(coarse.precision + coarse.recall, 1e-12)
        best = int(np.argmax(balance)) if len(balance) else 0
        recall, threshold = (float(v[best]) if len(v) else 0.0 for v in (coarse.recall, coarse.threshold))
    scores = {
        "ap_5": fine.average_precision,
        "ap_10": coarse.average_precision,
        "recall": recall,
        "threshold": threshold,
    }
    return replace(model, localisation=marked(place), threshold=threshold), scores
