"""Training of a detector for any kind of object from annotated images.

Some settings are chosen based on the images: the size of the windows, the points for which
detectors are trained, and the numbers of features and mining rounds.
"""

import math
import tempfile
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import numpy as np

from ....models.files import check_writable, make_folder
from ....models.keypoints.detector import KeypointDetector
from ....models.keypoints.windows.window_models import Localisation
from ....vision.windows.feature_pool import FeaturePool
from ...common.file_map import Jobs
from ..data import AnnotatedImage
from ..evaluate import evaluate_detector
from ..objects import rotate_upright
from ..report import CHEAP
from .instances import AugmentationSettings, ProbabilitySettings, RegressionSettings
from .stages import DetectorSettings, train_detector
from .windows import ClassifierTraining, TrainingJob, TrainingSettings, held_out

_SHARES = (4, 2, 1)  # for each point of the learning curve, one image in n is used (heuristic)
_MIN_OBJECTS = 10  # minimum number for training
#: Window sides that are tried, in reference lengths. Heuristic: face windows have a side of 0.85.
SIDES = (0.6, 0.85, 1.2, 1.7)
_FIRST_SIDE, _N_COMPARED = 1.2, 2  # all points are tried at one side, the best ones at all sides

_TRIAL_PICTURES = 60
# Refinement of points: total number of augmented copies, and reference lengths and cell sides in
# pixels of the frames. The first frames are coarse because points may move freely, like the tip of
# a needle. Chosen on rendered dials and mugs, with other seeds than on the documentation page
_COPIES = 800
_COVERED = 0.3  # share of partly covered copies (heuristic)
_SIZES, _CELLS = (12, 16, 24, 28, 36), (6, 6, 6, 6, 5)
_MAX_ANCHORS = 4
_ROOM = 1.15  # side of the window of whole objects relative to their extent (heuristic)
# Minimum average precision relative to the best point for more than three points to have a
# detector; other points are inferred from the shape (heuristic)
_SHARE_OF_BEST = 0.5
# Sides in pixels of the cells of Haar features. Fewer than by default, since the training time is
# proportional to their number, and few are enough to rank points in a trial
_CELLS_OF_HAAR, _CELLS_OF_TRIAL = (2, 4, 8), (4, 8)
#: Settings of a trial, a single fit without mining.
TRIAL = TrainingSettings(
    n_features=100, rounds=0, n_random=3_000, first_rows=3_000, n_steps=20, final_steps=40
)


@dataclass(frozen=True)
class Decisions:
    """Settings that are chosen based on the images unless they are given.

    Parameters
    ----------
    side : float
        Side of a window, in reference lengths.
    enlarged : float
        Factor by which images are enlarged so that nearly all objects are large enough for the
        windows.
    anchors : tuple of str
        Points for which detectors are trained.
    n_features : int
        Number of features of each detector.
    rounds : int
        Maximum number of rounds of hard-negative mining.
    precision : dict of str to float
        Average precision of each point on held-out images in trial runs.
    extent : float
        Side of the window that contains a whole object, in reference lengths.
    """

    side: float
    enlarged: float
    anchors: tuple[str, ...]
    n_features: int
    rounds: int
    precision: dict[str, float] = field(default_factory=dict)
    extent: float = 3.0

    def lines(self) -> list[str]:
        """Return a line of text for each setting, with the option that overrides it."""
        precisions = ", ".join(f"{name} {value:.2f}" for name, value in self.precision.items())
        trial = f"; average precision of a trial: {precisions}" if precisions else ""
        return [
            f"windows of {self.side:g} reference lengths (--window), images enlarged "
            f"{self.enlarged:.2g} times",
            f"detectors for {', '.join(self.anchors)}{trial} (--anchor)",
            f"{self.n_features} features and up to {self.rounds} rounds of mining (--features, "
            "--rounds)",
        ]

    def settings(self, n_objects: int) -> DetectorSettings:
        """Return the training settings."""
        n_random = int(np.clip(80 * n_objects, 2_000, TrainingSettings.n_random))
        sizes: dict[str, Any] = {
            "n_random": n_random,
            "per_round": n_random * 7 // 10,
            "first_rows": 8_000 if n_objects < 600 else 16_000,
            # enough views for these windows
            "views_per_round": -(-n_random * 7 // 10 // TrainingSettings.per_view),
        }
        scan = TrainingSettings(
            n_features=self.n_features,
            rounds=self.rounds,
            enlarged=self.enlarged,
            **sizes,
            **_range(self.side),
        )
        copies = AugmentationSettings(
            copies=int(np.clip(_COPIES // n_objects, 1, 20)), covered=_COVERED
        )
        return _settings(
            scan,
            0.2 if n_objects < 600 else 0.1,
            face_cascade=TrainingSettings(
                n_features=min(self.n_features, 400),
                rounds=min(self.rounds, 3),
                shrinkage=0.01,  # few objects in many windows
                lost_fraction=0.01,
                **sizes,
                **_range(self.extent / 2),  # windows with twice the side of those of keypoints
            ),
            refinement=RegressionSettings(
                copies,
                ied=_SIZES,
                cell=_CELLS,
                n_features=int(np.clip(8 * n_objects, 300, 1500)),
                n_components=30,
            ),
            probabilities=ProbabilitySettings(
                n_features=600,
                described=len(_SIZES),
                regularisation=10.0,  # few held-out objects, but also few inputs
                photographs=200,
                by_anchors=True,
                reported=(0.5, 0.5),  # detected, even if points are inaccurate (heuristic)
            ),
        )


def _extent(images: Sequence[AnnotatedImage], side: float, anchors: Sequence[str]) -> float:
    """Return the side in reference lengths of a window around the centre of the anchors that
    contains most objects. It is at least twice the side of the points' windows, since its level
    must not be finer than theirs."""
    which = [images[0].schema.keypoints.index(name) for name in anchors]
    extents = [
        2
        * np.nanmax(abs(points - points[:, which].mean(axis=1, keepdims=True)), axis=(1, 2))
        / image.reference_length
        for image in images
        if len(points := image.instances)
    ]
    return max(2 * side, round(_ROOM * float(np.quantile(np.concatenate(extents), 0.75)), 2))


def _range(side: float) -> dict[str, Any]:
    """Return the range of reference lengths in pixels of a level for windows with a given side in
    reference lengths."""
    middle = 24 / side
    return {"ied_low": middle / math.sqrt(2), "ied_high": middle * math.sqrt(2)}


def _enlarged(images: Sequence[AnnotatedImage], side: float) -> float:
    """Return the required enlargement of the images, up to fourfold, in whole steps of the
    pyramid."""
    smallest = float(
        np.quantile(np.concatenate([image.reference_length for image in images]), 0.05)
    )
    return 2 ** (
        math.ceil(4 * math.log2(np.clip(1.2 * _range(side)["ied_low"] / smallest, 1, 4))) / 4
    )


def _settings(scan: TrainingSettings, held_out: float, **more: Any) -> DetectorSettings:
    default, spread = DetectorSettings(), {"ied_low": scan.ied_low, "ied_high": scan.ied_high}
    parts = {name: replace(getattr(default, name), **spread) for name in ("guide", "classifier")}
    return DetectorSettings(held_out, scan, **parts, **more)


def decide(
    images: Sequence[AnnotatedImage],
    trial_of: Callable[[float, Sequence[AnnotatedImage], DetectorSettings], TrainingJob],
    say: Callable[[str], None] = print,
    side: float | None = None,
    anchors: Sequence[str] = (),
    n_features: int | None = None,
    rounds: int | None = None,
) -> Decisions:
    """Choose all settings that are not given.

    Parameters
    ----------
    images : list of AnnotatedImage
        Annotated images.
    trial_of : function
        Function that creates the training job of a trial run, given a window side and a list of
        images.
    say : function
        Function called with progress messages.
    side, anchors, n_features, rounds
        Given settings; see `Decisions`.

    Returns
    -------
    Decisions
    """
    schema, n = images[0].schema, sum(len(image.instances) for image in images)
    trained = list(dict.fromkeys(map(schema.trained_as, anchors or schema.keypoints)))
    reached: dict[float, dict[str, float]] = {}
    n_some = min(len(images), _TRIAL_PICTURES)
    some = [
        images[i * len(images) // n_some] for i in range(n_some)
    ]  # evenly spaced, since file names may be grouped by kind

    def run_trials(tried: float, points: Sequence[str]) -> dict[str, float]:
        scan = replace(TRIAL, enlarged=_enlarged(images, tried), **_range(tried))
        job = trial_of(tried, some, _settings(scan, 0.4))
        # the default averaging of positions is sufficient for a trial
        training = ClassifierTraining(job, scan, (Localisation(),))
        precision = reached.setdefault(tried, {})
        for name in (name for name in points if name not in precision):
            say(
                f"trial: windows of {tried:g} reference lengths, {n_some} images, {name} "
                f"(point {trained.index(name) + 1} of {len(trained)})"
            )
            precision[name] = training.train(name).info["held_out"]["ap_25"]
        return {name: precision[name] for name in points}

    best = trained
    if side is None:
        first = run_trials(_FIRST_SIDE, trained)
        best = sorted(trained, key=first.__getitem__, reverse=True)[:_MAX_ANCHORS]
        side = max(SIDES, key=lambda tried: sum(run_trials(tried, best[:_N_COMPARED]).values()))
    if not anchors:
        precision = run_trials(side, best)
        order = sorted(best, key=lambda name: -precision[name])
        good = [
            name
            for i, name in enumerate(order)
            if i < 3 or precision[name] >= _SHARE_OF_BEST * precision[order[0]]
        ]
        chosen = [name for name in schema.keypoints if schema.trained_as(name) in good]
        anchors = sorted(chosen, key=lambda name: order.index(schema.trained_as(name)))[
            :_MAX_ANCHORS
        ]
    return Decisions(
        side,
        _enlarged(images, side),
        tuple(anchors),
        int(np.clip(2 * n, 150, 1500)) if n_features is None else n_features,
        (3 if n < 200 else 5) if rounds is None else rounds,
        reached.get(side, {}),
        _extent(images, side, anchors),
    )


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
    """Choose the settings that are not given, train the detector, and write it to a model file.

    Parameters
    ----------
    images : list of AnnotatedImage
        Annotated images that share a schema.
    background : list of path
        Images that contain no objects of the annotated kind.
    out : path
        Model file. Checkpoints are stored in the folder ``OUT.checkpoint`` next to it.
    resume : bool
        Whether to resume from the checkpoints. The result equals that of an uninterrupted run.
    say : function
        Function called with progress messages.
    n_jobs : int or FileMap
        Number of threads, or a mapping function; the result does not depend on it.
    pool : FeaturePool, optional
        Feature pool; None means pools with fewer features than the default pool.
    **given
        Given settings; see `decide`.

    Returns
    -------
    KeypointDetector
    Decisions

    Raises
    ------
    ValueError
        As in `train_detector`.
    """
    check_writable(out)
    tried, pool = (pool or FeaturePool(sides=some) for some in (_CELLS_OF_TRIAL, _CELLS_OF_HAAR))
    folder = out.with_name(out.name + ".checkpoint")
    if not images[0].schema.upright:
        images = rotate_upright(images)

    def trial_of(side: float, some: Sequence[AnnotatedImage], settings: Any) -> TrainingJob:
        make_folder(folder / f"trial {side:g}")
        return TrainingJob(
            list(some),
            [],
            settings,
            ["scan"],
            list(images[0].schema.keypoints),
            tried,
            folder / f"trial {side:g}",
            resume,
            lambda line: None,
            n_jobs,
        )

    make_folder(folder)
    decisions = decide(images, trial_of, say, **given)
    for line in decisions.lines():
        say(line)
    before = images[0].schema
    schema = before.with_anchors(decisions.anchors)
    order = [before.keypoints.index(name) for name in schema.keypoints]
    images = [
        replace(
            image,
            instances=image.instances[:, order],
            visible=image.visible[:, order],
            schema=schema,
        )
        for image in images
    ]
    more = (
        decisions.settings(sum(len(image.instances) for image in images)),
        list(schema.anchors),
        "scan",
        resume,
        say,
        n_jobs,
        pool,
        replace(before, anchors=decisions.anchors),
    )
    return train_detector(images, background, out, *more), decisions


def held_out_images(
    detector: KeypointDetector, images: Sequence[AnnotatedImage]
) -> list[AnnotatedImage]:
    """Return the held-out images on which the thresholds and probabilities were calibrated."""
    return [image for image in images if held_out(image, detector.info["settings"]["held_out"])]


def learning_curve(
    images: Sequence[AnnotatedImage],
    test: Sequence[AnnotatedImage],
    background: Sequence[Path],
    decisions: Decisions,
    say: Callable[[str], None],
    **more: Any,
) -> list[dict[str, Any]]:
    """Evaluate detectors trained on a quarter, half and all of the training images.

    The detectors are trained with inexpensive settings and evaluated on the held-out images
    ``test``.

    Returns
    -------
    list of dict
        ``pictures`` (number of images) and ``pck`` of each training run. Fractions with too few
        objects are skipped.
    """
    names, rows = {image.name for image in test}, []
    fitted = [image for image in images if image.name not in names and len(image.instances)]
    given = {"side": decisions.side, "anchors": decisions.anchors, **CHEAP, **more}
    given["n_features"] = min(given["n_features"], decisions.n_features)
    for share in _SHARES:
        some = fitted[::share]
        if sum(len(image.instances) for image in some) < _MIN_OBJECTS:
            continue
        say(f"learning curve: training on {len(some)} images")
        with tempfile.TemporaryDirectory() as folder:
            out = Path(folder) / "some.safetensors"
            made, _ = train_keypoints(
                [*some, *test], background, out, say=lambda line: None, **given
            )
        rows.append(
            {
                "pictures": len(some) - len(held_out_images(made, some)),
                "pck": evaluate_detector(made, test, (), measure="pck").rows[-1]["pck"],
            }
        )
    return rows
