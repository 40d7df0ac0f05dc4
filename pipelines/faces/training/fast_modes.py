"""Adds the fast modes and the shape regressor to trained detectors, in one model file (``annealed faces train --mode``)."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any, Self

from ....models.files import check_writable
from ....models.keypoints.detector import KeypointDetector
from ....models.keypoints.guided_search import Guide, Mode
from ....models.keypoints.shape_regression import ShapeRegressor
from ...common.checkpoints import is_finished
from ..data import MIRROR, FaceImage
from .cascade import cascade_for_recall
from .classifier import describe_data
from .guided_search import VERIFIER, GuideSettings, VerifierTraining, train_guide
from .sampling import Windows, join, sample_view, unpack_keys
from .settings import TrainingSettings
from .shape_regression import ANCHORS, ShapeSettings, calibrate_shape_regressor, train_shape_regressor
from .train import trained_as
from .views import NamedView, Split, each, split_views


@dataclass(frozen=True)
class ModeSettings:
    """Settings of the fast modes and of the shape regressor.

    Parameters
    ----------
    guide : GuideSettings
    context : ShapeSettings
        Settings of the shape regressor.
    verifier : TrainingSettings
        Settings of the classifiers behind the pruning cascade.
    held_out : float, default 0.1
        Share of the photographs that is not fitted, as in the training of the detectors.
    precision : float, default 0.9
        Precision of the default thresholds of predicted keypoints and of the verifiers on the held-out photographs. Where that
        costs a predicted keypoint more than half of the recall at the best balance, its threshold is that of the balance.
    lost : float, default 0.005
        Share of the held-out keypoints that the rejection thresholds of the detectors and of the verifiers may lose.
    """

    guide: GuideSettings = field(default_factory=GuideSettings)
    context: ShapeSettings = field(default_factory=ShapeSettings)
    verifier: TrainingSettings = VERIFIER
    held_out: float = 0.1
    precision: float = 0.9
    lost: float = 0.005

    @classmethod
    def for_training(cls, settings: TrainingSettings) -> Self:
        """Return the default settings that suit detectors trained with some settings: the same range of the IED, the same split."""
        low, high = settings.ied_low, settings.ied_high
        return cls(
            guide=GuideSettings(ied_low=low, ied_high=high),
            verifier=replace(VERIFIER, ied_low=low, ied_high=high),
            held_out=settings.held_out,
            precision=settings.precision,
        )


@dataclass
class _ModeTraining:
    """What the parts of one call of `add_modes` share."""

    detector: KeypointDetector
    split: Split
    settings: ModeSettings
    folder: Path
    made_from: dict[str, Any]
    resume: bool
    say: Callable[[str], None]
    n_jobs: int

    def part(self, path: Path) -> KeypointDetector | None:
        """Checkpoint of a finished part, where there is one to resume from."""
        return KeypointDetector.load(path) if self.resume and is_finished(path, self.made_from) else None

    def mirrored_model(self, models: dict, name: str):
        """Model of a keypoint among some, or the mirror image of its mirror image's."""
        detector = self.detector
        return models[name] if name in models else models[MIRROR[name]].mirrored(detector.pool, detector.reference_ied)

    def guides(self, mode: Mode) -> tuple[dict[str, Guide], dict[str, dict]]:
        """Guides and their scores, of the keypoints whose training serves all."""
        guides: dict[str, Guide] = {}
        scores: dict[str, dict] = {}
        for name in _trained(self.detector):
            path = self.folder / f"{name}.guide.safetensors"
            part = self.part(path)
            if part is not None:
                guides[name], scores[name] = part.guides[name], part.info["scores"]
                self.say(f"{name}: guide trained before")
                continue
            views, settings, pool = (self.split.views, self.split.held_out_views), self.settings.guide, self.detector.pool
            guides[name], scores[name] = train_guide(name, *views, settings, pool, mode == Mode.PRUNE, self.say, self.n_jobs)
            model = self.mirrored_model(self.detector.models, name)
            info = {"made_from": self.made_from, "scores": scores[name]}
            alone = replace(self.detector, models={name: model}, info=info, guides={name: guides[name]}, shape_regressor=None)
            alone.save(path)
        return guides, scores

    def recalibrated(self) -> tuple[KeypointDetector, dict[str, float]]:
        """The same detectors with rejection thresholds that lose a stated share of the held-out keypoints; the quantiles."""
        detector, guide = self.detector, self.settings.guide
        models, shares = dict(detector.models), {}
        for name in _trained(detector):

            def sample(item: tuple[int, NamedView], name: str = name) -> Windows:
                number, (image, flip) = item
                ied = (guide.ied_low, guide.ied_high)
                return sample_view(image, flip, number, name, n_random=0, seed=[0], ied_range=ied, window=detector.pool.window)[0]

            found = join(list(each(enumerate(self.split.held_out_views), sample, self.n_jobs)), detector.pool.window)
            if not len(found):
                continue
            trained = self.mirrored_model(models, name)
            view = unpack_keys(found.keys)[0]  # of one face
            model, shares[name] = cascade_for_recall(trained, detector.pool, found.patches, view, self.settings.lost)
            for given in {name, MIRROR[name]} & set(models):
                models[given] = replace(models[given], thresholds=model.thresholds)
        return replace(detector, models=models), shares

    def shape_regressor(self, predicted: Sequence[str]) -> tuple[ShapeRegressor, dict]:
        """The shape regressor of some keypoints and its scores on the held-out photographs."""
        path = self.folder / "context.safetensors"
        part = self.part(path)
        if part is None or part.shape_regressor is None:
            settings, pool = self.settings.context, self.detector.pool
            regressor = train_shape_regressor(predicted, self.split.fitted, settings, pool, self.say, self.n_jobs)
            part = replace(self.detector, shape_regressor=regressor, guides={}, info={"made_from": self.made_from})
            part.save(path)
        mode = self.detector.check_mode(None, ANCHORS)
        detector = replace(self.detector, shape_regressor=part.shape_regressor)
        regressor, scores = calibrate_shape_regressor(detector, self.split.calibration, self.settings.precision, mode, self.n_jobs)
        for name, values in scores.items():
            self.say(f"{name}: predicted from the anchors, held out: " + ", ".join(f"{k} {v:.3f}" for k, v in values.items()))
        return regressor, scores


def _trained(detector: KeypointDetector) -> list[str]:
    """Keypoints whose training serves all of a detector."""
    return list(dict.fromkeys(trained_as(name) for name in detector.keypoints))


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
    """Train guides of all keypoints of a detector, and the shape regressor where it has the anchors; write the model file.

    Predicted keypoints get no verifier: their own windows are seldom searched. Mode "regress" leaves out the cascade that
    prunes the grid, and the verifiers behind it. The scan detectors keep their features and responses. Other parameters and
    errors as for :func:`~annealed.pipelines.faces.training.train.train_detector`.
    """
    check_writable(out)
    folder = out.with_name(out.name + ".checkpoint")
    folder.mkdir(exist_ok=True)
    split = split_views(images, background, settings.held_out)
    described = {"mode": str(mode), **describe_data(settings, detector.pool, images, background)}
    job = _ModeTraining(detector, split, settings, folder, described, resume, say, n_jobs)
    guides, scores = job.guides(Mode(mode))
    detector, shares = job.recalibrated()
    say("rejection thresholds at the quantiles " + ", ".join(f"{name} {share:g}" for name, share in shares.items()))
    predicted = [name for name in detector.keypoints if name not in ANCHORS] if set(ANCHORS) <= set(detector.keypoints) else []
    info = {**detector.info, "modes": {"settings": described["settings"], "guides": scores, "rejection_quantiles": shares}}
    if mode == Mode.PRUNE:
        s = replace(settings.verifier, held_out=settings.held_out, precision=settings.precision)
        verifiers = VerifierTraining(
            list(images), list(background), s, detector.pool, folder, say, n_jobs, dict(guides), settings.lost
        )
        info["modes"]["verifiers"] = {}
        for name in dict.fromkeys(trained_as(name) for name in detector.keypoints if name not in predicted):
            made = verifiers.train(name, resume)
            guides[name] = replace(guides[name], verifier=made.models[name])
            info["modes"]["verifiers"][name] = {key: made.info[key] for key in ("rows", "rounds", "held_out")}
    job.detector = replace(detector, guides={name: job.mirrored_model(guides, name) for name in detector.keypoints})
    detector = job.detector
    if predicted:
        regressor, info["modes"]["context"] = job.shape_regressor(predicted)
        detector = replace(detector, shape_regressor=regressor)
    detector = replace(detector, info=info)
    detector.save(out)
    return detector
