"""Endpoints of the Label tab: images of a folder, their labels, and training in the background."""

import asyncio
import json
import subprocess
import sys
import tempfile
from collections import defaultdict
from contextlib import suppress
from pathlib import Path
from typing import IO, Any
from zlib import crc32

from starlette.requests import Request
from starlette.responses import FileResponse, JSONResponse, Response
from starlette.routing import Route

from ...models.messages import plain, short
from ..keypoints.labelling import LabelFolder
from .answers.limits import MIB, UPLOAD_SECONDS, RequestError
from .jobs import WorkerPool
from .uploads import Upload, plain_name

_BODY = 4 * MIB  # maximum size of the labels of one image
_UNREADABLE = json.JSONDecodeError, UnicodeDecodeError


class Labelling:
    """Folder of labelled images, with a model for proposals and the training of the next model.

    ``certainty`` contains, for each image and version of the model, the lowest probability of the
    detected objects. It is 0 if no objects are detected, and None if it is unknown.

    Parameters
    ----------
    labels : LabelFolder
    model : path, optional
        Initial model for proposals. By default, it is the model from an earlier training run in the
        folder.
    """

    def __init__(self, labels: LabelFolder, model: Path | None = None):
        self.labels = labels
        self.out = labels.folder / (plain_name(labels.schema.category) + ".safetensors")
        self.model = model if model is not None or not self.out.is_file() else self.out
        self.report = labels.folder / f"{self.out.stem}_report" / "keypoints.html"
        self.certainty: defaultdict[str, dict[str, float | None]] = defaultdict(dict)
        self.ranking: asyncio.Task[None] | None = None
        self._training: subprocess.Popen | None = None
        self._said: IO[bytes] | None = None

    def train(self) -> None:
        """Start ``annealed keypoints train`` on the labels.

        A RequestError is raised if a training run is already in progress.
        """
        if self._training is not None and self._training.poll() is None:
            raise RequestError(
                409, "a training run is already in progress; wait until it has finished"
            )
        if self._said is not None:
            self._said.close()
        self._said = tempfile.TemporaryFile()  # noqa: SIM115
        command = [
            *(sys.executable, "-m", "annealed.pipelines.cli", "keypoints", "train"),
            *("--data", str(self.labels.folder)),
            *("--out", str(self.out)),
            *("--report", str(self.report.parent)),
            *("--category", self.labels.schema.category),
        ]
        self._training = subprocess.Popen(
            command, stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, stderr=self._said
        )

    def training(self) -> dict[str, Any]:
        """Return the state of the training run, its latest output, and whether a report exists.

        The state is ``none``, ``running``, ``done`` or ``failed``.
        """
        report = self.report.is_file()
        if self._training is None or self._said is None:
            return {"state": "none", "line": "", "report": report}
        code, size = self._training.poll(), self._said.seek(0, 2)
        self._said.seek(max(0, size - 4096))
        lines = self._said.read().decode(errors="replace").split("\n")
        if code == 0:
            self.model = self.out
        state = "running" if code is None else "failed" if code else "done"
        return {
            "state": state,
            "line": next((line for line in reversed(lines) if line.strip()), ""),
            "report": report,
        }

    def version(self) -> str:
        """Return the version of the model, or an empty string if none exists yet."""
        return "" if self.model is None else str(self.model.stat().st_mtime_ns)

    def stop(self) -> None:
        """Stop the detection of objects in the images, and any training run in progress.

        The checkpoints of the training run remain next to the model.
        """
        if self.ranking is not None:
            self.ranking.cancel()
        if self._training is not None and self._training.poll() is None:
            self._training.terminate()
            self._training.wait()


def _version(objects: list[dict[str, Any]] | None) -> float:
    """Return a fingerprint of an image's labels, which :func:`save` compares."""
    return float(crc32(json.dumps(objects, sort_keys=True).encode()))


def label_routes(labelling: Labelling, pool: WorkerPool) -> list[Route]:
    """Return the endpoints of the Label tab.

    Workers of the pool decode images and compute proposals.
    """
    labels = labelling.labels

    async def overview(request: Request) -> Response:
        record = {**labels.record(), "training": labelling.training()}
        known = labelling.certainty[labelling.version()]
        for picture in record["pictures"]:
            picture["certainty"] = known.get(picture["name"])
        if labelling.model is not None and (labelling.ranking is None or labelling.ranking.done()):
            labelling.ranking = asyncio.create_task(rank())
        return JSONResponse(plain(record))

    async def rank() -> None:
        """Search the images without labels and proposals, to rank them by their certainty."""
        for path in labels.images:
            known = labelling.certainty[labelling.version()]
            if path.name not in {**labels.labels, **labels.proposals, **known}:
                known[path.name] = None  # also if the image cannot be read
                with suppress(RequestError, OSError):
                    await detected(path)

    async def detected(path: Path) -> dict[str, Any]:
        """Return an image and, if it has neither labels nor proposals, the detected objects."""
        fields, version = {}, labelling.version()
        if labelling.model is not None and path.name not in {**labels.labels, **labels.proposals}:
            fields = {"model": [str(labelling.model.absolute())], "changed": [version]}
        content = await asyncio.to_thread(path.read_bytes)
        async with pool.turn() as worker:
            answer = await worker.run(
                "label", Upload(plain_name(path.name), content, fields), lambda message: None
            )
        record: dict[str, Any] = json.loads(answer)
        if fields:
            labelling.certainty[version][path.name] = min(
                (one["probability"] for one in record["objects"]), default=0.0
            )
        return record

    async def shown(request: Request) -> Response:
        path = _picture(request)
        _refresh(path)
        state = labelling.training()  # the training may have produced a new model
        labelled, proposed = labels.labels.get(path.name), labels.proposals.get(path.name)
        record = await detected(path)
        known = labelled if labelled is not None else proposed
        record |= {"labelled": labelled is not None, "training": state} | (
            {} if known is None else {"objects": known}
        )
        record["version"] = _version(labelled)
        return JSONResponse(plain(record))

    async def save(request: Request) -> Response:
        path, body = _picture(request), b""
        try:
            async with asyncio.timeout(UPLOAD_SECONDS):
                async for part in request.stream():
                    body += part
                    if len(body) > _BODY:
                        raise RequestError(
                            413, f"the labels are too large; expected at most {_BODY // MIB} MiB"
                        )
        except TimeoutError:
            raise RequestError(
                408, f"the labels did not arrive within {UPLOAD_SECONDS:.0f} seconds"
            ) from None
        before = _version(labels.labels.get(path.name))
        _refresh(path)
        try:
            # integers are parsed as floats, since this takes linear time for any number of digits
            record = json.loads(body, parse_int=float)
            if record.get("version", before) != _version(labels.labels.get(path.name)):
                raise RequestError(
                    409,
                    f"{path.name}: the labels of this image were changed by another program or "
                    "window; reload the image",
                )
            labels.save(path, record["objects"])
        except (LookupError, TypeError, AttributeError, RecursionError, *_UNREADABLE):
            raise RequestError(
                400,
                f"{path.name}: the labels are not valid; expected a JSON object with "
                "objects and their keypoints",
            ) from None
        except (ValueError, OSError) as error:
            raise RequestError(400, short(error)) from None
        return JSONResponse({"saved": path.name})

    async def train(request: Request) -> Response:
        labelling.train()
        return JSONResponse(labelling.training())

    async def report(request: Request) -> Response:
        if not labelling.report.is_file():
            raise RequestError(404, "there is no report; expected a completed training run")
        return FileResponse(labelling.report)

    def _refresh(path: Path) -> None:
        try:
            labels.refresh()
        except (ValueError, OSError) as error:
            raise RequestError(409, f"{path.name}: {short(error)}") from None

    def _picture(request: Request) -> Path:
        number = request.path_params["number"]
        if number >= len(labels.images):
            raise RequestError(
                404, f"image {number} does not exist; expected a number below {len(labels.images)}"
            )
        return labels.images[number]

    return [
        Route("/api/label", overview),
        Route("/api/label/train", train, methods=["POST"]),
        Route("/api/label/report", report),
        Route("/api/label/{number:int}", shown),
        Route("/api/label/{number:int}", save, methods=["PUT"]),
    ]
