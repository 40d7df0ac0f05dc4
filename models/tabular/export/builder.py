"""From a fitted model to its formula."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
from sklearn.pipeline import Pipeline

from ....learners.common.additive import AdditiveModel
from ....learners.common.validation import feature_names
from ..model import TabularModel
from .features import Feature, features_of_encoding, transformed
from .formula import NUMBER, TEXT, Curve, Formula, Lookup, check_kinds


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
    if isinstance(model, TabularModel):
        kept = model
        features = (
            [feature for column in kept.encoding.columns for feature in features_of_encoding(column)] if kept.encoding else []
        )
        features = features or [Feature(name) for name in kept.columns]
    elif isinstance(model, Pipeline):
        kept = TabularModel.from_estimator(model.steps[-1][1])
        first = next(step for _, step in model.steps if step is not None and not isinstance(step, str))
        if not hasattr(first, "n_features_in_"):
            raise ValueError(f"{type(first).__name__} is not fitted: expected a fitted pipeline")
        features = [Feature(str(name)) for name in feature_names(first)]
        inputs = tuple(feature.column for feature in features)
        for _, step in model.steps[:-1]:
            features = transformed(step, features)
    else:
        kept = TabularModel.from_estimator(model)
        features = [Feature(name) for name in kept.columns]
    if not isinstance(model, Pipeline):
        inputs = tuple(dict.fromkeys(feature.column for feature in features))
    additive = _one_score_of_two(kept.additive, kept.classes)
    terms = _terms(additive, features)
    check_kinds(terms)
    classes = None if kept.classes is None else tuple(kept.classes.tolist())
    n = len(np.atleast_1d(additive.intercept))
    names = ("",) if n == 1 else tuple(str(i + 1) for i in range(n)) if classes is None else tuple(map(str, classes))
    intercept = np.atleast_1d(np.asarray(additive.intercept, float))
    return Formula(terms, intercept, inputs, kept.task, names, classes, kept.link, kept.probabilities, kept.flip)


def _one_score_of_two(additive: AdditiveModel, classes: np.ndarray | None) -> AdditiveModel:
    """Two classes with a score each have one score, the difference."""
    if classes is None or len(classes) != 2 or additive.responses.shape[2] != 2:
        return additive
    missing = additive.missing_responses
    return replace(
        additive,
        responses=np.diff(additive.responses, axis=2),
        missing_responses=None if missing is None else np.diff(missing, axis=1),
        intercept=np.diff(np.atleast_1d(additive.intercept)),
    )


def _terms(additive: AdditiveModel, features: list[Feature]) -> tuple[Curve | Lookup, ...]:
    """One curve for each number, and one table for all numbers that a category became."""
    tables: dict[tuple, list[tuple[int, Feature]]] = {}
    found: dict[tuple, Curve | Lookup] = {}
    for j, number in enumerate(additive.selected):
        feature = features[number]
        if feature.levels is None:
            found[(j,)] = _curve(additive, j, feature)
        else:
            key = (feature.column, *feature.levels)
            tables.setdefault(key, []).append((j, feature))
            found[key] = _lookup(additive, tables[key])
    return tuple(found.values())


def _curve(additive: AdditiveModel, j: int, feature: Feature) -> Curve:
    knots, table = additive.knots[j], additive.responses[j]
    if not feature.slope:
        parts = _constant(additive.responses_at(feature.offset)[j][None])
    elif not len(knots):
        parts = np.empty(0), np.zeros(1), table * feature.offset, table * feature.slope
    else:
        knots = (knots - feature.offset) / feature.slope
        inner = _between_knots(knots, table) if len(table) == len(knots) else _constant(table, knots[1:-1])
        parts = inner
    missing = additive.responses_at(feature.missing)[j]
    return Curve(feature.column, feature.kind, feature.centre, *parts, missing, feature.style)


def _constant(table: np.ndarray, knots: np.ndarray | None = None) -> tuple[np.ndarray, ...]:
    """Pieces of a constant in each bin."""
    return np.empty(0) if knots is None else knots, np.zeros(len(table)), table, np.zeros_like(table)


def _between_knots(knots: np.ndarray, table: np.ndarray) -> tuple[np.ndarray, ...]:
    """Pieces of a function that is linear between its knots and constant outside, as `numpy.interp` has it."""
    gap = np.diff(knots)
    slopes = np.diff(table, axis=0) / np.where(gap > 0, gap, 1.0)[:, None]
    last = np.append(gap > 0, True)  # of knots at one place the last one counts
    slopes = np.vstack([slopes, np.zeros((1, table.shape[1]))])[last]
    anchors, values = knots[last], table[last]
    zero = np.zeros((1, table.shape[1]))
    return anchors, np.append(anchors[:1], anchors), np.vstack([table[:1], values]), np.vstack([zero, slopes])


def _lookup(additive: AdditiveModel, members: list[tuple[int, Feature]]) -> Lookup:
    """What each level adds: the sum over the numbers that it became."""
    first = members[0][1]
    levels = tuple(first.levels or ())
    numbers = [[*(feature.levels or {}).values(), feature.other, feature.missing] for _, feature in members]
    rows = np.array([sum(additive.responses_at(v)[j] for (j, _), v in zip(members, row)) for row in zip(*numbers)])
    kind = TEXT if not levels or isinstance(levels[0], str) else NUMBER
    return Lookup(first.column, kind, levels, rows[:-2], rows[-2], rows[-1])
