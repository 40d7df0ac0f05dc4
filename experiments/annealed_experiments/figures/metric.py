"""Figures of the sparse metric sDist, from Ma (thesis), chapter 2."""

import functools
from typing import Any

import numpy as np
from annealed.learners import SDist
from annealed.learners.metric_learning.boosting import SparseMetric
from matplotlib.figure import Figure
from sklearn.model_selection import StratifiedKFold
from sklearn.neighbors import KNeighborsClassifier

from ..cells import cells_of
from ..datasets import load_set
from ..tables.metric import SIMULATED, sdist_real
from ..tables.simulated import simulated_case
from .panels import panels


def surfaces(data_dir=None) -> Figure:
    """Draw the first principal component of the transformed training rows L phi(x) over the two
    informative columns (Figures 2.1 and 2.3 of Ma (thesis)).
    """
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
        settings: dict[str, Any] = {**SIMULATED, "n_features_to_select": None}
        model = SDist(**settings).fit(X, y)
        for column, steps in enumerate((1, len(model.path_) // 2, len(model.path_))):
            metric = SparseMetric.of(model.path_[:steps])
            factor = metric.factor().T
            inside = model._features.columns(X, metric.columns) @ factor
            component = np.linalg.svd(inside - inside.mean(axis=0), full_matrices=False)[2][0]
            surface = model._features.columns(points, metric.columns) @ factor @ component
            axes[row, column + 1].contourf(a, b, surface.reshape(a.shape), 20, cmap="viridis")
            axes[row, column + 1].set_title(f"first component, step {steps}")
    return figure


def base_classifier(data_dir=None, runs: int = 20) -> Figure:
    """Compare f_W of (2.3) with nearest neighbours at each k on Ionosphere (Figure 2.2 of Ma
    (thesis)).

    Both use the Euclidean metric. The error is that of 5-fold cross-validation on all rows,
    averaged over ``runs`` random partitions.
    """
    sizes, errors = base_errors(data_dir, runs)
    figure, (ax,) = panels(5, 3.2, layout="tight")
    for label, row in zip(("f_W", "kNN"), errors):
        ax.plot(sizes, row, marker="o", markersize=3, label=label)
    ax.set(xlabel="k", ylabel="error on Ionosphere")
    ax.legend()
    return figure


def base_errors(
    data_dir, runs: int, sizes: tuple[int, ...] = (1, 3, 5, 7, 9, 11, 15, 21, 31, 41)
) -> tuple[tuple[int, ...], np.ndarray]:
    """Return the numbers of neighbours, and the errors (2, n_sizes) of f_W and of the vote."""
    train_X, train_y, test_X, test_y = load_set("ionosphere", data_dir)
    X, y = np.concatenate([train_X, test_X]), np.concatenate([train_y, test_y])
    errors = np.zeros((2, len(sizes)))
    for run in range(runs):
        for train, test in StratifiedKFold(5, shuffle=True, random_state=run).split(X, y):
            for at, k in enumerate(sizes):
                f = _mean_distances(X[train], y[train], X[test], k)
                votes = KNeighborsClassifier(k).fit(X[train], y[train]).predict(X[test])
                errors[0, at] += np.mean((f > 0) != (y[test] > 0))
                errors[1, at] += np.mean(votes != y[test])
    return sizes, errors / (5 * runs)


def _mean_distances(X, y, X_new, k):
    """Compute f of (2.3) in the Euclidean metric: the mean squared distance to the k nearest
    negative rows minus that to the k nearest positive rows.
    """
    square = [((X_new[:, None] - X[y == label]) ** 2).sum(axis=2) for label in (-1, 1)]
    near = [np.partition(d, k - 1, axis=1)[:, :k].mean(axis=1) for d in square]
    return near[0] - near[1]


def columns(data_dir=None, *, rows=None, **options: Any) -> Figure:
    """Draw the share of columns that sDist uses on the real data sets, and the seconds of a fit
    (Figure 2.4 of Ma (thesis)).
    """
    if rows is None:
        options = {"runs": 3, "data_dir": data_dir, "methods": ["sDist"], **options}
        rows = sdist_real(**options)["rows"]
    rows = [row for row in rows if row["method"] == "sDist"]
    figure, (left, right) = panels(8, 3, 2, layout="tight")
    names = [row["data"] for row in rows]
    left.bar(names, [100.0 * row["variables"] / row["columns"] for row in rows])
    left.set_ylabel("% of the columns used")
    right.bar(names, [row["seconds"] for row in rows], color="C1")
    right.set_ylabel("processor seconds of a fit")
    for ax in (left, right):
        ax.tick_params(axis="x", labelsize=8, rotation=15)
    return figure


SENSITIVITY: dict[str, list[float]] = {
    "update_every": [1, 5, 20, 50, 100],
    "bagging": [0.1, 0.3, 0.5, 0.7, 1.0],
    "kappa": [3, 10, 25, 50, 100],
}


def sensitivity(data_dir=None, runs: int = 1, checkpoint=None) -> Figure:
    """Draw the error on Madelon against three parameters of sDist (Figure 2.5 of Ma (thesis)).

    The parameters are the frequency of updates, the bagging fraction and kappa (rho p). Errors are
    those of 5-fold cross-validation on the training rows with ``runs`` partitions (20 in Ma
    (thesis)), for votes of three neighbours and for f_W, with 150 steps and order 1. The other two
    parameters are those of the table.
    """
    X, y, _, _ = load_set("madelon", data_dir)
    cells = cells_of(checkpoint, {"table": "sdist-sensitivity"})
    base = {
        "kappa": 10,
        "max_order": 1,
        "learning_rate": 0.1,
        "n_steps": 150,
        "n_features_to_select": 20,
        "random_state": 0,
    }
    figure, axes = panels(12, 3.2, 3, sharey=True)
    for ax, (name, values) in zip(axes, SENSITIVITY.items()):
        results = [
            cells(
                {"runs": runs, name: v},
                functools.partial(_fold_errors, X, y, base | {name: v}, runs),
            )
            for v in values
        ]
        for label, at in (
            ("kNN, validation", 0),
            ("f_W, validation", 1),
            ("kNN, training", 2),
            ("f_W, training", 3),
        ):
            ax.plot(
                values,
                [f[at] for f in results],
                "o-" if at < 2 else "o:",
                color=f"C{at % 2}",
                markersize=3,
                label=label,
            )
        ax.set_xlabel(
            {
                "update_every": "steps between updates",
                "bagging": "bagging fraction",
                "kappa": "columns per step",
            }[name]
        )
    axes[0].set_ylabel("error on Madelon")
    figure.legend(*ax.get_legend_handles_labels(), loc="outside right center")
    return figure


def _fold_errors(X, y, settings: dict[str, Any], runs: int) -> list[float]:
    """Return the mean errors of the vote and of f_W on held-out rows, followed by those on training
    rows."""
    errors = []
    for run in range(runs):
        for train, test in StratifiedKFold(5, shuffle=True, random_state=run).split(X, y):
            model = SDist(**settings).fit(X[train], y[train])
            both = []
            for rows in (test, train):
                for classifier in ("knn", "base"):
                    model.classifier = classifier
                    both.append(float(np.mean(model.predict(X[rows]) != y[rows])))
            errors.append(both)
    return np.mean(errors, axis=0).tolist()
