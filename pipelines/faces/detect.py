"""What ``annealed faces detect`` does to each photograph."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np

from ...learners.compilation import seconds_compiling
from ...models.faces.face_finder import Face
from ...models.keypoints.detector import Detection, Found, KeypointDetector
from ...vision.images import read_image
from .parallel import map_images

SAMPLE = "astronaut"  # name of the photograph that is used when none is named


@dataclass(frozen=True)
class Answer:
    """Detections and faces in one photograph, or the reason in one line why there are none.

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
    faces : list of Face
        By falling probability.
    error : str or None
        One line; then the rest is empty.
    """

    image: str
    pixels: np.ndarray | None = None
    seconds: float = 0.0
    detections: Sequence[Detection] = ()
    faces: Sequence[Face] = ()
    error: str | None = None

    def record(self, landmarks: bool = False) -> dict:
        """Return the JSON object of the command line, with all points of the faces if asked for."""
        if self.error is not None or self.pixels is None:
            return {"image": self.image, "error": self.error}
        height, width = self.pixels.shape[:2]
        return {
            "image": self.image,
            "width": width,
            "height": height,
            "seconds": round(self.seconds, 6),
            **records(self.detections, self.faces, landmarks),
        }


def records(detections: Sequence[Detection], faces: Sequence[Face], landmarks: bool = False) -> dict[str, list]:
    """Detections and faces as JSON can hold them."""
    made = [face.record() for face in faces]
    if landmarks:
        for record, face in zip(made, faces):
            record["landmarks"] = face.landmarks.round(2).tolist()
    return {"detections": [d._asdict() for d in detections], "faces": made}


def detect_files(detector: KeypointDetector, images: Sequence[str], n_jobs: int = 1, **options) -> Iterator[Answer]:
    """Detect keypoints in image files (none: the sample photograph), in their order; a bad file yields an answer with its error.

    So many as ``n_jobs`` at a time; the detections do not depend on it. Options of :meth:`KeypointDetector.detect`.
    """

    return map_images(partial(_detect_file, options), detector, images or [None], n_jobs)


_ready: set[tuple[Any, ...]] = set()  # modes whose compiled code this process has loaded


def warm_up(detector: KeypointDetector, options: dict[str, Any]) -> None:
    """Compile or load what a detection needs, on the face of the sample photograph: before a clock starts."""
    mode = options.get("mode"), options.get("assembly")
    if mode not in _ready:
        everywhere = {"min_size": None, "max_size": None, "threshold": None, "min_probability": None}
        detector.find(sample_photograph()[20:220, 120:320], **{**options, **everywhere})
        _ready.add(mode)


def _detect_file(options: dict[str, Any], detector: KeypointDetector, name: str | None) -> Answer:
    warm_up(detector, options)
    shown = SAMPLE if name is None else name
    try:
        pixels = sample_photograph() if name is None else read_image(name)
        found, seconds = timed(partial(detector.find, **options), pixels)
        return Answer(shown, pixels, seconds, found.detections, found.faces)
    except ValueError as error:
        message = " ".join(str(error).split())
        return Answer(shown, error=message if shown in message else f"{shown}: {message}")


def timed(process: Callable[[np.ndarray], Found], pixels: np.ndarray) -> tuple[Found, float]:
    """Detections and faces, and the seconds that they took; what was still compiled for them is not counted."""
    start, compiled = time.perf_counter(), seconds_compiling()
    found = process(pixels)
    return found, time.perf_counter() - start - (seconds_compiling() - compiled)


def sample_photograph() -> np.ndarray:
    """Return scikit-image's photograph of the astronaut Eileen Collins (NASA, public domain)."""
    import skimage

    path = Path(skimage.__file__).parent / "data" / "astronaut.png"
    if path.is_file():  # scikit-image's own reader takes a tenth of a second to import
        return read_image(path)
    from skimage.data import astronaut

    return astronaut()
