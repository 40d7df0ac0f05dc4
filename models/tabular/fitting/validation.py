"""Cross-validated scores of the selected columns, all columns, a baseline and each size."""

from collections.abc import Callable, Iterable
from dataclasses import dataclass, field, replace
from functools import partial
from itertools import pairwise
from typing import Any, Self

import numpy as np
from sklearn.utils import compute_sample_weight

from ....learners import FSAClassifier, FSAPath, ScoreCardClassifier
from ....learners.common.additive import class_probabilities
from ....learners.model_selection.calibration import calibrate
from ....learners.model_selection.size import MIN_PROBABILITY, beats_constant, choose_size
from ....learners.objective.losses import Loss, regression_loss
from .options import SelectionOptions
from .table import Table

N_FOLDS = 5
_QUANTILES = (0.05, 0.25, 0.5, 0.75, 0.95)  # of residuals
# ridge penalties of the model on all columns, compared by leave-one-out (heuristic)
_ALPHAS = np.geomspace(1e-2, 1e4, 7)
_MAX_ROWS = 5_000  # maximum rows for this choice, since leave-one-out takes as long as twenty fits

Progress = Callable[[Iterable, str], Iterable]
Splits = list[tuple[np.ndarray, np.ndarray]]


@dataclass
class Validation:
    """Scores on held-out rows.

    Attributes
    ----------
    size : int
        Number of selected columns, either given or chosen automatically.
    sizes : list of int
        Numbers of columns that were scored, in ascending order; 0 denotes a constant model.
    path, losses : ndarray of shape (n_folds, n_sizes)
        Score of each size on each fold, and the corresponding loss, by which the size is chosen.
        The score is accuracy, R^2 or the requested score. The loss is the mean log loss, the mean
        squared error or the negative requested score. R^2 is 1 minus the mean squared error of the
        fold divided by the variance of the target over all held-out rows.
    scores : dict of str to dict of str to float
        Scores on the held-out rows of all folds together, for the models "selected", "all columns",
        "baseline" and, if requested, "boosting" (on all columns). If there are test rows, "test"
        contains the scores of the final model on them.
    nested : bool
        Whether the size that was scored on each fold was chosen on the other folds.
    held_out : list of int
        Number of held-out rows in each fold.
    errors : dict
        Errors of the model "selected"; see :func:`errors`.
    calibration : tuple of (float, float) or None
        Slope and flip rate for the calibration of probabilities; see :func:`.calibrate`. The
        probabilities in each fold are calibrated with values estimated on the other folds.
    """

    size: int
    sizes: list[int] = field(default_factory=list)
    path: np.ndarray = field(default_factory=lambda: np.empty((0, 0)))
    losses: np.ndarray = field(default_factory=lambda: np.empty((0, 0)))
    scores: dict[str, dict[str, float]] = field(default_factory=dict)
    nested: bool = False
    held_out: list[int] = field(default_factory=list)
    errors: dict[str, Any] = field(default_factory=dict)
    calibration: tuple[float, float] | None = None

    @property
    def path_scores(self) -> np.ndarray:
        """Compute the mean score of each size over the held-out rows of all folds."""
        return (
            np.average(self.path, axis=0, weights=self.held_out) if len(self.path) else np.zeros(0)
        )

    @property
    def curve(self) -> str:
        """One line with the scores of the selected size, its neighbours and the best size.

        Examples
        --------
        >>> path = np.array([[0.90, 0.92, 0.97, 0.96, 0.98]])
        >>> Validation(3, [1, 2, 3, 4, 29], path, -path, held_out=[9]).curve
        '2 columns 0.920; 3 0.970 (selected); 4 0.960; 29 0.980 (lowest loss)'
        """
        if self.best is None or self.size not in self.sizes:
            return ""
        at = self.sizes.index(self.size)
        marks = {
            **{place: "" for place in (at - 1, at + 1) if 0 <= place < len(self.sizes)},
            self.best: " (lowest loss)",
            at: f" (selected{', lowest loss' if at == self.best else ''})",
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
        """Index of the non-zero size with the lowest mean loss, or None if no sizes were scored."""
        from_one = np.flatnonzero(self.sizes)
        return (
            int(from_one[self.losses.mean(axis=0)[from_one].argmin()])
            if len(self.losses) and len(from_one)
            else None
        )


@dataclass(frozen=True)
class HeldOut:
    """Held-out rows, and the predictions of a model for them.

    Attributes
    ----------
    y, predicted : ndarray of shape (n_rows,)
    weight : ndarray of shape (n_rows,) or None
    classes : ndarray of shape (n_classes,) or None
    probabilities : ndarray of shape (n_rows, n_classes) or None
    calibrated : bool
        Whether the probabilities are calibrated; otherwise only their ranking is meaningful.
    scores : ndarray of shape (n_rows,) or (n_rows, n_classes), or None
        Decision values of a classifier whose probabilities can be calibrated.
    loss : Loss or None
        Loss with a log link, whose deviance is used as the loss of each row; None means the squared
        error.
    """

    y: np.ndarray
    predicted: np.ndarray
    weight: np.ndarray | None = None
    classes: np.ndarray | None = None
    probabilities: np.ndarray | None = None
    calibrated: bool = True
    scores: np.ndarray | None = None
    loss: Loss | None = None

    @classmethod
    def of(cls, model: Any, table: Table) -> Self:
        """Predict the rows of a table with a fitted estimator."""
        shift = {} if table.offset is None else {"offset": table.offset}
        predicted, classes = model.predict(table.X, **shift), getattr(model, "classes_", None)
        if classes is None:
            loss = getattr(model, "loss_", None)
            loss = loss if getattr(loss, "link", "") == "log" else None
            return cls(table.y, predicted, table.weight, loss=loss)
        if hasattr(model, "predict_proba"):
            by_class = isinstance(model, FSAClassifier)
            return cls(
                table.y,
                predicted,
                table.weight,
                classes,
                model.predict_proba(table.X, **shift),
                scores=model.decision_function(table.X, **shift) if by_class else None,
            )
        p = class_probabilities(model.decision_function(table.X, **shift))
        return cls(table.y, predicted, table.weight, classes, p, calibrated=False)

    @classmethod
    def together(cls, parts: "list[HeldOut]") -> "HeldOut":
        """Concatenate the held-out rows of several folds."""

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
            scores=joined("scores") if alike else None,
            loss=first.loss,
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


def _row_losses(held: HeldOut, minimum: float = MIN_PROBABILITY) -> np.ndarray:
    """Compute the squared error, deviance or log loss of each row."""
    if held.loss is not None:
        logs = np.log(np.maximum(held.predicted, 1e-300))
        return 2.0 * held.loss.row_values(held.y[:, None].astype(np.float64), logs[:, None])
    if held.classes is None:
        return (held.y - held.predicted) ** 2
    likelihood = np.where(held.classes == held.y[:, None], np.asarray(held.probabilities), 0.0).sum(
        axis=1
    )
    return -np.log(np.maximum(likelihood, minimum))


def _r2(held: HeldOut) -> float:
    spread = _mean((held.y - _mean(held.y, held.weight)) ** 2, held.weight)
    return 1.0 - _mean((held.y - held.predicted) ** 2, held.weight) / spread if spread > 0 else 0.0


def _mean(values: np.ndarray, weight: np.ndarray | None) -> float:
    if weight is not None and not weight.any():
        raise ValueError("all rows of a fold have weight 0; expected positive weights in each fold")
    return float(np.average(values, weights=weight))


def _ranked(name: str) -> Callable[[HeldOut], float]:
    """Return a ranking measure of scikit-learn, averaged over classes if there are more than
    two."""

    def of(held: HeldOut) -> float:
        from sklearn import metrics

        assert held.classes is not None and held.probabilities is not None
        truth, p = (held.y[:, None] == held.classes).astype(int), held.probabilities
        two = slice(1, None) if len(held.classes) == 2 else slice(None)
        if not (truth[:, two].sum(axis=0) > 0).all() or truth[:, two].all(axis=0).any():
            raise ValueError(
                f"--score {name}: one fold does not contain all classes; use another score or "
                "more rows"
            )
        return float(
            getattr(metrics, f"{name}_score")(truth[:, two], p[:, two], sample_weight=held.weight)
        )

    return of


# measures by the names of --score: the task, the sign (1 if higher is better), and the function
SCORES: dict[str, tuple[str, int, Callable[[HeldOut], float]]] = {
    "accuracy": ("classification", 1, lambda h: _mean(h.y == h.predicted, h.weight)),
    "balanced_accuracy": ("classification", 1, _balanced),
    "average_precision": ("classification", 1, _ranked("average_precision")),
    "roc_auc": ("classification", 1, _ranked("roc_auc")),
    "log_loss": ("classification", -1, lambda h: _mean(_row_losses(h, 1e-15), h.weight)),
    "r2": ("regression", 1, _r2),
    "d2": (
        "regression",
        1,
        lambda h: h.loss.quality(h.y, h.predicted, h.weight) if h.loss else _r2(h),
    ),
    "deviance": ("regression", -1, lambda h: _mean(_row_losses(h), h.weight)),
    "mean_absolute_error": ("regression", -1, lambda h: _mean(np.abs(h.y - h.predicted), h.weight)),
    "mean_squared_error": ("regression", -1, lambda h: _mean((h.y - h.predicted) ** 2, h.weight)),
}
_SHOWN = {
    "classification": ("accuracy", "balanced_accuracy"),
    "regression": ("r2", "mean_absolute_error"),
}


def check_score(score: str | None, task: str) -> None:
    """Check that a score is defined for a task.

    Raises
    ------
    ValueError
        If the score is not defined for the task.
    """
    known = [name for name, (of, _, _) in SCORES.items() if of == task]
    if score is not None and score not in known:
        raise ValueError(
            f"--score {score} is not valid; expected one of {', '.join(known)} for {task}"
        )


def first_measure(task: str, score: str | None) -> tuple[int, Callable[[HeldOut], float]]:
    """Return the sign and the function of the main score.

    The sign is 1 if higher values are better, and otherwise -1.
    """
    return SCORES[score or _SHOWN[task][0]][1:]


def measures(task: str, held: HeldOut, score: str | None = None) -> dict[str, float]:
    """Compute ``score``, if given, followed by the default scores.

    The default scores are accuracy and balanced accuracy, or R^2 and the mean absolute error. The
    first score is the main score. A score is NaN if it requires probabilities that the model does
    not predict.
    """
    names = dict.fromkeys([score, *_SHOWN[task]] if score else _SHOWN[task])
    without = {"log_loss"} if not held.calibrated else set()
    without |= {"log_loss", "average_precision", "roc_auc"} if held.probabilities is None else set()
    values = {name: np.nan if name in without else SCORES[name][2](held) for name in names}
    return {
        name.upper() if name in ("r2", "d2") else name.replace("_", " "): value
        for name, value in values.items()
    }


def folds(table: Table, task: str, seed: int = 0) -> Splits:
    """Return the training and test rows of up to five folds.

    The folds depend only on the table and the seed.

    Rows of the same group and identical rows are assigned to the same fold. If rows have times, the
    test rows of each fold are later than its training rows.

    Raises
    ------
    ValueError
        If there are too few rows, too few rows in a class, or too few groups of rows.
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
        if (n := min(N_FOLDS, len(np.unique(table.row_groups)))) < 2:
            raise ValueError(
                "--row-groups: all rows are in one group; expected at least two groups"
            )
        parts = list(
            (StratifiedGroupKFold if classes else GroupKFold)(n).split(rows, y, table.row_groups)
        )
    else:
        n_min = int(np.unique(y, return_counts=True)[1].min()) if classes else len(y)
        if n_min < 2 or len(y) < 4:
            return []
        n = min(N_FOLDS, n_min, len(y))
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
    splits = [(rows[a], rows[b]) for a, b in parts]
    splits = [
        (train, test)
        for train, test in splits
        if len(test) and (not classes or len(np.unique(y[train])) > 1)
    ]
    if table.times is not None and not splits:
        raise ValueError("--time: all rows have the same time; expected at least two times")
    return splits


def validate(
    table: Table,
    task: str,
    model: Any,
    size: int | None,
    sizes: np.ndarray,
    splits: Splits,
    progress: Progress,
    request: SelectionOptions,
) -> Validation:
    """Score each number of columns in each fold; choose one if none is given, and score it.

    A model on all columns and a baseline are also scored. If ``size`` is None, :func:`chosen_size`
    chooses the size, and ``sizes`` must begin with 0, which denotes a constant model. For an
    unbiased score, the size for each fold is then chosen by the losses on the other folds. This
    requires no additional fits, unlike nested cross-validation.
    """
    class_weight = getattr(model, "class_weight", None)
    competitors = _competitors(task, request, model)
    by_fold: list[list[HeldOut]] = []  # for each fold, one entry per size
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
    groups = table.duplicate_of if table.row_groups is None else table.row_groups
    sign, measure = first_measure(task, request.measure)
    scores = np.array([[measure(one) for one in fold] for fold in by_fold])
    losses = -sign * scores
    if request.measure is None:
        losses = np.array(
            [[_mean(_row_losses(one), one.weight) for one in fold] for fold in by_fold]
        )
        if task == "regression":
            scores = 1.0 - losses / _variance(np.concatenate(tests), table)

    def best_size(without: int | None = None) -> int:
        """Choose the size by the losses on all folds, or on all folds but one."""
        remaining = [fold for fold in range(len(splits)) if fold != without]
        rows = np.concatenate([tests[fold] for fold in remaining])
        return chosen_size(
            sizes,
            losses[remaining],
            np.concatenate(
                [[_row_losses(one) for one in by_fold[fold]] for fold in remaining], axis=1
            ),
            request,
            *(None if values is None else values[rows] for values in (table.weight, groups)),
        )

    def calibration(place: int, without: int | None = None) -> tuple[float, float] | None:
        """Calibrate the probabilities of a size on all folds, or on all folds but one."""
        parts = [of_sizes[place] for fold, of_sizes in enumerate(by_fold) if fold != without]
        return _calibration(parts, class_weight) if parts and sizes[place] else None

    nested = size is None and len(splits) > 1
    size = best_size() if size is None else size
    for fold, of_sizes in enumerate(by_fold):
        size_of_fold = best_size(without=fold) if nested else size
        place = min(int(np.searchsorted(sizes, size_of_fold)), len(sizes) - 1)
        held_out["selected"].append(_with(of_sizes[place], calibration(place, without=fold)))
    joined = {name: HeldOut.together(parts) for name, parts in held_out.items()}
    return Validation(
        size,
        sizes.tolist(),
        path=scores,
        losses=losses,
        scores={name: measures(task, one, request.measure) for name, one in joined.items()},
        nested=nested,
        held_out=[len(test) for test in tests],
        errors=errors(joined["selected"]),
        calibration=calibration(min(int(np.searchsorted(sizes, size)), len(sizes) - 1)),
    )


def _calibration(parts: list[HeldOut], class_weight: Any) -> tuple[float, float] | None:
    """Estimate the slope and flip from held-out rows, or return None for models that are not
    calibrated."""
    held = HeldOut.together(parts)
    if held.scores is None or held.classes is None:
        return None
    weight = compute_sample_weight(class_weight, held.y)
    weight = weight if held.weight is None else weight * held.weight
    return calibrate(held.scores, np.searchsorted(held.classes, held.y), weight)


def _with(held: HeldOut, calibration: tuple[float, float] | None) -> HeldOut:
    """Return the same predictions with calibrated probabilities."""
    if calibration is None or held.scores is None:
        return held
    return replace(held, probabilities=class_probabilities(held.scores, *calibration))


def _competitors(
    task: str, request: SelectionOptions, model: Any
) -> dict[str, Callable[[Table], Any]]:
    """Return functions that fit the models for comparison to some rows of a table."""
    from sklearn.dummy import DummyClassifier, DummyRegressor

    baseline = DummyClassifier if task == "classification" else DummyRegressor
    models: dict[str, Callable[[Table], Any]] = {
        "all columns": lambda table: all_columns(task, table, getattr(model, "class_weight", None)),
        "baseline": lambda table: baseline().fit(table.X, table.y, table.weight),
    }
    models |= {"boosting": partial(_boosting, task)} if request.boosting else {}
    if task == "regression" and (request.measure == "d2" or request.offset_column is not None):
        loss = regression_loss("squared" if model.loss == "auto" else model.loss)
        models = {name: partial(_Competitor, fit, loss) for name, fit in models.items()}
    return models


class _Competitor:
    """Model that does not support offsets or a log link. It is fitted to the target minus the
    offset or, for a log link, to the target per exposure with the exposures as weights."""

    def __init__(self, fit: Callable[[Table], Any], loss: Loss, table: Table) -> None:
        self.loss_, self.log, n = loss, loss.link == "log", len(table.y)
        weight = np.ones(n) if table.weight is None else table.weight
        shift = np.zeros(n) if table.offset is None else table.offset
        exposure = np.exp(shift) if self.log else np.ones(n)
        y = table.y / exposure if self.log else table.y - shift
        self.model = fit(replace(table, y=y, weight=weight * exposure))
        # deviances require positive means
        self.lowest = 0.01 * np.average(y, weights=weight * exposure) if self.log else -np.inf

    def predict(self, X: Any, offset: Any = 0.0) -> np.ndarray:
        predicted = np.maximum(self.model.predict(X), self.lowest)
        return predicted * np.exp(offset) if self.log else predicted + offset


def errors(held: HeldOut) -> dict[str, Any]:
    """Compute the calibration, residuals and confusion matrix for held-out rows.

    ``calibration`` contains the mean predicted and observed values in ten groups of rows with
    similar predictions. It is available for numeric targets and for the probability of the second
    of two classes. ``residuals`` contains the quantiles of the residuals. ``confusion`` contains
    the number of rows for each true class (first index) and predicted class. All values are
    weighted.

    Examples
    --------
    >>> errors(HeldOut(np.array([1.0, 2.0]), np.array([1.0, 1.5])))["calibration"][1]
    {'predicted': 1.5, 'observed': 2.0, 'rows': 1}
    """
    result: dict[str, Any] = {}
    predicted, observed = held.predicted, held.y
    if held.classes is None:
        residuals = np.quantile(observed - predicted, _QUANTILES).tolist()
        result["residuals"] = [
            {"share": share, "residual": value} for share, value in zip(_QUANTILES, residuals)
        ]
    else:
        from sklearn.metrics import confusion_matrix

        counts = confusion_matrix(
            held.y, held.predicted, labels=held.classes, sample_weight=held.weight
        )
        result["confusion"] = {"classes": held.classes.tolist(), "rows": counts.tolist()}
        if len(held.classes) > 2 or held.probabilities is None or not held.calibrated:
            return result
        predicted, observed = held.probabilities[:, 1], held.y == held.classes[1]
    weight = np.ones(len(observed)) if held.weight is None else held.weight
    groups = [
        g for g in np.array_split(np.argsort(predicted, kind="stable"), 10) if weight[g].any()
    ]
    means = [[_mean(values[g], weight[g]) for values in (predicted, observed)] for g in groups]
    result["calibration"] = [
        {"predicted": p, "observed": o, "rows": len(g)} for (p, o), g in zip(means, groups)
    ]
    return result


def _variance(rows: np.ndarray, table: Table) -> float:
    y, weight = table.y[rows], None if table.weight is None else table.weight[rows]
    return _mean((y - _mean(y, weight)) ** 2, weight)


def _models(model: Any, sizes: np.ndarray, table: Table) -> list[Any]:
    """Fit one model for each size."""
    if isinstance(model, ScoreCardClassifier):  # score cards have no path
        return [fitted(model, int(k), table) for k in sizes]
    # exchanges, as in the final fit; without them, small sizes would have lower scores
    path = FSAPath(model, sizes, exchange=True).fit(table.X, table.y, **table.fit_options)
    return [path.get_estimator(int(k)) for k in np.minimum(sizes, path.sizes_[-1])]


def chosen_size(
    sizes: np.ndarray,
    losses: np.ndarray,
    row_losses: np.ndarray,
    request: SelectionOptions,
    weight: np.ndarray | None = None,
    groups: np.ndarray | None = None,
) -> int:
    """Choose a size by the requested rule; see :func:`.choose_size`.

    The result is 0, which denotes a constant model, unless the best size outperforms this model
    (see :func:`.beats_constant`) or ``include`` names columns.

    Parameters
    ----------
    sizes : ndarray of shape (n_sizes,)
        Numbers of columns, beginning with 0.
    losses : ndarray of shape (n_folds, n_sizes)
        Mean loss of each size on each fold.
    row_losses : ndarray of shape (n_sizes, n_rows)
        Loss of each held-out row at each size.
    request : SelectionOptions
    weight, groups : ndarray of shape (n_rows,) or None, default None
        Weights and groups of the held-out rows.

    Returns
    -------
    int

    Examples
    --------
    >>> losses = np.array([[3.0, 3.1], [2.9, 2.9], [1.0, 1.0]])
    >>> chosen_size(np.array([0, 1, 2]), losses.T, losses, SelectionOptions())
    2
    """
    best = 1 + choose_size(losses[:, 1:], "best")
    if not (request.include or beats_constant(row_losses[best], row_losses[0], weight, groups)):
        return 0
    return int(
        sizes[1 + choose_size(losses[:, 1:], request.size_rule.replace("-", "_"), losses[:, 0])]
    )


def fitted(model: Any, size: int, table: Table) -> Any:
    """Fit an estimator that selects ``size`` columns; 0 means a constant model."""
    from sklearn.base import clone

    options = table.fit_options
    if size:
        return clone(model).set_params(n_features_to_select=size).fit(table.X, table.y, **options)
    return FSAPath(model, [0]).fit(table.X, table.y, **options).get_estimator(0)


def all_columns(task: str, table: Table, class_weight: Any = None) -> Any:
    """Fit a ridge model to all columns after replacing missing values with the median.

    The penalty is chosen by leave-one-out cross-validation on at most 5,000 evenly spaced rows.
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
    """Fit gradient boosting on all columns."""
    from sklearn.ensemble import HistGradientBoostingClassifier, HistGradientBoostingRegressor

    if hasattr(table.X, "tocsr"):
        raise ValueError("--boosting is not available for sparse tables; use a dense table")
    make = (
        HistGradientBoostingClassifier
        if task == "classification"
        else HistGradientBoostingRegressor
    )
    return make(random_state=0).fit(table.X, table.y, table.weight)
