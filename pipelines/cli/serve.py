"""Commands ``annealed serve``, a local web page, and ``annealed warmup``, for compilation."""

from pathlib import Path
from typing import Annotated

import typer

from .. import common
from ..console import AsJson, Quiet, print_answer, print_error, progress


def serve(
    port: Annotated[int, typer.Option(help="Port on which to listen (0: any free port).")] = 8000,
    host: Annotated[
        str, typer.Option(help="Address on which to listen (default: this computer only).")
    ] = "127.0.0.1",
    workers: Annotated[
        int,
        typer.Option(help="Number of worker processes; each answers one request at a time."),
    ] = 2,
    open_page: Annotated[
        bool, typer.Option("--open", help="Open the page in the browser.")
    ] = False,
    label: Annotated[
        Path | None,
        typer.Option(metavar="FOLDER", help="Folder of images to annotate in the Label tab."),
    ] = None,
    model: Annotated[
        Path | None,
        typer.Option(metavar="FILE", help="Model that proposes the points in the Label tab."),
    ] = None,
) -> None:
    """Serve a local web page that processes photographs, videos and tables on this computer.

    \b
    Examples:
      annealed serve --open
      annealed serve --open --label dials --model dial.safetensors
    """
    from importlib.util import find_spec

    from ..serve.server import serve as run

    if model is not None and label is None:
        raise ValueError(f"--model {model} requires --label")

    for name in ("python_multipart", "starlette", "uvicorn"):
        if find_spec(name) is None:
            raise ValueError(
                f"annealed serve requires {name}; run pip install '.[serve]' in the annealed "
                "checkout"
            )

    def announce(url: str) -> None:
        typer.echo(f"annealed: {url} (stop with Ctrl-C)")
        if host not in ("localhost", "::1") and not host.startswith("127."):
            print_error(
                f"--host {host}: anyone who can reach this computer can use the page without "
                "a password"
            )

    run(host, port, workers, open_page, announce, label, model)


def warmup(
    parts: Annotated[
        list[str] | None,
        typer.Argument(
            metavar="PART", help="Part to compile: faces, motion, pets or learners (default: all)."
        ),
    ] = None,
    as_json: AsJson = False,
    quiet: Quiet = False,
) -> None:
    """Compile all functions in advance, for example in container images and on servers.

    \b
    Examples:
      annealed warmup
      annealed warmup faces learners --quiet
    """
    import time

    from ...learners.compilation import seconds_compiling
    from ..warmup import PARTS

    common.check_names("part", parts, PARTS)
    rows = []
    for part in progress(parts or list(PARTS), quiet, "parts", len(parts or PARTS)):
        start, compiled = time.perf_counter(), seconds_compiling()
        PARTS[part]()
        rows.append(
            {
                "part": part,
                "seconds": time.perf_counter() - start,
                "compiling": seconds_compiling() - compiled,
            }
        )
    print_answer(
        {"name": "warmup", "rows": rows},
        as_json,
        "compiled",
        {"part": "part", "seconds": "seconds", "compiling": "compilation"},
    )
