"""
Wrong labels
============

A share of the labels is drawn at random. The default loss is a likelihood under which a few labels
may be wrong; the Lorenz loss ignores rows that are far on the wrong side. How many of ten true
columns are selected from 300?
"""

import numpy as np
from annealed.learners import FSAClassifier
from matplotlib import pyplot as plt

shares, repeats = [0, 0.1, 0.2, 0.3, 0.4], 3
recovered = {name: np.zeros(len(shares)) for name in ("auto", "logistic", "lorenz")}
for i, share in enumerate(shares):
    for seed in range(repeats):
        rng = np.random.default_rng(seed)
        X = rng.standard_normal((300, 300))
        y = X[:, :10].sum(axis=1) > 0
        wrong = rng.random(300) < share
        y[wrong] = rng.random(wrong.sum()) < 0.5
        for loss, count in recovered.items():
            chosen = (
                FSAClassifier(10, loss=loss, random_state=0).fit(X, y).get_support(indices=True)
            )
            count[i] += (chosen < 10).mean() / repeats

figure, ax = plt.subplots(figsize=(6, 3.5), layout="constrained")
for loss, count in recovered.items():
    ax.plot(shares, 100 * count, marker="o", label=f'loss="{loss}"')
ax.set(xlabel="share of random labels", ylabel="true columns found (%)", ylim=(0, 103))
legend = ax.legend()
