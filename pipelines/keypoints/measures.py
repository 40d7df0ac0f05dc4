"""Measures of keypoint detection.

The measures are the precision and recall of a keypoint, and the errors of whole objects relative to
their boxes (PCK, OKS). Precision and recall follow the protocol of Barbu et al. (2017), section
3.3.

A detection hits a visible keypoint if the distance between them is at most ``tolerance`` reference
lengths. A detection is false if its distance from this keypoint of every object, visible or not, is
at least ``max(tolerance, 0.1)`` reference lengths. A detection is neither a hit nor false if its
distance is between these limits, if it is inside an ignore box, if it is within 0.1 reference
lengths of a point annotated as invisible, or if a better detection has already hit the point.
Points inside an ignore box are included in the points to detect.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise

import numpy as np
from numpy.typing import ArrayLike

from ...models.keypoints.instances.instance_finder import probability_of
from ...models.keypoints.schema import BOX_SHARE
from .data import AnnotatedImage, in_boxes

HIT, NEITHER, FALSE = 1, 0, -1
NEAR = 0.1  # reference lengths
MAX_DETECTIONS = 200  # per image and keypoint
_BANDS = (0.0, 0.1, 0.3, 0.5, 0.7, 0.8, 0.9, 0.95, 0.98, 1.0)  # limits of probability bins


@dataclass(frozen=True)
class MatchedDetections:
    """Detections of a keypoint in an image and their outcomes, in order of decreasing score.

    Attributes
    ----------
    xy : ndarray of shape (n, 2)
        Positions in pixels.
    score : ndarray of shape (n,)
        Scores in decreasing order.
    outcome : ndarray of shape (n,), int8
        ``HIT``, ``NEITHER`` or ``FALSE``; see :func:`judge`.
    face : ndarray of shape (n,), int
        Index of the face whose point was hit; -1 for other detections.
    n_points : int
        Number of visible points to detect.
    """

    xy: np.ndarray
    score: np.ndarray
    outcome: np.ndarray
    face: np.ndarray
    n_points: int


def judge(
    xy: ArrayLike,
    score: ArrayLike,
    points: ArrayLike,
    visible: ArrayLike,
    ied: ArrayLike,
    ignore: ArrayLike = (),
    tolerance: float = 0.05,
) -> MatchedDetections:
    """Classify each detection of a keypoint in an image as a hit, as false, or as neither.

    In order of decreasing score, a detection is a hit if it is within the tolerance of a visible
    keypoint that has not been hit. A detection is false if its distance from every keypoint exceeds
    the tolerance and is at least `NEAR`. All other detections, and those in a box to ignore or near
    a hidden keypoint, are neither hits nor false.

    Parameters
    ----------
    xy, score : array-like of shape (n, 2) and (n,)
        Positions of the detections in pixels, and their scores. Only the best `MAX_DETECTIONS` are
        used; ties are in the given order.
    points, visible, ied : array-like of shape (n_faces, 2), (n_faces,) and (n_faces,)
        Position of the keypoint in each face (NaN if unknown), whether the keypoint is visible, and
        the reference length of the face in pixels.
    ignore : array-like of shape (n_boxes, 4)
        Boxes x0, y0, x1, y1 that may contain unannotated faces.
    tolerance : float
        Maximum distance between a hit and the keypoint, in reference lengths.
    """
    scores = np.asarray(score, float)
    order = np.argsort(-scores, kind="stable")[:MAX_DETECTIONS]
    scores, at = scores[order], np.asarray(xy, float).reshape(-1, 2)[order]
    truth = np.asarray(points, float).reshape(-1, 2)
    seen = np.asarray(visible, bool) & np.isfinite(truth).all(axis=1)

    distance = (
        np.hypot(*(at[:, None] - truth[None]).transpose(2, 0, 1)) / np.asarray(ied, float)[None]
    )
    distance[np.isnan(distance)] = np.inf
    # rounding must not decide whether a point lies within the circle
    slack = 1e-9
    ignored = in_boxes(at, np.asarray(ignore, float).reshape(-1, 4))
    ignored |= (distance[:, ~seen] <= NEAR + slack).any(axis=1)
    false = (distance >= NEAR - slack if tolerance < NEAR else distance > tolerance + slack).all(
        axis=1
    )

    outcome = np.where(false & ~ignored, FALSE, NEITHER).astype(np.int8)
    face = np.full(len(at), -1)
    free = seen.copy()
    for i in np.flatnonzero(~ignored):
        reach = np.where(free, distance[i], np.inf)
        if len(reach) and reach.min() <= tolerance + slack:
            face[i] = reach.argmin()
            free[face[i]] = False
            outcome[i] = HIT
    return MatchedDetections(at, scores, outcome, face, int(seen.sum()))


@dataclass(frozen=True)
class Curve:
    """Precision and recall at decreasing thresholds, with one entry for each distinct score.

    Attributes
    ----------
    threshold, precision, recall : ndarray of shape (n,)
        Thresholds, and the precision and recall of the detector at each threshold.
    n_points : int
        Number of points to detect.
    """

    threshold: np.ndarray
    precision: np.ndarray
    recall: np.ndarray
    n_points: int

    @property
    def average_precision(self) -> float:
        """Average precision without interpolation; NaN if there are no points.

        It is the sum of the precision at each threshold times the increase in recall.
        """
        if not self.n_points:
            return float("nan")
        return float(self.precision @ np.diff(self.recall, prepend=0.0))

    def at_precision(self, precision: float = 0.9) -> tuple[float, float]:
        """Return the maximum recall at a precision of at least ``precision``, and its threshold.

        The result is (0, inf) if the precision is never reached.
        """
        good = np.flatnonzero((self.precision >= precision) & (self.recall > 0))
        if not len(good):
            return 0.0, float("inf")
        return float(self.recall[good[-1]]), float(self.threshold[good[-1]])

    def at_balance(self) -> tuple[float, float]:
        """Return the recall and threshold at the maximum F1 score.

        The result is (0, inf) if there are no detections.
        """
        if not len(self.threshold):
            return 0.0, float("inf")
        best = int(
            np.argmax(
                self.precision * self.recall / np.maximum(self.precision + self.recall, 1e-12)
            )
        )
        return float(self.recall[best]), float(self.threshold[best])

    def at_threshold(self, threshold: float) -> tuple[float, float]:
        """Return the precision and recall of the detections with a score of at least ``threshold``.

        The precision is NaN if there are no such detections.
        """
        n = int((self.threshold >= threshold).sum())
        return (
            (float(self.precision[n - 1]), float(self.recall[n - 1])) if n else (float("nan"), 0.0)
        )


def curve(score: ArrayLike, outcome: ArrayLike, n_points: int) -> Curve:
    """Compute the precision-recall curve of matched detections, with an entry per distinct score.

    Examples
    --------
    >>> curve([3.0, 2.0, 1.0], [HIT, FALSE, HIT], 2).average_precision
    0.8333333333333333
    """
    outcomes = np.asarray(outcome)
    counted = outcomes != NEITHER
    scores, hit = np.asarray(score, float)[counted], outcomes[counted] == HIT
    order = np.argsort(-scores, kind="stable")
    scores, hit = scores[order], hit[order]
    last = np.append(np.diff(scores) != 0, True)[: len(scores)]  # end of each group of ties
    hits, seen = np.cumsum(hit)[last], np.arange(1, len(scores) + 1)[last]
    return Curve(scores[last], hits / seen, hits / max(n_points, 1), n_points)


def pooled(judged: list[MatchedDetections]) -> Curve:
    """Compute the precision-recall curve for all images together."""
    score, outcome = (
        np.concatenate([[], *(getattr(j, part) for j in judged)]) for part in ("score", "outcome")
    )
    return curve(score, outcome, sum(j.n_points for j in judged))


def reliability(judged: Sequence[MatchedDetections]) -> list[dict]:
    """Compute the proportion of hits among the detections in each non-empty probability bin.

    The scores must be log-odds. Detections that are neither hits nor false are excluded. In the
    result, ``probability`` is the mean probability in the bin.
    """
    kept = [(j.score[j.outcome != NEITHER], j.outcome[j.outcome != NEITHER] == HIT) for j in judged]
    score, hit = (
        np.concatenate([part[k] for part in kept]) if kept else np.empty(0) for k in (0, 1)
    )
    p = np.asarray(probability_of(score))
    rows = []
    for low, high in pairwise(_BANDS):
        mine = (p >= low) & ((p < high) if high < 1 else (p <= high))
        if mine.any():
            row = {"from": low, "to": high, "detections": int(mine.sum())}
            rows.append(
                row | {"probability": float(p[mine].mean()), "share": float(hit[mine].mean())}
            )
    return rows


#: Distance relative to the square root of the area of an object's box.
TOLERANCE = 0.1
_MAX_OBJECTS = 20  # maximum number of objects per image for their average precision, as in COCO

Objects = Sequence[np.ndarray]


def sizes_of(image: AnnotatedImage) -> np.ndarray:
    """Compute the square roots of the areas of the object boxes in an image, in pixels."""
    return (
        image.reference_length / BOX_SHARE
        if image.boxes is None
        else np.sqrt(np.prod(image.boxes[:, 2:] - image.boxes[:, :2], axis=1))
    )


def distances(image: AnnotatedImage, detected: Objects) -> np.ndarray:
    """Compute the distances between annotated and detected keypoints; NaN for unknown points.

    The result has shape (n_objects, n_detected, n_keypoints). Distances are relative to the square
    root of the area of the annotated object's box.
    """
    shape = len(image.instances), len(detected), image.visible.shape[1]
    apart = np.array(
        [[np.hypot(*(points - truth).T) for points in detected] for truth in image.instances]
    )
    return apart.reshape(shape) / sizes_of(image)[:, None, None]


def errors_of(image: AnnotatedImage, detected: Objects) -> tuple[np.ndarray, int]:
    """Compute the distances between the points of annotated objects and matched detections.

    The result has shape (n_objects, n_keypoints). Distances are relative to the square root of the
    box area. They are infinite for objects without a match and NaN for hidden or unknown points.
    Objects are matched one to one in order of increasing mean error, which must be below four times
    `TOLERANCE`. The function also returns the number of detected objects that have no match and
    whose centres are outside the boxes to ignore.
    """
    visible = image.visible & np.isfinite(image.instances).all(axis=2)
    errors, distance = np.where(visible, np.inf, np.nan), distances(image, detected)
    mean = np.where(np.isfinite(distance), distance, 0).sum(axis=2) / np.maximum(
        np.isfinite(distance).sum(axis=2), 1
    )
    left = set(range(len(detected)))
    for i, j in zip(*np.unravel_index(np.argsort(mean, axis=None), mean.shape)):
        if j in left and mean[i, j] < 4 * TOLERANCE and not np.isfinite(errors[i]).any():
            left.discard(j)
            errors[i, visible[i]] = distance[i, j, visible[i]]
    centres = np.array([detected[j].mean(axis=0) for j in left]).reshape(-1, 2)
    return errors, len(left) - int(in_boxes(centres, image.ignore).sum())


def score(
    images: Sequence[AnnotatedImage],
    detected: Sequence[Objects],
    background: Sequence[Objects] = (),
) -> list[dict]:
    """Compute the PCK of each keypoint, and of all keypoints together.

    In each row of the result, ``pck`` is the proportion of visible points whose error is at most
    `TOLERANCE`. ``pck_detected`` is the same proportion among the points of detected objects, whose
    median error is also given. The last row, for all keypoints, also contains the number of
    objects, the proportion of detected objects, and the number of false objects per image.
    """
    judged = [errors_of(image, of_image) for image, of_image in zip(images, detected, strict=True)]
    errors = np.concatenate([errors for errors, _ in judged])
    rows = []
    for name, mine in [*zip(images[0].schema.keypoints, errors.T), ("all", errors.ravel())]:
        known, near = mine[~np.isnan(mine)], mine[np.isfinite(mine)]
        pck = float((known <= TOLERANCE).mean()) if len(known) else None
        median = float(np.median(near)) if len(near) else None
        of_near = float((near <= TOLERANCE).mean()) if len(near) else None
        row = {"keypoint": name, "points": len(known), "pck": pck, "pck_detected": of_near}
        rows.append(row | {"median_error": median})
    of_object = errors[~np.isnan(errors).all(axis=1)]
    detected_share = np.isfinite(of_object).any(axis=1).mean() if len(of_object) else np.nan
    rows[-1] |= {"objects": len(of_object), "detected": float(detected_share)}
    rows[-1]["false_per_image"] = sum(n for _, n in judged) / len(images)
    if background:
        rows[-1]["false_per_background_image"] = sum(map(len, background)) / len(background)
    return rows


def similarities(image: AnnotatedImage, detected: Objects) -> np.ndarray:
    """Compute the object keypoint similarity of detected objects.

    Each detected object is compared with the annotated objects and the ignore boxes, so the result
    has shape (n_objects + n_boxes, n_detected). An ignore box is enlarged to three times its width
    and height; points inside the enlarged box have a distance of 0.
    """
    known = np.isfinite(image.instances).all(axis=2)
    low, high = image.ignore[:, None, None, :2], image.ignore[:, None, None, 2:]
    sizes = sizes_of(image)
    squares = np.append(sizes**2, np.prod(high - low, axis=3))
    areas = squares if image.areas is None else image.areas
    unit = (sizes / np.sqrt(areas[: len(sizes)]))[:, None, None]
    apart = unit * distances(image, detected) / TOLERANCE
    near = np.where(known[:, None], np.exp(-(apart**2) / 2), 0.0).sum(axis=2)
    points = np.reshape(detected, (-1, known.shape[1], 2))
    outside = np.maximum(2 * low - high - points, 0) + np.maximum(points - 2 * high + low, 0)
    apart = (outside**2).sum(axis=3) / areas[len(sizes) :, None, None] / TOLERANCE**2
    return np.concatenate(
        [near / np.maximum(known.sum(axis=1), 1)[:, None], np.exp(-apart / 2).mean(axis=2)]
    )


def oks_rows(
    images: Sequence[AnnotatedImage],
    detected: Sequence[Objects],
    probability: Sequence[Sequence[float]],
) -> list[dict]:
    """Compute the average precision of objects by object keypoint similarity, as in pycocotools.

    The result has a row for each threshold, and a row for the mean over the thresholds. The
    similarity is the mean over the annotated points, including hidden ones, of exp(-(d / (2 s
    sigma))^2 / 2), where d is the distance, s is the square root of the object's area, and sigma =
    0.05 for all points. As in COCO [1]_, thresholds range from 0.5 to 0.95, at most 20 objects per
    image are considered, and precision is interpolated at 101 values of recall.

    References
    ----------
    .. [1] T.-Y. Lin et al., "Microsoft COCO: Common Objects in Context", ECCV (2014).
    """
    n, rows = sum(len(image.instances) for image in images), []
    best = [np.argsort(-np.asarray(p), kind="stable")[:_MAX_OBJECTS] for p in probability]
    scores = [p[j] for p, order in zip(probability, best) for j in order]
    for threshold in (0.5 + 0.05 * np.arange(10)).round(2).tolist():
        outcomes = []
        for image, objects, order in zip(images, detected, best, strict=True):
            n_objects, similar = len(image.instances), similarities(image, objects)
            many = np.ones(len(image.ignore), bool) if image.crowds is None else image.crowds
            for j in order:
                near = np.where(similar[:, j] >= threshold, similar[:, j], 0.0)
                hit = near[:n_objects].any()
                outcomes.append(HIT if hit else NEITHER if near.any() else FALSE)
                if near.any():
                    match = near[: n_objects if hit else None].argmax()
                    if hit or not many[match - n_objects]:  # each object is detected once
                        similar[match] = -1.0
        made = curve(scores, outcomes, n)
        precision = np.append(np.maximum.accumulate(made.precision[::-1])[::-1], 0.0)
        at_recall = precision[np.searchsorted(made.recall, np.linspace(0, 1, 101))]
        rows.append({"oks": threshold, "objects": n, "ap": float(at_recall.mean()) if n else None})
    mean = float(np.mean([row["ap"] for row in rows])) if n else None
    return [*rows, {"oks": "mean", "objects": n, "ap": mean}]
