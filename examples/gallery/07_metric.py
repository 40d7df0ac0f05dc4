"""
A sparse metric
===============

Two classes form an XOR pattern in two of 20 columns: no single column is informative. ``SDist``
selects the product of the two, and its learnt subspace separates the classes.
"""

import numpy as np
from annealed.learners import SDist
from matplotlib import pyplot as plt
from sklearn.neighbors import KNeighborsClassifier

rng = np.random.default_rng(0)
X = rng.normal(size=(400, 20))
y = np.where(X[:, 2] * X[:, 7] > 0, "cat", "dog")
train, test = slice(0, 200), slice(200, None)

model = SDist(seed_interactions=3, n_features_to_select=2).fit(X[train], y[train])
nearest = KNeighborsClassifier(3).fit(X[train], y[train])
print("strongest interaction:", model.interactions_[0])
print(
    f"error with sDist {1 - model.score(X[test], y[test]):.2f}, nearest neighbours "
    f"{1 - nearest.score(X[test], y[test]):.2f}"
)

learnt = model.transform(X[test])
figure, (left, right) = plt.subplots(1, 2, figsize=(9, 3.8), layout="constrained")
for label in ("cat", "dog"):
    rows = y[test] == label
    left.scatter(*X[test][rows][:, [2, 7]].T, s=12, label=label)
    right.hist(learnt[rows, 0], bins=30, alpha=0.7, label=label)
left.set(title="the two columns that act", xlabel="x2", ylabel="x7")
right.set(title="first axis of the learnt subspace", xlabel="value", ylabel="rows")
legend = left.legend()
