"""Conversion of a fitted model to a formula."""

from collections.abc import Callable
from dataclasses import replace
from functools import cache
from typing import Any

import numpy as np

from ....learners.common import AdditiveModel, feature_names
from ..encoding import NUMBER
from ..model import TabularModel
from .features import Feature, features_of_encoding, transformed
from .formula import Expression, Formula

# limit of exp arguments, beyond which some databases fail and a probability is 0 or 1
_MAX_EXPONENT = 700.0


def formula_of(model: Any) -> Formula:
    """Convert a model to a formula.

    Parameters
    ----------
    model : TabularModel, fitted estimator or fitted Pipeline
        Linear model, sum of responses to single columns, or pipeline that ends in such an
        estimator.

    Returns
    -------
    Formula

    Raises
    ------
    ValueError
        If the model is of an unsupported type, is not fitted, or has a step that cannot be
        exported.
    """
    steps = getattr(model, "steps", [("", model)])
    kept = model if isinstance(model, TabularModel) else TabularModel.from_estimator(steps[-1][1])
    fitted = next((step for _, step in steps if hasattr(step, "n_features_in_")), None)
    features = [
        Feature(str(name)) for name in (kept.columns if fitted is None else feature_names(fitted))
    ]
    inputs = tuple(feature.column for feature in features)
    for _, step in steps[:-1]:
        features = transformed(step, features)
    if kept.encoding is not None:
        inputs = ()
        features = [
            feature for column in kept.encoding.columns for feature in features_of_encoding(column)
        ]
    additive = kept.additive
    # a single score, the difference
    if kept.classes is not None and len(kept.classes) == 2 and additive.responses.shape[2] == 2:
        missing = (
            None if additive.missing_responses is None else np.diff(additive.missing_responses)
        )
        responses, start = np.diff(additive.responses), np.diff(additive.intercept)
        additive = replace(
            additive, responses=responses, missing_responses=missing, intercept=start
        )
    terms = _terms(additive, features)
    used = [features[number] for number in additive.selected]
    kinds = {feature.column: feature.cell_kind for feature in used}
    styles = {feature.column: feature.style for feature in used}
    if mixed := [feature.column for feature in used if feature.cell_kind != kinds[feature.column]]:
        raise ValueError(
            f"column {mixed[0]!r} is read both as text and as numbers, so the model cannot be "
            "exported"
        )
    if kept.offset is not None:
        name, link = kept.offset
        cell, nan = ("cell", name, 0.0), float("nan")
        value = ("if", ("<", 0.0, cell), ("log", cell), nan) if link == "log" else cell
        kinds[name], styles[name] = NUMBER, ""
        terms += ((name, (("if", ("empty", name), nan, value),) * additive.responses.shape[2]),)
    intercept = tuple(np.atleast_1d(np.asarray(additive.intercept, float)).tolist())
    n, classes = len(intercept), None if kept.classes is None else tuple(kept.classes.tolist())
    outputs = ("",) if n == 1 else tuple(map(str, classes or range(1, n + 1)))
    names = [[f"a{i + 1}_{o + 1}" for i in range(len(terms))] for o in range(n)]
    added = {name: adds[o] for o in range(n) for name, (_, adds) in zip(names[o], terms)}
    scores = {f"s{o + 1}": ("+", intercept[o], *names[o]) for o in range(n)}
    more, results = _meaning(kept, list(scores), outputs)
    return Formula(
        columns=kinds,
        styles=styles,
        inputs=inputs,
        outputs=outputs,
        classes=classes,
        intercept=intercept,
        terms=terms,
        stages=[added, scores, *more],
        results=results,
    )


def _terms(
    additive: AdditiveModel, features: list[Feature]
) -> tuple[tuple[str, tuple[Expression, ...]], ...]:
    """Return one term for each numeric column, and one for all columns of each category."""
    groups: dict[tuple, list[tuple[int, Feature]]] = {}
    for j, number in enumerate(additive.selected):
        feature = features[number]
        groups.setdefault(
            (j,) if feature.levels is None else (feature.column, *feature.levels), []
        ).append((j, feature))
    outputs, at = range(additive.responses.shape[2]), cache(additive.responses_at)
    return tuple(
        (members[0][1].column, tuple(_term(additive, at, members, o) for o in outputs))
        for members in groups.values()
    )


def _term(
    additive: AdditiveModel,
    at: Callable[[float], np.ndarray],
    members: list[tuple[int, Feature]],
    o: int,
) -> Expression:
    """Return the contribution of a cell to a score: a curve for a number, or a sum for each
    level."""
    j, first = members[0]
    if first.levels is None:
        expression, missing = _curve(additive, j, first, o), float(at(first.missing)[j, o])
    else:
        numbers = zip(
            *(
                [*(feature.levels or {}).values(), feature.other, feature.missing]
                for _, feature in members
            )
        )
        *values, expression, missing = [
            float(sum(at(v)[j, o] for (j, _), v in zip(members, row))) for row in numbers
        ]
        for level, value in zip(reversed(first.levels), reversed(values)):
            expression = ("if", ("is", first.column, level), value, expression)
    return ("if", ("empty", first.column), missing, expression)


def _curve(additive: AdditiveModel, j: int, feature: Feature, o: int) -> Expression:
    """Return the contribution of a number to a score."""
    x, knots, table = feature.value, additive.knots[j] - feature.offset, additive.responses[j, :, o]
    if not len(knots):
        line = ("*", float(table[0]), x)
        return ("+", float(table[0] * feature.offset), line) if feature.offset else line
    if len(table) < len(knots):
        return _pieces(x, knots[1:-1], table.tolist())
    gaps = np.diff(knots)  # as in numpy.interp, the last of several coinciding knots counts
    slopes = np.append(np.diff(table) / np.where(gaps > 0, gaps, 1.0), 0.0)
    last = np.flatnonzero(np.append(gaps > 0, True))
    lines = [
        ("+", float(table[i]), ("*", float(slopes[i]), ("-", x, float(knots[i]))))
        for i in last[:-1]
    ]
    return _pieces(x, knots[last], [float(table[0]), *lines, float(table[-1])])


def _pieces(x: Expression, knots: np.ndarray, pieces: list[Expression]) -> Expression:
    """Select one of the pieces by a tree of comparisons, which has depth 7 for 126 bins."""
    if len(pieces) == 1:
        return pieces[0]
    middle = (len(pieces) - 1) // 2
    low, high = (
        _pieces(x, knots[:middle], pieces[: middle + 1]),
        _pieces(x, knots[middle + 1 :], pieces[middle + 1 :]),
    )
    return ("if", ("<", x, float(knots[middle])), low, high)


def _meaning(
    kept: TabularModel, scores: list[str], outputs: tuple[str, ...]
) -> tuple[list[dict], list[tuple]]:
    """Return the remaining stages and the results of the formula."""
    results: list[tuple] = [("score", output, s) for s, output in zip(scores, outputs)]
    if kept.classes is None:
        values = [_exp(s) if kept.link == "log" else s for s in scores]
        return [], results + [("prediction", output, v) for output, v in zip(outputs, values)]
    if len(scores) == 1:
        p = _logistic(_sloped(kept, "s1"))
        stages: list[dict] = [
            {"p": ("+", kept.flip, ("*", 1.0 - 2.0 * kept.flip, p)) if kept.flip else p}
        ]
        chances: list[Expression] = [("-", 1.0, "p"), "p"]
        label: Expression = ("if", ("<", 0.0, "s1"), ("label", 1), ("label", 0))
    else:
        best: Expression = scores[-1]
        label = ("label", len(scores) - 1)
        for o in range(len(scores) - 2, -1, -1):
            best, label = (
                ("max", scores[o], best),
                ("if", ("<", scores[o], "best"), label, ("label", o)),
            )
        softmax = kept.probabilities == "softmax"
        odds = {
            f"e{o + 1}": _exp(_sloped(kept, ("-", s, "best"))) if softmax else _logistic(s)
            for o, s in enumerate(scores)
        }
        stages = [{"best": best}, odds, {"total": ("max", ("+", *odds), 1e-300)}]
        chances = [("/", e, "total") for e in odds]
    if kept.probabilities is None:
        stages, chances = [stage for stage in stages if "best" in stage], []
    results += [("probability", str(name), e) for name, e in zip(kept.classes, chances)]
    return stages, [*results, ("prediction", "", ("if", ("none", "s1"), ("label", -1), label))]


def _sloped(kept: TabularModel, x: Expression) -> Expression:
    return x if kept.slope == 1.0 else ("*", kept.slope, x)


def _exp(x: Expression) -> Expression:
    most = ("exp", _MAX_EXPONENT)
    return ("if", ("<", x, -_MAX_EXPONENT), 0.0, ("if", ("<", _MAX_EXPONENT, x), most, ("exp", x)))


def _logistic(s: Expression) -> Expression:
    odds = ("exp", ("-", 0.0, s))
    return (
        "if",
        ("<", s, -_MAX_EXPONENT),
        0.0,
        ("if", ("<", _MAX_EXPONENT, s), 1.0, ("/", 1.0, ("+", 1.0, odds))),
    )
