"""Encoding of table columns as numbers, identical in training and prediction."""

import re
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import asdict, dataclass, replace
from functools import partial
from itertools import compress, pairwise
from typing import Any, Self

import numpy as np
import pandas as pd

from ..messages import first_of

NUMBER, DATE, CATEGORY, RANK = "number", "date", "category", "rank"
LOGARITHM = "log"
BLOCK = 1 << 20  # numbers processed together
# parts of dates used as categories, and the minimum range in days at which each adds to the order
# of the dates
PARTS = {"year": 730, "month": 366, "weekday": 14, "hour": 2}
PART_NAMES = {
    "month": ("Jan", "Feb", "Mar", "Apr", "May", "Jun", "Jul", "Aug", "Sep", "Oct", "Nov", "Dec"),
    "weekday": ("Monday", "Tuesday", "Wednesday", "Thursday", "Friday", "Saturday", "Sunday"),
}
# levels for values that are unseen or rare in training, and for empty cells
OTHER, MISSING = "(other)", "(missing)"
# formats of text cells in training
THOUSANDS, DAY_FIRST, MONTH_FIRST = "thousands", "dayfirst", "monthfirst"
WITH_THOUSANDS = re.compile(r"[-+]?[1-9]\d{0,2}(,\d{3})+(\.\d*)?")
DAY_OR_MONTH = re.compile(r"(\d{1,2})[/.-](\d{1,2})[/.-](\d{4}|\d{2})(?!\d)(.*)")


@dataclass(frozen=True)
class ColumnEncoding:
    """Encoding of one column of a table.

    Parameters
    ----------
    name : str
        Name in the table.
    kind : {"number", "date", "category", "rank"}
        Type of the column. Numbers are unchanged, dates are converted to days since 1970-01-01,
        categories are one-hot encoded, and ranks are converted to indices in the ordered
        ``levels``.
    fill : float or None, default None
        Value that replaces missing values in a numeric column; None means that they are encoded as
        NaN.
    levels : tuple of str, default ()
        Levels of a category. There is one column for each level. Unknown values are encoded as the
        level ``"(other)"``, and empty cells are encoded as the level ``"(missing)"``, if these
        levels exist. Otherwise, they are encoded by ``shares``.
    reference : str, default ""
        Name of the reference level, which is encoded by zeros in all columns.
    shares : tuple of float, default ()
        Fraction of the training rows with each level. A cell that is encoded by these fractions has
        the mean effect of the levels. If ``shares`` is empty, as in older files, the cell is
        encoded as the reference level.
    style : {"", "thousands", "dayfirst", "monthfirst"}, default ""
        Format of the cells: "thousands" for numbers such as 1,234, "dayfirst" for dates such as
        31/12/2019, and "monthfirst" for dates such as 12/31/2019.
    form : {"", "year", "month", "weekday", "hour", "log"}, default ""
        Part of a date that is encoded as a category, with a name such as "COLUMN (month)", or "log"
        to encode the natural logarithm of positive numbers.

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
        """Name of the column in the table."""
        return self.name.removesuffix(f" ({self.form})") if self.form in PARTS else self.name

    @property
    def width(self) -> int:
        """Number of columns of the encoding."""
        return len(self.levels) if self.kind == CATEGORY else 1

    @property
    def labels(self) -> list[str]:
        """Names of the columns of the encoding."""
        if self.kind == CATEGORY:
            return [f"{self.name}={level}" for level in self.levels]
        return [f"log({self.name})" if self.form == LOGARITHM else self.name]

    def encode(self, values: pd.Series) -> np.ndarray:
        """Encode a column as an array of numbers of shape (n_rows, width).

        Raises
        ------
        ValueError
            If a column of numbers or dates has non-empty cells, but none of them is a number or a
            date.
        """
        if self.kind == CATEGORY:
            return self._dummies(values)
        numbers = self._numbers(values)
        if np.isnan(numbers).all() and (
            words := [word for word in as_words(values) if word is not None]
        ):
            raise ValueError(
                f"column {self.name!r} contains values such as {words[0]!r}; expected {self.kind}s"
            )
        if self.fill is not None:
            numbers = np.where(np.isnan(numbers), self.fill, numbers)
        return numbers[:, None]

    def check_not_empty(self, values: pd.Series) -> None:
        """Raise an error if the table has several rows and all cells of the column are empty.

        Raises
        ------
        ValueError
            If the column is empty.
        """
        if len(values) > 1 and all(word is None for word in as_words(values)):
            raise ValueError(
                f"column {self.name!r} is empty in all {len(values)} rows; "
                "use --allow-empty to predict from the other columns"
            )

    def note(self, values: pd.Series) -> str | None:
        """Return a one-line message about empty, unreadable and unknown cells in new rows.

        The message states how these cells are encoded. It is None if there are no such cells.
        """
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
                f"{strange.sum()} {what}, such as {words[strange][0]!r} (treated {fills[0]})"
            )
        if empty.any():
            notes.append(f"{empty.sum()} empty (treated {fills[1]})")
        return f"column {self.name!r}, {len(values)} cells: {'; '.join(notes)}" if notes else None

    def words(self, values: pd.Series) -> np.ndarray:
        """Return categories or parts of dates as text; empty cells become None."""
        return (
            part_of(days(values, self.style), self.form) if self.form in PARTS else as_words(values)
        )

    def _numbers(self, values: pd.Series) -> np.ndarray:
        if self.kind == RANK:
            return ranks(as_words(values), self.levels)
        numbers = (
            days(values, self.style)
            if self.kind == DATE
            else to_numbers(values, self.style == THOUSANDS)
        )
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
    """Encodings of the table columns that a model uses, in the order of the matrix.

    Parameters
    ----------
    columns : tuple of ColumnEncoding
    """

    columns: tuple[ColumnEncoding, ...]

    @property
    def labels(self) -> list[str]:
        """Names of the columns of the matrix."""
        return [label for column in self.columns for label in column.labels]

    @property
    def groups(self) -> np.ndarray:
        """Index of the table column to which each matrix column belongs."""
        return np.repeat(np.arange(len(self.columns)), [column.width for column in self.columns])

    @property
    def sources(self) -> list[str]:
        """Names of the columns to read from the table."""
        return list(dict.fromkeys(column.source for column in self.columns))

    def with_parts(self, frame: pd.DataFrame) -> pd.DataFrame:
        """Return the table with additional text columns for the encoded parts of dates."""
        return frame.assign(
            **{
                c.name: c.words(frame[c.source])
                for c in self.columns
                if c.form in PARTS and c.source in frame
            }
        )

    def only(self, positions: Sequence[int]) -> Self:
        """Return the encoding restricted to some of the columns."""
        return replace(self, columns=tuple(self.columns[i] for i in positions))

    def encode(self, frame: pd.DataFrame, dtype: Any = np.float64) -> np.ndarray:
        """Encode a table as a matrix.

        A single-precision matrix is stored in column-major order, since it is accessed by column.

        Raises
        ------
        ValueError
            If a column is missing or invalid; see :meth:`ColumnEncoding.encode`.
        """
        if missing := [name for name in self.sources if name not in frame.columns]:
            raise ValueError(
                f"the table has no column {first_of(list(map(repr, missing)), 5)}, which the model "
                "requires"
            )
        ends = np.cumsum([0, *(column.width for column in self.columns)]).tolist()
        X = np.empty((len(frame), ends[-1]), dtype, order="F" if dtype == np.float32 else "C")
        rest = {column: slice(*place) for column, place in zip(self.columns, pairwise(ends))}
        # in place, since a second copy of a large table might not fit in memory
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
        """Return a message for each column with empty, unreadable or unknown cells in new rows."""
        return [line for column in self.columns if (line := column.note(frame[column.source]))]

    def header(self) -> list[dict[str, Any]]:
        """Return the JSON header from which :meth:`from_header` restores the encoding."""
        return [asdict(column) for column in self.columns]

    @classmethod
    def from_header(cls, record: Any) -> Self:
        """Create an encoding from the result of :meth:`header`.

        Raises
        ------
        ValueError
            If the header is invalid.
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
                raise ValueError(f"{entry} is not the encoding of a column")
            columns.append(column)
        return cls(tuple(columns))


def number_blocks(
    frame: pd.DataFrame, names: Iterable[str]
) -> Iterator[tuple[list[str], np.ndarray]]:
    """Yield the names and values of the numeric and boolean columns in blocks of columns."""
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


def to_numbers(values: pd.Series, thousands: bool = True) -> np.ndarray:
    """Convert a column to floats.

    Numbers with thousands separators (1,234) are converted unless ``thousands`` is False. Other
    text and infinity become NaN.
    """
    if not pd.api.types.is_numeric_dtype(values.dtype) or pd.api.types.is_complex_dtype(
        values.dtype
    ):
        return _by_value(values, partial(_numbers_of, thousands=thousands))
    numbers = np.array(values.to_numpy(dtype=np.float64, na_value=np.nan))
    numbers[~np.isfinite(numbers)] = np.nan
    return numbers


def _numbers_of(cells: np.ndarray, thousands: bool) -> np.ndarray:
    plain = [
        cell.replace(",", "")
        if thousands and isinstance(cell, str) and WITH_THOUSANDS.fullmatch(cell.strip())
        else cell
        for cell in cells
    ]
    return to_numbers(
        pd.to_numeric(pd.Series(plain, dtype=object), errors="coerce").astype(np.float64)
    )


def _by_value(values: pd.Series, function: Callable[[np.ndarray], np.ndarray]) -> np.ndarray:
    """Apply a function once to each distinct text and to missing cells."""
    if pd.api.types.infer_dtype(values) != "string":  # 1 and True are equal but differ as text
        return function(values.astype(object).to_numpy())
    codes, different = pd.factorize(values.astype(object))
    return function(np.array([*different, None], object))[codes]


def days(values: pd.Series, style: str = "") -> np.ndarray:
    """Convert dates to days since 1970-01-01; other cells become NaN.

    Text is parsed as ISO 8601 and, if a ``style`` is given, also in the form 31/12/2019
    ("dayfirst") or 12/31/2019 ("monthfirst").
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
    """Return the index in ``levels`` of each word, or NaN for other words."""
    order = {level: float(i) for i, level in enumerate(levels)}
    return np.array([order.get(word, np.nan) for word in words], np.float64)


def offsets(values: pd.Series, link: str) -> np.ndarray:
    """Convert a column to offsets, which are added to the scores.

    The offsets are the values themselves or, if the link is "log", their logarithms.

    Raises
    ------
    ValueError
        If a cell is not a finite number, or is not positive and the link is "log".
    """
    numbers = to_numbers(values)
    bad = np.flatnonzero(~np.isfinite(numbers) | ((numbers <= 0) & (link == "log")))
    if len(bad):
        what, expected = ("exposure", "positive") if link == "log" else ("offset", "finite")
        raise ValueError(
            f"the {what} {values.name!r} is {values.iloc[bad[0]]!s} in row {bad[0] + 1}; "
            f"expected {expected} numbers"
        )
    return np.log(numbers) if link == "log" else numbers


def logarithm(numbers: np.ndarray) -> np.ndarray:
    """Return natural logarithms, or NaN for numbers that are not positive."""
    return np.log(np.where(numbers > 0, numbers, np.nan))


def part_of(numbers: np.ndarray, form: str) -> np.ndarray:
    """Return the year, month, weekday or hour of dates as text; NaN becomes None.

    The dates are days since 1970-01-01.

    Examples
    --------
    >>> part_of(np.array([0.0, 31.5, np.nan]), "weekday").tolist()
    ['Thursday', 'Sunday', None]
    """
    present = np.isfinite(numbers)
    seconds = np.rint(numbers[present] * 86400).astype(np.int64)
    months = seconds.astype("datetime64[s]").astype("datetime64[M]").astype(np.int64)
    parts = {
        "year": months // 12 + 1970,
        "month": months % 12,
        "weekday": (seconds // 86400 + 3) % 7,
        "hour": seconds // 3600 % 24,
    }[form]
    values, codes = np.unique(parts, return_inverse=True)
    names = [PART_NAMES[form][i] if form in PART_NAMES else f"{i:02d}" for i in values]
    words = np.full(len(numbers), None, object)
    words[present] = np.array(names, object)[codes]
    return words


def _year(digits: str) -> str:
    """Expand two-digit years to the range 1969 to 2068, as in POSIX."""
    return digits if len(digits) == 4 else f"{19 + (digits < '69')}{digits}"


def _is_date(values: pd.Series) -> bool:
    return bool(pd.api.types.is_datetime64_any_dtype(values.dtype))


def as_words(values: pd.Series) -> np.ndarray:
    """Return a column as stripped text, with None for empty cells."""
    return _by_value(values, _words_of)


def _words_of(cells: np.ndarray) -> np.ndarray:
    # integers have the same text whether or not their column has empty cells
    cells = np.array(
        [int(cell) if isinstance(cell, float) and cell.is_integer() else cell for cell in cells],
        object,
    )
    words = [None if empty else str(value).strip() for value, empty in zip(cells, pd.isna(cells))]
    return np.array([word or None for word in words], object)
