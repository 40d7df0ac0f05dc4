"""Errors of found objects in units of their boxes: the percentage of correct keypoints (PCK), and
average precision by object keypoint similarity (OKS)."""

from collections.abc import Sequence

import numpy as np

from ...models.keypoints.schema import BOX_SHARE
from .average_precision import FALSE, HIT, NEITHER, curve
from .data import AnnotatedImage, in_boxes

TOLERANCE = 0.1
"""Share of the root of the area of an object's box."""

Found = Sequence[np.ndarray]


def sizes_of(image: AnnotatedImage) -> np.ndarray:
    """Roots of the areas of the boxes (n_objects,) of a picture, in pixels."""
    return (
        image.reference_length / BOX_SHARE
        if image.boxes is None
        else np.sqrt(np.prod(image.boxes[:, 2:] - image.boxes[:, :2], axis=1))
    )


def distances(image: AnnotatedImage, found: Found) -> np.ndarray:
    """Distances (n_objects, n_found, n_keypoints) in units of the root of the object's box's area;
    NaN for points that are unknown."""
    shape = len(image.instances), len(found), image.visible.shape[1]
    apart = np.array([[np.hypot(*(points - truth).T) for points in found] for truth in image.instances])
    return apart.reshape(shape) / sizes_of(image)[:, None, None]


def in_ignored(image: AnnotatedImage, found: Found) -> np.ndarray:
    """Whether the middle of each found object (n_found,) lies in a box to ignore."""
    return in_boxes(np.array([points.mean(axis=0) for points in found]).reshape(-1, 2), image.ignore)


def errors_of(image: AnnotatedImage, found: Found) -> tuple[np.ndarray, int]:
    """Distances (n_objects, n_keypoints) of points from those of the nearest found object, in units
    of the root of the box's area; infinite where none is near, NaN for points that are hidden or
    unknown. And how many found objects belong to none.

    Objects belong to each other, each to one, where the mean of their errors is least and below
    0.4.
    """
    visible = image.visible & np.isfinite(image.instances).all(axis=2)
    errors, distance = np.where(visible, np.inf, np.nan), distances(image, found)
    mean = np.where(np.isfinite(distance), distance, 0).sum(axis=2) / np.maximum(np.isfinite(distance).sum(axis=2), 1)
    left = set(range(len(found)))
    for i, j in zip(*np.unravel_index(np.argsort(mean, axis=None), mean.shape)):
        if j in left and mean[i, j] < 4 * TOLERANCE and not np.isfinite(errors[i]).any():
            left.discard(j)
            errors[i, visible[i]] = distance[i, j, visible[i]]
    return errors, len(left) - int(in_ignored(image, found)[list(left)].sum())


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


def oks_rows(images: Sequence[AnnotatedImage], found: Sequence[Found], probability: Sequence[Sequence[float]]) -> list[dict]:
    """Average precision of objects by object keypoint similarity, a row per threshold and their
    mean.

    The similarity is the mean over the visible points of exp(-(d / (2 s sigma))^2 / 2), with the
    distance d, the root s of the box's area, and sigma = 0.05 for all points; thresholds 0.5 to
    0.95 as in COCO [1]_.

    References
    ----------
    .. [1] T.-Y. Lin et al., "Microsoft COCO: Common Objects in Context", ECCV (2014).
    """
    seen = [image.visible & np.isfinite(image.instances).all(axis=2) for image in images]
    similar, rows = [], []
    for image, objects, visible in zip(images, found, seen, strict=True):
        near = np.where(visible[:, None], np.exp(-((distances(image, objects) / TOLERANCE) ** 2) / 2), 0.0)
        similar.append(near.sum(axis=2) / np.maximum(visible.sum(axis=1), 1)[:, None])
    n = sum(int(visible.any(axis=1).sum()) for visible in seen)
    for threshold in (0.5 + 0.05 * np.arange(10)).round(2).tolist():
        scores, outcomes = [], []
        for image, objects, p, similarity in zip(images, found, probability, similar):
            free, ignored = np.ones(len(similarity), bool), in_ignored(image, objects)
            for j in np.argsort(-np.asarray(p), kind="stable"):
                of_free = np.where(free, similarity[:, j], -1.0)
                hit = len(of_free) > 0 and float(of_free.max()) >= threshold
                if hit:
                    free[int(of_free.argmax())] = False
                scores.append(p[j])
                outcomes.append(HIT if hit else NEITHER if ignored[j] else FALSE)
        rows.append({"oks": threshold, "objects": n, "ap": curve(scores, outcomes, n).average_precision})
    return [*rows, {"oks": "mean", "objects": n, "ap": float(np.mean([row["ap"] for row in rows]))}]
