"""One place evaluates fitted sums of responses: equal to the estimators' own scores, for every kind
of response."""

import numpy as np
import pytest
import scipy.sparse as sp
from annealed.learners import FSAClassifier, FSARegressor, LogitBoostClassifier, TISPClassifier
from annealed.learners.common.additive import AdditiveModel


@pytest.fixture
def data():
    X = np.random.default_rng(0).standard_normal((300, 20))
    return X, X[:, 3] - X[:, 7] > 0.2


@pytest.mark.parametrize("estimator", [FSAClassifier(4), FSAClassifier(4, response="piecewise")])
def test_equals_the_estimators_scores(data, estimator):
    X, y = data
    estimator.fit(X, y)
    model = AdditiveModel.from_estimator(estimator)
    np.testing.assert_array_equal(model.scores(X)[:, 0], estimator.decision_function(X))
    np.testing.assert_allclose(
        model.contributions(X).sum(axis=1) + model.intercept, model.scores(X), atol=1e-12
    )


@pytest.mark.parametrize("estimator", [TISPClassifier(4), LogitBoostClassifier(4)])
def test_takes_any_selector(data, estimator):
    X, y = data
    estimator.fit(X, y)
    np.testing.assert_allclose(
        AdditiveModel.from_estimator(estimator).scores(X)[:, 0],
        estimator.decision_function(X),
        atol=1e-12,
    )


def test_several_outputs_and_the_order_of_importance(data):
    X, _ = data
    model = FSARegressor(4, response="piecewise").fit(
        X, np.column_stack([X[:, 3], X[:, 7] - X[:, 3]])
    )
    additive = AdditiveModel.from_estimator(model, by_importance=True)
    assert additive.selected[0] == np.argmax(model.feature_importances_)
    np.testing.assert_allclose(additive.scores(X), model.predict(X), atol=1e-12)


def test_missing_values_have_their_own_response(data):
    X, y = data
    X = np.where(np.random.default_rng(1).random(X.shape) < 0.1, np.nan, X)
    model = FSAClassifier(4, response="piecewise").fit(X, y)
    scores = AdditiveModel.from_estimator(model).scores(X)
    assert np.isfinite(scores).all()
    np.testing.assert_array_equal(scores[:, 0], model.decision_function(X))


def test_sparse_rows_equal_dense_ones(data):
    X, y = data
    X = np.where(np.abs(X) > 1, X, 0.0)
    model = AdditiveModel.from_estimator(FSAClassifier(4, response="piecewise").fit(X, y))
    np.testing.assert_array_equal(model.scores(sp.csr_array(X)), model.scores(X))


def test_constant_responses_of_bins():
    model = AdditiveModel(np.array([1]), np.array([[0.0, 1.0, 2.0]]), np.array([[[3.0], [4.0]]]))
    found = model.scores(np.column_stack([np.zeros(5), [-1.0, 0.5, 1.0, 2.0, 9.0]]))
    assert found.ravel().tolist() == [3.0, 3.0, 4.0, 4.0, 4.0]


def test_contributions_less_a_reference():
    model = AdditiveModel(np.array([0]), np.array([[0.0, 1.0]]), np.array([[[3.0], [5.0]]]))
    assert model.contributions(np.array([[0.0], [0.5]]), reference=0.0).ravel().tolist() == [
        0.0,
        1.0,
    ]
    assert model.responses_at(0.0).tolist() == [[3.0]]


def test_shapes_that_do_not_fit_are_refused():
    with pytest.raises(ValueError, match="shapes are inconsistent"):
        AdditiveModel(np.array([0]), np.zeros((1, 3)), np.zeros((1, 5, 1)))
