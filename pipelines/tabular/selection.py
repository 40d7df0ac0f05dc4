"""Selection of the columns of a table that predict its target (``annealed select``)."""

from __future__ import annotations

import numpy as np

from ...learners import FSAClassifier, FSARegressor


def select_columns(X, y, names: list[str], k: int, task: str) -> list[dict]:
    """Select k columns with FSA.

    Parameters
    ----------
    X : array or sparse matrix of shape (n_rows, n_columns)
        Numbers without gaps.
    y : ndarray of shape (n_rows,)
        Labels or numbers.
    names : list of str
        Names of the columns.
    k : int
        How many are wanted; at most the number of columns.
    task : {"classification", "regression"}
        What is predicted.

    Returns
    -------
    list of dict
        ``name`` and ``coefficient`` (in the units of the column; with several classes the norm over them), the column
        with the largest effect (coefficient times standard deviation) first.

    Raises
    ------
    ValueError
        If there is but one class, or the numbers of a regression are text.
    """
    if task == "regression":
        if np.asarray(y).dtype.kind not in "iuf":
            raise ValueError(f"the target holds labels such as {str(y[0])!r}: expected numbers for --task regression")
        model = FSARegressor(n_features_to_select=k)
    else:
        if len(np.unique(y)) < 2:
            raise ValueError(f"the target has one value only ({str(y[0])!r}), expected at least two classes")
        broken = y[y != np.round(y)] if np.asarray(y).dtype.kind == "f" else []
        if len(broken):
            raise ValueError(f"the target holds numbers such as {broken[0]:g}: expected labels for --task classification")
        model = FSAClassifier(n_features_to_select=k)
    model.fit(X, y)
    support = np.flatnonzero(model.get_support())
    coef = np.atleast_2d(model.coef_)[:, support]
    coefficient = coef[0] if len(coef) == 1 else np.sqrt((coef**2).sum(axis=0))
    columns = X[:, support]
    columns = columns.toarray() if hasattr(columns, "toarray") else columns
    order = np.argsort(-np.abs(coefficient) * columns.std(axis=0), kind="stable")
    return [{"name": names[support[i]], "coefficient": float(coefficient[i])} for i in order]
