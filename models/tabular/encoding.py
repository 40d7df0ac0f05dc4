"""How the columns of a table become numbers: the same for the rows that a model is fitted to and for those it predicts."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict, dataclass, replace
from typing import TYPE_CHECKING, Any, Self

import numpy as np

if TYPE_CHECKING:
    import pandas as pd

NUMBER, DATE, CATEGORY = "number", "date", "category"
OTHER, MISSING = "(other)", "(missing)"  # levels of values not seen in training, or too rarely, and of empty cells


@dataclass(frozen=True)
class ColumnEncoding:
    """One column of a table.

    Parameters
    ----------
    name : str
        Name in the table.
    kind : {"number", "date", "category"}
        A number as it is; a date as days since 1970-01-01; one column of 0 / 1 for each level.
    fill : float or None, default None
        What takes the place of missing numbers; None keeps them as NaN.
    levels : tuple of str, default ()
        Levels of a category that have a column of their own. A value that is none of them is ``"(other)"`` where that is a level,
        an empty cell ``"(missing)"``; what is left belongs to the reference level, whose columns are all 0.
    reference : str, default ""
        Name of the reference level.
    """

    name: str
    kind: str = NUMBER
    fill: float | None = None
    levels: tuple[str, ...] = ()
    reference: str = ""

    @property
    def width(self) -> int:
        """Columns of numbers that it becomes."""
        return len(self.levels) if self.kind == CATEGORY else 1

    @property
    def labels(self) -> list[str]:
        """Their names."""
        return [f"{self.name}={level}" for level in self.levels] if self.kind == CATEGORY else [self.name]

    def encode(self, values: pd.Series) -> np.ndarray:
        """Return the numbers (n_rows, width) of a column."""
        if self.kind == CATEGORY:
            return self._dummies(values)
        numbers = days(values) if self.kind == DATE else to_numbers(values)
        if self.fill is not None:
            numbers = np.where(np.isnan(numbers), self.fill, numbers)
        return numbers[:, None]

    def _dummies(self, values: pd.Series) -> np.ndarray:
        words = as_words(values)
        known = {*self.levels, self.reference} - {OTHER, MISSING}
        empty = np.array([word is None for word in words], bool)
        strange = np.array([word is not None and word not in known for word in words], bool)
        found = np.where(empty, MISSING, np.where(strange, OTHER, words)).astype(object)
        return np.column_stack([found == level for level in self.levels]).astype(np.float64)


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

    def only(self, positions: Sequence[int]) -> Self:
        """Return the encoding of some of the columns."""
        return replace(self, columns=tuple(self.columns[i] for i in positions))

    def encode(self, frame: pd.DataFrame) -> np.ndarray:
        """Return the matrix of a table that has these columns, among others.

        Raises
        ------
        ValueError
            If a column is missing, or one of numbers has none.
        """
        gone = [column.name for column in self.columns if column.name not in frame.columns]
        if gone:
            shown = ", ".join(map(repr, gone[:5])) + (", ..." if len(gone) > 5 else "")
            raise ValueError(f"the table has no column {shown}, which the model needs")
        X, end = np.empty((len(frame), sum(column.width for column in self.columns))), 0
        for column in self.columns:  # each into its place: a second copy of a large table would not fit
            values, end = frame[column.name], end + column.width
            block = X[:, end - column.width : end]
            block[:] = column.encode(values)
            if column.kind != CATEGORY and column.fill is None and values.notna().any() and np.isnan(block).all():
                raise ValueError(f"column {column.name!r} holds no {column.kind}: expected {column.kind}s")
        return X

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
            column = ColumnEncoding(**{**entry, "levels": tuple(entry["levels"])})
            words = (column.name, column.kind, column.reference, *column.levels)
            number = column.fill is None or isinstance(column.fill, float | int)
            if not all(isinstance(word, str) for word in words) or not number or column.kind not in (NUMBER, DATE, CATEGORY):
                raise ValueError(f"{entry}: expected the encoding of a column")
            columns.append(column)
        return cls(tuple(columns))


def to_numbers(values: pd.Series) -> np.ndarray:
    """Return a column as floats; what is no number, and infinity, is NaN."""
    import pandas as pd

    if not pd.api.types.is_numeric_dtype(values.dtype) or pd.api.types.is_complex_dtype(values.dtype):
        values = pd.to_numeric(values.astype(object), errors="coerce")
    numbers = np.array(values.to_numpy(dtype=np.float64, na_value=np.nan))
    numbers[~np.isfinite(numbers)] = np.nan
    return numbers


def days(values: pd.Series) -> np.ndarray:
    """Return a column of dates as days since 1970-01-01; what is no date is NaN."""
    import pandas as pd

    moments = pd.to_datetime(values, errors="coerce", utc=True, format=None if _is_date(values) else "ISO8601")
    return ((moments - pd.Timestamp(0, tz="UTC")) / pd.Timedelta(days=1)).to_numpy(dtype=np.float64, na_value=np.nan)


def _is_date(values: pd.Series) -> bool:
    import pandas as pd

    return bool(pd.api.types.is_datetime64_any_dtype(values.dtype))


def as_words(values: pd.Series) -> np.ndarray:
    """Return a column as text without blanks at its ends, and None for empty cells."""
    import pandas as pd

    gone = pd.isna(values).to_numpy()
    words = [None if empty else str(value).strip() for value, empty in zip(values.astype(object), gone)]
    return np.array([word or None for word in words], object)
