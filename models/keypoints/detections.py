"""What a keypoint detector returns."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

from ..faces.face_finder import Face
from ..faces.probabilities import log_odds_of


class Detection(NamedTuple):
    """One detected keypoint.

    Parameters
    ----------
    keypoint : str
        Its name.
    x, y : float
        Position in image pixels.
    score : float
        The greater the surer: of a window's classifier, or the log-odds of the probability where faces are assembled.
    size : float
        Side of the detection window in image pixels.
    probability : float or None
        That it lies within 10 % of the inter-eye distance of that keypoint of a face; None where faces are not assembled.
    """

    keypoint: str
    x: float
    y: float
    score: float
    size: float
    probability: float | None = None


class Found(NamedTuple):
    """What :meth:`KeypointDetector.find` returns.

    Parameters
    ----------
    detections : list of Detection
        By falling score.
    faces : list of Face
        By falling probability; empty where faces are not assembled.
    """

    detections: list[Detection]
    faces: list[Face]


def of_faces(faces: Sequence[Face], names: Sequence[str], size: float) -> list[Detection]:
    """The keypoints of some names of all faces; ``size`` is that of a detection window in units of the IED."""
    return [
        Detection(name, p.x, p.y, float(log_odds_of(p.probability)), size * face.ied, p.probability)
        for face in faces
        for name, p in face.keypoints.items()
        if name in names
    ]


def best_of_each(detections: Sequence[Detection], most: int) -> list[Detection]:
    """The first so many of each keypoint."""
    count: dict[str, int] = {}
    kept = []
    for d in detections:
        count[d.keypoint] = count.get(d.keypoint, 0) + 1
        if count[d.keypoint] <= most:
            kept.append(d)
    return kept
