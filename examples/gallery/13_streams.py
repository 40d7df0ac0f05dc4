"""
Sparse learners of streams
==========================

A wide, sparse matrix is read row by row. The stabilised truncated gradient follows a decreasing number of columns; other
online learners shrink.
"""

import numpy as np
from annealed.learners import FOBOSClassifier, StabilizedTruncatedSGDClassifier
from matplotlib import pyplot as plt
from scipy.sparse import random_array

rng = np.random.default_rng(0)
X = random_array((600, 2000), density=0.05, random_state=0, format="csr")
y = np.where(X[:, :20].sum(axis=1) > X[:, 20:40].sum(axis=1), "even", "odd")
train, test = slice(0, 400), slice(400, None)

figure, ax = plt.subplots(figsize=(6, 3.5), layout="constrained")
for k in (20, 40, 200):
    model = StabilizedTruncatedSGDClassifier(k, loss="logistic", random_state=0).fit(X[train], y[train])
    print(f"{k} columns: error {1 - model.score(X[test], y[test]):.2f}")
    ax.plot(1 + np.arange(len(model.history_)), model.history_[:, 0], marker=".", label=f"{k} columns kept")
shrunk = FOBOSClassifier(random_state=0).fit(X[train], y[train])
print(f"FOBOS: {np.count_nonzero(shrunk.coef_)} columns, error {1 - shrunk.score(X[test], y[test]):.2f}")
ax.set(yscale="log", xlabel="stage", ylabel="columns in use")
legend = ax.legend()
