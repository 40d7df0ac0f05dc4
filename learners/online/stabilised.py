"""Stabilised truncated SGD (Ma (thesis), Algorithms 3.2 to 3.4): linear classifiers with a stable
selection.
"""

from __future__ import annotations

from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from math import ceil, log
from typing import Any

import numpy as np
from joblib import effective_n_jobs
from scipy.optimize import minimize

from ..common.validation import (
    check_choice,
    check_integer,
    check_jobs,
    check_parameters,
    check_real,
    resolve_n_features,
)
from ..compilation import writable
from ..objective.losses import Loss, get_loss
from ..solvers.annealing import strongest
from ..solvers.schedules import Schedule, as_schedule, step_counts
from ..types import ClassWeight, Matrix, Seed
from .base import OnlineClassifier
from .kernels import Counts, Paths, Rows, renumber_columns, stabilised_stage

POOL = 64  # number of updates per path that determine a stage's gravity: a choice


@dataclass
class PathState:
    """State of the paths of one binary problem between stages."""

    columns: (
        np.ndarray
    )  # (n_active,): the features in use, in ascending order; the arrays below have this order
    paths: Paths  # updated by the stages
    bursts: np.ndarray  # (n_active, 2): see Counts in kernels; kept until a feature is judged
    rngs: list[np.random.RandomState]  # one generator per path
    n_features: int
    # (n_active + 1,): sum of the coefficients and the intercept over ``summed`` paths and stages
    total: np.ndarray
    summed: int = 0
    rows: int = 0  # number of rows of all stages so far, in each path
    seen: int = 0  # number of rows of the current stage so far, in each path
    gravity: float = 0.0
    history: list[tuple[int, float]] = field(
        default_factory=list
    )  # (features active, gravity) of each stage

    @classmethod
    def new(cls, n_paths: int, n_features: int, rng: np.random.RandomState) -> PathState:
        """Initial state: all coefficients are zero and all features active."""
        counters = np.zeros(n_paths, np.int64), np.ones(n_paths, np.int64)
        return cls(
            columns=np.arange(n_features),
            paths=Paths(
                np.zeros((n_paths, n_features)),
                np.zeros(n_paths),
                np.zeros((n_paths, POOL)),
                *counters,
            ),
            bursts=np.zeros((n_features, 2), np.int32),
            rngs=[np.random.RandomState(seed) for seed in rng.randint(2**31 - 1, size=n_paths)],
            n_features=n_features,
            total=np.zeros(n_features + 1),
        )

    @property
    def n_active(self) -> int:
        """Number of features in use."""
        return len(self.columns)

    def keep(self, stay: np.ndarray) -> None:
        """Permanently drop the features outside the mask ``stay``."""
        kept = np.flatnonzero(stay)
        self.columns = self.columns[kept]
        self.paths = self.paths._replace(coef=self.paths.coef.take(kept, axis=1))
        self.bursts = self.bursts[kept]
        self.total, self.summed = np.zeros(len(kept) + 1), 0

    def sum_up(self) -> None:
        """Add the current coefficients to the sum over paths and stages."""
        self.total[:-1] += self.paths.coef.sum(axis=0)
        self.total[-1] += self.paths.intercept.sum()
        self.summed += len(self.paths.coef)

    def mean(self) -> np.ndarray:
        """Mean coefficients and intercept (n_active + 1,) of the paths."""
        return np.append(self.paths.coef.mean(axis=0), self.paths.intercept.mean())


def keep_columns(rows: Rows, stay: np.ndarray) -> None:
    """Remove the columns outside the mask ``stay`` and renumber the rest, so that the cost of a row
    decreases with its number of entries."""
    renumber_columns(rows, np.where(stay, np.cumsum(stay) - 1, -1).astype(np.int32))


FEWER = 0.95  # drop features once the schedule keeps at most this fraction of the active ones


def rejection_rate(share: float, rejection: float, annealing: float) -> float:
    """Rate beta of the next stage, (3.14) with d and 1 - d exchanged: ``rejection`` if all features
    are active, 0 if none is.

    Examples
    --------
    >>> [round(rejection_rate(d, 0.7, 0.0), 3) for d in (1.0, 0.5, 0.0)]
    [0.7, 0.35, 0.0]
    """
    if annealing >= 0:
        return float(
            rejection * (np.exp(-annealing * (1.0 - share)) - (1.0 - share) * np.exp(-annealing))
        )
    return float(rejection * np.log(1.0 - annealing * share) / np.log(1.0 - annealing))


def _counts(bursts: np.ndarray, n_threads: int) -> list[Counts]:
    """Counters of each thread; the first thread counts in ``bursts`` directly.

    Counts are integers: each thread sums over its own paths, and the total does not depend on how
    paths are assigned to threads.
    """
    p = len(bursts)
    return [
        Counts(
            np.zeros_like(bursts) if t else bursts,
            np.zeros(p, np.int32),
            np.empty(p + 1, np.uint32),
            np.empty(p + 1),
        )
        for t in range(n_threads)
    ]


def _gather(counts: list[Counts]) -> None:
    """Add the burst counts of all threads to those of the first thread."""
    for other in counts[1:]:
        counts[0].bursts[:] += other.bursts
        other.bursts[:] = 0


@dataclass(eq=False, repr=False, kw_only=True)
class StabilizedTruncatedSGDClassifier(OnlineClassifier):
    """Linear classifier by SGD on parallel paths; unstable features are dropped (Ma (thesis) [1]_).

    Chapter 3 of [1]_, Algorithms 3.2 to 3.4. It has no separate objective: every path takes
    stochastic gradient steps on the mean loss of the margin::

        mean_i w_i loss(y_i (coef . x_i + intercept))

    in its own order of the rows. After a burst of rows each coefficient shrinks in proportion to
    how many of them changed it. The fraction of bursts that leave it non-zero, over all paths, is
    its selection probability; after each stage of bursts the features of lowest probability are
    dropped permanently. The result is the mean over paths and over stages since then; on a stream
    the current mean of the paths.

    Parameters
    ----------
    n_features_to_select : int or float, default 0.1
        k, or the fraction of the features, left at the end with ``selection="annealed"``, for each
        of several classes.
    loss : str or Loss, default "hinge"
        Loss of one row: "hinge", "logistic", "flipped_logistic", "huberised_hinge", "lorenz",
        "squared", "exponential", or the corresponding loss object.
    selection : {"annealed", "threshold"}, default "annealed"
        Which features a stage drops:

        * "annealed": those of the lowest selection probability, ties by the mean coefficient, as
          many as ``schedule`` determines;
        * "threshold": those below ``threshold``, the printed algorithm; the result is the last
          mean.
    threshold : float, default 0.7
        pi_0, in [0, 1]; larger values select fewer features.
    schedule : str, Schedule or function, default "inverse"
        Number of features left after each stage, see :class:`Schedule`; a name ("inverse",
        "inverse_arxiv", "exponential", "linear") has the speed mu = 0.3.
    learning_rate : float, default 1.0
        Step size, above 0, divided by the mean squared length of a row.
    rejection : float, default 0.05
        beta_0 of eq. (3.14), in [0, 1]: fraction of the updates rejected while all features are
        active; larger values give sparser models.
    annealing : float, default 0.0
        gamma of eq. (3.14): how fast the rejection falls with the active features.
    burst_size : int, default 5
        K, at least 1: rows per burst.
    burst_growth : float or None, default None
        alpha of section 3.5, in (0, 1): at a fraction d of active features a burst has
        K log(1 / (alpha d)) rows, rounded up. None: always K rows.
    n_bursts : int, default 5
        n_K, at least 1: bursts per stage.
    n_paths : int, default 16
        M, at least 1: paths.
    min_bursts : int, default 0
        delta_K of eq. (3.33), at least 0: a feature is judged once more bursts than this touched
        it.
    n_stages : int, default 100
        Stages of the schedule for ``partial_fit``, where the number of rows is unknown.
    refit : float or None, default None
        ridge, above 0, over the mean squared length of a row: ``fit`` finally minimises the mean
        loss + ridge / 2 ||coef||^2 on the features left (the Huberised hinge for the hinge).
    fit_intercept : bool, default True
        Whether to fit an intercept; it is not shrunk.
    max_iter : int, default 20
        Passes over the rows in ``fit``, at least 1.
    class_weight : dict, "balanced" or None, default None
        Weight factor of each class; "balanced", in ``fit`` only, gives all classes the same total
        weight.
    random_state : int, RandomState or None, default None
        Seed of the order of the rows.
    n_jobs : int or None, default None
        Threads, -1 for all; the result does not depend on it.
    verbose : bool, default False
        Show a progress bar.

    Attributes
    ----------
    coef_ : ndarray of shape (1, n_features) or (n_classes, n_features)
        In units of the raw columns; 0 where a column is not used. More than two classes are
        fitted one-vs-rest.
    intercept_ : ndarray of shape (1,) or (n_classes,)
        Intercepts.
    classes_ : ndarray of shape (n_classes,)
        Labels in ascending order.
    n_iter_ : int
        Number of passes made.
    history_ : ndarray of shape (n_stages, 2)
        Features active after each stage of the (first) problem, and the gravity used in it.
    n_features_in_, feature_names_in_
        As in every scikit-learn estimator.

    Notes
    -----
    Eqs. (3.11), (3.14) and (3.33) do not work as printed: docs/papers.md gives the replacements.

    References
    ----------
    .. [1] Y. Ma, "Flexible Sparse Learning of Feature Subspaces", PhD thesis, Columbia University
           (2017), chapter 3.

    Examples
    --------
    >>> from sklearn.datasets import make_classification
    >>> from annealed.learners import StabilizedTruncatedSGDClassifier
    >>> X, y = make_classification(
    ...     400, 50, n_informative=5, n_redundant=0, class_sep=2, random_state=0
    ... )
    >>> model = StabilizedTruncatedSGDClassifier(5, random_state=0).fit(X, y)
    >>> int(model.get_support().sum())
    5
    """

    _mu = 0.3

    n_features_to_select: int | float = field(default=0.1, kw_only=False)
    loss: str | Loss = "hinge"
    selection: str = "annealed"
    threshold: float = 0.7
    schedule: str | Schedule | Callable[[int, int, int], np.ndarray] = "inverse"
    learning_rate: float = 1.0
    rejection: float = 0.05
    annealing: float = 0.0
    burst_size: int = 5
    burst_growth: float | None = None
    n_bursts: int = 5
    n_paths: int = 16
    min_bursts: int = 0
    n_stages: int = 100
    refit: float | None = None
    fit_intercept: bool = True
    max_iter: int = 20
    class_weight: ClassWeight = None
    random_state: Seed = None
    n_jobs: int | None = None
    verbose: bool = False

    def _check_parameters(self) -> None:
        super()._check_parameters()
        check_parameters(check_integer, self, ("burst_size", "n_bursts", "n_paths", "n_stages"), 1)
        check_integer("min_bursts", self.min_bursts, 0)
        check_real("learning_rate", self.learning_rate, 0.0, above=True)
        check_parameters(
            check_real, self, ("burst_growth",), 0.0, 1.0, above=True, below=True, unless=(None,)
        )
        check_parameters(check_real, self, ("refit",), 0.0, above=True, unless=(None,))
        check_choice("selection", self.selection, ("annealed", "threshold"))
        check_parameters(check_real, self, ("threshold", "rejection"), 0.0, 1.0)
        check_real("annealing", self.annealing, -np.inf)
        check_jobs(self.n_jobs)
        as_schedule(self.schedule, self._mu)

    def _new_state(self, n_features: int, rng: np.random.RandomState) -> PathState:
        self._k = resolve_n_features(self.n_features_to_select, n_features)
        return PathState.new(self.n_paths, n_features, rng)

    def _learn(
        self,
        state: PathState,
        X: Matrix,
        y: np.ndarray,
        weight: np.ndarray,
        n_passes: int,
        streaming: bool,
        bar: Any,
    ) -> None:
        start, end = X.indptr[:-1].astype(np.int64), X.indptr[1:].astype(np.int64)
        rows = Rows(X.data.copy(), X.indices.astype(np.uint32), start, end, y, writable(weight))
        keep_columns(rows, np.isin(np.arange(X.shape[1]), state.columns))
        state.total[:], state.summed = 0.0, 0
        n, p = X.shape
        shortest = self.burst_size * self.n_bursts  # rows of a stage whose bursts do not grow
        n_stages = self.n_stages if streaming else max(1, ceil(n_passes * n / shortest))
        targets = step_counts(as_schedule(self.schedule, self._mu), p, self._k, n_stages)
        descent = self._descent(self.learning_rate / self._row_length)
        n_threads = min(effective_n_jobs(self.n_jobs), self.n_paths)
        bounds = np.linspace(0, self.n_paths, n_threads + 1).astype(int)
        counts = _counts(state.bursts, n_threads)
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

                def work(
                    thread: int,
                    part: np.ndarray = part,
                    counts: list[Counts] = counts,
                    burst: int = burst,
                ) -> None:
                    first, last = bounds[thread], bounds[thread + 1]
                    gravity = state.gravity
                    stabilised_stage(
                        rows,
                        part,
                        burst,
                        descent,
                        gravity,
                        state.paths,
                        counts[thread],
                        first,
                        last,
                    )

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
                        _gather(counts)
                        stay = self._judge(state, target)
                        if not stay.all():
                            state.keep(stay)
                            keep_columns(rows, stay)
                            counts = _counts(state.bursts, n_threads)
                    self._end_stage(state)
                    if not streaming and state.n_active <= self._k:
                        state.sum_up()
        _gather(counts)
        if self.refit is not None and not streaming:
            self._fit_again(state, X, y, weight)

    def _burst(self, state: PathState) -> int:
        """Number K_s of rows of a burst in the current stage, section 3.5."""
        if self.burst_growth is None:
            return int(self.burst_size)
        return max(
            1, ceil(self.burst_size * log(state.n_features / (self.burst_growth * state.n_active)))
        )

    def _is_due(self, n_active: int, target: int, last: bool) -> bool:
        """Whether a stage evaluates all features at its end. Annealed stages do so only if they
        drop enough features.
        """
        if self.selection == "threshold":
            return True
        return target < n_active and (target <= FEWER * n_active or last or target == self._k)

    def _end_stage(self, state: PathState) -> None:
        """Set the next gravity."""
        beta = rejection_rate(state.n_active / state.n_features, self.rejection, self.annealing)
        paths = state.paths
        updates = paths.pool[np.arange(POOL) < paths.pooled[:, None]]
        state.history.append((state.n_active, state.gravity))
        place = int(beta * (len(updates) - 1))  # the order statistic below (3.12)
        state.gravity = (
            float(np.partition(updates, place)[place]) if len(updates) and beta > 0 else 0.0
        )
        paths.pooled[:] = 0
        paths.strides[:] = 1
        state.seen = 0

    def _judge(self, state: PathState, target: int) -> np.ndarray:
        """Mask (n_active,) of the features to keep, by their selection probabilities (3.33)."""
        touched, survived = state.bursts.T
        judged = touched > self.min_bursts
        probability = np.where(judged, survived / np.maximum(touched, 1), 1.0)
        if self.selection == "annealed":
            stay = self._most_stable(probability, state.paths.coef, target)
        else:
            stay = probability >= self.threshold
            if not stay.any():
                stay[strongest(probability, 1)] = True
        state.bursts[judged] = 0
        return stay

    @staticmethod
    def _most_stable(probability: np.ndarray, coef: np.ndarray, target: int) -> np.ndarray:
        """Mask of the ``target`` highest probabilities; ties favour the largest absolute mean
        coefficient over the paths.
        """
        rank = len(probability) - target
        limit = np.partition(probability, rank)[rank]
        stay = probability > limit
        tied = np.flatnonzero(probability == limit)
        strength = np.abs(coef.mean(axis=0)[tied])
        stay[tied[strongest(strength, target - int(stay.sum()))]] = True
        return stay

    def _fit_again(self, state: PathState, X: Matrix, y: np.ndarray, weight: np.ndarray) -> None:
        """Minimise the mean loss plus ridge on the remaining features; all paths get the result."""
        columns = X[:, state.columns]
        loss = get_loss(self.loss).smooth
        share = weight / weight.sum()
        ridge = self.refit * self._row_length
        target = y[:, None]

        def value_and_gradient(parameters: np.ndarray) -> tuple[float, np.ndarray]:
            w, b = parameters[:-1], parameters[-1] * self.fit_intercept
            scores = (columns @ w + b)[:, None]
            residual = loss.gradient(target, scores, share)[:, 0]
            gradient = np.append(
                columns.T @ residual + ridge * w, residual.sum() * self.fit_intercept
            )
            return loss.value(target, scores, share) + 0.5 * ridge * float(w @ w), gradient

        solution = minimize(
            value_and_gradient, state.mean(), jac=True, method="L-BFGS-B", options={"maxiter": 500}
        ).x
        state.paths.coef[:], state.paths.intercept[:] = solution[:-1], solution[-1]
        state.total[:], state.summed = solution, 1

    def _weights(self, state: PathState) -> tuple[np.ndarray, float]:
        self.history_ = np.array(self._states[0].history)
        solution = (
            state.total / state.summed
            if self.selection == "annealed" and state.summed
            else state.mean()
        )
        w = np.zeros(state.n_features)
        w[state.columns] = solution[:-1]
        return w, float(solution[-1])
