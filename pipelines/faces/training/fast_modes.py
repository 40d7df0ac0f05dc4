"""Adds the fast modes and the context to trained detectors, and writes all to one file (``annealed faces train --mode``)."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass, field, replace
from pathlib import Path

from ....models.files import check_writable
from ....models.keypoints.detector import KeypointDetector
from ....models.keypoints.guided_search import Guide
from ....models.keypoints.shape_regression import Context
from ...common.checkpoints import is_finished
from ..data import MIRROR, FaceImage
from .cascade import cascade_for_recall
from .guided_search import VERIFIER, GuideSettings, VerifierJob, train_guide
from .sampling import Windows, join, sample_view
from .settings import TrainingSettings
from .shape_regression import ANCHORS, ContextSettings, calibrate_context, train_context
from .train import learnt_as
from .views import each, held_out, without_faces


@dataclass(frozen=True)
class ModeSettings:
    """What decides what the modes come out like, beside the detectors.

    Attributes
    ----------
    guide : GuideSettings
    context : ContextSettings
    verifier : TrainingSettings
    held_out : float
        Share of the photographs that is not fitted, as in the training of the detectors.
    precision : float
        The default thresholds of the context and of the verifiers reach it on the held-out photographs. Where that costs the
        context more than half of the recall at the best balance, it takes that balance.
    lost : float
        Share of the held-out keypoints that the rejection thresholds of the detectors and of the verifiers may lose.
    """

    guide: GuideSettings = field(default_factory=GuideSettings)
    context: ContextSettings = field(default_factory=ContextSettings)
    verifier: TrainingSettings = VERIFIER
    held_out: float = 0.1
    precision: float = 0.9
    lost: float = 0.005


def add_modes(
    detector: KeypointDetector,
    images: Sequence[FaceImage],
    background: Sequence[Path],
    out: Path,
    mode: str,
    settings: ModeSettings,
    resume: bool = False,
    say: Callable[[str], None] = print,
    n_jobs: int = 1,
) -> KeypointDetector:
    """Train guides of all keypoints of a detector, and the context where it holds the anchors; write the model file.

    Keypoints that the context tells from the others get no verifier: their windows are seldom looked for.

    Parameters
    ----------
    detector : KeypointDetector
        Its scan detectors stay as they are.
    images : list of FaceImage
        Annotated photographs.
    background : list of path
        Photographs without faces.
    out : path
        Model file; parts that are done lie in the folder ``OUT.checkpoint``.
    mode : {"regress", "prune+regress"}
        "regress" leaves out the cascade that prunes the grid, and the verifiers behind it.
    settings : ModeSettings
    resume : bool
        Use the parts that are there.
    say : function
        Takes lines about the progress.
    n_jobs : int
        Threads that read photographs; the result does not depend on it.

    Returns
    -------
    KeypointDetector

    Raises
    ------
    ValueError
        If there is nothing to learn from, a part belongs to other settings or data, or a file cannot be written.
    """
    check_writable(out)
    folder = out.with_name(out.name + ".checkpoint")
    folder.mkdir(exist_ok=True)
    fitted = [image for image in images if not held_out(image, settings.held_out)]
    calibration = [image for image in images if held_out(image, settings.held_out)]
    if not fitted or not calibration:
        raise ValueError(f"{len(images)} photographs: too few, {len(fitted)} to fit and {len(calibration)} held out")
    views = [(image, flip) for image in [*fitted, *without_faces(background)] for flip in (False, True)]
    held_views = [(image, flip) for image in calibration for flip in (False, True)]
    made_from = {
        "mode": mode,
        "settings": asdict(settings),
        "pool": detector.pool.to_dict(),
        "images": [image.name for image in images],
        "background": [path.name for path in background],
    }
    learnt: dict[str, Guide] = {}
    scores: dict[str, dict] = {}
    for name in dict.fromkeys(learnt_as(name) for name in detector.keypoints):
        path = folder / f"{name}.guide.safetensors"
        if resume and is_finished(path, made_from):
            part = KeypointDetector.load(path)
            learnt[name], scores[name] = part.guides[name], part.info["scores"]
            say(f"{name}: guide trained before")
        else:
            learnt[name], scores[name] = train_guide(
                name, views, held_views, settings.guide, detector.pool, mode == "prune+regress", say, n_jobs
            )
            model = detector.models[name] if name in detector.models else detector.models[MIRROR[name]].mirrored(detector.pool)
            info = {"made_from": made_from, "scores": scores[name]}
            KeypointDetector({name: model}, detector.pool, info=info, guides={name: learnt[name]}).save(path)
    detector, shares = _recalibrated(detector, held_views, settings, n_jobs)
    say("rejection thresholds at the quantiles " + ", ".join(f"{name} {share:g}" for name, share in shares.items()))
    told = [name for name in detector.keypoints if name not in ANCHORS] if set(ANCHORS) <= set(detector.keypoints) else []
    info = {**detector.info, "modes": {"settings": asdict(settings), "guides": scores, "rejection_quantiles": shares}}
    if mode == "prune+regress":
        s = replace(settings.verifier, held_out=settings.held_out, precision=settings.precision)
        job = VerifierJob(list(images), list(background), s, detector.pool, folder, say, n_jobs, dict(learnt), settings.lost)
        info["modes"]["verifiers"] = {}
        for name in dict.fromkeys(learnt_as(name) for name in detector.keypoints if name not in told):
            made = job.train(name, resume)
            learnt[name] = replace(learnt[name], verifier=made.models[name])
            info["modes"]["verifiers"][name] = {key: made.info[key] for key in ("rows", "rounds", "held_out")}
    for name in detector.keypoints:
        if name not in learnt:
            learnt[name] = learnt[MIRROR[name]].mirrored(detector.pool)
    detector = replace(detector, guides={name: learnt[name] for name in detector.keypoints})
    if told:
        context, found = _context(detector, told, fitted, calibration, folder, made_from, settings, resume, say, n_jobs)
        detector = replace(detector, context=context)
        info["modes"]["context"] = found
    detector = replace(detector, info=info)
    detector.save(out)
    return detector


def _recalibrated(
    detector: KeypointDetector, held_views: Sequence[tuple[FaceImage, bool]], settings: ModeSettings, n_jobs: int
) -> tuple[KeypointDetector, dict[str, float]]:
    """The same detectors with rejection thresholds that lose a stated share of the held-out keypoints."""
    models, shares = dict(detector.models), {}
    for name in dict.fromkeys(learnt_as(name) for name in detector.keypoints):

        def sample(item: tuple[int, tuple[FaceImage, bool]], name: str = name) -> Windows:
            number, (image, flip) = item
            return sample_view(image, flip, number, name, n_random=0, seed=[0], window=detector.pool.window)[0]

        positives = join(list(each(enumerate(held_views), sample, n_jobs)), detector.pool.window)
        if not len(positives):
            continue
        learnt = models[name] if name in models else models[MIRROR[name]].mirrored(detector.pool)
        view = positives.keys >> 40  # of one face
        model, shares[name] = cascade_for_recall(learnt, detector.pool, positives.patches, view, settings.lost)
        for given in {name, MIRROR[name]} & set(models):
            models[given] = replace(models[given], thresholds=model.thresholds)
    return replace(detector, models=models), shares


def _context(
    detector: KeypointDetector,
    told: Sequence[str],
    fitted: Sequence[FaceImage],
    calibration: Sequence[FaceImage],
    folder: Path,
    made_from: dict,
    settings: ModeSettings,
    resume: bool,
    say: Callable[[str], None],
    n_jobs: int,
) -> tuple[Context, dict]:
    path = folder / "context.safetensors"
    if resume and is_finished(path, made_from):
        part = KeypointDetector.load(path)
    else:
        context = train_context(told, fitted, settings.context, detector.pool, say, n_jobs)
        part = replace(detector, context=context, guides={}, info={"made_from": made_from})
        part.save(path)
    mode = detector.check_mode(None, ANCHORS)
    context, scores = calibrate_context(replace(detector, context=part.context), calibration, settings.precision, mode, n_jobs)
    for name, values in scores.items():
        say(f"{name}: told from the context, held out: " + ", ".join(f"{k} {v:.3f}" for k, v in values.items()))
    return context, scores
