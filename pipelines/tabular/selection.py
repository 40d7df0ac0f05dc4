"""Selection of the columns of a table in a file (``annealed select``)."""

import warnings
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np

from ...learners import on_dask
from ...learners.sources.matrix import Source
from ...models.tabular.fitting.leaks import leaks, test_rows_notes
from ...models.tabular.fitting.options import Request
from ...models.tabular.fitting.selection import (
    Selection,
    check_target,
    classes_of_one_row,
    guess_task,
    select_columns,
    task_note,
)
from ...models.tabular.fitting.settings import make_model, units_of
from ...models.tabular.fitting.table import Table
from ...models.tabular.fitting.validation import (
    HeldOut,
    Progress,
    check_score,
    fitted,
    folds,
    measures,
)
from ..common.file_map import check_scheduler, running_on
from ..console import number_or_auto
from .out_of_core import read_out_of_core
from .tables import Note, check_table, read_table, read_test


def select_file(
    path: Path | str,
    request: Request,
    progress: Progress = lambda iterable, what: iterable,
    note: Note = lambda text: None,
) -> Selection:
    """Read a table and select the columns that predict its target.

    Parameters
    ----------
    path : Path, or str of a URL
    request : Request
    progress : function
        Wraps an iterable; called with it and a label.
    note : function
        Called with each line about dropped or imputed columns, before the long work.

    Returns
    -------
    Selection
        The selection, with the options in its settings.

    Raises
    ------
    ValueError
        If the file cannot be read or does not fit the options.
    """
    request.check()
    size = None if request.k is None else number_or_auto("-k", request.k)
    table, task = _read_rows(path, request)
    check_score(request.score, task)
    sample = table.sampled(task, request.seed, request.split_duplicates)
    table.notes = [*sample.notes, *leaks(sample, task)]
    test = None
    if request.test is not None:
        test = read_test(request.test, table, request)
        compared = sample if isinstance(table.X, Source) else table
        table.notes += [*test.notes, *test_rows_notes(compared, test, task)]
    n_columns, splits = len(table.names), folds(sample, task, request.seed)
    size_of_table = f"{len(table.y)} rows, {n_columns} usable column{'s' * (n_columns != 1)}"
    note(f"reading {Path(path).name}: {size_of_table}; {len(splits)} folds")
    for text in table.notes:
        note(text)
    units = units_of(table, request.group)
    n_units = int(units.max()) + 1
    if size is not None and size > n_units and not request.card:
        warnings.warn(
            f"-k {request.k}: only {n_units} usable columns; all are selected", stacklevel=2
        )
        size = n_units
    discoveries, certainty = None, dict[str, Any]()
    if request.fdr is not None:
        from ...models.tabular.fitting.inference import fdr_columns

        discoveries, certainty = fdr_columns(
            table, make_model(request, table, task, 1), request.fdr
        )
        size = len(np.unique(units[table.columns_of(discoveries)]))
    fit = fitted if request.dask is None else partial(_fitted_on, request.dask)
    selection = select_columns(table, task, size, request, progress, discoveries, sample, fit)
    selection.settings = {"table": str(path), **request.record()}
    if request.needs_inference:
        from ...models.tabular.fitting.inference import add_certainty

        rows = sample.with_logarithms(selection.logarithms)
        notes = [
            *certainty.get("notes", ()),
            *add_certainty(selection.columns, rows, selection.model, request.intervals),
        ]
        selection.certainty = {**certainty, "notes": notes}
        for text in notes:
            note(text)
    if test is not None and selection.validation.scores:
        predicted = HeldOut.of(selection.model, test.with_logarithms(selection.logarithms))
        selection.validation.scores["test"] = measures(task, predicted, request.score)
    return selection


def _read_rows(path: Path | str, request: Request) -> tuple[Table, str]:
    """Read a table, in memory or out of core, and determine its task; drop classes of one row."""
    if request.test is not None:
        check_table(request.test)
    out_of_core = isinstance(path, str) or path.is_dir() or request.memory_limit is not None
    if request.dask is not None:
        if not out_of_core:
            raise ValueError(
                f"--dask {request.dask}: {path} is read into memory; expected a folder of "
                ".parquet files, or --memory-limit"
            )
        check_scheduler(request.dask)
    table = (read_out_of_core if out_of_core else read_table)(path, request)
    task: str = request.task
    if task == "auto":
        task = guess_task(table.y)
        table.notes += task_note(table.y, task)
    check_target(table.y, task)
    if task == "classification":
        single = classes_of_one_row(table.y)
        if len(single) and not request.keep_rare:
            table = table.drop_rows(single)
        table.y = table.y.astype(np.int64) if table.y.dtype.kind == "f" else table.y
    return table, task


def _fitted_on(address: str, model: Any, size: int, table: Table) -> Any:
    """Fit an estimator on a Dask cluster."""
    with running_on(address):
        return fitted(model, size, replace(table, X=on_dask(table.X)))
