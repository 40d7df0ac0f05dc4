"""The figures of the papers, small, and the fit of LMNN by another Python."""

import sys

import numpy as np
import pytest
from annealed.pipelines.reproduce import annealing
from annealed.pipelines.reproduce import metric as reproduce_metric
from annealed.pipelines.reproduce.competitors import LMNN
from annealed.pipelines.reproduce.figures import metric as metric_figures
from annealed.pipelines.reproduce.metric import sdist_simulated
from annealed.pipelines.reproduce.registry import FIGURES, draw
from helpers import run

# What metric-learn has: fit stops at once, or works until it is stopped.
METRIC_LEARN = """
import numpy as np

class LMNN:
    def __init__(self, n_neighbors, random_state):
        self.n_neighbors = n_neighbors

    def fit(self, X, y):
        L = np.diag([2.0] * X.shape[1])
        while len(X) > 500:
            L[0, 0] += 1.0
        self.components_ = L
        return self
"""


@pytest.fixture
def python(tmp_path, monkeypatch):
    (tmp_path / "metric_learn.py").write_text(METRIC_LEARN)
    monkeypatch.setenv("PYTHONPATH", str(tmp_path))
    return sys.executable


def test_the_figure_of_stability_is_drawn(tmp_path, monkeypatch):
    monkeypatch.setattr(annealing, "STABILITY", {name: [values[2]] for name, values in annealing.STABILITY.items()})
    result = run("reproduce", "fsa-stability", "--figures", tmp_path / "new", "--runs", 1)
    path = tmp_path / "new" / "fsa-stability.png"
    assert result.exit_code == 0 and result.stdout.strip() == str(path) and path.read_bytes().startswith(b"\x89PNG")


@pytest.mark.parametrize(
    "name, options",
    [
        ("fsa-schedules", {}),
        ("fsa-losses", {}),
        ("fsa-coefficients", {}),
        ("mslr-synthetic", {"shrink": 0.02, "setups": ["tall"]}),
        ("mslr-conditioning", {}),
        ("sdist-surfaces", {}),
        ("online-rejection", {}),
    ],
)
def test_figures_of_simulated_data_are_drawn(name, options, tmp_path):
    assert draw(name, tmp_path, **options) == [tmp_path / f"{name}.png"]
    assert (tmp_path / f"{name}.png").stat().st_size > 5_000


def test_the_figure_of_rows_is_drawn_from_the_table(tmp_path):
    draw("fsa-large", tmp_path, methods=["FSL"], sizes=[(1000, 10), (3000, 10)])
    assert (tmp_path / "fsa-large.png").stat().st_size > 5_000


@pytest.mark.data
@pytest.mark.parametrize("name", ["online-nonzeros", "online-sparsity", "online-error", "mslr-leukemia", "pets-keypoints"])
def test_figures_of_real_data_are_drawn(name, data_dir, tmp_path):
    draw(name, tmp_path, data_dir)
    assert (tmp_path / f"{name}.png").stat().st_size > 10_000


@pytest.mark.data
def test_mean_distances_against_votes_on_ionosphere(data_dir, tmp_path):
    """With one neighbour of each kind both ask which is nearer; the page has f_W ahead for 3 to
    9."""
    sizes, (means, votes) = metric_figures.base_errors(data_dir, 3, (1, 5))
    assert sizes == (1, 5) and means[0] == votes[0] and means[1] < votes[1] < 0.2
    draw("sdist-base", tmp_path, data_dir, runs=1)
    assert (tmp_path / "sdist-base.png").stat().st_size > 5_000


@pytest.mark.data
def test_sensitivity_on_madelon_is_drawn(data_dir, tmp_path, monkeypatch):
    monkeypatch.setattr(metric_figures, "SENSITIVITY", {name: values[2:3] for name, values in metric_figures.SENSITIVITY.items()})
    draw("sdist-sensitivity", tmp_path, data_dir, checkpoint=tmp_path / "cells.jsonl")
    assert (tmp_path / "sdist-sensitivity.png").stat().st_size > 5_000


def test_unknown_figures_and_options_are_named(tmp_path):
    with pytest.raises(ValueError, match=f"'fsa-wide' has no figure; expected one of {', '.join(FIGURES)}"):
        draw("fsa-wide", tmp_path)
    with pytest.raises(ValueError, match="runs: the figure fsa-losses has no such option"):
        draw("fsa-losses", tmp_path, runs=3)
    with pytest.raises(ValueError, match="runs=0; expected at least 1"):
        draw("motion-table", tmp_path, runs=0)
    result = run("reproduce", "--figures", tmp_path, "--checkpoint", tmp_path / "c")
    assert result.exit_code == 2 and "belongs to one NAME" in result.stderr and not list(tmp_path.iterdir())


def test_lmnn_is_fitted_by_another_python(python):
    X = np.random.default_rng(0).standard_normal((20, 3))
    model = LMNN(python).fit(X, X[:, 0] > 0)
    np.testing.assert_array_equal(model.transform(X), 2.0 * X)
    assert model.finished_ and model.seconds_ >= 0.0


def test_lmnn_stops_at_its_limit_with_the_metric_that_it_has(python):
    X = np.zeros((501, 2))
    model = LMNN(python, seconds=0.5).fit(X, np.arange(501) % 2)
    assert not model.finished_ and model.components_[0, 0] > 2.0 and 0.4 < model.seconds_ < 2.0


def test_a_python_without_metric_learn_says_so(monkeypatch):
    monkeypatch.delenv("PYTHONPATH", raising=False)
    with pytest.raises(ValueError, match="LMNN failed"):
        LMNN(sys.executable).fit(np.zeros((4, 1)), [0, 1, 0, 1])


def test_lmnn_stands_in_the_table_where_a_python_is_named(python, monkeypatch):
    assert "LMNN" not in {row["method"] for row in sdist_simulated(1, sizes=[(60, 4)])["rows"]}
    monkeypatch.setenv("ANNEALED_LMNN_PYTHON", python)
    rows = sdist_simulated(1, sizes=[(60, 4)])["rows"]
    assert [row["method"] for row in rows[:4]] == ["sDist", "kNN", "NCA", "LMNN"]
    unfinished = reproduce_metric._competitors(600, 4, 3, standardize=False)["LMNN"].set_params(lmnn__seconds=0.3)
    assert reproduce_metric._measure(unfinished, np.ones((600, 4)), np.arange(600) % 2, np.ones((2, 4)), [0, 1]) is None
