"""Selection of columns from a table in a file."""

from dataclasses import replace
from functools import partial
from itertools import pairwise
from pathlib import Path
from time import perf_counter
from typing import Any

from ...learners import on_dask
from ...models.tabular.fitting import Note, Progress, Selection, Table, fitted, select_table
from ..common.file_map import check_scheduler, running_on
from ..console import number_or_auto
from .out_of_core import read_out_of_core
from .request import Request
from .tables import check_table, read_table, read_test


def select_file(
    path: Path | str,
    request: Request,
    progress: Progress = lambda iterable, what: iterable,
    note: Note = lambda text: None,
    details: bool = False,
) -> Selection:
    """Read a table and select the columns that predict its target.

    Parameters
    ----------
    path : Path, or str of a URL
    request : Request
    progress : function
        Function that adds a progress display to an iterable, given the iterable and a label.
    note : function
        Function that is called, before the fit, with each one-line message about dropped or imputed
        columns.
    details : bool
        Whether to add the details that are shown only in a report.

    Returns
    -------
    Selection
        Selected columns and fitted model. The options of ``request`` are stored in ``settings``.

    Raises
    ------
    ValueError
        If the file cannot be read or is not compatible with the options.
    """
    request.check(request.k)
    size = None if request.k is None else number_or_auto("-k", request.k)
    if request.test is not None:
        check_table(request.test)
    out_of_core = isinstance(path, str) or path.is_dir() or request.memory_limit is not None
    if request.dask is not None:
        if not out_of_core:
            raise ValueError(
                f"--dask {request.dask}: this option cannot be used, because {path} is read "
                "into memory; pass a folder of .parquet files, or use --memory-limit"
            )
        check_scheduler(request.dask)
    begins = {"read": perf_counter()}

    def began(step: str, result: Any) -> Any:
        begins[step] = perf_counter()
        return result

    table = began("check", (read_out_of_core if out_of_core else read_table)(path, request))
    test = None if request.test is None else read_test(request.test, table, request)
    fit = fitted if request.dask is None else partial(_fitted_on, request.dask)
    selection = select_table(
        table,
        size,
        request,
        name=Path(path).name,
        progress=lambda iterable, what: began(what, progress(iterable, what)),
        note=note,
        test=test,
        fit=lambda *model: began("fit", fit)(*model),
    )
    selection.settings = {"table": str(path), **request.record()}
    if details:
        selection.add_details(progress)
    for text in selection.certainty.get("notes", ()):
        note(text)
    times = pairwise([*begins.values(), perf_counter()])
    selection.seconds = {
        step: round(end - begin, 3) for step, (begin, end) in zip(begins, times, strict=True)
    }
    return selection


def _fitted_on(address: str, model: Any, size: int, table: Table) -> Any:
    """Fit an estimator on a Dask cluster."""
    with running_on(address):
        return fitted(model, size, replace(table, X=on_dask(table.X)))
