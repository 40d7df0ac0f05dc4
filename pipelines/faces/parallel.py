"""Several photographs at a time, in processes that each hold the detector."""

from __future__ import annotations

import pickle
import tempfile
import warnings
from collections.abc import Callable, Iterable, Iterator
from functools import partial
from pathlib import Path
from typing import Any, TypeVar

import cv2
import numpy as np

from ...models.keypoints.detector import Detection, KeypointDetector

Item = TypeVar("Item")
Result = TypeVar("Result")


def detect_many(
    detector: KeypointDetector, images: Iterable[np.ndarray], n_jobs: int = 1, **options: Any
) -> Iterator[list[Detection]]:
    """Find keypoints in one image (H, W, 3) after the other, ``n_jobs`` processes at a time, in the order of the images.

    Images are taken a few ahead of the results, which do not depend on ``n_jobs``. Options and errors of
    :meth:`KeypointDetector.detect`, an error when it is that image's turn.
    """
    return map_images(partial(_detect, options), detector, images, n_jobs)


def map_images(
    work: Callable[[KeypointDetector, Item], Result], detector: KeypointDetector, items: Iterable[Item], n_jobs: int = 1
) -> Iterator[Result]:
    """Yield ``work(detector, item)`` in the order of the items; ``work`` is a function of a module, or a partial of one.

    Processes work on several items at a time: threads would wait for one another, since a third of a detection is spent in
    Python. Items are taken a few ahead of the results; an error is raised when it is that item's turn.
    """
    if int(n_jobs) != n_jobs or n_jobs < 1:
        raise ValueError(f"n_jobs={n_jobs}: expected a whole number of at least 1")
    if n_jobs == 1:
        yield from (work(detector, item) for item in items)
        return
    from joblib import Parallel, delayed

    with tempfile.TemporaryDirectory() as folder:
        pickled = Path(folder) / "detector"
        pickled.write_bytes(pickle.dumps(detector))
        processes = Parallel(int(n_jobs), return_as="generator", pre_dispatch=2 * int(n_jobs), batch_size=1)
        results = processes(delayed(_remote)(pickled, work, item) for item in items)
        try:
            for result, error in results:
                if error is not None:
                    raise error
                yield result
        finally:
            with warnings.catch_warnings():
                warnings.simplefilter("ignore", UserWarning)  # an early end gives up work on purpose
                results.close()


def _detect(options: dict[str, Any], detector: KeypointDetector, image: np.ndarray) -> list[Detection]:
    return detector.detect(image, **options)


_loaded: dict[Path, KeypointDetector] = {}  # in a worker process: its detector, and the file that it came from


def _remote(pickled: Path, work: Callable, item) -> tuple[Any, Exception | None]:
    """Return the result of ``work``, or the exception, which has to wait for its turn."""
    if pickled not in _loaded:
        cv2.setNumThreads(1)
        _loaded.clear()
        _loaded[pickled] = pickle.loads(pickled.read_bytes())
    try:
        return work(_loaded[pickled], item), None
    except Exception as error:
        return None, error
