"""The ridge chosen by the data, against brute force."""

import numpy as np
import pytest
import scipy.sparse as sp
from annealed.learners import FSAClassifier, FSARanker, FSARegressor, Prior, Refinement
from annealed.learners.model_selection import ridge as ridge_module
from annealed.learners.model_selection.ridge import LeftOut, choose_ridge, gcv_ridge, left_out_loss
from annealed.learners.objective.losses import (
    FlippedLogisticLoss,
    LogisticLoss,
    MultinomialLoss,
    SquaredLoss,
    VapnikLoss,
)
from annealed.learners.objective.pairwise import PairwiseLogisticLoss, graded_pairs
from annealed.learners.solvers.newton import SupportProblem, refit
from sklearn.linear_model import Ridge


def brute_force(loss, y, A, ridge):
    """Loss of each row, fitted without it."""
    total = 0.0
    for i in range(len(A)):
        weight = np.full(len(A), 1.0 / len(A))
        weight[i] = 0.0
        problem = SupportProblem(y, loss, weight, shrinkage=ridge)
        start = np.zeros((A.shape[1], y.shape[1])), np.zeros(y.shape[1])
        fit = refit(problem, A, *start, tol=1e-10, n_iter=200, joint=y.shape[1] > 1)
        total += loss.value(y[i : i + 1], A[i : i + 1] @ fit.theta + fit.intercept, np.ones(1))
    return total / len(A)


def data(loss, n=60, p=6):
    rng = np.random.default_rng(0)
    A = rng.standard_normal((n, p))
    A -= A.mean(axis=0)
    signal = A[:, :3] @ np.array(
        [[1.0, 0.0, -1.0], [0.0, 1.0, -1.0], [0.5, 0.0, 0.0]]
    ) + rng.standard_normal((n, 3))
    if loss.several_classes:
        return A, np.eye(3)[signal.argmax(axis=1)]
    return A, signal[:, :1] if loss.is_quadratic else np.where(signal[:, :1] > 0, 1.0, -1.0)


@pytest.mark.parametrize(
    ("loss", "tolerance"),
    [
        (SquaredLoss(), 1e-8),
        (LogisticLoss(), 0.02),
        (FlippedLogisticLoss(), 0.05),
        (MultinomialLoss(), 0.03),
        (VapnikLoss(LogisticLoss()), 0.03),
    ],
)
@pytest.mark.parametrize("ridge", [0.003, 0.03, 1.0])
def test_rows_left_out_as_by_brute_force(loss, tolerance, ridge):
    A, y = data(loss)
    weight = np.full(len(A), 1.0 / len(A))
    problem = SupportProblem(y, loss, weight, shrinkage=ridge)
    fit = refit(
        problem,
        A,
        np.zeros((A.shape[1], y.shape[1])),
        np.zeros(y.shape[1]),
        tol=1e-10,
        joint=y.shape[1] > 1,
    )
    estimate = left_out_loss(problem, fit, LeftOut(float(len(A))))
    assert estimate == pytest.approx(brute_force(loss, y, A, ridge), rel=tolerance)


def test_generalised_cross_validation_as_written_out():
    loss = SquaredLoss()
    A, y = data(loss)
    n = len(A)
    weight = np.full(n, 1.0 / n)
    ridge = gcv_ridge(SupportProblem(y, loss, weight), A, float(n))

    def criterion(s):
        hat = np.array([Ridge(2 * s * n).fit(A, column).predict(A) for column in np.eye(n)]).T
        return np.sum((y - hat @ y) ** 2) / (1 - np.trace(hat) / n) ** 2

    assert criterion(ridge) <= min(criterion(s) for s in np.geomspace(1e-4, 3, 30)) * 1.001


def test_queries_left_out_as_by_brute_force():
    rng = np.random.default_rng(1)
    X = rng.standard_normal((60, 4))
    grade = X[:, 0] + X[:, 1] + rng.standard_normal(60)
    qid = np.repeat(range(10), 6)
    pairs = graded_pairs(grade, qid)
    loss = PairwiseLogisticLoss(pairs, np.ones(len(pairs)), np.ones(len(pairs)))
    y, weight = np.zeros((60, 1)), np.full(60, 1 / 60)

    def fit_of(weights):
        problem = SupportProblem(
            y,
            PairwiseLogisticLoss(pairs, np.ones(len(pairs)), weights),
            weight,
            False,
            shrinkage=0.03,
        )
        return problem, refit(problem, X, np.zeros((4, 1)), np.zeros(1), tol=1e-10)

    problem, fit = fit_of(np.ones(len(pairs)))
    estimate = left_out_loss(problem, fit, LeftOut(60.0, loss.parts(np.ones(60))))
    found = []
    for query in range(10):
        out = qid[pairs[:, 0]] == query
        # Without renormalising: the other pairs' weights stay what they were.
        left = fit_of(np.where(out, 1e-12, 1.0))[1]
        d = (X[pairs[out, 0]] - X[pairs[out, 1]]) @ left.theta[:, 0]
        found.append(np.logaddexp(0, -d).sum())
    assert estimate == pytest.approx(sum(found) / len(pairs), rel=0.02)


def test_one_query_leaves_items_out():
    pairs = graded_pairs(np.arange(4.0))
    parts = PairwiseLogisticLoss(pairs, np.ones(6)).parts(np.array([1.0, 2.0, 1.0, 1.0]))
    assert [len(part) for part, _ in parts] == [3, 3, 3, 3] and [share for _, share in parts] == [
        1.0,
        0.5,
        1.0,
        1.0,
    ]


def test_ridge_of_the_estimators():
    rng = np.random.default_rng(0)
    X = rng.standard_normal((50, 300))
    y = X[:, :5].sum(axis=1) + rng.standard_normal(50)
    chosen = FSARegressor(10).fit(X, y)
    assert chosen.ridge_ > 1e-3  # few rows, much noise
    assert FSARegressor(10, refinement=Refinement(ridge=0.2)).fit(X, y).ridge_ == 0.2
    named = FSARegressor(10, prior=Prior(shrinkage=0.2)).fit(X, y)
    # a prior acts in annealing too
    within = FSARegressor(10, refinement=Refinement(ridge=0.2)).fit(X[:, named.support_], y)
    assert named.ridge_ == 0.2 and np.allclose(named.coef_[named.support_], within.coef_)
    assert FSARegressor(10, prior=Prior(shrinkage=0.2), refinement=Refinement(ridge=0.1)).fit(
        X, y
    ).ridge_ == pytest.approx(0.3)
    assert np.linalg.norm(
        FSAClassifier(10, refinement=Refinement(ridge=1.0)).fit(X, y > 0).coef_
    ) < np.linalg.norm(FSAClassifier(10, refinement=Refinement(ridge=0.001)).fit(X, y > 0).coef_)
    assert FSAClassifier(10).fit(X, np.digitize(y, [-1, 1])).ridge_ > 5e-5
    assert FSARanker(10).fit(X, y).ridge_ > 5e-5
    for bad in (-1.0, "none", True):
        with pytest.raises(ValueError, match="ridge"):
            FSARegressor(10, refinement=Refinement(ridge=bad)).fit(X, y)


def test_enough_rows_ask_for_no_ridge():
    rng = np.random.default_rng(0)
    X = rng.standard_normal((2000, 20))
    model = FSARegressor(3).fit(X, X[:, :3].sum(axis=1) + 0.1 * rng.standard_normal(2000))
    assert model.ridge_ <= 1e-4
    weights = rng.random(2000) * 1e-3  # counts no copies: the effective number of rows
    again = FSARegressor(3).fit(X, X[:, :3].sum(axis=1), sample_weight=weights)
    assert again.ridge_ <= 1e-4


def test_no_search_where_no_ridge_can_gain(monkeypatch):
    seen = []
    left_out = ridge_module.left_out_loss

    def counted(*args):
        seen.append(left_out(*args))
        return seen[-1]

    monkeypatch.setattr(ridge_module, "left_out_loss", counted)
    rng = np.random.default_rng(0)
    X = rng.standard_normal((3000, 8))
    y = X[:, 0] - X[:, 1] + rng.standard_normal(3000) > 0
    FSAClassifier(3).fit(X, y)
    assert len(seen) == 1
    FSAClassifier(8).fit(X[:80], y[:80])
    assert len(seen) > 2


def test_the_best_of_a_range():
    loss = LogisticLoss()
    A, y = data(loss, 40, 12)
    problem = SupportProblem(y, loss, np.full(40, 1 / 40))
    for few_rows in (False, True):
        fit, ridge, how = choose_ridge(
            problem, A, np.zeros((12, 1)), np.zeros(1), LeftOut(40.0), few_rows=few_rows
        )
        assert fit.theta.shape == (12, 1) and how == " by approximate leave-one-out"
        assert brute_force(loss, y, A, ridge) <= 1.02 * min(
            brute_force(loss, y, A, s) for s in (1e-3, 1e-2, 3e-2, 0.1, 1.0)
        )


@pytest.mark.parametrize("k", [19, 20])
def test_separable_classes_where_annealing_ends_at_once(k):
    """One step leaves scores far out, where the loss is flat: Newton's method went nowhere, and two
    of three rows were wrong."""
    rng = np.random.default_rng(0)
    y = rng.choice(3, 90, p=[0.4, 0.5, 0.1])
    X = rng.standard_normal((90, 20)) + 4.0 * np.eye(3)[y].repeat(7, axis=1)[:, :20]
    assert FSAClassifier(k).fit(X, y).score(X, y) == 1.0


@pytest.mark.parametrize("loss", [LogisticLoss(), FlippedLogisticLoss()])
def test_sparse_columns_give_the_same_ridge_and_fit(loss):
    rng = np.random.default_rng(0)
    A = rng.poisson(0.2, (150, 12)).astype(float)
    y = np.where(A[:, :1] - A[:, 1:2] + 0.5 * rng.standard_normal((150, 1)) > 0, 1.0, -1.0)
    support = SupportProblem(y, loss, np.full(150, 1 / 150))
    fits = [
        choose_ridge(
            support, columns, np.zeros((12, 1)), np.zeros(1), LeftOut(150.0), few_rows=True
        )
        for columns in (A, sp.csr_array(A))
    ]
    assert fits[0][1] == fits[1][1]
    np.testing.assert_allclose(fits[1][0].theta, fits[0][0].theta, rtol=1e-6, atol=1e-9)
    np.testing.assert_allclose(fits[1][0].intercept, fits[0][0].intercept, rtol=1e-6)


def test_many_classes_use_the_ridge_of_one_hot_classes():
    rng = np.random.default_rng(0)
    centres, y = rng.standard_normal((40, 50)), rng.permutation(np.arange(1600) % 40)
    for noise, least, most in ((0.5, 0.0, 2e-3), (4.0, 2e-3, 0.1)):
        X = centres[y] + noise * rng.standard_normal((1600, 50))
        model = FSAClassifier(40).fit(X, y)
        assert (
            model.refinement_.count("ridge") == 1
            and "by generalised cross-validation of one-hot classes" in model.refinement_
        )
        assert least < model.ridge_ < most
        targets = (y[:, None] == np.arange(40)).astype(float)
        A = X[:, model.support_] / X[:, model.support_].std(axis=0)
        support = SupportProblem(targets, LogisticLoss(), np.full(1600, 1 / 1600))
        assert model.ridge_ == pytest.approx(gcv_ridge(support, A, 1600.0) / 40)


def test_columns_that_the_rows_chose_take_a_greater_ridge():
    rng = np.random.default_rng(1)
    X, y = rng.standard_normal((100, 2000)), np.where(rng.random((100, 1)) > 0.5, 1.0, -1.0)
    A = X[:, np.argsort(-np.abs(X.T @ y[:, 0]))[:10]]
    support = SupportProblem(y, LogisticLoss(), np.full(100, 0.01))
    found = [
        choose_ridge(
            support,
            A,
            np.zeros((10, 1)),
            np.zeros(1),
            LeftOut(100.0, optimism=optimism),
            few_rows=True,
        )[1]
        for optimism in (1.0, 3.0, 10.0)
    ]
    assert found == sorted(found) and found[0] < found[-1]
