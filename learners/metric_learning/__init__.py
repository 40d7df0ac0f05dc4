"""Sparse nonlinear metrics: sDist and its components."""
