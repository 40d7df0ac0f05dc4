"""From a fitted model to its formula."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np

from ....learners.common.additive import AdditiveModel
from ....learners.common.validation import feature_names
from ..model import TabularModel
from .features import Feature, cell, features_of_encoding, transformed
from .formula import NUMBER, TEXT, Expression, Formula

_MAX_EXPONENT = 700.0  # of exp: beyond it some databases stop with an error; a probability is 0 or 1 there


def formula_of(model: Any) -> Formula:
    """Return the formula of a model.

    Parameters
    ----------
    model : TabularModel, fitted estimator or fitted Pipeline
        An estimator is linear or a sum of responses of single columns; a pipeline ends in one.

    Returns
    -------
    Formula

    Raises
    ------
    ValueError
        If it is something else, is not fitted, or has a step that cannot be exported.
    """
    steps = getattr(model, "steps", [("", model)])
    kept = model if isinstance(model, TabularModel) else TabularModel.from_estimator(steps[-1][1])
    fitted = next((step for _, step in steps if hasattr(step, "n_features_in_")), None)
    features = [cell(str(name)) for name in (kept.columns if fitted is None else feature_names(fitted))]
    inputs = tuple(feature.column for feature in features)
    for _, step in steps[:-1]:
        features = transformed(step, features)
    additive = kept.additive
    if kept.encoding is not None:
        features, inputs = _of_table(kept), ()
    if kept.classes is not None and len(kept.classes) == 2 and additive.responses.shape[2] == 2:  # one score: the difference
        parts = ("responses", "missing_responses", "intercept")
        additive = replace(additive, **{name: _difference(getattr(additive, name)) for name in parts})
    terms = _terms(additive, features)
    used = {feature.column: feature for feature in (features[number] for number in additive.selected)}
    kinds = {name: _kind(feature) for name, feature in used.items()}
    for number in additive.selected:
        if _kind(features[number]) != kinds[features[number].column]:
            raise ValueError(f"column {features[number].column!r} is read as text and as numbers: cannot be exported")
    classes = None if kept.classes is None else tuple(kept.classes.tolist())
    intercept = tuple(np.atleast_1d(np.asarray(additive.intercept, float)).tolist())
    n = len(intercept)
    outputs = ("",) if n == 1 else tuple(str(i + 1) for i in range(n)) if classes is None else tuple(map(str, classes))
    names = [[f"a{i + 1}_{o + 1}" for i in range(len(terms))] for o in range(n)]
    added = {name: adds[o] for o in range(n) for name, (_, adds) in zip(names[o], terms)}
    scores = {f"s{o + 1}": ("+", intercept[o], *names[o]) for o in range(n)}
    more, results = _meaning(kept, list(scores), outputs)
    styles = {name: feature.style for name, feature in used.items()}
    return Formula(kinds, styles, inputs, outputs, classes, intercept, terms, [added, scores, *more], results)


def _of_table(kept: TabularModel) -> list[Feature]:
    """Features of a model of a table; dates count from the first knot, or from what takes the place of missing ones."""
    additive, found = kept.additive, []
    knots = {int(j): own[0] for j, own in zip(additive.selected, additive.knots) if len(own)}
    for column in kept.encoding.columns if kept.encoding else ():
        found += features_of_encoding(column, knots.get(len(found), column.fill or 0.0))
    return found


def _difference(values: Any) -> Any:
    return None if values is None else np.diff(values, axis=-1)


def _kind(feature: Feature) -> str:
    if feature.levels is None:
        return feature.kind
    return TEXT if all(isinstance(level, str) for level in feature.levels) else NUMBER


def _terms(additive: AdditiveModel, features: list[Feature]) -> tuple[tuple[str, tuple[Expression, ...]], ...]:
    """One term for each number, and one for all numbers that a category became."""
    tables: dict[tuple, list[tuple[int, Feature]]] = {}
    found: dict[tuple, tuple[str, tuple[Expression, ...]]] = {}
    for j, number in enumerate(additive.selected):
        feature = features[number]
        key = (j,) if feature.levels is None else (feature.column, *feature.levels)
        members = tables.setdefault(key, [])
        members.append((j, feature))
        make = _curve if feature.levels is None else _lookup
        found[key] = feature.column, tuple(make(additive, members, o) for o in range(additive.responses.shape[2]))
    return tuple(found.values())


def _lookup(additive: AdditiveModel, members: list[tuple[int, Feature]], o: int) -> Expression:
    """What each level adds: the sum over the numbers that it became."""
    first = members[0][1]
    numbers = zip(*([*(feature.levels or {}).values(), feature.other, feature.missing] for _, feature in members))
    *values, other, missing = [float(sum(additive.responses_at(v)[j, o] for (j, _), v in zip(members, row))) for row in numbers]
    found: Expression = other
    for level, value in zip(reversed(first.levels or {}), reversed(values)):
        found = ("if", ("is", first.column, level), value, found)
    return ("if", ("empty", first.column), missing, found)


def _curve(additive: AdditiveModel, members: list[tuple[int, Feature]], o: int) -> Expression:
    """What a number adds."""
    ((j, feature),) = members
    x, knots, table = feature.value, additive.knots[j] - feature.offset, additive.responses[j, :, o]
    if not len(knots):
        line = ("*", float(table[0]), x)
        found = ("+", float(table[0] * feature.offset), line) if feature.offset else line
    elif len(table) < len(knots):
        found = _pieces(x, knots[1:-1], table.tolist())
    else:  # as numpy.interp: of knots at one place the last one counts
        gaps = np.diff(knots)
        slopes = np.append(np.diff(table) / np.where(gaps > 0, gaps, 1.0), 0.0)
        last = np.flatnonzero(np.append(gaps > 0, True))
        lines = [("+", float(table[i]), ("*", float(slopes[i]), ("-", x, float(knots[i])))) for i in last[:-1]]
        found = _pieces(x, knots[last], [float(table[0]), *lines, float(table[-1])])
    return ("if", ("empty", feature.column), float(additive.responses_at(feature.missing)[j, o]), found)


def _pieces(x: Expression, knots: np.ndarray, pieces: list[Expression]) -> Expression:
    """One of the pieces, by a tree of comparisons: 126 bins are seven deep."""
    if len(pieces) == 1:
        return pieces[0]
    middle = (len(pieces) - 1) // 2
    low, high = _pieces(x, knots[:middle], pieces[: middle + 1]), _pieces(x, knots[middle + 1 :], pieces[middle + 1 :])
    return ("if", ("<", x, float(knots[middle])), low, high)


def _meaning(kept: TabularModel, scores: list[str], outputs: tuple[str, ...]) -> tuple[list[dict], list[tuple]]:
    """Further stages, and the results."""
    results: list[tuple] = [("score", output, s) for s, output in zip(scores, outputs)]
    if kept.classes is None:
        values = [_exp(s) if kept.link == "log" else s for s in scores]
        return [], results + [("prediction", output, v) for output, v in zip(outputs, values)]
    if len(scores) == 1:
        p = _logistic("s1")
        stages: list[dict] = [{"p": ("+", kept.flip, ("*", 1.0 - 2.0 * kept.flip, p)) if kept.flip else p}]
        chances: list[Expression] = [("-", 1.0, "p"), "p"]
        label: Expression = ("if", ("<", 0.0, "s1"), ("label", 1), ("label", 0))
    else:
        best: Expression = scores[-1]
        label = ("label", len(scores) - 1)
        for o in range(len(scores) - 2, -1, -1):
            best, label = ("max", scores[o], best), ("if", ("<", scores[o], "best"), label, ("label", o))
        softmax = kept.probabilities == "softmax"
        odds = {f"e{o + 1}": _exp(("-", s, "best")) if softmax else _logistic(s) for o, s in enumerate(scores)}
        stages = [{"best": best}, odds, {"total": ("max", ("+", *odds), 1e-300)}]
        chances = [("/", e, "total") for e in odds]
    if kept.probabilities is None:
        stages, chances = [stage for stage in stages if "best" in stage], []
    results += [("probability", str(name), e) for name, e in zip(kept.classes, chances)]
    return stages, [*results, ("prediction", "", ("if", ("none", "s1"), ("label", -1), label))]


def _exp(x: Expression) -> Expression:
    most = ("exp", _MAX_EXPONENT)
    return ("if", ("<", x, -_MAX_EXPONENT), 0.0, ("if", ("<", _MAX_EXPONENT, x), most, ("exp", x)))


def _logistic(s: str) -> Expression:
    odds = ("exp", ("-", 0.0, s))
    return ("if", ("<", s, -_MAX_EXPONENT), 0.0, ("if", ("<", _MAX_EXPONENT, s), 1.0, ("/", 1.0, ("+", 1.0, odds))))
