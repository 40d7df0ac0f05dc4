"""Small problems with known relevant columns."""

import numpy as np
import scipy.sparse as sp


def problem(n=200, m=30, seed=0, noise=0.3):
    rng = np.random.default_rng(seed)
    X = rng.standard_normal((n, m))
    return X, X[:, 3] - X[:, 7] + 0.7 * X[:, 11] + noise * rng.standard_normal(n)


def classes(n=300, m=30, seed=0):
    """Four classes by the signs of two columns."""
    X, _ = problem(n, m, seed)
    return X, np.array(["a", "b", "c", "d"])[2 * (X[:, 4] > 0) + (X[:, 9] > 0)]


def words(n=1500, n_words=4000, n_true=40, seed=0):
    """Counts of words by Zipf's law, thirty per document, labels -1 and +1, and the relevant
    words."""
    rng = np.random.default_rng(seed)
    law = 1 / np.arange(1, n_words + 1)
    counts = rng.multinomial(30, law / law.sum(), size=n)
    true = rng.choice(min(600, n_words), n_true, replace=False)
    scores = counts[:, true] @ (rng.choice([-1, 1], n_true) * rng.uniform(1, 2, n_true))
    y = np.where(rng.random(n) < 1 / (1 + np.exp(np.median(scores) - scores)), 1, -1)
    return sp.csr_array(counts.astype(float)), y, true
