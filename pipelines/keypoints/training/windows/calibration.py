"""Calibration of localisations and default thresholds on held-out photographs."""

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np

from .....models.keypoints.detector import KeypointDetector
from .....models.keypoints.windows import (
    KeypointModel,
    Localisation,
    LocalMaxima,
    Mode,
    local_maxima,
)
from ....common.file_map import Jobs
from ...measures import NEAR, Curve, MatchedDetections, judge, pooled
from .views import NamedView, View, each, open_view

# minimum recall of the default threshold; if it is not reached, the threshold maximises F1
# (heuristic)
_MIN_RECALL = 0.1
_WIDE = 0.15  # reference lengths: position errors are measured on detections this close (heuristic)
#: Localisations from which the calibration on the held-out views chooses.
AVERAGINGS = tuple(
    Localisation(radius=radius, sharpness=sharpness)
    for radius in (0.18, 0.25, 0.35, 0.5)
    for sharpness in (0.25, 0.5, 1.0, 2.0)
)


@dataclass(frozen=True)
class Calibration:
    """Held-out views for evaluating how positions are computed from window scores.

    The object stores each view with the local maxima of its scores, and a flag that is set for
    mirror images.
    """

    views: list[tuple[View, LocalMaxima, bool]]

    def judged(
        self, place: Localisation, tolerance: float
    ) -> list[tuple[MatchedDetections, np.ndarray]]:
        """Return, for each view, the detections and the reference lengths at their scales."""
        results = []
        for view, maxima, _ in self.views:
            detections = maxima.positions(place)
            points = view.points, view.visible, view.reference_length, view.ignore
            results.append(
                (judge(detections[:, :2], detections[:, 2], *points, tolerance), maxima.unit)
            )
        return results

    def curve(self, place: Localisation, tolerance: float) -> Curve:
        """Return the precision-recall curve for all views together."""
        return pooled([one for one, _ in self.judged(place, tolerance)])

    def median_error(self, place: Localisation, turned_back: bool = False) -> tuple[float, float]:
        """Return the median vector from detections to nearby keypoints, in reference lengths.

        If ``turned_back`` is set, the vectors in mirror images are negated.
        """
        errors = [np.empty((0, 2))]
        for (view, _, mirrored), (one, unit) in zip(self.views, self.judged(place, _WIDE)):
            hits = one.face >= 0
            error = (view.points[one.face[hits]] - one.xy[hits]) / unit[: len(hits)][hits, None]
            errors.append(-error if turned_back and mirrored else error)
        every = np.concatenate(errors)
        dx, dy = np.median(every, axis=0).tolist() if len(every) else (0.0, 0.0)
        return dx, dy


def calibrate(
    detector: KeypointDetector,
    keypoint: str,
    views: Sequence[NamedView],
    precision: float,
    n_jobs: Jobs = 1,
    mode: str = Mode.SCAN,
    averagings: Sequence[Localisation] = AVERAGINGS,
) -> tuple[KeypointModel, dict[str, float]]:
    """Calibrate the classifier of a keypoint on held-out views.

    The function chooses one of ``averagings`` for averaging positions, and computes the offset of
    the positions and the default threshold. If possible, the precision at this threshold is at
    least ``precision``, for a tolerance of 10% of the reference length. The function returns the
    classifier and its scores: the average precision at tolerances of 5, 10 and 25%, the threshold,
    and the recall at the threshold.
    """

    widest = max(averagings, key=lambda averaged: averaged.radius)

    def score_view(item: NamedView) -> tuple[View, LocalMaxima, bool]:
        view = open_view(item[0], keypoint, item[1])
        windows = detector.search.score_levels(detector.search.pyramid(view.pixels), keypoint, mode)
        x, y, scale, score = np.concatenate([np.empty((0, 4)), *windows]).T
        length, radius = detector.reference_length, detector.suppression
        maxima = local_maxima(x, y, scale, score, widest, length, radius)
        return replace(view, pixels=view.pixels[:0].copy()), maxima, item[1]

    calibration = Calibration(list(each(views, score_view, n_jobs)))
    places = []
    for averaged in averagings:
        dx, dy = calibration.median_error(averaged)
        places.append(replace(averaged, offset_x=dx, offset_y=dy))
    place = max(places, key=lambda place: calibration.curve(place, 0.05).average_precision)

    coarse = calibration.curve(place, NEAR)
    recall, threshold = coarse.at_precision(precision)
    if recall < _MIN_RECALL:  # the required precision cannot be reached
        recall, threshold = coarse.at_balance()
        threshold = threshold if np.isfinite(threshold) else 0.0  # no detections

    # 0.25 is close enough to assemble objects
    curves = {
        "ap_5": calibration.curve(place, 0.05),
        "ap_10": coarse,
        "ap_25": calibration.curve(place, 0.25),
    }
    scores = {name: curve.average_precision for name, curve in curves.items()} | {
        "recall": recall,
        "threshold": threshold,
    }
    # offset of the annotations to the right, which is to the left in mirror images
    place = replace(place, annotation_x=calibration.median_error(place, turned_back=True)[0])
    return replace(detector.models[keypoint], localisation=place, threshold=threshold), scores
