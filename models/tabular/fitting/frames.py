"""Encoding of data frames and their targets as tables."""

import re
from collections.abc import Sequence
from typing import Any

import numpy as np
import pandas as pd

from ...messages import first_of, suggestion
from ..encoding import (
    BLOCK,
    NUMBER,
    WITH_THOUSANDS,
    TableEncoding,
    as_words,
    days,
    offsets,
    to_numbers,
)
from .leaks import gap_leaks
from .options import SelectionOptions
from .table import KINDS, MAX_ROWS, MOSTLY, Table, encode_frame

_ID = re.compile(
    r"|unnamed: \d+|index|id|obs|observation"
    r"|(row|record|case)[ _.]?(names?|ids?|index|numbers?|no)?|.*[ _.]id",
    re.IGNORECASE,
)
# minimum skewness of positive numbers that are replaced by logarithms, and the maximum fraction of
# it that the logarithms may retain (heuristic)
_SKEWED, _LESS = 2.0, 0.5
_MIN_SKEWED = 50  # minimum rows; with fewer, a single number determines the skewness


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


def numbers_rows(frame: pd.DataFrame) -> list[Any]:
    """Return the names of the columns that seem to identify the rows.

    Their values are distinct integers. In addition, the column has a name such as ``id``, or
    contains consecutive numbers and is the first column, or the integers are too large for double
    precision.
    """
    return [
        name
        for name, dtype in zip(frame.columns, frame.dtypes)
        if dtype.kind
        in ("iuf" if name == frame.columns[0] or _ID.fullmatch(str(name).strip()) else "iu")
        and _numbers_rows(frame[name], name == frame.columns[0])
    ]


def _numbers_rows(values: pd.Series, first: bool) -> bool:
    named, kind = _ID.fullmatch(str(values.name).strip()) is not None, values.dtype.kind
    present = values.dropna()
    if not len(present) or (present == np.inf).any():
        return False
    counts = (
        first
        and len(present) == len(values) >= 10
        and present.iloc[0] in (0, 1)
        and bool((present.diff().iloc[1:] == 1).all())
    )
    large = (
        kind in "iu"
        and len(present) >= 10
        and max(abs(int(present.min())), abs(int(present.max()))) >= 2**53
    )
    return (
        (named or counts or large) and present.is_unique and not (present != present.round()).any()
    )


def read_target(values: pd.Series) -> np.ndarray:
    """Convert a target to labels or numbers; empty cells become None or NaN.

    Raises
    ------
    ValueError
        If the target contains dates, complex numbers or infinity, or is mostly numeric with a few
        non-numeric cells.
    """
    if pd.api.types.is_datetime64_any_dtype(values.dtype) or pd.api.types.is_complex_dtype(
        values.dtype
    ):
        raise ValueError(
            f"the target {values.name!r} has dtype {values.dtype}; expected numbers or labels"
        )
    if pd.api.types.is_numeric_dtype(values.dtype) and not pd.api.types.is_bool_dtype(values.dtype):
        numbers = values.to_numpy(dtype=np.float64, na_value=np.nan)
        if np.isinf(numbers).any():
            raise ValueError(
                f"the target {values.name!r} contains infinity in row "
                f"{np.flatnonzero(np.isinf(numbers))[0] + 1}; expected finite numbers"
            )
        return numbers
    words = as_words(values)
    present = np.array([word is not None for word in words], bool)
    if present.any() and any(WITH_THOUSANDS.fullmatch(word) for word in words[present]):
        numbers = to_numbers(values)
        if not np.isnan(numbers[present]).any():
            return numbers
    bad = (
        present & pd.isna(pd.to_numeric(pd.Series(words, dtype=object), errors="coerce")).to_numpy()
    )
    if bad.any() and bad.sum() <= (1.0 - MOSTLY) * present.sum():
        row = int(np.flatnonzero(bad)[0])
        raise ValueError(
            f"{bad.sum()} of {present.sum()} cells of the target {values.name!r} "
            f"{'is not a number' if bad.sum() == 1 else 'are not numbers'}, such as "
            f"{words[row]!r} in row {row + 1}; correct these cells or leave them empty"
        )
    some = pd.Series(words[present][:100], dtype=object)
    if len(some) and some.str.match(r"\d{4}-\d{2}-\d{2}").all():
        raise ValueError(
            f"the target {values.name!r} contains dates such as {some.iloc[0]!r}; "
            "expected numbers or labels"
        )
    return words


def skewed_columns(X: np.ndarray, encoding: TableEncoding) -> tuple[str, ...]:
    """Return the names of columns of skewed positive numbers with much less skewed logarithms.

    The skewness is estimated from at most ``MAX_ROWS`` rows.
    """
    if len(X) < _MIN_SKEWED:
        return ()
    numbers = np.isin(
        encoding.groups, [i for i, column in enumerate(encoding.columns) if column.kind == NUMBER]
    )
    places, step, skewed = (
        np.flatnonzero(numbers & (X.min(axis=0) > 0)),
        -(-len(X) // MAX_ROWS),
        set[int](),
    )
    n_together = max(1, BLOCK // len(X))
    for start in range(0, len(places), n_together):
        part = places[start : start + n_together]
        x = X[::step, part].astype(np.float64)
        raw, log = _skewness(x), _skewness(np.log(x))
        skewed.update(encoding.groups[part[(raw > _SKEWED) & (np.abs(log) < _LESS * raw)]].tolist())
    return tuple(encoding.columns[number].name for number in sorted(skewed))


def _skewness(X: np.ndarray) -> np.ndarray:
    Z = X - X.mean(axis=0)
    return (Z**3).mean(axis=0) / np.maximum((Z**2).mean(axis=0) ** 1.5, 1e-300)
