"""The report of ``annealed faces evaluate``: tables, precision-recall curves and pictures."""

import json
from pathlib import Path

import cv2
import numpy as np

from ...vision.images import read_image
from ..common.outputs import save_figure, write_texts
from ..console import markdown_table, plain
from .average_precision import FALSE, HIT
from .data import AnnotatedImage
from .drawing import square_around, write_image
from .evaluate import TOLERANCES, Evaluation
from .faces import KEYPOINTS

REPORT_FILES = ("report.json", "report.md", "curves_*.png", "pictures_*.png")

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


def write_report(folder: Path, record: dict, evaluation: Evaluation) -> None:
    """Write tables (JSON and Markdown), precision-recall curves, and pictures of the best hits and
    worst misses.

    The pictures show parts of the photographs: mind their terms of use before passing a report on.
    """
    table = markdown_table(COLUMNS.values(), ([row.get(column) for column in COLUMNS] for row in evaluation.rows))
    settings = ", ".join(f"{key}: {value}" for key, value in record["settings"].items())
    text = f"# Face keypoints\n\n{settings}\n\n{table}"
    write_texts(folder, {"report.json": json.dumps(plain(record), indent=1) + "\n", "report.md": text})
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
    save_figure(path, figure, dpi=120)


def _write_pictures(path: Path, evaluation: Evaluation, keypoint: str, columns: int = 8) -> None:
    """Three rows: best hits, best-scoring false detections, and points that nothing hit, in the
    order of their images.
    """
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
    write_image(path, sheet)


def _ranked(evaluation: Evaluation, keypoint: str, outcome: int) -> list[tuple[AnnotatedImage, np.ndarray, float]]:
    """Image, position and width of the part to show of all detections with that outcome, by falling
    score.
    """
    shown = []
    for image, judged in zip(evaluation.images, evaluation.judged[keypoint, TOLERANCES[1]]):
        width = 2.5 * float(np.median(image.reference_length)) if len(image.reference_length) else 100.0
        shown += [(judged.score[i], image, judged.xy[i], width) for i in np.flatnonzero(judged.outcome == outcome)]
    shown.sort(key=lambda entry: -entry[0])
    return [(image, xy, width) for _, image, xy, width in shown]


def _missed(evaluation: Evaluation, keypoint: str) -> list[tuple[AnnotatedImage, np.ndarray, float]]:
    k = KEYPOINTS.index(keypoint)
    return [
        (image, image.instances[i, k], 2.5 * float(image.reference_length[i]))
        for image, judged in zip(evaluation.images, evaluation.judged[keypoint, TOLERANCES[1]])
        for i in np.setdiff1d(np.flatnonzero(image.visible[:, k]), judged.face)
    ]


def _cut(pixels: np.ndarray, xy: np.ndarray, width: float, tile: int) -> np.ndarray:
    """Square part of an image around a point, with a cross at the point."""
    part = square_around(pixels, xy, width, tile)
    middle = tile // 2
    for colour, thickness in (((0, 0, 0), 3), ((255, 255, 0), 1)):
        cv2.drawMarker(part, (middle, middle), colour, cv2.MARKER_CROSS, 12, thickness)
    return part
