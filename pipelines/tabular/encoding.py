"""From a table to a matrix: which columns are numbers, dates or categories, which are left out, and
why."""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Collection
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any

import numpy as np

from ...models.tabular.encoding import (
    CATEGORY,
    DATE,
    DAY_FIRST,
    DAY_OR_MONTH,
    MISSING,
    MONTH_FIRST,
    NUMBER,
    OTHER,
    THOUSANDS,
    WITH_THOUSANDS,
    ColumnEncoding,
    TableEncoding,
    as_words,
    days,
    to_numbers,
)

if TYPE_CHECKING:
    import pandas as pd

MOST_MISSING = 0.5  # a column with a larger share of missing values is left out
# a category has at most so many levels of its own, the most frequent ones: a choice
MOST_LEVELS = 30
_LEAST_ROWS = 5  # of a level of its own: fewer say nothing about it; two where no level has as many
_NEARLY_ALL = 0.9  # of the cells: text with more different values names the rows
# text of which a larger share are numbers (dates) is a column of numbers (dates) with bad cells
_MOSTLY = 0.9
_DATE = r"\d{4}-\d{2}-\d{2}.*"
_ID = re.compile(
    r"|unnamed: \d+|index|id|obs|observation|(row|record|case)[ _.]?(names?|ids?|index|numbers?|no)?|.*[ _.]id", re.IGNORECASE
)
_DATES = "dates, as days since 1970-01-01"
_ROW_NUMBERS = "numbers of the rows (--include keeps such a column)"


@dataclass
class Table:
    """A table as numbers.

    Attributes
    ----------
    X : ndarray or csr_matrix of shape (n_rows, n_numbers)
        NaN is missing where it was asked to stay.
    y : ndarray of shape (n_rows,)
        The target; rows without one are left out.
    encoding : TableEncoding
        What each number is.
    left_out : dict of str to str
        Columns that are not used, and why.
    notes : list of str
        One line per decision.
    rows : ndarray of shape (n_rows,), int
        Which rows of the file these are.
    row_groups : ndarray of shape (n_rows,) or None
        Rows that stay together in cross-validation.
    """

    X: Any
    y: np.ndarray
    encoding: TableEncoding
    left_out: dict[str, str] = field(default_factory=dict)
    notes: list[str] = field(default_factory=list)
    rows: np.ndarray = field(default_factory=lambda: np.empty(0, int))
    row_groups: np.ndarray | None = None

    @property
    def names(self) -> list[str]:
        """Names of the columns in use."""
        return [column.name for column in self.encoding.columns]

    def without(self, alone: np.ndarray) -> Table:
        """Return the table without some rows, each the only one of its class, which the notes
        name."""
        if not len(alone):
            return self
        keep = np.delete(np.arange(len(self.y)), alone)
        # classes are whole numbers
        labels = self.y.astype(int) if self.y.dtype.kind == "f" else self.y
        said = [f"the class {labels[i]!s} has one row only, row {self.rows[i] + 1}, which is put aside" for i in alone]
        groups = None if self.row_groups is None else self.row_groups[keep]
        notes = [*self.notes, *said]
        return replace(self, X=self.X[keep], y=self.y[keep], rows=self.rows[keep], row_groups=groups, notes=notes)


class _Decisions:
    """What becomes of each column, grouped into one line per reason."""

    def __init__(self, keep_missing: bool, required: Collection[str]):
        self.keep_missing, self.required = keep_missing, required
        self.columns: list[ColumnEncoding] = []
        self.left_out: dict[str, str] = {}
        self.done: defaultdict[str, list[str]] = defaultdict(list)
        self.incomplete = "incomplete, gaps " + ("have a response of their own" if keep_missing else "filled with the median")

    def leave_out(self, name: str, why: str) -> None:
        if name in self.required:
            raise ValueError(f"--include {name}: cannot be used ({why})")
        self.left_out[name] = why

    def number(self, name: str, numbers: np.ndarray, kind: str = NUMBER, style: str = "", read: str | None = None) -> None:
        """Decide on a column of numbers whose missing values are NaN; how it was ``read`` is
        said."""
        if read is not None:
            self.done[read].append(name)
        gone = np.isnan(numbers)
        share = gone.mean() if len(numbers) else 0.0
        if share > MOST_MISSING:
            return self.leave_out(name, "more than half of the values missing")
        there = numbers[~gone]
        if len(there) == 0 or ((there == there[0]).all() and not (self.keep_missing and share > 0)):
            return self.leave_out(name, "constant")
        fill = None if self.keep_missing else float(np.median(there))
        if share > 0:
            self.done[self.incomplete].append(name)
        self.columns.append(ColumnEncoding(name, kind, fill, style=style))

    def category(self, name: str, words: np.ndarray) -> None:
        """Decide on a column of text: one level is the reference, rare ones are put together."""
        there = np.array([word for word in words if word is not None], object)
        n_gone = len(words) - len(there)
        if n_gone > MOST_MISSING * len(words):
            return self.leave_out(name, "more than half of the values missing")
        levels, counts = np.unique(there.astype(str), return_counts=True)
        if len(levels) == 1 and not n_gone:
            return self.leave_out(name, "constant")
        if len(levels) > max(2, _NEARLY_ALL * len(there)):
            return self.leave_out(name, f"text that names the rows, {len(levels)} different values in {len(words)} rows")
        order = np.argsort(-counts, kind="stable")
        frequent = [str(levels[i]) for i in order if counts[i] >= max(2, min(_LEAST_ROWS, counts.max()))][:MOST_LEVELS]
        if not frequent:
            return self.leave_out(name, "text, no value in two rows")
        n_other = len(there) - sum(counts[i] for i in order[: len(frequent)])
        if len(levels) > MOST_LEVELS and n_other > MOST_MISSING * len(words):
            return self.leave_out(name, f"text, {len(levels)} different values in {len(words)} rows")
        extra = [OTHER] * bool(n_other) + [MISSING] * bool(n_gone)
        rows = [*counts[order[1 : len(frequent)]], *[n_other] * bool(n_other), *[n_gone] * bool(n_gone)]
        shares = tuple(float(n / len(words)) for n in rows)
        self.columns.append(ColumnEncoding(name, CATEGORY, None, tuple(frequent[1:] + extra), frequent[0], shares))
        self.done["text, one 0 / 1 for each level"].append(name)
        if n_other:
            self.done[f"text, levels in fewer than {_LEAST_ROWS} rows are put together"].append(name)

    def notes(self) -> list[str]:
        """One line per reason."""
        reasons = {f"left out, {why}": names for why, names in by_reason(self.left_out).items()}
        lines = reasons | self.done
        return [f"{len(names)} column{'s' * (len(names) > 1)} {what}: {_some(names)}" for what, names in lines.items()]


def by_reason(left_out: dict[str, str]) -> dict[str, list[str]]:
    """Names of the columns that are left out, for each reason."""
    reasons: defaultdict[str, list[str]] = defaultdict(list)
    for name, why in left_out.items():
        reasons[why].append(name)
    return reasons


def _some(names: list[str], most: int = 40) -> str:
    return ", ".join(names[:most]) + (f", and {len(names) - most} more" if len(names) > most else "")


def encode_frame(
    frame: pd.DataFrame, keep_missing: bool, required: Collection[str] = (), ids: Collection[str] = (), dates: str | None = None
) -> tuple[Any, _Decisions]:
    """Return the matrix of a table and what was decided on its columns.

    Parameters
    ----------
    frame : DataFrame
        Without the target.
    keep_missing : bool
        Missing numbers stay NaN instead of becoming the median of the others.
    required : collection of str
        Columns that may not be left out.
    ids : collection of str
        Columns that number the rows, see :func:`numbers_rows`: left out unless they are required.
    dates : {"dayfirst", "monthfirst"} or None, default None
        How dates such as 31/12/2019 are written; None: found out, where the column shows it.
    """
    decisions = _Decisions(keep_missing, required)
    for name in frame.columns:
        if name in ids and name not in required:
            decisions.leave_out(name, _ROW_NUMBERS)
        else:
            _decide(decisions, name, frame[name], [dates] if dates else [DAY_FIRST, MONTH_FIRST])
    encoding = TableEncoding(tuple(decisions.columns))
    return encoding.encode(frame), decisions


def _decide(decisions: _Decisions, name: str, values: pd.Series, orders: list[str]) -> None:
    import pandas as pd

    kind = values.dtype
    if pd.api.types.is_complex_dtype(kind):
        return decisions.leave_out(name, "complex numbers")
    if pd.api.types.is_datetime64_any_dtype(kind):
        return decisions.number(name, days(values), DATE, read=_DATES)
    if pd.api.types.is_numeric_dtype(kind):
        if np.isinf(values.to_numpy(dtype=np.float64, na_value=np.nan)).any():
            decisions.done["with infinite values, which count as missing"].append(name)
        return decisions.number(name, to_numbers(values))
    words = as_words(values)
    there = pd.Series([word for word in words if word is not None], dtype=object)
    if not len(there):
        return decisions.leave_out(name, "more than half of the values missing")
    numbers = to_numbers(values)
    bad = there[np.isnan(numbers[[word is not None for word in words]])]
    grouped = there[there.map(lambda word: bool(WITH_THOUSANDS.fullmatch(word)))]
    if len(bad) <= (1.0 - _MOSTLY) * len(there) and not (len(grouped) and bad.str.contains(",").any()):
        if len(bad):
            decisions.done[f"with cells that are no numbers, such as {bad.iloc[0]!r}, which count as missing"].append(name)
        if len(grouped):
            decisions.done[f"of numbers with thousands separators, such as {grouped.iloc[0]}"].append(name)
        return decisions.number(name, numbers, style=THOUSANDS if len(grouped) else "")
    if there.str.fullmatch(_DATE).mean() >= _MOSTLY and np.isfinite(days(values)).mean() >= _MOSTLY * len(there) / len(words):
        return decisions.number(name, days(values), DATE, read=_DATES)
    slashed = there[there.str.fullmatch(DAY_OR_MONTH)]
    if len(slashed) >= _MOSTLY * len(there):
        fitting = [order for order in orders if not np.isnan(days(slashed, order)).any()]
        if len(fitting) == 2:
            return decisions.leave_out(name, f"dates such as {slashed.iloc[0]}: say --dates {DAY_FIRST} or --dates {MONTH_FIRST}")
        if fitting:
            read = f"of dates such as {slashed.iloc[0]}, read as {fitting[0]} (--dates otherwise), as days since 1970-01-01"
            return decisions.number(name, days(values, fitting[0]), DATE, fitting[0], read)
    return decisions.category(name, words)


def numbers_rows(values: pd.Series, first: bool) -> bool:
    """Whether a column of a file names its rows: different whole numbers that are called so, or
    count them in the first column.

    Whole numbers too large for exact arithmetic are names, too.
    """
    if values.dtype.kind not in "iuf" or (values == np.inf).any():
        return False
    there = values.dropna()
    if not len(there) or not there.is_unique or (there != there.round()).any():
        return False
    counts = first and len(there) == len(values) >= 10 and there.iloc[0] in (0, 1) and bool((there.diff().iloc[1:] == 1).all())
    large = values.dtype.kind in "iu" and len(there) >= 10 and max(abs(int(there.min())), abs(int(there.max()))) >= 2**53
    return counts or large or _ID.fullmatch(str(values.name).strip()) is not None


def read_target(values: pd.Series) -> np.ndarray:
    """Return a column as labels (text, None where empty) or as numbers (NaN where empty).

    Raises
    ------
    ValueError
        For dates, complex numbers, infinity, and for a column of numbers with a few cells that are
        none.
    """
    import pandas as pd

    if pd.api.types.is_datetime64_any_dtype(values.dtype) or pd.api.types.is_complex_dtype(values.dtype):
        raise ValueError(f"the target {values.name!r} holds {values.dtype}: expected numbers or labels")
    if pd.api.types.is_numeric_dtype(values.dtype) and not pd.api.types.is_bool_dtype(values.dtype):
        numbers = values.to_numpy(dtype=np.float64, na_value=np.nan)
        if np.isinf(numbers).any():
            raise ValueError(f"the target {values.name!r} holds infinity in row {np.flatnonzero(np.isinf(numbers))[0] + 1}")
        return numbers
    words = as_words(values)
    there = np.array([word is not None for word in words], bool)
    if there.any() and any(WITH_THOUSANDS.fullmatch(word) for word in words[there]):
        numbers = to_numbers(values)
        if not np.isnan(numbers[there]).any():
            return numbers
    bad = there & pd.isna(pd.to_numeric(pd.Series(words, dtype=object), errors="coerce")).to_numpy()
    if bad.any() and bad.sum() <= (1.0 - _MOSTLY) * there.sum():
        row = int(np.flatnonzero(bad)[0])
        raise ValueError(
            f"{bad.sum()} of {there.sum()} cells of the target {values.name!r} {'is' if bad.sum() == 1 else 'are'} not a number: "
            f"{words[row]!r} in row {row + 1}; correct or empty such cells"
        )
    some = pd.Series(words[there][:100], dtype=object)
    if len(some) and some.str.match(r"\d{4}-\d{2}-\d{2}").all():
        raise ValueError(f"the target {values.name!r} holds dates such as {some.iloc[0]!r}: expected numbers or labels")
    return words


def encode_matrix(X: Any, names: list[str], keep_missing: bool, required: Collection[str] = ()) -> tuple[Any, _Decisions]:
    """The same for a matrix of numbers, dense or sparse; all columns at once."""
    decisions = _Decisions(keep_missing, required)
    missing, fills = np.zeros(X.shape[1]), np.zeros(X.shape[1])
    if hasattr(X, "tocsr"):
        first = X[:1].toarray()[0]
        constant = np.asarray(X.max(axis=0).toarray()[0] == first) & np.asarray(X.min(axis=0).toarray()[0] == first)
    else:
        gone = ~np.isfinite(X)
        missing = gone.mean(axis=0)
        if np.isinf(X).any():
            infinite = np.flatnonzero(np.isinf(X).any(axis=0))
            decisions.done["with infinite values, which count as missing"] = [names[j] for j in infinite]
        some = (missing > 0) & (missing <= MOST_MISSING)
        fills[missing == 0] = np.median(X[:, missing == 0], axis=0) if X.size else 0.0
        if gone.any():
            X = np.where(gone, np.nan, X)
            fills[some] = np.nanmedian(X[:, some], axis=0)
            if not keep_missing:
                X = np.where(gone & some, fills, X)
        constant = (X[:1] == X).all(axis=0)
        if (some & ~constant).any():
            decisions.done[decisions.incomplete] = [names[j] for j in np.flatnonzero(some & ~constant)]
    keep = (missing <= MOST_MISSING) & ~constant
    for j in np.flatnonzero(~keep):
        decisions.leave_out(names[j], "constant" if constant[j] else "more than half of the values missing")
    decisions.columns = [ColumnEncoding(names[j], NUMBER, None if keep_missing else float(fills[j])) for j in np.flatnonzero(keep)]
    return (X if keep.all() else X[:, keep]), decisions
