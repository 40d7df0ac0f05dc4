"""Columns of a table that predict its target (``annealed select``); a saved model used
(``predict``) and exported (``export``)."""

from __future__ import annotations

import shutil
import sys
import tempfile
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from ..common.config import read_tables
from ..console import log, one_line_errors, print_json, print_table, progress, with_options
from ..tabular.request import Encoding, Request, Separator

if TYPE_CHECKING:
    from ..tabular.selection import Selection

Table = Annotated[
    Path,
    typer.Argument(
        metavar="TABLE",
        help="csv, tsv, parquet, xlsx, npz (X, y, names) or svmlight file; - is csv from stdin.",
    ),
]
_or_url = "csv, tsv, parquet, xlsx, npz (X, y, names) or svmlight file; folder or URL of parquet files; - is csv from stdin."
TableOrUrl = Annotated[
    Any,
    typer.Argument(
        metavar="TABLE", parser=lambda name: name if "://" in name else Path(name), help=_or_url
    ),
]
AsJson = Annotated[bool, typer.Option("--json", help="One JSON object instead of a table.")]


@one_line_errors
def _config(context: typer.Context, path: Path | None) -> Path | None:
    """Take options from a file; those of the command line go before them."""
    if path is None:
        return None
    given = read_tables(path)
    options = {
        name.lstrip("-"): p for p in context.command.params for name in (p.name or "", *p.opts)
    }
    known = {}
    for name, value in given.items():
        if (
            option := options.get(name) or options.get(name.replace("_", "-"))
        ) is None or option.name == "config":
            raise ValueError(
                f"{path}: option {name!r} is unknown; expected names such as target, k or class_weight"
            )
        several = getattr(option, "multiple", False)
        if (isinstance(value, list) and not several) or isinstance(value, dict):
            raise ValueError(f"{path}: {name}={value!r}, expected one value")
        known[option.name or ""] = (
            [*map(str, value if isinstance(value, list) else [value])] if several else value
        )
    context.default_map = known
    return path


@contextmanager
def _on_disk(table: Any) -> Iterator[Any]:
    """A table as a file: what stands for stdin, "-", becomes a temporary one."""
    if str(table) != "-":
        yield table
        return
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "stdin.csv"
        with path.open("wb") as file:
            shutil.copyfileobj(sys.stdin.buffer, file)
        yield path


@with_options(Request)
def select(
    request: Request,
    context: typer.Context,
    table: TableOrUrl,
    config: Annotated[
        Path | None,
        typer.Option(
            callback=_config,
            is_eager=True,
            help="TOML or JSON file of options, which the line goes before.",
        ),
    ] = None,
    report: Annotated[
        Path | None, typer.Option(help="Folder for a page about the selection, select.html.")
    ] = None,
    out: Annotated[
        Path | None, typer.Option(help="Table to write: the selected columns and the target.")
    ] = None,
    save: Annotated[
        Path | None, typer.Option(help="Model file to write, for annealed predict.")
    ] = None,
    as_json: AsJson = False,
    quiet: Annotated[
        bool, typer.Option("--quiet", help="Do not name columns that are left out or imputed.")
    ] = False,
) -> None:
    """Select the columns of a table that predict its target, and report their cross-validated
    score.

    \b
    Examples:
      annealed select table.csv --target price -k 5
      annealed select table.parquet --target price -k auto --response piecewise --report report
    """
    from ..tabular.selection import select_file

    request = replace(request, pvalues=report is not None)
    if out and (request.memory_limit or isinstance(table, str) or table.is_dir()):
        raise ValueError(f"--out {out}: not of a table that is out of core; expected --save")
    if out or save or report:
        from ..common.outputs import check_outputs
        from ..tabular.report import REPORT_FILES, write_report
        from ..tabular.tables import check_out, write_columns

        check_out(out, table)
        check_outputs([table, request.test, config], [out], save, report, REPORT_FILES)

    def bar(iterable: Iterable[Any], what: str) -> Iterable[Any]:
        return progress(iterable, quiet, what, wait=10.0)

    with _on_disk(table) as path:
        found = select_file(path, request, bar, lambda text: log(f"annealed: {text}", quiet))
        if save is not None:
            found.to_model(request.target).save(save)
        if out is not None:
            write_columns(path, out, found.sources, request.target, request.sep, request.encoding)
    if report is not None:
        write_report(report, found)
    if as_json:
        print_json(found.record())
    else:
        _print_selection(found, quiet)


def _print_selection(found: Selection, quiet: bool) -> None:
    """Print the columns and their cross-validated scores for people."""
    from ..tabular.selection import shown

    heads = {
        "name": "column",
        "coefficient": "coefficient",
        "effect": "effect",
        "stability": "stability",
    }
    if any(c.get("pvalue") is not None for c in found.columns):
        heads["pvalue"] = "p-value"
    cells = {"pvalue": lambda p: "–" if p is None else f"{p:.1g}"}
    named = [c | {"name": shown(c)} for c in found.columns]
    rows = [
        (i + 1, *(cells.get(what, lambda v: v)(c[what]) for what in heads))
        for i, c in enumerate(named)
    ]
    title = f"{found.task}, {len(found.table.y)} rows"
    if rows:
        print_table(title, ["", *heads.values()], rows)
    else:
        typer.echo(f"{title}: {found.nothing}")
    if ends := [(c["name"], *c["interval"]) for c in found.columns if c.get("interval")]:
        print_table("intervals of 95%", ["column", "from", "to"], ends)
    if (card := found.card) is not None:
        print_table(
            "score card", ["rule", "points"], [tuple(row.values()) for row in card["rules"]]
        )
        head = ["sum of points", f"probability of {card['class']}", "rows"]
        print_table("risk", head, [tuple(row.values()) for row in card["risk"]])
    scores = found.validation.scores
    if found.size_chosen:
        where = (
            "for each fold by the others"
            if found.validation.nested
            else "once, on the rows that score them too"
        )
        log(
            f"annealed: {len(rows)} column{'s' * (len(rows) != 1)}, the number chosen by cross-validation, {where}",
            quiet,
        )
    if scores:
        measures = list(scores["selected"])
        if found.size_chosen:
            typer.echo(f"{measures[0]} by the number of columns: {found.validation.curve}")
        print_table(
            "cross-validated",
            ["", *measures],
            [(name, *values.values()) for name, values in scores.items()],
        )


def predict(
    model: Annotated[
        Path, typer.Argument(metavar="MODEL", help="Model file that annealed select --save wrote.")
    ],
    table: Table,
    contributions: Annotated[
        bool,
        typer.Option(
            "--contributions", help="Also the score of each row and what each column adds to it."
        ),
    ] = False,
    allow_empty: Annotated[
        bool,
        typer.Option("--allow-empty", help="Predict from the others where a column has no cell."),
    ] = False,
    out: Annotated[
        Path | None,
        typer.Option(help="csv, tsv, parquet or xlsx file to write instead of printing."),
    ] = None,
    sep: Separator = None,
    encoding: Encoding = None,
    as_json: AsJson = False,
) -> None:
    """Predict the target of each row of a table. One line per row, as csv.

    \b
    Examples:
      annealed predict model.safetensors new.csv
      annealed predict model.safetensors new.csv --out predicted.csv
    """
    from ..common.outputs import check_outputs
    from ..tabular.prediction import predict_table
    from ..tabular.tables import check_out, write_frame

    check_out(out, Path("table.csv"))
    check_outputs([model, table], [out])
    notes: list[str] = []
    with _on_disk(table) as path:
        found = predict_table(model, path, sep, encoding, notes.append, contributions, allow_empty)
    for line in notes:
        log(f"annealed: {line}", quiet=False)
    if out is not None:
        write_frame(found, out)
    if as_json:
        print_json(
            {
                "rows": len(found),
                "notes": notes,
                **{str(name): found[name].tolist() for name in found.columns},
            }
        )
    elif out is None:
        typer.echo(found.to_csv(index=False), nl=False)


def export(
    model: Annotated[
        Path, typer.Argument(metavar="MODEL", help="Model file that annealed select --save wrote.")
    ],
    out: Annotated[
        Path,
        typer.Argument(metavar="OUT", help="File to write: .sql, .onnx, .c, .json, .xlsx or .csv."),
    ],
    table: Annotated[
        str | None, typer.Option(help="For .sql: table to score; by default data.")
    ] = None,
    dialect: Annotated[
        str | None,
        typer.Option(help="For .sql: postgres (default), sqlite, duckdb, mysql or bigquery."),
    ] = None,
    key: Annotated[
        list[str] | None,
        typer.Option(help="For .sql: column that the answer repeats; may be repeated."),
    ] = None,
    as_json: Annotated[bool, typer.Option("--json", help="JSON instead of text.")] = False,
) -> None:
    """Write a model of a table as a query, a graph, a source or a score sheet.

    \b
    Examples:
      annealed export model.safetensors model.sql --dialect sqlite --table customers
      annealed export model.safetensors model.onnx
    """
    from ...models import TabularModel
    from ...models import export as write
    from ..common.outputs import check_outputs

    check_outputs([model], [out])
    kept = TabularModel.load(model)
    write(kept, out, table=table, dialect=dialect, keys=key or ())
    if as_json:
        print_json(
            {
                "model": str(model),
                "file": str(out),
                "columns": kept.selected,
                "bytes": out.stat().st_size,
            }
        )
