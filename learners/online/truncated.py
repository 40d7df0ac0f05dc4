"""Online learners with soft-thresholding: truncated gradient, FOBOS and dual averaging.

See chapter 3 of Ma (thesis).
"""

from dataclasses import field
from typing import Any

import numpy as np

from ..compilation import writable
from ..parameters import check_integer, check_real, checked, estimator, limits
from ..types import Matrix
from .base import OnlineClassifier
from .kernels import Rows, Threshold, rda_pass, thresholded_pass


class SoftThresholdClassifier(OnlineClassifier):
    """Base class for the learners that shrink coefficients while they process rows."""

    shuffle: bool
    learning_rate: float

    @property
    def _threshold(self) -> Threshold:
        """Return the settings that determine how coefficients shrink."""
        raise NotImplementedError

    def _learn(
        self,
        state: Any,
        X: Matrix,
        y: np.ndarray,
        weight: np.ndarray,
        n_passes: int,
        streaming: bool,
        bar: Any,
    ) -> None:
        rows = Rows(*map(writable, (X.data, X.indices, X.indptr[:-1], X.indptr[1:], y, weight)))
        for _ in range(n_passes):
            self._pass(
                state, rows, self._rng.permutation(len(y)) if self.shuffle else np.arange(len(y))
            )
            state["t"] += len(y)
            bar.update()

    def _new_state(self, n_features: int, rng: np.random.RandomState) -> dict[str, Any]:
        return {
            "w": np.zeros(n_features),
            "done": np.zeros(n_features),
            "b": 0.0,
            "t": 0,
            "due": 0.0,
        }

    def _pass(self, state: dict[str, Any], rows: Rows, order: np.ndarray) -> None:
        descent = self._descent(self.learning_rate / self._row_length)
        before = state["t"], state["w"], state["done"], state["due"], state["b"]
        state["b"], state["due"] = thresholded_pass(rows, order, descent, self._threshold, *before)

    def _weights(self, state: dict[str, Any]) -> tuple[np.ndarray, float]:
        threshold = self._threshold
        missed = (state["due"] - state["done"]) * threshold.burst * threshold.gravity
        return np.sign(state["w"]) * np.maximum(np.abs(state["w"]) - missed, 0.0), state["b"]


@estimator
class TruncatedGradientClassifier(SoftThresholdClassifier):
    """Linear classifier trained by truncated gradient descent: SGD with periodic soft-thresholding.

    The method is due to Langford et al. (2009) [1]_ and is Algorithm 3.1 of Ma (2017) [2]_. On a
    stream of rows, it performs stochastic gradient descent on the objective::

        mean_i w_i loss(y_i (coef . x_i + intercept)) + L^2 gravity / learning_rate ||coef||_1

    Here y_i is -1 or +1, w_i is the weight of row i, and L^2 is the mean squared Euclidean norm of
    the rows.

    Parameters
    ----------
    gravity : float, default 1e-4
        Non-negative shrinkage per row (g_0 in [2]_). After every ``burst_size`` rows, all
        coefficients shrink by ``burst_size * gravity``. Larger values give sparser models.
    loss : str or Loss, default "hinge"
        Loss function: "hinge", "logistic", "flipped_logistic", "huberised_hinge", "lorenz",
        "squared", "exponential", or a :class:`Loss` object of one of these types.
    learning_rate : float, default 0.3
        Positive step size, which is divided by the mean squared Euclidean norm of the rows.
    burst_size : int, default 5
        Number K of rows between soft-thresholding steps, at least 1.
    shuffle : bool, default True
        Whether to shuffle the rows before every pass of ``fit``.
    fit_intercept : bool, default True
        Whether to fit an intercept, which is not penalised.
    max_iter : int, default 20
        Number of passes over the rows in ``fit``, at least 1.
    class_weight : dict, "balanced" or None, default None
        Factors for the row weights, as ``{label: factor}``. "balanced", for ``fit`` only, gives all
        classes the same total weight. None means no factors.
    random_state : int, RandomState or None, default None
        Random seed for the order of the rows.
    verbose : bool, default False
        Whether to show a progress bar.

    Attributes
    ----------
    coef_ : ndarray of shape (1, n_features) or (n_classes, n_features)
        Coefficients of the columns of X; 0 for columns that are not selected. More than two classes
        are fitted one-vs-rest.
    intercept_ : ndarray of shape (1,) or (n_classes,)
        Intercept of each output.
    classes_ : ndarray of shape (n_classes,)
        Class labels in ascending order.
    n_iter_ : int
        Number of passes over the rows.
    n_features_in_, feature_names_in_
        Number and names of the training columns.

    References
    ----------
    .. [1] J. Langford, L. Li, T. Zhang, "Sparse online learning via truncated gradient", Journal of
           Machine Learning Research 10 (2009).
    .. [2] Y. Ma, "Flexible Sparse Learning of Feature Subspaces", PhD thesis, Columbia University
           (2017).

    Examples
    --------
    >>> import numpy as np
    >>> from annealed.learners import TruncatedGradientClassifier
    >>> X = np.random.default_rng(0).standard_normal((300, 20))
    >>> y = X[:, 3] > X[:, 7]
    >>> TruncatedGradientClassifier(random_state=0).fit(X, y).score(X, y) > 0.9
    True
    """

    gravity: float = field(default=1e-4, kw_only=False, metadata=limits(check_real, 0.0))
    learning_rate: float = checked(0.3, check_real, 0.0, above=True)
    burst_size: int = checked(5, check_integer, 1)
    shuffle: bool = True

    @property
    def _threshold(self) -> Threshold:
        return Threshold(int(self.burst_size), float(self.gravity), -1.0)


@estimator
class FOBOSClassifier(SoftThresholdClassifier):
    """Linear classifier trained by forward-backward splitting: SGD with soft-thresholding.

    The method is due to Duchi and Singer (2009) [1]_; see also eq. (3.36) of Ma (2017) [2]_.
    Soft-thresholding follows the gradient step of every row. On a stream of rows, the method
    minimises::

        mean_i w_i loss(y_i (coef . x_i + intercept)) + penalty ||coef||_1

    Here y_i is -1 or +1, and w_i is the weight of row i.

    Parameters
    ----------
    penalty : float, default 1e-3
        Non-negative constant that multiplies the l1 norm. Larger values give sparser models.
    loss : str or Loss, default "hinge"
        As in :class:`TruncatedGradientClassifier`.
    learning_rate : float, default 1.0
        Positive learning rate. The step size at row t is ``learning_rate / sqrt(t)``, divided by
        the mean squared Euclidean norm of the rows.
    shuffle, fit_intercept, max_iter, class_weight, random_state, verbose : object
        As in :class:`TruncatedGradientClassifier`.

    Attributes
    ----------
    coef_, intercept_, classes_, n_iter_, n_features_in_, feature_names_in_
        As in :class:`TruncatedGradientClassifier`.

    References
    ----------
    .. [1] J. Duchi, Y. Singer, "Efficient online and batch learning using forward backward
           splitting", Journal of Machine Learning Research 10 (2009).
    .. [2] Y. Ma, "Flexible Sparse Learning of Feature Subspaces", PhD thesis, Columbia University
           (2017).

    Examples
    --------
    >>> import numpy as np
    >>> from annealed.learners import FOBOSClassifier
    >>> X = np.random.default_rng(0).standard_normal((300, 20))
    >>> y = X[:, 3] > X[:, 7]
    >>> FOBOSClassifier(penalty=0.03, random_state=0).fit(X, y).score(X, y) > 0.9
    True
    """

    penalty: float = field(default=1e-3, kw_only=False, metadata=limits(check_real, 0.0))
    learning_rate: float = checked(1.0, check_real, 0.0, above=True)
    shuffle: bool = True

    @property
    def _threshold(self) -> Threshold:
        return Threshold(1, 1.0, float(self.penalty))


@estimator
class RDAClassifier(SoftThresholdClassifier):
    """Linear classifier trained by regularised dual averaging with an l1 penalty.

    The method is due to Xiao (2010) [1]_ and is given by eq. (3.35) of Ma (2017) [2]_. On a
    stream of rows, it minimises::

        mean_i w_i loss(y_i (coef . x_i + intercept)) + penalty ||coef||_1

    Here y_i is -1 or +1, and w_i is the weight of row i. After t rows, the coefficients minimise
    the sum of three terms: the inner product of the mean gradient and coef, the l1 norm multiplied
    by penalty + c rho / sqrt(t), and c / (2 sqrt(t)) ||coef||^2, where c is ``gamma`` times the
    mean squared Euclidean norm of the rows.

    Parameters
    ----------
    penalty : float, default 1e-3
        Non-negative constant that multiplies the l1 norm. Larger values give sparser models.
    loss : str or Loss, default "hinge"
        As in :class:`TruncatedGradientClassifier`.
    gamma : float, default 1.0
        Positive factor of the quadratic term, which is multiplied by the mean squared Euclidean
        norm of the rows. Smaller values give larger steps.
    rho : float, default 0.005
        Non-negative strength of the additional l1 penalty, which decreases with the number of rows.
    shuffle, fit_intercept, max_iter, class_weight, random_state, verbose : object
        As in :class:`TruncatedGradientClassifier`.

    Attributes
    ----------
    coef_, intercept_, classes_, n_iter_, n_features_in_, feature_names_in_
        As in :class:`TruncatedGradientClassifier`.

    References
    ----------
    .. [1] L. Xiao, "Dual averaging methods for regularized stochastic learning and online
           optimization", Journal of Machine Learning Research 11 (2010).
    .. [2] Y. Ma, "Flexible Sparse Learning of Feature Subspaces", PhD thesis, Columbia University
           (2017).

    Examples
    --------
    >>> import numpy as np
    >>> from annealed.learners import RDAClassifier
    >>> X = np.random.default_rng(0).standard_normal((300, 20))
    >>> model = RDAClassifier(penalty=0.2, random_state=0).fit(X, X[:, 3] > X[:, 7])
    >>> model.get_support(indices=True)
    array([3, 7])
    """

    penalty: float = field(default=1e-3, kw_only=False, metadata=limits(check_real, 0.0))
    gamma: float = checked(1.0, check_real, 0.0, above=True)
    rho: float = checked(0.005, check_real, 0.0)
    shuffle: bool = True

    def _new_state(self, n_features: int, rng: np.random.RandomState) -> dict[str, Any]:
        return {"g": np.zeros(n_features), "g0": 0.0, "t": 0}

    def _pass(self, state: dict[str, Any], rows: Rows, order: np.ndarray) -> None:
        state["g0"] = rda_pass(
            rows,
            order,
            self._descent(self.gamma * self._row_length),
            state["t"],
            float(self.penalty),
            float(self.rho),
            state["g"],
            state["g0"],
        )

    def _weights(self, state: dict[str, Any]) -> tuple[np.ndarray, float]:
        root = np.sqrt(state["t"])
        gamma = self.gamma * self._row_length
        mean = state["g"] / state["t"]
        w = (
            -root
            / gamma
            * np.sign(mean)
            * np.maximum(np.abs(mean) - self.penalty - gamma * self.rho / root, 0.0)
        )
        return w, -state["g0"] / (gamma * root)
