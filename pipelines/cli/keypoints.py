"""Commands ``annealed keypoints``, for keypoint detectors of any kind of object."""

from __future__ import annotations

import re
import tempfile
import time
from collections.abc import Callable, Generator, Iterator, Sequence
from contextlib import ExitStack
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Annotated

import typer
from typer import Argument, Option

from ... import models
from .. import common, console, keypoints
from ..console import AsJson, Dask, Model, Quiet, command_of, new_app, with_options

app = new_app(help="Train and run keypoint detectors for any kind of object.")

EXPERT = partial(Option, rich_help_panel="Expert options")
_OUTPUT = partial(Option, rich_help_panel="Output")

Words = list[str] | None
Keypoints = Annotated[
    Words, Option("--keypoint", metavar="NAME", help="Report only this keypoint; repeatable.")
]
Mode = Annotated[
    str | None,
    EXPERT(
        metavar="MODE",
        help="Search mode: scan (all windows), regress, or prune+regress (fastest, the default).",
    ),
]
Assembly = Annotated[
    str | None,
    EXPERT(
        metavar="NAME",
        help="Assembly of objects: 2d, 3d, or none (default: set by the model).",
    ),
]
Data = Annotated[
    Path,
    Option(
        metavar="FOLDER",
        help="Folder of images with annotations in keypoints.csv, COCO or another format.",
    ),
]
Background = Annotated[
    Path | None,
    Option(metavar="FOLDER", help="Folder of images without objects (default: DATA/background)."),
]
Out = Annotated[
    Path,
    Option(
        "--out",
        "-o",
        metavar="FILE",
        help="Model file to write; checkpoints are stored next to it.",
    ),
]
Resume = Annotated[bool, Option("--resume", help="Resume from the last checkpoint.")]
Threads = Annotated[
    int,
    Option(
        metavar="N", help="Number of threads (0: one per core), which does not affect the model."
    ),
]


def background_images(folder: Path | None, beside: Path | None = None) -> list[Path]:
    """Return the paths of images without objects.

    These are the images in ``folder`` or, by default, in the subfolder ``background`` of the data
    folder ``beside``, if it exists.
    """
    default = None if beside is None else beside / "background"
    return (
        common.list_images(folder)
        if folder
        else common.list_images(default)
        if default and default.is_dir()
        else []
    )


def _detector(model: str, group: str, command: str) -> models.KeypointDetector:
    """Load the detector in a model file, and reject face detectors in ``annealed keypoints``."""
    detector: models.KeypointDetector = console.load_model_of("keypoint detector", model)
    if detector.category is None and group == "keypoints":
        raise ValueError(
            f"{model}: the model is a face detector; use another model, or the command annealed "
            f"faces {command}"
        )
    return detector


@command_of(app)
def train(
    data: Data,
    out: Out,
    background: Background = None,
    resume: Resume = False,
    jobs: Threads = 0,
    dask: Dask = None,
    schema: Annotated[
        Path | None,
        Option(
            metavar="FILE",
            help="TOML file with names, mirror pairs, skeleton, reference length and orientation.",
        ),
    ] = None,
    category: Annotated[
        str | None,
        Option(metavar="NAME", help="Category to train, if the annotations have several."),
    ] = None,
    rotation: Annotated[
        str | None,
        Option(metavar="NAME", help="Orientation of the objects: upright or free."),
    ] = None,
    mirrored: Annotated[
        bool | None,
        Option(help="Also train on mirror images (default: if the schema has mirror pairs)."),
    ] = None,
    window: Annotated[
        float | None,
        Option(help="Size of the detection window in reference lengths (default: tuned)."),
    ] = None,
    anchor: Annotated[
        Words,
        Option(
            metavar="NAME", help="Keypoint with a separate detector (default: tuned); repeatable."
        ),
    ] = None,
    features: Annotated[
        int | None, Option(metavar="N", help="Number of features of each detector.")
    ] = None,
    rounds: Annotated[
        int | None, Option(metavar="N", help="Maximum number of rounds of hard-negative mining.")
    ] = None,
    report: Annotated[
        Path | None,
        Option(
            metavar="FOLDER",
            help="Folder for a report with errors, worst images and a learning curve.",
        ),
    ] = None,
    quiet: Quiet = False,
) -> None:
    """Train a detector. Options that are not given are tuned on the images, and their values are
    printed.

    \b
    Examples:
      annealed keypoints train --data dials --out dial.safetensors
      annealed keypoints train --data screws --out screw.safetensors --rotation free --report page
    """

    from ..keypoints.training.train import held_out_images, learning_curve, train_keypoints

    known, empty = keypoints.schema_of(data, schema, category), background_images(background, data)
    common.check_names("rotation", [rotation] if rotation else [], ("upright", "free"))
    if rotation is not None:
        known = replace(known, upright=rotation == "upright")
    known = known if mirrored is None else replace(known, mirrored=mirrored)
    anchors = tuple(dict.fromkeys(anchor or known.anchors))
    common.check_names("anchor", anchors, known.keypoints)
    if len(anchors) == 1:
        raise ValueError(
            f"--anchor {anchors[0]} is not valid; expected at least two keypoints, or no --anchor"
        )
    for name, value, minimum in (
        ("window", window, 0.1),
        ("features", features, 1),
        ("rounds", rounds, 0),
    ):
        if value is not None and not minimum <= value <= 100_000:
            raise ValueError(
                f"--{name} {value} is not valid; expected a number in [{minimum:g}, 100000]"
            )
    common.check_outputs(
        [data, background, schema],
        model=out,
        report=report,
        report_files=keypoints.REPORT_FILES,
    )
    images = keypoints.read_objects(data, known)
    few = keypoints.check_number(images)
    n = sum(len(image.instances) for image in images)
    n_jobs = common.resolve_jobs(jobs, dask, len(images) + len(empty), quiet)
    console.log(
        few or f"{len(images)} images with {n} of {known.category!r}, {len(empty)} without", quiet
    )
    log = lambda line: console.log(line, quiet)  # noqa: E731
    if turned := keypoints.check_rotation(images):
        log(turned)
    made, decisions = train_keypoints(
        images,
        empty,
        out,
        resume,
        log,
        n_jobs,
        side=window,
        anchors=anchors,
        n_features=features,
        rounds=rounds,
    )
    if report is not None:
        common.make_folder(report)
        test = held_out_images(made, images)
        curve = learning_curve(images, test, empty, decisions, log, n_jobs=n_jobs)
        keypoints.write_report(report, made, decisions.lines(), test, len(images), curve)


@command_of(app)
def frames(
    video: Annotated[Path, Argument(metavar="VIDEO", help="Video file.")],
    out: Annotated[
        Path, Argument(metavar="OUT", help="New folder for the frames, named by their number.")
    ],
    n: Annotated[int, Option("--n", metavar="N", help="Number of frames.")] = 50,
    quiet: Quiet = False,
) -> None:
    """Extract the most diverse frames of a video for labelling, and print their paths.

    \b
    Examples:
      annealed keypoints frames factory.mp4 pictures
      annealed keypoints frames factory.mp4 pictures --n 100
    """
    paths = common.write_frames(video, out, n)
    if len(paths) < n:
        console.log(f"{video}: only {len(paths)} distinct frames; expected {n}", quiet)
    for path in paths:
        typer.echo(path)


def _video_source(images: Sequence[str]) -> str | int | None:
    """Return the source given by the arguments: a video file, a camera number (``camera 0``), or
    None for photographs."""
    if images and images[0] == "camera" and not Path("camera").is_file():
        if len(images) != 2 or not images[1].isdigit():
            raise ValueError(
                f"camera {' '.join(images[1:])} is not valid; expected the number of a camera, "
                "such as camera 0"
            )
        return int(images[1])
    for name in images:
        if re.fullmatch(r"(camera|webcam|cam)?[:=]?\d+", name) and not Path(name).exists():
            raise ValueError(f"{name}: no such file; use camera 0 to read from a camera")
    videos = [name for name in images if Path(name).suffix.lower() in common.VIDEO_SUFFIXES]
    if not videos:
        return None
    if len(images) > 1:
        raise ValueError(
            f"{videos[0]}: a video must be the only input, but {len(images)} inputs were given; "
            "expected a single video"
        )
    return videos[0]


def run_detection(
    group: str,
    model: Annotated[
        list[str],
        Option(metavar="MODEL", help="Shipped model, or model file; one for each category."),
    ],
    images: Annotated[
        Words,
        Argument(
            metavar="INPUT",
            help="Images, folders, patterns, - (list on stdin), a video, or camera 0.",
        ),
    ] = None,
    keypoint: Keypoints = None,
    min_probability: Annotated[
        float | None, Option(help="Minimum probability of an object (default 0.5; 0 keeps all).")
    ] = None,
    threshold: Annotated[
        float | None,
        EXPERT(help="Minimum score of a keypoint, whether or not it belongs to an object."),
    ] = None,
    min_size: Annotated[
        float | None, Option(help="Smallest detection window in image pixels.")
    ] = None,
    max_size: Annotated[float | None, Option(help="Largest detection window in image pixels.")] = (
        None
    ),
    roll: Annotated[
        float | None,
        Option(
            metavar="DEGREES",
            help="Angle of a second, rotated search, or 0 for none (default: 30 for faces in "
            "photographs, else 0).",
        ),
    ] = None,
    boxes: Annotated[
        Path | None,
        Option(
            metavar="FILE",
            help="CSV file of known boxes (image, x0, y0, x1, y1) in which to locate keypoints.",
        ),
    ] = None,
    mode: Mode = None,
    assembly: Assembly = None,
    landmarks: Annotated[
        bool, Option("--landmarks", help="Report all landmarks in addition to the keypoints.")
    ] = False,
    every: Annotated[
        int, Option(metavar="N", help="Process every N-th frame of a video or camera.")
    ] = 1,
    smooth: Annotated[
        str,
        Option(
            metavar="auto|off|HZ",
            help="Smoothing of points over time: auto (5 Hz), off, or the cut-off frequency in Hz.",
        ),
    ] = "auto",
    jobs: Annotated[
        int,
        Option(metavar="N", help="Number of parallel processes (0: one per core)."),
    ] = 1,
    dask: Dask = None,
    out: Annotated[
        Path | None,
        _OUTPUT(
            "--out",
            "-o",
            metavar="FILE",
            help="Table to write (.csv or .parquet), with one row per object.",
        ),
    ] = None,
    table: Annotated[Path | None, Option(hidden=True)] = None,
    coco: Annotated[
        Path | None, _OUTPUT(metavar="FILE", help="COCO keypoint file to write (.json).")
    ] = None,
    crops: Annotated[
        Path | None,
        _OUTPUT(
            metavar="FOLDER",
            help="Folder for crops, which are eye-aligned faces or squares around other objects.",
        ),
    ] = None,
    size: Annotated[
        int, _OUTPUT(metavar="PIXELS", help="Side length of the crops in pixels.")
    ] = 112,
    resume: Annotated[
        bool,
        _OUTPUT("--resume", help="Resume an interrupted run that writes a table or COCO file."),
    ] = False,
    overlay: Annotated[
        Path | None,
        _OUTPUT(
            metavar="PATH",
            help="Image or video on which to draw the detections, or a folder for several images.",
        ),
    ] = None,
    as_json: AsJson = False,
    quiet: Quiet = False,
) -> None:
    """Detect keypoints in files, print them, and write all requested outputs."""

    images = list(images or ())
    if not images and group == "keypoints":
        raise ValueError(
            "no INPUT was given; expected images, folders, patterns, a video, or camera 0"
        )
    if images and images[0] != "camera":
        images = common.list_inputs(images, (crops, overlay))
    source = _video_source(images)
    detectors = [_detector(name, group, "detect") for name in model]
    categories = [one.category or "face" for one in detectors]
    if len(set(categories)) < len(categories):
        raise ValueError(
            f"--model {' '.join(model)}: the models have the categories "
            f"{', '.join(categories)}; expected one model for each category"
        )
    if len(detectors) > 1 and (source is not None or keypoint or boxes):
        raise ValueError(
            f"--model {' '.join(model)}: expected a single model for a video, --keypoint or --boxes"
        )
    # many frames contain no object, so they are searched only once
    roll = 0.0 if roll is None and source is not None else roll
    known = None if boxes is None else _known_boxes(boxes, [] if source is not None else images)
    if source is not None and dask is not None:
        raise ValueError(f"--dask {dask} is not available for videos and cameras; pass photographs")
    options = models.DetectionOptions(
        keypoint or None,
        threshold,
        min_size,
        max_size,
        mode=mode,
        assembly=assembly,
        min_probability=min_probability,
        roll=roll,
    )
    resolved, *_ = [one.resolve(options) for one in detectors]
    common.check_integer("--every", every, 1)
    if table is not None:
        out = console.renamed(table, "--table", out, "--out")
    if resume and (source is not None or not (out or coco)):
        raise ValueError("--resume is only available for photographs with --out or --coco")
    pictures = [] if overlay is None else _overlays(overlay, images, source is not None, model)
    forms, finished = keypoints.Forms(out, coco, crops, size, landmarks), None
    if out or coco or crops:
        forms.check([*images, *model], resolved)
    with tempfile.TemporaryDirectory() as folder, ExitStack() as stack:
        if forms.files and source is not None:
            finished = keypoints.Finished(Path(folder) / "results", {})
        elif forms.files:
            inputs = images if known is None else [*images, repr(known)]
            finished = forms.unfinished(
                [models.resolve_model(name) for name in model], inputs, options, resume
            )
        if finished is not None:
            stack.callback(finished.close)
        todo = images[finished.n :] if finished is not None else images
        results: Iterator[keypoints.FileDetections] = iter(())
        if source is not None:
            results = keypoints.detect_video(detectors[0], source, options, every, overlay, smooth)
        elif todo or not images:
            file_map = None
            if jobs != 1 or dask is not None:
                file_map = common.make_file_map(jobs, dask, max(1, len(todo)), quiet)
            # the choice depends on all images, so that a resumed run gives the same numbers
            results = keypoints.detect_files(
                detectors,
                todo,
                options,
                file_map,
                common.are_few(images),
                bool(pictures or crops),
                known,
            )
        assembled = resolved.assembly != "none"
        n_failed = _output(
            results, finished, images, source, pictures, forms, assembled, as_json, quiet
        )
        if finished is not None:
            forms.write(finished, detectors)
            finished.remove()
    console.end(max(1, len(images)), n_failed)


@command_of(app)
@with_options(run_detection)
def detect(run: Callable[[str], None]) -> None:
    """Detect objects and their keypoints in photographs and videos.

    \b
    Examples:
      annealed keypoints detect shelf.jpg --model dial.safetensors --overlay found.png
      annealed keypoints detect photographs --model dial.safetensors --coco found.json
    """
    run("keypoints")


def _known_boxes(path: Path, images: list[str]) -> dict[str, list[list[float]]]:
    """Return the boxes of known objects for each photograph name."""
    names = {Path(name).name for name in images}
    if len(names) != len(images) or not images:
        raise ValueError(f"--boxes {path} requires photographs with distinct names")
    return keypoints.read_boxes(path, names.__contains__, "one of the photographs")


def _overlays(overlay: Path, images: list[str], is_video: bool, model: Sequence[str]) -> list[Path]:
    """Return the overlay images to write. The names of images or of a video are checked before any
    detection."""

    pictures = (
        [] if is_video else common.overlay_paths(images or [keypoints.SAMPLE], overlay, "keypoints")
    )
    if is_video:
        common.check_video_name(overlay)
    elif len(images) > 1:
        common.make_folder(overlay)
    common.check_outputs([*images, *model], pictures or [overlay])
    for picture in {path.suffix: path for path in pictures}.values():
        keypoints.check_image_name(picture)
    return pictures


def _output(
    results: Iterator[keypoints.FileDetections],
    finished: keypoints.Finished | None,
    images: list[str],
    source: str | int | None,
    pictures: list[Path],
    forms: keypoints.Forms,
    assembled: bool,
    as_json: bool,
    quiet: bool,
) -> int:
    """Print the result of each photograph or frame, starting with those of an earlier run, and
    write its images. Return the number of failures."""
    from ...learners.compilation import seconds_compiling

    n_failed, stems = 0, common.distinct_stems(images or [keypoints.SAMPLE])

    def report(record: dict) -> None:
        nonlocal n_failed
        if "error" in record:
            console.print_error(record["error"])
            n_failed += 1
        if as_json:
            console.print_json(record)

    n_images, n_before = len(stems), 0 if finished is None else finished.n
    for record in finished or ():
        report(record)
    if n_before:
        console.log(f"{n_before} of {n_images} photographs were finished in an earlier run", quiet)
    start, compiled, n, seconds = time.perf_counter(), seconds_compiling(), 0, 0.0
    shown = (
        results
        if source is not None
        else console.progress(results, quiet, "images", n_images - n_before)
    )
    try:
        for n, result in enumerate(shown, n_before + 1):
            seconds += result.seconds
            record = result.record(forms.landmarks)
            picture = pictures[n - 1] if pictures else None
            stem = stems[n - 1] if result.frame is None else Path(result.image).stem
            error = result.error or _picture_error(result, picture, stem, forms)
            if error is not None:
                record["error"] = error
            if finished is not None:
                finished.add(record)
            report(record)
            if not as_json and result.error is None:
                for part in result.parts:
                    _print_result(part, assembled, forms.landmarks)
    except KeyboardInterrupt:
        if isinstance(results, Generator):
            results.close()
        if not isinstance(source, int):  # an interrupt stops a camera
            raise
    except ValueError as error:
        if source is None:
            raise
        report({"image": " ".join(images), "error": str(error)})
        raise typer.Exit(console.USAGE_ERROR) from None
    if source is not None:
        compiling = seconds_compiling() - compiled
        elapsed = max(time.perf_counter() - start - compiling, 1e-9)
        rates = (
            f"{n / elapsed:.1f} per second ({n / max(seconds, 1e-9):.1f} by the detection alone)"
        )
        console.log(f"{n} frames processed, {rates}", quiet)
    return n_failed


def _picture_error(
    result: keypoints.FileDetections, picture: Path | None, stem: str, forms: keypoints.Forms
) -> str | None:
    """Write the overlay and the crops of a photograph, and return the error message if this
    fails."""
    try:
        if picture is not None and result.pixels is not None:
            drawn = keypoints.draw_detections(
                result.pixels,
                [one for part in result.parts for one in part.detections],
                [one for part in result.parts for one in part.instances],
                forms.landmarks,
            )
            keypoints.write_image(picture, drawn)
        if forms.crops is not None:
            keypoints.write_crops(forms.crops / stem, result, forms.size)
    except ValueError as error:
        return str(error)
    return None


def _print_result(result: keypoints.FileDetections, assembled: bool, landmarks: bool) -> None:
    """Print the detections in a photograph, with landmarks if requested, or one line for a video
    frame."""
    if result.frame is not None:
        best = {
            d.keypoint: f"{d.keypoint} {d.x:.0f},{d.y:.0f}" for d in reversed(result.detections)
        }
        typer.echo(
            f"{result.time:8.3f} s  in {1000 * result.seconds:6.1f} ms  "
            f"{'  '.join(best.values()) or 'nothing'}"
        )
        return
    rows = [
        (d.keypoint, round(d.x, 1), round(d.y, 1), d.score, round(d.size, 1), d.probability)
        for d in result.detections
    ]
    title = f"{result.image}  {'x'.join(map(str, result.size or ()))}  {result.seconds:.3f} s"
    columns = ["keypoint", "x", "y", "score", "size"]
    if assembled:
        title += f"  {len(result.instances)} {result.category or 'face'}" + "s" * (
            len(result.instances) != 1
        )
        columns.append("probability")
    console.print_table(title, columns, [row[: len(columns)] for row in rows])
    for number, instance in enumerate(result.instances if landmarks else ()):
        points = [
            (i, round(x, 1), round(y, 1)) for i, (x, y) in enumerate(instance.landmarks.tolist())
        ]
        console.print_table(f"face {number + 1}", ["point", "x", "y"], points)


def run_evaluation(
    group: str,
    model: Model,
    data: Data,
    measure: Annotated[
        str,
        Option(
            metavar="ap|pck|oks",
            help="Measure: ap (by reference length), pck (by box size) or oks (whole objects).",
        ),
    ] = "pck",
    keypoint: Keypoints = None,
    background: Background = None,
    skip_background: Annotated[
        int,
        Option(metavar="N", help="Number of background images to skip, in order of their names."),
    ] = 0,
    mode: Mode = None,
    assembly: Assembly = None,
    report: Annotated[
        Path | None,
        Option(metavar="FOLDER", help="Folder for a report with tables, curves and images."),
    ] = None,
    as_json: AsJson = False,
    quiet: Quiet = False,
) -> None:
    """Evaluate a model against annotations, print the result, and write a report."""

    common.check_names("measure", [measure], keypoints.COLUMNS)
    detector = _detector(model, group, "evaluate")
    options = detector.resolve(
        models.DetectionOptions(keypoint or None, mode=mode, assembly=assembly)
    )
    common.check_outputs(
        [data, background, model],
        report=report,
        report_files=() if report is None else keypoints.EVALUATION_FILES,
    )
    empty = background_images(background, None if group == "faces" else data)[skip_background:]
    images = keypoints.read_annotations(
        data,
        detector.schema if detector.category is not None and detector.schema else keypoints.FACES,
    )
    common.make_folder(report)
    evaluation = keypoints.evaluate_detector(
        detector,
        images,
        options.keypoints or (),
        empty,
        lambda it, n: console.progress(it, quiet, "images", n),
        measure,
        mode=options.mode,
        assembly=options.assembly,
    )
    for error in evaluation.errors:
        console.print_error(error)
    by_length = measure == "ap"
    settings = {
        "data": str(data),
        "model": model,
        **({"mode": options.mode} if by_length else {}),
        "images": len(images),
        "background": len(empty),
    }
    parts = ("rows", *(("landmarks", "subsets", "reliability") if by_length else ()))
    record = {
        "name": f"{group} evaluate",
        "settings": settings,
        **{part: getattr(evaluation, part) for part in parts},
    }
    if report is not None:
        keypoints.write_evaluation(report, record, evaluation, measure)
    console.print_answer(record, as_json, "", keypoints.COLUMNS[measure])
    if measure == "pck" and not as_json:
        console.print_answer(evaluation.rows[-1:], False, "whole objects", keypoints.OF_OBJECTS)
    if group == "keypoints" and (turned := keypoints.check_rotation(evaluation.images)):
        console.log(turned, quiet)
    if evaluation.landmarks and not as_json:
        columns = ["source", "faces", "found", "nme"]
        console.print_table(
            "68 landmarks",
            columns,
            [[row[column] for column in columns] for row in evaluation.landmarks],
        )
    console.end(len(images) + len(empty), len(evaluation.errors))


@command_of(app)
@with_options(run_evaluation)
def evaluate(run: Callable[[str], None]) -> None:
    """Evaluate the detections of each keypoint, including false positives, against annotations.

    \b
    Examples:
      annealed keypoints evaluate --data new_dials --model dial.safetensors
      annealed keypoints evaluate --data new --model dial.safetensors --measure oks --json
    """
    run("keypoints")
