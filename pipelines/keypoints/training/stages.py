"""Stages of the training of keypoint detectors, and the complete training run."""

import json
import math
import time
from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass, field, replace
from functools import partial
from pathlib import Path
from typing import Any

from ....learners.parameters import check_real
from ....models.files import check_writable, make_folder, replacing
from ....models.keypoints import KeypointDetector, Schema, read_cascade, read_guide, write_parts
from ....models.keypoints.windows.window_models import FaceCascade, Guide, Mode
from ....vision.windows.feature_pool import FeaturePool
from ...common import Jobs, read_part, source_of_code, write_part
from ..data import AnnotatedImage
from ..faces import ANCHORS, FACES
from .instances import (
    AssemblySettings,
    ProbabilitySettings,
    RegressionSettings,
    train_assembly,
    train_probabilities,
    train_refinement,
)
from .windows import (
    FACE,
    FACE_CASCADE,
    GUIDED,
    SCALES_PER_OCTAVE,
    ClassifierTraining,
    FaceCascadeTraining,
    GuidedTraining,
    GuideSettings,
    SecondNodeSettings,
    TrainingJob,
    TrainingSettings,
    expected_positions,
    train_guide,
    train_second_node,
)


@dataclass(frozen=True)
class DetectorSettings:
    """Settings of a complete training run; each stage has a table in the ``--config`` file.

    Parameters
    ----------
    held_out : float, default 0.1
        Fraction of the photographs that are held out to calibrate thresholds and offsets.
    scan : TrainingSettings
        Settings of the classifiers that score all windows, for the modes "scan" and "regress".
    face_cascade : TrainingSettings
        Settings of the cascade that detects the neighbourhood of faces, for the mode
        "prune+regress".
    guide : GuideSettings
        Settings of the regressors that predict the keypoints, for the modes "regress" and
        "prune+regress".
    classifier : TrainingSettings
        Settings of the classifiers that score only the windows proposed by the regressors near
        faces, for the mode "prune+regress".
    assembly : AssemblySettings
        Settings of the assembly of a face from its keypoints. They apply if all anchors are
        trained.
    refinement : RegressionSettings
        Settings of the cascade that refines all points of a face.
    probabilities : ProbabilitySettings
        Settings of the probabilities of faces and of their keypoints.
    turned_heads : float, default 45.0
        Maximum yaw, in degrees, of the rotated copies of heads with landmarks; 0 disables the
        copies.
    second_node : SecondNodeSettings
        Settings of the second node of the face cascade, which verifies the local maxima of the
        first node.
    """

    held_out: float = 0.1
    scan: TrainingSettings = field(default_factory=TrainingSettings)
    face_cascade: TrainingSettings = FACE_CASCADE
    guide: GuideSettings = field(default_factory=GuideSettings)
    classifier: TrainingSettings = GUIDED
    assembly: AssemblySettings = field(default_factory=AssemblySettings)
    refinement: RegressionSettings = field(default_factory=RegressionSettings)
    probabilities: ProbabilitySettings = field(default_factory=ProbabilitySettings)
    turned_heads: float = 45.0
    second_node: SecondNodeSettings = field(default_factory=SecondNodeSettings)

    def __post_init__(self) -> None:
        check_real("held_out", self.held_out, 0.0, 1.0, above=True, below=True)
        check_real("turned_heads", self.turned_heads, 0.0, 60.0)
        stages: dict[str, Any] = {
            "scan": self.scan,
            "guide": self.guide,
            "classifier": self.classifier,
        }
        ranges = {name: (settings.ied_low, settings.ied_high) for name, settings in stages.items()}
        if len(set(ranges.values())) > 1:
            raise ValueError(
                f"ied_low and ied_high differ between the stages: {ranges}; expected the same "
                "range in all of them"
            )


Trained = tuple[KeypointDetector, dict[str, Any]]


#: Detector with the new part, and a description of the part for the header.
Stage = Callable[[TrainingJob, KeypointDetector], Trained]


def _train_models(
    job: TrainingJob, detector: KeypointDetector, training: ClassifierTraining
) -> Trained:
    """Add the classifiers of all keypoints of a job; classifiers of the right side are mirrored."""
    trained = {name: training.train(name) for name in job.trained}
    models, ied = (
        {name: made.models[name] for name, made in trained.items()},
        training.settings.reference_length,
    )
    models = job.completed(models, lambda model: model.mirrored(job.pool, ied))
    detector = replace(
        detector, models=models, reference_length=ied, enlarged=training.settings.enlarged
    )
    return detector, {name: _facts(made) for name, made in trained.items()}


def _facts(trained: KeypointDetector) -> dict[str, Any]:
    """Return the description of a part for the header of the model file."""
    return {key: trained.info[key] for key in ("rows", "rounds", "held_out")}


def train_scan(job: TrainingJob, detector: KeypointDetector) -> Trained:
    """Train the classifiers that score all windows."""
    return _train_models(job, detector, ClassifierTraining(job, job.settings.scan))


def train_face_cascade(
    job: TrainingJob, detector: KeypointDetector, pool: FeaturePool | None = None
) -> Trained:
    """Train the cascade that detects the neighbourhood of faces.

    If the feature pool ``pool`` is given, the cascade detects whole objects in its windows.
    """
    settings, ied = job.settings.face_cascade, job.settings.classifier.reference_length
    job = job if pool is None else replace(job, pool=pool)
    trained = FaceCascadeTraining(job, settings).train(FACE)
    levels = round(SCALES_PER_OCTAVE * math.log2(settings.reference_length / ied))
    model = trained.models[FACE]
    cascade = FaceCascade(
        replace(model, threshold=float(model.thresholds[-1])),  # of any accepted window
        expected_positions(job.split.fitted),
        2.0 ** (levels / SCALES_PER_OCTAVE),
        pool=pool,
    )
    return replace(detector, face_cascade=cascade), _facts(trained)


def train_second(job: TrainingJob, detector: KeypointDetector) -> Trained:
    """Train the second node of the cascade, which verifies the local maxima of the first node."""
    path, made_from = job.checkpoint("second_node", FACE), job.made_from("second_node", FACE)
    kept = read_part(path, "second node", made_from) if job.resume else None
    if kept is not None:
        job.say("second node: already finished")
        cascade = read_cascade(path, kept[0], kept[1]["face_cascade"], job.pool)
        return replace(detector, face_cascade=cascade), kept[1]["scores"]
    first, s = detector.face_cascade, job.settings
    assert first is not None  # set by the stage before
    cascade, facts = train_second_node(first, s.scan.reference_length, s.second_node, job)
    arrays, described = write_parts({}, {}, cascade, None)
    write_part(path, "second node", arrays, made_from, scores=facts, **described)
    return replace(detector, face_cascade=cascade), facts


def train_guides(job: TrainingJob, detector: KeypointDetector) -> Trained:
    """Train the guides, which are regressors that predict the keypoints."""
    guides: dict[str, Guide] = {}
    facts: dict[str, Any] = {}
    for name in job.trained:
        path, made_from = job.checkpoint("guide", name), job.made_from("guide", name)
        kept = read_part(path, "guide", made_from) if job.resume else None
        if kept is None:
            views = job.split.views, job.split.held_out_views
            guides[name], facts[name] = train_guide(
                name, *views, job.settings.guide, job.pool, job.say, job.n_jobs
            )
            arrays, described = write_parts({}, {name: guides[name]}, None, None)
            write_part(path, "guide", arrays, made_from, scores=facts[name], **described)
        else:
            guides[name] = read_guide(path, kept[0], name, kept[1]["guides"][name], job.pool)
            facts[name] = kept[1]["scores"]
            job.say(f"{name}: guide: already finished")
    return replace(
        detector, guides=job.completed(guides, lambda guide: guide.mirrored(job.pool))
    ), facts


def train_classifiers(job: TrainingJob, detector: KeypointDetector) -> Trained:
    """Train the classifiers of the windows that the cascade and the guides propose."""
    return _train_models(
        job,
        detector,
        GuidedTraining(
            job, job.settings.classifier, face_cascade=detector.face_cascade, guides=detector.guides
        ),
    )


def _whole_instances(
    name: str, train: Callable, job: TrainingJob, detector: KeypointDetector
) -> Trained:
    """Run a stage for whole faces with ``train``, or read its checkpoint."""
    part = job.finished(name, "faces")
    if part is None:
        made, facts = train(job, detector, getattr(job.settings, name))
        part = replace(made, guides={}, face_cascade=None, info={"facts": facts})
        job.keep(name, "faces", part)
    else:
        job.say(f"{name}: already finished")
    return replace(detector, finder=part.finder), part.info["facts"]


#: Stages of each mode, by their fields in `DetectorSettings`. A detector for one mode also supports
#: the modes before it.
STAGES: dict[Mode, dict[str, Stage]] = {
    Mode.SCAN: {"scan": train_scan},
    Mode.REGRESS: {"scan": train_scan, "guide": train_guides},
    Mode.PRUNE: {
        "face_cascade": train_face_cascade,
        "second_node": train_second,
        "guide": train_guides,
        "classifier": train_classifiers,
    },
}

#: Additional stage in the first mode for objects other than faces, which are also searched as a
#: whole, in windows of 48 pixels, in which thin parts remain visible.
_OF_OBJECTS: dict[str, Stage] = {
    "face_cascade": partial(train_face_cascade, pool=FeaturePool(48, sides=(12, 24)))
}

_WHOLE: dict[str, Callable] = {
    "assembly": train_assembly,
    "refinement": train_refinement,
    "probabilities": train_probabilities,
}


def stages_of(mode: Mode, keypoints: Sequence[str], schema: Schema = FACES) -> dict[str, Stage]:
    """Return the training stages for the given keypoints.

    If all anchors are included, the result also contains the stages for whole objects (for faces,
    only in the mode "prune+regress").
    """
    whole = set(schema.anchors) <= set(keypoints) and (mode == Mode.PRUNE or schema != FACES)
    searched = _OF_OBJECTS if whole and mode == Mode.SCAN and schema.upright else {}
    return (
        STAGES[mode]
        | searched
        | (
            {name: partial(_whole_instances, name, train) for name, train in _WHOLE.items()}
            if whole
            else {}
        )
    )


def train_detector(
    images: Sequence[AnnotatedImage],
    background: Sequence[Path],
    out: Path,
    settings: DetectorSettings | None = None,
    keypoints: Sequence[str] = ANCHORS,
    mode: str = Mode.PRUNE,
    resume: bool = False,
    say: Callable[[str], None] = print,
    n_jobs: Jobs = 1,
    pool: FeaturePool | None = None,
    stored: Schema | None = None,
) -> KeypointDetector:
    """Train detectors of the given keypoints in stages, and write them to a model file.

    A keypoint and its mirror image are trained together. Finished stages are stored in the folder
    ``OUT.checkpoint``.

    Parameters
    ----------
    images : list of AnnotatedImage
        Annotated photographs.
    background : list of path
        Photographs without faces.
    out : path
        Model file.
    settings : DetectorSettings, optional
        Settings, which are stored in the model file; None means the defaults.
    keypoints : list of str
        Keypoints to train.
    mode : Mode
        Fastest mode that the detector is to support. It also supports all slower modes.
    resume : bool
        Whether to resume from checkpoints. The model file is byte-identical to that of an
        uninterrupted run.
    say : function
        Function called with progress messages.
    n_jobs : int or FileMap
        Number of threads, or a mapping function; the result does not depend on it.
    pool : FeaturePool, optional
        Feature pool; None means the default pool.
    stored : Schema, optional
        Schema to store, with the keypoints in the order in which they are to be reported; None
        means the schema of the images.

    Raises
    ------
    ValueError
        If there are no training data, a checkpoint belongs to different settings or data, or a file
        cannot be written.
    """
    check_writable(out)
    settings, pool, mode = settings or DetectorSettings(), pool or FeaturePool(), Mode(mode)
    folder = out.with_name(out.name + ".checkpoint")
    make_folder(folder)
    schema = images[0].schema if images else FACES
    stages = stages_of(mode, keypoints, schema)
    job = TrainingJob(
        list(images),
        list(background),
        settings,
        list(stages),
        list(keypoints),
        pool,
        folder,
        resume,
        say,
        n_jobs,
    )
    detector = KeypointDetector({}, pool, SCALES_PER_OCTAVE, schema=stored or schema)
    facts: dict[str, Any] = {}
    # Processor time of each stage, including interrupted runs. It is stored next to the checkpoints
    # because the model file must not depend on it.
    clock, kept = time.process_time(), folder / "seconds.json"
    seconds: dict[str, float] = json.loads(kept.read_text()) if resume and kept.is_file() else {}
    for name, train in stages.items():
        detector, facts[name] = train(job, detector)
        seconds[name] = round(seconds.get(name, 0.0) + time.process_time() - clock, 1)
        clock = time.process_time()
        with replacing(kept) as new:
            new.write_text(json.dumps(seconds))
        say(f"{name}: finished, {sum(seconds.values()) / 3600:.2f} hours of processor time so far")
    info = {
        "summary": f"{', '.join(detector.keypoints)}; trained on {len(images)} photographs",
        "package": source_of_code(),
        "settings": {
            "held_out": settings.held_out,
            "turned_heads": settings.turned_heads,
            **{name: asdict(getattr(settings, name)) for name in stages},
        },
        "photographs": [image.name for image in images],
        "background": [path.name for path in background],
        "stages": facts,
    }
    replace(detector, info=info).save(out)
    return KeypointDetector.load(out)  # with the rounding of the file
