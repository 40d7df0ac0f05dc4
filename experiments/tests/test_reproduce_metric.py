"""The tables of Ma (thesis) in miniature: shapes of the rows, generators, settings."""

from collections import Counter

import numpy as np
import pytest
from annealed_experiments.datasets import load_set, random_split
from annealed_experiments.registry import TABLES, reproduce, table
from annealed_experiments.tables import metric as reproduce_metric
from annealed_experiments.tables import online as reproduce_online
from annealed_experiments.tables.metric import VARIANTS, sdist_real, sdist_simulated
from annealed_experiments.tables.online import online_tables
from annealed_experiments.tables.simulated import bayes_error, simulated_case
from sklearn.linear_model import SGDClassifier


@pytest.mark.parametrize("case, rule", [("xor", lambda Z: Z[:, 0] * Z[:, 1]), ("rings", None)])
def test_generators_reach_their_bayes_error(case, rule):
    X, y, _, _ = simulated_case(case, 40000, 4, 0)
    assert X[:, :2].std(axis=0) == pytest.approx(1.0, abs=0.02) and X[:, 2:].std(
        axis=0
    ) == pytest.approx(0.35, abs=0.01)
    if rule is None:
        radius = np.linalg.norm(X[:, :2], axis=1)
        error = min(np.mean((radius > r) != (y == 1)) for r in np.linspace(0.5, 2.0, 151))
    else:
        error = np.mean((rule(X) > 0) != (y == 1))
    assert error == pytest.approx(bayes_error(case), abs=0.006)


def test_a_tenth_of_the_columns_carries_the_same_information():
    """The means over the columns of each half are the two columns of the other design, up to their
    scale."""
    for case in ("xor", "rings"):
        X = simulated_case(case, 2000, 100, 3, noise_scale=1.0, tenth=True)[0]
        assert X.shape == (2000, 100) and X.std(axis=0) == pytest.approx(1.0, abs=0.06)
        within = np.corrcoef(X[:, :5].T)[np.triu_indices(5, 1)]
        # of 1 + 0.8: the column, and what its parts share
        assert within == pytest.approx(1 / 1.8 - 0.2 / 1.8, abs=0.06)
        assert np.abs(np.corrcoef(X[:, [0, 5, 20]].T)[np.triu_indices(3, 1)]).max() < 0.1


@pytest.mark.slow
def test_simulated_rows():
    made = sdist_simulated(2, sizes=[(200, 12)], methods=[*VARIANTS, "kNN"])
    assert made["name"] == "sdist-simulated"
    ours = [r for r in made["rows"] if r["method"] == "sDist"]
    assert len(ours) == 6 and all(r["runs"] == 2 and r["variables"] <= 10 for r in ours)
    assert all(r["error"] < r["bayes"] + 0.1 for r in ours)
    # The setting of the third design trims nothing: two of its variants are the same as others.
    counts = Counter(row["method"] for row in made["rows"])
    assert counts == {
        "sDist": 6,
        "sDist, no screen": 6,
        "sDist, no trimming": 4,
        "sDist, neither": 4,
        "kNN": 6,
    }
    untrimmed = [row["variables"] for row in made["rows"] if row["method"] == "sDist, no trimming"]
    assert min(untrimmed) >= 5


@pytest.mark.data
def test_real_rows(data_dir, monkeypatch):
    monkeypatch.setitem(
        reproduce_metric.REAL_GRIDS, "ionosphere", {"kappa": [5], "n_steps": [50, 100]}
    )
    rows = sdist_real(1, data_dir, sets=["ionosphere"])["rows"]
    assert [r["method"] for r in rows][:2] == ["sDist", "kNN"]
    assert rows[0]["error"] < 0.2 and rows[0]["paper_error"] == 0.05


@pytest.mark.data
def test_online_rows(data_dir, monkeypatch):
    monkeypatch.setattr(reproduce_online, "PASSES", 5)
    rows = online_tables(
        2,
        data_dir,
        sets=["dexter"],
        losses=["logistic"],
        methods=["stabilised", "SGD"],
        folds=(2, 2),
    )["rows"]
    assert rows[0]["error"] < 0.15 and rows[0]["nonzero"] <= 0.015 and rows[0]["kappa"] > 0.6
    assert rows[1]["nonzero"] > 0.2


def test_the_sparsest_setting_is_within_one_standard_error():
    work, grid = object.__new__(reproduce_online._Set), {"alpha": [1.0, 2.0, 3.0]}
    cells = {1.0: (0.10, 0.02, 0.5), 2.0: (0.12, 0.01, 0.1), 3.0: (0.13, 0.01, 0.05)}
    work.key, work.cells = {}, lambda key, compute: cells[key["alpha"]]
    choose = [work.choose(SGDClassifier(), grid, "rows", "hinge", flag) for flag in (False, True)]
    assert choose == [(0.10, {"alpha": 1.0}), (0.12, {"alpha": 2.0})]


def test_every_table_is_there():
    for name in TABLES:
        assert callable(table(name))
    with pytest.raises(ValueError, match="is not a table"):
        reproduce("table-0")
    with pytest.raises(ValueError, match="runs=0"):
        reproduce("sdist-real", 0)
    with pytest.raises(ValueError, match="no such file"):
        load_set("madelon", "nowhere")
    parts = random_split(np.arange(20).reshape(10, 2), np.arange(10), 0)
    assert len(parts[0]) == 7 and sorted([*parts[1], *parts[3]]) == list(range(10))


def test_a_table_goes_on_from_its_checkpoint(tmp_path, monkeypatch):
    path = tmp_path / "cells.jsonl"
    first = reproduce("sdist-simulated", 1, sizes=[(60, 4)], methods=["sDist"], checkpoint=path)
    monkeypatch.setattr(reproduce_metric, "_measure", lambda *_: pytest.fail("made twice"))
    assert (
        reproduce("sdist-simulated", 1, sizes=[(60, 4)], methods=["sDist"], checkpoint=path)
        == first
    )
    with pytest.raises(ValueError, match="noisy: this option is not available for sdist-real"):
        reproduce("sdist-real", 1, noisy=True)
