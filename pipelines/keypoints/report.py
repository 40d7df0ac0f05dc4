"""Report on an evaluation or training run as a self-contained HTML page and as JSON."""

from collections.abc import Sequence
from html import escape
from pathlib import Path
from typing import Any

import cv2
import numpy as np

from ... import __version__
from ...models.files import write_texts
from ...models.keypoints import (
    DetectionOptions,
    DetectionResult,
    KeypointDetector,
    of_instances,
    strongest_features,
)
from ...models.keypoints.instances.instance_finder import Instance
from ...models.pages.charts import BLUE, GREY, ORANGE, Axes
from ...models.pages.layout import html_page, small, table
from ..common.data_urls import jpeg_url
from ..console import text
from .data import AnnotatedImage
from .drawing import draw_detections, square_around
from .evaluate import COLUMNS, TOLERANCES, Evaluation
from .measures import FALSE, HIT, TOLERANCE, Curve, errors_of, judge, pooled, score, sizes_of
from .objects import MIN_COMPLETE, rotate_upright

REPORT_FILES, EVALUATION_FILES = (
    ("keypoints.json", "keypoints.html"),
    ("report.json", "report.html"),
)
CHEAP: dict[str, Any] = {
    "n_features": 150,
    "rounds": 1,
}  # settings of the training runs of a learning curve (heuristic)
_N_WORST, _N_FEATURES, _N_WINDOWS, _N_TILES = 6, 6, 40, 8
_SIDE = 144  # side in pixels of a window on the page
_RIGHT = (
    "A point is correct within a tenth of the box&rsquo;s size; the threshold is the probability "
    "of the object."
)


def write_report(
    folder: Path,
    detector: KeypointDetector,
    decided: Sequence[str],
    test: Sequence[AnnotatedImage],
    n_pictures: int,
    learning_curve: Sequence[dict[str, Any]],
) -> dict[str, Any]:
    """Write the report on a training run to an existing folder.

    The files are ``keypoints.html`` and ``keypoints.json``.

    Parameters
    ----------
    folder : path
    detector : KeypointDetector
    decided : sequence of str
        One line of text for each setting that was chosen automatically from the training images.
    test : list of AnnotatedImage
        Held-out images.
    n_pictures : int
        Total number of images, including held-out images.
    learning_curve : list of dict
        Result of `learning_curve`.

    Returns
    -------
    dict
        Content of the JSON file.
    """
    schema = test[0].schema
    results = [
        detector.find(image.pixels(), DetectionOptions(min_probability=0.0)) for image in test
    ]
    sure = [[one for one in result.instances if one.probability >= 0.5] for result in results]
    points = [
        [np.array([one.keypoints[n][:2] for n in schema.keypoints]) for one in some]
        for some in sure
    ]
    rows, curves = score(test, points), _curves(test, results)
    for row in rows:
        row["average_precision"] = curves[row["keypoint"]].average_precision
    anchors = [] if detector.schema is None else detector.schema.anchors
    settings = {
        "keypoints": schema.keypoints,
        "anchors": anchors,
        "pictures": n_pictures,
        "held_out": len(test),
    }
    record = {
        "name": "keypoints train",
        "settings": settings,
        "decisions": decided,
        "rows": rows,
        "learning_curve": learning_curve,
    }
    body = (
        _summary(record)
        + _precision_recall(curves)
        + _errors(record)
        + _worst(test, sure, points)
        + _more_pictures(record, sum(len(image.instances) for image in test))
        + _looks(detector, test)
        + _how(record)
    )
    page = html_page(
        f"{schema.category}: keypoints", f"Training report: detector of {schema.category}", body
    )
    write_texts(folder, dict(zip(REPORT_FILES, (record, page))))
    return record


def write_evaluation(
    folder: Path, record: dict[str, Any], evaluation: Evaluation, measure: str
) -> None:
    """Write the report on an evaluation to an existing folder.

    The files are ``report.html`` and ``report.json``. The report contains parts of the photographs,
    so check their terms of use before you share the report.
    """
    body = small(escape(", ".join(f"{key}: {value}" for key, value in record["settings"].items())))
    columns = COLUMNS[measure]
    body += table(
        [*columns.values()],
        [[text(row.get(column)) for column in columns] for row in record["rows"]],
    )
    for tolerance in TOLERANCES if evaluation.judged else ():
        of = {name: some for (name, at), some in evaluation.judged.items() if at == tolerance}
        of["all"] = [one for some in of.values() for one in some]
        words = f"A point is correct within {tolerance:.0%} of the reference length."
        body += _precision_recall({name: pooled(some) for name, some in of.items()}, words)
    for keypoint in dict.fromkeys(name for name, _ in evaluation.judged):
        rows = {
            "best hits": _ranked(evaluation, keypoint, HIT),
            "false detections with the highest scores": _ranked(evaluation, keypoint, FALSE),
            "points that no detection hit": _missed(evaluation, keypoint),
        }
        body += f"<h2>{escape(keypoint)}</h2>"
        for title, places in rows.items():
            if tiles := [
                _crossed(image.pixels(), xy, width) for image, xy, width in places[:_N_TILES]
            ]:
                body += (
                    f'<figure><img src="{jpeg_url(np.hstack(tiles))}" '
                    f'alt=""><figcaption>{title}</figcaption></figure>'
                )
    write_texts(
        folder,
        dict(zip(EVALUATION_FILES, (record, html_page(record["name"], record["name"], body)))),
    )


def _ranked(
    evaluation: Evaluation, keypoint: str, outcome: int
) -> list[tuple[AnnotatedImage, np.ndarray, float]]:
    """Return the image, position and crop width of all detections with the given outcome, by
    decreasing score."""
    shown = []
    for image, judged in zip(evaluation.images, evaluation.judged[keypoint, TOLERANCES[1]]):
        lengths = image.reference_length
        width = 2.5 * float(np.median(lengths)) if len(lengths) else 100.0
        shown += [
            (judged.score[i], image, judged.xy[i], width)
            for i in np.flatnonzero(judged.outcome == outcome)
        ]
    return [
        (image, xy, width) for _, image, xy, width in sorted(shown, key=lambda entry: -entry[0])
    ]


def _missed(
    evaluation: Evaluation, keypoint: str
) -> list[tuple[AnnotatedImage, np.ndarray, float]]:
    k = evaluation.images[0].schema.keypoints.index(keypoint)
    return [
        (image, image.instances[i, k], 2.5 * float(image.reference_length[i]))
        for image, judged in zip(evaluation.images, evaluation.judged[keypoint, TOLERANCES[1]])
        for i in np.setdiff1d(np.flatnonzero(image.visible[:, k]), judged.face)
    ]


def _crossed(pixels: np.ndarray, xy: np.ndarray, width: float) -> np.ndarray:
    """Return a square crop around a point, with a cross at the point."""
    part = square_around(pixels, xy, width, _SIDE)
    for colour, thickness in (((0, 0, 0), 3), ((255, 255, 0), 1)):
        cv2.drawMarker(part, (_SIDE // 2, _SIDE // 2), colour, cv2.MARKER_CROSS, 12, thickness)
    return part


def _curves(
    images: Sequence[AnnotatedImage], results: Sequence[DetectionResult]
) -> dict[str, Curve]:
    """Compute the precision and recall of each keypoint within `TOLERANCE`, and of all keypoints,
    at decreasing object probabilities."""
    judged: dict[str, list] = {name: [] for name in images[0].schema.keypoints}
    for image, result in zip(images, results):
        probability = [instance.probability for instance in result.instances]
        for k, name in enumerate(judged):
            xy = [instance.keypoints[name][:2] for instance in result.instances]
            judged[name].append(
                judge(
                    xy,
                    probability,
                    image.instances[:, k],
                    image.visible[:, k],
                    sizes_of(image),
                    image.ignore,
                    TOLERANCE,
                )
            )
    return {name: pooled(some) for name, some in judged.items()} | {
        "all": pooled([one for some in judged.values() for one in some])
    }


def _summary(record: dict[str, Any]) -> str:
    whole, s = record["rows"][-1], record["settings"]
    return (
        f"<p>On {s['held_out']} of {s['pictures']} images, which were held out, "
        f"<b>{whole['pck']:.1%}</b> of the "
        "visible points lie within a tenth of the box&rsquo;s size (PCK), and there are "
        f"{whole['false_per_image']:.2g} false objects per image.</p>"
    ) + small(
        "Thresholds and probabilities were set on these images, so new images are slightly harder. "
        "Evaluate other images with <code>annealed keypoints evaluate</code>."
    )


def _precision_recall(curves: dict[str, Curve], right: str = _RIGHT) -> str:
    worst = min(
        (name for name in curves if name != "all"), key=lambda name: curves[name].average_precision
    )
    axes = Axes((0.0, 1.0), (0.0, 1.0), width=460, height=360)
    axes.frame("recall", "precision")
    for name, curve in sorted(
        curves.items(), key=lambda item: (item[0] == "all", item[0] == worst)
    ):
        colour = BLUE if name == "all" else ORANGE if name == worst else GREY
        axes.line(np.append(0.0, curve.recall), np.append(1.0, curve.precision), colour)
    words = (
        f"Blue: all points, average precision {curves['all'].average_precision:.3f}. Orange: "
        f"{escape(worst)}, the hardest, "
        f"{curves[worst].average_precision:.3f}. Grey: the others. {right}"
    )
    return f"<h2>Precision and recall</h2>{axes.svg('precision against recall')}{small(words)}"


def _errors(record: dict[str, Any]) -> str:
    columns, anchors = [*COLUMNS["pck"], "average_precision"], record["settings"]["anchors"]
    rows = [
        [text(row[column]) for column in columns] + ["yes" if row["keypoint"] in anchors else ""]
        for row in record["rows"]
    ]
    head = [*COLUMNS["pck"].values(), "average precision", "own detector"]
    words = (
        "Median error of the points of detected objects, relative to the size of the box. Points "
        "without a detector are inferred from the shape."
    )
    return f"<h2>Errors by point</h2>{table(head, rows, bold=len(rows) - 1)}{small(words)}"


def _worst(
    images: Sequence[AnnotatedImage],
    sure: Sequence[Sequence[Instance]],
    points: Sequence[Sequence[np.ndarray]],
) -> str:
    """Return the images with the largest errors; a missing or false object counts as 1."""
    judged = [errors_of(image, detected) for image, detected in zip(images, points)]
    size = [
        float(np.nansum(np.minimum(errors, 1.0).mean(axis=1))) + false for errors, false in judged
    ]
    figures = []
    for i in np.argsort(size, kind="stable")[::-1][:_N_WORST]:
        pixels = images[i].pixels().copy()
        side = max(
            5, round(0.1 * float(np.median(sizes_of(images[i]))) if len(images[i].instances) else 5)
        )
        for x, y in images[i].instances[images[i].visible].round().astype(int).tolist():
            for colour, thick in (((0, 0, 0), 3), ((255, 255, 255), 1)):
                cv2.drawMarker(
                    pixels,
                    (x, y),
                    colour,
                    cv2.MARKER_CROSS,
                    side,
                    thick * max(1, min(pixels.shape[:2]) // 400),
                )
        drawn = jpeg_url(
            draw_detections(
                pixels, of_instances(sure[i], images[i].schema.keypoints, 1.0), sure[i]
            ),
            460,
        )
        caption = (
            f"{images[i].name}: {np.isposinf(judged[i][0]).all(axis=1).sum()} missing, "
            f"{judged[i][1]} false"
        )
        figures.append(
            f'<figure><img src="{drawn}" alt="" '
            f'width="300"><figcaption>{escape(caption)}</figcaption></figure>'
        )
    words = (
        "Crosses: annotated points. Discs and boxes: detections, with the probability of the "
        "object."
    )
    return (
        "<h2>Images with the largest errors</h2><div "
        f'class="curves">{"".join(figures)}</div>{small(words)}'
    )


def _more_pictures(record: dict[str, Any], n_objects: int) -> str:
    rows, title = record["learning_curve"], "<h2>Learning curve</h2>"
    if len(rows) < 2:
        return f"{title}<p>There are too few images for a learning curve.</p>"
    axes = Axes((0.0, rows[-1]["pictures"]), (0.0, 1.0), width=460, height=300)
    numbers, values = [row["pictures"] for row in rows], [row["pck"] for row in rows]
    axes.frame("images", "PCK", x_ticks=numbers)
    axes.line(numbers, values)
    for a, b in zip(*axes.at(numbers, values)):
        axes.add(f'<circle cx="{a:.1f}" cy="{b:.1f}" r="4" fill="{BLUE}" stroke="white"/>')
    gain, noise = (
        values[-1] - values[-2],
        float(np.sqrt(2 * max(values[-1] * (1 - values[-1]), 0.01) / n_objects)),
    )
    advice = (
        "More images are likely to help"
        if gain > noise
        else "More images of this kind are unlikely to help"
    )
    words = (
        f"Retrained on {', '.join(map(str, numbers))} of the images, with at most "
        f"{CHEAP['n_features']} features and one "
        "round of mining (cheaper than the detector itself), and evaluated on the same images "
        "as above."
    )
    change = (
        f"From {numbers[-2]} to {numbers[-1]} images the PCK changed by {gain:+.3f}; chance "
        f"alone makes about {noise:.3f}"
    )
    return (
        f"{title}<p>{change}. {advice}.</p>"
        f"{axes.svg('PCK against the number of images')}{small(words)}"
    )


def _looks(detector: KeypointDetector, images: Sequence[AnnotatedImage]) -> str:
    """Draw the mean window of each point that has a detector, overlaid with its strongest
    features."""
    schema, body = images[0].schema, ""
    shown = [image for image in images if len(image.instances)][:_N_WINDOWS]
    # too few objects to estimate their rotation, so they are shown as in the images
    known = sum(len(image.instances) for image in shown) >= MIN_COMPLETE
    shown = shown if schema.upright or not known else rotate_upright(shown)
    side = detector.pool.window / detector.reference_length
    pixels = [image.pixels() for image in shown]
    for name, features in strongest_features(detector, _N_FEATURES).items():
        k, windows = schema.keypoints.index(name), []
        for image, pixel in zip(shown, pixels):
            for points, seen, unit in zip(
                image.instances[:, k], image.visible[:, k], image.reference_length
            ):
                windows += [square_around(pixel, points, side * unit, _SIDE)] if seen else []
        if windows:
            mean = jpeg_url(np.mean(windows, axis=0).astype(np.uint8))
            tiles = "".join(_tile(mean, feature, detector.pool.window) for feature in features)
            body += f'<h3>{escape(name)}</h3><div class="curves">{tiles}</div>'
    words = (
        f"The mean of up to {_N_WINDOWS} windows, and the strongest features of each detector: "
        "green areas are compared with "
        "orange ones; a blue line counts edges that run along it."
    )
    return f"<h2>The features of each detector</h2>{small(words)}{body}"


def _tile(mean: str, feature: dict[str, Any], window: int) -> str:
    unit, parts = _SIDE / window, [f'<image href="{mean}" width="{_SIDE}" height="{_SIDE}"/>']
    for x, y, width, height, weight in feature["cells"]:
        fill = "none" if "angle" in feature else "#40e0a0" if weight > 0 else "#eb8214"
        place = (
            f'x="{x * unit:.1f}" y="{y * unit:.1f}" width="{width * unit:.1f}" '
            f'height="{height * unit:.1f}"'
        )
        parts.append(
            f'<rect {place} fill="{fill}" fill-opacity="0.45" '
            f'stroke="{"#2f86c9" if fill == "none" else "#222"}"/>'
        )
        if "angle" in feature:  # an edge is perpendicular to its gradient
            edge = np.exp(1j * (feature["angle"] + np.pi / 2)) * 0.42 * unit
            a, b = (x + width / 2) * unit, (y + height / 2) * unit
            dx, dy = edge.real * width, edge.imag * height
            line = f'x1="{a - dx:.1f}" y1="{b - dy:.1f}" x2="{a + dx:.1f}" y2="{b + dy:.1f}"'
            parts.append(f'<line {line} stroke="#2f86c9" stroke-width="4"/>')
    title = escape(feature["name"])
    return (
        f'<svg viewBox="0 0 {_SIDE} {_SIDE}" width="{_SIDE}" '
        f'role="img"><title>{title}</title>{"".join(parts)}</svg>'
    )


def _how(record: dict[str, Any]) -> str:
    lines = "".join(f"<li>{escape(line)}</li>" for line in record["decisions"])
    return f"<h2>Settings chosen</h2><ul>{lines}</ul>{small(f'annealed {__version__}.')}"
