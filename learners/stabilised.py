"""Stabilised truncated SGD (chapter 3 of the thesis, Algorithms 3.2-3.4): linear classifiers whose features stay the same."""

from __future__ import annotations

import warnings
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from math import ceil
from numbers import Integral, Real

import numpy as np
from joblib import effective_n_jobs
from scipy.optimize import minimize

from . import online_kernels as kernels
from .annealing import strongest
from .losses import ExponentialLoss, HuberisedHingeLoss, get_loss
from .online import OnlineClassifier, check_count, check_positive, loss_number
from .schedules import get_schedule

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


def _empty_counts(active):
    counts = np.zeros((len(active), 4), np.int32)
    counts[~active, 0] = -1
    return counts


def _gather(counts):
    """Move all threads' counts of bursts into the first one's."""
    for other in counts[1:]:
        counts[0][:, 1:] += other[:, 1:]
        other[:, 1:] = 0


@dataclass
class PathState:
    """What the paths of one binary problem carry from stage to stage."""

    coef: np.ndarray  # (n_paths, n_features)
    intercept: np.ndarray  # (n_paths,)
    pool: np.ndarray  # (n_paths, POOL)
    pooled: np.ndarray  # (n_paths,)
    strides: np.ndarray  # (n_paths,)
    counts: np.ndarray  # (n_features, 4): see kernels.stabilised_stage; kept until a feature is judged
    active: np.ndarray  # (n_features,), bool
    rngs: list  # one generator per path
    n_active: int
    stage: int = 0
    seen: int = 0  # rows of the present stage so far, in each path
    gravity: float = 0.0
    history: list = field(default_factory=list)  # (features active, gravity) of each stage

    @classmethod
    def new(cls, n_paths, n_features, rng):
        """All coefficients zero and all features active."""
        return cls(
            coef=np.zeros((n_paths, n_features)),
            intercept=np.zeros(n_paths),
            pool=np.zeros((n_paths, POOL)),
            pooled=np.zeros(n_paths, np.int64),
            strides=np.ones(n_paths, np.int64),
            counts=np.zeros((n_features, 4), np.int32),
            active=np.ones(n_features, bool),
            rngs=[np.random.RandomState(seed) for seed in rng.randint(2**31 - 1, size=n_paths)],
            n_active=n_features,
        )


class StabilizedTruncatedSGDClassifier(OnlineClassifier):
    """Linear classifier by SGD on parallel paths, with informative truncation and features dropped for good by their stability.

    Every path sees the rows in an order of its own. After a burst of rows each coefficient shrinks in proportion to how many of
    them changed it; the share of bursts that leave it non-zero, over all paths, is its selection probability. After
    each stage of bursts the least stable features leave for good. The result is the mean over the paths.

    Parameters
    ----------
    n_features_to_select : int or float
        k, or a share of the features, left at the end (``selection="annealed"``); for several classes each class against the rest
        has its own k.
    selection : {"annealed", "threshold"}
        "annealed" follows a falling number of features, as feature selection with annealing does: each stage drops those with the
        lowest selection probability, ties by the mean coefficient. "threshold" is the text: those below ``threshold``.
    threshold : float
        pi_0 of the text.
    schedule, mu : str, float
        Number of features left after each stage.
    loss : {"hinge", "logistic", "huberised_hinge", "lorenz", "squared", "exponential"} or a loss object
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
        more, all rows at a time (the Huberised hinge in place of the hinge). None keeps the mean over the paths.
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

    def __init__(
        self,
        n_features_to_select=0.1,
        *,
        selection="annealed",
        threshold=0.7,
        schedule="inverse",
        mu=1.0,
        loss="hinge",
        learning_rate=1.0,
        rejection=0.15,
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
        self.mu = mu
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
        for name in ("burst_size", "n_bursts", "n_paths", "n_stages"):
            check_count(name, getattr(self, name))
        if self.refit is not None:
            check_positive("refit", self.refit)
        if self.selection not in ("annealed", "threshold"):
            raise ValueError(f"selection={self.selection!r}; expected 'annealed' or 'threshold'")
        for name in ("threshold", "rejection"):
            if not 0 <= getattr(self, name) <= 1:
                raise ValueError(f"{name}={getattr(self, name)!r}; expected a number in [0, 1]")
        get_schedule(self.schedule)

    def _n_kept(self, n_features):
        k = self.n_features_to_select
        if isinstance(k, Real) and not isinstance(k, Integral) and 0 < float(k) <= 1:
            return max(1, round(float(k) * n_features))
        check_count("n_features_to_select", k)
        if k > n_features:
            warnings.warn(f"n_features_to_select={k} is more than the {n_features} features; all are kept", stacklevel=4)
        return min(int(k), n_features)

    def _new_state(self, n_features, rng):
        self._k = self._n_kept(n_features)
        return PathState.new(self.n_paths, n_features, rng)

    def _learn(self, state, X, y, weight, n_passes, streaming, bar):
        data, indices = X.data.copy(), X.indices.copy()  # rows are shortened in place as features leave
        begin, end = X.indptr[:-1].astype(np.int64), X.indptr[1:].astype(np.int64)
        n, p = X.shape
        per_stage = self.burst_size * self.n_bursts
        kernels.drop_columns(data, indices, begin, end, state.active)
        stored = state.n_active
        n_stages = self.n_stages if streaming else max(1, ceil(n_passes * n / per_stage))
        targets = get_schedule(self.schedule)(p, self._k, n_stages, self.mu)
        number, h = loss_number(self.loss)
        rate = self.learning_rate / self._row_length
        n_threads = min(effective_n_jobs(self.n_jobs), self.n_paths)
        bounds = np.linspace(0, self.n_paths, n_threads + 1).astype(int)
        # Counts are whole numbers: each thread adds up those of its paths, and the sum does not depend on how the paths were dealt.
        counts = [state.counts, *(_empty_counts(state.active) for _ in range(n_threads - 1))]
        scratch = [(np.empty(p, np.int64), np.empty(p)) for _ in range(n_threads)]
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

                def work(thread, part=part):
                    kernels.stabilised_stage(
                        data, indices, begin, end, y, weight, part, self.burst_size, number, h, rate, self.fit_intercept,
                        state.gravity, state.coef, state.intercept, counts[thread], *scratch[thread],
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
                    last = left == 0 and not streaming
                    self._end_stage(state, counts, int(targets[min(state.stage, len(targets) - 1)]), last)
                    if state.n_active < 0.9 * stored:
                        kernels.drop_columns(data, indices, begin, end, state.active)
                        stored = state.n_active
        _gather(counts)
        if self.refit is not None and not streaming:
            self._fit_again(state, X, y, weight)

    def _end_stage(self, state, counts, target, last):
        """Drop unstable features once enough are due to be worth a look at all of them, and set the next gravity."""
        due = target if self.selection == "annealed" else 0
        if due <= FEWER * state.n_active or last or due == self._k:
            _gather(counts)
            self._drop(state, target)
            for other in counts[1:]:
                other[~state.active, 0] = -1
        beta = rejection_rate(state.n_active / len(state.active), self.rejection, self.annealing)
        updates = state.pool[np.arange(POOL) < state.pooled[:, None]]
        state.history.append((state.n_active, state.gravity))
        place = int(beta * (len(updates) - 1))  # the order statistic below (3.12)
        state.gravity = float(np.partition(updates, place)[place]) if len(updates) and beta > 0 else 0.0
        state.pooled[:] = 0
        state.strides[:] = 1
        state.stage += 1
        state.seen = 0

    def _drop(self, state, target):
        """Judge the active features by their selection probability (3.33) and drop for good those that fail."""
        kept = np.flatnonzero(state.active)
        touched, survived = state.counts[kept, 1], state.counts[kept, 2]
        judged = touched > self.min_bursts
        probability = np.where(judged, survived / np.maximum(touched, 1), 1.0)
        if self.selection == "annealed":
            stay = self._most_stable(probability, kept, state.coef, target)
        else:
            stay = probability >= self.threshold
            if not stay.any():
                stay[strongest(probability, 1)] = True
        state.counts[kept[judged]] = 0
        gone = kept[~stay]
        state.active[gone] = False
        state.counts[gone, 0] = -1
        state.coef[:, gone] = 0.0
        state.n_active = len(kept) - len(gone)

    @staticmethod
    def _most_stable(probability, kept, coef, target):
        """Boolean: the ``target`` highest probabilities; of equal ones those with the largest |mean coefficient| over the paths."""
        if target >= len(kept):
            return np.ones(len(kept), bool)
        limit = np.partition(probability, len(kept) - target)[len(kept) - target]
        stay = probability > limit
        tied = np.flatnonzero(probability == limit)
        strength = np.abs(coef[:, kept[tied]].mean(axis=0))
        stay[tied[strongest(strength, target - int(stay.sum()))]] = True
        return stay

    def _fit_again(self, state, X, y, weight):
        """Minimise the mean loss plus ridge on the features left, and give every path the result."""
        kept = np.flatnonzero(state.active)
        columns = X[:, kept]
        loss = {"hinge": HuberisedHingeLoss(), "exponential": ExponentialLoss()}.get(self.loss) or get_loss(self.loss)
        share = weight / weight.sum()
        ridge = self.refit * self._row_length
        target = y[:, None]

        def objective(parameters):
            w, b = parameters[:-1], parameters[-1] * self.fit_intercept
            scores = (columns @ w + b)[:, None]
            residual = loss.gradient(target, scores, share)[:, 0]
            gradient = np.append(columns.T @ residual + ridge * w, residual.sum() * self.fit_intercept)
            return loss.value(target, scores, share) + 0.5 * ridge * float(w @ w), gradient

        start = np.append(state.coef[:, kept].mean(axis=0), state.intercept.mean())
        found = minimize(objective, start, jac=True, method="L-BFGS-B", options={"maxiter": 500}).x
        state.coef[:, kept] = found[:-1]
        state.intercept[:] = found[-1]

    def _weights(self, state):
        self.history_ = np.array(self._states[0].history)
        return state.coef.mean(axis=0), float(state.intercept.mean())
