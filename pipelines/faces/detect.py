"""What ``annealed faces detect`` does to each photograph."""

from __future__ import annotations

import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np

from ...learners.compilation import seconds_compiling
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


_ready: set[tuple[Any, ...]] = set()  # modes whose compiled code this process has loaded


def warm_up(detector: KeypointDetector, options: dict[str, Any]) -> None:
    """Compile or load what a detection needs, on the face of the sample photograph: before a clock starts."""
    mode = options.get("mode"), options.get("shape_regression", True)
    if mode not in _ready:
        everywhere = {"min_size": None, "max_size": None, "threshold": None}
        detector.detect(sample_photograph()[20:220, 120:320], **{**options, **everywhere})
        _ready.add(mode)


def _detect_file(options: dict[str, Any], detector: KeypointDetector, name: str | None) -> Answer:
    warm_up(detector, options)
    shown = SAMPLE if name is None else name
    try:
        pixels = sample_photograph() if name is None else read_image(name)
        detections, seconds = timed_detection(detector, pixels, options)
        return Answer(shown, pixels, seconds, detections)
    except ValueError as error:
        message = " ".join(str(error).split())
        return Answer(shown, error=message if shown in message else f"{shown}: {message}")


def timed_detection(detector: KeypointDetector, pixels: np.ndarray, options: dict[str, Any]) -> tuple[Sequence[Detection], float]:
    """Detections, and the seconds that they took; what was still compiled for them is not counted."""
    start, compiled = time.perf_counter(), seconds_compiling()
    detections = detector.detect(pixels, **options)
    return detections, time.perf_counter() - start - (seconds_compiling() - compiled)


def sample_photograph() -> np.ndarray:
    """Return scikit-image's photograph of the astronaut Eileen Collins (NASA, public domain)."""
    import skimage

    path = Path(skimage.__file__).parent / "data" / "astronaut.png"
    if path.is_file():  # scikit-image's own reader takes a tenth of a second to import
        return read_image(path)
    from skimage.data import astronaut

    return astronaut()
