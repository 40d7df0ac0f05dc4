"""What ``annealed faces detect`` does to each photograph, several at a time in processes that each
hold the detector.
"""

import pickle
import re
import tempfile
import time
import warnings
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from typing import Any, TypeVar

import cv2
import numpy as np

from ...learners.compilation import all_threads, plain_forms, seconds_compiling
from ...models.faces.face_finder import Face
from ...models.keypoints.detections import Detection, DetectionOptions, DetectionResult
from ...models.keypoints.detector import KeypointDetector
from ...vision.images import read_image
from ..common.image_folders import are_few
from ..common.video import VIDEO_SUFFIXES

Item = TypeVar("Item")
Result = TypeVar("Result")

SAMPLE = "astronaut"  # name of the photograph that is used when none is named


@dataclass(frozen=True)
class FileDetections:
    """Detections and faces in one photograph or frame, or the reason in one line why there are
    none.

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
    category : str or None
        Name of the objects where they are no faces.
    error : str or None
        One line; then the rest is empty.
    frame : int or None
        Number of the frame in a video or of a camera, from 0; None for a photograph.
    time : float
        When the frame is shown, in seconds from the first one.
    """

    image: str
    pixels: np.ndarray | None = None
    seconds: float = 0.0
    detections: Sequence[Detection] = ()
    faces: Sequence[Face] = ()
    category: str | None = None
    error: str | None = None
    frame: int | None = None
    time: float = 0.0

    def record(self, landmarks: bool = False) -> dict:
        """Return the JSON object of the command line, with all points of the faces if asked for."""
        if self.error is not None or self.pixels is None:
            return {"image": self.image, "error": self.error}
        height, width = self.pixels.shape[:2]
        of_frame = {} if self.frame is None else {"frame": self.frame, "time": round(self.time, 6)}
        facts = {"image": self.image} | of_frame | {"width": width, "height": height, "seconds": round(self.seconds, 6)}
        return facts | records(self.detections, self.faces, landmarks, self.category)


def records(
    detections: Sequence[Detection], faces: Sequence[Face], landmarks: bool = False, category: str | None = None
) -> dict[str, list]:
    """Detections and faces, or objects of another category, as JSON can hold them."""
    described = [face.record() | ({"landmarks": face.landmarks.round(2).tolist()} if landmarks else {}) for face in faces]
    found = {"detections": [d._asdict() for d in detections]}
    if category is None:
        return found | {"faces": described}
    # They have no pose: heads have.
    return found | {"objects": [{"category": category} | {k: v for k, v in one.items() if k != "pose"} for one in described]}


def detect_files(
    detector: KeypointDetector, images: Sequence[str], options: DetectionOptions, n_jobs: int = 1, plain: bool | None = None
) -> Iterator[FileDetections]:
    """Detect keypoints in image files (none: the sample photograph), in their order; a bad file
    yields a record with its error.

    So many as ``n_jobs`` at a time; the detections do not depend on it. ``plain``: nothing is
    compiled, by default for few photographs; results differ in the last digits.
    """
    return map_images(
        partial(detect_file, options, are_few(images) if plain is None else plain), detector, images or [None], n_jobs
    )


_ready: set[tuple[Any, ...]] = set()  # modes whose compiled code this process has loaded


def warm_up(detector: KeypointDetector, options: DetectionOptions) -> None:
    """Compile or load what a detection needs, on the face of the sample photograph: before a clock
    starts.
    """
    mode = options.mode, options.assembly
    if mode not in _ready:
        everywhere = replace(options, min_size=None, max_size=None, threshold=None, min_probability=None)
        detector.find(sample_photograph()[20:220, 120:320], everywhere)
        _ready.add(mode)


def detect_file(options: DetectionOptions, plain: bool, detector: KeypointDetector, name: str | None) -> FileDetections:
    """The same for one file, None for the sample photograph; ``plain``: by plain forms of the
    loops."""
    if not plain:
        warm_up(detector, options)
    shown = SAMPLE if name is None else name
    try:
        pixels = sample_photograph() if name is None else read_image(name)
        with plain_forms(plain):
            result, seconds = timed(partial(detector.find, options=options), pixels)
        return FileDetections(shown, pixels, seconds, *result, detector.category)
    except ValueError as error:
        message = " ".join(str(error).split())
        return FileDetections(shown, error=message if shown in message else f"{shown}: {message}")


def timed(process: Callable[..., DetectionResult], *inputs: Any) -> tuple[DetectionResult, float]:
    """Detections and faces, and the seconds that they took; what was still compiled for them is not
    counted."""
    start, compiled = time.perf_counter(), seconds_compiling()
    result = process(*inputs)
    return result, time.perf_counter() - start - (seconds_compiling() - compiled)


def sample_photograph() -> np.ndarray:
    """Return scikit-image's photograph of the astronaut Eileen Collins (NASA, public domain)."""
    import skimage

    # Its own reader takes a tenth of a second to import.
    return read_image(Path(skimage.__file__).parent / "data" / "astronaut.png")


def video_source(images: Sequence[str]) -> str | int | None:
    """Tell what the arguments name: a video file, the number of a camera (``camera 0``), or None
    for photographs.
    """
    if images and images[0] == "camera" and not Path("camera").is_file():
        if len(images) != 2 or not images[1].isdigit():
            raise ValueError(f"camera {' '.join(images[1:])}: expected the number of a camera, as in: camera 0")
        return int(images[1])
    for name in images:
        if re.fullmatch(r"(camera|webcam|cam)?[:=]?\d+", name) and not Path(name).exists():
            raise ValueError(f"{name}: no such file; a camera is named as in: camera 0")
    videos = [name for name in images if Path(name).suffix.lower() in VIDEO_SUFFIXES]
    if not videos:
        return None
    if len(images) > 1:
        raise ValueError(f"{videos[0]}: expected one video alone, not among {len(images)} files")
    return videos[0]


def detect_many(
    detector: KeypointDetector, images: Iterable[np.ndarray], n_jobs: int = 1, **options: Any
) -> Iterator[list[Detection]]:
    """Find keypoints in one image (H, W, 3) after the other, ``n_jobs`` processes at a time but no
    more than there are cores, in the order of the images.

    Images are taken a few ahead of the results, which do not depend on ``n_jobs``. Options and
    errors of :meth:`KeypointDetector.detect`, an error when it is that image's turn.
    """
    return map_images(partial(KeypointDetector.detect, **options), detector, images, n_jobs)


def map_images(
    work: Callable[[KeypointDetector, Item], Result], detector: KeypointDetector, items: Iterable[Item], n_jobs: int = 1
) -> Iterator[Result]:
    """Yield ``work(detector, item)`` in the order of the items; ``work`` is a function of a module,
    or a partial of one.

    Processes work on several items at a time: threads would wait for one another, since a third of
    a detection is spent in Python. Items are taken a few ahead of the results; an error is raised
    when it is that item's turn.
    """
    if int(n_jobs) != n_jobs or n_jobs < 1:
        raise ValueError(f"n_jobs={n_jobs}: expected a whole number of at least 1")
    n_jobs = min(int(n_jobs), all_threads())
    if n_jobs == 1:
        yield from (work(detector, item) for item in items)
        return
    from joblib import Parallel, delayed

    with tempfile.TemporaryDirectory() as folder:
        pickled = Path(folder) / "detector"
        pickled.write_bytes(pickle.dumps(detector))
        processes = Parallel(n_jobs, return_as="generator", pre_dispatch=2 * n_jobs, batch_size=1)
        results = processes(delayed(_remote)(pickled, work, item) for item in items)
        try:
            for result, error, notes in results:
                for note in notes:
                    warnings.warn(note, stacklevel=2)
                if error is not None:
                    raise error
                yield result
        finally:
            with warnings.catch_warnings():
                # an early end gives up work on purpose
                warnings.simplefilter("ignore", UserWarning)
                results.close()


# in a worker process: its detector, and the file that it came from
_loaded: dict[Path, KeypointDetector] = {}


def _remote(pickled: Path, work: Callable, item) -> tuple[Any, Exception | None, list[str]]:
    """Return the result of ``work``, or the exception, which has to wait for its turn, and what was
    warned of.
    """
    if pickled not in _loaded:
        cv2.setNumThreads(1)
        _loaded.clear()
        _loaded[pickled] = pickle.loads(pickled.read_bytes())
    with warnings.catch_warnings(record=True) as noted:
        try:
            result, failure = work(_loaded[pickled], item), None
        except Exception as error:
            result, failure = None, error
    return result, failure, [str(note.message) for note in noted if note.category is UserWarning]
