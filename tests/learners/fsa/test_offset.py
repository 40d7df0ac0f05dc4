"""Offsets of the scores and the losses with a log link: against iteratively reweighted least
squares, and their errors."""

import numpy as np
import pytest
import scipy.sparse as sp
import scipy.stats
from annealed.learners import (
    ExponentialLoss,
    FSAClassifier,
    FSAClassifierCV,
    FSAPath,
    FSARegressor,
    FSARegressorCV,
    Loss,
    NegativeBinomialLoss,
    Refinement,
    TweedieLoss,
    on_disk,
)
from scipy.special import expit
from sklearn.metrics import d2_tweedie_score

TRUE = [3, 20, 41]
EXACT = Refinement(ridge=1e-9)  # a ridge of 5e-5 remains
# Loss, and the variance as a function of the mean
FAMILIES = {
    "poisson": ("poisson", lambda mean: mean),
    "gamma": ("gamma", lambda mean: mean**2),
    "tweedie": (TweedieLoss(1.6), lambda mean: mean**1.6),
    "negative binomial": (NegativeBinomialLoss(0.5), lambda mean: mean + 0.5 * mean**2),
}


def _maximum_likelihood(A, y, offset, mean_of, slope_of, variance, start=0.0):
    """Coefficients of a generalised linear model by Fisher scoring."""
    beta = np.append(start, np.zeros(A.shape[1] - 1))
    for _ in range(100):
        mean = mean_of(A @ beta + offset)
        slope = slope_of(mean)
        weight = slope / variance(mean)
        beta = beta + np.linalg.solve(
            A.T @ ((weight * slope)[:, None] * A), A.T @ (weight * (y - mean))
        )
    return beta


def _claims(kind, n=1500, m=60, unit=1.0):
    """Columns, targets and the logarithm of an exposure between 0.02 and 1."""
    rng = np.random.default_rng(7)
    X, exposure = rng.standard_normal((n, m)), rng.uniform(0.02, 1.0, n)
    mean = 3.0 * exposure * np.exp(0.6 * X[:, 3] - 0.5 * X[:, 20] + 0.4 * X[:, 41])
    counts = rng.poisson(mean * (rng.gamma(2.0, 0.5, n) if kind == "negative binomial" else 1.0))
    if kind == "gamma":
        y = rng.gamma(2.0, mean / 2.0)
    else:
        amounts = rng.gamma(2.0 * np.maximum(counts, 1e-9)) * (counts > 0)
        y = amounts if kind == "tweedie" else counts
    return X, unit * y.astype(float), np.log(exposure)


@pytest.mark.parametrize("kind", FAMILIES)
def test_true_columns_and_their_maximum_likelihood(kind):
    X, y, offset = _claims(kind)
    loss, variance = FAMILIES[kind]
    model = FSARegressor(3, loss=loss, refinement=EXACT).fit(X, y, offset=offset)
    assert model.get_support(indices=True).tolist() == TRUE
    A = np.column_stack([np.ones(len(y)), X[:, TRUE]])
    expected = _maximum_likelihood(A, y, offset, np.exp, lambda mean: mean, variance, 1.0)
    np.testing.assert_allclose(np.append(model.intercept_, model.coef_[TRUE]), expected, 3e-3)
    prediction = model.predict(X, offset)
    np.testing.assert_allclose(prediction, np.exp(A @ expected + offset), rtol=1e-2)
    if kind == "negative binomial":

        def deviance(mean):
            theta = 2.0
            density = scipy.stats.nbinom.logpmf
            top = density(y, theta, theta / (theta + np.maximum(y, 1e-9)))
            return (top - density(y, theta, theta / (theta + mean))).sum()

        score = 1.0 - deviance(prediction) / deviance(np.full(len(y), y.mean()))
    else:
        score = d2_tweedie_score(y, prediction, power=model.loss_.power)
    assert model.score(X, y, offset=offset) == pytest.approx(score, rel=1e-6)


def test_the_unit_of_amounts_does_not_change_the_size_of_the_criterion():
    X, y, offset = _claims("tweedie", unit=5000.0)
    model = FSARegressor("auto", loss="tweedie").fit(X, y, offset=offset)
    assert model.get_support(indices=True).tolist() == TRUE


def test_offset_of_a_residual_is_subtracted():
    X, y, offset = _claims("gamma")
    for loss in ("squared", "huber", "quantile"):
        model = FSARegressor(3, loss=loss).fit(X, y, offset=offset)
        other = FSARegressor(3, loss=loss).fit(X, y - offset)
        np.testing.assert_array_equal(model.coef_, other.coef_)
        np.testing.assert_array_equal(model.predict(X, offset), other.predict(X) + offset)


def test_offset_of_two_and_of_several_classes():
    rng = np.random.default_rng(1)
    X, offset = rng.standard_normal((1500, 40)), 2.0 * rng.standard_normal(1500)
    p = 1.0 / (1.0 + np.exp(-(X[:, 3] - X[:, 20] + offset)))
    y = rng.random(1500) < p
    model = FSAClassifier(2, loss="logistic", refinement=EXACT).fit(X, y, offset=offset)
    A = np.column_stack([np.ones(len(y)), X[:, [3, 20]]])
    expected = _maximum_likelihood(
        A, y, offset, expit, lambda p: p * (1.0 - p), lambda p: p * (1.0 - p)
    )
    np.testing.assert_allclose(np.append(model.intercept_, model.coef_[0, [3, 20]]), expected, 3e-3)
    np.testing.assert_allclose(
        model.predict_proba(X, offset)[:, 1], expit(A @ expected + offset), rtol=1e-2
    )
    assert np.mean(model.predict(X, offset) == y) > 0.8
    default = FSAClassifier(2).fit(X, y, offset=offset)
    np.testing.assert_allclose(default.coef_, model.coef_, atol=0.15)
    # A third class; its scores have an offset too
    scores = np.column_stack([X[:, 3], X[:, 20], -X[:, 3]]) + 3.0 * rng.standard_normal((1500, 3))
    several, shift = scores.argmax(axis=1), rng.standard_normal((1500, 3))
    chosen = FSAClassifier(2, loss="multinomial").fit(X, several, offset=shift)
    assert chosen.get_support(indices=True).tolist() == [3, 20]
    assert chosen.predict(X, shift).shape == (1500,)
    with pytest.raises(ValueError, match="expected 3 numbers for each of the 1500 rows"):
        chosen.predict(X, offset)


@pytest.mark.parametrize("kind", ["dense", "sparse", "out of core", "piecewise"])
def test_a_constant_offset_moves_the_intercept_alone(kind, tmp_path):
    X, y, _ = _claims("poisson", n=600)
    options = {"response": "piecewise"} if kind == "piecewise" else {}
    if kind == "sparse":
        X = sp.csr_array(np.where(abs(X) > 0.5, X, 0.0))
    elif kind == "out of core":
        np.save(tmp_path / "X.npy", X)
        X = on_disk(tmp_path / "X.npy", memory_limit="1MB")
    models = [
        FSARegressor(3, loss="poisson", **options).fit(X, y, offset=offset)
        for offset in (None, np.full(600, 1.5))
    ]
    np.testing.assert_array_equal(models[0].support_, models[1].support_)
    np.testing.assert_allclose(
        models[1].predict(X, np.full(600, 1.5)), models[0].predict(X), rtol=1e-4
    )


def test_paths_and_sizes_by_cross_validation_with_an_offset():
    X, y, offset = _claims("poisson", n=800, m=50)
    path = FSAPath(FSARegressor(loss="poisson"), [1, 2, 3, 4]).fit(X, y, offset=offset)
    assert path.best_size_ == 3
    for criterion in ("cv", "ebic"):
        model = FSARegressorCV([1, 3, 6], loss="poisson", criterion=criterion)
        model.fit(X, y, offset=offset)
        assert model.n_features_ == 3
    classes = FSAClassifierCV([1, 2, 6]).fit(X, y > 1, offset=offset)
    assert classes.predict_proba(X, offset).shape == (800, 2)
    with pytest.raises(ValueError, match="does not support an offset; use scoring=None"):
        FSARegressorCV([1, 3], scoring="r2").fit(X, y, offset=offset)


def test_custom_loss_without_bounded_curvature():
    class Exponential(Loss):
        """Gamma loss as a user writes it."""

        target_scaling, max_curvature, link = None, np.inf, "log"

        def value(self, y, scores, sample_weight):
            return float(sample_weight @ (y * np.exp(-scores) + scores).sum(axis=1))

        def gradient(self, y, scores, sample_weight):
            return (1.0 - y * np.exp(-scores)) * sample_weight[:, None]

        def curvature(self, y, scores, sample_weight):
            return y * np.exp(-scores) * sample_weight[:, None]

        def best_constant(self, y, sample_weight):
            return np.log(sample_weight @ y)

    X, y, offset = _claims("gamma")
    model = FSARegressor(3, loss=Exponential()).fit(X, y, offset=offset)
    other = FSARegressor(3, loss="gamma").fit(X, y, offset=offset)
    np.testing.assert_allclose(model.coef_, other.coef_, atol=1e-6)
    Exponential.has_curvature = False
    with pytest.raises(
        ValueError,
        match="expected a loss with a finite max_curvature or, for FSA, with a curvature",
    ):
        FSARegressor(3, loss=Exponential()).fit(X, y)


@pytest.mark.parametrize(
    "loss, y, offset, message",
    [
        ("poisson", [1.0, -2.0, 3.0], None, "-2; expected non-negative counts for loss='poisson'"),
        ("gamma", [1.0, 0.0, 3.0], None, "0; expected positive amounts for loss='gamma'"),
        ("tweedie", [1.0, -1.0, 3.0], None, "-1; expected non-negative amounts"),
        (
            "negative_binomial",
            [0.0, 0.0, 0.0],
            None,
            "0 everywhere; expected at least one positive number",
        ),
        ("tweedie", [1.0, np.nan, 3.0], None, "y contains NaN"),
        ("gamma", [1.0, np.inf, 3.0], None, "y contains infinity"),
        (TweedieLoss(2.5), [1.0, 2.0, 3.0], None, r"power=2.5 .* expected a number in \[1, 2\]"),
        (NegativeBinomialLoss(0), [1.0, 2.0, 3.0], None, "dispersion=0 .* a number > 0"),
        ("poisson", [1.0, 2.0, 3.0], [0.0, np.nan, 0.0], "offset contains NaN"),
        ("poisson", [1.0, 2.0, 3.0], [0.0, -np.inf, 0.0], "offset contains infinity"),
        ("poisson", [1.0, 2.0, 3.0], [0.0, 1.0], r"offset has shape \(2,\); expected 1 number for"),
    ],
)
def test_bad_targets_and_offsets(loss, y, offset, message):
    with pytest.raises(ValueError, match=message):
        FSARegressor(1, loss=loss).fit(np.eye(3), y, offset=offset)


def test_predictions_need_the_offset_again():
    X, y, offset = _claims("poisson", n=300)
    model = FSARegressor(3, loss="poisson").fit(X, y, offset=offset)
    for method in (model.predict, lambda X: model.score(X, y)):
        with pytest.raises(ValueError, match="was fitted with an offset; pass offset"):
            method(X)
    with pytest.raises(ValueError, match=r"shape \(7,\); expected 1 number for each of the 300"):
        model.predict(X, offset[:7])
    model.fit(X, y)
    assert model.predict(X).shape == (300,)


def test_exponential_loss_of_two_classes():
    X, y, _ = _claims("poisson", n=600)
    labels = y > 1
    model = FSAClassifier(3, loss=ExponentialLoss()).fit(X, labels)
    assert model.get_support(indices=True).tolist() == TRUE
    assert model.score(X, labels) > 0.65  # the logistic loss: 0.69
