"""The pages and endpoints of ``annealed serve``."""

from __future__ import annotations

import ipaddress
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from urllib.parse import urlsplit

from starlette.applications import Starlette
from starlette.datastructures import Headers, MutableHeaders
from starlette.exceptions import HTTPException
from starlette.middleware import Middleware
from starlette.requests import Request
from starlette.responses import JSONResponse, Response, StreamingResponse
from starlette.routing import Mount, Route
from starlette.staticfiles import StaticFiles
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from ... import __version__
from ..console import plain
from .answers.limits import LIMITS
from .jobs import WorkerPool
from .uploads import read_upload

STATIC = Path(__file__).parent / "static"
_LINES = "application/x-ndjson"
_SAMPLES = {"astronaut.png": "image/png", "cat.png": "image/png", "moving.avi": "video/x-msvideo", "breast_cancer.csv": "text/csv"}
# Nothing from elsewhere is loaded or asked; the report of a selection has its styles inside.
_POLICY = (
    "default-src 'none'; script-src 'self'; style-src 'self' 'unsafe-inline'; img-src 'self' blob: data:; connect-src 'self'; "
    "base-uri 'none'; form-action 'none'; frame-ancestors 'none'"
)
_HEADERS = {"Content-Security-Policy": _POLICY, "X-Content-Type-Options": "nosniff", "Cache-Control": "no-store"}


def make_app(pool: WorkerPool, host: str = "127.0.0.1") -> Starlette:
    """Return the application.

    Parameters
    ----------
    pool : WorkerPool
        Started and stopped with the application.
    host : str, default "127.0.0.1"
        Name that the server listens on.

    Returns
    -------
    Starlette
    """

    @asynccontextmanager
    async def lifespan(app: Starlette) -> AsyncIterator[None]:
        pool.start()
        yield
        pool.stop()

    async def answer(request: Request) -> Response:
        kind = request.path_params["kind"]
        if kind not in LIMITS:
            raise HTTPException(404, f"{kind[:100]!r}: expected one of {', '.join(LIMITS)}")
        messages = pool.answer(kind, await read_upload(request, LIMITS[kind]))
        if _LINES in request.headers.get("accept", ""):
            return StreamingResponse((body + b"\n" async for _, body in messages), media_type=_LINES)
        status, body = [message async for message in messages][-1]
        return Response(body, status, media_type="application/json")

    async def status(request: Request) -> Response:
        load = {"running": pool.running, "waiting": pool.waiting}
        return JSONResponse({"version": __version__, **load, "limits": {name: limit._asdict() for name, limit in LIMITS.items()}})

    routes = [
        Route("/api/features", _features),
        Route("/api/status", status),
        Route("/api/{kind}", answer, methods=["POST"]),
        Route("/samples/{name}", _sample),
        Mount("/", StaticFiles(directory=STATIC, html=True)),
    ]
    middleware = [Middleware(OriginMiddleware, host=host)]
    return Starlette(routes=routes, lifespan=lifespan, middleware=middleware, exception_handlers={HTTPException: _error})


def _features(request: Request) -> Response:
    from .answers.faces import features

    return JSONResponse(plain(features()))


def _sample(request: Request) -> Response:
    from .answers.samples import sample

    name = request.path_params["name"]
    if name not in _SAMPLES:
        raise HTTPException(404, f"{name[:100]!r}: expected one of {', '.join(_SAMPLES)}")
    return Response(sample(name), media_type=_SAMPLES[name])


def _error(request: Request, error: Exception) -> Response:
    assert isinstance(error, HTTPException)
    return JSONResponse({"error": error.detail}, error.status_code, error.headers)


class OriginMiddleware:
    """Refuses requests whose Host is a foreign name (DNS rebinding) or whose Origin is another site
    (CSRF); adds headers.

    Parameters
    ----------
    app : ASGI application
    host : str
        Name that the server was told to listen on; with localhost and all IP addresses, which no
        other site can claim, it is allowed as Host.
    """

    def __init__(self, app: ASGIApp, host: str):
        self._app, self._host = app, host.lower()

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Check one request."""

        async def send_with_headers(message: Message) -> None:
            if message["type"] == "http.response.start":
                MutableHeaders(scope=message).update(_HEADERS)
            await send(message)

        reason = self._reason(Headers(scope=scope)) if scope["type"] == "http" else None
        app = self._app if reason is None else JSONResponse({"error": reason}, 403)
        await app(scope, receive, send_with_headers)

    def _reason(self, headers: Headers) -> str | None:
        host, origin = headers.get("host", ""), headers.get("origin")
        try:
            name = (urlsplit(f"//{host}").hostname or "").lower()
            if name not in ("localhost", self._host):
                ipaddress.ip_address(name)
        except ValueError:
            return f"host {host[:100]!r}: expected localhost or an IP address"
        if origin is not None and origin.lower() != f"http://{host.lower()}":
            return f"origin {origin[:100]!r}: expected this page's own"
        if headers.get("sec-fetch-site") == "cross-site" and headers.get("sec-fetch-mode") != "navigate":
            return "a request of another site"
        return None
