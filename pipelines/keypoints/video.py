"""Detection of keypoints in videos and camera streams, with tracking of faces."""

from collections import deque
from collections.abc import Callable, Generator, Iterator
from contextlib import ExitStack
from dataclasses import replace
from functools import partial
from itertools import chain
from pathlib import Path
from time import monotonic

import cv2
import numpy as np

from ...learners.parameters import check_integer
from ...models.keypoints import DetectionOptions, DetectionResult, KeypointDetector, of_instances
from ...models.keypoints.instances import (
    DEFAULT_CUTOFF,
    MAX_FRAMES,
    Assembly,
    Instance,
    InstanceTracker,
    TimedInstances,
    half_window,
    smoothed,
)
from ...vision.tracks.video import frames_of, open_video
from ..common.video import writing_video
from .detect import FileDetections, timed, warm_up
from .drawing import draw_symbols

_RATE = 25.0  # frames per second if the source has no frame rate


FrameProcessor = Callable[[np.ndarray, float], DetectionResult]
# pixels, and the detections if the frame was processed
_Frame = tuple[np.ndarray, FileDetections | None]


def frame_processor(
    detector: KeypointDetector, smooth: float | str, options: DetectionOptions
) -> FrameProcessor:
    """Return a function that processes frames in order.

    The function takes a frame, of shape (H, W, 3), and its time in seconds. Points are smoothed
    using earlier frames.
    """
    options = detector.resolve(options)
    cutoff, min_probability = _cutoff(detector, options, smooth), options.min_probability
    if detector.finder is None or not _is_tracked(detector, options):
        return lambda frame, time: detector.find(frame, options)

    def search(frame: np.ndarray, scale: float) -> list[Instance]:
        low, high = (size and size * scale for size in (options.min_size, options.max_size))
        return list(detector.find(frame, options, min_size=low, max_size=high).instances)

    tracker = InstanceTracker(
        detector.finder, search, min_probability=0.5 if min_probability is None else min_probability
    )
    known: deque[TimedInstances] = deque(maxlen=MAX_FRAMES)

    def follow(frame: np.ndarray, time: float) -> DetectionResult:
        instances = tracker.update(frame, time)
        if cutoff is not None:
            known.append((time, instances))
            instances = smoothed(known, len(known) - 1, cutoff)
        return _result(detector, options, instances)

    return follow


def _is_tracked(detector: KeypointDetector, options: DetectionOptions) -> bool:
    """Return whether faces are tracked. If every candidate or no instance is requested, each frame
    is searched separately."""
    assembled = detector.finder is not None and options.assembly != Assembly.NONE
    return assembled and options.threshold is None and options.min_probability != 0


def _result(
    detector: KeypointDetector, options: DetectionOptions, instances: list[Instance]
) -> DetectionResult:
    detections = of_instances(
        instances, options.keypoints or (), detector.pool.window / detector.reference_length
    )
    return DetectionResult(sorted(detections, key=lambda detection: -detection.score), instances)


def _cutoff(
    detector: KeypointDetector, options: DetectionOptions, smooth: float | str
) -> float | None:
    """Return the cut-off frequency in Hz, or None if points are not smoothed."""
    try:
        cutoff = None if smooth == "off" else DEFAULT_CUTOFF if smooth == "auto" else float(smooth)
    except ValueError:
        raise ValueError(
            f"smooth={smooth!r} is not valid; expected auto, off or a cut-off frequency in Hz"
        ) from None
    if cutoff is not None and not 0 < cutoff < np.inf:
        raise ValueError(f"smooth={cutoff} is not valid; expected a cut-off frequency above 0 Hz")
    if _is_tracked(detector, options):
        return cutoff
    if smooth not in ("auto", "off"):
        raise ValueError(
            f"smooth={smooth} requires assembled faces; use a min_probability above 0 and no "
            "threshold"
        )
    return None


def detect_video(
    detector: KeypointDetector,
    source: str | int,
    options: DetectionOptions | None = None,
    every: int = 1,
    overlay: Path | None = None,
    smooth: float | str = "auto",
) -> Generator[FileDetections]:
    """Detect keypoints in every N-th frame of a video file or camera.

    ``source`` is a video file or the number of a camera. The overlay (.mp4) contains all frames,
    each with the latest detections, and is a valid video even if the iteration is stopped early. In
    the default options, ``roll`` is 0, so that frames without a face are searched only once. Faces
    are tracked and people are numbered by
    :class:`~annealed.models.keypoints.instances.tracker.InstanceTracker`, unless the options set a
    ``threshold``, a ``min_probability`` of 0, or the assembly "none". ``smooth`` is the cut-off
    frequency in Hz for smoothing the points
    (:mod:`~annealed.models.keypoints.instances.smoothing`), "auto" for
    :data:`~annealed.models.keypoints.instances.smoothing.DEFAULT_CUTOFF`, or "off". Points in a
    file are smoothed using earlier and later frames, and points from a camera using only earlier
    frames.
    """
    options = detector.resolve(options or DetectionOptions(roll=0.0))
    camera = isinstance(source, int)
    cutoff = None if camera else _cutoff(detector, options, smooth)
    process = frame_processor(detector, smooth if camera else "off", options)
    name = f"camera {source}" if camera else str(source)
    check_integer("every", every, 1)
    capture = cv2.VideoCapture(source) if isinstance(source, int) else open_video(source)
    with ExitStack() as stack:
        stack.callback(capture.release)
        if not capture.isOpened():
            raise ValueError(f"{name}: the file cannot be read as a video")
        rate = capture.get(cv2.CAP_PROP_FPS)
        rate = rate if 0 < rate < 1000 else _RATE

        def detected() -> Iterator[_Frame]:
            time, start = -1 / rate, None
            for number, pixels in enumerate(frames_of(capture, name, camera)):
                now = monotonic() if camera else capture.get(cv2.CAP_PROP_POS_MSEC) / 1000
                if start is None:
                    start = now
                    warm_up(detector, options)
                # the frame rate determines the time if neither the file nor the clock gives a later
                # one
                step = now - start - time
                time += step if step > 0.1 / rate else 1 / rate
                result = None
                if number % every == 0:
                    answer, seconds = timed(process, pixels, time)
                    result = FileDetections(
                        name, pixels, seconds, *answer, detector.category, None, number, time
                    )
                yield pixels, result
            if start is None:
                raise ValueError(f"{name}: the video has no readable frames")

        frames = detected()
        if cutoff is not None:
            frames = _smoothed(frames, cutoff, partial(_result, detector, options))
        write = None if overlay is None else stack.enter_context(writing_video(overlay, rate))
        shown = FileDetections(name)
        for pixels, result in frames:
            shown = result or shown
            if write is not None:
                drawn = pixels.copy()
                draw_symbols(drawn, shown.detections, shown.instances)
                write(drawn)
            if result is not None:
                try:
                    yield result
                except GeneratorExit:
                    break


def _smoothed(
    frames: Iterator[_Frame], cutoff: float, result_of: Callable[[list[Instance]], DetectionResult]
) -> Iterator[_Frame]:
    """Iterate over the frames, delayed until the later frames that smooth their points are
    available."""
    held: deque[_Frame] = deque()
    known: deque[TimedInstances] = deque(maxlen=2 * MAX_FRAMES + 1)
    n_waiting = 0  # waiting frames with detections
    for frame in chain(frames, [None]):
        held += [] if frame is None else [frame]
        if frame is not None and frame[1] is not None:
            known.append((frame[1].time, frame[1].instances))
            n_waiting += 1
        while held and (
            frame is None
            or held[0][1] is None
            or len(held) > MAX_FRAMES
            or known[-1][0] > held[0][1].time + half_window(cutoff)
        ):
            pixels, result = held.popleft()
            if result is not None:
                detections, instances = result_of(smoothed(known, len(known) - n_waiting, cutoff))
                result = replace(result, detections=detections, instances=instances)
                n_waiting -= 1
            yield pixels, result
