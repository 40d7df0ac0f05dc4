"""Evaluation on held-out days: errors over minutes and activities, with bootstrap intervals."""

from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from functools import partial
from typing import Any

import numpy as np

from ...learners import ChainLoss, LinearChainCRF
from ...models.sensors.features import SensorMinutes, minute_features
from ..common.checkpoints import Checkpoint
from .readers import IDLE
from .selection import METHODS, select_sensors

RIDGE = 2.0  # twice crfsuite's c2 (heuristic); 0.2 gives the same errors, 20 gives larger errors
N_BOOTSTRAP = 2000
_TOLERANCE = 1e-6  # relative tolerance of the fits, below which the labels no longer change
_SMOOTHING = 1.0  # added to the counts of the hidden Markov model

Predictor = Callable[[np.ndarray, np.ndarray], np.ndarray]  # (X, days) -> labels


@dataclass
class Prediction:
    """Labels that a method predicts on held-out days.

    Attributes
    ----------
    method : str
    labels : ndarray of shape (n_minutes,), str
    minutes : ndarray of shape (n_minutes,), bool
        Mask of the minutes with a prediction. Folds in which a penalised method does not yield a
        model with k sensors have no predictions.
    k : int or None
        Number of sensors; None means all sensors.
    selected : list of list of str
        Sensors selected in each fold.
    """

    method: str
    labels: np.ndarray
    minutes: np.ndarray
    k: int | None = None
    selected: list[list[str]] = field(default_factory=list)


def day_folds(days: np.ndarray, n_folds: int | None = None) -> list[np.ndarray]:
    """Return a mask of the test minutes for each fold.

    A fold consists of a single day or of every n-th day.

    Raises
    ------
    ValueError
        If there are fewer than two days, or fewer days than folds.
    """
    names = np.unique(days)
    n = len(names) if n_folds is None else n_folds
    if len(names) < 2:
        raise ValueError(
            f"the data contain {len(names)} day{'s' * (len(names) != 1)}; "
            "expected at least 2, so that one can be held out"
        )
    if n < 2 or n > len(names):
        raise ValueError(
            f"there are {len(names)} days for {n} fold{'s' * (n != 1)}; "
            "expected at least 2 folds, and at most one per day"
        )
    return [np.isin(days, names[i::n]) for i in range(n)]


def errors(truth: np.ndarray, labels: np.ndarray, idle: bool = True) -> dict[str, float]:
    """Compute the proportion of misclassified minutes, overall and as the mean over activities.

    If ``idle`` is False, minutes whose true label is idle are excluded.

    Examples
    --------
    >>> result = errors(np.array(["a", "a", "a", "b"]), np.array(["a", "a", "a", "a"]))
    >>> result["error"], result["class_error"]
    (0.25, 0.5)
    """
    rows = slice(None) if idle else truth != IDLE
    truth, wrong = truth[rows], (truth != labels)[rows]
    codes = np.unique(truth, return_inverse=True)[1]
    per_class = np.bincount(codes, wrong) / np.bincount(codes)
    return {"error": float(wrong.mean()), "class_error": float(per_class.mean())}


def bootstrap_interval(
    truth: np.ndarray, labels: np.ndarray, days: np.ndarray
) -> dict[str, list[float]]:
    """Compute 95% bootstrap intervals for both errors by resampling days."""
    of_day = (days == np.unique(days)[:, None]).astype(float)
    of_class = (truth[:, None] == np.unique(truth)).astype(float)
    total, wrong = of_day @ of_class, of_day @ (of_class * (truth != labels)[:, None])
    n = len(total)
    drawn = np.random.default_rng(0).multinomial(n, np.full(n, 1.0 / n), size=N_BOOTSTRAP)
    minutes, missed = drawn @ total, drawn @ wrong
    with np.errstate(invalid="ignore", divide="ignore"):
        per_class = np.nanmean(missed / minutes, axis=1)
    return {
        "error_interval": np.quantile(
            missed.sum(axis=1) / minutes.sum(axis=1), [0.025, 0.975]
        ).tolist(),
        "class_error_interval": np.quantile(per_class, [0.025, 0.975]).tolist(),
    }


def evaluate_baselines(
    minutes: SensorMinutes,
    kinds: tuple[str, ...],
    n_folds: int | None = None,
    cells: Checkpoint | None = None,
) -> list[Prediction]:
    """Evaluate the full model and its baselines on held-out days.

    Parameters
    ----------
    minutes : SensorMinutes
        Minutes with activities.
    kinds : tuple of str
        Kinds of features; see :func:`.minute_features`.
    n_folds : int or None
        Number of folds. If None, one day is held out at a time.
    cells : Checkpoint or None
        Checkpoint that stores finished folds.

    Returns
    -------
    list of Prediction
        One prediction for each name in ``BASELINES``.
    """
    cells = cells or Checkpoint()
    X, _ = minute_features(minutes, kinds)
    y, days, predictions = minutes.truth, minutes.days, []
    for method, fit in BASELINES.items():
        labels = np.empty(len(y), dtype=y.dtype)
        for i, test in enumerate(day_folds(days, n_folds)):

            def run(
                test: np.ndarray = test,
                fit: Callable[[np.ndarray, np.ndarray, np.ndarray], Predictor] = fit,
            ) -> list[str]:
                return fit(X[~test], y[~test], days[~test])(X[test], days[test]).tolist()

            labels[test] = cells({"method": method, "features": list(kinds), "fold": i}, run)
        predictions.append(Prediction(method, labels, np.ones(len(y), bool)))
    return predictions


def check_selection_kinds(kinds: tuple[str, ...]) -> None:
    """Check that the features of each sensor do not depend on other sensors."""
    if "last" in kinds:
        raise ValueError(
            "the feature last depends on all sensors, including dropped ones; use history instead"
        )


def evaluate_selection(
    minutes: SensorMinutes,
    kinds: tuple[str, ...],
    sizes: range,
    methods: Sequence[str] | None = None,
    n_folds: int = 5,
    cells: Checkpoint | None = None,
) -> list[Prediction]:
    """Compute the errors for each number of sensors, with sensors selected on the training days.

    Parameters
    ----------
    minutes : SensorMinutes
        Minutes with activities.
    kinds : tuple of str
        Kinds of features (see :func:`.minute_features`); "last" is not allowed.
    sizes : range
        Numbers of sensors.
    methods : list of str or None
        Keys of ``METHODS``; None means all methods. For each penalised method, the predictions of
        the penalised fit itself are also returned, under a name with the suffix ", shrunk".
    n_folds : int, default 5
    cells : Checkpoint or None

    Returns
    -------
    list of Prediction

    Raises
    ------
    ValueError
        If a feature depends on other sensors.
    """
    check_selection_kinds(kinds)
    cells = cells or Checkpoint()
    X, groups = minute_features(minutes, kinds)
    y, days = minutes.truth, minutes.days
    merged: dict[tuple[str, int], Prediction] = {}
    for method in methods or list(METHODS):
        for i, test in enumerate(day_folds(days, n_folds)):
            key = {
                "method": method,
                "features": list(kinds),
                "fold": i,
                "folds": n_folds,
                "sizes": [sizes.start, sizes.stop],
            }
            for part in cells(
                key, partial(_selection_fold, method, X, groups, y, days, test, sizes)
            ):
                empty = Prediction(
                    part["method"],
                    np.empty(len(y), dtype=y.dtype),
                    np.zeros(len(y), bool),
                    part["k"],
                )
                into = merged.setdefault((part["method"], part["k"]), empty)
                into.labels[test] = part["labels"]
                into.selected.append([minutes.sensors[unit] for unit in part["units"]])
                into.minutes |= test
    return list(merged.values())


def _selection_fold(
    method: str,
    X: np.ndarray,
    groups: np.ndarray,
    y: np.ndarray,
    days: np.ndarray,
    test: np.ndarray,
    sizes: range,
) -> list[dict[str, Any]]:
    by_size = select_sensors(method, X[~test], y[~test], days[~test], groups, sizes, RIDGE)
    parts = []
    for k, selection in sorted(by_size.items()):
        columns = np.isin(groups, selection.sensors)
        labels = {
            method: _crf(X[~test][:, columns], y[~test], days[~test])(
                X[test][:, columns], days[test]
            )
        }
        if selection.shrunk is not None:
            labels[f"{method}, shrunk"] = selection.shrunk.predict(X[test], sequence=days[test])
        parts += [
            {"method": name, "k": k, "units": selection.sensors, "labels": predicted.tolist()}
            for name, predicted in labels.items()
        ]
    return parts


def _majority(X: np.ndarray, y: np.ndarray, days: np.ndarray) -> Predictor:
    names, counts = np.unique(y, return_counts=True)
    return lambda X, days: np.full(len(X), names[counts.argmax()])


def _crf(X: np.ndarray, y: np.ndarray, days: np.ndarray, fit_transitions: bool = True) -> Predictor:
    model = LinearChainCRF(RIDGE, fit_transitions=fit_transitions, tol=_TOLERANCE).fit(
        X, y, sequence=days
    )
    return lambda X, days: model.predict(X, sequence=days)


def _hidden_markov(X: np.ndarray, y: np.ndarray, days: np.ndarray) -> Predictor:
    """Build a chain whose scores are the log probabilities of the columns, with naive Bayes
    emissions."""
    classes, codes = np.unique(y, return_inverse=True)
    onehot = np.eye(len(classes))[codes]
    p = (onehot.T @ X + _SMOOTHING) / (onehot.sum(axis=0)[:, None] + 2.0 * _SMOOTHING)
    counts = np.full((len(classes), len(classes)), _SMOOTHING)
    inside = days[1:] == days[:-1]
    np.add.at(counts, (codes[:-1][inside], codes[1:][inside]), 1.0)
    transitions = np.log(counts / counts.sum(axis=1, keepdims=True))

    def predict(X: np.ndarray, days: np.ndarray) -> np.ndarray:
        scores = X @ np.log(p).T + (1.0 - X) @ np.log1p(-p).T
        chain = ChainLoss(np.unique(days, return_counts=True)[1], transitions)
        return classes[chain.marginals(scores).argmax(axis=1)]

    return predict


BASELINES: dict[str, Callable[[np.ndarray, np.ndarray, np.ndarray], Predictor]] = {
    "majority": _majority,
    "logistic": partial(_crf, fit_transitions=False),
    "HMM": _hidden_markov,
    "CRF": _crf,
}


def table_rows(minutes: SensorMinutes, predictions: list[Prediction]) -> list[dict[str, Any]]:
    """Return a table row for each prediction.

    A row contains the errors including and excluding idle minutes, bootstrap intervals over days,
    and the errors of each activity.
    """
    truth, days, rows = minutes.truth, minutes.days, []
    for one in predictions:
        seen = one.minutes
        target, labels = truth[seen], one.labels[seen]
        row: dict[str, Any] = {
            "method": one.method,
            "sensors": one.k,
            "minutes": int(seen.sum()),
            **errors(target, labels),
            **{f"{key}_active": value for key, value in errors(target, labels, idle=False).items()},
            **bootstrap_interval(target, labels, days[seen]),
            "per_activity": {
                str(name): float((labels[target == name] != name).mean())
                for name in np.unique(target)
            },
        }
        if one.selected:
            row["chosen"] = dict(
                Counter(sorted(name for fold in one.selected for name in fold)).most_common()
            )
        rows.append(row)
    return rows
