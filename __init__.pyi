"""Sparse learners that see: feature selection with annealing, and vision tools built on it."""

from .learners import FSAClassifier, FSARanker, FSARegressor
from .models import TabularSelector

__all__ = ["FSAClassifier", "FSARanker", "FSARegressor", "TabularSelector", "__version__"]

__version__: str
