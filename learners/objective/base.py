"""What a loss is: value, gradient and curvature over the scores, and the facts that solvers rely on."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
from sklearn.base import BaseEstimator

HessianProduct = Callable[[np.ndarray], np.ndarray]


class DiagonalProduct:
    """The product A -> W A with a diagonal Hessian, in the precision of A; ``weights`` (n,) is the diagonal."""

    def __init__(self, weights: np.ndarray):
        self.weights = weights

    def __call__(self, A: np.ndarray) -> np.ndarray:
        return A * self.weights.astype(A.dtype, copy=False)[:, None]


def diagonal_products(curvature: np.ndarray) -> list[HessianProduct]:
    """For each output the product with a diagonal Hessian."""
    return [DiagonalProduct(weights) for weights in curvature.T]


class Loss(BaseEstimator):
    """A differentiable loss of scores. The attributes are facts that solvers rely on.

    Attributes
    ----------
    name : str
        Key in ``LOSSES``; empty for a custom loss.
    tasks : frozenset of str
        Estimators that accept the name of the loss: those for two classes ("binary"), for more
        ("multiclass"), for "regression", for "ranking", and those that learn from one row at a time
        ("online"). Empty for a custom loss, which is passed as an object.
    max_curvature : float
        Bound on the second derivative with respect to one score; infinite where there is none.
    default_step_size : float or None
        Gradient step of annealing on standardised columns and mean gradients, chosen on the synthetic data of Barbu et al. (2017).
        None: one over the Lipschitz constant of the gradient, by power iteration. The losses of the margin have bounded slopes and
        take steps far beyond that; the squared loss would diverge.
    pointwise : bool
        Whether row i of the gradient depends on row i of the scores alone, so that the rows can be read in blocks.
    is_quadratic : bool
        Whether the curvature is the same at all scores: one Newton step reaches the minimum.
    exact_curvature : bool
        Whether the Hessian of several outputs is the second derivative itself. Where it is a bound Newton's method takes many
        steps, and the ridge of several classes is a fixed one.
    several_classes : bool
        Whether ``y`` has one column of 0 / 1 per class.
    redundant_outputs : int
        Outputs that the others determine: 1 where a constant added to all scores of a row changes nothing.
    censored : bool
        Whether the targets are times, some of them censored.
    target_scaling : {"variance", "median", None}
        What regression does to the targets first: mean 0 and variance 1; median 0 and robust scale 1; nothing.
    link : {"identity", "log"}
        With "log" the prediction is exp(score).
    """

    name: str = ""
    tasks: frozenset[str] = frozenset()
    max_curvature: float = 1.0
    default_step_size: float | None = None
    pointwise: bool = True
    is_quadratic: bool = False
    several_classes: bool = False
    exact_curvature: bool = True
    redundant_outputs: int = 0
    censored: bool = False
    target_scaling: str | None = "variance"
    link: str = "identity"
    kernel: int  # number for the compiled loops, see margin_kernels; only where the class itself sets it
    kernel_parameter: float = 0.0

    @property
    def has_curvature(self) -> bool:
        """Whether there are second derivatives: Newton's method and exchanges of features need them."""
        return type(self).curvature is not Loss.curvature or type(self).second_order is not Loss.second_order

    @property
    def kernel_code(self) -> tuple[int, float] | None:
        """Number and parameter for the compiled loops; None for a loss without a compiled form.

        A subclass does not inherit the number: it may have changed any of the methods.
        """
        number = vars(type(self)).get("kernel")
        return None if number is None else (number, float(self.kernel_parameter))

    @property
    def smooth(self) -> Loss:
        """The loss itself, or the nearest one with a continuous gradient."""
        return self

    def value(self, y, scores, sample_weight) -> float:
        """Weighted mean loss.

        Parameters
        ----------
        y : ndarray of shape (n, q)
            Targets, in the coding of the loss.
        scores : ndarray of shape (n, q)
            Predictions.
        sample_weight : ndarray of shape (n,)
            Weights that sum to one.

        Returns
        -------
        float
            The mean.
        """
        raise NotImplementedError

    def gradient(self, y, scores, sample_weight) -> np.ndarray:
        """Derivative of :meth:`value` with respect to the scores, (n, q).

        Parameters
        ----------
        y : ndarray of shape (n, q)
            Targets, in the coding of the loss.
        scores : ndarray of shape (n, q)
            Predictions.
        sample_weight : ndarray of shape (n,)
            Weights that sum to one.

        Returns
        -------
        ndarray of shape (n, q)
            The derivative.
        """
        raise NotImplementedError

    def curvature(self, y, scores, sample_weight) -> np.ndarray:
        """Second derivative of :meth:`value` for each score alone, (n, q); never negative (see each loss).

        Parameters
        ----------
        y : ndarray of shape (n, q)
            Targets, in the coding of the loss.
        scores : ndarray of shape (n, q)
            Predictions.
        sample_weight : ndarray of shape (n,)
            Weights that sum to one.

        Returns
        -------
        ndarray of shape (n, q)
            The second derivatives.
        """
        raise NotImplementedError

    def row_hessians(self, y, scores, sample_weight) -> np.ndarray:
        """Second derivatives of each row's loss over its scores, (n, q, q): by default the diagonal of :meth:`curvature`.

        Parameters
        ----------
        y : ndarray of shape (n, q)
            Targets, in the coding of the loss.
        scores : ndarray of shape (n, q)
            Predictions.
        sample_weight : ndarray of shape (n,)
            Weights that sum to one.

        Returns
        -------
        ndarray of shape (n, q, q)
            The second derivatives.
        """
        return self.curvature(y, scores, sample_weight)[:, :, None] * np.eye(scores.shape[1])

    def value_and_gradient(self, y, scores, sample_weight) -> tuple[float, np.ndarray]:
        """Both at once; override where that is cheaper.

        Parameters
        ----------
        y : ndarray of shape (n, q)
            Targets, in the coding of the loss.
        scores : ndarray of shape (n, q)
            Predictions.
        sample_weight : ndarray of shape (n,)
            Weights that sum to one.

        Returns
        -------
        tuple of float and ndarray of shape (n, q)
            What :meth:`value` and :meth:`gradient` return.
        """
        return self.value(y, scores, sample_weight), self.gradient(y, scores, sample_weight)

    def second_order(self, y, scores, sample_weight) -> tuple[float, np.ndarray, list[HessianProduct]]:
        """Value, gradient and, for each output, the Hessian product A (n, p) -> W A.

        W is the Hessian of :meth:`value` over the scores of that output, or a bound on it.

        Parameters
        ----------
        y : ndarray of shape (n, q)
            Targets, in the coding of the loss.
        scores : ndarray of shape (n, q)
            Predictions.
        sample_weight : ndarray of shape (n,)
            Weights that sum to one.

        Returns
        -------
        tuple of float, ndarray of shape (n, q) and list of functions
            The three.
        """
        curvature = self.curvature(y, scores, sample_weight)
        return *self.value_and_gradient(y, scores, sample_weight), diagonal_products(curvature)

    def parts(self, weight: np.ndarray) -> list[tuple[np.ndarray, float]] | None:
        """What is left out in turn to estimate the loss on new data: rows where None.

        Parameters
        ----------
        weight : ndarray of shape (n_samples,)
            How often each row stands.

        Returns
        -------
        list of (ndarray of int, float), or None
            For a loss of pairs: the pairs of each query, and the share of their weight that is left out.
        """
        return None

    def best_constant(self, y, sample_weight) -> np.ndarray:
        """Score (q,) that minimises the loss when no feature is used; 0 where there is no closed form.

        Parameters
        ----------
        y : ndarray of shape (n, q)
            Targets, in the coding of the loss.
        sample_weight : ndarray of shape (n,)
            Weights that sum to one.

        Returns
        -------
        ndarray of shape (q,)
            The constant.
        """
        return np.zeros(y.shape[1])

    # -- what the targets are -------------------------------------------------------------------------------------------

    def encode_targets(self, y):
        """Targets as the loss wants them, checked; by default as they are.

        Parameters
        ----------
        y : array
            What the user gave.

        Returns
        -------
        array
            What is validated and scaled next.

        Raises
        ------
        ValueError
            For targets that the loss is not made for.
        """
        return y

    def inverse_link(self, scores) -> np.ndarray:
        """Predictions in the units of the targets; by default the scores.

        Parameters
        ----------
        scores : ndarray
            Scores, of any shape.

        Returns
        -------
        ndarray
            Shaped like ``scores``.
        """
        return scores

    def quality(self, y, prediction, sample_weight=None) -> float:
        """What ``score`` of a regression returns; by default R^2.

        Parameters
        ----------
        y : array
            Targets as the user gives them.
        prediction : ndarray
            Predictions in the same units, or scores where times are censored.
        sample_weight : ndarray of shape (n,) or None, default None
            Weights of the rows.

        Returns
        -------
        float
            The greater the better.
        """
        from sklearn.metrics import r2_score

        return float(r2_score(y, prediction, sample_weight=sample_weight))

    def n_informative(self, y, weight) -> float:
        """Rows that tell coefficients apart: all, each as often as its weight; deaths alone where times are censored.

        Parameters
        ----------
        y : ndarray of shape (n, q)
            Encoded targets.
        weight : ndarray of shape (n,)
            Weights as given.

        Returns
        -------
        float
            Their number.
        """
        return float(weight.sum())

    # -- for steps of one length ----------------------------------------------------------------------------------------

    def surrogate(self, y, sample_weight) -> Loss:
        """What annealing minimises: the loss itself, or one close to it on which gradient steps of one length are safe.

        Parameters
        ----------
        y : ndarray of shape (n, q)
            Encoded targets.
        sample_weight : ndarray of shape (n,)
            Weights that sum to one.

        Returns
        -------
        Loss
            On the same targets.
        """
        return self

    def curvature_bound(self, y) -> np.ndarray | None:
        """Bounds (n, q) on the second derivative for each score where they differ between rows; None: ``max_curvature``.

        Parameters
        ----------
        y : ndarray of shape (n, q)
            Encoded targets.

        Returns
        -------
        ndarray of shape (n, q) or None
            The bounds.
        """
        return None


class MarginLoss(Loss):
    """A loss of the margin u = y f with y in {-1, +1}; several columns add up, and y = 0 leaves a score out."""

    @property
    def has_curvature(self) -> bool:
        """Whether :meth:`margin_curvature` is there."""
        return type(self).margin_curvature is not MarginLoss.margin_curvature

    def margin_value(self, u: np.ndarray) -> np.ndarray:
        """Loss of the margin.

        Parameters
        ----------
        u : ndarray
            Margins, of any shape.

        Returns
        -------
        ndarray
            Shaped like ``u``.
        """
        raise NotImplementedError

    def margin_slope(self, u: np.ndarray) -> np.ndarray:
        """Its derivative.

        Parameters
        ----------
        u : ndarray
            Margins, of any shape.

        Returns
        -------
        ndarray
            Shaped like ``u``.
        """
        raise NotImplementedError

    def margin_curvature(self, u: np.ndarray) -> np.ndarray:
        """Its second derivative; where that is not positive, a majorising one.

        Parameters
        ----------
        u : ndarray
            Margins, of any shape.

        Returns
        -------
        ndarray
            Shaped like ``u``.
        """
        raise NotImplementedError

    def value(self, y, scores, sample_weight) -> float:
        return float(sample_weight @ ((y != 0) * self.margin_value(y * scores)).sum(axis=1))

    def gradient(self, y, scores, sample_weight) -> np.ndarray:
        return y * self.margin_slope(y * scores) * sample_weight[:, None]

    def curvature(self, y, scores, sample_weight) -> np.ndarray:
        return y * y * self.margin_curvature(y * scores) * sample_weight[:, None]
