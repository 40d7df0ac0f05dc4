"""The loop against twenty plain lines, and its laws."""

import numpy as np
import pytest
import scipy.sparse as sp
from annealed.learners import FSAClassifier, FSARegressor, Refinement, Schedule
from annealed.learners.designs.dense import DenseDesign
from annealed.learners.designs.sparse import SparseDesign
from annealed.learners.objective.losses import (
    LOSSES,
    LogisticLoss,
    SquaredLoss,
    get_loss,
    losses_for,
)
from annealed.learners.objective.priors import Prior
from annealed.learners.solvers.annealing import anneal, strengths, strongest
from annealed.learners.solvers.schedules import SCHEDULES, inverse
from annealed_experiments.tables.simulated import simulate
from hypothesis import given, settings
from hypothesis import strategies as st


def _plain_fsa(X, y, slope, k, n_steps, mu, rate, momentum=0.0, shrinkage=0.0):
    """Algorithm 1 as anybody would write it: full standardised copy, columns set to zero by
    sorting."""
    n, m = X.shape
    Z = (X - X.mean(axis=0)) / X.std(axis=0)
    alive, beta, velocity, b = np.arange(m), np.zeros(m), np.zeros(m), 0.0
    for e in range(1, n_steps + 1):
        residual = slope(y, Z[:, alive] @ beta + b) / n
        gradient = Z[:, alive].T @ residual + 2 * shrinkage * beta
        velocity = momentum * velocity - rate * gradient
        beta = beta + velocity
        left = int(k + (m - k) * max(0.0, (n_steps - 2 * e) / (2 * e * mu + n_steps)) + 1e-9)
        if e == n_steps:
            left = k
        keep = np.sort(np.argsort(-np.abs(beta), kind="stable")[:left])
        alive, beta, velocity = alive[keep], beta[keep], velocity[keep]
    return alive, beta


@pytest.mark.parametrize("order", ["C", "F"])
@pytest.mark.parametrize(
    "loss, slope, rate, momentum",
    [
        (LogisticLoss(), lambda y, f: -y / (1 + np.exp(y * f)), 3.0, 0.0),
        (SquaredLoss(), lambda y, f: f - y, 0.02, 0.9),
    ],
)
def test_same_support_as_plain_numpy(loss, slope, rate, momentum, order):
    data = simulate("classification", 200, 300, 10, random_state=0)
    X, y = np.asarray(data.X, dtype=np.float64, order=order), data.y.astype(float)
    alive, beta = _plain_fsa(X, y, slope, 10, 60, 20.0, rate, momentum, 0.01)
    weight = np.full(200, 1 / 200)
    state = anneal(
        DenseDesign(X, weight),
        y[:, None],
        loss,
        inverse(300, 10, 60, 20.0),
        sample_weight=weight,
        learning_rate=rate,
        momentum=momentum,
        prior=Prior(0.01),
        fit_intercept=False,
    )
    np.testing.assert_array_equal(state.kept, alive)
    np.testing.assert_allclose(state.coef[:, 0, 0], beta, rtol=1e-7)


@pytest.mark.parametrize("loss, largest", [(LogisticLoss(), 4.0), (SquaredLoss(), 1.0)])
def test_the_loss_falls_monotonically_once_k_features_remain(loss, largest):
    """Theorem 2.1 (i) of Barbu et al. (2017), with the rates of its statement."""
    data = simulate("classification", 200, 300, 10, random_state=1)
    X, y = data.X.astype(np.float64), data.y.astype(float)
    weight = np.full(200, 1 / 200)
    norm = np.linalg.norm((X - X.mean(axis=0)) / X.std(axis=0), 2)
    counts = inverse(300, 10, 400, 20.0)
    state = anneal(
        DenseDesign(X, weight),
        y[:, None],
        loss,
        counts,
        sample_weight=weight,
        learning_rate=0.99 * largest * 200 / norm**2,
        fit_intercept=False,
    )
    curve = np.array(state.loss_curve)
    assert (np.diff(curve[: np.argmax(counts == 10)]) > 0).any()
    assert (np.diff(curve[np.argmax(counts == 10) + 1 :]) <= 0).all()


@given(st.lists(st.integers(0, 4), min_size=1, max_size=40), st.integers(0, 45))
def test_strongest_keeps_exactly_as_many_as_asked_and_the_first_of_ties(values, count):
    strength = np.array(values, dtype=float)
    stay = strongest(strength, count)
    order = sorted(range(len(values)), key=lambda i: (-values[i], i))
    assert stay.tolist() == sorted(order[:count])


@given(
    st.integers(1, 400),
    st.data(),
    st.integers(1, 200),
    st.floats(0.0, 1000.0),
    st.sampled_from(sorted(SCHEDULES)),
)
def test_schedules_fall_from_all_to_exactly_k(m, data, n_steps, mu, name):
    k = data.draw(st.integers(1, m))
    counts = SCHEDULES[name](m, k, n_steps, mu)
    assert len(counts) == n_steps and counts[-1] == k
    assert (np.diff(counts) <= 0).all() and counts.min() >= k and counts.max() <= m


def test_strength_of_blocks_and_groups():
    coef = np.arange(12.0).reshape(3, 2, 2)
    np.testing.assert_allclose(strengths(coef), [np.sqrt((coef[i] ** 2).mean()) for i in range(3)])
    grouped = strengths(coef, np.array([0, 0, 1]))
    np.testing.assert_allclose(
        grouped, [np.sqrt((coef[:2] ** 2).mean()), np.sqrt((coef[2] ** 2).mean())]
    )


@settings(max_examples=10, deadline=None)
@given(
    st.integers(0, 10**6),
    st.sampled_from(["logistic", "lorenz", "huberised_hinge", "flipped_logistic"]),
)
def test_permuting_columns_permutes_the_model(seed, loss):
    rng = np.random.default_rng(seed)
    X = rng.standard_normal((80, 40))
    y = np.where(X[:, 1] - X[:, 2] + 0.3 * rng.standard_normal(80) > 0, 1, 0)
    order = rng.permutation(40)
    model = FSAClassifier(4, loss=loss).fit(X, y)
    moved = FSAClassifier(4, loss=loss).fit(X[:, order], y)
    np.testing.assert_array_equal(moved.support_, model.support_[order])
    np.testing.assert_allclose(moved.coef_[0], model.coef_[0][order], atol=1e-6)


@settings(max_examples=10, deadline=None)
@given(st.integers(0, 10**6))
def test_scaling_and_shifting_columns_does_not_change_the_support(seed):
    rng = np.random.default_rng(seed)
    X = rng.standard_normal((80, 30))
    y = X[:, 4] + X[:, 9] + 0.1 * rng.standard_normal(80)
    scale, shift = 10.0 ** rng.uniform(-4, 4, 30), rng.uniform(-10, 10, 30)
    model, scaled = FSARegressor(2).fit(X, y), FSARegressor(2).fit(X * scale + shift * scale, y)
    np.testing.assert_array_equal(model.support_, scaled.support_)
    np.testing.assert_allclose(
        model.predict(X), scaled.predict(X * scale + shift * scale), atol=1e-6
    )


@pytest.mark.parametrize(
    "name", [name for name in losses_for("binary") if not LOSSES[name].several_classes]
)
def test_swapping_the_labels_mirrors_the_model(name):
    data = simulate("classification", 300, 100, 5, random_state=1)
    X = data.X.astype(np.float64)
    one, other = (
        FSAClassifier(5, loss=name).fit(X, data.y),
        FSAClassifier(5, loss=name).fit(X, -data.y),
    )
    np.testing.assert_array_equal(one.support_, other.support_)
    np.testing.assert_allclose(one.coef_, -other.coef_, atol=1e-6)


def test_integer_weights_are_repetitions():
    data = simulate("classification", 150, 60, 5, label_noise=0.1, random_state=2)
    weight = np.random.default_rng(0).integers(0, 4, 150)
    X = data.X.astype(np.float64)
    weighted = FSAClassifier(5).fit(X, data.y, sample_weight=weight)
    repeated = FSAClassifier(5).fit(np.repeat(X, weight, axis=0), np.repeat(data.y, weight))
    np.testing.assert_array_equal(weighted.support_, repeated.support_)
    np.testing.assert_allclose(weighted.coef_, repeated.coef_, atol=1e-5)


def test_ties_and_constant_columns():
    """Copies of one column: exactly k are kept, the first ones; constant columns never."""
    rng = np.random.default_rng(3)
    x = rng.standard_normal(100)
    X = np.column_stack([np.ones(100), x, x, np.zeros(100), x, rng.standard_normal((100, 5))])
    state = FSAClassifier(2, refinement=None).fit(X, x > 0)
    assert state.get_support(indices=True).tolist() == [1, 2]
    assert FSAClassifier(2).fit(X, x > 0).support_.sum() == 2


@pytest.mark.parametrize("kind", [sp.csr_matrix, sp.csc_array])
def test_sparse_and_dense_agree(kind):
    rng = np.random.default_rng(4)
    X = np.where(rng.random((300, 200)) < 0.9, 0.0, rng.standard_normal((300, 200)))
    y = X[:, :5].sum(axis=1) > 0.1
    # Without a ridge: that of a sparse matrix acts in the raw units of its columns.
    dense, sparse = (
        FSAClassifier(5, refinement=Refinement(ridge=0.0)).fit(form(X), y)
        for form in (np.asarray, kind)
    )
    np.testing.assert_array_equal(dense.support_, sparse.support_)
    np.testing.assert_allclose(dense.coef_, sparse.coef_, atol=1e-7)


@pytest.mark.filterwarnings("ignore:overflow")
def test_divergence_is_said():
    X = np.random.default_rng(0).standard_normal((50, 20))
    with pytest.raises(
        FloatingPointError,
        match=r"the loss became inf in step 2; learning_rate=1e\+200 is too large",
    ):
        FSARegressor(3, learning_rate=1e200, schedule=Schedule(n_steps=20)).fit(X, X[:, 0])


def test_groups_stay_or_fall_together():
    data = simulate("classification", 200, 90, 5, random_state=5)
    weight = np.full(200, 1 / 200)
    groups = np.random.default_rng(0).permutation(np.repeat(np.arange(30), 3))
    for design in (
        DenseDesign(data.X, weight),
        SparseDesign(sp.csr_array(data.X.astype(float)), weight),
    ):
        state = anneal(
            design,
            data.y[:, None].astype(float),
            get_loss("logistic"),
            inverse(30, 4, 40, 10.0),
            sample_weight=weight,
            learning_rate=3.0,
            groups=groups,
        )
        assert len(state.kept) == 12 and len(np.unique(groups[state.kept])) == 4


def test_a_step_that_missed_the_largest_curvature_is_mended():
    """Equicorrelated columns with signs that cancel: the coefficients are nearly orthogonal to the
    leading eigenvector."""
    data = simulate(
        "regression",
        300,
        1000,
        10,
        columns="equicorrelated",
        random_support=True,
        random_signs=True,
        random_state=48,
    )
    model = FSARegressor(10, schedule=Schedule(n_steps=500), refinement=None).fit(data.X, data.y)
    assert np.isfinite(model.loss_curve_).all() and model.score(data.X, data.y) > 0.8
