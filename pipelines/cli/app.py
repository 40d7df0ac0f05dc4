"""The command ``annealed``: one module per group of commands, each of which imports what it needs
when it runs.

Only the module of the command that was asked for is imported; for anything else, such as
``--help``, all.
"""

import os
import sys
from importlib import import_module
from typing import Annotated

import typer

from ..console import command_of, new_app

# Libraries would add lines of their own to ours; whoever wants these sets the variables.
os.environ.setdefault("OPENCV_LOG_LEVEL", "SILENT")
os.environ.setdefault("OPENCV_FFMPEG_LOGLEVEL", "-8")

# name -> module
_GROUPS = {name: name for name in ("faces", "keypoints", "motion", "pets", "sensors", "data", "models")}
_COMMANDS = dict.fromkeys(("select", "predict", "export"), "select")
_COMMANDS |= {"reproduce": "reproduce", "serve": "serve", "warmup": "serve"}

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


_names = _GROUPS | _COMMANDS
for name in [name for name in _names if name in sys.argv[1:2]] or _names:
    module = import_module(f".{_names[name]}", __package__)
    if name in _GROUPS:
        app.add_typer(module.app, name=name)
    else:
        command_of(app)(getattr(module, name))
