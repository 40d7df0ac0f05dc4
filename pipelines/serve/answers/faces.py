"""Answers of the Faces tab: keypoints of a photograph, and the selected features of the
detector."""

import tempfile
from functools import cache
from pathlib import Path
from typing import Any

from ....models import load_model
from ....models.keypoints.detections import DetectionOptions
from ....models.keypoints.features import strongest_features
from ....vision.images import image_size
from ...common.data_urls import jpeg_url, zip_url
from ...keypoints.detect import detect_file, warm_up
from ...keypoints.forms import Forms, write_crops
from .fields import Fields
from .limits import LIMITS

_OPTIONS = (
    "keypoint",
    "min_probability",
    "threshold",
    "min_size",
    "max_size",
    "roll",
    "mode",
    "assembly",
)
FIELDS = (*_OPTIONS, "landmarks", "picture", "files")
N_FEATURES = 11  # strongest features shown per keypoint


detector = cache(lambda: load_model("faces"))  # the shipped model


def prepare() -> None:
    """Load the detector and its compiled code."""
    warm_up(detector(), DetectionOptions())


def check_pixels(path: Path, most: int) -> None:
    """Raise a ValueError for a photograph with too many pixels, before decoding it."""
    width, height = image_size(path)
    if width * height > most:
        raise ValueError(
            f"{path}: {width} x {height} pixels; expected at most {most / 1e6:.0f} million"
        )


def answer(path: Path, fields: Fields, tell: Any) -> dict[str, Any]:
    """Return the record of ``annealed faces detect --json``; with ``picture`` also the photograph
    as JPEG, with ``files`` the table, the COCO file and the crops."""
    options = _options(fields)
    check_pixels(path, LIMITS["faces"].pixels)
    tell("searching")
    result = detect_file(options, False, detector(), str(path))
    if result.error is not None or result.pixels is None:
        raise ValueError(result.error)
    record = result.record(fields.flag("landmarks"))
    if fields.flag("picture"):
        record["picture"] = jpeg_url(result.pixels)
    if fields.flag("files"):
        with tempfile.TemporaryDirectory(dir=".") as name:
            folder = Path(name)
            Forms(
                folder / "faces.csv", folder / "faces.json", landmarks=fields.flag("landmarks")
            ).write([record], detector())
            write_crops(folder / path.stem, result, Forms.size)
            record["files"] = zip_url(folder)
    return record


def _options(fields: Fields) -> DetectionOptions:
    """Return the options of the detection; invalid ones are refused without the file name."""
    numbers = {
        name: fields.number(name)
        for name in ("min_probability", "threshold", "min_size", "max_size", "roll")
    }
    given: dict[str, Any] = {name: value for name, value in numbers.items() if value is not None}
    given |= {name: fields.text(name) for name in ("mode", "assembly")}
    options = DetectionOptions(fields.listed("keypoint") or None, **given)
    detector().resolve(options)
    return options


def features() -> dict[str, Any]:
    """Return the strongest features of each keypoint's model and their place in the window."""
    selected = {name: len(model.features) for name, model in detector().models.items()}
    return {
        "window": detector().pool.window,
        "selected": selected,
        "features": strongest_features(detector(), N_FEATURES),
    }
