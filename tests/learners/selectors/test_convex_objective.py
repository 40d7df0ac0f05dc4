"""Forward-backward selection of a custom convex function: least squares as by the estimator,
covariance selection."""

import numpy as np
import pytest
from annealed.learners import ForwardBackwardRegressor, forward_backward_minimise


def least_squares(X, y):
    def objective(beta):
        residual = X @ beta - y
        return residual @ residual / (2 * len(y)), X.T @ residual / len(y)

    return objective


@pytest.fixture
def table():
    rng = np.random.default_rng(1)
    X = rng.standard_normal((80, 12))
    X[:, 1] += X[:, 0]
    X = (X - X.mean(axis=0)) / X.std(axis=0)
    y = X[:, 2] - 2 * X[:, 5] + 0.5 * X[:, 1] + 0.3 * rng.standard_normal(80)
    return X, y - y.mean()


@pytest.mark.parametrize("criterion", ["gradient", "objective"])
def test_least_squares_equals_the_estimator(table, criterion):
    X, y = table
    found = forward_backward_minimise(least_squares(X, y), np.zeros(12), 3, criterion=criterion)
    model = ForwardBackwardRegressor(3, criterion=criterion, ridge=1e-12).fit(X, y)
    np.testing.assert_array_equal(found.support, model.get_support(indices=True))
    np.testing.assert_allclose(found.coef[found.support], model.coef_[found.support], atol=1e-4)
    assert [(s.action, s.feature) for s in found.path] == [
        (s.action, s.feature) for s in model.path_
    ]
    assert found.value == pytest.approx(least_squares(X, y)(found.coef)[0])


def test_thresholds_end_the_search(table):
    X, y = table
    objective = least_squares(X, y)
    found = forward_backward_minimise(objective, np.zeros(12), epsilon=0.2)
    assert sorted(found.support) == [1, 2, 5] and np.abs(objective(found.coef)[1]).max() < 0.2
    few = forward_backward_minimise(objective, np.zeros(12), criterion="objective", delta=0.5)
    assert 1 <= len(few.support) < 3
    assert len(forward_backward_minimise(objective, np.zeros(12), 2, backward=False).path) == 2


def chain(p, n, seed):
    """Precision matrix of a chain, rows drawn from it, and the Gaussian likelihood of the upper
    triangle's entries."""
    truth = np.eye(p) + 0.4 * (np.eye(p, k=1) + np.eye(p, k=-1))
    X = np.random.default_rng(seed).multivariate_normal(np.zeros(p), np.linalg.inv(truth), n)
    S, (row, column) = np.cov(X.T), np.triu_indices(p)

    def objective(entries):
        precision = np.zeros((p, p))
        precision[row, column] = precision[column, row] = entries
        values = np.linalg.eigvalsh(precision)
        if values[0] <= 0:
            return np.inf, np.zeros_like(entries)
        slope = S - np.linalg.inv(precision)
        return (S * precision).sum() - np.log(values).sum(), np.where(row == column, 1, 2) * slope[
            row, column
        ]

    return objective, row, column


@pytest.mark.parametrize("criterion", ["gradient", "objective"])
def test_covariance_selection_finds_the_chain(criterion):
    p = 8
    objective, row, column = chain(p, 2000, 0)
    diagonal = np.flatnonzero(row == column)
    found = forward_backward_minimise(
        objective, np.eye(p)[row, column], p - 1, free=diagonal, criterion=criterion
    )
    assert [(int(row[i]), int(column[i])) for i in found.support] == [
        (j, j + 1) for j in range(p - 1)
    ]
    assert found.coef[found.support] == pytest.approx(0.4, abs=0.1) and found.coef[
        diagonal
    ] == pytest.approx(1.0, abs=0.15)
    assert np.abs(objective(found.coef)[1][[*diagonal, *found.support]]).max() < 1e-5


@pytest.mark.parametrize(
    "changed, message",
    [
        ({"start": np.zeros((2, 2))}, "expected a vector"),
        ({"start": np.ones(12)}, "outside the free coordinates"),
        ({"free": [12]}, "from 0 to 11"),
        ({"n_features_to_select": 0}, "n_features_to_select=0"),
        ({"n_features_to_select": None}, "delta or epsilon"),
        ({"criterion": "x"}, "criterion='x'"),
        ({"epsilon": -1.0}, "epsilon=-1.0"),
        ({"tol": 0.0}, "tol=0.0"),
        ({"objective": lambda beta: (np.inf, beta)}, "inf at start"),
        ({"objective": lambda beta: (0.0, beta[:3])}, r"shape \(3,\)"),
    ],
)
def test_bad_input(table, changed, message):
    given = {
        "objective": least_squares(*table),
        "start": np.zeros(12),
        "n_features_to_select": 2,
    } | changed
    with pytest.raises(ValueError, match=message):
        forward_backward_minimise(**given)
