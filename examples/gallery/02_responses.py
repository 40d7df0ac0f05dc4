"""
Response curves
===============

``response="piecewise"`` fits a curve instead of a line to every selected column. Missing values
(NaN) have their own response.
"""

import numpy as np
from annealed.learners import FSARegressor, PiecewiseLinear, Prior
from annealed.learners.plots import plot_responses

rng = np.random.default_rng(0)
X = rng.uniform(-3, 3, (600, 50))
y = np.sin(2 * X[:, 4]) + np.abs(X[:, 17]) + 0.5 * X[:, 33] + 0.3 * rng.standard_normal(600)
X[rng.random(X.shape) < 0.05] = np.nan  # missing values need no imputation

line = FSARegressor(3).fit(np.nan_to_num(X), y)
curves = FSARegressor(3, response=PiecewiseLinear(n_bins=10), prior=Prior(second_order=1e-3)).fit(
    X, y
)
print("line:  ", line.get_support(indices=True), round(line.score(np.nan_to_num(X), y), 2))
print("curves:", curves.get_support(indices=True), round(curves.score(X, y), 2))

axes = plot_responses(curves)
