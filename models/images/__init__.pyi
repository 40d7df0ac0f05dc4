"""Image classifiers."""

from .classifier import HEADS, WHOLE, ImageClassifier
from .evidence import Explanation
from .learning import METHODS, ClassifierSettings, metric_on
from .scorers import AdditiveScorer, mean_probabilities

__all__ = [
    "HEADS",
    "METHODS",
    "WHOLE",
    "AdditiveScorer",
    "ClassifierSettings",
    "Explanation",
    "ImageClassifier",
    "mean_probabilities",
    "metric_on",
]
