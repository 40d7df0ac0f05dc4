"""``annealed export``: a saved model of a table in a form that runs without Python."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from ..console import one_line_errors, print_json


def register(app: typer.Typer) -> None:
    """Add the command to the top group."""
    app.command("export")(export)


@one_line_errors
def export(
    model: Annotated[Path, typer.Argument(metavar="MODEL", help="Model file that annealed select --save wrote.")],
    out: Annotated[Path, typer.Argument(metavar="OUT", help="File to write: .sql, .onnx, .c, .json, .xlsx or .csv.")],
    table: Annotated[str | None, typer.Option(help="For .sql: table to score; by default data.")] = None,
    dialect: Annotated[
        str | None, typer.Option(help="For .sql: postgres (the default), sqlite, duckdb, mysql or bigquery.")
    ] = None,
    key: Annotated[list[str] | None, typer.Option(help="For .sql: column that the answer repeats; may be repeated.")] = None,
    as_json: Annotated[bool, typer.Option("--json", help="JSON instead of text.")] = False,
) -> None:
    """Write a model of a table as a query, a graph, a source or a score sheet."""
    from ...models import export as write
    from ...models.tabular.export.writers import check_suffix
    from ..common.outputs import check_outputs
    from ..tabular.prediction import load_tabular

    check_suffix(out, table=table, dialect=dialect, key=key)
    check_outputs([model], [out])
    kept = load_tabular(model)
    write(kept, out, table=table, dialect=dialect, keys=key or ())
    if as_json:
        print_json({"model": str(model), "file": str(out), "columns": kept.selected, "bytes": out.stat().st_size})
