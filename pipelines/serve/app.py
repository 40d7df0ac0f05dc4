"""The pages and endpoints of ``annealed serve``."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator, Awaitable, Callable, Coroutine
from contextlib import asynccontextmanager
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
from .answers.limits import LIMITS, Limit, Refused
from .guard import Guard
from .jobs import Pool, Tell
from .uploads import UploadReader
from .worker import TABS

STATIC = Path(__file__).parent / "static"
_LINES = "application/x-ndjson"
_WATCH_SECONDS = 0.2
Work = Callable[[Tell], Awaitable[bytes]]
_SAMPLES = {"astronaut.png": "image/png", "cat.png": "image/png", "moving.avi": "video/x-msvideo", "breast_cancer.csv": "text/csv"}


def make_app(pool: Pool, host: str = "127.0.0.1") -> Starlette:
    """Return the application.

    Parameters
    ----------
    pool : Pool
        Started and stopped with the application.
    host : str, default "127.0.0.1"
        Name that the server listens on.

    Returns
    -------
    Starlette
    """

    @asynccontextmanager
    async def lifespan(app: Starlette) -> AsyncIterator[None]:
        await pool.start()
        try:
            yield
        finally:
            await pool.stop()

    async def answer(request: Request) -> Response:
        return await _respond(request, lambda tell: _answer(pool, request, request.path_params["kind"], tell))

    async def features(request: Request) -> Response:
        return await _respond(request, lambda tell: _run(pool, request, "features", "features", tell))

    async def sample(request: Request) -> Response:
        name = request.path_params["name"]
        if name not in _SAMPLES:
            return _refusal(Refused(404, f"{name[:100]!r}: expected one of {', '.join(_SAMPLES)}"))
        return await _respond(request, lambda tell: _run(pool, request, "sample", name, tell), _SAMPLES[name])

    async def status(request: Request) -> Response:
        limits = {name: vars(LIMITS[name]) for name in TABS}
        return JSONResponse({"version": __version__, "running": pool.running, "waiting": pool.waiting, "limits": limits})

    routes = [
        Route("/api/features", features),
        Route("/api/status", status),
        Route("/api/{kind}", answer, methods=["POST"]),
        Route("/samples/{name}", sample),
        Mount("/", StaticFiles(directory=STATIC, html=True)),
    ]
    guard = Middleware(Guard, host=host)
    return Starlette(routes=routes, lifespan=lifespan, middleware=[guard], exception_handlers={HTTPException: _http_error})


async def _http_error(request: Request, error: Exception) -> Response:
    assert isinstance(error, HTTPException)
    return _refusal(Refused(error.status_code, error.detail.lower()))


async def _answer(pool: Pool, request: Request, kind: str, tell: Tell) -> bytes:
    reader = UploadReader(request, LIMITS.get(kind, Limit(0, 0)))
    try:
        if kind not in TABS:
            raise Refused(404, f"{kind[:100]!r}: expected one of {', '.join(TABS)}")
        reader.check_head()
        async with pool.turn():
            upload = await reader.read()
            return await _while_there(request, pool.run(kind, upload.name, upload.data, upload.fields, tell))
    except Refused:
        await reader.discard()
        raise


async def _run(pool: Pool, request: Request, kind: str, name: str, tell: Tell) -> bytes:
    async with pool.turn():
        return await _while_there(request, pool.run(kind, name, b"", {}, tell))


async def _while_there(request: Request, work: Coroutine[Any, Any, bytes]) -> bytes:
    """Await the work, and cancel it when the client goes away; the request has been read to its end."""
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
    """Return what the work yields; as lines with the progress before the answer, where the client asks for these."""
    if _LINES in request.headers.get("accept", ""):
        return _Lines(work)
    try:
        return Response(await work(lambda message: None), media_type=media_type)
    except Refused as refused:
        return _refusal(refused)
    except ClientDisconnect:
        return Response(status_code=499)


class _Lines(Response):
    """Progress and the answer, a JSON object per line; the status is 200, and an error is the last line."""

    def __init__(self, work: Work):
        super().__init__(media_type=_LINES)
        del self.headers["content-length"]
        self._work = work

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Send the lines as they come."""
        messages: asyncio.Queue[dict[str, Any] | None] = asyncio.Queue()
        task = asyncio.ensure_future(self._work(messages.put_nowait))
        task.add_done_callback(lambda done: messages.put_nowait(None))
        await send({"type": "http.response.start", "status": 200, "headers": self.raw_headers})
        try:
            while (message := await messages.get()) is not None:
                await send({"type": "http.response.body", "body": json.dumps(message).encode() + b"\n", "more_body": True})
            last = await task
        except Refused as refused:
            last = json.dumps({"error": refused.message, "status": refused.status}).encode()
        except ClientDisconnect:
            return
        finally:
            task.cancel()
        await send({"type": "http.response.body", "body": last + b"\n"})


def _refusal(refused: Refused) -> Response:
    headers = {"Retry-After": "60"} if refused.status == 503 else {}
    return JSONResponse({"error": refused.message}, refused.status, headers)
