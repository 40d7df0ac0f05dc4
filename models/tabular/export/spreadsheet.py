"""Export of a formula as a score sheet, with input cells and formulas for their contributions."""

import csv
import io
from typing import Any

from ...messages import naming_extra
from .formula import INFIX, NUMBER, Formula, Printer

_MAX_FORMULA, _MAX_TEXT, _MAX_LEVELS = 8192, 255, 60  # limits of common spreadsheet programs
_DAY_0 = 25569  # 1970-01-01 in a spreadsheet
_NAMES = {"score": "score", "probability": "probability of", "prediction": "prediction"}


def write_csv(formula: Formula) -> bytes:
    """Return the score sheet as CSV text.

    The first line contains names. The second line contains empty cells for the inputs, followed by
    formulas. The function raises the same errors as :func:`cells`.
    """
    names, line = cells(formula)
    out = io.StringIO()
    # otherwise, the names would be formulas
    safe = [f"={_literal(name)}" if name.startswith(tuple("=+-@\t\r")) else name for name in names]
    csv.writer(out, lineterminator="\n").writerows([safe, line])
    return out.getvalue().encode()


def write_xlsx(formula: Formula) -> bytes:
    """Return the score sheet as a workbook.

    The function also raises the errors of :func:`cells`.

    Raises
    ------
    ModuleNotFoundError
        If the package openpyxl is not installed.
    ValueError
        If a name contains characters that are not allowed in a workbook.
    """
    with naming_extra("export to .xlsx requires the package openpyxl", "export"):
        from openpyxl import Workbook
        from openpyxl.utils.exceptions import IllegalCharacterError
    book = Workbook()
    for j, (name, value) in enumerate(zip(*cells(formula)), 1):
        try:
            # a string, so that names that begin with = do not become formulas
            book.active.cell(1, j, name).data_type = "s"
            book.active.cell(2, j, value or None)
        except IllegalCharacterError:
            raise ValueError(
                f"the name {name!r} contains characters that a workbook does not allow"
            ) from None
    book.active.freeze_panes = "A2"
    out = io.BytesIO()
    book.save(out)
    return out.getvalue()


def cells(formula: Formula) -> tuple[list[str], list[str]]:
    """Return a row of names, and a row with empty cells for the inputs, followed by formulas.

    Raises
    ------
    ValueError
        If a formula would exceed the length or nesting depth that spreadsheets allow.
    """
    names, line = list(formula.columns), [""] * len(formula.columns)
    place = {name: f"{_letters(i)}2" for i, name in enumerate(names)}
    # adding 0 converts a truth value to a number in every program
    place = {
        name: f"({cell}+0)" if formula.columns[name] == NUMBER else cell
        for name, cell in place.items()
    }
    labels = tuple(map(_literal, formula.classes or ()))
    symbols = _SYMBOLS | {"label": lambda i: "NA()" if i < 0 else labels[i]}
    show = Printer(symbols, _literal, place, formula.columns)

    adding = [
        f"{column} adds" + f" to {output}" * bool(output)
        for output in formula.outputs
        for column, _ in formula.terms
    ]
    titles = dict(zip(formula.stages[0], adding))
    titles |= {
        e: f"{_NAMES[what]} {of}".strip() for what, of, e in formula.results if isinstance(e, str)
    }
    steps = [
        (name, titles.get(name, f"({name})"), e)
        for stage in formula.stages
        for name, e in stage.items()
    ]
    steps += [
        ("", f"{_NAMES[what]} {of}".strip(), e)
        for what, of, e in formula.results
        if not isinstance(e, str)
    ]
    for name, title, e in steps:
        text = f"={show(e)}"
        if (
            len(text) > _MAX_FORMULA
            or text.count("EXACT(") > _MAX_LEVELS
            or len(labels) > _MAX_LEVELS
        ):
            raise ValueError(
                f"{title!r} is too long for a workbook cell; expected at most "
                f"{_MAX_FORMULA} characters, and at most {_MAX_LEVELS} levels and classes"
            )
        show.names[name] = f"{_letters(len(line))}2"
        names.append(title)
        line.append(text)
    return names, line


def _is_empty(number: str) -> str:
    cell = number.removeprefix("(").removesuffix("+0)")
    return f"NOT(OR(ISNUMBER({cell}),ISLOGICAL({cell})))"


def _is_text(cell: str, level: str) -> str:
    # programs convert these words to truth values
    truth = {'"True"': cell, '"False"': f"NOT({cell})"}.get(level)
    return (
        f"EXACT({cell},{level})"
        if truth is None
        else f"IF(ISLOGICAL({cell}),{truth},EXACT({cell},{level}))"
    )


_SYMBOLS = INFIX | {
    "max": "MAX({},{})".format,
    "exp": "EXP({})".format,
    "log": "LN({})".format,
    "if": "IF({},{},{})".format,
    "cell date": f"({{}}-{_DAY_0}-{{}})".format,
    "is": "{}={}".format,
    "is text": _is_text,
    "empty": _is_empty,
    "empty date": "NOT(ISNUMBER({}))".format,
    "empty text": '{}=""'.format,
    "none": "ISNA({})".format,
}


def _literal(value: Any) -> str:
    if isinstance(value, bool):
        return f"{value}()".upper()
    if not isinstance(value, str):
        return "NA()" if value != value else f"({value!r})" if value < 0 else repr(value)
    if len(value) > _MAX_TEXT:
        raise ValueError(
            f"{value[:30]!r}... has {len(value)} characters; a formula allows at most {_MAX_TEXT}"
        )
    return '"' + value.replace('"', '""') + '"'


def _letters(i: int) -> str:
    """Return the name of the i-th column: A, B, ..., Z, AA, ..."""
    return (_letters(i // 26 - 1) if i >= 26 else "") + chr(65 + i % 26)
