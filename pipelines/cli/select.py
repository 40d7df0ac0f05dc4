"""``annealed select``: the columns of a table that predict its target. ``annealed predict``: what a saved model says of a table."""

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
    k: Annotated[str, typer.Option("-k", help="How many columns to select; auto: chosen by cross-validation.")],
    target: Annotated[str | None, typer.Option(help="Column to predict (npz and svmlight bring their own).")] = None,
    task: Annotated[Task, typer.Option(help="auto: text and few whole numbers are classes.")] = "auto",
    response: Annotated[Response, typer.Option(help="piecewise: a curve for each column instead of a line.")] = "linear",
    include: Annotated[list[str] | None, typer.Option(help="Column that is selected in any case; may be repeated.")] = None,
    exclude: Annotated[list[str] | None, typer.Option(help="Column that may not be selected; may be repeated.")] = None,
    row_groups: Annotated[str | None, typer.Option(help="Column that names rows which stay together in cross-validation.")] = None,
    sep: Separator = None,
    encoding: Encoding = None,
    dates: Annotated[Dates | None, typer.Option(help="How dates such as 31/12/2019 are written; by default found out.")] = None,
    report: Annotated[Path | None, typer.Option(help="Folder for a page about the selection, select.html.")] = None,
    out: Annotated[Path | None, typer.Option(help="Table to write: the selected columns and the target.")] = None,
    save: Annotated[Path | None, typer.Option(help="Model file to write, for annealed predict.")] = None,
    as_json: AsJson = False,
    quiet: Annotated[bool, typer.Option("--quiet", help="Do not name columns that are left out or imputed.")] = False,
) -> None:
    """Select the columns of a table that predict its target, and report their cross-validated score.

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
        row_groups=row_groups,
        sep=sep,
        encoding=encoding,
        dates=dates,
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
    rows = [(i + 1, c["name"], c["coefficient"], c["effect"], c["stability"]) for i, c in enumerate(found.columns)]
    title = f"{found.task}, {len(found.table.y)} rows"
    if rows:
        print_table(title, ["", "column", "coefficient", "effect", "stability"], rows)
    else:
        typer.echo(f"{title}: {found.nothing}")
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
    found = predict_table(model, table, sep, encoding, notes.append)
    for line in notes:
        say(f"annealed: {line}", quiet=False)
    if out is not None:
        write_frame(found, out)
    if as_json:
        print_json({"rows": len(found), "notes": notes, **{str(name): found[name].tolist() for name in found.columns}})
    elif out is None:
        typer.echo(found.to_csv(index=False), nl=False)
