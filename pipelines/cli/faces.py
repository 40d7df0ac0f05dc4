"""``annealed faces``: detect, train and evaluate keypoint detectors."""

from __future__ import annotations

from collections.abc import Generator, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from .. import console
from ..console import AsJson, Dask, Model, Quiet, command_of, new_app

if TYPE_CHECKING:
    from ..keypoints.detect import FileDetections
    from ..keypoints.forms import Finished, Forms

app = new_app(help="Keypoints of faces: eyes, nose, mouth, ears and chin.")

Keypoints = Annotated[list[str] | None, typer.Option("--keypoint", help="Only this one; may be repeated.")]
Mode = Annotated[str | None, typer.Option(help="Windows to score: scan (all), regress, or prune+regress (fastest, the default).")]
Assembly = Annotated[str | None, typer.Option(help="How faces are assembled: 2d, 3d, or none; by default as the model says.")]
Inputs = Annotated[list[str] | None, typer.Argument(metavar="INPUT", help="Images, folders, patterns, -, a video, or: camera 0.")]


@command_of(app)
def detect(
    images: Inputs = None,
    model: Model = "faces",
    keypoint: Keypoints = None,
    min_probability: Annotated[float | None, typer.Option(help="Least probability of a face, 0.5 by default; 0: all.")] = None,
    threshold: Annotated[float | None, typer.Option(help="Minimum score of a keypoint, whatever the face.")] = None,
    min_size: Annotated[float | None, typer.Option(help="Smallest detection window, in image pixels.")] = None,
    max_size: Annotated[float | None, typer.Option(help="Largest detection window, in image pixels.")] = None,
    roll: Annotated[float | None, typer.Option(help="Search again, turned and in even light: degrees, 30; 0: not (video).")] = None,
    boxes: Annotated[Path | None, typer.Option(help="CSV (image, x0, y0, x1, y1) of known faces: their points alone.")] = None,
    mode: Mode = None,
    assembly: Assembly = None,
    landmarks: Annotated[bool, typer.Option("--landmarks", help="All points of a face, not the nine keypoints alone.")] = False,
    every: Annotated[int, typer.Option(help="Of a video or camera: process every N-th frame.")] = 1,
    smooth: Annotated[str, typer.Option(help="Of a video or camera: auto, off, or the cut-off in Hz (low: still).")] = "auto",
    jobs: Annotated[int, typer.Option(help="Photographs at a time, at most one per core (0). `seconds` is longer with more.")] = 1,
    dask: Dask = None,
    table: Annotated[Path | None, typer.Option(help="Table to write, .csv or .parquet: a row per face.")] = None,
    coco: Annotated[Path | None, typer.Option(help="COCO keypoints to write, .json.")] = None,
    crops: Annotated[Path | None, typer.Option(help="Folder for crops of the faces, their eyes always in the same place.")] = None,
    size: Annotated[int, typer.Option(help="Side of the crops in pixels.")] = 112,
    resume: Annotated[bool, typer.Option("--resume", help="Go on with a table or COCO file after an interruption.")] = False,
    overlay: Annotated[Path | None, typer.Option(help="Picture or video to write; a folder for several images.")] = None,
    as_json: AsJson = False,
    quiet: Quiet = False,
) -> None:
    """Find keypoints in photographs and videos; without INPUT, in a sample photograph.

    \b
    Examples:
      annealed faces detect holiday --table faces.csv --crops crops
      annealed faces detect clip.mp4 --landmarks --json --smooth off
    """
    import tempfile

    from ...models import resolve_model
    from ...models.keypoints.detections import DEFAULT_ROLL, DetectionOptions
    from ..common.file_map import file_map_of
    from ..common.image_folders import are_few
    from ..common.inputs import list_inputs
    from ..common.outputs import distinct_stems
    from ..keypoints.detect import SAMPLE, detect_files, video_source
    from ..keypoints.forms import Finished, Forms

    images = images or []
    images = images if images[:1] == ["camera"] else list_inputs(images, (crops, overlay))
    detector = console.load_model_of("keypoint detector", model)
    if crops is not None and detector.category is not None:
        raise ValueError(f"--crops {crops}: crops are of faces; the model finds {detector.category!r}")
    source = video_source(images)
    if roll is None:  # frames without a face are many: they are searched once
        roll = DEFAULT_ROLL if source is None else 0.0
    known = None
    if boxes is not None:
        from ..keypoints.data import read_boxes

        names = {Path(name).name for name in images}
        if source is not None or len(names) != len(images) or not images:
            raise ValueError(f"--boxes {boxes}: expected photographs of different names")
        known = read_boxes(boxes, names.__contains__, "among the photographs")
    if source is not None and dask is not None:
        raise ValueError(f"--dask {dask}: frames are searched one after the other; expected photographs")
    sizes: dict[str, Any] = {"min_size": min_size, "max_size": max_size, "min_probability": min_probability}
    options = detector.resolve(DetectionOptions(keypoint or None, threshold, mode=mode, assembly=assembly, roll=roll, **sizes))
    if every < 1:
        raise ValueError(f"every={every}: expected a whole number of at least 1")
    forms = Forms(table, coco, crops, size, landmarks)
    if resume and (source is not None or not forms.files):
        raise ValueError("--resume: expected photographs, and --table or --coco")
    pictures = [] if overlay is None else _overlays(overlay, images, source is not None, model)
    forms.check([*images, model], options)
    output = _Output(forms, options.assembly != "none", as_json, quiet, images, pictures, distinct_stems(images or [SAMPLE]))
    with tempfile.TemporaryDirectory() as folder:
        if source is not None or not forms.files:
            finished = Finished(Path(folder) / "results", {})
        else:
            inputs = images if known is None else [*images, repr(known)]
            finished = forms.unfinished(resolve_model(model), inputs, options, resume)
        todo = images[finished.n :]
        results: Iterator[FileDetections] = iter(())
        if source is not None:
            from ..keypoints.video import detect_video

            results = detect_video(detector, source, options, every, overlay, smooth)
        elif todo or not images:
            # the rest of an earlier run is handled as all are: the same numbers
            file_map = file_map_of(jobs, dask, max(1, len(todo)), quiet)
            results = detect_files(detector, todo, options, file_map, are_few(images), bool(pictures or crops), known)
        output.write(detector, results, finished, source)


def _overlays(overlay: Path, images: list[str], is_video: bool, model: str) -> list[Path]:
    """Check the names of the pictures or the video to write, before anything is searched; the
    pictures."""
    from ..common.outputs import check_outputs, make_folder, overlay_paths
    from ..common.video import check_video_name
    from ..keypoints.detect import SAMPLE
    from ..keypoints.drawing import check_image_name

    if is_video:
        check_video_name(overlay)
        check_outputs([*images, model], [overlay])
        return []
    pictures = overlay_paths(images or [SAMPLE], overlay, "keypoints")
    if len(images) > 1:
        make_folder(overlay)
    check_outputs([*images, model], pictures)
    for picture in {path.suffix: path for path in pictures}.values():
        check_image_name(picture)
    return pictures


@dataclass
class _Output:
    """Where results go: printed, and into files of all forms."""

    forms: Forms
    assembled: bool
    as_json: bool
    quiet: bool
    images: list[str]
    pictures: list[Path]
    stems: list[str]  # of the names of crops
    n_failed: int = field(default=0, init=False)

    def write(self, detector, results: Iterator[FileDetections], finished: Finished, source: str | int | None) -> None:
        """Answer one photograph or frame after the other, after what an earlier run finished."""
        import time

        n_images, n_before = max(1, len(self.images)), finished.n
        for record in finished:
            self._say(record)
        if n_before:
            console.say(f"{n_before} of {n_images} photographs were finished before", self.quiet)
        start, n, seconds = time.perf_counter(), 0, 0.0
        shown = results if source is not None else console.progress(results, self.quiet, "images", n_images - n_before)
        try:
            for n, result in enumerate(shown, n_before + 1):
                seconds += result.seconds
                error = result.error or self._write_pictures(n - 1, result)
                record = result.record(self.forms.landmarks) | ({} if error is None else {"error": error})
                if self.forms.files:
                    finished.add(record)
                self._say(record)
                if not self.as_json and result.error is None:
                    _print_result(result, self.assembled, self.forms.landmarks)
        except KeyboardInterrupt:
            if isinstance(results, Generator):
                results.close()
            if not isinstance(source, int):  # this is how one leaves a camera
                raise
        except ValueError as error:
            if source is None:
                raise
            self._say({"image": " ".join(self.images), "error": str(error)})
            raise typer.Exit(console.BAD_INPUT) from None
        self.forms.write(finished, detector)
        finished.remove()
        if source is not None:
            elapsed = max(time.perf_counter() - start, 1e-9)
            rates = f"{n / elapsed:.1f} per second ({n / max(seconds, 1e-9):.1f} by the detection alone)"
            console.say(f"{n} frames processed, {rates}", self.quiet)
        console.end(1 if source is not None else n_images, self.n_failed)

    def _say(self, record: dict) -> None:
        if "error" in record:
            console.complain(record["error"])
            self.n_failed += 1
        if self.as_json:
            console.print_json(record)

    def _write_pictures(self, number: int, result: FileDetections) -> str | None:
        """Write a photograph with what was found in it, and crops; the reason where that fails: the
        record has both."""
        from ..keypoints.drawing import draw_detections, write_image
        from ..keypoints.forms import write_crops

        try:
            if self.pictures and result.pixels is not None:
                drawn = draw_detections(result.pixels, result.detections, result.instances, self.forms.landmarks)
                write_image(self.pictures[number], drawn)
            if self.forms.crops is not None:
                stem = self.stems[number] if result.frame is None else Path(result.image).stem
                write_crops(self.forms.crops / stem, result, self.forms.size)
        except ValueError as error:
            return str(error)
        return None


def _print_result(result: FileDetections, assembled: bool, landmarks: bool) -> None:
    """Print the detections in a photograph, and the points of its faces if asked for; of a frame
    one line."""
    if result.frame is not None:
        best = {d.keypoint: f"{d.keypoint} {d.x:.0f},{d.y:.0f}" for d in reversed(result.detections)}
        typer.echo(f"{result.time:8.3f} s  in {1000 * result.seconds:6.1f} ms  {'  '.join(best.values()) or 'nothing'}")
        return
    rows = [(d.keypoint, round(d.x, 1), round(d.y, 1), d.score, round(d.size, 1), d.probability) for d in result.detections]
    title = f"{result.image}  {'x'.join(map(str, result.size or ()))}  {result.seconds:.3f} s"
    columns = ["keypoint", "x", "y", "score", "size"]
    if assembled:
        title += f"  {len(result.instances)} {result.category or 'face'}" + "s" * (len(result.instances) != 1)
        columns.append("probability")
    console.print_table(title, columns, [row[: len(columns)] for row in rows])
    for number, face in enumerate(result.instances if landmarks else ()):
        points = [(i, round(x, 1), round(y, 1)) for i, (x, y) in enumerate(face.landmarks.tolist())]
        console.print_table(f"face {number + 1}", ["point", "x", "y"], points)


@command_of(app)
def train(
    data: Annotated[Path, typer.Option(help="Folder with images and keypoints.csv, .pts files or COCO JSON.")],
    out: Annotated[Path, typer.Option(help="Model file to write; checkpoints go beside it.")],
    keypoint: Keypoints = None,
    background: Annotated[Path | None, typer.Option(help="Folder of images without faces, by default beside DATA.")] = None,
    n_background: Annotated[int, typer.Option(help="How many of them, in the order of their names.")] = 140,
    mode: Annotated[str, typer.Option(help="The fastest mode of the detector: scan, regress, or prune+regress.")] = "prune+regress",
    resume: Annotated[bool, typer.Option("--resume", help="Go on from the last checkpoint.")] = False,
    config: Annotated[Path | None, typer.Option(help="TOML or JSON file with settings, a table for each stage.")] = None,
    jobs: Annotated[int, typer.Option(help="Threads, at most one per core (0); the model does not depend on it.")] = 0,
    dask: Dask = None,
    quiet: Quiet = False,
) -> None:
    """Train a detector from nothing; the defaults are those of the shipped model.

    \b
    Examples:
      annealed faces train --data photographs --out mine.safetensors
      annealed faces train --data photographs --out mine.safetensors --mode scan --resume
    """
    from ...models.keypoints.windows.window_models import Mode as SearchMode
    from ..common.config import check_names, read_config
    from ..common.file_map import jobs_or_map
    from ..common.image_folders import list_images
    from ..common.outputs import check_outputs
    from ..keypoints.data import read_annotations
    from ..keypoints.faces import ANCHORS, KEYPOINTS
    from ..keypoints.training.stages import DetectorSettings, train_detector

    check_names("mode", [mode], SearchMode)
    settings = read_config(config, DetectorSettings())
    check_names("keypoint", keypoint, KEYPOINTS)
    check_outputs([data, background, config], model=out)
    folder = background if background is not None else data.resolve().parent / "background"
    empty = list_images(folder)[:n_background] if background is not None or folder.is_dir() else []
    images = read_annotations(data)
    console.say(f"{len(images)} photographs with faces, {len(empty)} without", quiet)
    names = list(dict.fromkeys(keypoint)) if keypoint else ANCHORS
    n_jobs = jobs_or_map(jobs, dask, len(images) + len(empty), quiet)
    train_detector(images, empty, out, settings, names, mode, resume, lambda line: console.say(line, quiet), n_jobs)


@command_of(app)
def evaluate(
    data: Annotated[Path, typer.Option(help="Folder with images and keypoints.csv, .pts files or COCO JSON.")],
    model: Model = "faces",
    keypoint: Keypoints = None,
    background: Annotated[Path | None, typer.Option(help="Folder of images without faces: false detections.")] = None,
    skip_background: Annotated[int, typer.Option(help="Leave out so many of them, the first by name.")] = 0,
    mode: Mode = None,
    assembly: Assembly = None,
    as_json: AsJson = False,
    report: Annotated[Path | None, typer.Option(help="Folder for tables, curves and pictures.")] = None,
    quiet: Quiet = False,
) -> None:
    """Compare detections with annotations: average precision per keypoint, tolerance and source.

    \b
    Examples:
      annealed faces evaluate --data photographs --json
      annealed faces evaluate --data photographs --model mine.safetensors --report report
    """
    from ...models.keypoints.detections import DetectionOptions
    from ..common.image_folders import list_images
    from ..common.outputs import check_outputs, make_folder
    from ..keypoints.data import read_annotations
    from ..keypoints.evaluate import evaluate_detector
    from ..keypoints.evaluation_report import COLUMNS, REPORT_FILES, write_report

    detector = console.load_model_of("keypoint detector", model)
    options = detector.resolve(DetectionOptions(keypoint, mode=mode, assembly=assembly))
    check_outputs([data, background, model], report=report, report_files=REPORT_FILES)
    empty = list_images(background)[skip_background:] if background is not None else []
    images = read_annotations(data)
    make_folder(report)
    names, chosen = options.keypoints or (), {"mode": options.mode, "assembly": options.assembly}
    evaluation = evaluate_detector(detector, images, names, empty, lambda it, n: console.progress(it, quiet, "images", n), **chosen)
    for error in evaluation.errors:
        console.complain(error)
    settings = {"data": str(data), "model": model, "mode": options.mode, "images": len(images), "background": len(empty)}
    parts = {name: getattr(evaluation, name) for name in ("rows", "landmarks", "subsets", "reliability")}
    record = {"name": "faces evaluate", "settings": settings, **parts}
    if report is not None:
        write_report(report, record, evaluation)
    console.print_answer(record, as_json, "", COLUMNS)
    if evaluation.landmarks and not as_json:
        columns = ["source", "faces", "found", "nme"]
        console.print_table("68 landmarks", columns, [[row[column] for column in columns] for row in evaluation.landmarks])
    console.end(len(images) + len(empty), len(evaluation.errors))
