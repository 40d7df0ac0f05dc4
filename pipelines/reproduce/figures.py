"""Figures of the papers, drawn again (``annealed reproduce NAME --picture FILE``)."""

from __future__ import annotations

import functools
from pathlib import Path
from typing import Any

import numpy as np
from matplotlib.figure import Figure
from sklearn.metrics import roc_auc_score
from sklearn.preprocessing import MaxAbsScaler, normalize

from ...learners import FSAClassifier, Schedule, SDist, StabilizedTruncatedSGDClassifier, TruncatedGradientClassifier
from ...learners.metric_learning.boosting import SparseMetric
from ..common.checkpoints import Checkpoint
from .datasets import load_set
from .metric import SIMULATED
from .selectors import FSA, Design, check_runs
from .simulated import simulated_case

_LOSSES = {"FSA": "logistic", "FSV": "Huberised hinge", "FSL": "Lorenz"}
_PARAMETERS = {"learning_rate": "learning rate", "mu": "mu", "n_steps": "number of steps"}


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
    checkpoint: str | Path | Checkpoint | None = None,
) -> dict[str, Any]:
    """Figure 6 of Barbu et al. (2017): AUC against each parameter of annealing, the others held, with a refit alone.

    M = 1000 columns and clean labels; the paper has 10 runs per point. Rows: ``parameter``, ``value``, ``method``, ``AUC`` and
    ``PCD`` (percent).
    """
    check_runs(runs)
    cells = Checkpoint.of(checkpoint, {"table": "fsa-stability"})

    @functools.cache
    def pairs():
        design = Design("classification", n_samples, 1000, k)
        return [(design.draw(seed), design.draw(seed + 1_000_000)) for seed in range(random_state, random_state + runs)]

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
            for name, settings in FSA.items():
                point = {"parameter": parameter, "value": value, "method": name}
                key = {"table": "stability", "N": n_samples, "k": k, "runs": runs, "seed": random_state, **point}
                changed = {"schedule": Schedule(mu=value)} if parameter == "mu" else {parameter: value}
                fit = {"n_steps": 500, **settings, **changed}
                auc, share = cells(key, functools.partial(measure, fit))
                rows.append({**point, "AUC": auc, "PCD": 100.0 * share})
    settings = {"runs": runs, "N": n_samples, "M": 1000, "k": k, "random_state": random_state}
    return {"name": "fsa-stability", "settings": settings, "rows": rows}


def _stability(data_dir=None, **options: Any) -> Figure:
    """Figure 6 of Barbu et al. (2017): AUC against rate, mu and number of steps; options of :func:`fsa_stability`."""
    rows = fsa_stability(**options)["rows"]
    figure = Figure(figsize=(9, 2.8), layout="constrained")
    axes = figure.subplots(1, 3, sharey=True)
    for ax, (parameter, label) in zip(axes, _PARAMETERS.items()):
        for (method, name), marker in zip(_LOSSES.items(), "os^"):
            points = [(r["value"], r["AUC"]) for r in rows if r["parameter"] == parameter and r["method"] == method]
            ax.semilogx(*zip(*points), marker=marker, markersize=4, label=name)
        ax.set_xlabel(label)
        ax.grid(alpha=0.3)
    axes[0].set_ylabel("AUC")
    axes[0].legend()
    return figure


def _surfaces(data_dir=None) -> Figure:
    """Figures 2.1 and 2.3 of Ma (thesis): the first direction of the learnt subspace over the two informative columns."""
    figure = Figure(figsize=(13, 6.5), layout="tight")
    axes = figure.subplots(2, 4)
    grid = np.linspace(-2.5, 2.5, 61)
    a, b = np.meshgrid(grid, grid)
    for row, case in enumerate(("rings", "xor")):
        X, y, _, _ = simulated_case(case, 500, 50, 0)
        axes[row, 0].scatter(*X[:, :2].T, c=y, s=6, cmap="coolwarm")
        axes[row, 0].set_title(f"{case}: 500 rows, 2 of 50 columns")
        points = np.zeros((a.size, 50), np.float32)
        points[:, 0], points[:, 1] = a.ravel(), b.ravel()
        model = SDist(**{**SIMULATED, "n_features_to_select": None}).fit(X, y)
        for column, steps in enumerate((1, len(model.path_) // 2, len(model.path_))):
            metric = SparseMetric.of(model.path_[:steps])
            surface = model._features.columns(points, metric.columns) @ metric.factor()[0]
            axes[row, column + 1].contourf(a, b, surface.reshape(a.shape), 20, cmap="viridis")
            axes[row, column + 1].set_title(f"first direction, step {steps}")
    return figure


def _nonzeros(data_dir=None) -> Figure:
    """Figures 3.1 and 3.5 of Ma (thesis): features in use after every 25 rows on Dexter."""
    X, y, _, _ = load_set("dexter", data_dir)
    X = normalize(X[:, X.getnnz(axis=0) > 0])  # the other columns are empty
    figure = Figure(figsize=(7, 4), layout="tight")
    ax = figure.subplots()
    for label, model in (
        ("annealed stages", StabilizedTruncatedSGDClassifier(300, loss="logistic", learning_rate=3.0, random_state=0)),
        (
            "text, corrected",
            StabilizedTruncatedSGDClassifier(selection="threshold", rejection=0.7, annealing=-3.0, min_bursts=5, random_state=0),
        ),
    ):
        ax.plot(25 * np.arange(1, len(model.fit(X, y).history_) + 1), model.history_[:, 0] / X.shape[1], label=label)
    model, shares = TruncatedGradientClassifier(gravity=3e-3, learning_rate=1.0, random_state=0), []
    rng = np.random.default_rng(0)
    for _ in range(20):
        for rows in np.array_split(rng.permutation(len(y)), 12):
            model.partial_fit(X[rows], y[rows], classes=[-1, 1])
            shares.append(np.mean(model.coef_ != 0))
    ax.plot(25 * np.arange(1, len(shares) + 1), shares, label="truncated gradient")
    ax.set_xlabel("rows seen by each path")
    ax.set_ylabel(f"share of the {X.shape[1]:,} columns in use")
    ax.set_yscale("log")
    ax.legend()
    return figure


def _sparsity(data_dir=None) -> Figure:
    """Figure 3.3 of Ma (thesis): share of the columns selected at each density on Dorothea."""
    X, y, _, _ = load_set("dorothea", data_dir)
    X = MaxAbsScaler().fit_transform(X)
    density = np.asarray((X != 0).mean(axis=0)).ravel()
    edges = np.quantile(density[density > 0], np.linspace(0, 1, 16))
    figure = Figure(figsize=(7, 4), layout="tight")
    ax = figure.subplots()
    for label, model in (
        ("annealed stages", StabilizedTruncatedSGDClassifier(0.01, loss="logistic", class_weight="balanced", random_state=0)),
        ("truncated gradient", TruncatedGradientClassifier(gravity=1e-4, loss="logistic", class_weight="balanced", random_state=0)),
    ):
        chosen = (model.fit(X, y).coef_ != 0).any(axis=0)
        place = np.digitize(density, np.unique(edges)[1:-1])
        shares = [chosen[(place == i) & (density > 0)].mean() for i in range(place.max() + 1)]
        centres = [density[(place == i) & (density > 0)].mean() for i in range(place.max() + 1)]
        ax.plot(centres, np.array(shares) / chosen.mean(), "o-", label=f"{label}, {100 * chosen.mean():.1f} % of the columns")
    ax.set_xscale("log")
    ax.set_xticks([0.002, 0.005, 0.01, 0.02, 0.05], ["0.2 %", "0.5 %", "1 %", "2 %", "5 %"])
    ax.minorticks_off()
    ax.set_xlabel("share of rows in which the column is not zero")
    ax.set_ylabel("selected, relative to the average")
    ax.legend()
    return figure


FIGURES = {"fsa-stability": _stability, "sdist-surfaces": _surfaces, "online-nonzeros": _nonzeros, "online-sparsity": _sparsity}


def draw(name: str, path: str | Path, data_dir=None, **options: Any) -> None:
    """Write a picture of ``FIGURES``; ``options`` are ``runs`` and ``checkpoint`` of "fsa-stability"."""
    if name not in FIGURES:
        raise ValueError(f"{name!r} has no picture; expected one of {', '.join(FIGURES)}")
    FIGURES[name](data_dir, **options).savefig(path, dpi=100 if name == "fsa-stability" else 70)
