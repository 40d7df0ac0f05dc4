"""The help of every command has two examples, which the command understands."""

import shlex

import pytest
from annealed.pipelines.cli.app import app
from typer.main import get_command


def commands(command, name="annealed"):
    for part, below in getattr(command, "commands", {}).items():
        if getattr(below, "commands", None):
            yield from commands(below, f"{name} {part}")
        else:
            yield f"{name} {part}", below


@pytest.mark.parametrize("name, command", list(commands(get_command(app))), ids=lambda value: str(value))
def test_two_examples_that_are_understood(name, command):
    examples = [line.strip() for line in command.help.partition("Examples:")[2].splitlines() if line.strip()]
    assert len(examples) == 2 and len(set(examples)) == 2
    for example in examples:
        assert example.startswith(name) and len(example) <= 100
        command.make_context(name, shlex.split(example.removeprefix(name)), resilient_parsing=False)
