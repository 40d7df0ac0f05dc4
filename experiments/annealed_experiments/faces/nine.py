"""Assembly of faces from detectors of all nine keypoints with a 3-D pose, and pruning by it.

Barbu et al. (2017) [1]_, section 3.3.1 (*FSA-Lor Face*), keep the detections within half an
inter-eye distance of the positions that the 3-D pose of a detected face predicts. The pose is
estimated here by the rigid model of the package.

References
----------
.. [1] A. Barbu, Y. She, L. Ding and G. Gramajo, "Feature Selection with Annealing for Computer
       Vision and Big Data Learning", IEEE Transactions on Pattern Analysis and Machine Intelligence
       39 (2017).
"""

import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import numpy as np
from annealed.models import load_model
from annealed.models.keypoints.detector import KeypointDetector
from annealed.models.keypoints.instances.assembly import Assembler, Assembly, Hypothesis
from annealed.models.keypoints.instances.shape_models import is_same_instance
from annealed.models.keypoints.windows.window_models import Mode
from annealed.pipelines.common.config import check_names
from annealed.pipelines.common.image_folders import list_images
from annealed.pipelines.keypoints.data import AnnotatedImage, read_annotations
from annealed.pipelines.keypoints.evaluate import TOLERANCES, evaluate_detector
from annealed.pipelines.keypoints.faces import ANCHORS, FACES, KEYPOINTS
from annealed.pipelines.keypoints.measures import FALSE, MatchedDetections, judge, pooled
from annealed.pipelines.keypoints.training.instances.shapes import (
    AssemblySettings,
    SearchedImage,
    learn_assembler,
    score_log_odds,
    search_all,
)
from annealed.pipelines.keypoints.training.stages import (
    DetectorSettings,
    train_classifiers,
    train_guides,
)
from annealed.pipelines.keypoints.training.windows import GUIDED, TrainingJob, held_out
from annealed.pipelines.keypoints.training.windows.views import without_objects

from ..cells import cells_of
from ..data_folder import data_folder
from .curves import BACKGROUND, some_of

# The detectors of the ears and the chin are trained on fewer photographs and windows than those of
# the shipped model.
PHOTOGRAPHS = 300
SETTINGS = DetectorSettings(
    classifier=replace(GUIDED, n_random=8_000, per_round=6_000, views_per_round=150),
    turned_heads=0.0,
)
ADDED = ("left_ear", "right_ear", "chin")
PAIRS = {"eyes": (0, 1), "nose": (2, 3), "mouth": (4, 5), "ears": (6, 7), "chin": (8,)}
PRUNED = 0.5  # inter-eye distances
# Fractions of held-out faces that the minimum score of a face may reject. The fraction with the
# highest mean average precision on the held-out photographs is used.
MISSED = (0.005, 0.02, 0.05, 0.1)
METHODS = ("detectors alone", "six, 3-D pose, pruned", "nine, 3-D pose, pruned", "six, assembled")
_RESAMPLES = 200

#: Matched detections by keypoint and tolerance, one per photograph.
Judged = dict[tuple[str, float], list[MatchedDetections]]


@dataclass(frozen=True)
class Pruning:
    """Assembler of faces, and the minimum score of a face that keeps the detections near it."""

    assembler: Assembler
    min_score: float = 0.0

    def faces(self, maxima: dict[str, np.ndarray], unit: float) -> list[Hypothesis]:
        """Return the faces assembled with a 3-D pose."""
        candidates = self.assembler.candidates(maxima, unit)
        return self.assembler.assemble(candidates, Assembly.THREE, min_support=self.min_score)

    def near(self, maxima: dict[str, np.ndarray], unit: float) -> dict[str, np.ndarray]:
        """Return the maxima within half an inter-eye distance of a face's predicted positions."""
        faces, kept = self.faces(maxima, unit), {}
        for i, name in enumerate(self.assembler.anchors):
            place = maxima[name][:, 0] + 1j * maxima[name][:, 1]
            near = np.zeros(len(place), bool)
            for face in faces:
                near |= abs(place - face.points[i]) <= PRUNED * face.reference_length
            kept[name] = maxima[name][near]
        return kept


def add_detectors(
    detector: KeypointDetector,
    images: Sequence[AnnotatedImage],
    background: Sequence[Path],
    folder: Path,
    settings: DetectorSettings = SETTINGS,
) -> KeypointDetector:
    """Return the detector with further detectors of the ears and the chin, which use its face
    cascade; finished parts are stored in a folder."""
    stages = ["guide", "classifier"]
    job = TrainingJob(
        list(images),
        list(background),
        settings,
        stages,
        list(ADDED),
        detector.pool,
        folder,
        resume=True,
    )
    added = replace(detector, models={}, guides={}, finder=None, info={})
    added, _ = train_guides(job, added)
    added, _ = train_classifiers(job, added)
    return replace(
        detector,
        models=detector.models | added.models,
        guides=detector.guides | added.guides,
    )


def learn_pruning(
    detector: KeypointDetector,
    images: Sequence[AnnotatedImage],
    background: Sequence[Path],
    keypoints: Sequence[str],
) -> tuple[Pruning, dict[str, Any]]:
    """Learn the assembly from the given keypoints, and choose the minimum score of a face on the
    held-out photographs."""
    schema, settings = replace(FACES, anchors=tuple(keypoints)), AssemblySettings()
    every = [replace(image, schema=schema) for image in images]
    known = [image for image in every if held_out(image, SETTINGS.held_out)]
    fitted = [image for image in every if not held_out(image, SETTINGS.held_out)]
    empty = without_objects(background[:: settings.background], schema)
    assembler = learn_assembler(fitted, settings)
    searched = [
        replace(view, levels=())
        for view in search_all(detector, keypoints, [*known, *empty], (None, *settings.ied))
    ]
    slope, offset = score_log_odds(searched, schema)
    pruning = Pruning(replace(assembler, slope=slope, offset=offset))
    unit = detector.reference_length
    scores = np.concatenate([_scores(pruning, view, schema, unit) for view in searched])
    limits = dict(zip(MISSED, np.quantile(scores, MISSED).tolist()))
    alone = [next(search_all(detector, keypoints, [image])).maxima for image in known]
    tried = {
        share: _mean_precision(Pruning(pruning.assembler, limit), known, alone, unit)
        for share, limit in limits.items()
    }
    missed = max(tried, key=lambda one: tried[one])
    facts = {"missed": missed, "min_score": limits[missed], "held_out_ap_10": tried[missed]}
    return replace(pruning, min_score=limits[missed]), facts


def _scores(pruning: Pruning, view: SearchedImage, schema, unit: float) -> np.ndarray:
    """Return the score of the assembled face at each annotated face that was detected."""
    n = len(schema.anchors)
    truth = view.keypoints(schema.to_keypoints(view.instances.shape[1])[:n])
    faces = pruning.faces(view.maxima, unit) if len(truth) else []
    best = [
        max((f.score for f in faces if is_same_instance(f.points[:n], points, ied)), default=np.nan)
        for points, ied in zip(truth, view.reference_length)
    ]
    return np.array([score for score in best if np.isfinite(score)])


def _mean_precision(
    pruning: Pruning,
    images: Sequence[AnnotatedImage],
    maxima: Sequence[dict[str, np.ndarray]],
    unit: float,
) -> float:
    """Return the mean average precision at 10% of the keypoints after pruning."""
    detected = [pruning.near(one, unit) for one in maxima]
    judged = _judged(images, detected)
    names = pruning.assembler.anchors
    return float(np.mean([pooled(judged[name, 0.1]).average_precision for name in names]))


def _judged(
    images: Sequence[AnnotatedImage],
    detected: Sequence[dict[str, np.ndarray]],
    thresholds: dict[str, float] | None = None,
) -> Judged:
    """Match the maxima of each photograph, or those above the thresholds, with the annotations."""
    judged: Judged = {}
    for image, maxima in zip(images, detected, strict=True):
        for name, rows in maxima.items():
            rows = rows if thresholds is None else rows[rows[:, 2] >= thresholds[name]]
            k = KEYPOINTS.index(name)
            for tolerance in TOLERANCES:
                judged.setdefault((name, tolerance), []).append(
                    judge(
                        rows[:, :2],
                        rows[:, 2],
                        image.instances[:, k],
                        image.visible[:, k],
                        image.reference_length,
                        image.ignore,
                        tolerance,
                    )
                )
    return judged


def _rows(judged: Judged, default: Judged, seconds: float) -> list[dict[str, Any]]:
    """Return a row for each pair of keypoints: average precision with its 95% interval from
    resampled photographs, and the recall and false detections at the default threshold."""
    rows = []
    for pair, members in PAIRS.items():
        names = [KEYPOINTS[k] for k in members]
        if (names[0], TOLERANCES[0]) not in judged:
            continue
        row: dict[str, Any] = {"data": pair}
        for at in TOLERANCES:
            every = list(zip(*(judged[name, at] for name in names)))
            shown = [one for name in names for one in default[name, at]]
            label = f"{100 * at:.0f}"
            row[f"AP_{label}"] = pooled([one for both in every for one in both]).average_precision
            row[f"AP_{label}_interval"] = "{:.3f} to {:.3f}".format(*_interval(every))
            row[f"recall_{label}"] = pooled(shown).at_threshold(-np.inf)[1]
        false = sum(int((one.outcome == FALSE).sum()) for one in shown)
        rows.append(row | {"false_per_image": false / len(shown), "seconds": seconds})
    return rows


def _interval(judged: list[tuple[MatchedDetections, ...]]) -> np.ndarray:
    rng = np.random.RandomState(0)
    drawn = rng.randint(len(judged), size=(_RESAMPLES, len(judged)))
    values = [pooled([m for i in rows for m in judged[i]]).average_precision for rows in drawn]
    return np.nanquantile(values, [0.025, 0.975])


def _maxima(
    detector: KeypointDetector, images: Sequence[AnnotatedImage], keypoints: Sequence[str]
) -> Iterator[dict[str, np.ndarray]]:
    """Yield the local maxima of the keypoints' scores in each photograph."""
    for image in images:
        levels = detector.search.pyramid(image.pixels())
        maxima = detector.anchor_maxima(levels, keypoints, Mode.PRUNE)
        yield {name: maxima[name] for name in keypoints}  # without whole faces


def faces_nine(
    runs: int = 1,
    data_dir=None,
    *,
    methods: Sequence[str] | None = None,
    model: KeypointDetector | None = None,
    photographs: int = PHOTOGRAPHS,
    settings: DetectorSettings = SETTINGS,
    checkpoint=None,
) -> dict[str, Any]:
    """Compare the assembly of all nine keypoints, pruned by the 3-D pose, with the package's own.

    This follows *FSA-Lor Face* in Figure 7 of Barbu et al. (2017). Detectors of the ears and the
    chin are trained on 300 photographs of ``faces/train`` and added to the six of the shipped
    model. The assembly is learnt from all training photographs, and the minimum score of a face is
    chosen on those that are held out. The rows are averages over the photographs of ``faces/test``.
    There is a single model, so ``runs`` is not used; parts of the model are stored next to the
    checkpoint, in a folder ``NAME.parts``.
    """
    check_names("method", methods, METHODS)
    data = data_folder(data_dir) / "faces"
    shipped = load_model("faces") if model is None else model
    cells = cells_of(checkpoint, {"table": "faces-nine"})
    train, test = read_annotations(data / "train"), read_annotations(data / "test")
    background = list_images(data / "background")[:BACKGROUND]
    facts: dict[str, Any] = {}

    def measure(method: str, folder: Path) -> dict[str, Any]:
        if method == "six, assembled":
            started = time.process_time()
            made = evaluate_detector(shipped, test, KEYPOINTS, assembly=Assembly.TWO)
            seconds = (time.process_time() - started) / len(test)
            return {"rows": _rows(made.judged, made.default, seconds), "facts": {}}
        names = ANCHORS if method.startswith("six") else KEYPOINTS
        some = some_of(train, photographs)
        nine = add_detectors(shipped, some, background, folder, settings)
        pruning, facts = (
            (None, {})
            if method == "detectors alone"
            else learn_pruning(nine, train, background, names)
        )
        unit, detected = nine.reference_length, []
        list(_maxima(nine, test[:1], names))  # compiles
        started = time.process_time()
        for maxima in _maxima(nine, test, names):
            detected.append(maxima if pruning is None else pruning.near(maxima, unit))
        seconds = (time.process_time() - started) / len(test)
        thresholds = {name: nine.models[name].threshold for name in names}
        rows = _rows(_judged(test, detected), _judged(test, detected, thresholds), seconds)
        return {"rows": rows, "facts": facts}

    rows = []
    with TemporaryDirectory() as temporary:
        folder = Path(temporary)
        if cells.path is not None:
            folder = cells.path.with_name(cells.path.name + ".parts")
            folder.mkdir(exist_ok=True)
        for method in methods or METHODS:
            key = {"method": method, "photographs": photographs}
            cell = cells(key, partial(measure, method, folder))
            facts[method] = cell["facts"]
            rows += [{"method": method, **row} for row in cell["rows"]]
    return {"name": "faces-nine", "settings": {"photographs": photographs, **facts}, "rows": rows}
