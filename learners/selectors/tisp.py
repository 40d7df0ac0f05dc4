"""Quantile TISP: iterative thresholding that keeps exactly k features (QTP of the FSA papers), with hard-ridge shrinkage."""

from __future__ import annotations

from typing import Any

import numpy as np

from ..common.docstrings import fill_docstring
from ..common.validation import check_integer, check_real, number_to_keep
from ..designs.base import Design
from ..objective.losses import Loss, check_bounded
from ..objective.priors import Prior
from ..solvers.annealing import anneal, strengths, strongest
from ..solvers.step_size import intercept_step, safe_step, start_direction
from .base import (
    CLASS_WEIGHT,
    CLASSIFIER_ATTRIBUTES,
    REGRESSOR_ATTRIBUTES,
    SCALING,
    ScaledSelector,
    SelectingClassifier,
    SelectingRegressor,
)


def quantile_thresholding(
    design: Design,
    y,
    loss: Loss,
    sample_weight,
    k: int,
    *,
    n_thresholdings: int,
    n_steps: int,
    learning_rate: float | None = None,
    prior: Prior | None = None,
    fit_intercept: bool = True,
):
    """Gradient steps on ALL features, each followed by thresholding at the quantile that leaves k; dropped features may return.

    After each thresholding the k features converge among themselves for its share of ``n_steps`` further gradient steps. Hard-ridge
    thresholding: the k features are shrunk by 1 / (1 + 2 learning_rate * shrinkage), the rest is zero.

    Parameters
    ----------
    design : Design
        All features, linear responses.
    y : ndarray of shape (n_samples, n_outputs)
        Targets as the loss wants them.
    loss : Loss
        With a finite ``max_curvature``.
    sample_weight : ndarray of shape (n_samples,)
        Sums to one.
    k : int
        Features to keep.
    n_thresholdings, n_steps : int
    prior : Prior or None
        Its shrinkage alone counts.
    fit_intercept : bool, default True
        Whether there is a constant; it is neither shrunk nor dropped.
    learning_rate : float or None
        None: one over the curvature along the features at hand (all at first, then the k of the last thresholding).

    Returns
    -------
    kept : ndarray of shape (k,), ascending
    coef : ndarray of shape (k, 1, n_outputs)
    intercept : ndarray of shape (n_outputs,)
    loss_curve : list of float
        Loss before each step.
    """
    prior = Prior() if prior is None else prior
    ridge = 2.0 * prior.shrinkage  # the curvature of the penalty
    coef = np.zeros((design.n_features, 1, y.shape[1]))
    intercept = loss.best_constant(y, sample_weight) if fit_intercept else np.zeros(y.shape[1])

    def step_of(columns: Design) -> float:
        if learning_rate is not None:
            return learning_rate
        direction = start_direction(columns, y, loss, sample_weight, np.zeros(y.shape[1]))
        return safe_step(columns, loss, sample_weight, direction, penalty=ridge)

    rate = step_of(design)
    shares = np.diff(np.linspace(0, n_steps, n_thresholdings + 1).astype(int))
    curve: list[float] = []
    for share in shares:
        gradient, residual_sum, value = design.scores_and_gradient(coef, intercept, loss, y, sample_weight)
        curve.append(value)
        moved = coef - rate * gradient
        if fit_intercept:
            intercept = intercept - intercept_step(loss, residual_sum)
        kept = strongest(strengths(moved), k)
        small = design.keep(kept)
        rate = step_of(small)
        state = anneal(  # with nothing left to drop, the annealing loop is gradient descent
            small,
            y,
            loss,
            np.full(share, k),
            sample_weight=sample_weight,
            learning_rate=rate,
            prior=prior,
            fit_intercept=fit_intercept,
            coef=moved[kept] / (1.0 + rate * ridge),
            intercept=intercept,
        )
        coef = np.zeros_like(moved)
        coef[kept], intercept = state.coef, state.intercept
        curve += state.loss_curve
    return kept, coef[kept], intercept, curve


class _TISP(ScaledSelector):
    """Parameters and the fit that the two estimators share."""

    loss_curve_: np.ndarray
    n_iter_: int

    def __init__(
        self,
        n_features_to_select: int | float = 10,
        *,
        loss: str | Loss = "auto",
        n_thresholdings: int = 10,
        n_steps: int = 500,
        ridge: float = 0.0,
        learning_rate: float | str = "auto",
        fit_intercept: bool = True,
        **parameters: Any,
    ):
        super().__init__(**parameters)
        self.n_features_to_select = n_features_to_select
        self.loss = loss
        self.n_thresholdings = n_thresholdings
        self.n_steps = n_steps
        self.ridge = ridge
        self.learning_rate = learning_rate
        self.fit_intercept = fit_intercept

    def _select(self, X, y, loss, weight):
        check_integer("n_thresholdings", self.n_thresholdings, 1)
        check_integer("n_steps", self.n_steps, 0)
        check_real("ridge", self.ridge, 0.0)
        if self.learning_rate != "auto":
            check_real("learning_rate", self.learning_rate, 0.0, above=True)
        check_bounded(loss)
        k = number_to_keep(self.n_features_to_select, X.shape[1])
        design = self._make_design(X, weight)
        kept, coef, intercept, curve = quantile_thresholding(
            design,
            y,
            loss,
            weight,
            k,
            n_thresholdings=self.n_thresholdings,
            n_steps=self.n_steps,
            learning_rate=None if isinstance(self.learning_rate, str) else float(self.learning_rate),
            prior=Prior(shrinkage=0.5 * self.ridge),
            fit_intercept=self.fit_intercept,
        )
        self.loss_curve_ = np.array(curve)
        self.n_iter_ = self.n_thresholdings + self.n_steps
        self._store(design, kept, coef[:, 0], intercept)


_PARAMETERS = (
    """
    n_features_to_select : int or float, default 10
        k: how many features are selected, or which fraction of them. More than there are keeps all, with a warning.
    loss : str or Loss, default "auto"
        Any loss of single samples whose curvature has a bound; "auto" is {auto}.
    n_thresholdings : int, default 10
        Gradient steps on all features, at least 1, each followed by thresholding.
    n_steps : int, default 500
        Further gradient steps on the selected features, at least 0, shared evenly among the thresholdings.
    ridge : float, default 0.0
        At least 0: ridge / 2 ||coef||^2 on standardised columns; with it the thresholding is the hard-ridge one.
    learning_rate : float or "auto", default "auto"
        Step size, above 0, on standardised columns and mean gradients; "auto" is one over the curvature along the features at hand.
    fit_intercept : bool, default True
        Whether the scores have a constant; it is not shrunk."""
    + SCALING
)

_ATTRIBUTES = """
    loss_curve_ : ndarray of shape (n_thresholdings + n_steps,)
        Loss before each step.
    n_iter_ : int
        ``n_thresholdings + n_steps``."""

_REFERENCES = """
    References
    ----------
    .. [1] Y. She, "Thresholding-based iterative selection procedures for model selection and shrinkage", Electronic Journal of
       Statistics 3 (2009).
    .. [2] A. Barbu, Y. She, L. Ding, G. Gramajo, "Feature Selection with Annealing for Computer Vision and Big Data Learning",
       IEEE Transactions on Pattern Analysis and Machine Intelligence 39 (2017)."""


@fill_docstring(
    parameters=_PARAMETERS + CLASS_WEIGHT,
    auto='"logistic"',
    attributes=_ATTRIBUTES + CLASSIFIER_ATTRIBUTES,
    references=_REFERENCES,
)
class TISPClassifier(_TISP, SelectingClassifier):
    """Classifier on exactly k features by quantile thresholding ([1]_; QTP of Barbu et al. (2017) [2]_).

    Parameters
    ----------
    {parameters}

    Attributes
    ----------
    {attributes}

    {references}

    Examples
    --------
    >>> import numpy as np
    >>> from annealed.learners import TISPClassifier
    >>> X = np.random.default_rng(0).standard_normal((200, 50))
    >>> TISPClassifier(2).fit(X, X[:, 3] > X[:, 7]).get_support(indices=True)
    array([3, 7])
    """

    def __init__(self, *args: Any, class_weight=None, **parameters: Any):
        super().__init__(*args, **parameters)
        self.class_weight = class_weight


@fill_docstring(parameters=_PARAMETERS, auto='"squared"', attributes=_ATTRIBUTES + REGRESSOR_ATTRIBUTES, references=_REFERENCES)
class TISPRegressor(_TISP, SelectingRegressor):
    """Regression on exactly k features by quantile thresholding ([1]_; QTP of [2]_); several outputs share one support.

    Parameters
    ----------
    {parameters}

    Attributes
    ----------
    {attributes}

    {references}

    Examples
    --------
    >>> import numpy as np
    >>> from annealed.learners import TISPRegressor
    >>> X = np.random.default_rng(0).standard_normal((100, 30))
    >>> TISPRegressor(2).fit(X, X[:, 4] + 2 * X[:, 9]).get_support(indices=True)
    array([4, 9])
    """
