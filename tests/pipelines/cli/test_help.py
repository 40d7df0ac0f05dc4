"""The help of every command has two examples, which the command understands, and shows choices."""

import json
import shlex

import pytest
from annealed import __version__
from annealed.models.images.learning import METHODS as PETS_METHODS
from annealed.models.keypoints.instances.assembly import Assembly
from annealed.models.keypoints.windows.window_models import Mode
from annealed.pipelines.cli.app import app
from annealed.pipelines.motion.benchmark import POOLS
from annealed.pipelines.motion.methods import METHODS as MOTION_METHODS
from annealed.pipelines.sensors.train import METHODS as SENSORS_METHODS
from annealed.pipelines.warmup import PARTS
from helpers import run
from typer.main import get_command


def commands(command, name="annealed"):
    for part, below in getattr(command, "commands", {}).items():
        if getattr(below, "commands", None):
            yield from commands(below, f"{name} {part}")
        else:
            yield f"{name} {part}", below


@pytest.mark.parametrize(
    "name, command", list(commands(get_command(app))), ids=lambda value: str(value)
)
def test_two_examples_that_are_understood(name, command):
    examples = [
        line.strip() for line in command.help.partition("Examples:")[2].splitlines() if line.strip()
    ]
    assert len(examples) == 2 and len(set(examples)) == 2
    for example in examples:
        assert example.startswith(name) and len(example) <= 100
        command.make_context(name, shlex.split(example.removeprefix(name)), resilient_parsing=False)


CHOICES = {
    ("faces", "detect", "mode"): Mode,
    ("faces", "detect", "assembly"): Assembly,
    ("faces", "train", "mode"): Mode,
    ("motion", "evaluate", "method"): MOTION_METHODS,
    ("motion", "evaluate", "pool"): POOLS,
    ("pets", "train", "method"): PETS_METHODS,
    ("sensors", "train", "method"): SENSORS_METHODS,
    ("warmup", "parts"): PARTS,
}


@pytest.mark.parametrize(
    "path, choices",
    CHOICES.items(),
    ids=lambda value: " ".join(value) if isinstance(value, tuple) else "",
)
def test_an_option_with_a_choice_shows_it(path, choices):
    command = get_command(app)
    for name in path[:-1]:
        command = command.commands[name]
    (option,) = (parameter for parameter in command.params if parameter.name == path[-1])
    assert [choice for choice in choices if choice not in option.help] == []


def test_select_groups_its_options_under_plain_metavars():
    shown = run("select", "--help").stdout
    titles = ("Target and task", "Columns", "Rows", "Certainty", "Input", "Output")
    places = [shown.index(f"\n{title}:\n") for title in ("Arguments", *titles)]
    assert places == sorted(places)
    assert "--include COLUMN" in shown and "--config FILE" in shown and "-o, --out FILE" in shown
    assert not {"<str>", "<path>", "<list[str]>", "<Any>", "{TABLE}"} & set(shown.split())


def test_options_of_experts_have_a_panel():
    panel = run("faces", "detect", "--help").stdout.partition("Expert options:")[2]
    assert all(option in panel for option in ("--threshold", "--mode", "--assembly"))


def test_version_completion_and_info():
    assert run("-V").stdout == f"annealed {__version__}\n"
    assert "--install-completion" in run("--help").stdout
    record = json.loads(run("info", "--json").stdout)
    assert record["annealed"] == __version__ and record["threads"] >= 1
    assert f"annealed: {__version__}" in run("info").stdout
