"""Trains a detector of any object from annotated pictures (``annealed keypoints train``)."""

import tempfile
from collections.abc import Callable, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

from ....models.files import check_writable
from ....models.keypoints.detector import KeypointDetector
from ....vision.windows.feature_pool import FeaturePool
from ...common.file_map import Jobs
from ...common.outputs import make_folder
from ..data import AnnotatedImage
from ..evaluate import evaluate_detector
from ..objects import turned_upright
from ..report import CHEAP
from .decisions import Decisions, decide
from .stages import train_detector
from .windows.classifier import TrainingJob
from .windows.views import held_out

_SHARES = (4, 2, 1)  # of the pictures: one of so many trains a point of the learning curve
_MIN_OBJECTS = 10  # that they learn from


def train_keypoints(
    images: Sequence[AnnotatedImage],
    background: Sequence[Path],
    out: Path,
    resume: bool = False,
    say: Callable[[str], None] = print,
    n_jobs: Jobs = 1,
    pool: FeaturePool | None = None,
    **given: Any,
) -> tuple[KeypointDetector, Decisions]:
    """Decide what is not given, train the detector, and write it to a model file.

    Parameters
    ----------
    images : list of AnnotatedImage
        Annotated pictures, of one schema.
    background : list of path
        Pictures without such objects.
    out : path
        Model file; checkpoints go into the folder ``OUT.checkpoint`` beside it.
    resume : bool
        Go on from the checkpoints; the result is that of an uninterrupted training.
    say : function
        Called with lines about the progress.
    n_jobs : int or FileMap
        Threads, or where else photographs are read; the result does not depend on it.
    pool : FeaturePool, optional
        The default pool if None.
    **given
        What is decided already: see `decide`.

    Returns
    -------
    KeypointDetector
    Decisions

    Raises
    ------
    ValueError
        As of `train_detector`.
    """
    check_writable(out)
    pool, folder = pool or FeaturePool(), out.with_name(out.name + ".checkpoint")
    if not images[0].schema.upright:
        images = turned_upright(images)

    def trial_of(side: float, some: Sequence[AnnotatedImage], settings: Any) -> TrainingJob:
        make_folder(folder / f"trial {side:g}")
        names = list(images[0].schema.keypoints)
        quiet = lambda line: None  # noqa: E731
        say(f"trial of windows of {side:g} reference lengths on {len(some)} pictures")
        return TrainingJob(list(some), [], settings, ["scan"], names, pool, folder / f"trial {side:g}", resume, quiet, n_jobs)

    make_folder(folder)
    decisions = decide(images, trial_of, **given)
    for line in decisions.lines():
        say(line)
    before = images[0].schema
    schema = before.with_anchors(decisions.anchors)
    order = [before.keypoints.index(name) for name in schema.keypoints]
    images = [
        replace(image, instances=image.instances[:, order], visible=image.visible[:, order], schema=schema) for image in images
    ]
    settings = decisions.settings(sum(len(image.instances) for image in images))
    made = train_detector(images, background, out, settings, list(schema.anchors), "scan", resume, say, n_jobs, pool)
    return made, decisions


def held_out_images(detector: KeypointDetector, images: Sequence[AnnotatedImage]) -> list[AnnotatedImage]:
    """The pictures that no detector was fitted to: thresholds and probabilities were set on
    them."""
    return [image for image in images if held_out(image, detector.info["settings"]["held_out"])]


def learning_curve(
    images: Sequence[AnnotatedImage],
    test: Sequence[AnnotatedImage],
    background: Sequence[Path],
    decisions: Decisions,
    say: Callable[[str], None],
    **more: Any,
) -> list[dict[str, Any]]:
    """Train on a quarter, half and all of the pictures that are fitted, with cheap settings, and
    evaluate each detector on ``test``, the pictures held out.

    Returns
    -------
    list of dict
        ``pictures`` and ``pck`` of each training; parts with too few objects are left out.
    """
    names, rows = {image.name for image in test}, []
    fitted = [image for image in images if image.name not in names and len(image.instances)]
    given = {"side": decisions.side, "anchors": decisions.anchors, **CHEAP, **more}
    given["n_features"] = min(given["n_features"], decisions.n_features)
    for share in _SHARES:
        some = fitted[::share]
        if sum(len(image.instances) for image in some) < _MIN_OBJECTS:
            continue
        say(f"learning curve: {len(some)} pictures")
        with tempfile.TemporaryDirectory() as folder:
            out = Path(folder) / "some.safetensors"
            made, _ = train_keypoints([*some, *test], background, out, say=lambda line: None, **given)
        n_fitted = len(some) - len(held_out_images(made, some))
        rows.append({"pictures": n_fitted, "pck": evaluate_detector(made, test, (), measure="pck").rows[-1]["pck"]})
    return rows
