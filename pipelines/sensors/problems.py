"""Between arrays of minutes and the problems of the learners."""

from __future__ import annotations

import numpy as np

from ...learners import LinearChainCRF
from ...learners.sequences.problem import ChainFit, ChainProblem


def chain_problem(X: np.ndarray, y: np.ndarray, days: np.ndarray, ridge: float = 2.0) -> tuple[ChainProblem, np.ndarray]:
    """The problem of whole days, which lie one under the other, and the classes."""
    classes, codes = np.unique(y, return_inverse=True)
    begins = np.flatnonzero(np.r_[True, days[1:] != days[:-1]])
    return ChainProblem(X, codes, len(classes), np.r_[begins, len(y)], np.ones(len(begins)), ridge), classes


def with_parameters(fit: ChainFit, classes: np.ndarray) -> LinearChainCRF:
    """A fitted estimator with the parameters of a fit of all columns."""
    model = LinearChainCRF()
    model.classes_, model.coef_, model.transitions_, model.intercept_ = classes, fit.coef.T, fit.transitions, fit.intercept
    model.n_features_in_ = len(fit.coef)
    return model
