"""Export of a formula as a C99 file that uses only standard headers and allocates no memory."""

import re
from typing import Any

from .... import __version__
from .formula import INFIX, TEXT, Formula, Printer

_HEAD = """/* Written by annealed {version}: C99, no allocation; link with the mathematical library (-lm).

   x: the cells of the columns {stem}_numbers, NAN where missing; a date is days since 1970-01-01
   w: the cells of the columns {stem}_texts in UTF-8, NULL where missing; blanks at their ends are
      ignored
   score: filled with {n_scores} scores, NAN where the model has none
   result: filled with {n_results} {what}
   returns the index of the class in {stem}_classes, -1 without a score; 0 for a model without classes */
#include <math.h>
#include <stddef.h>
#include <string.h>

"""
_IS_WORD = """
static int is_word(const char *cell, const char *word)
{
    size_t n;
    if (cell == NULL) return *word == 0;
    cell += strspn(cell, " \\t\\n\\v\\f\\r");
    for (n = strlen(cell); n > 0 && strchr(" \\t\\n\\v\\f\\r", cell[n - 1]); n--) {}
    return strlen(word) == n && strncmp(cell, word, n) == 0;
}
"""


def write_c(formula: Formula, stem: str = "model") -> bytes:
    """Return C99 source code with the names of the inputs and a function that evaluates the model.

    The function computes scores, a class, and probabilities or predictions from a row.

    Parameters
    ----------
    formula : Formula
        Formula of the model.
    stem : str, default "model"
        Prefix of the names in the source code. It is converted to a valid identifier.

    Returns
    -------
    bytes
    """
    stem = re.sub(r"\W|^(?=\d)", "_", stem, flags=re.ASCII)
    texts = [name for name, kind in formula.columns.items() if kind == TEXT]
    numbers = [name for name in formula.columns if name not in texts]
    cells = {
        name: f"{array}[{i}]"
        for array, columns in (("x", numbers), ("w", texts))
        for i, name in enumerate(columns)
    }
    show = Printer(_SYMBOLS, _literal, cells, formula.columns)
    lines = ["(void)x; (void)w; (void)result;"]
    lines += [
        f"const double {name} = {show(e)};" for stage in formula.stages for name, e in stage.items()
    ]
    what = "prediction" if formula.classes is None else "probability"
    results = [show(e) for kind, _, e in formula.results if kind == what]
    scores = [show(e) for kind, _, e in formula.results if kind == "score"]
    lines += [f"score[{o}] = {e};" for o, e in enumerate(scores)] + [
        f"result[{o}] = {e};" for o, e in enumerate(results)
    ]
    lines.append(
        "return 0;" if formula.classes is None else f"return {show(formula.results[-1][2])};"
    )
    words = what[:-1] + "ies" if what.endswith("y") else what + "s"
    head = _HEAD.format(
        version=__version__, stem=stem, n_scores=len(scores), n_results=len(results), what=words
    )
    named = {"numbers": numbers, "texts": texts, "classes": map(str, formula.classes or ())}
    head += "".join(
        f"const char *const {stem}_{name}[] = {{{', '.join(map(_string, levels)) or 'NULL'}}};\n"
        for name, levels in named.items()
    )
    head += _IS_WORD if texts else ""
    arguments = "const double *x, const char *const *w, double *score, double *result"
    body = "".join(f"    {line}\n" for line in lines)
    return f"{head}\nint {stem}_predict({arguments})\n{{\n{body}}}\n".encode()


_SYMBOLS = INFIX | {
    "max": "fmax({}, {})".format,
    "exp": "exp({})".format,
    "log": "log({})".format,
    "if": "({} ? {}\n        : {})".format,
    "is": "{} == {}".format,
    "is text": "is_word({}, {})".format,
    **dict.fromkeys(("empty", "empty date"), "!isfinite({})".format),
    "empty text": 'is_word({}, "")'.format,
    "none": "isnan({})".format,
    "label": str,
}


def _literal(value: Any) -> str:
    if isinstance(value, str):
        return _string(value)
    return "NAN" if value != value else f"({value!r})" if value < 0 else repr(value)


def _string(word: str) -> str:
    """Return a word as a C string literal in UTF-8, with special characters as numeric escapes."""
    if "\0" in word:
        raise ValueError(f"the name {word!r} contains a NUL character, so it cannot be a C string")
    plain = set(range(32, 127)) - set(b'"\\?')
    return (
        '"'
        + "".join(chr(byte) if byte in plain else f"\\{byte:03o}" for byte in word.encode())
        + '"'
    )
