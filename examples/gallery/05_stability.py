"""
Is the choice stable?
=====================

Fits on random halves of the rows show how often each column is selected. Columns 0 to 4 have an
effect, the last two a weak one; column 5 is a noisy copy of column 0, and is not selected.
"""

import numpy as np
from annealed.learners import FSAClassifier, selection_stability

rng = np.random.default_rng(0)
X = rng.standard_normal((300, 60))
X[:, 5] = X[:, 0] + 0.15 * rng.standard_normal(300)
y = X[:, :5] @ [1.5, 1.0, 1.0, 0.7, 0.4] + rng.logistic(size=300) > 0

stability = selection_stability(FSAClassifier(5), X, y, n_repeats=30, random_state=0)
print("mean agreement of two selections (Cohen's kappa):", round(stability.kappa, 2))
ax = stability.plot(top=12)
