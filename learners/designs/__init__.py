"""Designs, the solvers' interface to the data: scores, gradients and column subsets, in memory, on
disk, on Dask and on torch."""
