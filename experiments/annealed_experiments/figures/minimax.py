"""Figures of Tan et al. (2013): recovery, convergence, conditioning and sensitivity."""

from typing import Any

import numpy as np
from annealed.learners import MinimaxSparseClassifier
from annealed.pipelines.common.timing import timed
from matplotlib.figure import Figure
from matplotlib.ticker import MaxNLocator
from scipy.special import logsumexp, softmax, xlogy
from sklearn.preprocessing import StandardScaler

from ..datasets import load_set
from ..tables.minimax import SUBSTITUTE_DATASETS, mslr_leukemia, mslr_synthetic
from .panels import curves, panels

_ACROSS = 5  # number of panels in a row
# Constants of the example of the paper's Figure 2.
_C1, _C2 = 0.09, 0.99
_CUTS = {"a": [0.015, 0.040], "b": [-2.433, 1.380], "square_norms": [2406.148, 2403.345]}


def recovery(data_dir=None, *, rows=None, **options: Any) -> Figure:
    """Draw the number of recovered relevant columns against the number of selected columns (Figures
    1, 3 and 4). The options are those of :func:`mslr_synthetic`.
    """
    rows = mslr_synthetic(**options)["rows"] if rows is None else rows
    cases = list(dict.fromkeys((row["setup"], row["tau"]) for row in rows))
    across = min(len(cases), _ACROSS)
    down = -(-len(cases) // across)
    figure = Figure(figsize=(3.2 * across, 3 * down), layout="constrained")
    axes = figure.subplots(down, across, squeeze=False).ravel()
    for ax in axes[len(cases) :]:
        ax.remove()
    for ax, (setup, tau) in zip(axes, cases):
        curves(
            ax,
            (
                (r["method"], r["selected"], r["recovered"])
                for r in rows
                if (r["setup"], r["tau"]) == (setup, tau)
            ),
        )
        ax.set(title=setup if tau is None else f"{setup}, tau = {tau:g}", xlabel="selected")
    for ax in axes[: len(cases) : across]:
        ax.set_ylabel("recovered")
    axes[0].legend()
    return figure


def leukemia(data_dir=None) -> Figure:
    """Draw the misclassified test samples of leukemia and the seconds of a fit against the number
    of genes (Figures 6(a) and 7(a)).
    """
    rows = mslr_leukemia(data_dir=data_dir)["rows"]
    figure, (left, right) = panels(9, 3.2, 2)
    for ax, what, label in (
        (left, "missed", "missed of 34"),
        (right, "seconds", "processor seconds of a fit"),
    ):
        curves(ax, ((f"r = {row['r']}", row["selected"], row[what]) for row in rows))
        ax.set(xlabel="genes", ylabel=label)
    right.set_yscale("log")
    left.legend()
    return figure


def conditioning(data_dir=None) -> Figure:
    """Draw the smoothed problem of one coordinate for q = 10 and 100 with the paper's constants
    (Figure 2): slope, curvature, value, and the weight of the first cut.
    """
    c1, c2 = _C1, _C2
    a, b, half = (np.array(_CUTS[name])[:, None] for name in ("a", "b", "square_norms"))
    half = 0.5 * half
    z = np.linspace(-c1, c2, 2002)[1:-1]
    parts = half + 0.5 * a * z**2 + b * z
    figure = Figure(figsize=(9, 6), layout="constrained")
    axes = figure.subplots(2, 2).ravel()
    for q in (10.0, 100.0):
        weights, slopes = softmax(q * parts, axis=0), a * z + b
        mean = (weights * slopes).sum(axis=0)
        slope = np.log((c1 + z) / (c2 - z)) + mean
        curvature = (
            1.0 / (c1 + z)
            + 1.0 / (c2 - z)
            + (weights * (a + q * slopes**2)).sum(axis=0)
            - q * mean**2
        )
        value = (
            xlogy(c1 + z, c1 + z)
            + xlogy(c2 - z, c2 - z)
            + logsumexp(q * (parts - half.max()), axis=0) / q
        )
        for ax, what in zip(axes, (slope, curvature, value, weights[0])):
            ax.plot(z, what, label=f"q = {q:g}")
    for ax, title in zip(
        axes, ("slope", "curvature", "value, up to a constant", "weight of the first cut")
    ):
        ax.set(title=title, xlabel="z")
    axes[1].set_yscale("log")
    axes[0].legend()
    return figure


def convergence(data_dir=None) -> Figure:
    """Draw the relative change of the objective at each cut, on leukemia and on one half of news20
    against the other (Figure 5).
    """
    figure, (ax,) = panels(5, 3.2)
    X, y, _, _ = load_set("leukemia", data_dir)
    scaled = StandardScaler().fit_transform(X.T).T
    for label, rows, target, r in (
        ("leukemia", scaled, y, 2),
        ("news20", *SUBSTITUTE_DATASETS["news20"](data_dir)[:2], 20),
    ):
        objective = (
            MinimaxSparseClassifier(r, C=10.0, max_cuts=20, retrain_C=None)
            .fit(rows, target)
            .objective_
        )
        change = np.abs(np.diff(objective)) / abs(objective[-1])
        curves(
            ax,
            ((f"{label}, r = {r}", cut, max(value, 1e-12)) for cut, value in enumerate(change, 2)),
        )
    ax.set(xlabel="cut", ylabel="relative change of the objective", yscale="log")
    ax.xaxis.set_major_locator(MaxNLocator(integer=True))
    ax.legend()
    return figure


def sensitivity(data_dir=None) -> Figure:
    """Draw the accuracy and seconds for C = 5, 10 and 20 against the number of features (Figure 8).

    The task is one half of the newsgroups of news20 against the other; the paper uses astro-ph,
    which was not available. Half of the documents are used for training, and the others for
    testing. Models are retrained with C = 5.
    """
    X, y = SUBSTITUTE_DATASETS["news20"](data_dir)
    train, test = np.array_split(np.random.RandomState(0).permutation(len(y)), 2)
    accuracy, seconds = [], []
    for C in (5.0, 10.0, 20.0):
        for size in (10, 25, 50, 100, 150):
            model = MinimaxSparseClassifier(
                -(-size // 10), C=C, n_features_to_select=size, retrain_C=5.0
            )
            seconds.append((f"C = {C:g}", size, timed(model.fit, X[train], y[train])[1]))
            accuracy.append((f"C = {C:g}", size, 100.0 * model.score(X[test], y[test])))
    figure, axes = panels(9, 3.2, 2)
    for ax, label, points in zip(axes, ("accuracy, %", "processor seconds"), (accuracy, seconds)):
        curves(ax, points)
        ax.set(xlabel="features", ylabel=label)
    axes[0].legend()
    return figure
