"""Conversion of annotation files from other tools to COCO keypoints.

The tools are CVAT, labelme, YOLO-pose, DeepLabCut and Label Studio. A reader yields parts of
objects. Each part contains the image file, an identifier of the object in the image, a label, and
values. A point has three values (x, y, visibility). A box has four values (x, y, width, height),
and its label is the category. Parts that only declare a category or an image have no values.
Coordinates in pixels are not changed.
"""

import csv
import json
import os
import re
import warnings
from collections.abc import Iterable, Iterator, Sequence
from itertools import chain
from pathlib import Path
from typing import Any
from urllib.parse import unquote
from xml.etree import ElementTree

import numpy as np

from ...vision.images import image_size
from ..common import IMAGE_SUFFIXES, distinct

Part = tuple[str, Any, str, Sequence[float]]
UNNAMED = "object"  # category of objects without a category


def as_coco(parts: Iterable[Part]) -> dict[str, Any]:
    """Convert parts of objects to the content of a COCO keypoint file.

    A part is a tuple of the file name, an identifier of the object, a label, and the values of a
    point (x, y, visibility) or a box (x, y, width, height). The values may be empty.

    A ValueError is raised if an object has two points with the same name.
    """
    files: dict[str, dict[Any, dict[str, Any]]] = {}
    for file, group, label, values in parts:
        one = files.setdefault(file, {}).setdefault(group, {"name": UNNAMED, "points": {}})
        if len(values) != 3:
            one.update({"name": label or one["name"]}, **({"bbox": [*values]} if values else {}))
        elif one["points"].setdefault(label, values) is not values:
            raise ValueError(
                f"{file}: {label!r} occurs twice in one object; group the points of each object"
            )
    objects = [
        (number, one)
        for number, of_file in enumerate(files.values())
        for one in of_file.values()
        if one["points"] or "bbox" in one
    ]
    names: dict[str, dict[str, Any]] = {}
    # points are in the order of an object that has all of them
    for _, one in sorted(objects, key=lambda entry: -len(entry[1]["points"])):
        names.setdefault(one["name"], {}).update(one["points"])
    ids = {name: i for i, name in enumerate(names)}
    annotations = [
        {
            "image_id": number,
            "category_id": ids[one["name"]],
            "keypoints": [*chain(*(one["points"].get(k, (0, 0, 0)) for k in names[one["name"]]))],
            "bbox": one.get("bbox"),
        }
        for number, one in objects
    ]
    return {
        "images": [{"id": number, "file_name": file} for number, file in enumerate(files)],
        "annotations": annotations,
        "categories": [{"id": ids[n], "name": n, "keypoints": [*names[n]]} for n in names],
    }


def read_file(path: Path, folder: Path) -> dict[str, Any] | list[Part]:
    """Return the content of a COCO file or, for any other file, parts as in :func:`as_coco`."""
    read = {".xml": _cvat, ".csv": _deeplabcut, ".yaml": _yolo}.get(path.suffix)
    if read is not None:
        return list(read(path, folder))
    content = json.loads(path.read_text(encoding="utf-8"), object_pairs_hook=distinct)
    if isinstance(content, dict) and "shapes" in content:
        return list(_labelme(content))
    return list(_label_studio(content, folder)) if isinstance(content, list) else content


def _labelme(content: dict[str, Any]) -> Iterator[Part]:
    file = content["imagePath"].replace("\\", "/")
    yield file, None, "", ()
    for shape in content["shapes"]:
        xy, hidden = np.array(shape["points"], float), (shape.get("flags") or {}).get("occluded")
        point = (*xy[0], 1 if hidden else 2)
        values = point if len(xy) == 1 else (*xy.min(axis=0), *np.ptp(xy, axis=0))
        yield file, shape.get("group_id"), shape["label"], values


def _label_studio(content: list[dict[str, Any]], folder: Path) -> Iterator[Part]:
    for task in content:
        url = str(next(iter(task["data"].values())))
        file = Path(unquote(url.split("?d=")[-1].split("?")[0])).name
        if not any((folder / place / file).is_file() for place in ("", "images")):
            file = re.sub("^[0-9a-f]{8}-", "", file)  # prefix of uploaded files
        yield file, None, "", ()
        results = (one["result"] for one in task["annotations"] if not one.get("was_cancelled"))
        for one in next(results, ()):
            if (kind := one["type"]) in ("keypointlabels", "rectanglelabels"):
                value, sides = one["value"], [one["original_width"], one["original_height"]]
                x, y = np.array([value["x"], value["y"]]) * sides / 100
                if kind == "keypointlabels":
                    yield file, one.get("parentID"), value[kind][0], (x, y, 2)
                else:
                    extent = np.array([value["width"], value["height"]]) * sides / 100
                    yield file, one["id"], value[kind][0], (x, y, *extent)


def _cvat(path: Path, folder: Path) -> Iterator[Part]:
    """Yield the parts of a file in the format "CVAT for images" or "CVAT for video", with skeletons
    or grouped points."""
    root = ElementTree.parse(path).getroot()
    for image in root.iter("image"):
        for number, one in enumerate([image, *image.iter("skeleton")]):
            yield image.attrib["name"], number or None, one.get("label", ""), ()
            for of in one.findall("points"):
                group = number or of.get("group_id")
                yield image.attrib["name"], group, of.attrib["label"], _cvat_point(of)
    files = {frame.stem: frame.name for frame in folder.rglob("frame_*")}
    for track, one in ((parent, one) for parent in root.iter("track") for one in parent):
        frame, skeleton = f"frame_{int(one.attrib['frame']):06}", one.tag == "skeleton"
        file, label = files.get(frame, f"{frame}.png"), track.attrib["label"]
        group = f"track {track.attrib['id']}" if skeleton else track.get("group_id")
        yield file, group, label if skeleton else "", ()
        for of in one.iter("points"):
            yield file, group, of.get("label", label), _cvat_point(of)


def _cvat_point(point: ElementTree.Element) -> tuple[float, float, int]:
    x, y = map(float, point.attrib["points"].split(","))
    return x, y, 0 if point.get("outside") == "1" else 1 if point.get("occluded") == "1" else 2


def _deeplabcut(path: Path, folder: Path) -> Iterator[Part]:
    """Yield the parts of a table ``CollectedData*.csv`` next to its images."""
    rows = list(csv.reader(path.read_text(encoding="utf-8").splitlines()))
    heads = {row[0]: row for row in rows[:4]}
    columns = [j for j, axis in enumerate(heads["coords"]) if axis == "x"]
    for row in rows[rows.index(heads["coords"]) + 1 :]:
        name = Path("/".join(row[: columns[0]]).replace("\\", "/").rstrip("/")).name
        file = os.path.relpath(path.parent / name, folder)
        for j in columns:
            values = (float(row[j]), float(row[j + 1]), 2) if row[j] else (0, 0, 0)
            yield file, heads.get("individuals", heads["scorer"])[j], heads["bodyparts"][j], values


def _yolo(path: Path, folder: Path) -> Iterator[Part]:
    """Yield the parts of the training images of a ``data.yaml``, or of the images in a folder below
    it. If there are no ``kpt_names``, the points are numbered."""
    import yaml

    try:
        config = yaml.safe_load(path.read_text(encoding="utf-8"))
    except yaml.YAMLError as error:
        raise ValueError(" ".join(str(error).split())) from None
    (n, width), given = config["kpt_shape"], config.get("kpt_names")
    if given is None:
        warnings.warn(
            f"{path}: kpt_names is missing, so the points are named 1 to {n}", stacklevel=1
        )
        given = [str(i + 1) for i in range(n)]
    images = path.parent / config["train"].removeprefix("../") if path.parent == folder else folder
    for image in sorted(p for p in images.rglob("*") if p.suffix.lower() in IMAGE_SUFFIXES):
        file, size = os.path.relpath(image, folder), np.array(image_size(image))
        yield file, None, "", ()
        label = Path("/labels/".join(image.as_posix().rsplit("/images/", 1))).with_suffix(".txt")
        lines = label.read_text().splitlines() if label.is_file() else []
        for number, line in enumerate(lines, 1):
            values = np.array(line.split(), float)
            if len(values) != 5 + n * width:
                raise ValueError(
                    f"{label}, line {number}: the line has {len(values)} numbers; "
                    f"expected {5 + n * width}"
                )
            i, middle, sides = int(values[0]), values[1:3] * size, values[3:5] * size
            yield file, number, config["names"][i], (*(middle - sides / 2), *sides)
            points = values[5:].reshape(n, width)
            for name, (x, y, *seen) in zip(given[i] if isinstance(given, dict) else given, points):
                yield file, number, name, (x * size[0], y * size[1], *(seen or [2 * (x > 0)]))
