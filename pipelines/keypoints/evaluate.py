"""Evaluation of a keypoint detector on annotated images (``annealed keypoints evaluate``)."""

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from itertools import product
from pathlib import Path
from typing import Any, TypeVar

import numpy as np

from ...models.keypoints import Detection, DetectionOptions, DetectionResult, KeypointDetector
from ...models.keypoints.instances import SAME_INSTANCE, Assembly, Instance, RigidModel, pose_of
from ...vision.images import read_image
from .data import AnnotatedImage
from .measures import (
    FALSE,
    MAX_DETECTIONS,
    MatchedDetections,
    judge,
    oks_rows,
    pooled,
    reliability,
    score,
)

TOLERANCES = (0.05, 0.10)
PRECISION = 0.9
# Columns of the table for each measure, with their headings.
COLUMNS = {
    "ap": {
        "keypoint": "keypoint",
        "source": "source",
        "tolerance": "tolerance",
        "points": "points",
        "ap": "AP",
        "recall_at_precision_90": "recall at precision 0.9",
        "threshold": "threshold",
        "precision_at_threshold": "precision",
        "recall_at_threshold": "recall",
        "false_per_image": "false per image",
        "false_per_background_image": "false per background image",
    },
    "pck": {
        "keypoint": "keypoint",
        "points": "points",
        "pck": "PCK",
        "pck_detected": "PCK of detected objects",
        "median_error": "median error",
    },
    "oks": {"oks": "OKS", "objects": "objects", "ap": "AP"},
}
# Columns about whole objects in the last row of "pck"
OF_OBJECTS = {
    "objects": "objects",
    "detected": "detected",
    "oks_ap": "AP (OKS)",
    "false_per_image": "false per image",
    "false_per_background_image": "false per background image",
}
MIN_PROBABILITY = 0.5  # minimum probability of a face that is reported by default
Item = TypeVar("Item")
MAX_SOURCES = 12  # a larger number of distinct file prefixes are names rather than sources
# Limits of the subsets: reference lengths in pixels, and angles in degrees.
_IED = (0, 25, 32, 45, np.inf)
_YAW, _ROLL = (0, 8, 16, 180), (0, 6, 12, 180)


@dataclass
class Evaluation:
    """Result of :func:`evaluate_detector`.

    Attributes
    ----------
    rows : list of dict
        One row per keypoint, source (collection of photographs) and tolerance, with the keys in
        `COLUMNS`. Values from ``threshold`` onwards refer to the default threshold of the detector.
    images : list of AnnotatedImage
        Photographs that could be read.
    judged : dict of (keypoint, tolerance) to list of MatchedDetections
        Matched detections of each photograph.
    default : dict of (keypoint, tolerance) to list of MatchedDetections
        Matched detections at the default threshold.
    landmarks : list of dict
        One row per source, with the number of ``faces``, the number of detected faces ``found``,
        and ``nme``, the mean error of the 68 landmarks divided by the distance between the outer
        eye corners. The list is empty if the landmarks are not annotated or the model has no
        landmarks.
    subsets : list of dict
        Average precision by size and pose of the faces, with one row per subset, keypoint and
        tolerance.
    reliability : list of dict
        Proportion of detections in each probability bin that are within 10% of the reference
        length of a keypoint, for all keypoints together; empty if instances are not assembled. See
        :func:`~annealed.pipelines.keypoints.measures.reliability`.
    errors : list of str
        One-line error message for each unreadable photograph.
    """

    rows: list[dict] = field(default_factory=list)
    images: list[AnnotatedImage] = field(default_factory=list)
    judged: dict[tuple[str, float], list[MatchedDetections]] = field(default_factory=dict)
    default: dict[tuple[str, float], list[MatchedDetections]] = field(default_factory=dict)
    landmarks: list[dict] = field(default_factory=list)
    subsets: list[dict] = field(default_factory=list)
    reliability: list[dict] = field(default_factory=list)
    errors: list[str] = field(default_factory=list)


def default_detections(
    result: DetectionResult, thresholds: dict[str, float] | None
) -> list[Detection]:
    """Return the candidates that are reported by default.

    These belong to faces with a probability of at least 0.5 or exceed the score thresholds.
    """
    if thresholds is not None:
        return [d for d in result.detections if d.score >= thresholds[d.keypoint]]
    shown = {
        (name, p.x, p.y)
        for instance in result.instances
        if instance.probability >= MIN_PROBABILITY
        for name, p in instance.keypoints.items()
    }
    return [d for d in result.detections if (d.keypoint, d.x, d.y) in shown]


def landmark_error(instances: Sequence[Instance], image: AnnotatedImage) -> list[float | None]:
    """Compute the mean error of the 68 landmarks of each annotated face.

    The error is divided by the distance between the outer eye corners. It is None for a face that
    was not detected.
    """
    assert image.landmarks is not None
    errors: list[float | None] = []
    for truth in image.landmarks:
        unit = float(np.hypot(*(truth[36] - truth[45])))
        made = [
            float(np.hypot(*(instance.landmarks - truth).T).mean()) / unit
            for instance in instances
            if instance.probability >= MIN_PROBABILITY
        ]
        errors.append(
            min(made, default=None) if min(made, default=np.inf) < SAME_INSTANCE else None
        )
    return errors


def judge_image(
    detections: Sequence[Detection], image: AnnotatedImage, keypoint: str, tolerance: float
) -> MatchedDetections:
    """Match the detections of a keypoint in a photograph to the annotations."""
    i, mine = (
        image.schema.keypoints.index(keypoint),
        [d for d in detections if d.keypoint == keypoint],
    )
    xy, score = [(d.x, d.y) for d in mine], [d.score for d in mine]
    return judge(
        xy,
        score,
        image.instances[:, i],
        image.visible[:, i],
        image.reference_length,
        image.ignore,
        tolerance,
    )


def evaluate_detector(
    detector: KeypointDetector,
    images: Sequence[AnnotatedImage],
    keypoints: Sequence[str],
    background: Sequence[Path] = (),
    progress: Callable[[Iterable, int], Iterable] = lambda it, n: it,
    measure: str = "ap",
    **options: Any,
) -> Evaluation:
    """Evaluate a detector by one of three measures.

    ``"ap"`` is the average precision of each keypoint at several tolerances, computed over all
    candidates, at most 200 per image and keypoint. ``"pck"`` is the fraction of points whose error
    is at most a tenth of the size of the box. ``"oks"`` is the average precision of whole objects
    by object keypoint similarity. In ``background`` images, detections at the default threshold are
    counted. ``progress`` is a function that wraps an iterable of known length. ``options`` contains
    the mode and assembly arguments of :meth:`KeypointDetector.detect`.
    """
    names = images[0].schema.keypoints
    for name in keypoints:
        if name not in names:
            raise ValueError(
                f"keypoint {name!r} of the model is not annotated in the data; the annotated "
                f"keypoints are {', '.join(names)}"
            )
    resolved = detector.resolve(DetectionOptions(keypoints, **options))
    if measure != "ap":
        return _by_box(detector, images, resolved, background, progress, measure)
    alone = resolved.assembly == Assembly.NONE
    thresholds = {name: detector.models[name].threshold for name in keypoints} if alone else None
    n_landmarks = 0 if alone or detector.finder is None else len(detector.finder.regressor.mean)
    rigid = None if detector.finder is None else detector.finder.rigid
    result = Evaluation()
    errors: list[list[float | None]] = []  # landmark errors of each photograph
    for image, pixels in _readable(progress(images, len(images)), AnnotatedImage.pixels, result):
        every = detector.find(pixels, resolved, threshold=-np.inf, max_detections=MAX_DETECTIONS)
        shown = default_detections(every, thresholds)
        comparable = image.landmarks is not None and image.landmarks.shape[1] == n_landmarks
        errors.append(landmark_error(every.instances, image) if comparable else [])
        for name, tolerance in product(keypoints, TOLERANCES):
            for matched, detections in ((result.judged, every.detections), (result.default, shown)):
                matched.setdefault((name, tolerance), []).append(
                    judge_image(detections, image, name, tolerance)
                )
    alarms = _false_alarms(detector, resolved, progress(background, len(background)), result)
    parts = _sources(result.images)
    for name, (part, chosen), tolerance in product(keypoints, parts.items(), TOLERANCES):
        row = {"keypoint": name, "source": part, "tolerance": tolerance}
        row |= _row(
            *([of[name, tolerance][i] for i in chosen] for of in (result.judged, result.default))
        )
        row["threshold"] = None if thresholds is None else thresholds[name]
        if part == "all":
            row["false_per_background_image"] = (
                float(np.mean(alarms[name])) if alarms[name] else None
            )
        result.rows.append(row)
    result.subsets = _subsets(result, keypoints, rigid)
    if not alone:
        result.reliability = reliability(
            [one for name in keypoints for one in result.judged[name, TOLERANCES[1]]]
        )
    for part, chosen in parts.items():
        if faces := [error for i in chosen for error in errors[i]]:
            known = [error for error in faces if error is not None]
            result.landmarks.append(
                {
                    "source": part,
                    "faces": len(faces),
                    "found": len(known),
                    "nme": float(np.mean(known)) if known else None,
                }
            )
    return result


def _sources(images: Sequence[AnnotatedImage]) -> dict[str, list[int]]:
    """Return the indices of all photographs and of the photographs from each source."""
    sources = sorted({image.source for image in images})
    parts = ["all", *(sources if 1 < len(sources) <= MAX_SOURCES else [])]
    return {
        part: [i for i, image in enumerate(images) if part in ("all", image.source)]
        for part in parts
    }


def _by_box(
    detector: KeypointDetector,
    images: Sequence[AnnotatedImage],
    options: DetectionOptions,
    background: Sequence[Path],
    progress: Callable[[Iterable, int], Iterable],
    measure: str,
) -> Evaluation:
    """Evaluate whole objects by errors relative to the size of their boxes."""
    names, result = images[0].schema.keypoints, Evaluation()
    if set(names) != set(detector.keypoints) or options.assembly == Assembly.NONE:
        raise ValueError(
            f"the data have the keypoints {', '.join(names)}, but the model has "
            f"{', '.join(detector.keypoints)}"
        )
    requested = options.keypoints or ()
    options = replace(options, keypoints=names, min_probability=0.0 if measure == "oks" else None)

    def search(pixels: np.ndarray) -> tuple[list[np.ndarray], list[float]]:
        instances = detector.find(pixels, options).instances
        return [np.array([one.keypoints[name][:2] for name in names]) for one in instances], [
            one.probability for one in instances
        ]

    results = [
        search(pixels)
        for _, pixels in _readable(progress(images, len(images)), AnnotatedImage.pixels, result)
    ]
    points, probability = [one for one, _ in results], [p for _, p in results]
    if measure == "oks":
        result.rows = oks_rows(result.images, points, probability)
    else:
        empty = [
            search(pixels)[0]
            for _, pixels in _readable(progress(background, len(background)), read_image, result)
        ]
        rows = score(result.images, points, empty)
        rows[-1]["oks_ap"] = oks_rows(result.images, points, probability)[-1]["ap"]
        result.rows = [row for row in rows if row["keypoint"] in (*requested, "all")]
    return result


def _readable(
    items: Iterable[Item], read: Callable[[Item], np.ndarray], result: Evaluation
) -> Iterator[tuple[Item, np.ndarray]]:
    """Iterate over annotated images, or paths, and their pixels; unreadable files are added to the
    errors."""
    for item in items:
        try:
            pixels = read(item)
        except ValueError as error:
            result.errors.append(str(error))
            continue
        if isinstance(item, AnnotatedImage):
            result.images.append(item)
        yield item, pixels
    if not result.images:
        raise ValueError(f"none of the photographs could be read ({result.errors[0]})")


def _false_alarms(
    detector: KeypointDetector, options: DetectionOptions, paths: Iterable[Path], result: Evaluation
) -> dict[str, list[int]]:
    """Count the detections of each keypoint in photographs without faces; unreadable files are
    added to the errors."""
    alarms: dict[str, list[int]] = {name: [] for name in options.keypoints or ()}
    for _, pixels in _readable(paths, read_image, result):
        detections = detector.detect(pixels, options)
        for name in alarms:
            alarms[name].append(sum(d.keypoint == name for d in detections))
    return alarms


def _subsets(result: Evaluation, keypoints: Sequence[str], rigid: RigidModel | None) -> list[dict]:
    rows = []
    for subset, chosen in subsets_of(result.images, rigid).items():
        for name, tolerance in product(keypoints, TOLERANCES):
            curve = pooled([result.judged[name, tolerance][i] for i in chosen])
            rows.append(
                {
                    "subset": subset,
                    "photographs": len(chosen),
                    "keypoint": name,
                    "tolerance": tolerance,
                    "points": curve.n_points,
                    "ap": curve.average_precision,
                }
            )
    return rows


def _row(judged: list[MatchedDetections], default: list[MatchedDetections]) -> dict:
    """Return the number of points, the average precision and recall of all candidates, and the
    results at the default threshold."""
    curve, shown = pooled(judged), pooled(default)
    precision, recall = shown.at_threshold(-np.inf)
    return {
        "points": curve.n_points,
        "ap": curve.average_precision,
        "recall_at_precision_90": curve.at_precision(PRECISION)[0],
        "precision_at_threshold": precision,
        "recall_at_threshold": recall,
        "false_per_image": sum(int((j.outcome == FALSE).sum()) for j in default)
        / max(len(judged), 1),
    }


def subsets_of(images: Sequence[AnnotatedImage], rigid: RigidModel | None) -> dict[str, list[int]]:
    """Group the indices of the photographs by the size and pose of their faces.

    The size is the median reference length. The pose is the yaw and roll of the first face, if a
    rigid model of the landmarks is given. Photographs without faces are excluded.
    """
    positions: dict[str, list[int]] = {}
    for i, image in enumerate(images):
        if not len(image.reference_length):
            continue
        positions.setdefault(
            _band("IED", float(np.median(image.reference_length)), _IED), []
        ).append(i)
        if (
            rigid is not None
            and image.landmarks is not None
            and image.landmarks.shape[1] == len(rigid.points)
        ):
            pose = pose_of(rigid.fit(image.landmarks[0] @ [1, 1j])[0])
            for name, angle, limits in (("yaw", pose.yaw, _YAW), ("roll", pose.roll, _ROLL)):
                positions.setdefault(_band(name, abs(float(np.degrees(angle))), limits), []).append(
                    i
                )
    order = [
        _band(name, low, limits)
        for name, limits in (("IED", _IED), ("yaw", _YAW), ("roll", _ROLL))
        for low in limits[:-1]
    ]
    return {name: positions[name] for name in order if name in positions}


def _band(name: str, value: float, limits: Sequence[float]) -> str:
    i = int(np.searchsorted(limits, value, side="right")) - 1
    high = "" if limits[i + 1] in (np.inf, 180) else f"{limits[i + 1]:g}"
    return f"{name} {limits[i]:g}-{high}"
