"""Encoding of a table as a matrix: column types, and dropped columns with reasons."""

from collections import defaultdict
from collections.abc import Collection, Mapping
from dataclasses import dataclass, field, replace
from itertools import compress
from typing import Any

import numpy as np
import pandas as pd

from ....learners.sources.matrix import Source
from ..encoding import (
    CATEGORY,
    DATE,
    DAY_FIRST,
    DAY_OR_MONTH,
    LOGARITHM,
    MISSING,
    MONTH_FIRST,
    NUMBER,
    OTHER,
    PART_NAMES,
    PARTS,
    RANK,
    THOUSANDS,
    WITH_THOUSANDS,
    ColumnEncoding,
    TableEncoding,
    as_words,
    days,
    logarithm,
    number_blocks,
    part_of,
    ranks,
    to_numbers,
)
from .options import SelectionOptions
from .ordinal import order_of

MAX_MISSING = 0.5  # columns with a larger fraction of missing values are dropped
# maximum number of levels of a category with a separate column, most frequent first (heuristic)
MAX_LEVELS = 30
_MIN_ROWS = 5  # minimum rows of a level with a separate column; two if no level has five
_NEARLY_ALL = 0.9  # text with a larger share of distinct values identifies the rows
MAX_ROWS = 20_000  # rows used for folds and halves; more rows take longer and change little
_RARE = 20  # minimum number of sampled rows of each class, if it has as many
_WORDS = 4  # minimum mean number of words per cell of free text
_MAX_NUMBER = 1e150  # the square of a larger number, or a sum of squares, may overflow
# Ratio of magnitude to spread above which few digits of the spread are stored, and fraction of the
# sum of squares below which all cells except one hardly count (heuristic)
_DIGITS, _REST = 1e10, 1e-4
LARGE = 20_000_000  # minimum number of cells of a table that is stored in single precision
KINDS = (NUMBER, CATEGORY, DATE)  # values of --as
# minimum fraction of numbers (dates) at which text is a column of numbers (dates) with invalid
# cells
MOSTLY = 0.9
_DATE = r"\d{4}-\d{2}-\d{2}.*"
_DATES = "of dates, read as days since 1970-01-01"
_PARTS = "of date parts, one-hot encoded, which cannot be exported (override: --as COLUMN=date)"
_AS_CATEGORY = " (override: --as COLUMN=category)"
_ROW_NUMBERS = "row numbers (override: --include COLUMN)"


@dataclass
class Table:
    """Table that is encoded as numbers.

    Attributes
    ----------
    X : ndarray, csr_matrix or Source of shape (n_rows, n_numbers)
        Matrix of the encoded columns; missing values that are not imputed are NaN.
    y : ndarray of shape (n_rows,)
        Target; the table contains only rows with a target.
    encoding : TableEncoding
        Encoding of the columns of the original table as columns of the matrix.
    left_out : dict of str to str
        Reason for which each dropped column was dropped.
    notes : list of str
        One-line messages about decisions, such as dropped columns.
    rows : ndarray of shape (n_rows,), int
        Indices of the rows in the original table.
    row_groups : ndarray of shape (n_rows,) or None
        Group of each row. The rows of a group stay together in cross-validation.
    weight : ndarray of shape (n_rows,) or None
        Sample weights.
    offset : ndarray of shape (n_rows,) or None
        Values that are added to the scores.
    offset_column : (str, str) or None
        Name and link of the offset column; see :attr:`.SelectionOptions.offset_column`.
    times : ndarray of shape (n_rows,) or None
        Times of the rows. In cross-validation, later rows are predicted from earlier rows.
    duplicate_of : ndarray of shape (n_rows,), int, or None
        For each row, the index of the first row that is identical to it; None if no rows, or most
        rows, are duplicates.
    skewed : tuple of str
        Columns that may be replaced by their logarithms.
    max_rows : int
        Maximum number of rows that :meth:`sampled` draws.
    """

    X: Any
    y: np.ndarray
    encoding: TableEncoding
    left_out: dict[str, str] = field(default_factory=dict)
    notes: list[str] = field(default_factory=list)
    rows: np.ndarray = field(default_factory=lambda: np.empty(0, int))
    row_groups: np.ndarray | None = None
    weight: np.ndarray | None = None
    offset: np.ndarray | None = None
    offset_column: tuple[str, str] | None = None
    times: np.ndarray | None = None
    duplicate_of: np.ndarray | None = None
    skewed: tuple[str, ...] = ()
    max_rows: int = MAX_ROWS

    @property
    def names(self) -> list[str]:
        """Names of the columns that are encoded."""
        return [column.name for column in self.encoding.columns]

    @property
    def fit_options(self) -> dict[str, Any]:
        """Weights and offsets to pass to ``fit``, if any."""
        given = {"sample_weight": self.weight, "offset": self.offset}
        return {name: values for name, values in given.items() if values is not None}

    def columns_of(self, names: Collection[str]) -> np.ndarray:
        """Return a mask of the matrix columns that encode the given columns of the table."""
        wanted = set(names)
        return np.isin(
            self.encoding.groups, [i for i, name in enumerate(self.names) if name in wanted]
        )

    def take(self, rows: np.ndarray) -> "Table":
        """Return the table restricted to the given rows."""
        per_row = ("X", "y", "rows", "row_groups", "weight", "offset", "times", "duplicate_of")
        parts = {
            name: value[rows]
            for name in per_row
            if (value := getattr(self, name)) is not None and value.shape[0]
        }
        return replace(self, **parts, notes=list(self.notes))

    def better_logarithms(self, task: str) -> list[str]:
        """Return the skewed columns whose logarithms have a higher correlation with the target.

        The comparison uses squared correlations, summed over the classes.
        """
        T = (
            (self.y[:, None] == np.unique(self.y)).astype(np.float64)
            if task == "classification"
            else self.y[:, None]
        )
        w = np.ones(len(T)) if self.weight is None else self.weight
        T = T - np.average(T, axis=0, weights=w)

        def shares(X: np.ndarray) -> np.ndarray:
            X = X - np.average(X, axis=0, weights=w)
            return ((w * X.T @ T) ** 2 / np.maximum(np.outer(w @ X**2, w @ T**2), 1e-300)).sum(
                axis=1
            )

        if not self.skewed:
            return []
        X = self.X[:, self.columns_of(self.skewed)].astype(np.float64)
        return list(compress(self.skewed, shares(np.log(X)) > shares(X)))

    def with_logarithms(self, names: Collection[str]) -> "Table":
        """Return the table with the given columns replaced by their logarithms.

        Numbers that are not positive are replaced by the median.
        """
        if not names:
            return self
        wanted = set(names)
        columns = [
            replace(column, form=LOGARITHM, fill=float(np.log(column.fill or 1.0)))
            if column.name in wanted
            else column
            for column in self.encoding.columns
        ]
        X, place = self.X.copy(), self.columns_of(names)
        logs = logarithm(X[:, place])
        fills = np.array([column.fill for column in columns if column.name in wanted], np.float64)
        X[:, place] = np.where(np.isnan(logs), fills, logs)
        return replace(self, X=X, encoding=TableEncoding(tuple(columns)))

    def in_memory(self) -> "Table":
        """Return the table with its matrix in memory."""
        return (
            replace(self, X=self.X[:, np.arange(self.X.shape[1])])
            if isinstance(self.X, Source)
            else self
        )

    def drop_rows(self, single: np.ndarray) -> "Table":
        """Return the table without the given rows, each of which is the only row of its class.

        A message is added for each dropped row.
        """
        # classes are integers
        labels = self.y.astype(int) if self.y.dtype.kind == "f" else self.y
        remaining = self.take(np.delete(np.arange(len(self.y)), single))
        remaining.notes.extend(
            f"class {labels[i]!s} has only one row (row {self.rows[i] + 1}), which was "
            "dropped (override: --keep-rare)"
            for i in single
        )
        return remaining

    def sampled(self, task: str, seed: int, split_duplicates: bool = False) -> "Table":
        """Sample at most ``max_rows`` rows, stratified by target, and load them into memory.

        Duplicate rows of the sample are detected, and messages about the sampling and the
        duplicates are added.
        """
        n, small = len(self.y), replace(self, notes=list(self.notes))
        if n > self.max_rows:
            rng = np.random.default_rng(seed)
            order, ends = np.lexsort((rng.random(n), self.y)), np.linspace(0, n, self.max_rows + 1)
            rows = order[(ends[:-1] + rng.random(self.max_rows) * np.diff(ends)).astype(int)]
            if task == "classification":
                starts = np.unique(self.y[order], return_index=True)[1]
                rare = [order[start:end][:_RARE] for start, end in zip(starts, [*starts[1:], n])]
                rows = np.concatenate([rows, *rare])
            small = self.take(np.unique(rows))
            small.notes.append(
                f"folds, stability and p-values use {len(small.y)} of {n} rows, stratified by the "
                "target"
            )
        small = small.in_memory()
        if not split_duplicates and not hasattr(small.X, "tocsr"):
            small.duplicate_of = _first_duplicate(small.X, small.y)
            if small.duplicate_of is not None:
                n_duplicates = (small.duplicate_of != np.arange(len(small.y))).sum()
                small.notes.append(
                    f"{n_duplicates} duplicate rows are in the same folds as their originals "
                    "(override: --split-duplicates)"
                )
        return small


def _first_duplicate(X: np.ndarray, y: np.ndarray) -> np.ndarray | None:
    """Return the first identical row of each row, or None if all rows differ or if most are
    duplicates, as in a table of counts."""
    codes = np.column_stack(
        [np.unique(y, return_inverse=True)[1], np.nan_to_num(X, nan=np.inf) + 0.0]
    ).astype(np.float64)
    factors = np.random.default_rng(0).integers(
        1, 2**63, codes.shape[1], dtype=np.uint64
    ) | np.uint64(1)
    key = codes.view(np.uint64) @ factors
    first, which = np.unique(key, return_index=True, return_inverse=True)[1:]
    return first[which] if 0.5 * len(y) <= len(first) < len(y) else None


class _Decisions:
    """Decisions for all columns, grouped by reason."""

    def __init__(
        self, keep_missing: bool, required: Collection[str], kinds: Mapping[str, str] = {}
    ):
        self.keep_missing, self.required, self.kinds = keep_missing, required, kinds
        self.precise = True  # whether single precision is sufficient
        self.columns: list[ColumnEncoding] = []
        self.taken: Collection[str] = ()  # column names in the file
        self.complete: dict[str, tuple[bool, float, bool, str]] = {}
        self.left_out: dict[str, str] = {}
        self.done: defaultdict[str, list[str]] = defaultdict(list)
        self.incomplete = "with missing values, which " + (
            "have a separate response" if keep_missing else "are imputed with the median"
        )

    def leave_out(self, name: str, why: str) -> None:
        if name in self.required:
            raise ValueError(f"--include {name}: this column cannot be used ({why})")
        self.left_out[name] = why

    def number(
        self,
        name: str,
        numbers: np.ndarray,
        read: str = "",
        kind: str = NUMBER,
        style: str = "",
        levels: Any = (),
    ) -> None:
        """Decide how to encode a column of numbers, where missing values are NaN.

        ``read`` is a message about the conversion of the cells.
        """
        if read:
            self.done[read].append(name)
        missing = np.isnan(numbers)
        share = missing.mean() if len(numbers) else 0.0
        if share > MAX_MISSING:
            return self.leave_out(name, "more than half of the values missing")
        present = numbers[~missing]
        if len(present) == 0 or (
            (present == present[0]).all() and not (self.keep_missing and share > 0)
        ):
            return self.leave_out(name, "constant")
        if (most := np.abs(present).max()) > _MAX_NUMBER:
            return self.leave_out(name, f"numbers up to {most:.0e}, whose squares overflow")
        fill = None if self.keep_missing else float(np.median(present))
        self.precise &= is_precise(present)
        if why := doubtful(present[:, None]).get(0):
            self.done[why].append(name)
        if share > 0:
            self.done[self.incomplete].append(name)
        self.columns.append(ColumnEncoding(name, kind, fill, levels, style=style))

    def complete_number(self, name: str) -> None:
        """Decide how to encode a numeric column without missing values."""
        constant, median, precise, why = self.complete[name]
        if constant:
            return self.leave_out(name, "constant")
        if why:
            self.done[why].append(name)
        self.precise &= precise
        self.columns.append(ColumnEncoding(name, NUMBER, None if self.keep_missing else median))

    def dates(self, name: str, numbers: np.ndarray, style: str, read: str) -> None:
        """Decide how to encode a column of dates.

        Days represent the trend, and recurring parts such as months become categories.
        """
        self.number(name, numbers, read, DATE, style)
        present = numbers[np.isfinite(numbers)]
        for form, n_min in PARTS.items():
            part = f"{name} ({form})"
            if name in self.left_out or part in self.taken or np.ptp(present) < n_min:
                continue
            counts = np.unique(part_of(present, form).astype(str), return_counts=True)[1]
            if (counts >= _MIN_ROWS).sum() > 1 and len(counts) <= MAX_LEVELS:
                self.category(part, part_of(numbers, form), form, style)

    def category(self, name: str, words: np.ndarray, form: str = "", style: str = "") -> None:
        """Decide how to encode a column of text.

        One level is the reference, and rare levels are merged.
        """
        present = np.array([word for word in words if word is not None], object)
        n_missing = len(words) - len(present)
        if n_missing > MAX_MISSING * len(words):
            return self.leave_out(name, "more than half of the values missing")
        levels, counts = np.unique(present.astype(str), return_counts=True)
        if len(levels) == 1 and not n_missing:
            return self.leave_out(name, "constant")
        requested = name in self.kinds
        if len(levels) > max(2, _NEARLY_ALL * len(present)) and not requested:
            free = np.mean([level.count(" ") for level in levels[:1000]]) >= _WORDS - 1
            what = "free text" if free else "text that identifies the rows"
            return self.leave_out(
                name, f"{what}, {len(levels)} distinct values in {len(words)} rows{_AS_CATEGORY}"
            )
        order = np.argsort(-counts, kind="stable")
        frequent = [
            str(levels[i]) for i in order if counts[i] >= max(2, min(_MIN_ROWS, counts.max()))
        ][:MAX_LEVELS]
        if not frequent:
            return self.leave_out(name, "text without a repeated value")
        chosen = list(order[: len(frequent)])
        if form:  # in calendar order
            chosen.sort(key=lambda i: (PART_NAMES.get(form) or levels.tolist()).index(levels[i]))
            frequent = [str(levels[i]) for i in chosen]
        n_other = len(present) - sum(counts[chosen])
        if len(levels) > MAX_LEVELS and n_other > MAX_MISSING * len(words) and not requested:
            return self.leave_out(
                name, f"text, {len(levels)} distinct values in {len(words)} rows{_AS_CATEGORY}"
            )
        rows = [
            *zip(frequent[1:], counts[chosen[1:]]),
            *(pair for pair in ((OTHER, n_other), (MISSING, n_missing)) if pair[1]),
        ]
        kept = tuple(word for word, _ in rows)
        shares = tuple(float(n / len(words)) for _, n in rows)
        self.columns.append(
            ColumnEncoding(name, CATEGORY, None, kept, frequent[0], shares, style, form)
        )
        self.done[_PARTS if form else "of text, one-hot encoded"].append(name)
        if n_other and not form:
            self.done[f"with levels in fewer than {_MIN_ROWS} rows, which are merged"].append(name)

    def notes(self) -> list[str]:
        """Return one line for each reason."""
        lines = {
            f"dropped, {why}": names for why, names in by_reason(self.left_out).items()
        } | self.done
        return [
            f"{len(names)} column{'s' * (len(names) > 1)} {what}: {_some(names)}"
            for what, names in lines.items()
        ]


def by_reason(left_out: dict[str, str]) -> dict[str, list[str]]:
    """Group the names of dropped columns by reason."""
    reasons: defaultdict[str, list[str]] = defaultdict(list)
    for name, why in left_out.items():
        reasons[why].append(name)
    return reasons


def _some(names: list[str], n_max: int = 40) -> str:
    return ", ".join(names[:n_max]) + (
        f", and {len(names) - n_max} more" if len(names) > n_max else ""
    )


def encode_frame(
    frame: pd.DataFrame,
    request: SelectionOptions,
    ids: Collection[str],
    kinds: Mapping[str, str],
) -> tuple[Any, _Decisions]:
    """Encode a table as a matrix; return the matrix and the decisions about the columns.

    Parameters
    ----------
    frame : DataFrame
        Table without the target.
    request : SelectionOptions
        Options, such as the required columns and the order of day and month in dates such as
        31/12/2019. If the order is not given, it is detected.
    ids : collection of str
        Columns that identify the rows; see :func:`numbers_rows`. They are dropped unless they are
        required.
    kinds : mapping of str to str
        Requested type of some columns: a name in ``KINDS``, or the ordered levels, separated by
        "<".
    """
    decisions, dates = _Decisions(request.keep_missing, request.include, kinds), request.dates
    decisions.taken, decisions.complete = set(frame.columns), complete_numbers(frame)
    for name, dtype in zip(frame.columns, frame.dtypes):
        if dtype.kind == "O" and isinstance(
            next(iter(frame[name].dropna()), None), list | tuple | dict | set | np.ndarray
        ):
            decisions.leave_out(name, "neither numbers, dates nor text")
        elif name in kinds:
            _decide_as(decisions, name, frame[name], kinds[name], dates or "")
        elif name in ids and name not in request.include:
            decisions.leave_out(name, _ROW_NUMBERS)
        elif name in decisions.complete:
            decisions.complete_number(name)
        else:
            _decide(decisions, name, frame[name], [dates] if dates else [DAY_FIRST, MONTH_FIRST])
    encoding = TableEncoding(tuple(decisions.columns))
    large = frame.size >= LARGE and decisions.precise
    return encoding.encode(frame, np.float32 if large else np.float64), decisions


def complete_numbers(frame: pd.DataFrame) -> dict[str, tuple[bool, float, bool, str]]:
    """Compute statistics of the columns that contain only finite numbers.

    For each such column, the result contains whether it is constant, its median, whether single
    precision suffices, and the warning from :func:`doubtful`, or an empty string.
    """
    result: dict[str, tuple[bool, float, bool, str]] = {}
    for names, X in number_blocks(frame, frame.columns):
        complete = (np.abs(X) <= _MAX_NUMBER).all(axis=0) & (len(X) > 0)
        X = X[:, complete]
        notes = doubtful(X)
        constant, precise = (
            (X[:1] == X).all(axis=0),
            np.abs(X).max(axis=0, initial=0.0) <= 1e4 * X.std(axis=0),
        )
        facts = constant.tolist(), np.median(X, axis=0).tolist(), precise.tolist()
        why = [notes.get(j, "") for j in range(X.shape[1])]
        result.update(zip(compress(names, complete), zip(*facts, why)))
    return result


def doubtful(X: np.ndarray) -> dict[int, str]:
    """Return a warning for each column of finite numbers that may not be meaningful.

    In such a column, the values differ only in their last digits, or only one value differs much
    from the others.
    """
    if not X.size:
        return {}
    reasons, means, spread = {}, X.mean(axis=0), X.std(axis=0, dtype=np.float64)
    low, high = X.min(axis=0), X.max(axis=0)
    imprecise = np.maximum(high, -low) > _DIGITS * spread
    farthest = np.maximum(high - means, means - low)
    alone = farthest**2 > (1 - _REST) * (len(X) - 1) * spread**2
    for j in np.flatnonzero((low < high) & (imprecise | alone)).tolist():
        others = np.delete(X[:, j], np.abs(X[:, j] - means[j]).argmax())
        if imprecise[j]:
            reasons[j] = "with a spread near the numerical precision; subtract a constant"
        elif np.ptp(others) > 0:
            reasons[j] = "with one extreme value that dominates the variance; check it"
    return reasons


def is_precise(numbers: np.ndarray) -> bool:
    """Return whether single precision resolves a thousandth of the standard deviation."""
    present = numbers[np.isfinite(numbers)]
    spread = float(present.std(dtype=np.float64)) if len(present) else 0.0
    return not len(present) or float(np.abs(present).max()) <= 1e4 * spread


def _decide_as(decisions: _Decisions, name: str, values: pd.Series, kind: str, style: str) -> None:
    """Encode a column as the type given by --as; raise a ValueError if it has no cells of that
    type."""
    read = f"read as {kind}, as requested"
    if kind == CATEGORY:
        decisions.done[read].append(name)
        decisions.category(name, as_words(values))
    elif "<" in kind:
        levels = tuple(level.strip() for level in kind.split("<"))
        decisions.number(
            name,
            ranks(as_words(values), levels),
            f"of ordinal levels in the order {kind}",
            RANK,
            levels=levels,
        )
    else:
        numbers = days(values, style) if kind == DATE else to_numbers(values)
        decisions.number(name, numbers, read, kind, style if kind == DATE else "")
    if name in decisions.left_out:
        raise ValueError(
            f"--as {name}={kind}: the column cannot be used "
            f"({decisions.left_out[name].removesuffix(_AS_CATEGORY)})"
        )


def _decide(decisions: _Decisions, name: str, values: pd.Series, orders: list[str]) -> None:
    kind = values.dtype
    if pd.api.types.is_complex_dtype(kind):
        return decisions.leave_out(name, "complex numbers")
    if pd.api.types.is_datetime64_any_dtype(kind):
        return decisions.dates(name, days(values), "", _DATES)
    if pd.api.types.is_numeric_dtype(kind):
        if np.isinf(values.to_numpy(dtype=np.float64, na_value=np.nan)).any():
            decisions.done["with infinite values, treated as missing"].append(name)
        return decisions.number(name, to_numbers(values))
    words = as_words(values)
    present = pd.Series([word for word in words if word is not None], dtype=object)
    if not len(present):
        return decisions.leave_out(name, "more than half of the values missing")
    numbers = to_numbers(values)
    bad = present[np.isnan(numbers[[word is not None for word in words]])]
    grouped = present[present.map(lambda word: bool(WITH_THOUSANDS.fullmatch(word)))]
    if len(bad) <= (1.0 - MOSTLY) * len(present) and not (
        len(grouped) and bad.str.contains(",").any()
    ):
        if len(bad):
            decisions.done[
                f"with cells that are not numbers, such as {bad.iloc[0]!r}, treated as missing"
            ].append(name)
        if len(grouped):
            such = f"of numbers with thousands separators, such as {grouped.iloc[0]}{_AS_CATEGORY}"
            decisions.done[such].append(name)
        return decisions.number(name, numbers, style=THOUSANDS if len(grouped) else "")
    if present.str.fullmatch(_DATE).mean() >= MOSTLY and np.isfinite(
        days(values)
    ).mean() >= MOSTLY * len(present) / len(words):
        return decisions.dates(name, days(values), "", _DATES)
    slashed = present[present.str.fullmatch(DAY_OR_MONTH)]
    if len(slashed) >= MOSTLY * len(present):
        fitting = [order for order in orders if not np.isnan(days(slashed, order)).any()]
        if len(fitting) == 2:
            return decisions.leave_out(
                name,
                f"ambiguous dates such as {slashed.iloc[0]}; "
                f"expected --dates {DAY_FIRST} or --dates {MONTH_FIRST}",
            )
        if fitting:
            short = (
                ""
                if slashed.str.contains(r"[/.-]\d{4}").all()
                else ", two-digit years as 1969 to 2068"
            )
            read = (
                f"of dates such as {slashed.iloc[0]}, read as {fitting[0]} (override: "
                f"--dates){short}, as days since 1970-01-01"
            )
            return decisions.dates(name, days(values, fitting[0]), fitting[0], read)
    if levels := order_of(present.unique()):
        such = f"of ordinal levels such as {' < '.join(levels)}, encoded as ranks{_AS_CATEGORY}"
        return decisions.number(name, ranks(words, levels), such, RANK, levels=levels)
    return decisions.category(name, words)


def encode_matrix(
    X: Any, names: list[str], keep_missing: bool, required: Collection[str] = ()
) -> tuple[Any, _Decisions]:
    """Encode a dense or sparse matrix of numbers.

    The matrix and the decisions about the columns are returned, as by :func:`encode_frame`.
    """
    decisions = _Decisions(keep_missing, required)
    missing, fills = np.zeros(X.shape[1]), np.zeros(X.shape[1])
    if hasattr(X, "tocsr"):
        first = X[:1].toarray()[0]
        constant = np.asarray(X.max(axis=0).toarray()[0] == first) & np.asarray(
            X.min(axis=0).toarray()[0] == first
        )
    else:
        invalid = ~np.isfinite(X)
        missing = invalid.mean(axis=0)
        if np.isinf(X).any():
            infinite = np.flatnonzero(np.isinf(X).any(axis=0))
            decisions.done["with infinite values, treated as missing"] = [
                names[j] for j in infinite
            ]
        some = (missing > 0) & (missing <= MAX_MISSING)
        fills[missing == 0] = np.median(X[:, missing == 0], axis=0) if X.size else 0.0
        if invalid.any():
            X = np.where(invalid, np.nan, X)
            fills[some] = np.nanmedian(X[:, some], axis=0)
            if not keep_missing:
                X = np.where(invalid & some, fills, X)
        for place, why in doubtful(X[:, missing == 0]).items():
            decisions.done[why].append(names[np.flatnonzero(missing == 0)[place]])
        constant = (X[:1] == X).all(axis=0)
        if (some & ~constant).any():
            decisions.done[decisions.incomplete] = [
                names[j] for j in np.flatnonzero(some & ~constant)
            ]
    keep = (missing <= MAX_MISSING) & ~constant
    for j in np.flatnonzero(~keep):
        decisions.leave_out(
            names[j], "constant" if constant[j] else "more than half of the values missing"
        )
    decisions.columns = [
        ColumnEncoding(names[j], NUMBER, None if keep_missing else float(fills[j]))
        for j in np.flatnonzero(keep)
    ]
    return (X if keep.all() else X[:, keep]), decisions
