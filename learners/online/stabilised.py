"""Stabilised truncated SGD (Ma (thesis), Algorithms 3.2 to 3.4): linear classifiers whose features stay the same."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from math import ceil, log
from typing import Any

import numpy as np
from joblib import effective_n_jobs
from scipy.optimize import minimize

from ..common.docstrings import fill_docstring
from ..common.validation import check_integer, check_jobs, check_real, number_to_keep
from ..objective.losses import get_loss
from ..solvers.annealing import strongest
from ..solvers.schedules import as_schedule, step_counts
from . import kernels as kernels
from .base import ATTRIBUTES, PARAMETERS, OnlineClassifier, margin_code
from .path_state import PathState, ShrinkingRows

FEWER = 0.95  # features are dropped once the schedule leaves at most this share of the present ones


def rejection_rate(share, rejection, annealing):
    """beta of the next stage, (3.14) with d and 1 - d exchanged: ``rejection`` when all features are active, 0 when none is.

    Examples
    --------
    >>> [round(rejection_rate(d, 0.7, 0.0), 3) for d in (1.0, 0.5, 0.0)]
    [0.7, 0.35, 0.0]
    """
    if annealing >= 0:
        return float(rejection * (np.exp(-annealing * (1.0 - share)) - (1.0 - share) * np.exp(-annealing)))
    return float(rejection * np.log(1.0 - annealing * share) / np.log(1.0 - annealing))


def _gather(bursts):
    """Move all threads' counts into the first one's."""
    for other in bursts[1:]:
        bursts[0] += other
        other[:] = 0


def _scratch(n_columns):
    """What kernels.stabilised_stage writes to: a count per column, the columns that a burst met, their coefficients before it."""
    return np.zeros(n_columns, np.int32), np.empty(n_columns + 1, np.uint32), np.empty(n_columns + 1)


@fill_docstring(shared=PARAMETERS, attributes=ATTRIBUTES)
class StabilizedTruncatedSGDClassifier(OnlineClassifier):
    """Linear classifier by SGD on parallel paths, with informative truncation and features dropped for good by their stability.

    Every path sees the rows in another order. After a burst of rows each coefficient shrinks in proportion to how many of
    them changed it; the fraction of bursts that leave it non-zero, over all paths, is its selection probability. After
    each stage of bursts the least stable features leave for good. The result is the mean over the paths and over the stages since
    the last features left; on a stream, which may drift, the paths' present mean.

    Parameters
    ----------
    n_features_to_select : int or float, default 0.1
        k, or a fraction of the features, left at the end (``selection="annealed"``); for several classes each class against the
        rest has its own k.
    selection : {"annealed", "threshold"}, default "annealed"
        "annealed" follows a falling number of features, as feature selection with annealing does: each stage drops those with the
        lowest selection probability, ties by the mean coefficient. "threshold" is the printed algorithm: those below ``threshold``
        are dropped, and the result is the paths' last mean.
    threshold : float, default 0.7
        pi_0, in [0, 1]; the greater, the fewer features.
    schedule : {"inverse", "inverse_arxiv", "exponential", "linear"}, Schedule or function, default "inverse"
        Number of features left after each stage, see :class:`Schedule`; a name has the speed mu = 0.3.
    learning_rate : float, default 1.0
        Step, above 0, divided by the mean squared length of a row.
    rejection : float, default 0.05
        beta_0 of eq. (3.14) of [1]_, in [0, 1]: fraction of the updates that the gravity rejects while all features are active; the
        greater, the sparser.
    annealing : float, default 0.0
        gamma of eq. (3.14): how fast the rejection falls with the fraction of active features; 0 is proportional.
    burst_size : int, default 5
        K, at least 1: rows per burst.
    burst_growth : float or None, default None
        alpha of section 3.5, in (0, 1): the bursts of a stage have K log(1 / (alpha d)) rows, rounded up, at a fraction d of active
        features; exp(-1) begins with K, less with longer bursts. None: always K rows.
    n_bursts : int, default 5
        n_K, at least 1: bursts per stage.
    n_paths : int, default 16
        M, at least 1: paths. More give steadier selection probabilities and take longer.
    min_bursts : int, default 0
        delta_K of eq. (3.33), at least 0: a feature is judged once more bursts than this touched it; until then its counts are
        carried over.
    n_stages : int, default 100
        Length of the schedule in stages for ``partial_fit``, where the number of rows is unknown.
    refit : float or None, default None
        Strength of the ridge, above 0, times the mean squared length of a row, with which ``fit`` at last fits the features left
        once more, all rows at a time (the Huberised hinge in place of the hinge). None keeps the mean.
    n_jobs : int or None, default None
        Threads, -1 for all; the result does not depend on it.
    {shared}

    Attributes
    ----------
    {attributes}
    history_ : ndarray of shape (n_stages, 2)
        Features active after each stage of the (first) problem, and the gravity used in it.

    Notes
    -----
    As printed the algorithm of [1]_ cannot run. Eq. (3.14) gives a rejection rate of 0 while all features are active, so nothing is
    ever truncated: d and 1 - d are exchanged here. Eq. (3.11) has no finite supremum: here it is the largest g with at most the
    fraction beta of |dw / k| below. In (3.33) kappa counts bursts and b the bursts that leave a coefficient non-zero. So repaired
    it still drops most features in the first stages almost by chance, which is why the annealed stages are the default.

    References
    ----------
    .. [1] Y. Ma, "Flexible Sparse Learning of Feature Subspaces", PhD thesis, Columbia University (2017), chapter 3.

    Examples
    --------
    >>> from sklearn.datasets import make_classification
    >>> X, y = make_classification(400, 50, n_informative=5, n_redundant=0, shuffle=False, class_sep=2, random_state=0)
    >>> model = StabilizedTruncatedSGDClassifier(5, random_state=0).fit(X, y)
    >>> int(model.get_support().sum())
    5
    """

    _mu = 0.3

    def __init__(
        self,
        n_features_to_select=0.1,
        *,
        selection="annealed",
        threshold=0.7,
        schedule="inverse",
        learning_rate=1.0,
        rejection=0.05,
        annealing=0.0,
        burst_size=5,
        burst_growth=None,
        n_bursts=5,
        n_paths=16,
        min_bursts=0,
        n_stages=100,
        refit=None,
        n_jobs=None,
        **parameters: Any,
    ):
        super().__init__(**parameters)
        self.n_features_to_select = n_features_to_select
        self.selection = selection
        self.threshold = threshold
        self.schedule = schedule
        self.learning_rate = learning_rate
        self.rejection = rejection
        self.annealing = annealing
        self.burst_size = burst_size
        self.burst_growth = burst_growth
        self.n_bursts = n_bursts
        self.n_paths = n_paths
        self.min_bursts = min_bursts
        self.n_stages = n_stages
        self.refit = refit
        self.n_jobs = n_jobs

    def _check_parameters(self):
        super()._check_parameters()
        for name in ("burst_size", "n_bursts", "n_paths", "n_stages"):
            check_integer(name, getattr(self, name), 1)
        check_integer("min_bursts", self.min_bursts, 0)
        check_real("learning_rate", self.learning_rate, 0.0, above=True)
        if self.burst_growth is not None:
            check_real("burst_growth", self.burst_growth, 0.0, 1.0, above=True, below=True)
        if self.refit is not None:
            check_real("refit", self.refit, 0.0, above=True)
        if self.selection not in ("annealed", "threshold"):
            raise ValueError(f"selection={self.selection!r}; expected 'annealed' or 'threshold'")
        for name in ("threshold", "rejection"):
            check_real(name, getattr(self, name), 0.0, 1.0)
        check_real("annealing", self.annealing, -np.inf)
        check_jobs(self.n_jobs)
        as_schedule(self.schedule, self._mu)

    def _new_state(self, n_features, rng):
        self._k = number_to_keep(self.n_features_to_select, n_features)
        return PathState.new(self.n_paths, n_features, rng)

    def _learn(self, state, X, y, weight, n_passes, streaming, bar):
        rows = ShrinkingRows(X, state.columns)
        state.total[:], state.summed = 0.0, 0
        n, p = X.shape
        shortest = self.burst_size * self.n_bursts  # rows of a stage whose bursts do not grow
        n_stages = self.n_stages if streaming else max(1, ceil(n_passes * n / shortest))
        targets = step_counts(as_schedule(self.schedule, self._mu), p, self._k, n_stages)
        number, h = margin_code(self.loss)
        rate = self.learning_rate / self._row_length
        n_threads = min(effective_n_jobs(self.n_jobs), self.n_paths)
        bounds = np.linspace(0, self.n_paths, n_threads + 1).astype(int)
        scratch = [_scratch(state.n_active) for _ in range(n_threads)]
        # Counts are whole numbers: each thread adds up those of its paths, and the sum does not depend on how the paths were dealt.
        bursts = [state.bursts, *(np.zeros_like(state.bursts) for _ in range(n_threads - 1))]
        with ThreadPoolExecutor(n_threads) as pool:
            position, orders = 0, np.empty((self.n_paths, 0), np.int64)
            left = n_passes * n
            while left > 0:
                if position == orders.shape[1]:
                    orders = np.array([rng.permutation(n) for rng in state.rngs])
                    position = 0
                    bar.update()
                burst = self._burst(state)
                per_stage = burst * self.n_bursts
                take = min(per_stage - state.seen, orders.shape[1] - position)
                part = np.ascontiguousarray(orders[:, position : position + take])

                def work(thread, part=part, bursts=bursts, burst=burst):
                    kernels.stabilised_stage(  # type: ignore[call-arg]
                        *rows.arrays, y, weight, part, burst, number, h, rate, bool(self.fit_intercept),
                        state.gravity, state.coef, state.intercept, bursts[thread], *scratch[thread],
                        state.pool, state.pooled, state.strides, bounds[thread], bounds[thread + 1],
                    )  # fmt: skip

                if n_threads == 1:
                    work(0)
                else:
                    list(pool.map(work, range(n_threads)))
                position += take
                left -= take
                state.seen += take
                state.rows += take
                if state.seen >= per_stage or (left == 0 and not streaming):
                    target = int(targets[min(ceil(state.rows / shortest), len(targets)) - 1])
                    if self._is_due(state.n_active, target, last=left == 0 and not streaming):
                        _gather(bursts)
                        stay = self._judge(state, target)
                        if not stay.all():
                            state.keep(stay)
                            rows.keep(stay)
                            bursts = [state.bursts, *(np.zeros_like(state.bursts) for _ in range(n_threads - 1))]
                    self._end_stage(state)
                    if not streaming and state.n_active <= self._k:
                        state.sum_up()
        _gather(bursts)
        if self.refit is not None and not streaming:
            self._fit_again(state, X, y, weight)

    def _burst(self, state):
        """Rows of a burst of the present stage, K_s of section 3.5."""
        if self.burst_growth is None:
            return int(self.burst_size)
        return max(1, ceil(self.burst_size * log(state.n_features / (self.burst_growth * state.n_active))))

    def _is_due(self, n_active, target, last):
        """Whether a stage evaluates all features at its end: for the annealed stages only when enough of them are to leave."""
        if self.selection == "threshold":
            return True
        return target < n_active and (target <= FEWER * n_active or last or target == self._k)

    def _end_stage(self, state):
        """Set the next gravity."""
        beta = rejection_rate(state.n_active / state.n_features, self.rejection, self.annealing)
        updates = state.pool[np.arange(state.pool.shape[1]) < state.pooled[:, None]]
        state.history.append((state.n_active, state.gravity))
        place = int(beta * (len(updates) - 1))  # the order statistic below (3.12)
        state.gravity = float(np.partition(updates, place)[place]) if len(updates) and beta > 0 else 0.0
        state.pooled[:] = 0
        state.strides[:] = 1
        state.seen = 0

    def _judge(self, state, target):
        """Boolean (n_active,): the features that stay, by their selection probability (3.33)."""
        touched, survived = state.bursts.T
        judged = touched > self.min_bursts
        probability = np.where(judged, survived / np.maximum(touched, 1), 1.0)
        if self.selection == "annealed":
            stay = self._most_stable(probability, state.coef, target)
        else:
            stay = probability >= self.threshold
            if not stay.any():
                stay[strongest(probability, 1)] = True
        state.bursts[judged] = 0
        return stay

    @staticmethod
    def _most_stable(probability, coef, target):
        """Boolean: the ``target`` highest probabilities; of equal ones those with the largest |mean coefficient| over the paths."""
        rank = len(probability) - target
        limit = np.partition(probability, rank)[rank]
        stay = probability > limit
        tied = np.flatnonzero(probability == limit)
        strength = np.abs(coef.mean(axis=0)[tied])
        stay[tied[strongest(strength, target - int(stay.sum()))]] = True
        return stay

    def _fit_again(self, state, X, y, weight):
        """Minimise the mean loss plus ridge on the features left, and give every path the result."""
        columns = X[:, state.columns]
        loss = get_loss(self.loss).smooth
        share = weight / weight.sum()
        ridge = self.refit * self._row_length
        target = y[:, None]

        def objective(parameters):
            w, b = parameters[:-1], parameters[-1] * self.fit_intercept
            scores = (columns @ w + b)[:, None]
            residual = loss.gradient(target, scores, share)[:, 0]
            gradient = np.append(columns.T @ residual + ridge * w, residual.sum() * self.fit_intercept)
            return loss.value(target, scores, share) + 0.5 * ridge * float(w @ w), gradient

        start = np.append(state.coef.mean(axis=0), state.intercept.mean())
        found = minimize(objective, start, jac=True, method="L-BFGS-B", options={"maxiter": 500}).x
        state.coef[:] = found[:-1]
        state.intercept[:] = found[-1]
        state.total[:], state.summed = found, 1

    def _weights(self, state):
        self.history_ = np.array(self._states[0].history)
        if self.selection == "annealed" and state.summed:
            found = state.total / state.summed
        else:
            found = np.append(state.coef.mean(axis=0), state.intercept.mean())
        w = np.zeros(state.n_features)
        w[state.columns] = found[:-1]
        return w, float(found[-1])
