"""Sparse Fourier estimators: columns that act together, probabilities, bad input."""

import numpy as np
import pytest
from annealed.learners import (
    SparseFourierClassifier,
    SparseFourierFeatures,
    SparseFourierRegressor,
    plots,
)
from annealed_experiments.kernels.neighbours import NeighbourFourierClassifier
from sklearn.utils.estimator_checks import parametrize_with_checks

FAST = {"n_steps": 600, "random_state": 0}


@parametrize_with_checks(
    [
        SparseFourierClassifier(**FAST),
        SparseFourierClassifier(likelihood="logistic", **FAST),
        SparseFourierRegressor(**FAST),
        SparseFourierRegressor(
            solver="annealed", n_bank=200, n_components=20, n_rounds=1, random_state=0
        ),
        NeighbourFourierClassifier(likelihood="logistic", n_steps=300, random_state=0),
        SparseFourierFeatures(5, n_bank=100, n_rounds=1, random_state=0),
    ]
)
def test_scikit_learn_checks(estimator, check):
    check(estimator)


def xor(n=300, p=40, seed=0):
    rng = np.random.default_rng(seed)
    X = rng.standard_normal((n, p))
    return X, np.where(X[:, 3] * X[:, 7] > 0, "same", "other")


@pytest.mark.parametrize("likelihood", ["gaussian", "logistic"])
def test_two_columns_that_act_together_are_found(likelihood):
    X, y = xor(600)
    model = SparseFourierClassifier(likelihood=likelihood, n_steps=6000, random_state=0).fit(
        X[:300], y[:300]
    )
    assert model.get_support(indices=True).tolist() == [3, 7]
    assert model.score(X[300:], y[300:]) > 0.85
    pair = model.transition_counts_[4, 8] + model.transition_counts_[8, 4]
    assert pair > 0.7 * model.transition_counts_[1:, 1:].sum()
    p = model.predict_proba(X[300:])
    np.testing.assert_allclose(p.sum(axis=1), 1.0)
    assert -np.log(p[np.arange(300), (y[300:] == "same").astype(int)]).mean() < 0.4


def test_the_description_is_in_units_of_the_data():
    X, y = xor()
    X = 1000.0 + 50.0 * X
    model = SparseFourierClassifier(**FAST).fit(X, y)
    phase = X @ model.frequencies_.T - model.phases_
    found = model.transform(X)
    np.testing.assert_allclose(found[:, ::2], np.cos(phase), atol=1e-8)
    np.testing.assert_allclose(found[:, 1::2], np.sin(phase), atol=1e-8)
    assert [tuple(row.nonzero()[1]) for row in model.frequencies_] == [
        tuple(sorted(atom)) for atom in model.atoms_
    ]
    assert model.coef_.shape == (1, 2 * len(model.atoms_)) and model.intercept_.shape == (1,)
    assert np.mean((found @ model.coef_[0] + model.intercept_[0] > 0) == (y == "same")) > 0.8


def test_a_seed_gives_one_model_whatever_the_jobs():
    X, y = xor()
    first, second, other = (
        SparseFourierClassifier(n_steps=500, n_chains=3, random_state=seed, n_jobs=jobs).fit(X, y)
        for seed, jobs in ((1, None), (1, 3), (2, None))
    )
    np.testing.assert_array_equal(first.traces_, second.traces_)
    np.testing.assert_array_equal(first.decision_function(X), second.decision_function(X))
    assert not np.array_equal(first.traces_, other.traces_)


def test_several_classes():
    rng = np.random.default_rng(0)
    X = rng.standard_normal((600, 30))
    y = np.array(["a", "b", "c"])[(X[:, 3] * X[:, 7] > 0) + 1 * (X[:, 5] > 0.5)]
    model = SparseFourierClassifier(n_steps=4000, random_state=0).fit(X[:400], y[:400])
    assert model.get_support(indices=True).tolist() == [3, 5, 7]
    assert model.score(X[400:], y[400:]) > 0.8
    assert model.coef_.shape[0] == 3 and model.n_components_.shape == (3, 2, 250)


def test_regression():
    rng = np.random.default_rng(0)
    X = rng.standard_normal((600, 40))
    y = 5.0 + 100.0 * np.sin(X[:, 3] * X[:, 7]) + 10.0 * rng.standard_normal(600)
    model = SparseFourierRegressor(n_steps=8000, random_state=0).fit(X[:400], y[:400])
    assert model.get_support(indices=True).tolist() == [3, 7]
    assert model.score(X[400:], y[400:]) > 0.7


def test_correlated_columns_share_a_group():
    X, y = xor(400)
    X[:, 20] = -X[:, 3] + 0.05 * np.random.default_rng(1).standard_normal(400)
    model = SparseFourierClassifier(n_steps=4000, n_chains=4, random_state=0).fit(X, y)
    assert model.groups_[3] == model.groups_[20] and len(np.unique(model.groups_)) == 39
    assert model.group_inclusion_probabilities_[model.groups_[[3, 7]]].min() > 0.95
    assert np.sum(model.group_inclusion_probabilities_ > 0.5) == 2


def test_rows_are_sampled_and_columns_blocked():
    X, y = xor(3000, 20)
    model = SparseFourierClassifier(n_steps=3000, max_samples=400, random_state=0).fit(X, y)
    assert model.get_support(indices=True).tolist() == [3, 7]


@pytest.mark.parametrize(
    "change, message",
    [
        ({"likelihood": "probit"}, "likelihood='probit' is unknown"),
        ({"n_steps": 0}, "n_steps=0 is not valid; expected an integer >= 1"),
        (
            {"n_steps": 100, "burn_in": 100},
            "burn_in=100 is not valid; expected an integer from 0 to 99",
        ),
        ({"screening": "quadruples"}, "screening='quadruples' is unknown"),
        ({"frequency_scale": 0.0}, "frequency_scale=0.0 is not valid; expected a number > 0"),
        ({"max_order": 0}, "max_order=0 is not valid"),
        ({"solver": "exact"}, "solver='exact' is unknown"),
        ({"n_bank": 0}, "n_bank=0 is not valid"),
        ({"n_jobs": 0}, "n_jobs=0 is not valid"),
        ({"max_samples": 0}, "max_samples=0 is not valid"),
        ({"group_correlation": 2.0}, "group_correlation=2.0 is not valid"),
    ],
)
def test_bad_parameters(change, message):
    X, y = xor(20)
    with pytest.raises(ValueError, match=message.replace("(", r"\(").replace(">", r"\>")):
        SparseFourierClassifier(**change).fit(X, y)


def test_triples_of_too_many_columns_are_refused():
    X = np.random.default_rng(0).standard_normal((10, 401))
    with pytest.raises(
        ValueError, match="X has 401 columns, but screening='triples' supports at most 400"
    ):
        SparseFourierClassifier(screening="triples").fit(X, np.arange(10) % 2)


def test_bad_data():
    X, y = xor(20)
    with pytest.raises(ValueError, match="only one class"):
        SparseFourierClassifier(**FAST).fit(X, np.ones(20))
    X[0, 0] = np.nan
    with pytest.raises(ValueError, match="NaN"):
        SparseFourierClassifier(**FAST).fit(X, y)


@pytest.mark.filterwarnings("error")
def test_small_and_extreme_tables():
    rng = np.random.default_rng(0)
    y = np.arange(5) % 2
    tables = (
        rng.standard_normal((5, 3)),
        rng.standard_normal((5, 1)),
        np.ones((5, 3)),
        1e300 * rng.standard_normal((5, 3)),
        1e-300 * rng.standard_normal((5, 3)),
        np.array([[0, 0, 0, 0, 1e200], [1, 1, 1, 1, 1]]).T,
    )
    for X in tables:
        for likelihood in ("gaussian", "logistic"):
            model = SparseFourierClassifier(likelihood=likelihood, screening="triples", **FAST).fit(
                X, y
            )
            assert np.isfinite(model.predict_proba(1e5 * X)).all()
        assert np.isfinite(SparseFourierRegressor(**FAST).fit(X, 1e100 * y).predict(X)).all()
    assert not SparseFourierClassifier(**FAST).fit(np.ones((5, 3)), y).get_support().any()
    assert SparseFourierRegressor(**FAST).fit(tables[0], np.full(5, 3.0)).predict(
        tables[0]
    ) == pytest.approx(3.0)


def test_noise_selects_nothing():
    found = []
    for seed in range(5):
        rng = np.random.default_rng(seed)
        X = rng.standard_normal((200, 100))
        y = rng.integers(0, 2, 200)
        found.append(
            SparseFourierClassifier(n_steps=6000, random_state=seed).fit(X, y).get_support().sum()
        )
    assert np.mean(found) <= 1.0


@pytest.mark.parametrize("solver", ["annealed", "annealed+mcmc"])
@pytest.mark.parametrize("likelihood", ["gaussian", "logistic"])
def test_the_annealed_bank(solver, likelihood):
    X, y = xor(600, 100)
    settings = {
        "solver": solver,
        "likelihood": likelihood,
        "n_bank": 2000,
        "n_steps": 4000,
        "random_state": 0,
    }
    model = SparseFourierClassifier(**settings).fit(X[:300], y[:300])
    assert {3, 7} <= set(model.get_support(indices=True).tolist())
    assert model.score(X[300:], y[300:]) > 0.8


def test_features_for_a_linear_model():
    X, y = xor(600, 100)
    transformer = SparseFourierFeatures(10, n_bank=2000, random_state=0)
    found = transformer.fit_transform(X, y)
    assert found.shape == (600, 20) and {3, 7} <= set(
        transformer.get_support(indices=True).tolist()
    )
    np.testing.assert_allclose(
        found[:, ::2], np.cos(X @ transformer.frequencies_.T - transformer.phases_), atol=1e-8
    )
    again = SparseFourierFeatures(10, n_bank=2000, random_state=0).fit(X, y)
    np.testing.assert_array_equal(again.transform(X), found)


def test_the_discriminant_of_the_neighbours():
    X, y = xor(600, 10)
    model = NeighbourFourierClassifier(likelihood="logistic", n_steps=3000, random_state=0).fit(
        X[:200], y[:200]
    )
    assert {3, 7} <= set(model.get_support(indices=True).tolist())
    assert model.score(X[200:], y[200:]) > 0.75


def test_three_way_parity_needs_triples():
    rng = np.random.default_rng(0)
    signs = rng.choice([-1.0, 1.0], (1600, 2))
    y = rng.choice([-1.0, 1.0], 1600)
    X = rng.standard_normal((1600, 30))
    X[:, :3] = np.column_stack([signs, signs.prod(axis=1) * y]) + 0.5 * X[:, :3]
    model = SparseFourierClassifier(screening="triples", n_steps=6000, random_state=0).fit(
        X[:1000], y[:1000]
    )
    assert model.get_support(indices=True).tolist() == [0, 1, 2]
    assert model.score(X[1000:], y[1000:]) > 0.88


def test_pictures():
    X, y = xor()
    model = SparseFourierClassifier(n_steps=4000, random_state=0).fit(X, y)
    ax = plots.plot_inclusion(model, n_features=5)
    assert [label.get_text() for label in ax.get_xticklabels()][:2] == ["column 3", "column 7"]
    assert len(plots.plot_interactions(model).lines) >= 1
    assert len(plots.plot_chains(model)[0].lines) == 3
    with pytest.raises(ValueError, match="has no chains"):
        plots.plot_chains(
            SparseFourierClassifier(solver="annealed", n_bank=100, random_state=0).fit(X, y)
        )
