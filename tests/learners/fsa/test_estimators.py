"""The estimators as scikit-learn sees them, and their laws."""

import numpy as np
import pandas as pd
import pytest
import scipy.sparse as sp
from annealed.learners import (
    Constraints,
    FSAClassifier,
    FSAClassifierCV,
    FSARanker,
    FSARegressor,
    FSARegressorCV,
    LogisticLoss,
    PiecewiseLinear,
    Prior,
    Refinement,
    Schedule,
    VapnikLoss,
)
from hypothesis import example, given, settings
from hypothesis import strategies as st
from sklearn.base import clone
from sklearn.linear_model import LinearRegression
from sklearn.model_selection import GridSearchCV, cross_val_score
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.utils.estimator_checks import parametrize_with_checks
from small_problems import classes, problem

ESTIMATORS = [
    FSAClassifier(),
    FSAClassifier(loss="lorenz"),
    FSAClassifier(loss="huberised_hinge"),
    FSAClassifier(response="piecewise"),
    FSAClassifier("auto"),
    FSARegressor(),
    FSARegressor(response=PiecewiseLinear(bins="quantile")),
    FSARanker(),
    FSAClassifierCV(cv=2),
    FSARegressorCV(cv=2),
]


@pytest.mark.filterwarnings("ignore:n_features_to_select", "ignore:The least populated class")
@parametrize_with_checks(ESTIMATORS)
def test_scikit_learn_checks(estimator, check):
    check(estimator)


# -- inside scikit-learn ---------------------------------------------------------------------------


def test_pipeline_grid_search_and_names():
    X, y = problem()
    frame = pd.DataFrame(X, columns=[f"f{j}" for j in range(X.shape[1])])
    pipe = make_pipeline(StandardScaler(), FSARegressor(3), LinearRegression()).set_output(
        transform="pandas"
    )
    search = GridSearchCV(pipe, {"fsaregressor__n_features_to_select": [1, 2, 3]}, cv=3).fit(
        frame, y
    )
    assert search.best_params_ == {"fsaregressor__n_features_to_select": 3}
    selector = search.best_estimator_[1]
    assert list(selector.get_feature_names_out()) == ["f3", "f7", "f11"]
    assert list(selector.transform(frame).columns) == ["f3", "f7", "f11"]
    with pytest.raises(ValueError, match="feature names"):
        selector.predict(frame[frame.columns[::-1]])
    assert cross_val_score(FSARegressor(3), X, y).min() > 0.9


def test_clone_keeps_every_parameter():
    X, y = problem()
    parts = {
        "constraints": Constraints(np.arange(30) // 2, include=[6], bounds=(None, 5.0)),
        "prior": Prior(second_order=0.1),
        "refinement": Refinement(exchange=True, ridge=0.02, search=False),
        "schedule": Schedule("exponential", mu=2.0, n_steps=30),
    }
    model = FSAClassifier(4, loss="logistic", **parts)
    copy = clone(model)
    assert copy.get_params().keys() == model.get_params().keys()
    for name, part in parts.items():
        other = getattr(copy, name)
        assert other is not part and repr(other.get_params()) == repr(part.get_params())
    fitted, again = model.fit(X, y > 0), copy.fit(X, y > 0)
    assert np.array_equal(fitted.coef_, again.coef_) and fitted.intercept_ == again.intercept_
    assert fitted.refinement_ == again.refinement_ and fitted.ridge_ == again.ridge_ == 0.02
    assert isinstance(clone(FSAClassifier(loss=VapnikLoss(LogisticLoss()))).loss, VapnikLoss)


def test_parameters_of_the_objects_are_reached_by_name():
    X, y = problem()
    model = FSARegressor(
        3, constraints=Constraints(), refinement=Refinement(), schedule=Schedule(), prior=Prior()
    )
    names = model.get_params()
    assert (
        names["refinement__ridge"] == "auto"
        and names["constraints__bounds"] is None
        and names["schedule__n_steps"] == 100
    )
    model.set_params(
        refinement__ridge=0.3,
        constraints__bounds=(0, None),
        schedule__n_steps=7,
        prior__shrinkage=0.5,
    )
    assert (
        model.refinement.ridge == 0.3
        and model.schedule.n_steps == 7
        and model.prior.shrinkage == 0.5
    )
    assert (model.fit(X, y).coef_ >= 0).all() and model.ridge_ == 0.8 and model.n_iter_ <= 7
    search = GridSearchCV(
        FSARegressor(3, refinement=Refinement()), {"refinement__ridge": [1e-4, 10.0]}, cv=2
    ).fit(X, y)
    assert search.best_params_ == {"refinement__ridge": 1e-4}


def test_string_labels_and_renaming():
    X, y = problem()
    plain = FSAClassifier(3).fit(X, y > 0)
    named = FSAClassifier(3).fit(X, np.where(y > 0, "up", "down"))
    assert np.array_equal(named.predict(X), np.where(plain.predict(X), "up", "down"))
    assert np.allclose(named.coef_, plain.coef_)
    assert list(named.classes_) == ["down", "up"]
    X, label = classes()
    first = FSAClassifier(2, loss="lorenz").fit(X, label)
    renamed = FSAClassifier(2, loss="lorenz").fit(
        X, np.array([{"a": 7, "b": 3, "c": 5, "d": 1}[v] for v in label])
    )
    assert np.array_equal(first.support_, renamed.support_)
    assert np.allclose(first.coef_, renamed.coef_[[3, 1, 2, 0]], atol=1e-6)


@pytest.mark.parametrize(
    "loss", ["logistic", "huberised_hinge", "lorenz", "multinomial", "squared"]
)
def test_several_classes_share_one_support(loss):
    X, label = classes()
    model = FSAClassifier(2, loss=loss).fit(X, label)
    assert list(model.get_support(indices=True)) == [4, 9]
    assert model.coef_.shape == (4, 30) and not model.coef_[:, ~model.support_].any()
    assert model.score(X, label) > 0.9
    assert np.allclose(model.predict_proba(X).sum(axis=1), 1)
    assert (isinstance(model.loss_, VapnikLoss)) == (loss in ("huberised_hinge", "lorenz"))


def test_several_outputs_share_one_support():
    rng = np.random.default_rng(1)
    X = rng.standard_normal((200, 30))
    Y = np.column_stack([X[:, 2] + X[:, 5], 1000 * (X[:, 5] - X[:, 8])]) + rng.standard_normal(
        (200, 2)
    )
    model = FSARegressor(3, refinement=Refinement(ridge=0.0)).fit(X, Y)
    assert list(model.get_support(indices=True)) == [2, 5, 8]
    assert model.coef_.shape == (2, 30) and model.predict(X).shape == (200, 2)
    least = np.linalg.lstsq(np.column_stack([X[:, [2, 5, 8]], np.ones(200)]), Y, rcond=None)[0]
    assert np.allclose(model.coef_[:, [2, 5, 8]], least[:3].T, rtol=2e-3, atol=0.1)


# -- laws ------------------------------------------------------------------------------------------


@pytest.mark.parametrize("form", [sp.csr_array, sp.csc_array, sp.csr_matrix])
# that of the data acts in the raw units of a sparse matrix
@pytest.mark.parametrize("ridge", [0.0, 0.01])
@pytest.mark.parametrize("family", [FSAClassifier, FSARegressor])
def test_sparse_equals_dense(form, family, ridge):
    X = np.where(np.random.default_rng(2).random((200, 40)) < 0.3, problem(200, 40)[0], 0)
    y = X[:, 3] - X[:, 7] + X[:, 20]
    y = y > 0 if family is FSAClassifier else y
    dense, sparse = (
        family(5, refinement=Refinement(ridge=ridge)).fit(kind(X), y) for kind in (np.asarray, form)
    )
    assert np.array_equal(family(5).fit(form(X), y).support_, family(5).fit(X, y).support_)
    assert np.array_equal(dense.support_, sparse.support_)
    assert np.allclose(dense.coef_, sparse.coef_, atol=1e-6)
    assert np.allclose(dense.predict(X), sparse.predict(form(X)))


@pytest.mark.parametrize(
    "model",
    [
        FSAClassifier(4),
        FSAClassifier(4, response=PiecewiseLinear(bins="quantile")),
        FSARegressor(4),
        FSARanker(4),
    ],
)
def test_repeated_row_is_weight_two(model):
    X, y = problem(120)
    y = y > 0 if isinstance(model, FSAClassifier) else np.round(y)
    twice = np.random.default_rng(0).random(120) < 0.4
    rows = np.r_[np.arange(120), np.flatnonzero(twice)]
    weighted = clone(model).fit(X, y, sample_weight=1.0 + twice)
    repeated = clone(model).fit(X[rows], y[rows])
    assert np.array_equal(weighted.support_, repeated.support_)
    if model.response == "linear":
        assert np.allclose(weighted.coef_, repeated.coef_, atol=1e-5)


@settings(max_examples=15, deadline=None)
@given(seed=st.integers(0, 10_000), response=st.sampled_from(["linear", "piecewise"]))
@example(seed=39, response="linear")
@example(seed=126, response="linear")
def test_permuted_columns_permute_the_support(seed, response):
    X, y = problem(seed=seed)
    order = np.random.default_rng(seed).permutation(30)
    plain = FSAClassifier(4, response=response).fit(X, y > 0)
    permuted = FSAClassifier(4, response=response).fit(X[:, order], y > 0)
    assert np.array_equal(plain.support_[order], permuted.support_)


@settings(max_examples=15, deadline=None)
@given(seed=st.integers(0, 10_000), response=st.sampled_from(["linear", "piecewise"]))
def test_units_and_origins_of_columns_do_not_matter(seed, response):
    X, y = problem(seed=seed)
    rng = np.random.default_rng(seed)
    scale, shift = 10.0 ** rng.uniform(-3, 3, 30), rng.uniform(-5, 5, 30)
    plain = FSARegressor(3, response=response).fit(X, y)
    moved = FSARegressor(3, response=response).fit((X + shift) * scale, 40 * y - 7)
    assert np.array_equal(plain.support_, moved.support_)
    assert np.allclose(
        40 * plain.predict(X) - 7,
        moved.predict((X + shift) * scale),
        atol=40 * 0.02 * np.abs(y).max(),
    )


def test_exactly_k_with_ties():
    X = np.random.default_rng(0).integers(0, 2, (60, 5)).astype(float)
    X = np.tile(X, 4)  # every column four times
    y = X[:, 0] > 0
    for k in (1, 2, 3, 7, 19, 20):
        for refinement in ("auto", Refinement(exchange=False), None):
            assert FSAClassifier(k, refinement=refinement).fit(X, y).support_.sum() == k


def test_edges_of_k():
    X, y = problem()
    assert FSARegressor(1).fit(X, y).support_.sum() == 1
    assert FSARegressor(0.1).fit(X, y).support_.sum() == 3
    with pytest.warns(
        UserWarning,
        match="n_features_to_select=31 exceeds the 30 available features, so all of them are kept",
    ):
        assert FSARegressor(31).fit(X, y).support_.all()
    all_of_them = FSARegressor(30, refinement=Refinement(ridge=0.0)).fit(X, y)
    assert np.allclose(all_of_them.coef_, LinearRegression().fit(X, y).coef_, atol=2e-3)


@pytest.mark.parametrize("response", ["linear", "piecewise"])
def test_constant_columns(response):
    X, y = problem()
    X[:, [0, 5]] = 3.0, -1e9
    model = FSARegressor(4, response=response).fit(X, y)
    assert not model.support_[[0, 5]].any()
    assert model.score(X, y) > 0.9
    nothing = FSARegressor(2, response=response).fit(np.ones((20, 3)), np.arange(20.0))
    assert np.allclose(nothing.predict(np.ones((4, 3))), 9.5)


@pytest.mark.parametrize("response", ["linear", "piecewise"])
def test_any_number_of_threads(response):
    X, y = problem(3000, 50)
    runs = [FSAClassifier(5, response=response, n_jobs=n).fit(X, y > 0) for n in (1, 2, -1)]
    for other in runs[1:]:
        assert np.array_equal(runs[0].decision_function(X), other.decision_function(X))


@pytest.mark.parametrize("order", ["C", "F"])
@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_input_is_left_alone(order, dtype):
    X, y = problem()
    X = np.asarray(X, dtype=dtype, order=order)
    before = X.copy()
    support = FSAClassifier(3).fit(X, y > 0).get_support(indices=True)
    assert list(support) == [3, 7, 11]
    assert np.array_equal(X, before)


@pytest.mark.parametrize("make", [FSAClassifier, FSARegressor, FSARanker])
@pytest.mark.parametrize("kind", [np.asarray, sp.csr_array])
def test_constant_columns_do_not_change_the_schedule(make, kind):
    X, y = problem(120, 20)
    y = np.digitize(y, [-1.0, 1.0]) if make is FSARanker else y > 0
    wide = np.insert(X, [4] * 60, 1e6 / 3, axis=1)
    weight = np.arange(len(y)) > 0
    wide[0, 30] = 7.0  # varies in a row of weight zero alone
    narrow = make(3).fit(kind(X), y * 1, sample_weight=weight)
    other = make(3).fit(kind(wide), y * 1, sample_weight=weight)
    assert np.delete(other.support_, np.arange(4, 64)).tolist() == narrow.support_.tolist()
    np.testing.assert_allclose(other.loss_curve_, narrow.loss_curve_, rtol=1e-9)


def test_at_most_the_columns_that_vary_are_selected():
    X, y = problem()
    X[:, 4:] = 1.0
    with pytest.warns(
        UserWarning, match="the 4 available features that may be selected and vary, so all"
    ):
        assert FSARegressor(6).fit(X, y).get_support(indices=True).tolist() == [0, 1, 2, 3]
    kept = FSARegressor(5, constraints=Constraints(include=[9])).fit(X, y)
    assert kept.get_support(indices=True).tolist() == [0, 1, 2, 3, 9]


def test_warm_starts_follow_the_columns():
    X, y = problem()
    model = FSARegressor(3, warm_start=True, refinement=None, schedule=Schedule(n_steps=40))
    model.fit(X, y)
    start = model._last
    constant = X.copy()
    constant[:, 0] = 0.0
    again = model.fit(constant, y)
    assert start[0].tolist() == again.get_support(indices=True).tolist() == [3, 7, 11]
    assert again.loss_curve_[0] < 0.5 * clone(model).fit(constant, y).loss_curve_[0]


@pytest.mark.parametrize("share", [0.3, 0.9])
def test_a_sparse_matrix_of_measurements_is_a_dense_one(share):
    X, y = problem()
    X *= np.random.default_rng(1).random(X.shape) < share
    dense, csr = (FSAClassifier(3).fit(kind(X), y > 0) for kind in (np.asarray, sp.csr_array))
    np.testing.assert_allclose(
        csr.decision_function(X), dense.decision_function(X), rtol=1e-8, atol=1e-8
    )


@pytest.mark.parametrize("shape", ["two classes", "three classes", "numbers"])
def test_a_large_mean(shape):
    """Scores lose digits in the raw units, and the line names the column; the support does not."""
    X, y = problem()
    X[:, 3] = 1e12 + 0.01 * X[:, 3]
    make = FSARegressor if shape == "numbers" else FSAClassifier
    y = {"two classes": y > 0, "three classes": np.digitize(y, [-1, 1]), "numbers": y}[shape]
    with pytest.warns(
        UserWarning, match="the mean of column 3 is 1e.14 times its standard deviation"
    ):
        model = make(3).fit(X, y)
    assert model.get_support(indices=True).tolist() == [3, 7, 11]


def test_columns_that_are_constant_up_to_rounding():
    X, y = problem()
    X[:, 0] = 2.0**60 + 256.0 * np.arange(len(X))
    assert FSARegressor(3).fit(X, y).get_support(indices=True).tolist() == [3, 7, 11]
    assert FSARegressor(3).fit(X[:, [0, 3, 7]], y).support_[1:].all()
    assert FSARegressorCV(cv=3).fit(X[:, [0, 3, 7]], y).support_[1:].all()
