"""Formula of a model for export and explanation, in terms of the cells of a row.

Export formats differ only in syntax.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import pandas as pd

from ...messages import plain
from ..encoding import DATE, NUMBER, as_words, days, logarithm, to_numbers

TEXT = "text"  # kind of a cell that is neither a number nor a date (days since 1970-01-01)
# An expression is a float, the name of an earlier one, or a tuple of an operation and its operands:
# ("+", e, ...), ("-", e, e), ("*", e, e), ("/", e, e), ("max", e, e), ("exp", e), ("log", e), ("<",
# e, e), ("if", condition, e, e),   ("cell", column, number): the cell minus the number, ("is",
# column, level), ("empty", column),   ("none", name): whether a score is missing, ("label", number
# of the class), -1 for none.
Expression = Any


@dataclass(frozen=True)
class Formula:
    """Fitted additive model as a formula.

    Parameters
    ----------
    columns : dict of str to str
        Type of each input column: "number", "date" or "text".
    styles : dict of str to str
        Order of day and month in date columns; see
        :class:`annealed.models.tabular.encoding.ColumnEncoding`.
    inputs : tuple of str
        Names of the columns of an input array.
    outputs : tuple of str
        Names of the scores. A single score has an empty name.
    classes : tuple or None
        Class labels.
    intercept : tuple of float
        Intercept of each score.
    terms : tuple of (str, tuple of Expression)
        Terms, each given by a column and a contribution to each score. A column may have several
        terms.
    stages : list of dict
        Named expressions, grouped so that each stage depends only on earlier stages. The first
        stage contains the terms, numbered by term and score (a1_1, a1_2, ...), and the second stage
        contains the scores (s1, s2, ...).
    results : list of (str, str, Expression)
        Results, each given by its type ("score", "probability" or "prediction"), its output or
        class, and its expression.
    """

    columns: dict[str, str]
    styles: dict[str, str]
    inputs: tuple[str, ...]
    outputs: tuple[str, ...]
    classes: tuple[Any, ...] | None
    intercept: tuple[float, ...]
    terms: tuple[tuple[str, tuple[Expression, ...]], ...]
    stages: list[dict[str, Expression]]
    results: list[tuple[str, str, Expression]]

    def contributions(self, frame: pd.DataFrame) -> np.ndarray:
        """Compute the contribution of each column in each row.

        The result has shape (n_rows, n_columns, n_outputs).

        Raises
        ------
        ValueError
            If the table lacks a column that the formula requires.
        """
        if missing := [name for name in self.columns if name not in frame.columns]:
            raise ValueError(f"the table has no column {missing[0]!r}, which the model requires")
        read = {NUMBER: to_numbers, TEXT: as_words}
        cells = {
            name: days(frame[name], self.styles[name]) if kind == DATE else read[kind](frame[name])
            for name, kind in self.columns.items()
        }
        show, place = Printer(_NUMPY, lambda value: value, cells, self.columns), list(self.columns)
        added = np.zeros((len(frame), len(place), len(self.outputs)))
        for name, adds in self.terms:
            for o, expression in enumerate(adds):
                added[:, place.index(name), o] += show(expression)
        return added

    def record(self) -> dict[str, Any]:
        """Return the formula in the JSON format described in docs/export.md; NaN becomes None."""
        return plain(
            {
                "format": "annealed formula",
                "version": 1,
                "columns": self.columns,
                "outputs": self.outputs,
                "classes": self.classes,
                "stages": self.stages,
                "results": self.results,
            }
        )


# Symbols shared by the formulas of programs, databases and spreadsheets.
INFIX: dict[str, Callable[..., str]] = {
    "+": lambda *parts: f"({' + '.join(parts)})",
    **{op: f"({{}} {op} {{}})".format for op in "-*/<"},
    "cell": "({} - {})".format,
    "cell date": "({} - {})".format,
}
_NUMPY: dict[str, Callable] = {
    "+": lambda *parts: sum(parts),
    "-": np.subtract,
    "*": np.multiply,
    "/": np.divide,
    "<": np.less,
    "if": np.where,
    "log": logarithm,
    "cell": np.subtract,
    "cell date": np.subtract,
    "is": np.equal,
    "is text": np.equal,
    "empty": np.isnan,
    "empty date": np.isnan,
    "empty text": lambda cells: np.array([word is None for word in cells], bool),
}


@dataclass(frozen=True)
class Printer:
    """Printer of expressions in the syntax of a target language.

    Parameters
    ----------
    symbols : dict
        For each operation, a function that prints it, given the printed operands. The operations
        "cell", "is" and "empty" have variants for dates and text: "cell date", "is text", "empty
        date" and "empty text".
    literal : function
        Function that prints a number or a level of a category.
    cells : dict
        Printed form of a cell in each column.
    kinds : dict
        Type of each column.
    names : dict, optional
        Printed names of the expressions that have another name in the formula.
    """

    symbols: Mapping[str, Callable[..., Any]]
    literal: Callable[[Any], Any]
    cells: Mapping[str, Any]
    kinds: Mapping[str, str]
    names: dict[str, Any] = field(default_factory=dict)

    def __call__(self, expression: Expression) -> Any:
        """Print an expression."""
        if isinstance(expression, float):
            return self.literal(expression)
        if isinstance(expression, str):
            return self.names.get(expression, expression)
        op, *operands = expression
        if op in ("cell", "is", "empty"):
            column, *rest = operands
            op += "" if self.kinds[column] == NUMBER else f" {self.kinds[column]}"
            if op == "cell" and rest == [0.0]:
                return self.cells[column]
            return self.symbols[op](self.cells[column], *map(self.literal, rest))
        return self.symbols[op](*(operands if op == "label" else map(self, operands)))
