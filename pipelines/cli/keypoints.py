"""``annealed keypoints``: train, evaluate and use a detector of the points of any object."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from .. import console
from ..console import AsJson, Dask, Quiet, command_of, new_app
from .faces import detect as detect_faces

if TYPE_CHECKING:
    from ...models.keypoints.detector import KeypointDetector

app = new_app(help="Keypoints of any object, from annotated pictures.")

Data = Annotated[Path, typer.Option(help="Folder with images and COCO JSON or keypoints.csv.")]
Schema = Annotated[Path | None, typer.Option(help="TOML file: names, mirror pairs, skeleton, length, upright; else by the data.")]
Background = Annotated[Path | None, typer.Option(help="Folder of images without objects; by default 'background' in DATA.")]
Trained = Annotated[str, typer.Option(help="Model file that `keypoints train` wrote.")]


def _empty(data: Path, background: Path | None) -> list[Path]:
    """Paths of images without objects."""
    from ..common.image_folders import list_images

    folder = data / "background" if background is None else background
    return list_images(folder) if background or folder.is_dir() else []


@command_of(app)
def train(
    data: Data,
    out: Annotated[Path, typer.Option(help="Model file to write; checkpoints go beside it.")],
    schema: Schema = None,
    category: Annotated[str | None, typer.Option(help="Which category, where the file has several.")] = None,
    rotation: Annotated[str | None, typer.Option(help="upright, or free: objects stand in any direction.")] = None,
    mirrored: Annotated[
        bool | None, typer.Option(help="Whether mirror images serve training; by default with mirror pairs.")
    ] = None,
    background: Background = None,
    window: Annotated[float | None, typer.Option(help="Side of the windows in reference lengths; by default by trials.")] = None,
    anchor: Annotated[list[str] | None, typer.Option(help="A point with a detector of its own; by default by trials.")] = None,
    features: Annotated[int | None, typer.Option(help="Features of each detector.")] = None,
    rounds: Annotated[int | None, typer.Option(help="Rounds of hard-negative mining, at most.")] = None,
    report: Annotated[Path | None, typer.Option(help="Folder for a page about the training: errors, worst pictures, ...")] = None,
    resume: Annotated[bool, typer.Option("--resume", help="Go on from the last checkpoint.")] = False,
    jobs: Annotated[int, typer.Option(help="Threads, at most one per core (0); the model does not depend on it.")] = 0,
    dask: Dask = None,
    quiet: Quiet = False,
) -> None:
    """Train a detector; what is not given is decided from the pictures, and printed.

    \b
    Examples:
      annealed keypoints train --data dials --out dial.safetensors
      annealed keypoints train --data screws --out screw.safetensors --rotation free --report page
    """
    from dataclasses import replace

    from ..common.config import check_names
    from ..common.file_map import jobs_or_map
    from ..common.outputs import check_outputs, make_folder
    from ..keypoints.data import schema_of
    from ..keypoints.objects import check_number, read_objects
    from ..keypoints.report import REPORT_FILES, write_report
    from ..keypoints.training.train import train_keypoints

    known, empty = schema_of(data, schema, category), _empty(data, background)
    check_names("rotation", [rotation] if rotation else [], ("upright", "free"))
    known = replace(known, upright=known.upright if rotation is None else rotation == "upright")
    known = known if mirrored is None else replace(known, mirrored=mirrored)
    anchors = tuple(dict.fromkeys(anchor or known.anchors))
    given: dict[str, Any] = {"side": window, "anchors": anchors, "n_features": features, "rounds": rounds}
    check_names("anchor", anchors, known.keypoints)
    if len(anchors) == 1:
        raise ValueError(f"--anchor {anchors[0]}: expected two or more, or none")
    for name, value, least in (("window", window, 0.1), ("features", features, 1), ("rounds", rounds, 0)):
        if value is not None and not least <= value <= 100_000:
            raise ValueError(f"--{name} {value}: expected a number of at least {least:g}")
    check_outputs([data, background, schema], model=out, report=report, report_files=REPORT_FILES)
    images = read_objects(data, known)
    few = check_number(images)
    n = sum(len(image.instances) for image in images)
    n_jobs = jobs_or_map(jobs, dask, len(images) + len(empty), quiet)
    console.say(few or f"{len(images)} pictures with {n} of {known.category!r}, {len(empty)} without", quiet)
    say = lambda line: console.say(line, quiet)  # noqa: E731
    made, decisions = train_keypoints(images, empty, out, resume, say, n_jobs, **given)
    if report is not None:
        make_folder(report)
        write_report(report, made, decisions, images, empty, say, n_jobs=n_jobs)


def _detector(model: str, command: str) -> KeypointDetector:
    """The detector of objects in a model file; faces have a command of their own."""
    detector = console.load_model_of("keypoint detector", model)
    if detector.category is None:
        raise ValueError(f"{model}: a detector of faces; expected one of other objects, or the command: annealed faces {command}")
    return detector


@command_of(app)
def detect(
    images: Annotated[list[str], typer.Argument(metavar="INPUT", help="Images, folders, patterns, -, a video, or: camera 0.")],
    model: Trained,
    min_probability: Annotated[float | None, typer.Option(help="Least probability of an object, 0.5 by default; 0: all.")] = None,
    min_size: Annotated[float | None, typer.Option(help="Smallest detection window, in image pixels.")] = None,
    max_size: Annotated[float | None, typer.Option(help="Largest detection window, in image pixels.")] = None,
    every: Annotated[int, typer.Option(help="Of a video or camera: process every N-th frame.")] = 1,
    jobs: Annotated[int, typer.Option(help="Photographs at a time, at most one per core (0).")] = 1,
    dask: Dask = None,
    table: Annotated[Path | None, typer.Option(help="Table to write, .csv or .parquet: a row per object.")] = None,
    coco: Annotated[Path | None, typer.Option(help="COCO keypoints to write, .json.")] = None,
    resume: Annotated[bool, typer.Option("--resume", help="Go on with a table or COCO file after an interruption.")] = False,
    overlay: Annotated[Path | None, typer.Option(help="Picture or video to write; a folder for several images.")] = None,
    as_json: AsJson = False,
    quiet: Quiet = False,
) -> None:
    """Find objects and their points in photographs and videos.

    \b
    Examples:
      annealed keypoints detect shelf.jpg --model dial.safetensors --overlay found.png
      annealed keypoints detect photographs --model dial.safetensors --coco found.json
    """
    _detector(model, "detect")
    searched = {"min_probability": min_probability, "min_size": min_size, "max_size": max_size, "every": every}
    files = {"table": table, "coco": coco, "resume": resume, "overlay": overlay}
    detect_faces(images, model, **searched, **files, jobs=jobs, dask=dask, as_json=as_json, quiet=quiet)


@command_of(app)
def evaluate(data: Data, model: Trained, background: Background = None, as_json: AsJson = False, quiet: Quiet = False) -> None:
    """Share of points within a tenth of the box's size, by keypoint, and false objects.

    \b
    Examples:
      annealed keypoints evaluate --data new_dials --model dial.safetensors
      annealed keypoints evaluate --data new --model dial.safetensors --background empty --json
    """
    from ..keypoints.box_measures import COLUMNS, evaluate_keypoints
    from ..keypoints.data import read_annotations

    detector = _detector(model, "evaluate")
    assert detector.schema is not None  # it names the category
    images, empty = read_annotations(data, detector.schema), _empty(data, background)
    rows = evaluate_keypoints(detector, images, empty, lambda it, n: console.progress(it, quiet, "images", n))
    settings = {"data": str(data), "model": model, "images": len(images), "background": len(empty)}
    console.print_answer({"name": "keypoints evaluate", "settings": settings, "rows": rows}, as_json, "", COLUMNS)
