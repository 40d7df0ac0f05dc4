"""Columns that seem to know the answer: what is known only after the target must not predict it."""

from __future__ import annotations

from collections.abc import Iterable

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


def _out(name: str) -> str:
    return f"--exclude {name!r} otherwise" if " " in name else f"--exclude {name} otherwise"
