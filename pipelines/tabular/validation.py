"""Cross-validated scores of the selected columns, beside all columns and a baseline, and along the
sizes."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from ...learners import FSAPath, ScoreCardClassifier
from ...learners.model_selection.size import choose_size

N_FOLDS = 5
# ridge of the model on all columns, by leave-one-out: a choice
_ALPHAS = np.geomspace(1e-2, 1e4, 7)
_MOST_ROWS = 5_000  # that this ridge is chosen by: leave-one-out costs as much as twenty fits

Progress = Callable[[Iterable, str], Iterable]
Split = tuple[np.ndarray, np.ndarray]


@dataclass
class Validation:
    """Scores of rows that a model was not fitted to.

    Attributes
    ----------
    size : int
        Number of columns, chosen or given.
    sizes : list of int
        Ascending; 0 is a constant.
    path, losses : ndarray of shape (n_folds, n_sizes)
        Accuracy or R^2 of each size in each fold, and what the choice of the size goes by: the mean
        log loss or squared error. R^2 is 1 - the mean squared error of the fold over the variance
        of all rows that were held out.
    scores : dict of str to dict of str to float
        "selected", "all columns" and "baseline": each measure of the held-out rows of all folds
        together.
    nested : bool
        Whether the size that is scored on a fold was chosen by the other folds.
    held_out : list of int
        Rows that each fold holds out.
    """

    size: int
    sizes: list[int] = field(default_factory=list)
    path: np.ndarray = field(default_factory=lambda: np.empty((0, 0)))
    losses: np.ndarray = field(default_factory=lambda: np.empty((0, 0)))
    scores: dict[str, dict[str, float]] = field(default_factory=dict)
    nested: bool = False
    held_out: list[int] = field(default_factory=list)

    @property
    def path_scores(self) -> np.ndarray:
        """Accuracy or R^2 (n_sizes,) of the held-out rows of all folds together."""
        return np.average(self.path, axis=0, weights=self.held_out) if len(self.path) else np.zeros(0)

    @property
    def best(self) -> int | None:
        """Position of the size from 1 on with the least mean loss; None where there is none."""
        from_one = np.flatnonzero(self.sizes)
        return int(from_one[self.losses.mean(axis=0)[from_one].argmin()]) if len(self.losses) and len(from_one) else None


def measures(task: str, y: np.ndarray, predicted: np.ndarray) -> dict[str, float]:
    """Accuracy and the mean over classes of it; R^2 and the mean absolute error. The first one
    decides."""
    if task == "classification":
        right = y == predicted
        return {"accuracy": float(right.mean()), "balanced accuracy": float(np.mean([right[y == c].mean() for c in np.unique(y)]))}
    spread = float(((y - y.mean()) ** 2).sum())
    return {
        "R2": 1.0 - float(((y - predicted) ** 2).sum()) / spread if spread > 0 else 0.0,
        "mean absolute error": float(np.abs(y - predicted).mean()),
    }


def folds(y: np.ndarray, task: str, row_groups: np.ndarray | None) -> list[Split]:
    """Rows to fit to and rows to score, five times; the same for the same table.

    Raises
    ------
    ValueError
        If there are too few rows, rows of each class, or groups of rows.
    """
    from sklearn.model_selection import GroupKFold, KFold, StratifiedGroupKFold, StratifiedKFold

    classes = task == "classification"
    if row_groups is not None:
        n = min(N_FOLDS, len(np.unique(row_groups)))
        if n < 2:
            raise ValueError("--row-groups: all rows are of one group, expected at least two groups")
        splitter: Any = StratifiedGroupKFold(n) if classes else GroupKFold(n)
        found = list(splitter.split(np.zeros(len(y)), y, row_groups))
        return [(train, test) for train, test in found if len(test) and (not classes or len(np.unique(y[train])) > 1)]
    least = int(np.unique(y, return_counts=True)[1].min()) if classes else len(y)
    n = min(N_FOLDS, max(least, 2), len(y))
    if least < 2 or len(y) < 4:
        return []
    return list((StratifiedKFold if classes else KFold)(n, shuffle=True, random_state=0).split(np.zeros(len(y)), y))


def validate(
    X: Any, y: np.ndarray, task: str, model: Any, size: int | None, sizes: np.ndarray, splits: list[Split], progress: Progress
) -> Validation:
    """Score sizes along paths, choose one where ``size`` is None, and score it beside all columns
    and a baseline.

    ``sizes`` may begin with 0, a constant. The size is chosen by :func:`chosen_size`. The score of
    a chosen size is that of the choice: for each fold the size is chosen by the losses of the other
    folds. That takes no fits of its own, and its error is smaller than that of a choice by folds
    within the training rows, which are fewer.
    """
    from sklearn.dummy import DummyClassifier, DummyRegressor

    baseline = DummyClassifier if task == "classification" else DummyRegressor
    truth = np.concatenate([y[test] for _, test in splits])
    path, losses = _path_scores(X, y, task, model, sizes, progress(splits, "sizes"))
    if task == "regression":
        path = 1.0 - losses / truth.var()
    chosen, nested = chosen_size(sizes, losses) if size is None else size, size is None and len(splits) > 1
    found: dict[str, list[np.ndarray]] = {"selected": [], "all columns": [], "baseline": []}
    for fold, (train, test) in enumerate(progress(splits, "scores")):
        own = chosen_size(sizes, np.delete(losses, fold, axis=0)) if nested else chosen
        found["selected"].append(fitted(model, own, X[train], y[train]).predict(X[test]))
        found["all columns"].append(all_columns(task, X[train], y[train], X[test]))
        found["baseline"].append(baseline().fit(X[train], y[train]).predict(X[test]))
    scores = {row: measures(task, truth, np.concatenate(predicted)) for row, predicted in found.items()}
    return Validation(chosen, sizes.tolist(), path, losses, scores, nested, [len(test) for _, test in splits])


def _path_scores(X, y, task, model, sizes, splits) -> tuple[np.ndarray, np.ndarray]:
    """Accuracy and loss (n_folds, n_sizes) of each size, along one path per fold."""
    path, losses = [], []
    for train, test in splits:
        # Exchanges: else small sizes look worse than the models that are fitted in the end.
        if isinstance(model, ScoreCardClassifier):  # has no path
            models = [fitted(model, int(k), X[train], y[train]) for k in sizes]
        else:
            along = FSAPath(model, sizes, exchange=True).fit(X[train], y[train])
            models = [along.get_estimator(int(k)) for k in sizes]
        losses.append([_loss(task, one, X[test], y[test]) for one in models])
        path.append([float(np.mean(one.predict(X[test]) == y[test])) for one in models])
    return np.array(path), np.array(losses)


def chosen_size(sizes: np.ndarray, losses: np.ndarray) -> int:
    """The smallest size that is as good as the best; 0, a constant, unless the best is better than
    that by a clear margin.

    Examples
    --------
    >>> chosen_size(np.array([0, 1, 2]), np.array([[3.0, 2.9, 1.0], [3.1, 2.9, 1.0]]))
    2
    """
    if sizes[0]:
        return int(sizes[choose_size(losses, "one_se") or 0])
    at = choose_size(losses[:, 1:], "one_se", losses[:, 0])
    return 0 if at is None else int(sizes[1 + at])


def _loss(task: str, model: Any, X: Any, y: np.ndarray) -> float:
    if task == "regression":
        return float(np.mean((y - model.predict(X)) ** 2))
    likelihood = np.where(model.classes_ == y[:, None], model.predict_proba(X), 0.0).sum(axis=1)
    # one row that is sure and wrong does not decide alone
    return float(-np.log(np.maximum(likelihood, 1e-3)).mean())


def fitted(model: Any, size: int, X: Any, y: np.ndarray) -> Any:
    """The estimator fitted for another size; 0 is a constant."""
    from sklearn.base import clone

    if size:
        return clone(model).set_params(n_features_to_select=size).fit(X, y)
    return FSAPath(model, [0]).fit(X, y).get_estimator(0)


def all_columns(task: str, X: Any, y: np.ndarray, X_test: Any) -> np.ndarray:
    """Predictions of ridge regression (of classes by a ridge classifier) on all columns, its
    strength by leave-one-out.

    Of more than 5,000 rows, that many evenly spread ones choose the strength.
    """
    from sklearn.linear_model import Ridge, RidgeClassifier, RidgeClassifierCV, RidgeCV
    from sklearn.preprocessing import StandardScaler

    if not hasattr(X, "tocsr"):
        gone = np.isnan(X)
        if gone.any() or np.isnan(X_test).any():
            middle = np.array([np.median(column[~np.isnan(column)]) if not np.isnan(column).all() else 0.0 for column in X.T])
            X, X_test = np.where(gone, middle, X), np.where(np.isnan(X_test), middle, X_test)
    scaler = StandardScaler(with_mean=not hasattr(X, "tocsr")).fit(X)
    Z = scaler.transform(X)
    some = np.linspace(0, len(y) - 1, min(len(y), _MOST_ROWS)).astype(np.int64)
    choice, ridge = (RidgeClassifierCV, RidgeClassifier) if task == "classification" else (RidgeCV, Ridge)
    alpha = choice(alphas=_ALPHAS).fit(Z[some], y[some]).alpha_
    return ridge(alpha=alpha, copy_X=False).fit(Z, y).predict(scaler.transform(X_test))
