"""Commands ``annealed faces``, which apply ``annealed keypoints`` to faces."""

from collections.abc import Callable
from pathlib import Path
from typing import Annotated

from typer import Option

from .. import common, console, keypoints
from ..console import Dask, Quiet, command_of, new_app, with_options
from .keypoints import (
    EXPERT,
    Background,
    Data,
    Out,
    Resume,
    Threads,
    Words,
    background_images,
    run_detection,
    run_evaluation,
)

app = new_app(help="Detect keypoints of faces: eyes, nose, mouth, ears and chin.")


@command_of(app)
@with_options(run_detection, model=["faces"])
def detect(run: Callable[[str], None]) -> None:
    """Detect facial keypoints in photographs and videos. The default INPUT is a
    sample photograph.

    \b
    Examples:
      annealed faces detect holiday --out faces.csv --crops crops
      annealed faces detect clip.mp4 --landmarks --json --smooth off
    """
    run("faces")


@command_of(app)
def train(
    data: Data,
    out: Out,
    background: Background = None,
    resume: Resume = False,
    jobs: Threads = 0,
    dask: Dask = None,
    keypoint: Annotated[
        Words, Option("--keypoint", metavar="NAME", help="Train only this keypoint; repeatable.")
    ] = None,
    n_background: Annotated[
        int,
        Option(metavar="N", help="Number of background images to use, in order of their names."),
    ] = 140,
    mode: Annotated[
        str,
        EXPERT(
            metavar="MODE", help="Fastest search mode to train: scan, regress, or prune+regress."
        ),
    ] = "prune+regress",
    config: Annotated[
        Path | None,
        Option(metavar="FILE", help="TOML or JSON file with settings in one table per stage."),
    ] = None,
    quiet: Quiet = False,
) -> None:
    """Train a face detector from scratch. The default options reproduce the shipped model.

    \b
    Examples:
      annealed faces train --data photographs --out mine.safetensors
      annealed faces train --data photographs --out mine.safetensors --mode scan --resume
    """
    from ...models.keypoints.windows.window_models import Mode as SearchMode
    from ..keypoints.training.stages import DetectorSettings, train_detector

    common.check_names("mode", [mode], SearchMode)
    settings = common.read_config(config, DetectorSettings())
    common.check_names("keypoint", keypoint, keypoints.KEYPOINTS)
    common.check_outputs([data, background, config], model=out)
    empty = background_images(background, data.resolve().parent)[:n_background]
    images = keypoints.read_annotations(data)
    console.log(f"{len(images)} photographs with faces, {len(empty)} without", quiet)
    names = list(dict.fromkeys(keypoint or keypoints.ANCHORS))
    n_jobs = common.resolve_jobs(jobs, dask, len(images) + len(empty), quiet)
    more = mode, resume, lambda line: console.log(line, quiet), n_jobs
    train_detector(images, empty, out, settings, names, *more)


@command_of(app)
@with_options(run_evaluation, model="faces", measure="ap")
def evaluate(run: Callable[[str], None]) -> None:
    """Evaluate detections against annotations by average precision, for each keypoint, tolerance
    and image source.

    \b
    Examples:
      annealed faces evaluate --data photographs --json
      annealed faces evaluate --data photographs --model mine.safetensors --report report
    """
    run("faces")
