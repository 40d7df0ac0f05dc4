"""Commands ``annealed select``, ``predict`` and ``export`` for tables and their models."""

import shutil
import sys
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from ... import models
from .. import common, tabular
from ..console import (
    log,
    one_line_errors,
    print_json,
    print_table,
    progress,
    renamed,
    temporary_file,
    with_options,
)
from ..tabular.request import ENCODING, SEPARATOR, Request

if TYPE_CHECKING:
    from ...models.tabular.fitting.selection import Selection

_Output = partial(typer.Option, rich_help_panel="Output")
AsJson = Annotated[bool, _Output("--json", help="Print JSON.")]


@one_line_errors
def _config(context: typer.Context, path: Path | None) -> Path | None:
    """Read options from a file; command-line options take precedence."""
    if path is None:
        return None
    given = common.read_tables(path)
    options = {
        name.lstrip("-"): p for p in context.command.params for name in (p.name or "", *p.opts)
    }
    known = {}
    for name, value in given.items():
        if (
            option := options.get(name) or options.get(name.replace("_", "-"))
        ) is None or option.name == "config":
            raise ValueError(
                f"{path}: option {name!r} is unknown; expected names such as target, k or "
                "class_weight"
            )
        several = getattr(option, "multiple", False)
        if (isinstance(value, list) and not several) or isinstance(value, dict):
            raise ValueError(f"{path}: {name}={value!r} is not valid; expected a single value")
        known[option.name or ""] = (
            [*map(str, value if isinstance(value, list) else [value])] if several else value
        )
    context.default_map = known
    return path


def _stdin_file(context: typer.Context) -> Path:
    """Copy stdin to a temporary file."""
    path = temporary_file(context, "stdin.csv")
    with path.open("wb") as file:
        shutil.copyfileobj(sys.stdin.buffer, file)
    return path


@with_options(Request)
def select(
    request: Request,
    context: typer.Context,
    table: Annotated[
        Any,
        typer.Argument(
            metavar="TABLE",
            parser=lambda name: name if "://" in name else Path(name),
            help=(
                "File (csv, tsv, parquet, xlsx, npz with X, y and names, or svmlight), folder or "
                "URL of parquet files, or - for csv from stdin."
            ),
        ),
    ] = None,
    sample: Annotated[
        bool,
        typer.Option(
            "--sample",
            rich_help_panel="Input",
            help="Use a sample table, by default with --target diagnosis and -k auto.",
        ),
    ] = False,
    config: Annotated[
        Path | None,
        typer.Option(
            callback=_config,
            is_eager=True,
            metavar="FILE",
            rich_help_panel="Input",
            help="TOML or JSON file with options; command-line options take precedence.",
        ),
    ] = None,
    report: Annotated[
        Path | None, _Output(metavar="FOLDER", help="Folder for the report (select.html).")
    ] = None,
    out: Annotated[
        Path | None,
        _Output(
            "--out", "-o", metavar="FILE", help="Model file to write, which annealed predict reads."
        ),
    ] = None,
    save: Annotated[Path | None, typer.Option(hidden=True)] = None,
    columns: Annotated[
        Path | None,
        _Output(
            "--table",
            metavar="FILE",
            help="Table to write with the selected columns and the target.",
        ),
    ] = None,
    as_json: AsJson = False,
    quiet: Annotated[
        bool, _Output("--quiet", "-q", help="Do not report dropped or imputed columns.")
    ] = False,
) -> None:
    """Select the columns of a table that predict its target, and report cross-validated scores.

    \b
    Examples:
      annealed select --sample -k 5 --report report
      annealed select table.csv --target price -k auto --report report --out model.safetensors
    """
    if out is not None and out.name.lower().endswith((*tabular.FRAMES, ".npz")):
        columns, out = renamed(out, "--out with the name of a table", columns, "--table"), None
    if save is not None:
        out = renamed(save, "--save", out, "--out")
    if sample == (table is not None):
        raise ValueError("expected either a TABLE (- for stdin) or --sample")
    if sample:
        common.write_sample(table := temporary_file(context, common.TABLE))
        k = request.k or ("auto" if request.fdr is None else None)
        request = replace(request, target=request.target or common.TARGET, k=k)
    if columns and (request.memory_limit or isinstance(table, str) or table.is_dir()):
        raise ValueError(f"--table {columns} is not available for out-of-core tables; use --out")
    if out or columns or report:
        from ...models.tabular.report import REPORT_FILES, write_report

        tabular.check_out("--table", columns, table)
        common.check_outputs([table, request.test, config], [columns], out, report, REPORT_FILES)

    path = _stdin_file(context) if str(table) == "-" else table
    selection = tabular.select_file(
        path,
        request,
        lambda iterable, what: progress(iterable, quiet, what, wait=10.0),
        lambda line: log(f"annealed: {line}", quiet),
        details=report is not None,
    )
    if out is not None:
        selection.to_model(request.target).save(out)
    if columns is not None:
        tabular.write_columns(
            path, columns, selection.sources, request.target, request.sep, request.encoding
        )
    if report is not None:
        write_report(report, selection)
    if as_json:
        print_json(selection.record() | {"seconds": selection.seconds})
    else:
        _print_selection(selection, quiet)


def _print_selection(selection: "Selection", quiet: bool) -> None:
    """Print the selected columns and their cross-validated scores as tables."""
    from ...models.tabular.fitting.selection import shown

    heads = {
        "name": "column",
        "coefficient": "coefficient",
        "effect": "effect",
        "stability": "stability",
    }
    if any(c.get("pvalue") is not None for c in selection.columns):
        heads["pvalue"] = "p-value"
    cells = {"pvalue": lambda p: "–" if p is None else f"{p:.1g}"}
    named = [c | {"name": shown(c)} for c in selection.columns]
    rows = [
        (i + 1, *(cells.get(what, lambda v: v)(c[what]) for what in heads))
        for i, c in enumerate(named)
    ]
    title = f"{selection.task}, {len(selection.table.y)} rows"
    if rows:
        print_table(title, ["", *heads.values()], rows)
    else:
        typer.echo(f"{title}: {selection.nothing}")
    if ends := [(c["name"], *c["interval"]) for c in selection.columns if c.get("interval")]:
        print_table("95% confidence intervals", ["column", "from", "to"], ends)
    if (card := selection.card) is not None:
        print_table(
            "score card", ["rule", "points"], [tuple(row.values()) for row in card["rules"]]
        )
        head = ["total points", f"probability of {card['class']}", "rows"]
        print_table("risk", head, [tuple(row.values()) for row in card["risk"]])
    scores = selection.validation.scores
    if selection.size_chosen:
        where = "nested" if selection.validation.nested else "not nested: scores are optimistic"
        log(
            f"annealed: {len(rows)} column{'s' * (len(rows) != 1)}, chosen by "
            f"cross-validation ({where})",
            quiet,
        )
    if scores:
        measures = list(scores["selected"])
        if selection.size_chosen:
            typer.echo(f"{measures[0]} by the number of columns: {selection.validation.curve}")
        print_table(
            "cross-validated scores",
            ["", *measures],
            [(name, *values.values()) for name, values in scores.items()],
        )


def predict(
    context: typer.Context,
    model: Annotated[
        Path, typer.Argument(metavar="MODEL", help="Model file of annealed select --out.")
    ],
    table: Annotated[
        Path,
        typer.Argument(
            metavar="TABLE",
            help=(
                "File (csv, tsv, parquet, xlsx, npz with X, y and names, or svmlight), or - for "
                "csv from stdin."
            ),
        ),
    ],
    contributions: Annotated[
        bool,
        typer.Option(
            "--contributions",
            help="Also print the score of each row and the contribution of each column.",
        ),
    ] = False,
    allow_empty: Annotated[
        bool,
        typer.Option("--allow-empty", help="Allow columns that are completely empty."),
    ] = False,
    out: Annotated[
        Path | None,
        typer.Option(
            "--out",
            "-o",
            metavar="FILE",
            help="File to write (csv, tsv, parquet or xlsx) instead of printing.",
        ),
    ] = None,
    sep: Annotated[str | None, typer.Option(**SEPARATOR, rich_help_panel="Input")] = None,
    encoding: Annotated[str | None, typer.Option(**ENCODING, rich_help_panel="Input")] = None,
    as_json: AsJson = False,
) -> None:
    """Predict the target of each row of a table, and print one line of CSV per row.

    \b
    Examples:
      annealed predict model.safetensors new.csv
      annealed predict model.safetensors new.csv --out predicted.csv
    """
    tabular.check_out("--out", out, Path("table.csv"))
    common.check_outputs([model, table], [out])
    notes: list[str] = []
    path = _stdin_file(context) if str(table) == "-" else table
    predictions = tabular.predict_table(
        model, path, sep, encoding, notes.append, contributions, allow_empty
    )
    for line in notes:
        log(f"annealed: {line}", quiet=False)
    if out is not None:
        tabular.write_frame(predictions, out)
    if as_json:
        print_json(
            {
                "rows": len(predictions),
                "notes": notes,
                **{str(name): predictions[name].tolist() for name in predictions.columns},
            }
        )
    elif out is None:
        typer.echo(predictions.to_csv(index=False), nl=False)


def export(
    model: Annotated[
        Path, typer.Argument(metavar="MODEL", help="Model file of annealed select --out.")
    ],
    out: Annotated[
        Path,
        typer.Argument(
            metavar="OUT", help="File to write (.sql, .onnx, .c, .json, .xlsx or .csv)."
        ),
    ],
    table: Annotated[
        str | None,
        typer.Option(metavar="NAME", help="Name of the scored table in SQL (default: data)."),
    ] = None,
    dialect: Annotated[
        str | None,
        typer.Option(
            metavar="NAME",
            help="SQL dialect: postgres (default), sqlite, duckdb, mysql or bigquery.",
        ),
    ] = None,
    key: Annotated[
        list[str] | None,
        typer.Option(metavar="COLUMN", help="Column that SQL copies to the result; repeatable."),
    ] = None,
    as_json: AsJson = False,
) -> None:
    """Export a tabular model to SQL, ONNX, C, JSON, a spreadsheet or CSV.

    \b
    Examples:
      annealed export model.safetensors model.sql --dialect sqlite --table customers
      annealed export model.safetensors model.onnx
    """

    common.check_outputs([model], [out])
    kept = models.TabularModel.load(model)
    models.export(kept, out, table=table, dialect=dialect, keys=key or ())
    if as_json:
        print_json(
            {
                "model": str(model),
                "file": str(out),
                "columns": kept.selected,
                "bytes": out.stat().st_size,
            }
        )
