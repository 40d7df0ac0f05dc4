"""Plots: what is drawn is what was fitted."""

import subprocess
import sys

import matplotlib
import numpy as np
import pandas as pd
import pytest
from annealed.learners import FSAClassifier, FSAPath, FSARegressor, FSARegressorCV, PiecewiseLinear
from annealed.learners.plots import plot_loss, plot_path, plot_responses, plot_schedule
from annealed.learners.solvers.schedules import inverse

matplotlib.use("Agg")
from matplotlib import pyplot as plt


@pytest.fixture(autouse=True)
def close_figures():
    yield
    plt.close("all")


def problem():
    X = np.random.default_rng(0).standard_normal((200, 20))
    return pd.DataFrame(X, columns=[f"f{j}" for j in range(20)]), X[:, 3] - X[:, 7] + 0.5 * X[:, 9]


def test_schedule_curves():
    ax = plot_schedule(1000, 10, mu=[30, 100], n_steps=200)
    assert [line.get_label() for line in ax.get_lines()[:2]] == ["μ = 30", "μ = 100"]
    assert np.array_equal(ax.get_lines()[0].get_ydata()[1:], inverse(1000, 10, 200, 30.0))
    given = plt.figure().add_subplot()
    assert plot_schedule(1000, 10, mu=5.0, ax=given) is given


@pytest.mark.parametrize("response", ["linear", "piecewise"])
def test_path_lines(response):
    X, y = problem()
    path = FSAPath(FSARegressor(response=response), sizes=[1, 2, 3, 5], trajectory=True).fit(X, y)
    ax = plot_path(path, n_labels=3)
    lines = {line.get_label(): line for line in ax.get_lines()}
    assert {"f3", "f7", "f9"} <= set(lines)
    assert np.isfinite(lines["f9"].get_ydata()).tolist() == path.supports_[:, 9].tolist()
    if response == "linear":
        last = path.get_estimator(5)
        assert lines["f7"].get_ydata()[-1] == pytest.approx(
            last.coef_[7] * np.std(X["f7"]) / np.std(y), rel=1e-6
        )
    steps = plot_path(path, against="step", n_labels=3)
    assert {"f3", "f7"} <= {line.get_label() for line in steps.get_lines()}
    with pytest.raises(ValueError, match="against='time' is unknown"):
        plot_path(path, against="time")
    with pytest.raises(ValueError, match="no trajectory"):
        plot_path(FSAPath(FSARegressor(), sizes=[2]).fit(X, y), against="step")


def test_response_curves():
    X, y = problem()
    X.iloc[::5, 3] = np.nan
    model = FSARegressor(3, response=PiecewiseLinear(5)).fit(X, y)
    axes = plot_responses(model, n_columns=2)
    assert [ax.get_title() for ax in axes] == [
        f"f{j}" for j in np.argsort(-model.feature_importances_)[:3]
    ]
    j = [ax.get_title() for ax in axes].index("f3")
    curve, dotted = axes[j].get_lines()
    at = np.flatnonzero(np.flatnonzero(model.support_) == 3)[0]
    assert (
        np.array_equal(curve.get_ydata(), model.responses_[at, :, 0])
        and dotted.get_linestyle() == ":"
    )
    assert sum(len(ax.get_lines()) for ax in axes) == 4  # only f3 has seen NaN
    row = X.iloc[[7]].copy()
    moved = row.copy()
    moved["f3"] = model.knots_[at, 2]
    gain = model.predict(moved)[0] - model.predict(row)[0]
    assert gain == pytest.approx(
        model.responses_[at, 2, 0]
        - np.interp(row["f3"].iloc[0], model.knots_[at], model.responses_[at, :, 0])
    )
    with pytest.raises(ValueError, match="feature 0 was not selected"):
        plot_responses(model, [0])
    with pytest.raises(ValueError, match="response='linear' has no curves"):
        plot_responses(FSARegressor(3).fit(*problem()))


def test_a_line_for_each_class():
    X, y = problem()
    model = FSAClassifier(2, response="piecewise").fit(X, np.digitize(y, [-0.5, 0.5]))
    axes = plot_responses(model)
    assert [line.get_label() for line in axes[0].get_lines()] == ["0", "1", "2"]


def test_models_plot_themselves():
    """With the names of the columns, into given axes."""
    X, y = problem()
    given = plt.figure().add_subplot()
    assert FSARegressor(3).fit(X, y).plot(ax=given) is given
    names = [label.get_text() for label in given.get_yticklabels()]
    right = {name for name, bar in zip(names, given.patches) if bar.get_width() > 0}
    assert names[2] == "f9" and set(names) == {"f3", "f7", "f9"} and right == {"f3", "f9"}
    curves = FSARegressor(2, response="piecewise").fit(X, y).plot()
    assert {ax.get_title() for ax in curves} == {"f3", "f7"}
    path = FSAPath(FSARegressor(), sizes=[1, 2, 3]).fit(X, y)
    assert {"f3", "f7"} <= {line.get_label() for line in path.plot(n_labels=3).get_lines()}
    chosen = FSARegressorCV(sizes=[1, 2, 3, 5]).fit(X, y)
    ax = chosen.plot_path()
    assert np.array_equal(ax.get_lines()[0].get_xdata(), [1, 2, 3, 5])
    assert ax.get_legend().get_texts()[0].get_text() == f"selected: {chosen.n_features_}"
    with pytest.raises(ValueError, match="no held-out scores"):
        FSARegressorCV(criterion="ebic", sizes=[1, 2]).fit(X, y).plot_path()


def test_loss_curve():
    X, y = problem()
    model = FSAClassifier(3).fit(X, y > 0)
    ax = plot_loss(model, label="logistic")
    assert np.array_equal(ax.get_lines()[0].get_ydata(), model.loss_curve_)


def test_matplotlib_is_imported_late():
    code = "import annealed.learners.plots, sys; assert 'matplotlib' not in sys.modules"
    subprocess.run([sys.executable, "-c", code], check=True)
