"""Poisson, Huber, quantile and Cox: against scikit-learn, scipy, and values computed with
statsmodels and lifelines."""

import numpy as np
import pandas as pd
import pytest
from annealed.learners import (
    CoxLoss,
    FSAClassifier,
    FSARegressor,
    FSARegressorCV,
    HuberLoss,
    PairwiseLogisticLoss,
    PoissonLoss,
    QuantileLoss,
)
from annealed.learners.objective.survival import concordance, survival_targets
from annealed.learners.solvers.newton import SupportProblem, refit
from scipy.optimize import minimize
from sklearn.linear_model import PoissonRegressor, QuantileRegressor


def _fitted(loss, X, y, weight=None, tol=1e-12, **start):
    """Coefficients and intercept without any penalty."""
    weight = np.ones(len(X)) if weight is None else weight
    problem = SupportProblem(y.reshape(len(y), 1), loss, weight / weight.sum(), shrinkage=0.0)
    theta, intercept = (
        start.get("theta", np.zeros((X.shape[1], 1))),
        start.get("intercept", np.zeros(1)),
    )
    return refit(problem, X, theta, intercept, tol=tol, n_iter=100)


def _counts(seed=1, n=300, m=6):
    rng = np.random.default_rng(seed)
    X = rng.standard_normal((n, m))
    return X, rng.poisson(np.exp(0.8 * X[:, 0] - 0.5 * X[:, 1] + 1.0)).astype(float)


def _heavy(seed=2, n=300, m=6):
    rng = np.random.default_rng(seed)
    X = rng.standard_normal((n, m))
    return X, X[:, 0] - X[:, 1] + rng.standard_t(1.5, n)


def _survival(seed, n=240, m=500, k=5):
    rng = np.random.default_rng(seed)
    X = rng.standard_normal((n, m))
    time = rng.exponential(np.exp(-X[:, :k].sum(axis=1)))
    censoring = rng.exponential(2.0, n)
    return X, np.minimum(time, censoring), time <= censoring


def test_poisson_agrees_with_scikit_learn():
    X, y = _counts()
    weight = np.random.default_rng(0).uniform(0.5, 2.0, len(y))
    other = PoissonRegressor(alpha=0, solver="newton-cholesky", tol=1e-12).fit(X, y, weight)
    fit = _fitted(PoissonLoss(), X, y, weight)
    np.testing.assert_allclose(fit.theta[:, 0], other.coef_, atol=1e-6)
    assert fit.intercept[0] == pytest.approx(other.intercept_, abs=1e-6)
    # The estimator's own small ridge on standardised columns is scikit-learn's alpha of twice its
    # size.
    Z = (X - X.mean(axis=0)) / X.std(axis=0)
    ours, theirs = (
        FSARegressor(6, loss="poisson").fit(Z, y),
        PoissonRegressor(alpha=1e-4, tol=1e-10).fit(Z, y),
    )
    np.testing.assert_allclose(ours.predict(Z), theirs.predict(Z), rtol=1e-4)
    assert ours.score(Z, y) == pytest.approx(theirs.score(Z, y), abs=1e-6)


@pytest.mark.parametrize("scale", [1, 1000])
def test_poisson_finds_the_columns(scale):
    rng = np.random.default_rng(5)
    X = rng.standard_normal((400, 600))
    y = rng.poisson(scale * np.exp(0.4 * X[:, :5].sum(axis=1)))
    assert set(FSARegressor(5, loss="poisson").fit(X, y).get_support(indices=True)) == set(range(5))


@pytest.mark.parametrize("delta", [0.4, 1.35])
def test_huber_agrees_with_scipy(delta):
    X, y = _heavy()
    loss, weight, A = (
        HuberLoss(delta),
        np.full(len(y), 1.0 / len(y)),
        np.column_stack([X, np.ones(len(y))]),
    )

    def objective(b):
        scores = (A @ b)[:, None]
        return loss.value(y[:, None], scores, weight), A.T @ loss.gradient(
            y[:, None], scores, weight
        )[:, 0]

    best = minimize(objective, np.zeros(7), jac=True, method="BFGS", options={"gtol": 1e-9})
    fit = _fitted(loss, X, y)
    np.testing.assert_allclose(np.append(fit.theta[:, 0], fit.intercept), best.x, atol=2e-6)
    assert fit.value <= best.fun + 1e-11


@pytest.mark.parametrize("quantile", [0.5, 0.9])
def test_quantile_tends_to_the_check_loss(quantile):
    X, y = _heavy()
    other = QuantileRegressor(quantile=quantile, alpha=0).fit(X, y)
    start, errors = {}, []
    for width in (0.3, 0.1, 0.03, 0.01, 3e-3, 1e-3, 3e-4, 1e-4):
        fit = _fitted(QuantileLoss(quantile, width), X, y, **start)
        start = {"theta": fit.theta, "intercept": fit.intercept}
        errors.append(np.abs(fit.theta[:, 0] - other.coef_).max())
    assert errors[-1] < 1e-3
    assert errors[-1] < errors[0] / 100


@pytest.mark.parametrize("loss", ["huber", "quantile"])
def test_outliers_do_not_hide_the_columns(loss):
    rng = np.random.default_rng(0)
    X = rng.standard_normal((300, 400))
    y = X[:, :5].sum(axis=1) + 0.5 * rng.standard_normal(300)
    y[rng.random(300) < 0.15] += 30.0
    assert set(FSARegressor(5, loss=loss).fit(X, y).get_support(indices=True)) == set(range(5))
    # the unit of the target does not matter
    moved = FSARegressor(5, loss=loss).fit(X, 100.0 * y - 7.0)
    np.testing.assert_allclose(
        moved.predict(X),
        100.0 * FSARegressor(5, loss=loss).fit(X, y).predict(X) - 7.0,
        rtol=1e-3,
        atol=1.0,
    )


def test_quantile_predicts_the_quantile():
    rng = np.random.default_rng(0)
    X = rng.standard_normal((2000, 20))
    y = X[:, 3] + rng.exponential(1.0, 2000)
    model = FSARegressor(1, loss=QuantileLoss(0.9)).fit(X, y)
    assert np.mean(y <= model.predict(X)) == pytest.approx(0.9, abs=0.01)


# statsmodels 0.15 (PHReg, ties="efron") and lifelines 0.30 (with weights 1, 2, 3, 1, ...) on the
# data of _tied, to 1e-9
_EFRON = [1.6107820283, -0.9034412356, 0.1080417015, 0.1201954875]
_EFRON_LOG_LIKELIHOOD = -288.36856681
_EFRON_WEIGHTED = [1.6004607982, -1.0012917366, 0.1388082687, 0.0958349016]


def _tied(n=120, m=4):
    """Times on a small grid, without random numbers."""
    i = np.arange(n)
    X = np.column_stack([np.sin(1.0 + (j + 1.3) * i) for j in range(m)])
    time = np.ceil(8.0 * np.exp(-0.8 * X[:, 0] + 0.4 * X[:, 1]) * (1.1 + np.sin(0.7 * i * i)))
    event = (i * 7) % 10 < 7
    return X, time, event


def test_cox_agrees_with_statsmodels_and_lifelines():
    X, time, event = _tied()
    y = survival_targets(np.column_stack([time, event]))
    fit = _fitted(CoxLoss(), X, y)
    np.testing.assert_allclose(fit.theta[:, 0], _EFRON, atol=1e-6)
    assert -fit.value * len(y) == pytest.approx(_EFRON_LOG_LIKELIHOOD, abs=1e-6)
    weighted = _fitted(CoxLoss(), X, y, 1.0 + np.arange(len(y)) % 3)
    np.testing.assert_allclose(weighted.theta[:, 0], _EFRON_WEIGHTED, atol=1e-6)


def test_cox_hessian_is_the_derivative_of_the_gradient():
    rng = np.random.default_rng(0)
    y = (rng.integers(1, 9, 30) * rng.choice([-1, 1], 30)).astype(float)[:, None]
    scores, weight, loss = rng.standard_normal((30, 1)), rng.random(30) / 15, CoxLoss()
    hessian = loss.second_order(y, scores, weight)[2][0](np.eye(30))
    for j in range(30):
        e = 1e-5 * np.eye(30)[:, [j]]
        slope = (loss.gradient(y, scores + e, weight) - loss.gradient(y, scores - e, weight)) / 2e-5
        np.testing.assert_allclose(hessian[:, j], slope[:, 0], atol=1e-9)
    np.testing.assert_allclose(2.0 * np.diag(hessian), loss.curvature(y, scores, weight)[:, 0])


def test_cox_finds_the_columns_and_takes_every_form_of_targets():
    X, time, event = _survival(0)
    structured = np.empty(len(time), dtype=[("died", bool), ("days", float)])
    structured["died"], structured["days"] = event, time
    frame = pd.DataFrame({"time": time, "event": event})
    models = [
        FSARegressor(5, loss="cox").fit(X, y)
        for y in (structured, frame, np.column_stack([time, event]))
    ]
    assert set(models[0].get_support(indices=True)) == set(range(5))
    for other in models[1:]:
        np.testing.assert_array_equal(other.coef_, models[0].coef_)
    assert models[0].score(X, structured) == models[0].score(X, frame) > 0.8
    assert models[0].predict(X).shape == (len(X),)


def test_sizes_of_survival_models_by_cross_validation():
    X, time, event = _survival(3, m=60, k=3)
    model = FSARegressorCV([1, 3, 10], loss="cox").fit(X, np.column_stack([time, event]))
    assert model.n_features_ == 3
    assert model.cv_scores_.min() > 0.6


def test_concordance_counts_pairs():
    rng = np.random.default_rng(0)
    time, event, risk = (
        rng.integers(1, 6, 40),
        rng.random(40) < 0.6,
        rng.integers(0, 4, 40).astype(float),
    )
    good = pairs = 0.0
    for i in range(40):
        for j in range(40):
            if event[i] and (time[i] < time[j] or (time[i] == time[j] and not event[j])):
                pairs += 1
                good += 1.0 if risk[i] > risk[j] else 0.5 if risk[i] == risk[j] else 0.0
    assert concordance(survival_targets(np.column_stack([time, event])), risk) == pytest.approx(
        good / pairs
    )


BAD = [
    ([1.0, 2.0, 3.0], "shape .3,."),
    ([[1.0, 2], [2.0, 1], [3.0, 0]], "event indicator 2"),
    ([[-1.0, 1], [2.0, 1], [3.0, 0]], "time -1"),
    ([[np.nan, 1], [2.0, 1], [3.0, 0]], "time nan"),
    ([[1.0, 0], [2.0, 0], [3.0, 0]], "no event"),
    ([["a", "b"], ["a", "b"], ["a", "b"]], "text"),
    (None, "target y is None"),
    (np.zeros(3, dtype=[("a", float), ("b", float)]), "the fields a, b"),
]


@pytest.mark.parametrize("y, message", BAD)
def test_bad_survival_times(y, message):
    with pytest.raises(ValueError, match=message):
        FSARegressor(1, loss="cox").fit(np.eye(3), y)


@pytest.mark.parametrize(
    "y, message",
    [([1.0, -2.0, 3.0], "-2; expected non-negative counts"), ([0.0, 0.0, 0.0], "0 everywhere")],
)
def test_bad_counts(y, message):
    with pytest.raises(ValueError, match=message):
        FSARegressor(1, loss="poisson").fit(np.eye(3), y)


def test_losses_of_other_targets_are_refused():
    with pytest.raises(ValueError, match="'cox' is not valid"):
        FSAClassifier(1, loss="cox").fit(np.eye(3), [0, 1, 0])
    with pytest.raises(ValueError, match="compares samples"):
        FSAClassifier(1, loss=CoxLoss()).fit(np.eye(3), [0, 1, 0])
    with pytest.raises(ValueError, match="compares samples"):
        FSARegressor(1, loss=PairwiseLogisticLoss(np.array([[0, 1]]), np.ones(1))).fit(
            np.eye(3), [0.0, 1.0, 2.0]
        )
