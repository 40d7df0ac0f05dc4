"""Manual labels of the images in a folder, stored as COCO keypoints."""

import json
from pathlib import Path
from typing import Any

import numpy as np

from ...models.files import check_writable, replacing
from ...models.keypoints.schema import Schema
from ...vision.images import image_size
from ..common.image_folders import list_images
from .data import coco_objects, read_coco, schema_of

LABELS, PROPOSALS = "annotations.json", "proposals.json"
_NOTHING: dict[str, Any] = {"images": [], "annotations": [], "categories": []}
_MARGIN = 0.1  # margin around the points of an object without a box, relative to their larger range


class LabelFolder:
    """Images of a folder and their labels, which are stored in ``annotations.json``.

    An object is a dict with ``keypoints`` and an optional ``bbox``. ``keypoints`` maps names to x,
    y and visibility (0: not in the image, 1: hidden, 2: visible). Proposals for unlabelled images
    are read from ``proposals.json``, which can be written by ``annealed faces detect --coco``.

    Parameters
    ----------
    folder : path
    schema : Schema, optional
        Schema of the points, used if neither the labels nor ``schema.toml`` define it.

    Raises
    ------
    ValueError
        If the folder has no images or no schema, or a file cannot be read.
    """

    def __init__(self, folder: Path, schema: Schema | None = None):
        self.folder, self.images = folder, list_images(folder)
        check_writable(folder / LABELS)
        described = any(
            map(Path.is_file, (folder / "schema.toml", folder / LABELS, folder / PROPOSALS))
        )
        if not described and schema is None:
            raise ValueError(
                f"{folder}: the folder does not describe the keypoints; add schema.toml or "
                "annotations.json to it, or use --model"
            )
        self.schema = schema_of(folder) if described or schema is None else schema
        self._coco = _NOTHING
        self._version: tuple[int, ...] = ()  # version of the file when it was last read
        self.labels: dict[str, list[dict[str, Any]]] = {}
        self.refresh()
        names = {path.name for path in self.images}
        proposed = (
            read_coco(folder / PROPOSALS)[1] if (folder / PROPOSALS).is_file() else self._coco
        )
        self.proposals = {
            Path(name).name: some
            for name, some in self._objects(proposed).items()
            if Path(name).name in names
        }

    def refresh(self) -> None:
        """Reload the labels if another program has changed them.

        Raises
        ------
        ValueError
            If the labels can no longer be read.
        """
        path = self.folder / LABELS
        version = _version(path) if path.is_file() else ()
        if version != self._version:
            coco = read_coco(self.folder)[1] if version else _NOTHING
            self.labels, self._coco, self._version = self._objects(coco), coco, version

    def _objects(self, coco: dict[str, Any]) -> dict[str, list[dict[str, Any]]]:
        """Return the objects of the schema's category for each file name."""
        names_of = {
            c["id"]: c["keypoints"] for c in coco["categories"] if c["name"] == self.schema.category
        }
        return {
            file: [
                {"keypoints": {name: p for name, p in points.items() if p[2] > 0}, "bbox": box}
                for points, box, *_ in objects
                if points
            ]
            for file, objects in coco_objects(self.folder, coco, names_of).items()
        }

    def record(self) -> dict[str, Any]:
        """Return the schema, the labelled images, and statistics of complete objects.

        The statistics are the mean object, scaled to size 1 around (0, 0), and the mean position
        and size (x, y, size). If no object is complete, the points of the mean object lie on a
        circle, and the mean position and size are None.
        """
        whole = [
            o["keypoints"]
            for some in self.labels.values()
            for o in some
            if len(o["keypoints"]) == len(self.schema.keypoints)
        ]
        angle = np.linspace(0, 2 * np.pi, len(self.schema.keypoints), endpoint=False)
        mean, place = np.stack([np.cos(angle), np.sin(angle)], axis=1) / 2, None
        if whole:
            xy = np.array(
                [[points[name][:2] for name in self.schema.keypoints] for points in whole]
            )
            centres, sizes = xy.mean(axis=1), np.ptp(xy, axis=1).max(axis=1)
            mean = ((xy - centres[:, None]) / sizes[:, None, None].clip(1e-6)).mean(axis=0)
            place = [*centres.mean(axis=0).tolist(), float(sizes.mean())]
        return {
            "category": self.schema.category,
            "keypoints": self.schema.keypoints,
            "skeleton": self.schema.skeleton,
            "mean": dict(zip(self.schema.keypoints, mean.tolist())),
            "place": place,
            "pictures": [
                {"name": path.name, "labelled": path.name in self.labels} for path in self.images
            ],
        }

    def save(self, path: Path, objects: list[dict[str, Any]]) -> None:
        """Replace the objects in an image with a list of objects, which may be empty.

        The file is replaced atomically, and labels that other programs have written for other
        images are retained.

        Raises
        ------
        ValueError
            If the objects do not match the schema, or a point lies outside the image.
        """
        self.refresh()
        width, height = image_size(path)
        entries = []
        for number, entry in enumerate(objects):
            where, points = f"{path.name}, object {number + 1}", dict(entry["keypoints"])
            if not set(points) <= set(self.schema.keypoints) or not all(
                len(p) == 3 and p[2] in (0, 1, 2) for p in points.values()
            ):
                raise ValueError(
                    f"{where}: the keypoints are not valid; "
                    f"expected x, y and visibility of {', '.join(self.schema.keypoints)}"
                )
            values = np.array(
                [points.get(name, (0, 0, 0)) for name in self.schema.keypoints], float
            )
            known = values[:, 2] > 0
            values[~known] = 0  # as in COCO files, whatever position the page used
            xy = values[known, :2]
            if len(xy) < 2 or not ((xy >= -0.5) & (xy <= [width - 0.5, height - 0.5])).all():
                raise ValueError(
                    f"{where}: the points are not valid; expected at least two points, all "
                    f"inside the image of {width} x {height} pixels"
                )
            low_xy, high_xy = xy.min(axis=0), xy.max(axis=0)
            margin = max(_MARGIN * float((high_xy - low_xy).max()), 1.0)
            low, high = low_xy - margin, high_xy + margin
            if entry.get("bbox"):
                box = np.array(entry["bbox"], float)
                if box.shape != (4,) or not np.isfinite(box).all():
                    raise ValueError(
                        f"{where}: the bbox is not valid; expected four finite numbers"
                    )
                corners = np.stack([box[:2], box[:2] + box[2:]])
                corners = np.clip(corners, -0.5, [width - 0.5, height - 0.5])
                low, high = np.minimum(low_xy, corners[0]), np.maximum(high_xy, corners[1])
            entries.append(
                (values.round(2).ravel().tolist(), np.append(low, high - low).round(2).tolist())
            )
        self._write(path, (width, height), entries)

    def _write(self, path: Path, size: tuple[int, int], entries: list[tuple[list, list]]) -> None:
        names = list(self.schema.keypoints)
        lists = ("images", "annotations", "categories")
        coco = {**self._coco, **{part: list(self._coco[part]) for part in lists}}
        new = {
            part: max((entry.get("id", 0) for entry in coco[part]), default=0) + 1 for part in lists
        }
        category = next(
            (c for c in coco["categories"] if c.get("name") == self.schema.category), None
        )
        if category is None:
            bones = [[names.index(name) + 1 for name in bone] for bone in self.schema.skeleton]
            category = {
                "id": new["categories"],
                "name": self.schema.category,
                "keypoints": names,
                "skeleton": bones,
            }
            coco["categories"].append(category)
        order = [names.index(name) for name in category["keypoints"]]
        image = next((i for i in coco["images"] if i["file_name"] == path.name), None)
        if image is None:
            image = {
                "id": new["images"],
                "file_name": path.name,
                "width": size[0],
                "height": size[1],
            }
            coco["images"].append(image)
        ours = {"image_id": image["id"], "category_id": category["id"]}
        coco["annotations"] = [a for a in coco["annotations"] if not ours.items() <= a.items()]
        for number, (points, box) in enumerate(entries, new["annotations"]):
            ordered = np.reshape(points, (-1, 3))[order].ravel().tolist()
            coco["annotations"].append({"id": number, **ours, "keypoints": ordered, "bbox": box})
        with replacing(self.folder / LABELS) as temporary:
            temporary.write_text(json.dumps(coco), encoding="utf-8")
            version = _version(temporary)
        self._coco, self.labels, self._version = coco, self._objects(coco), version


def _version(path: Path) -> tuple[int, ...]:
    """Return a fingerprint of a file, which changes when the file is replaced."""
    about = path.stat()
    return about.st_ino, about.st_size, about.st_mtime_ns
