"""What ``annealed faces detect`` does to each photograph."""

from __future__ import annotations

import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any

import numpy as np

from ...models.keypoints.detector import Detection, KeypointDetector
from ...vision.images import read_image
from .parallel import map_images

SAMPLE = "astronaut"  # name of the photograph that is used when none is named


@dataclass(frozen=True)
class Answer:
    """Detections in one photograph, by falling score, or the reason in one line why there are none.

    ``seconds`` is the detection alone.

    Attributes
    ----------
    image : str
        As it was named.
    pixels : ndarray or None
        RGB pixels.
    seconds : float
        The detection alone.
    detections : list of Detection
        By falling score.
    error : str or None
        One line; then the rest is empty.
    """

    image: str
    pixels: np.ndarray | None = None
    seconds: float = 0.0
    detections: Sequence[Detection] = ()
    error: str | None = None

    def record(self) -> dict:
        """Return the JSON object of the command line."""
        if self.error is not None or self.pixels is None:
            return {"image": self.image, "error": self.error}
        height, width = self.pixels.shape[:2]
        return {
            "image": self.image,
            "width": width,
            "height": height,
            "seconds": round(self.seconds, 6),
            "detections": [d._asdict() for d in self.detections],
        }


def detect_files(detector: KeypointDetector, images: Sequence[str], n_jobs: int = 1, **options) -> Iterator[Answer]:
    """Detect keypoints in image files (none: the sample photograph), in their order; a bad file yields an answer with its error.

    So many as ``n_jobs`` at a time; the detections do not depend on it. Options of :meth:`KeypointDetector.detect`.
    """

    return map_images(partial(_detect_file, options), detector, images or [None], n_jobs)


_ready: set[str | None] = set()  # modes whose compiled code this process has loaded


def _detect_file(options: dict[str, Any], detector: KeypointDetector, name: str | None) -> Answer:
    if (mode := options.get("mode")) not in _ready:  # before the clock starts
        detector.detect(np.zeros((64, 64, 3), np.uint8), **{**options, "min_size": None, "max_size": None})
        _ready.add(mode)
    shown = SAMPLE if name is None else name
    try:
        pixels = sample_photograph() if name is None else read_image(name)
        start = time.perf_counter()
        detections = detector.detect(pixels, **options)
        return Answer(shown, pixels, time.perf_counter() - start, detections)
    except ValueError as error:
        message = " ".join(str(error).split())
        return Answer(shown, error=message if shown in message else f"{shown}: {message}")


def sample_photograph() -> np.ndarray:
    """Return scikit-image's photograph of the astronaut Eileen Collins (NASA, public domain)."""
    from skimage.data import astronaut

    return astronaut()
