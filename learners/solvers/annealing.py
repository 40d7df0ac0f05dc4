"""Annealing loop, Algorithm 1 of Barbu et al. (2014) and (2017).

Gradient steps alternate with steps that drop the weakest features according to a schedule.
"""

from collections.abc import Callable
from dataclasses import dataclass, field

import numpy as np

from ..designs.base import Design
from ..objective import Loss, Prior

_ROUNDING = 1e-12  # relative difference up to which strengths count as equal


@dataclass
class Annealed:
    """State of the annealing loop, which is also its result.

    Attributes
    ----------
    design : Design
        Design of the remaining features.
    kept : ndarray of shape (k,), int
        Indices of the remaining features in ascending order.
    coef : ndarray of shape (k, width, n_outputs)
        Standardised coefficients.
    intercept : ndarray of shape (n_outputs,)
        Intercept of each output.
    dropped_at : ndarray of shape (n_features,), int
        Step at which each feature was dropped or, for remaining features, the number of steps.
        Features that were dropped late were nearly selected.
    loss_curve : list of float
        Loss before each step.
    """

    design: Design
    kept: np.ndarray
    coef: np.ndarray
    intercept: np.ndarray
    dropped_at: np.ndarray
    loss_curve: list[float] = field(default_factory=list)


def strengths(coef: np.ndarray, groups: np.ndarray | None = None) -> np.ndarray:
    """Compute the root mean square of the coefficients of each feature or group.

    The coefficients and the strength of constant columns are 0.
    """
    square = np.einsum("mwq,mwq->m", coef, coef)
    if groups is None:
        return np.sqrt(square / (coef.shape[1] * coef.shape[2]))
    size = np.bincount(groups) * coef.shape[1] * coef.shape[2]
    return np.sqrt(np.bincount(groups, square) / np.maximum(size, 1))


def strongest(strength: np.ndarray, count: int) -> np.ndarray:
    """Return, in ascending order, the indices of the ``count`` largest values.

    Ties favour lower indices. Values that differ by rounding errors count as ties, since copies of
    a column may be summed in different orders.

    Examples
    --------
    >>> strongest(np.array([1.0, 3.0, 1.0, 2.0]), 3)
    array([0, 1, 3])
    """
    if count >= len(strength) or count <= 0:
        return np.arange(len(strength) if count > 0 else 0)
    threshold = np.partition(strength, len(strength) - count)[len(strength) - count]
    above = strength > threshold * (1.0 + _ROUNDING)
    equal = (strength >= threshold * (1.0 - _ROUNDING)) & ~above
    ties = np.flatnonzero(equal)[: count - np.count_nonzero(above)]
    above[ties] = True
    return np.flatnonzero(above)


def nearest_rising(curves: np.ndarray) -> np.ndarray:
    """Compute the nearest non-decreasing curves by the max-min formula of isotonic regression.

    Parameters
    ----------
    curves : ndarray of shape (m, n_knots, n_outputs)
        Values of the curves at the knots.

    Returns
    -------
    ndarray of shape (m, n_knots, n_outputs)
        Values of the nearest non-decreasing curves.

    References
    ----------
    T. Robertson, F. T. Wright, R. L. Dykstra, "Order Restricted Statistical Inference" (1988),
    section 1.4.

    Examples
    --------
    >>> nearest_rising(np.array([[[0.0], [3.0], [1.0], [5.0]]])).ravel()
    array([0., 2., 2., 5.])
    """
    result = np.full(curves.shape, -np.inf)
    for i in range(curves.shape[1]):
        means = np.cumsum(curves[:, i:], axis=1) / np.arange(1, curves.shape[1] - i + 1)[:, None]
        # over the ends of intervals that start at i
        least = np.minimum.accumulate(means[:, ::-1], axis=1)[:, ::-1]
        np.maximum(result[:, i:], least, out=result[:, i:])
    return result


@dataclass
class _Remaining:
    """Additional state of the remaining features; any field may be None."""

    groups: np.ndarray | None
    fixed: np.ndarray | None
    velocity: np.ndarray | None

    def change(self, eta: float, gradient: np.ndarray, momentum: float) -> np.ndarray:
        """Compute the change in the coefficients due to one step."""
        if self.velocity is None:
            return -eta * gradient
        self.velocity = momentum * self.velocity - eta * gradient
        return self.velocity

    def scale(self, factor: float) -> None:
        """Scale the velocity."""
        self.velocity = None if self.velocity is None else factor * self.velocity

    def strengths(self, coef: np.ndarray) -> np.ndarray:
        """Compute the strength of each feature or group, which is infinite for fixed features."""
        strength = strengths(coef, self.groups)
        if self.fixed is not None:
            strength[self.fixed if self.groups is None else self.groups[self.fixed]] = np.inf
        return strength

    def keep(self, stay: np.ndarray) -> None:
        if self.groups is not None:
            # Indices of the remaining groups
            self.groups = np.unique(self.groups[stay], return_inverse=True)[1]
        self.fixed = None if self.fixed is None else self.fixed[stay]
        self.velocity = None if self.velocity is None else self.velocity[stay]


def _keep_strongest(state: Annealed, rest: _Remaining, count: int, step: int) -> None:
    """Drop all but the ``count`` strongest features or groups."""
    strength = rest.strengths(state.coef)
    if count >= len(strength):
        return
    stay = strongest(strength, count)
    if rest.groups is not None:
        stay = np.flatnonzero(np.isin(rest.groups, stay))
    state.dropped_at[np.delete(state.kept, stay)] = step
    state.design, state.coef, state.kept = (
        state.design.keep(stay),
        state.coef[stay],
        state.kept[stay],
    )
    rest.keep(stay)


class _StepSize:
    """Learning rate eta, given as a number or as a function of the remaining columns.

    The first step from zero selects columns by its direction alone, so its length can be computed
    after columns are dropped.
    """

    def __init__(
        self, rule: float | Callable[[Design, np.ndarray], float], state: Annealed, from_zero: bool
    ):
        self.rule: Callable[[Design, np.ndarray], float] | None = None
        if callable(rule):
            self.rule, self.value = rule, 1.0 if from_zero else rule(state.design, state.coef)
        else:
            self.value = float(rule)
        self.n_features, self.from_zero = len(state.kept), from_zero

    def before_step(self, state: Annealed, rest: _Remaining) -> None:
        """Recompute the step size if steps diverge along a curvature that the function missed.

        The velocity is then reset.
        """
        if (
            self.rule is not None
            and self.from_zero
            and state.loss_curve[-1] > 2.0 * state.loss_curve[0]
        ):
            self.value = self.rule(state.design, state.coef)
            rest.scale(0.0)

    def after_cut(self, state: Annealed, rest: _Remaining, step: int) -> None:
        """Recompute the step size when half of the features have been dropped.

        This also sets the length of the first step from zero.
        """
        first = step == 0 and self.from_zero
        if self.rule is None or not (first or 2 * len(state.kept) < self.n_features):
            return
        self.value, self.n_features = self.rule(state.design, state.coef), len(state.kept)
        if first:
            state.coef = self.value * state.coef
            rest.scale(self.value)


def anneal(
    design: Design,
    y: np.ndarray,
    loss: Loss,
    counts: np.ndarray | Callable[[Design], np.ndarray],
    *,
    sample_weight: np.ndarray,
    learning_rate: float | Callable[[Design, np.ndarray], float],
    prior: Prior | None = None,
    momentum: float = 0.0,
    fit_intercept: bool = True,
    groups: np.ndarray | None = None,
    fixed: np.ndarray | None = None,
    project: Callable[[Annealed], None] | None = None,
    coef: np.ndarray | None = None,
    intercept: np.ndarray | None = None,
    callback: Callable[[int, Annealed], None] | None = None,
) -> Annealed:
    """Run the annealing loop, which takes a gradient step and drops features for each count.

    Parameters
    ----------
    design : Design
        Design that contains all features.
    y : ndarray of shape (n_samples, n_outputs)
        Targets encoded for the loss.
    loss : Loss
        Loss function.
    counts : ndarray of int, or function
        Non-increasing numbers of features (or groups, if given) that remain after each step, or a
        function of the design that returns them. The function is called after the first gradient
        has been computed.
    sample_weight : ndarray of shape (n_samples,)
        Row weights that sum to one, so that gradients are weighted means.
    learning_rate : float or function
        Step size, or a function ``(design, coef) -> float``. The function is called when features
        are first dropped, and whenever half of the features have been dropped. It need not be
        called more often, since a step size that is safe for some columns is safe for a subset of
        them.
    prior : Prior or None
        Prior on the coefficients; None for no penalty.
    momentum : float
        Momentum, in [0, 1).
    fit_intercept : bool
        Whether to fit an intercept, which is neither dropped nor shrunk. Its step size is the
        inverse of the maximum curvature of the loss.
    groups : ndarray of shape (n_features,), int, or None
        Group of each feature. A group is kept or dropped as a whole.
    fixed : ndarray of shape (n_features,), bool, or None
        Mask of the features that are never dropped.
    project : function or None
        Function that is called with the state after each gradient step. It projects the
        coefficients onto the constraints in place.
    coef, intercept : ndarray or None
        Initial values. None means zero coefficients, and the best constant as the intercept.
    callback : function or None
        Function called as ``callback(step, state)`` after each step.

    Returns
    -------
    Annealed
        Remaining features and their coefficients.

    Raises
    ------
    FloatingPointError
        If the loss overflows because the learning rate is too large.
    """
    m, from_zero = design.n_features, coef is None
    if coef is None:
        coef = np.zeros((m, design.width, y.shape[1]))
    # The column of the intercept is constant, so the curvature of the loss bounds that of the
    # intercept.
    bound = loss.curvature_bound(y)
    intercept_curvature = loss.max_curvature if bound is None else sample_weight @ bound
    if intercept is None:
        intercept = loss.best_constant(y, sample_weight) if fit_intercept else np.zeros(y.shape[1])
    state = Annealed(design, np.arange(m), coef, np.array(intercept, dtype=float), np.zeros(m, int))
    rest = _Remaining(groups, fixed, np.zeros_like(coef) if momentum else None)
    eta = _StepSize(learning_rate, state, from_zero)

    def evaluated() -> tuple[np.ndarray, np.ndarray, float]:
        return state.design.scores_and_gradient(state.coef, state.intercept, loss, y, sample_weight)

    first = evaluated()
    counts = counts(design) if callable(counts) else counts
    state.dropped_at[:] = len(counts)
    for step, count in enumerate(counts):
        gradient, residual_sum, value = evaluated() if step else first
        state.loss_curve.append(value)
        if not np.isfinite(value):
            raise FloatingPointError(
                f"the loss became {value} in step {step + 1}; "
                f"learning_rate={eta.value:g} is too large"
            )
        eta.before_step(state, rest)
        if prior is not None:
            gradient += prior.gradient(state.coef, state.design.n_knots)
        state.coef = state.coef + rest.change(eta.value, gradient, momentum)
        if fit_intercept:
            state.intercept = state.intercept - residual_sum / intercept_curvature
        if project is not None:
            project(state)
        _keep_strongest(state, rest, count, step)
        eta.after_cut(state, rest, step)
        if callback is not None:
            callback(step, state)
    return state
