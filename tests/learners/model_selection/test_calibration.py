"""Probabilities of two classes, calibrated by out-of-fold scores."""

import numpy as np
import pytest
from annealed.learners import FSAClassifier, FSAClassifierCV
from annealed.learners.model_selection.calibration import calibrate
from annealed.models.tabular.model import TabularModel
from scipy.special import expit
from sklearn.metrics import log_loss


@pytest.mark.parametrize("slope, flip", [(0.4, 0.0), (1.0, 0.04), (2.0, 0.1)])
def test_the_numbers_of_simulated_labels_are_estimated(slope, flip):
    rng = np.random.default_rng(0)
    scores = 3.0 * rng.standard_normal(20_000)
    p = flip + (1 - 2 * flip) * expit(slope * scores)
    estimate = calibrate(scores, rng.random(len(p)) < p)
    assert estimate == pytest.approx((slope, flip), rel=0.15, abs=0.01)


def test_weights_are_copies_and_the_prior_decides_without_rows():
    rng = np.random.default_rng(1)
    scores, copies = rng.standard_normal(60), rng.integers(1, 4, 60)
    positive = scores + rng.logistic(size=60) > 0
    many = calibrate(np.repeat(scores, copies), np.repeat(positive, copies))
    assert calibrate(scores, positive, copies.astype(float)) == pytest.approx(many, rel=1e-3)
    assert calibrate(np.zeros(4), np.arange(4) < 2)[0] == pytest.approx(1.0, abs=1e-3)


def test_rows_without_an_error_do_not_give_certainty():
    scores = np.where(np.arange(40) < 20, -20.0, 20.0)
    assert calibrate(scores, scores > 0)[1] == 0.0025
    assert calibrate(np.repeat(scores, 100), np.repeat(scores > 0, 100))[1] == 1 / 8000


def noisy(n, seed=0):
    """Few rows of many columns, of which a plain fit is overconfident."""
    rng = np.random.default_rng(seed)
    X = rng.standard_normal((n + 2000, 200))
    y = 1.2 * X[:, 0] - X[:, 1] + rng.logistic(size=len(X)) > 0
    return X[:n], np.where(y, "yes", "no")[:n], X[n:], np.where(y, "yes", "no")[n:]


@pytest.mark.parametrize("loss", ["auto", "logistic", "multinomial", "huberised_hinge"])
def test_cross_validation_calibrates_two_classes_and_keeps_their_labels(loss):
    X, y, X_new, y_new = noisy(120)
    plain = FSAClassifier(5, loss=loss).fit(X, y)
    model = FSAClassifierCV([5], loss=loss).fit(X, y)
    assert np.array_equal(plain.coef_, model.coef_)
    assert np.array_equal(plain.predict(X_new), model.predict(X_new))
    p, before = model.predict_proba(X_new), plain.predict_proba(X_new)
    assert log_loss(y_new, p) < log_loss(y_new, before) - 0.02
    assert np.array_equal(model.classes_[p.argmax(axis=1)], model.predict(X_new))
    stored = TabularModel.from_estimator(model)
    assert (stored.slope, stored.flip) == model.calibration_
    assert np.allclose(stored.predict_proba(X_new), p)


def test_probabilities_leave_the_limits_of_the_flipped_loss_where_labels_are_clean():
    rng = np.random.default_rng(0)
    X = rng.standard_normal((600, 20))
    y = X[:, 0] - X[:, 1] > 0
    assert FSAClassifier(2).fit(X, y).predict_proba(X).max() < 0.981
    assert FSAClassifierCV([2]).fit(X, y).predict_proba(X).max() > 0.999


def test_several_classes_have_one_slope():
    rng = np.random.default_rng(0)
    scores = 4.0 * rng.standard_normal((5000, 3))
    codes = (0.25 * scores + rng.gumbel(size=scores.shape)).argmax(axis=1)
    assert calibrate(scores, codes) == pytest.approx((0.25, 0.0), rel=0.1)
    X, y, X_new, y_new = noisy(120)
    y, y_new = y + np.where(X[:, 2] > 0, "+", "-"), y_new + np.where(X_new[:, 2] > 0, "+", "-")
    plain, model = FSAClassifier(5).fit(X, y), FSAClassifierCV([5]).fit(X, y)
    p, before = model.predict_proba(X_new), plain.predict_proba(X_new)
    assert np.array_equal(plain.coef_, model.coef_) and model.calibration_[0] < 1.0
    assert log_loss(y_new, p) < log_loss(y_new, before) - 0.02
    assert np.allclose(TabularModel.from_estimator(model).predict_proba(X_new), p)


def test_no_calibration_by_a_criterion_and_none_of_an_earlier_fit():
    X, y, _, _ = noisy(120)
    model = FSAClassifierCV([2]).fit(X, y)
    assert model.calibration_ is not None
    assert model.set_params(criterion="ebic").fit(X, y).calibration_ is None
