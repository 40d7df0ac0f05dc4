"""Sparse nonlinear metrics: sDist and its parts."""
