"""``annealed serve``: a local page to try everything on."""

from __future__ import annotations

from typing import Annotated

import typer

from ..console import complain


def serve(
    port: Annotated[int, typer.Option(help="Port to listen on; 0: any free one.")] = 8000,
    host: Annotated[str, typer.Option(help="Address to listen on; by default this computer alone can ask.")] = "127.0.0.1",
    workers: Annotated[int, typer.Option(help="Worker processes; each takes one request at a time.")] = 2,
    open_page: Annotated[bool, typer.Option("--open", help="Open the page in the browser.")] = False,
) -> None:
    """Serve a local page for photographs, videos and tables. What is dropped on it is answered by
    this computer.

    \b
    Examples:
      annealed serve --open
      annealed serve --port 0 --workers 1
    """
    from importlib.util import find_spec

    from ..serve.server import serve as run

    for name in ("python_multipart", "starlette", "uvicorn"):
        if find_spec(name) is None:
            raise ValueError(f"annealed serve needs {name} (pip install '.[serve]' in the checkout of annealed)")

    def announce(url: str) -> None:
        typer.echo(f"annealed: {url} (Ctrl-C ends it)")
        if host not in ("localhost", "::1") and not host.startswith("127."):
            complain(f"--host {host}: whoever can reach this computer may ask; there is no password")

    run(host, port, workers, open_page, announce)
