"""Feature Selection with Annealing (FSA): classifier, regressor, ranker, and paths over sizes."""

from .estimators import FSAClassifier, FSAEstimator, FSARegressor
from .fit import information_criterion, solve, solve_path, solving
from .path import FSAPath
from .problem import FINITE, FitProblem
from .refinement import support_problem
from .settings import Constraints, FitSettings

__all__ = [
    "FINITE",
    "Constraints",
    "FSAClassifier",
    "FSAEstimator",
    "FSAPath",
    "FSARegressor",
    "FitProblem",
    "FitSettings",
    "information_criterion",
    "solve",
    "solve_path",
    "solving",
    "support_problem",
]
