"""The command ``annealed``: one module per group of commands, each of which imports what it needs when it runs."""

from __future__ import annotations

import io
import os
import sys
from typing import Annotated

import typer

from ..console import new_app

# Libraries would add lines of their own to ours; whoever wants these sets the variables.
os.environ.setdefault("OPENCV_LOG_LEVEL", "SILENT")
os.environ.setdefault("OPENCV_FFMPEG_LOGLEVEL", "-8")

app = new_app(help="Sparse learners that see: feature selection with annealing, and vision tools built on it.")


def _version(value: bool) -> None:
    if value:
        from ... import __version__

        typer.echo(__version__)
        raise typer.Exit


@app.callback()
def _root(
    version: Annotated[
        bool, typer.Option("--version", callback=_version, is_eager=True, help="Print the version and exit.")
    ] = False,
) -> None:
    pass


def main() -> None:
    """Run the command line; the entry point of the script ``annealed``."""
    for stream in (sys.stdout, sys.stderr):  # names of columns and files may hold what a terminal's encoding does not
        if isinstance(stream, io.TextIOWrapper):
            stream.reconfigure(errors="backslashreplace")
    app()


def _assemble() -> None:
    from . import data, faces, models, motion, pets, reproduce, select, sensors, serve, warmup

    app.add_typer(faces.app, name="faces")
    app.add_typer(motion.app, name="motion")
    app.add_typer(pets.app, name="pets")
    app.add_typer(sensors.app, name="sensors")
    app.add_typer(data.app, name="data")
    app.add_typer(models.app, name="models")
    select.register(app)
    reproduce.register(app)
    serve.register(app)
    warmup.register(app)


_assemble()
