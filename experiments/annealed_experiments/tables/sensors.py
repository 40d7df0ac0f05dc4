"""Tables of sensor selection in simulated and public homes."""

import time
from collections.abc import Sequence
from functools import partial
from typing import Any

import numpy as np
from annealed.learners import ForwardBackwardCRF, LinearChainCRF
from annealed.learners.sequences.lasso import lasso_path
from annealed.learners.sequences.problem import minimise
from annealed.pipelines.common.config import check_names
from annealed.pipelines.common.timing import timed
from annealed.pipelines.sensors.evaluate import evaluate_baselines, evaluate_selection, table_rows
from annealed.pipelines.sensors.readers import read_home
from annealed.pipelines.sensors.selection import (
    METHODS,
    blocks_of,
    classifier_of,
    problem_of,
    select_sensors,
    visited,
)
from annealed.pipelines.sensors.train import SELECTION_KINDS

from ..cells import cells_of
from ..data_folder import data_folder
from .sensors_simulation import N_ACTIVITIES, SimulatedHome, simulate_home

N_TRUE = 10
N_DAYS = 10  # number of training days, and of test days
FEATURE_METHODS = ("FoBa", "forward", "L1")  # methods that select single features
N_FEATURES = (10, 20, 30, 40, 60, 80, 100)  # numbers of selected features, out of 560
# Public homes and the folders of their data.
HOMES = {"ordonezA": "sensors_adl", "ordonezB": "sensors_adl", "vankasteren1": "sensors_homes"}


def sensors_simulated(
    runs: int = 10, data_dir=None, *, methods: list[str] | None = None, checkpoint=None
) -> dict[str, Any]:
    """Count the true sensors among ten selected sensors in simulated homes, and compute the error.

    Parameters
    ----------
    runs : int, default 10
        Number of homes, with the seeds 0, 1, ...
    data_dir : path or None, default None
        Not used, since the data are simulated.
    methods : list of str or None, default None
        Keys of ``METHODS``; None means all.
    checkpoint : path, Checkpoint or None, default None
        File that stores finished homes.

    Returns
    -------
    dict
        ``name``, ``settings`` and ``rows``, with means over the homes.
    """
    check_names("method", methods, METHODS)
    cells = cells_of(checkpoint, {"table": "sensors-simulated"})
    chosen = ["all sensors", "true sensors", *(methods or METHODS)]
    by_method: dict[str, list[dict[str, Any]]] = {
        method: [
            cells({"method": method, "seed": seed}, partial(_simulated_cell, method, seed))
            for seed in range(runs)
        ]
        for method in chosen
    }
    rows = []
    for method, homes in by_method.items():
        row: dict[str, Any] = {"method": method, "homes": len(homes)}
        for key in ("sensors", "true", "error", "shrunk_error", "objective", "seconds"):
            values = [home[key] for home in homes if home.get(key) is not None]
            row[key] = float(np.mean(values)) if values else None
        row["oracle_error_same_homes"] = float(
            np.mean([home["error"] for home in by_method["true sensors"]])
        )
        rows.append(row)
    settings = {
        "seeds": list(range(runs)),
        "training_days": N_DAYS,
        "test_days": N_DAYS,
        "minutes": 600,
        "k": N_TRUE,
    }
    return {"name": "sensors-simulated", "settings": settings, "rows": rows}


def sensors_features(
    runs: int = 3,
    data_dir=None,
    *,
    sets: Sequence[str] | None = None,
    methods: list[str] | None = None,
    sizes: Sequence[int] | None = None,
    checkpoint=None,
) -> dict[str, Any]:
    """Select single features in simulated or public homes (Figure 2 of Liu et al. (2014)).

    As in the paper, there is one feature for each sensor and activity, and a sensor counts as
    selected if one of its features is. The parameters are those of :func:`sensors_simulated`, with
    ``methods`` from ``FEATURE_METHODS``. ``sets`` are names in ``HOMES``, which replace the
    simulated homes; every second day is used for training, and the other days for testing. There is
    one row for each home, number of features (``sizes``, by default ``N_FEATURES``) and method. L1
    uses the next smaller number on its path (``taken``). ``by_activity`` holds the errors of the
    activities, most frequent first.
    """
    check_names("method", methods, FEATURE_METHODS)
    check_names("set", sets, HOMES)
    sizes = N_FEATURES if sizes is None else sizes
    cells = cells_of(checkpoint, {"table": "sensors-features"})
    rows = []
    for home in sets or range(runs):
        for method in methods or FEATURE_METHODS:
            key = {"method": method, "home": home, "sizes": list(sizes)}
            results = cells(key, partial(_features_cell, method, home, sizes, data_dir))
            for size in sizes:
                taken = max((row["taken"] for row in results if row["taken"] <= size), default=None)
                rows += [
                    {"home": home, "features": size, "method": method, **row}
                    for row in results
                    if row["taken"] == taken
                ]
    settings = {
        "seeds": list(range(runs)),
        "training_days": N_DAYS,
        "test_days": N_DAYS,
        "minutes": 600,
        "features": 560,
    }
    if sets:
        settings = {"homes": list(sets), "seeds": "no random numbers"}
    return {"name": "sensors-features", "settings": settings, "rows": rows}


def sensors(
    runs: int = 5, data_dir=None, *, home: str = "ordonezA", methods=None, checkpoint=None
) -> dict[str, Any]:
    """Compute the error against the number of sensors in a public home, and the selected sensors.

    This reproduces Figure 2 and Table 2 of Liu et al. (2014).

    Parameters
    ----------
    runs : int, default 5
        Number of folds of whole days.
    data_dir : path or None, default None
        Folder that contains ``sensors_adl``; None means ``ANNEALED_DATA``.
    home : str, default "ordonezA"
        Name of the home.
    methods : list of str or None, default None
        Keys of ``METHODS``; None means all.
    checkpoint : path, Checkpoint or None, default None
        File that stores finished folds.

    Returns
    -------
    dict
        ``name``, ``settings`` and ``rows``, one row for each method and number of sensors.
    """
    check_names("method", methods, METHODS)
    minutes = read_home(data_folder(data_dir) / "sensors_adl", home).minutes
    cells = cells_of(checkpoint, {"table": "sensors"})
    predictions = evaluate_baselines(minutes, SELECTION_KINDS, runs, cells)
    predictions += evaluate_selection(
        minutes, SELECTION_KINDS, range(1, len(minutes.sensors) + 1), methods, runs, cells
    )
    rows = [
        {key: value for key, value in row.items() if key != "per_activity"} | {"k": row["sensors"]}
        for row in table_rows(minutes, predictions)
    ]  # k: part of the key of stored rows
    settings = {
        "home": home,
        "folds": runs,
        "features": list(SELECTION_KINDS),
        "days": len(np.unique(minutes.days)),
    }
    return {"name": "sensors", "settings": settings, "rows": rows}


def _features_cell(
    method: str, home: int | str, sizes: Sequence[int], data_dir
) -> list[dict[str, Any]]:
    train, test = _parts(home, data_dir)
    visited_sizes = range(1, max(sizes) + 1) if method == "L1" else sizes
    by_size, seconds = timed(
        select_features, method, train.on, train.activities, train.days, visited_sizes
    )
    names, codes = np.unique(test.activities, return_inverse=True)
    n = N_ACTIVITIES if isinstance(home, int) else len(names)
    codes = test.activities if isinstance(home, int) else codes
    minutes = np.bincount(codes, minlength=n)
    rows = []
    for size, model in by_size.items():
        used = np.any(model.coef_, axis=0)
        wrong = model.predict(test.on, sequence=test.days) != test.activities
        errors = np.bincount(codes, wrong, n) / np.maximum(minutes, 1)
        rows.append(
            {
                "taken": size,
                "sensors": int(used.sum()),
                "true": int(used[train.true].sum()) if isinstance(home, int) else None,
                "error": float(wrong.mean()),
                "by_activity": errors[np.argsort(-minutes, kind="stable")].tolist(),
                "seconds": seconds,
            }
        )
    return rows


def _parts(home: int | str, data_dir) -> tuple[SimulatedHome, SimulatedHome]:
    """Return the training and test days of a simulated home by its seed, or of a public home."""
    if isinstance(home, int):
        return _home(home)[:2]
    minutes = read_home(data_folder(data_dir) / HOMES[home], home).minutes
    days = np.unique(minutes.days, return_inverse=True)[1]
    whole = SimulatedHome(minutes.on.astype(float), minutes.truth, days, np.array([], int))
    return whole.part(range(0, days.max() + 1, 2)), whole.part(range(1, days.max() + 1, 2))


def select_features(
    method: str,
    X: np.ndarray,
    y: np.ndarray,
    days: np.ndarray,
    sizes: Sequence[int],
    ridge: float = 2.0,
) -> dict[int, LinearChainCRF]:
    """Select single features, and return the refitted models by number of features.

    As in Liu et al. (2014), there is one feature for each column and activity.

    Parameters
    ----------
    method : str
        One of ``FEATURE_METHODS``.
    X, y, days, ridge
        As in `select_sensors`; each column is a sensor.
    sizes : sequence of int
        Requested numbers of features; a penalised method gives those on its path.

    Returns
    -------
    dict of int to LinearChainCRF
    """
    check_names("method", [method], FEATURE_METHODS)
    classes, problem = problem_of(X, y, days, ridge)
    codes = blocks_of(np.arange(X.shape[1]), len(classes), grouped=False)
    by_size: dict[int, np.ndarray] = {}
    if method == "L1":
        for fit in lasso_path(problem, codes, decrease=0.93, max_penalties=100):
            n = int((fit.coef != 0.0).sum())
            by_size |= {n: fit.coef != 0.0} if n in sizes else {}
            if n > max(sizes):
                break
    else:
        search = ForwardBackwardCRF(
            max(sizes), backward=method == "FoBa", per_class=True, ridge=ridge
        )
        by_size = {
            n: np.isin(codes, units)
            for n, units in visited(search.fit(X, y, sequence=days).path_).items()
            if n in sizes
        }
    models = {}
    for n, chosen in by_size.items():
        columns, part = problem.keep(chosen)
        fit = minimise(part)
        coef = np.zeros(codes.shape)
        coef[columns] = fit.coef
        models[n] = classifier_of(classes, fit.with_coef(coef))
    return models


def _home(seed: int) -> tuple[SimulatedHome, SimulatedHome, np.ndarray]:
    """Return the training and test days and the true sensors."""
    home = simulate_home(2 * N_DAYS, random_state=seed)
    return home.part(range(N_DAYS)), home.part(range(N_DAYS, 2 * N_DAYS)), home.true


def _simulated_cell(method: str, seed: int) -> dict[str, Any]:
    train, test, true = _home(seed)
    n_sensors = train.on.shape[1]
    start = time.process_time()
    shrunk_error = None
    if method == "all sensors":
        units = list(range(n_sensors))
    elif method == "true sensors":
        units = true.tolist()
    else:
        select = partial(
            select_sensors, method, train.on, train.activities, train.days, np.arange(n_sensors)
        )
        # The path of a penalty may skip a size; the next smaller one is then used.
        by_size = select(range(N_TRUE, N_TRUE + 1)) or select(range(1, N_TRUE + 1))
        selection = by_size[max(by_size)]
        units = selection.sensors
        if selection.shrunk is not None:
            shrunk_error = 1.0 - selection.shrunk.score(
                test.on, test.activities, sequence=test.days
            )
    seconds = time.process_time() - start
    model = LinearChainCRF().fit(train.on[:, units], train.activities, sequence=train.days)
    error = 1.0 - model.score(test.on[:, units], test.activities, sequence=test.days)
    errors = {
        "sensors": len(units),
        "units": units,
        "true": int(np.isin(units, true).sum()),
        "error": error,
    }
    return errors | {
        "shrunk_error": shrunk_error,
        "objective": model.objective_,
        "seconds": seconds,
    }
