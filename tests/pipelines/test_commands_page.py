"""The reference page names every command and every option."""

import re
from pathlib import Path

import pytest
from annealed.pipelines.cli.app import app
from typer.main import get_command

PAGE = Path(__file__).resolve().parents[2] / "docs" / "commands.md"


def commands(command, name):
    yield name, command
    for part, below in getattr(command, "commands", {}).items():
        yield from commands(below, f"{name} {part}")


@pytest.mark.parametrize("name, command", [pair for pair in commands(get_command(app), "annealed") if " " in pair[0]])
def test_the_page_names_the_command_and_its_options(name, command):
    sections = dict(re.findall(r"^#+ (annealed .*)\n((?:(?!^#).*\n)*)", PAGE.read_text(), re.MULTILINE))
    assert name in sections, f"docs/commands.md has no section {name!r}"
    options = {option for parameter in command.params for option in parameter.opts if option.startswith("-")}
    assert options == set(re.findall(r"^\| `(-+[a-z-]+)`", sections[name], re.MULTILINE))
