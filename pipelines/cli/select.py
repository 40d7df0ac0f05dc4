"""``annealed select``: the columns of a table that predict its target. ``annealed predict``: what a saved model says of a table."""

from __future__ import annotations

from enum import StrEnum
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from ..console import one_line_errors, print_json, print_table, progress, say

if TYPE_CHECKING:
    from ..tabular.selection import Selection

Separator = Annotated[str | None, typer.Option(help="What separates the columns of a text file; by default detected.")]
Encoding = Annotated[str | None, typer.Option(help="Encoding of a text file, such as latin-1 or utf-16; by default UTF-8.")]
AsJson = Annotated[bool, typer.Option("--json", help="One JSON object instead of a table.")]


class Task(StrEnum):
    """What is predicted."""

    auto = "auto"
    classification = "classification"
    regression = "regression"


class Dates(StrEnum):
    """How dates such as 31/12/2019 are written."""

    dayfirst = "dayfirst"
    monthfirst = "monthfirst"


class Response(StrEnum):
    """How a column acts."""

    linear = "linear"
    piecewise = "piecewise"


def register(app: typer.Typer) -> None:
    """Add the commands to the top group."""
    app.command("select")(select)
    app.command("predict")(predict)


@one_line_errors
def select(
    table: Annotated[Path, typer.Argument(metavar="TABLE", help="csv, tsv, parquet, npz (X, y, names) or svmlight file.")],
    k: Annotated[str | None, typer.Option("-k", help="How many columns to select; auto: chosen by cross-validation.")] = None,
    target: Annotated[str | None, typer.Option(help="Column to predict (npz and svmlight bring their own).")] = None,
    task: Annotated[Task, typer.Option(help="auto: text and few whole numbers are classes.")] = Task.auto,
    response: Annotated[Response, typer.Option(help="piecewise: a curve for each column instead of a line.")] = Response.linear,
    include: Annotated[list[str] | None, typer.Option(help="Column that is selected in any case; may be repeated.")] = None,
    exclude: Annotated[list[str] | None, typer.Option(help="Column that may not be selected; may be repeated.")] = None,
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
    """Select the columns of a table that predict its target, and report their cross-validated score."""
    from ..common.outputs import check_outputs, make_folder
    from ..tabular.report import REPORT_FILES, write_report
    from ..tabular.select_file import parse_size, select_file
    from ..tabular.tables import check_out, write_columns

    if k is not None:
        parse_size(k)
    check_out(out, table)
    check_outputs([table], [out], save, report, REPORT_FILES)

    found = select_file(
        table,
        target,
        k,
        task=task.value,
        response=response.value,
        include=include or (),
        exclude=exclude or (),
        row_groups=row_groups,
        sep=sep,
        encoding=encoding,
        dates=dates and dates.value,
        fdr=fdr,
        intervals=intervals,
        progress=lambda iterable, what: progress(iterable, quiet, what),
        note=lambda text: say(f"annealed: {text}", quiet),
    )
    names = [column["name"] for column in found.columns]
    if save is not None:
        found.to_model(target).save(save)
    if out is not None:
        write_columns(table, out, names, target, sep, encoding)
    if report is not None:
        make_folder(report)
        write_report(report, found)
    if as_json:
        print_json(found.record())
    else:
        _print_selection(found, quiet)


def _print_selection(found: Selection, quiet: bool) -> None:
    """Print the columns and their cross-validated scores for people."""
    rows = [
        (i + 1, c["name"], c["coefficient"], c["effect"], c["stability"], "–" if c["pvalue"] is None else f"{c['pvalue']:.1g}")
        for i, c in enumerate(found.columns)
    ]
    title = f"{found.task}, {len(found.table.y)} rows"
    if rows:
        print_table(title, ["", "column", "coefficient", "effect", "stability", "p-value"], rows)
    else:
        typer.echo(f"{title}: {found.nothing}")
    if ends := [(c["name"], *c["interval"]) for c in found.columns if c.get("interval")]:
        print_table("intervals of 95%", ["column", "from", "to"], ends)
    scores = found.validation.scores
    if found.size_chosen:
        where = "for each fold by the others" if found.validation.nested else "once, on the rows that score them too"
        say(f"annealed: {len(rows)} column{'s' * (len(rows) != 1)}, the number chosen by cross-validation, {where}", quiet)
    if scores:
        measures = list(scores["selected"])
        print_table("cross-validated", ["", *measures], [(name, *values.values()) for name, values in scores.items()])


@one_line_errors
def predict(
    model: Annotated[Path, typer.Argument(metavar="MODEL", help="Model file that annealed select --save wrote.")],
    table: Annotated[
        Path, typer.Argument(metavar="TABLE", help="csv, tsv, parquet, npz or svmlight file with the model's columns.")
    ],
    out: Annotated[Path | None, typer.Option(help="csv, tsv or parquet file to write instead of printing.")] = None,
    sep: Separator = None,
    encoding: Encoding = None,
    as_json: AsJson = False,
) -> None:
    """Predict the target of each row of a table. One line per row, as csv."""
    from ..common.outputs import check_outputs
    from ..tabular.prediction import predict_table
    from ..tabular.tables import check_out, write_frame

    check_out(out, Path("table.csv"))
    check_outputs([model, table], [out])
    notes: list[str] = []
    found = predict_table(model, table, sep, encoding, notes.append)
    for line in notes:
        say(f"annealed: {line}", quiet=False)
    if out is not None:
        write_frame(found, out)
    if as_json:
        print_json({"rows": len(found), "notes": notes, **{str(name): found[name].tolist() for name in found.columns}})
    elif out is None:
        typer.echo(found.to_csv(index=False), nl=False)
