"""What is fitted on held-out photographs: how positions are averaged, their offset, the default
threshold.
"""

from collections.abc import Iterator, Sequence
from dataclasses import replace

import numpy as np

from .....models.keypoints.detector import KeypointDetector
from .....models.keypoints.windows.window_models import KeypointModel, Localisation, Mode
from .....models.keypoints.windows.window_search import suppress_non_maxima
from ....common.file_map import Jobs
from ...measures import NEAR, Curve, judge, pooled
from .views import NamedView, View, each, open_view

# of the default threshold, else it takes the balance of precision and recall. A choice
_MIN_RECALL = 0.1
_WIDE = 0.15  # reference lengths: errors of position are measured on detections this near. A choice
# of the windows that the position is averaged over: the held-out views select one
_RADII = (0.18, 0.25, 0.35, 0.5)
_SHARPNESS = (0.25, 0.5, 1.0, 2.0)  # of their weights: the held-out views select one


def calibrate(
    detector: KeypointDetector, keypoint: str, views: Sequence[NamedView], precision: float, n_jobs: Jobs = 1, mode: str = Mode.SCAN
) -> tuple[KeypointModel, dict[str, float]]:
    """Choose how positions are averaged, their offset and the default threshold on views that were
    not fitted.

    The classifier of ``keypoint`` in that mode of the detector is calibrated for a precision at a
    tolerance of 10 % of the reference length. Returns it, and its scores: AP at 5, 10 and 25 % on
    the held-out views, the threshold and the recall there.
    """
    model = detector.models[keypoint]

    def score_view(item: NamedView) -> tuple[View, np.ndarray]:
        view = open_view(item[0], keypoint, item[1])
        levels = detector.search.pyramid(view.pixels)
        windows = detector.search.score_levels(levels, keypoint, mode)
        return replace(view, pixels=view.pixels[:0].copy()), np.concatenate([np.empty((0, 4)), *windows]).T

    scored = list(each(views, score_view, n_jobs))

    def detections(place: Localisation) -> Iterator[tuple[View, np.ndarray, np.ndarray, np.ndarray]]:
        """Detections of every view, and the unit of the offset (in image pixels) at each."""
        for view, (x, y, scale, score) in scored:
            found = suppress_non_maxima(x, y, scale, score, place, detector.reference_length, detector.suppression)
            yield view, found[:, :2], found[:, 2], detector.reference_length / found[:, 3]

    def curve_of(place: Localisation, tolerance: float) -> Curve:
        return pooled(
            [
                judge(xy, score, v.points, v.visible, v.reference_length, v.ignore, tolerance)
                for v, xy, score, _ in detections(place)
            ]
        )

    def errors(place: Localisation) -> list[np.ndarray]:
        """Of every view: vectors from detections to the keypoints nearby, in units of the reference
        reference length.
        """
        found = []
        for view, xy, score, unit in detections(place):
            hits = judge(xy, score, view.points, view.visible, view.reference_length, view.ignore, _WIDE)
            order = np.argsort(-score, kind="stable")[: len(hits.face)]
            chosen = hits.face >= 0
            found.append((view.points[hits.face[chosen]] - hits.xy[chosen]) / unit[order][chosen, None])
        return found

    def centred(place: Localisation) -> Localisation:
        """The same with the median offset of the detections."""
        found = np.concatenate([np.empty((0, 2)), *errors(place)])
        dx, dy = np.median(found, axis=0) if len(found) else np.zeros(2)
        return replace(place, offset_x=float(dx), offset_y=float(dy))

    def annotated(place: Localisation) -> Localisation:
        """The same with how much further right annotations lie, in mirror images further left."""
        signed = [(-error if flip else error)[:, 0] for (_, flip), error in zip(views, errors(place), strict=True)]
        found = np.concatenate([np.empty(0), *signed])
        return replace(place, annotation_x=float(np.median(found)) if len(found) else 0.0)

    places = [centred(Localisation(radius=r, sharpness=s)) for r in _RADII for s in _SHARPNESS]
    place = max(places, key=lambda place: curve_of(place, 0.05).average_precision)
    fine, coarse = curve_of(place, 0.05), curve_of(place, NEAR)
    recall, threshold = coarse.at_precision(precision)
    if recall < _MIN_RECALL:  # that precision is out of reach
        recall, threshold = coarse.at_balance()
        threshold = threshold if np.isfinite(threshold) else 0.0  # no detection at all
    # at 0.25 near enough to assemble objects
    scores = {f"ap_{name}": curve.average_precision for name, curve in ((5, fine), (10, coarse), (25, curve_of(place, 0.25)))}
    scores |= {"recall": recall, "threshold": threshold}
    return replace(model, localisation=annotated(place), threshold=threshold), scores
