"""Command ``annealed reproduce``, which reproduces the tables and figures of the papers."""

from pathlib import Path
from typing import Annotated, Any

import typer
from annealed.pipelines.console import print_answer, print_json, print_table


def reproduce(
    name: Annotated[
        str | None,
        typer.Argument(
            metavar="NAME",
            help="Name of a table (see --list), or a script or command with its arguments.",
        ),
    ] = None,
    list_tables: Annotated[bool, typer.Option("--list", help="List the tables and exit.")] = False,
    runs: Annotated[
        int | None, typer.Option(help="Number of repetitions (default: depends on the table).")
    ] = None,
    data: Annotated[
        Path | None, typer.Option(help="Folder of the real data sets (default: ANNEALED_DATA).")
    ] = None,
    noisy: Annotated[
        bool,
        typer.Option("--noisy", help="Draw a tenth of the labels of fsa-classification at random."),
    ] = False,
    method: Annotated[
        list[str] | None, typer.Option("--method", help="Run only this method; repeatable.")
    ] = None,
    sets: Annotated[
        list[str] | None,
        typer.Option("--set", help="Use only this data set, if the table has several; repeatable."),
    ] = None,
    checkpoint: Annotated[
        Path | None,
        typer.Option(help="File of finished cells, from which an interrupted run resumes."),
    ] = None,
    figures: Annotated[
        Path | None,
        typer.Option(
            help="Folder for the figure NAME, or without NAME for all figures that take at most a "
            "minute; in a checkout, the latter use the stored results."
        ),
    ] = None,
    results: Annotated[
        Path | None,
        typer.Option(help="JSON file of results, in which new rows replace old rows."),
    ] = None,
    render: Annotated[
        Path | None,
        typer.Option(
            metavar="CHECKOUT",
            help="Write the tables of all pages of a checkout from the stored results.",
        ),
    ] = None,
    check: Annotated[
        bool,
        typer.Option(
            "--check",
            help="Recompute the cheapest cells and compare them with the stored cells.",
        ),
    ] = False,
    stale: Annotated[
        bool, typer.Option("--stale", help="List stored results whose code has changed.")
    ] = False,
    as_json: Annotated[bool, typer.Option("--json", help="Print JSON instead of tables.")] = False,
    quiet: Annotated[bool, typer.Option("--quiet", help="Suppress progress output.")] = False,
) -> None:
    """Reproduce a table or figure of the papers.

    \b
    Examples:
      annealed reproduce fsa-regression --runs 2 --json
      annealed reproduce --check fsa-regression
    """
    from annealed.pipelines.common.outputs import check_outputs

    from ..registry import entries

    if render is not None:
        from ..render import render as render_pages

        for page in render_pages(render):
            typer.echo(page)
        return
    if check:
        _check(name, data, as_json)
        return
    if stale:
        from ..provenance import stale as stale_files

        print_answer(stale_files(), as_json, "", ["file", "state", "date", "command"])
        return
    if list_tables or (name is None and figures is None):
        print_answer(
            [{"name": key, "shows": shows} for key, shows in entries()],
            as_json,
            "",
            ["name", "shows"],
        )
        return
    if noisy and name != "fsa-classification":
        raise ValueError(f"--noisy is only available for fsa-classification, not for {name}")
    check_outputs([data], [checkpoint, results])
    if figures is not None:
        _draw(name, figures, data, runs, checkpoint)
        return
    assert name is not None
    name = name.removeprefix("python ")  # as stored with the results of a script
    if name.startswith("annealed ") or name.split()[0].endswith(".py"):
        from ..provenance import run_command, run_script

        if results is None:
            raise ValueError(f"{name}: a script or command requires --results FILE")
        (run_command if name.startswith("annealed ") else run_script)(name, results)
        return
    options = {"noisy": noisy, "methods": method, "sets": sets}
    record = _make(
        name, runs, data, {key: value for key, value in options.items() if value}, checkpoint, quiet
    )
    if results is not None:
        from ..render import update

        given: dict[str, list[Any]] = {
            "runs": [runs] if runs else [],
            "method": method or [],
            "set": sets or [],
        }
        words = [f"--{key} {word!r}" for key, values in given.items() for word in values] + [
            "--noisy"
        ] * noisy
        update(results, record, " ".join(["annealed reproduce", name, *words]))
    if as_json:
        print_json(record)
        return
    columns = list(dict.fromkeys(key for row in record["rows"] for key in row))
    print_table(
        record["name"], columns, [[row.get(key) for key in columns] for row in record["rows"]]
    )
    for key, value in record["settings"].items():
        typer.echo(f"{key}: {value}")


def _check(name: str | None, data: Path | None, as_json: bool) -> None:
    """Recompute the cells of one check or all checks; exit with code 1 if a value differs."""
    from ..checks import compare, selected

    results = Path("experiments/results")
    if not results.is_dir():
        raise ValueError(f"{results}: no such folder; run this command from a checkout")
    rows = [row for key in selected(name, data) for row in compare(key, results, data)]
    wrong = [row for row in rows if not row["equal"]]
    if as_json:
        print_json({"name": "check", "settings": {}, "rows": rows})
    else:
        for row in wrong:
            typer.echo(
                "{check}: {row}: {column} is {computed}, but the stored value is {stored}; "
                "expected a difference of at most {tolerance}".format(**row)
            )
        typer.echo(f"{len(rows)} values compared; {len(wrong)} differ")
    if wrong:
        raise typer.Exit(1)


def _draw(
    name: str | None, folder: Path, data: Path | None, runs: int | None, checkpoint: Path | None
) -> None:
    """Draw one figure, or all figures from the stored results of a checkout; name the figures that
    take longer than a minute."""
    from annealed.models.files import make_folder
    from annealed.pipelines.common.checkpoints import Checkpoint

    from ..registry import MINUTES, draw

    if name is None and checkpoint is not None:
        raise ValueError(f"--checkpoint {checkpoint} requires a NAME")
    make_folder(folder)
    given = {
        "runs": runs,
        "checkpoint": None if checkpoint is None else Checkpoint(checkpoint, {"table": name}),
    }
    stored = Path("experiments/results")
    results = stored if name is None and stored.is_dir() else None
    options = {key: value for key, value in given.items() if value is not None}
    for path in draw(name, folder, data, results, **options):
        typer.echo(path)
    for key, minutes in MINUTES.items() if name is None else ():
        typer.echo(
            f"{key}: not drawn; annealed reproduce {key} --figures {folder} takes {minutes} min",
            err=True,
        )


def _make(
    name: str,
    runs: int | None,
    data: Path | None,
    options: dict,
    checkpoint: Path | None,
    quiet: bool,
) -> dict[str, Any]:
    """Compute a table with a progress bar over its cells."""
    from annealed.learners.common.progress import progress_bar

    from ..cells import Cells
    from ..registry import has_cells
    from ..registry import reproduce as make

    with progress_bar(title=name, shown=not quiet, leave=False) as bar:

        def watch(key):
            bar.describe(" ".join(map(str, key.values()))[:60])
            bar.update()

        if checkpoint is not None or has_cells(name):
            options["checkpoint"] = Cells(checkpoint, {"table": name}, watch)
        return make(name, runs=runs, data_dir=data, **options)
