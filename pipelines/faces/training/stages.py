"""The stages of a training of keypoint detectors, in their order, and the whole of it (``annealed
faces train``)."""

from __future__ import annotations

import json
import math
import time
from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass, field, replace
from pathlib import Path
from typing import Any

from ....models.files import check_writable, replacing
from ....models.keypoints.detector import KeypointDetector
from ....models.keypoints.serialisation import read_guide, write_parts
from ....models.keypoints.window_models import FaceCascade, Guide, Mode
from ....vision.windows.feature_pool import FeaturePool
from ...common.checkpoints import read_part, write_part
from ...common.provenance import source_of_code
from ..data import MIRROR, FaceImage
from .assembly.points import ANCHORS
from .assembly.probabilities import ProbabilitySettings
from .assembly.refinement import RegressionSettings
from .assembly.shapes import AssemblySettings
from .assembly.train import train_assembly, train_probabilities, train_refinement
from .classifier import ClassifierTraining, TrainingJob
from .face_cascade import FACE_CASCADE, FaceCascadeTraining, expected_positions
from .guided_search import GUIDED, GuidedTraining, GuideSettings, train_guide
from .settings import TrainingSettings
from .views import FACE, SCALES_PER_OCTAVE


@dataclass(frozen=True)
class FaceSettings:
    """Settings of a whole training; each stage has a table of its own in the file of ``--config``.

    Parameters
    ----------
    held_out : float, default 0.1
        Share of the photographs that is not fitted but calibrates thresholds and offsets.
    scan : TrainingSettings
        Classifiers of all windows, for the modes "scan" and "regress".
    face_cascade : TrainingSettings
        The cascade that finds the surroundings of faces, for the mode "prune+regress".
    guide : GuideSettings
        Regressors that lead to the keypoints, for the modes "regress" and "prune+regress".
    classifier : TrainingSettings
        Classifiers of the windows that they lead to near faces, for the mode "prune+regress".
    assembly : AssemblySettings
        How the keypoints of a face are put together, where the six anchors are trained.
    refinement : RegressionSettings
        The cascade that moves all points of a face.
    probabilities : ProbabilitySettings
        Whether something is a face, and its points right.
    """

    held_out: float = 0.1
    scan: TrainingSettings = field(default_factory=TrainingSettings)
    face_cascade: TrainingSettings = FACE_CASCADE
    guide: GuideSettings = field(default_factory=GuideSettings)
    classifier: TrainingSettings = GUIDED
    assembly: AssemblySettings = field(default_factory=AssemblySettings)
    refinement: RegressionSettings = field(default_factory=RegressionSettings)
    probabilities: ProbabilitySettings = field(default_factory=ProbabilitySettings)

    def __post_init__(self) -> None:
        if not 0 < self.held_out < 1:
            raise ValueError(f"held_out={self.held_out}: expected a share between 0 and 1")
        scan, guide, classifier = self.scan, self.guide, self.classifier
        ranges = {
            "scan": (scan.ied_low, scan.ied_high),
            "guide": (guide.ied_low, guide.ied_high),
            "classifier": (classifier.ied_low, classifier.ied_high),
        }
        if len(set(ranges.values())) > 1:
            raise ValueError(f"ied_low and ied_high: {ranges}, expected the same range in all of these")


Trained = tuple[KeypointDetector, dict[str, Any]]


@dataclass(frozen=True)
class Stage:
    """One stage: ``train(job, detector)`` returns the detector so far with its part added, and
    facts for the header.

    The name is that of its field in `FaceSettings`.
    """

    name: str
    train: Callable[[TrainingJob, KeypointDetector], Trained]


def _with_mirrored(job: TrainingJob, trained: dict[str, KeypointDetector], reference_ied: float) -> dict:
    """The classifiers of all keypoints of a job."""
    models = {name: made.models[name] for name, made in trained.items()}
    return {
        name: models[name] if name in models else models[MIRROR[name]].mirrored(job.pool, reference_ied) for name in job.keypoints
    }


def _facts(trained: dict[str, KeypointDetector]) -> dict[str, Any]:
    """What the headers of some trainings say about them."""
    return {name: {key: made.info[key] for key in ("rows", "rounds", "held_out")} for name, made in trained.items()}


def train_scan(job: TrainingJob, detector: KeypointDetector) -> Trained:
    """Train classifiers of all windows."""
    settings = job.settings.scan
    training = ClassifierTraining(job, settings)
    trained = {name: training.train(name) for name in job.trained}
    models = _with_mirrored(job, trained, settings.reference_ied)
    return replace(detector, models=models, reference_ied=settings.reference_ied), _facts(trained)


def train_face_cascade(job: TrainingJob, detector: KeypointDetector) -> Trained:
    """Train the cascade that finds the surroundings of faces."""
    trained = FaceCascadeTraining(job, job.settings.face_cascade).train(FACE)
    settings, ied = job.settings.face_cascade, job.settings.classifier.reference_ied
    levels = round(SCALES_PER_OCTAVE * math.log2(settings.reference_ied / ied))
    cascade = FaceCascade(trained.models[FACE], expected_positions(job.split.fitted), 2.0 ** (levels / SCALES_PER_OCTAVE))
    return replace(detector, face_cascade=cascade), _facts({FACE: trained})[FACE]


def train_guides(job: TrainingJob, detector: KeypointDetector) -> Trained:
    """Train the regressors that lead to the keypoints."""
    guides: dict[str, Guide] = {}
    facts: dict[str, Any] = {}
    for name in job.trained:
        path, made_from = job.checkpoint("guide", name), {"keypoint": name, **job.describe("guide")}
        kept = read_part(path, "guide", made_from) if job.resume else None
        if kept is None:
            views = job.split.views, job.split.held_out_views
            guides[name], facts[name] = train_guide(name, *views, job.settings.guide, job.pool, job.say, job.n_jobs)
            arrays, described = write_parts({}, {name: guides[name]}, None, None)
            write_part(path, "guide", arrays, made_from, scores=facts[name], **described)
        else:
            guides[name] = read_guide(path, kept[0], name, kept[1]["guides"][name], job.pool)
            facts[name] = kept[1]["scores"]
            job.say(f"{name}: guide: done before")
    mirrored = {name: guides[name] if name in guides else guides[MIRROR[name]].mirrored(job.pool) for name in job.keypoints}
    return replace(detector, guides=mirrored), facts


def train_classifiers(job: TrainingJob, detector: KeypointDetector) -> Trained:
    """Train the classifiers of the windows that cascade and guides lead to."""
    settings = job.settings.classifier
    training = GuidedTraining(job, settings, face_cascade=detector.face_cascade, guides=detector.guides)
    trained = {name: training.train(name) for name in job.trained}
    models = _with_mirrored(job, trained, settings.reference_ied)
    return replace(detector, models=models, reference_ied=settings.reference_ied), _facts(trained)


def _whole_faces(name: str, train: Callable) -> Stage:
    """A stage of whole faces: from its checkpoint, or ``train(job, detector, settings)``."""

    def run(job: TrainingJob, detector: KeypointDetector) -> Trained:
        part = job.finished(name, _FACES)
        if part is None:
            made, facts = train(job, detector, getattr(job.settings, name))
            part = replace(made, guides={}, face_cascade=None, info={"facts": facts})
            job.keep(name, _FACES, part)
        else:
            job.say(f"{name}: done before")
        return replace(detector, faces=part.faces), part.info["facts"]

    return Stage(name, run)


_FACES = "faces"
_SCAN, _GUIDE = Stage("scan", train_scan), Stage("guide", train_guides)
STAGES = {
    Mode.SCAN: (_SCAN,),
    Mode.REGRESS: (_SCAN, _GUIDE),
    Mode.PRUNE: (Stage("face_cascade", train_face_cascade), _GUIDE, Stage("classifier", train_classifiers)),
}
"""The stages of each mode; a detector of one mode serves the ones before it too, with the same
classifiers."""

WHOLE_FACES = (
    _whole_faces("assembly", train_assembly),
    _whole_faces("refinement", train_refinement),
    _whole_faces("probabilities", train_probabilities),
)
"""The stages after those of the mode "prune+regress", where all anchors are trained."""


def stages_of(mode: Mode, keypoints: Sequence[str]) -> tuple[Stage, ...]:
    """Return the stages of a training of some keypoints."""
    whole = mode == Mode.PRUNE and set(ANCHORS) <= set(keypoints)
    return STAGES[mode] + (WHOLE_FACES if whole else ())


def train_detector(
    images: Sequence[FaceImage],
    background: Sequence[Path],
    out: Path,
    settings: FaceSettings | None = None,
    keypoints: Sequence[str] = ANCHORS,
    mode: str = Mode.PRUNE,
    resume: bool = False,
    say: Callable[[str], None] = print,
    n_jobs: int = 1,
    pool: FeaturePool | None = None,
) -> KeypointDetector:
    """Train detectors of some keypoints, stage by stage, and write them to one model file.

    One training serves a keypoint and its mirror image. What a stage has finished is kept in the
    folder ``OUT.checkpoint``.

    Parameters
    ----------
    images : list of FaceImage
        Annotated photographs.
    background : list of path
        Photographs without faces.
    out : path
        Model file.
    settings : FaceSettings, optional
        Kept in the file; all defaults if None.
    keypoints : list of str
        Keypoints to train.
    mode : Mode
        The fastest mode that the detector shall have; those before it come with it.
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
        If there is nothing to train on, a checkpoint belongs to other settings or data, or a file
        cannot be written.
    """
    check_writable(out)
    settings, pool, mode = settings or FaceSettings(), pool or FeaturePool(), Mode(mode)
    folder = out.with_name(out.name + ".checkpoint")
    try:
        folder.mkdir(exist_ok=True)
    except OSError as error:
        raise ValueError(f"{folder}: cannot make this folder ({error.strerror})") from None
    stages = stages_of(mode, keypoints)
    names = [stage.name for stage in stages]
    job = TrainingJob(list(images), list(background), settings, names, list(keypoints), pool, folder, resume, say, n_jobs)
    detector = KeypointDetector({}, pool, SCALES_PER_OCTAVE)
    facts: dict[str, Any] = {}
    seconds = _Seconds(folder / "seconds.json", resume)
    for stage in stages:
        detector, facts[stage.name] = stage.train(job, detector)
        say(f"{stage.name}: done, {seconds.add(stage.name) / 3600:.2f} hours of processor time so far")
    info = {
        "summary": f"{', '.join(detector.keypoints)}; trained on {len(images)} photographs",
        "package": source_of_code(),
        "settings": {"held_out": settings.held_out, **{name: asdict(getattr(settings, name)) for name in names}},
        "photographs": [image.name for image in images],
        "background": [path.name for path in background],
        "stages": facts,
    }
    replace(detector, info=info).save(out)
    return KeypointDetector.load(out)  # numbers as the file holds them


class _Seconds:
    """Processor time of each stage, over interruptions: kept beside the checkpoints, since the
    model is the same in every run."""

    def __init__(self, path: Path, resume: bool):
        self.path, self.clock = path, time.process_time()
        self.known: dict[str, float] = json.loads(path.read_text()) if resume and path.is_file() else {}

    def add(self, stage: str) -> float:
        """Note the time since the last call for a stage; returns the sum of all."""
        now = time.process_time()
        self.known[stage] = round(self.known.get(stage, 0.0) + now - self.clock, 1)
        self.clock = now
        with replacing(self.path) as new:
            new.write_text(json.dumps(self.known))
        return sum(self.known.values())
