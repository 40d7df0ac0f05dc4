"""``annealed select``: the k columns of a table that predict its target."""

from __future__ import annotations

from enum import StrEnum
from pathlib import Path
from typing import Annotated

import typer

from ..console import complain, one_line_errors, print_json, print_table, say


class Task(StrEnum):
    """What is predicted."""

    auto = "auto"
    classification = "classification"
    regression = "regression"


def register(app: typer.Typer) -> None:
    """Add the command to the top group."""
    app.command("select")(select)


@one_line_errors
def select(
    table: Annotated[Path, typer.Argument(help="csv, tsv, parquet, npz (X, y, names) or svmlight file.")],
    k: Annotated[int, typer.Option("-k", help="How many columns to select.")],
    target: Annotated[str | None, typer.Option(help="Column to predict (npz and svmlight bring their own).")] = None,
    task: Annotated[Task, typer.Option(help="auto: text and few whole numbers are classes.")] = Task.auto,
    as_json: Annotated[bool, typer.Option("--json", help="One JSON object instead of a table.")] = False,
    quiet: Annotated[bool, typer.Option("--quiet", help="Do not name columns that are left out or imputed.")] = False,
) -> None:
    """Select the k columns of a table that predict its target best."""
    from ..tabular.readers import guess_task, read_table
    from ..tabular.selection import select_columns

    if k < 1:
        raise ValueError(f"-k {k}: expected at least 1")
    data = read_table(table, target)
    for note in data.notes:
        say(f"annealed: {note}", quiet)
    if k > len(data.names):
        complain(f"-k {k}: only {len(data.names)} usable columns, all are kept")
        k = len(data.names)
    chosen_task = guess_task(data.y) if task is Task.auto else task.value
    selected = select_columns(data.X, data.y, data.names, k, chosen_task)
    if as_json:
        print_json({"selected": selected, "task": chosen_task})
    else:
        rows = [(i + 1, s["name"], s["coefficient"]) for i, s in enumerate(selected)]
        print_table(f"{chosen_task}, {len(data.y)} rows", ["", "column", "coefficient"], rows)
