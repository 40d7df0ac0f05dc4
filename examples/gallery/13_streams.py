"""
Sparse learning from streams
============================

A wide, sparse matrix is read row by row. The stabilised truncated gradient uses a decreasing number
of columns. Forty of 2,000 columns have an effect.
"""

import numpy as np
from annealed.learners import StabilizedTruncatedSGDClassifier
from matplotlib import pyplot as plt
from scipy.sparse import random_array

X = random_array((2000, 2000), density=0.05, random_state=0, format="csr")
y = np.where(X[:, :20].sum(axis=1) > X[:, 20:40].sum(axis=1), "even", "odd")
train, test = slice(0, 1500), slice(1500, None)

figure, ax = plt.subplots(figsize=(6, 3.5), layout="constrained")
for k in (20, 40, 400):
    model = StabilizedTruncatedSGDClassifier(k, loss="logistic", random_state=0).fit(
        X[train], y[train]
    )
    print(f"{k} columns: error {1 - model.score(X[test], y[test]):.2f}")
    ax.plot(
        1 + np.arange(len(model.history_)),
        model.history_[:, 0],
        marker=".",
        label=f"{k} columns kept",
    )
ax.set(yscale="log", xlabel="stage", ylabel="columns in use")
legend = ax.legend()
