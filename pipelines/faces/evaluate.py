"""Runs a keypoint detector over annotated photographs and reports how well it did (``annealed faces evaluate``)."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import cv2
import numpy as np

from ...models.faces.assembly import Assembly
from ...models.faces.face_finder import Face
from ...models.files import replacing
from ...models.keypoints.detector import Detection, Found, KeypointDetector
from ...vision.images import read_image
from ..console import markdown_table, plain
from .average_precision import FALSE, HIT, MAX_DETECTIONS, Curve, Judged, judge, pooled
from .data import KEYPOINTS, FaceImage
from .subsets import reliability, subsets_of

TOLERANCES = (0.05, 0.10)
PRECISION = 0.9
REPORT_FILES = ("report.json", "report.md", "curves_*.png", "pictures_*.png")
LEAST = 0.5  # probability of a face that is reported by default
_SAME_FACE = 0.4  # landmarks farther off than this on average are another face
MOST_SOURCES = 12  # more different file prefixes than this are names, not sources

# Columns of the table and their headings.
COLUMNS = {
    "keypoint": "keypoint",
    "source": "source",
    "tolerance": "tolerance",
    "points": "points",
    "ap": "AP",
    "recall_at_precision_90": "recall at precision 0.9",
    "threshold": "threshold",
    "precision_at_threshold": "precision",
    "recall_at_threshold": "recall",
    "false_per_image": "false per image",
    "false_per_background_image": "false per background image",
}


@dataclass
class Evaluation:
    """What :func:`evaluate_detector` returns.

    ``rows``: one per keypoint, source and tolerance, keys as in ``COLUMNS``; ``threshold`` and the columns after it belong to
    the detector's default threshold. ``judged`` and ``curves`` by (keypoint, tolerance): one ``Judged`` per photograph of
    ``images``, and all sources together. ``errors``: one line per photograph that could not be read.

    Attributes
    ----------
    rows : list of dict
        One per keypoint, source and tolerance; keys as in ``COLUMNS``. ``threshold`` and the columns after it belong to the
        detector's default threshold.
    images : list of FaceImage
        The photographs that could be read.
    judged : dict of (keypoint, tolerance) to list of Judged
        One entry per photograph.
    default : dict of (keypoint, tolerance) to list of Judged
        The same with what is detected by default only.
    curves : dict of (keypoint, tolerance) to Curve
        All sources together.
    landmarks : list of dict
        One per source: ``faces``, how many of them were ``found``, and ``nme``, the mean error of their 68 landmarks over the
        distance of the outer eye corners. Empty where the landmarks are not annotated or the model has none.
    subsets : list of dict
        Average precision by the size and the pose of the faces: one per subset, keypoint and tolerance.
    reliability : list of dict
        Share of hits by probability (see :func:`~annealed.pipelines.faces.subsets.reliability`), at the tolerance 10 %, of all
        keypoints together; empty without assembly.
    errors : list of str
        One line per photograph that could not be read.
    """

    rows: list[dict] = field(default_factory=list)
    images: list[FaceImage] = field(default_factory=list)
    judged: dict[tuple[str, float], list[Judged]] = field(default_factory=dict)
    default: dict[tuple[str, float], list[Judged]] = field(default_factory=dict)
    curves: dict[tuple[str, float], Curve] = field(default_factory=dict)
    landmarks: list[dict] = field(default_factory=list)
    subsets: list[dict] = field(default_factory=list)
    reliability: list[dict] = field(default_factory=list)
    errors: list[str] = field(default_factory=list)


def default_detections(found: Found, thresholds: dict[str, float] | None) -> list[Detection]:
    """Those among all candidates that are detected by default: in faces of probability 0.5, or above thresholds of the score."""
    if thresholds is not None:
        return [d for d in found.detections if d.score >= thresholds[d.keypoint]]
    shown = {(name, p.x, p.y) for face in found.faces if face.probability >= LEAST for name, p in face.keypoints.items()}
    return [d for d in found.detections if (d.keypoint, d.x, d.y) in shown]


def landmark_error(faces: Sequence[Face], image: FaceImage) -> list[float | None]:
    """Mean distance of the 68 landmarks of each annotated face over that of the outer eye corners; None where none was found."""
    assert image.landmarks is not None
    errors: list[float | None] = []
    for truth in image.landmarks:
        unit = float(np.hypot(*(truth[36] - truth[45])))
        made = [float(np.hypot(*(face.landmarks - truth).T).mean()) / unit for face in faces if face.probability >= LEAST]
        errors.append(min(made, default=None) if min(made, default=np.inf) < _SAME_FACE else None)
    return errors


def judge_image(detections: Sequence[Detection], image: FaceImage, keypoint: str, tolerance: float) -> Judged:
    """Judge the detections of one keypoint in one photograph."""
    i, mine = KEYPOINTS.index(keypoint), [d for d in detections if d.keypoint == keypoint]
    xy, score = [(d.x, d.y) for d in mine], [d.score for d in mine]
    return judge(xy, score, image.faces[:, i], image.visible[:, i], image.ied, image.ignore, tolerance)


def evaluate_detector(
    detector: KeypointDetector,
    images: Sequence[FaceImage],
    keypoints: Sequence[str],
    background: Sequence[Path] = (),
    progress: Callable[[Iterable, int], Iterable] = lambda it, n: it,
    **options: Any,
) -> Evaluation:
    """Evaluate every candidate, at most 200 per image and keypoint.

    At the defaults, detections in ``background`` images without faces are counted. ``progress`` wraps an iterable
    of known length; ``options`` of :meth:`KeypointDetector.detect` are the mode and the assembly.
    """
    for name in keypoints:
        if name not in KEYPOINTS:
            raise ValueError(f"keypoint {name!r} of the model is no keypoint of faces ({', '.join(KEYPOINTS)})")
    options["mode"] = detector.check_mode(options.get("mode"), keypoints, options.get("assembly"))
    alone = detector.check_assembly(options.get("assembly")) == Assembly.NONE
    thresholds = {name: detector.default_threshold(name, options["mode"]) for name in keypoints} if alone else None
    result = Evaluation()
    errors: list[list[float | None]] = []
    for image in progress(images, len(images)):
        try:
            pixels = read_image(image.path)
        except ValueError as error:
            result.errors.append(str(error))
            continue
        found = detector.find(pixels, keypoints, threshold=-np.inf, max_detections=MAX_DETECTIONS, **options)
        shown = default_detections(found, thresholds)
        result.images.append(image)
        errors.append(landmark_error(found.faces, image) if _has_landmarks(detector, alone, image) else [])
        for name in keypoints:
            for tolerance in TOLERANCES:
                for to, detections in ((result.judged, found.detections), (result.default, shown)):
                    to.setdefault((name, tolerance), []).append(judge_image(detections, image, name, tolerance))
    if not result.images:
        raise ValueError(f"none of the {len(images)} photographs can be read ({result.errors[0]})")

    alarms: dict[str, list[int]] = {name: [] for name in keypoints}
    for path in progress(background, len(background)):
        try:
            seen = detector.detect(read_image(path), keypoints, **options)
        except ValueError as error:
            result.errors.append(str(error))
            continue
        for name in keypoints:
            alarms[name].append(sum(d.keypoint == name for d in seen))

    sources = sorted({image.source for image in result.images})
    parts = ["all", *(sources if 1 < len(sources) <= MOST_SOURCES else [])]
    for name in keypoints:
        for part in parts:
            chosen = [i for i, image in enumerate(result.images) if part in ("all", image.source)]
            for tolerance in TOLERANCES:
                judged = [result.judged[name, tolerance][i] for i in chosen]
                curve, row = _row(judged, [result.default[name, tolerance][i] for i in chosen])
                row["threshold"] = None if thresholds is None else thresholds[name]
                if part == "all":
                    result.curves[name, tolerance] = curve
                    row["false_per_background_image"] = float(np.mean(alarms[name])) if alarms[name] else None
                result.rows.append({"keypoint": name, "source": part, "tolerance": tolerance, **row})
    rigid = None if detector.faces is None else detector.faces.rigid
    for subset, chosen in subsets_of(result.images, rigid).items():
        for name in keypoints:
            for tolerance in TOLERANCES:
                curve = pooled([result.judged[name, tolerance][i] for i in chosen])
                row = {"subset": subset, "photographs": len(chosen), "keypoint": name, "tolerance": tolerance}
                result.subsets.append(row | {"points": curve.n_points, "ap": curve.average_precision})
    if not alone:
        result.reliability = reliability([one for name in keypoints for one in result.judged[name, TOLERANCES[1]]])
    for part in parts:
        mine = [e for image, made in zip(result.images, errors) if part in ("all", image.source) for e in made]
        known = [e for e in mine if e is not None]
        if mine:
            nme = float(np.mean(known)) if known else None
            result.landmarks.append({"source": part, "faces": len(mine), "found": len(known), "nme": nme})
    return result


def _has_landmarks(detector: KeypointDetector, alone: bool, image: FaceImage) -> bool:
    if alone or detector.faces is None or image.landmarks is None:
        return False
    return len(detector.faces.regressor.mean) == image.landmarks.shape[1]


def _row(judged: list[Judged], default: list[Judged]) -> tuple[Curve, dict]:
    curve, shown = pooled(judged), pooled(default)
    precision, recall = shown.at_threshold(-np.inf)
    false = sum(int((j.outcome == FALSE).sum()) for j in default)
    return curve, {
        "points": curve.n_points,
        "ap": curve.average_precision,
        "recall_at_precision_90": curve.at_precision(PRECISION)[0],
        "precision_at_threshold": precision,
        "recall_at_threshold": recall,
        "false_per_image": false / max(len(judged), 1),
    }


def write_report(folder: Path, record: dict, evaluation: Evaluation) -> None:
    """Write tables (JSON and Markdown), precision-recall curves, and pictures of the best hits and worst misses.

    The pictures show parts of the photographs: mind their terms of use before passing a report on.
    """
    with replacing(folder / "report.json") as path:
        path.write_text(json.dumps(plain(record), indent=1) + "\n", encoding="utf-8")
    table = markdown_table(COLUMNS.values(), ([row.get(column) for column in COLUMNS] for row in evaluation.rows))
    settings = ", ".join(f"{key}: {value}" for key, value in record["settings"].items())
    with replacing(folder / "report.md") as path:
        path.write_text(f"# Face keypoints\n\n{settings}\n\n{table}", encoding="utf-8")
    for tolerance in TOLERANCES:
        _write_curves(folder / f"curves_{100 * tolerance:.0f}.png", evaluation, tolerance)
    for keypoint in dict.fromkeys(name for name, _ in evaluation.curves):
        _write_pictures(folder / f"pictures_{keypoint}.png", evaluation, keypoint)


def _write_curves(path: Path, evaluation: Evaluation, tolerance: float) -> None:
    from matplotlib.figure import Figure

    figure = Figure(figsize=(6, 5), layout="constrained")
    axes = figure.subplots()
    for (keypoint, at), curve in evaluation.curves.items():
        if at == tolerance:
            recall, precision = np.append(0.0, curve.recall), np.append(1.0, curve.precision)
            axes.step(recall, precision, where="pre", label=f"{keypoint} {curve.average_precision:.3f}")
    axes.set(xlim=(0, 1), ylim=(0, 1.01), xlabel="recall", ylabel="precision")
    axes.set_title(f"within {100 * tolerance:.0f} % of the inter-eye distance (AP in the legend)")
    axes.grid(alpha=0.3)
    axes.legend(loc="lower left", fontsize=8)
    with replacing(path) as temporary:
        figure.savefig(temporary, dpi=120)


def _write_pictures(path: Path, evaluation: Evaluation, keypoint: str, columns: int = 8) -> None:
    """Three rows: best hits, best-scoring false detections, and points that nothing hit, in the order of their images."""
    tile, gap = 128, 22
    rows = {
        "best hits": _ranked(evaluation, keypoint, HIT),
        "false detections with the highest scores": _ranked(evaluation, keypoint, FALSE),
        "points that no detection hit": _missed(evaluation, keypoint),
    }
    sheet = np.full((3 * (tile + gap), columns * tile, 3), 32, np.uint8)
    for r, (title, places) in enumerate(rows.items()):
        top = r * (tile + gap)
        cv2.putText(sheet, f"{keypoint}: {title}", (6, top + 15), cv2.FONT_HERSHEY_SIMPLEX, 0.45, (255, 255, 255), 1)
        for c, (image, xy, width) in enumerate(places[:columns]):
            part = _cut(read_image(image.path), xy, width, tile)
            sheet[top + gap : top + gap + tile, c * tile : (c + 1) * tile] = part
    with replacing(path) as temporary:
        temporary.write_bytes(cv2.imencode(".png", cv2.cvtColor(sheet, cv2.COLOR_RGB2BGR))[1].tobytes())


def _ranked(evaluation: Evaluation, keypoint: str, outcome: int) -> list[tuple[FaceImage, np.ndarray, float]]:
    """Image, position and width of the part to show of all detections with that outcome, by falling score."""
    found = []
    for image, judged in zip(evaluation.images, evaluation.judged[keypoint, TOLERANCES[1]]):
        width = 2.5 * float(np.median(image.ied)) if len(image.ied) else 100.0
        found += [(judged.score[i], image, judged.xy[i], width) for i in np.flatnonzero(judged.outcome == outcome)]
    found.sort(key=lambda entry: -entry[0])
    return [(image, xy, width) for _, image, xy, width in found]


def _missed(evaluation: Evaluation, keypoint: str):
    missed = []
    k = KEYPOINTS.index(keypoint)
    for image, judged in zip(evaluation.images, evaluation.judged[keypoint, TOLERANCES[1]]):
        for i in np.flatnonzero(image.visible[:, k]):
            if i not in judged.face:
                missed.append((image, image.faces[i, k], 2.5 * float(image.ied[i])))
    return missed


def _cut(pixels: np.ndarray, xy: np.ndarray, width: float, tile: int) -> np.ndarray:
    """Square part of an image around a point, ``width`` pixels wide, with a cross at the point."""
    zoom = tile / max(width, 8.0)
    matrix = np.array([[zoom, 0, tile / 2 - zoom * xy[0]], [0, zoom, tile / 2 - zoom * xy[1]]])
    part = cv2.warpAffine(pixels, matrix, (tile, tile), flags=cv2.INTER_LINEAR, borderMode=cv2.BORDER_REPLICATE)
    middle = tile // 2
    for colour, thickness in (((0, 0, 0), 3), ((255, 255, 0), 1)):
        cv2.line(part, (middle - 6, middle), (middle + 6, middle), colour, thickness)
        cv2.line(part, (middle, middle - 6), (middle, middle + 6), colour, thickness)
    return part
