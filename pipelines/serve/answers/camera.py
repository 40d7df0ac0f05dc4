"""What the tab Camera asks for: the faces of frame after frame, with the numbers of their
persons."""

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
    """Return the record of ``annealed faces detect --json`` for one frame of a session, later than
    the one before."""
    time = fields.number("time")
    if time is None:
        raise ValueError("time: expected the seconds of this frame")
    check_pixels(path, LIMITS["camera"].pixels)
    pixels = read_image(path)
    result, seconds = timed(_follower(fields.text("session") or ""), pixels, time)
    return FileDetections(path.name, pixels, seconds, *result).record()
