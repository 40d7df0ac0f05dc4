"""Training of keypoint classifiers in rounds of fitting and mining, with checkpoints."""

import hashlib
import time
from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass, replace
from functools import cache
from pathlib import Path
from typing import Any, ClassVar, TypeVar

import numpy as np

from .....models.files import check_array
from .....models.keypoints.detector import KeypointDetector
from .....models.keypoints.windows.window_models import KeypointModel, Localisation, Mode
from .....vision import FeaturePool, Level
from ....common import Jobs, is_finished, read_part, write_part
from ...data import AnnotatedImage
from ..synthetic_views import hard_views, yaw_augmentations
from .calibration import AVERAGINGS, calibrate
from .cascade import cascade_for_recall, cheapest_order, rejection_thresholds, with_order
from .fitting import TrainingSettings, fit_rows
from .views import (
    SCALES_PER_OCTAVE,
    NamedView,
    Windows,
    cut_keys,
    each,
    held_out,
    join,
    keys_of_view,
    open_view,
    pack_keys,
    sample_view,
    since,
    split_views,
    unpack_keys,
)

#: Kind of the model file that holds the negatives of an unfinished training run.
ROWS = "training rows"
Model = TypeVar("Model")
_COST_ROWS = 2000  # number of windows used to estimate the cost of a cascade (heuristic)
# maximum number of views from which windows are cropped, since all windows are in memory
# (heuristic)
_MAX_VIEWS = 12_000


def content_of(images: Sequence[AnnotatedImage], background: Sequence[Path]) -> str:
    """Return the SHA-256 hash of all annotations and image files of a training run."""
    digest = hashlib.sha256()
    for image in images:
        for array in (image.instances, image.visible, image.ignore, image.reference_length):
            digest.update(repr(array.shape).encode() + np.ascontiguousarray(array).tobytes())
    for path in (*(image.path for image in images), *background):
        stat = path.stat()
        digest.update(_digest_of_file(path, stat.st_size, stat.st_mtime_ns))
    return digest.hexdigest()


@cache
def _digest_of_file(path: Path, size: int, changed: int) -> bytes:
    """Return the SHA-256 of a file, which the process caches by size and modification time."""
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").digest()


def _some(views: Sequence[NamedView], seed: int) -> list[tuple[int, NamedView]]:
    """Return all views, or a sample of `_MAX_VIEWS` views in the same order, with their indices."""
    chosen = np.arange(len(views))
    if len(views) > _MAX_VIEWS:
        chosen = np.sort(np.random.default_rng([seed, 4]).permutation(len(views))[:_MAX_VIEWS])
    return [(number, views[number]) for number in chosen.tolist()]


@dataclass
class TrainingJob:
    """State shared by the stages of a training run.

    ``settings`` is a dataclass with one field per stage and the field ``held_out``, which is the
    fraction of the photographs used for calibration. ``stages`` contains the names of the stages in
    order, and ``folder`` contains the checkpoints.
    """

    images: list[AnnotatedImage]
    background: list[Path]
    settings: Any
    stages: Sequence[str]
    keypoints: list[str]
    pool: FeaturePool
    folder: Path
    resume: bool = False
    say: Callable[[str], None] = print
    n_jobs: Jobs = 1

    def __post_init__(self) -> None:
        self.split = split_views(
            self.images, self.background, self.settings.held_out, self.yaw_augmentations
        )
        self.schema = self.images[0].schema

    def yaw_augmentations(
        self, images: list[AnnotatedImage], seed: int = 0
    ) -> list[AnnotatedImage]:
        """Return copies of photographs in which heads are rotated to a side."""
        known = [image for image in self.images if not held_out(image, self.settings.held_out)]
        return yaw_augmentations(images, known, self.settings.turned_heads, seed)

    @property
    def trained(self) -> list[str]:
        """Return the keypoints for which models are trained; the others are their mirror images."""
        return list(dict.fromkeys(self.schema.trained_as(name) for name in self.keypoints))

    def views(self, copies: str) -> list[NamedView]:
        """Return the views for fitting, including synthetic copies (see `TrainingSettings`)."""
        views = self.split.views
        if copies == "none":
            return [view for view in views if view[0].view is None]
        harder = hard_views(self.split.fitted, 0) if copies == "all" else []
        return [*views, *((image, flip) for image in harder for flip in self.schema.flips)]

    def completed(
        self, made: dict[str, Model], mirrored: Callable[[Model], Model]
    ) -> dict[str, Model]:
        """Return a model for each keypoint: the trained one or a mirror image of its opposite's."""
        return {
            name: made[name] if name in made else mirrored(made[self.schema.opposite[name]])
            for name in self.keypoints
        }

    def made_from(self, stage: str, name: str) -> dict[str, Any]:
        """Return the settings and data that the checkpoint of a stage and keypoint must match.

        They include the settings of all earlier stages.
        """
        before = self.stages[: list(self.stages).index(stage) + 1]
        return {
            "keypoint": name,
            "settings": {name: asdict(getattr(self.settings, name)) for name in before},
            "held_out": self.settings.held_out,
            "turned_heads": self.settings.turned_heads,
            "pool": self.pool.to_dict(),
            "schema": self.schema.to_dict(),
            "images": [image.name for image in self.images],
            "background": [path.name for path in self.background],
            "content": content_of(self.images, self.background),
        }

    def checkpoint(self, stage: str, name: str) -> Path:
        """Return the path of the checkpoint file of a stage and keypoint."""
        return self.folder / f"{name}.{stage}.safetensors"

    def finished(self, stage: str, name: str) -> KeypointDetector | None:
        """Return the result stored by :meth:`keep`; None if it does not exist or the run is new."""
        path = self.checkpoint(stage, name)
        return (
            KeypointDetector.load(path)
            if self.resume and is_finished(path, self.made_from(stage, name))
            else None
        )

    def keep(self, stage: str, name: str, detector: KeypointDetector) -> None:
        """Store the result of a stage for a keypoint.

        The result is stored in a detector file that contains nothing else. The ``info`` of the
        detector also describes what the result was trained from.
        """
        replace(detector, info={"made_from": self.made_from(stage, name), **detector.info}).save(
            self.checkpoint(stage, name)
        )


@dataclass
class ClassifierTraining:
    """Trainer of the classifiers of a stage, in rounds of fitting and hard-negative mining.

    Negatives are mined from all windows.
    """

    job: TrainingJob
    settings: TrainingSettings
    averagings: Sequence[Localisation] = AVERAGINGS

    stage: ClassVar[str] = "scan"
    mode: ClassVar[Mode] = Mode.SCAN  # determines the windows that the classifier will score
    # cost of a window that the classifier accepts, in Haar features, if the cost is minimised
    after: ClassVar[float | None] = None

    def __post_init__(self) -> None:
        self.views, self.held_out_views = (
            self.job.views(self.settings.copies),
            self.job.split.held_out_views,
        )
        self.pool, self.say, self.n_jobs = (
            self.job.pool,
            self.job.say,
            self.job.n_jobs,
        )
        self.seconds: list[float] = []  # training time of each keypoint so far

    def detector(self, keypoint: str, model: KeypointModel, **more: Any) -> KeypointDetector:
        """Return a detector that scores windows with the given model."""
        more = {
            "reference_length": self.settings.reference_length,
            "enlarged": self.settings.enlarged,
        } | more
        return KeypointDetector({keypoint: model}, self.pool, SCALES_PER_OCTAVE, **more)

    def candidates(self, keypoint: str) -> Callable[[Sequence[Level]], list[np.ndarray]] | None:
        """Return the function that is passed to `sample_view` as ``candidates``."""
        return None

    def cascade(
        self, model: KeypointModel, reference: Windows, ordinary: np.ndarray
    ) -> KeypointModel:
        """Order the features and set the rejection thresholds.

        ``reference`` contains the held-out positives, and ``ordinary`` contains typical windows, as
        patches of shape (n, 26, 26, 3). If the attribute ``after`` is set, the order minimises the
        expected cost, and the thresholds are such that at most a given fraction of the held-out
        keypoints is lost.
        """
        s, positives = self.settings, reference.patches
        if self.after is None:
            model = with_order(model, self.pool, positives, ordinary)
            return rejection_thresholds(model, self.pool, positives, s.reject, s.reject_margin)

        def thresholds(model: KeypointModel) -> KeypointModel:
            return cascade_for_recall(
                model, self.pool, positives, unpack_keys(reference.keys)[0], s.lost_fraction
            )[0]

        some = ordinary[:: max(1, len(ordinary) // _COST_ROWS)]
        return cheapest_order(model, self.pool, positives, some, thresholds, self.after)

    def train(self, keypoint: str) -> KeypointDetector:
        """Train the classifier of a keypoint, or read it if it has already been trained.

        The resulting detector contains only this keypoint, and its ``info`` describes the training.
        """
        s, say = self.settings, self.say
        done = self.job.finished(self.stage, keypoint)
        if done is not None:
            say(f"{keypoint}: {self.stage}: already finished")
            return done
        rows_file = self.job.checkpoint(f"{self.stage}.rows", keypoint)
        made_from = self.job.made_from(self.stage, keypoint)
        started = time.monotonic()
        positives, reference, negatives = self._first_rows(keypoint)
        first, n_random = 0, len(negatives)
        log: list[dict] = []
        rows = read_part(rows_file, ROWS, made_from) if self.job.resume else None
        if rows is not None:
            negatives, first, log = self._read_rows(rows_file, *rows)
            say(f"{keypoint}: resumed after round {first}")
        say(
            f"{keypoint}: {len(positives)} positive and {len(negatives)} negative windows, "
            f"{len(reference)} held-out windows"
        )
        model: KeypointModel | None = None
        for round_ in range(first, s.rounds + 1):
            clock = time.monotonic()
            model = self._fit(positives, negatives, reference, n_random, round_)
            say(
                f"{keypoint}: round {round_} of at most {s.rounds}: fitted "
                f"{len(positives) + len(negatives)} rows in {since(clock)}"
            )
            if round_ == s.rounds:
                break
            clock = time.monotonic()
            new, n_alarms, n_views = self._mine(keypoint, model, negatives, round_)
            negatives = join([negatives, new], self.pool.window)
            log.append({"alarms": n_alarms, "added": len(new), "views": n_views})
            say(
                f"{keypoint}: round {round_}: {n_alarms} false alarms in {n_views} views, "
                f"{len(new)} added, {since(clock)}"
            )
            arrays = {"patches": negatives.patches, "keys": negatives.keys}
            write_part(rows_file, ROWS, arrays, made_from, round=round_ + 1, log=log)
            if not len(new):
                break
        if model is None:
            raise ValueError(
                f"{rows_file}: the checkpoint is from round {first}; expected at most round "
                f"{s.rounds}"
            )
        clock = time.monotonic()
        detector = self.detector(keypoint, model)
        views, more = self.held_out_views, (self.n_jobs, self.mode, self.averagings)
        model, scores = calibrate(detector, keypoint, views, s.precision, *more)
        reached = ", ".join(f"{name} {value:.3f}" for name, value in scores.items())
        say(
            f"{keypoint}: calibrated on {len(self.held_out_views)} held-out views in "
            f"{since(clock)}: {reached}"
        )
        info = {
            "rows": {"positive": len(positives), "negative": len(negatives)},
            "rounds": log,
            "held_out": scores,
        }
        detector = self.detector(keypoint, model, info=info)
        self.job.keep(self.stage, keypoint, detector)
        self.seconds.append(time.monotonic() - started)
        say(f"{keypoint}: finished in {since(started)}{self._time_left(keypoint)}")
        return detector

    def _time_left(self, keypoint: str) -> str:
        """Return a text with the number of remaining keypoints of the stage. From the second
        keypoint on, the text also contains a range of the remaining time, estimated from the
        shortest and longest training so far."""
        names = self.job.trained
        n_left = len(names) - 1 - names.index(keypoint) if keypoint in names else 0
        low, high = (n_left * s / 60 for s in (min(self.seconds), max(self.seconds)))
        minutes = f", {low:.1f} to {high:.1f} min" if len(self.seconds) > 1 else ""
        return f"; {self.stage}: {n_left} keypoints left{minutes}" if n_left else ""

    def _first_rows(self, keypoint: str) -> tuple[Windows, Windows, Windows]:
        """Return the positives, held-out positives and random negatives."""
        s, candidates = self.settings, self.candidates(keypoint)

        def sample(item: tuple[int, NamedView], n_random: int) -> tuple[Windows, Windows]:
            number, (image, flip) = item
            return sample_view(
                image, flip, number, keypoint, s, n_random, self.pool.window, candidates
            )

        views, held_out = _some(self.views, s.seed), _some(self.held_out_views, s.seed)
        share = -(-s.n_random // len(views))
        parts = list(each(views, lambda item: sample(item, share), self.n_jobs))
        others = list(each(held_out, lambda item: sample(item, 0), self.n_jobs))
        window = self.pool.window
        positives, reference = (
            join([p for p, _ in parts], window),
            join([p for p, _ in others], window),
        )
        if not len(positives) or not len(reference):
            raise ValueError(
                f"{keypoint}: no face with a reference length above {s.ied_low:g} px has a "
                "visible point; expected at least one face for training and one held out"
            )
        return positives, reference, join([n for _, n in parts], window)

    def _fit(
        self, positives: Windows, negatives: Windows, reference: Windows, n_random: int, round_: int
    ) -> KeypointModel:
        s = self.settings
        patches = np.concatenate([positives.patches, negatives.patches])
        y = np.repeat([1.0, -1.0], [len(positives), len(negatives)])
        model = fit_rows(patches, y, self.pool, s, seed=[s.seed, 2, round_])
        # The order is optimised for ordinary windows rather than for mined windows.
        return self.cascade(model, reference, negatives.patches[:n_random])

    def _mine(
        self, keypoint: str, model: KeypointModel, negatives: Windows, round_: int
    ) -> tuple[Windows, int, int]:
        s = self.settings
        lowered = replace(
            model, thresholds=(model.thresholds - np.float32(s.lowered)).astype(np.float32)
        )
        detector = self.detector(keypoint, lowered)
        rng = np.random.default_rng([s.seed, 3, round_])
        chosen = np.sort(rng.permutation(len(self.views))[: s.views_per_round])
        known = np.sort(negatives.keys)

        def mine(number: int) -> tuple[Windows, int]:
            first, last = np.searchsorted(known, keys_of_view(number))
            return self._mine_view(keypoint, detector, number, known[first:last])

        parts, n_alarms = [], 0
        for done, (new, n) in enumerate(each(chosen.tolist(), mine, self.n_jobs), start=1):
            parts.append(new)
            n_alarms += n
            if done % 100 == 0:
                self.say(
                    f"{keypoint}: round {round_}: {done} of {len(chosen)} views scanned, "
                    f"{n_alarms} false alarms"
                )
        windows = join(parts, self.pool.window)
        worst = np.sort(np.lexsort((windows.keys, -windows.scores))[: s.per_round])
        return windows.take(worst), n_alarms, len(chosen)

    def _mine_view(
        self, keypoint: str, detector: KeypointDetector, number: int, known: np.ndarray
    ) -> tuple[Windows, int]:
        """Return the highest-scoring false alarms of a view whose keys are not in ``known``, and
        the total number of false alarms.

        All windows are searched, or all those that the mode scores.
        """
        view = open_view(self.views[number][0], keypoint, self.views[number][1])
        levels = detector.search.pyramid(view.pixels)
        keys, scores, n_alarms = [np.empty(0, np.int64)], [np.empty(0, np.float32)], 0
        for k, (level, alarms) in enumerate(
            zip(levels, detector.search.score_levels(levels, keypoint, self.mode))
        ):
            far = view.is_background(
                alarms[:, :2],
                self.settings.negative_distance,
                self.settings.negative_pixels / level.scale,
            )
            alarms = alarms[far]
            n_alarms += len(alarms)
            xy = np.rint(level.from_image(alarms[:, :2])).astype(np.int64)
            keys.append(pack_keys(number, k, xy[:, 1], xy[:, 0]))
            scores.append(alarms[:, 3].astype(np.float32))
        key, score = np.concatenate(keys), np.concatenate(scores)
        new = ~np.isin(key, known)
        key, score = key[new], score[new]
        best = np.lexsort((key, -score))[: self.settings.per_view]
        return cut_keys(levels, key[best], score[best], detector.pool.window), n_alarms

    def _read_rows(
        self, path: Path, arrays: dict[str, np.ndarray], header: dict[str, Any]
    ) -> tuple[Windows, int, list]:
        side = self.pool.window + 2
        keys = check_array(path, arrays, "keys", np.int64, (None,))
        patches = check_array(path, arrays, "patches", np.uint8, (len(keys), side, side, 3))
        return (
            Windows(patches, keys, np.zeros(len(keys), np.float32)),
            int(header["round"]),
            list(header["log"]),
        )
