"""Interface of losses: values, derivatives with respect to the scores, and solver attributes."""

from collections.abc import Callable
from typing import Any

import numpy as np

from ..sklearn_bases import BaseEstimator

_N_STEPS = 20  # number of Newton steps for an intercept (heuristic)

HessianProduct = Callable[[np.ndarray], np.ndarray]
SecondOrder = tuple[float, np.ndarray, list[HessianProduct]]  # value, gradient, Hessian per output


def effective_rows(weight: np.ndarray) -> float:
    """Return the effective number of rows for given row weights.

    If any weight is at least 1, the weights may be counts, and the result is their sum. Otherwise,
    it is ``(sum w)^2 / sum w^2``.
    """
    total = float(weight.sum())
    return total if weight.max() >= 1.0 else float(1.0 / np.sum((weight / total) ** 2))


def charges_of(sizes: np.ndarray, n_rows: float, dispersion: float = 1.0) -> np.ndarray:
    """Compute penalties for features or groups (units) with more coefficients than others.

    Coefficients without a true effect also decrease the mean loss. For m such coefficients, the
    expected decrease is ``dispersion * m / (2 * (n_rows - m))`` [1]_; if the denominator is less
    than ``n_rows``, it is replaced by ``n_rows``. The penalty of a unit is its expected decrease
    minus that of the smallest unit.

    Parameters
    ----------
    sizes : ndarray of shape (n_units,), int
        Number of coefficients of each unit.
    n_rows : float
        Number of rows; see :func:`effective_rows`.
    dispersion : float, default 1.0
        Ratio of the residual variance to the variance that the loss assumes, summed over outputs.

    Returns
    -------
    ndarray of shape (n_units,)
        Penalty of each unit.

    References
    ----------
    .. [1] P. Sur, E. J. Candes, "A modern maximum-likelihood theory for high-dimensional logistic
           regression", PNAS 116 (2019).

    Examples
    --------
    >>> charges_of(np.array([1, 1, 21]), 1020)
    array([0.        , 0.        , 0.01001983])
    """
    gains = 0.5 * dispersion * sizes / np.maximum(n_rows - sizes, 0.5 * n_rows)
    return gains - gains.min()


class DiagonalProduct:
    """Function A -> W A, where W is the diagonal matrix of ``weights``, in the precision of A."""

    def __init__(self, weights: np.ndarray):
        self.weights = weights

    def __call__(self, A: np.ndarray) -> np.ndarray:
        return A * self.weights.astype(A.dtype, copy=False)[:, None]


def diagonal_products(curvature: np.ndarray) -> list[HessianProduct]:
    """Return, for each output, the function that multiplies a matrix by the diagonal Hessian."""
    return [DiagonalProduct(weights) for weights in curvature.T]


class Loss(BaseEstimator):
    """Differentiable loss: the weighted mean ``sum_i w_i loss(y_i, f_i)``, with scores f_i.

    For n rows and q outputs, the methods take the following arrays unless stated otherwise:

    * ``y`` of shape (n, q): targets, encoded by :meth:`encode_targets` and the estimators as real
      numbers for regression, as -1 and +1 for two classes, or as one-hot columns for several
      classes;
    * ``scores`` of shape (n, q): scores f, which :meth:`inverse_link` maps to predictions;
    * ``sample_weight`` of shape (n,): weights that sum to one.

    A custom loss must define ``value``, which returns a number, and ``gradient``, which returns an
    array of shape (n, q). Newton's method and feature exchanges also require ``curvature``, which
    returns an array of shape (n, q). Solvers choose their algorithm according to the attributes.

    Attributes
    ----------
    name : str
        Name by which estimators accept the loss; empty for custom losses.
    tasks : frozenset of str
        Types of estimator that accept the loss by name: "binary" (two classes), "multiclass",
        "regression", "ranking" and "online" (one row at a time). Empty for custom losses, which are
        passed as objects.
    max_curvature : float
        Upper bound on the second derivative with respect to a score; infinite if unbounded.
    default_step_size : float or None
        Step size for annealing on the mean loss with standardised columns, tuned on the synthetic
        data of [1]_. None means the inverse Lipschitz constant of the gradient, estimated by power
        iteration. Margin losses have bounded slopes and tolerate much larger steps, with which the
        squared loss would diverge.
    pointwise : bool
        Whether row i of the gradient depends only on row i of the scores, so that rows can be
        processed in blocks.
    is_quadratic : bool
        Whether the curvature is constant, so that a single Newton step reaches the minimum.
    exact_curvature : bool
        Whether the second derivatives are treated as exact. If False, they are treated as upper
        bounds: Newton's method requires more steps, the automatic ridge penalty for several classes
        is not tuned, and more exchanges of features are tried.
    several_classes : bool
        Whether ``y`` is one-hot encoded.
    redundant_outputs : int
        Number of redundant outputs: 1 if the loss does not change when a constant is added to all
        scores of a row, otherwise 0.
    censored : bool
        Whether the targets are survival times, which may be censored.
    target_scaling : {"variance", "median", None}
        Scaling of regression targets. "variance" scales them to mean 0 and variance 1. "median"
        subtracts their median and divides by 1.4826 times their median absolute deviation, an
        estimate of the standard deviation. None means no scaling. If it is not None, the loss must
        depend on the residual alone, since offsets are then subtracted from the targets.
    link : {"identity", "log"}
        Link function. With "log", the prediction is exp(score).
    log_odds : bool
        Whether the scores are log odds of classes.
    flip : float
        Assumed fraction of flipped labels.
    is_log_likelihood : bool
        Whether the loss is a negative log likelihood with dispersion 1. Otherwise, :meth:`charges`
        estimates the dispersion from the residuals.
    unknown_dispersion : bool
        Whether the loss is half a deviance that must be divided by an unknown dispersion to give a
        negative log likelihood. Information criteria for n rows then use the deviance n ln(2
        value), and otherwise 2 n value. Both attributes are False for losses such as the hinge
        loss.

    References
    ----------
    .. [1] A. Barbu, Y. She, L. Ding, G. Gramajo, "Feature Selection with Annealing for Computer
           Vision and Big Data Learning", IEEE Transactions on Pattern Analysis and Machine
           Intelligence 39 (2017).
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
    log_odds: bool = False
    flip: float = 0.0
    is_log_likelihood: bool = False
    unknown_dispersion: bool = False
    # Whether there are second derivatives, for Newton's method; set from the methods of the class
    has_curvature: bool = False
    # Code of the loss in compiled loops (see margin_kernels), which is not inherited, and the name
    # of the attribute that holds its parameter
    kernel: int
    kernel_parameter: str = ""

    def __init_subclass__(cls, **options: Any) -> None:
        super().__init_subclass__(**options)
        if "has_curvature" not in vars(cls):
            cls.has_curvature = (
                cls.curvature is not Loss.curvature or cls.second_order is not Loss.second_order
            )

    @property
    def kernel_code(self) -> tuple[int, float] | None:
        """Number and parameter of the loss in compiled loops, or None if it has no compiled form.

        Subclasses do not inherit the number, since they may override methods.
        """
        number = vars(type(self)).get("kernel")
        return (
            None if number is None else (number, float(getattr(self, self.kernel_parameter, 0.0)))
        )

    @property
    def smooth(self) -> "Loss":
        """Return the loss itself or, if its gradient is discontinuous, a smooth approximation."""
        return self

    def value(self, y: np.ndarray, scores: np.ndarray, sample_weight: np.ndarray) -> float:
        """Compute the weighted mean loss. See :class:`Loss`."""
        raise NotImplementedError

    def row_values(self, y: np.ndarray, scores: np.ndarray) -> np.ndarray:
        """Compute the loss (n,) of each row, for pointwise losses. See :class:`Loss`."""
        one = np.ones(1)
        return np.array([self.value(y[i : i + 1], scores[i : i + 1], one) for i in range(len(y))])

    def gradient(self, y: np.ndarray, scores: np.ndarray, sample_weight: np.ndarray) -> np.ndarray:
        """Compute the gradient of :meth:`value` with respect to the scores. See :class:`Loss`."""
        raise NotImplementedError

    def curvature(self, y: np.ndarray, scores: np.ndarray, sample_weight: np.ndarray) -> np.ndarray:
        """Compute the second derivatives of :meth:`value`, or bounds on them. See :class:`Loss`.

        The derivatives are taken with respect to each score. Upper bounds must replace negative
        values.
        """
        raise NotImplementedError

    def row_hessians(
        self, y: np.ndarray, scores: np.ndarray, sample_weight: np.ndarray
    ) -> np.ndarray:
        """Compute the Hessian of the loss of each row, of shape (n, q, q). See :class:`Loss`.

        By default, it is the diagonal matrix with the entries of :meth:`curvature`.
        """
        return self.curvature(y, scores, sample_weight)[:, :, None] * np.eye(scores.shape[1])

    def value_and_gradient(
        self, y: np.ndarray, scores: np.ndarray, sample_weight: np.ndarray
    ) -> tuple[float, np.ndarray]:
        """Compute the value and gradient together. See :class:`Loss`."""
        return self.value(y, scores, sample_weight), self.gradient(y, scores, sample_weight)

    def second_order(
        self, y: np.ndarray, scores: np.ndarray, sample_weight: np.ndarray
    ) -> SecondOrder:
        """Compute the value, the gradient, and products with the Hessian. See :class:`Loss`.

        The third result is a list with one function per output. Each function multiplies a matrix
        with n rows by the Hessian of :meth:`value` with respect to the scores of its output, or by
        an upper bound on that Hessian.
        """
        curvature = self.curvature(y, scores, sample_weight)
        return *self.value_and_gradient(y, scores, sample_weight), diagonal_products(curvature)

    def parts(self, weight: np.ndarray) -> list[tuple[np.ndarray, float]] | None:
        """List the parts of the data that approximate leave-one-out cross-validation leaves out.

        Parameters
        ----------
        weight : ndarray of shape (n_samples,)
            Row weights; a row of weight w counts as w copies.

        Returns
        -------
        list of (ndarray of int, float), or None
            None if single rows are left out. For a pairwise loss, the positions of the pairs of
            each query or item, and the fraction of their weight to leave out.
        """
        return None

    def best_constant(self, y: np.ndarray, sample_weight: np.ndarray) -> np.ndarray:
        """Return the constant scores (q,) that minimise the loss. See :class:`Loss`."""
        return np.zeros(y.shape[1])

    # -- targets -----------------------------------------------------------------------------------

    def encode_targets(self, y: Any) -> Any:
        """Validate and encode targets; by default, return them unchanged. See :class:`Loss`.

        Raises
        ------
        ValueError
            If the loss does not support the targets.
        """
        return y

    def inverse_link(self, scores: np.ndarray) -> np.ndarray:
        """Convert scores to the units of the targets. See :class:`Loss`."""
        return scores

    def quality(self, y: Any, prediction: np.ndarray, sample_weight: Any = None) -> float:
        """Compute the result of ``FSARegressor.score``, by default R^2. See :class:`Loss`.

        ``y`` and ``prediction`` are in the original units of the targets. For survival times,
        ``prediction`` contains scores. ``sample_weight`` may be None.
        """
        from sklearn.metrics import r2_score

        return float(r2_score(y, prediction, sample_weight=sample_weight))

    def n_informative(self, y: np.ndarray, weight: np.ndarray) -> float:
        """Return the total weight of the rows, or of the events if censored. See :class:`Loss`.

        With fewer rows or events, fewer coefficients can be estimated reliably.
        """
        return float(weight.sum())

    def charges(
        self,
        sizes: np.ndarray,
        y: np.ndarray,
        scores: np.ndarray,
        sample_weight: np.ndarray,
        n_rows: float,
    ) -> np.ndarray:
        """Compute penalties of features or groups with ``sizes`` coefficients. See :class:`Loss`.

        Coefficients without a true effect also decrease the mean loss on ``n_rows`` rows. The
        penalty is the decrease in loss expected from such coefficients, which is proportional to
        the dispersion, minus that for the smallest feature or group. The dispersion is 1 for a log
        likelihood. Otherwise, it is the sum of the squared residuals divided by the sum of the
        curvatures. This is the mean squared residual for the squared loss, and Pearson's estimate
        for a quasi-likelihood.
        """
        if (sizes == sizes[0]).all():
            return np.zeros(len(sizes))
        n_outputs = scores.shape[1]
        dispersion = np.ones(n_outputs)
        if not self.is_log_likelihood:
            _, residual, hessian_products = self.second_order(y, scores, sample_weight)
            squares = np.divide(
                residual**2,
                sample_weight[:, None],
                out=np.zeros_like(residual),
                where=sample_weight[:, None] > 0,
            )
            curvature = np.array(
                [product(np.ones((len(y), 1))).sum() for product in hessian_products]
            )
            np.divide(squares.sum(axis=0), curvature, out=dispersion, where=curvature > 0)
        share_free = 1.0 - self.redundant_outputs / n_outputs if n_outputs > 1 else 1.0
        return charges_of(sizes, n_rows, share_free * float(dispersion.sum()))

    # -- fixed step sizes --------------------------------------------------------------------------

    def surrogate(self, y: np.ndarray, sample_weight: np.ndarray) -> "Loss":
        """Return the loss that annealing minimises. See :class:`Loss`.

        By default, it is the loss itself. A loss with unbounded curvature is extended
        quadratically where scores are far from the best constant prediction.
        """
        return (
            self
            if np.isfinite(self.max_curvature) or not (self.pointwise and self.has_curvature)
            else BandedLoss(self, self.best_constant(y, sample_weight))
        )

    def curvature_bound(self, y: np.ndarray) -> np.ndarray | None:
        """Bound the second derivatives for the given targets. See :class:`Loss`.

        The bounds have shape (n, q). None means that ``max_curvature`` is the bound.
        """
        return None


class JointLoss(Loss):
    """Loss whose subclasses compute the value and gradient together, in ``value_and_gradient``."""

    def value(self, y: np.ndarray, scores: np.ndarray, sample_weight: np.ndarray) -> float:
        return self.value_and_gradient(y, scores, sample_weight)[0]

    def gradient(self, y: np.ndarray, scores: np.ndarray, sample_weight: np.ndarray) -> np.ndarray:
        return self.value_and_gradient(y, scores, sample_weight)[1]


class BandedLoss(JointLoss):
    """Loss that equals ``base`` within a band of scores and is continued by tangent parabolas.

    The curvature is therefore bounded.

    Parameters
    ----------
    base : Loss
        Loss with second derivatives.
    centre : ndarray of shape (n_outputs,)
        Centre of the band.
    half_width : float, default 2.0
        Half the width of the band.
    """

    def __init__(self, base: Loss, centre: np.ndarray, half_width: float = 2.0) -> None:
        self.base = base
        self.centre = centre
        self.half_width = half_width

    def value_and_gradient(
        self, y: np.ndarray, scores: np.ndarray, sample_weight: np.ndarray
    ) -> tuple[float, np.ndarray]:
        inside = self.centre + np.clip(scores - self.centre, -self.half_width, self.half_width)
        beyond = scores - inside
        value, slope = self.base.value_and_gradient(y, inside, sample_weight)
        bend = self.base.curvature(y, inside, sample_weight) * beyond
        return value + float(np.vdot(slope + 0.5 * bend, beyond)), slope + bend

    def best_constant(self, y: np.ndarray, sample_weight: np.ndarray) -> np.ndarray:
        return self.centre

    def curvature_bound(self, y: np.ndarray) -> np.ndarray:
        points = self.centre + self.half_width * np.linspace(-1.0, 1.0, 5)[:, None, None]
        one = np.ones(len(y))
        return np.max([self.base.curvature(y, np.broadcast_to(p, y.shape), one) for p in points], 0)


def _shifted(name: str) -> Any:
    """Return a method that calls the base loss's method at the scores plus the offset."""

    def method(self: "OffsetLoss", y: np.ndarray, scores: np.ndarray, *weight: np.ndarray) -> Any:
        # Compiled losses require contiguous arrays
        return getattr(self.base, name)(y.real.copy(), scores + y.imag, *weight)

    return method


class OffsetLoss(Loss):
    """Loss evaluated at the scores plus an offset per row.

    The targets are the complex numbers y + i offset, so that any subset of the targets includes the
    corresponding offsets.

    Parameters
    ----------
    base : Loss
        Loss to apply to the scores plus offsets.
    """

    _same = (
        "max_curvature",
        "default_step_size",
        "pointwise",
        "exact_curvature",
        "several_classes",
        "redundant_outputs",
        "has_curvature",
        "is_log_likelihood",
        "unknown_dispersion",
    )

    value, row_values, gradient = map(_shifted, ("value", "row_values", "gradient"))
    curvature, row_hessians = map(_shifted, ("curvature", "row_hessians"))
    value_and_gradient, second_order = map(_shifted, ("value_and_gradient", "second_order"))

    def __init__(self, base: Loss) -> None:
        self.base = base
        self.__dict__.update({name: getattr(base, name) for name in self._same})

    def best_constant(self, y: np.ndarray, sample_weight: np.ndarray) -> np.ndarray:
        constant = self.base.best_constant(y.real, sample_weight) - sample_weight @ y.imag
        for _ in range(_N_STEPS if self.has_curvature else 0):
            at = np.broadcast_to(constant, y.shape), sample_weight
            slope, bend = (f(y, *at).sum(axis=0) for f in (self.gradient, self.curvature))
            constant = constant - np.clip(slope / np.maximum(bend, 1e-300), -1.0, 1.0)
        return constant

    def n_informative(self, y: np.ndarray, weight: np.ndarray) -> float:
        return self.base.n_informative(y.real, weight)


class RowLoss(Loss):
    """Loss that is the weighted sum of row values, which a subclass defines in ``row_values``."""

    def value(self, y: np.ndarray, scores: np.ndarray, sample_weight: np.ndarray) -> float:
        return float(sample_weight @ self.row_values(y, scores))


class MarginLoss(RowLoss):
    """Loss that depends on the margin u = y f, for targets y in {-1, +1} and scores f.

    The loss of a row is the sum over its outputs; an output with target 0 does not contribute.
    Subclasses define functions of the margin, which accept and return arrays of any shape.
    """

    def __init_subclass__(cls, **options: Any) -> None:
        super().__init_subclass__(**options)
        cls.has_curvature = cls.margin_curvature is not MarginLoss.margin_curvature

    def margin_value(self, u: np.ndarray) -> np.ndarray:
        """Compute the loss as a function of the margin. See :class:`MarginLoss`."""
        raise NotImplementedError

    def margin_slope(self, u: np.ndarray) -> np.ndarray:
        """Compute the derivative with respect to the margin. See :class:`MarginLoss`."""
        raise NotImplementedError

    def margin_curvature(self, u: np.ndarray) -> np.ndarray:
        """Compute the second derivative, or an upper bound on it. See :class:`MarginLoss`."""
        raise NotImplementedError

    def row_values(self, y: np.ndarray, scores: np.ndarray) -> np.ndarray:
        return ((y != 0) * self.margin_value(y * scores)).sum(axis=1)

    def gradient(self, y: np.ndarray, scores: np.ndarray, sample_weight: np.ndarray) -> np.ndarray:
        return y * self.margin_slope(y * scores) * sample_weight[:, None]

    def curvature(self, y: np.ndarray, scores: np.ndarray, sample_weight: np.ndarray) -> np.ndarray:
        return y * y * self.margin_curvature(y * scores) * sample_weight[:, None]
