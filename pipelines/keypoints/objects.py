"""Annotated objects, and checks of their number and rotation."""

from collections.abc import Sequence
from dataclasses import replace
from functools import partial
from pathlib import Path

import numpy as np

from ...models.keypoints.instances.shape_models import ShapeModel, learn_shape
from ...models.keypoints.schema import BOX_SHARE, Schema
from ...models.keypoints.windows.turned_photographs import ALL_ROUND, turned, turning
from ...vision.images import image_size
from .data import AnnotatedImage, read_annotations

MIN_PICTURES = 20
MIN_COMPLETE = 10  # minimum number of complete objects, from which the shape is learnt (heuristic)
_MAX_SPREAD = 35.0  # maximum spread of the rotation of upright objects, in degrees (heuristic)
_MANY_OBJECTS = 200  # with fewer objects, each image is rotated twice (heuristic)


def read_objects(folder: Path, schema: Schema) -> list[AnnotatedImage]:
    """Read annotated images, and complete their objects.

    Missing points are predicted from the other points and treated as hidden. A one-line ValueError
    is raised if the annotations are invalid.
    """
    images = read_annotations(folder, schema)
    for image in images:
        image_size(image.path)
    n_seen = np.concatenate([image.visible for image in images]).sum(axis=0)
    for i, n in enumerate(n_seen):
        if n < MIN_COMPLETE:
            first = next((image.name for image in images if image.visible[:, i].any()), "no image")
            raise ValueError(
                f"{folder}: keypoint {schema.keypoints[i]!r} is visible in {n} objects (first: "
                f"{first}); expected at least {MIN_COMPLETE}"
            )
    shape = _shape_of(images, folder)
    return [_completed(image, shape) for image in images]


def check_number(images: Sequence[AnnotatedImage]) -> str | None:
    """Return a one-line warning if there are fewer than 100 images, and None otherwise.

    A ValueError is raised if there are fewer than 20 images.
    """
    n = sum(len(image.instances) > 0 for image in images)
    if n < MIN_PICTURES:
        raise ValueError(
            f"there are {n} annotated images; expected at least {MIN_PICTURES}, preferably 100"
        )
    few = (
        f"with only {n} annotated images, the detector will work only on very similar images; "
        "at least 100 are recommended"
    )
    return few if n < 100 else None


def check_rotation(images: Sequence[AnnotatedImage]) -> str | None:
    """Return a one-line warning if many objects are rotated, and None otherwise.

    Rotations are relative to the mean shape. There is no warning if the schema does not expect
    upright objects.
    """
    points = np.concatenate([image.instances for image in images]) @ [1, 1j]
    points = points[np.isfinite(points).all(axis=1)]
    if not images[0].schema.upright or len(points) < MIN_COMPLETE:
        return None
    shape = _shape_of(images, Path("annotations")).mean_points
    # products with the mean shape; mirror images and other views have small products, without a
    # rotation
    turns = (points - points.mean(axis=1, keepdims=True)) @ shape.conj()
    concentration = abs(turns.sum()) / abs(turns).sum()
    spread = np.degrees(np.sqrt(-2 * np.log(max(concentration, 1e-9))))
    message = f"the rotation of objects has a standard deviation of {spread:.0f} degrees"
    return f"{message}; use --rotation free" if spread > _MAX_SPREAD else None


def _shape_of(images: Sequence[AnnotatedImage], folder: Path) -> ShapeModel:
    instances, lengths = (
        np.concatenate([image.instances for image in images]),
        np.concatenate([image.reference_length for image in images]),
    )
    complete = np.isfinite(instances).all(axis=(1, 2))
    if complete.sum() < MIN_COMPLETE:
        raise ValueError(
            f"{folder}: only {complete.sum()} objects have all points; "
            f"expected at least {MIN_COMPLETE} to learn their shape"
        )
    schema, known = images[0].schema, np.ones((int(complete.sum()), instances.shape[1]), bool)
    return learn_shape(
        instances[complete],
        known,
        schema.keypoints,
        np.arange(instances.shape[1]),
        0.02,
        lengths[complete],
    )


def _completed(image: AnnotatedImage, shape: ShapeModel) -> AnnotatedImage:
    """Return the image with predictions for missing points; objects with a single point are
    ignored."""
    instances, known = image.instances.copy(), np.isfinite(image.instances).all(axis=2)
    kept = known.sum(axis=1) > 1
    for i in np.flatnonzero(kept):
        which = np.flatnonzero(known[i])
        points = shape.predict(instances[i, which] @ [1, 1j], which)[0]
        instances[i, ~known[i]] = np.stack([points.real, points.imag], axis=1)[~known[i]]
    ignore = (
        image.ignore if image.boxes is None else np.concatenate([image.ignore, image.boxes[~kept]])
    )
    boxes = None if image.boxes is None else image.boxes[kept]
    return replace(
        image, instances=instances[kept], visible=image.visible[kept], ignore=ignore, boxes=boxes
    )


def rotate_upright(images: Sequence[AnnotatedImage]) -> list[AnnotatedImage]:
    """Return images for each object, rotated so that the object is aligned with the mean shape.

    A random rotation of at most 15 degrees is added, since the detector searches images at
    intervals of 30 degrees. There are one or two images per object, depending on the number of
    objects. Other objects in the image are ignored. If the reference length is not defined as the
    distance between two points, the reference length of the mean shape is used.
    """
    shape, made = _shape_of(images, Path("annotations")), []
    copies = 1 if sum(len(image.instances) for image in images) >= _MANY_OBJECTS else 2
    for number, image in enumerate(images):
        width, height = image_size(image.path)
        rng = np.random.default_rng([0, number])
        for i, instance in enumerate(image.instances):
            transform = shape.align(instance @ [1, 1j], np.arange(len(instance)))
            others = np.delete(image.instances, i, axis=0)
            ignore = np.concatenate(
                [np.concatenate([others.min(axis=1), others.max(axis=1)], axis=1), image.ignore]
            )
            alone = replace(
                image,
                instances=instance[None],
                visible=image.visible[i : i + 1],
                ignore=ignore,
                boxes=None,
            )
            for _ in range(copies):
                turn = float(
                    np.degrees(np.angle(transform.scale_rotation))
                    + rng.uniform(-0.5, 0.5) * ALL_ROUND[1]
                )
                upright = alone.moved(
                    turning(height, width, turn)[0], partial(turned, degrees=turn)
                )
                middle, half = (
                    upright.instances[0].mean(axis=0),
                    transform.reference_length / BOX_SHARE / 2,
                )
                made.append(
                    replace(upright, boxes=np.concatenate([middle - half, middle + half])[None])
                )
    return made
