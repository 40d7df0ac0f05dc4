"""
Plots of fitted models
======================

Each plot function takes and returns Matplotlib axes, and labels columns by name. Above: the loss
during annealing, the coefficients, and the inclusion probabilities of sparse Fourier features.
Below: the graph of their interacting columns, and the traces of their chains.
"""

import numpy as np
import pandas as pd
from annealed.learners import FSARegressor, SparseFourierRegressor
from annealed.learners.plots import plot_chains, plot_inclusion, plot_interactions, plot_loss
from matplotlib import pyplot as plt

rng = np.random.default_rng(0)
names = ["age", "height", "income", "rooms", "dose", "weight", "distance", "price"]
X = pd.DataFrame(rng.standard_normal((300, 8)), columns=names)
y = 2 * X["dose"] - X["price"] + np.sin(1.5 * X["age"] + 1.5 * X["weight"])

linear = FSARegressor(3).fit(X, y)
waves = SparseFourierRegressor(solver="mcmc", n_steps=4000, random_state=0).fit(X, y)

figure, axes = plt.subplots(2, 3, figsize=(11, 6), layout="constrained")
plot_loss(linear, ax=axes[0, 0])
linear.plot(ax=axes[0, 1])
plot_inclusion(waves, ax=axes[0, 2])
plot_interactions(waves, ax=axes[1, 0])
traces = plot_chains(waves, axes=axes[1, 1:])
