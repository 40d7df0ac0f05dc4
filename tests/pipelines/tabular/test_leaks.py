"""Columns that seem to know the answer are named, and found as fast as one sort of each column."""

import numpy as np
import pytest
from annealed.models.tabular.encoding import CATEGORY, ColumnEncoding, TableEncoding
from annealed.models.tabular.fitting import leaks as module
from annealed.models.tabular.fitting.leaks import leaks
from annealed.models.tabular.fitting.table import Table
from sklearn.tree import DecisionTreeClassifier


def table_of(X, y, columns=None):
    return Table(
        X, y, TableEncoding(columns or tuple(ColumnEncoding(f"x{j}") for j in range(X.shape[1])))
    )


def names_of(lines):
    return [line.split("'")[1] for line in lines]


def test_a_band_a_step_and_what_is_missing_with_the_class():
    rng, n = np.random.default_rng(0), 200
    y = rng.integers(0, 2, n)
    X = rng.standard_normal((n, 8))
    X[:, 1] = np.where(
        y == 1, rng.uniform(0.3, 0.7, n), rng.choice([0.0, 1.0], n)
    )  # neither a trend nor a difference of means
    X[:, 2] = np.where(y == 1, 5.0, rng.uniform(0, 4, n))
    X[:, 3] = np.where(y == 1, np.nan, rng.standard_normal(n))
    X[:, 4] = np.where(rng.random(n) < 0.9, y, 1 - y)
    X[:, 5] = 1.0
    X[:, 6], X[:, 7] = np.isin(y, [1]) & (rng.random(n) < 0.5), 0.0
    X[:, 7] = (y == 1) & (X[:, 6] == 0)  # two levels that are all of a class, neither alone
    columns = (
        *(ColumnEncoding(f"x{j}") for j in range(6)),
        ColumnEncoding("town", CATEGORY, levels=("a", "b")),
    )
    lines = leaks(table_of(X, y, columns), "classification")
    assert names_of(lines) == ["x1", "x2", "x3", "town"]
    assert "100.00% of the rows" in lines[0] and "use --exclude x1 if" in lines[0]
    assert leaks(table_of(X[:29], y[:29], columns), "classification") == []


@pytest.mark.parametrize("n", [40, 1500])
def test_no_column_is_passed_over_that_a_tree_would_find(n, monkeypatch):
    monkeypatch.setattr(module, "_COLUMNS", 7)
    rng, n_columns = np.random.default_rng(n), 60
    y = rng.integers(0, 3, n)
    steps = np.stack(
        [rng.permutation(np.arange(6)) for _ in range(n_columns)]
    )  # two intervals of each class, in any order
    X = steps[np.arange(n_columns), (2 * y + rng.integers(0, 2, n))[:, None]] + rng.choice(
        [0.0, 0.5], (n, n_columns)
    ) * rng.random(n_columns)
    some = rng.random(n_columns) < 0.5  # a few rows in the interval of another class, or missing
    X[:, some] = np.where(
        rng.random((n, some.sum())) < 0.0007,
        rng.choice([0.0, 6.0, np.nan], (n, some.sum())),
        X[:, some],
    )
    X[:, ::9] = rng.standard_normal((n, len(X[0, ::9])))
    tree = DecisionTreeClassifier(max_leaf_nodes=6, min_samples_leaf=5)
    expected = [
        f"x{j}" for j in range(n_columns) if tree.fit(X[:, [j]], y).score(X[:, [j]], y) >= 0.999
    ]
    n_trees = []
    monkeypatch.setattr(
        DecisionTreeClassifier,
        "fit",
        lambda *args, fit=DecisionTreeClassifier.fit: n_trees.append(1) or fit(*args),
    )
    assert names_of(leaks(table_of(X, y), "classification")) == expected
    assert 10 < len(expected) <= len(n_trees) <= n_columns - len(X[0, ::9])


def test_a_multiple_of_the_target_with_gaps():
    rng, n = np.random.default_rng(0), 300
    y = rng.standard_normal(n)
    X = rng.standard_normal((n, 4))
    X[:, 1] = 5.0 - 2.0 * y + 0.01 * rng.standard_normal(n)
    X[:, 2] = np.where(np.abs(y) < 0.005, np.nan, y)
    X[:, 3] = y + 0.2 * rng.standard_normal(n)
    lines = leaks(table_of(X, y), "regression")
    assert names_of(lines) == ["x1", "x2"] and "of the variance" in lines[0]
    assert leaks(table_of(X, np.ones(n)), "regression") == []
