"""A formula as a score sheet: cells to fill in, and formulas beside them that say what each adds."""

from __future__ import annotations

import csv
import io
from collections.abc import Sequence

from .formula import DATE, TEXT, Curve, Formula, Lookup

_MAX_FORMULA, _MAX_TEXT, _MAX_CLASSES = 8192, 255, 254  # limits of the common programs
_DAY_0 = 25569  # 1970-01-01 in a spreadsheet


def write_csv(formula: Formula) -> bytes:
    """Return the score sheet as text: a line of names, and a line of empty cells and formulas.

    See :func:`cells` for errors.
    """
    names, line = cells(formula)
    out = io.StringIO()
    safe = [f"={_text(name)}" if name.startswith(tuple("=+-@\t\r")) else name for name in names]  # or they would be formulas
    csv.writer(out, lineterminator="\n").writerows([safe, line])
    return out.getvalue().encode()


def write_xlsx(formula: Formula) -> bytes:
    """Return the score sheet as a workbook.

    See :func:`cells` for errors.

    Raises
    ------
    ModuleNotFoundError
        Without the package openpyxl.
    ValueError
        If a name holds characters that a workbook cannot.
    """
    try:
        from openpyxl import Workbook
        from openpyxl.styles import Font
        from openpyxl.utils.exceptions import IllegalCharacterError
    except ModuleNotFoundError as error:
        raise ModuleNotFoundError("export to .xlsx needs openpyxl: pip install 'annealed[export]'", name=error.name) from None
    book = Workbook()
    sheet = book.active
    names, line = cells(formula)
    try:
        for j, (name, value) in enumerate(zip(names, line), 1):
            head = sheet.cell(1, j, name)
            head.data_type, head.font = "s", Font(bold=True)  # a name that begins with = is no formula
            sheet.cell(2, j, value or None)
    except IllegalCharacterError:
        raise ValueError(f"the name {name!r} holds characters that a workbook cannot") from None
    sheet.freeze_panes = "A2"
    out = io.BytesIO()
    book.save(out)
    return out.getvalue()


def cells(formula: Formula) -> tuple[list[str], list[str]]:
    """Return the names of the columns, and one row: empty cells for the model's columns, then formulas.

    Raises
    ------
    ValueError
        If a formula would be longer than spreadsheets allow.
    """
    names, line = list(formula.columns), [""] * len(formula.columns)
    place = {name: f"{_letters(i)}2" for i, name in enumerate(names)}
    n = len(formula.intercept)
    adding: list[list[str]] = [[] for _ in range(n)]
    for term in formula.terms:
        for o, output in enumerate(formula.outputs):
            adding[o].append(f"{_letters(len(line))}2")
            names.append(f"{term.column} adds" + (f" to {output}" if output else ""))
            line.append("=" + _term(term, place[term.column], o))
    first = len(line)
    for o, output in enumerate(formula.outputs):
        names.append(f"score {output}".strip())
        line.append("=" + "+".join([_number(formula.intercept[o]), *adding[o]]))
    scores = [f"{_letters(first + o)}2" for o in range(n)]
    for name, meaning in _meaning(formula, scores):
        names.append(name)
        line.append("=" + meaning)
    longest = max(range(len(line)), key=lambda j: len(line[j]))
    if len(line[longest]) > _MAX_FORMULA:
        raise ValueError(f"{names[longest]!r} needs a formula of {len(line[longest])} characters; expected at most {_MAX_FORMULA}")
    return names, line


def _term(term: Curve | Lookup, cell: str, o: int) -> str:
    if isinstance(term, Lookup):
        is_level = [f"EXACT({cell},{_text(v)})" if term.kind == TEXT else f"{cell}={_number(v)}" for v in term.levels]
        other = term.other[o]
        base = 0.0 if other != other else other
        total = "+".join([_number(base), *(f"({test})*({_number(v - base)})" for test, v in zip(is_level, term.values[:, o]))])
        if other != other:
            total = f"IF(({'+'.join(f'({test})' for test in is_level)})>0,{total},NA())"
        return f'IF({cell}="",{_number(term.missing[o])},{total})'
    u = f"({cell}-{_number(term.centre + (_DAY_0 if term.kind == DATE else 0.0))})"

    def pieces(low: int, high: int) -> str:  # a tree: programs allow 64 levels of IF
        if low == high:
            return f"{_number(term.values[low, o])}+{_number(term.slopes[low, o])}*({u}-{_number(term.anchors[low])})"
        middle = (low + high) // 2
        return f"IF({u}<{_number(term.knots[middle])},{pieces(low, middle)},{pieces(middle + 1, high)})"

    return f"IF(ISNUMBER({cell}),{pieces(0, len(term.knots))},{_number(term.missing[o])})"


def _meaning(formula: Formula, scores: Sequence[str]) -> list[tuple[str, str]]:
    """Names and formulas of probabilities and predictions."""
    classes, s = formula.classes, scores[0]
    if classes is None:
        value = "EXP({})" if formula.link == "log" else "{}"
        return [(f"prediction {output}".strip(), value.format(score)) for score, output in zip(scores, formula.outputs)]
    if len(classes) > _MAX_CLASSES:
        raise ValueError(f"{len(classes)} classes: a score sheet has at most {_MAX_CLASSES}")
    labels, everything = [_label(label) for label in classes], f"{scores[0]}:{scores[-1]}"
    logistic = "1/(1+EXP(-MAX(-700,{})))"
    if len(scores) == 1:
        p = f"{_number(formula.flip)}+{_number(1.0 - 2.0 * formula.flip)}*{logistic.format(s)}"
        parts, chosen = [f"1-({p})", p], f"IF({s}>0,{labels[1]},{labels[0]})"
    else:
        if formula.probabilities == "softmax":
            each = [f"EXP({score}-MAX({everything}))" for score in scores]
        else:
            each = [logistic.format(score) for score in scores]
        parts = [f"{one}/({'+'.join(each)})" for one in each]
        chosen = f"CHOOSE(MATCH(MAX({everything}),{everything},0),{','.join(labels)})"
    found = [(f"probability of {label}", part) for label, part in zip(classes, parts)] if formula.probabilities else []
    return [*found, ("prediction", chosen)]


def _label(value: object) -> str:
    return str(value).upper() + "()" if isinstance(value, bool) else _text(value) if isinstance(value, str) else _number(value)


def _number(value: object) -> str:
    number = float(value)  # type: ignore[arg-type]
    return "NA()" if number != number else f"({number!r})" if number < 0 else repr(number)


def _text(value: object) -> str:
    word = str(value)
    if len(word) > _MAX_TEXT:
        raise ValueError(f"{word[:30]!r}...: a text of {len(word)} characters; a formula holds at most {_MAX_TEXT}")
    return '"' + word.replace('"', '""') + '"'


def _letters(i: int) -> str:
    """Name of the i-th column: A, B, ..., Z, AA, ..."""
    return (_letters(i // 26 - 1) if i >= 26 else "") + chr(65 + i % 26)
