"""A formula as one C99 file: standard headers only, no allocation."""

from __future__ import annotations

import re

import numpy as np

from .... import __version__
from .formula import TEXT, Curve, Formula, Lookup

_CURVE = """
static void curve(double x, double centre, int n_knots, const double *knots, const double *anchors,
                  const double *values, const double *slopes, const double *missing, double *scores)
{
    int j = 0, o;
    double u = x - centre;
    if (isfinite(x)) {
        while (j < n_knots && u >= knots[j]) j++;
        for (o = 0; o < N_SCORES; o++)
            scores[o] += values[j * N_SCORES + o] + slopes[j * N_SCORES + o] * (u - anchors[j]);
    } else {
        for (o = 0; o < N_SCORES; o++) scores[o] += missing[o];
    }
}
"""
_ADD = "for (o = 0; o < N_SCORES; o++) scores[o] += rows[j * N_SCORES + o];"
_WORD = f"""
/* rows: what each level adds, then any other word, then none */
static void word(const char *x, int n_levels, const char *const *levels, const double *rows, double *scores)
{{
    int j = 0, o;
    if (x == NULL || *x == 0) j = n_levels + 1;
    else while (j < n_levels && strcmp(x, levels[j]) != 0) j++;
    {_ADD}
}}
"""
_NUMBER = f"""
/* rows: what each level adds, then any other number, then none */
static void number(double x, int n_levels, const double *levels, const double *rows, double *scores)
{{
    int j = 0, o;
    if (!isfinite(x)) j = n_levels + 1;
    else while (j < n_levels && x != levels[j]) j++;
    {_ADD}
}}
"""
_CLASS = """
/* index of the predicted class in {stem}_classes, -1 where a score is missing */
int {stem}_class(const double *scores)
{{
    int best = 0, o;
    for (o = 0; o < N_SCORES; o++) if (isnan(scores[o])) return -1;
    {rule}
    return best;
}}
"""
_ONE_SCORE = """probabilities[1] = {flip} + {rest} / (1.0 + exp(-scores[0]));
    probabilities[0] = 1.0 - probabilities[1];"""
_SEVERAL = """int o;
    double total = 0.0, best = scores[0];
    for (o = 1; o < N_SCORES; o++) if (scores[o] > best) best = scores[o];
    for (o = 0; o < N_SCORES; o++) total += probabilities[o] = {one};
    for (o = 0; o < N_SCORES; o++) probabilities[o] /= total > 1e-300 ? total : 1e-300;"""


def write_c(formula: Formula, stem: str = "model") -> bytes:
    """Return a C99 source: names of the inputs, and functions from a row to scores, class, probabilities or predictions.

    Parameters
    ----------
    formula : Formula
    stem : str, default "model"
        What the names of all functions begin with, as far as it is an identifier.

    Returns
    -------
    bytes
    """
    stem = re.sub(r"\W|^(?=\d)", "_", stem, flags=re.ASCII)
    stem = stem if stem.strip("_") else "model"
    texts, numbers = formula.of_kind(TEXT), [name for name, kind in formula.columns.items() if kind != TEXT]
    body, calls, helpers = [], [], ""
    for i, term in enumerate(formula.terms):
        helper = _CURVE if isinstance(term, Curve) else _WORD if term.kind == TEXT else _NUMBER
        helpers += helper if helper not in helpers else ""
        cell = f"texts[{texts.index(term.column)}]" if term.kind == TEXT else f"numbers[{numbers.index(term.column)}]"
        body += _data(term, i)
        calls.append(_call(term, i, cell))
    calls += [] if texts else ["(void)texts;"]
    calls += [] if numbers else ["(void)numbers;"]
    parts = [
        f"/* Written by annealed {__version__}: C99, no allocation; link with the mathematical library (-lm).\n"
        f"   numbers[i] is column {stem}_number_names[i] of a row, NAN where it is missing; a date is days since 1970-01-01.\n"
        f"   texts[i] is column {stem}_text_names[i] in UTF-8, NULL where it is missing.\n"
        f"   {stem}_scores fills N_SCORES scores, NAN where the model has none. */\n"
        f"#include <math.h>\n#include <stddef.h>\n#include <string.h>\n\nenum {{ N_SCORES = {len(formula.intercept)} }};",
        _strings(f"const char *const {stem}_number_names", numbers),
        _strings(f"const char *const {stem}_text_names", texts),
        *([_strings(f"const char *const {stem}_classes", list(map(str, formula.classes)))] if formula.classes else []),
        *body,
        helpers,
        f"void {stem}_scores(const double *numbers, const char *const *texts, double *scores)\n{{\n    "
        f"static const double start[N_SCORES] = {_numbers(formula.intercept)};\n    int i;\n    "
        "for (i = 0; i < N_SCORES; i++) scores[i] = start[i];\n    " + "\n    ".join(calls) + "\n}",
        _meaning(formula, stem),
    ]
    return ("\n".join(parts) + "\n").encode()


def _meaning(formula: Formula, stem: str) -> str:
    """The functions from scores to what they mean."""
    if formula.classes is None:
        value = "exp(scores[o])" if formula.link == "log" else "scores[o]"
        return (
            f"void {stem}_prediction(const double *scores, double *prediction)\n{{\n    int o;\n    "
            f"for (o = 0; o < N_SCORES; o++) prediction[o] = {value};\n}}"
        )
    one = len(formula.intercept) == 1
    rule = "if (scores[0] > 0.0) best = 1;" if one else "for (o = 1; o < N_SCORES; o++) if (scores[o] > scores[best]) best = o;"
    found = _CLASS.format(stem=stem, rule=rule)
    if formula.probabilities is None:
        return found
    several = "exp(scores[o] - best)" if formula.probabilities == "softmax" else "1.0 / (1.0 + exp(-scores[o]))"
    lines = _ONE_SCORE.format(flip=repr(formula.flip), rest=repr(1.0 - 2.0 * formula.flip)) if one else _SEVERAL.format(one=several)
    return f"{found}\nvoid {stem}_probabilities(const double *scores, double *probabilities)\n{{\n    {lines}\n}}"


def _data(term: Curve | Lookup, i: int) -> list[str]:
    """The tables of a term."""
    if isinstance(term, Curve):
        tables = {
            "knots": term.knots,
            "anchors": term.anchors,
            "values": term.values,
            "slopes": term.slopes,
            "missing": term.missing,
        }
        return [f"static const double {name}_{i}[] = {_numbers(table)};" for name, table in tables.items()]
    if term.kind == TEXT:
        levels = _strings(f"static const char *const levels_{i}", term.levels)
    else:
        levels = f"static const double levels_{i}[] = {_numbers(np.array(term.levels))};"
    return [levels, f"static const double rows_{i}[] = {_numbers(term.rows)};"]


def _call(term: Curve | Lookup, i: int, cell: str) -> str:
    if isinstance(term, Curve):
        tables = ", ".join(f"{name}_{i}" for name in ("knots", "anchors", "values", "slopes", "missing"))
        return f"curve({cell}, {term.centre!r}, {len(term.knots)}, {tables}, scores);"
    return f"{'word' if term.kind == TEXT else 'number'}({cell}, {len(term.levels)}, levels_{i}, rows_{i}, scores);"


def _numbers(values: np.ndarray) -> str:
    words = ["NAN" if v != v else repr(v) for v in np.ravel(values).tolist()]
    return "{" + ", ".join(words or ["0.0"]) + "}"


def _strings(name: str, words: list[str] | tuple[str, ...]) -> str:
    return f"{name}[] = {{" + ", ".join(_string(word) for word in words or [""]) + "};"


def _string(word: str) -> str:
    """A literal of the word's bytes in UTF-8; all that could mean something else in a source is written as a number."""
    if "\0" in word:
        raise ValueError(f"the name {word!r} cannot be written in C; expected no character NUL")
    plain = set(range(32, 127)) - set(b'"\\?')
    return '"' + "".join(chr(byte) if byte in plain else f"\\{byte:03o}" for byte in word.encode()) + '"'
