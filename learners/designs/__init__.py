"""How data look to the solvers: scores, gradients and the columns that remain, in memory, on disk,
on Dask and on torch."""
