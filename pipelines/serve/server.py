"""Startup of the server of ``annealed serve``."""

import socket
import sys
import webbrowser
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path

from ..common import check_integer
from ..console import load_model_of


def listening(host: str, port: int) -> socket.socket:
    """Return a listening socket.

    Raises
    ------
    ValueError
        If the port is in use, or the host is not an address of this computer.
    """
    try:
        return socket.create_server(
            (host, port), family=socket.AF_INET6 if ":" in host else socket.AF_INET
        )
    except (OSError, OverflowError) as error:
        raise ValueError(
            f"cannot listen on host {host}, port {port} ({error}); expected a free port, or 0 "
            "to choose one automatically"
        ) from None


def serve(
    host: str,
    port: int,
    workers: int,
    open_page: bool,
    say: Callable[[str], object],
    label: Path | None,
    model: Path | None,
) -> None:
    """Serve the web page until the process is interrupted.

    Parameters
    ----------
    host : str
        Host name or address on which to listen.
    port : int
        Port on which to listen; 0 selects a free port.
    workers : int
        Number of worker processes.
    open_page : bool
        Whether to open the page in the browser.
    say : function
        Function called with the address once the page is available.
    label : path, optional
        Folder of images for the Label tab.
    model : path, optional
        Model file for proposals in these images.

    Raises
    ------
    ValueError
        If the page cannot be served.
    """
    if sys.platform == "win32":
        raise ValueError(
            "annealed serve limits the memory of its workers, which Windows does not support; use "
            "Linux or macOS"
        )
    check_integer("--port", port, 0, 65535)
    check_integer("--workers", workers, 1)
    import uvicorn

    from ..keypoints.labelling import LabelFolder
    from .app import make_app
    from .connections import BoundedConnection
    from .jobs import WorkerPool
    from .label import Labelling

    labelling = None
    if label is not None:
        detector = None if model is None else load_model_of("keypoint detector", str(model))
        labelling = Labelling(
            LabelFolder(label, None if detector is None else detector.schema), model
        )
    server_socket = listening(host, port)
    url = f"http://{f'[{host}]' if ':' in host else host}:{server_socket.getsockname()[1]}/"

    class Server(uvicorn.Server):
        async def startup(self, sockets: list[socket.socket] | None = None) -> None:
            await super().startup(sockets)
            if self.started:
                say(url)
                if open_page:
                    webbrowser.open(url)

    config = uvicorn.Config(
        make_app(WorkerPool(workers), host, labelling),
        http=BoundedConnection,
        log_level="error",
        server_header=False,
        limit_concurrency=512,
        timeout_keep_alive=30,
        timeout_graceful_shutdown=2,
    )
    with suppress(KeyboardInterrupt):  # the usual way to stop
        Server(config).run(sockets=[server_socket])
