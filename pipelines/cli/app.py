"""Command ``annealed``, with one module per group of subcommands.

Only the module of the requested command is imported, or all modules if there is no command, as for
``--help``. Commands import their dependencies when they run.
"""

import os
import sys
from importlib import import_module
from importlib.metadata import entry_points
from typing import Any

import typer

from ..console import command_of, new_app, one_line_errors, root_options

# suppresses messages of OpenCV and FFmpeg unless the variables are set
os.environ.setdefault("OPENCV_LOG_LEVEL", "SILENT")
os.environ.setdefault("OPENCV_FFMPEG_LOGLEVEL", "-8")

# name -> module
_GROUPS = {name: name for name in ("faces", "keypoints", "motion", "pets", "sensors", "models")}
_COMMANDS = {
    "select": "select",
    "predict": "select",
    "export": "select",
    "serve": "serve",
    "warmup": "serve",
    "info": "models",
}
_EXPERIMENTS = ("reproduce", "data")  # in the distribution annealed-experiments

app = new_app(help="Feature selection with annealing, and computer vision tools that use it.")
app.callback()(root_options)


def _add(name: str, command: Any) -> None:
    """Add a command or a group of commands."""
    if isinstance(command, typer.Typer):
        app.add_typer(command, name=name)
    else:
        command_of(app, name)(command)


def _not_installed() -> None:
    raise ModuleNotFoundError(
        "annealed-experiments is not installed; run pip install ./experiments in the annealed "
        "checkout"
    )


_names = _GROUPS | _COMMANDS
_requested = [name for name in _names if name in sys.argv[1:2]]
for name in _requested or _names:
    module = import_module(f".{_names[name]}", __package__)
    _add(name, module.app if name in _GROUPS else getattr(module, name))
if not _requested:  # commands of other distributions
    _installed = {entry.name: entry for entry in entry_points(group="annealed.commands")}
    for entry in _installed.values():
        _add(entry.name, entry.load())
    for name in {*_EXPERIMENTS} - {*_installed}:
        anything = {"ignore_unknown_options": True, "allow_extra_args": True}
        app.command(name, hidden=True, context_settings=anything)(one_line_errors(_not_installed))
