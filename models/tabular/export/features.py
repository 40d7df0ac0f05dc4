"""Each number that a fitted model takes, as a function of one cell of the table: through encodings and scikit-learn's steps."""

from __future__ import annotations

import warnings
from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import singledispatch
from typing import Any

import numpy as np
from sklearn.compose import ColumnTransformer
from sklearn.feature_selection import SelectorMixin
from sklearn.impute import SimpleImputer
from sklearn.pipeline import FeatureUnion, Pipeline
from sklearn.preprocessing import (
    FunctionTransformer,
    MaxAbsScaler,
    MinMaxScaler,
    OneHotEncoder,
    OrdinalEncoder,
    RobustScaler,
    StandardScaler,
    TargetEncoder,
)

from ..encoding import CATEGORY, MISSING, NUMBER, OTHER, ColumnEncoding

NAN = float("nan")
_UNKNOWN = "\x00unknown"  # a word that no table holds


@dataclass(frozen=True)
class Feature:
    """A number that a model takes, made of one cell.

    Parameters
    ----------
    column : str
        Name in the table.
    kind : {"number", "date"}, default "number"
        Of the cell, where it has no levels.
    slope, centre, offset : float
        The number is offset + slope * (cell - centre).
    levels : dict or None, default None
        The number for each value of the cell, in place of the line.
    other : float, default NaN
        The number for any other value, where there are levels.
    missing : float or str, default NaN
        The number for an empty cell; before categories are encoded the word that takes its place.
    style : str, default ""
        See :class:`annealed.models.tabular.encoding.ColumnEncoding`.
    """

    column: str
    kind: str = NUMBER
    slope: float = 1.0
    centre: float = 0.0
    offset: float = 0.0
    levels: dict[Any, float] | None = None
    other: float = NAN
    missing: Any = NAN
    style: str = ""

    @property
    def is_cell(self) -> bool:
        """Whether it is the cell itself."""
        return self.levels is None and (self.slope, self.centre, self.offset) == (1.0, 0.0, 0.0)

    def scaled(self, centre: float, scale: float) -> Feature:
        """(number - centre) / scale."""
        moved = {name: (getattr(self, name) - centre) / scale for name in ("offset", "other", "missing")}
        if self.levels is not None:
            return replace(self, levels={level: (v - centre) / scale for level, v in self.levels.items()}, **moved)
        if self.slope:  # into the centre, where no digits are lost
            moved |= {"centre": self.centre + (centre - self.offset) / self.slope, "offset": 0.0}
        return replace(self, slope=self.slope / scale, **moved)


def features_of_encoding(column: ColumnEncoding) -> list[Feature]:
    """The numbers that a column of a table becomes."""
    import pandas as pd

    if column.kind != CATEGORY:
        return [Feature(column.name, column.kind, missing=NAN if column.fill is None else column.fill, style=column.style)]
    words = [word for word in dict.fromkeys([column.reference, *column.levels]) if word not in (OTHER, MISSING)]
    return _tables(column.name, words, column.encode(pd.Series([*words, _UNKNOWN, None], dtype=object)))


def _tables(name: str, levels: Sequence[Any], encoded: np.ndarray) -> list[Feature]:
    """Features of a column from the numbers of its levels, of an unknown value and of an empty cell, (n_levels + 2, n_numbers)."""
    found = []
    for *numbers, other, missing in encoded.T.tolist():
        found.append(Feature(name, levels=dict(zip(levels, numbers)), other=other, missing=missing))
    return found


@singledispatch
def transformed(step: Any, features: Sequence[Feature]) -> list[Feature]:
    """The features that a fitted step of a pipeline makes of others.

    Raises
    ------
    ValueError
        If the step is none that can be exported.
    """
    if step is None or (isinstance(step, str) and step == "passthrough"):
        return list(features)
    if isinstance(step, str) and step == "drop":
        return []
    if isinstance(step, SelectorMixin):
        return [feature for feature, kept in zip(features, step.get_support()) if kept]
    raise ValueError(f"{type(step).__name__} cannot be exported; expected the usual scalers, encoders, imputers and selectors")


@transformed.register
def _(step: Pipeline, features: Sequence[Feature]) -> list[Feature]:
    for _, part in step.steps:
        features = transformed(part, features)
    return list(features)


@transformed.register
def _(step: FeatureUnion, features: Sequence[Feature]) -> list[Feature]:
    return [feature for _, part in step.transformer_list for feature in transformed(part, features)]


@transformed.register
def _(step: ColumnTransformer, features: Sequence[Feature]) -> list[Feature]:
    names = [str(name) for name in getattr(step, "feature_names_in_", ())]
    found = []
    for _, part, columns in step.transformers_:
        if isinstance(columns, slice) and isinstance(columns.start or columns.stop, str):
            raise ValueError("ColumnTransformer with a slice of names cannot be exported; expected a list of names")
        chosen = columns if isinstance(columns, slice) else list(np.atleast_1d(np.asarray(columns)))
        if isinstance(chosen, list) and chosen and isinstance(chosen[0], str):
            chosen = [names.index(name) for name in chosen]
        places = np.arange(len(features))[chosen if isinstance(chosen, slice) or chosen else slice(0)]
        found += transformed(part, [features[i] for i in places])
    return found


@transformed.register
def _(step: FunctionTransformer, features: Sequence[Feature]) -> list[Feature]:
    if step.func is not None:
        raise ValueError(f"FunctionTransformer of {step.func!r} cannot be exported; expected one without a function")
    return list(features)


@transformed.register(StandardScaler)
@transformed.register(RobustScaler)
@transformed.register(MinMaxScaler)
@transformed.register(MaxAbsScaler)
def _(step: Any, features: Sequence[Feature]) -> list[Feature]:
    if getattr(step, "clip", False):
        raise ValueError(f"{type(step).__name__}(clip=True) cannot be exported; expected clip=False")
    scale, centre = step.scale_, None
    if isinstance(step, StandardScaler) and step.with_mean:
        centre = step.mean_
    elif isinstance(step, RobustScaler):
        centre = step.center_
    elif isinstance(step, MinMaxScaler):
        centre, scale = -step.min_ / step.scale_, 1.0 / step.scale_
    centre = np.zeros(len(features)) if centre is None else centre
    scale = np.ones(len(features)) if scale is None else scale
    return [feature.scaled(float(c), float(s)) for feature, c, s in zip(features, centre, scale)]


@transformed.register
def _(step: SimpleImputer, features: Sequence[Feature]) -> list[Feature]:
    if not _is_empty(step.missing_values):
        raise ValueError(f"SimpleImputer(missing_values={step.missing_values!r}) cannot be exported; expected NaN")
    found = []
    for feature, value in zip(features, step.statistics_):
        if isinstance(value, str):
            found.append(replace(feature, missing=value) if _is_empty(feature.missing) else feature)
        elif not _is_empty(value):  # a column without any value is left out
            number = float(value)
            other = number if np.isnan(feature.other) else feature.other
            found.append(replace(feature, other=other, missing=number if _is_empty(feature.missing) else feature.missing))
    if step.add_indicator:
        for i in step.indicator_.features_:
            if isinstance(step.statistics_[i], str) or not features[i].is_cell:
                raise ValueError(f"SimpleImputer(add_indicator=True) of {features[i].column!r}: expected a column of numbers")
            found.append(Feature(features[i].column, slope=0.0, missing=1.0))
    return found


@transformed.register(OneHotEncoder)
@transformed.register(OrdinalEncoder)
@transformed.register(TargetEncoder)
def _(step: Any, features: Sequence[Feature]) -> list[Feature]:
    import pandas as pd

    if bad := [feature.column for feature in features if not feature.is_cell]:
        raise ValueError(f"{type(step).__name__} of {bad[0]!r} after another encoder or scaler cannot be exported")
    names = getattr(step, "feature_names_in_", range(len(features)))
    found, start = [], 0
    for i, (feature, width) in enumerate(zip(features, _widths(step))):
        categories = step.categories_[i]
        known = [value for value in categories.tolist() if not _is_empty(value)]
        unknown = [] if getattr(step, "handle_unknown", "") == "error" else [_stranger(known)]
        empty = [value for value in categories.tolist() if _is_empty(value)]
        rows = [[c[0]] * len([*known, *unknown, *empty]) for c in step.categories_]
        rows[i] = [*known, *unknown, *empty]
        types = [c.dtype if c.dtype.kind in "iuf" else object for c in step.categories_]
        frame = pd.DataFrame({name: pd.Series(row, dtype=t) for name, row, t in zip(names, rows, types)})
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # of names that the step was not fitted with, and of the unknown value
            made = step.transform(frame)
        made = np.asarray(made.toarray() if hasattr(made, "toarray") else made, float)[:, start : start + width]
        start += width
        levels = [_level(value) for value in known]
        other = made[len(known)] if unknown else np.full(width, NAN)
        missing = made[-1] if empty else other
        if not _is_empty(feature.missing):
            missing = made[levels.index(_level(feature.missing))]
        found += _tables(feature.column, levels, np.vstack([made[: len(known)], other, missing]))
    return found


def _widths(step: Any) -> list[int]:
    """Numbers that each column becomes."""
    if isinstance(step, TargetEncoder):
        return [len(step.classes_) if step.target_type_ == "multiclass" else 1] * len(step.categories_)
    if isinstance(step, OrdinalEncoder):
        return [1] * len(step.categories_)
    rare = getattr(step, "infrequent_categories_", [None] * len(step.categories_))
    dropped = [None] * len(step.categories_) if step.drop_idx_ is None else step.drop_idx_
    return [len(c) - (0 if r is None else len(r) - 1) - (d is not None) for c, r, d in zip(step.categories_, rare, dropped)]


def _level(value: Any) -> Any:
    """A category as a cell is read: text without blanks at its ends, or a float."""
    return str(value).strip() if isinstance(value, str | bool) else float(value)


def _stranger(known: Sequence[Any]) -> Any:
    """A value that is none of these."""
    return _UNKNOWN if not known or isinstance(known[0], str | bool) else max(known) + 1


def _is_empty(value: Any) -> bool:
    import pandas as pd

    return bool(pd.isna(value))
