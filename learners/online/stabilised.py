"""Stabilised truncated SGD for linear classifiers, Ma (thesis), Algorithms 3.2 to 3.4."""

from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from math import ceil, log
from typing import Any

import numpy as np
from joblib import effective_n_jobs
from scipy.optimize import minimize

from ..compilation import writable
from ..objective.losses import get_loss
from ..parameters import (
    check_choice,
    check_integer,
    check_jobs,
    check_real,
    checked,
    estimator,
    resolve_n_features,
)
from ..solvers import Schedule, as_schedule, step_counts, strongest
from ..types import Matrix
from .base import OnlineClassifier
from .kernels import Counts, Paths, Rows, stabilised_stage

POOL = 64  # number of updates per path that determine the gravity of a stage (heuristic)


@dataclass
class PathState:
    """State of the parallel paths of a binary problem between stages."""

    # (n_active,): the active features in ascending order, as in the arrays below
    columns: np.ndarray
    paths: Paths  # updated by each stage
    bursts: np.ndarray  # (n_active, 2): see Counts in kernels; reset when a feature is evaluated
    rngs: list[np.random.RandomState]  # one generator per path
    n_features: int
    # (n_active + 1,): sums of the coefficients and the intercept over ``summed`` paths and stages
    total: np.ndarray
    summed: int = 0
    rows: int = 0  # number of rows of all stages so far, per path
    seen: int = 0  # number of rows of the current stage so far, per path
    gravity: float = 0.0
    # (number of active features, gravity) of each stage
    history: list[tuple[int, float]] = field(default_factory=list)

    @classmethod
    def new(cls, n_paths: int, n_features: int, rng: np.random.RandomState) -> "PathState":
        """Create the initial state, with zero coefficients and all features active."""
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

    def keep(self, stay: np.ndarray) -> None:
        """Permanently drop the features that are not in the mask ``stay``."""
        kept = np.flatnonzero(stay)
        self.columns = self.columns[kept]
        self.paths = self.paths._replace(coef=self.paths.coef.take(kept, axis=1))
        self.bursts = self.bursts[kept]
        self.total, self.summed = np.zeros(len(kept) + 1), 0

    def sum_up(self) -> None:
        """Add the current coefficients to the sums over paths and stages."""
        self.total[:-1] += self.paths.coef.sum(axis=0)
        self.total[-1] += self.paths.intercept.sum()
        self.summed += len(self.paths.coef)

    def mean(self) -> np.ndarray:
        """Compute the mean coefficients of the paths, followed by their mean intercept."""
        return np.append(self.paths.coef.mean(axis=0), self.paths.intercept.mean())


def rows_of(X: Any, y: np.ndarray, weight: np.ndarray) -> Rows:
    """Return the :class:`.Rows` of a CSR matrix that contains only the active columns."""
    start, end = X.indptr[:-1].astype(np.int64), X.indptr[1:].astype(np.int64)
    return Rows(X.data, X.indices.astype(np.uint32), start, end, y, writable(weight))


FEWER = 0.95  # features are dropped once the schedule keeps at most this fraction of them


def rejection_rate(share: float, rejection: float, annealing: float) -> float:
    """Return the rejection rate beta of the next stage.

    The equation is (3.14) of Ma (thesis) with d and 1 - d exchanged.

    d = ``share`` is the fraction of active features. The rate is ``rejection`` if all features are
    active, and 0 if none are.

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
    """Allocate counters for each thread; the first thread updates ``bursts`` directly.

    Counts are integers, so the totals do not depend on the assignment of paths to threads.
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


@estimator
class StabilizedTruncatedSGDClassifier(OnlineClassifier):
    """Linear classifier trained by SGD that permanently drops unstable features [1]_.

    The classifier implements Algorithms 3.2 to 3.4 of [1]_. Several parallel paths minimise the
    mean loss by stochastic gradient steps::

        mean_i w_i loss(y_i (coef . x_i + intercept))

    Here y_i is -1 or +1, and w_i is the weight of row i. After every burst of rows, each
    coefficient is soft-thresholded by an amount proportional to the number of rows that changed it.
    The selection probability of a feature is the fraction of bursts, over all paths, that leave its
    coefficient non-zero. After each stage of bursts, the features with the lowest probabilities are
    dropped permanently. The final coefficients are the mean over the paths; ``fit`` also averages
    over the stages after the last drop.

    Parameters
    ----------
    n_features_to_select : int or float, default 0.1
        Number or fraction of features that remain at the end; with more than two classes, for each
        class. Only used if ``selection="annealed"``.
    loss : str or Loss, default "hinge"
        As in :class:`TruncatedGradientClassifier`.
    selection : {"annealed", "threshold"}, default "annealed"
        Rule for dropping features after each stage.

        * "annealed": drop the features with the lowest selection probabilities; ``schedule``
          determines how many. Ties are broken by the smallest absolute mean coefficient;
        * "threshold": drop the features whose selection probability is below ``threshold``, as in
          [1]_. ``fit`` then averages over the paths only.
    threshold : float, default 0.7
        Threshold for the selection probability (pi_0 in [1]_), in [0, 1]. Only used if
        ``selection="threshold"``.
    schedule : str, Schedule or function, default "inverse"
        Number of features that remain after each stage; see :class:`Schedule`. Schedules given by
        name ("inverse", "inverse_arxiv", "exponential", "linear") have ``mu=0.3``. Only used if
        ``selection="annealed"``.
    learning_rate : float, default 1.0
        Positive step size, which is divided by the mean squared Euclidean norm of the rows.
    rejection : float, default 0.05
        Initial rejection rate, in [0, 1] (beta_0 in eq. (3.14) of [1]_): the shrinkage per row is
        this quantile of the absolute changes of coefficients per row in the previous stage. The
        rate decreases to 0 as features are dropped.
    annealing : float, default 0.0
        Shape of this decrease (gamma in eq. (3.14) of [1]_): linear for 0, faster for positive
        values, slower for negative values.
    burst_size : int, default 5
        Number K of rows per burst, at least 1.
    burst_growth : float or None, default None
        Constant alpha in section 3.5 of [1]_, in (0, 1). Bursts become longer as features are
        dropped: with a fraction d left, a burst has K log(1 / (alpha d)) rows, rounded up. None
        means K rows.
    n_bursts : int, default 5
        Number n_K of bursts per stage, at least 1.
    n_paths : int, default 16
        Number M of paths, at least 1.
    min_bursts : int, default 0
        Non-negative number of bursts (delta_K in eq. (3.33) of [1]_). A feature has selection
        probability 1 until more than this number of bursts have changed it.
    n_stages : int, default 100
        Number of stages in the schedule of ``partial_fit``, where the number of rows is unknown.
    refit : float or None, default None
        Positive factor of a ridge penalty, which is multiplied by the mean squared Euclidean norm
        of the rows. If given, ``fit`` ends by minimising mean loss + ridge / 2 ||coef||^2 over the
        remaining features. In this step, the Huberised hinge replaces the hinge loss.
    fit_intercept, max_iter, class_weight, random_state : object
        As in :class:`TruncatedGradientClassifier`.
    n_jobs : int or None, default None
        Number of threads; -1 means all processors, and None means one. The result does not depend
        on it.
    verbose : bool, default False
        Whether to show a progress bar.

    Attributes
    ----------
    coef_, intercept_, classes_, n_iter_, n_features_in_, feature_names_in_
        As in :class:`TruncatedGradientClassifier`.
    history_ : ndarray of shape (n_stages, 2)
        Number of active features after each stage, and the gravity (shrinkage per row) of the
        stage. With several classes, these are the values of the first class.

    Notes
    -----
    As printed in [1]_, eq. (3.14) is 0 before the first drop, and eq. (3.11) is infinite. Here, d
    and 1 - d are exchanged in eq. (3.14), and a quantile replaces eq. (3.11). In eq. (3.33), b
    counts the bursts that leave a coefficient non-zero.

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
    selection: str = checked("annealed", check_choice, ("annealed", "threshold"))
    threshold: float = checked(0.7, check_real, 0.0, 1.0)
    schedule: str | Schedule | Callable[[int, int, int], np.ndarray] = "inverse"
    learning_rate: float = checked(1.0, check_real, 0.0, above=True)
    rejection: float = checked(0.05, check_real, 0.0, 1.0)
    annealing: float = checked(0.0, check_real, -np.inf)
    burst_size: int = checked(5, check_integer, 1)
    burst_growth: float | None = checked(
        None, check_real, 0.0, 1.0, above=True, below=True, unless=(None,)
    )
    n_bursts: int = checked(5, check_integer, 1)
    n_paths: int = checked(16, check_integer, 1)
    min_bursts: int = checked(0, check_integer, 0)
    n_stages: int = checked(100, check_integer, 1)
    refit: float | None = checked(None, check_real, 0.0, above=True, unless=(None,))
    n_jobs: int | None = None

    def _check_parameters(self) -> None:
        super()._check_parameters()
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
        active = X[:, state.columns]
        rows = rows_of(active, y, weight)
        state.total[:], state.summed = 0.0, 0
        n, p = X.shape
        shortest = self.burst_size * self.n_bursts  # rows of a stage if bursts do not grow
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
                    position, orders = 0, np.array([rng.permutation(n) for rng in state.rngs])
                    bar.update()
                burst = self._burst(state)
                per_stage = burst * self.n_bursts
                take = min(per_stage - state.seen, orders.shape[1] - position)
                part = np.ascontiguousarray(orders[:, position : position + take])

                def work(
                    thread: int,
                    rows: Rows = rows,
                    part: np.ndarray = part,
                    counts: list[Counts] = counts,
                    burst: int = burst,
                ) -> None:
                    first, last = bounds[thread], bounds[thread + 1]
                    stabilised_stage(
                        rows,
                        part,
                        burst,
                        descent,
                        state.gravity,
                        state.paths,
                        counts[thread],
                        first,
                        last,
                        self.selection == "threshold",
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
                    if self._is_due(len(state.columns), target, last=left == 0 and not streaming):
                        _gather(counts)
                        stay = self._judge(state, target)
                        if not stay.all():
                            state.keep(stay)
                            active = active[:, stay]
                            rows = rows_of(active, y, weight)
                            counts = _counts(state.bursts, n_threads)
                    self._end_stage(state)
                    if not streaming and len(state.columns) <= self._k:
                        state.sum_up()
        _gather(counts)
        if self.refit is not None and not streaming:
            self._fit_again(state, X, y, weight)

    def _burst(self, state: PathState) -> int:
        """Return the number K_s of rows per burst in the current stage, section 3.5."""
        if self.burst_growth is None:
            return int(self.burst_size)
        return max(
            1,
            ceil(
                self.burst_size * log(state.n_features / (self.burst_growth * len(state.columns)))
            ),
        )

    def _is_due(self, n_active: int, target: int, last: bool) -> bool:
        """Return whether a stage evaluates all features at its end.

        Annealed stages do so only if they drop enough features.
        """
        return self.selection == "threshold" or (
            target < n_active and (target <= FEWER * n_active or last or target == self._k)
        )

    def _end_stage(self, state: PathState) -> None:
        """Set the gravity of the next stage."""
        beta = rejection_rate(len(state.columns) / state.n_features, self.rejection, self.annealing)
        paths = state.paths
        updates = paths.pool[np.arange(POOL) < paths.pooled[:, None]]
        state.history.append((len(state.columns), state.gravity))
        place = int(beta * (len(updates) - 1))  # order statistic given below eq. (3.12)
        state.gravity = (
            float(np.partition(updates, place)[place]) if len(updates) and beta > 0 else 0.0
        )
        paths.pooled[:], paths.strides[:] = 0, 1
        state.seen = 0

    def _judge(self, state: PathState, target: int) -> np.ndarray:
        """Return the mask (n_active,) of features whose selection probabilities (3.33) suffice."""
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
        """Return the mask of the ``target`` highest probabilities.

        Ties favour the largest absolute mean coefficient over the paths.
        """
        rank = len(probability) - target
        limit = np.partition(probability, rank)[rank]
        stay = probability > limit
        tied = np.flatnonzero(probability == limit)
        strength = np.abs(coef.mean(axis=0)[tied])
        stay[tied[strongest(strength, target - int(stay.sum()))]] = True
        return stay

    def _fit_again(self, state: PathState, X: Matrix, y: np.ndarray, weight: np.ndarray) -> None:
        """Refit the remaining features with a ridge, and store the result in all paths."""
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
