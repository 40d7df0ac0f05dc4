"""The papers' simulated claims, with the shipped defaults unless a setting is named. Ten runs; a
hundred are marked slow."""

import numpy as np
import pytest
from annealed.learners import FSAClassifier, FSARegressor, Schedule
from annealed_experiments.tables.simulated import simulate


def _detection(task, n, m, k, runs, label_noise=0.0, **settings):
    estimator = FSAClassifier if task == "classification" else FSARegressor
    found = []
    for run in range(runs):
        data = simulate(task, n, m, k, label_noise=label_noise, random_state=50_000 + run)
        found.append(
            data.found(estimator(k, **settings).fit(data.X, data.y).get_support(indices=True))
        )
    return np.mean(np.array(found) == 1)


RUNS = [10, pytest.param(100, marks=pytest.mark.slow)]


@pytest.mark.parametrize("runs", RUNS)
@pytest.mark.parametrize("loss", ["auto", "logistic", "huberised_hinge", "lorenz"])
def test_all_variables_are_found_in_classification(loss, runs):
    assert _detection("classification", 1000, 1000, 10, runs, loss=loss) >= 0.99


@pytest.mark.parametrize("runs", RUNS)
def test_all_variables_are_found_in_regression(runs):
    assert _detection("regression", 1000, 1000, 30, runs) == 1.0


@pytest.mark.parametrize(
    "loss, rate, mu",
    [
        ("logistic", 10.0, 300.0),
        ("huberised_hinge", 1.0, 300.0),
        ("lorenz", 1.0, 100.0),
        ("flipped_logistic", 3.0, 100.0),
    ],
)
def test_annealing_alone_finds_them_too(loss, rate, mu):
    """The papers' loop, 500 steps, nothing after it."""
    settings = {
        "loss": loss,
        "learning_rate": rate,
        "schedule": Schedule(mu=mu, n_steps=500),
        "refinement": None,
    }
    found = _detection("classification", 1000, 1000, 10, 10, **settings)
    assert found == 1.0


@pytest.mark.parametrize(
    "n, k, label_noise, least", [(300, 10, 0.0, 0.6), (1000, 30, 0.0, 0.6), (1000, 10, 0.1, 0.8)]
)
def test_one_default_serves_clean_and_noisy_labels(n, k, label_noise, least):
    """Detection rates of 100 runs are 0.8, 0.9 and 0.98; the bounds allow for ten runs."""
    assert _detection("classification", n, 1000, k, 10, label_noise) >= least


def test_generators_have_the_stated_moments():
    data = simulate("regression", 20_000, 60, 5, random_state=0)
    lag = np.abs(np.subtract.outer(np.arange(60), np.arange(60)))
    np.testing.assert_allclose(np.corrcoef(data.X.T), 0.9**lag, atol=0.04)
    np.testing.assert_allclose(data.X.std(axis=0), 1.0, atol=0.03)
    assert data.support.tolist() == [9, 19, 29, 39, 49]
    assert np.std(data.y - data.X[:, data.support] @ data.coef) == pytest.approx(1.0, abs=0.03)
    equal = simulate(
        "classification", 20_000, 20, 2, columns="equicorrelated", label_noise=0.1, random_state=0
    )
    np.testing.assert_allclose(np.corrcoef(equal.X.T)[~np.eye(20, dtype=bool)], 0.5, atol=0.03)
    assert np.mean(equal.y != np.sign(equal.X[:, equal.support].sum(axis=1))) == pytest.approx(
        0.05, abs=0.01
    )


@pytest.mark.parametrize(
    "arguments, message",
    [
        (("ranking", 10, 10, 1), "task='ranking' is unknown"),
        (("regression", 10, 10, 2), "n_features=10 is too small for k=2"),
    ],
)
def test_bad_arguments_are_named(arguments, message):
    with pytest.raises(ValueError, match=message):
        simulate(*arguments)
    with pytest.raises(ValueError, match="columns='ma' is unknown"):
        simulate("regression", 10, 10, 1, columns="ma")
