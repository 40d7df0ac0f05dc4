"""``annealed faces``: the commands of ``annealed keypoints`` with the schema, model and measure of
faces."""

from dataclasses import dataclass
from pathlib import Path
from typing import Annotated

from typer import Option

from .. import console
from ..console import AsJson, Quiet, command_of, new_app, with_options
from . import keypoints
from .keypoints import EXPERT, Detection, Evaluation, Training, Words

app = new_app(help="Keypoints of faces: eyes, nose, mouth, ears and chin.")


@command_of(app)
@with_options(Detection, model="faces")
def detect(request: Detection, as_json: AsJson = False, quiet: Quiet = False) -> None:
    """Detect facial keypoints in photographs and videos; without INPUT, in a sample photograph.

    \b
    Examples:
      annealed faces detect holiday --out faces.csv --crops crops
      annealed faces detect clip.mp4 --landmarks --json --smooth off
    """
    keypoints.run_detection(request, "faces", as_json, quiet)


@dataclass(frozen=True)
class FaceTraining(Training):
    """Options of ``annealed faces train``, in addition to those of any training."""

    keypoint: Annotated[
        Words, Option("--keypoint", metavar="NAME", help="Train only this keypoint; repeatable.")
    ] = ()
    n_background: Annotated[
        int, Option(metavar="N", help="Number of background images, the first by name.")
    ] = 140
    mode: Annotated[
        str,
        EXPERT(metavar="MODE", help="Fastest mode to train for: scan, regress, or prune+regress."),
    ] = "prune+regress"
    config: Annotated[
        Path | None,
        Option(metavar="FILE", help="TOML or JSON file of settings, with a table for each stage."),
    ] = None


@command_of(app)
@with_options(FaceTraining)
def train(request: FaceTraining, quiet: Quiet = False) -> None:
    """Train a detector from scratch; defaults reproduce the shipped model.

    \b
    Examples:
      annealed faces train --data photographs --out mine.safetensors
      annealed faces train --data photographs --out mine.safetensors --mode scan --resume
    """
    from ...models.keypoints.windows.window_models import Mode as SearchMode
    from ..common.config import check_names, read_config
    from ..common.file_map import resolve_jobs
    from ..common.outputs import check_outputs
    from ..keypoints.data import read_annotations
    from ..keypoints.faces import ANCHORS, KEYPOINTS
    from ..keypoints.training.stages import DetectorSettings, train_detector

    check_names("mode", [request.mode], SearchMode)
    settings = read_config(request.config, DetectorSettings())
    check_names("keypoint", request.keypoint, KEYPOINTS)
    check_outputs([request.data, request.background, request.config], model=request.out)
    empty = keypoints.background_images(request.background, request.data.resolve().parent)[
        : request.n_background
    ]
    images = read_annotations(request.data)
    console.log(f"{len(images)} photographs with faces, {len(empty)} without", quiet)
    names = list(dict.fromkeys(request.keypoint)) or ANCHORS
    n_jobs = resolve_jobs(request.jobs, request.dask, len(images) + len(empty), quiet)
    more = request.mode, request.resume, lambda line: console.log(line, quiet), n_jobs
    train_detector(images, empty, request.out, settings, names, *more)


@command_of(app)
@with_options(Evaluation, model="faces", measure="ap")
def evaluate(request: Evaluation, as_json: AsJson = False, quiet: Quiet = False) -> None:
    """Evaluate detections against annotations: average precision per keypoint, tolerance and
    source.

    \b
    Examples:
      annealed faces evaluate --data photographs --json
      annealed faces evaluate --data photographs --model mine.safetensors --report report
    """
    keypoints.run_evaluation(
        request, "faces", keypoints.background_images(request.background), as_json, quiet
    )
