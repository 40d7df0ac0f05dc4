"""Pictures of schedules, paths, responses and losses; matplotlib is imported when the first one is drawn."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import numpy as np
from sklearn.utils.validation import check_is_fitted

from .solvers.schedules import step_counts

_FALLEN = "0.75"  # grey of the features that did not stay


def plot_schedule(
    n_features: int, k: int, *, mu: float | Iterable[float] = (30, 100, 300), n_steps=500, schedule="inverse", ax=None
):
    """Number of features left after each step (Figure 1 of the arXiv text), on logarithmic axes.

    Parameters
    ----------
    n_features, k : int
        M and k.
    mu : float or several
        One curve for each.
    n_steps : int
    schedule : str or function
        See ``annealed.learners.solvers.schedules``.
    ax : matplotlib Axes or None
        Where to draw; a new figure by default.

    Returns
    -------
    matplotlib Axes
    """
    ax = _axes(ax)
    speeds = np.atleast_1d(np.asarray(mu, dtype=float))
    for speed in speeds:
        counts = step_counts(schedule, n_features, k, n_steps, float(speed))
        ax.plot(np.arange(n_steps + 1), np.r_[n_features, counts], drawstyle="steps-post", label=f"μ = {speed:g}")
    ax.set(xscale="symlog", yscale="log", xlabel="step", ylabel="features left", xlim=(0, n_steps))
    ax.axhline(k, color=_FALLEN, linewidth=0.8, zorder=0)
    ax.legend(frameon=False)
    return ax


def plot_path(path, *, against: str = "size", n_labels: int = 10, ax=None):
    """Standardised coefficients along a path (Figure 2 of the arXiv text).

    Parameters
    ----------
    path : FSAPath
        Fitted.
    against : {"size", "step"}
        Refitted coefficients against the number of features, or those of annealing itself against the step, which needs
        ``FSAPath(..., trajectory=True)``. Features with several coefficients show the norm.
    n_labels : int
        How many of the features that stay longest get a colour and a name; the others are grey.
    ax : matplotlib Axes or None

    Returns
    -------
    matplotlib Axes

    Raises
    ------
    ValueError
        If ``against`` is unknown, or the path has kept no trajectory.
    """
    check_is_fitted(path, "sizes_")
    if against == "size":
        at = path.sizes_
        values = np.array([_signed(path.at(k)) for k in at])
        lives = path.supports_.sum(axis=0)
        label = "number of features"
    elif against == "step":
        if not path.trajectory_:
            raise ValueError("the path has no trajectory; expected one fitted by FSAPath(..., trajectory=True)")
        at = np.arange(1, len(path.trajectory_) + 1)
        values, lives = _trajectory(path)
        label = "step"
    else:
        raise ValueError(f"against={against!r} is unknown; expected 'size' or 'step'")
    ax = _axes(ax)
    # Those that stay longest, the strongest first among equals; a line ends where its feature falls.
    order = np.lexsort((-np.nanmax(np.abs(np.nan_to_num(values)), axis=0), -lives))
    named = order[: min(n_labels, int((lives > 0).sum()))]
    for feature in order[len(named) :][:2000]:
        if lives[feature]:
            ax.plot(at, values[:, feature], color=_FALLEN, linewidth=0.6, zorder=1)
    for feature in named:
        ax.plot(at, values[:, feature], label=_name(path, feature), zorder=2)
    ax.axhline(0, color="0.5", linewidth=0.8, zorder=0)
    ax.set(xlabel=label, ylabel="standardised coefficient")
    if against == "size" and at[-1] > 50:
        ax.set_xscale("log")
    ax.legend(frameon=False, fontsize="small", loc="center left", bbox_to_anchor=(1.0, 0.5))
    return ax


def plot_responses(model, features=None, *, n_columns: int = 4, axes=None):
    """Response curves of a piecewise-linear model (Figure 4 of the arXiv text).

    Parameters
    ----------
    model : FSAClassifier, FSARegressor or FSARanker
        Fitted with ``response="piecewise"``.
    features : array of int or None
        Columns of X among the chosen ones; the twelve of greatest importance by default, in that order.
    n_columns : int
        Panels side by side.
    axes : array of matplotlib Axes or None
        One for each feature.

    Returns
    -------
    ndarray of matplotlib Axes, one for each feature
        A dotted line marks the response to NaN where training had some. Several classes or outputs have a line each.

    Raises
    ------
    ValueError
        If the responses are linear, or a feature was not chosen.
    """
    check_is_fitted(model, "support_")
    if not hasattr(model, "responses_"):
        raise ValueError(f"response={model.response!r} has no curves; expected a model fitted with response='piecewise'")
    chosen = np.flatnonzero(model.support_)
    if features is None:
        features = chosen[np.argsort(-model.feature_importances_[chosen], kind="stable")][:12]
    features = np.atleast_1d(features)
    absent = np.setdiff1d(features, chosen)
    if len(absent):
        raise ValueError(f"feature {absent[0]} was not chosen; expected some of {chosen.tolist()}")
    if axes is None:
        axes = _panels(len(features), n_columns)
    axes = np.atleast_1d(axes).ravel()
    labels = _outputs(model)
    for ax, feature in zip(axes, features):
        j = int(np.searchsorted(chosen, feature))
        for q, label in enumerate(labels):
            (line,) = ax.plot(model.knots_[j], model.responses_[j, :, q], marker=".", label=label)
            if model.missing_responses_[j, q] != 0:
                ax.axhline(model.missing_responses_[j, q], color=line.get_color(), linestyle=":", linewidth=1)
        ax.set_title(_name(model, feature), fontsize="medium")
    if labels[0] is not None:
        axes[0].figure.legend(*axes[0].get_legend_handles_labels(), frameon=False, fontsize="small", loc="outside right upper")
    return axes[: len(features)]


def plot_loss(model, *, ax=None, **line):
    """Training loss before each step of the annealing.

    Parameters
    ----------
    model : fitted estimator or FSAPath
    ax : matplotlib Axes or None
    **line
        Passed on to ``Axes.plot``: a label, a colour.

    Returns
    -------
    matplotlib Axes
    """
    check_is_fitted(model, "loss_curve_")
    ax = _axes(ax)
    ax.plot(np.arange(1, len(model.loss_curve_) + 1), model.loss_curve_, **line)
    ax.set(xlabel="step", ylabel="mean loss")
    return ax


def _axes(ax):
    if ax is not None:
        return ax
    from matplotlib import pyplot

    return pyplot.subplots(layout="constrained")[1]


def _panels(count: int, n_columns: int) -> Any:
    from matplotlib import pyplot

    columns = min(count, n_columns)
    rows = -(-count // columns)
    size = (3.0 * columns, 2.4 * rows)
    figure, axes = pyplot.subplots(rows, columns, figsize=size, layout="constrained", squeeze=False, sharey=True)
    for spare in axes.ravel()[count:]:
        figure.delaxes(spare)
    return axes.ravel()[:count]


def _signed(model) -> np.ndarray:
    """Standardised coefficient of each feature, NaN where not chosen; its norm where there are several."""
    values = np.where(model.support_, model.feature_importances_, np.nan)
    coef = getattr(model, "coef_", None)
    if coef is not None and (coef.ndim == 1 or len(coef) == 1):
        values = values * np.sign(np.ravel(coef) + (np.ravel(coef) == 0))
    return values


def _trajectory(path) -> tuple[np.ndarray, np.ndarray]:
    """Coefficients (n_steps, n_features), NaN once fallen, and the number of steps that each feature stayed."""
    n_features = path.n_features_in_
    values = np.full((len(path.trajectory_), n_features), np.nan)
    for step, (kept, coef) in enumerate(path.trajectory_):
        if coef.shape[1] * coef.shape[2] == 1:
            values[step, kept] = coef[:, 0, 0]
        else:
            values[step, kept] = np.sqrt(np.einsum("mwq,mwq->m", coef, coef) / (coef.shape[1] * coef.shape[2]))
    return values, np.isfinite(values).sum(axis=0)


def _name(fitted, feature: int) -> str:
    names = getattr(fitted, "feature_names_in_", None)
    return str(names[feature]) if names is not None else f"column {feature}"


def _outputs(model) -> list:
    n_outputs = model.responses_.shape[2]
    if n_outputs == 1:
        return [None]
    return [str(c) for c in model.classes_] if hasattr(model, "classes_") else [f"output {q}" for q in range(n_outputs)]
