"""Trains keypoint detectors and writes them to one model file (``annealed faces train``)."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import asdict
from pathlib import Path

from ....models.files import check_writable
from ....models.keypoints.detector import KeypointDetector
from ....models.keypoints.window_models import KeypointModel
from ....vision.windows.feature_pool import FeaturePool
from ..data import MIRROR, FaceImage
from .classifier import ClassifierTraining
from .settings import TrainingSettings
from .views import SCALES_PER_OCTAVE


def train_detector(
    images: Sequence[FaceImage],
    background: Sequence[Path],
    out: Path,
    settings: TrainingSettings,
    keypoints: Sequence[str],
    resume: bool = False,
    say: Callable[[str], None] = print,
    n_jobs: int = 1,
    pool: FeaturePool | None = None,
) -> KeypointDetector:
    """Train detectors of some keypoints and write them to one model file.

    One training serves a keypoint and its mirror image. Checkpoints are kept in the folder ``OUT.checkpoint``: the rows of an
    unfinished training, and finished models, so that trainings can be run one by one and a last call with ``resume`` puts them
    together.

    Parameters
    ----------
    images : list of FaceImage
        Annotated photographs.
    background : list of path
        Photographs without faces.
    out : path
        Model file.
    settings : TrainingSettings
        Kept in the file.
    keypoints : list of str
        Keypoints to train.
    resume : bool
        Continue from checkpoints; the result is that of an uninterrupted training, to the byte.
    say : function
        Called with lines about the progress.
    n_jobs : int
        Threads that read and scan photographs; the result does not depend on it.
    pool : FeaturePool, optional
        The default pool if None.

    Raises
    ------
    ValueError
        If there is nothing to train on, a checkpoint belongs to other settings or data, or a file cannot be written.
    """
    check_writable(out)
    pool = pool or FeaturePool()
    folder = out.with_name(out.name + ".checkpoint")
    try:
        folder.mkdir(exist_ok=True)
    except OSError as error:
        raise ValueError(f"{folder}: cannot make this folder ({error.strerror})") from None
    trainer = ClassifierTraining(list(images), list(background), settings, pool, folder, say, n_jobs)
    models: dict[str, KeypointModel] = {}
    training: dict[str, dict] = {}
    for name in dict.fromkeys(trained_as(name) for name in keypoints):
        detector = trainer.train(name, resume)
        training[name] = detector.info
        model = detector.models[name]
        models[name] = model
        if MIRROR[name] != name:
            models[MIRROR[name]] = model.mirrored(pool, settings.reference_ied)
    info = {
        "summary": f"{', '.join(keypoints)}; trained on {len(images)} photographs",
        "settings": asdict(settings),
        "training": training,
    }
    chosen = {name: models[name] for name in keypoints}
    detector = KeypointDetector(chosen, pool, SCALES_PER_OCTAVE, info=info, reference_ied=settings.reference_ied)
    detector.save(out)
    return detector


def trained_as(keypoint: str) -> str:
    """Name of the keypoint whose training serves this one: its mirror image for right ones."""
    return MIRROR[keypoint] if keypoint.startswith("right") else keypoint
