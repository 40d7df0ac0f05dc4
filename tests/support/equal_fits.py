"""Data and losses on which fits out of core must equal fits in memory."""

import numpy as np
from annealed.learners import FSARanker, FSARegressor

CASES = [
    ("binary", loss)
    for loss in ("logistic", "flipped_logistic", "huberised_hinge", "lorenz", "squared")
]
CASES += [
    ("classes", "multinomial"),
    ("classes", "lorenz"),
    ("number", "squared"),
    ("numbers", "squared"),
    ("grades", None),
]
ESTIMATORS = {
    "grades": FSARanker,
    "number": FSARegressor,
    "numbers": FSARegressor,
}  # the others are classified


def correlated_matrix(n_samples, n_features, seed=0):
    """Columns of different scales that share a term; column 5 is constant."""
    rng = np.random.default_rng(seed)
    X = rng.standard_normal((n_samples, n_features)) + rng.standard_normal((n_samples, 1))
    X = (X + rng.uniform(-3, 3, n_features)) * rng.uniform(0.1, 10, n_features)
    X[:, 5] = 3.7
    return X.astype(np.float32)


def targets(X, task):
    """Targets of a task that columns 9, 19 and 29 determine."""
    signal = (X / X.std(axis=0).clip(1e-9))[:, [9, 19, 29]].sum(axis=1)
    signal = signal - signal.mean()
    if task == "binary":
        return np.where(signal > 0, "yes", "no")
    if task == "classes":
        return np.digitize(signal, [-1.5, 1.5])
    if task == "grades":
        return np.digitize(signal, [-1.0, 1.0])
    return np.column_stack([signal, -2 * signal]) if task == "numbers" else signal


def assert_same_fit(a, b, tol=1e-5):
    """The same support, and the same numbers to rounding."""
    np.testing.assert_array_equal(a.support_, b.support_)
    for name in (
        "coef_",
        "responses_",
        "intercept_",
        "knots_",
        "missing_responses_",
        "loss_curve_",
    ):
        if hasattr(a, name):
            np.testing.assert_allclose(
                getattr(a, name), getattr(b, name), rtol=tol, atol=tol, err_msg=name
            )
