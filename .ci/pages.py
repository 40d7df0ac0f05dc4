"""Write docs/commands.md and docs/api.md from the help texts of the commands and the docstrings of
the public names. What docs/commands.md says before the first command, and after the options of
each, is kept.

python .ci/pages.py        from the root of the checkout, with the package installed
"""

import importlib
import inspect
import re
import textwrap
from pathlib import Path

from annealed.pipelines.cli.app import app
from typer.main import get_command

DOCS = Path("docs")

PAGES = {
    "faces": "faces.md",
    "keypoints": "keypoints.md",
    "motion": "motion.md",
    "pets": "pets.md",
    "sensors": "sensors.md",
    "select": "tables.md",
    "predict": "tables.md",
    "export": "export.md",
    "reproduce": "../experiments/pages/benchmarks.md",
}

NAMES = """# Public names

Import them from the package: `from annealed.learners import FSAClassifier`. The docstring of each has parameters, shapes, units,
errors and often an example: `help(FSAClassifier)`.
"""


def walk(command, name="annealed"):
    """Commands below ``command`` with their names."""
    for part, below in getattr(command, "commands", {}).items():
        yield f"{name} {part}", below
        yield from walk(below, f"{name} {part}")


def argument(parameter) -> str:
    """An argument in a synopsis."""
    text = (parameter.metavar or parameter.name.upper()) + (" ..." if parameter.nargs == -1 else "")
    return text if parameter.required else f"[{text}]"


def row(parameter) -> str:
    """A line of a command's table."""
    text = (parameter.help or "").strip()
    if parameter.param_type_name == "argument":
        return f"| `{argument(parameter).strip('[]').split()[0]}` | {text} |"
    if parameter.required:
        text += " Required."
    elif not parameter.is_flag and parameter.default not in (None, (), []):
        text += f" Default: {parameter.default}."
    return f"| {', '.join(f'`{o}`' for o in parameter.opts + parameter.secondary_opts)} | {text} |"


def written(name: str) -> str:
    """What the page says after the options of a command: what it prints with --json."""
    page = (DOCS / "commands.md").read_text()
    found = re.search(rf"^#+ {name}\n(?:(?!^#).*\n)*?(With `--json`(?:(?!^#).*\n)*)", page, re.MULTILINE)
    return found[1] if found else ""


def section(name: str, command) -> str:
    """One command: heading, sentence, synopsis, table, output."""
    page = PAGES.get(name.removeprefix("annealed "))
    text = "\n".join(textwrap.wrap(command.help.partition("\n\n")[0] + (f" The page: [{page}]({page})." if page else ""), 120))
    lines = [f"{'#' * name.count(' ')}# {name}", "", text, ""]
    if not hasattr(command, "commands"):
        arguments = [argument(p) for p in command.params if p.param_type_name == "argument"]
        lines += [f"    {' '.join([name, *arguments])} [OPTIONS]", "", "| | |", "|---|---|", *map(row, command.params), ""]
    return "\n".join([*lines, written(name)]).rstrip() + "\n"


SHORT_NAMES = {
    "Big Data Learning": "Barbu et al. (2017)",
    "Classification and Ranking": "Barbu et al. (2014)",
    "Forward-Backward Greedy": "Liu et al. (2014)",
    "Minimax Sparse Logistic": "Tan et al. (2013)",
    "Flexible Sparse Learning": "Ma (thesis)",
    "Thresholding-Based Iterative": "She (2009)",
    "Sparse Online Learning via": "Langford et al. (2009)",
    "Forward Backward Splitting": "Duchi and Singer (2009)",
    "Dual Averaging": "Xiao (2010)",
    "Combining Preferences": "Freund et al. (2003)",
    "Additive Logistic Regression": "Friedman et al. (2000)",
}


def summary(public) -> str:
    """The first paragraph of a docstring on one line, with papers by their short names in place of
    footnotes."""
    paragraph, *rest = (inspect.getdoc(public) or "").split("\n\n")
    text = " ".join(paragraph.split()).replace("|", "\\|")
    notes = dict(re.findall(r"^\.\. \[(\d+)\] (.*?)(?=^\.\. \[|\Z)", "\n\n".join(rest), re.MULTILINE | re.DOTALL))
    for number, note in notes.items():
        title = " ".join(note.lower().split())
        name = next((short for words, short in SHORT_NAMES.items() if words.lower() in title), None)
        if name:
            text = text.replace(f"{name} [{number}]_", name)
            text = re.sub(rf"(?<! of) \[{number}\]_(?=\.$)", f", {name}", text).replace(f"[{number}]_", name)
    text = re.sub(r":\w+:`~?([^`]*)`", r"`\1`", re.sub(r" ?\[\d+\]_", "", text))
    return re.sub(r" +([.,;:)])", r"\1", text).replace("``", "`")


def names(package: str) -> str:
    """The public names of a package."""
    module = importlib.import_module(f"annealed.{package}")
    rows = [f"| `{name}` | {summary(getattr(module, name))} |" for name in sorted(module.__all__, key=str.lower)]
    head = [f"## annealed.{package}", "", (module.__doc__ or "").split("\n")[0], "", "| name | |", "|---|---|"]
    return "\n".join([*head, *rows, ""])


if __name__ == "__main__":
    head = (DOCS / "commands.md").read_text().partition("\n## ")[0]
    commands = [section(name, command) for name, command in walk(get_command(app))]
    (DOCS / "commands.md").write_text("\n".join([head, *commands]))
    (DOCS / "api.md").write_text("\n".join([NAMES, *map(names, ("learners", "vision", "models"))]))
