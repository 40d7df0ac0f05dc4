"""The command ``annealed``: one module per group of commands, each of which imports what it needs
when it runs."""

from __future__ import annotations

import os
from typing import Annotated

import typer

from ..console import command_of, new_app
from . import data, faces, models, motion, pets, reproduce, select, sensors, serve, warmup

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
    version: Annotated[bool, typer.Option("--version", callback=_version, is_eager=True, help="Print the version.")] = False,
) -> None:
    pass


for group in (faces, motion, pets, sensors, data, models):
    app.add_typer(group.app, name=group.__name__.rpartition(".")[2])
for command in (select.select, select.predict, select.export, reproduce.reproduce, serve.serve, warmup.warmup):
    command_of(app)(command)
