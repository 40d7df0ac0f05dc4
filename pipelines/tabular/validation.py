"""Cross-validated scores of the selected columns, beside all columns and a baseline, and along the
sizes."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass, field, replace
from functools import partial
from itertools import combinations, pairwise
from typing import Any, Self

import numpy as np
from scipy.special import expit, softmax

from ...learners import FSAPath, ScoreCardClassifier
from ...learners.model_selection.size import MIN_PROBABILITY, beats_constant, choose_size
from ...models.tabular.encoding import CATEGORY, ColumnEncoding, TableEncoding
from .encoding import Table
from .request import Request
from .settings import make_model

N_FOLDS = 5
_QUANTILES = (0.05, 0.25, 0.5, 0.75, 0.95)  # of residuals
# ridge of the model on all columns, by leave-one-out: a choice
_ALPHAS = np.geomspace(1e-2, 1e4, 7)
_MAX_COSTS = 20  # columns without which the others are refitted: a choice
_MAX_PAIRED = 8  # columns whose products are looked at: a choice
_MAX_ROWS = 5_000  # that this ridge is chosen by: leave-one-out costs as much as twenty fits

Progress = Callable[[Iterable, str], Iterable]
Splits = list[tuple[np.ndarray, np.ndarray]]


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
        Accuracy, R^2 or the score that was asked for of each size in each fold, and what the choice
        of the size goes by: the mean log loss or squared error, or that score. R^2 is 1 - the mean
        squared error of the fold over the variance of all rows that were held out.
    scores : dict of str to dict of str to float
        "selected", "all columns", "baseline" and where asked for "boosting" on all columns and
        "test": each measure of the held-out rows of all folds
        together.
    nested : bool
        Whether the size that is scored on a fold was chosen by the other folds.
    held_out : list of int
        Rows that each fold holds out.
    errors : dict
        Of the selected columns, see :func:`errors`.
    """

    size: int
    sizes: list[int] = field(default_factory=list)
    path: np.ndarray = field(default_factory=lambda: np.empty((0, 0)))
    losses: np.ndarray = field(default_factory=lambda: np.empty((0, 0)))
    scores: dict[str, dict[str, float]] = field(default_factory=dict)
    nested: bool = False
    held_out: list[int] = field(default_factory=list)
    errors: dict[str, Any] = field(default_factory=dict)

    @property
    def path_scores(self) -> np.ndarray:
        """Accuracy or R^2 (n_sizes,) of the held-out rows of all folds together."""
        return (
            np.average(self.path, axis=0, weights=self.held_out) if len(self.path) else np.zeros(0)
        )

    @property
    def curve(self) -> str:
        """The score of the selected number of columns, of the next smaller and larger ones that
        were tried, and of the one with the least loss, in one line.

        Examples
        --------
        >>> path = np.array([[0.90, 0.92, 0.97, 0.96, 0.98]])
        >>> Validation(3, [1, 2, 3, 4, 29], path, -path, held_out=[9]).curve
        '2 columns 0.920; 3 0.970 (selected); 4 0.960; 29 0.980 (least loss)'
        """
        if self.best is None or self.size not in self.sizes:
            return ""
        at = self.sizes.index(self.size)
        marks = {
            **{place: "" for place in (at - 1, at + 1) if 0 <= place < len(self.sizes)},
            self.best: " (least loss)",
            at: f" (selected{', least loss' if at == self.best else ''})",
        }
        parts = [
            f"{self.sizes[place]} {self.path_scores[place]:.3f}{marks[place]}"
            for place in sorted(marks)
        ]
        return "; ".join(parts).replace(
            " ", " column " if parts[0].startswith("1 ") else " columns ", 1
        )

    @property
    def best(self) -> int | None:
        """Position of the size from 1 on with the least mean loss; None where there is none."""
        from_one = np.flatnonzero(self.sizes)
        return (
            int(from_one[self.losses.mean(axis=0)[from_one].argmin()])
            if len(self.losses) and len(from_one)
            else None
        )


@dataclass(frozen=True)
class HeldOut:
    """Rows that a model was not fitted to, and what it predicts for them.

    Attributes
    ----------
    y, predicted : ndarray of shape (n_rows,)
    weight : ndarray of shape (n_rows,) or None
    classes : ndarray of shape (n_classes,) or None
    probabilities : ndarray of shape (n_rows, n_classes) or None
    calibrated : bool
        Whether these are probabilities, and not only in their order.
    """

    y: np.ndarray
    predicted: np.ndarray
    weight: np.ndarray | None = None
    classes: np.ndarray | None = None
    probabilities: np.ndarray | None = None
    calibrated: bool = True

    @classmethod
    def of(cls, model: Any, table: Table) -> Self:
        """The rows of a table, as a fitted estimator predicts them."""
        predicted, classes = model.predict(table.X), getattr(model, "classes_", None)
        if classes is None:
            return cls(table.y, predicted, table.weight)
        if hasattr(model, "predict_proba"):
            return cls(table.y, predicted, table.weight, classes, model.predict_proba(table.X))
        score = model.decision_function(table.X)
        p = (
            softmax(score, axis=1)
            if score.ndim == 2
            else np.column_stack([expit(-score), expit(score)])
        )
        return cls(table.y, predicted, table.weight, classes, p, calibrated=False)

    @classmethod
    def together(cls, parts: list[HeldOut]) -> HeldOut:
        """The rows of several folds of the same classes."""

        def joined(name: str) -> Any:
            values = [getattr(part, name) for part in parts]
            return None if values[0] is None else np.concatenate(values)

        first = parts[0]
        alike = all(np.array_equal(part.classes, first.classes) for part in parts)  # type: ignore[arg-type]
        return cls(
            joined("y"),
            joined("predicted"),
            weight=joined("weight"),
            classes=first.classes,
            probabilities=joined("probabilities") if alike else None,
            calibrated=first.calibrated,
        )


def _balanced(held: HeldOut) -> float:
    right, weight = (
        held.y == held.predicted,
        np.ones(len(held.y)) if held.weight is None else held.weight,
    )
    return float(
        np.mean(
            [np.average(right[held.y == c], weights=weight[held.y == c]) for c in np.unique(held.y)]
        )
    )


def _row_losses(held: HeldOut, least: float = MIN_PROBABILITY) -> np.ndarray:
    """Squared error, or log loss, of each row."""
    if held.classes is None:
        return (held.y - held.predicted) ** 2
    likelihood = np.where(held.classes == held.y[:, None], np.asarray(held.probabilities), 0.0).sum(
        axis=1
    )
    return -np.log(np.maximum(likelihood, least))


def _r2(held: HeldOut) -> float:
    spread = _mean((held.y - _mean(held.y, held.weight)) ** 2, held.weight)
    return 1.0 - _mean((held.y - held.predicted) ** 2, held.weight) / spread if spread > 0 else 0.0


def _mean(values: np.ndarray, weight: np.ndarray | None) -> float:
    return float(np.average(values, weights=weight))


def _ranked(name: str) -> Callable[[HeldOut], float]:
    """A measure of scikit-learn of the order of rows; the mean over more than two classes."""

    def of(held: HeldOut) -> float:
        from sklearn import metrics

        assert held.classes is not None and held.probabilities is not None
        truth, p = (held.y[:, None] == held.classes).astype(int), held.probabilities
        two = slice(1, None) if len(held.classes) == 2 else slice(None)
        if not (truth[:, two].sum(axis=0) > 0).all() or truth[:, two].all(axis=0).any():
            raise ValueError(
                f"--score {name}: a fold lacks one of the classes; expected another score, or more rows"
            )
        return float(
            getattr(metrics, f"{name}_score")(truth[:, two], p[:, two], sample_weight=held.weight)
        )

    return of


# measures by the names that --score takes: the task, 1 where more is better, and the function
SCORES: dict[str, tuple[str, int, Callable[[HeldOut], float]]] = {
    "accuracy": ("classification", 1, lambda h: _mean(h.y == h.predicted, h.weight)),
    "balanced_accuracy": ("classification", 1, _balanced),
    "average_precision": ("classification", 1, _ranked("average_precision")),
    "roc_auc": ("classification", 1, _ranked("roc_auc")),
    "log_loss": ("classification", -1, lambda h: _mean(_row_losses(h, 1e-15), h.weight)),
    "r2": ("regression", 1, _r2),
    "mean_absolute_error": ("regression", -1, lambda h: _mean(np.abs(h.y - h.predicted), h.weight)),
    "mean_squared_error": ("regression", -1, lambda h: _mean((h.y - h.predicted) ** 2, h.weight)),
}
_SHOWN = {
    "classification": ("accuracy", "balanced_accuracy"),
    "regression": ("r2", "mean_absolute_error"),
}


def check_score(score: str | None, task: str) -> None:
    """Complain about a score that there is not, or not for this task.

    Raises
    ------
    ValueError
        If it is one.
    """
    known = [name for name, (of, _, _) in SCORES.items() if of == task]
    if score is not None and score not in known:
        raise ValueError(f"--score {score}: expected one of {', '.join(known)} for a {task}")


def first_measure(task: str, score: str | None) -> tuple[int, Callable[[HeldOut], float]]:
    """The measure that decides: 1 where more is better, else -1, and the function."""
    return SCORES[score or _SHOWN[task][0]][1:]


def measures(task: str, held: HeldOut, score: str | None = None) -> dict[str, float]:
    """Accuracy and the mean over classes of it; R^2 and the mean absolute error; the ``score``
    first.

    The first one decides. NaN where a model has no probabilities.
    """
    names = dict.fromkeys([score, *_SHOWN[task]] if score else _SHOWN[task])
    without = {"log_loss"} if not held.calibrated else set()
    without |= {"log_loss", "average_precision", "roc_auc"} if held.probabilities is None else set()
    values = {name: np.nan if name in without else SCORES[name][2](held) for name in names}
    return {
        "R2" if name == "r2" else name.replace("_", " "): value for name, value in values.items()
    }


def folds(table: Table, task: str, seed: int = 0) -> Splits:
    """Rows to fit to and rows to score, five times; the same for the same table and seed.

    Groups of rows, and equal rows, stay together; where rows have times each fold is scored on
    later rows than it is fitted to.

    Raises
    ------
    ValueError
        If there are too few rows, rows of each class, or groups of rows.
    """
    from sklearn.model_selection import GroupKFold, KFold, StratifiedGroupKFold, StratifiedKFold

    y, classes, rows = table.y, task == "classification", np.arange(len(table.y))
    if table.times is not None:
        ends = np.unique(
            np.quantile(table.times, np.linspace(0, 1, N_FOLDS + 2)[1:], method="lower")
        )
        parts = [
            (table.times <= low, (table.times > low) & (table.times <= high))
            for low, high in pairwise(ends)
        ]
    elif table.row_groups is not None:
        n = min(N_FOLDS, len(np.unique(table.row_groups)))
        if n < 2:
            raise ValueError(
                "--row-groups: all rows are of one group, expected at least two groups"
            )
        parts = list(
            (StratifiedGroupKFold if classes else GroupKFold)(n).split(rows, y, table.row_groups)
        )
    else:
        least = int(np.unique(y, return_counts=True)[1].min()) if classes else len(y)
        if least < 2 or len(y) < 4:
            return []
        n = min(N_FOLDS, least, len(y))
        parts = list(
            (StratifiedKFold if classes else KFold)(n, shuffle=True, random_state=seed).split(
                rows, y
            )
        )
        if table.duplicate_of is not None:
            fold = np.zeros(len(y), int)
            for i, (_, test) in enumerate(parts):
                fold[test] = i
            parts = [
                (fold[table.duplicate_of] != i, fold[table.duplicate_of] == i) for i in range(n)
            ]
    found = [(rows[a], rows[b]) for a, b in parts]
    found = [
        (train, test)
        for train, test in found
        if len(test) and (not classes or len(np.unique(y[train])) > 1)
    ]
    if table.times is not None and not found:
        raise ValueError("--time: all rows are of one time, expected at least two")
    return found


def validate(
    table: Table,
    task: str,
    model: Any,
    size: int | None,
    sizes: np.ndarray,
    splits: Splits,
    progress: Progress,
    request: Request,
) -> Validation:
    """Score sizes along paths, choose one where ``size`` is None, and score it beside all columns
    and a baseline.

    ``sizes`` then begin with 0, a constant. The size is chosen by :func:`chosen_size`. The score of
    a chosen size is that of the choice: for each fold the size is chosen by the losses of the other
    folds. That takes no fits of its own, and its error is smaller than that of a choice by folds
    within the training rows, which are fewer.
    """
    competitors = _competitors(task, request, getattr(model, "class_weight", None))
    by_fold: list[list[HeldOut]] = []  # one for each size
    held_out: dict[str, list[HeldOut]] = {name: [] for name in ("selected", *competitors)}
    for train, test in progress(splits, "sizes"):
        rows, new_rows = table.take(train), table.take(test)
        logarithms = rows.better_logarithms(task)
        rows, new_rows = rows.with_logarithms(logarithms), new_rows.with_logarithms(logarithms)
        by_fold.append(
            [HeldOut.of(fitted_model, new_rows) for fitted_model in _models(model, sizes, rows)]
        )
        for name, fit in competitors.items():
            held_out[name].append(HeldOut.of(fit(rows), new_rows))
    tests = [test for _, test in splits]
    losses = np.array([[_loss(one, request.score) for one in fold] for fold in by_fold])
    if task == "regression" and request.score is None:
        scores = 1.0 - losses / _variance(np.concatenate(tests), table)
    else:
        measure = first_measure(task, request.score)[1]
        scores = np.array([[measure(one) for one in fold] for fold in by_fold])

    def best_size(without: int | None = None) -> int:
        """The size by the losses of all folds, or all but one."""
        remaining = [fold for fold in range(len(splits)) if fold != without]
        return chosen_size(
            sizes, losses[remaining], _rows_of_folds(table, tests, by_fold, remaining), request
        )

    nested = size is None and len(splits) > 1
    size = best_size() if size is None else size
    for fold, of_sizes in enumerate(by_fold):
        size_of_fold = best_size(without=fold) if nested else size
        held_out["selected"].append(
            of_sizes[min(int(np.searchsorted(sizes, size_of_fold)), len(sizes) - 1)]
        )
    joined = {name: HeldOut.together(parts) for name, parts in held_out.items()}
    return Validation(
        size,
        sizes.tolist(),
        path=scores,
        losses=losses,
        scores={name: measures(task, one, request.score) for name, one in joined.items()},
        nested=nested,
        held_out=[len(test) for test in tests],
        errors=errors(joined["selected"]),
    )


def _competitors(
    task: str, request: Request, class_weight: Any
) -> dict[str, Callable[[Table], Any]]:
    """What is scored beside the selected columns: functions that fit it to the rows of a table."""
    from sklearn.dummy import DummyClassifier, DummyRegressor

    baseline = DummyClassifier if task == "classification" else DummyRegressor
    found: dict[str, Callable[[Table], Any]] = {
        "all columns": lambda table: all_columns(task, table, class_weight),
        "baseline": lambda table: baseline().fit(table.X, table.y, table.weight),
    }
    return found | ({"boosting": partial(_boosting, task)} if request.boosting else {})


def errors(held: HeldOut) -> dict[str, Any]:
    """Return where the predictions of held-out rows go wrong.

    ``calibration``, of numbers and of the probability of the second of two classes: rows in ten
    groups by what is predicted, with the means of what is predicted and of what is true.
    ``residuals``: their quantiles. ``confusion``: rows of each class (first index) that are
    predicted as each. Weights count.

    Examples
    --------
    >>> errors(HeldOut(np.array([1.0, 2.0]), np.array([1.0, 1.5])))["calibration"][1]
    {'predicted': 1.5, 'observed': 2.0, 'rows': 1}
    """
    found: dict[str, Any] = {}
    predicted, observed = held.predicted, held.y
    if held.classes is None:
        residuals = dict(zip(_QUANTILES, np.quantile(observed - predicted, _QUANTILES).tolist()))
        found["residuals"] = [
            {"share": share, "residual": value} for share, value in residuals.items()
        ]
    else:
        from sklearn.metrics import confusion_matrix

        counts = confusion_matrix(
            held.y, held.predicted, labels=held.classes, sample_weight=held.weight
        )
        found["confusion"] = {"classes": held.classes.tolist(), "rows": counts.tolist()}
        if len(held.classes) > 2 or held.probabilities is None or not held.calibrated:
            return found
        predicted, observed = held.probabilities[:, 1], held.y == held.classes[1]
    weight = np.ones(len(observed)) if held.weight is None else held.weight
    groups = [
        g for g in np.array_split(np.argsort(predicted, kind="stable"), 10) if weight[g].any()
    ]
    means = [[_mean(values[g], weight[g]) for values in (predicted, observed)] for g in groups]
    found["calibration"] = [
        {"predicted": p, "observed": o, "rows": len(g)} for (p, o), g in zip(means, groups)
    ]
    return found


def costs(
    table: Table, task: str, request: Request, names: list[str], splits: Splits, progress: Progress
) -> dict[str, float]:
    """Return by how much the first measure gets worse without each of some columns, the others
    refitted; of the first ``_MAX_COSTS``.

    All are fitted and scored on the same folds. The columns are given, not selected anew.
    """
    sign, measure = first_measure(task, request.score)

    def score(without: str | None = None) -> float:
        kept = [name for name in table.names if name in names and name != without]
        return sign * measure(
            _refitted(_part(table, kept or names), task, request, splits, bool(kept))
        )

    whole = score()
    return {
        name: whole - score(name)
        for name in progress(names[:_MAX_COSTS], "columns left out one by one")
    }


def interaction(
    table: Table, task: str, request: Request, names: list[str], splits: Splits
) -> dict[str, Any] | None:
    """Return the pair of columns of numbers, of the first ``_MAX_PAIRED``, whose product agrees
    best with what all leave over in held-out rows, and by how much the first measure of these rows
    gets better with it; None without a pair.

    It is the best of all pairs on the rows that score it: a hint, not a test.
    """
    whole, (sign, measure) = _part(table, names), first_measure(task, request.score)
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
    """The table of some columns."""
    places = [i for i, name in enumerate(table.names) if name in names]
    return replace(
        table,
        X=table.X[:, np.isin(table.encoding.groups, places)],
        encoding=table.encoding.only(places),
    )


def _refitted(
    part: Table, task: str, request: Request, splits: Splits, columns: bool = True
) -> HeldOut:
    """Held-out rows as models of all columns of a table predict them; or constants."""
    limits = [
        [g for g in given if g.rpartition("=")[0] in part.names]
        for given in (request.bounds, request.monotone)
    ]
    own = replace(request, include=(), group=(), bounds=limits[0], monotone=limits[1])
    model = make_model(own, part, task, len(part.names))
    size = len(part.names) if columns else 0
    return HeldOut.together(
        [
            HeldOut.of(fitted(model, size, part.take(train)), part.take(test))
            for train, test in splits
        ]
    )


def _variance(rows: np.ndarray, table: Table) -> float:
    y, weight = table.y[rows], None if table.weight is None else table.weight[rows]
    return _mean((y - _mean(y, weight)) ** 2, weight)


def _models(model: Any, sizes: np.ndarray, table: Table) -> list[Any]:
    """A fitted model of each size."""
    if isinstance(model, ScoreCardClassifier):  # has no path
        return [fitted(model, int(k), table) for k in sizes]
    # Exchanges: else small sizes look worse than the models that are fitted in the end.
    along = FSAPath(model, sizes, exchange=True).fit(table.X, table.y, sample_weight=table.weight)
    return [along.get_estimator(int(k)) for k in np.minimum(sizes, along.sizes_[-1])]


@dataclass(frozen=True)
class RowLosses:
    """Losses (n_sizes, n_rows) of held-out rows, their weights and groups (n_rows,), if any."""

    losses: np.ndarray
    weight: np.ndarray | None = None
    groups: np.ndarray | None = None


def _rows_of_folds(
    table: Table, tests: list[np.ndarray], by_fold: list[list[HeldOut]], folds: list[int]
) -> RowLosses:
    """Losses of the rows that some of the folds hold out."""
    rows = np.concatenate([tests[fold] for fold in folds])
    losses = np.concatenate([[_row_losses(one) for one in by_fold[fold]] for fold in folds], axis=1)
    groups = table.duplicate_of if table.row_groups is None else table.row_groups
    return RowLosses(
        losses, *(None if values is None else values[rows] for values in (table.weight, groups))
    )


def chosen_size(sizes: np.ndarray, losses: np.ndarray, rows: RowLosses, request: Request) -> int:
    """The size by the rule that is requested, see :func:`.choose_size`; 0, the first of the sizes,
    unless the best beats that constant (:func:`.beats_constant`) or columns are included.

    Examples
    --------
    >>> rows = RowLosses(np.array([[3.0, 3.1], [2.9, 2.9], [1.0, 1.0]]))
    >>> chosen_size(np.array([0, 1, 2]), rows.losses.T, rows, Request())
    2
    """
    best = 1 + choose_size(losses[:, 1:], "best")
    if not (
        request.include
        or beats_constant(rows.losses[best], rows.losses[0], rows.weight, rows.groups)
    ):
        return 0
    return int(
        sizes[1 + choose_size(losses[:, 1:], request.size_rule.replace("-", "_"), losses[:, 0])]
    )


def _loss(held: HeldOut, score: str | None) -> float:
    return (
        _mean(_row_losses(held), held.weight)
        if score is None
        else -SCORES[score][1] * SCORES[score][2](held)
    )


def fitted(model: Any, size: int, table: Table) -> Any:
    """The estimator fitted for another size; 0 is a constant."""
    from sklearn.base import clone

    weights = {} if table.weight is None else {"sample_weight": table.weight}
    if size:
        return clone(model).set_params(n_features_to_select=size).fit(table.X, table.y, **weights)
    return FSAPath(model, [0]).fit(table.X, table.y, **weights).get_estimator(0)


def all_columns(task: str, table: Table, class_weight: Any = None) -> Any:
    """Ridge regression (of classes a ridge classifier) on all columns, its strength by
    leave-one-out; NaN is the median.

    Of more than 5,000 rows, that many evenly spread ones choose the strength.
    """
    from sklearn.impute import SimpleImputer
    from sklearn.linear_model import Ridge, RidgeClassifier, RidgeClassifierCV, RidgeCV
    from sklearn.pipeline import Pipeline, make_pipeline
    from sklearn.preprocessing import StandardScaler

    X, y, weight, sparse = table.X, table.y, table.weight, hasattr(table.X, "tocsr")
    gaps = (
        [SimpleImputer(strategy="median", keep_empty_features=True)]
        if not sparse and np.isnan(X).any()
        else []
    )
    before = make_pipeline(*gaps, StandardScaler(with_mean=not sparse)).fit(X)
    Z = before.transform(X)
    some = np.linspace(0, len(y) - 1, min(len(y), _MAX_ROWS)).astype(np.int64)
    choice, ridge = (
        (RidgeClassifierCV, RidgeClassifier) if task == "classification" else (RidgeCV, Ridge)
    )
    more = {"class_weight": class_weight} if task == "classification" else {}
    alpha = (
        choice(alphas=_ALPHAS, **more)
        .fit(Z[some], y[some], None if weight is None else weight[some])
        .alpha_
    )
    return Pipeline(
        [*before.steps, ("ridge", ridge(alpha=alpha, copy_X=False, **more).fit(Z, y, weight))]
    )


def _boosting(task: str, table: Table) -> Any:
    """Gradient boosting on all columns."""
    from sklearn.ensemble import HistGradientBoostingClassifier, HistGradientBoostingRegressor

    if hasattr(table.X, "tocsr"):
        raise ValueError("--boosting: not for sparse tables")
    make = (
        HistGradientBoostingClassifier
        if task == "classification"
        else HistGradientBoostingRegressor
    )
    return make(random_state=0).fit(table.X, table.y, table.weight)
