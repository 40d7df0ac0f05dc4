"""From a table to a matrix: which columns are numbers, dates or categories, which are left out, and why."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Collection
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import numpy as np

from ...models.tabular.encoding import (
    CATEGORY,
    DATE,
    MISSING,
    NUMBER,
    OTHER,
    ColumnEncoding,
    TableEncoding,
    as_words,
    days,
    to_numbers,
)

if TYPE_CHECKING:
    import pandas as pd

MOST_MISSING = 0.5  # a column with a larger share of missing values is left out
MOST_LEVELS = 30  # a category has at most so many levels of its own, the most frequent ones: a choice
_LEAST_ROWS = 5  # of a level of its own: fewer say nothing about it
_MOSTLY = 0.9  # text of which a larger share are numbers (dates) is a column of numbers (dates) with bad cells
_DATE = r"\d{4}-\d{2}-\d{2}.*"


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


class _Decisions:
    """What becomes of each column, grouped into one line per reason."""

    def __init__(self, keep_missing: bool, required: Collection[str]):
        self.keep_missing, self.required = keep_missing, required
        self.columns: list[ColumnEncoding] = []
        self.left_out: dict[str, str] = {}
        self.done: defaultdict[str, list[str]] = defaultdict(list)

    def leave_out(self, name: str, why: str) -> None:
        if name in self.required:
            raise ValueError(f"--include {name}: cannot be used ({why})")
        self.left_out[name] = why

    def number(self, name: str, numbers: np.ndarray, kind: str = NUMBER) -> None:
        """Decide on a column of numbers whose missing values are NaN."""
        gone = np.isnan(numbers)
        share = gone.mean() if len(numbers) else 0.0
        if share > MOST_MISSING:
            return self.leave_out(name, "more than half of the values missing")
        there = numbers[~gone]
        if len(there) == 0 or ((there == there[0]).all() and not (self.keep_missing and share > 0)):
            return self.leave_out(name, "constant")
        fill = None if self.keep_missing else float(np.median(there))
        if share > 0:
            self.done[
                "incomplete, gaps " + ("have a response of their own" if self.keep_missing else "filled with the median")
            ].append(name)
        self.columns.append(ColumnEncoding(name, kind, fill))

    def category(self, name: str, words: np.ndarray) -> None:
        """Decide on a column of text: one level is the reference, rare ones are put together."""
        there = np.array([word for word in words if word is not None], object)
        n_gone = len(words) - len(there)
        if n_gone > MOST_MISSING * len(words):
            return self.leave_out(name, "more than half of the values missing")
        levels, counts = np.unique(there.astype(str), return_counts=True)
        if len(levels) == 1 and not n_gone:
            return self.leave_out(name, "constant")
        order = np.argsort(-counts, kind="stable")
        frequent = [str(levels[i]) for i in order if counts[i] >= min(_LEAST_ROWS, counts.max())][:MOST_LEVELS]
        n_other = len(there) - sum(counts[i] for i in order[: len(frequent)])
        if len(levels) > MOST_LEVELS and n_other > MOST_MISSING * len(words):
            return self.leave_out(name, f"text, {len(levels)} different values in {len(words)} rows")
        extra = [OTHER] * bool(n_other) + [MISSING] * bool(n_gone)
        self.columns.append(ColumnEncoding(name, CATEGORY, None, tuple(frequent[1:] + extra), frequent[0]))
        self.done["text, one 0 / 1 for each level"].append(name)
        if n_other:
            self.done[f"text, levels in fewer than {_LEAST_ROWS} rows are put together"].append(name)

    def notes(self) -> list[str]:
        """One line per reason."""
        reasons: defaultdict[str, list[str]] = defaultdict(list)
        for name, why in self.left_out.items():
            reasons["left out, " + why].append(name)
        lines = {**reasons, **self.done}
        return [f"{len(names)} column{'s' * (len(names) > 1)} {what}: {_some(names)}" for what, names in lines.items()]


def _some(names: list[str], most: int = 40) -> str:
    return ", ".join(names[:most]) + (f", and {len(names) - most} more" if len(names) > most else "")


def encode_frame(frame: pd.DataFrame, keep_missing: bool, required: Collection[str] = ()) -> tuple[Any, _Decisions]:
    """Return the matrix of a table and what was decided on its columns.

    Parameters
    ----------
    frame : DataFrame
        Without the target.
    keep_missing : bool
        Missing numbers stay NaN instead of becoming the median of the others.
    required : collection of str
        Columns that may not be left out.
    """
    decisions = _Decisions(keep_missing, required)
    for name in frame.columns:
        _decide(decisions, name, frame[name])
    encoding = TableEncoding(tuple(decisions.columns))
    return encoding.encode(frame), decisions


def _decide(decisions: _Decisions, name: str, values: pd.Series) -> None:
    import pandas as pd

    kind = values.dtype
    if pd.api.types.is_complex_dtype(kind):
        return decisions.leave_out(name, "complex numbers")
    if pd.api.types.is_datetime64_any_dtype(kind):
        decisions.done["dates, as days since 1970-01-01"].append(name)
        return decisions.number(name, days(values), DATE)
    if pd.api.types.is_numeric_dtype(kind):
        raw = values.to_numpy(dtype=np.float64, na_value=np.nan)
        if name not in decisions.required and _counts_rows(values, raw, name):
            return decisions.leave_out(name, "numbers of the rows")
        if np.isinf(raw).any():
            decisions.done["with infinite values, which count as missing"].append(name)
        return decisions.number(name, to_numbers(values))
    words = as_words(values)
    there = pd.Series([word for word in words if word is not None], dtype=object)
    if not len(there):
        return decisions.leave_out(name, "more than half of the values missing")
    bad = pd.isna(pd.to_numeric(there, errors="coerce")).to_numpy()
    if bad.mean() <= 1.0 - _MOSTLY:
        if bad.any():
            decisions.done[f"with cells that are no numbers, such as {there[bad].iloc[0]!r}, which count as missing"].append(name)
        return decisions.number(name, to_numbers(values))
    if there.str.fullmatch(_DATE).mean() >= _MOSTLY and np.isfinite(days(values)).mean() >= _MOSTLY * len(there) / len(words):
        decisions.done["dates, as days since 1970-01-01"].append(name)
        return decisions.number(name, days(values), DATE)
    return decisions.category(name, words)


def _counts_rows(values: pd.Series, raw: np.ndarray, name: str) -> bool:
    """Whether whole numbers name the rows: n different neighbouring ones, or ones too large for exact arithmetic."""
    n = len(raw)
    if n < 10 or not np.isfinite(raw).all() or (raw != np.round(raw)).any():
        return False
    if np.abs(raw).max() >= 2.0**53:
        return values.dtype.kind in "iu" and values.nunique() == n
    return raw.max() - raw.min() == n - 1 and len(np.unique(raw)) == n


def encode_matrix(X: Any, names: list[str], keep_missing: bool, required: Collection[str] = ()) -> tuple[Any, _Decisions]:
    """The same for a matrix of numbers, dense or sparse; all columns at once."""
    decisions = _Decisions(keep_missing, required)
    if hasattr(X, "tocsr"):
        first = X[:1].toarray()[0]
        constant = np.asarray(X.max(axis=0).toarray()[0] == first) & np.asarray(X.min(axis=0).toarray()[0] == first)
        missing, fills = np.zeros(X.shape[1]), np.zeros(X.shape[1])
    else:
        gone = ~np.isfinite(X)
        missing = gone.mean(axis=0)
        fills = np.zeros(X.shape[1])
        if np.isinf(X).any():
            decisions.done["with infinite values, which count as missing"] = [
                names[j] for j in np.flatnonzero(np.isinf(X).any(axis=0))
            ]
        some = (missing > 0) & (missing <= MOST_MISSING)
        fills[missing == 0] = np.median(X[:, missing == 0], axis=0) if X.size else 0.0
        if gone.any():
            X = np.where(gone, np.nan, X)
            fills[some] = np.nanmedian(X[:, some], axis=0)
            if not keep_missing:
                X = np.where(gone & some, fills, X)
        constant = (X[:1] == X).all(axis=0)
        gaps = "have a response of their own" if keep_missing else "filled with the median"
        if (some & ~constant).any():
            decisions.done[f"incomplete, gaps {gaps}"] = [names[j] for j in np.flatnonzero(some & ~constant)]
    keep = np.ones(len(names), bool)
    for j in np.flatnonzero((missing > MOST_MISSING) | constant):
        keep[j] = False
        decisions.leave_out(names[j], "constant" if constant[j] else "more than half of the values missing")
    decisions.columns = [ColumnEncoding(names[j], NUMBER, None if keep_missing else float(fills[j])) for j in np.flatnonzero(keep)]
    return (X if keep.all() else X[:, keep]), decisions
