"""Sparse learners that see: feature selection with annealing, and vision tools built on it."""

from .learners import FSAClassifier, FSARanker, FSARegressor

__all__ = ["FSAClassifier", "FSARanker", "FSARegressor", "__version__"]

__version__: str
