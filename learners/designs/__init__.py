"""Designs give solvers scores, gradients and column subsets of data in memory, on disk, on Dask or
on torch devices."""
