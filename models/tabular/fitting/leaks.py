"""Detection of target leakage, and of test rows that duplicate training rows."""

from collections import Counter
from collections.abc import Iterable, Iterator

import numpy as np

from ...messages import first_of
from .table import Table

_ALMOST = 0.999  # minimum share of the variance, or of the rows, of an almost perfect prediction
_MIN_ROWS = 30  # with fewer rows, a column may be a perfect predictor by chance
_MAX_ROWS = 2_000  # maximum number of rows that are examined (heuristic)
_COLUMNS = 1_000  # number of columns that are sorted together


def leaks(table: Table, task: str) -> list[str]:
    """Return a one-line warning for each column that predicts the target nearly perfectly.

    A numeric target is predicted from the column by least squares. Classes are predicted by a tree
    with two leaves per class and at least five rows per leaf.
    """
    from sklearn.tree import DecisionTreeClassifier

    n, lines = len(table.y), []
    if n < _MIN_ROWS or hasattr(table.X, "tocsr"):
        return []
    rows = np.linspace(0, n - 1, min(n, _MAX_ROWS)).astype(int)
    y, is_classification = table.y[rows], task == "classification"
    if (y == y[0]).mean() >= (_ALMOST if is_classification else 1.0):
        return []
    n_leaves = max(2, 2 * len(np.unique(y)))
    tree = DecisionTreeClassifier(max_leaf_nodes=n_leaves, min_samples_leaf=5)
    may_leak, end = np.empty(table.X.shape[1], bool), 0
    for start in range(0, len(may_leak), _COLUMNS):
        part = table.X[rows, start : start + _COLUMNS]
        may_leak[start : start + _COLUMNS] = (
            _few_changes(part, y, n_leaves) if is_classification else _correlated(part, y)
        )
    for column in table.encoding.columns:
        end += column.width
        if column.width == 1 and not may_leak[end - 1]:
            continue
        part = table.X[rows, end - column.width : end]
        if is_classification:
            share = tree.fit(part, y).score(part, y)
        else:
            Z = np.where(np.isnan(part), np.nanmean(part), part) - np.nanmean(part, axis=0)
            rest = y - y.mean() - Z @ np.linalg.lstsq(Z, y - y.mean(), rcond=None)[0]
            share = 1.0 - rest.var() / y.var()
        if share >= _ALMOST:
            of = "rows" if is_classification else "variance"
            lines.append(
                f"column {column.name!r} alone predicts the target almost perfectly "
                f"({share:.2%} of the {of}); {_out(column.name)}"
            )
    return lines


def _few_changes(X: np.ndarray, y: np.ndarray, n_leaves: int) -> np.ndarray:
    """Return whether the class changes rarely enough along the sorted values of each column for a
    tree of ``n_leaves`` to be almost perfect."""
    n, n_errors = len(y), int((1.0 - _ALMOST) * len(y) + 1e-9)
    by_class, codes = np.argsort(y, kind="stable"), np.sort(np.unique(y, return_inverse=True)[1])
    values = np.nan_to_num(X[by_class], nan=np.inf)  # missing values last
    order = np.argsort(values, axis=0, kind="stable")  # ties sorted by class
    changes, values = np.diff(codes[order], axis=0) != 0, np.take_along_axis(values, order, axis=0)
    # changes between equal values, with more equal values than errors on each side
    mixed = changes[n_errors : n - 1 - n_errors] & (
        values[2 * n_errors + 1 :] == values[: n - 1 - 2 * n_errors]
    )
    # one change per leaf, with an additional leaf for missing values, and two changes per error
    return ~mixed.any(axis=0) & (changes.sum(axis=0) <= n_leaves + 2 * n_errors)


def _correlated(X: np.ndarray, y: np.ndarray) -> np.ndarray:
    """Return whether each column, with missing values replaced by its mean, is almost a linear
    function of y."""
    Z, target = X - np.nanmean(X, axis=0), y - y.mean()
    Z[np.isnan(Z)] = 0.0
    return (target @ Z) ** 2 >= (_ALMOST - 1e-6) * (Z**2).sum(axis=0) * (target @ target)


def gap_leaks(gaps: Iterable[tuple[str, np.ndarray]], y: np.ndarray) -> list[str]:
    """Return a one-line warning for each column whose missing cells reveal the target.

    The cells of such a column are missing in exactly those rows in which the target has a certain
    value. ``gaps`` yields the name of each column and the mask of its missing cells.
    """
    lines = []
    for name, missing in gaps:
        if (
            5 <= missing.sum() < len(y)
            and (y[missing] == (value := y[missing][0])).all()
            and not (y[~missing] == value).any()
        ):
            lines.append(
                f"column {name!r} is missing exactly where the target is {value}; {_out(name)}"
            )
    return lines


def test_rows_notes(train: Table, test: Table, task: str) -> list[str]:
    """Return one-line warnings about test rows that are duplicates or have unknown classes.

    Duplicates of training rows are reported only if most training rows are distinct.
    """
    n, lines, known = len(test.y), [], set(_row_keys(train, train.X.dtype))
    if 2 * len(known) >= len(train.y) and (
        n_equal := sum(key in known for key in _row_keys(test, train.X.dtype))
    ):
        lines.append(
            f"{n_equal} of {n} test rows duplicate training rows, so the test score is optimistic"
        )
    unknown = (
        Counter(test.y[~np.isin(test.y, train.y)].tolist())
        if task == "classification"
        else Counter[object]()
    )
    if unknown:
        shown = first_of([f"{label!r} ({count})" for label, count in unknown.most_common()], 5)
        lines.append(
            f"{unknown.total()} of {n} test rows have classes that do not occur in the training "
            f"rows and count as errors: {shown}"
        )
    return lines


def _row_keys(table: Table, dtype: np.dtype) -> Iterator[int]:
    """Compute hashes of the rows and their targets."""
    for start in range(0, len(table.y), _MAX_ROWS):
        rows, y = table.X[start : start + _MAX_ROWS], table.y[start : start + _MAX_ROWS]
        dense = rows.toarray() if hasattr(rows, "toarray") else rows
        yield from (
            hash((row.tobytes(), label)) for row, label in zip(dense.astype(dtype), y.tolist())
        )


def _out(name: str) -> str:
    shown = repr(name) if " " in name else name
    return f"use --exclude {shown} if this column is not known before the target"
