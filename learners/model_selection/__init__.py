"""Automatic choice of the ridge of a fit and of the number of features."""
