"""Figures of Barbu et al. (2014, 2017) on schedules, losses, coefficients, speed and stability."""

from typing import Any

import numpy as np
from annealed.learners import (
    FSAClassifier,
    FSAPath,
    FSARegressor,
    HuberisedHingeLoss,
    LogisticLoss,
    LorenzLoss,
    PiecewiseLinear,
    Prior,
)
from annealed.learners.plots import plot_path, plot_responses, plot_schedule
from annealed.models import load_model
from matplotlib.figure import Figure

from ..tables.annealing import fsa_stability
from ..tables.selectors import FSA, Design, fsa_large
from .panels import curves, panels

_LOSSES = {"FSA": "logistic", "FSV": "Huberised hinge", "FSL": "Lorenz"}
_PARAMETERS = {"learning_rate": "learning rate", "mu": "mu", "n_steps": "number of steps"}


def stability(data_dir=None, *, rows=None, **options: Any) -> Figure:
    """Draw the AUC against the learning rate, mu and the number of steps (Figure 6 of Barbu et al.
    (2017)). The options are those of :func:`fsa_stability`.
    """
    rows = fsa_stability(**options)["rows"] if rows is None else rows
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
    """Draw the number of features that remain after each step: Figure 1 of Barbu et al. (2014),
    with mu = M / (k v), and Figure 3 of Barbu et al. (2017).
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
    """Draw the losses as functions of the margin (Figure 4 of Barbu et al. (2017))."""
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
    """Draw the coefficients after each step of one run from all columns to k, with N = M = 1000 and
    k = 10 (Figure 2 of both papers).
    """
    draw = Design("classification", 1000, 1000, 10).draw(0)
    model = FSAClassifier(10, refinement=None, **FSA["FSA"])
    figure, (ax,) = panels(5, 3.2)
    path = FSAPath(model, sizes=[10], trajectory=True).fit(draw.X, draw.y)
    plot_path(path, against="step", ax=ax)
    return figure


def large(data_dir=None, *, rows=None, **options: Any) -> Figure:
    """Draw the seconds, detected columns and AUC against N for FSA with the Lorenz loss and
    LogitBoost (Figure 1 of Barbu et al. (2017)).
    """
    if rows is None:
        options = {"runs": 1, "methods": ["FSL", "annealed", "LB1", "LB"], **options}
        rows = fsa_large(**options)["rows"]
    figure, axes = panels(10, 3, 3)
    for ax, (what, label) in zip(
        axes, {"seconds": "seconds", "PCD": "% of relevant columns found", "AUC": "AUC"}.items()
    ):
        curves(ax, ((row["method"], row["N"], row[what]) for row in rows), "osD^")
        for order, line in enumerate(ax.lines):
            line.set_markersize(10 - 2 * (order % 4))  # keeps overlapping points visible
        ax.set(xlabel="rows", ylabel=label, xscale="log")
        ax.grid(alpha=0.3)
    axes[0].set_yscale("log")
    axes[0].legend()
    return figure


def responses(data_dir=None) -> Figure:
    """Draw response functions (Figure 4 of Barbu et al. (2014), Figure 5 of Barbu et al. (2017)).

    The upper row shows the first features of the shipped eye detector, which has no second-order
    prior. The lower row shows fits to four simulated responses, without the prior of (13) and with
    it.
    """
    figure = Figure(figsize=(10, 4), layout="constrained")
    above, below = figure.subplots(2, 4)
    eye = load_model("faces").models["left_eye"]
    for axis, values in zip(above, eye.responses.values):
        axis.plot(np.linspace(0.0, 1.0, len(values)), values, marker="o", markersize=3)
        axis.set_title("eye detector", fontsize="medium")
    rng = np.random.default_rng(0)
    X = rng.uniform(size=(1000, 30))
    truth = np.sin(6.0 * X[:, 0]) + (2.0 * X[:, 1] - 1.0) ** 2 + abs(X[:, 2] - 0.4) + X[:, 3]
    y = truth + rng.normal(scale=0.3, size=len(X))
    for label, second_order in (("no prior", 0.0), ("second-order prior", 0.03)):
        model = FSARegressor(
            4, response=PiecewiseLinear(20), prior=Prior(second_order=second_order)
        ).fit(X, y)
        plot_responses(model, features=range(4), axes=below)
        for axis in below:
            axis.lines[-1].set_label(label)
    below[1].legend(frameon=False, fontsize="small", loc="upper center")
    figure.supylabel("response")
    return figure
