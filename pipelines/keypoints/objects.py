"""Reads annotated objects with the schema of their points: ``keypoints.csv`` or a COCO keypoint
file.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np

from ....models.keypoints.instances.shape_models import ShapeModel, learn_shape
from ....models.keypoints.schema import BOX_SHARE, Schema, read_schema
from ....models.keypoints.windows.turned_photographs import ALL_ROUND, turned_pixels, turning
from ....vision.images import image_size
from ...common.image_folders import read_rows
from ..data import AnnotatedImage, read_coco, read_faces

MIN_PICTURES = 20
MIN_COMPLETE = 10  # objects with all points: their shape is learnt from these. A choice
_MANY_OBJECTS = 200  # of fewer, each picture is turned twice. A choice


def schema_of(folder: Path, file: Path | None = None, category: str | None = None) -> Schema:
    """The schema of annotations: of a file, else ``schema.toml`` among them, else what they tell.

    Mirror pairs are then the names that differ in ``left`` and ``right``; the reference length is
    that of the boxes. A ValueError says in one line what is wrong, or that a file has several
    categories.
    """
    if file is not None or (folder / "schema.toml").is_file():
        return read_schema(file or folder / "schema.toml")
    if (folder / "keypoints.csv").is_file():
        rows = read_rows(folder / "keypoints.csv", ("image", "object", "keypoint", "x", "y"))
        described: dict[str, Any] = {"keypoints": list(dict.fromkeys(row["keypoint"] for _, row in rows))}
        path, name = folder / "keypoints.csv", category or "object"
    elif any(folder.glob("*.json")):
        path, _, categories = read_coco(folder)
        named = {str(c.get("name", key)): c for key, c in categories.items()}
        if not named:
            raise ValueError(f"{path}: no category with keypoints")
        if category not in named and (category is not None or len(named) > 1):
            raise ValueError(f"{path}: categories {', '.join(named)}; expected one of them, not {category!r}")
        name = category or next(iter(named))
        described = {"keypoints": named[name]["keypoints"], "skeleton": named[name].get("skeleton") or []}
    else:
        raise ValueError(f"{folder}: expected keypoints.csv or a COCO keypoint .json in it")
    try:
        names = described["keypoints"]
        if any(not 1 <= i <= len(names) for bone in described.get("skeleton", ()) for i in bone):
            raise ValueError(f"skeleton={described['skeleton']}: expected numbers from 1 to {len(names)}")
        bones = [[names[i - 1] for i in bone] for bone in described.pop("skeleton", ())]
        other = {n: re.sub("left|right", lambda found: "right" if found[0] == "left" else "left", n) for n in names}
        pairs = [[n, other[n]] for n in names if "left" in n and other[n] in names]
        return Schema.from_dict({"category": name, **described, "skeleton": bones, "mirror": pairs})
    except (ValueError, TypeError) as error:
        raise ValueError(f"{path}: {error}") from None


def read_objects(folder: Path, schema: Schema) -> list[AnnotatedImage]:
    """Annotated pictures whose objects have all points: missing ones are predicted from the others,
    and stay hidden. A ValueError says in one line what is wrong.
    """
    images = read_faces(folder, schema)
    for image in images:
        image_size(image.path)
    n_seen = np.concatenate([image.visible for image in images]).sum(axis=0)
    for name, n in zip(schema.keypoints, n_seen):
        if n < MIN_COMPLETE:
            raise ValueError(f"{folder}: keypoint {name!r} is visible in {n} objects; expected {MIN_COMPLETE} or more")
    shape = _shape_of(images, folder)
    return [_completed(image, shape) for image in images]


def check_number(images: Sequence[AnnotatedImage]) -> str | None:
    """What to expect of so few pictures, in one line; None from 100 on. Fewer than 20 are a
    ValueError."""
    n = sum(len(image.instances) > 0 for image in images)
    if n < MIN_PICTURES:
        raise ValueError(f"{n} annotated pictures; expected {MIN_PICTURES} or more, better 100")
    few = f"{n} annotated pictures: expect a detector for pictures much like these; 100 or more are better"
    return few if n < 100 else None


def _shape_of(images: Sequence[AnnotatedImage], folder: Path) -> ShapeModel:
    faces, lengths = (
        np.concatenate([image.instances for image in images]),
        np.concatenate([image.reference_length for image in images]),
    )
    complete = np.isfinite(faces).all(axis=(1, 2))
    if complete.sum() < MIN_COMPLETE:
        raise ValueError(
            f"{folder}: {complete.sum()} objects with all points; expected {MIN_COMPLETE} or more to learn their shape"
        )
    schema, known = images[0].schema, np.ones((int(complete.sum()), faces.shape[1]), bool)
    return learn_shape(faces[complete], known, schema.keypoints, np.arange(faces.shape[1]), 0.02, lengths[complete])


def _completed(image: AnnotatedImage, shape: ShapeModel) -> AnnotatedImage:
    """The picture with predicted points; objects with one point only are ignored."""
    faces, known = image.instances.copy(), np.isfinite(image.instances).all(axis=2)
    kept = known.sum(axis=1) > 1
    for i in np.flatnonzero(kept):
        which = np.flatnonzero(known[i])
        points = shape.predict(faces[i, which] @ [1, 1j], which)[0]
        faces[i, ~known[i]] = np.stack([points.real, points.imag], axis=1)[~known[i]]
    ignore = image.ignore if image.boxes is None else np.concatenate([image.ignore, image.boxes[~kept]])
    boxes = None if image.boxes is None else image.boxes[kept]
    return replace(image, instances=faces[kept], visible=image.visible[kept], ignore=ignore, boxes=boxes)


def turned_upright(images: Sequence[AnnotatedImage]) -> list[AnnotatedImage]:
    """A picture for each object, turned so that this one stands as the mean shape does, up to half
    the step between the rotations that are searched; the others in it are ignored.

    The reference length of objects without two named points becomes that of their mean shape.
    """
    shape, made = _shape_of(images, Path("annotations")), []
    copies = 1 if sum(len(image.instances) for image in images) >= _MANY_OBJECTS else 2
    for number, image in enumerate(images):
        width, height = image_size(image.path)
        rng = np.random.default_rng([0, number])
        for i, face in enumerate(image.instances):
            transform = shape.align(face @ [1, 1j], np.arange(len(face)))
            for _ in range(copies):
                turn = float(np.degrees(np.angle(transform.scale_rotation)) + rng.uniform(-0.5, 0.5) * ALL_ROUND[1])
                matrix, _ = turning(height, width, turn)
                points, others = face @ matrix[:, :2].T + matrix[:, 2], np.delete(image.instances, i, axis=0)
                around = np.concatenate([others.min(axis=1), others.max(axis=1)], axis=1)
                corners = np.concatenate([around, image.ignore])[:, [0, 1, 2, 1, 2, 3, 0, 3]].reshape(-1, 4, 2)
                corners = corners @ matrix[:, :2].T + matrix[:, 2]
                ignore = np.concatenate([corners.min(axis=1), corners.max(axis=1)], axis=1)
                half = transform.reference_length / BOX_SHARE / 2
                box = np.concatenate([points.mean(axis=0) - half, points.mean(axis=0) + half])[None]
                visible, view = image.visible[i : i + 1], partial(turned_pixels, turn)
                made.append(replace(image, instances=points[None], visible=visible, ignore=ignore, boxes=box, view=view))
    return made
