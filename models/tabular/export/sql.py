"""A formula as one query of a database."""

from __future__ import annotations

import warnings
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any

from .... import __version__
from .formula import DATE, INFIX, TEXT, Formula, Printer

LARGEST = "1.7976931348623157e308"
_RESULTS = ("score", "probability", "prediction")
_NO_EXP = "the query calls EXP or LN, which SQLite has from 3.35 on where it was built with its mathematical functions"


@dataclass(frozen=True)
class Dialect:
    """What differs between databases.

    Parameters
    ----------
    double : str
        Type of numbers.
    text : str
        A cell ``{}`` as text, compared letter by letter.
    days : str
        Days since 1970-01-01 of a cell ``{}``.
    quote : str, default '"'
        Around names.
    backslash : bool, default False
        Whether a backslash has a meaning in text.
    greatest : str, default "GREATEST"
    """

    double: str
    text: str
    days: str
    quote: str = '"'
    backslash: bool = False
    greatest: str = "GREATEST"

    def name(self, word: str) -> str:
        """A quoted name."""
        return self.quote + _text(word).replace(self.quote, 2 * self.quote) + self.quote

    def literal(self, value: Any) -> str:
        """A word, number or truth value; NULL for NaN."""
        if isinstance(value, bool | int):
            return str(value).upper()
        if isinstance(value, float):  # without an exponent many databases take it for a decimal
            text = f"{value!r}e0" if "e" not in repr(value) else repr(value)
            return "NULL" if value != value else f"({text})" if value < 0 else text
        word = _text(value)
        if self.backslash:
            word = word.replace("\\", "\\\\").replace("\n", "\\n").replace("\r", "\\r")
        return "'" + word.replace("'", "\\'" if self.backslash else "''") + "'"


_SQLITE_DAYS = "(strftime('%s', {0}) + strftime('%f', {0}) - strftime('%S', {0})) / 86400e0"
_MYSQL_TEXT = "CAST({} AS CHAR CHARACTER SET utf8mb4) COLLATE utf8mb4_bin"
_MYSQL_DAYS = "TIMESTAMPDIFF(MICROSECOND, '1970-01-01', {}) / 86400e6"
DIALECTS = {
    "postgres": Dialect("DOUBLE PRECISION", "CAST({} AS TEXT)", "EXTRACT(EPOCH FROM CAST({} AS TIMESTAMP)) / 86400e0"),
    "sqlite": Dialect("REAL", "CAST({} AS TEXT)", _SQLITE_DAYS, greatest="MAX"),
    "duckdb": Dialect("DOUBLE", "CAST({} AS VARCHAR)", "EPOCH_US(CAST({} AS TIMESTAMP)) / 86400e6"),
    "mysql": Dialect("DOUBLE", _MYSQL_TEXT, _MYSQL_DAYS, "`", True),
    "bigquery": Dialect("FLOAT64", "CAST({} AS STRING)", "UNIX_MICROS(CAST({} AS TIMESTAMP)) / 86400e6", "`", True),
}


def write_sql(formula: Formula, table: str = "data", dialect: str = "postgres", keys: Sequence[str] = ()) -> bytes:
    """Return a query: one row for each row of the table, with score, probability of each class, and
    prediction.

    Parameters
    ----------
    formula : Formula
    table : str, default "data"
        Name of the table; dots separate it from its schema.
    dialect : {"postgres", "sqlite", "duckdb", "mysql", "bigquery"}, default "postgres"
    keys : sequence of str, default ()
        Columns of the table that stand before the scores.

    Returns
    -------
    bytes

    Raises
    ------
    ValueError
        For an unknown dialect, and names that the database does not allow.
    """
    if dialect not in DIALECTS:
        raise ValueError(f"dialect {dialect!r}: expected one of {', '.join(DIALECTS)}")
    d = DIALECTS[dialect]
    if taken := [key for key in keys if key.partition("_")[0] in _RESULTS]:
        raise ValueError(f"key {taken[0]!r} has the name of a result: rename this column of the table")
    kept = {key: f"k{i + 1}" for i, key in enumerate(keys)}
    cells = {name: f"c{i + 1}" for i, name in enumerate(formula.columns)}
    show = Printer(_symbols(d, formula.classes), d.literal, cells, formula.columns)
    stem = "model" if table.lower().startswith("annealed_") else "annealed"
    read = [f"t.{d.name(key)} AS {k}" for key, k in kept.items()] + ["1 AS c0"] * (not cells)
    read += [f"{_read(d, name, kind)} AS {cells[name]}" for name, kind in formula.columns.items()]
    source, stages = ".".join(map(d.name, table.split("."))) + " AS t", []
    for number, stage in enumerate([{}, *formula.stages]):
        chosen = ["*", *(f"{show(e)} AS {name}" for name, e in stage.items())] if number else read
        stages.append(f"{stem}_{number} AS (\n{_select(chosen, source)})")
        source = f"{stem}_{number}"
    answer = [f"{k} AS {d.name(key)}" for key, k in kept.items()]
    answer += [f"{show(e)} AS {d.name(f'{what}_{of}' if of else what)}" for what, of, e in formula.results]
    query = f"WITH {', '.join(stages)}\n{_select(answer, source)};\n"
    if dialect == "sqlite" and ("EXP(" in query or "LN(" in query):
        warnings.warn(_NO_EXP, stacklevel=3)
        query = f"-- {_NO_EXP}\n{query}"
    return f"-- Written by annealed {__version__} for {dialect}.\n{query}".encode()


def _symbols(d: Dialect, classes: Sequence[Any] | None) -> dict[str, Any]:
    def case(condition: str, value: str, other: str) -> str:
        rest = other[5:] if other.startswith("CASE WHEN") else f"ELSE {other} END"
        return f"CASE WHEN {condition} THEN {value}\n      {rest}"

    def is_text(cell: str, level: str) -> str:  # databases write truth values as they like
        spelled = {"'True'": "('True', 'true', 't', '1')", "'False'": "('False', 'false', 'f', '0')"}
        return f"{cell} IN {spelled[level]}" if level in spelled else f"{cell} = {level}"

    return INFIX | {
        "max": f"{d.greatest}({{}}, {{}})".format,
        "exp": "EXP({})".format,
        "log": "LN({})".format,
        "if": case,
        "is": "{} = {}".format,
        "is text": is_text,
        **dict.fromkeys(("empty", "empty date", "empty text", "none"), "{} IS NULL".format),
        "label": lambda i: "NULL" if i < 0 else d.literal((classes or ())[i]),
    }


def _text(word: Any) -> str:
    if not str(word) or "\0" in str(word):
        raise ValueError(f"the name {word!r} cannot be written in SQL; expected one of some characters, none of them NUL")
    return str(word)


def _select(columns: Iterable[str], source: str) -> str:
    return "  SELECT\n    " + ",\n    ".join(columns) + f"\n  FROM {source}"


def _read(d: Dialect, name: str, kind: str) -> str:
    """A cell as the formula takes it: NULL where it is empty or, as a number, not finite."""
    cell = f"t.{d.name(name)}"
    if kind == TEXT:
        return f"NULLIF(TRIM({d.text.format(cell)}), '')"
    number = f"CAST({d.days.format(cell) if kind == DATE else cell} AS {d.double})"
    return number if kind == DATE else f"CASE WHEN ABS({number}) <= {LARGEST} THEN {number} END"
