"""``annealed keypoints``: train, evaluate and run keypoint detectors of any object."""

from __future__ import annotations

from collections.abc import Generator, Iterator, Sequence
from dataclasses import dataclass, field
from functools import cached_property, partial
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer
from typer import Argument, Option

from .. import console
from ..common.config import check_names
from ..console import AsJson, Dask, Model, Quiet, command_of, new_app, with_options

if TYPE_CHECKING:
    from ...models.keypoints.detector import KeypointDetector
    from ..keypoints.detect import FileDetections
    from ..keypoints.forms import Finished, Forms

app = new_app(help="Train and run keypoint detectors of any object.")

EXPERT = partial(Option, rich_help_panel="Expert options")
_OUTPUT = partial(Option, rich_help_panel="Output")

Words = Sequence[str]
Keypoints = Annotated[
    Words, Option("--keypoint", metavar="NAME", help="Report only this keypoint; repeatable.")
]
Mode = Annotated[
    str | None,
    EXPERT(
        metavar="MODE",
        help="Search: scan (all windows), regress, or prune+regress (fastest, the default).",
    ),
]
Assembly = Annotated[
    str | None,
    EXPERT(
        metavar="NAME", help="Assembly of objects: 2d, 3d, or none (default: set by the model)."
    ),
]
Inputs = Annotated[
    Words,
    Argument(metavar="INPUT", help="Images, folders, patterns, - (stdin), a video, or: camera 0."),
]
Data = Annotated[
    Path,
    Option(
        metavar="FOLDER", help="Folder with images and keypoints.csv, COCO JSON, or .pts files."
    ),
]
Background = Annotated[
    Path | None,
    Option(metavar="FOLDER", help="Folder of images without objects (default: DATA/background)."),
]


@dataclass(frozen=True)
class Detection:
    """Options of ``detect``."""

    model: Model
    images: Inputs = ()
    keypoint: Keypoints = ()
    min_probability: Annotated[
        float | None, Option(help="Minimum probability of an object (default 0.5; 0 keeps all).")
    ] = None
    threshold: Annotated[
        float | None, EXPERT(help="Minimum score of a keypoint, regardless of objects.")
    ] = None
    min_size: Annotated[
        float | None, Option(help="Smallest detection window, in image pixels.")
    ] = None
    max_size: Annotated[float | None, Option(help="Largest detection window, in image pixels.")] = (
        None
    )
    roll: Annotated[
        float | None,
        Option(
            metavar="DEGREES",
            help="Angle of the second, rotated search (default 30; 0 disables it, as for video).",
        ),
    ] = None
    boxes: Annotated[
        Path | None,
        Option(
            metavar="FILE",
            help="CSV of known boxes (image, x0, y0, x1, y1); only landmarks are located.",
        ),
    ] = None
    mode: Mode = None
    assembly: Assembly = None
    landmarks: Annotated[
        bool, Option("--landmarks", help="Report all landmarks, not only the keypoints.")
    ] = False
    every: Annotated[
        int, Option(metavar="N", help="Process every N-th frame of a video or camera.")
    ] = 1
    smooth: Annotated[
        str,
        Option(
            metavar="auto|off|HZ",
            help="Smoothing of points over time: automatic (5 Hz), none, or a cut-off frequency.",
        ),
    ] = "auto"
    jobs: Annotated[
        int,
        Option(metavar="N", help="Number of parallel processes (0: one per core)."),
    ] = 1
    dask: Dask = None
    out: Annotated[
        Path | None,
        _OUTPUT(
            "--out",
            "-o",
            metavar="FILE",
            help="Table to write, .csv or .parquet, one row per object.",
        ),
    ] = None
    table: Annotated[Path | None, Option(hidden=True)] = None
    coco: Annotated[
        Path | None, _OUTPUT(metavar="FILE", help="COCO keypoint file to write, .json.")
    ] = None
    crops: Annotated[
        Path | None, _OUTPUT(metavar="FOLDER", help="Folder for eye-aligned face crops.")
    ] = None
    size: Annotated[int, _OUTPUT(metavar="PIXELS", help="Side length of the crops.")] = 112
    resume: Annotated[
        bool,
        _OUTPUT("--resume", help="Resume an interrupted run that writes a table or COCO file."),
    ] = False
    overlay: Annotated[
        Path | None,
        _OUTPUT(metavar="PATH", help="Image or video to write, with the detections; or a folder."),
    ] = None


@dataclass(frozen=True)
class Training:
    """Options of every training command."""

    data: Data
    out: Annotated[
        Path,
        Option(
            "--out",
            "-o",
            metavar="FILE",
            help="Model file to write; checkpoints are put beside it.",
        ),
    ]
    background: Background = None
    resume: Annotated[bool, Option("--resume", help="Resume from the last checkpoint.")] = False
    jobs: Annotated[
        int,
        Option(
            metavar="N",
            help="Number of threads (0: one per core); the model does not depend on it.",
        ),
    ] = 0
    dask: Dask = None


@dataclass(frozen=True)
class ObjectTraining(Training):
    """Options of ``annealed keypoints train``, which chooses its settings by the images."""

    schema: Annotated[
        Path | None,
        Option(
            metavar="FILE",
            help="TOML file of names, mirror pairs, skeleton, reference length, orientation.",
        ),
    ] = None
    category: Annotated[
        str | None, Option(metavar="NAME", help="Category to train, if the file has several.")
    ] = None
    rotation: Annotated[
        str | None, Option(metavar="NAME", help="upright, or free for objects of any orientation.")
    ] = None
    mirrored: Annotated[
        bool | None,
        Option(help="Augment with mirror images (default: if the schema has mirror pairs)."),
    ] = None
    window: Annotated[
        float | None, Option(help="Window size in reference lengths (default: tuned).")
    ] = None
    anchor: Annotated[
        Words,
        Option(
            metavar="NAME", help="Keypoint that gets its own detector (default: tuned); repeatable."
        ),
    ] = ()
    features: Annotated[
        int | None, Option(metavar="N", help="Number of features of each detector.")
    ] = None
    rounds: Annotated[
        int | None, Option(metavar="N", help="Maximum number of rounds of hard-negative mining.")
    ] = None
    report: Annotated[
        Path | None,
        Option(metavar="FOLDER", help="Folder for a report: errors, worst images, learning curve."),
    ] = None


@dataclass(frozen=True)
class Evaluation:
    """Options of ``evaluate``."""

    model: Model
    data: Data
    measure: Annotated[
        str,
        Option(
            metavar="ap|pck|oks",
            help="Measure: by the reference length, by the box, or of whole objects.",
        ),
    ] = "pck"
    keypoint: Keypoints = ()
    background: Background = None
    skip_background: Annotated[
        int, Option(metavar="N", help="Skip the first N background images.")
    ] = 0
    mode: Mode = None
    assembly: Assembly = None
    report: Annotated[
        Path | None,
        Option(metavar="FOLDER", help="Folder for a report with tables, curves and images."),
    ] = None


def background_images(folder: Path | None, beside: Path | None = None) -> list[Path]:
    """Return the paths of images without objects: in a given folder, or else in ``background``
    inside the data folder."""
    from ..common.image_folders import list_images

    default = None if beside is None else beside / "background"
    return (
        list_images(folder)
        if folder
        else list_images(default)
        if default and default.is_dir()
        else []
    )


def _detector(model: str, group: str, command: str) -> KeypointDetector:
    """Load the detector in a model file; ``annealed keypoints`` rejects face detectors."""
    detector: KeypointDetector = console.load_model_of("keypoint detector", model)
    if detector.category is None and group == "keypoints":
        raise ValueError(
            f"{model}: a face detector; expected another detector, or the command: "
            f"annealed faces {command}"
        )
    return detector


@command_of(app)
@with_options(ObjectTraining)
def train(request: ObjectTraining, quiet: Quiet = False) -> None:
    """Train a detector; unset options are tuned on the images, and printed.

    \b
    Examples:
      annealed keypoints train --data dials --out dial.safetensors
      annealed keypoints train --data screws --out screw.safetensors --rotation free --report page
    """
    from dataclasses import replace

    from ...models.files import make_folder
    from ..common.file_map import resolve_jobs
    from ..common.outputs import check_outputs
    from ..keypoints.data import schema_of
    from ..keypoints.objects import check_number, read_objects
    from ..keypoints.report import REPORT_FILES, write_report
    from ..keypoints.training.train import held_out_images, learning_curve, train_keypoints

    known, empty = (
        schema_of(request.data, request.schema, request.category),
        background_images(request.background, request.data),
    )
    check_names("rotation", [request.rotation] if request.rotation else [], ("upright", "free"))
    known = replace(
        known, upright=known.upright if request.rotation is None else request.rotation == "upright"
    )
    known = known if request.mirrored is None else replace(known, mirrored=request.mirrored)
    anchors = tuple(dict.fromkeys(request.anchor or known.anchors))
    given: dict[str, Any] = {
        "side": request.window,
        "anchors": anchors,
        "n_features": request.features,
        "rounds": request.rounds,
    }
    check_names("anchor", anchors, known.keypoints)
    if len(anchors) == 1:
        raise ValueError(f"--anchor {anchors[0]}: expected two or more, or none")
    for name, minimum in (("window", 0.1), ("features", 1), ("rounds", 0)):
        if (value := getattr(request, name)) is not None and not minimum <= value <= 100_000:
            raise ValueError(f"--{name} {value}: expected at least {minimum:g}")
    check_outputs(
        [request.data, request.background, request.schema],
        model=request.out,
        report=request.report,
        report_files=REPORT_FILES,
    )
    images = read_objects(request.data, known)
    few = check_number(images)
    n = sum(len(image.instances) for image in images)
    n_jobs = resolve_jobs(request.jobs, request.dask, len(images) + len(empty), quiet)
    console.log(
        few or f"{len(images)} images with {n} of {known.category!r}, {len(empty)} without", quiet
    )
    log = lambda line: console.log(line, quiet)  # noqa: E731
    made, decisions = train_keypoints(
        images, empty, request.out, request.resume, log, n_jobs, **given
    )
    if request.report is not None:
        make_folder(request.report)
        test = held_out_images(made, images)
        curve = learning_curve(images, test, empty, decisions, log, n_jobs=n_jobs)
        write_report(request.report, made, decisions.lines(), test, len(images), curve)


@command_of(app)
@with_options(Detection)
def detect(request: Detection, as_json: AsJson = False, quiet: Quiet = False) -> None:
    """Detect objects and their keypoints in photographs and videos.

    \b
    Examples:
      annealed keypoints detect shelf.jpg --model dial.safetensors --overlay found.png
      annealed keypoints detect photographs --model dial.safetensors --coco found.json
    """
    if not request.images:
        raise ValueError("no INPUT: expected images, folders, patterns, a video, or: camera 0")
    run_detection(request, "keypoints", as_json, quiet)


def _video_source(images: Sequence[str]) -> str | int | None:
    """Return the source that the arguments name: a video file, a camera number (``camera 0``), or
    None for photographs."""
    import re

    from ..common.video import VIDEO_SUFFIXES

    if images and images[0] == "camera" and not Path("camera").is_file():
        if len(images) != 2 or not images[1].isdigit():
            raise ValueError(
                f"camera {' '.join(images[1:])}: expected the number of a camera, as in: camera 0"
            )
        return int(images[1])
    for name in images:
        if re.fullmatch(r"(camera|webcam|cam)?[:=]?\d+", name) and not Path(name).exists():
            raise ValueError(f"{name}: no such file; expected a camera as in: camera 0")
    videos = [name for name in images if Path(name).suffix.lower() in VIDEO_SUFFIXES]
    if not videos:
        return None
    if len(images) > 1:
        raise ValueError(f"{videos[0]}: expected a single video instead of {len(images)} files")
    return videos[0]


def run_detection(request: Detection, group: str, as_json: bool, quiet: bool) -> None:
    """Detect keypoints in files, print them, and write all requested outputs."""
    import tempfile
    from contextlib import ExitStack

    from ...models import resolve_model
    from ...models.keypoints.detections import DEFAULT_ROLL, DetectionOptions
    from ..common.image_folders import are_few
    from ..common.inputs import list_inputs
    from ..keypoints.detect import detect_files

    images, model, crops, overlay = (
        list(request.images),
        request.model,
        request.crops,
        request.overlay,
    )
    if images and images[0] != "camera":
        images = list_inputs(images, (crops, overlay))
    source = _video_source(images)
    detector = _detector(model, group, "detect")
    if crops is not None and detector.category is not None:
        raise ValueError(
            f"--crops {crops}: only available for faces; the model detects {detector.category!r}"
        )
    # many frames hold no object: they are searched once
    roll = request.roll if request.roll is not None else DEFAULT_ROLL if source is None else 0.0
    known = (
        None
        if request.boxes is None
        else _known_boxes(request.boxes, [] if source is not None else images)
    )
    if source is not None and request.dask is not None:
        raise ValueError(
            f"--dask {request.dask}: not available for a video or camera; expected photographs"
        )
    given = {
        name: getattr(request, name)
        for name in ("threshold", "min_size", "max_size", "mode", "assembly", "min_probability")
    }
    options = detector.resolve(DetectionOptions(request.keypoint or None, roll=roll, **given))
    if request.every < 1:
        raise ValueError(f"--every {request.every}: expected a whole number of at least 1")
    table = request.out
    if request.table is not None:
        table = console.renamed(request.table, "--table", table, "--out")
    if request.resume and (source is not None or not (table or request.coco)):
        raise ValueError("--resume: expected photographs, and --out or --coco")
    pictures = [] if overlay is None else _overlays(overlay, images, source is not None, model)
    forms = finished = None
    if table or request.coco or crops or request.size != Detection.size:
        from ..keypoints.forms import Finished, Forms

        forms = Forms(table, request.coco, crops, request.size, request.landmarks)
        forms.check([*images, model], options)
    output = _Output(
        forms, request.landmarks, options.assembly != "none", as_json, quiet, images, pictures
    )
    with tempfile.TemporaryDirectory() as folder, ExitStack() as stack:
        if forms and forms.files and source is not None:
            finished = Finished(Path(folder) / "results", {})
        elif forms and forms.files:
            inputs = images if known is None else [*images, repr(known)]
            finished = forms.unfinished(resolve_model(model), inputs, options, request.resume)
        if finished is not None:
            stack.callback(finished.close)
        todo = images[finished.n :] if finished is not None else images
        results: Iterator[FileDetections] = iter(())
        if source is not None:
            from ..keypoints.video import detect_video

            results = detect_video(
                detector, source, options, request.every, overlay, request.smooth
            )
        elif todo or not images:
            file_map = None
            if request.jobs != 1 or request.dask is not None:
                from ..common.file_map import make_file_map

                file_map = make_file_map(request.jobs, request.dask, max(1, len(todo)), quiet)
            # a resumed run uses the settings of all images: the same numbers
            results = detect_files(
                detector, todo, options, file_map, are_few(images), bool(pictures or crops), known
            )
        output.write(detector, results, finished, source)


def _known_boxes(path: Path, images: list[str]) -> dict[str, list[list[float]]]:
    """Boxes of known objects by photograph name."""
    from ..keypoints.data import read_boxes

    names = {Path(name).name for name in images}
    if len(names) != len(images) or not images:
        raise ValueError(f"--boxes {path}: expected photographs with distinct names")
    return read_boxes(path, names.__contains__, "among the photographs")


def _overlays(overlay: Path, images: list[str], is_video: bool, model: str) -> list[Path]:
    """Return the overlay images to write, and check their names, or the name of the video, before
    any detection."""
    from ...models.files import make_folder
    from ..common.outputs import check_outputs, overlay_paths
    from ..common.video import check_video_name
    from ..keypoints.detect import SAMPLE
    from ..keypoints.drawing import check_image_name

    pictures = [] if is_video else overlay_paths(images or [SAMPLE], overlay, "keypoints")
    if is_video:
        check_video_name(overlay)
    elif len(images) > 1:
        make_folder(overlay)
    check_outputs([*images, model], pictures or [overlay])
    for picture in {path.suffix: path for path in pictures}.values():
        check_image_name(picture)
    return pictures


@dataclass
class _Output:
    """Output of results: printed, and written to files of all formats."""

    forms: Forms | None
    landmarks: bool
    assembled: bool
    as_json: bool
    quiet: bool
    images: list[str]
    pictures: list[Path]
    n_failed: int = field(default=0, init=False)

    def write(
        self,
        detector: KeypointDetector,
        results: Iterator[FileDetections],
        finished: Finished | None,
        source: str | int | None,
    ) -> None:
        """Output each photograph or frame, after the photographs of an earlier run."""
        import time

        from ...learners.compilation import seconds_compiling

        n_images, n_before = max(1, len(self.images)), 0 if finished is None else finished.n
        for record in finished or ():
            self._report(record)
        if n_before:
            console.log(
                f"{n_before} of {n_images} photographs finished in an earlier run", self.quiet
            )
        start, compiled, n, seconds = time.perf_counter(), seconds_compiling(), 0, 0.0
        shown = (
            results
            if source is not None
            else console.progress(results, self.quiet, "images", n_images - n_before)
        )
        try:
            for n, result in enumerate(shown, n_before + 1):
                seconds += result.seconds
                record = result.record(self.landmarks)
                if (error := result.error or self._write_pictures(n - 1, result)) is not None:
                    record["error"] = error
                if finished is not None:
                    finished.add(record)
                self._report(record)
                if not self.as_json and result.error is None:
                    _print_result(result, self.assembled, self.landmarks)
        except KeyboardInterrupt:
            if isinstance(results, Generator):
                results.close()
            if not isinstance(source, int):  # an interrupt ends a camera
                raise
        except ValueError as error:
            if source is None:
                raise
            self._report({"image": " ".join(self.images), "error": str(error)})
            raise typer.Exit(console.USAGE_ERROR) from None
        if self.forms is not None and finished is not None:
            self.forms.write(finished, detector)
            finished.remove()
        if source is not None:
            compiling = seconds_compiling() - compiled
            elapsed = max(time.perf_counter() - start - compiling, 1e-9)
            rates = (
                f"{n / elapsed:.1f} per second ({n / max(seconds, 1e-9):.1f} by the "
                "detection alone)"
            )
            console.log(f"{n} frames processed, {rates}", self.quiet)
        console.end(1 if source is not None else n_images, self.n_failed)

    @cached_property
    def stems(self) -> list[str]:
        """Return the stems of the names of crops."""
        from ..common.outputs import distinct_stems
        from ..keypoints.detect import SAMPLE

        return distinct_stems(self.images or [SAMPLE])

    def _report(self, record: dict) -> None:
        if "error" in record:
            console.print_error(record["error"])
            self.n_failed += 1
        if self.as_json:
            console.print_json(record)

    def _write_pictures(self, number: int, result: FileDetections) -> str | None:
        """Write the overlay and the crops of a photograph; return the error message if that
        fails."""
        try:
            if self.pictures and result.pixels is not None:
                from ..keypoints.drawing import draw_detections, write_image

                drawn = draw_detections(
                    result.pixels, result.detections, result.instances, self.landmarks
                )
                write_image(self.pictures[number], drawn)
            if self.forms is not None and self.forms.crops is not None:
                stem = self.stems[number] if result.frame is None else Path(result.image).stem
                from ..keypoints.forms import write_crops

                write_crops(self.forms.crops / stem, result, self.forms.size)
        except ValueError as error:
            return str(error)
        return None


def _print_result(result: FileDetections, assembled: bool, landmarks: bool) -> None:
    """Print the detections in a photograph, with landmarks if requested; one line for a frame."""
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


@command_of(app)
@with_options(Evaluation)
def evaluate(request: Evaluation, as_json: AsJson = False, quiet: Quiet = False) -> None:
    """Evaluate detections: points within a tenth of the box size, by keypoint, and false positives.

    \b
    Examples:
      annealed keypoints evaluate --data new_dials --model dial.safetensors
      annealed keypoints evaluate --data new --model dial.safetensors --measure oks --json
    """
    run_evaluation(
        request, "keypoints", background_images(request.background, request.data), as_json, quiet
    )


def run_evaluation(
    request: Evaluation, group: str, background: list[Path], as_json: bool, quiet: bool
) -> None:
    """Evaluate a model against annotations, print the result, and write a report."""
    from ...models.files import make_folder
    from ...models.keypoints.detections import DetectionOptions
    from ..common.outputs import check_outputs
    from ..keypoints.data import read_annotations
    from ..keypoints.evaluate import COLUMNS, evaluate_detector
    from ..keypoints.faces import FACES

    check_names("measure", [request.measure], COLUMNS)
    detector = _detector(request.model, group, "evaluate")
    options = detector.resolve(
        DetectionOptions(request.keypoint or None, mode=request.mode, assembly=request.assembly)
    )
    files: tuple[str, ...] = ()
    if request.report is not None:
        from ..keypoints.report import EVALUATION_FILES as files
    check_outputs(
        [request.data, request.background, request.model], report=request.report, report_files=files
    )
    empty = background[request.skip_background :]
    images = read_annotations(
        request.data,
        detector.schema if detector.category is not None and detector.schema else FACES,
    )
    make_folder(request.report)
    evaluation = evaluate_detector(
        detector,
        images,
        options.keypoints or (),
        empty,
        lambda it, n: console.progress(it, quiet, "images", n),
        request.measure,
        mode=options.mode,
        assembly=options.assembly,
    )
    for error in evaluation.errors:
        console.print_error(error)
    by_length = request.measure == "ap"
    settings = {
        "data": str(request.data),
        "model": request.model,
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
    if request.report is not None:
        from ..keypoints.report import write_evaluation

        write_evaluation(request.report, record, evaluation, request.measure)
    console.print_answer(record, as_json, "", COLUMNS[request.measure])
    if evaluation.landmarks and not as_json:
        columns = ["source", "faces", "found", "nme"]
        console.print_table(
            "68 landmarks",
            columns,
            [[row[column] for column in columns] for row in evaluation.landmarks],
        )
    console.end(len(images) + len(empty), len(evaluation.errors))
