"""The one form that is exported and explained: an intercept plus one function of each column, as plain numbers and words."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from ..encoding import DATE, NUMBER, as_words, days, to_numbers

if TYPE_CHECKING:
    import pandas as pd

TEXT = "text"  # how a cell is read, besides as a number or a date (days since 1970-01-01)


@dataclass(frozen=True)
class Curve:
    """What a number or a date adds to the scores: linear between knots, with jumps where it has any.

    With u = value - ``centre``, and j the number of ``knots`` that are at most u, it adds
    ``values[j] + slopes[j] * (u - anchors[j])``.

    Parameters
    ----------
    column : str
        Name in the table.
    kind : {"number", "date"}
        A date counts as days since 1970-01-01.
    centre : float
        Subtracted first, so that nothing is lost of a small spread around a large number.
    knots : ndarray of shape (p - 1,)
        Ascending and different; empty for a line.
    anchors : ndarray of shape (p,)
        Where each piece has its value.
    values, slopes : ndarray of shape (p, n_outputs)
        Of the pieces.
    missing : ndarray of shape (n_outputs,)
        What an empty cell adds; NaN: then there is no score.
    style : str, default ""
        Order of day and month in text, see :class:`annealed.models.tabular.encoding.ColumnEncoding`.
    """

    column: str
    kind: str
    centre: float
    knots: np.ndarray
    anchors: np.ndarray
    values: np.ndarray
    slopes: np.ndarray
    missing: np.ndarray
    style: str = ""

    def contributions(self, cells: pd.Series) -> np.ndarray:
        """What each cell adds, (n_rows, n_outputs)."""
        x = days(cells, self.style) if self.kind == DATE else to_numbers(cells)
        u = x - self.centre
        j = np.searchsorted(self.knots, u, side="right")
        added = self.values[j] + self.slopes[j] * (u - self.anchors[j])[:, None]
        added[np.isnan(x)] = self.missing
        return added


@dataclass(frozen=True)
class Lookup:
    """What a cell with one of a few values adds to the scores.

    Parameters
    ----------
    column : str
        Name in the table.
    kind : {"text", "number"}
        What the levels are.
    levels : tuple of str or tuple of float
        Known values.
    values : ndarray of shape (n_levels, n_outputs)
        What each adds.
    other, missing : ndarray of shape (n_outputs,)
        What any other value, and an empty cell, adds; NaN: then there is no score.
    """

    column: str
    kind: str
    levels: tuple[Any, ...]
    values: np.ndarray
    other: np.ndarray
    missing: np.ndarray

    @property
    def rows(self) -> np.ndarray:
        """``values``, then ``other``, then ``missing``: (n_levels + 2, n_outputs)."""
        return np.vstack([self.values, self.other, self.missing])

    def contributions(self, cells: pd.Series) -> np.ndarray:
        """What each cell adds, (n_rows, n_outputs)."""
        read = as_words(cells) if self.kind == TEXT else to_numbers(cells)
        place = {level: i for i, level in enumerate(self.levels)}
        n = len(self.levels)
        return self.rows[[n + 1 if cell is None or cell != cell else place.get(cell, n) for cell in read]]


@dataclass(frozen=True)
class Formula:
    """A fitted additive model: what it reads of a row, what each column adds, and what the scores mean.

    Parameters
    ----------
    terms : tuple of Curve or Lookup
        A column may have several.
    intercept : ndarray of shape (n_outputs,)
    inputs : tuple of str
        Names of the columns of an array without names.
    task : {"classification", "regression", "ranking"}
    outputs : tuple of str
        Names of several scores; one empty name for a single one.
    classes : tuple or None
        Labels; with two there is one score, positive for the second.
    link : {"identity", "log"}
        With "log" the prediction is exp(score).
    probabilities : {"softmax", "separate", None}
        As in :class:`annealed.models.TabularModel`; of one score always the logistic function.
    flip : float
        Share of flipped labels: a probability p is reported as flip + (1 - 2 flip) p.
    """

    terms: tuple[Curve | Lookup, ...]
    intercept: np.ndarray
    inputs: tuple[str, ...]
    task: str
    outputs: tuple[str, ...]
    classes: tuple[Any, ...] | None
    link: str
    probabilities: str | None
    flip: float

    @property
    def columns(self) -> dict[str, str]:
        """Columns that it reads, in order: name to kind."""
        return {term.column: term.kind for term in self.terms}

    def of_kind(self, *kinds: str) -> list[str]:
        """Columns of some kinds, in order."""
        return [name for name, kind in self.columns.items() if kind in kinds]

    def contributions(self, frame: pd.DataFrame) -> np.ndarray:
        """What each column adds in each row, (n_rows, n_columns, n_outputs).

        Raises
        ------
        ValueError
            If the table lacks a column.
        """
        place = {name: i for i, name in enumerate(self.columns)}
        gone = [name for name in place if name not in frame.columns]
        if gone:
            raise ValueError(f"the table has no column {gone[0]!r}, which the model needs")
        added = np.zeros((len(frame), len(place), len(self.intercept)))
        for term in self.terms:
            added[:, place[term.column]] += term.contributions(frame[term.column])
        return added

    def record(self) -> dict[str, Any]:
        """The formula for JSON, as docs/export.md describes it; NaN is None."""
        record = {"format": "annealed formula", "version": 1, "columns": self.columns, **vars(self)}
        del record["inputs"]
        record["terms"] = [{"type": type(term).__name__.lower(), **vars(term)} for term in self.terms]
        return _plain(record)


def _plain(value: Any) -> Any:
    if isinstance(value, dict):
        return {name: _plain(entry) for name, entry in value.items()}
    if isinstance(value, list | tuple | np.ndarray):
        return [_plain(entry) for entry in (value.tolist() if isinstance(value, np.ndarray) else value)]
    return None if isinstance(value, float) and value != value else value


def check_kinds(terms: tuple[Curve | Lookup, ...]) -> None:
    """Refuse a column that is read both as a number and as text: no cell of a typed table is both.

    Raises
    ------
    ValueError
        Naming the column.
    """
    kinds: dict[str, str] = {}
    for term in terms:
        if kinds.setdefault(term.column, term.kind) != term.kind:
            raise ValueError(f"column {term.column!r} is read as {kinds[term.column]} and as {term.kind}: cannot be exported")


__all__ = ["DATE", "NUMBER", "TEXT", "Curve", "Formula", "Lookup", "check_kinds"]
