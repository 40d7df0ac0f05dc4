"""
More data than memory
=====================

``on_disk`` reads a file in blocks within a memory limit. Annealing drops columns quickly: after a
few steps, the remaining columns fit into memory, so a fit reads the file only a few times.
"""

import tempfile
from pathlib import Path

import numpy as np
from annealed.learners import FSARegressor, on_disk
from annealed.learners.plots import plot_schedule

rng = np.random.default_rng(0)
X = rng.standard_normal((4000, 1000), dtype=np.float32)
y = X[:, 100] - X[:, 200] + X[:, 300] / 2 + 0.1 * rng.standard_normal(4000)

with tempfile.TemporaryDirectory() as folder:
    file = Path(folder) / "X.npy"
    np.save(file, np.asfortranarray(X))  # by columns: dropped columns are not read again
    print(f"{file.stat().st_size / 1e6:.0f} MB on disk")
    limited = FSARegressor(3).fit(on_disk(file, memory_limit="4MB"), y)
whole = FSARegressor(3).fit(X, y)
print("from the file:", limited.get_support(indices=True))
print("in memory:    ", whole.get_support(indices=True))
print("largest difference of the coefficients:", f"{np.abs(limited.coef_ - whole.coef_).max():.1e}")

ax = plot_schedule(1000, 3)
