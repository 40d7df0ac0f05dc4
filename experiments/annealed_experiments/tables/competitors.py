"""Selectors of other packages with a common interface for the tables.

Every function has the signature ``(X, y, k, task, random_state) -> columns`` and returns exactly k
columns, except those in ``FREE_SIZE``. The elastic net also returns the ridge penalty of its refit.
For the task "classification", y is -1 or +1. MCP and SCAD
require skglm; abess, skscope and LightGBM require the packages of the same name (``pip install
'.[bench]'`` in the checkout).
"""

import warnings
from collections.abc import Callable
from functools import partial
from importlib.util import find_spec
from typing import Any

import numpy as np
from annealed.pipelines.common.config import check_names
from annealed.pipelines.common.timing import timed
from sklearn.exceptions import ConvergenceWarning
from sklearn.feature_selection import RFE
from sklearn.linear_model import (
    LinearRegression,
    LogisticRegression,
    Ridge,
    SGDClassifier,
    enet_path,
    lars_path,
)
from sklearn.preprocessing import StandardScaler


def strongest_columns(strength: np.ndarray, k: int) -> np.ndarray:
    """Return the k columns with the largest absolute strength, in ascending order; the first one
    wins a tie."""
    return np.sort(np.argsort(-np.abs(strength), kind="stable")[:k])


def search_strength(
    fit: Callable[[float], np.ndarray], k: int, low: float, high: float
) -> tuple[np.ndarray, float]:
    """Find the penalty with exactly k non-zero coefficients by bisection on a logarithmic scale.

    The columns of these coefficients, in ascending order, and the penalty are returned. ``fit``
    takes a penalty and returns coefficients (n_features,); ``low`` gives too many non-zero
    coefficients and ``high`` too few. If no penalty gives exactly k, the k largest coefficients at
    the largest penalty with more than k are used.
    """
    best: tuple[np.ndarray, float] | None = None
    for _ in range(14):
        middle = float(np.sqrt(low * high))
        coef = fit(middle)
        count = np.count_nonzero(coef)
        if count >= k:
            low = middle
            if best is None or count <= np.count_nonzero(best[0]):
                best = coef, middle
            if count == k:
                break
        else:
            high = middle
    coef, penalty = (fit(low), low) if best is None else best
    return strongest_columns(coef, k), penalty


def _null_gradient(X, y) -> float:
    """Return the smallest penalty at which an L1-penalised mean loss selects no feature, up to the
    constant of the curvature.
    """
    return float(np.abs(X.T @ (y - y.mean())).max()) / len(y)


def _from_path(penalties: np.ndarray, coefs: np.ndarray, k: int) -> tuple[np.ndarray, float]:
    """Return the columns and the penalty of the first coefficients on a path (n_features,
    n_penalties) with k non-zero values, or with the most on the path.
    """
    sizes = (coefs != 0).sum(axis=0)
    place = int(np.argmax(sizes >= min(k, sizes.max())))
    return strongest_columns(coefs[:, place], k), float(penalties[place])


def l1_columns(X, y, k: int, low: float, high: float, **settings) -> np.ndarray:
    """Return the columns (k,) that L1-penalised logistic regression (liblinear) selects, in
    ascending order; 1 / C is between ``low`` and ``high``.
    """

    def fit(strength):
        return (
            LogisticRegression(l1_ratio=1.0, C=1.0 / strength, solver="liblinear", **settings)
            .fit(X, y)
            .coef_[0]
        )

    return search_strength(fit, k, low, high)[0]


def _l1(X, y, k, task, random_state=None):
    """Select columns by the lasso: LARS for regression, and liblinear with a search for the penalty
    for classification."""
    X = StandardScaler().fit_transform(X)
    if task == "regression":
        path = lars_path(X, y - y.mean(), method="lasso", max_iter=8 * k)
        return _from_path(path[0], path[2], k)[0]
    top = len(y) * _null_gradient(X, y)
    return l1_columns(X, y, k, 1e-3 * top, top, tol=1e-3, random_state=random_state)


def _elastic_net(X, y, k, task, random_state=None, *, early_stopping=False):
    """Select columns by the elastic net, and return the ridge penalty of the refit.

    The solver is coordinate descent for regression, and 1,000 epochs of stochastic gradient descent
    for classification, as in the FSA papers. As in the papers, the refit has only a ridge penalty,
    here the ridge part of the elastic net. With ``early_stopping``, there are at most 100
    epochs, and the refit is that of the other competitors. The share of L1 in the penalty is 0.9
    for classification and 0.99 for regression, which is closest to the papers' numbers on draws
    outside the tables (the printed share is illegible).
    """
    X = StandardScaler().fit_transform(X)
    if task == "regression":
        penalties, coefs, _ = enet_path(X, y - y.mean(), l1_ratio=0.99, eps=1e-3)
        columns, penalty = _from_path(penalties, coefs, k)
        return columns, 0.01 * penalty / 2.0
    top = _null_gradient(X, y)

    def fit(penalty):
        settings = {
            "penalty": "elasticnet",
            "l1_ratio": 0.9,
            "max_iter": 100 if early_stopping else 1000,
            "tol": 1e-3 if early_stopping else None,
            "random_state": random_state,
        }
        model = SGDClassifier("log_loss", alpha=penalty, **settings)
        return model.fit(X, y).coef_[0]

    columns, penalty = search_strength(fit, k, 1e-3 * top, 2.0 * top)
    return columns, None if early_stopping else 0.1 * penalty / 2.0


def _skglm(X, y, k, task, random_state=None, *, penalty_class, gammas):
    """Select columns by a concave penalty of skglm, with one gamma for regression and another for
    the logistic loss, which has less curvature."""
    from skglm import GeneralizedLinearEstimator, penalties
    from skglm.datafits import Logistic, Quadratic
    from skglm.solvers import AndersonCD

    make = partial(getattr(penalties, penalty_class), gamma=gammas[task])
    X = np.asfortranarray(StandardScaler().fit_transform(X), dtype=np.float64)
    centred = y.astype(float) if task == "classification" else y - y.mean()
    # A decreasing path of penalties with warm starts has better local minima than cold starts.
    path = (
        np.geomspace(1.0, 1e-2, 60)
        * _null_gradient(X, centred)
        * (0.5 if task == "classification" else 1.0)
    )
    solver = AndersonCD(max_iter=50, tol=1e-3, fit_intercept=False, warm_start=True)
    model = GeneralizedLinearEstimator(
        Logistic() if task == "classification" else Quadratic(), make(path[0]), solver
    )
    for penalty in path:
        model.penalty = make(penalty)
        coef = np.ravel(model.fit(X, centred).coef_)
        if np.count_nonzero(coef) >= k:
            break
    return strongest_columns(coef, k)


def _recursive_elimination(X, y, k, task, random_state=None):
    """Select columns by recursive feature elimination (scikit-learn), a tenth of the columns at a
    time."""
    model = LinearRegression() if task == "regression" else LogisticRegression(max_iter=200)
    return np.flatnonzero(
        RFE(model, n_features_to_select=k, step=0.1)
        .fit(StandardScaler().fit_transform(X), y)
        .support_
    )


def _abess(X, y, k, task, random_state=None):
    """Select columns by adaptive best-subset selection of size k (abess)."""
    import abess as package

    model = (package.LinearRegression if task == "regression" else package.LogisticRegression)(
        support_size=k
    )
    model.fit(np.asarray(X, dtype=np.float64), y if task == "regression" else (y > 0).astype(int))
    return np.flatnonzero(model.coef_)


def _skscope(X, y, k, task, random_state=None):
    """Select columns by splicing on the mean loss (skscope), with derivatives by jax."""
    import jax.numpy as jnp
    from skscope import ScopeSolver

    X = jnp.asarray(StandardScaler().fit_transform(X))
    target = jnp.asarray(y, dtype=X.dtype)
    if task == "regression":
        target = target - target.mean()

    def objective(coef):
        scores = X @ coef
        return (
            ((scores - target) ** 2).mean()
            if task == "regression"
            else jnp.logaddexp(0.0, -target * scores).mean()
        )

    solver = ScopeSolver(X.shape[1], k)
    solver.solve(objective, jit=True)
    return np.sort(solver.get_support())


def _lightgbm(X, y, k, task, random_state=None):
    """Select the k columns with the largest total gain in gradient boosted trees (LightGBM)."""
    from lightgbm import LGBMClassifier, LGBMRegressor

    model = (LGBMRegressor if task == "regression" else LGBMClassifier)(
        n_jobs=1, verbosity=-1, importance_type="gain"
    )
    return strongest_columns(model.fit(X, y).feature_importances_, k)


def _simulated_annealing(X, y, k, task, random_state=None, *, n_steps=200, n_restarts=10):
    """Select columns by simulated annealing on subsets of any size.

    The rules are those of the R package caret ("safs" in its manual), with least squares in
    two-fold cross-validation. A run starts from a fifth of the columns, and each step adds or
    removes 1% of them at random. A subset that is worse by the fraction d is accepted with
    probability exp(-d step). The result is the best subset of all runs; ``k`` is not used.
    """
    rng, m = np.random.default_rng(random_state), X.shape[1]
    # Least squares on some columns requires only the triangular factor of each half.
    table = np.column_stack([np.ones(len(y)), X, y]).astype(np.float64)
    halves = [np.asarray(np.linalg.qr(table[half::2], mode="r")) for half in (0, 1)]

    def error(used):
        inside = np.concatenate([[True], used, [False]])
        fits = [np.linalg.lstsq(R[:, inside], R[:, -1], rcond=None)[0] for R in halves]
        return sum(
            float(np.sum((R[:, -1] - R[:, inside] @ fit) ** 2))
            for R, fit in zip(halves[::-1], fits)
        )

    best = np.inf, np.zeros(m, bool)
    for _ in range(n_restarts):
        used = np.zeros(m, bool)
        used[rng.choice(m, m // 5, replace=False)] = True
        value = error(used)
        for step in range(1, n_steps + 1):
            trial = used.copy()
            trial[rng.choice(m, m // 100 + 1, replace=False)] ^= True
            new = error(trial)
            if rng.random() < np.exp(min(0.0, step * (value - new) / value)):
                used, value = trial, new
            best = min(best, (value, used), key=lambda result: result[0])
    return np.flatnonzero(best[1])


_mcp = partial(
    _skglm, penalty_class="MCPenalty", gammas={"regression": 3.0, "classification": 12.0}
)
_scad = partial(_skglm, penalty_class="SCAD", gammas={"regression": 3.7, "classification": 8.0})
COMPETITORS: dict[str, Callable[..., Any]] = {
    "L1": _l1,
    "EL": _elastic_net,
    "EL, early stopping": partial(_elastic_net, early_stopping=True),
    "MCP": _mcp,
    "SCAD": _scad,
    "RFE": _recursive_elimination,
    "SA": _simulated_annealing,
    "abess": _abess,
    "skscope": _skscope,
    "LightGBM": _lightgbm,
}
FREE_SIZE = ("SA",)  # competitors that choose the number of columns
_NEEDS = {
    "MCP": "skglm",
    "SCAD": "skglm",
    "abess": "abess",
    "skscope": "skscope",
    "LightGBM": "lightgbm",
}


def available() -> list[str]:
    """Return the names of the competitors whose packages are installed."""
    return [
        name for name in COMPETITORS if name not in _NEEDS or find_spec(_NEEDS[name]) is not None
    ]


def select(
    name: str, X, y, k: int, task: str, random_state=None
) -> tuple[np.ndarray, float | None]:
    """Return the columns that a competitor selects, in ascending order, and the ridge penalty of
    their refit (None: the default). The number of columns is k except for competitors in
    ``FREE_SIZE``. Convergence warnings are suppressed."""
    check_names("competitor", [name], COMPETITORS)
    if name not in available():
        raise ValueError(
            f"competitor {name} requires the package {_NEEDS[name]}; run pip install '.[bench]' "
            "in the annealed checkout"
        )
    with warnings.catch_warnings(action="ignore", category=ConvergenceWarning):
        warnings.simplefilter("ignore", RuntimeWarning)
        selected = COMPETITORS[name](X, y, k, task, random_state)
    columns, ridge = selected if isinstance(selected, tuple) else (selected, None)
    return np.asarray(columns), ridge


def measured_fit(model, X, y, X_test, y_test) -> dict[str, float]:
    """Fit a model in place, and return its error on the test rows and the processor seconds of the
    fit.

    A model that reaches its iteration limit is evaluated without a warning. A model that is fitted
    by another program provides its ``seconds_``.
    """
    with warnings.catch_warnings(action="ignore"):
        _, seconds = timed(model.fit, X, y)
        return {
            "error": float(np.mean(model.predict(X_test) != y_test)),
            "seconds": getattr(model, "seconds_", seconds),
        }


ON_ALL = ("L2", "L2, SGD")  # rows of models that use all columns


def ridge_scores(X, y, task: str, X_new, by_sgd: bool = False) -> np.ndarray:
    """Return the scores of the rows ``X_new`` by a linear model on all columns.

    The model is a ridge or logistic regression or, with ``by_sgd`` as in the papers, the hinge loss
    with at most 1,000 epochs of stochastic gradient descent. The penalty is chosen on a held-out
    fifth of the rows.
    """
    scaler = StandardScaler().fit(X)
    X, X_new = scaler.transform(X), scaler.transform(X_new)
    held = np.arange(len(y)) % 5 == 0
    n = np.count_nonzero(~held)

    def model_of(strength: float):
        if by_sgd:
            return SGDClassifier("hinge", alpha=strength, max_iter=1000, random_state=0)
        return (
            Ridge(alpha=n * strength)
            if task == "regression"
            else LogisticRegression(C=1.0 / (n * strength), max_iter=100)
        )

    models = map(model_of, 10.0 ** np.arange(-4, 2))
    best = max(
        models, key=lambda model: model.fit(X[~held], y[~held]).score(X[held], y[held])
    )  # the first one wins a tie
    model = best.fit(X, y)
    return model.predict(X_new) if task == "regression" else model.decision_function(X_new)
