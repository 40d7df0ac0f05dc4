"""Encoding of data frames and their targets as tables."""

from collections.abc import Sequence

import numpy as np
import pandas as pd

from ...messages import first_of, suggestion
from ..encoding import TableEncoding, as_words, days, offsets, to_numbers
from .leaks import gap_leaks
from .options import SelectionOptions
from .table import KINDS, Table, encode_frame, numbers_rows, read_target, skewed_columns


def table_from_frame(
    frame: pd.DataFrame,
    target: str | pd.Series | None,
    request: SelectionOptions,
    notes: list[str],
    logarithms: bool = True,
) -> Table:
    """Encode a data frame and its target as a table.

    Parameters
    ----------
    frame : DataFrame
    target : str, Series or None
        Name of the target column, or the target itself. None raises an error.
    request : SelectionOptions
        Options, such as the columns to include or exclude and the column of weights.
    notes : list of str
        Messages to which those about the columns are appended.
    logarithms : bool
        Whether columns of skewed numbers may be replaced by their logarithms.

    Raises
    ------
    ValueError
        If a column that is named in the options does not exist, or the target is not valid.
    """
    values = target if isinstance(target, pd.Series) else target_of(frame, target)
    y = read_target(values)
    rows = rows_with_target(y, notes)
    if y.dtype != object and values.dtype.kind not in "biuf":
        notes.append(f"the target {values.name!r} contains numbers with thousands separators")
    weight = weights(frame, request.weight, rows)
    row_groups, shift = _row_groups(frame, request.row_groups, rows), request.offset_column
    times = _times(frame, request.time, rows, request.dates or "")

    others = {request.row_groups, request.weight, request.offset, request.exposure}
    others |= {target} if isinstance(target, str) else set()
    usable_names = [name for name in frame.columns if name not in others]
    check_names(usable_names, request.include, request.exclude)
    excluded = set(request.exclude)
    columns = frame[[name for name in usable_names if name not in excluded]]
    if len(rows) < len(frame):
        columns = columns.iloc[rows]
    kinds = _kinds(list(columns), request.kinds)
    # rows without a target could interrupt consecutive numbers
    X, decisions = encode_frame(columns, request, numbers_rows(frame), kinds)

    encoding = TableEncoding(tuple(decisions.columns))
    y = labels_of(y, rows)
    incomplete = [
        column.name
        for column in encoding.columns
        if not column.form and column.name not in decisions.complete
    ]
    leak_notes = gap_leaks(((name, columns[name].isna().to_numpy()) for name in incomplete), y)
    skewed: tuple[str, ...] = ()
    if logarithms and not request.keep_missing and request.fdr is None and not request.intervals:
        unchanged = {text.rpartition("=")[0] for text in (*request.kinds, *request.bounds)}
        skewed = tuple(name for name in skewed_columns(X, encoding) if name not in unchanged)
    if skewed:
        line = (
            f"{len(skewed)} column{'s' * (len(skewed) > 1)} of skewed positive numbers, "
            "replaced by their logarithms because these correlate better with the target "
            f"(override: --as COLUMN=number): {', '.join(skewed)}"
        )
        leak_notes.insert(0, line)
    return Table(
        X,
        y,
        encoding,
        left_out=dict.fromkeys(request.exclude, "named by --exclude") | decisions.left_out,
        notes=[*notes, *decisions.notes(), *leak_notes],
        rows=rows,
        row_groups=row_groups,
        weight=weight,
        offset=None if shift is None else offset_of(frame, *shift, rows),
        offset_column=shift,
        times=times,
        skewed=skewed,
    )


def _kinds(names: Sequence[str], given: Sequence[str]) -> dict[str, str]:
    kinds = {}
    for text in given:
        name, _, kind = text.rpartition("=")
        if (kind not in KINDS and "<" not in kind) or not name:
            raise ValueError(
                f"--as {text} is not valid; expected COLUMN=KIND, where KIND is one of "
                f"{', '.join(KINDS)}, or levels such as low<medium<high"
            )
        check_column(name, names, "--as")
        kinds[name] = kind
    return kinds


def check_names(names: Sequence[str], include: Sequence[str], exclude: Sequence[str]) -> None:
    """Check that the given columns exist, and that no column is both included and excluded."""
    for option, given in (("--include", include), ("--exclude", exclude)):
        for name in given:
            check_column(name, names, option)
    if both := set(include) & set(exclude):
        raise ValueError(
            f"column {min(both)!r} is named by both --include and --exclude; name it in only "
            "one of them"
        )


def check_column(name: str, names: Sequence[str], option: str) -> None:
    """Check that a column exists.

    The error message contains ``option``, the name of the option that specifies the column.
    """
    if name not in names:
        raise ValueError(
            f"column {name!r} for {option} does not exist{suggestion(name, names)}; "
            f"the columns are {first_of(names, 10)}"
        )


def target_of(frame: pd.DataFrame, name: str | None) -> pd.Series:
    """Return the target column."""
    if name is None:
        raise ValueError("the target is not set; expected --target COLUMN")
    check_column(name, list(frame.columns), "the target")
    return frame[name]


def weights(frame: pd.DataFrame, name: str | None, rows: np.ndarray) -> np.ndarray | None:
    """Return the sample weights of the given rows; None if no column of weights is named."""
    if name is None:
        return None
    check_column(name, list(frame.columns), "--weight")
    weight = to_numbers(frame[name])[rows]
    bad = np.flatnonzero(~(weight >= 0))
    if len(bad) or not weight.any():
        row, cell = (rows[bad[0]], frame[name].iloc[rows[bad[0]]]) if len(bad) else (0, 0)
        raise ValueError(
            f"--weight {name}: the weight in row {row + 1} is {cell!s}; expected non-negative "
            "numbers, at least one of them positive"
        )
    return weight


def offset_of(frame: pd.DataFrame, name: str, link: str, rows: np.ndarray) -> np.ndarray:
    """Return the offsets of the given rows; see :func:`.offsets`."""
    check_column(name, list(frame.columns), "--exposure" if link == "log" else "--offset")
    return offsets(frame[name], link)[rows]


def _row_groups(frame: pd.DataFrame, name: str | None, rows: np.ndarray) -> np.ndarray | None:
    if name is None:
        return None
    check_column(name, list(frame.columns), "--row-groups")
    words = as_words(frame[name].iloc[rows])
    return np.unique(np.array([word or "" for word in words]), return_inverse=True)[1]


def _times(
    frame: pd.DataFrame, name: str | None, rows: np.ndarray, style: str
) -> np.ndarray | None:
    if name is None:
        return None
    check_column(name, list(frame.columns), "--time")
    values = frame[name].iloc[rows]
    times = (
        values.to_numpy(np.float64, na_value=np.nan)
        if values.dtype.kind in "iuf"
        else days(values, style)
    )
    if np.isnan(times).any():
        cell = values.iloc[int(np.flatnonzero(np.isnan(times))[0])]
        raise ValueError(
            f"--time {name}: the value {cell!s} is neither a number nor a date; use --dates to "
            "set the order of day and month"
        )
    return times


def labels_of(target: np.ndarray, rows: np.ndarray) -> np.ndarray:
    """Return the targets of the given rows, with labels converted to text."""
    return target[rows].astype(str) if target.dtype == object else target[rows]


def rows_with_target(y: np.ndarray, notes: list[str]) -> np.ndarray:
    """Return the indices of the rows with a target, and add a message about dropped rows."""
    rows = np.flatnonzero(~pd.isna(y))
    if not len(rows):
        raise ValueError(
            "the target is missing in all rows; expected at least one row with a target"
        )
    if len(rows) < len(y):
        notes.append(f"{len(y) - len(rows)} rows dropped because their target is missing")
    return rows


def usable(table: Table) -> Table:
    """Return the table, or raise a ValueError if it has no usable columns."""
    if not table.encoding.columns:
        raise ValueError(
            "there are no usable columns "
            f"({'; '.join(table.notes) or 'the table has no other columns'})"
        )
    return table
