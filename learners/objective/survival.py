"""Cox partial likelihood for survival times that may be censored."""

from typing import Any, NamedTuple

import numpy as np
import scipy.sparse as sp

from .base import JointLoss, SecondOrder


class CoxLoss(JointLoss):
    """Negative log partial likelihood of the Cox model, with Efron's treatment of ties.

    The score is the log relative hazard [1]_. Ties are treated as in [2]_. If rows are weighted,
    tied events each receive their mean weight, as in R's ``survival`` package. No intercept is
    required, since adding a constant to all scores does not change the loss.
    :meth:`encode_targets` encodes the times as integer ranks, which are negated for censored rows.

    References
    ----------
    .. [1] D. R. Cox, "Regression models and life-tables", JRSS B 34 (1972).
    .. [2] B. Efron, "The efficiency of Cox's likelihood function for censored data", JASA 72
           (1977).
    """

    name = "cox"
    tasks = frozenset({"regression"})
    max_curvature = np.inf
    default_step_size = 1.0
    pointwise = False
    is_log_likelihood = True
    censored = True
    target_scaling = None

    def value_and_gradient(
        self, y: np.ndarray, scores: np.ndarray, sample_weight: np.ndarray
    ) -> tuple[float, np.ndarray]:
        sets = _RiskSets.of(y, scores, sample_weight)
        return sets.value, sets.gradient()

    def curvature(self, y: np.ndarray, scores: np.ndarray, sample_weight: np.ndarray) -> np.ndarray:
        # The Hessian in the scores is a graph Laplacian; twice its diagonal is a majorant.
        return 2.0 * _RiskSets.of(y, scores, sample_weight).hessian_diagonal()

    def second_order(
        self, y: np.ndarray, scores: np.ndarray, sample_weight: np.ndarray
    ) -> SecondOrder:
        sets = _RiskSets.of(y, scores, sample_weight)
        return sets.value, sets.gradient(), [sets.hessian_product]

    def n_informative(self, y: np.ndarray, weight: np.ndarray) -> float:
        return float(weight @ (y[:, 0] > 0))

    def encode_targets(self, y: Any) -> Any:
        return survival_targets(y)

    def quality(self, y: Any, prediction: np.ndarray, sample_weight: Any = None) -> float:
        return concordance(survival_targets(y), prediction)


class _RiskSets(NamedTuple):
    """Sums over the rows at risk at each time, for given scores.

    With m deaths at a time, the l-th of them (l = 0 to m - 1) has the denominator S = R - l / m T.
    Here R is the sum of exp(score) over the rows at risk, and T is the sum over the deaths.
    ``sums[i, j]`` at a time is the sum over l of (l / m)^j / S^i, times the mean weight of the
    deaths.
    """

    time: np.ndarray  # (n,), int: rank of each row's time
    died: np.ndarray  # (n,), bool
    scores: np.ndarray  # (n,)
    weight: np.ndarray  # (n,)
    hazard: np.ndarray  # (n,): exp(score), weighted, relative to the largest score
    value: float  # negative log partial likelihood, with weights that sum to one
    sums: dict[tuple[int, int], np.ndarray]  # (n_times,) each

    @classmethod
    def of(cls, y: np.ndarray, scores: np.ndarray, sample_weight: np.ndarray) -> "_RiskSets":
        """Compute the sums for encoded targets (n, 1) and scores (n, 1)."""
        rank, f = y[:, 0], np.asarray(scores[:, 0], dtype=np.float64)
        died, time = rank > 0, np.abs(rank).astype(np.int64) - 1
        n_times = int(time.max()) + 1
        top = float(f.max())
        hazard = sample_weight * len(f) * np.exp(f - top)
        at_risk = np.cumsum(np.bincount(time, hazard, n_times)[::-1])[::-1]
        rows = np.flatnonzero(died & (sample_weight > 0))
        rows = rows[np.argsort(time[rows], kind="stable")]
        event = time[rows]  # death times in ascending order
        count = np.bincount(event, minlength=n_times)
        first = np.cumsum(count) - count
        share = (np.arange(len(rows)) - first[event]) / np.maximum(count[event], 1)
        mean_weight = np.bincount(event, sample_weight[rows], n_times)[event] / np.maximum(
            count[event], 1
        )
        S = at_risk[event] - share * np.bincount(event, hazard[rows], n_times)[event]
        S = np.maximum(S, 1e-150)  # its square must not underflow
        value = float(mean_weight @ (np.log(S) + top)) - float(sample_weight[rows] @ f[rows])
        sums = {
            (i, j): np.bincount(event, mean_weight * share**j / S**i, n_times)
            for i, j in ((1, 0), (1, 1), (2, 0), (2, 1), (2, 2))
        }
        return cls(time, died & (sample_weight > 0), f, sample_weight, hazard, value, sums)

    def _slope(self) -> np.ndarray:
        """For each row, sum over all deaths the probability that this row dies."""
        return self.hazard * (
            np.cumsum(self.sums[1, 0])[self.time] - self.died * self.sums[1, 1][self.time]
        )

    def gradient(self) -> np.ndarray:
        """Compute the derivatives (n, 1) of the value with respect to the scores."""
        return (self._slope() - self.weight * self.died)[:, None]

    def hessian_diagonal(self) -> np.ndarray:
        """Compute the second derivatives (n, 1) of the value with respect to each score."""
        tied = self.died * (2.0 * self.sums[2, 1] - self.sums[2, 2])[self.time]
        return (
            self._slope() - self.hazard**2 * (np.cumsum(self.sums[2, 0])[self.time] - tied)
        ).clip(min=0.0)[:, None]

    def hessian_product(self, A: np.ndarray) -> np.ndarray:
        """Multiply the Hessian with respect to the scores by A (n, p)."""
        n, n_times = len(self.time), len(self.sums[1, 0])
        members = sp.csr_array((np.ones(n), (self.time, np.arange(n))), shape=(n_times, n))
        weighted = self.hazard[:, None] * A
        at_risk = np.cumsum((members @ weighted)[::-1], axis=0)[::-1]
        dead = members @ (weighted * self.died[:, None])
        s20, s21, s22 = (self.sums[key][:, None] for key in ((2, 0), (2, 1), (2, 2)))
        mean = np.cumsum(at_risk * s20 - dead * s21, axis=0)[self.time]
        mean -= self.died[:, None] * (at_risk * s21 - dead * s22)[self.time]
        return self._slope()[:, None] * A - self.hazard[:, None] * mean


def survival_targets(y: Any) -> np.ndarray:
    """Encode times and events as one number per row.

    The number is the rank of the time, starting at 1, and is negative for a censored row.

    Parameters
    ----------
    y : structured array of shape (n_samples,), or array or frame of shape (n_samples, 2)
        A structured array has a boolean field (True if the event was observed) and a field of
        times, in any order, as in scikit-survival. An array of two columns contains the time and
        the event (1 if observed, 0 if censored), as in R's ``Surv``.

    Returns
    -------
    ndarray of shape (n_samples,)
        Encoded targets.

    Raises
    ------
    ValueError
        If the shape is wrong, a time is negative or not finite, an event is not 0 or 1, or there
        are no events.

    Examples
    --------
    >>> survival_targets([[5.0, 1], [2.5, 0], [5.0, 0]])
    array([ 2., -1., -2.])
    """
    time, event = _times_and_events(y)
    if not np.isfinite(time).all() or (time < 0).any():
        bad = time[~(np.isfinite(time) & (time >= 0))][0]
        raise ValueError(f"y contains time {bad:g}; expected finite, non-negative times")
    if not np.isin(event, (0, 1)).all():
        bad = event[~np.isin(event, (0, 1))][0]
        raise ValueError(
            f"y contains event indicator {bad:g}; "
            "expected 1 (observed) or 0 (censored) in the second column"
        )
    if not event.any():
        raise ValueError(
            "y contains no events, because all times are censored; expected at least one event"
        )
    rank = np.unique(time, return_inverse=True)[1] + 1.0
    return np.where(event > 0, rank, -rank)


def _times_and_events(y: Any) -> tuple[np.ndarray, np.ndarray]:
    if y is None:
        raise ValueError("loss='cox' requires y to be passed, but the target y is None")
    values = np.asarray(y)
    names = values.dtype.names
    if names is not None:
        flags = [name for name in names if values.dtype[name].kind == "b"]
        if len(names) != 2 or len(flags) != 1 or values.ndim != 1:
            raise ValueError(
                f"y has the fields {', '.join(names)}; "
                "expected a boolean field for the event and a field for the time"
            )
        (other,) = (name for name in names if name != flags[0])
        return values[other].astype(np.float64), values[flags[0]].astype(np.float64)
    if values.ndim != 2 or values.shape[1] != 2:
        raise ValueError(
            f"y has shape {values.shape}; "
            "expected two columns, time and event, or a structured array, for loss='cox'"
        )
    try:
        values = values.astype(np.float64)
    except (TypeError, ValueError):
        raise ValueError(
            "y contains text; expected numbers (time and event) for loss='cox'"
        ) from None
    return values[:, 0], values[:, 1]


def concordance(y: np.ndarray, risk: np.ndarray) -> float:
    """Compute Harrell's concordance index.

    The index is the fraction of comparable pairs in which the row that died earlier has the higher
    predicted risk; ties in risk count one half. A pair is comparable if its earlier time is that of
    a death. At equal times, a death precedes a censored row.

    Parameters
    ----------
    y : ndarray of shape (n_samples,)
        Targets encoded by :func:`survival_targets`.
    risk : ndarray of shape (n_samples,)
        Predicted risk, such as the score of :class:`CoxLoss`.

    Returns
    -------
    float
        Concordance index; NaN if no pair is comparable.

    Examples
    --------
    >>> concordance(np.array([1.0, 2.0, -3.0]), np.array([3.0, 1.0, 2.0]))
    0.6666666666666666
    """
    risk = np.asarray(risk, dtype=np.float64)
    time, good, pairs = np.abs(y), 0.0, 0
    for i in np.flatnonzero(y > 0):
        later = risk[(time > time[i]) | ((time == time[i]) & (y < 0))]
        good += np.count_nonzero(later < risk[i]) + 0.5 * np.count_nonzero(later == risk[i])
        pairs += len(later)
    return float(good) / pairs if pairs else float("nan")
