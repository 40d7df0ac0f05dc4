"""sDist against explicit matrices, brute force and invariances."""

from itertools import combinations

import numpy as np
import pytest
import scipy.sparse as sp
from annealed.learners import SDist, SDistCV
from annealed.learners.metric_learning import directions
from annealed.learners.metric_learning.boosting import SparseMetric, best_step
from annealed.learners.metric_learning.boosting_run import strongest_products
from annealed.learners.metric_learning.directions import (
    lanczos,
    laplacian,
    margins,
    truncated_power,
)
from annealed.learners.metric_learning.feature_map import ExpandedColumns, FeatureMap
from annealed.learners.metric_learning.neighbours import nearest, same_and_other_neighbours
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays
from joblib import parallel_backend
from sklearn.datasets import load_digits, make_moons
from sklearn.metrics import pairwise_distances
from sklearn.model_selection import StratifiedKFold
from sklearn.utils.estimator_checks import parametrize_with_checks


@pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")
@parametrize_with_checks(
    [
        SDist(n_steps=10, n_neighbors=5),
        SDist(n_steps=10, n_neighbors=5, classifier="base", stopping="holdout"),
        SDistCV(SDist(n_neighbors=5), {"kappa": [2], "n_steps": [5, 10]}, cv=2),
    ]
)
def test_scikit_learn_checks(estimator, check):
    check(estimator)


def blobs(n=120, p=8, seed=0):
    rng = np.random.default_rng(seed)
    y = rng.integers(0, 2, n)
    X = rng.normal(size=(n, p))
    X[:, 2] += 1.5 * y
    X[:, min(5, p - 1)] *= 1 + 2 * y
    return X, y


def explicit_matrix(X, same, other, weight):
    """A_m of Ma (thesis), eq. (2.12), entry by entry."""
    A = np.zeros((X.shape[1], X.shape[1]))
    for i in range(len(X)):
        for sign, rows in ((1, other[i]), (-1, same[i])):
            rows = rows[rows >= 0]
            for j in rows:
                A += sign * weight[i] / len(rows) * np.outer(X[i] - X[j], X[i] - X[j])
    return A


def test_products_with_A_equal_the_explicit_matrix():
    X, y = blobs(40, 6)
    y[:3] = 2  # a class of three: fewer own neighbours than k
    same, other = same_and_other_neighbours(X, y, 5)
    weight = np.random.default_rng(1).random(40)
    A = explicit_matrix(X, same, other, weight)
    v = np.random.default_rng(2).normal(size=6)
    np.testing.assert_allclose(X.T @ laplacian(same, other, weight)(X @ v), A @ v, atol=1e-12)
    assert v @ A @ v == pytest.approx(weight @ margins((X @ v)[:, None], same, other))
    vector, largest, smallest = lanczos(lambda u: A @ u, np.ones(6), 6)
    values, vectors = np.linalg.eigh(A)
    assert largest == pytest.approx(values[-1]) and smallest == pytest.approx(values[0])
    assert abs(vector @ vectors[:, -1]) == pytest.approx(1.0)


def test_margins_block_by_block(monkeypatch):
    X, y = blobs(40, 6)
    same, other = same_and_other_neighbours(X, y, 5)
    whole = margins(X, same, other)
    monkeypatch.setattr(directions, "_BLOCK_VALUES", 7 * 5 * 6)
    np.testing.assert_allclose(margins(X, same, other), whole, rtol=1e-12)


def test_truncated_power_finds_the_sparse_eigenvector():
    rng = np.random.default_rng(0)
    hits = 0
    for _ in range(20):
        B = rng.normal(size=(9, 9))
        A = B + B.T
        truth = max(
            np.linalg.eigvalsh(A[np.ix_(s, s)])[-1] for s in map(list, combinations(range(9), 3))
        )
        start, _, smallest = lanczos(lambda u, A=A: A @ u, np.ones(9), 9)
        support, values, value = truncated_power(
            lambda s, v, A=A: A[:, s] @ v, start, 3, shift=-smallest
        )
        assert len(support) <= 3 and np.linalg.norm(values) == pytest.approx(1.0)
        assert value == pytest.approx(values @ A[np.ix_(support, support)] @ values)
        assert value <= truth + 1e-9
        hits += value >= 0.85 * truth
    assert hits >= 15  # a heuristic: near the best of all 84 supports most of the time


def test_best_step_is_the_minimum():
    rng = np.random.default_rng(0)
    g, weight = rng.normal(0.3, 1.0, 50), rng.random(50)
    grid = np.linspace(0, 3, 3001)
    loss = (weight[:, None] * np.exp(-g[:, None] * grid)).sum(axis=0)
    assert best_step(g, weight) == pytest.approx(grid[loss.argmin()], abs=2e-3)
    assert best_step(-np.abs(g), weight) == 0.0
    assert np.isfinite(best_step(np.abs(g), weight))


@pytest.mark.parametrize("sparse", [False, True])
def test_neighbours_against_brute_force(sparse, monkeypatch):
    # many blocks
    monkeypatch.setattr("annealed.learners.metric_learning.neighbours.BLOCK_BYTES", 4000)
    X, y = blobs(90, 5)
    distance = pairwise_distances(X)
    np.fill_diagonal(distance, np.inf)
    Z = sp.csr_matrix(X) if sparse else X
    same, other = same_and_other_neighbours(Z, y, 4)
    for i in range(90):
        for rows, allowed in ((same[i], y == y[i]), (other[i], y != y[i])):
            np.testing.assert_array_equal(
                rows, np.argsort(np.where(allowed, distance[i], np.inf))[:4]
            )
    two = same_and_other_neighbours(Z, y, 4, n_jobs=2)
    np.testing.assert_array_equal(two[0], same)
    rows, square = nearest(X[:7], X[7:], 3)
    np.testing.assert_array_equal(rows, np.argsort(pairwise_distances(X[:7], X[7:]), axis=1)[:, :3])
    np.testing.assert_allclose(
        np.sqrt(square), np.sort(pairwise_distances(X[:7], X[7:]), axis=1)[:, :3]
    )


def test_feature_map_equals_products():
    X, _ = blobs(50, 4)
    features = FeatureMap.fit(X, standardize=True)
    columns = ExpandedColumns(X, features, max_order=3, capacity=5, standardize=True)
    columns.add_products([0], [1, 2])
    columns.add_products([4], [0, 1, 4])  # x0*x1 times x0, x1; times itself is too long
    assert features.monomials == [(0, 1), (0, 2), (0, 0, 1), (0, 1, 1)]
    Z = (X - X.mean(axis=0)) / X.std(axis=0)
    expected = np.column_stack(
        [Z, Z[:, 0] * Z[:, 1], Z[:, 0] * Z[:, 2], Z[:, 0] ** 2 * Z[:, 1], Z[:, 0] * Z[:, 1] ** 2]
    )
    expected[:, 4:] /= expected[:, 4:].std(axis=0)
    which = np.array([7, 0, 4, 3, 6, 5])
    np.testing.assert_allclose(columns.take(which), expected[:, which])
    np.testing.assert_allclose(features.columns(X[:9], which), expected[:9, which])
    v, u = np.arange(8.0), np.arange(50.0)
    np.testing.assert_allclose(columns.times(v), expected @ v)
    np.testing.assert_allclose(columns.transposed_times(u), expected.T @ u)
    assert features.name(6, ["a", "b", "c", "d"]) == "a^2*b"
    columns.add_products([0, 1], [2, 3])  # x0*x2 is known, x0*x3 is the fifth
    assert columns.n_columns == 9 and features.monomials[-1] == (0, 3)


def test_screen_against_brute_force():
    rng = np.random.default_rng(0)
    X = rng.normal(size=(200, 12))
    y = (X[:, 3] * X[:, 9] + 0.5 * rng.normal(size=200) > 0).astype(int)
    pairs = [(a, b) for a in range(12) for b in range(a, 12)]
    score = [abs(np.corrcoef(X[:, a] * X[:, b], y)[0, 1]) for a, b in pairs]
    expected = [pairs[i] for i in np.argsort(score)[::-1][:5]]
    assert strongest_products(X, y, 5) == expected
    assert expected[0] == (3, 9)
    assert strongest_products(sp.csr_matrix(X), y, 5) == expected


@pytest.fixture(scope="module")
def fitted():
    X, y = blobs()
    return SDist(n_neighbors=7, kappa=3, n_steps=40, max_order=3).fit(X, y), X, y


def test_metric_is_positive_semidefinite_and_sparse(fitted):
    model, _, _ = fitted
    assert np.linalg.eigvalsh(model.W_).min() >= -1e-12
    assert all(len(support) <= 3 and weight > 0 for support, _, weight in model.path_)
    W = np.zeros_like(model.W_)
    place = {c: i for i, c in enumerate(model._metric.columns)}
    for support, values, weight in model.path_:
        at = [place[c] for c in support]
        W[np.ix_(at, at)] += weight * np.outer(values, values)
    np.testing.assert_allclose(model.W_, W)
    np.testing.assert_allclose(
        model.components_.T @ model.components_, model.W_, atol=1e-9 * np.abs(W).max()
    )
    assert max(map(len, model.columns_)) <= 3
    assert model.n_steps_ == 40


def test_base_classifier_is_equation_2_3(fitted):
    model, X, y = fitted
    Z = np.random.default_rng(5).normal(size=(11, X.shape[1]))
    metric = model.get_metric()
    model = SDist(**{**model.get_params(), "classifier": "base"}).fit(X, y)
    f = [
        np.mean(sorted(metric(z, x, squared=True) for x in X[y == 0])[:7])
        - np.mean(sorted(metric(z, x, squared=True) for x in X[y == 1])[:7])
        for z in Z
    ]
    np.testing.assert_allclose(model.decision_function(Z), f, rtol=1e-7)
    np.testing.assert_array_equal(model.predict(Z), np.array(f) > 0)
    np.testing.assert_allclose(model.predict_proba(Z)[:, 1], 1 / (1 + np.exp(-2 * np.array(f))))


points = arrays(np.float64, (3, 8), elements=st.floats(-3, 3))


@settings(max_examples=40, deadline=None)
@given(points=points)
def test_pseudo_metric_axioms(fitted, points):
    model, _, _ = fitted
    a, b, c = points
    ab, bc, ac, ba, aa = model.pair_distance(np.array([[a, b], [b, c], [a, c], [b, a], [a, a]]))
    assert min(ab, bc, ac) >= 0 and aa == 0.0
    assert ab == pytest.approx(ba)
    assert ac <= ab + bc + 1e-9 * (1 + ab + bc)
    assert model.get_metric()(a, b) == pytest.approx(ab)
    assert model.pair_score(np.array([[a, b]]))[0] == pytest.approx(-ab)
    difference = model._features.columns(
        np.array([a]), model._metric.columns
    ) - model._features.columns(np.array([b]), model._metric.columns)
    assert ab**2 == pytest.approx((difference @ model.W_ @ difference.T).item(), abs=1e-8)


def test_a_permutation_of_the_columns_permutes_the_result(fitted):
    model, X, y = fitted
    order = np.random.default_rng(3).permutation(X.shape[1])
    permuted = SDist(**model.get_params()).fit(X[:, order], y)
    back = {tuple(sorted(order[list(t)])) for t in permuted.columns_}
    assert back == set(model.columns_)
    np.testing.assert_allclose(
        permuted.pair_distance((X[:9][:, order], X[9:18][:, order])),
        model.pair_distance((X[:9], X[9:18])),
        rtol=1e-6,
    )


def test_sparse_rows_give_the_same_metric():
    X, y = blobs()
    X[np.abs(X) < 0.5] = 0.0
    dense = SDist(standardize=False, n_steps=20).fit(X, y)
    sparse = SDist(standardize=False, n_steps=20).fit(sp.csr_matrix(X), y)
    assert sparse.columns_ == dense.columns_
    np.testing.assert_allclose(sparse.transform(sp.csr_matrix(X)), dense.transform(X), atol=1e-8)
    np.testing.assert_array_equal(sparse.predict(sp.csr_array(X)), dense.predict(X))
    SDist(n_steps=5).fit(sp.csc_array(X), y)


@pytest.mark.parametrize(
    "options",
    [{}, {"bagging": 0.5, "feature_fraction": "sqrt", "stopping": "oob"}, {"solver": "sgd"}],
)
def test_same_seed_same_metric_for_any_n_jobs(options):
    X, y = blobs()
    one = SDist(n_steps=15, random_state=4, **options).fit(X, y)
    two = SDist(n_steps=15, random_state=4, n_jobs=2, **options).fit(X, y)
    np.testing.assert_array_equal(one.W_, two.W_)
    assert one.columns_ == two.columns_


@pytest.mark.parametrize("form", [np.asarray, sp.csr_matrix])
def test_stochastic_directions_find_the_columns_of_the_exact_ones(form):
    """Selection on the paths keeps the columns that the power method selects, and the value of the
    direction is near its."""
    rng = np.random.default_rng(0)
    y = np.repeat([0, 1], 150)
    X = rng.normal(size=(300, 200)) * (rng.random((300, 200)) < 0.5)
    X[:, :4] += np.where(y, 1.5, -1.5)[:, None]
    X = form(X)
    power, sgd = (
        SDist(kappa=4, n_steps=1, max_order=1, solver=s, random_state=0).fit(X, y)
        for s in ("power", "sgd")
    )
    assert sorted(sgd.path_[0][0]) == sorted(power.path_[0][0]) == [0, 1, 2, 3]
    assert np.abs(sgd.path_[0][1] @ power.path_[0][1]) > 0.95
    pairs = SDist(kappa=2, n_steps=8, solver="sgd", random_state=0).fit(X, y)
    assert len(pairs.path_[-1][0]) == 2 and len(pairs._features.monomials) > 0


def test_stochastic_directions_use_the_allowed_columns_alone():
    X, y = blobs(p=30)
    model = SDist(
        kappa=3, n_steps=6, max_order=1, solver="sgd", feature_fraction=0.2, random_state=0
    ).fit(X, y)
    assert all(
        1 <= len(support) <= 3 and np.linalg.norm(values) == pytest.approx(1.0)
        for support, values, _ in model.path_
    )


@pytest.mark.parametrize("stopping", ["holdout", "oob", "complexity"])
def test_stopping_keeps_the_beginning_of_the_path(stopping):
    X, y = make_moons(150, noise=0.3, random_state=0)
    model = SDist(n_steps=40, bagging=0.5, stopping=stopping, random_state=0).fit(X, y)
    assert 1 <= model.n_steps_ <= 40
    total = sum(weight for _, _, weight in model.path_[: model.n_steps_])
    assert np.trace(model.W_) == pytest.approx(total)


def test_options_of_the_thesis_run():
    X, y = blobs()
    model = SDist(
        start="ones", initial="identity", kappa=0.4, stopping="complexity", n_steps=20
    ).fit(X, y)
    d = model.pair_distance((X[:5], X[5:10]))
    base = np.linalg.norm((X[:5] - X[5:10]) / X.std(axis=0), axis=1)
    assert (d >= base - 1e-9).all()  # W = I + a positive semi-definite part
    assert model.transform(X).shape[1] == len(model.get_feature_names_out())


def test_seeded_interactions_see_xor():
    rng = np.random.default_rng(0)
    X = rng.normal(size=(400, 40))
    y = np.where(X[:, 4] * X[:, 30] > 0, "same", "different")
    model = SDist(seed_interactions=5, n_steps=60, n_features_to_select=1).fit(X[:300], y[:300])
    assert model.interactions_[0] == "x4*x30"
    assert model.score(X[300:], y[300:]) > 0.85


def test_trimming_keeps_the_strongest_columns():
    X, y = blobs()
    model = SDist(n_features_to_select=2, max_order=1).fit(X, y)
    assert set(model.selected_features_) == {2, 5} and model.W_.shape == (2, 2)


@given(arrays(float, 6, elements=st.floats(0.1, 10.0)), st.integers(1, 6))
@settings(max_examples=30, deadline=None)
def test_trimming_does_not_depend_on_the_units_of_the_columns(units, n_columns):
    L, Z = (
        np.random.default_rng(0).normal(size=(3, 6)),
        np.random.default_rng(1).normal(size=(50, 6)),
    )
    kept = SparseMetric(list(range(6)), L.T @ L).trimmed(n_columns, Z.var(axis=0))
    other = SparseMetric(list(range(6)), (L / units).T @ (L / units)).trimmed(
        n_columns, (Z * units).var(axis=0)
    )
    assert other.columns == kept.columns and len(kept.columns) == n_columns


def test_ten_digits():
    X, y = load_digits(return_X_y=True)
    model = SDist(max_order=1, kappa=10).fit(X[:900], y[:900])
    assert model.score(X[900:], y[900:]) > 0.93
    assert model.predict_proba(X[:3]).shape == (3, 10)


def test_one_path_serves_all_stopping_points():
    X, y = blobs(90)
    cv = StratifiedKFold(3)
    grid = {
        "kappa": [2, 4],
        "n_steps": [6, 15],
        "n_features_to_select": [None, 2],
        "n_neighbors_predict": [1, 3],
    }
    search = SDistCV(SDist(n_neighbors=5), grid, cv=cv).fit(X, y)
    assert search.n_runs_ == 2 * 3 and len(search.cv_results_) == 16
    for result in search.cv_results_[::5]:
        settings_ = {name: result[name] for name in grid}
        errors = [
            1 - SDist(n_neighbors=5, **settings_).fit(X[a], y[a]).score(X[b], y[b])
            for a, b in cv.split(X, y)
        ]
        assert result["mean_error"] == pytest.approx(np.mean(errors))
    assert search.best_error_ == min(r["mean_error"] for r in search.cv_results_)
    with parallel_backend("threading"):
        sparser = SDistCV(SDist(n_neighbors=5), grid, cv=cv, tolerance=1.0, n_jobs=2).fit(X, y)
    assert sparser.cv_results_ == search.cv_results_
    assert len(sparser.best_estimator_.columns_) <= len(search.best_estimator_.columns_)


@pytest.mark.parametrize(
    "bad",
    [
        *({"kappa": 0}, {"kappa": 1.5}, {"n_steps": 0}, {"learning_rate": 0}),
        *({"stopping": "early"}, {"stopping": "oob"}, {"solver": "qp"}),
    ],
)
def test_bad_parameters_are_named(bad):
    X, y = blobs(20)
    with pytest.raises(ValueError, match=f"{next(iter(bad.values()))!r}"):
        SDist(**bad).fit(X, y)


@pytest.mark.slow
@pytest.mark.data
def test_madelon_one_split(data_dir):
    data = np.load(data_dir / "madelon" / "madelon.npz")
    X = data["X_train"].astype(np.float32)
    model = SDist(max_order=1, n_features_to_select=20).fit(X, data["y_train"])
    assert model.score(data["X_test"], data["y_test"]) > 0.87
    assert len(model.selected_features_) == 20
