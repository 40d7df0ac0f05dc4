"""Designs: scores, gradients and column subsets of data in memory, on disk, in Dask or torch."""
