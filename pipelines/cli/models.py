"""Commands ``annealed models``, for model files, and ``annealed info``, for the installation."""

from pathlib import Path
from typing import Annotated

import typer

from ... import models
from .. import common
from ..console import AsJson, command_of, new_app, print_answer, print_json

app = new_app(help="List shipped models and inspect model files.")


@command_of(app, "list")
def list_command(as_json: AsJson = False) -> None:
    """List the models that are shipped with the package.

    \b
    Examples:
      annealed models list
      annealed models list --json
    """
    from ...models.files import read_header

    rows = []
    for name in models.list_models():
        path = models.resolve_model(name)
        header = read_header(path)
        rows.append(
            {
                "name": name,
                "kind": header["kind"],
                "file": str(path),
                "summary": header.get("summary"),
            }
        )
    print_answer(rows, as_json, "", ["name", "kind", "summary"])


@command_of(app, "convert")
def convert(
    model: Annotated[
        str,
        typer.Argument(
            metavar="MODEL", help="Model file in an older format, or the name of a shipped model."
        ),
    ],
    out: Annotated[
        Path | None,
        typer.Option(
            "--out", "-o", metavar="FILE", help="Model file to write (default: replace MODEL)."
        ),
    ] = None,
    as_json: AsJson = False,
) -> None:
    """Convert a model to the current file format, which has a checksum. Predictions do not change.

    \b
    Examples:
      annealed models convert old.safetensors
      annealed models convert old.safetensors --out new.safetensors
    """
    import warnings

    from ...models.files import read_header, read_model, write_model

    path = models.resolve_model(model)
    new = out or path
    common.check_outputs([path] if out else [], model=new)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # the warning about a missing checksum
        models.load_model(path)  # validates every part
        arrays, header = read_model(path, read_header(path)["kind"])
    kind = header.pop("kind")
    write_model(new, kind, arrays, header)
    if as_json:
        print_json({"model": model, "kind": kind, "file": str(new)})


@command_of(app, "show")
def show(
    name: Annotated[
        str, typer.Argument(metavar="NAME", help="Name of a shipped model, or a model file.")
    ],
    as_json: AsJson = False,
) -> None:
    """Show the card and header of a model, including its settings, training data and scores.

    \b
    Examples:
      annealed models show faces
      annealed models show mine.safetensors --json
    """
    import json
    import re

    from ...models.files import read_header

    path = models.resolve_model(name)
    header = read_header(path)
    if as_json:
        print_json(header)
        return
    if (card := path.with_suffix(".md")).is_file():
        typer.echo(re.sub(r"<!--.*?-->\n?", "", card.read_text(encoding="utf-8")))
    typer.echo(json.dumps(header, indent=2, ensure_ascii=False))


def info(as_json: AsJson = False) -> None:
    """Print the versions of annealed and its dependencies, and other installation details.

    These details are the number of threads, the cache folder and the shipped models.

    \b
    Examples:
      annealed info
      annealed info --json
    """
    import os
    import platform
    from importlib.metadata import version

    from ... import __version__
    from ...learners.compilation import all_threads

    libraries = ("numpy", "scipy", "scikit-learn", "numba")
    record = {
        "annealed": __version__,
        "python": platform.python_version(),
        "platform": platform.platform(),
        **{name: version(name) for name in libraries},
        "threads": all_threads(),
        "cache": os.environ.get("NUMBA_CACHE_DIR") or "__pycache__ beside the modules",
        "models": ", ".join(models.list_models()),
    }
    if as_json:
        print_json(record)
    else:
        typer.echo("\n".join(f"{name}: {value}" for name, value in record.items()))
