"""Starts the server of ``annealed serve``."""

from __future__ import annotations

import socket
import sys
import webbrowser
from collections.abc import Callable
from contextlib import suppress
from typing import Any


def listening(host: str, port: int) -> socket.socket:
    """Return a socket that listens.

    Raises
    ------
    ValueError
        If the port is taken, or the host is none of this computer.
    """
    try:
        return socket.create_server((host, port), family=socket.AF_INET6 if ":" in host else socket.AF_INET)
    except (OSError, OverflowError) as error:
        raise ValueError(f"{host}, port {port}: cannot listen there ({error}); expected a free port, or 0 for any") from None


def serve(host: str, port: int, workers: int, open_page: bool, say: Callable[[str], object]) -> None:
    """Serve the page until interrupted.

    Parameters
    ----------
    host : str
        Name or address to listen on.
    port : int
        0 takes any free one.
    workers : int
        Worker processes.
    open_page : bool
        Whether to open the page in the browser.
    say : function
        Called with the address when the socket listens.

    Raises
    ------
    ValueError
        If nothing can be served there.
    """
    if sys.platform == "win32":
        raise ValueError("annealed serve limits the memory of its workers, which Windows cannot; expected Linux or macOS")
    if not 0 <= port < 2**16:
        raise ValueError(f"--port {port}: expected 0 to 65535")
    if workers < 1:
        raise ValueError(f"--workers {workers}: expected at least 1")
    import uvicorn

    from .app import make_app
    from .jobs import WorkerPool

    server_socket = listening(host, port)
    url = f"http://{f'[{host}]' if ':' in host else host}:{server_socket.getsockname()[1]}/"
    limits: dict[str, Any] = {"limit_concurrency": 512, "timeout_keep_alive": 30, "timeout_graceful_shutdown": 2}
    config = uvicorn.Config(make_app(WorkerPool(workers), host), log_level="error", server_header=False, **limits)
    say(url)  # the socket listens already: who asks now is answered as soon as the server has started
    if open_page:
        webbrowser.open(url)
    with suppress(KeyboardInterrupt):  # how one ends it
        uvicorn.Server(config).run(sockets=[server_socket])
