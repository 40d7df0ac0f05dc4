"""Columns of a table that predict its target (``annealed select``); a saved model used
(``predict``) and exported (``export``)."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Literal

import typer

from ..console import print_json, print_table, progress, say

if TYPE_CHECKING:
    from ..tabular.selection import Selection

Task = Literal["auto", "classification", "regression"]
Response = Literal["linear", "piecewise"]
Dates = Literal["dayfirst", "monthfirst"]
Separator = Annotated[str | None, typer.Option(help="What separates the columns of a text file; by default detected.")]
Encoding = Annotated[str | None, typer.Option(help="Encoding of a text file, such as latin-1 or utf-16; by default UTF-8.")]
AsJson = Annotated[bool, typer.Option("--json", help="One JSON object instead of a table.")]


def select(
    table: Annotated[Path, typer.Argument(metavar="TABLE", help="csv, tsv, parquet, npz (X, y, names) or svmlight file.")],
    k: Annotated[str | None, typer.Option("-k", help="How many columns to select; auto: chosen by cross-validation.")] = None,
    target: Annotated[str | None, typer.Option(help="Column to predict (npz and svmlight bring their own).")] = None,
    task: Annotated[Task, typer.Option(help="auto: text and few whole numbers are classes.")] = "auto",
    response: Annotated[Response, typer.Option(help="piecewise: a curve for each column instead of a line.")] = "linear",
    include: Annotated[list[str] | None, typer.Option(help="Column that is selected in any case; may be repeated.")] = None,
    exclude: Annotated[list[str] | None, typer.Option(help="Column that may not be selected; may be repeated.")] = None,
    monotone: Annotated[
        list[str] | None, typer.Option(metavar="COLUMN=+|-", help="Column with which the score may only rise (+) or fall (-).")
    ] = None,
    card: Annotated[bool, typer.Option("--card", help="A score card of k rules with whole points, for two classes.")] = False,
    row_groups: Annotated[str | None, typer.Option(help="Column that names rows which stay together in cross-validation.")] = None,
    sep: Separator = None,
    encoding: Encoding = None,
    dates: Annotated[Dates | None, typer.Option(help="How dates such as 31/12/2019 are written; by default found out.")] = None,
    fdr: Annotated[float | None, typer.Option(help="Instead of -k: at most this share of the columns is false.")] = None,
    intervals: Annotated[bool, typer.Option("--intervals", help="Confidence intervals of 95% of the coefficients.")] = False,
    report: Annotated[Path | None, typer.Option(help="Folder for a page about the selection, select.html.")] = None,
    out: Annotated[Path | None, typer.Option(help="Table to write: the selected columns and the target.")] = None,
    save: Annotated[Path | None, typer.Option(help="Model file to write, for annealed predict.")] = None,
    as_json: AsJson = False,
    quiet: Annotated[bool, typer.Option("--quiet", help="Do not name columns that are left out or imputed.")] = False,
) -> None:
    """Select the columns of a table that predict its target, and report their cross-validated
    score.

    \b
    Examples:
      annealed select table.csv --target price -k 5
      annealed select table.parquet --target price -k auto --response piecewise --report report
    """
    from ..tabular.selection import select_file

    if out or save or report:
        from ..common.outputs import check_outputs, make_folder
        from ..tabular.report import REPORT_FILES, write_report
        from ..tabular.writers import check_out, write_columns

        check_out(out, table)
        check_outputs([table], [out], save, report, REPORT_FILES)
    found = select_file(
        table,
        target,
        k,
        task=task,
        response=response,
        include=include or (),
        exclude=exclude or (),
        monotone=monotone or (),
        card=card,
        row_groups=row_groups,
        sep=sep,
        encoding=encoding,
        dates=dates,
        fdr=fdr,
        intervals=intervals,
        pvalues=report is not None,
        progress=lambda iterable, what: progress(iterable, quiet, what),
        note=lambda text: say(f"annealed: {text}", quiet),
    )
    if save is not None:
        found.to_model(target).save(save)
    if out is not None:
        write_columns(table, out, [column["name"] for column in found.columns], target, sep, encoding)
    if report is not None:
        make_folder(report)
        write_report(report, found)
    if as_json:
        print_json(found.record())
    else:
        _print_selection(found, quiet)


def _print_selection(found: Selection, quiet: bool) -> None:
    """Print the columns and their cross-validated scores for people."""
    heads = {"name": "column", "coefficient": "coefficient", "effect": "effect", "stability": "stability"}
    if any(c.get("pvalue") is not None for c in found.columns):
        heads["pvalue"] = "p-value"
    cells = {"pvalue": lambda p: "–" if p is None else f"{p:.1g}"}
    rows = [(i + 1, *(cells.get(what, lambda v: v)(c[what]) for what in heads)) for i, c in enumerate(found.columns)]
    title = f"{found.task}, {len(found.table.y)} rows"
    if rows:
        print_table(title, ["", *heads.values()], rows)
    else:
        typer.echo(f"{title}: {found.nothing}")
    if ends := [(c["name"], *c["interval"]) for c in found.columns if c.get("interval")]:
        print_table("intervals of 95%", ["column", "from", "to"], ends)
    if (card := found.card) is not None:
        print_table("score card", ["rule", "points"], [tuple(row.values()) for row in card["rules"]])
        head = ["sum of points", f"probability of {card['class']}", "rows"]
        print_table("risk", head, [tuple(row.values()) for row in card["risk"]])
    scores = found.validation.scores
    if found.size_chosen:
        where = "for each fold by the others" if found.validation.nested else "once, on the rows that score them too"
        say(f"annealed: {len(rows)} column{'s' * (len(rows) != 1)}, the number chosen by cross-validation, {where}", quiet)
    if scores:
        measures = list(scores["selected"])
        print_table("cross-validated", ["", *measures], [(name, *values.values()) for name, values in scores.items()])


def predict(
    model: Annotated[Path, typer.Argument(metavar="MODEL", help="Model file that annealed select --save wrote.")],
    table: Annotated[
        Path, typer.Argument(metavar="TABLE", help="csv, tsv, parquet, npz or svmlight file with the model's columns.")
    ],
    contributions: Annotated[
        bool, typer.Option("--contributions", help="Also the score of each row and what each column adds to it.")
    ] = False,
    out: Annotated[Path | None, typer.Option(help="csv, tsv or parquet file to write instead of printing.")] = None,
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
    from ..tabular.writers import check_out, write_frame

    check_out(out, Path("table.csv"))
    check_outputs([model, table], [out])
    notes: list[str] = []
    found = predict_table(model, table, sep, encoding, notes.append, contributions)
    for line in notes:
        say(f"annealed: {line}", quiet=False)
    if out is not None:
        write_frame(found, out)
    if as_json:
        print_json({"rows": len(found), "notes": notes, **{str(name): found[name].tolist() for name in found.columns}})
    elif out is None:
        typer.echo(found.to_csv(index=False), nl=False)


def export(
    model: Annotated[Path, typer.Argument(metavar="MODEL", help="Model file that annealed select --save wrote.")],
    out: Annotated[Path, typer.Argument(metavar="OUT", help="File to write: .sql, .onnx, .c, .json, .xlsx or .csv.")],
    table: Annotated[str | None, typer.Option(help="For .sql: table to score; by default data.")] = None,
    dialect: Annotated[str | None, typer.Option(help="For .sql: postgres (default), sqlite, duckdb, mysql or bigquery.")] = None,
    key: Annotated[list[str] | None, typer.Option(help="For .sql: column that the answer repeats; may be repeated.")] = None,
    as_json: Annotated[bool, typer.Option("--json", help="JSON instead of text.")] = False,
) -> None:
    """Write a model of a table as a query, a graph, a source or a score sheet.

    \b
    Examples:
      annealed export model.safetensors model.sql --dialect sqlite --table customers
      annealed export model.safetensors model.onnx
    """
    from ...models import export as write
    from ..common.outputs import check_outputs
    from ..tabular.prediction import load_tabular

    check_outputs([model], [out])
    kept = load_tabular(model)
    write(kept, out, table=table, dialect=dialect, keys=key or ())
    if as_json:
        print_json({"model": str(model), "file": str(out), "columns": kept.selected, "bytes": out.stat().st_size})
