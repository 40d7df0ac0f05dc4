"""Linear discriminant analysis with a shrunken covariance, and its mean with a fit."""

import numpy as np
import pytest
from annealed.learners import FSAClassifier, Refinement
from annealed.learners.solvers.discriminant import shrunken_discriminant
from sklearn.covariance import ledoit_wolf_shrinkage
from sklearn.discriminant_analysis import LinearDiscriminantAnalysis


def few(seed=0, n=60, p=8, q=4):
    rng = np.random.default_rng(seed)
    y = np.arange(n) % q
    return rng.standard_normal((n, p)) @ rng.standard_normal((p, p)) + 2.0 * rng.standard_normal(
        (q, p)
    )[y], y


def test_scores_are_those_of_scikit_learn_with_the_shrinkage_of_ledoit_and_wolf():
    X, y = few()
    means = np.array([X[y == c].mean(axis=0) for c in range(4)])
    shrinkage = ledoit_wolf_shrinkage(X - means[y], assume_centered=True)
    theirs = LinearDiscriminantAnalysis(solver="lsqr", shrinkage=shrinkage).fit(X, y)
    coef, intercept = shrunken_discriminant(X, np.eye(4)[y], np.full(60, 1 / 60), 60.0)
    ours = X @ coef + intercept
    np.testing.assert_allclose(ours, theirs.decision_function(X), rtol=1e-3, atol=1e-3)


def test_a_row_of_weight_two_is_two_rows():
    X, y = few()
    rows = np.append(np.arange(60), [3, 4])
    weight = np.bincount(rows) / 62
    for ours, repeated in zip(
        shrunken_discriminant(X, np.eye(4)[y], weight, 62.0),
        shrunken_discriminant(X[rows], np.eye(4)[y[rows]], np.full(62, 1 / 62), 62.0),
        strict=True,
    ):
        np.testing.assert_allclose(ours, repeated, rtol=1e-9)


def test_columns_that_do_not_vary_within_classes():
    members = np.eye(3)[np.arange(30) % 3]
    coef, intercept = shrunken_discriminant(members[:, :2], members, np.full(30, 1 / 30), 30.0)
    assert ((members[:, :2] @ coef + intercept).argmax(axis=1) == np.arange(30) % 3).all()


@pytest.mark.parametrize("q", [2, 4])
def test_the_scores_of_the_estimator_are_the_mean_of_both(q):
    X, y = few(q=q, p=20)
    plain = FSAClassifier(5).fit(X, y)
    mean = FSAClassifier(5, refinement=Refinement(discriminant=True)).fit(X, y)
    assert np.array_equal(plain.support_, mean.support_)
    done, reason = plain.refinement_.split("; ")
    assert mean.refinement_ == f"{done}, mean with linear discriminant analysis; {reason}"
    kept = np.flatnonzero(plain.support_)
    unit = X[:, kept].std(axis=0)
    coef, intercept = shrunken_discriminant(
        (X[:, kept] - X[:, kept].mean(axis=0)) / unit, np.eye(q)[y], np.full(60, 1 / 60), 60.0
    )
    scores = (X[:, kept] - X[:, kept].mean(axis=0)) / unit @ coef + intercept
    scores = scores[:, 1] - scores[:, 0] if q == 2 else scores
    np.testing.assert_allclose(
        mean.decision_function(X), (plain.decision_function(X) + scores) / 2, rtol=1e-5, atol=1e-5
    )


def test_several_classes_of_few_rows_err_less():
    wrong = np.zeros(2)
    for seed in range(6):
        rng = np.random.default_rng(seed)
        centres, y = rng.standard_normal((5, 40)) * (np.arange(40) < 15), np.arange(2000) % 5
        X = centres[y] + 1.5 * rng.standard_normal((2000, 40)) + rng.standard_normal((2000, 1))
        for i, discriminant in enumerate((False, True)):
            model = FSAClassifier(15, refinement=Refinement(discriminant=discriminant)).fit(
                X[:60], y[:60]
            )
            wrong[i] += 1 - model.score(X[60:], y[60:])
    assert wrong[1] < wrong[0]


def test_other_losses_and_targets_that_are_numbers_leave_it_out():
    X, y = few(q=2)
    for loss in ("huberised_hinge", "squared"):
        fits = [
            FSAClassifier(3, loss=loss, refinement=Refinement(discriminant=d)).fit(X, y)
            for d in (False, True)
        ]
        np.testing.assert_array_equal(fits[0].coef_, fits[1].coef_)
