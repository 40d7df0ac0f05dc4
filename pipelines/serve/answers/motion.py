"""Responses for the Motion tab: the motion of each track, and frames with the tracks."""

import tempfile
from collections.abc import Callable, Iterator
from functools import cache
from pathlib import Path
from typing import Any

import cv2
import numpy as np

from ....learners.compilation import numpy_backend
from ....models import load_model
from ....vision.tracks.video import open_video, read_frames
from ...common.data_urls import jpeg_url, smaller, zip_url
from ...console import number_or_auto
from ...motion.segment import TRACK_FILES, FileSegmentation, segment_file
from .fields import Fields, accepts
from .limits import LIMITS

N_SHOWN = 60  # maximum number of displayed frames
MAX_SIDE = 720  # maximum side of a displayed frame in pixels
MAX_POINTS = 1500  # maximum number of displayed points
_MARGIN = 10.0  # margin in pixels around tracks without a video


ranker = prepare = cache(lambda: load_model("motion"))  # the shipped model


@accepts("motions", "outliers", "frames", "files")
def motion(path: Path, fields: Fields, tell: Any) -> dict[str, Any]:
    """Return the JSON object that ``annealed motion segment --json`` prints.

    If ``frames`` is set, it also contains images and the positions of the points in them. If
    ``files`` is set, it also contains the tracks and, for a video, masks of the moving objects.
    """
    number = number_or_auto("motions", fields.text("motions") or "auto")
    is_video = path.suffix.lower() not in TRACK_FILES
    count = _counter(path, tell) if is_video else None
    if not is_video:
        tell("comparing candidates")
    with tempfile.TemporaryDirectory(dir=".") as name:
        folder = Path(name)
        tracks_out, masks = (
            (folder / "tracks.csv", folder / "masks") if fields.flag("files") else (None, None)
        )
        if masks is not None:
            masks.mkdir()
        outliers = fields.flag("outliers")
        with numpy_backend(True):  # as in the command for a single file
            result = segment_file(
                ranker(),
                path,
                number,
                None,
                outliers,
                count,
                tracks_out,
                masks if is_video else None,
            )
        record = result.record() | ({} if masks is None else {"files": zip_url(folder)})
    if fields.flag("frames"):
        tell("drawing the frames")
        record["shown"] = _shown(result, path if is_video else None)
    return record


def _counter(path: Path, tell: Callable[..., object]) -> Callable[[], None]:
    """Check the size of a video, and return a function that is called after each frame."""
    limit = LIMITS["motion"]
    capture = open_video(path)
    asked = cv2.CAP_PROP_FRAME_WIDTH, cv2.CAP_PROP_FRAME_HEIGHT, cv2.CAP_PROP_FRAME_COUNT
    width, height, n_frames = (int(capture.get(what)) for what in asked)
    capture.release()
    if width * height > limit.pixels:
        raise ValueError(
            f"{path}: the frames are {width} x {height} pixels; "
            f"expected at most {limit.pixels / 1e6:.0f} million pixels"
        )
    tell("tracking points", 0, n_frames)
    done = 0

    def count() -> None:
        nonlocal done
        done += 1
        if done > limit.frames:
            raise ValueError(
                f"{path}: the video has more than {limit.frames} frames; upload a shorter video"
            )
        tell("tracking points", done, n_frames)
        if done == n_frames:
            tell("comparing candidates")

    return count


def _shown(result: FileSegmentation, video: Path | None) -> dict[str, Any]:
    """Return evenly spaced frames and, for each labelled point, its motion and its positions in
    these frames (None where not visible)."""
    tracks = result.tracks
    frames = np.unique(
        np.linspace(0, len(tracks) - 1, min(N_SHOWN, len(tracks))).round().astype(int)
    )
    points = np.flatnonzero(result.labels >= 0)
    if len(points) > MAX_POINTS:
        points = points[np.linspace(0, len(points) - 1, MAX_POINTS).round().astype(int)]
    shown = tracks[np.ix_(frames, points)]
    if video is None:
        low = np.nanmin(tracks.reshape(-1, 2), axis=0) - _MARGIN
        width, height = (np.nanmax(tracks.reshape(-1, 2), axis=0) + _MARGIN - low).tolist()
        pictures, shown = None, shown - low
    else:
        wanted = set(frames.tolist())
        kept = [frame for t, frame in enumerate(_shrunk(video)) if t in wanted]
        pictures = [jpeg_url(frame[0]) for frame in kept]
        width, height = kept[0][1]
    places = np.round(shown, 1).astype(object)
    places[~np.isfinite(shown)] = None
    return {
        "width": width,
        "height": height,
        "frames": frames.tolist(),
        "pictures": pictures,
        "motions": result.labels[points].tolist(),
        "points": places.transpose(1, 0, 2).tolist(),
    }


def _shrunk(video: Path) -> Iterator[tuple[np.ndarray, tuple[int, int]]]:
    """Return the frames at their displayed size, and their original width and height."""
    for frame in read_frames(video):
        yield smaller(frame, MAX_SIDE), (frame.shape[1], frame.shape[0])
