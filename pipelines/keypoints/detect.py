"""Detection of keypoints in photographs (``annealed faces detect``)."""

import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np

from ...learners.compilation import seconds_compiling
from ...models import Detection, DetectionOptions, DetectionResult, Instance, KeypointDetector
from ...vision.images import read_image
from ..common import FileMap, are_few, by_processes, try_file

SAMPLE = "astronaut"  # default photograph


@dataclass(frozen=True)
class FileDetections:
    """Detections and instances in a photograph or video frame, or a one-line error.

    Attributes
    ----------
    image : str
        Name of the image, as given by the caller.
    pixels : ndarray or None
        RGB pixels; None if they were not requested.
    seconds : float
        Duration of the detection alone, in seconds.
    detections : list of Detection
        Detections in order of decreasing score.
    instances : list of Instance
        Instances in order of decreasing probability.
    category : str or None
        Category of the objects; None for faces.
    error : str or None
        One-line error message. If there is one, the other fields are empty.
    frame : int or None
        Frame number in a video or camera stream, starting at 0; None for a photograph.
    time : float
        Presentation time of the frame, in seconds from the first frame.
    size : tuple of int or None
        Width and height in pixels; by default, the size of ``pixels``.
    others : sequence of FileDetections
        Results of additional models for the same photograph.
    """

    image: str
    pixels: np.ndarray | None = None
    seconds: float = 0.0
    detections: Sequence[Detection] = ()
    instances: Sequence[Instance] = ()
    category: str | None = None
    error: str | None = None
    frame: int | None = None
    time: float = 0.0
    size: tuple[int, ...] | None = None
    others: Sequence["FileDetections"] = ()

    def __post_init__(self) -> None:
        if self.pixels is not None:
            object.__setattr__(self, "size", self.pixels.shape[1::-1])

    @property
    def parts(self) -> list["FileDetections"]:
        """Results of all models."""
        return [self, *self.others]

    def record(self, landmarks: bool = False) -> dict:
        """Return the JSON object that the command line prints.

        If ``landmarks`` is set, it contains all points of the objects.
        """
        if self.error is not None or self.size is None:
            return {"image": self.image, "error": self.error}
        width, height = self.size
        of_frame = {} if self.frame is None else {"frame": self.frame, "time": round(self.time, 6)}
        described = [
            ({} if part.category is None else {"category": part.category})
            | instance.record()
            | ({"landmarks": instance.landmarks.round(2).tolist()} if landmarks else {})
            for part in self.parts
            for instance in part.instances
        ]
        for one in described if self.category else ():
            del one["pose"]  # only heads have one
        return {
            "image": self.image,
            **of_frame,
            "width": width,
            "height": height,
            "seconds": round(sum(part.seconds for part in self.parts), 6),
            "detections": [
                ({"category": part.category} if self.others else {}) | d._asdict()
                for part in self.parts
                for d in part.detections
            ],
            "faces" if self.category is None else "objects": described,
        }


def detect_files(
    detector: KeypointDetector | Sequence[KeypointDetector],
    images: Sequence[str],
    options: DetectionOptions,
    file_map: FileMap | None = None,
    plain: bool | None = None,
    keep_pixels: bool = True,
    boxes: dict[str, list[list[float]]] | None = None,
) -> Iterator[FileDetections]:
    """Detect keypoints in image files, in order; an invalid file yields a result with an error.

    If ``images`` is empty, the sample photograph is used. ``file_map`` determines where the
    detection runs, by default in the current process, and does not affect the results. If ``plain``
    is true (the default for a small number of photographs), no code is compiled, and the results
    may differ in the last digits from those of compiled code. If ``keep_pixels`` is false, results
    do not include the photographs, so other processes do not have to send them. ``boxes`` maps file
    names to the boxes of known objects. If there are several detectors, the result of the first one
    contains the results of the others.
    """
    plain = are_few(images) if plain is None else plain
    work = partial(detect_file, options, plain, keep_pixels=keep_pixels, boxes=boxes)
    items: Sequence[str | None] = images or [None]
    return (
        map(partial(work, detector), items) if file_map is None else file_map(work, detector, items)
    )


_ready: set[tuple[Any, ...]] = set()  # modes whose compiled code this process has loaded


def warm_up(detector: KeypointDetector, options: DetectionOptions) -> None:
    """Compile or load all functions before a timed detection, using the sample photograph."""
    mode = options.mode, options.assembly
    if mode not in _ready:
        everywhere = replace(
            options, min_size=None, max_size=None, threshold=None, min_probability=None
        )
        detector.find(sample_photograph()[20:220, 120:320], everywhere)
        _ready.add(mode)


def detect_file(
    options: DetectionOptions,
    plain: bool,
    detector: KeypointDetector | Sequence[KeypointDetector],
    name: str | None,
    keep_pixels: bool = True,
    boxes: dict[str, list[list[float]]] | None = None,
) -> FileDetections:
    """Detect keypoints in one file, or in the sample photograph if the name is None.

    If ``plain`` is set, loops are not compiled.
    """
    detectors = [detector] if isinstance(detector, KeypointDetector) else detector
    if not plain:
        warm_up(detectors[0], options)
    shown = SAMPLE if name is None else name
    if boxes is not None:
        options = replace(options, boxes=boxes.get(Path(shown).name, []))

    def detected(detectors: Sequence[KeypointDetector], shown: str) -> FileDetections:
        pixels = sample_photograph() if name is None else read_image(shown)
        first, *others = [
            FileDetections(shown, None, seconds, *result, one.category, size=pixels.shape[1::-1])
            for one in detectors
            for result, seconds in [timed(partial(one.find, options=options), pixels)]
        ]
        return replace(first, pixels=pixels, others=others)

    detections, error = try_file(detected, detectors, shown, plain)
    detections = detections or FileDetections(shown, error=error)
    return detections if keep_pixels else replace(detections, pixels=None)


def timed(process: Callable[..., DetectionResult], *inputs: Any) -> tuple[DetectionResult, float]:
    """Return the detections and instances, and the time in seconds, excluding compilation."""
    start, compiled = time.perf_counter(), seconds_compiling()
    result = process(*inputs)
    return result, time.perf_counter() - start - (seconds_compiling() - compiled)


def sample_photograph() -> np.ndarray:
    """Return scikit-image's photograph of the astronaut Eileen Collins (NASA, public domain)."""
    import skimage

    # Importing scikit-image's own reader would take a tenth of a second.
    return read_image(Path(skimage.__file__).parent / "data" / "astronaut.png")


def detect_many(
    detector: KeypointDetector, images: Iterable[np.ndarray], n_jobs: int = 1, **options: Any
) -> Iterator[list[Detection]]:
    """Detect keypoints in images of shape (H, W, 3), in order, in parallel processes.

    There are ``n_jobs`` processes, at most one per core. Only a few images are read ahead. The
    results do not depend on ``n_jobs``. See :meth:`KeypointDetector.detect` for the options and
    errors. An error is raised when the iteration reaches an invalid image.
    """
    return by_processes(n_jobs)(partial(KeypointDetector.detect, **options), detector, images)
