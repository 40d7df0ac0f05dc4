"""The figures of the papers, small, and the fit of LMNN by another Python."""

import sys

import numpy as np
import pytest
from annealed.pipelines.reproduce import figures
from annealed.pipelines.reproduce import metric as reproduce_metric
from annealed.pipelines.reproduce.competitors import LMNN
from annealed.pipelines.reproduce.figures import FIGURES, draw
from annealed.pipelines.reproduce.metric import sdist_simulated
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
    monkeypatch.setattr(figures, "_STABILITY", {name: [values[2]] for name, values in figures._STABILITY.items()})
    path = tmp_path / "stability.png"
    result = run("reproduce", "fsa-stability", "--picture", path, "--runs", 1)
    assert result.exit_code == 0 and path.read_bytes().startswith(b"\x89PNG")


def test_the_surfaces_of_sdist_are_drawn(tmp_path):
    draw("sdist-surfaces", tmp_path / "surfaces.png")
    assert (tmp_path / "surfaces.png").stat().st_size > 10_000


@pytest.mark.data
@pytest.mark.parametrize("name", ["online-nonzeros", "online-sparsity"])
def test_figures_of_real_data_are_drawn(name, data_dir, tmp_path):
    draw(name, tmp_path / "figure.png", data_dir)
    assert (tmp_path / "figure.png").stat().st_size > 10_000


def test_unknown_figures_are_named():
    with pytest.raises(ValueError, match=f"'fsa-large' has no picture; expected one of {', '.join(FIGURES)}"):
        draw("fsa-large", "x.png")


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
