"""Small problems of which the right columns are known."""

import numpy as np


def problem(n=200, m=30, seed=0, noise=0.3):
    rng = np.random.default_rng(seed)
    X = rng.standard_normal((n, m))
    return X, X[:, 3] - X[:, 7] + 0.7 * X[:, 11] + noise * rng.standard_normal(n)


def classes(n=300, m=30, seed=0):
    """Four classes by the signs of two columns."""
    X, _ = problem(n, m, seed)
    return X, np.array(["a", "b", "c", "d"])[2 * (X[:, 4] > 0) + (X[:, 9] > 0)]
