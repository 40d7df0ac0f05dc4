"""``annealed faces detect`` on a video file or a camera, with faces tracked from frame to frame."""

from collections.abc import Callable, Generator
from contextlib import ExitStack
from pathlib import Path

import cv2
import numpy as np

from ...models.keypoints.detections import DetectionOptions, DetectionResult, of_instances
from ...models.keypoints.detector import KeypointDetector
from ...models.keypoints.instances.assembly import Assembly
from ...models.keypoints.instances.one_euro import DEFAULT_CUTOFF
from ...models.keypoints.instances.tracker import InstanceTracker
from ...vision.tracks.video import frames_of, open_video
from ..common.video import writing_video
from .detect import FileDetections, timed, warm_up
from .drawing import draw_symbols

_RATE = 25.0  # frames per second if the source has no frame rate


FrameProcessor = Callable[[np.ndarray, float], DetectionResult]


def frame_processor(
    detector: KeypointDetector, smooth: float | str, options: DetectionOptions
) -> FrameProcessor:
    """Return the function that processes each frame (H, W, 3) and its time in seconds, in order."""
    options = detector.resolve(options)
    cutoff = _cutoff(smooth)
    finder, min_probability = (
        detector.finder,
        0.5 if options.min_probability is None else options.min_probability,
    )
    if (
        finder is None
        or options.assembly == Assembly.NONE
        or options.threshold is not None
        or min_probability == 0
    ):
        if smooth not in ("auto", "off"):
            raise ValueError(
                f"smooth={smooth}: expected assembled faces, a min_probability above 0 and no "
                "threshold"
            )
        return lambda frame, time: detector.find(frame, options)
    tracker = InstanceTracker(
        finder,
        lambda frame: detector.find(frame, options).instances,
        smooth=cutoff,
        min_probability=min_probability,
    )

    def follow(frame: np.ndarray, time: float) -> DetectionResult:
        instances = tracker.update(frame, time)
        detections = of_instances(
            instances, options.keypoints or (), detector.pool.window / detector.reference_length
        )
        return DetectionResult(
            sorted(detections, key=lambda detection: -detection.score), instances
        )

    return follow


def _cutoff(smooth: float | str) -> float | None:
    """Cut-off frequency at rest, in Hz; None: no filter."""
    try:
        return None if smooth == "off" else DEFAULT_CUTOFF if smooth == "auto" else float(smooth)
    except ValueError:
        raise ValueError(
            f"smooth={smooth!r}: expected auto, off or a cut-off frequency in Hz"
        ) from None


def detect_video(
    detector: KeypointDetector,
    source: str | int,
    options: DetectionOptions | None = None,
    every: int = 1,
    overlay: Path | None = None,
    smooth: float | str = "auto",
) -> Generator[FileDetections]:
    """Detect keypoints in every N-th frame; the overlay is complete even if the iteration is
    stopped early.

    ``source`` is a video file or the number of a camera; the overlay (.mp4) shows all frames, each
    with the latest detections. By default ``roll`` is 0, because frames without a face are frequent
    and are searched once. Faces are tracked, and persons are numbered
    (:class:`~annealed.models.keypoints.instances.tracker.InstanceTracker`), unless every candidate
    or no face is requested. ``smooth`` is the cut-off frequency at rest in Hz of the filter that
    smooths their points, "auto" for
    :data:`~annealed.models.keypoints.instances.one_euro.DEFAULT_CUTOFF`, or "off".
    """
    options = options or DetectionOptions(roll=0.0)
    process = frame_processor(detector, smooth, options)
    camera = isinstance(source, int)
    name = f"camera {source}" if camera else str(source)
    if every < 1:
        raise ValueError(f"every={every}: expected an integer of at least 1")
    capture = cv2.VideoCapture(source) if isinstance(source, int) else open_video(source)
    with ExitStack() as stack:
        stack.callback(capture.release)
        if not capture.isOpened():
            raise ValueError(f"{name}: cannot be opened as a video")
        rate = capture.get(cv2.CAP_PROP_FPS)
        rate = rate if 0 < rate < 1000 else _RATE
        write = None if overlay is None else stack.enter_context(writing_video(overlay, rate))
        number, shown = -1, DetectionResult([], [])
        for number, pixels in enumerate(frames_of(capture, name, camera)):
            if number == 0:
                warm_up(detector, options)
            if number % every == 0:
                shown, seconds = timed(process, pixels, number / rate)
            if write is not None:
                drawn = pixels.copy()
                draw_symbols(drawn, shown.detections, shown.instances)
                write(drawn)
            if number % every == 0:
                try:
                    yield FileDetections(
                        name, pixels, seconds, *shown, frame=number, time=number / rate
                    )
                except GeneratorExit:
                    break
        if number < 0:
            raise ValueError(f"{name}: expected a video with a readable frame")
