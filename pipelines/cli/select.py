"""``annealed select``: the k columns of a table that predict its target."""

from __future__ import annotations

from enum import StrEnum
from pathlib import Path
from typing import Annotated

import numpy as np
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
    quiet: Annotated[bool, typer.Option("--quiet", help="No word about columns left out or imputed.")] = False,
) -> None:
    """Select the k columns of a table that predict its target best."""
    from ..tabular.readers import guess_task, read_table

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


def select_columns(X, y, names: list[str], k: int, task: str) -> list[dict]:
    """Select k columns with FSA.

    Parameters
    ----------
    X : array or sparse matrix of shape (n_rows, n_columns)
        Numbers without gaps.
    y : ndarray of shape (n_rows,)
        Labels or numbers.
    names : list of str
        Names of the columns.
    k : int
        How many are wanted.
    task : str
        "classification" or "regression".

    Returns
    -------
    list of dict
        ``name`` and ``coefficient`` (in the units of the column; with several classes the norm over them), the column
        with the largest effect (coefficient times standard deviation) first.

    Raises
    ------
    ValueError
        If there is but one class, or the numbers of a regression are text.
    """
    from ...learners import FSAClassifier, FSARegressor

    if task == "regression":
        if np.asarray(y).dtype.kind not in "iuf":
            raise ValueError(f"the target holds labels such as {str(y[0])!r}: expected numbers for --task regression")
        model = FSARegressor(n_features_to_select=k)
    else:
        if len(np.unique(y)) < 2:
            raise ValueError(f"the target has one value only ({str(y[0])!r}), expected at least two classes")
        broken = y[y != np.round(y)] if np.asarray(y).dtype.kind == "f" else []
        if len(broken):
            raise ValueError(f"the target holds numbers such as {broken[0]:g}: expected labels for --task classification")
        model = FSAClassifier(n_features_to_select=k)
    model.fit(X, y)
    support = np.flatnonzero(model.get_support())
    coef = np.atleast_2d(model.coef_)[:, support]
    coefficient = coef[0] if len(coef) == 1 else np.sqrt((coef**2).sum(axis=0))
    columns = X[:, support]
    columns = columns.toarray() if hasattr(columns, "toarray") else columns
    order = np.argsort(-np.abs(coefficient) * columns.std(axis=0), kind="stable")
    return [{"name": names[support[i]], "coefficient": float(coefficient[i])} for i in order]
