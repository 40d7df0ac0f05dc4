"""Intervals of coefficients after selection."""

import numpy as np
import pytest
from annealed.learners import FSAClassifier, FSAInference, FSARegressor

COEF = np.array([1.0, -0.8, 0.6])


def draw(seed, task="numbers", n=240):
    rng = np.random.default_rng(seed)
    X = rng.standard_normal((n, 40)) + 0.5 * rng.standard_normal((n, 1))
    scores = X[:, :3] @ COEF
    y = (
        scores + rng.standard_normal(n)
        if task == "numbers"
        else (2 * scores + rng.logistic(size=n) > 0).astype(int)
    )
    return X, y


@pytest.mark.parametrize("task, factor", [("numbers", 1.0), ("classes", 2.0)])
def test_intervals_cover_the_true_coefficients(task, factor):
    inside, width = [], []
    for seed in range(40):
        X, y = draw(seed, task)
        found = FSAInference(
            (FSAClassifier if task == "classes" else FSARegressor)(3), random_state=seed
        ).fit(X, y)
        is_true = found.columns_ < 3
        truth = factor * COEF[found.columns_[is_true]]
        low, high = found.intervals_[is_true].T
        inside += ((low <= truth) & (truth <= high)).tolist()
        width.append(np.mean(high - low))
    assert 0.9 <= np.mean(inside) <= 0.995
    if task == "numbers":
        assert np.mean(width) < 1.5 * 2 * 1.96 / np.sqrt(
            240
        )  # both halves count: as narrow as a fit of all rows, nearly


def test_halves_that_select_say_how_often():
    X, y = draw(0)
    found = FSAInference(FSARegressor(4), n_splits=3, random_state=0).fit(X, y)
    assert found.columns_.shape == (4,) and found.intervals_.shape == (4, 2)
    assert (found.selection_frequencies_[:3] == 1).all() and found.selection_frequencies_[3] < 1
    wide = FSAInference(FSARegressor(4), n_splits=3, confidence=0.99, random_state=0).fit(X, y)
    np.testing.assert_array_equal(wide.coef_, found.coef_)
    assert (np.ptp(wide.intervals_, axis=1) > np.ptp(found.intervals_, axis=1)).all()


def test_units_of_columns_and_targets():
    X, y = draw(1)
    one = FSAInference(FSARegressor(3), random_state=0).fit(X, y)
    other = FSAInference(FSARegressor(3), random_state=0).fit(5 * X + 2, 10 * y - 7)
    np.testing.assert_allclose(other.intervals_, 2 * one.intervals_, rtol=1e-6)


@pytest.mark.parametrize(
    "inference, said",
    [
        (FSAInference(FSARegressor(3), confidence=1.0), "confidence=1.0 is not valid"),
        (FSAInference(FSARegressor(3), n_splits=0), "n_splits=0 is not valid"),
        (
            FSAInference(FSARegressor(3, response="piecewise")),
            "does not support intervals; expected linear responses",
        ),
        (
            FSAInference(FSARegressor(30)),
            "240 rows for 30 selected columns; expected at least 12 rows per column",
        ),
    ],
)
def test_bad_parameters(inference, said):
    with pytest.raises(ValueError, match=said):
        inference.fit(*draw(0))


def test_several_classes_have_none():
    X, y = draw(0)
    with pytest.raises(ValueError, match="one output"):
        FSAInference(FSAClassifier(3)).fit(X, np.digitize(y, [-1.0, 1.0]))
