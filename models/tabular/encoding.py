"""How the columns of a table become numbers: the same for the rows that a model is fitted to and
for those it predicts."""

import re
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import asdict, dataclass, replace
from itertools import compress
from typing import Any, Self

import numpy as np
import pandas as pd

from ..messages import first_of

NUMBER, DATE, CATEGORY, RANK = "number", "date", "category", "rank"
LOGARITHM = "log"
BLOCK = 1 << 20  # numbers that are worked on together
# parts of dates that are categories, and the days that must lie between dates for one to say more
# than their order
PARTS = {"year": 730, "month": 366, "weekday": 14, "hour": 2}
PART_NAMES = {
    "month": ("Jan", "Feb", "Mar", "Apr", "May", "Jun", "Jul", "Aug", "Sep", "Oct", "Nov", "Dec"),
    "weekday": ("Monday", "Tuesday", "Wednesday", "Thursday", "Friday", "Saturday", "Sunday"),
}
# levels of values not seen in training, or too rarely, and of empty cells
OTHER, MISSING = "(other)", "(missing)"
# how cells of text were written in training
THOUSANDS, DAY_FIRST, MONTH_FIRST = "thousands", "dayfirst", "monthfirst"
WITH_THOUSANDS = re.compile(r"[-+]?[1-9]\d{0,2}(,\d{3})+(\.\d*)?")
DAY_OR_MONTH = re.compile(r"(\d{1,2})[/.-](\d{1,2})[/.-](\d{4}|\d{2})(?!\d)(.*)")


@dataclass(frozen=True)
class ColumnEncoding:
    """One column of a table.

    Parameters
    ----------
    name : str
        Name in the table.
    kind : {"number", "date", "category", "rank"}
        A number as it is; a date as days since 1970-01-01; one column of 0 / 1 for each level; the
        position of a level, from 0 on, among the ordered ``levels``.
    fill : float or None, default None
        What takes the place of missing numbers; None keeps them as NaN.
    levels : tuple of str, default ()
        Levels of a category that have a column of their own. A value that is none of them is
        ``"(other)"`` where that is a level, an empty cell ``"(missing)"``. Where it is none, both
        have ``shares`` in their columns.
    reference : str, default ""
        Name of the reference level, whose columns are all 0.
    shares : tuple of float, default ()
        Share of the training rows of each level. A row with these instead of 0 / 1 gets the mean
        effect of the levels. Empty (in files written before there were shares): 0, as the reference
        level.
    style : {"", "thousands", "dayfirst", "monthfirst"}, default ""
        How the cells were written: numbers as 1,234; dates as 31/12/2019 or as 12/31/2019.
    form : {"", "year", "month", "weekday", "hour", "log"}, default ""
        What is taken of a date as a category, the name is then "COLUMN (month)"; or the natural
        logarithm of a number above 0.

    Examples
    --------
    >>> import pandas as pd
    >>> size = ColumnEncoding("size", "rank", levels=("small", "medium", "large"))
    >>> size.encode(pd.Series(["large", "small"])).ravel().tolist()
    [2.0, 0.0]
    """

    name: str
    kind: str = NUMBER
    fill: float | None = None
    levels: tuple[str, ...] = ()
    reference: str = ""
    shares: tuple[float, ...] = ()
    style: str = ""
    form: str = ""

    @property
    def source(self) -> str:
        """The column of the table that it is made of."""
        return self.name.removesuffix(f" ({self.form})") if self.form in PARTS else self.name

    @property
    def width(self) -> int:
        """Columns of numbers that it becomes."""
        return len(self.levels) if self.kind == CATEGORY else 1

    @property
    def labels(self) -> list[str]:
        """Their names."""
        if self.kind == CATEGORY:
            return [f"{self.name}={level}" for level in self.levels]
        return [f"log({self.name})" if self.form == LOGARITHM else self.name]

    def encode(self, values: pd.Series) -> np.ndarray:
        """Return the numbers (n_rows, width) of a column.

        Raises
        ------
        ValueError
            If a column of numbers or dates holds something, but none of these.
        """
        if self.kind == CATEGORY:
            return self._dummies(values)
        numbers = self._numbers(values)
        if np.isnan(numbers).all() and (
            words := [word for word in as_words(values) if word is not None]
        ):
            raise ValueError(
                f"column {self.name!r} holds no {self.kind}, but cells such as {words[0]!r}: expected {self.kind}s"
            )
        if self.fill is not None:
            numbers = np.where(np.isnan(numbers), self.fill, numbers)
        return numbers[:, None]

    def check_not_empty(self, values: pd.Series) -> None:
        """Complain about a column of several rows without any cell.

        Raises
        ------
        ValueError
            If it is one.
        """
        if len(values) > 1 and all(word is None for word in as_words(values)):
            raise ValueError(
                f"column {self.name!r} is empty in all {len(values)} rows (--allow-empty predicts from the others)"
            )

    def note(self, values: pd.Series) -> str | None:
        """Return a line about the cells of new rows that are empty, unreadable or unknown, and what
        they count as; None without."""
        doubtful = values if self.kind == CATEGORY else values[np.isnan(self._numbers(values))]
        words = self.words(values) if self.kind == CATEGORY else as_words(doubtful)
        empty = np.array([word is None for word in words], bool)
        if self.kind == CATEGORY:
            strange, what = (
                ~empty & ~self._known(words),
                "with a value that the model does not know",
            )
            fills = [
                f"as the level {level}" if level in self.levels else "as the mean of the levels"
                for level in (OTHER, MISSING)
            ]
        else:
            log = self.form == LOGARITHM
            strange, what = ~empty, f"without a {self.kind}{' above 0' * log}"
            fill = self.fill if self.fill is None or not log else np.exp(self.fill)
            fills = 2 * [
                "as missing" if fill is None else f"as the median of the training rows, {fill:g}"
            ]
        notes = []
        if strange.any():
            notes.append(
                f"{strange.sum()} {what}, such as {words[strange][0]!r} (taken {fills[0]})"
            )
        if empty.any():
            notes.append(f"{empty.sum()} empty (taken {fills[1]})")
        return f"column {self.name!r}, {len(values)} cells: {'; '.join(notes)}" if notes else None

    def words(self, values: pd.Series) -> np.ndarray:
        """Return the cells of a category as text, or the parts of its dates; None where empty."""
        return (
            part_of(days(values, self.style), self.form) if self.form in PARTS else as_words(values)
        )

    def _numbers(self, values: pd.Series) -> np.ndarray:
        if self.kind == RANK:
            return ranks(as_words(values), self.levels)
        numbers = days(values, self.style) if self.kind == DATE else to_numbers(values)
        return logarithm(numbers) if self.form == LOGARITHM else numbers

    def _known(self, words: np.ndarray) -> np.ndarray:
        known = {*self.levels, self.reference} - {OTHER, MISSING}
        return np.array([word in known for word in words], bool)

    def _dummies(self, values: pd.Series) -> np.ndarray:
        words = self.words(values)
        empty = np.array([word is None for word in words], bool)
        levels = np.where(empty, MISSING, np.where(self._known(words), words, OTHER)).astype(object)
        X = np.column_stack([levels == level for level in self.levels]).astype(np.float64)
        if self.shares:
            X[~np.isin(levels, [*self.levels, self.reference])] = self.shares
        return X


@dataclass(frozen=True)
class TableEncoding:
    """The columns of a table that a model uses, in the order of its numbers.

    Parameters
    ----------
    columns : tuple of ColumnEncoding
    """

    columns: tuple[ColumnEncoding, ...]

    @property
    def labels(self) -> list[str]:
        """Names of the numbers, one per column of the matrix."""
        return [label for column in self.columns for label in column.labels]

    @property
    def groups(self) -> np.ndarray:
        """For each column of the matrix the position of its column of the table."""
        return np.repeat(np.arange(len(self.columns)), [column.width for column in self.columns])

    @property
    def sources(self) -> list[str]:
        """Columns of the table that are read."""
        return list(dict.fromkeys(column.source for column in self.columns))

    def with_parts(self, frame: pd.DataFrame) -> pd.DataFrame:
        """Return a table with the parts of its dates as columns of text."""
        return frame.assign(
            **{
                c.name: c.words(frame[c.source])
                for c in self.columns
                if c.form in PARTS and c.source in frame
            }
        )

    def only(self, positions: Sequence[int]) -> Self:
        """Return the encoding of some of the columns."""
        return replace(self, columns=tuple(self.columns[i] for i in positions))

    def encode(self, frame: pd.DataFrame, dtype: Any = np.float64) -> np.ndarray:
        """Return the matrix of a table that has these columns, among others.

        In single precision by columns: they are written, and read, one after the other.

        Raises
        ------
        ValueError
            If a column is missing, or see :meth:`ColumnEncoding.encode`.
        """
        missing = [name for name in self.sources if name not in frame.columns]
        if missing:
            raise ValueError(
                f"the table has no column {first_of(list(map(repr, missing)), 5)}, which the model needs"
            )
        shape = (len(frame), sum(column.width for column in self.columns))
        X = np.empty(shape, dtype, order="F" if dtype == np.float32 else "C")
        ends = np.cumsum([column.width for column in self.columns]).tolist()
        rest = {column: slice(end - column.width, end) for column, end in zip(self.columns, ends)}
        # each into its place: a second copy of a large table would not fit
        plain = {
            column.name: column
            for column in self.columns
            if column.kind == NUMBER and not column.form
        }
        for names, numbers in number_blocks(frame, plain):
            finite = np.isfinite(numbers)
            some = finite.any(axis=0)
            columns = [plain[name] for name in compress(names, some)]
            fills = np.array([np.nan if column.fill is None else column.fill for column in columns])
            X[:, [rest.pop(column).start for column in columns]] = np.where(
                finite[:, some], numbers[:, some], fills
            )
        for column, place in rest.items():
            X[:, place] = column.encode(frame[column.source])
        return X

    def notes(self, frame: pd.DataFrame) -> list[str]:
        """Return a line for each column of new rows with cells that are empty, unreadable or
        unknown."""
        return [line for column in self.columns if (line := column.note(frame[column.source]))]

    def header(self) -> list[dict[str, Any]]:
        """Return what :meth:`from_header` reads, for JSON."""
        return [asdict(column) for column in self.columns]

    @classmethod
    def from_header(cls, record: Any) -> Self:
        """Read what :meth:`header` wrote.

        Raises
        ------
        ValueError
            If it is something else.
        """
        columns = []
        for entry in record:
            column = ColumnEncoding(
                **entry | {name: tuple(entry.get(name, ())) for name in ("levels", "shares")}
            )
            words = (
                column.name,
                column.kind,
                column.reference,
                column.style,
                column.form,
                *column.levels,
            )
            fits = (
                all(isinstance(word, str) for word in words)
                and column.kind in (NUMBER, DATE, CATEGORY, RANK)
                and (column.fill is None or isinstance(column.fill, float | int))
                and all(isinstance(share, float | int) for share in column.shares)
                and len(column.shares) in (0, len(column.levels))
            )
            if not fits:
                raise ValueError(f"{entry}: expected the encoding of a column")
            columns.append(column)
        return cls(tuple(columns))


def number_blocks(
    frame: pd.DataFrame, names: Iterable[str]
) -> Iterator[tuple[list[str], np.ndarray]]:
    """Yield those columns of a table that hold numbers or booleans and no text, several at a time:
    their names and the numbers."""
    kinds = {
        name: kind
        for name, kind in zip(frame.columns, frame.dtypes)
        if isinstance(kind, np.dtype) and kind.kind in "biuf"
    }
    wanted, n_together = (
        [name for name in names if name in kinds],
        max(1, BLOCK // max(1, len(frame))),
    )
    for start in range(0, len(wanted), n_together):
        part = wanted[start : start + n_together]
        yield part, frame[part].to_numpy(dtype=np.float64)


def to_numbers(values: pd.Series) -> np.ndarray:
    """Return a column as floats, text with thousands separators (1,234) too; what is no number, and
    infinity, is NaN."""
    if not pd.api.types.is_numeric_dtype(values.dtype) or pd.api.types.is_complex_dtype(
        values.dtype
    ):
        return _by_value(values, _numbers_of)
    numbers = np.array(values.to_numpy(dtype=np.float64, na_value=np.nan))
    numbers[~np.isfinite(numbers)] = np.nan
    return numbers


def _numbers_of(cells: np.ndarray) -> np.ndarray:
    plain = [
        cell.replace(",", "")
        if isinstance(cell, str) and WITH_THOUSANDS.fullmatch(cell.strip())
        else cell
        for cell in cells
    ]
    return to_numbers(
        pd.to_numeric(pd.Series(plain, dtype=object), errors="coerce").astype(np.float64)
    )


def _by_value(values: pd.Series, function: Callable[[np.ndarray], np.ndarray]) -> np.ndarray:
    """A function of cells, called once for different text, and the missing."""
    if pd.api.types.infer_dtype(values) != "string":  # 1 and True are equal, but not the same text
        return function(values.astype(object).to_numpy())
    codes, different = pd.factorize(values.astype(object))
    return function(np.array([*different, None], object))[codes]


def days(values: pd.Series, style: str = "") -> np.ndarray:
    """Return a column of dates as days since 1970-01-01; what is no date is NaN.

    Text is read as ISO 8601, with a ``style`` also as 31/12/2019 ("dayfirst") or 12/31/2019
    ("monthfirst").
    """
    if pd.api.types.is_numeric_dtype(values.dtype):
        return np.full(len(values), np.nan)
    if style and not _is_date(values):
        day, month = (1, 2) if style == DAY_FIRST else (2, 1)
        matches = [(word, DAY_OR_MONTH.fullmatch(word or "")) for word in as_words(values)]
        iso = [
            word if m is None else f"{_year(m[3])}-{m[month]:0>2}-{m[day]:0>2}{m[4]}"
            for word, m in matches
        ]
        values = pd.Series(iso, dtype=object)
    moments = pd.to_datetime(
        values, errors="coerce", utc=True, format=None if _is_date(values) else "ISO8601"
    )
    return ((moments - pd.Timestamp(0, tz="UTC")) / pd.Timedelta(days=1)).to_numpy(
        dtype=np.float64, na_value=np.nan
    )


def ranks(words: np.ndarray, levels: Sequence[str]) -> np.ndarray:
    """Return the positions of words among levels; NaN of others."""
    order = {level: float(i) for i, level in enumerate(levels)}
    return np.array([order.get(word, np.nan) for word in words], np.float64)


def logarithm(numbers: np.ndarray) -> np.ndarray:
    """Return natural logarithms; NaN of what is not above 0."""
    return np.log(np.where(numbers > 0, numbers, np.nan))


def part_of(numbers: np.ndarray, form: str) -> np.ndarray:
    """Return the year, month, weekday or hour of dates, given as days since 1970-01-01, as text;
    None for NaN.

    Examples
    --------
    >>> part_of(np.array([0.0, 31.5, np.nan]), "weekday").tolist()
    ['Thursday', 'Sunday', None]
    """
    present = np.isfinite(numbers)
    seconds = np.rint(numbers[present] * 86400).astype(np.int64)
    months = seconds.astype("datetime64[s]").astype("datetime64[M]").astype(np.int64)
    day = seconds // 86400
    parts = {
        "year": months // 12 + 1970,
        "month": months % 12,
        "weekday": (day + 3) % 7,
        "hour": seconds // 3600 % 24,
    }[form]
    values, codes = np.unique(parts, return_inverse=True)
    names = [PART_NAMES[form][i] if form in PART_NAMES else f"{i:02d}" for i in values]
    words = np.full(len(numbers), None, object)
    words[present] = np.array(names, object)[codes]
    return words


def _year(digits: str) -> str:
    """Of two digits from 1969 to 2068, as POSIX has it."""
    return digits if len(digits) == 4 else f"{19 + (digits < '69')}{digits}"


def _is_date(values: pd.Series) -> bool:
    return bool(pd.api.types.is_datetime64_any_dtype(values.dtype))


def as_words(values: pd.Series) -> np.ndarray:
    """Return a column as text without blanks at its ends, and None for empty cells."""
    return _by_value(values, _words_of)


def _words_of(cells: np.ndarray) -> np.ndarray:
    # a whole number is the same text with and without empty cells beside it
    cells = np.array(
        [int(cell) if isinstance(cell, float) and cell.is_integer() else cell for cell in cells],
        object,
    )
    words = [None if empty else str(value).strip() for value, empty in zip(cells, pd.isna(cells))]
    return np.array([word or None for word in words], object)
