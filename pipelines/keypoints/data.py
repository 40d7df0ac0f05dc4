"""Annotated images from ``keypoints.csv``, annotation files of other tools, or iBUG ``.pts`` files.

Left and right are those of the subject, so ``left_eye`` is usually on the right-hand side of the
image. The x-axis points right, and the y-axis points down. The centre of the top-left pixel is (0,
0).
"""

import re
from collections import defaultdict
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from functools import cache
from itertools import chain
from pathlib import Path
from typing import Any

import numpy as np

from ...models.keypoints.schema import Schema, read_schema
from ...vision.images import image_size, read_image
from ..common.image_folders import IMAGE_SUFFIXES, read_rows
from .faces import FACES, N_LANDMARKS, read_pts
from .label_files import UNNAMED, as_coco, read_file

Point = tuple[float, float, bool]  # x, y, and whether it is visible
# Annotation files in the order in which they are searched for: COCO, labelme and Label Studio,
# CVAT, DeepLabCut, YOLO-pose
_FILES = (
    *("annotations.json", "*.json", "annotations/person_keypoints*.json", "*.xml"),
    *("**/CollectedData*.csv", "data.yaml", "../data.yaml", "../../data.yaml"),
)
View = Callable[[np.ndarray], np.ndarray]


@dataclass(frozen=True)
class AnnotatedImage:
    """Image with its annotated instances.

    Attributes
    ----------
    path : Path
        Image file.
    instances : ndarray of shape (n_objects, n_keypoints, 2)
        Coordinates x, y of the schema's keypoints for each object; NaN if a point is not annotated.
    visible : ndarray of shape (n_objects, n_keypoints), bool
        Whether each point is visible; False for hidden points and points that are not annotated.
    ignore : ndarray of shape (n_boxes, 4)
        Boxes x0, y0, x1, y1 that may contain unannotated objects.
    landmarks : ndarray of shape (n_objects, n_landmarks, 2) or None
        Coordinates x, y of the schema's landmarks, if they are annotated.
    origin : str, default ""
        Collection to which the photograph belongs. If it is empty, the collection is derived from
        the file name.
    schema : Schema
        Schema of the points; by default, the schema of faces.
    boxes : ndarray of shape (n_objects, 4) or None
        Boxes x0, y0, x1, y1 of the objects, if they are annotated.
    areas : ndarray of shape (n_objects + n_boxes,) or None
        Areas of the objects and of the boxes to ignore, in square pixels, if they are annotated.
    crowds : ndarray of shape (n_boxes,) or None
        Whether each box to ignore may contain several objects; by default, true for all boxes.
    view : function, optional
        Function that transforms the pixels of the photograph into those of the annotated image.
    """

    path: Path
    instances: np.ndarray
    visible: np.ndarray
    ignore: np.ndarray
    landmarks: np.ndarray | None = None
    origin: str = ""
    schema: Schema = FACES
    boxes: np.ndarray | None = None
    areas: np.ndarray | None = None
    crowds: np.ndarray | None = None
    view: View | None = None

    @property
    def name(self) -> str:
        """Name of the image file."""
        return self.path.name

    @property
    def source(self) -> str:
        """Collection to which the photograph belongs.

        It is ``origin`` or, if that is empty, the part of the file name before the first
        underscore, if any.
        """
        return self.origin or self.path.name.split("_", 1)[0] if "_" in self.path.name else ""

    @property
    def reference_length(self) -> np.ndarray:
        """Reference length of each object in pixels (for faces, the distance between the eyes)."""
        return self.schema.lengths(self.instances, self.boxes)

    @property
    def points(self) -> np.ndarray:
        """Points of each object to be refined, as a complex array of shape (n_objects, n).

        They are the landmarks or, if there are no landmarks, the keypoints. Points that are not
        annotated are NaN.
        """
        points = self.instances if self.landmarks is None else self.landmarks
        return points[..., 0] + 1j * points[..., 1]

    def pixels(self) -> np.ndarray:
        """Read the image as a uint8 RGB array of shape (H, W, 3)."""
        pixels = read_image(self.path)
        return pixels if self.view is None else self.view(pixels)

    def mirrored(self, width: int) -> "AnnotatedImage":
        """Return the annotations of the mirror image.

        ``width`` is the width of the photograph in pixels.
        """
        order = self.schema.mirror_order
        landmarks = (
            None if self.landmarks is None else self.landmarks[:, list(self.schema.landmark_mirror)]
        )
        renamed = replace(
            self,
            instances=self.instances[:, order],
            visible=self.visible[:, order],
            landmarks=landmarks,
        )
        return renamed.moved(np.array([[-1.0, 0.0, width - 1], [0.0, 1.0, 0.0]]), self.view)

    def moved(self, matrix: np.ndarray, view: View | None) -> "AnnotatedImage":
        """Return the annotations of the image after transformation by a 2 x 3 affine matrix.

        Boxes become the bounding boxes of their transformed corners.
        """

        def points(xy: np.ndarray) -> np.ndarray:
            return xy @ matrix[:, :2].T + matrix[:, 2]

        def around(boxes: np.ndarray) -> np.ndarray:
            corners = points(boxes[:, [0, 1, 2, 1, 2, 3, 0, 3]].reshape(-1, 4, 2))
            return np.concatenate([corners.min(axis=1), corners.max(axis=1)], axis=1)

        landmarks = None if self.landmarks is None else points(self.landmarks)
        boxes = None if self.boxes is None else around(self.boxes)
        instances, ignore = points(self.instances), around(self.ignore)
        return replace(
            self, instances=instances, landmarks=landmarks, ignore=ignore, boxes=boxes, view=view
        )


def annotated(images: Sequence[AnnotatedImage]) -> list[AnnotatedImage]:
    """Return the photographs on which the refinement is trained.

    These are the photographs with landmarks or, if there are none, all photographs.
    """
    return [image for image in images if image.landmarks is not None] or list(images)


def in_boxes(xy: np.ndarray, boxes: np.ndarray) -> np.ndarray:
    """Return, for each of n points, whether it lies in any of the boxes (x0, y0, x1, y1)."""
    inside = np.logical_and(xy[:, None] >= boxes[:, :2], xy[:, None] <= boxes[:, 2:])
    return np.logical_or.reduce(np.logical_and.reduce(inside, axis=2), axis=1)


def schema_of(folder: Path, file: Path | None = None, category: str | None = None) -> Schema:
    """Return the schema of annotations.

    The schema is read from a given file or from the file ``schema.toml`` in the folder of the
    annotations. If neither exists, it is derived from the annotations: names that differ only in
    ``left`` and ``right`` are mirror pairs, and the reference length is computed from the boxes. A
    one-line ValueError is raised if the schema is invalid, or if ``category`` is None and the
    annotations contain several categories.
    """
    if file is not None or (folder / "schema.toml").is_file():
        return read_schema(file or folder / "schema.toml")
    if (folder / "keypoints.csv").is_file():
        rows = read_rows(folder / "keypoints.csv", ("image", "object", "keypoint", "x", "y"))
        described: dict[str, Any] = {
            "keypoints": list(dict.fromkeys(row["keypoint"] for _, row in rows))
        }
        path, name = folder / "keypoints.csv", category or "object"
    else:
        path, _, categories = read_coco(folder)
        named = {str(c.get("name", key)): c for key, c in categories.items()}
        if not named:
            raise ValueError(f"{path}: none of the categories has keypoints")
        if category not in named and (category is not None or len(named) > 1):
            problem = (
                "the file has several categories; expected --category with"
                if category is None
                else f"category {category!r} is not in the file; expected"
            )
            raise ValueError(f"{path}: {problem} one of {', '.join(named)}")
        name = category or next(iter(named))
        described = {
            "keypoints": named[name]["keypoints"],
            "skeleton": named[name].get("skeleton") or [],
        }
    try:
        names = described["keypoints"]
        if any(not 1 <= i <= len(names) for bone in described.get("skeleton", ()) for i in bone):
            raise ValueError(
                f"skeleton={described['skeleton']} is not valid; "
                f"expected numbers from 1 to {len(names)}"
            )
        bones = [[names[i - 1] for i in bone] for bone in described.pop("skeleton", ())]
        other = {
            n: re.sub("left|right", lambda match: "right" if match[0] == "left" else "left", n)
            for n in names
        }
        pairs = [[n, other[n]] for n in names if "left" in n and other[n] in names]
        return Schema.from_dict({"category": name, **described, "skeleton": bones, "mirror": pairs})
    except (ValueError, TypeError) as error:
        raise ValueError(f"{path}: {error}") from None


def read_annotations(folder: str | Path, schema: Schema = FACES) -> list[AnnotatedImage]:
    """Read a folder of annotated photographs, sorted by file name.

    The folder contains the images and one of the following:

    * ``keypoints.csv`` (image, face, keypoint, x, y and optionally visible), with an optional
      ``landmarks68.csv`` (image, face, x0, y0, ..., x67, y67)
    * 68-point iBUG files ``NAME.pts`` next to the images, which may be in nested folders
    * one COCO keypoint JSON file, or the files of another tool (see `label_files`)

    In the first two formats, a file ``ignore.csv`` (image, x0, y0, x1, y1) can list boxes that may
    contain unannotated faces.

    The ``.pts`` format supports only faces. In nested folders, the collection to which a photograph
    belongs is the name of its top-level subfolder. If the photograph ``NAME.jpg`` shows several
    faces, the ``.pts`` files are named ``NAME_1.pts``, ``NAME_2.pts`` and so on. The photograph may
    also be copied to ``NAME_1.jpg``, ``NAME_2.jpg`` and so on, as in AFW; identical copies are
    merged. A ValueError that names the file is raised if a file is invalid.
    """
    folder = Path(folder)
    if not folder.is_dir():
        raise ValueError(f"{folder}: no such folder")
    if (folder / "keypoints.csv").is_file():
        images = _read_csv(folder, schema)
    elif schema == FACES and (
        paths := sorted(path for path in folder.rglob("*.pts") if not path.name.startswith("."))
    ):
        images = _read_tree(folder, paths)
    else:
        images = _read_coco(folder, schema)
    for image in images:
        if not image.path.is_file():
            raise ValueError(f"{image.path}: the annotated image does not exist")
        for i in np.flatnonzero(~(image.reference_length > 0)):
            unit = (
                " and ".join(schema.length) + " at different positions"
                if schema.length
                else "a box of positive size"
            )
            raise ValueError(
                f"{image.path}: {schema.category} {i} has no reference length; expected {unit}"
            )
    if not images:
        raise ValueError(f"{folder}: the folder contains no annotated images")
    return sorted(images, key=lambda image: str(image.path))


def _number(row: dict, column: str, path: Path, line: int) -> float:
    try:
        value = float(row[column])
    except (TypeError, ValueError):
        value = np.nan
    if not np.isfinite(value):
        raise ValueError(
            f"{path}, line {line}: {column}={row[column]!r:.60} is not valid; expected a number"
        )
    return value


def _read_csv(folder: Path, schema: Schema) -> list[AnnotatedImage]:
    path = folder / "keypoints.csv"
    points: dict[str, dict[str, dict[str, Point]]] = {}
    column, size_of = "face" if schema == FACES else "object", cache(_size)
    for line, row in read_rows(path, ("image", column, "keypoint", "x", "y")):
        keypoint, which = row["keypoint"], row[column]
        if keypoint not in schema.keypoints:
            raise ValueError(
                f"{path}, line {line}: keypoint={keypoint!r:.60} is unknown; "
                f"expected one of {', '.join(schema.keypoints)}"
            )
        if row.get("visible") not in (None, "", "0", "1"):
            raise ValueError(
                f"{path}, line {line}: visible={row['visible']!r:.60} is not valid; expected 0 or 1"
            )
        instance = points.setdefault(row["image"], {}).setdefault(which, {})
        if keypoint in instance:
            raise ValueError(
                f"{path}, line {line}: {keypoint} of {schema.category} {which:.60} in "
                f"{row['image']:.60} is annotated twice; expected once"
            )
        instance[keypoint] = (
            _number(row, "x", path, line),
            _number(row, "y", path, line),
            row.get("visible") != "0",
        )
        _check_inside(
            f"{path}, line {line}", keypoint, instance[keypoint], size_of(folder / row["image"])
        )
    boxes = _read_ignore(folder)
    landmarks = _read_landmarks(folder / "landmarks68.csv") if schema == FACES else {}
    return [
        _annotated_image(
            folder / name,
            list(instances.values()),
            boxes.get(folder / name, []),
            schema,
            landmarks=[landmarks.get((name, instance)) for instance in instances],
        )
        for name, instances in points.items()
    ]


def _read_ignore(folder: Path) -> dict[Path, list[list[float]]]:
    """Read the boxes of each image in ``ignore.csv``, if the folder has such a file.

    A box in an unknown photograph raises an error; a photograph without annotated faces may have
    boxes.
    """
    path = folder / "ignore.csv"
    if not path.is_file():
        return {}
    boxes_by_name = read_boxes(path, lambda name: (folder / name).is_file(), "in this folder")
    return {folder / name: boxes for name, boxes in boxes_by_name.items()}


def read_boxes(
    path: Path, is_known: Callable[[str], bool], known: str
) -> dict[str, list[list[float]]]:
    """Read the boxes of each image from a CSV file with the columns image, x0, y0, x1 and y1.

    A ValueError that names the file and the line is raised if the file is invalid or ``is_known``
    is false for an image. In the latter case, the message is "image=... is not" followed by
    ``known``.
    """
    boxes: dict[str, list[list[float]]] = {}
    for line, row in read_rows(path, ("image", "x0", "y0", "x1", "y1")):
        if not is_known(row["image"]):
            raise ValueError(f"{path}, line {line}: image={row['image']!r:.60} is not {known}")
        x0, y0, x1, y1 = box = [_number(row, c, path, line) for c in ("x0", "y0", "x1", "y1")]
        if not (x0 < x1 and y0 < y1):
            raise ValueError(
                f"{path}, line {line}: the box ({x0:g}, {y0:g}, {x1:g}, {y1:g}) is not valid; "
                "expected x0 < x1 and y0 < y1"
            )
        boxes.setdefault(row["image"], []).append(box)
    return boxes


def _read_landmarks(path: Path) -> dict[tuple[str, str], np.ndarray]:
    """Read the landmarks (68, 2) of each image and face; the result is empty if the file is
    missing."""
    if not path.is_file():
        return {}
    columns = [f"{axis}{i}" for i in range(N_LANDMARKS) for axis in "xy"]
    landmarks = {}
    for line, row in read_rows(path, ("image", "face", *columns)):
        landmarks[row["image"], row["face"]] = np.reshape(
            [_number(row, column, path, line) for column in columns], (N_LANDMARKS, 2)
        )
    return landmarks


def _size(path: Path) -> tuple[int, int] | None:
    """Return the width and height of an image, or None if it cannot be read; the error is reported
    later."""
    try:
        return image_size(path)
    except ValueError:
        return None


def _check_inside(where: str, keypoint: str, point: Point, size: tuple[int, int] | None) -> None:
    """Raise an error if a visible point lies outside its image, or if a hidden point or a corner of
    a box lies more than an image size outside."""
    x, y, visible = point
    width, height = size or (np.inf, np.inf)
    slack_x, slack_y = (1.0, 1.0) if visible else (width, height)
    if not (
        -0.5 - slack_x <= x <= width - 0.5 + slack_x
        and -0.5 - slack_y <= y <= height - 0.5 + slack_y
    ):
        raise ValueError(
            f"{where}: {keypoint} at ({x:g}, {y:g}) lies outside the image of {width} x "
            f"{height} pixels"
        )


def _annotated_image(
    path: Path,
    instances: list[dict[str, Point]],
    ignore: list[list[float]],
    schema: Schema,
    landmarks: Sequence[np.ndarray | None] = (None,),
    boxes: list[list[float]] | None = None,
) -> AnnotatedImage:
    unknown = (np.nan, np.nan, False)
    table = [[instance.get(name, unknown) for name in schema.keypoints] for instance in instances]
    values = np.array(table, float).reshape(-1, len(schema.keypoints), 3)
    known = [points for points in landmarks if points is not None]
    all_points = np.stack(known) if len(known) == len(instances) > 0 else None
    around = None if boxes is None else np.array(boxes, float).reshape(-1, 4)
    visible, ignored = values[..., 2] > 0, np.array(ignore, float).reshape(-1, 4)
    return AnnotatedImage(
        path, values[..., :2].copy(), visible, ignored, all_points, schema=schema, boxes=around
    )


def _read_tree(folder: Path, paths: list[Path]) -> list[AnnotatedImage]:
    """Read the photographs of ``.pts`` files, each with all of its faces."""
    boxes, instances = (
        defaultdict[Path, list[list[float]]](list),
        defaultdict[Path, list[Path]](list),
    )
    for place in sorted({folder, *(path.parent for path in paths)}):
        for image, more in _read_ignore(place).items():
            boxes[image] += more
    for path in paths:
        instances[_image_beside(path)].append(path)
    images = []
    for copies in _joined(list(instances)):
        first = copies[0]
        size = image_size(first)
        read = [read_pts(path, size) for copy in copies for path in instances[copy]]
        ignored = [box for copy in copies for box in boxes.get(copy, [])]
        below = first.relative_to(folder).parts[:-1]
        xy, visible, landmarks = (np.concatenate(parts) for parts in zip(*read, strict=True))
        images.append(
            AnnotatedImage(
                first,
                xy,
                visible,
                np.array(ignored, float).reshape(-1, 4),
                landmarks,
                below[0] if below else "",
            )
        )
    return images


def _image_beside(path: Path) -> Path:
    """Return the image of a ``.pts`` file, which has the same name, with or without the face
    number."""
    suffixes = [s for suffix in IMAGE_SUFFIXES for s in (suffix, suffix.upper())]
    for stem in (path.stem, re.sub(r"_\d+$", "", path.stem)):
        for suffix in suffixes:
            if (image := path.with_name(stem + suffix)).is_file():
                return image
    raise ValueError(f"{path}: the folder contains no image with the same name")


def _joined(images: list[Path]) -> list[list[Path]]:
    """Group identical images, which are files with equal content whose names differ only in a
    trailing number."""
    groups: defaultdict[tuple, list[Path]] = defaultdict(list)
    for path in images:
        groups[path.parent, re.sub(r"_\d+$", "", path.stem), path.stat().st_size].append(path)
    joined: list[list[Path]] = []
    for group in groups.values():
        by_content: defaultdict[bytes, list[Path]] = defaultdict(list)
        for path in group:
            by_content[path.read_bytes() if len(group) > 1 else b""].append(path)
        joined += by_content.values()
    return joined


def read_coco(folder: Path) -> tuple[Path, dict[str, Any], dict[Any, dict[str, Any]]]:
    """Read the annotation file in a folder, and return its path and its content as COCO keypoints.

    ``folder`` may also be the file itself. The function also returns a dict of the categories with
    keypoints, by id. A ValueError that names the file is raised if the file is invalid.
    """
    files = [[folder]] if folder.is_file() else [sorted(folder.glob(name)) for name in _FILES]
    paths = next(filter(None, files), [])
    if not paths:
        raise ValueError(
            f"{folder}: the folder contains no annotations; expected keypoints.csv, a COCO "
            "keypoint file, or annotations of CVAT, labelme, YOLO-pose, DeepLabCut or Label Studio"
        )
    contents: list[Any] = []
    try:
        for path in paths:
            contents.append(read_file(path, folder))
        if len(paths) > 1 and any(isinstance(content, dict) for content in contents):
            raise ValueError(
                f"the folder contains {len(paths)} annotation files; expected one COCO file"
            )
        coco = contents[0] if isinstance(contents[0], dict) else as_coco(chain(*contents))
        for part in ("images", "annotations", "categories"):
            if len({entry["id"] for entry in coco[part] if "id" in entry}) < sum(
                "id" in entry for entry in coco[part]
            ):
                raise ValueError(f"two {part} have the same id")
        categories = {
            c["id"]: {**c, "keypoints": [str(k) for k in c["keypoints"]]}
            for c in coco["categories"]
            if c.get("keypoints")
        }
        for c in categories.values():
            if len(set(c["keypoints"])) < len(c["keypoints"]):
                raise ValueError(
                    f"keypoints={c['keypoints']} is not valid; expected distinct names"
                )
    except (ValueError, LookupError, TypeError, AttributeError, SyntaxError, RuntimeError) as error:
        raise ValueError(
            f"{path}: the file is not a valid annotation file ({type(error).__name__}: {error})"
        ) from None
    return path, coco, categories


def coco_objects(
    path: Path, coco: dict[str, Any], names_of: dict[Any, list[str]]
) -> dict[str, list[tuple[dict[str, list[float]], list[float] | None, bool, float | None]]]:
    """Return the annotated objects in each image file.

    An object contains its points (x, y, visibility) by name, its box (x, y, width, height) and its
    area if they are given, and whether it is a crowd. ``names_of`` maps the ids of the required
    categories to their keypoints. A ValueError that names the annotation file is raised if it is
    invalid.
    """
    try:
        files = {image["id"]: image["file_name"] for image in coco["images"]}
        objects: dict[str, list[Any]] = {name: [] for name in files.values()}
        for a in coco["annotations"]:
            if a["category_id"] not in names_of:
                continue
            file, names = files[a["image_id"]], names_of[a["category_id"]]
            where = f"annotation {a['id']}" if "id" in a else file
            values = np.array(a.get("keypoints") or [], float)
            if (
                len(values) not in (0, 3 * len(names))
                or not np.isfinite(values).all()
                or not np.isin(values[2::3], (0, 1, 2)).all()
            ):
                raise ValueError(
                    f"{where}: the keypoints are not valid; "
                    f"expected {3 * len(names)} numbers (x, y, and 0, 1 or 2 for each keypoint)"
                )
            box = a.get("bbox") and np.array(a["bbox"], float).reshape(4).tolist()
            if box and not min(box[2:]) > 0:
                raise ValueError(
                    f"{where}: bbox={a['bbox']} is not valid; expected a positive width and height"
                )
            points = dict(zip(names, values.reshape(-1, 3).tolist()))
            entry = points, box, bool(a.get("iscrowd")), a.get("area") or None
            if entry not in objects[file]:  # duplicate objects count once
                objects[file].append(entry)
    except (ValueError, KeyError, TypeError, AttributeError) as error:
        raise ValueError(
            f"{path}: the file is not a valid annotation file ({type(error).__name__}: {error})"
        ) from None
    return objects


def _read_coco(folder: Path, schema: Schema) -> list[AnnotatedImage]:
    path, coco, categories = read_coco(folder)
    # Faces have the same reference length in all files; other objects are matched by name.
    wanted = {
        i: c["keypoints"]
        for i, c in categories.items()
        if schema == FACES or c.get("name") in (schema.category, UNNAMED)
    }
    if not any(set(schema.length or schema.keypoints) <= set(names) for names in wanted.values()):
        raise ValueError(
            f"{path}: none of the categories has the keypoints "
            f"{' and '.join(schema.length or schema.keypoints)}"
        )
    images, inner = [], [folder, folder / "images", *sorted((folder / "images").glob("*/"))]
    for file, objects in coco_objects(path, coco, wanted).items():
        image = next((place / file for place in inner if (place / file).is_file()), folder / file)
        size = _size(image)
        instances, boxes, ignore, areas, ignored, crowds = (list[Any]() for _ in range(6))
        for points, box, crowd, area in objects:
            named = {
                name: (x, y, v >= 2)
                for name, (x, y, v) in points.items()
                if name in schema.keypoints and v > 0
            }
            x, y, w, h = box or [np.nan] * 4
            for corner in ((x, y, False), (x + w, y + h, False)) if box else ():
                _check_inside(f"{path}: {Path(file).name}", "a corner of a bbox", corner, size)
            measured = set(schema.length) <= named.keys() if schema.length else len(named) > 1
            if measured and not crowd:
                for name, point in named.items():
                    where = f"{path}: {schema.category} {len(instances)} of {Path(file).name}"
                    _check_inside(where, name, point, size)
                instances.append(named)
                boxes.append([x, y, x + w, y + h])
                areas.append(area or w * h)
            # predictions on an object without a reference length are ignored
            elif box:
                ignore.append([x, y, x + w, y + h])
                ignored.append(area or w * h)
                crowds.append(crowd)
        made = _annotated_image(image, instances, ignore, schema, (None,), boxes)
        images.append(
            replace(made, areas=np.array(areas + ignored, float), crowds=np.array(crowds, bool))
        )
    known = all(np.isfinite(image.boxes).all() for image in images if image.boxes is not None)
    return images if known else [replace(one, boxes=None, areas=None) for one in images]
