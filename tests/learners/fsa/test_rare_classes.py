"""Probabilities of rare classes with the default loss: never worse than a constant, and of about
the right size."""

import warnings

import numpy as np
import pytest
import scipy.sparse as sp
from annealed.learners import FSAClassifier, FSAClassifierCV
from annealed.learners.objective.losses import FlippedLogisticLoss
from annealed.models import TabularModel
from sklearn.metrics import log_loss

SHARES = [0.001, 0.005, 0.01, 0.02, 0.05, 0.2, 0.5]


def rare(share, n_rows=2000, n_classes=2, seed=0):
    """One column is higher by 1.5 in each class but the first, which has all rows but a ``share``
    for each other one."""
    rng = np.random.default_rng(seed)
    X, y = rng.standard_normal((n_rows, 20)), np.zeros(n_rows, int)
    n_rare = max(2, round(n_rows * share))
    for label in range(1, n_classes):
        rows = slice((label - 1) * n_rare, label * n_rare)
        y[rows] = label
        X[rows, 4 * label] += 1.5
    return X, y


def loss_of_constant(y, weight=None):
    shares = np.bincount(y, weight) / np.sum(np.ones(len(y)) if weight is None else weight)
    return -np.sum(shares * np.log(shares))


@pytest.mark.filterwarnings("ignore:class 1 has")
@pytest.mark.parametrize("share", SHARES)
@pytest.mark.parametrize("kind", ["dense", "sparse", "weights", "cv", "piecewise"])
def test_training_log_loss_is_not_above_that_of_a_constant(share, kind):
    X, y = rare(share)
    weight = np.random.default_rng(1).uniform(0.5, 2.0, len(y)) if kind == "weights" else None
    model = (
        FSAClassifierCV([1, 2, 3], cv=2)
        if kind == "cv"
        else FSAClassifier(3, response="piecewise" if kind == "piecewise" else "linear")
    )
    p = model.fit(
        sp.csr_matrix(X) if kind == "sparse" else X, y, sample_weight=weight
    ).predict_proba(X)[:, 1]
    assert log_loss(y, p, sample_weight=weight) <= loss_of_constant(y, weight)
    assert p @ (np.ones(len(y)) if weight is None else weight) == pytest.approx(
        y @ (np.ones(len(y)) if weight is None else weight), rel=0.15
    )


@pytest.mark.parametrize("share", SHARES)
def test_fits_out_of_core_as_in_memory(share, tmp_path):
    from annealed.learners import on_disk

    X, y = rare(max(share, 0.01))
    np.save(tmp_path / "X.npy", X)
    p = FSAClassifier(3).fit(on_disk(tmp_path / "X.npy"), y).predict_proba(X)
    assert log_loss(y, p) <= loss_of_constant(y)


@pytest.mark.filterwarnings("ignore:class .* has")
@pytest.mark.parametrize("share", [0.001, 0.01, 0.1, 0.3])
def test_several_classes(share):
    X, y = rare(share, n_classes=3)
    p = FSAClassifier(3).fit(X, y).predict_proba(X)
    assert log_loss(y, p) <= loss_of_constant(y)
    np.testing.assert_allclose(p.mean(axis=0), np.bincount(y) / len(y), rtol=1e-4)


@pytest.mark.parametrize("share", [0.005, 0.02, 0.1, 0.5])
@pytest.mark.parametrize("seed", range(3))
def test_as_good_as_the_logistic_loss_on_the_same_columns(share, seed):
    X, y = rare(share, seed=seed)
    X_test, y_test = rare(share, 20_000, seed=seed + 100)
    model = FSAClassifier(3).fit(X, y)
    columns = model.get_support(indices=True)
    logistic = FSAClassifier(3, loss="logistic").fit(X[:, columns], y)
    ours, theirs = (
        log_loss(y_test, model.predict_proba(X_test)),
        log_loss(y_test, logistic.predict_proba(X_test[:, columns])),
    )
    assert ours <= 1.05 * theirs


def test_flips_are_at_most_a_tenth_of_the_rarest_weighted_share():
    X, y = rare(0.01)
    assert FSAClassifier(3).fit(X, y).loss_.flip == pytest.approx(0.001)
    assert FSAClassifier(3, loss="flipped_logistic").fit(X, y).loss_.flip == pytest.approx(0.001)
    assert FSAClassifier(3, class_weight="balanced").fit(X, y).loss_.flip == pytest.approx(0.02)
    weight = np.where(y == 1, 5.0, 1.0)
    assert FSAClassifier(3).fit(X, y, sample_weight=weight).loss_.flip == pytest.approx(
        0.1 * 100 / (1980 + 100)
    )
    assert FSAClassifier(3, loss=FlippedLogisticLoss(0.02)).fit(X, y).loss_.flip == 0.02


def test_probabilities_are_those_of_the_fitted_likelihood():
    X, y = rare(0.5)
    model = FSAClassifier(3).fit(X, y)
    signed = np.where(y == 1, 1.0, -1.0)[:, None]
    value = model.loss_.value(
        signed, model.decision_function(X)[:, None], np.full(len(y), 1 / len(y))
    )
    assert log_loss(y, model.predict_proba(X)) == pytest.approx(value, rel=1e-9)
    assert (model.predict(X) == (model.predict_proba(X)[:, 1] > 0.5)).all()


def test_a_kept_model_has_the_same_probabilities(tmp_path):
    X, y = rare(0.05)
    model = FSAClassifier(3).fit(X, y)
    TabularModel.from_estimator(model).save(tmp_path / "model.safetensors")
    kept = TabularModel.load(tmp_path / "model.safetensors")
    np.testing.assert_allclose(kept.predict_proba(X), model.predict_proba(X), rtol=1e-12)


def test_a_class_of_less_than_ten_rows_is_said():
    X, y = rare(0.004)
    with pytest.warns(
        UserWarning, match=r"class 1 has only 8 of 2000 rows.*at least 10 rows are recommended"
    ):
        FSAClassifier(3).fit(X, y)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        FSAClassifier(3).fit(*rare(0.005))
