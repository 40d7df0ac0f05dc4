"""``annealed serve``: a local page to try everything on; ``annealed warmup``, for servers and
images."""

from pathlib import Path
from typing import Annotated

import typer

from ..console import print_answer, print_error, progress


def serve(
    port: Annotated[int, typer.Option(help="Port to listen on; 0: any free one.")] = 8000,
    host: Annotated[
        str, typer.Option(help="Address to listen on; by default this computer alone can ask.")
    ] = "127.0.0.1",
    workers: Annotated[
        int, typer.Option(help="Worker processes; each takes one request at a time.")
    ] = 2,
    open_page: Annotated[
        bool, typer.Option("--open", help="Open the page in the browser.")
    ] = False,
    label: Annotated[
        Path | None, typer.Option(help="Folder of pictures to label in the tab Label.")
    ] = None,
    model: Annotated[
        Path | None, typer.Option(help="With --label: model file that proposes the points.")
    ] = None,
) -> None:
    """Serve a local page for photographs, videos and tables. What is dropped on it is answered by
    this computer.

    \b
    Examples:
      annealed serve --open
      annealed serve --open --label dials --model dial.safetensors
    """
    from importlib.util import find_spec

    from ..serve.server import serve as run

    if model is not None and label is None:
        raise ValueError(f"--model {model}: expected --label, too")

    for name in ("python_multipart", "starlette", "uvicorn"):
        if find_spec(name) is None:
            raise ValueError(
                f"annealed serve needs {name} (pip install '.[serve]' in the checkout of annealed)"
            )

    def announce(url: str) -> None:
        typer.echo(f"annealed: {url} (Ctrl-C ends it)")
        if host not in ("localhost", "::1") and not host.startswith("127."):
            print_error(
                f"--host {host}: whoever can reach this computer may ask; there is no password"
            )

    run(host, port, workers, open_page, announce, label, model)


def warmup(
    parts: Annotated[
        list[str] | None,
        typer.Argument(metavar="PART", help="faces, motion, pets, learners; or all."),
    ] = None,
    as_json: Annotated[
        bool, typer.Option("--json", help="One JSON object instead of a table.")
    ] = False,
    quiet: Annotated[bool, typer.Option("--quiet", help="No progress on stderr.")] = False,
) -> None:
    """Compile everything once. No later call waits for it: for container images and servers.

    \b
    Examples:
      annealed warmup
      annealed warmup faces learners --quiet
    """
    import time

    from ...learners.compilation import seconds_compiling
    from ..common.config import check_names
    from ..warmup import PARTS

    check_names("part", parts, PARTS)
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
    columns = {"part": "part", "seconds": "seconds", "compiling": "of which compiling"}
    print_answer({"name": "warmup", "rows": rows}, as_json, "compiled", columns)
