"""Costs and interactions of selected columns, each measured by refits on the same folds."""

from dataclasses import replace
from itertools import combinations
from typing import Any

import numpy as np

from ..encoding import CATEGORY, ColumnEncoding, TableEncoding
from .options import SelectionOptions
from .settings import make_model
from .table import Table
from .validation import HeldOut, Progress, Splits, first_measure, fitted

_MAX_COSTS = 20  # maximum number of columns whose cost is computed, each by a refit (heuristic)
_MAX_PAIRED = 8  # maximum number of columns whose products are evaluated (heuristic)


def costs(
    table: Table,
    task: str,
    request: SelectionOptions,
    names: list[str],
    splits: Splits,
    progress: Progress,
) -> dict[str, float]:
    """Compute how much worse the main score becomes if each column is removed from the model.

    The first ``_MAX_COSTS`` columns are removed one at a time, and the model is refitted to the
    others. All models use the same folds.
    """
    sign, measure = first_measure(task, request.measure)

    def score(without: str | None = None) -> float:
        kept = [name for name in table.names if name in names and name != without]
        return sign * measure(
            _refitted(_part(table, kept or names), task, request, splits, bool(kept))
        )

    whole = score()
    return {
        name: whole - score(name)
        for name in progress(names[:_MAX_COSTS], "columns dropped one by one")
    }


def interaction(
    table: Table, task: str, request: SelectionOptions, names: list[str], splits: Splits
) -> dict[str, Any] | None:
    """Return the pair of columns whose product is most correlated with held-out residuals.

    Only the first ``_MAX_PAIRED`` numeric columns are considered. The result also contains the gain
    in the main score if the product is added to the model, and is None if there is no pair. Since
    the pair is chosen and scored on the same rows, the gain is optimistic.
    """
    whole, (sign, measure) = _part(table, names), first_measure(task, request.measure)
    numbers = [
        name for name in names if table.encoding.columns[table.names.index(name)].kind != CATEGORY
    ][:_MAX_PAIRED]
    if len(numbers) < 2 or hasattr(table.X, "tocsr"):
        return None
    base, rows = (
        _refitted(whole, task, request, splits),
        np.concatenate([test for _, test in splits]),
    )
    if base.classes is not None and base.probabilities is None:
        return None
    rest = (
        (base.y - base.predicted)[:, None]
        if base.classes is None
        else (base.y[:, None] == base.classes) - base.probabilities
    )
    X = np.column_stack([table.X[:, table.columns_of([name])] for name in numbers]).astype(
        np.float64
    )
    X = np.nan_to_num((X - np.nanmean(X, axis=0)) / np.maximum(np.nanstd(X, axis=0), 1e-300))

    def agreement(pair: tuple[int, int]) -> float:
        a, b = X[rows][:, pair].T
        alone, product = np.column_stack([np.ones(len(a)), a, b, a * a, b * b]), a * b
        product = product - alone @ np.linalg.lstsq(alone, product, rcond=None)[0]
        return float(np.abs(product @ rest).max() / max(np.linalg.norm(product), 1e-9))

    i, j = max(combinations(range(len(numbers)), 2), key=agreement)
    columns = (*whole.encoding.columns, ColumnEncoding(f"{numbers[i]} x {numbers[j]}", fill=0.0))
    more_columns = replace(
        whole, X=np.column_stack([whole.X, X[:, i] * X[:, j]]), encoding=TableEncoding(columns)
    )
    gain = sign * (measure(_refitted(more_columns, task, request, splits)) - measure(base))
    return {"columns": [numbers[i], numbers[j]], "gain": gain}


def _part(table: Table, names: list[str]) -> Table:
    """Return the table restricted to some columns."""
    places = [i for i, name in enumerate(table.names) if name in names]
    return replace(
        table,
        X=table.X[:, np.isin(table.encoding.groups, places)],
        encoding=table.encoding.only(places),
    )


def _refitted(
    part: Table, task: str, request: SelectionOptions, splits: Splits, columns: bool = True
) -> HeldOut:
    """Predict held-out rows with models that use all columns of a table, or with constants."""
    limits = [
        [g for g in given if g.rpartition("=")[0] in part.names]
        for given in (request.bounds, request.monotone)
    ]
    plain = replace(request, include=(), group=(), bounds=limits[0], monotone=limits[1])
    model = make_model(plain, part, task, len(part.names))
    size = len(part.names) if columns else 0
    return HeldOut.together(
        [
            HeldOut.of(fitted(model, size, part.take(train)), part.take(test))
            for train, test in splits
        ]
    )
