"""
Path and number of columns
==========================

One annealing run passes through every number of columns, so a whole path costs little more than one
fit. Three of 200 columns have an effect here. The coefficients along the path show which, and
cross-validation determines their number.
"""

import numpy as np
from annealed.learners import FSAPath, FSARegressor, FSARegressorCV
from annealed.learners.plots import plot_path
from matplotlib import pyplot as plt

rng = np.random.default_rng(0)
X = rng.standard_normal((150, 200))
y = 2 * X[:, 10] - X[:, 20] + X[:, 30] / 2 + rng.standard_normal(150)

sizes = [1, 2, 3, 4, 6, 10, 20, 40]
path = FSAPath(FSARegressor(), sizes=sizes).fit(X, y)
search = FSARegressorCV(sizes=sizes, cv=5, rule="one_se").fit(X, y)

figure, (left, right) = plt.subplots(1, 2, figsize=(9, 3.5), layout="constrained")
plot_path(path, ax=left)
scores = search.cv_scores_
right.errorbar(sizes, scores.mean(axis=0), scores.std(axis=0) / np.sqrt(len(scores)), marker="o")
right.axvline(search.n_features_, color="0.6", linestyle=":")
right.set(xscale="log", xlabel="number of columns", ylabel="score on held-out rows (R²)")

print("chosen:", search.n_features_, "columns:", search.get_support(indices=True))
