"""The comparison of selectors: the harness, the competitors, and the printed numbers beside
ours."""

import importlib.util

import numpy as np
import pytest
from annealed_experiments.printed_values import TABLES, printed
from annealed_experiments.tables import annealing, competitors, selectors
from annealed_experiments.tables import minimax as reproduce_minimax
from annealed_experiments.tables.annealing import fsa_challenge, fsa_speed, fsa_stability
from annealed_experiments.tables.minimax import (
    l1_fit,
    l1_search,
    minimax_data,
    mslr_leukemia,
    mslr_real,
    mslr_synthetic,
)
from annealed_experiments.tables.selectors import (
    fsa_classification,
    fsa_regression,
    refitted_scores,
)
from annealed_experiments.tables.simulated import simulate
from sklearn.linear_model import LogisticRegression


@pytest.mark.parametrize("task", ["classification", "regression"])
@pytest.mark.parametrize("name", competitors.COMPETITORS)
def test_every_competitor_finds_a_strong_signal(name, task):
    if name not in competitors.available():
        pytest.skip(f"needs annealed[bench]: the package behind {name}")
    rng = np.random.default_rng(0)
    X = rng.standard_normal((300, 40)).astype(np.float32)
    signal = X[:, [3, 17, 31]].sum(axis=1)
    y = (
        np.where(signal > 0, 1, -1)
        if task == "classification"
        else signal + 0.1 * rng.standard_normal(300)
    )
    columns, ridge = competitors.select(name, X, y, 3, task, 0)
    early_stopping = name == "EL, early stopping" and task == "classification"
    assert (ridge is None) == (early_stopping or not name.startswith("EL"))
    assert {3, 17, 31} <= set(columns.tolist())
    assert len(columns) == 3 or name in competitors.FREE_SIZE


def test_a_competitor_that_is_missing_says_so(monkeypatch):
    with pytest.raises(ValueError, match="competitor 'lasso' is unknown"):
        competitors.select("lasso", None, None, 1, "regression")
    monkeypatch.setattr(competitors, "find_spec", lambda name: None)
    with pytest.raises(ValueError, match="requires the package abess"):
        competitors.select("abess", None, None, 1, "regression")
    assert "L1" in competitors.available() and "MCP" not in competitors.available()


def test_search_ends_at_exactly_k():
    thresholds = np.linspace(0.1, 1.0, 10)
    columns, penalty = competitors.search_strength(
        lambda p: np.where(thresholds > p, thresholds, 0.0), 4, 1e-3, 2.0
    )
    np.testing.assert_array_equal(columns, [6, 7, 8, 9])
    assert 0.6 <= penalty < 0.7
    # all or none: the largest four
    flat, _ = competitors.search_strength(
        lambda p: np.where(p < 0.5, thresholds, 0.0), 4, 1e-3, 2.0
    )
    np.testing.assert_array_equal(flat, [6, 7, 8, 9])


def test_printed_numbers():
    """Spot checks against the text, and the shape of the tables."""
    assert printed("clean", "FSL", 300, 10, "DR") == 34
    assert printed("noisy", "L1", 10000, 30, "seconds") == 15949
    assert printed("regression", "SA", 1000, 30, "RMSE") == 2.26
    assert (
        printed("clean", "L2", 300, 10, "PCD") is None
        and printed("clean", "abess", 300, 10, "DR") is None
    )
    assert printed("sdist-real", "sDist", "madelon", "seconds") == 689.64
    assert printed("online-tables", "truncated gradient", "dexter", "hinge", "kappa") == 0.46
    wide = 3 * 8 + 6 * 3 * 5
    sizes = [
        7 * (4 * 11 - 1),
        7 * (4 * 11 - 1),
        4 * (4 * 8 - 2),
        wide,
        16,
        2 * 9 * 3,
        3 * 2 * 3,
        8 * (2 * 5 + 2),
        4 * 3,
    ]
    assert [len(table) for table in TABLES.values()] == sizes


def test_refit_equals_ordinary_fits():
    from sklearn.linear_model import LinearRegression

    data = simulate("regression", 200, 50, 4, random_state=0)
    new = simulate("regression", 30, 50, 4, random_state=1)
    expected = (
        LinearRegression().fit(data.X[:, data.support], data.y).predict(new.X[:, data.support])
    )
    np.testing.assert_allclose(
        refitted_scores(data.X, data.y, data.support, new.X, "regression"), expected, atol=5e-3
    )


def test_rows_as_the_papers_have_them():
    """LogitBoost of k rounds, QTP in the printed order, L2 by SGD, SA: each beside its own printed
    numbers, in the tasks that the papers have."""
    methods = ["LB, k rounds", "QTP, printed order", "L2, SGD", "SA"]
    rows = {
        row["method"]: row
        for row in fsa_classification(1, sizes=[(300, 10)], methods=methods)["rows"]
    }
    assert (
        [*rows] == methods[:3]
        and rows["LB, k rounds"]["paper_AUC"] == 0.95
        and rows["L2, SGD"]["AUC"] > 0.7
    )
    model = selectors.our_methods(selectors.Design("classification", 300, 1000, 10))["LB, k rounds"]
    data = simulate("classification", 300, 1000, 10, random_state=0)
    assert len(model.fit(data.X, data.y).loss_curve_) == 11
    rows = {
        row["method"]: row
        for row in fsa_regression(1, sizes=[(300, 30)], methods=methods[1:])["rows"]
    }
    assert (
        [*rows] == ["QTP, printed order", "SA"]
        and rows["SA"]["paper_RMSE"] == 16.61
        and rows["SA"]["PCD"] is None
        and 2.0 < rows["SA"]["RMSE"] < 6.0
    )


def test_tables_have_our_numbers_beside_the_printed_ones():
    table = fsa_classification(2, sizes=[(300, 10)], methods=["annealed", "FSL", "LB", "L2"])
    assert table["name"] == "fsa-classification" and [row["method"] for row in table["rows"]] == [
        "annealed",
        "FSL",
        "LB",
        "L2",
    ]
    rows = {row["method"]: row for row in table["rows"]}
    assert (
        rows["FSL"]["paper_DR"] == 34
        and rows["L2"]["PCD"] is None
        and "paper_DR" not in rows["annealed"]
    )
    assert rows["annealed"]["PCD"] >= 80 and rows["annealed"]["AUC"] > 0.98
    again = fsa_classification(2, sizes=[(300, 10)], methods=["annealed"])["rows"][0]
    assert again["AUC"] == rows["annealed"]["AUC"]
    table = fsa_regression(1, sizes=[(300, 30)], methods=["annealed", "QTP", "FoBa-gdt"])
    assert table["rows"][0]["DR"] == 100 and table["rows"][1]["paper_PCD"] == 33.1
    with pytest.raises(ValueError, match="method 'FSB' is unknown"):
        fsa_classification(1, methods=["FSB"])


def test_interrupted_tables_go_on_where_they_were(tmp_path, monkeypatch):
    """The checkpoint of an interrupted call holds its finished runs: they are not made again, and
    the table is that of one call."""
    settings = {"sizes": [(100, 3)], "methods": ["FSL", "LB1"], "checkpoint": tmp_path / "cells"}
    whole = fsa_classification(3, **{**settings, "checkpoint": None})["rows"]
    fit, made = selectors.run_method, []

    def counted(name, ours, train, *others):
        made.append(name)
        if len(made) == 6:
            raise KeyboardInterrupt
        return fit(name, ours, train, *others)

    monkeypatch.setattr(selectors, "run_method", counted)
    with pytest.raises(KeyboardInterrupt):
        fsa_classification(3, **settings)
    # the header; two of the five fits compiled
    assert len((tmp_path / "cells").read_text().splitlines()) == 4
    rows = fsa_classification(3, **settings)["rows"]
    for row, expected in zip(rows, whole, strict=True):
        assert {**row, "seconds": 0} == {**expected, "seconds": 0}
    made.clear()
    assert fsa_classification(3, **settings)["rows"] == rows and not made
    with pytest.raises(
        ValueError, match="cells: the file was created with different settings or data"
    ):
        fsa_stability(1, n_samples=50, k=2, checkpoint=tmp_path / "cells")
    points = fsa_stability(1, n_samples=50, k=2, checkpoint=tmp_path / "points")["rows"]
    assert fsa_stability(1, n_samples=50, k=2, checkpoint=tmp_path / "points")["rows"] == points


def test_tables_off_the_papers_design(monkeypatch):
    monkeypatch.setitem(
        selectors.DESIGNS,
        "off-design",
        [selectors.Design("classification", 200, 60, 3, random_signs=True)],
    )
    rows = selectors.fsa_off_design(1, methods=["annealed", "annealing alone"])["rows"]
    assert [row["method"] for row in rows] == ["annealed", "annealing alone"]
    assert rows[0]["task"] == "classification" and rows[0]["M"] == 60
    assert rows[0]["AUC"] is None  # new rows have other signs
    with pytest.raises(
        ValueError,
        match=r"not valid for fsa-wide; expected \(N, k\) from "
        r"\[\(300, 10\), \(1000, 3\), \(300, 30\), ",
    ):
        selectors.fsa_wide(1, sizes=[(5, 5)])
    assert printed("wide", "FSA", 1000, 10000, 100, "RMSE") == 1.17


def test_slow_methods_get_fewer_runs():
    rows = fsa_regression(3, sizes=[(50, 3)], methods=["QTP", "L2"], competitor_runs=1)["rows"]
    assert [row["runs"] for row in rows] == [3, 1]


def test_minimax_setups_and_the_search_for_equal_numbers(monkeypatch):
    X, y, X_test, y_test, w = minimax_data("scales", 1.0, 0.05, 0)
    assert X.shape == X_test.shape == (102, 410) and np.count_nonzero(w) == 15
    np.testing.assert_array_equal(y_test, np.where(X_test @ w > 0, 1, -1))
    assert [len(l1_search(X, y, size)) for size in (5, 10, 20)] == [5, 10, 20]
    monkeypatch.setattr(reproduce_minimax, "_L1_TOLERANCE", 1e-6)
    monkeypatch.setattr(reproduce_minimax, "_L1_VIOLATION", 1e-4)
    cold, warm = l1_fit(X, y, 0.2), l1_fit(X, y, 0.2, np.arange(0, 410, 2))
    everything = (
        LogisticRegression(l1_ratio=1.0, C=0.2, solver="liblinear", tol=1e-6, fit_intercept=False)
        .fit(X, y)
        .coef_[0]
    )
    monkeypatch.undo()
    assert 10 < np.count_nonzero(everything) < 200
    for coef in (cold, warm):
        np.testing.assert_allclose(coef, everything, atol=1e-3 * np.abs(everything).max())
    table = mslr_synthetic(1, setups=["scales"], taus=[1.0], shrink=0.05)
    assert {row["method"] for row in table["rows"]} == {"MSLR", "L1", "annealed", "truth"}
    truth = [row for row in table["rows"] if row["method"] == "truth"]
    assert truth[0]["recovered"] == truth[0]["selected"] == 5
    with pytest.raises(ValueError, match="setup 'deep' is unknown"):
        mslr_synthetic(1, setups=["deep"])


def test_optional_packages_are_asked_for_by_their_names():
    for package in competitors._NEEDS.values():
        assert (importlib.util.find_spec(package) is not None) == any(
            competitors._NEEDS.get(name) == package for name in competitors.available()
        )


@pytest.mark.data
def test_leukemia_needs_few_features(data_dir):
    """The page has 1 of 34 missed with 6 genes and r = 2; one sample more is another library's
    rounding."""
    rows = mslr_leukemia(data_dir=data_dir, sizes=[6])["rows"]
    assert [row["selected"] for row in rows] == [6, 6, 6]
    # guessing the larger class misses 14
    assert next(row["missed"] for row in rows if row["r"] == 2) <= 2
    assert all(row["seconds"] > 0 for row in rows)


def test_leukemia_that_is_not_there(tmp_path):
    with pytest.raises(ValueError, match="no such file"):
        mslr_leukemia(data_dir=tmp_path)


@pytest.mark.slow
def test_baselines_land_near_the_printed_detection_rates():
    table = fsa_classification(
        30, sizes=[(1000, 10), (3000, 10)], methods=["FSA", "FSV", "FSL", "LB", "LB1"]
    )
    for row in table["rows"]:
        assert row["DR"] >= row["paper_DR"] - 10, row


def test_the_papers_algorithm_has_the_same_rates_for_all_labels():
    """Both rates of the logistic loss stand in both tables: neither row knows how many labels are
    wrong."""
    for noise in (0.0, 0.1):
        ours = selectors.our_methods(
            selectors.Design("classification", 300, 1000, 10, label_noise=noise)
        )
        assert [ours[name].learning_rate for name in ("FSA", "FSA, rate 3", "FSV", "FSL")] == [
            10.0,
            3.0,
            1.0,
            1.0,
        ]


def test_time_against_mu():
    made = fsa_speed(1, n_samples=200)
    passes = [row["passes"] for row in made["rows"]]
    assert [row["mu"] for row in made["rows"]] == [0, 1, 10, 30, 100, 300] and passes == sorted(
        passes, reverse=True
    )
    # (1 + 0.01) / 2 of 250 steps; the other 250 read ten columns
    assert passes[0] == pytest.approx(127, abs=3)


def test_wide_rows_have_the_printed_numbers_of_their_size():
    rows = selectors.fsa_wide(1, sizes=[(1000, 3), (300, 30)], methods=["annealed"])["rows"]
    assert [(row["M"], row.get("paper_DR")) for row in rows] == [
        (100, None),
        (1000, None),
        (10000, None),
    ]
    rows = selectors.fsa_wide(1, sizes=[(1000, 3), (300, 30)], methods=["FSA"])["rows"]
    assert [(row["M"], row["paper_DR"], row["paper_RMSE"]) for row in rows] == [
        (100, 100, 1.01),
        (1000, 67, 1.25),
        (10000, 4, 2.29),
    ]


@pytest.mark.slow
@pytest.mark.data
def test_lines_of_the_challenge(data_dir):
    rows = {
        (row["data"], row["method"], row["k"]): row for row in fsa_challenge(1, data_dir)["rows"]
    }
    assert (
        rows["dexter", "FSA", 93]["paper_valid"] == 8.67 and rows["dexter", "FSA", 93]["valid"] < 15
    )
    assert rows["gisette_valid", "FSA, 2 bins", 320]["paper_train"] == 1.13


@pytest.mark.slow
@pytest.mark.data
def test_texts_at_equal_numbers_of_columns(data_dir):
    rows = mslr_real(2, data_dir, sets=["farm_ads"])["rows"]
    assert all(abs(row["MSLR"] - row["L1"]) < 10 and 0 < row["MSLR_10_p"] <= 1 for row in rows)
    assert [row["columns"] for row in rows] == sorted(row["columns"] for row in rows)
    with pytest.raises(ValueError, match="'rcv1' is unknown"):
        mslr_real(1, data_dir, sets=["rcv1"])


def test_parts_of_the_default_settings(monkeypatch):
    """Exchanges detect more columns than the loop alone."""
    chosen = ("logistic: loop", "logistic: and exchanges")
    monkeypatch.setattr(annealing, "PARTS", {name: annealing.PARTS[name] for name in chosen})
    rows = annealing.fsa_parts(2)["rows"]
    assert [row["method"] for row in rows] == [*chosen] * 4
    loop, exchanges = (row["PCD"] for row in rows if row["case"] == "clean 1000, 30")
    assert 50.0 < loop < exchanges


def test_runs_start_at_the_first_seed():
    options = {"sizes": [(300, 10)], "methods": ["FSL"]}
    three = fsa_classification(3, first_seed=5, **options)
    each = [fsa_classification(1, first_seed=5 + i, **options)["rows"][0] for i in range(3)]
    assert three["settings"]["seeds"] == "5 to 7"
    assert three["rows"][0]["PCD"] == pytest.approx(np.mean([row["PCD"] for row in each]))


def test_the_row_of_fsa_in_regression_is_the_printed_loop():
    """Gradient steps on standardised columns without momentum, and the k largest coefficients."""
    draw = simulate("regression", 200, 60, 3, random_state=1)
    model = selectors.our_methods(selectors.Design("regression", 200, 60, 3))["FSA"]
    model.set_params(refinement=None, prior=None).fit(draw.X, draw.y)
    X = draw.X.astype(float)
    Z, target = (X - X.mean(axis=0)) / X.std(axis=0), draw.y - draw.y.mean()
    left, coef = np.arange(60), np.zeros(60)
    for e in range(1, 501):  # (3) of Barbu et al. (2017)
        count = int(3 + 57 * max(0.0, (500 - 2 * e) / (2 * e * 30.0 + 500)))
        step = coef[left] - 0.05 * Z[:, left].T @ (Z[:, left] @ coef[left] - target) / 200
        order = np.sort(np.argsort(-np.abs(step), kind="stable")[:count])
        left, coef = left[order], np.zeros(60)
        coef[left] = step[order]
    assert model.get_support(indices=True).tolist() == left.tolist()
    np.testing.assert_allclose(model.coef_.ravel()[left], (coef / X.std(axis=0))[left], rtol=1e-4)
