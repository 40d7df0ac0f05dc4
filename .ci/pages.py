"""Write docs/commands.md and docs/api.md from the help texts of the commands and the docstrings of
the public names.

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

COMMANDS = """# Commands

Every command of `annealed`, as `annealed ... --help` describes it. All commands share these rules:

* Results go to stdout, progress and messages to stderr. `--quiet` silences progress; there is none when stderr is no terminal.
* `--json` prints JSON for programs instead of tables. Every `evaluate` and `reproduce` prints
  `{"name": str, "settings": {...}, "rows": [{...}, ...]}`, one row per line of the table.
* A mistake in the arguments is reported in one line, and the exit code is 2. One file that cannot be used in a batch is named and
  skipped; the others are processed, and the exit code is 1, or 2 if none is left. Ctrl-C: 130.
"""

PAGES = {
    "faces": "faces.md",
    "motion": "motion.md",
    "pets": "pets.md",
    "sensors": "sensors.md",
    "select": "tables.md",
    "predict": "tables.md",
    "export": "export.md",
    "reproduce": "benchmarks.md",
}

OUTPUTS = {
    "annealed faces detect": """With `--json`, one object per image and line:

    {"image": str, "width": int, "height": int, "seconds": float,
     "detections": [{"keypoint": str, "x": float, "y": float, "score": float, "size": float}, ...]}

`seconds` is the detection alone, without reading the file or compiling. `size` is the side of the detection window in image
pixels. Detections are sorted by decreasing score. An image that failed: `{"image": str, "error": str}`. For a video or a camera
there is one object per processed frame, with `frame` and `time`; its faces have the number of their `person`.
""",
    "annealed motion segment": """With `--json`, one object per file and line:

    {"sequence": str, "motions": int, "probability_of_motions": float, "labels": [int, ...], "unseen": [int, ...],
     "candidates": [{"family": str, "dimension": int, "score": float}, ...]}
""",
    "annealed pets classify": """With `--json`, one object per image and line:

    {"image": str, "label": str, "probability": float}
""",
    "annealed sensors predict": """With `--json`, one object per line and activity, minutes of one activity in one:

    {"home": str, "start": str, "end": str, "activity": str, "probability": float}
""",
    "annealed select": """With `--json`:

    {"selected": [{"name": str, "coefficient": float | null, "effect": float, "kind": "number" | "date" | "category",
                   "stability": float | null, "levels": [{"level": str, "coefficient": [float, ...]}, ...],
                   "curve": {"x": [float, ...], "y": [[float, ...], ...], "missing": [float, ...]},
                   "alternatives": [{"name": str, "cost": float}, ...]}, ...],
     "task": str, "n_columns": int, "n_rows": int, "chosen_by": "cross-validation" | "the user",
     "scores": {"selected": {measure: float}, "all columns": {...}, "baseline": {...}},
     "size_chosen_in_folds": bool,
     "path": [{"columns": int, "score": float, "folds": [float, ...], "loss": float}, ...], "stability": float | null,
     "left_out": [{"name": str, "reason": str}, ...], "notes": [str, ...], "settings": {...}}

`levels` are there for categories, `curve` with `--response piecewise`; lists inside them have one entry per output.
""",
    "annealed export": """With `--json`:

    {"model": str, "file": str, "columns": [str, ...], "bytes": int}
""",
    "annealed predict": """With `--json`:

    {"rows": int, "prediction": [...], "probability of CLASS": [float, ...], ...}
""",
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


def section(name: str, command) -> str:
    """One command: heading, sentence, synopsis, table, output."""
    page = PAGES.get(name.removeprefix("annealed "))
    text = "\n".join(textwrap.wrap(command.help.partition("\n\n")[0] + (f" The page: [{page}]({page})." if page else ""), 120))
    lines = [f"{'#' * name.count(' ')}# {name}", "", text, ""]
    if not hasattr(command, "commands"):
        arguments = [argument(p) for p in command.params if p.param_type_name == "argument"]
        lines += [f"    {' '.join([name, *arguments])} [OPTIONS]", "", "| | |", "|---|---|", *map(row, command.params), ""]
    return "\n".join([*lines, OUTPUTS.get(name, "")]).rstrip() + "\n"


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
    commands = (section(name, command) for name, command in walk(get_command(app)))
    (DOCS / "commands.md").write_text("\n".join([COMMANDS, *commands]))
    (DOCS / "api.md").write_text("\n".join([NAMES, *map(names, ("learners", "vision", "models"))]))
