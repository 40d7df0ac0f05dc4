"""``annealed faces detect`` on a video file or a camera: faces are followed from frame to frame."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack
from dataclasses import dataclass
from functools import partial
from pathlib import Path

import cv2
import numpy as np

from ...models.faces.assembly import Assembly
from ...models.faces.face_finder import Face
from ...models.faces.tracker import FaceTracker
from ...models.keypoints.detections import Detection, DetectionOptions, DetectionResult, of_faces
from ...models.keypoints.detector import KeypointDetector
from ...vision.tracks.video import open_video, warn_if_cut_short
from ..common.video import writing_video
from .detect import records, timed, warm_up
from .drawing import draw_symbols

_RATE = 25.0  # frames per second where the source does not say


@dataclass(frozen=True)
class FrameDetections:
    """Detections in one frame, by falling score.

    ``time`` is when it is shown, in seconds from the first frame; ``seconds`` the detection alone;
    sizes in pixels.

    Attributes
    ----------
    source : str
        As it was named.
    frame : int
        Number of the frame, from 0.
    time : float
        When it is shown, in seconds from the first one.
    width, height : int
        Its size in pixels.
    seconds : float
        The detection alone.
    detections : list of Detection
        By falling score.
    faces : list of Face
        By falling probability.
    """

    source: str
    frame: int
    time: float
    width: int
    height: int
    seconds: float
    detections: Sequence[Detection]
    faces: Sequence[Face]

    def record(self) -> dict:
        """Return the JSON object of the command line."""
        facts = {"image": self.source, "frame": self.frame, "time": round(self.time, 6), "width": self.width}
        return facts | {"height": self.height, "seconds": round(self.seconds, 6)} | records(self.detections, self.faces)


def _processing(detector: KeypointDetector, smooth: float, options: DetectionOptions) -> Callable[[np.ndarray], DetectionResult]:
    """What is done with each frame, in their order."""
    options = detector.resolve(options)
    finder, min_probability = detector.faces, 0.5 if options.min_probability is None else options.min_probability
    if finder is None or options.assembly == Assembly.NONE or options.threshold is not None or min_probability == 0:
        if smooth:
            raise ValueError(f"smooth={smooth}: expected assembled faces, a min_probability above 0 and no threshold")
        return partial(detector.find, options=options)
    tracker = FaceTracker(finder, lambda frame: detector.find(frame, options).faces, smooth=smooth, min_probability=min_probability)

    def follow(frame: np.ndarray) -> DetectionResult:
        faces = tracker.update(frame)
        detections = of_faces(faces, options.keypoints or (), detector.pool.window / detector.reference_ied)
        return DetectionResult(sorted(detections, key=lambda detection: -detection.score), faces)

    return follow


def detect_video(
    detector: KeypointDetector,
    source: str | int,
    options: DetectionOptions | None = None,
    every: int = 1,
    overlay: Path | None = None,
    smooth: float = 0.0,
) -> Iterator[FrameDetections]:
    """Detect keypoints in every N-th frame; stop the iteration to end early, the overlay is
    complete all the same.

    ``source`` is a video file or the number of a camera; the overlay (.mp4) shows all frames, each
    with the detections of the last one that was processed. By default ``roll`` is 0: frames without
    a face are many, and not searched thrice. Faces are followed, and their points smoothed
    (:class:`~annealed.models.faces.tracker.FaceTracker`), unless every candidate or no face is
    asked for.
    """
    options = options or DetectionOptions(roll=0.0)
    process = _processing(detector, smooth, options)
    camera = isinstance(source, int)
    name = f"camera {source}" if camera else str(source)
    if every < 1:
        raise ValueError(f"every={every}: expected a whole number of at least 1")
    capture = cv2.VideoCapture(source) if isinstance(source, int) else open_video(source)
    try:
        if not capture.isOpened():
            raise ValueError(f"{name}: cannot be opened as a video")
        rate = capture.get(cv2.CAP_PROP_FPS)
        rate = rate if 0 < rate < 1000 else _RATE
        with ExitStack() as stack:
            shown = DetectionResult([], [])
            number = 0
            write = None if overlay is None else stack.enter_context(writing_video(overlay, rate))
            while True:
                try:
                    good, frame = capture.read()
                # how one leaves a camera, which mostly waits here: what was written stays
                except KeyboardInterrupt:
                    good = False
                    if not camera:
                        raise
                if not good:
                    if not camera:
                        warn_if_cut_short(capture, number, name)
                    break
                pixels = np.asarray(cv2.cvtColor(frame, cv2.COLOR_BGR2RGB), np.uint8)
                height, width = pixels.shape[:2]
                if number == 0:
                    warm_up(detector, options)
                if number % every == 0:
                    shown, seconds = timed(process, pixels)
                if write is not None:
                    draw_symbols(pixels, shown.detections, shown.faces)
                    write(pixels)
                if number % every == 0:
                    try:
                        yield FrameDetections(name, number, number / rate, width, height, seconds, *shown)
                    except GeneratorExit:
                        break
                number += 1
            if number == 0:
                raise ValueError(f"{name}: a video without a readable frame")
    finally:
        capture.release()
