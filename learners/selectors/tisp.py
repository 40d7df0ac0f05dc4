"""Quantile TISP (QTP in the FSA papers): iterative thresholding that keeps exactly k features."""

from dataclasses import field

import numpy as np

from ..designs.base import Design
from ..objective import Loss, Prior, check_bounded
from ..parameters import (
    check_choice,
    check_declared,
    check_integer,
    check_real,
    checked,
    estimator,
    resolve_n_features,
)
from ..solvers import anneal, safe_step, start_direction, strengths, strongest
from ..types import Matrix
from .base import ScaledSelector, SelectingClassifier, SelectingRegressor


@estimator
class _TISP(ScaledSelector):
    """Base class with the fit method of both estimators."""

    n_features_to_select: int | float = field(default=10, kw_only=False)
    loss: str | Loss = "auto"
    scaling: str = "standardize"
    n_thresholdings: int = checked(10, check_integer, 1)
    n_steps: int = checked(500, check_integer, 0)
    interleave: bool = checked(True, check_choice, (True, False))
    learning_rate: float | str = checked("auto", check_real, 0.0, above=True, unless=("auto",))
    ridge: float = checked(0.0, check_real, 0.0)
    fit_intercept: bool = True

    def _select(self, X: Matrix, y: np.ndarray, loss: Loss, weight: np.ndarray) -> None:
        check_declared(self)
        check_bounded(loss)
        k = resolve_n_features(self.n_features_to_select, X.shape[1])
        weight = weight / weight.sum()
        design = self._make_design(X, weight)
        zero = np.zeros(y.shape[1])
        coef = np.zeros((X.shape[1], 1, y.shape[1]))
        intercept = loss.best_constant(y, weight) if self.fit_intercept else zero

        def step_of(columns: Design) -> float:
            """Return the inverse curvature on the current features.

            These are all features at first, and then the k features that the last thresholding
            kept.
            """
            return (
                safe_step(
                    columns,
                    loss,
                    weight,
                    start_direction(columns, y, loss, weight, zero),
                    penalty=self.ridge,
                )
                if isinstance(self.learning_rate, str)
                else float(self.learning_rate)
            )

        rate = step_of(design)
        curve: list[float] = []
        ends = np.linspace(0, self.n_steps, self.n_thresholdings + 1).astype(int)
        ends[:-1] *= self.interleave
        for share in np.diff(ends):
            gradient, residual_sum, value = design.scores_and_gradient(
                coef, intercept, loss, y, weight
            )
            moved = coef - rate * gradient
            if self.fit_intercept:
                intercept = intercept - residual_sum / loss.max_curvature
            kept = strongest(strengths(moved), k)
            small = design.keep(kept)
            rate = step_of(small)
            state = anneal(  # the annealing loop without drops is gradient descent
                small,
                y,
                loss,
                np.full(share, k),
                sample_weight=weight,
                learning_rate=rate,
                coef=moved[kept] / (1.0 + rate * self.ridge),  # hard-ridge thresholding
                intercept=intercept,
                prior=Prior(shrinkage=0.5 * self.ridge),
                fit_intercept=self.fit_intercept,
            )
            coef = np.zeros_like(moved)
            coef[kept], intercept = state.coef, state.intercept
            curve += [value, *state.loss_curve]
        self.loss_curve_ = np.array(curve)
        self.n_iter_ = self.n_thresholdings + self.n_steps
        self._store(design, kept, coef[kept][:, 0], intercept)


@estimator
class TISPClassifier(_TISP, SelectingClassifier):
    """Classifier that selects k features by thresholding-based iterative selection (TISP, [1]_).

    The variant that keeps k features in each iteration is called quantile TISP (QTP) in [2]_. The
    objective, over the coefficients of at most k features, is::

        sum_i w_i loss(y_i, coef . x_i + intercept) + ridge / 2 ||coef||^2

    The row weights w_i sum to one. Each gradient step on all features is followed by thresholding,
    so dropped features may be selected again. With a ridge penalty, this is the hard-ridge
    thresholding of [1]_.

    Parameters
    ----------
    n_features_to_select : int or float, default 10
        Number k of features to select, or a fraction of them. If k exceeds the number of features,
        all features are selected and a warning is issued.
    loss : str or Loss, default "auto"
        Pointwise loss with bounded curvature.

        * "auto" or "logistic": logistic loss, or multinomial loss for more than two classes;
        * "flipped_logistic", "huberised_hinge" or "lorenz": as in :class:`FSAClassifier`;
        * "squared": half the squared error on labels -1 and +1;
        * a :class:`Loss` object.
    scaling : {"standardize", "none"}, default "standardize"
        "standardize" scales each column to variance one; "none" divides all columns by the same
        number.
    n_thresholdings : int, default 10
        Number of gradient steps on all features, each followed by thresholding, at least 1.
    n_steps : int, default 500
        Non-negative number of additional gradient steps on the selected features.
    interleave : bool, default True
        Whether to distribute the additional steps evenly over the thresholding steps. If False, all
        additional steps follow the last thresholding step, as in [2]_.
    learning_rate : float or "auto", default "auto"
        Positive step size. "auto" means the inverse of an upper bound on the curvature of the
        objective, which is estimated for the features of the current step.
    ridge : float, default 0.0
        Non-negative factor of the ridge penalty.
    fit_intercept : bool, default True
        Whether to fit an intercept, which is neither penalised nor dropped.
    class_weight : dict, "balanced" or None, default None
        Factors for the row weights, as ``{label: factor}``. "balanced" gives all classes the same
        total weight. None means no factors.

    Attributes
    ----------
    support_ : ndarray of shape (n_features,), bool
        Mask of the selected columns.
    classes_ : ndarray of shape (n_classes,)
        Class labels in ascending order.
    coef_ : ndarray of shape (1, n_features) or (n_classes, n_features)
        Coefficients of the unscaled columns; 0 for columns that are not selected.
    intercept_ : ndarray of shape (1,) or (n_classes,)
        Intercept of each output.
    loss_curve_ : ndarray of shape (n_thresholdings + n_steps,)
        Loss before each step.
    n_iter_ : int
        Number of steps, ``n_thresholdings + n_steps``.
    n_features_in_, feature_names_in_
        Number and names of the training columns.

    References
    ----------
    .. [1] Y. She, "Thresholding-based iterative selection procedures for model selection and
           shrinkage", Electronic Journal of Statistics 3 (2009).
    .. [2] A. Barbu, Y. She, L. Ding, G. Gramajo, "Feature Selection with Annealing for Computer
           Vision and Big Data Learning", IEEE Transactions on Pattern Analysis and Machine
           Intelligence 39 (2017).

    Examples
    --------
    >>> import numpy as np
    >>> from annealed.learners import TISPClassifier
    >>> X = np.random.default_rng(0).standard_normal((200, 50))
    >>> TISPClassifier(2).fit(X, X[:, 3] > X[:, 7]).get_support(indices=True)
    array([3, 7])
    """


class TISPRegressor(_TISP, SelectingRegressor):
    """Regressor that selects k features by thresholding-based iterative selection (TISP, [1]_).

    The variant that keeps k features in each iteration is called quantile TISP (QTP) in [2]_. The
    objective, over the coefficients of at most k features, is::

        sum_i w_i loss(y_i, coef . x_i + intercept) + ridge / 2 ||coef||^2

    The row weights w_i sum to one. Each gradient step on all features is followed by thresholding,
    so dropped features may be selected again. With a ridge penalty, this is the hard-ridge
    thresholding of [1]_. Several outputs share the selected features.

    Parameters
    ----------
    n_features_to_select : int or float, default 10
        As in :class:`TISPClassifier`.
    loss : str or Loss, default "auto"
        Pointwise loss with bounded curvature.

        * "auto" or "squared": half the squared error, on targets scaled to mean 0 and variance 1;
        * "huber" or "quantile": as in :class:`FSARegressor`, on targets scaled in the same way;
        * a :class:`Loss` object.
    scaling, n_thresholdings, n_steps, interleave, learning_rate, ridge, fit_intercept : object
        As in :class:`TISPClassifier`.

    Attributes
    ----------
    support_ : ndarray of shape (n_features,), bool
        Mask of the selected columns.
    coef_ : ndarray of shape (n_features,) or (n_outputs, n_features)
        Coefficients of the unscaled columns; 0 for columns that are not selected.
    intercept_ : float or ndarray of shape (n_outputs,)
        Intercept of each output.
    loss_curve_, n_iter_, n_features_in_, feature_names_in_
        As in :class:`TISPClassifier`.

    References
    ----------
    .. [1] Y. She, "Thresholding-based iterative selection procedures for model selection and
           shrinkage", Electronic Journal of Statistics 3 (2009).
    .. [2] A. Barbu, Y. She, L. Ding, G. Gramajo, "Feature Selection with Annealing for Computer
           Vision and Big Data Learning", IEEE Transactions on Pattern Analysis and Machine
           Intelligence 39 (2017).

    Examples
    --------
    >>> import numpy as np
    >>> from annealed.learners import TISPRegressor
    >>> X = np.random.default_rng(0).standard_normal((100, 30))
    >>> TISPRegressor(2).fit(X, X[:, 4] + 2 * X[:, 9]).get_support(indices=True)
    array([4, 9])
    """
