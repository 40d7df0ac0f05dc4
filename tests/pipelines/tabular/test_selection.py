"""Selection of the columns of a table, called from Python."""

from dataclasses import replace

import numpy as np
import pandas as pd
import pytest
from annealed.learners.model_selection.size import beats_constant
from annealed.models.tabular.encoding import ColumnEncoding, TableEncoding
from annealed.models.tabular.fitting import validation
from annealed.models.tabular.fitting.selection import select_columns
from annealed.models.tabular.fitting.settings import check_target, make_model
from annealed.models.tabular.fitting.table import Table
from annealed.models.tabular.fitting.validation import HeldOut, errors, folds, measures, validate
from annealed.models.tabular.report import page
from annealed.pipelines.tabular.request import Request
from annealed.pipelines.tabular.selection import select_file

X = np.random.default_rng(0).standard_normal((200, 12))
ENCODING = TableEncoding(tuple(ColumnEncoding(f"c{j}", fill=0.0) for j in range(12)))


def table(y, X=X, **more):
    return Table(X, np.asarray(y), ENCODING, **more)


def names(result):
    return [column["name"] for column in result.columns]


def test_columns_are_ordered_by_their_effect():
    y = X[:, 3] + 3.0 * X[:, 7]
    result = select_columns(table(y, X * np.geomspace(1, 100, 12)), "regression", 2)
    assert names(result) == ["c7", "c3"]
    assert result.columns[0]["effect"] == pytest.approx(3.0, rel=0.2)
    assert [column["stability"] for column in result.columns] == [1.0, 1.0] and result.kappa == 1.0
    assert (
        result.validation.scores["selected"]["R2"]
        > 0.99
        > 0.01
        > result.validation.scores["baseline"]["R2"]
    )


def test_several_classes_have_the_norm_of_their_coefficients():
    (column,) = select_columns(
        table(np.digitize(X[:, 5], [-0.5, 0.5])), "classification", 1
    ).columns
    assert column["name"] == "c5" and column["coefficient"] > 0


def test_cross_validation_chooses_the_size():
    y = X[:, 3] + X[:, 7] - X[:, 9] + 0.3 * np.random.default_rng(1).standard_normal(200)
    result = select_columns(table(y), "regression", None)
    assert result.size_chosen and set(names(result)) == {"c3", "c7", "c9"}
    record = result.record()
    assert record["chosen_by"] == "cross-validation" and len(record["path"][0]["folds"]) == 5


def test_response_curves():
    y = np.abs(X[:, 4]) + 0.1 * X[:, 1]
    (column,) = select_columns(table(y), "regression", 1, Request(response="piecewise")).columns
    assert column["name"] == "c4" and column["coefficient"] is None
    curve = np.array(column["curve"]["y"])[:, 0]
    assert curve[0] > curve[len(curve) // 2] < curve[-1]


def test_columns_that_say_nearly_the_same_are_alternatives():
    twin = X.copy()
    twin[:, 8] = X[:, 3] + 0.2 * X[:, 8]
    y = twin[:, 3] + 2.0 * np.random.default_rng(1).standard_normal(len(X))
    (column,) = select_columns(table(y, twin), "regression", 1).columns
    (other,) = column["alternatives"]
    assert {column["name"], other["name"]} == {"c3", "c8"} and 0.0 <= other["cost"] < 0.05


def test_the_score_of_a_chosen_size_is_that_of_the_choice(monkeypatch):
    seen, n_rows = [], []
    choose = validation.chosen_size

    def recorded(sizes, losses, row_losses, *others):
        seen.append(losses)
        n_rows.append(row_losses.shape[1])
        return choose(sizes, losses, row_losses, *others)

    monkeypatch.setattr(validation, "chosen_size", recorded)
    y = X[:, 4] + X[:, 1] + np.random.default_rng(0).standard_normal(len(X))
    result = select_columns(table(y), "regression", None).validation
    assert result.nested
    np.testing.assert_array_equal(seen[0], result.losses)
    for fold, losses in enumerate(seen[1:]):  # without the fold that is scored
        np.testing.assert_array_equal(losses, np.delete(result.losses, fold, axis=0))
    assert "(selected" in result.curve and f"{result.size} " in result.curve
    assert len(seen) == 6 and n_rows == [len(X), *(len(X) - n for n in result.held_out)]
    seen.clear()
    assert not select_columns(table(y), "regression", 2).validation.nested and not seen


def test_small_sizes_are_scored_with_exchanges():
    from sklearn.datasets import load_diabetes

    X, y = load_diabetes(return_X_y=True)
    encoding = TableEncoding(tuple(ColumnEncoding(f"c{j}", fill=0.0) for j in range(10)))
    result = select_columns(Table(X, y, encoding), "regression", None)
    assert 4 <= result.validation.size <= 7  # of ten: serum measurements stand in for each other


def test_groups_of_rows_stay_together():
    groups = np.repeat(np.arange(10), 20)
    for task, y in (("regression", X[:, 0]), ("classification", (X[:, 0] > 0).astype(int))):
        result = folds(table(y, row_groups=groups), task)
        assert len(result) == 5
        assert all(not set(groups[train]) & set(groups[test]) for train, test in result)
    with pytest.raises(ValueError, match="all rows are in one group"):
        folds(table(X[:, 0], row_groups=np.zeros(200)), "regression")


def test_measures():
    assert measures("classification", HeldOut(np.array([0, 0, 0, 1]), np.zeros(4))) == {
        "accuracy": 0.75,
        "balanced accuracy": 0.5,
    }
    assert measures("regression", HeldOut(np.array([0.0, 2.0]), np.array([1.0, 1.0]))) == {
        "R2": 0.0,
        "mean absolute error": 1.0,
    }


@pytest.mark.parametrize(
    "y, task, message",
    [
        (np.repeat(["a", "b"], 100), "regression", "labels such as 'a'; expected numbers"),
        (np.ones(200), "classification", "only one value"),
        (np.ones(200), "regression", "only one value"),
        (np.linspace(0, 1, 200), "classification", "continuous values such as 0.005"),
    ],
)
def test_targets_that_do_not_fit_the_task(y, task, message):
    with pytest.raises(ValueError, match=message):
        check_target(y, task)


def test_the_cost_of_doing_without_a_column(tmp_path):
    rng = np.random.default_rng(0)
    X = rng.standard_normal((300, 6))
    frame = pd.DataFrame(X, columns=list("abcdef"))
    frame["city"] = rng.choice(["Rome", "Oslo", "Kiel"], 300)
    frame["y"] = 2 * X[:, 1] - X[:, 3] + (frame["city"] == "Rome") + 0.3 * rng.standard_normal(300)
    frame[["b", "d", "city", "y"]].to_csv(tmp_path / "t.csv", index=False)
    request = Request("y", "3", bounds=["b=0:"], monotone=["d=-"])
    result = select_file(tmp_path / "t.csv", request, details=True)
    costs = {column["name"]: column["cost"] for column in result.columns}
    assert list(costs) == ["b", "d", "city"]
    assert costs["b"] > costs["d"] > costs["city"] > 0.01
    score = result.validation.scores["selected"]["R2"]
    without_b = select_file(tmp_path / "t.csv", replace(request, k="2", exclude=["b"], bounds=()))
    assert score - costs["b"] == pytest.approx(
        without_b.validation.scores["selected"]["R2"], abs=0.02
    )
    assert (
        "cost" in page(result)
        and "cost" not in select_file(tmp_path / "t.csv", Request("y", "3")).columns[0]
    )
    plain = replace(request, k="1", bounds=(), monotone=())
    one = select_file(tmp_path / "t.csv", plain, details=True)
    assert one.columns[0]["cost"] == pytest.approx(
        one.validation.scores["selected"]["R2"], abs=0.02
    )


def test_where_predictions_go_wrong():
    rng = np.random.default_rng(0)
    p = rng.random(1000)
    y = (rng.random(1000) < p).astype(int)
    held = HeldOut(y, (p > 0.5).astype(int), None, np.array([0, 1]), np.column_stack([1 - p, p]))
    result = errors(held)
    assert np.sum(result["confusion"]["rows"]) == 1000
    assert result["confusion"]["rows"][0][1] == ((y == 0) & (p > 0.5)).sum()
    assert [group["rows"] for group in result["calibration"]] == 10 * [100]
    assert all(
        abs(group["predicted"] - group["observed"]) < 0.15 for group in result["calibration"]
    )
    y, predicted = rng.standard_normal(500), np.zeros(500)
    residuals = {
        entry["share"]: entry["residual"] for entry in errors(HeldOut(y, predicted))["residuals"]
    }
    assert residuals[0.5] == pytest.approx(np.median(y)) and residuals[0.05] == pytest.approx(
        np.quantile(y, 0.05)
    )
    assert "calibration" not in errors(HeldOut(y > 0, y > 0, None, np.array([False, True]), None))


def test_a_column_has_the_distribution_that_lies_under_its_curve():
    values = X.copy()
    values[:, 3] = np.repeat([0.0, 1.0, 4.0, 10.0], 50)
    (column,) = select_columns(table(values[:, 3] + 0.1 * X[:, 5], values), "regression", 1).columns
    shown = column["distribution"]
    assert (shown["from"], shown["to"], shown["mean"]) == (0.0, 10.0, 3.75)
    assert [n for n in shown["rows"] if n] == [50, 50, 50, 50] and len(shown["rows"]) == 20


def test_the_rule_of_the_size_is_an_option():
    """A few columns explain nearly all, more the rest."""
    rng = np.random.default_rng(0)
    y = X[:, 4] + X[:, 1] + 0.12 * X[:, 2] + 0.5 * rng.standard_normal(len(X))
    sizes = {
        rule: select_columns(table(y), "regression", None, Request(size_rule=rule)).validation
        for rule in ("explained", "best")
    }
    assert (
        sizes["explained"].size == 2 < sizes["best"].size == sizes["best"].sizes[sizes["best"].best]
    )
    with pytest.raises(ValueError, match="--size-rule best is only available with -k auto"):
        Request(size_rule="best").check("3")


def test_a_weak_target_of_few_groups_of_rows_needs_more():
    """The standard error is that over groups of rows, and of weighted rows."""
    gain = np.repeat([0.3, -0.1, 0.2, -0.15], 50) + 0.03
    assert beats_constant(1.0 - gain, np.ones(200)) and not beats_constant(
        1.0 - gain, np.ones(200), groups=np.repeat(np.arange(4), 50)
    )
    weight = np.where(gain > 0, 0.1, 1.0)
    assert not beats_constant(1.0 - gain, np.ones(200), weight)


def test_few_tables_of_noise_have_a_column(monkeypatch):
    """The gain of the best size of noise exceeds one standard error in at most 16% of the tables,
    as one of a given size would."""
    monkeypatch.setattr(validation, "_competitors", lambda *_: {})
    selected = []
    for seed in range(60):
        rng = np.random.default_rng(seed)
        noise = rng.standard_normal((100, 12)) + rng.standard_normal((100, 1))
        classes = seed % 2 == 0
        rows = table(rng.random(100) < 0.7 if classes else rng.standard_normal(100), noise)
        task = "classification" if classes else "regression"
        given = make_model(Request(), rows, task, 1), None, np.arange(9), folds(rows, task)
        result = validate(rows, task, *given, lambda items, _: items, Request())
        selected.append(result.size > 0)
    assert np.mean(selected) <= 0.16


def test_probabilities_of_two_classes_are_calibrated_by_the_other_folds(monkeypatch):
    rng = np.random.default_rng(0)
    y = np.where(X[:, 0] - X[:, 1] + 2.0 * rng.logistic(size=200) > 0, "yes", "no")
    result = select_columns(table(y), "classification", 6)
    slope, flip = result.model.calibration_
    assert (slope, flip) == result.validation.calibration and slope != 1.0
    monkeypatch.setattr(validation, "_calibration", lambda *_: None)
    plain = select_columns(table(y), "classification", 6)
    assert plain.model.calibration_ is None
    assert result.validation.scores == plain.validation.scores  # accuracies
    distances = [
        np.mean(
            [
                abs(row["predicted"] - row["observed"])
                for row in one.validation.errors["calibration"]
            ]
        )
        for one in (result, plain)
    ]
    assert distances[0] < distances[1]
    stored = result.to_model("y")
    assert (stored.slope, stored.flip) == (slope, flip)


def test_class_weights_and_a_constant_are_calibrated_for_classes_of_equal_size():
    rng = np.random.default_rng(0)
    y = (X[:, 0] + rng.logistic(size=200) > 2.0).astype(int)
    request = Request(class_weight=("balanced",))
    result = select_columns(table(y), "classification", 2, request)
    p = result.model.predict_proba(X)[:, 1]
    weight = 1.0 / np.bincount(y)[y]
    assert np.average(p, weights=weight) == pytest.approx(0.5, abs=0.05)
    assert y.mean() < 0.25
    nothing = select_columns(table(rng.permutation(y)), "classification", None)
    assert nothing.validation.size > 0 or nothing.validation.calibration is None


def test_a_fold_without_weight_is_one_line():
    held = HeldOut(np.ones(4), np.ones(4), weight=np.zeros(4))
    with pytest.raises(ValueError, match="all rows of a fold have weight 0"):
        validation._r2(held)
