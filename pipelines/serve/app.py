"""Pages and endpoints of ``annealed serve``."""

import asyncio
import json
from collections.abc import AsyncIterator, Awaitable, Callable, Coroutine
from contextlib import asynccontextmanager
from functools import partial
from pathlib import Path
from typing import Any

from starlette.applications import Starlette
from starlette.exceptions import HTTPException
from starlette.middleware import Middleware
from starlette.requests import ClientDisconnect, Request
from starlette.responses import JSONResponse, Response
from starlette.routing import Mount, Route
from starlette.staticfiles import StaticFiles
from starlette.types import Receive, Scope, Send

from ... import __version__
from .answers.limits import LIMITS, RequestError
from .guard import OriginMiddleware
from .jobs import TABS, ProgressCallback, WorkerPool
from .label import Labelling, label_routes
from .uploads import Upload, check_head, discard, read_upload

STATIC = Path(__file__).parent / "static"
_LINES = "application/x-ndjson"
_WATCH_SECONDS = 0.2
_SAMPLES = {
    "astronaut.png": "image/png",
    "cat.png": "image/png",
    "moving.avi": "video/x-msvideo",
    "breast_cancer.csv": "text/csv",
}
Work = Callable[[ProgressCallback], Awaitable[bytes]]


def make_app(
    pool: WorkerPool, host: str = "127.0.0.1", labelling: Labelling | None = None
) -> Starlette:
    """Create the web application.

    Parameters
    ----------
    pool : WorkerPool
        Pool of workers, which is started and stopped with the application.
    host : str, default "127.0.0.1"
        Host name on which the server listens.
    labelling : Labelling, optional
        Folder of the Label tab. If None, the tab is hidden.

    Returns
    -------
    Starlette
    """

    # a single process, which remembers the persons of earlier frames
    camera = WorkerPool(1, pool.memory)

    @asynccontextmanager
    async def lifespan(app: Starlette) -> AsyncIterator[None]:
        try:
            pool.start()
            yield
        finally:
            pool.stop()
            camera.stop()
            if labelling is not None:
                labelling.stop()

    async def answer(request: Request) -> Response:
        kind = request.path_params["kind"]
        if kind == "camera" and not camera.workers:
            camera.start()
        return await _respond(
            request, partial(_answer, camera if kind == "camera" else pool, request, kind)
        )

    async def features(request: Request) -> Response:
        return await _respond(request, partial(_run, pool, request, "features", Upload("features")))

    async def sample(request: Request) -> Response:
        name = request.path_params["name"]
        if name not in _SAMPLES:
            return _error(
                RequestError(
                    404, f"{name[:100]!r} is unknown; expected one of {', '.join(_SAMPLES)}"
                )
            )
        return await _respond(
            request, partial(_run, pool, request, "sample", Upload(name)), _SAMPLES[name]
        )

    async def status(request: Request) -> Response:
        state = {
            "version": __version__,
            "running": pool.running,
            "waiting": pool.waiting,
            "limits": {name: vars(LIMITS[name]) for name in TABS},
            "label": labelling is not None,
        }
        return JSONResponse(state)

    routes = [
        Route("/api/features", features),
        Route("/api/status", status),
        *(label_routes(labelling, pool) if labelling is not None else []),
        Route("/api/{kind}", answer, methods=["POST"]),
        Route("/samples/{name}", sample),
        Mount("/", StaticFiles(directory=STATIC, html=True)),
    ]
    return Starlette(
        routes=routes,
        lifespan=lifespan,
        middleware=[Middleware(OriginMiddleware, host=host)],
        exception_handlers=_HANDLERS,
    )


async def _refused(request: Request, error: Any) -> Response:
    return _error(
        error
        if isinstance(error, RequestError)
        else RequestError(error.status_code, error.detail.lower())
    )


_HANDLERS = dict.fromkeys((HTTPException, RequestError), _refused)


async def _answer(pool: WorkerPool, request: Request, kind: str, report: ProgressCallback) -> bytes:
    try:
        if kind not in TABS:
            raise RequestError(404, f"{kind[:100]!r} is unknown; expected one of {', '.join(TABS)}")
        check_head(request, LIMITS[kind])
        return await _run(pool, request, kind, None, report)
    except RequestError:
        await discard(request)
        raise


async def _run(
    pool: WorkerPool, request: Request, kind: str, upload: Upload | None, report: ProgressCallback
) -> bytes:
    """Have a worker answer a request. Unless it is given, the upload is read first, so that slow
    clients do not occupy a worker."""
    with pool.room() as hold:
        upload = upload or await read_upload(request, LIMITS[kind], hold)
        async with pool.turn() as worker:
            return await _while_connected(request, worker.run(kind, upload, report))


async def _while_connected(request: Request, work: Coroutine[Any, Any, bytes]) -> bytes:
    """Await the work, and cancel it if the client disconnects. The request must already be read
    completely."""
    task = asyncio.ensure_future(work)
    try:
        while not task.done():
            await asyncio.wait([task], timeout=_WATCH_SECONDS)
            if not task.done() and await request.is_disconnected():
                raise ClientDisconnect
        return await task
    finally:
        task.cancel()


async def _respond(request: Request, work: Work, media_type: str = "application/json") -> Response:
    """Return the answer, preceded by progress lines if the client requests them."""
    if _LINES in request.headers.get("accept", ""):
        return _Lines(work)
    try:
        return Response(await work(lambda message: None), media_type=media_type)
    except RequestError as error:
        return _error(error)
    except ClientDisconnect:
        return Response(status_code=499)


class _Lines(Response):
    """Stream of progress and the answer, with one JSON object per line. The status is always 200;
    an error is reported in the last line.

    Starlette's StreamingResponse is not used because it would wait for a disconnect while the work
    is still reading the request.
    """

    def __init__(self, work: Work):
        super().__init__(media_type=_LINES)
        del self.headers["content-length"]
        self._work = work

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Send the lines as they arrive."""
        messages: asyncio.Queue[dict[str, Any] | None] = asyncio.Queue()
        task = asyncio.ensure_future(self._work(messages.put_nowait))
        task.add_done_callback(lambda done: messages.put_nowait(None))
        await send({"type": "http.response.start", "status": 200, "headers": self.raw_headers})
        try:
            while (message := await messages.get()) is not None:
                await send(
                    {
                        "type": "http.response.body",
                        "body": json.dumps(message).encode() + b"\n",
                        "more_body": True,
                    }
                )
            last = await task
        except RequestError as error:
            last = json.dumps({"error": error.message, "status": error.status}).encode()
        except ClientDisconnect:
            return
        finally:
            task.cancel()
        await send({"type": "http.response.body", "body": last + b"\n"})


def _error(error: RequestError) -> Response:
    return JSONResponse(
        {"error": error.message},
        error.status,
        {"Retry-After": "60"} if error.status == 503 else {},
    )
