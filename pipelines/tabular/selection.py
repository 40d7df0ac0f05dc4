"""Selection of the columns of a table that predict its target (``annealed select``)."""

from __future__ import annotations

import numpy as np

from ...learners import FSAClassifier, FSARegressor


def select_columns(X, y, names: list[str], k: int, task: str) -> list[dict]:
    """Select k columns of X with FSA: their names and coefficients, the one with the largest effect first.

    X (array or sparse) has no gaps. Coefficients are in the units of the columns, with several classes the norm over them; the
    effect is the coefficient times the column's standard deviation.
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
