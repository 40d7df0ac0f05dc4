"""Exchanges against brute force, refits against a general optimiser."""

from itertools import combinations

import numpy as np
import pytest
from annealed.learners import Constraints, FSAClassifier, FSARanker, FSARegressor, Refinement
from annealed.learners.designs.dense import DenseDesign
from annealed.learners.designs.piecewise_linear import PiecewiseDesign
from annealed.learners.designs.responses import even_knots
from annealed.learners.objective.base import charges_of
from annealed.learners.objective.losses import (
    FlippedLogisticLoss,
    HuberisedHingeLoss,
    LogisticLoss,
    LorenzLoss,
    MultinomialLoss,
    SquaredLoss,
)
from annealed.learners.objective.pairwise import PairwiseLogisticLoss
from annealed.learners.objective.priors import Prior
from annealed.learners.solvers import exchanges
from annealed.learners.solvers.annealing import Annealed, anneal
from annealed.learners.solvers.exchanges import Pool, exchange, exchange_changes, swap
from annealed.learners.solvers.newton import SupportProblem, fit_at, predicted, refit
from annealed.learners.solvers.schedules import inverse
from annealed_experiments.tables.simulated import simulate
from scipy.optimize import minimize

N = 60


def _problem(loss, q=1, seed=0, **kwargs):
    rng = np.random.default_rng(seed)
    weight = rng.uniform(0.2, 2.0, N)
    weight /= weight.sum()
    if isinstance(loss, MultinomialLoss):
        y = np.eye(q)[rng.integers(0, q, N)]
    elif isinstance(loss, SquaredLoss):
        y = rng.standard_normal((N, q)) + 2.0
    else:
        y = rng.choice([-1.0, 1.0], (N, q))
    return SupportProblem(y, loss, weight, **kwargs), rng.standard_normal((N, 12)) + 0.3


def _pairs(seed=1):
    rng = np.random.default_rng(seed)
    pairs = rng.integers(0, N, (200, 2))
    pairs = pairs[pairs[:, 0] != pairs[:, 1]]
    return PairwiseLogisticLoss(pairs, rng.random(len(pairs)))


CONVEX = [
    (SquaredLoss(), 2, {}),
    (SquaredLoss(), 1, {"fit_intercept": False}),
    (SquaredLoss(), 1, {"width": 4, "n_knots": 4, "prior": Prior(0.01, 0.1)}),
    (LogisticLoss(), 1, {}),
    (LogisticLoss(), 1, {"width": 4, "n_knots": 3, "prior": Prior(0.01, 0.1, 0.02)}),
    (HuberisedHingeLoss(), 1, {}),
    (MultinomialLoss(), 3, {}),
    (_pairs(), 1, {"fit_intercept": False}),
]


@pytest.mark.parametrize("loss, q, settings", CONVEX)
def test_refit_reaches_the_minimum(loss, q, settings):
    problem, Z = _problem(loss, q, **settings)
    A = Z[:, :4]

    def objective(packed):
        theta, b = packed[: 4 * q].reshape(4, q), packed[4 * q :]
        scores = A @ theta + (b if problem.fit_intercept else 0.0)
        return loss.value(problem.y, scores, problem.sample_weight) + problem.penalty(theta)

    best = minimize(objective, np.zeros(5 * q), method="BFGS", options={"gtol": 1e-8}).fun
    fit = refit(problem, A, np.zeros((4, q)), np.zeros(q), tol=1e-12, n_iter=500)
    assert fit.value == pytest.approx(best, rel=1e-6)
    assert objective(np.concatenate([fit.theta.ravel(), fit.intercept])) == pytest.approx(
        fit.value, rel=1e-12
    )


@pytest.mark.parametrize("loss", [LorenzLoss(), FlippedLogisticLoss(0.05)])
def test_refit_of_a_nonconvex_loss_is_stationary(loss):
    problem, Z = _problem(loss)
    A = Z[:, :4]
    fit = refit(problem, A, np.zeros((4, 1)), np.zeros(1), tol=1e-14, n_iter=500)
    assert np.abs(A.T @ fit.residual + problem.penalty_gradient(fit.theta)).max() < 1e-5
    assert abs(fit.residual.sum()) < 1e-5


@pytest.mark.parametrize("q", [1, 2])
@pytest.mark.parametrize(
    "sizes, settings",
    [
        ([1] * 12, {}),
        ([1] * 12, {"fit_intercept": False}),
        ([3] * 4, {"width": 3, "n_knots": 3, "prior": Prior(0.01, 0.1)}),
        ([1, 3, 2, 1, 2, 3], {}),
    ],
)
def test_predicted_changes_are_exact_for_the_squared_loss(sizes, settings, q):
    problem, Z = _problem(SquaredLoss(), q, **settings)
    pool = Pool(np.arange(len(sizes)), Z, np.concatenate([[0], np.cumsum(sizes)]))
    support = np.array([2, 0])

    def fitted(units):
        A = pool.matrix_of(units)
        return refit(problem, A, np.zeros((A.shape[1], q)), np.zeros(q))

    fit = fitted(support)
    change, charges = exchange_changes(problem, pool, support, fit), pool.charges(problem, fit)
    for out in range(2):
        for entering in range(len(sizes)):
            if entering in support:
                assert change[out, entering] == np.inf
                continue
            new = support.copy()
            new[out] = entering
            # The blocks' Schur complements are regularised by a thousandth: predictions are that
            # close.
            gain = fitted(new).value - fit.value + charges[entering] - charges[support[out]]
            assert change[out, entering] == pytest.approx(gain, rel=2e-2, abs=1e-4)


@pytest.mark.parametrize(
    ("loss", "settings"),
    [
        (SquaredLoss(), {}),
        (SquaredLoss(), {"width": 3, "n_knots": 3, "prior": Prior(0.01, 0.1)}),
        (_pairs(), {}),
    ],
)
def test_the_start_of_another_support_is_exact_for_quadratic_losses(loss, settings):
    """For another loss it is near: a step from there gains less than one from the coefficients that
    stay."""
    problem, Z = _problem(loss, fit_intercept=loss.pointwise, **settings)
    fit = refit(problem, Z[:, :6], np.zeros((6, 1)), np.zeros(1), tol=1e-10)
    theta, intercept = predicted(problem, Z[:, 3:9], fit)
    best = refit(problem, Z[:, 3:9], np.zeros((6, 1)), np.zeros(1), tol=1e-12)
    moved = np.vstack([fit.theta[3:], np.zeros((3, 1))])
    start = fit_at(problem, Z[:, 3:9], theta, intercept)
    if loss.is_quadratic:
        np.testing.assert_allclose(theta, best.theta, atol=1e-10)
        np.testing.assert_allclose(intercept, best.intercept, atol=1e-10)
    assert (
        best.value <= start.value + 1e-12 < fit_at(problem, Z[:, 3:9], moved, fit.intercept).value
    )


def test_secant_steps_end_slow_convergence(monkeypatch):
    """The curvature of the Lorenz loss is a bound; plain steps need 50 to 70 evaluations here."""
    calls, plain = [], SupportProblem.second_order
    monkeypatch.setattr(
        SupportProblem, "second_order", lambda *args: calls.append(0) or plain(*args)
    )
    for seed in range(4):
        problem, Z = _problem(LorenzLoss(), seed=seed)
        start = np.zeros((4, 1)), np.zeros(1)
        fit = refit(problem, Z[:, :4], *start, n_iter=500, until_stationary=True)
        gradient = fit.A1[:, :4].T @ fit.residual + problem.penalty_gradient(fit.theta)
        assert np.abs(gradient).max() < 3e-7
    assert len(calls) < 4 * 40


def test_a_fit_without_hope_is_given_up():
    problem, Z = _problem(LogisticLoss())
    start = np.zeros((4, 1)), np.zeros(1)
    best = refit(problem, Z[:, :4], *start)
    assert (
        refit(problem, Z[:, :4], *start, limit=best.value - 1.0).value
        == fit_at(problem, Z[:, :4], *start).value
    )
    assert refit(problem, Z[:, :4], *start, limit=best.value + 1e-3).value == best.value


@pytest.mark.parametrize("loss", [SquaredLoss(), LogisticLoss(), _pairs()])
def test_swaps_end_where_no_single_exchange_helps(loss):
    problem, Z = _problem(loss, fit_intercept=loss.pointwise)
    pool = Pool(np.arange(12), Z, np.arange(13))
    start = np.array([0, 1, 2])
    fit = refit(problem, Z[:, start], np.zeros((3, 1)), np.zeros(1))
    support, fit, change = swap(problem, pool, start, fit, n_tries=40)
    assert np.array_equal(change, exchange_changes(problem, pool, support, fit))
    values = {
        s: refit(problem, Z[:, s], np.zeros((3, 1)), np.zeros(1)).value
        for s in combinations(range(12), 3)
    }
    found = tuple(sorted(support))
    assert fit.value == pytest.approx(values[found], rel=1e-4)
    neighbours = [v for s, v in values.items() if len(set(s) & set(found)) == 2]
    assert values[found] <= min(neighbours) + 1e-5
    # among the best twentieth of all supports
    assert values[found] <= sorted(values.values())[len(values) // 20]


def _annealed(design, y, loss, k, rate, groups=None, steps=60):
    n_units = design.n_features if groups is None else len(np.unique(groups))
    weight = np.full(len(y), 1 / len(y))
    counts = inverse(n_units, k, steps, 100.0)
    state = anneal(
        design,
        y,
        loss,
        counts,
        sample_weight=weight,
        learning_rate=rate,
        groups=groups,
        fit_intercept=loss.pointwise,
    )
    return SupportProblem(y, loss, weight, loss.pointwise), state


def _start(design, kept, y):
    """What annealing would leave, had it kept these features to the end."""
    dropped_at = np.where(np.isin(np.arange(design.n_features), kept), 5, 0)
    coef = np.zeros((len(kept), design.width, y.shape[1]))
    return Annealed(design.keep(kept), kept, coef, np.zeros(y.shape[1]), dropped_at)


@pytest.mark.parametrize("seed", range(3))
def test_rounds_find_what_marginal_screening_loses(seed):
    """Equicorrelated columns, random signs: the first cut of annealing alone throws true features
    away."""
    settings = {"columns": "equicorrelated", "random_support": True, "random_signs": True}
    data = simulate("classification", 600, 1000, 10, **settings, random_state=seed)
    y = data.y[:, None].astype(float)
    weight = np.full(len(y), 1 / len(y))
    design = DenseDesign(data.X, weight)
    problem, state = _annealed(design, y, FlippedLogisticLoss(), 10, 3.0)
    kept, coef, _ = exchange(problem, design, state)
    assert data.found(kept) == 1.0
    assert data.found(state.kept) < 1.0
    assert (np.sign(coef[:, 0, 0]) == data.coef).all()


def test_groups_are_exchanged_whole():
    rng = np.random.default_rng(0)
    X = rng.standard_normal((300, 1)) + rng.standard_normal((300, 90))
    groups = rng.permutation(np.repeat(np.arange(30), 3))
    beta = np.zeros(90)
    for g, sign in ((3, 1), (11, -1), (17, 1), (26, -1)):
        beta[groups == g] = sign * np.array([1.0, 0.8, -0.5])
    y = (X @ beta + 0.3 * rng.standard_normal(300))[:, None]
    y /= y.std()
    weight = np.full(300, 1 / 300)
    design = DenseDesign(X, weight)
    problem, state = _annealed(design, y, SquaredLoss(), 4, 0.02, groups, steps=10)
    kept, coef, intercept = exchange(problem, design, state, groups=groups)
    assert set(groups[kept]) == {3, 11, 17, 26}
    assert len(kept) == 12
    raw, offset = design.keep(kept).unstandardise(coef, intercept)
    np.testing.assert_allclose(X[:, kept] @ raw[:, 0] + offset, y, atol=5 * 0.3 / np.std(X @ beta))


def test_piecewise_blocks_are_exchanged():
    rng = np.random.default_rng(4)
    X = (rng.standard_normal((500, 1)) + rng.standard_normal((500, 60))).astype(np.float32)
    y = (np.abs(X[:, 5]) - np.abs(X[:, 20]) + np.sin(2 * X[:, 40]))[:, None].astype(float)
    y = (y - y.mean()) / y.std()
    weight = np.full(500, 1 / 500)
    design = PiecewiseDesign.from_matrix(X, even_knots(X.min(axis=0), X.max(axis=0), 8), weight)
    loss = SquaredLoss()
    problem = SupportProblem(
        y, loss, weight, prior=Prior(1e-4, 1e-3), width=design.width, n_knots=design.n_knots
    )
    found, coef, intercept = exchange(problem, design, _start(design, np.array([1, 2, 40]), y))
    assert found.tolist() == [5, 20, 40]
    assert loss.value(y, design.keep(found).scores(coef) + intercept, weight) < 0.1


def test_pairwise_losses_are_exchanged():
    rng = np.random.default_rng(5)
    X = rng.standard_normal((200, 1)) + rng.standard_normal((200, 100))
    signal = X[:, [7, 30]] @ [1.0, -1.0] + X[:, 60]
    i, j = rng.integers(0, 200, (2, 1500))
    i, j = i[signal[i] > signal[j]], j[signal[i] > signal[j]]
    loss = PairwiseLogisticLoss(np.column_stack([i, j]), np.ones(len(i)))
    weight = np.full(200, 1 / 200)
    design = DenseDesign(X, weight)
    y = np.zeros((200, 1))
    found, coef, _ = exchange(
        SupportProblem(y, loss, weight, False), design, _start(design, np.array([0, 1, 60]), y)
    )
    assert found.tolist() == [7, 30, 60]
    assert np.sign(coef[:, 0, 0]).tolist() == [1, -1, 1]


def test_several_classes_share_one_support():
    rng = np.random.default_rng(6)
    X = rng.standard_normal((400, 1)) + rng.standard_normal((400, 80))
    y = np.eye(3)[np.argmax(X[:, [3, 33, 66]], axis=1)]
    weight = np.full(400, 1 / 400)
    design = DenseDesign(X, weight)
    problem = SupportProblem(y, MultinomialLoss(), weight)
    assert exchange(problem, design, _start(design, np.arange(3), y))[0].tolist() == [3, 33, 66]


@pytest.mark.parametrize("seed", [60, 103])
def test_many_wrong_units_at_once_are_left_by_growing_anew(seed):
    """Single exchanges end with many of the features wrong here."""
    settings = {"columns": "equicorrelated", "random_support": True, "random_signs": True}
    data = simulate(
        "classification", 1000, 1000, 30, **settings, random_state=np.random.RandomState([7, seed])
    )
    assert data.found(FSAClassifier(30).fit(data.X, data.y).get_support(indices=True)) == 1.0


def test_growing_anew_takes_two_newton_steps_a_size(monkeypatch):
    """Only the last support, whose value decides, is fitted until it converges."""
    problem, Z = _problem(LogisticLoss())
    start = np.arange(4)
    fit = refit(problem, Z[:, start], np.zeros((4, 1)), np.zeros(1))
    evaluations = []
    plain = SupportProblem.second_order
    monkeypatch.setattr(
        SupportProblem,
        "second_order",
        lambda self, scores, theta: evaluations.append(len(theta)) or plain(self, scores, theta),
    )
    support, grown = exchanges.regrow(problem, Pool(np.arange(12), Z, np.arange(13)), start, fit)
    monkeypatch.undo()
    sizes = np.bincount(evaluations)
    # after each of the two steps, while growing and while shrinking
    assert sizes[5:].tolist() == [4, 4, 4, 2]
    again = refit(problem, Z[:, support], np.zeros((4, 1)), np.zeros(1))
    assert grown.value == pytest.approx(again.value, rel=1e-6)


def test_many_rows_are_proposed_by_a_part_and_decided_by_all(monkeypatch):
    monkeypatch.setattr(exchanges, "_ROWS", 300)
    rng = np.random.default_rng(0)
    X = rng.standard_normal((3000, 60)) + rng.standard_normal((3000, 1))
    true = np.arange(0, 60, 6)
    y = np.where(X[:, true] @ np.tile([1.0, -1.0], 5) + rng.logistic(size=len(X)) > 0, 1, -1)
    parts = []
    plain = exchanges.refit
    monkeypatch.setattr(
        exchanges,
        "refit",
        lambda problem, *args, **options: (
            parts.append(len(problem.y)) or plain(problem, *args, **options)
        ),
    )
    weight = rng.integers(0, 3, len(X))
    for options in (
        {},
        {"constraints": Constraints(include=[1])},
        {"constraints": Constraints(groups=np.repeat(np.arange(30), 2))},
    ):
        model = FSAClassifier(10, **options).fit(X, y, sample_weight=weight)
        found = model.get_support(indices=True)
        wanted = np.union1d(true, true + 1) if "groups" in str(options) else true
        assert np.isin(found, wanted).sum() >= len(wanted) - 1
    assert {1000, 3000} <= set(parts)


@pytest.mark.parametrize("n_rows", [20_000, 60])
@pytest.mark.parametrize("groups", [None, np.arange(40) // 2])
def test_many_values_are_held_a_few_columns_at_a_time(monkeypatch, n_rows, groups):
    """The same answers, also where exchanges are proposed on some of the rows."""
    rng = np.random.default_rng(0)
    X = rng.standard_normal((400, 40)) + rng.standard_normal((400, 1))
    y = X[:, ::8].sum(axis=1) + rng.standard_normal(400) > 0
    monkeypatch.setattr(exchanges, "_ROWS", n_rows)
    monkeypatch.setattr(exchanges, "_ROWS_PER_COLUMN", 1)
    whole, apart = (FSAClassifier(5, constraints=Constraints(groups)) for _ in range(2))
    whole.fit(X, y)
    monkeypatch.setattr(exchanges, "_MAX_VALUES", 3000)
    apart.fit(X, y)
    np.testing.assert_array_equal(apart.get_support(), whole.get_support())
    np.testing.assert_allclose(apart.coef_, whole.coef_, rtol=1e-9)
    for unit, others in whole.alternatives_.items():
        assert [j for j, _ in apart.alternatives_[unit]] == [j for j, _ in others]


def _with_a_category(rng, levels=40, n_rows=600):
    """Three columns that matter, ten of noise, and a category of noise, one group."""
    X = rng.standard_normal((n_rows, 13))
    category = rng.integers(0, levels, n_rows)[:, None] == np.arange(1, levels)
    return (
        np.hstack([X, category]),
        X[:, :3].sum(axis=1),
        np.concatenate([np.arange(13), np.full(levels - 1, 13)]),
    )


@pytest.mark.parametrize(
    "task", ["numbers", "outliers", "counts", "two classes", "three classes", "curves", "pairs"]
)
def test_a_category_without_meaning_does_not_push_out_columns(task):
    rng = np.random.default_rng(1)
    X, signal, groups = _with_a_category(rng)
    constraints, latent = Constraints(groups=groups), 0.4 * signal + rng.logistic(size=len(X))
    model, y = {
        "numbers": (FSARegressor(3), 0.2 * signal + rng.standard_normal(len(X))),
        "outliers": (FSARegressor(3, loss="huber"), 0.2 * signal + rng.standard_t(3, len(X))),
        "counts": (
            FSARegressor(3, loss="poisson"),
            rng.poisson(np.exp(0.2 * signal)).astype(float),
        ),
        "two classes": (FSAClassifier(3), latent > 0),
        "three classes": (FSAClassifier(3), np.digitize(latent, [-0.7, 0.7])),
        "curves": (
            FSARegressor(3, response="piecewise"),
            0.3 * signal + rng.standard_normal(len(X)),
        ),
        "pairs": (FSARanker(3), np.digitize(latent, [-0.7, 0.7])),
    }[task]
    model.set_params(constraints=constraints, refinement=Refinement(exchange=True)).fit(X, y)
    assert model.get_support(indices=True).tolist() == [0, 1, 2]


def test_a_category_with_a_meaning_stays():
    rng = np.random.default_rng(0)
    X, signal, groups = _with_a_category(rng)
    y = 0.2 * signal + X[:, 13:] @ (0.6 * rng.standard_normal(39)) + rng.standard_normal(len(X))
    assert (
        FSARegressor(4, constraints=Constraints(groups=groups))
        .fit(X, y)
        .support_[[0, 1, 2, -1]]
        .all()
    )


def test_pieces_that_do_not_occur_are_no_coefficients():
    """A 0 / 1 column has one, a column of numbers as many as pieces less one, and a missing value
    is one more."""
    rng = np.random.default_rng(0)
    X = np.column_stack([rng.random(300) < 0.5, rng.standard_normal((300, 2))])
    X[:20, 2] = np.nan
    design = PiecewiseDesign.from_matrix(
        X, even_knots(np.nanmin(X, axis=0), np.nanmax(X, axis=0), 4), np.full(300, 1 / 300)
    )
    pool = Pool.read(design, exchanges.Units.of_groups(None, 3), np.arange(3))
    problem = SupportProblem(
        np.zeros((300, 1)),
        LogisticLoss(),
        np.full(300, 1 / 300),
        width=design.width,
        n_knots=design.n_knots,
    )
    fit = fit_at(problem, pool.matrix_of(np.array([0])), np.zeros((design.width, 1)), np.zeros(1))
    np.testing.assert_allclose(pool.charges(problem, fit), charges_of(np.array([1, 4, 5]), 300))


def test_exchanges_without_a_predicted_improvement_are_tried_for_a_bound_on_the_curvature():
    """The bound of the Lorenz loss predicts too little improvement at the end."""
    draws = [simulate("classification", 1000, 1000, 30, random_state=seed) for seed in (5004, 5005)]
    for data in draws:
        model = FSAClassifier(30, loss="lorenz").fit(data.X, data.y)
        assert data.found(model.get_support(indices=True)) == 1.0


def test_proposals_beyond_the_predicted_improvements():
    change = np.array([[3.0, np.inf, -1.0], [2.0, 5.0, np.inf]])
    assert list(exchanges.proposals(change, 3)) == [[(0, 2)]]
    assert list(exchanges.proposals(change, 3, exact=False)) == [[(0, 2)], [(1, 0)], [(0, 0)]]
