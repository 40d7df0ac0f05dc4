"""A longer search for the best support where labels are noisy.

With wrong labels the objective has many local minima that no single exchange leaves. Here doubtful features are taken
out several at a time and others grown back, in rounds, among the nearest neighbours of the chosen ones. The search
judges by labels flipped with probability 0.1 (less where a class is rare), more than most data have: a smaller rate lets a
few rows decide, and the lowest objective then belongs to a wrong support more often.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from scipy.special import expit

from ..designs.base import Design
from ..objective.losses import FlippedLogisticLoss, Loss
from .exchanges import proposals, single_changes
from .newton import solve_positive

# Choices by detection on the simulated data of Barbu et al. (2017), one label in ten drawn at random, not on the tables' draws.
_MORE_FLIPS, _MOST_FLIPS = 5.0, 0.1  # times the share that the fit assumes, and at most
_RIDGE = 1e-4
_SEED = 0
_FEW = 15  # features up to which the rounds of few features are made
_LEAST_SCHUR = 1e-3
_TOLERANCE = 0.02  # nats that the next Newton step of a fit may gain at most
_PATIENCE = 3  # rounds in a row that grow back what they took out, after which the search ends: the support is alone in its valley
_HOPE = 2.0  # times what a Newton step is predicted to gain: a trial that even so stays above the limit is given up: a choice
_NEARLY = 5.0  # a whole Newton step that was predicted to gain less than so many tolerances leaves less than one: a choice


@dataclass(frozen=True)
class _Plan:
    """How a search goes: all noise in nats, differences of the objective times the rows."""

    rounds: int
    pool: int
    growth_noise: float
    tolerance: float
    doubtful: bool


_FEATURES_FEW = _Plan(rounds=20, pool=400, growth_noise=1.0, tolerance=0.5, doubtful=True)
_FEATURES_MANY = _Plan(rounds=12, pool=1000, growth_noise=1.0, tolerance=1.0, doubtful=False)


@dataclass(frozen=True)
class _Exchanges:
    """The quadratic model of exchanges, see :func:`exchange_changes`; the intercept stands behind the support.

    Attributes
    ----------
    changes : ndarray of shape (k, p)
        Predicted change of the objective for every exchange.
    inverse : ndarray of shape (k + 1, k + 1)
        Of the Hessian.
    C : ndarray of shape (k + 1, p)
        How the coefficients move against that of a column that enters.
    schur, step : ndarray of shape (p,)
        Curvature along each column that enters, and minus its coefficient.
    """

    changes: np.ndarray
    inverse: np.ndarray
    C: np.ndarray
    schur: np.ndarray
    step: np.ndarray

    def exchanged(self, theta: np.ndarray, out: int, entering: int) -> np.ndarray:
        """Coefficients (k + 1,) predicted after the exchange; that of the column that enters stands in the other's place."""
        C, schur, step = self.C[:, entering], self.schur[entering], self.step[entering]
        moved = theta + C * step
        spread = self.inverse[:, out] + C * (C[out] / schur)
        share = moved[out] / spread[out]
        moved -= share * spread
        moved[out] = share * C[out] / schur - step
        return moved


@dataclass
class _State:
    """A support with its fit."""

    support: np.ndarray
    theta: np.ndarray
    intercept: float
    value: float
    residual: np.ndarray
    curvature: np.ndarray
    model: _Exchanges | None = None  # once it was asked for


def is_searchable(loss: Loss, y: np.ndarray) -> bool:
    """Whether the search knows the loss: that of flipped labels, two classes."""
    return type(loss) is FlippedLogisticLoss and y.shape[1] == 1


def search(
    design: Design,
    y: np.ndarray,
    sample_weight: np.ndarray,
    kept: np.ndarray,
    *,
    n_rows: float,
    flip: float,
    fixed: np.ndarray | None = None,
) -> np.ndarray:
    """Search for a support of a lower objective of flipped labels.

    Parameters
    ----------
    design : Design
        All features, linear responses.
    y : ndarray of shape (n_samples, 1)
        -1 and +1.
    sample_weight : ndarray of shape (n_samples,)
        Sums to one.
    kept : ndarray of int, ascending
        Where to start.
    n_rows : float
        Rows, each as often as its weight.
    flip : float
        Share of flipped labels that the fit assumes; the search assumes five times as many, which for classes of equal size is 0.1.
    fixed : ndarray of int or None, default None
        Features of ``kept`` that stay.

    Returns
    -------
    ndarray of int, ascending
        The best support found; ``kept`` where none is better.
    """
    plan = _FEATURES_FEW if len(kept) <= _FEW else _FEATURES_MANY
    pool = _neighbours(design, sample_weight, kept, plan.pool)
    Z = design.keep(pool).matrix()
    # By strength: the noise of the rounds belongs to a column for what it holds, not for its place among the features.
    order = np.argsort(-np.abs((sample_weight * y[:, 0]) @ Z), kind="stable")
    pool, Z = pool[order], Z[:, order]
    run = _Run(Z, y[:, 0], sample_weight, n_rows, np.isin(pool, [] if fixed is None else fixed), plan, flip)
    return np.sort(pool[run.best(np.flatnonzero(np.isin(pool, kept)))])


def _neighbours(design, sample_weight, kept, n_pool):
    """The features most correlated with each of ``kept``, and these."""
    A = design.keep(kept).matrix().astype(np.float64)
    correlation = np.abs(design.gradient(A * sample_weight[:, None])[:, 0])
    each = min(max(2, -(-n_pool // len(kept))), design.n_features)
    nearest = np.argpartition(-correlation, each - 1, axis=0)[:each]
    return np.union1d(nearest.ravel(), kept)


class _Run:
    """One search in a pool of columns ``Z``."""

    def __init__(self, Z, y, weight, n_rows, fixed, plan, flip):
        self.Z = np.ascontiguousarray(Z, dtype=np.float32)
        # The loss depends on label times score alone: rows of columns times labels, the last that of the intercept.
        self.signed = np.vstack([Z.T.astype(np.float64), np.ones(len(Z))]) * y
        self.square = self.Z**2
        self.y, self.weight, self.n_rows, self.fixed, self.plan = y, weight, n_rows, fixed, plan
        self.flip = min(_MORE_FLIPS * flip, _MOST_FLIPS)
        self.rng = np.random.default_rng(_SEED)

    def best(self, support):
        """The support of the lowest objective seen."""
        current = self._exchanged(self._fit(support, np.zeros(len(support)), 0.0, n_iter=30))
        best, unmoved = current, 0
        # A small pool has few other supports.
        for _ in range(min(self.plan.rounds, self.Z.shape[1] // len(support))):
            grown = self._regrown(current)
            unmoved = unmoved + 1 if set(grown.support.tolist()) == set(current.support.tolist()) else 0
            if unmoved == _PATIENCE:
                break
            new = current if unmoved else self._exchanged(grown)
            if new.value < best.value:
                best = new
            if (new.value - current.value) * self.n_rows < self.plan.tolerance * self.rng.random():
                current = new
        return best.support

    def _fit(self, support, theta, intercept, n_iter=8, limit=np.inf):
        At = self.signed[_with(support, len(self.signed) - 1)]
        start = _with(theta, intercept)
        found, value, slope, curvature = _newton(At, self.weight, self.flip, start, n_iter, _TOLERANCE / self.n_rows, limit)
        return _State(support, found[:-1], float(found[-1]), value, self.y * slope, curvature)

    def _exchanges(self, state):
        """The model of all exchanges."""
        if state.model is not None:
            return state.model
        k, support = len(state.support), state.support
        weighted = np.empty((k + 2, len(self.Z)), np.float32)  # columns of the support, the intercept's, and the gradient
        weighted[k] = state.curvature
        np.multiply(self.Z[:, support].T, weighted[k], out=weighted[:k])
        weighted[k + 1] = state.residual
        products = (weighted @ self.Z).astype(np.float64)
        cross, gradient = products[: k + 1], products[k + 1]
        H = np.empty((k + 1, k + 1))
        H[:, :k], H[:k, k], H[k, k] = cross[:, support], cross[k, support], state.curvature.sum()
        H.flat[: k * (k + 2) : k + 2] += 2.0 * _RIDGE
        inverse = np.linalg.inv(H)
        C = inverse @ cross
        diagonal = (weighted[k] @ self.square).astype(np.float64) + 2.0 * _RIDGE
        schur = np.maximum(diagonal - np.einsum("kp,kp->p", cross, C), _LEAST_SCHUR * diagonal)
        change = np.zeros((k, C.shape[1]))
        single_changes(inverse[:k, :k], state.theta, C[:k], schur, gradient, change)
        change[:, state.support] = np.inf
        change[self.fixed[state.support]] = np.inf
        state.model = _Exchanges(change, inverse, C, schur, gradient / schur)
        return state.model

    def _exchanged(self, state):
        """Exchanges downhill, three tries each time."""
        for _ in range(100):
            model = self._exchanges(state)
            for trial in proposals(model.changes, 3):
                out, entering = map(list, zip(*trial, strict=True))
                support, theta = state.support.copy(), _with(state.theta, state.intercept)
                support[out] = entering
                if len(trial) == 1:
                    theta = model.exchanged(theta, *trial[0])
                else:
                    theta[out] = 0.0
                new = self._fit(support, theta[:-1], theta[-1], limit=state.value)
                if new.value < state.value - 1e-6 * abs(state.value):
                    state = new
                    break
            else:
                break
        return state

    def _regrown(self, state):
        """Take features out, and grow back as many, one at a time."""
        k = len(state.support)
        free = np.flatnonzero(~self.fixed[state.support])
        if self.plan.doubtful:
            count = int(self.rng.integers(2, 7))
            least = self._exchanges(state).changes.min(axis=1)[free]
            out = free[np.argsort(least * self.n_rows / 4.0 + self.rng.gumbel(size=len(free)) * -1.0)[: min(count, len(free))]]
        else:
            out = self.rng.permutation(free)[: max(1, int(len(free) * self.rng.uniform(0.25, 0.75)))]
        stay = np.ones(k, bool)
        stay[out] = False
        state = self._fit(state.support[stay], state.theta[stay], state.intercept)
        while len(state.support) < k:
            narrow = state.residual.astype(np.float32) @ self.Z
            bend = state.curvature.astype(np.float32) @ self.square
            gain = self.n_rows * narrow.astype(np.float64) ** 2 / (2.0 * np.maximum(bend, 1e-9))
            gain += self.plan.growth_noise * self.rng.gumbel(size=len(gain))
            gain[state.support] = -np.inf
            entering = int(np.argmax(gain))
            support = _with(state.support, entering)
            state = self._fit(support, _with(state.theta, 0.0), state.intercept, n_iter=2)
        return state


def _with(values, last):
    """The values and one more; ``np.append`` takes several times as long."""
    out = np.empty(len(values) + 1, values.dtype)
    out[:-1], out[-1] = values, last
    return out


def _newton(At, weight, flip, theta, n_iter, tol, limit):
    """Newton's method for the loss of flipped labels, with the true curvature, or a fifth of the majorising one where that is more.

    ``At`` (k + 1, n) holds columns times labels and ends with the row of the intercept, the last of ``theta``. It ends early
    where the value would hardly come below ``limit``.
    """
    ridge = np.full(len(theta), 2.0 * _RIDGE)
    ridge[-1] = 1e-10
    margins = theta @ At
    value, slope, curvature = _terms(margins, weight, flip)
    value += 0.5 * (ridge * theta) @ theta
    for _ in range(n_iter):
        H = (At * curvature) @ At.T
        H.ravel()[:: len(H) + 1] += ridge  # a view; in a third of the time of ``flat``
        g = At @ slope + ridge * theta
        direction = solve_positive(H, g)
        expected = 0.5 * (g @ direction)
        if expected <= tol or value - _HOPE * expected > limit:
            break
        move = direction @ At
        step = 1.0
        while True:
            new, new_margins = theta - step * direction, margins - step * move
            found = _terms(new_margins, weight, flip)
            new_value = found[0] + 0.5 * (ridge * new) @ new
            if new_value <= value or step < 1e-3:
                break
            step *= 0.5
        if new_value > value:
            break
        theta, margins, value = new, new_margins, new_value
        _, slope, curvature = found
        if step == 1.0 and expected <= _NEARLY * tol:
            break
    return theta, value, slope, curvature


def _terms(margins, weight, flip):
    """Value of the loss, its derivative and curvature over the margins."""
    right = expit(margins)
    seen = right + flip / (1.0 - 2.0 * flip)
    down = 1.0 - right  # to be minus the derivative
    down *= right
    down /= seen
    value = -(weight @ np.log(seen)) - np.log(1.0 - 2.0 * flip)
    curvature = right + right
    curvature += down
    curvature -= 1.0
    right *= 0.2
    np.maximum(curvature, right, out=curvature)
    down *= weight
    curvature *= down
    return value, -down, curvature
