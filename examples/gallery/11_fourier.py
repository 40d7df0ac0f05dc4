"""
Fourier atoms: columns with a joint effect
==========================================

The target is the sum of a wave in the sum of two columns and a wave in a third column: the first
cannot be represented by linear effects or by curves of single columns. Atoms are cosines and sines
of sparse frequencies; annealing keeps a few of thousands.
"""

import numpy as np
from annealed.learners import SparseFourierFeatures
from matplotlib import pyplot as plt
from sklearn.linear_model import RidgeCV
from sklearn.pipeline import make_pipeline

rng = np.random.default_rng(0)
X = rng.standard_normal((500, 10))
y = np.sin(1.5 * X[:, 2] + 1.5 * X[:, 5]) + np.cos(2 * X[:, 9]) + 0.2 * rng.standard_normal(500)
train, test = slice(0, 300), slice(300, None)

atoms = SparseFourierFeatures(5, n_bank=300, n_rounds=2, max_order=2, random_state=0)
model = make_pipeline(atoms, RidgeCV()).fit(X[train], y[train])
linear = RidgeCV().fit(X[train], y[train])
print(
    "R² with atoms",
    round(model.score(X[test], y[test]), 2),
    "and with lines",
    round(linear.score(X[test], y[test]), 2),
)
print("columns of the atoms:", sorted(set(atoms.atoms_)))

figure, axes = plt.subplots(1, 2, figsize=(9, 3.6), layout="constrained")
grid = np.linspace(-2.5, 2.5, 60)
table = np.zeros((grid.size**2, 10))
table[:, 2], table[:, 5] = (g.ravel() for g in np.meshgrid(grid, grid))
surface = model.predict(table).reshape(grid.size, grid.size)
drawn = axes[0].contourf(grid, grid, surface, 20, cmap="coolwarm")
axes[0].set(title="learnt: columns 2 and 5", xlabel="x2", ylabel="x5")
axes[1].contourf(grid, grid, np.sin(1.5 * np.add.outer(grid, grid)), 20, cmap="coolwarm")
text = axes[1].set(title="truth", xlabel="x2", ylabel="x5")
