"""
Survival times
==============

With Cox's partial likelihood as the loss, which columns lengthen or shorten the time to an event
when some rows are censored?
"""

import numpy as np
from annealed.learners import FSARegressor
from matplotlib import pyplot as plt

rng = np.random.default_rng(0)
X = rng.standard_normal((300, 400))
time = rng.exponential(np.exp(-X[:, 10] + X[:, 20] / 2))
ended = rng.exponential(2.0, len(time))
survival = np.column_stack([np.minimum(time, ended), time <= ended])  # the time, and 1 for an event

model = FSARegressor(2, loss="cox").fit(X, survival)
print(
    "columns:", model.get_support(indices=True), "concordance:", round(model.score(X, survival), 2)
)

# Kaplan-Meier curves of the thirds with the lowest and the highest predicted hazard.
hazard = model.predict(X)
figure, ax = plt.subplots(figsize=(6, 3.5), layout="constrained")
for name, rows in {
    "low": hazard < np.quantile(hazard, 1 / 3),
    "high": hazard > np.quantile(hazard, 2 / 3),
}.items():
    order = np.argsort(survival[rows, 0])
    times, events = survival[rows][order].T
    share = np.cumprod(1 - events / np.arange(len(events), 0, -1))
    ax.step(times, share, where="post", label=f"{name} predicted hazard")
ax.set(xlim=(0, 3), ylim=(0, 1), xlabel="time", ylabel="share without an event")
legend = ax.legend()
