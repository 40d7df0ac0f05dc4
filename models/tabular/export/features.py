"""Inputs of a fitted model as functions of a table cell.

They are derived from the encodings and from the steps of scikit-learn pipelines.
"""

import warnings
from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import reduce
from operator import add, mul, sub, truediv
from typing import Any

import numpy as np
import pandas as pd

from ..encoding import CATEGORY, DATE, LOGARITHM, MISSING, NUMBER, OTHER, RANK, ColumnEncoding
from .formula import TEXT, Expression

NAN = float("nan")
_DAY = 18262.0  # 2020-01-01
_UNKNOWN = "\x00unknown"  # a word that does not occur in any table
_ACTIONS = {"-": sub, "/": truediv, "*": mul, "+": add}
# Operations of a scaler: operation, fitted attribute, and parameter that enables the operation.
_SCALERS = {
    "StandardScaler": (("-", "mean_", "with_mean"), ("/", "scale_", "with_std")),
    "RobustScaler": (("-", "center_", "with_centering"), ("/", "scale_", "with_scaling")),
    "MinMaxScaler": (("*", "scale_", ""), ("+", "min_", "")),
    "MaxAbsScaler": (("/", "scale_", ""),),
}


@dataclass(frozen=True)
class Feature:
    """Numeric input of a model, computed from a single cell.

    Parameters
    ----------
    column : str
        Name of the column in the table.
    kind : {"number", "date"}, default "number"
    style : str, default ""
        See :class:`annealed.models.tabular.encoding.ColumnEncoding`.
    offset : float, default 0.0
        Number that is subtracted from dates, in days, to reduce the number of digits.
    value : Expression, optional
        Expression that is applied to a number, or to a date minus ``offset``; by default, the value
        itself.
    levels : dict or None, default None
        Value of the input for each level of a category.
    other : float, default NaN
        Value of the input for any other level.
    missing : float or str, default NaN
        Value of the input for an empty cell, or the text that replaces an empty cell before
        categories are encoded.
    """

    column: str
    kind: str = NUMBER
    style: str = ""
    offset: float = 0.0
    value: Expression = None
    levels: dict[Any, float] | None = None
    other: float = NAN
    missing: Any = NAN

    def __post_init__(self) -> None:
        if self.value is None:
            object.__setattr__(self, "value", ("cell", self.column, self.offset))

    @property
    def cell_kind(self) -> str:
        """Type to which the cell is converted."""
        return (
            TEXT
            if self.levels is not None and all(isinstance(level, str) for level in self.levels)
            else self.kind
        )

    def then(self, op: str, number: float) -> "Feature":
        """Return the feature with an additional operation."""
        act = _ACTIONS[op]
        return replace(
            self,
            value=(op, self.value, number),
            other=act(self.other, number),
            missing=act(self.missing, number),
            levels=self.levels
            and {level: act(value, number) for level, value in self.levels.items()},
        )


def features_of_encoding(column: ColumnEncoding) -> list[Feature]:
    """Return the model inputs computed from a table column."""
    if column.kind not in (CATEGORY, RANK):
        offset, missing = (
            _DAY if column.kind == DATE else 0.0,
            NAN if column.fill is None else column.fill,
        )
        cell = ("cell", column.name, offset)
        value = (
            ("if", ("<", 0.0, cell), ("log", cell), missing) if column.form == LOGARITHM else cell
        )
        return [Feature(column.name, column.kind, column.style, offset, value, missing=missing)]
    levels = column.levels if column.kind == RANK else [column.reference, *column.levels]
    words = [word for word in dict.fromkeys(levels) if word not in (OTHER, MISSING)]
    return _tables(
        column.name,
        words,
        replace(column, form="").encode(pd.Series([*words, _UNKNOWN, None], dtype=object)),
    )


def _tables(name: str, levels: Sequence[Any], encoded: np.ndarray) -> list[Feature]:
    """Return the features of a column. The array ``encoded`` (n_levels + 2, n_numbers) holds the
    numbers for its levels, for an unknown value and for an empty cell."""
    rows = encoded.T.tolist()
    return [
        Feature(name, levels=dict(zip(levels, row)), other=row[-2], missing=row[-1]) for row in rows
    ]


def transformed(step: Any, features: list[Feature]) -> list[Feature]:
    """Apply a fitted pipeline step to the features.

    Raises
    ------
    ValueError
        If the step cannot be exported.
    """
    name = type(step).__name__
    if (
        step is None
        or step == "passthrough"
        or (name == "FunctionTransformer" and step.func is None)
    ):
        return features
    if step == "drop":
        return []
    if name == "Pipeline":
        return reduce(lambda made, part: transformed(part[1], made), step.steps, features)
    if name == "FeatureUnion":
        return [
            feature for _, part in step.transformer_list for feature in transformed(part, features)
        ]
    if name == "ColumnTransformer":
        chosen = [
            (part, _chosen(step, features, columns)) for _, part, columns in step.transformers_
        ]
        return [
            feature for part, part_columns in chosen for feature in transformed(part, part_columns)
        ]
    if name in _SCALERS and not getattr(step, "clip", False):
        return _scaled(step, features)
    if name == "SimpleImputer" and _is_empty(step.missing_values):
        return _imputed(step, features)
    cells = all(f.levels is None and f.value == ("cell", f.column, 0.0) for f in features)
    if name in ("OneHotEncoder", "OrdinalEncoder", "TargetEncoder") and cells:
        return _encoded(step, features)
    if hasattr(step, "get_support"):
        return [feature for feature, kept in zip(features, step.get_support()) if kept]
    raise ValueError(
        f"the step {name} cannot be exported; "
        "expected a scaler without clip, an imputer of NaN, an encoder, or a selector"
    )


def _chosen(step: Any, features: list[Feature], columns: Any) -> list[Feature]:
    """Return the features of the columns to which a part of a ColumnTransformer is applied."""
    names = getattr(step, "feature_names_in_", range(len(features)))
    frame = pd.DataFrame(np.arange(len(features))[None], columns=names)
    by_name = all(
        isinstance(c, str)
        for c in ([columns.start] if isinstance(columns, slice) else np.atleast_1d(columns))
    )
    return [
        features[i] for i in np.ravel(frame.loc[:, columns] if by_name else frame.iloc[:, columns])
    ]


def _scaled(step: Any, features: list[Feature]) -> list[Feature]:
    for op, fitted, asked in _SCALERS[type(step).__name__]:
        if getattr(step, asked, True):
            features = [
                feature.then(op, float(number))
                for feature, number in zip(features, getattr(step, fitted))
            ]
    return features


def _imputed(step: Any, features: list[Feature]) -> list[Feature]:
    imputed = []
    for feature, value in zip(features, step.statistics_):
        if not _is_empty(value):  # columns without any value are dropped
            empty = {
                name: value for name in ("other", "missing") if _is_empty(getattr(feature, name))
            }
            imputed.append(replace(feature, **empty))
    indicated = step.indicator_.features_ if step.add_indicator else ()
    return imputed + [replace(features[i], value=0.0, missing=1.0) for i in indicated]


def _encoded(step: Any, features: list[Feature]) -> list[Feature]:
    """Return the features of categories, computed by applying the encoder to each level, to an
    unknown level and to an empty cell."""
    names = getattr(step, "feature_names_in_", range(len(features)))
    types = [c.dtype if c.dtype.kind in "iuf" else object for c in step.categories_]
    encoded, start = [], 0
    for i, (feature, width) in enumerate(zip(features, _widths(step))):
        known = [value for value in step.categories_[i].tolist() if not _is_empty(value)]
        empty = [value for value in step.categories_[i].tolist() if _is_empty(value)]
        words = not known or isinstance(known[0], str | bool)
        unknown = (
            []
            if getattr(step, "handle_unknown", "") == "error"
            else [_UNKNOWN if words else max(known) + 1]
        )
        rows = [[c[0]] * len([*known, *unknown, *empty]) for c in step.categories_]
        rows[i] = [*known, *unknown, *empty]
        with warnings.catch_warnings():
            # ignore warnings about column names and about the unknown value
            warnings.simplefilter("ignore")
            made = step.transform(
                pd.DataFrame({n: pd.Series(row, dtype=t) for n, row, t in zip(names, rows, types)})
            )
        made = np.asarray(made.toarray() if hasattr(made, "toarray") else made, float)[
            :, start : start + width
        ]
        start += width
        levels = [str(value).strip() if words else float(value) for value in known]
        other = made[len(known)] if unknown else np.full(width, NAN)
        missing = made[-1] if empty else other
        if not _is_empty(feature.missing):
            missing = made[known.index(feature.missing)]
        encoded += _tables(feature.column, levels, np.vstack([made[: len(known)], other, missing]))
    return encoded


def _widths(step: Any) -> list[int]:
    """Return the number of features that each column produces."""
    n = len(step.categories_)
    if type(step).__name__ != "OneHotEncoder":
        return [len(step.classes_) if getattr(step, "target_type_", "") == "multiclass" else 1] * n
    rare = getattr(step, "infrequent_categories_", [None] * n)
    dropped = [None] * n if step.drop_idx_ is None else step.drop_idx_
    return [
        len(c) - (0 if r is None else len(r) - 1) - (d is not None)
        for c, r, d in zip(step.categories_, rare, dropped)
    ]


def _is_empty(value: Any) -> bool:
    return bool(pd.isna(value))
