"""Views to learn from: photographs and their mirror images.

A *view* is a photograph or its mirror image: the model of the left eye also learns from right eyes
in mirrored photographs.
"""

import hashlib
import time
from collections import deque
from collections.abc import Callable, Iterable, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path
from typing import TypeVar

import numpy as np

from .....models.keypoints.schema import Schema
from ....common.file_map import Jobs, map_on
from ...data import AnnotatedImage, in_boxes

#: Levels of the pyramid per halving of the size, in training and in the trained detectors. A
#: choice.
SCALES_PER_OCTAVE = 4
#: Stands for the middle of a face where a keypoint is expected: the mean of its annotated anchors.
FACE = "face"
# reference lengths around the middle without negatives where a keypoint is not annotated. A choice
_UNKNOWN_DISTANCE = 2.0

Item = TypeVar("Item")
Result = TypeVar("Result")
NamedView = tuple[AnnotatedImage, bool]  # a photograph, and whether to mirror it


@dataclass(frozen=True)
class View:
    """A photograph, perhaps mirrored, opened: RGB pixels (H, W, 3), and what is known in the view's
    coordinates.

    The keypoint of each face, ``points`` (n_faces, 2), NaN where not annotated, and whether it is
    visible; reference lengths; ``middle`` (n_faces, 2), that of its anchors; ``ignore`` (n_boxes,
    4), boxes that may hold a face without annotation.
    """

    pixels: np.ndarray
    points: np.ndarray
    visible: np.ndarray
    reference_length: np.ndarray
    middle: np.ndarray
    ignore: np.ndarray

    def is_background(self, xy: np.ndarray, distance: float, pixels: float = 0.0) -> np.ndarray:
        """Which points (n, 2) lie outside all boxes and far enough from the keypoint of every face:
        in reference lengths and in image pixels.
        """
        known = np.isfinite(self.points).all(axis=1)
        centre = np.where(known[:, None], self.points, self.middle)
        reach = np.where(known, distance, np.maximum(distance, _UNKNOWN_DISTANCE)) * self.reference_length
        reach = np.maximum(reach, pixels)
        distances = np.hypot(xy[:, None, 0] - centre[None, :, 0], xy[:, None, 1] - centre[None, :, 1])
        return ~(np.logical_or.reduce(distances < reach, axis=1) | in_boxes(xy, self.ignore))


def open_view(image: AnnotatedImage, keypoint: str, mirrored: bool) -> View:
    """Read a photograph, or its mirror image, with the annotations of one keypoint, or of the
    middle of the face (``FACE``).
    """
    pixels = image.pixels()
    shown = image.mirrored(pixels.shape[1]) if mirrored else image
    if mirrored:
        pixels = np.ascontiguousarray(pixels[:, ::-1])
    middle, k = instance_centres(shown), None if keypoint == FACE else image.schema.keypoints.index(keypoint)
    points = middle if k is None else shown.instances[:, k]
    visible = np.asarray(shown.visible[:, inner(image.schema)].any(axis=1)) if k is None else shown.visible[:, k]
    return View(pixels, points, visible, image.reference_length, middle, shown.ignore)


def inner(schema: Schema) -> slice:
    """Positions of the anchors among the keypoints, of all where none are chosen."""
    return slice(len(schema.anchors) or None)


def instance_centres(image: AnnotatedImage) -> np.ndarray:
    """Middle of each face (n_faces, 2): the mean of its annotated anchors, or of all points where
    none is.
    """
    anchors, every = image.instances[:, inner(image.schema)], image.instances
    none = np.isnan(anchors).all(axis=(1, 2))
    return np.array([np.nanmean(every[i] if none[i] else anchors[i], axis=0) for i in range(len(every))]).reshape(-1, 2)


def expected_positions(images: Sequence[AnnotatedImage]) -> dict[str, tuple[float, float]]:
    """Mean vector from the middle of a face to each keypoint, in reference lengths, over faces and
    their mirror images.
    """
    schema = images[0].schema
    shown = [image.mirrored(0) if flip else image for image in images for flip in schema.flips]
    every = np.concatenate(
        [(image.instances - instance_centres(image)[:, None]) / image.reference_length[:, None, None] for image in shown]
    )
    known = np.isfinite(every).all(axis=2).any(axis=0)
    return {name: tuple(np.nanmean(every[:, k], axis=0).tolist()) for k, name in enumerate(schema.keypoints) if known[k]}


def without_objects(paths: Sequence[Path], schema: Schema) -> list[AnnotatedImage]:
    """Annotations of photographs without faces."""
    n = len(schema.keypoints)
    return [AnnotatedImage(Path(p), np.zeros((0, n, 2)), np.zeros((0, n), bool), np.zeros((0, 4)), schema=schema) for p in paths]


def held_out(image: AnnotatedImage, share: float) -> bool:
    """Whether a photograph is kept for calibration: a fixed choice by the file's name."""
    number = int.from_bytes(hashlib.sha256(image.name.encode()).digest()[:4], "big")
    return number < share * 2**32


def each(items: Iterable[Item], work: Callable[[Item], Result], n_jobs: Jobs) -> Iterable[Result]:
    """Yield ``work(item)`` in the order of the items; threads, or the workers of a cluster, work
    ahead, but never by more than a few items.
    """
    if not isinstance(n_jobs, int):
        yield from map_on(n_jobs, work, list(items))
        return
    if n_jobs <= 1:
        yield from map(work, items)
        return
    with ThreadPoolExecutor(n_jobs) as threads:
        pending: deque = deque()
        try:
            for item in items:
                pending.append(threads.submit(work, item))
                if len(pending) > 2 * n_jobs:
                    yield pending.popleft().result()
            while pending:
                yield pending.popleft().result()
        finally:
            for future in pending:
                future.cancel()


@dataclass(frozen=True)
class Split:
    """Photographs and views to fit and to calibrate with; views of photographs without faces are
    among the fitted ones.
    """

    fitted: list[AnnotatedImage]
    calibration: list[AnnotatedImage]
    views: list[NamedView]
    held_out_views: list[NamedView]


def split_views(
    images: Sequence[AnnotatedImage],
    background: Sequence[Path],
    share: float,
    further: Callable[[list[AnnotatedImage]], list[AnnotatedImage]] = lambda images: [],
) -> Split:
    """Split photographs into those that are fitted and a share that is held out; those without
    faces are fitted.

    ``further`` makes more pictures of the photographs of either part, which join it.
    """
    calibration = [image for image in images if held_out(image, share)]
    fitted = [image for image in images if not held_out(image, share)]
    if not fitted or not calibration:
        raise ValueError(f"{len(images)} photographs: too few, {len(fitted)} to fit and {len(calibration)} held out")
    schema = images[0].schema
    # thresholds are set on photographs: those that the hardest made pictures need would let through
    # ten times as many windows
    held_out_views = [(image, flip) for image in calibration for flip in schema.flips]
    fitted, calibration = [*fitted, *further(fitted)], [*calibration, *further(calibration)]
    # Numbers of views are part of the keys of windows: their order is that of the names.
    views = [(image, flip) for image in [*fitted, *without_objects(background, schema)] for flip in schema.flips]
    return Split(fitted, calibration, views, held_out_views)


def since(start: float) -> str:
    """Time since ``start`` (of `time.monotonic`) in words."""
    return f"{time.monotonic() - start:.1f} s"
