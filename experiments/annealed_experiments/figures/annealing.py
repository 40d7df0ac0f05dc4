"""Figures of Barbu et al. (2014, 2017): schedules, losses, coefficients along the steps, speed,
stability, responses.
"""

from typing import Any

import numpy as np
from annealed.learners import FSAClassifier, FSAPath, HuberisedHingeLoss, LogisticLoss, LorenzLoss
from annealed.learners.plots import plot_path, plot_schedule
from annealed.models import load_model
from matplotlib.figure import Figure

from ..tables.annealing import fsa_stability
from ..tables.selectors import FSA, Design, fsa_large
from .panels import curves, panels

_LOSSES = {"FSA": "logistic", "FSV": "Huberised hinge", "FSL": "Lorenz"}
_PARAMETERS = {"learning_rate": "learning rate", "mu": "mu", "n_steps": "number of steps"}


def stability(data_dir=None, **options: Any) -> Figure:
    """Figure 6 of Barbu et al. (2017): AUC against rate, mu and number of steps; options of
    :func:`fsa_stability`.
    """
    rows = fsa_stability(**options)["rows"]
    figure, axes = panels(9, 2.8, 3, sharey=True)
    for ax, (parameter, label) in zip(axes, _PARAMETERS.items()):
        selected = (r for r in rows if r["parameter"] == parameter and r["method"] in _LOSSES)
        curves(
            ax,
            ((_LOSSES[r["method"]], r["value"], r["AUC"]) for r in selected),
            "os^",
            markersize=4,
        )
        ax.set(xlabel=label, xscale="log")
        ax.grid(alpha=0.3)
    axes[0].set_ylabel("AUC")
    axes[0].legend()
    return figure


def schedules(data_dir=None) -> Figure:
    """Figure 1 of Barbu et al. (2014), with mu = M / (k v), and Figure 3 of Barbu et al. (2017):
    features remaining after each step.
    """
    figure, (left, right) = panels(9, 3.2, 2)
    for v in (50, 100, 200):
        plot_schedule(10_000, 10, mu=10_000 / (10 * v), schedule="inverse_arxiv", ax=left)
        left.lines[-2].set_label(f"v = {v}")
    plot_schedule(10_000, 10, mu=1.0, schedule="exponential", ax=left)
    left.lines[-2].set_label("exponential")
    left.legend(frameon=False)
    left.set_title("Barbu et al. (2014): M = 10,000, k = 10")
    plot_schedule(1000, 10, mu=(0, 1, 10, 30, 100, 300), ax=right)
    right.set_title("Barbu et al. (2017): M = 1000, k = 10")
    return figure


def losses(data_dir=None) -> Figure:
    """Figure 4 of Barbu et al. (2017): losses as functions of the margin."""
    margin = np.linspace(-3.0, 4.0, 281)
    figure, (ax,) = panels(5, 3.2)
    for label, loss in (
        ("logistic", LogisticLoss()),
        ("Huberised hinge", HuberisedHingeLoss()),
        ("Lorenz", LorenzLoss()),
    ):
        ax.plot(margin, loss.margin_value(margin), label=label)
    ax.set(xlabel="margin y f", ylabel="loss")
    ax.legend(frameon=False)
    return figure


def coefficients(data_dir=None) -> Figure:
    """Figure 2 of both papers: coefficients along the path from all columns to k, N = M = 1000, k =
    10.
    """
    draw = Design("classification", 1000, 1000, 10).draw(0)
    path = FSAPath(
        FSAClassifier(10, refinement=None, **FSA["FSA"]), sizes=[10, 20, 50, 100, 200, 500, 1000]
    )
    figure, (ax,) = panels(5, 3.2)
    plot_path(path.fit(draw.X, draw.y), ax=ax)
    return figure


def large(data_dir=None, **options: Any) -> Figure:
    """Figure 1 of Barbu et al. (2017): seconds, columns found and AUC against N, FSA with the
    Lorenz loss against LogitBoost.
    """
    rows = fsa_large(**{"runs": 1, "methods": ["FSL", "annealed", "LB1", "LB"], **options})["rows"]
    figure, axes = panels(10, 3, 3)
    for ax, (what, label) in zip(
        axes, {"seconds": "seconds", "PCD": "% of relevant columns found", "AUC": "AUC"}.items()
    ):
        curves(ax, ((row["method"], row["N"], row[what]) for row in rows), "osD^")
        for order, line in enumerate(ax.lines):
            line.set_markersize(10 - 2 * (order % 4))  # overlapping points remain visible
        ax.set(xlabel="rows", ylabel=label, xscale="log")
        ax.grid(alpha=0.3)
    axes[0].set_yscale("log")
    axes[0].legend()
    return figure


def responses(data_dir=None) -> Figure:
    """Figure 4 of Barbu et al. (2014), Figure 5 of Barbu et al. (2017): responses of the first
    features of an eye detector.
    """
    eye = load_model("faces").models["left_eye"]
    figure = Figure(figsize=(10, 4), layout="constrained")
    for axis, values in zip(figure.subplots(2, 4, sharey=True).ravel(), eye.responses.values):
        axis.plot(np.linspace(0.0, 1.0, len(values)), values, marker="o", markersize=3)
        axis.set_xlabel("feature, share of its range")
    figure.supylabel("response")
    return figure
