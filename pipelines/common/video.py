"""Atomic writing of videos, which are verified by reading them back."""

import os
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from pathlib import Path

import cv2
import numpy as np

from ...models.files import replacing
from ...vision.tracks.video import capture_of

VIDEO_SUFFIXES = (".mp4", ".m4v", ".mov", ".avi", ".mkv", ".webm", ".mpg", ".mpeg")


def check_video_name(path: Path) -> None:
    """Check that a file name has the suffix of a supported video format."""
    if path.suffix.lower() not in VIDEO_SUFFIXES:
        raise ValueError(
            f"{path}: the file cannot be written as a video; expected a file name that ends in "
            ".mp4 or .avi"
        )


@contextmanager
def writing_video(path: Path, rate: float) -> Iterator[Callable[[np.ndarray], None]]:
    """Context manager that writes a video under a temporary name and renames it after a check.

    It yields a function that adds an RGB frame, given as a uint8 array of shape (H, W, 3). All
    frames must have the same size. The check reads the file back. ``.avi`` files contain Motion
    JPEG, and all other files contain MPEG-4. ``rate`` is in frames per second. An existing file is
    replaced atomically.
    """
    check_video_name(path)
    # suppresses messages of FFmpeg
    os.environ.setdefault("OPENCV_FFMPEG_LOGLEVEL", "-8")
    code = cv2.VideoWriter.fourcc(*("MJPG" if path.suffix.lower() == ".avi" else "mp4v"))
    writers: list[cv2.VideoWriter] = []
    n_frames = 0
    with replacing(path) as temporary:

        def write(frame: np.ndarray) -> None:
            nonlocal n_frames
            if not writers:
                writers.append(
                    cv2.VideoWriter(str(temporary), code, rate, (frame.shape[1], frame.shape[0]))
                )
                if not writers[0].isOpened():
                    raise ValueError(
                        f"{path}: there is no encoder for this file type; use another type, such "
                        "as .avi"
                    )
            writers[0].write(cv2.cvtColor(frame, cv2.COLOR_RGB2BGR))
            n_frames += 1

        try:
            yield write
        finally:
            for writer in writers:
                writer.release()
        if not n_frames:
            raise ValueError(f"{path}: there are no frames to write")
        n_read = _n_frames(temporary)
        if n_read < n_frames or not _is_whole(temporary):
            what = (
                f"{n_read} of {n_frames} frames can be read back"
                + ", but the file has no index" * (n_read == n_frames)
            )
            raise ValueError(f"{path}: the file cannot be written ({what}; is the disk full?)")


def write_video(path: str | Path, frames: Iterable[np.ndarray], rate: float) -> None:
    """Write RGB frames of equal size as a video; see :func:`writing_video`."""
    with writing_video(Path(path), rate) as write:
        for frame in frames:
            write(frame)


def _is_whole(path: Path) -> bool:
    """Return whether an .avi file is complete, that is, as long as its header states; True for
    other files."""
    with path.open("rb") as file:
        head = file.read(8)
    return head[:4] != b"RIFF" or int.from_bytes(head[4:], "little") + 8 <= path.stat().st_size


def _n_frames(path: Path) -> int:
    """Return the number of readable frames, or 0 if the file cannot be opened."""
    capture = capture_of(path)
    n = 0
    while capture.grab():
        n += 1
    capture.release()
    return n
