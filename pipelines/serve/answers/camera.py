"""Answers of the Camera tab: faces in successive frames, with person numbers."""

from functools import lru_cache
from pathlib import Path
from typing import Any

from ....models.keypoints.detections import DetectionOptions
from ....vision.images import read_image
from ...keypoints.detect import FileDetections, timed
from ...keypoints.video import FrameProcessor, frame_processor
from .faces import check_pixels, detector, prepare
from .fields import Fields
from .limits import LIMITS

__all__ = ["FIELDS", "answer", "prepare"]
FIELDS = ("session", "time")


@lru_cache(maxsize=4)
def _follower(session: str) -> FrameProcessor:
    return frame_processor(detector(), "auto", DetectionOptions(roll=0.0))


def answer(path: Path, fields: Fields, tell: Any) -> dict[str, Any]:
    """Return the record of ``annealed faces detect --json`` for the next frame of a session."""
    time = fields.number("time")
    if time is None:
        raise ValueError("time: expected the time of this frame in seconds")
    check_pixels(path, LIMITS["camera"].pixels)
    pixels = read_image(path)
    result, seconds = timed(_follower(fields.text("session") or ""), pixels, time)
    return FileDetections(path.name, pixels, seconds, *result).record()
