"""Functions that open videos and read them frame by frame."""

import os
import warnings
from collections.abc import Iterator
from pathlib import Path

import cv2
import numpy as np


def capture_of(path: str | Path) -> cv2.VideoCapture:
    """Open a video file, using OpenCV's FFmpeg backend if it is available.

    Other backends print messages about damaged files.
    """
    # otherwise FFmpeg prints messages to stderr
    os.environ.setdefault("OPENCV_FFMPEG_LOGLEVEL", "-8")
    available = cv2.videoio_registry.hasBackend(cv2.CAP_FFMPEG)
    return cv2.VideoCapture(str(path), cv2.CAP_FFMPEG if available else cv2.CAP_ANY)


def open_video(path: str | Path) -> cv2.VideoCapture:
    """Open a video file.

    Parameters
    ----------
    path : path

    Returns
    -------
    cv2.VideoCapture
        Opened capture, which the caller must release.

    Raises
    ------
    ValueError
        If the file does not exist, or OpenCV cannot read a frame size from it.
    """
    if not Path(path).is_file():
        raise ValueError(f"{path}: no such file")
    capture = capture_of(path)
    if not capture.isOpened() or capture.get(cv2.CAP_PROP_FRAME_WIDTH) < 1:
        raise ValueError(f"{path}: the file cannot be read as a video")
    return capture


def read_frames(path: str | Path) -> Iterator[np.ndarray]:
    """Read a video frame by frame.

    Parameters
    ----------
    path : path

    Yields
    ------
    ndarray of shape (H, W, 3), uint8
        RGB frame.

    Raises
    ------
    ValueError
        As in :func:`open_video`.
    """
    return frames_of(open_video(path), str(path))


def frames_of(
    capture: cv2.VideoCapture, name: str, is_camera: bool = False
) -> Iterator[np.ndarray]:
    """Yield the frames of an open capture, and then release it.

    If the capture is a camera, Ctrl-C ends the iteration.
    """
    n_read = 0
    try:
        while True:
            try:
                good, frame = capture.read()
            except KeyboardInterrupt:
                if not is_camera:
                    raise
                return
            if not good:
                if not is_camera:
                    warn_if_cut_short(capture, n_read, name)
                return
            n_read += 1
            if frame.ndim == 2:
                frame = cv2.cvtColor(frame, cv2.COLOR_GRAY2BGR)
            yield cv2.cvtColor(frame, cv2.COLOR_BGR2RGB)
    finally:
        capture.release()


def warn_if_cut_short(capture: cv2.VideoCapture, n_read: int, path: str | Path) -> None:
    """Warn if fewer frames were read than the file header states.

    Small differences are ignored, since the number is only an estimate in some formats.
    """
    announced = int(capture.get(cv2.CAP_PROP_FRAME_COUNT))
    if 0 < announced < 1e9 and n_read < 0.95 * announced - 1:
        warnings.warn(
            f"{path}: only {n_read} of {announced} frames could be read; the file may be truncated",
            stacklevel=3,
        )
