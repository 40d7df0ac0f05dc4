"""Compares found objects with annotated ones (``annealed keypoints evaluate``)."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from pathlib import Path

import numpy as np

from ...models.keypoints.detector import KeypointDetector
from ...models.keypoints.schema import BOX_SHARE
from ...vision.images import read_image
from .data import AnnotatedImage

TOLERANCE = 0.1
"""Share of the root of the area of an object's box."""

COLUMNS = {"keypoint": "keypoint", "points": "points", "pck": "PCK", "median_error": "median error"}
Found = Sequence[np.ndarray]


def sizes_of(image: AnnotatedImage) -> np.ndarray:
    """Roots of the areas of the boxes (n_objects,) of a picture, in pixels."""
    return (
        image.reference_length / BOX_SHARE
        if image.boxes is None
        else np.sqrt(np.prod(image.boxes[:, 2:] - image.boxes[:, :2], axis=1))
    )


def errors_of(image: AnnotatedImage, found: Found) -> tuple[np.ndarray, int]:
    """Distances (n_objects, n_keypoints) of points from those of the nearest found object, in units
    of the root of the box's area; infinite where none is near, NaN for points that are hidden or
    unknown. And how many found objects belong to none.

    Objects belong to each other, each to one, where the mean of their errors is least and below
    0.4.
    """
    visible = image.visible & np.isfinite(image.instances).all(axis=2)
    errors = np.where(visible, np.inf, np.nan)
    distance = np.array([[np.hypot(*(points - face).T) for points in found] for face in image.instances])
    distance = distance.reshape(len(image.instances), len(found), visible.shape[1]) / sizes_of(image)[:, None, None]
    mean = np.where(np.isfinite(distance), distance, 0).sum(axis=2) / np.maximum(np.isfinite(distance).sum(axis=2), 1)
    left = set(range(len(found)))
    for i, j in zip(*np.unravel_index(np.argsort(mean, axis=None), mean.shape)):
        if j in left and mean[i, j] < 4 * TOLERANCE and not np.isfinite(errors[i]).any():
            left.discard(j)
            errors[i, visible[i]] = distance[i, j, visible[i]]
    x, y = (np.array([points.mean(axis=0)[k] for points in found]) for k in (0, 1))
    ignored = [any(b[0] <= x[j] <= b[2] and b[1] <= y[j] <= b[3] for b in image.ignore) for j in left]
    return errors, len(left) - sum(ignored)


def score(images: Sequence[AnnotatedImage], found: Sequence[Found], background: Sequence[Found] = ()) -> list[dict]:
    """A row per keypoint and one of all: ``pck``, the share of visible points within `TOLERANCE`,
    and the median error of those of found objects; the last row has the false objects per
    picture."""
    judged = [errors_of(image, of_image) for image, of_image in zip(images, found, strict=True)]
    errors = np.concatenate([errors for errors, _ in judged])
    rows = []
    for name, mine in [*zip(images[0].schema.keypoints, errors.T), ("all", errors.ravel())]:
        known, near = mine[~np.isnan(mine)], mine[np.isfinite(mine)]
        pck = float((known <= TOLERANCE).mean()) if len(known) else None
        median = float(np.median(near)) if len(near) else None
        rows.append({"keypoint": name, "points": len(known), "pck": pck, "median_error": median})
    rows[-1] |= {"false_per_image": sum(n for _, n in judged) / len(images)}
    rows[-1] |= {"false_per_background_image": sum(map(len, background)) / len(background)} if background else {}
    return rows


def evaluate_keypoints(
    detector: KeypointDetector,
    images: Sequence[AnnotatedImage],
    background: Sequence[Path] = (),
    progress: Callable[[Iterable, int], Iterable] = lambda it, n: it,
) -> list[dict]:
    """Rows of `score` for the objects that a detector reports by default."""
    names = images[0].schema.keypoints
    if set(names) != set(detector.keypoints):
        raise ValueError(f"keypoints {', '.join(names)}; the model has {', '.join(detector.keypoints)}")

    def found(path: Path) -> Found:
        return [np.array([face.keypoints[name][:2] for name in names]) for face in detector.find(read_image(path)).instances]

    every = [found(path) for path in progress([*(image.path for image in images), *background], len(images) + len(background))]
    return score(images, every[: len(images)], every[len(images) :])
