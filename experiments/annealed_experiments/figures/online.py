"""Figures of sparse online learners, from Ma (thesis), chapter 3."""

from typing import Any

import numpy as np
from annealed.learners import StabilizedTruncatedSGDClassifier, TruncatedGradientClassifier
from annealed.learners.online.stabilised import rejection_rate
from matplotlib.figure import Figure
from sklearn.preprocessing import MaxAbsScaler, normalize

from ..datasets import load_set
from .panels import panels

_EVERY = 4  # number of stages between two error evaluations
_PASSES = 20


def _stages(**settings: Any) -> dict[str, StabilizedTruncatedSGDClassifier]:
    """Return the learners: annealed stages, and the threshold of Ma (thesis) with several
    settings."""
    threshold: dict[str, Any] = {
        "selection": "threshold",
        "rejection": 0.7,
        "min_bursts": 5,
        **settings,
    }
    annealed = StabilizedTruncatedSGDClassifier(
        300, loss="logistic", learning_rate=3.0, random_state=0
    )
    return {
        "annealed stages": annealed,
        "threshold": StabilizedTruncatedSGDClassifier(**threshold, random_state=0),
    }


def nonzeros(data_dir=None) -> Figure:
    """Draw the number of features in use after every 25 rows of Dexter (Figures 3.1 and 3.5 of Ma
    (thesis))."""
    X, y, _, _ = load_set("dexter", data_dir)
    X = normalize(X[:, X.getnnz(axis=0) > 0])  # the other columns are empty
    figure, (ax,) = panels(7, 4, layout="tight")
    for label, model in _stages(annealing=-3.0).items():
        ax.plot(
            25 * np.arange(1, len(model.fit(X, y).history_) + 1),
            model.history_[:, 0] / X.shape[1],
            label=label,
        )
    model, shares = TruncatedGradientClassifier(gravity=3e-3, learning_rate=1.0, random_state=0), []
    rng = np.random.default_rng(0)
    for _ in range(20):
        for rows in np.array_split(rng.permutation(len(y)), 12):
            model.partial_fit(X[rows], y[rows], classes=[-1, 1])
            shares.append(np.mean(model.coef_ != 0))
    ax.plot(25 * np.arange(1, len(shares) + 1), shares, label="truncated gradient")
    ax.set(
        xlabel="rows seen by each path",
        ylabel=f"share of the {X.shape[1]:,} columns in use",
        yscale="log",
    )
    ax.legend()
    return figure


def sparsity(data_dir=None) -> Figure:
    """Draw the share of columns selected at each density on Dorothea (Figure 3.3 of Ma (thesis)).

    The learners are Algorithm 3.4 and truncated gradient, with both losses and a single order of
    the rows.
    """
    X, y, _, _ = load_set("dorothea", data_dir)
    X = MaxAbsScaler().fit_transform(X)
    density = np.asarray((X != 0).mean(axis=0)).ravel()
    edges = np.quantile(density[density > 0], np.linspace(0, 1, 16))
    place = np.digitize(density, np.unique(edges)[1:-1])
    bins = [(place == i) & (density > 0) for i in range(place.max() + 1)]
    figure, axes = panels(10, 4, 2, layout="tight")
    settings: dict[str, Any] = {"class_weight": "balanced", "random_state": 0}
    for ax, loss in zip(axes, ("hinge", "logistic")):
        threshold = StabilizedTruncatedSGDClassifier(
            selection="threshold", rejection=0.7, annealing=3.0, loss=loss, **settings
        )
        gradient = TruncatedGradientClassifier(gravity=1e-5, loss=loss, **settings)
        for label, model in (
            ("threshold (Algorithm 3.4)", threshold),
            ("truncated gradient", gradient),
        ):
            chosen = (model.fit(X, y).coef_ != 0).any(axis=0)
            points = [(density[inside].mean(), chosen[inside].mean()) for inside in bins]
            ax.plot(
                *zip(*points), "o-", label=f"{label}, {100 * chosen.mean():.1f} % of the columns"
            )
        rows = f"share of rows in which the column is not zero ({loss} loss)"
        ax.set(xscale="log", xlabel=rows, ylabel="share selected", ylim=(0, 0.9))
        ax.set_xticks([0.002, 0.01, 0.05], ["0.2 %", "1 %", "5 %"])
        ax.minorticks_off()
        ax.legend(loc="upper right")
    return figure


def rejection(data_dir=None) -> Figure:
    """Draw the rejection rate against the share of columns in use for gamma = -5, 0 and 5 in (3.14)
    (Figure 3.2 of Ma (thesis)).
    """
    figure, (ax,) = panels(5, 3.2, layout="tight")
    shares = np.linspace(0.0, 1.0, 201)
    for gamma in (-5.0, 0.0, 5.0):
        ax.plot(shares, [rejection_rate(d, 0.7, gamma) for d in shares], label=f"gamma = {gamma:g}")
    ax.set(xlabel="share of the columns in use", ylabel="rejection rate, at most 0.7")
    ax.invert_xaxis()
    ax.legend()
    return figure


def error(data_dir=None) -> Figure:
    """Draw the test error along the rows of Dexter for annealed stages and the published threshold,
    with 16 paths (Figure 3.4 of Ma (thesis)).
    """
    X, y, X_test, y_test = load_set("dexter", data_dir)
    X, X_test = normalize(X), normalize(X_test)
    models = _stages(annealing=3.0, learning_rate=10.0, loss="logistic")
    figure, (ax,) = panels(7, 4, layout="tight")
    for label, model in models.items():
        stage = model.burst_size * model.n_bursts * _EVERY
        model.set_params(n_stages=-(-len(y) * _PASSES // (stage // _EVERY)))
        rng, errors = np.random.default_rng(0), []
        for _ in range(_PASSES):
            order = rng.permutation(len(y))
            for first in range(0, len(y), stage):
                rows = order[first : first + stage]
                model.partial_fit(X[rows], y[rows], classes=[-1, 1])
                errors.append(np.mean(model.predict(X_test) != y_test))
        ax.plot(stage * np.arange(1, len(errors) + 1), errors, label=label)
    ax.set(xlabel="rows seen by each path", ylabel="test error")
    ax.legend()
    return figure
