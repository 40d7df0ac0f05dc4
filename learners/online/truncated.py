"""Soft thresholds on streams: truncated gradient, forward-backward splitting and dual averaging (Ma (thesis), chapter 3)."""

from __future__ import annotations

from typing import Any

import numpy as np

from ..common.docstrings import fill_docstring
from ..common.validation import check_integer, check_real
from . import kernels as kernels
from .base import ATTRIBUTES, PARAMETERS, OnlineClassifier, margin_code

_PARAMETERS = (
    """
    shuffle : bool, default True
        Take a new order of the rows for every pass of ``fit``."""
    + PARAMETERS
)

_THESIS = """Y. Ma, "Flexible Sparse Learning of Feature Subspaces", PhD thesis, Columbia University (2017)."""


class SoftThresholdClassifier(OnlineClassifier):
    """What the learners share whose coefficients move towards zero as the rows pass."""

    def __init__(self, *, shuffle: bool = True, **parameters: Any):
        super().__init__(**parameters)
        self.shuffle = shuffle

    def _orders(self, n, n_passes):
        """One order of the rows per pass."""
        for _ in range(n_passes):
            yield self._rng.permutation(n) if self.shuffle else np.arange(n)


@fill_docstring(shared=_PARAMETERS, attributes=ATTRIBUTES, thesis=_THESIS)
class TruncatedGradientClassifier(SoftThresholdClassifier):
    """Truncated gradient: SGD with a soft threshold after every few rows ([1]_, [2]_ Algorithm 3.1).

    Parameters
    ----------
    gravity : float, default 1e-4
        g_0, at least 0: every ``burst_size`` rows all coefficients shrink by ``burst_size * gravity``; the greater, the sparser.
    burst_size : int, default 5
        K, at least 1: rows between two thresholds.
    learning_rate : float, default 0.3
        Step, above 0, divided by the mean squared length of a row.
    {shared}

    Attributes
    ----------
    {attributes}

    References
    ----------
    .. [1] J. Langford, L. Li, T. Zhang, "Sparse online learning via truncated gradient", Journal of Machine Learning Research 10
       (2009).
    .. [2] {thesis}

    Examples
    --------
    >>> import numpy as np
    >>> from annealed.learners import TruncatedGradientClassifier
    >>> X = np.random.default_rng(0).standard_normal((300, 20))
    >>> y = X[:, 3] > X[:, 7]
    >>> TruncatedGradientClassifier(random_state=0).fit(X, y).score(X, y) > 0.9
    True
    """

    def __init__(self, gravity: float = 1e-4, *, burst_size: int = 5, learning_rate: float = 0.3, **parameters: Any):
        super().__init__(**parameters)
        self.gravity = gravity
        self.burst_size = burst_size
        self.learning_rate = learning_rate

    def _check_parameters(self):
        super()._check_parameters()
        check_real("gravity", self.gravity, 0.0)
        check_integer("burst_size", self.burst_size, 1)
        check_real("learning_rate", self.learning_rate, 0.0, above=True)

    def _new_state(self, n_features, rng):
        return {"w": np.zeros(n_features), "done": np.zeros(n_features, np.int64), "b": 0.0, "t": 0}

    def _learn(self, state, X, y, weight, n_passes, streaming, bar):
        number, h = margin_code(self.loss)
        rate = self.learning_rate / self._row_length
        for order in self._orders(len(y), n_passes):
            state["b"] = kernels.truncated_gradient_pass(
                X.data, X.indices, X.indptr, y, weight, order, number, h, rate, bool(self.fit_intercept), state["t"],
                int(self.burst_size), float(self.gravity), state["w"], state["done"], state["b"],
            )  # fmt: skip
            state["t"] += len(y)
            bar.update()

    def _weights(self, state):
        missed = (state["t"] // self.burst_size - state["done"]) * self.burst_size * self.gravity
        return np.sign(state["w"]) * np.maximum(np.abs(state["w"]) - missed, 0.0), state["b"]


@fill_docstring(shared=_PARAMETERS, attributes=ATTRIBUTES, thesis=_THESIS)
class FOBOSClassifier(SoftThresholdClassifier):
    """Forward-backward splitting with the absolute norm ([1]_, [2]_ eq. (3.36)): a soft threshold after every row.

    Parameters
    ----------
    penalty : float, default 1e-3
        lambda, at least 0; the greater, the sparser.
    learning_rate : float, default 1.0
        Above 0: row t takes the step ``learning_rate / sqrt(t)``, divided by the mean squared length of a row.
    {shared}

    Attributes
    ----------
    {attributes}

    References
    ----------
    .. [1] J. Duchi, Y. Singer, "Efficient online and batch learning using forward backward splitting", Journal of Machine Learning
       Research 10 (2009).
    .. [2] {thesis}

    Examples
    --------
    >>> import numpy as np
    >>> from annealed.learners import FOBOSClassifier
    >>> X = np.random.default_rng(0).standard_normal((300, 20))
    >>> y = X[:, 3] > X[:, 7]
    >>> FOBOSClassifier(penalty=0.03, random_state=0).fit(X, y).score(X, y) > 0.9
    True
    """

    def __init__(self, penalty: float = 1e-3, *, learning_rate: float = 1.0, **parameters: Any):
        super().__init__(**parameters)
        self.penalty = penalty
        self.learning_rate = learning_rate

    def _check_parameters(self):
        super()._check_parameters()
        check_real("penalty", self.penalty, 0.0)
        check_real("learning_rate", self.learning_rate, 0.0, above=True)

    def _new_state(self, n_features, rng):
        return {"w": np.zeros(n_features), "done": np.zeros(n_features), "b": 0.0, "t": 0, "total": 0.0}

    def _learn(self, state, X, y, weight, n_passes, streaming, bar):
        number, h = margin_code(self.loss)
        rate = self.learning_rate / self._row_length
        for order in self._orders(len(y), n_passes):
            state["b"], state["total"] = kernels.fobos_pass(
                X.data, X.indices, X.indptr, y, weight, order, number, h, rate, bool(self.fit_intercept), state["t"],
                float(self.penalty), state["w"], state["done"], state["total"], state["b"],
            )  # fmt: skip
            state["t"] += len(y)
            bar.update()

    def _weights(self, state):
        return np.sign(state["w"]) * np.maximum(np.abs(state["w"]) - (state["total"] - state["done"]), 0.0), state["b"]


@fill_docstring(shared=_PARAMETERS, attributes=ATTRIBUTES, thesis=_THESIS)
class RDAClassifier(SoftThresholdClassifier):
    """Regularised dual averaging with the absolute norm ([1]_, [2]_ eq. (3.35)).

    Parameters
    ----------
    penalty : float, default 1e-3
        lambda, at least 0; the greater, the sparser.
    gamma : float, default 1.0
        Strength of the proximal term, above 0, times the mean squared length of a row; small values take large steps.
    rho : float, default 0.005
        Enhancement of sparsity, at least 0: gamma rho / sqrt(t) is added to lambda.
    {shared}

    Attributes
    ----------
    {attributes}

    References
    ----------
    .. [1] L. Xiao, "Dual averaging methods for regularized stochastic learning and online optimization", Journal of Machine
       Learning Research 11 (2010).
    .. [2] {thesis}

    Examples
    --------
    >>> import numpy as np
    >>> from annealed.learners import RDAClassifier
    >>> X = np.random.default_rng(0).standard_normal((300, 20))
    >>> RDAClassifier(penalty=0.2, random_state=0).fit(X, X[:, 3] > X[:, 7]).get_support(indices=True)
    array([3, 7])
    """

    def __init__(self, penalty: float = 1e-3, *, gamma: float = 1.0, rho: float = 0.005, **parameters: Any):
        super().__init__(**parameters)
        self.penalty = penalty
        self.gamma = gamma
        self.rho = rho

    def _check_parameters(self):
        super()._check_parameters()
        check_real("penalty", self.penalty, 0.0)
        check_real("gamma", self.gamma, 0.0, above=True)
        check_real("rho", self.rho, 0.0)

    def _new_state(self, n_features, rng):
        return {"g": np.zeros(n_features), "g0": 0.0, "t": 0}

    def _scale(self):
        return self.gamma * self._row_length

    def _learn(self, state, X, y, weight, n_passes, streaming, bar):
        number, h = margin_code(self.loss)
        for order in self._orders(len(y), n_passes):
            state["g0"] = kernels.rda_pass(
                X.data, X.indices, X.indptr, y, weight, order, number, h, bool(self.fit_intercept), state["t"],
                float(self.penalty), self._scale(), float(self.rho), state["g"], state["g0"],
            )  # fmt: skip
            state["t"] += len(y)
            bar.update()

    def _weights(self, state):
        root = np.sqrt(state["t"])
        gamma = self._scale()
        mean = state["g"] / state["t"]
        w = -root / gamma * np.sign(mean) * np.maximum(np.abs(mean) - self.penalty - gamma * self.rho / root, 0.0)
        return w, -state["g0"] / (gamma * root)
