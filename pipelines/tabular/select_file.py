"""What ``annealed select`` does to a file."""

from __future__ import annotations

import warnings
from collections.abc import Callable, Sequence
from pathlib import Path

from .inference import add_certainty, trusted_columns
from .selection import Selection, select_columns
from .tables import read_table
from .target import check_target, classes_of_one_row, guess_task, note_of_guess
from .validation import Progress


def select_file(
    path: Path,
    target: str | None,
    k: str | None,
    *,
    task: str = "auto",
    response: str = "linear",
    include: Sequence[str] = (),
    exclude: Sequence[str] = (),
    row_groups: str | None = None,
    sep: str | None = None,
    encoding: str | None = None,
    dates: str | None = None,
    fdr: float | None = None,
    intervals: bool = False,
    progress: Progress = lambda iterable, what: iterable,
    note: Callable[[str], object] = lambda text: None,
) -> Selection:
    """Read a table and select the columns that predict its target.

    Parameters
    ----------
    path : Path
    target : str or None
        Column to predict; npz and svmlight files bring their own.
    k : str or None
        A number from 1 on, or "auto"; more than there are columns keeps all, with a warning. None
        with ``fdr``.
    task : {"auto", "classification", "regression"}, default "auto"
    response : {"linear", "piecewise"}, default "linear"
    include, exclude : sequence of str, default ()
        Columns that are selected in any case, and columns that may not be.
    row_groups : str or None, default None
        Column that names rows which stay together in cross-validation.
    sep, encoding : str or None, default None
        Of a text file, see :func:`.readers.read_frame`.
    dates : {"dayfirst", "monthfirst"} or None, default None
        How dates such as 31/12/2019 are written; None: found out, where the column shows it.
    fdr : float or None, default None
        Select the columns of which at most this share is false.
    intervals : bool, default False
        Whether coefficients get confidence intervals.
    progress : function
        Called with what is gone through, and what it is.
    note : function
        Called with each line about columns that were left out or imputed, before the long work.

    Returns
    -------
    Selection
        Its settings name what was asked for.

    Raises
    ------
    ValueError
        If the file cannot be read or does not fit what was asked for.
    """
    if (k is None) == (fdr is None):
        raise ValueError("expected either -k or --fdr")
    size = None if k is None else parse_size(k)
    data = read_table(
        path,
        target,
        include=include,
        exclude=exclude,
        row_groups=row_groups,
        sep=sep,
        encoding=encoding,
        keep_missing=response == "piecewise",
        dates=dates,
    )
    chosen_task = guess_task(data.y) if task == "auto" else task
    if task == "auto" and (line := note_of_guess(data.y, chosen_task)):
        data.notes.append(line)
    if chosen_task == "classification":
        check_target(data.y, chosen_task)
        data = data.without(classes_of_one_row(data.y))
    for text in data.notes:
        note(text)
    n_columns = len(data.encoding.columns)
    if size is not None and size > n_columns:
        warnings.warn(f"-k {k}: only {n_columns} usable columns, all are kept", stacklevel=2)
        size = n_columns
    if fdr is None:
        found = select_columns(data, chosen_task, size, response, include, progress)
    else:
        only, certainty = trusted_columns(data, chosen_task, fdr, response, include)
        found = select_columns(data, chosen_task, len(only), response, include, progress, only)
        found.certainty = certainty
    add_certainty(found, intervals)
    for text in found.certainty["notes"]:
        note(text)
    found.settings = {"table": str(path), "target": target, "k": k, "response": response, "row_groups": row_groups, "fdr": fdr}
    found.settings |= {"include": list(include) or None, "exclude": list(exclude) or None}
    return found


def parse_size(k: str) -> int | None:
    """Return a number of columns, None for "auto".

    Raises
    ------
    ValueError
        For anything but that and a number from 1 on.
    """
    if k == "auto":
        return None
    try:
        size = int(k)
    except ValueError:
        raise ValueError(f"-k {k}: expected a number or auto") from None
    if size < 1:
        raise ValueError(f"-k {k}: expected at least 1")
    return size
