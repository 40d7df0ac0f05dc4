"""Rejection of requests that come from other sites in the same browser."""

import ipaddress
from urllib.parse import urlsplit

from starlette.datastructures import Headers, MutableHeaders
from starlette.responses import JSONResponse
from starlette.types import ASGIApp, Message, Receive, Scope, Send

# External resources are not allowed; the report of a selection has inline styles.
_HEADERS = {
    "Content-Security-Policy": (
        "default-src 'none'; script-src 'self'; style-src 'self' 'unsafe-inline'; img-src 'self' "
        "blob: data:; connect-src 'self'; "
        "base-uri 'none'; form-action 'none'; frame-ancestors 'none'"
    ),
    "Cross-Origin-Resource-Policy": "same-origin",
    "Cross-Origin-Opener-Policy": "same-origin",
    "Referrer-Policy": "no-referrer",
    "X-Content-Type-Options": "nosniff",
    "X-Frame-Options": "DENY",
    "Cache-Control": "no-store",
}


class OriginMiddleware:
    """Middleware that rejects requests from other sites and adds security headers.

    Requests with a foreign Host (DNS rebinding) or a foreign Origin (CSRF) are rejected.

    Parameters
    ----------
    app : ASGI application
    host : str
        Host name on which the server listens. It is accepted as Host, as are localhost and all IP
        addresses, since no other site can use them.
    """

    def __init__(self, app: ASGIApp, host: str):
        self._app, self._host = app, host.lower()

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Check one request."""
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return

        async def send_with_headers(message: Message) -> None:
            if message["type"] == "http.response.start":
                MutableHeaders(scope=message).update(_HEADERS)
            await send(message)

        if (reason := self._reason(Headers(scope=scope))) is not None:
            await JSONResponse({"error": reason}, 403)(scope, receive, send_with_headers)
        else:
            await self._app(scope, receive, send_with_headers)

    def _reason(self, headers: Headers) -> str | None:
        host = headers.get("host", "")
        if not self._is_ours(host):
            return f"host {host[:100]!r} is not allowed; expected localhost or an IP address"
        origin = headers.get("origin")
        if origin is not None and origin.lower() != f"http://{host.lower()}":
            return f"origin {origin[:100]!r} is not allowed; expected the origin of this page"
        crosses = headers.get("sec-fetch-site") == "cross-site"
        navigates = headers.get("sec-fetch-mode") == "navigate"
        return "the request comes from another site" if crosses and not navigates else None

    def _is_ours(self, host: str) -> bool:
        try:
            name = (urlsplit(f"//{host}").hostname or "").lower()
            if name in ("localhost", self._host):
                return bool(name)
            ipaddress.ip_address(name)
        except ValueError:
            return False
        return True
