"""What the tab Faces asks for: keypoints of a photograph, and the features that the detector
selected."""

from __future__ import annotations

import tempfile
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np

from ....models import load_model
from ....models.keypoints.detections import DetectionOptions
from ....models.keypoints.detector import KeypointDetector
from ....vision.images import image_size
from ....vision.windows.feature_layout import Column
from ...faces.detect import detect_file, warm_up
from ...faces.forms import Forms, write_crops
from .fields import Fields
from .limits import LIMITS
from .pictures import jpeg_url, zip_url

_OPTIONS = ("keypoint", "min_probability", "threshold", "min_size", "max_size", "roll", "mode", "assembly")
FIELDS = (*_OPTIONS, "landmarks", "picture", "files")
N_FEATURES = 11  # shown of each keypoint, the strongest


@cache
def detector() -> KeypointDetector:
    """Return the shipped detector."""
    return load_model("faces")


def prepare() -> None:
    """Load the detector, and its compiled code."""
    warm_up(detector(), DetectionOptions())


def check_pixels(path: Path, most: int) -> None:
    """Raise a ValueError for a photograph of too many pixels, which is then not decoded."""
    width, height = image_size(path)
    if width * height > most:
        raise ValueError(f"{path}: {width} x {height} pixels; expected at most {most / 1e6:.0f} million")


def answer(path: Path, fields: Fields, tell: Any) -> dict[str, Any]:
    """Return the record of ``annealed faces detect --json``; with ``picture`` also the photograph
    as JPEG, with ``files`` the table, the COCO file and the crops."""
    options = _options(fields)
    check_pixels(path, LIMITS["faces"].pixels)
    tell("searching")
    result = detect_file(options, False, detector(), str(path))
    if result.error is not None or result.pixels is None:
        raise ValueError(result.error)
    found = result.record(fields.flag("landmarks"))
    if fields.flag("picture"):
        found["picture"] = jpeg_url(result.pixels)
    if fields.flag("files"):
        with tempfile.TemporaryDirectory(dir=".") as name:
            folder = Path(name)
            Forms(folder / "faces.csv", folder / "faces.json", landmarks=fields.flag("landmarks")).write([found], detector())
            write_crops(folder / path.stem, result, Forms.size)
            found["files"] = zip_url(folder)
    return found


def _options(fields: Fields) -> DetectionOptions:
    """Return the options of the detection; those that make no sense are refused without the name of
    the file."""
    numbers = {name: fields.number(name) for name in ("min_probability", "threshold", "min_size", "max_size", "roll")}
    given: dict[str, Any] = {name: value for name, value in numbers.items() if value is not None}
    options = DetectionOptions(
        fields.listed("keypoint") or None, mode=fields.text("mode"), assembly=fields.text("assembly"), **given
    )
    detector().resolve(options)
    return options


def features() -> dict[str, Any]:
    """Return where in its window each keypoint's model looks: its strongest features, the greatest
    range of the response first.

    Cells are [x, y, width, height, weight] in pixels of the window; a gradient histogram has one
    cell and an angle in radians.
    """
    pool = detector().pool
    kinds = [np.array(rows) for rows in pool.kinds.values()]
    found = {}
    for name, model in detector().models.items():
        strength = np.ptp(model.responses.values.reshape(len(model.features), -1), axis=1)
        order = np.argsort(-strength, kind="stable")[:N_FEATURES]
        found[name] = [
            {"name": pool.name(model.features[i]), "strength": float(strength[i]), **_cells(model.features[i], kinds, pool.hog)}
            for i in order
        ]
    return {"window": pool.window, "selected": {n: len(m.features) for n, m in detector().models.items()}, "features": found}


def _cells(feature: np.ndarray, kinds: list[np.ndarray], hog: Any) -> dict[str, Any]:
    x, y, w, h = (int(feature[c]) for c in (Column.X, Column.Y, Column.CELL_WIDTH, Column.CELL_HEIGHT))
    kind = int(feature[Column.KIND])
    if kind == len(kinds):
        row, column = divmod(int(feature[Column.CELL]), hog.block)
        angle = float(feature[Column.ORIENTATION]) * np.pi / hog.orientations
        return {"cells": [[x + column * w, y + row * h, w, h, 1]], "angle": angle}
    return {"cells": [[x + c * w, y + r * h, w, h, int(weight)] for (r, c), weight in np.ndenumerate(kinds[kind]) if weight]}
