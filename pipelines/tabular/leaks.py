"""Columns that seem to know the answer: what is known only after the target must not predict it;
and test rows that cannot judge a model."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator

import numpy as np

from .encoding import Table

_ALMOST = 0.999  # share of the variance, or of the rows, from which on a prediction is almost perfect
_MIN_ROWS = 30  # with fewer a single column may do so by chance
_MAX_ROWS = 2_000  # that are looked at: a choice


def leaks(table: Table, task: str) -> list[str]:
    """Return a line for each column that alone predicts the target almost perfectly.

    A regression is one of least squares on the column's numbers; classes are predicted by a tree
    with two leaves for each class, of five rows or more each.
    """
    from sklearn.tree import DecisionTreeClassifier

    n = len(table.y)
    if n < _MIN_ROWS or hasattr(table.X, "tocsr"):
        return []
    rows = np.linspace(0, n - 1, min(n, _MAX_ROWS)).astype(int)
    X, y, found = table.X[rows], table.y[rows], []
    tree = DecisionTreeClassifier(max_leaf_nodes=max(2, 2 * len(np.unique(y))), min_samples_leaf=5)
    for number, name in enumerate(table.names):
        part = X[:, table.encoding.groups == number]
        if task == "classification":
            share = tree.fit(part, y).score(part, y)
            share = 0.0 if (y == y[0]).mean() >= _ALMOST else share
        else:
            Z = np.where(np.isnan(part), np.nanmean(part), part) - np.nanmean(part, axis=0)
            rest = y - y.mean() - Z @ np.linalg.lstsq(Z, y - y.mean(), rcond=None)[0]
            share = 1.0 - rest.var() / y.var() if y.var() else 0.0
        if share >= _ALMOST:
            of = "rows" if task == "classification" else "variance"
            said = f"column {name!r} alone predicts the target almost perfectly ({share:.2%} of the {of})"
            found.append(f"{said}: known before it? {_out(name)}")
    return found


def gap_leaks(gaps: Iterable[tuple[str, np.ndarray]], y: np.ndarray) -> list[str]:
    """Return a line for each column, given with which of its cells are missing, whose cells are
    missing exactly where the target has one value."""
    found = []
    for name, gone in gaps:
        if 5 <= gone.sum() < len(y) and (y[gone] == (value := y[gone][0])).all() and not (y[~gone] == value).any():
            found.append(f"column {name!r} is missing exactly where the target is {value}: known before it? {_out(name)}")
    return found


def doubtful_test(train: Table, test: Table, task: str) -> list[str]:
    """Return a line for test rows that equal training rows, where these mostly differ, and a line
    for test rows of classes that the model does not know."""
    n, lines, known = len(test.y), [], set(_row_keys(train, train.X.dtype))
    if 2 * len(known) >= len(train.y) and (n_equal := sum(key in known for key in _row_keys(test, train.X.dtype))):
        lines.append(f"{n_equal} of {n} test rows equal training rows: their score is too good")
    strange = Counter(test.y[~np.isin(test.y, train.y)].tolist()) if task == "classification" else Counter[object]()
    if strange:
        shown = ", ".join(f"{label!r} ({count})" for label, count in strange.most_common(5)) + ", ..." * (len(strange) > 5)
        lines.append(f"{strange.total()} of {n} test rows have a class that no training row has, which counts as wrong: {shown}")
    return lines


def _row_keys(table: Table, dtype: np.dtype) -> Iterator[int]:
    """A number for each row and its target, the same for equal ones."""
    for start in range(0, len(table.y), _MAX_ROWS):
        rows, y = table.X[start : start + _MAX_ROWS], table.y[start : start + _MAX_ROWS]
        dense = rows.toarray() if hasattr(rows, "toarray") else rows
        yield from (hash((row.tobytes(), label)) for row, label in zip(dense.astype(dtype), y.tolist()))


def _out(name: str) -> str:
    return f"--exclude {name!r} otherwise" if " " in name else f"--exclude {name} otherwise"
