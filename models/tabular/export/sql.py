"""Export of a formula as a database query."""

import warnings
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any

from .... import __version__
from ..encoding import THOUSANDS
from .formula import DATE, INFIX, TEXT, Formula, Printer

LARGEST = "1.7976931348623157e308"
_TRUTHS: dict[str, Sequence[str]] = {
    "True": ("True", "true", "TRUE", "t", "1"),
    "False": ("False", "false", "FALSE", "f", "0"),
}
_RESULTS = ("score", "probability", "prediction")
_NO_EXP = (
    "the query calls EXP or LN, which require SQLite 3.35 or later with its mathematical functions"
)


@dataclass(frozen=True)
class Dialect:
    """SQL dialect of a database.

    Parameters
    ----------
    double : str
        Name of the double-precision floating-point type.
    number : str
        Expression that converts a cell to a number, where ``{0}`` is the cell and ``{1}`` is its
        text. For an invalid cell, the result is NULL or not finite.
    text : str
        Expression that converts a cell, ``{}``, to text for exact comparison.
    days : str
        Expression that converts a cell, ``{}``, to days since 1970-01-01.
    quote : str, default '"'
        Quotation mark for names.
    backslash : bool, default False
        Whether backslashes in text are escape characters.
    maximum : str
        Function that returns the larger of two numbers.
    """

    double: str
    number: str
    text: str
    days: str
    quote: str = '"'
    backslash: bool = False
    maximum: str = "GREATEST"

    def name(self, word: str) -> str:
        """Quote a name."""
        return self.quote + _text(word).replace(self.quote, 2 * self.quote) + self.quote

    def literal(self, value: Any) -> str:
        """Return the literal for a text, a number or a Boolean value, or NULL for NaN."""
        if isinstance(value, bool | int):
            return str(value).upper()
        if isinstance(value, float):  # without an exponent, many databases parse decimals
            text = f"{value!r}e0" if "e" not in repr(value) else repr(value)
            return "NULL" if value != value else f"({text})" if value < 0 else text
        word = _text(value)
        if self.backslash:
            word = word.replace("\\", "\\\\").replace("\n", "\\n").replace("\r", "\\r")
        return "'" + word.replace("'", "\\'" if self.backslash else "''") + "'"


# a number that is too large for a double would abort the query
_DIGITS = (
    "'^[[:space:]]*[-+]?([0-9]+[.]?[0-9]*|[.][0-9]+)"
    "([eE][-+]?([0-2]?[0-9]?[0-9]|30[0-8]))?[[:space:]]*$'"
)
# the equality holds if the whole text is a number, since SQLite then compares numbers
_SQLITE_NUMBER = "CASE WHEN CAST({0} AS NUMERIC) = {0} THEN CAST({0} AS REAL) END"
_SQLITE_DAYS = "(strftime('%s', {0}) + strftime('%f', {0}) - strftime('%S', {0})) / 86400e0"
# a number would be read as a Julian day
_SQLITE_DAYS = f"CASE WHEN {{0}} LIKE '%-%-%' THEN {_SQLITE_DAYS} END"
_MYSQL_TEXT = "CAST({} AS CHAR CHARACTER SET utf8mb4) COLLATE utf8mb4_bin"
_MYSQL_DAYS = "TIMESTAMPDIFF(MICROSECOND, '1970-01-01', {}) / 86400e6"
_POSTGRES_DAYS = "EXTRACT(EPOCH FROM CAST({0} AS TIMESTAMP)) / 86400e0"
_POSTGRES_DAYS = (
    f"CASE WHEN CAST({{0}} AS TEXT) ~ '^ *[0-9]{{{{4}}}}-[0-9]{{{{2}}}}-[0-9]{{{{2}}}}' "
    f"THEN {_POSTGRES_DAYS} END"
)
DIALECTS = {
    "postgres": Dialect(
        "DOUBLE PRECISION",
        f"CASE WHEN {{1}} ~ {_DIGITS} THEN CAST({{1}} AS DOUBLE PRECISION) END",
        "CAST({} AS TEXT)",
        _POSTGRES_DAYS,
    ),
    "sqlite": Dialect("REAL", _SQLITE_NUMBER, "CAST({} AS TEXT)", _SQLITE_DAYS, maximum="MAX"),
    "duckdb": Dialect(
        "DOUBLE",
        "TRY_CAST({0} AS DOUBLE)",
        "CAST({} AS VARCHAR)",
        "EPOCH_US(TRY_CAST({} AS TIMESTAMP)) / 86400e6",
    ),
    "mysql": Dialect(
        "DOUBLE",
        f"CASE WHEN {{1}} REGEXP {_DIGITS} THEN CAST({{0}} AS DOUBLE) END",
        _MYSQL_TEXT,
        _MYSQL_DAYS,
        "`",
        True,
    ),
    "bigquery": Dialect(
        "FLOAT64",
        "SAFE_CAST({1} AS FLOAT64)",
        "CAST({} AS STRING)",
        "UNIX_MICROS(SAFE_CAST({} AS TIMESTAMP)) / 86400e6",
        "`",
        True,
    ),
}


def write_sql(
    formula: Formula, table: str = "data", dialect: str = "postgres", keys: Sequence[str] = ()
) -> bytes:
    """Return a query that computes scores, probabilities and predictions for the rows of a table.

    Parameters
    ----------
    formula : Formula
        Formula of the model.
    table : str, default "data"
        Name of the table, which may be preceded by its schema and a dot.
    dialect : {"postgres", "sqlite", "duckdb", "mysql", "bigquery"}, default "postgres"
        SQL dialect of the database.
    keys : sequence of str, default ()
        Columns of the table to copy to the result, before the scores.

    Returns
    -------
    bytes

    Raises
    ------
    ValueError
        If the dialect is unknown, or the database does not allow a name.
    """
    if dialect not in DIALECTS:
        raise ValueError(f"dialect {dialect!r} is unknown; expected one of {', '.join(DIALECTS)}")
    d = DIALECTS[dialect]
    if taken := [key for key in keys if key.partition("_")[0] in _RESULTS]:
        raise ValueError(
            f"key {taken[0]!r} conflicts with the name of a result column; rename this key in "
            "the table"
        )
    kept = {key: f"k{i + 1}" for i, key in enumerate(keys)}
    cells = {name: f"c{i + 1}" for i, name in enumerate(formula.columns)}
    spelled = {cells[name]: _spellings(levels) for name, levels in _levels(formula).items()}
    show = Printer(_symbols(d, formula.classes, spelled), d.literal, cells, formula.columns)
    stem = "model" if table.lower().startswith("annealed_") else "annealed"
    read = [f"t.{d.name(key)} AS {k}" for key, k in kept.items()] + ["1 AS c0"] * (not cells)
    read += [
        f"{_read(d, name, kind, formula.styles[name])} AS {cells[name]}"
        for name, kind in formula.columns.items()
    ]
    source, stages = ".".join(map(d.name, table.split("."))) + " AS t", []
    for number, stage in enumerate([{}, *formula.stages]):
        chosen = ["*", *(f"{show(e)} AS {name}" for name, e in stage.items())] if number else read
        stages.append(f"{stem}_{number} AS (\n{_select(chosen, source)})")
        source = f"{stem}_{number}"
    answer = [f"{k} AS {d.name(key)}" for key, k in kept.items()]
    answer += [
        f"{show(e)} AS {d.name(f'{what}_{of}' if of else what)}" for what, of, e in formula.results
    ]
    query = f"WITH {', '.join(stages)}\n{_select(answer, source)};\n"
    if dialect == "sqlite" and ("EXP(" in query or "LN(" in query):
        warnings.warn(_NO_EXP, stacklevel=3)
        query = f"-- {_NO_EXP}\n{query}"
    return f"-- Written by annealed {__version__} for {dialect}.\n{query}".encode()


def _levels(formula: Formula) -> dict[str, set[str]]:
    """Return the words with which text cells are compared."""
    levels: dict[str, set[str]] = {}

    def walk(expression: Any) -> None:
        if isinstance(expression, tuple):
            if expression[0] == "is" and formula.columns[expression[1]] == TEXT:
                levels.setdefault(expression[1], set()).add(expression[2])
            for part in expression[1:]:
                walk(part)

    for _, adds in formula.terms:
        walk(("+", *adds))
    return levels


def _spellings(levels: set[str]) -> dict[str, Sequence[str]]:
    """Return levels with the spellings that databases use for truth values or integers."""
    if levels <= _TRUTHS.keys():
        return _TRUTHS
    whole = all(level.removeprefix("-").isdecimal() for level in levels)
    return {level: (level, str(float(level))) for level in levels} if whole else {}


def _symbols(
    d: Dialect, classes: Sequence[Any] | None, spelled: dict[str, dict[str, Sequence[str]]]
) -> dict[str, Any]:
    def case(condition: str, value: str, other: str) -> str:
        rest = other[5:] if other.startswith("CASE WHEN") else f"ELSE {other} END"
        return f"CASE WHEN {condition} THEN {value}\n      {rest}"

    def is_text(cell: str, level: str) -> str:
        words = spelled[cell].get(level[1:-1], ())
        return f"{cell} IN ({', '.join(map(d.literal, words))})" if words else f"{cell} = {level}"

    return INFIX | {
        "max": f"{d.maximum}({{}}, {{}})".format,
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
        raise ValueError(
            f"the name {word!r} cannot be used in SQL; expected a non-empty name without NUL "
            "characters"
        )
    return str(word)


def _select(columns: Iterable[str], source: str) -> str:
    return "  SELECT\n    " + ",\n    ".join(columns) + f"\n  FROM {source}"


def _read(d: Dialect, name: str, kind: str, style: str) -> str:
    """Return the expression that converts a cell to the form that the formula expects, whether the
    table stores numbers and dates natively or as text. Empty cells and numbers that are not finite
    give NULL."""
    cell = f"t.{d.name(name)}"
    text = d.text.format(cell)
    if kind == TEXT:
        return f"NULLIF(TRIM({text}), '')"
    if kind == DATE:
        return f"CAST({d.days.format(cell)} AS {d.double})"
    if style == THOUSANDS:
        cell = text = f"REPLACE({text}, ',', '')"
    number, word = d.number.format(cell, text), f"LOWER(TRIM({text}))"
    truth = f"WHEN {word} = 'true' THEN 1e0 WHEN {word} = 'false' THEN 0e0"
    return f"CASE WHEN ABS({number}) <= {LARGEST} THEN {number} {truth} END"
