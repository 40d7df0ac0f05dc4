"""A formula as one query of a database."""

from __future__ import annotations

import warnings
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from .... import __version__
from .formula import DATE, TEXT, Curve, Formula, Lookup

LARGEST = "1.7976931348623157e308"
_MAX_EXPONENT = 700  # of EXP: beyond it some databases stop with an error; a probability is 0 or 1 there


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
        """A quoted name.

        Raises
        ------
        ValueError
            If it is empty or holds the character NUL.
        """
        if not word or "\0" in word:
            raise ValueError(f"the name {word!r} cannot be written in SQL; expected one of some characters, none of them NUL")
        if self.quote == "`" and self.backslash and self.text.endswith("STRING)"):
            return "`" + word.replace("\\", "\\\\").replace("`", "\\`").replace("\n", "\\n") + "`"
        return self.quote + word.replace(self.quote, 2 * self.quote) + self.quote

    def literal(self, value: object) -> str:
        """A word, number or truth value; NULL for NaN."""
        if isinstance(value, bool):
            return str(value).upper()
        if isinstance(value, float):
            text = repr(value) if "e" in repr(value) else f"{value!r}e0"  # without an exponent many take it for a decimal
            return "NULL" if value != value else f"({text})" if value < 0 else text
        if isinstance(value, int):
            return str(value)
        word = str(value)
        if "\0" in word:
            raise ValueError(f"the value {word!r} cannot be written in SQL; expected no character NUL")
        if self.backslash:
            word = word.replace("\\", "\\\\").replace("\n", "\\n").replace("\r", "\\r")
        return "'" + word.replace("'", "\\'" if self.backslash else "''") + "'"


_SQLITE_DAYS = "(strftime('%s', {0}) + strftime('%f', {0}) - strftime('%S', {0})) / 86400e0"
DIALECTS = {
    "postgres": Dialect("DOUBLE PRECISION", "CAST({} AS TEXT)", "EXTRACT(EPOCH FROM CAST({} AS TIMESTAMP)) / 86400e0"),
    "sqlite": Dialect("REAL", "CAST({} AS TEXT)", _SQLITE_DAYS, greatest="MAX"),
    "duckdb": Dialect("DOUBLE", "CAST({} AS VARCHAR)", "EPOCH_US(CAST({} AS TIMESTAMP)) / 86400e6"),
    "mysql": Dialect(
        "DOUBLE",
        "CAST({} AS CHAR CHARACTER SET utf8mb4) COLLATE utf8mb4_bin",
        "TIMESTAMPDIFF(MICROSECOND, '1970-01-01', {}) / 86400e6",
        "`",
        True,
    ),
    "bigquery": Dialect("FLOAT64", "CAST({} AS STRING)", "UNIX_MICROS(CAST({} AS TIMESTAMP)) / 86400e6", "`", True),
}


def write_sql(formula: Formula, table: str = "data", dialect: str = "postgres", keys: Sequence[str] = ()) -> bytes:
    """Return a query: one row for each row of the table, with score, probability of each class, and prediction.

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
    _check_names(formula, dialect, keys)
    place = {name: f"c{i + 1}" for i, name in enumerate(formula.columns)}
    columns = [f"{_read(d, name, kind)} AS {place[name]}" for name, kind in formula.columns.items()]
    kept = [f"k{i + 1}" for i in range(len(keys))]
    columns = [f"{d.name(key)} AS {k}" for k, key in zip(kept, keys)] + columns
    n = len(formula.intercept)
    scores = [f"s{o + 1}" for o in range(n)]
    sums = []
    for o, score in enumerate(scores):
        parts = [f"CAST({d.literal(float(formula.intercept[o]))} AS {d.double})"]
        parts += [_term(d, term, place[term.column], o) for term in formula.terms]
        sums.append("\n    + ".join(parts) + f" AS {score}")
    more = _derived(d, formula, scores)
    stem = "model" if table.lower().startswith("annealed_") else "annealed"
    source = ".".join(d.name(part) for part in table.split("."))
    steps = [_select(columns or ["1 AS c0"], source), _select([*kept, *sums], f"{stem}_columns")]
    names = [f"{stem}_columns", f"{stem}_scores"]
    if more:
        steps.append(_select([*kept, *scores, *more], names[-1]))
        names.append(f"{stem}_derived")
    last = [f"{k} AS {d.name(key)}" for k, key in zip(kept, keys)] + _results(d, formula, scores)
    head = ",\n".join(f"{name} AS (\n  {step}\n)" for name, step in zip(names, steps))
    query = f"WITH {head}\n{_select(last, names[-1])};\n"
    notes = [f"-- Written by annealed {__version__} for {dialect}."]
    if dialect == "sqlite" and "EXP(" in query:
        note = "the query calls EXP, which SQLite has from version 3.35 on where it was built with its mathematical functions"
        warnings.warn(note, stacklevel=3)
        notes.append(f"-- {note[0].upper()}{note[1:]}.")
    return ("\n".join(notes) + "\n" + query).encode()


def _check_names(formula: Formula, dialect: str, keys: Sequence[str]) -> None:
    names = [*formula.columns, *(key for key in keys if key not in formula.columns)]
    alike: dict[str, str] = {}
    for name in names:
        if alike.setdefault(name if dialect == "postgres" else name.lower(), name) != name:
            raise ValueError(f"columns {alike[name.lower()]!r} and {name!r} are the same name in {dialect}: rename one of them")
    for key in keys:
        if key in ("score", "prediction") or key.startswith(("score_", "probability_", "prediction_")):
            raise ValueError(f"key {key!r} has the name of a result: rename this column of the table")


def _select(columns: Iterable[str], source: str) -> str:
    return "SELECT\n    " + ",\n    ".join(columns) + f"\n  FROM {source}"


def _read(d: Dialect, name: str, kind: str) -> str:
    """A cell as the formula takes it: NULL where it is empty or, as a number, not finite."""
    cell = d.name(name)
    if kind == TEXT:
        return f"NULLIF(TRIM({d.text.format(cell)}), '')"
    number = d.days.format(cell) if kind == DATE else cell
    number = f"CAST({number} AS {d.double})"
    return number if kind == DATE else f"CASE WHEN ABS({number}) <= {LARGEST} THEN {number} END"


def _term(d: Dialect, term: Curve | Lookup, cell: str, o: int) -> str:
    """What a column adds to one score."""
    missing = d.literal(float(term.missing[o]))
    if isinstance(term, Lookup):
        cases = [
            f"WHEN {cell} {_is(d, term, level)} THEN {d.literal(float(v))}" for level, v in zip(term.levels, term.values[:, o])
        ]
        return _case([f"WHEN {cell} IS NULL THEN {missing}", *cases, f"ELSE {d.literal(float(term.other[o]))}"])
    u = f"({cell} - {d.literal(float(term.centre))})" if term.centre else cell
    pieces = []
    for anchor, value, slope in zip(term.anchors.tolist(), term.values[:, o].tolist(), term.slopes[:, o].tolist()):
        line = f"{d.literal(slope)} * " + (f"({u} - {d.literal(anchor)})" if anchor else u)
        pieces.append(d.literal(value) if not slope else f"{d.literal(value)} + {line}" if value else line)
    if len(pieces) == 1 and term.slopes[0, o]:
        return f"({pieces[0]})" if missing == "NULL" else f"COALESCE({pieces[0]}, {missing})"
    cases = [f"WHEN {u} < {d.literal(knot)} THEN {piece}" for knot, piece in zip(term.knots.tolist(), pieces)]
    return _case([f"WHEN {cell} IS NULL THEN {missing}", *cases, f"ELSE {pieces[-1]}"])


def _case(cases: Sequence[str]) -> str:
    joined = " ".join(cases) if sum(map(len, cases)) < 100 else "\n      ".join(cases)
    return f"CASE {joined} END"


def _is(d: Dialect, term: Lookup, level: object) -> str:
    """A comparison with a level; databases write truth values as they like."""
    spelled = {"True": ("True", "true", "t", "1"), "False": ("False", "false", "f", "0")}.get(str(level))
    if spelled is None or term.kind != TEXT or set(spelled[1:]) & set(term.levels):
        return f"= {d.literal(level)}"
    return f"IN ({', '.join(map(d.literal, spelled))})"


def _derived(d: Dialect, formula: Formula, scores: Sequence[str]) -> list[str]:
    """What the results are made of, from the scores: the greatest one, and probabilities before they are normalised."""
    if formula.classes is None:
        return [f"{_exp(f's{o + 1}')} AS e{o + 1}" for o in range(len(scores))] if formula.link == "log" else []
    if len(scores) == 1:
        if formula.probabilities is None:
            return []
        p = _logistic("s1")
        return [f"{d.literal(formula.flip)} + {d.literal(1.0 - 2.0 * formula.flip)} * {p} AS p1" if formula.flip else f"{p} AS p1"]
    best = f"{d.greatest}({', '.join(scores)})"
    found = [f"{best} AS best"]
    if formula.probabilities == "softmax":
        found += [f"{_exp(f'{s} - {best}')} AS e{o + 1}" for o, s in enumerate(scores)]
    elif formula.probabilities:
        found += [f"{_logistic(s)} AS e{o + 1}" for o, s in enumerate(scores)]
    return found


def _exp(x: str) -> str:
    top = _MAX_EXPONENT
    return f"CASE WHEN {x} < -{top} THEN 0e0 WHEN {x} > {top} THEN EXP({top}e0) ELSE EXP({x}) END"


def _logistic(s: str) -> str:
    return f"CASE WHEN {s} > {_MAX_EXPONENT} THEN 1e0 WHEN {s} < -{_MAX_EXPONENT} THEN 0e0 ELSE 1e0 / (1e0 + EXP(-{s})) END"


def _results(d: Dialect, formula: Formula, scores: Sequence[str]) -> list[str]:
    """The columns of the answer."""

    def named(stem: str, output: str) -> str:
        return d.name(f"{stem}_{output}" if output else stem)

    outputs, classes = formula.outputs, formula.classes
    found = [f"{s} AS {named('score', output)}" for s, output in zip(scores, outputs)]
    if classes is None:
        letter = "e" if formula.link == "log" else "s"
        return found + [f"{letter}{o + 1} AS {named('prediction', output)}" for o, output in enumerate(outputs)]
    if len(scores) == 1:
        chosen = f"CASE WHEN s1 > 0 THEN {d.literal(classes[1])} WHEN s1 <= 0 THEN {d.literal(classes[0])} END"
        parts = ["1e0 - p1", "p1"]
    else:
        chosen = _case([f"WHEN {s} = best THEN {d.literal(label)}" for s, label in zip(scores, classes)])
        total = " + ".join(f"e{o + 1}" for o in range(len(scores)))
        total = f"({total})" if formula.probabilities == "softmax" else f"{d.greatest}({total}, 1e-300)"
        parts = [f"e{o + 1} / {total}" for o in range(len(scores))]
    if formula.probabilities:
        found += [f"{part} AS {named('probability', str(label))}" for part, label in zip(parts, classes)]
    return [*found, f"{chosen} AS {d.name('prediction')}"]
