"""RankBoost against a plain reference."""

import numpy as np
import pytest
from annealed.learners import RankBoost
from sklearn.base import clone
from sklearn.utils.estimator_checks import parametrize_with_checks


def plain_rankboost(X, pairs, n_rounds, n_thresholds):
    """The algorithm word by word: every weak ranker evaluated on every pair."""
    low, high = X.min(0), X.max(0)
    weak = [
        (j, low[j] + (high[j] - low[j]) * b / (n_thresholds + 1))
        for j in range(X.shape[1])
        for b in range(n_thresholds, 0, -1)
    ]
    D = np.full(len(pairs), 1.0 / len(pairs))
    total = np.zeros(len(X))
    for _ in range(n_rounds):
        r = np.array(
            [D @ ((X[pairs[:, 0], j] > t) * 1.0 - (X[pairs[:, 1], j] > t)) for j, t in weak]
        )
        best = int(np.argmax(np.abs(r) > np.abs(r).max() - 1e-12))
        j, t = weak[best]
        alpha = 0.5 * np.log((1 + r[best]) / (1 - r[best]))
        h = (X[:, j] > t) * 1.0
        total += alpha * h
        D *= np.exp(alpha * (h[pairs[:, 1]] - h[pairs[:, 0]]))
        D /= D.sum()
    return total


@pytest.fixture
def problem():
    rng = np.random.default_rng(3)
    X = rng.standard_normal((40, 6))
    y = X[:, 1] - X[:, 4] + 0.5 * rng.standard_normal(40)
    return X, y


def test_agrees_with_the_plain_algorithm(problem):
    X, y = problem
    pairs = np.array([(i, j) for i in range(40) for j in range(40) if y[i] > y[j]])
    ranker = RankBoost(8, n_thresholds=7).fit(X, y)
    np.testing.assert_allclose(
        ranker.decision_function(X), plain_rankboost(X, pairs, 8, 7), atol=1e-9
    )


def test_pairs_and_grades_say_the_same(problem):
    X, y = problem
    i, j = np.triu_indices(len(y), 1)
    pairs = np.column_stack([i, j, 0.5 + 0.5 * np.sign(y[i] - y[j])])
    np.testing.assert_allclose(
        RankBoost(15).fit(X, pairs=pairs).predict(X), RankBoost(15).fit(X, y).predict(X)
    )


def test_queries_are_kept_apart(problem):
    X, y = problem
    qid = np.arange(40) % 4
    shifted = y + 100 * qid  # between queries nothing is compared
    np.testing.assert_allclose(
        RankBoost(15).fit(X, shifted, qid=qid).predict(X),
        RankBoost(15).fit(X, y, qid=qid).predict(X),
    )


@pytest.mark.parametrize("n_rounds", [1, 10, 100])
def test_training_error_is_below_the_bound_of_the_theorem(problem, n_rounds):
    X, y = problem
    above, below = np.nonzero(y[:, None] > y[None, :])
    ranker = RankBoost(n_rounds).fit(X, y)
    scores = ranker.predict(X)
    # Theorem 1 of the RankBoost paper: the product of Z_t, which is sqrt(1 - r_t^2) or less, with
    # r_t = tanh(alpha_t).
    assert (scores[above] <= scores[below]).mean() <= np.prod(
        np.sqrt(1 - np.tanh(ranker.alphas_) ** 2)
    ) + 1e-9


@pytest.mark.parametrize("name, value", [("n_rounds", 0), ("n_thresholds", 2.5)])
def test_bad_parameters(problem, name, value):
    X, y = problem
    with pytest.raises(ValueError, match=f"{name}={value}"):
        clone(RankBoost()).set_params(**{name: value}).fit(X, y)


def test_nothing_to_learn(problem):
    X, _ = problem
    with pytest.raises(ValueError, match="has the same grade"):
        RankBoost().fit(X, np.ones(len(X)))
    with pytest.raises(ValueError, match="no feature distinguishes"):
        RankBoost().fit(np.ones((4, 2)), [1, 2, 3, 4])


@parametrize_with_checks([RankBoost(10)])
def test_scikit_learn_checks(estimator, check):
    check(estimator)
