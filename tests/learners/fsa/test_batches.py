"""FSA from batches of rows: the moments are those of all rows, and so is the fit."""

import pickle

import numpy as np
import pytest
import scipy.sparse as sp
from annealed.learners import FSAClassifier, FSARanker, FSARegressor, FSARegressorCV, on_disk
from annealed.learners.sources.moments import Moments, moments_of
from hypothesis import given, settings
from hypothesis import strategies as st
from sklearn.base import clone
from sklearn.datasets import load_breast_cancer, load_diabetes, load_wine


def table(n=600, m=40, q=1, seed=0):
    """Correlated columns with unlike means and scales; five of them determine the targets."""
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n, m)) + 0.7 * rng.normal(size=(n, 1))
    X = X * np.geomspace(1e-3, 1e3, m) + np.linspace(-1e4, 1e4, m)
    y = X[:, 3:8] / X[:, 3:8].std(axis=0) @ rng.normal(size=(5, q)) + rng.normal(size=(n, q))
    return X, y[:, 0] if q == 1 else y


def in_batches(model, X, y, n_batches=50, **options):
    for rows in np.array_split(np.arange(len(y)), n_batches):
        model.partial_fit(X[rows], y[rows], refresh=False, **options)
    return model.refresh()


def assert_same_model(one, other, tolerance=1e-8):
    assert np.array_equal(one.support_, other.support_)
    scale = np.abs(one.coef_).max()
    np.testing.assert_allclose(one.coef_, other.coef_, rtol=tolerance, atol=tolerance * scale)
    size = np.max(np.abs(one.intercept_)) + scale
    np.testing.assert_allclose(one.intercept_, other.intercept_, atol=tolerance * size)
    assert one.ridge_ == other.ridge_


# -- moments -------------------------------------------------------------------------------------


@given(
    seed=st.integers(0, 2**20),
    n=st.integers(1, 40),
    m=st.integers(1, 12),
    weighted=st.booleans(),
    constant=st.booleans(),
)
@settings(max_examples=60, deadline=None)
def test_equivalent_rows_have_the_moments(seed, n, m, weighted, constant):
    rng = np.random.default_rng(seed)
    rows = rng.normal(size=(n, m)) * 10.0 ** rng.integers(-3, 4, m) + 100.0 * rng.normal(size=m)
    if constant:
        rows[:, 0] = 7.0
    weight = rng.integers(1, 4, n) if weighted else np.ones(n)
    half = n // 2
    moments = Moments.of(rows[:half], weight[:half]) + Moments.of(rows[half:], weight[half:])
    mean = np.average(rows, axis=0, weights=weight)
    np.testing.assert_allclose(moments.mean, mean, rtol=1e-12)
    scatter = (rows - mean).T @ (weight[:, None] * (rows - mean))
    unit = np.sqrt(np.outer(np.diag(scatter), np.diag(scatter))) + 1e-9
    np.testing.assert_allclose(moments.scatter / unit, scatter / unit, atol=1e-9)

    equivalent = moments.equivalent_rows()
    assert len(equivalent) <= min(n, m + 1)
    again = Moments.of(equivalent, np.full(len(equivalent), moments.n_rows / len(equivalent)))
    np.testing.assert_allclose(again.mean, mean, rtol=1e-9)
    np.testing.assert_allclose(again.scatter / unit, scatter / unit, atol=1e-8)


def test_a_large_mean_loses_no_digits():
    rng = np.random.default_rng(0)
    X = rng.normal(size=(1000, 2)).astype(np.float32)
    y = X @ [[1.0], [2.0]]
    shifted = moments_of(X + np.float32(4096.0), y, np.ones(1000))
    plain = Moments.of(np.hstack([(X + np.float32(4096.0)) - 4096.0, y]), np.ones(1000))
    np.testing.assert_allclose(shifted.scatter, plain.scatter, rtol=1e-9)


def test_a_file_is_read_in_blocks(tmp_path, monkeypatch):
    X, y = table()
    np.save(tmp_path / "X.npy", X)
    monkeypatch.setattr("annealed.learners.sources.moments._BLOCK_BYTES", 8 * 41 * 7)
    file = FSARegressor(5).partial_fit(on_disk(tmp_path / "X.npy"), y)
    assert_same_model(FSARegressor(5).fit(X, y), file)


# -- the same fit --------------------------------------------------------------------------------


@pytest.mark.parametrize("refinement", ["auto", None])
@pytest.mark.parametrize("q", [1, 3])
def test_batches_are_one_fit(refinement, q):
    X, y = table(q=q)
    model = FSARegressor(5, refinement=refinement)
    assert_same_model(clone(model).fit(X, y), in_batches(model, X, y))


@pytest.mark.parametrize("load", [load_diabetes, load_breast_cancer, load_wine])
def test_batches_of_real_tables(load):
    X, y = load(return_X_y=True)
    if load is load_diabetes:
        model, options = FSARegressor(5), {}
    else:
        y = np.array(["a", "b", "c"])[y]
        model, options = (
            FSAClassifier(5, loss="squared"),
            {"classes": ["a", "b", "c"][: len(set(y))]},
        )
    order = np.random.default_rng(0).permutation(len(y))
    X, y = X[order], y[order]
    whole = clone(model).fit(X, y)
    assert_same_model(whole, in_batches(model, X, y, **options))
    assert np.array_equal(whole.predict(X), model.predict(X)) or load is load_diabetes


def test_weights_count_rows():
    X, y = table()
    weight = np.random.default_rng(1).integers(0, 3, len(y))
    model = FSARegressor(5)
    for rows in np.array_split(np.arange(len(y)), 7):
        model.partial_fit(X[rows], y[rows], weight[rows], refresh=False)
    assert_same_model(FSARegressor(5).fit(X, y, weight), model.refresh())


def test_sparse_batches():
    X, y = table()
    X = np.where(np.abs(X - X.mean(axis=0)) > X.std(axis=0), X, 0.0)
    model = in_batches(FSARegressor(5), sp.csr_array(X), y, 3)
    assert_same_model(FSARegressor(5).fit(X, y), model)


def test_any_size_afterwards_and_a_pickled_model_goes_on():
    X, y = table()
    model = in_batches(FSARegressor(5), X[:400], y[:400], 4)
    model = pickle.loads(pickle.dumps(model)).set_params(n_features_to_select=2)
    assert_same_model(FSARegressor(2).fit(X, y), model.partial_fit(X[400:], y[400:]))


def test_forgetting_follows_drift():
    X, _ = table()
    X = (X - X.mean(axis=0)) / X.std(axis=0)
    first, second = X[:300, 0], X[300:, 9]
    model = FSARegressor(1).partial_fit(X[:300], first)
    assert list(np.flatnonzero(model.support_)) == [0]
    remembers = clone(model).partial_fit(X[:300], 3.0 * first)
    for _ in range(3):
        remembers.partial_fit(X[300:], second)
        model.partial_fit(X[300:], second, forgetting=0.01)
    assert list(np.flatnonzero(model.support_)) == [9]
    np.testing.assert_allclose(model.coef_[9], 1.0, atol=0.02)


def test_constraints_hold():
    X, y = table()
    from annealed.learners import Constraints

    model = FSARegressor(4, constraints=Constraints(include=[20], exclude=[3]))
    assert_same_model(clone(model).fit(X, y), in_batches(model, X, y, 5))


def test_automatic_size():
    X, y = table(n=2000)
    model = in_batches(FSARegressor("auto"), X, y, 5)
    assert model.support_.sum() == FSARegressor("auto").fit(X, y).support_.sum()


# -- bad input -----------------------------------------------------------------------------------


X, Y = table(60, 9)
LABELS = np.where(np.median(Y) < Y, "yes", "no")


@pytest.mark.parametrize(
    "call, message",
    [
        (lambda: FSAClassifier(2).partial_fit(X, LABELS), "use loss='squared'"),
        (lambda: FSARegressor(2, loss="huber").partial_fit(X, Y), "use loss='squared'"),
        (lambda: FSARegressor(2, response="piecewise").partial_fit(X, Y), "response='linear'"),
        (lambda: FSARegressorCV().partial_fit(X, Y), "use FSAClassifier or FSARegressor"),
        (lambda: FSARegressor(2).refresh(), "call partial_fit first"),
        (lambda: FSARegressor(4).partial_fit(X[:3], Y[:3]), "has received only 3 rows"),
        (lambda: FSARegressor(2).partial_fit(X, Y).partial_fit(X[:, 1:], Y), "X has 8 features"),
        (lambda: FSARegressor(2).partial_fit(np.where(X > 0, X, np.nan), Y), "contains NaN"),
        (lambda: FSARegressor(2).partial_fit(1e200 * X, Y), "rescale the data"),
        (lambda: FSARegressor(2).partial_fit(X, Y, forgetting=0.0), "forgetting=0.0"),
        (lambda: FSARegressor(2).partial_fit(np.zeros((2, 10_000)), Y[:2]), "at most 9999"),
        (
            lambda: FSARegressor(2).partial_fit(X, Y).partial_fit(X, np.c_[Y, Y]),
            r"expected \(60,\), as in the first batch",
        ),
        (
            lambda: FSAClassifier(2, loss="squared").partial_fit(X, LABELS),
            "in the first call to partial_fit; expected all class labels",
        ),
        (
            lambda: FSAClassifier(2, loss="squared").partial_fit(X, LABELS, ["maybe", "yes"]),
            "y contains the unknown label 'no'",
        ),
        (
            lambda: FSAClassifier(2, loss="squared", class_weight="balanced").partial_fit(
                X, LABELS, ["no", "yes"]
            ),
            "class_weight='balanced' requires all rows",
        ),
    ],
)
def test_bad_input_in_one_line(call, message):
    with pytest.raises((ValueError, AttributeError), match=message) as caught:
        call()
    assert "\n" not in str(caught.value)


def test_a_failed_batch_changes_nothing():
    model = FSARegressor(2).partial_fit(X, Y)
    before = model.coef_.copy()
    with pytest.raises(ValueError):
        model.partial_fit(np.full_like(X, np.nan), Y)
    assert_same_model(clone(model).partial_fit(X, Y), model.refresh())
    assert np.array_equal(model.coef_, before)


def test_batches_after_a_fit_begin_without_its_rows():
    model = FSARegressor(2).fit(X[:30], Y[:30])
    with pytest.warns(UserWarning, match="starts from an empty state"):
        model.partial_fit(X, Y)
    assert_same_model(FSARegressor(2).fit(X, Y), model)


def test_a_fit_ends_the_batches():
    model = FSARegressor(2).partial_fit(X, Y).fit(X[:30], Y[:30])
    with pytest.warns(UserWarning, match="starts from an empty state"):
        model.partial_fit(X, Y)
    assert_same_model(FSARegressor(2).fit(X, Y), model)


@pytest.mark.parametrize("estimator", [FSARegressorCV([1, 2, 3, 4]), FSARegressor(3)])
def test_moments_give_the_fit_of_the_rows(estimator, monkeypatch):
    X, y = table(n=1000)
    by_moments = clone(estimator).fit(X, y)
    monkeypatch.setattr("annealed.learners.fsa.policy.MAX_CONDENSED", 0)
    by_rows = clone(estimator).fit(X, y)
    assert_same_model(by_rows, by_moments)
    if isinstance(estimator, FSARegressorCV):
        np.testing.assert_allclose(by_rows.cv_scores_, by_moments.cv_scores_, rtol=1e-8)


@pytest.mark.parametrize("estimator", [FSARegressorCV([1, 2, 5], cv=4), FSARegressor("auto")])
def test_cross_validation_and_the_fit_read_each_row_once(estimator, monkeypatch):
    read, of = [], Moments.of
    monkeypatch.setattr(
        Moments, "of", lambda rows, weight: read.append(len(rows)) or of(rows, weight)
    )
    estimator.fit(*table())
    assert sum(read) == 600


def test_a_ranker_has_no_batches():
    assert not hasattr(FSARanker(2), "partial_fit")
    assert not hasattr(FSAClassifier(2), "partial_fit")
    assert hasattr(FSAClassifier(2, loss="squared"), "partial_fit")


def test_dask_is_read_in_blocks():
    array = pytest.importorskip("dask.array", reason="needs annealed[dask]")
    from annealed.learners import on_dask

    X, y = table()
    lazy = on_dask(array.from_array(X, chunks=(100, 40)))
    assert_same_model(FSARegressor(5).fit(X, y), FSARegressor(5).partial_fit(lazy, y))
