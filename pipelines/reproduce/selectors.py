"""The FSA papers' comparisons of selectors, run again: ours beside what was printed.

Every function returns ``{"name", "settings", "rows"}``, one row per line of the table. Slow methods get fewer runs than ours
(``_RUNS``); each row says how many it had. DR is the percentage of runs in which all relevant columns were found, PCD the
percentage of relevant columns found; seconds are medians of processor time (the printed ones are not).
"""

from __future__ import annotations

import functools
import time
import warnings
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import numpy as np
from sklearn.metrics import roc_auc_score

from ...learners import (
    ForwardBackwardClassifier,
    ForwardBackwardRegressor,
    FSAClassifier,
    FSARegressor,
    LogisticLoss,
    LogitBoostClassifier,
    MinimaxSparseClassifier,
    Prior,
    SquaredLoss,
    TISPClassifier,
    TISPRegressor,
)
from ...learners.solvers.newton import SupportProblem, refit
from ..common.checkpoints import Checkpoint
from . import competitors as comparators
from .printed_values import printed
from .simulated import Simulated, simulate

_CLASSIFICATION_SIZES = [(300, 10), (1000, 10), (3000, 10), (10000, 10), (1000, 30), (3000, 30), (10000, 30)]
_REGRESSION_SIZES = [(300, 30), (1000, 30), (3000, 30), (10000, 30)]
_M = 1000

# Settings of the annealing rows: the papers' algorithm alone (500 steps, refit on the k left); rates as found on mean gradients of
# standardised columns. "annealed" is FSA as this package runs it by default.
_FSA: dict[str, dict[str, Any]] = {
    "FSA": {"loss": "logistic", "learning_rate": 10.0, "mu": 300.0, "prior": Prior(shrinkage=1e-3)},
    "FSV": {"loss": "huberised_hinge", "learning_rate": 1.0, "mu": 100.0, "prior": Prior(shrinkage=1e-3)},
    "FSL": {"loss": "lorenz", "learning_rate": 1.0, "mu": 30.0, "prior": Prior(shrinkage=1e-3)},
}
# Beyond one over the curvature, as in annealing: the safe rate finds fewer. For clean and noisy labels, up to ten columns and more:
# nearest to the printed shares of columns found, on draws (seeds 9000 to 9011) that are in no table.
_QTP_RATE = {False: (6.0, 4.0), True: (3.0, 2.0)}
_NOISY_RATE = 3.0  # of the logistic row: 10 is too much where labels are wrong


def _classifiers(k: int, noisy: bool, seed: int) -> dict[str, Callable[[], Any]]:
    def fsa(name):
        settings = dict(_FSA[name])
        if noisy and name == "FSA":
            settings["learning_rate"] = _NOISY_RATE
        return lambda: FSAClassifier(k, n_steps=500, polish="refit", **settings)

    return {
        "annealed": lambda: FSAClassifier(k),
        **{name: fsa(name) for name in _FSA},
        "QTP": lambda: TISPClassifier(k, learning_rate=_QTP_RATE[noisy][k > 10]),
        "LB": lambda: LogitBoostClassifier(k),
        "LB1": lambda: LogitBoostClassifier(k, subsample=0.1, random_state=seed),
        "FoBa-gdt": lambda: ForwardBackwardClassifier(k),
        "FoBa-obj": lambda: ForwardBackwardClassifier(k, criterion="objective"),
        "MSLR": lambda: MinimaxSparseClassifier(max(1, k // 10), n_features_to_select=k),
    }


def _regressors(k: int) -> dict[str, Callable[[], Any]]:
    return {
        "annealed": lambda: FSARegressor(k),
        "FSA": lambda: FSARegressor(k, n_steps=500, mu=30.0, learning_rate=0.02, polish="refit", prior=Prior(shrinkage=1e-4)),
        "QTP": lambda: TISPRegressor(k),
        "FoBa-gdt": lambda: ForwardBackwardRegressor(k),
        "FoBa-obj": lambda: ForwardBackwardRegressor(k, criterion="objective"),
    }


_SMALL = {"FoBa-obj": 1000, "skscope": 3000}  # to so many rows only
# Runs at most, by rows: (up to 1000, up to 3000, more); what is not named gets all.
_RUNS = {
    "FoBa-obj": (5, 0, 0),
    "L1": (30, 20, 3),
    "EL": (10, 5, 2),
    "MCP": (30, 30, 5),
    "SCAD": (30, 30, 5),
    "RFE": (30, 20, 3),
    "abess": (50, 30, 10),
    "skscope": (3, 1, 0),
    "L2": (10, 5, 2),
}


def _runs(name: str, n: int, runs: int, peer_runs: int | None) -> int:
    """How many of ``runs`` a method gets at n rows."""
    if name not in _RUNS:
        return runs
    return min(runs, _RUNS[name][0 if n <= 1000 else 1 if n <= 3000 else 2] if peer_runs is None else peer_runs)


def refitted_scores(X, y, columns, X_new, task: str) -> np.ndarray:
    """Scores for new rows by the Newton refit on the selected columns: one for all selectors without a model of their own."""
    mean, scale = X[:, columns].mean(axis=0, dtype=np.float64), X[:, columns].std(axis=0, dtype=np.float64)
    target = y.astype(np.float64)[:, None]
    loss = LogisticLoss() if task == "classification" else SquaredLoss()
    problem = SupportProblem(target, loss, np.full(len(y), 1.0 / len(y)))
    constant = loss.best_constant(target, problem.sample_weight)
    fit = refit(problem, (X[:, columns] - mean) / scale, np.zeros((len(columns), 1)), constant)
    return ((X_new[:, columns] - mean) / scale @ fit.theta + fit.intercept)[:, 0]


def run_method(name: str, ours: dict[str, Callable[[], Any]], train: Simulated, X_new, task: str, seed: int):
    """Fit one method.

    Returns
    -------
    columns : ndarray or None
        The selected ones; None for L2, which keeps all.
    scores : ndarray of shape (n_new,)
    seconds : float
        Processor time of the selection and the fit, without the prediction.
    """
    start = time.process_time()
    if name in ours:
        model = ours[name]().fit(train.X, train.y)
        seconds = time.process_time() - start
        scores = model.decision_function(X_new) if task == "classification" else model.predict(X_new)
        return model.get_support(indices=True), scores, seconds
    if name == "L2":
        scores = comparators.ridge_scores(train.X, train.y, task, X_new)
        return None, scores, time.process_time() - start
    columns = comparators.select(name, train.X, train.y, len(train.support), task, seed)
    seconds = time.process_time() - start
    return columns, refitted_scores(train.X, train.y, columns, X_new, task), seconds


def _warm(ours: dict[str, Callable[[], Any]], name: str, task: str) -> None:
    """Compile what a method of ours needs, on small data."""
    train = simulate(task, 100, 400, 10, random_state=0)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", UserWarning)
        run_method(name, ours, train, train.X, task, 0)


def table_row(table: str, n: int, k: int, method: str, results: Sequence[Sequence[float | None]]) -> dict[str, Any]:
    """A method's line of a table, ours beside the printed numbers.

    Parameters
    ----------
    table : {"clean", "noisy", "regression"}
    n, k : int
    method : str
    results : sequence of (share found, AUC or RMSE, seconds)
        One per run; no share for a method that does not select.
    """
    share, good, seconds = np.array(results, dtype=float).T
    selects = not np.isnan(share).any()
    values = {
        "DR": 100.0 * float((share == 1.0).mean()) if selects else None,
        "PCD": 100.0 * float(share.mean()) if selects else None,
        "RMSE" if table == "regression" else "AUC": float(good.mean()),
        "seconds": float(np.median(seconds)),
    }
    row: dict[str, Any] = {"N": n, "M": _M, "k": k, "method": method, "runs": len(results)}
    for what, value in values.items():
        row[what] = value
        row[f"paper_{what}"] = printed(table, n, k, method, what)
    return row


def _compare(
    table: str, task: str, noise: float, sizes, methods, runs: int, peer_runs: int | None, random_state: int, cells: Checkpoint
) -> list[dict[str, Any]]:
    rows: list[dict[str, Any]] = []
    warm: set[str] = set()
    for n, k in sizes:
        ours = _classifiers(k, noise > 0, 0) if task == "classification" else _regressors(k)
        names = [name for name in methods or [*ours, *comparators.available(), "L2"] if n <= _SMALL.get(name, n)]
        found: dict[str, list] = {name: [] for name in names}
        for run in range(runs):
            seed = random_state + run

            @functools.cache
            def data(n=n, k=k, seed=seed):
                seeds = seed, seed + 1_000_000
                return [simulate(task, n, _M, k, label_noise=noise, random_state=s) for s in seeds]

            def measure(name, k=k, seed=seed, data=data):
                ours = _classifiers(k, noise > 0, seed) if task == "classification" else _regressors(k)
                if name in ours and name not in warm:
                    _warm(ours, name, task)
                    warm.add(name)
                train, test = data()
                columns, scores, seconds = run_method(name, ours, train, test.X, task, seed)
                good = roc_auc_score(test.y, scores) if task == "classification" else np.sqrt(np.mean((test.y - scores) ** 2))
                return [None if columns is None else train.found(columns), float(good), seconds]

            for name, results in found.items():
                if run < _runs(name, n, runs, peer_runs):
                    key = {"table": table, "N": n, "k": k, "method": name, "seed": seed}
                    results.append(cells(key, functools.partial(measure, name)))
        rows += [table_row(table, n, k, name, results) for name, results in found.items()]
    return rows


def _check(runs: int, methods: Sequence[str] | None, known: Sequence[str]) -> None:
    if runs < 1:
        raise ValueError(f"runs={runs} is not valid; expected at least 1")
    for name in methods or ():
        if name not in known and name not in comparators.COMPARATORS and name != "L2":
            raise ValueError(f"method {name!r} is unknown; expected one of {', '.join([*known, *comparators.COMPARATORS, 'L2'])}")


def fsa_classification(
    runs: int = 100,
    data_dir=None,
    *,
    noisy: bool = False,
    sizes: Sequence[tuple[int, int]] | None = None,
    methods: Sequence[str] | None = None,
    peer_runs: int | None = None,
    random_state: int = 0,
    checkpoint: str | Path | None = None,
) -> dict[str, Any]:
    """Tables II (clean) and III (noisy labels) of the PAMI text: M = 1000, tenth columns relevant, correlation 0.9^|i - j|.

    Parameters
    ----------
    runs : int
        Simulated data sets per size.
    data_dir
        Not used: the data are simulated.
    noisy : bool
        A tenth of the labels drawn at random.
    sizes : sequence of (N, k) or None
        All of the tables' by default.
    methods : sequence of str or None
        All whose packages are installed by default.
    peer_runs : int or None
        At most that many data sets for the slow ones; by default numbers of their own (at most 50).
    random_state : int
        Seed of the first run; the others follow.
    checkpoint : path or None
        File that keeps finished runs.
    """
    _check(runs, methods, list(_classifiers(1, noisy, 0)))
    chosen = [tuple(size) for size in (sizes or _CLASSIFICATION_SIZES)]
    table, noise = ("noisy", 0.1) if noisy else ("clean", 0.0)
    cells = Checkpoint.of(checkpoint, {"table": "fsa-classification"})
    rows = _compare(table, "classification", noise, chosen, methods, runs, peer_runs, random_state, cells)
    settings = {"runs": runs, "noisy": noisy, "sizes": chosen, "random_state": random_state}
    return {"name": "fsa-classification", "settings": settings, "rows": rows}


def fsa_regression(
    runs: int = 100,
    data_dir=None,
    *,
    sizes: Sequence[tuple[int, int]] | None = None,
    methods: Sequence[str] | None = None,
    peer_runs: int | None = None,
    random_state: int = 0,
    checkpoint: str | Path | None = None,
) -> dict[str, Any]:
    """Table IV of the PAMI text: sum of the relevant columns plus normal noise; parameters as :func:`fsa_classification`."""
    _check(runs, methods, list(_regressors(1)))
    chosen = [tuple(size) for size in (sizes or _REGRESSION_SIZES)]
    cells = Checkpoint.of(checkpoint, {"table": "fsa-regression"})
    rows = _compare("regression", "regression", 0.0, chosen, methods, runs, peer_runs, random_state, cells)
    settings = {"runs": runs, "sizes": chosen, "random_state": random_state}
    return {"name": "fsa-regression", "settings": settings, "rows": rows}


_STABILITY: dict[str, list[float]] = {
    "learning_rate": [0.1, 0.3, 1.0, 3.0, 10.0, 30.0, 100.0],
    "mu": [1.0, 3.0, 10.0, 30.0, 100.0, 300.0, 1000.0, 3000.0],
    "n_steps": [10, 20, 50, 100, 200, 500, 1000],
}


def fsa_stability(
    runs: int = 10,
    data_dir=None,
    *,
    n_samples: int = 1000,
    k: int = 10,
    random_state: int = 0,
    checkpoint: str | Path | None = None,
) -> dict[str, Any]:
    """The stability figure of the PAMI text: AUC against each parameter of annealing, the others held, with a refit alone.

    Parameters
    ----------
    runs : int
        Data sets per point; the paper has 10.
    data_dir
        Not used: the data are simulated.
    n_samples, k : int
        Clean labels, M = 1000.
    random_state : int
    checkpoint : path or None
        File that keeps finished points.
    """
    _check(runs, None, [])
    cells = Checkpoint.of(checkpoint, {"table": "fsa-stability"})

    @functools.cache
    def pairs():
        seeds = [(random_state + run, random_state + run + 1_000_000) for run in range(runs)]
        return [[simulate("classification", n_samples, _M, k, random_state=seed) for seed in pair] for pair in seeds]

    def measure(settings):
        results = []
        for train, test in pairs():
            model = FSAClassifier(k, polish="refit", **settings).fit(train.X, train.y)
            auc = roc_auc_score(test.y, model.decision_function(test.X))
            results.append((auc, train.found(model.get_support(indices=True))))
        return np.mean(results, axis=0).tolist()

    rows = []
    for parameter, values in _STABILITY.items():
        for value in values:
            for name, settings in _FSA.items():
                point = {"parameter": parameter, "value": value, "method": name}
                key = {"table": "stability", "N": n_samples, "k": k, "runs": runs, "seed": random_state, **point}
                fit = {"n_steps": 500, **settings, parameter: value}
                auc, share = cells(key, functools.partial(measure, fit))
                rows.append({**point, "AUC": auc, "PCD": 100.0 * share})
    settings = {"runs": runs, "N": n_samples, "M": _M, "k": k, "random_state": random_state}
    return {"name": "fsa-stability", "settings": settings, "rows": rows}
