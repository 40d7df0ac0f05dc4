"""Reproduction of the results on face keypoints in Barbu et al. (2014) [1]_ and (2017) [2]_.

They compare learners on the same windows, and search modes.

References
----------
.. [1] A. Barbu, Y. She, L. Ding and G. Gramajo, "Feature Selection with Annealing for Regression,
       Classification and Ranking", arXiv:1310.2880v2 (2014): Figures 5 and 7, Table 4.
.. [2] A. Barbu, Y. She, L. Ding and G. Gramajo, "Feature Selection with Annealing for Computer
       Vision and Big Data Learning", IEEE Transactions on Pattern Analysis and Machine Intelligence
       39 (2017): Figure 7.
"""

import tempfile
import time
from collections.abc import Callable, Sequence
from contextlib import ExitStack
from dataclasses import asdict, replace
from functools import cached_property, partial
from pathlib import Path
from typing import Any

import numpy as np
from annealed.models import load_model
from annealed.models.keypoints.detector import KeypointDetector
from annealed.models.keypoints.windows.window_models import KeypointModel, Mode
from annealed.pipelines.common.checkpoints import Checkpoint, read_part
from annealed.pipelines.common.config import check_names
from annealed.pipelines.common.image_folders import list_images
from annealed.pipelines.keypoints.data import AnnotatedImage, read_annotations
from annealed.pipelines.keypoints.evaluate import TOLERANCES, evaluate_detector
from annealed.pipelines.keypoints.faces import KEYPOINTS
from annealed.pipelines.keypoints.measures import MatchedDetections, pooled
from annealed.pipelines.keypoints.training.stages import DetectorSettings
from annealed.pipelines.keypoints.training.windows.calibration import calibrate
from annealed.pipelines.keypoints.training.windows.classifier import (
    ROWS,
    ClassifierTraining,
    TrainingJob,
)
from annealed.pipelines.keypoints.training.windows.fitting import TrainingSettings
from annealed.pipelines.keypoints.training.windows.views import Windows
from annealed.vision.windows.feature_pool import FeaturePool

from ..cells import cells_of
from ..data_folder import data_folder
from ..printed_values import printed_columns
from .learners import annealing, histogram_svm, logitboost

# Ten rounds of mining and 1,500 features, as in the paper; fewer windows per round, so that all
# learners can use the same windows.
SETTINGS = TrainingSettings(
    first_rows=4_000, rounds=10, n_random=4_000, per_round=600, views_per_round=20
)
TRAIN, BACKGROUND, TEST = (
    120,
    140,
    150,
)  # training photographs with and without faces, and test photographs
_POINTS = 400  # maximum number of stored points of a curve
_RESAMPLES = 200  # bootstrap resamples of the photographs

# Name -> (learner, grid of settings). The setting is chosen by average precision on held-out
# photographs.
LEARNERS: dict[str, tuple[Callable[..., KeypointModel], dict[str, list[float]]]] = {
    "FSA, SVM loss": (partial(annealing, loss="huberised_hinge"), {"learning_rate": [0.1, 0.3]}),
    "FSA, Lorenz loss": (partial(annealing, loss="lorenz"), {"learning_rate": [0.1, 0.3]}),
    "FSA, logistic loss": (partial(annealing, loss="logistic"), {"learning_rate": [0.3]}),
    "FSA, random negatives": (partial(annealing, loss="logistic"), {"learning_rate": [0.3]}),
    "LogitBoost": (logitboost, {"shrinkage": [1.0]}),
    "SVM of histograms": (histogram_svm, {"C": [0.01, 0.1]}),
}


def some_of(images: list[AnnotatedImage], n: int) -> list[AnnotatedImage]:
    """Return at most ``n`` evenly spaced photographs."""
    return [
        images[i]
        for i in np.unique(np.linspace(0, len(images) - 1, min(n, len(images))).astype(int))
    ]


def mined_rows(training: ClassifierTraining, keypoint: str) -> tuple[Windows, ...]:
    """Return the windows of a finished training run: positives, held-out positives, random
    negatives and all negatives."""
    path = training.job.checkpoint(f"{training.stage}.rows", keypoint)
    kept = read_part(path, ROWS, training.job.made_from(training.stage, keypoint))
    if kept is None:
        raise ValueError(f"{path}: no such file; expected the checkpoint of a training run")
    return *training._first_rows(keypoint), training._read_rows(path, *kept)[0]


class _Windows:
    """Windows of one keypoint, mined on first use by annealing with the logistic loss."""

    def __init__(
        self,
        keypoint: str,
        folder: Path,
        data: Path,
        photographs: int,
        settings: TrainingSettings,
        pool: FeaturePool,
    ):
        self.keypoint, self.settings = keypoint, settings
        images = some_of(read_annotations(data / "train"), photographs)
        background = list_images(data / "background")[:BACKGROUND]
        every = DetectorSettings(scan=settings)
        self.job = TrainingJob(
            images, background, every, ["scan"], [keypoint], pool, folder, True, lambda line: None
        )
        self.training = ClassifierTraining(self.job, settings)

    @cached_property
    def rows(self):
        """Return positives, held-out positives, random negatives and all negatives."""
        self.training.train(self.keypoint)
        return mined_rows(self.training, self.keypoint)

    def try_out(self, name: str, setting: dict[str, float]) -> tuple[KeypointModel, dict[str, Any]]:
        """Fit a learner, and return its calibrated model and the average precision on held-out
        photographs.
        """
        positives, reference, ordinary, negatives = self.rows
        if name == "FSA, random negatives":
            settings = replace(self.settings, n_random=len(negatives))
            _, _, negatives = ClassifierTraining(self.job, settings)._first_rows(self.keypoint)
        patches = np.concatenate([positives.patches, negatives.patches])
        y = np.repeat([1.0, -1.0], [len(positives), len(negatives)])
        started = time.process_time()
        model = LEARNERS[name][0](patches, y, self.job.pool, self.settings, **setting)
        seconds = time.process_time() - started
        model = self.training.cascade(model, reference, ordinary.patches)
        detector = self.training.detector(self.keypoint, model)
        model, scores = calibrate(
            detector, self.keypoint, self.job.split.held_out_views, self.settings.precision
        )
        counts = {"windows": len(y), "features": len(model.features), "fit_seconds": seconds}
        return model, counts | {"held_out_ap_5": scores["ap_5"], "held_out_ap_10": scores["ap_10"]}


def _interval(judged: list[MatchedDetections]) -> list[float]:
    """Return the 95% interval of the average precision from resampled photographs."""
    rng = np.random.RandomState(0)
    drawn = rng.randint(len(judged), size=(_RESAMPLES, len(judged)))
    values = [pooled([judged[i] for i in rows]).average_precision for rows in drawn]
    return np.nanquantile(values, [0.025, 0.975]).tolist()


def _kept(judged: list[MatchedDetections]) -> dict[str, Any]:
    """Return a curve for the checkpoint: the average precision with its interval, and the points at
    hits.

    Most detections are false positives in the tail, so evenly spaced ranks would give few useful
    points.
    """
    curve = pooled(judged)
    hits = np.flatnonzero(np.diff(curve.recall, prepend=0.0) > 0)
    some = (
        hits[np.unique(np.linspace(0, len(hits) - 1, _POINTS).astype(int))] if len(hits) else hits
    )
    recall, precision = (
        np.round(part[some], 5).tolist() for part in (curve.recall, curve.precision)
    )
    return {
        "ap": curve.average_precision,
        "interval": _interval(judged),
        "recall": recall,
        "precision": precision,
        "at_90": curve.at_precision(0.9)[0],
    }


def curves_of(
    data_dir=None,
    *,
    sets=("left_eye",),
    methods=None,
    photographs=TRAIN,
    test=TEST,
    settings=SETTINGS,
    pool=None,
    checkpoint=None,
) -> list[dict[str, Any]]:
    """Return the cells of :func:`faces_curves` with their precision-recall ``curves`` by
    tolerance."""
    check_names("method", methods, LEARNERS)
    check_names("set", sets, KEYPOINTS)
    data = data_folder(data_dir) / "faces"
    cells = cells_of(checkpoint, {"table": "faces-curves"})
    results: list[dict[str, Any]] = []
    with ExitStack() as stack:
        if cells.path is None:
            folder = Path(stack.enter_context(tempfile.TemporaryDirectory()))
        else:
            folder = cells.path.with_name(cells.path.name + ".parts")
            folder.mkdir(exist_ok=True)
        for keypoint in sets:
            work = _Windows(
                keypoint,
                folder,
                data,
                photographs,
                settings,
                FeaturePool() if pool is None else pool,
            )
            for name in methods or LEARNERS:
                key = {
                    "keypoint": keypoint,
                    "method": name,
                    "photographs": photographs,
                    "settings": asdict(settings),
                }
                key |= {"choices": LEARNERS[name][1], "test": test}
                results.append(
                    {"data": keypoint, "method": name}
                    | cells(key, partial(_best, work, name, data, cells, key))
                )
    return results


def _best(
    work: _Windows, name: str, data: Path, cells: Checkpoint, key: dict[str, Any]
) -> dict[str, Any]:
    """Evaluate the setting with the highest average precision on held-out photographs on the test
    photographs.
    """
    ((parameter, values),) = LEARNERS[name][1].items()
    models: dict[float, KeypointModel] = {}

    def trial(value: float) -> dict[str, Any]:
        models[value], facts = work.try_out(name, {parameter: value})
        return facts

    tried = {value: cells(key | {"trial": value}, partial(trial, value)) for value in values}
    value = max(values, key=lambda v: tried[v]["held_out_ap_10"])
    model = models[value] if value in models else work.try_out(name, {parameter: value})[0]
    detector = work.training.detector(work.keypoint, model)
    evaluation = evaluate_detector(
        detector,
        some_of(read_annotations(data / "test"), key["test"]),
        [work.keypoint],
        mode=Mode.SCAN,
    )
    curves = {str(at): _kept(evaluation.judged[work.keypoint, at]) for at in TOLERANCES}
    return {"chosen": f"{parameter} {value:g}", **tried[value], "curves": curves}


def _row(cell: dict[str, Any]) -> dict[str, Any]:
    """Return a cell with its curves replaced by their average precision and its 95% interval."""
    precision: dict[str, Any] = {}
    for at in TOLERANCES:
        curve, name = cell["curves"][str(at)], f"AP_{100 * at:.0f}"
        precision[name] = curve["ap"]
        precision[f"{name}_interval"] = "{:.3f} to {:.3f}".format(*curve["interval"])
    return {key: value for key, value in cell.items() if key != "curves"} | precision


def faces_curves(
    runs: int = 1, data_dir=None, *, sets=("left_eye",), methods=None, checkpoint=None, **options
) -> dict[str, Any]:
    """Compare learners on the same windows of one keypoint.

    This reproduces Figure 5 of Barbu et al. (2014) and Figure 7 of Barbu et al. (2017). Windows of
    120 photographs of ``faces/train``, a tenth of which are held out, are mined in ten rounds by
    annealing with the logistic loss. Every learner is fitted to all windows, except that "FSA,
    random negatives" has as many random windows instead of the mined negatives. The feature order
    and rejection thresholds are set in the same way for all learners, and each scans the 150
    photographs of ``faces/test`` once. Settings are chosen by average precision on the held-out
    photographs. Intervals come from resampled test photographs.

    ``sets`` are keypoints. There is a single training run, so ``runs`` is not used; other
    ``options`` are those of :func:`curves_of`. Mined windows are stored next to the checkpoint, in
    a folder ``NAME.parts``.
    """
    rows = []
    for cell in curves_of(data_dir, sets=sets, methods=methods, checkpoint=checkpoint, **options):
        rows.append(
            _row(cell)
            | {
                f"recall_at_90_{100 * at:.0f}": cell["curves"][str(at)]["at_90"]
                for at in TOLERANCES
            }
        )
    settings = {"photographs": options.get("photographs", TRAIN), "test": options.get("test", TEST)}
    return {
        "name": "faces-curves",
        "settings": settings | asdict(options.get("settings", SETTINGS)),
        "rows": rows,
    }


MODES = {
    Mode.SCAN: "FSA-PL",
    Mode.REGRESS: "Reg+Clf",
    Mode.PRUNE: "Clf+Reg+Clf",
}  # modes, and their names in Table 4
MODE_KEYPOINTS = ("left_mouth", "right_eye")


def modes_of(
    data_dir=None,
    *,
    sets: Sequence[str] = MODE_KEYPOINTS,
    model: KeypointDetector | None = None,
    checkpoint=None,
) -> list[dict[str, Any]]:
    """Return the cells of :func:`faces_modes` with their precision-recall ``curves`` by
    tolerance."""
    detector = load_model("faces") if model is None else model
    check_names("set", sets, detector.models)
    cells = cells_of(checkpoint, {"table": "faces-modes"})
    images = read_annotations(data_folder(data_dir) / "faces" / "test")

    def measure(keypoint: str, mode: Mode) -> dict[str, Any]:
        first = evaluate_detector(
            detector, images[:1], [keypoint], mode=mode, assembly="none"
        )  # compiles
        started = time.process_time()
        evaluation = evaluate_detector(detector, images, [keypoint], mode=mode, assembly="none")
        seconds = (time.process_time() - started) / max(len(evaluation.images), len(first.images))
        return {
            "seconds": seconds,
            "curves": {str(at): _kept(evaluation.judged[keypoint, at]) for at in TOLERANCES},
        }

    every = [(keypoint, mode) for keypoint in sets for mode in MODES]
    return [
        {"data": k, "method": m.value}
        | cells({"keypoint": k, "mode": m.value}, partial(measure, k, m))
        for k, m in every
    ]


def faces_modes(
    runs: int = 1, data_dir=None, *, sets=MODE_KEYPOINTS, model=None, checkpoint=None
) -> dict[str, Any]:
    """Measure the seconds per photograph and average precision of the three search modes.

    This reproduces Table 4 of Barbu et al. (2014) with the shipped model on the photographs of
    ``faces/test``, without assembly of faces. The printed numbers are for LFPW, at 3 pixels of a
    level. The classifiers of the shipped model are trained for the windows of the last mode.
    ``sets`` are keypoints with a detector, which the chin does not have. There is a single model,
    so ``runs`` is not used.
    """
    rows = []
    for cell in modes_of(data_dir, sets=sets, model=model, checkpoint=checkpoint):
        paper = printed_columns(
            "faces-modes", MODES[Mode(cell["method"])], [cell["data"]], ("seconds", "AP_10")
        )
        rows.append(_row(cell) | paper)
    return {"name": "faces-modes", "settings": {}, "rows": rows}


ASSEMBLIES = {"detectors alone": "none", "assembled": "2d", "assembled, 3-D pose": "3d"}
DEFAULT_ASSEMBLIES = ("detectors alone", "assembled")  # the 3-D pose takes several times as long


def keypoints_of(
    data_dir=None,
    *,
    methods: Sequence[str] | None = None,
    model: KeypointDetector | None = None,
    checkpoint=None,
) -> list[dict[str, Any]]:
    """Return the cells of :func:`faces_keypoints` with their precision-recall ``curves`` by
    tolerance."""
    check_names("method", methods, ASSEMBLIES)
    detector = load_model("faces") if model is None else model
    cells = cells_of(checkpoint, {"table": "faces-keypoints"})
    images = read_annotations(data_folder(data_dir) / "faces" / "test")

    def measure(assembly: str, keypoints: Sequence[str]) -> list[dict[str, Any]]:
        started = time.process_time()
        evaluation = evaluate_detector(detector, images, keypoints, assembly=assembly)
        seconds = (time.process_time() - started) / len(evaluation.images)
        false = {row["keypoint"]: row["false_per_image"] for row in evaluation.rows[::-1]}
        return [
            {
                "data": keypoint,
                "seconds": seconds,
                "false_per_image": false[keypoint],
                "curves": {str(at): _kept(evaluation.judged[keypoint, at]) for at in TOLERANCES},
            }
            for keypoint in keypoints
        ]

    results = []
    for name in methods or DEFAULT_ASSEMBLIES:
        assembly = ASSEMBLIES[name]
        keypoints = list(detector.models) if assembly == "none" else detector.keypoints
        key = {"assembly": assembly, "keypoints": list(keypoints)}
        made = cells(key, partial(measure, assembly, keypoints))
        results += [{"method": name, **cell} for cell in made]
    return results


def faces_keypoints(
    runs: int = 1, data_dir=None, *, methods=None, model=None, checkpoint=None
) -> dict[str, Any]:
    """Compute the average precision of all keypoints of the shipped model on ``faces/test``.

    This reproduces Figure 7 of Barbu et al. (2017) with each detector alone and with assembled
    faces. ``methods`` are names in ``ASSEMBLIES``. The ears and the chin have no detectors of their
    own. There is a single model, so ``runs`` is not used.
    """
    cells = keypoints_of(data_dir, methods=methods, model=model, checkpoint=checkpoint)
    return {"name": "faces-keypoints", "settings": {}, "rows": [_row(cell) for cell in cells]}
