"""Answers of the Label tab: an image, and proposals by the current model."""

from functools import lru_cache
from pathlib import Path
from typing import Any

from ....models import load_model
from ....models.keypoints.detections import DetectionOptions
from ....models.keypoints.detector import KeypointDetector
from ....vision.images import read_image
from ...common.data_urls import jpeg_url
from .faces import check_pixels
from .fields import Fields
from .limits import LIMITS

FIELDS = ("model", "changed")
_MIN_PROBABILITY = (
    0.3  # of a proposal. A choice: removing an object is faster than placing its points
)


@lru_cache(maxsize=1)
def _detector(model: str, changed: str | None) -> KeypointDetector:
    return load_model(model)


def answer(path: Path, fields: Fields, tell: Any) -> dict[str, Any]:
    """Return the image as JPEG with its size and, if ``model`` is given, the detected objects;
    ``changed`` identifies the version of the model."""
    check_pixels(path, LIMITS["label"].pixels)
    pixels, model, objects = read_image(path), fields.text("model"), []
    if model is not None:
        result = _detector(model, fields.text("changed")).find(
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
        "picture": jpeg_url(pixels),
        "objects": objects,
    }
