"""Priors: numbers by hand, derivatives by finite differences, what they do to a fit."""

import numpy as np
import pytest
from annealed.learners import FSAClassifier, FSARegressor, PiecewiseLinear, Prior
from hypothesis import given, settings
from hypothesis import strategies as st

PRIORS = [
    Prior(shrinkage=0.3),
    Prior(second_order=0.7),
    Prior(total_variation=0.5, huber=0.2),
    Prior(shrinkage=0.1, second_order=0.2, total_variation=0.4, huber=0.05),
]


def test_values_by_hand():
    curve = np.array([0.0, 1.0, 1.1, 0.0])[None, :, None]
    assert Prior(shrinkage=2).value(curve, 4) == pytest.approx(2 * (1 + 1.21))
    assert Prior(second_order=3).value(curve, 4) == pytest.approx(3 * (0.9**2 + 1.2**2))
    # Huber of half width 0.2: steps 1, 0.1, 1.1 count 0.9, 0.025, 1.0
    assert Prior(total_variation=1, huber=0.2).value(curve, 4) == pytest.approx(0.9 + 0.025 + 1.0)


@pytest.mark.parametrize("prior", PRIORS)
@pytest.mark.parametrize("n_knots, width", [(5, 5), (5, 6), (1, 1), (2, 3)])
def test_gradient_is_the_slope_of_the_value(prior, n_knots, width):
    coef = np.random.default_rng(0).standard_normal((3, width, 2))
    slope = np.empty_like(coef)
    for place in np.ndindex(coef.shape):
        step = np.zeros_like(coef)
        step[place] = 1e-6
        slope[place] = (
            prior.value(coef + step, n_knots) - prior.value(coef - step, n_knots)
        ) / 2e-6
    assert np.allclose(prior.gradient(coef, n_knots), slope, atol=1e-6)


@settings(max_examples=50, deadline=None)
@given(seed=st.integers(0, 1000), which=st.sampled_from(range(len(PRIORS))))
def test_curvature_bounds_the_hessian(seed, which):
    prior, rng = PRIORS[which], np.random.default_rng(seed)
    coef, step = rng.standard_normal((2, 1, 6, 1))
    step *= 0.3
    model = (
        prior.value(coef, 5)
        + np.vdot(prior.gradient(coef, 5), step)
        + 0.5 * step[0, :, 0] @ prior.curvature(5, 6) @ step[0, :, 0]
    )
    assert prior.value(coef + step, 5) <= model + 1e-9


def test_the_missing_value_is_shrunk_but_not_smoothed():
    coef = np.zeros((1, 5, 1))
    coef[0, -1] = 100.0
    for prior in (Prior(second_order=1), Prior(total_variation=1)):
        assert prior.value(coef, 4) == 0 and not prior.gradient(coef, 4).any()


def stepped(n=400):
    rng = np.random.default_rng(0)
    X = rng.uniform(size=(n, 5))
    return X, np.sign(X[:, 2] - 0.5) + 0.5 * rng.standard_normal(n)


def responses(prior):
    X, y = stepped()
    model = FSARegressor(1, response=PiecewiseLinear(20), prior=prior).fit(X, y)
    assert list(model.get_support(indices=True)) == [2]
    return model.responses_[0, :, 0]


def test_second_order_makes_curves_smooth_and_shrinkage_makes_them_low():
    def bend(curve):
        return np.abs(np.diff(curve, 2)).sum()

    free = responses(None)
    assert bend(responses(Prior(second_order=0.05))) < 0.5 * bend(free)
    assert np.ptp(responses(Prior(shrinkage=1.0))) < 0.5 * np.ptp(free)


def test_total_variation_flattens_but_keeps_the_jump():
    free, flat = responses(None), responses(Prior(total_variation=0.02, huber=0.01))
    assert np.abs(np.diff(flat)).sum() < 0.75 * np.abs(np.diff(free)).sum()
    jump = np.abs(np.diff(flat))
    assert jump[8:12].sum() > 0.6 * jump.sum()  # most of what is left lies in the middle


@pytest.mark.parametrize("second_order", [0.1, 10.0])
@pytest.mark.parametrize("estimator", [FSAClassifier, FSARegressor])
def test_a_strong_second_order_prior_still_finds_linear_responses(estimator, second_order):
    rng = np.random.default_rng(0)
    X = rng.normal(size=(400, 20))
    y = X[:, :3] @ np.array([2.0, -2.0, 1.0])
    y = np.sign(y) if estimator is FSAClassifier else y
    model = estimator(3, response="piecewise", prior=Prior(second_order=second_order)).fit(X, y)
    np.testing.assert_array_equal(model.get_support(indices=True), [0, 1, 2])
    assert model.score(X, y) > 0.95
