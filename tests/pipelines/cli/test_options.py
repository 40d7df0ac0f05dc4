"""Options that a dataclass declares for a command, and for two groups of commands alike."""

import json
from dataclasses import dataclass
from typing import Annotated

import helpers
import pandas as pd
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


def test_a_sample_table_is_selected_from_and_predicted(tmp_path):
    model, table = tmp_path / "m.safetensors", tmp_path / "t.csv"
    result = helpers.run("select", "--sample", "-k", 2, "-o", model, "--table", table, "--json")
    record = json.loads(result.stdout)
    assert record["settings"]["target"] == "diagnosis" and len(record["selected"]) == 2
    result = helpers.run("predict", model, table, "--json")
    assert json.loads(result.stdout)["rows"] == record["n_rows"] == 569
    for command in (("select",), ("select", "--sample", table), ("motion", "segment")):
        result = helpers.run(*command)
        assert result.exit_code == 2 and "expected either" in result.stderr


def test_former_names_of_out_work_with_a_warning(tmp_path):
    model, table = tmp_path / "m.safetensors", tmp_path / "t.csv"
    result = helpers.run("select", "--sample", "-k", 2, "--save", model, "--out", table)
    assert (
        result.exit_code == 0
        and "--save is deprecated and will be removed in 0.4; use --out" in result.stderr
    )
    assert "use --table" in result.stderr and len(pd.read_csv(table).columns) == 3
    assert helpers.run("predict", model, table).exit_code == 0
    both = ("select", "--sample", "--save", model, "--out", model)
    result = helpers.run(*both)
    assert result.exit_code == 2 and "the former name of --out" in result.stderr
    faces = tmp_path / "faces.csv"
    result = helpers.run("faces", "detect", "--table", faces, "--quiet")
    assert (
        "--table is deprecated and will be removed in 0.4; use --out" in result.stderr
        and len(pd.read_csv(faces)) == 1
    )
    tracks = tmp_path / "tracks.csv"
    command = ("motion", "segment", "--sample", "--motions", 3, "--json")
    result = helpers.run(*command, "--tracks", tracks)
    assert "--tracks is deprecated and will be removed in 0.4; use --out" in result.stderr
    labels = set(pd.read_csv(tracks).label)
    assert labels == {-1, 0, 1, 2} and json.loads(result.stdout)["motions"] == 3
