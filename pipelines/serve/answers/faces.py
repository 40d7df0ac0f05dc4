"""Responses about keypoints for the tabs Faces, Camera and Label."""

import tempfile
from functools import cache, lru_cache
from pathlib import Path
from typing import Any

from ....models import load_model
from ....models.keypoints import DetectionOptions, KeypointDetector, strongest_features
from ....vision.images import image_size, read_image
from ...common.data_urls import jpeg_url, zip_url
from ...keypoints import (
    FileDetections,
    Forms,
    FrameProcessor,
    detect_file,
    frame_processor,
    timed,
    warm_up,
    write_crops,
)
from .fields import Fields, accepts
from .limits import LIMITS

N_FEATURES = 11  # number of strongest features shown per keypoint
_MIN_PROBABILITY = (
    0.3  # minimum of a proposal (heuristic): removing an object is faster than placing its points
)
_LONGEST = 4096  # pixels of an image to label, whose details remain visible when enlarged


detector = cache(lambda: load_model("faces"))  # the shipped model


def prepare() -> None:
    """Load the detector and its compiled code."""
    warm_up(detector(), DetectionOptions())


def check_pixels(path: Path, most: int) -> None:
    """Check the number of pixels of a photograph before it is decoded."""
    width, height = image_size(path)
    if width * height > most:
        raise ValueError(
            f"{path}: the image is {width} x {height} pixels; "
            f"expected at most {most / 1e6:.0f} million pixels"
        )


@accepts(
    "keypoint",
    "min_probability",
    "threshold",
    "min_size",
    "max_size",
    "roll",
    "mode",
    "assembly",
    "landmarks",
    "picture",
    "files",
)
def faces(path: Path, fields: Fields, tell: Any) -> dict[str, Any]:
    """Return the JSON object that ``annealed faces detect --json`` prints.

    If ``picture`` is set, it also contains the photograph as a JPEG. If ``files`` is set, it also
    contains the table, the COCO file and the crops.
    """
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
            ).write([record], [detector()])
            write_crops(folder / path.stem, result, Forms.size)
            record["files"] = zip_url(folder)
    return record


def _options(fields: Fields) -> DetectionOptions:
    """Return the options of the detection; messages about invalid options omit the file name."""
    numbers = {
        name: fields.number(name)
        for name in ("min_probability", "threshold", "min_size", "max_size", "roll")
    }
    given: dict[str, Any] = {name: value for name, value in numbers.items() if value is not None}
    given |= {name: fields.text(name) for name in ("mode", "assembly")}
    options = DetectionOptions(fields.listed("keypoint") or None, **given)
    detector().resolve(options)
    return options


@accepts()
def features(path: Path, fields: Fields, tell: Any) -> dict[str, Any]:
    """Return the features with the largest ranges of responses for each keypoint."""
    selected = {name: len(model.features) for name, model in detector().models.items()}
    return {
        "window": detector().pool.window,
        "selected": selected,
        "features": strongest_features(detector(), N_FEATURES),
    }


@lru_cache(maxsize=4)
def _follower(session: str) -> FrameProcessor:
    return frame_processor(detector(), "auto", DetectionOptions(roll=0.0))


@accepts("session", "time")
def camera(path: Path, fields: Fields, tell: Any) -> dict[str, Any]:
    """Return the JSON object that describes the detections in the next frame of a session."""
    time = fields.number("time")
    if time is None:
        raise ValueError("the field time is missing; expected the time of this frame in seconds")
    check_pixels(path, LIMITS["camera"].pixels)
    pixels = read_image(path)
    result, seconds = timed(_follower(fields.text("session") or ""), pixels, time)
    return FileDetections(path.name, pixels, seconds, *result).record()


@lru_cache(maxsize=1)
def _model(model: str, changed: str | None) -> KeypointDetector:
    return load_model(model)


@accepts("model", "changed")
def label(path: Path, fields: Fields, tell: Any) -> dict[str, Any]:
    """Return the image as a JPEG, its size and, if ``model`` is given, the detected objects.

    ``changed`` identifies the version of the model.
    """
    check_pixels(path, LIMITS["label"].pixels)
    pixels, model, objects = read_image(path), fields.text("model"), []
    if model is not None:
        result = _model(model, fields.text("changed")).find(
            pixels, DetectionOptions(min_probability=_MIN_PROBABILITY)
        )
        for instance in result.instances:
            points = {
                name: [round(p.x, 2), round(p.y, 2), 2] for name, p in instance.keypoints.items()
            }
            objects.append({"keypoints": points, "probability": instance.probability})
    return {
        "width": pixels.shape[1],
        "height": pixels.shape[0],
        "picture": jpeg_url(pixels, _LONGEST),
        "objects": objects,
    }
