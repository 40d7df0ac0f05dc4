"""Options that a dataclass declares for a command, and for two groups of commands alike."""

from dataclasses import dataclass
from typing import Annotated

import pytest
import typer
from annealed.pipelines.cli.app import app
from annealed.pipelines.console import command_of, new_app, with_options
from typer.main import get_command
from typer.testing import CliRunner


@dataclass(frozen=True)
class Base:
    name: Annotated[str, typer.Option(help="A name.")]
    words: Annotated[tuple[str, ...], typer.Option("--word", help="Some words.")] = ()
    hidden: bool = False


@dataclass(frozen=True)
class Further(Base):
    size: Annotated[int, typer.Option("-n", help="A number.")] = 3


def run(*arguments, **defaults):
    small, seen = new_app("Small."), []

    @command_of(small)
    @with_options(Further, **defaults)
    def first(request: Further, quiet: bool = False) -> None:
        """Do it."""
        seen.append((request, quiet))

    result = CliRunner().invoke(small, ["--quiet", *arguments])
    return result, seen


def test_fields_become_options():
    assert run("--name", "a", "--word", "x", "--word", "y", "-n", "5")[1] == [
        (Further("a", ("x", "y"), size=5), True)
    ]
    assert run("--name", "a")[1] == [(Further("a"), True)]
    result, seen = run("-n", "5")
    assert result.exit_code == 2 and not seen and "--name" in result.output
    assert run("--name", "a", "--hidden")[0].exit_code == 2


def test_defaults_of_a_command_replace_those_of_the_fields():
    assert run(name="b", size=7)[1] == [(Further("b", size=7), True)]


@pytest.mark.parametrize("name", ["detect", "evaluate"])
def test_keypoints_and_faces_have_the_same_options(name):
    groups = get_command(app).commands
    faces, keypoints = (
        {p.name: p.opts for p in groups[group].commands[name].params}
        for group in ("faces", "keypoints")
    )
    assert faces == keypoints
