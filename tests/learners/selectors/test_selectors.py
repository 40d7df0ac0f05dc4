"""The other selectors: scikit-learn's checks, and what each must equal where a simpler method is
known."""

import numpy as np
import pytest
import scipy.sparse as sp
import sklearn
from annealed.learners import (
    ForwardBackwardClassifier,
    ForwardBackwardRegressor,
    FSAClassifier,
    LogitBoostClassifier,
    LorenzLoss,
    MinimaxSparseClassifier,
    Refinement,
    TISPClassifier,
    TISPRegressor,
)
from annealed.learners.common.targets import encode_classes
from annealed.learners.selectors.minimax_solvers import (
    ReducedProblem,
    minimise_coordinate,
    solve_newton,
    solve_smoothing,
)
from hypothesis import assume, given, settings
from hypothesis import strategies as st
from scipy.optimize import minimize
from scipy.special import expit, logsumexp
from sklearn.base import clone
from sklearn.linear_model import orthogonal_mp
from sklearn.preprocessing import StandardScaler
from sklearn.utils.estimator_checks import parametrize_with_checks
from sklearn.utils.fixes import parse_version
from small_problems import words

ESTIMATORS = [
    ForwardBackwardClassifier(),
    ForwardBackwardClassifier(2, loss="lorenz", criterion="objective"),
    ForwardBackwardRegressor(),
    LogitBoostClassifier(n_rounds=30),
    LogitBoostClassifier(3, response="constant", n_rounds=30),
    LogitBoostClassifier(3, response="piecewise", subsample=0.5, n_rounds=30, random_state=0),
    MinimaxSparseClassifier(),
    MinimaxSparseClassifier(C="auto", retrain_C="auto"),
    MinimaxSparseClassifier(C=0.1, max_cuts=2, solver="smoothing"),
    TISPClassifier(n_steps=50),
    TISPRegressor(n_steps=50),
]


def fails_with_old_checks(estimator):
    """scikit-learn 1.6 makes labels of two classes, for some estimators, after it has shuffled
    weights."""
    if parse_version(sklearn.__version__) >= parse_version("1.7") or not isinstance(
        estimator, MinimaxSparseClassifier
    ):
        return {}
    return {
        f"check_sample_weight_equivalence_on_{kind}_data": "a flaw of this check in 1.6"
        for kind in ("dense", "sparse")
    }


@parametrize_with_checks(ESTIMATORS, expected_failed_checks=fails_with_old_checks)
def test_scikit_learn_checks(estimator, check):
    check(estimator)


def strong_signal(seed, n=300, m=60, k=4):
    rng = np.random.default_rng(seed)
    X = rng.standard_normal((n, m))
    true = np.sort(rng.choice(m, k, replace=False))
    signal = X[:, true] @ rng.choice([-1.0, 1.0], k)
    return X, signal, true, rng


# -- FoBa ------------------------------------------------------------------------------------------


@pytest.mark.parametrize("seed", range(5))
def test_forward_steps_alone_are_orthogonal_matching_pursuit(seed):
    rng = np.random.default_rng(seed)
    X = StandardScaler().fit_transform(
        rng.standard_normal((80, 40)) @ rng.standard_normal((40, 40))
    )
    y = X @ rng.standard_normal(40) + rng.standard_normal(80)
    y -= y.mean()
    for k in (1, 5, 12):
        ours = ForwardBackwardRegressor(k, backward=False, ridge=0.0).fit(X, y)
        np.testing.assert_allclose(ours.coef_, orthogonal_mp(X, y, n_nonzero_coefs=k), atol=1e-8)


@pytest.mark.parametrize("criterion", ["gradient", "objective"])
def test_strong_signal_comes_back_exactly(criterion):
    for seed in range(5):
        X, signal, true, rng = strong_signal(seed)
        y = signal + 0.1 * rng.standard_normal(len(signal))
        for threshold in (
            {"n_features_to_select": 4},
            {"epsilon": 0.1} if criterion == "gradient" else {"delta": 0.005},
        ):
            model = ForwardBackwardRegressor(
                **{"n_features_to_select": None, "criterion": criterion, **threshold}
            ).fit(X, y)
            np.testing.assert_array_equal(model.get_support(indices=True), true)
        labels = signal + 0.5 * rng.logistic(size=len(signal)) > 0
        model = ForwardBackwardClassifier(4, criterion=criterion).fit(X, labels)
        np.testing.assert_array_equal(model.get_support(indices=True), true)


@pytest.mark.parametrize("criterion", ["gradient", "objective"])
@given(seed=st.integers(0, 2**32 - 1))
@settings(max_examples=25, deadline=None)
def test_corollary_1(criterion, seed):
    """Its conditions are computed, not assumed: where they hold, the thresholds of Theorems 1 and 2
    stop at the exact solution."""
    rng = np.random.default_rng(seed)
    X = StandardScaler().fit_transform(rng.standard_normal((3000, 40)))
    true = np.sort(rng.choice(40, 4, replace=False))
    y = X[:, true] @ (rng.choice([-1.0, 1.0], 4) * rng.uniform(1.0, 3.0, 4)) + rng.uniform(
        0.1, 2.0
    ) * rng.standard_normal(3000)
    y = (y - y.mean()) / y.std()

    best = np.zeros(40)  # beta bar
    best[true] = np.linalg.lstsq(X[:, true], y, rcond=None)[0]
    noise = np.abs(X.T @ (X @ best - y) / 3000).max()
    rho = np.linalg.eigvalsh(X.T @ X / 3000)[0]  # of all 40 columns, so of any s; rho_+(1) is 1
    assume(np.abs(best[true]).min() >= 8.0 / rho**2 * noise)
    if criterion == "gradient":
        threshold = {"epsilon": 1.001 * 2.0 * np.sqrt(2.0) / rho * noise}
    else:
        threshold = {"delta": 1.001 * 4.0 / rho**2 * noise**2}
    model = ForwardBackwardRegressor(None, criterion=criterion, ridge=0.0, **threshold).fit(X, y)
    np.testing.assert_array_equal(model.get_support(indices=True), true)
    np.testing.assert_allclose(model.coef_, best, atol=1e-8)


@pytest.mark.parametrize("criterion", ["gradient", "objective"])
def test_logistic_thresholds_stop_at_the_true_support(criterion):
    """Corollary 1's conclusion for logistic loss: orders of the theorems' thresholds, many more
    columns than the true ones."""
    for seed in range(3):
        X, signal, true, rng = strong_signal(seed, n=800, m=100, k=4)
        X = StandardScaler().fit_transform(X)
        labels = 2.0 * signal + rng.logistic(size=800) > 0
        # of beta bar
        scores = ForwardBackwardClassifier(4).fit(X[:, true], labels).decision_function(X[:, true])
        noise = np.abs(X.T @ (expit(scores) - labels) / 800).max()
        threshold = (
            {"epsilon": 1.5 * noise} if criterion == "gradient" else {"delta": 16.0 * noise**2}
        )
        model = ForwardBackwardClassifier(None, criterion=criterion, **threshold).fit(X, labels)
        np.testing.assert_array_equal(model.get_support(indices=True), true)


def test_block_updates_equal_a_fresh_fit():
    """The kept inverse after entering and leaving against least squares on the final columns, and
    the path against brute force."""
    rng = np.random.default_rng(3)
    X = StandardScaler().fit_transform(
        rng.standard_normal((60, 6)) @ rng.standard_normal((6, 30)) + rng.standard_normal((60, 30))
    )
    y = X @ rng.standard_normal(30)
    model = ForwardBackwardRegressor(10, ridge=1e-3).fit(X, y)
    assert any(step.action == "leave" for step in model.path_)  # otherwise nothing is tested here
    active = []
    scale = y.std()
    for step in model.path_:
        active.append(step.feature) if step.action == "enter" else active.remove(step.feature)
        Z, t = X[:, active], (y - y.mean()) / scale
        coef = np.linalg.solve(Z.T @ Z / 60 + 1e-3 * np.eye(len(active)), Z.T @ t / 60)
        assert step.objective == pytest.approx(
            0.5 * np.mean((t - Z @ coef) ** 2) + 5e-4 * coef @ coef, rel=1e-9
        )
        assert step.size == len(active)
    assert sorted(active) == list(model.get_support(indices=True))
    np.testing.assert_allclose(model.coef_[active], coef * scale, rtol=1e-8)


def test_a_backward_step_undoes_a_decoy():
    """x0 + x1 is the target; the decoy is closest to it alone, and worth nothing once both are
    in."""
    rng = np.random.default_rng(0)
    a, b = rng.standard_normal((2, 400))
    X = np.column_stack(
        [a, b, a + b + 0.4 * rng.standard_normal(400), rng.standard_normal((400, 5))]
    )
    forward = ForwardBackwardRegressor(3, backward=False).fit(X, a + b)
    assert forward.path_[0].feature == 2
    model = ForwardBackwardRegressor(None, epsilon=0.05).fit(X, a + b)
    assert list(model.get_support(indices=True)) == [0, 1]
    assert ("leave", 2) in [(step.action, step.feature) for step in model.path_]


def test_groups_enter_as_a_whole():
    X, _, _, rng = strong_signal(1, m=60)
    sensor = np.repeat(np.arange(15), 4)[rng.permutation(60)]
    signal = X[:, sensor == 3].sum(axis=1) - X[:, sensor == 8].sum(axis=1)
    for criterion in ("gradient", "objective"):
        model = ForwardBackwardClassifier(2, criterion=criterion, feature_groups=sensor).fit(
            X, signal > 0
        )
        np.testing.assert_array_equal(model.support_, np.isin(sensor, [3, 8]))
        order = list(dict.fromkeys(sensor))
        assert {order[step.feature] for step in model.path_} == {3, 8}


def test_both_criteria_agree_and_the_objective_falls_with_every_forward_step():
    X, signal, _, rng = strong_signal(2)
    labels = signal + rng.logistic(size=len(signal)) > 0
    fits = [
        ForwardBackwardClassifier(4, criterion=c, loss=LorenzLoss()).fit(X, labels)
        for c in ("gradient", "objective")
    ]
    np.testing.assert_array_equal(fits[0].support_, fits[1].support_)
    objectives = [step.objective for step in fits[0].path_ if step.action == "enter"]
    assert np.all(np.diff(objectives) < 0)


@pytest.mark.parametrize(
    "parameters, message",
    [
        ({"criterion": "loss"}, "criterion='loss' is unknown"),
        ({"delta": 0.1}, "delta=0.1 applies to criterion='objective'"),
        ({"epsilon": -1.0}, "epsilon=-1.0 is not valid"),
        ({"n_features_to_select": None}, "requires a threshold"),
        ({"feature_groups": [0, 1]}, "groups has shape"),
    ],
)
def test_foba_says_what_is_wrong(parameters, message):
    with pytest.raises(ValueError, match=message):
        ForwardBackwardClassifier(**parameters).fit(np.eye(6), [0, 1] * 3)


def test_coefficients_have_the_shape_of_the_targets():
    X, signal, _, _ = strong_signal(0, n=60, m=8, k=2)
    for cls in (ForwardBackwardRegressor, TISPRegressor):
        for y, shape in (
            (signal, (8,)),
            (signal[:, None], (1, 8)),
            (np.c_[signal, -signal], (2, 8)),
        ):
            model = cls(2).fit(X, y)
            assert model.coef_.shape == shape
            assert np.shape(model.intercept_) == shape[:-1]
            assert model.predict(X).shape == y.shape


# -- TISP ------------------------------------------------------------------------------------------


def test_thresholding_nothing_is_gradient_descent():
    rng = np.random.default_rng(0)
    X = StandardScaler().fit_transform(rng.standard_normal((50, 8)))
    y = rng.integers(0, 2, 50)
    model = TISPClassifier(8, n_thresholdings=5, n_steps=7, learning_rate=0.7, ridge=0.0).fit(X, y)
    signs, coef, intercept = 2.0 * y - 1.0, np.zeros(8), np.log(y.mean() / (1 - y.mean()))
    for _ in range(12):
        slope = -signs / (1.0 + np.exp(signs * (X @ coef + intercept))) / 50
        coef, intercept = coef - 0.7 * X.T @ slope, intercept - slope.sum() / 0.25
    np.testing.assert_allclose(model.coef_[0], coef, rtol=1e-10)
    np.testing.assert_allclose(model.intercept_, intercept, rtol=1e-10, atol=1e-12)


def test_hard_ridge_ends_at_the_ridge_solution_of_its_support():
    X, signal, true, rng = strong_signal(4)
    X = StandardScaler().fit_transform(X)
    y = signal + 0.1 * rng.standard_normal(len(signal))
    model = TISPRegressor(4, ridge=0.5).fit(X, y)
    np.testing.assert_array_equal(model.get_support(indices=True), true)
    Z = X[:, true]
    expected = np.linalg.solve(Z.T @ Z / len(y) + 0.5 * np.eye(4), Z.T @ (y - y.mean()) / len(y))
    np.testing.assert_allclose(model.coef_[true], expected, rtol=1e-6)


def test_printed_order_of_tisp_thresholds_first():
    """Barbu et al. (2017), section 3.1.2: ten thresholdings, then 500 steps on what is left."""
    X, signal, _, rng = strong_signal(5)
    X = StandardScaler().fit_transform(X)
    y = signal + rng.standard_normal(len(signal))
    y = (y - y.mean()) / y.std()
    model = TISPRegressor(4, interleave=False, learning_rate=0.3).fit(X, y)
    coef = np.zeros(X.shape[1])
    for step in range(510):
        coef = coef - 0.3 * X.T @ (X @ coef - y) / len(y)
        if step < 10:
            kept = np.argsort(-np.abs(coef))[:4]
        coef[np.setdiff1d(np.arange(len(coef)), kept)] = 0.0
    np.testing.assert_allclose(model.coef_, coef, rtol=1e-8)
    assert model.loss_curve_.shape == (510,)
    with pytest.raises(ValueError, match="interleave"):
        TISPRegressor(4, interleave="no").fit(X, y)


def test_tisp_descends():
    X, signal, _, rng = strong_signal(5)
    curve = TISPClassifier(4).fit(X, signal + rng.logistic(size=len(signal)) > 0).loss_curve_
    assert len(curve) == 510
    assert np.all(np.diff(curve[:51]) <= 1e-12) and np.all(np.diff(curve[-51:]) <= 1e-12)


# -- Minimax sparse logistic regression ------------------------------------------------------------


def small_cuts(seed, n_cuts=4, n=40):
    rng = np.random.default_rng(seed)
    Z = rng.standard_normal((n, 12))
    y = np.where(Z[:, :5].sum(axis=1) + rng.standard_normal(n) > 0, 1.0, -1.0)
    members = np.zeros((n_cuts, 12))
    for t in range(n_cuts):
        members[t, rng.choice(12, 4, replace=False)] = 1.0
    members[0, members.sum(axis=0) == 0] = 1.0
    return Z, y, members, rng.uniform(0.5, 2.0, n)


def general_solver(Z, y, members, box):
    """Multiple-kernel learning by scipy: over u (one block per cut) and s >= all norms, min s^2 / 2
    is (sum of norms)^2 / 2."""
    blocks = [np.flatnonzero(cut) for cut in members]
    A = y[:, None] * Z[:, np.concatenate(blocks)]
    split = np.cumsum([len(b) for b in blocks])[:-1]

    def value(v):
        norms = [np.sqrt(part @ part + 1e-14) for part in np.split(v, split)]
        margins = A @ v
        slope = -box / (1.0 + np.exp(margins))
        total = sum(norms)
        gradient = (
            total * np.concatenate([p / s for p, s in zip(np.split(v, split), norms)]) + slope @ A
        )
        return 0.5 * total**2 + box @ np.logaddexp(0.0, -margins), gradient

    starts = 0.1 * np.random.default_rng(0).standard_normal((3, A.shape[1]))
    return min(
        minimize(value, v, jac=True, method="BFGS", options={"maxiter": 5000}).fun for v in starts
    )


@pytest.mark.parametrize("seed", range(4))
def test_both_solvers_reach_the_optimum_of_the_reduced_problem(seed):
    Z, y, members, box = small_cuts(seed)
    truth = general_solver(Z, y, members, box)
    problem = ReducedProblem(Z, y, members, box)
    newton = solve_newton(problem, np.full(4, 0.25), tol=1e-6, max_iter=2000)
    assert newton.gap <= 1e-6
    assert newton.primal == pytest.approx(truth, rel=1e-5)
    smoothing = solve_smoothing(problem, tol=0.01)
    assert smoothing.gap <= 0.01
    assert truth * (1 - 1e-6) <= smoothing.primal <= truth * 1.01
    finer = solve_smoothing(problem, tol=1e-3)
    assert finer.gap <= 1e-3 and finer.primal <= truth * 1.001
    # ridge logistic regression, nothing to smooth
    one_cut = ReducedProblem(Z, y, np.ones((1, 12)), box)
    single = solve_smoothing(one_cut, tol=1e-9)
    assert single.primal == pytest.approx(
        solve_newton(one_cut, np.ones(1), tol=1e-9).primal, rel=1e-8
    )


def test_one_coordinate_is_minimised_at_any_q():
    """Algorithm 3 against a bounded scalar search, at values where exp(q f) overflows by far."""
    rng = np.random.default_rng(0)
    for q in (0.01, 1.0, 100.0, 1e6):
        for _ in range(20):
            a, b, half = (
                rng.uniform(0.01, 5, 3),
                3 * rng.standard_normal(3),
                2400 + rng.uniform(0, 2, 3),
            )
            c1, c2 = rng.uniform(1e-6, 10, 2)
            z = minimise_coordinate(a, b, half, q, c1, c2, np.empty(3))
            assert -c1 < z < c2

            x = np.append(np.linspace(-c1, c2, 2003)[1:-1], z)
            smooth = logsumexp(q * (half + 0.5 * a * x[:, None] ** 2 + b * x[:, None]), axis=1) / q
            p = (c1 + x) * np.log(c1 + x) + (c2 - x) * np.log(c2 - x) + smooth
            assert p[-1] <= p.min() + 1e-9


def test_minimax_recovers_strong_signal_dense_and_sparse():

    for seed in range(3):
        X, signal, true, _ = strong_signal(seed, n=400, m=200, k=6)
        model = MinimaxSparseClassifier(2, n_features_to_select=6).fit(X, signal > 0)
        np.testing.assert_array_equal(model.get_support(indices=True), true)
        sparse = MinimaxSparseClassifier(2, n_features_to_select=6).fit(sp.csr_array(X), signal > 0)
        np.testing.assert_allclose(sparse.coef_, model.coef_, rtol=1e-6, atol=1e-9)


def test_minimax_objective_never_rises_and_cuts_are_bounded():
    X, signal, _, _ = strong_signal(1, n=200, m=300, k=30)
    model = MinimaxSparseClassifier(4, max_cuts=6, retrain_C=None).fit(X, signal > 0)
    assert np.all(np.diff(model.objective_) <= 2e-3 * model.objective_[:-1])
    assert model.n_iter_ == len(model.objective_) <= 6 and model.support_.sum() <= 24
    assert model.score(X, signal > 0) > 0.85


def test_minimax_by_the_data_on_words():
    X, y, _ = words()
    train, test = slice(0, 1000), slice(1000, None)
    chosen, paper = (
        MinimaxSparseClassifier(5, max_cuts=20, n_features_to_select=50, **how).fit(
            X[train], y[train]
        )
        for how in ({"C": "auto", "retrain_C": "auto"}, {})
    )
    assert chosen.score(X[test], y[test]) > paper.score(X[test], y[test])
    fsa = FSAClassifier(50).fit(X[train], y[train])
    assert 1 - chosen.score(X[test], y[test]) <= 1.15 * (1 - fsa.score(X[test], y[test])) + 0.01


def test_minimax_by_the_data_ends_without_training_errors():
    X, signal, _, _ = strong_signal(1, n=200, m=300, k=3)
    model = MinimaxSparseClassifier(2, C="auto", max_cuts=50, retrain_C=None).fit(X, signal > 0)
    assert model.n_iter_ < 50 and (model.score(X, signal > 0) == 1.0 or model.gap_ <= 1e-3)


def test_one_cut_with_all_features_is_ridge_logistic_regression():
    from sklearn.linear_model import LogisticRegression

    X, signal, _, rng = strong_signal(2, n=120, m=8)
    X = StandardScaler().fit_transform(X)
    y = signal + rng.logistic(size=120) > 0
    model = MinimaxSparseClassifier(
        8, C=0.7, max_cuts=1, retrain_C=None, fit_intercept=False, tol=1e-9
    ).fit(X, y)
    other = LogisticRegression(C=0.7, fit_intercept=False, tol=1e-10, max_iter=1000).fit(X, y)
    np.testing.assert_allclose(model.coef_, other.coef_, rtol=1e-5)
    retrained = MinimaxSparseClassifier(8, max_cuts=1).fit(X, y)
    np.testing.assert_allclose(
        retrained.coef_,
        LogisticRegression(C=5.0, tol=1e-10, max_iter=1000).fit(X, y).coef_,
        rtol=1e-4,
    )


# -- LogitBoost ------------------------------------------------------------------------------------


def test_enough_rounds_approach_logistic_regression():
    from sklearn.linear_model import LogisticRegression

    X, signal, _, rng = strong_signal(3, n=250, m=6)
    y = signal + 2 * rng.logistic(size=250) > 0
    model = LogitBoostClassifier(6, n_rounds=400).fit(X, y)
    other = LogisticRegression(C=1e8, tol=1e-12, max_iter=1000).fit(X, y)
    np.testing.assert_allclose(model.coef_, other.coef_, atol=1e-5)
    np.testing.assert_allclose(model.intercept_, other.intercept_, atol=1e-5)
    assert np.all(np.diff(model.loss_curve_) <= 0)


def test_enough_rounds_of_tables_approach_logistic_regression_on_the_expanded_columns():
    from annealed.learners.designs.responses import even_knots
    from sklearn.linear_model import LogisticRegression

    rng = np.random.default_rng(0)
    # Training rounds values to 1 / 63 of a bin: on that grid nothing is rounded.
    X = rng.integers(0, 4 * 63 + 1, (400, 2)) / (2 * 63) - 1.0
    X[:2] = [[-1.0, -1.0], [1.0, 1.0]]
    y = np.sin(3 * X[:, 0]) + X[:, 1] ** 2 + rng.logistic(size=400) > 0
    knots = even_knots(X.min(axis=0), X.max(axis=0), 4)
    expanded = np.array([np.interp(x, at, hat) for x, at in zip(X.T, knots) for hat in np.eye(5)]).T
    other = LogisticRegression(C=1e6, tol=1e-12, max_iter=5000).fit(expanded, y)
    model = LogitBoostClassifier(2, response="piecewise", n_bins=4, n_rounds=500).fit(X, y)
    np.testing.assert_allclose(
        model.predict_proba(X)[:, 1], other.predict_proba(expanded)[:, 1], atol=1e-3
    )
    steps = LogitBoostClassifier(1, response="constant", n_bins=4, n_rounds=200).fit(X[:, :1], y)
    cells = np.searchsorted(knots[0, 1:-1], X[:, 0], side="right")
    share = np.array([y[cells == c].mean() for c in range(4)])  # the best constant of each bin
    np.testing.assert_allclose(steps.predict_proba(X[:, :1])[:, 1], share[cells], atol=1e-6)


def test_the_first_weak_learner_is_the_best_weighted_least_squares_fit():
    X, signal, _, rng = strong_signal(0, n=80, m=20)
    y = signal + rng.logistic(size=80) > 0
    p = y.mean()
    # equal weights at the start: ordinary least squares of the working response
    response = (y - p) / (p * (1 - p))
    errors = [
        np.linalg.lstsq(np.column_stack([np.ones(80), x]), response, rcond=None)[1][0] for x in X.T
    ]
    model = LogitBoostClassifier(20, n_rounds=1).fit(X, y)
    assert model.rounds_[0] == np.argmin(errors)


def test_boosting_stops_at_k_features_and_a_tenth_is_tried():
    X, signal, true, _ = strong_signal(1, n=500, m=200, k=5)
    model = LogitBoostClassifier(5).fit(X, signal > 0)
    np.testing.assert_array_equal(model.get_support(indices=True), true)
    some = LogitBoostClassifier(5, subsample=0.1, random_state=0).fit(X, signal > 0)
    again = LogitBoostClassifier(5, subsample=0.1, random_state=0).fit(X, signal > 0)
    assert some.support_.sum() == 5
    np.testing.assert_array_equal(some.rounds_, again.rounds_)
    np.testing.assert_array_equal(some.coef_, again.coef_)


def test_boosting_sparse_equals_dense():

    X, signal, _, _ = strong_signal(2)
    X[X < 0.5] = 0.0
    dense = LogitBoostClassifier(5).fit(X, signal > 0)
    sparse = LogitBoostClassifier(5).fit(sp.csr_array(X), signal > 0)
    np.testing.assert_allclose(sparse.coef_, dense.coef_, rtol=1e-8, atol=1e-10)


@pytest.mark.parametrize("loss", ["logistic", "lorenz", "huberised_hinge"])
def test_one_rule_for_several_classes(loss):
    rng = np.random.default_rng(3)
    X = rng.standard_normal((150, 8))
    y = np.digitize(X[:, 2] + X[:, 5] + rng.standard_normal(150), [-0.7, 0.7])
    classes, targets, found = encode_classes(y, loss)
    assert targets.shape == (150, 3)
    # All eight features stay, so that every selector minimises the same objective: the values that
    # they reach agree.
    values = {}
    for model in (
        FSAClassifier(8, loss=loss, refinement=Refinement(exchange=False, ridge=0.0)),
        TISPClassifier(8, loss=loss, n_steps=3000),
        ForwardBackwardClassifier(8, loss=loss, ridge=0.0),
        LogitBoostClassifier(8, loss=loss, n_rounds=2000),
    ):
        scores = model.fit(X, y).decision_function(X)
        assert scores.shape == (150, 3)
        assert np.array_equal(model.predict(X), classes[scores.argmax(axis=1)])
        values[type(model).__name__] = found.value(targets, scores, np.full(150, 1 / 150))
    np.testing.assert_allclose(list(values.values()), min(values.values()), rtol=0.03)


@pytest.mark.parametrize(
    "model",
    [
        TISPClassifier(1, n_steps=50),
        ForwardBackwardClassifier(1),
        MinimaxSparseClassifier(r=1, max_cuts=1),
    ],
    ids=["tisp", "forward-backward", "minimax"],
)
def test_units_in_which_columns_compete(model):
    rng = np.random.default_rng(0)
    y = rng.random(300) > 0.5
    X = np.where(y, 1.0, -1.0)[:, None] + rng.standard_normal((300, 2)) * [1.0, 1.5]
    X[:, 1] *= 10.0  # the louder column says less
    for scaling, expected in (("standardize", [True, False]), ("none", [False, True])):
        fitted = clone(model).set_params(scaling=scaling).fit(X, y)
        assert fitted.support_.tolist() == expected
        assert fitted.score(X, y) > 0.7  # coefficients belong to raw columns in any case
    with pytest.raises(ValueError, match=r"scaling='length'"):
        clone(model).set_params(scaling="length").fit(X, y)


@pytest.mark.parametrize("criterion", ["gradient", "objective"])
@pytest.mark.parametrize("loss", ["squared", "poisson"])
def test_forward_backward_search_charges_groups_for_their_coefficients(criterion, loss):
    rng = np.random.default_rng(1)
    X = rng.standard_normal((400, 8))
    category = rng.integers(0, 40, 400)[:, None] == np.arange(1, 40)
    signal = 0.2 * X[:, :3].sum(axis=1)
    y = (
        signal + rng.standard_normal(400)
        if loss == "squared"
        else rng.poisson(np.exp(signal)).astype(float)
    )
    groups = np.concatenate([np.arange(8), np.full(39, 8)])
    model = ForwardBackwardRegressor(3, loss=loss, criterion=criterion, feature_groups=groups)
    assert model.fit(np.hstack([X, category]), y).get_support(indices=True).tolist() == [0, 1, 2]
