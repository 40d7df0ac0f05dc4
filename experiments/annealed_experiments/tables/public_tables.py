"""Test errors on public tables, compared with L1, RFE, abess and boosting.

Every method uses the same training part. Its number of features is chosen among the same sizes by
the same five folds of the training part. The test part is evaluated once for each size, for the
columns "at". Errors are in percent; they are balanced errors if the authors of the table use these.
"difference" is the error of annealing minus that of L1 at the number of features that annealing
chose, with its paired standard error.
"""

import functools
import time
import warnings
from collections.abc import Sequence
from typing import Any

import numpy as np
import scipy.sparse as sp
from annealed.learners import FSAClassifier
from annealed.pipelines.common.timing import timed
from sklearn.ensemble import HistGradientBoostingClassifier
from sklearn.feature_selection import RFE
from sklearn.linear_model import LogisticRegression
from sklearn.metrics import accuracy_score, balanced_accuracy_score
from sklearn.model_selection import StratifiedKFold
from sklearn.preprocessing import StandardScaler

from ..cells import cells_of
from ..datasets import load_set

SETS = ("dexter", "arcene", "madelon", "gisette_valid", "leukemia", "dorothea", "pcmac", "usps")
SIZES = {
    "leukemia": [1, 2, 3, 5, 10, 20, 50, 100],
    "arcene": [5, 10, 20, 50, 100, 200],
    "madelon": [3, 5, 8, 10, 13, 16, 20],
    "usps": [10, 20, 35, 50, 75, 100],
}
DEFAULT_SIZES = [5, 10, 20, 50, 100, 200, 400]
SETTINGS: dict[str, dict[str, Any]] = {
    "madelon": {"response": "piecewise"}
}  # tables that are nonlinear by construction


BALANCED = ("dorothea",)  # errors are averaged over the classes, as in the authors' evaluation


def _weight(name):
    return "balanced" if name in BALANCED else None


def _fsa(name, sizes, X, y):
    """Fit FSA with its defaults, or with a piecewise-linear response if the table is nonlinear by
    construction.
    """
    return [
        FSAClassifier(k, class_weight=_weight(name), **SETTINGS.get(name, {})).fit(X, y)
        for k in sizes
    ]


def _scaled(X):
    return StandardScaler(with_mean=not sp.issparse(X)).fit(X)


class _Linear:
    """Snapshot of a linear classifier on some scaled columns."""

    def __init__(self, scaler, columns, coef, intercept, classes):
        self.scaler, self.columns = scaler, columns
        self.coef, self.intercept, self.classes = coef.copy(), intercept.copy(), classes

    def predict(self, X):
        scores = self.scaler.transform(X)[:, self.columns] @ self.coef.T + self.intercept
        return self.classes[
            scores.argmax(axis=1) if scores.shape[1] > 1 else (scores[:, 0] > 0).astype(int)
        ]


def _l1(name, sizes, X, y):
    """Fit the L1 path, and return for each size the largest model with at most that number of
    features."""
    scaler = _scaled(X)
    Z = scaler.transform(X)
    several = len(np.unique(y)) > 2
    settings = (
        {"solver": "saga", "tol": 1e-3, "max_iter": 300, "warm_start": True}
        if several
        else {"solver": "liblinear"}
    )
    model = LogisticRegression(l1_ratio=1.0, class_weight=_weight(name), **settings, random_state=0)
    models: dict[int, _Linear] = {}
    for c in np.geomspace(0.3, 3000, 25 if several else 60) / len(y):
        model.set_params(C=c).fit(Z, y)
        columns = np.flatnonzero(np.abs(model.coef_).sum(axis=0))
        linear = _Linear(scaler, columns, model.coef_[:, columns], model.intercept_, model.classes_)
        for k in sizes:
            if 0 < len(columns) <= k and (
                k not in models or len(columns) >= len(models[k].columns)
            ):
                models[k] = linear
        if len(columns) > max(sizes):
            break
    return [models.get(k) for k in sizes]


def _rfe(name, sizes, X, y):
    """Fit recursive elimination of a fifth of the features at a time, with ridge-penalised logistic
    regression."""
    scaler = _scaled(X)
    Z = scaler.transform(X)
    columns = np.arange(X.shape[1])
    solver = "lbfgs" if len(np.unique(y)) > 2 else "liblinear"
    base = LogisticRegression(class_weight=_weight(name), solver=solver, max_iter=300)
    models = []
    for k in sizes[::-1]:
        selector = RFE(base, n_features_to_select=k, step=0.2).fit(Z[:, columns], y)
        columns = columns[selector.support_]
        last = selector.estimator_
        models.append(_Linear(scaler, columns, last.coef_, last.intercept_, last.classes_))
    return models[::-1]


def _abess(name, sizes, X, y):
    """Fit best-subset selection by splicing, if abess is installed."""
    from abess import LogisticRegression as Abess
    from abess import MultinomialRegression

    scaler = _scaled(X)
    Z = scaler.transform(X)
    moving = np.flatnonzero(scaler.var_ > 0)  # abess fails on constant columns
    classes, codes = np.unique(y, return_inverse=True)
    model = Abess if len(classes) == 2 else MultinomialRegression
    models = []
    for k in sizes:
        fitted = model(support_size=[k], thread=1).fit(Z[:, moving], codes)
        coef = np.asarray(fitted.coef_)
        coef = coef[None] if coef.ndim == 1 else coef.T
        models.append(_Linear(scaler, moving, coef, np.atleast_1d(fitted.intercept_), classes))
    return models


METHODS = {"annealed": _fsa, "l1": _l1, "rfe": _rfe, "abess": _abess}


def _errors(name, models, X, y):
    """Return the error in percent of each model, or NaN for a missing size."""
    measure = balanced_accuracy_score if name in BALANCED else accuracy_score
    return np.array([np.nan if m is None else 100 * (1 - measure(y, m.predict(X))) for m in models])


def _paired(name, first, second, X, y):
    """Return the difference of two errors in percent, and its standard error over the test rows."""
    wrong = [(m.predict(X) != y).astype(float) for m in (first, second)]
    difference = wrong[0] - wrong[1]
    groups = [y == c for c in np.unique(y)] if name in BALANCED else [np.ones(len(y), bool)]
    mean = np.mean([difference[g].mean() for g in groups])
    error = np.sqrt(sum(difference[g].var() / g.sum() for g in groups)) / len(groups)
    return 100 * mean, 100 * error


def _set_rows(name: str, data_dir, methods: Sequence[str]) -> list[dict[str, Any]]:
    X, y, X_test, y_test = load_set(name, data_dir)
    X, X_test = X.astype(np.float32), X_test.astype(np.float32)
    sizes = SIZES.get(name, DEFAULT_SIZES)
    rows, at_test = [], {}
    folds = list(StratifiedKFold(5, shuffle=True, random_state=0).split(X, y))
    for method in methods:
        if method == "boosting":
            rows.append(_boosting(name, X, y, X_test, y_test))
            continue
        start = time.process_time()
        fit = METHODS[method]
        cv = np.mean(
            [
                _errors(name, fit(name, sizes, X[train], y[train]), X[test], y[test])
                for train, test in folds
            ],
            axis=0,
        )
        cv_seconds = time.process_time() - start
        models, seconds = timed(fit, name, sizes, X, y)
        test = _errors(name, models, X_test, y_test)
        best = int(np.nanargmin(np.where(np.isnan(test), np.nan, cv)))
        at_test[method] = models, best, test
        rows.append(
            {
                "data": name,
                "method": method,
                "k": sizes[best],
                "error": test[best],
                "cv_error": cv[best],
                "at": dict(zip(sizes, test.round(1).tolist())),
                "cv_at": dict(zip(sizes, cv.round(1).tolist())),
                "seconds_per_fit": seconds / len(sizes),
                "seconds_cv": cv_seconds,
            }
        )
    if {"annealed", "l1"} <= at_test.keys():
        models, best, _ = at_test["annealed"]
        other = at_test["l1"][0][best]
        if other is not None:
            rows.append(
                {
                    "data": name,
                    "method": "l1, same k",
                    "k": sizes[best],
                    "error": at_test["l1"][2][best],
                }
            )
            mean, error = _paired(name, models[best], other, X_test, y_test)
            rows[methods.index("annealed")] |= {"difference": mean, "difference_se": error}
    return rows


def _boosting(name, X, y, X_test, y_test):
    """Fit boosting on all features, as a reference for the error."""
    X, X_test = ((m.toarray() if sp.issparse(m) else m) for m in (X, X_test))
    model, seconds = timed(
        HistGradientBoostingClassifier(class_weight=_weight(name), random_state=0).fit, X, y
    )
    error = _errors(name, [model], X_test, y_test)[0]
    return {
        "data": name,
        "method": "boosting",
        "k": X.shape[1],
        "error": error,
        "seconds_per_fit": seconds,
    }


def public_tables(
    runs: int = 1,
    data_dir=None,
    *,
    sets=SETS,
    methods=("annealed", "l1", "rfe", "boosting"),
    checkpoint=None,
) -> dict[str, Any]:
    """Compute test errors on public tables with the number of features chosen on the training part.

    The number is chosen by five folds. The methods are "annealed", "l1", "rfe", "abess" and
    "boosting" (all columns). The parts are fixed, so ``runs`` is not used.
    """
    cells = cells_of(checkpoint, {"table": "public-tables"})
    rows = []
    with warnings.catch_warnings(
        action="ignore"
    ):  # competitors are evaluated even if they reach their iteration limit
        for name in sets:
            key = {"data": name, "methods": list(methods)}
            rows += cells(key, functools.partial(_set_rows, name, data_dir, methods))
    return {
        "name": "public-tables",
        "settings": {"sets": list(sets), "methods": list(methods)},
        "rows": rows,
    }
