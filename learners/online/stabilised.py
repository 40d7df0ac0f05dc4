"""Stabilised truncated SGD (chapter 3 of the thesis, Algorithms 3.2-3.4): linear classifiers whose features stay the same."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from math import ceil

import numpy as np
from joblib import effective_n_jobs
from scipy.optimize import minimize

from ..common.validation import check_integer, check_jobs, check_real, number_to_keep
from ..objective.losses import get_loss
from ..solvers.annealing import strongest
from ..solvers.schedules import as_schedule, step_counts
from . import kernels as kernels
from .base import OnlineClassifier, margin_code

POOL = 64  # updates per path from which a stage's gravity is taken
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


@dataclass
class PathState:
    """What the paths of one binary problem carry from stage to stage."""

    columns: np.ndarray  # (n_active,): the features in use, in ascending order; those below are in their places
    coef: np.ndarray  # (n_paths, n_active)
    intercept: np.ndarray  # (n_paths,)
    pool: np.ndarray  # (n_paths, POOL)
    pooled: np.ndarray  # (n_paths,)
    strides: np.ndarray  # (n_paths,)
    bursts: np.ndarray  # (n_active, 2): see kernels.stabilised_stage; kept until a feature is judged
    rngs: list  # one generator per path
    n_features: int
    total: np.ndarray  # (n_active + 1,): sum over ``summed`` paths and stages of the coefficients and, at last, intercept
    summed: int = 0
    stage: int = 0
    seen: int = 0  # rows of the present stage so far, in each path
    gravity: float = 0.0
    history: list = field(default_factory=list)  # (features active, gravity) of each stage

    @classmethod
    def new(cls, n_paths, n_features, rng):
        """All coefficients zero and all features active."""
        return cls(
            columns=np.arange(n_features),
            coef=np.zeros((n_paths, n_features)),
            intercept=np.zeros(n_paths),
            pool=np.zeros((n_paths, POOL)),
            pooled=np.zeros(n_paths, np.int64),
            strides=np.ones(n_paths, np.int64),
            bursts=np.zeros((n_features, 2), np.int32),
            rngs=[np.random.RandomState(seed) for seed in rng.randint(2**31 - 1, size=n_paths)],
            n_features=n_features,
            total=np.zeros(n_features + 1),
        )

    @property
    def n_active(self):
        """Features in use."""
        return len(self.columns)

    def keep(self, stay):
        """Drop all other features (boolean ``stay``) for good."""
        kept = np.flatnonzero(stay)
        self.columns = self.columns[kept]
        self.coef = self.coef.take(kept, axis=1)
        self.bursts = self.bursts[kept]
        self.total, self.summed = np.zeros(len(kept) + 1), 0

    def sum_up(self):
        """Take the present coefficients into the sum over paths and stages."""
        self.total[:-1] += self.coef.sum(axis=0)
        self.total[-1] += self.intercept.sum()
        self.summed += len(self.coef)


class ShrinkingRows:
    """Rows of a CSR matrix of which the columns in use are numbered anew as others leave: a row costs what is left of it."""

    def __init__(self, X, columns):
        self.data, self.indices = X.data.copy(), X.indices.astype(np.uint32)
        self.start, self.end = X.indptr[:-1].astype(np.int64), X.indptr[1:].astype(np.int64)
        place = np.full(X.shape[1], -1, np.int32)
        place[columns] = np.arange(len(columns))
        kernels.renumber_columns(*self.arrays, place)  # type: ignore[call-arg]

    @property
    def arrays(self):
        """Values, column numbers, where each row starts and ends."""
        return self.data, self.indices, self.start, self.end

    def keep(self, stay):
        """Forget all other columns (boolean ``stay``)."""
        kernels.renumber_columns(*self.arrays, np.where(stay, np.cumsum(stay) - 1, -1).astype(np.int32))  # type: ignore[call-arg]


class StabilizedTruncatedSGDClassifier(OnlineClassifier):
    """Linear classifier by SGD on parallel paths, with informative truncation and features dropped for good by their stability.

    Every path sees the rows in an order of its own. After a burst of rows each coefficient shrinks in proportion to how many of
    them changed it; the share of bursts that leave it non-zero, over all paths, is its selection probability. After
    each stage of bursts the least stable features leave for good. The result is the mean over the paths and over the stages since
    the last features left; on a stream, which may drift, the paths' present mean.

    Parameters
    ----------
    n_features_to_select : int or float
        k, or a share of the features, left at the end (``selection="annealed"``); for several classes each class against the rest
        has its own k.
    selection : {"annealed", "threshold"}
        "annealed" follows a falling number of features, as feature selection with annealing does: each stage drops those with the
        lowest selection probability, ties by the mean coefficient. "threshold" is the text: those below ``threshold`` leave, and
        the result is the paths' last mean.
    threshold : float
        pi_0 of the text.
    schedule : {"inverse", "inverse_arxiv", "exponential", "linear"}, Schedule or function, default "inverse"
        Number of features left after each stage, see :class:`Schedule`; a name has the speed mu = 0.3.
    loss : {"hinge", "logistic", "flipped_logistic", "huberised_hinge", "lorenz", "squared", "exponential"} or a Loss
        What one row costs; of the objects those of this package.
    learning_rate : float
        Step, divided by the mean squared length of a row.
    rejection, annealing : float
        beta_0 and gamma of (3.14): the share of updates that the gravity rejects while all features are active, and how fast it
        falls.
    burst_size, n_bursts, n_paths : int
        K rows per burst, n_K bursts per stage, M paths.
    min_bursts : int
        delta_K of (3.33): a feature is judged once more bursts than this touched it; until then its counts are carried over.
    max_iter : int
        Passes over the rows in ``fit``.
    n_stages : int
        Length of the schedule in stages for ``partial_fit``, where the number of rows is unknown.
    refit : float or None
        Strength of the ridge, times the mean squared length of a row, with which ``fit`` at last fits the features left once
        more, all rows at a time (the Huberised hinge in place of the hinge). None keeps the mean.
    class_weight : dict, "balanced" or None
    fit_intercept : bool
        The intercept is never shrunk.
    random_state : int, RandomState or None
    n_jobs : int or None
        Threads; the result does not depend on it.
    verbose : int
        1 shows a progress bar.

    Attributes
    ----------
    coef_ : ndarray of shape (1, n_features) or (n_classes, n_features)
    intercept_ : ndarray of shape (1,) or (n_classes,)
    classes_ : ndarray
    n_iter_ : int
        Passes made.
    history_ : ndarray of shape (n_stages, 2)
        Features active after each stage of the (first) problem, and the gravity used in it.

    Notes
    -----
    As printed the text cannot run: (3.14) gives a rejection rate of 0 while all features are active, so nothing is ever truncated
    (d and 1 - d are exchanged here); (3.11) has no finite supremum (here: the largest g with at most the share beta of |dw / k|
    below); in (3.33) kappa counts bursts and b survivals. So repaired it still drops most features in the first stages almost by
    chance, which is why the annealed stages are the default.

    References
    ----------
    Chapter 3 of the thesis on sDist and stabilised truncated SGD.

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
        loss="hinge",
        learning_rate=1.0,
        rejection=0.05,
        annealing=0.0,
        burst_size=5,
        n_bursts=5,
        n_paths=16,
        min_bursts=0,
        max_iter=20,
        n_stages=100,
        refit=None,
        class_weight=None,
        fit_intercept=True,
        random_state=None,
        n_jobs=None,
        verbose=0,
    ):
        self.n_features_to_select = n_features_to_select
        self.selection = selection
        self.threshold = threshold
        self.schedule = schedule
        self.loss = loss
        self.learning_rate = learning_rate
        self.rejection = rejection
        self.annealing = annealing
        self.burst_size = burst_size
        self.n_bursts = n_bursts
        self.n_paths = n_paths
        self.min_bursts = min_bursts
        self.max_iter = max_iter
        self.n_stages = n_stages
        self.refit = refit
        self.class_weight = class_weight
        self.fit_intercept = fit_intercept
        self.random_state = random_state
        self.n_jobs = n_jobs
        self.verbose = verbose

    def _check_parameters(self):
        super()._check_parameters()
        for name in ("n_bursts", "n_paths", "n_stages"):
            check_integer(name, getattr(self, name), 1)
        check_integer("min_bursts", self.min_bursts, 0)
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
        per_stage = self.burst_size * self.n_bursts
        n_stages = self.n_stages if streaming else max(1, ceil(n_passes * n / per_stage))
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
                take = min(per_stage - state.seen, orders.shape[1] - position)
                part = np.ascontiguousarray(orders[:, position : position + take])

                def work(thread, part=part, bursts=bursts):
                    kernels.stabilised_stage(  # type: ignore[call-arg]
                        *rows.arrays, y, weight, part, int(self.burst_size), number, h, rate, bool(self.fit_intercept),
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
                if state.seen >= per_stage or (left == 0 and not streaming):
                    target = int(targets[min(state.stage, len(targets) - 1)])
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

    def _is_due(self, n_active, target, last):
        """Whether a stage ends with a look at all features: for the annealed stages only when enough of them are to leave."""
        if self.selection == "threshold":
            return True
        return target < n_active and (target <= FEWER * n_active or last or target == self._k)

    def _end_stage(self, state):
        """Set the next gravity."""
        beta = rejection_rate(state.n_active / state.n_features, self.rejection, self.annealing)
        updates = state.pool[np.arange(POOL) < state.pooled[:, None]]
        state.history.append((state.n_active, state.gravity))
        place = int(beta * (len(updates) - 1))  # the order statistic below (3.12)
        state.gravity = float(np.partition(updates, place)[place]) if len(updates) and beta > 0 else 0.0
        state.pooled[:] = 0
        state.strides[:] = 1
        state.stage += 1
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
