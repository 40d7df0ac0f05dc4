"""Choices by the data: the ridge of a fit and the number of features."""
