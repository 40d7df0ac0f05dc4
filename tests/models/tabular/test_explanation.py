"""Contributions of columns sum to the score and agree with other packages."""

import sys

import numpy as np
import pandas as pd
import pytest
from annealed.learners import FSAClassifier, FSARegressor
from annealed.models import TabularModel, explain
from annealed.models.tabular.encoding import ColumnEncoding, TableEncoding
from sklearn.impute import SimpleImputer
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

rng = np.random.default_rng(0)
X = rng.standard_normal((120, 8)) + 3
NUMBER = X[:, 1] - 2 * X[:, 4] + X[:, 6] ** 2
THREE = np.digitize(NUMBER, [2, 6])


@pytest.mark.parametrize("response", ["linear", "piecewise"])
@pytest.mark.parametrize(
    "estimator, y", [(FSARegressor, NUMBER), (FSAClassifier, NUMBER > 3), (FSAClassifier, THREE)]
)
@pytest.mark.parametrize("background", [None, X[:50]])
def test_contributions_sum_to_the_score(estimator, y, response, background):
    model = estimator(3, response=response).fit(X, y)
    why = explain(model, X, background)
    scores = model.predict(X) if estimator is FSARegressor else model.decision_function(X)
    assert why.values.shape == (120, 3, 3 if y is THREE else 1) and len(why.names) == 3
    np.testing.assert_allclose(
        why.scores.reshape(scores.shape), scores, rtol=0, atol=1e-12 * max(1, np.abs(scores).max())
    )
    frame = why.to_frame()
    groups = 3 if y is THREE else 1
    for part in np.split(frame.to_numpy(), groups, axis=1):
        np.testing.assert_allclose(
            part[:, 1:].sum(axis=1), part[:, 0], rtol=0, atol=1e-12 * max(1, np.abs(scores).max())
        )


def test_linear_contributions_are_those_of_shap():
    shap = pytest.importorskip("shap")
    model = FSARegressor(3).fit(X, NUMBER)
    expected = shap.LinearExplainer(
        (model.coef_, model.intercept_), shap.maskers.Independent(X, max_samples=len(X))
    )(X)
    explanation = explain(model, X, background=X).to_shap()
    chosen = model.get_support(indices=True)
    np.testing.assert_allclose(explanation.values, expected.values[:, chosen], rtol=0, atol=1e-10)
    np.testing.assert_allclose(explanation.base_values, expected.base_values, rtol=0, atol=1e-10)
    assert explanation.feature_names == [f"x{i}" for i in chosen] and np.array_equal(
        explanation.data, X[:, chosen]
    )


def test_curves_are_additive_values():
    """Compared with shap's permutation explainer, which is exact for a sum of functions of single
    columns."""
    shap = pytest.importorskip("shap")
    model = FSARegressor(3, response="piecewise").fit(X, NUMBER)
    expected = shap.explainers.Permutation(model.predict, X[:40], seed=0)(X[:10], silent=True)
    explanation = explain(model, X[:10], background=X[:40])
    np.testing.assert_allclose(
        explanation.values[:, :, 0], expected.values[:, model.get_support()], rtol=0, atol=1e-10
    )


def test_several_scores_have_one_picture_each():
    pytest.importorskip("shap")
    explanation = explain(FSAClassifier(3).fit(X, THREE), X).to_shap()
    assert explanation.values.shape == (120, 3, 3) and explanation.output_names == ["0", "1", "2"]


def test_a_category_is_one_column():
    frame = pd.DataFrame({"n": X[:, 0], "city": rng.choice(["a", "b", "c"], 120), "m": X[:, 1]})
    frame.loc[3, "city"] = None
    encoding = TableEncoding(
        (
            ColumnEncoding("n"),
            ColumnEncoding("city", "category", None, ("b", "c"), "a", (0.3, 0.3)),
            ColumnEncoding("m"),
        )
    )
    model = TabularModel.from_estimator(
        FSARegressor(3).fit(encoding.encode(frame), NUMBER + 5 * (frame["city"] == "b")), encoding
    )
    why = explain(model, frame)
    assert (
        set(why.names)
        == {name for name in frame if any(s.startswith(name) for s in model.selected)}
        and "city" in why.names
    )
    np.testing.assert_allclose(why.scores[:, 0], model.predict(frame), atol=1e-12)


def test_pipelines_take_tables_and_arrays():
    holes = np.where(rng.random(X.shape) < 0.1, np.nan, X)
    model = make_pipeline(SimpleImputer(), StandardScaler(), FSARegressor(3)).fit(holes, NUMBER)
    np.testing.assert_allclose(explain(model, holes).scores[:, 0], model.predict(holes), atol=1e-12)
    with pytest.raises(ValueError, match=r"X has shape \(120, 2\); expected 8 columns"):
        explain(model, X[:, :2])
    with pytest.raises(ValueError, match="the table has no column 'x"):
        explain(model, pd.DataFrame({"a": [1.0]}))


def test_shap_that_is_missing_is_named(monkeypatch):
    monkeypatch.setitem(sys.modules, "shap", None)
    with pytest.raises(
        ModuleNotFoundError,
        match=r"to_shap requires the package shap; run pip install "
        r"'\.\[shap\]' in the annealed checkout",
    ):
        explain(FSARegressor(2).fit(X, NUMBER), X).to_shap()
