"""Plots of schedules, paths, responses and losses; matplotlib is imported on first use."""

from collections.abc import Iterable, Sequence
from typing import Any

import numpy as np
from sklearn.utils.validation import check_is_fitted

from .solvers import as_schedule, step_counts, strengths

_GREY = "0.75"  # colour of dropped features


def plot_schedule(
    n_features: int,
    k: int,
    *,
    mu: float | Iterable[float] = (30, 100, 300),
    n_steps: int = 500,
    schedule: Any = "inverse",
    ax: Any = None,
) -> Any:
    """Plot the number of features after each step on logarithmic axes, as in Figure 1 of [1]_.

    Parameters
    ----------
    n_features, k : int
        Number of features before the first step (M) and after the last step (k).
    mu : float or sequence of float, default (30, 100, 300)
        Speeds of the schedule; one curve is drawn per speed.
    n_steps : int, default 500
        Number of steps of the schedule.
    schedule : str or function, default "inverse"
        Schedule; see `annealed.learners.solvers.schedules`.
    ax : matplotlib.axes.Axes or None, default None
        Axes to draw on; by default, a new figure is created.

    Returns
    -------
    matplotlib.axes.Axes
        Axes of the plot.

    References
    ----------
    .. [1] A. Barbu, Y. She, L. Ding, G. Gramajo, "Feature Selection with Annealing for Regression,
           Classification and Ranking", arXiv:1310.2880v2 (2014), Figure 1.
    """
    ax = _axes(ax)
    for speed in np.atleast_1d(np.asarray(mu, dtype=float)):
        counts = step_counts(as_schedule(schedule, float(speed)), n_features, k, n_steps)
        ax.plot(
            np.arange(n_steps + 1),
            np.r_[n_features, counts],
            drawstyle="steps-post",
            label=f"μ = {speed:g}",
        )
    ax.set(xscale="symlog", yscale="log", xlabel="step", ylabel="features left", xlim=(0, n_steps))
    ax.axhline(k, color=_GREY, linewidth=0.8, zorder=0)
    ax.legend(frameon=False)
    return ax


def plot_path(path: Any, *, against: str = "size", n_labels: int = 10, ax: Any = None) -> Any:
    """Plot the standardised coefficients along a path, as in Figure 2 of [1]_.

    Parameters
    ----------
    path : FSAPath
        Fitted path.
    against : {"size", "step"}, default "size"
        Horizontal axis. "size" shows the refitted coefficients against the number of features.
        "step" shows the coefficients during annealing against the step number and requires
        ``FSAPath(..., trajectory=True)``. If a feature has several coefficients, their norm is
        shown.
    n_labels : int, default 10
        Number of features to label. The features that remain longest are drawn in colour, with a
        label; all others are grey.
    ax : matplotlib.axes.Axes or None, default None
        Axes to draw on; by default, a new figure is created.

    Returns
    -------
    matplotlib.axes.Axes
        Axes of the plot.

    Raises
    ------
    ValueError
        If ``against`` is unknown, or the path has no trajectory.

    References
    ----------
    .. [1] A. Barbu, Y. She, L. Ding, G. Gramajo, "Feature Selection with Annealing for Regression,
           Classification and Ranking", arXiv:1310.2880v2 (2014), Figure 2.
    """
    check_is_fitted(path, "sizes_")
    if against == "size":
        at = path.sizes_
        values = np.array([_signed(path.get_estimator(k)) for k in at])
        n_kept = path.supports_.sum(axis=0)
        label = "number of features"
    elif against == "step":
        if not path.trajectory_:
            raise ValueError(
                "the path has no trajectory; fit it with FSAPath(..., trajectory=True)"
            )
        at = np.arange(1, len(path.trajectory_) + 1)
        values, n_kept = _trajectory(path)
        label = "step"
    else:
        raise ValueError(f"against={against!r} is unknown; expected 'size' or 'step'")
    ax = _axes(ax)
    # Features that remain longest, with ties broken by strength. A line ends where its feature is
    # dropped.
    order = np.lexsort((-np.nanmax(np.abs(np.nan_to_num(values)), axis=0), -n_kept))
    named = order[: min(n_labels, int((n_kept > 0).sum()))]
    for feature in order[len(named) :][:2000]:
        if n_kept[feature]:
            ax.plot(at, values[:, feature], color=_GREY, linewidth=0.6, zorder=1)
    for feature in named:
        ax.plot(
            at,
            values[:, feature],
            label=_name(path, feature),
            marker="." if against == "size" else None,  # a single size is visible, too
            zorder=2,
        )
    ax.axhline(0, color="0.5", linewidth=0.8, zorder=0)
    ax.set(xlabel=label, ylabel="standardised coefficient")
    if against == "size" and at[-1] > 50:
        ax.set_xscale("log")
    ax.legend(frameon=False, fontsize="small", loc="center left", bbox_to_anchor=(1.0, 0.5))
    return ax


def plot_responses(
    model: Any, features: Any = None, *, n_columns: int = 4, axes: Any = None
) -> Any:
    """Plot the response curves of a piecewise-linear model, as in Figure 4 of [1]_.

    Parameters
    ----------
    model : FSAClassifier, FSARegressor or FSARanker
        Model fitted with ``response="piecewise"``.
    features : array of int or None, default None
        Selected columns of X to plot; by default, the twelve most important ones, in order of
        importance.
    n_columns : int, default 4
        Number of panels per row.
    axes : array of matplotlib.axes.Axes or None, default None
        Axes to draw on, one per feature; by default, a new figure is created.

    Returns
    -------
    ndarray of matplotlib.axes.Axes
        Axes of the plots, one per feature. A dotted line shows the response to NaN if the training
        data contained NaN. With several classes or outputs, each one has its own line.

    Raises
    ------
    ValueError
        If the responses are linear, or a feature was not selected.

    References
    ----------
    .. [1] A. Barbu, Y. She, L. Ding, G. Gramajo, "Feature Selection with Annealing for Regression,
           Classification and Ranking", arXiv:1310.2880v2 (2014), Figure 4.
    """
    check_is_fitted(model, "support_")
    if not hasattr(model, "responses_"):
        raise ValueError(
            f"response={model.response!r} has no curves; fit the model with response='piecewise'"
        )
    selected = np.flatnonzero(model.support_)
    if features is None:
        features = selected[np.argsort(-model.feature_importances_[selected], kind="stable")][:12]
    features = np.atleast_1d(features)
    absent = np.setdiff1d(features, selected)
    if len(absent):
        raise ValueError(
            f"feature {absent[0]} was not selected; expected one of {selected.tolist()}"
        )
    if axes is None:
        axes = _panels(len(features), n_columns)
    axes = np.atleast_1d(axes).ravel()
    labels = _outputs(model)
    for ax, feature in zip(axes, features):
        j = int(np.searchsorted(selected, feature))
        for q, label in enumerate(labels):
            (line,) = ax.plot(model.knots_[j], model.responses_[j, :, q], marker=".", label=label)
            if model.missing_responses_[j, q] != 0:
                ax.axhline(
                    model.missing_responses_[j, q],
                    color=line.get_color(),
                    linestyle=":",
                    linewidth=1,
                )
        ax.set_title(_name(model, feature), fontsize="medium")
    if labels[0] is not None:
        axes[0].figure.legend(
            *axes[0].get_legend_handles_labels(),
            frameon=False,
            fontsize="small",
            loc="outside right upper",
        )
    return axes[: len(features)]


def plot_coefficients(model: Any, *, n_features: int = 30, ax: Any = None) -> Any:
    """Plot the standardised coefficients of the selected features, strongest first.

    Parameters
    ----------
    model : FSAClassifier, FSARegressor or FSARanker
        Fitted model. If a feature has several coefficients, their norm is shown.
    n_features : int, default 30
        Maximum number of features to show.
    ax : matplotlib.axes.Axes or None, default None
        Axes to draw on; by default, a new figure is created.

    Returns
    -------
    matplotlib.axes.Axes
        Axes of the plot.
    """
    check_is_fitted(model, "support_")
    values = _signed(model)
    order = np.argsort(-np.abs(np.nan_to_num(values)), kind="stable")[: model.support_.sum()]
    order = order[:n_features]
    names = [_name(model, feature) for feature in order]
    return plot_bars(names, values[order], "standardised coefficient", ax=ax)


def plot_bars(names: Sequence[str], values: Any, label: str, *, ax: Any = None) -> Any:
    """Plot a horizontal bar for each name, with the first name at the top.

    Parameters
    ----------
    names : sequence of str
        Names of the bars.
    values : array of shape (n_names,)
        Lengths of the bars.
    label : str
        Label of the horizontal axis.
    ax : matplotlib.axes.Axes or None, default None
        Axes to draw on; by default, a new figure is created.

    Returns
    -------
    matplotlib.axes.Axes
        Axes of the plot.
    """
    ax = _axes(ax)
    ax.barh(np.arange(len(names)), values)
    ax.set_yticks(np.arange(len(names)), names)
    ax.invert_yaxis()
    ax.axvline(0, color="0.5", linewidth=0.8)
    ax.set_xlabel(label)
    return ax


def plot_scores(
    sizes: Any, scores: Any, *, selected: int | None = None, label: str = "score", ax: Any = None
) -> Any:
    """Plot mean held-out scores and their standard errors against the number of features.

    Parameters
    ----------
    sizes : array of shape (n_sizes,)
        Numbers of features.
    scores : array of shape (n_folds, n_sizes)
        Held-out score of each fold at each size.
    selected : int or None, default None
        Size to highlight.
    label : str, default "score"
        Name of the score.
    ax : matplotlib.axes.Axes or None, default None
        Axes to draw on; by default, a new figure is created.

    Returns
    -------
    matplotlib.axes.Axes
        Axes of the plot.
    """
    ax, scores = _axes(ax), np.asarray(scores, np.float64)
    error = scores.std(axis=0, ddof=1) / np.sqrt(len(scores)) if len(scores) > 1 else None
    ax.errorbar(sizes, scores.mean(axis=0), error, marker=".", capsize=2)
    if selected is not None:
        ax.axvline(selected, color=_GREY, linestyle=":", label=f"selected: {selected}")
        ax.legend(frameon=False)
    ax.set(xlabel="number of features", ylabel=label)
    if max(sizes) > 50:
        ax.set_xscale("symlog")
    return ax


def plot_loss(model: Any, *, ax: Any = None, **line: Any) -> Any:
    """Plot the training loss at each annealing step.

    Parameters
    ----------
    model : fitted estimator or FSAPath
        Fitted model.
    ax : matplotlib.axes.Axes or None, default None
        Axes to draw on; by default, a new figure is created.
    **line
        Keyword arguments of ``Axes.plot``, such as ``label`` or ``color``.

    Returns
    -------
    matplotlib.axes.Axes
        Axes of the plot.
    """
    check_is_fitted(model, "loss_curve_")
    ax = _axes(ax)
    ax.plot(np.arange(1, len(model.loss_curve_) + 1), model.loss_curve_, **line)
    ax.set(xlabel="step", ylabel="mean loss")
    return ax


def plot_inclusion(
    model: Any, *, n_features: int = 30, threshold: float = 0.5, ax: Any = None
) -> Any:
    """Plot the columns with the highest inclusion probabilities, estimated by Markov chains.

    Parameters
    ----------
    model : SparseFourierClassifier or SparseFourierRegressor
        Fitted model.
    n_features : int, default 30
        Number of columns to show.
    threshold : float, default 0.5
        Probability at which a reference line is drawn, in [0, 1].
    ax : matplotlib.axes.Axes or None, default None
        Axes to draw on; by default, a new figure is created.

    Returns
    -------
    matplotlib.axes.Axes
        Axes of the plot.
    """
    check_is_fitted(model, "inclusion_probabilities_")
    ax = _axes(ax)
    p = model.inclusion_probabilities_
    order = np.argsort(-p, kind="stable")[:n_features]
    ax.bar(
        np.arange(len(order)),
        p[order],
        color=["C0" if value >= threshold else _GREY for value in p[order]],
    )
    ax.axhline(threshold, color="0.5", linewidth=0.8, linestyle=":")
    ax.set_xticks(
        np.arange(len(order)), [_name(model, j) for j in order], rotation=90, fontsize="small"
    )
    ax.set(ylabel="inclusion probability", ylim=(0, 1))
    return ax


def plot_interactions(model: Any, *, n_pairs: int = 20, ax: Any = None) -> Any:
    """Plot a graph of interacting columns; edges represent transitions of the Markov chains.

    Parameters
    ----------
    model : SparseFourierClassifier or SparseFourierRegressor
        Fitted model.
    n_pairs : int, default 20
        Maximum number of edges. The pairs with the most transitions in either direction are drawn.
    ax : matplotlib.axes.Axes or None, default None
        Axes to draw on; by default, a new figure is created.

    Returns
    -------
    matplotlib.axes.Axes
        Axes of the plot. The width of an edge shows the number of transitions per sample within
        atoms, and the size of a node shows the inclusion probability.
    """
    check_is_fitted(model, "transition_counts_")
    ax = _axes(ax)
    steps = model.transition_counts_[1:, 1:]
    both = (steps + steps.T).tocoo()
    upper = both.row < both.col
    row, col, count = both.row[upper], both.col[upper], both.data[upper]
    strongest = np.argsort(-count, kind="stable")[:n_pairs]
    strongest = strongest[count[strongest] >= 0.02 * count.max(initial=0.0)]
    row, col, count = row[strongest], col[strongest], count[strongest]
    nodes = np.union1d(
        np.unique(np.r_[row, col]), np.flatnonzero(model.inclusion_probabilities_ >= 0.5)
    ).astype(int)
    angle = 2 * np.pi * np.arange(len(nodes)) / max(len(nodes), 1)
    place = {node: (np.cos(a), np.sin(a)) for node, a in zip(nodes, angle)}
    for i, j, c in zip(row, col, count):
        ax.plot(
            *zip(place[i], place[j]),
            color="C0",
            linewidth=0.3 + 5.0 * c / count.max(),
            alpha=0.6,
            zorder=1,
        )
    for node, (x, y) in place.items():
        ax.scatter(x, y, s=40 + 200 * model.inclusion_probabilities_[node], color="C1", zorder=2)
        ax.annotate(
            _name(model, node),
            (x, y),
            (1.3 * x, 1.2 * y),
            ha="center",
            va="center",
            fontsize="small",
        )
    ax.set(xlim=(-1.7, 1.7), ylim=(-1.4, 1.4), aspect="equal")
    ax.axis("off")
    return ax


def plot_chains(model: Any, *, output: int = 0, axes: Any = None) -> Any:
    """Plot the log likelihood and the number of atoms along Markov chains, with the split R-hat.

    Parameters
    ----------
    model : SparseFourierClassifier or SparseFourierRegressor
        Model fitted with Markov chains.
    output : int, default 0
        Index of the output, if the model has several classes.
    axes : array of 2 matplotlib.axes.Axes or None, default None
        Axes to draw on; by default, a new figure is created.

    Returns
    -------
    ndarray of 2 matplotlib.axes.Axes
        Axes of the plots.

    Raises
    ------
    ValueError
        If the model was fitted without chains.
    """
    check_is_fitted(model, "traces_")
    if model.solver == "annealed":
        raise ValueError(
            "solver='annealed' has no chains; fit the model with solver='mcmc' or 'annealed+mcmc'"
        )
    axes = np.ravel(_panels(2, 1, sharey=False) if axes is None else axes)
    at = (1 + np.arange(model.traces_.shape[2])) * model.n_steps / model.traces_.shape[2]
    for i, (ax, name) in enumerate(zip(axes, ("log_likelihood", "n_components"))):
        ax.plot(at, model.traces_[output, :, :, i].T, linewidth=0.7)
        ax.axvline(
            model.n_steps // 2 if model.burn_in is None else model.burn_in,
            color="0.5",
            linewidth=0.8,
            linestyle=":",
        )
        values = model.traces_[output, :, len(at) // 10 :, i]
        ax.set_ylim(
            values.min() - 0.1 * np.ptp(values) - 0.5, values.max() + 0.1 * np.ptp(values) + 0.5
        )
        ax.set_title(f"{name.replace('_', ' ')}: R-hat {model.r_hat_[name]:.2f}", fontsize="medium")
    axes[-1].set_xlabel("move")
    return axes


def _axes(ax: Any) -> Any:
    return pyplot().subplots(layout="constrained")[1] if ax is None else ax


def _panels(count: int, n_columns: int, sharey: bool = True) -> Any:
    columns = min(count, n_columns)
    rows = -(-count // columns)
    figure, axes = pyplot().subplots(
        rows,
        columns,
        figsize=(3.0 * columns, 2.4 * rows),
        layout="constrained",
        squeeze=False,
        sharey=sharey,
    )
    for spare in axes.ravel()[count:]:
        figure.delaxes(spare)
    return axes.ravel()[:count]


def _signed(model: Any) -> np.ndarray:
    """Return each feature's standardised coefficient (or norm of several), NaN if not selected."""
    values = np.where(model.support_, model.feature_importances_, np.nan)
    coef = getattr(model, "coef_", None)
    if coef is not None and (coef.ndim == 1 or len(coef) == 1):
        values = values * np.sign(np.ravel(coef) + (np.ravel(coef) == 0))
    return values


def _trajectory(path: Any) -> tuple[np.ndarray, np.ndarray]:
    """Return the coefficient path and the number of steps that each feature remains.

    The path has shape (n_steps, n_features) and is NaN after a feature is dropped.
    """
    values = np.full((len(path.trajectory_), path.n_features_in_), np.nan)
    for step, (kept, coef) in enumerate(path.trajectory_):
        values[step, kept] = coef[:, 0, 0] if coef[0].size == 1 else strengths(coef)
    return values, np.isfinite(values).sum(axis=0)


def _name(fitted: Any, feature: int) -> str:
    names = getattr(fitted, "feature_names_in_", None)
    return str(names[feature]) if names is not None else f"column {feature}"


def _outputs(model: Any) -> list:
    n_outputs = model.responses_.shape[2]
    if n_outputs == 1:
        return [None]
    return (
        [str(c) for c in model.classes_]
        if hasattr(model, "classes_")
        else [f"output {q}" for q in range(n_outputs)]
    )


def pyplot() -> Any:
    """Return ``matplotlib.pyplot``.

    Raises
    ------
    ModuleNotFoundError
        If matplotlib is not installed. The message names the extra to install.
    """
    try:
        from matplotlib import pyplot
    except ModuleNotFoundError as error:
        raise ModuleNotFoundError(
            "plots require matplotlib; run pip install '.[plots]' in the annealed checkout",
            name=error.name,
        ) from None
    return pyplot
