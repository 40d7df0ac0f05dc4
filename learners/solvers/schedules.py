"""Annealing schedules, which determine the number of features after each step."""

from collections.abc import Callable
from numbers import Real

import numpy as np

from ..parameters import check_integer
from ..sklearn_bases import BaseEstimator

Counts = Callable[[int, int, int], np.ndarray]
N_STEPS = 100  # default number of steps


def inverse(n_features: int, k: int, n_steps: int, mu: float) -> np.ndarray:
    """Return the schedule in eq. (3) of Barbu et al. (2017), which reaches k after half the steps.

    The number of features after step e is M_e = k + (M - k) max(0, (E - 2e) / (2 e mu + E)) for M
    features, E steps and speed mu.

    Examples
    --------
    >>> inverse(1000, 10, 10, 1.0)
    array([670, 434, 257, 120,  10,  10,  10,  10,  10,  10])
    """
    e = np.arange(1, n_steps + 1)
    share = np.maximum(0.0, (n_steps - 2.0 * e) / (2.0 * e * mu + n_steps))
    return _whole(k + (n_features - k) * share, n_features, k)


def inverse_arxiv(n_features: int, k: int, n_steps: int, mu: float) -> np.ndarray:
    """Return the schedule M_e = max(k, M / (1 + e mu) - 1 / E), eq. (3) of Barbu et al. (2014).

    The symbols are those of :func:`inverse`, but the curve and the scale of mu differ.
    """
    e = np.arange(1, n_steps + 1)
    return _whole(np.maximum(k, n_features / (1.0 + e * mu) - 1.0 / n_steps), n_features, k)


def exponential(n_features: int, k: int, n_steps: int, mu: float) -> np.ndarray:
    """Return the schedule M_e = max(k, M xi^e) with xi = (k / M)^(2 mu / E).

    For mu = 1, it reaches k after half of the steps; for larger mu, it reaches k earlier. See
    :func:`inverse` for the symbols.
    """
    e = np.arange(1, n_steps + 1)
    return _whole(
        np.maximum(k, n_features * (max(k, 1) / n_features) ** (2.0 * mu * e / n_steps)),
        n_features,
        k,
    )


def linear(n_features: int, k: int, n_steps: int, mu: float) -> np.ndarray:
    """Return the schedule that decreases linearly to k at step ``n_steps / (2 max(mu, 1))``."""
    e = np.arange(1, n_steps + 1)
    return _whole(
        k + (n_features - k) * np.maximum(0.0, 1.0 - 2.0 * e * max(mu, 1.0) / n_steps),
        n_features,
        k,
    )


def _whole(left: np.ndarray, n_features: int, k: int) -> np.ndarray:
    counts = np.clip(np.floor(left + 1e-9).astype(np.int64), k, n_features)
    counts[-1] = k  # exactly k features remain after the last step, whatever the parameters
    return np.minimum.accumulate(counts)


SCHEDULES: dict[str, Callable[[int, int, int, float], np.ndarray]] = {
    "inverse": inverse,
    "inverse_arxiv": inverse_arxiv,
    "exponential": exponential,
    "linear": linear,
}


class Schedule(BaseEstimator):
    """Annealing schedule, which determines the number of features after each step.

    The call ``schedule(n_features, k, n_steps)`` returns the number of features after each step. In
    an estimator with a Schedule, the speed can be tuned as the nested parameter ``schedule__mu``.

    Parameters
    ----------
    kind : {"inverse", "inverse_arxiv", "exponential", "linear"}, default "inverse"
        Formula for the number of features after step e, given M features, E steps and the speed mu.

        * "inverse": k + (M - k) max(0, (E - 2 e) / (2 e mu + E)), eq. (3) of [1]_. It reaches k
          after half of the steps.
        * "inverse_arxiv": max(k, M / (1 + e mu) - 1 / E), eq. (3) of [2]_. The last step always
          leaves k features.
        * "exponential": the same fraction of the features is dropped in each step, until k remain
          after E / (2 mu) steps.
        * "linear": the same number of features is dropped in each step, until k remain after E / (2
          max(mu, 1)) steps.
    mu : float or "auto", default "auto"
        Non-negative speed. A larger value drops more features in the first steps, so the fit is
        faster, but features are dropped before their coefficients have converged. With mu = 0, the
        number of features decreases linearly under "inverse". "auto" means the default of the
        estimator: 100 for classification and ranking, 30 for regression, and 0.3 for
        :class:`StabilizedTruncatedSGDClassifier`. The first two suit "inverse"; for "exponential"
        and "linear", a suitable value is about 1. An FSA estimator that is given the name of a
        schedule instead of an object uses mu = 20 and 500 steps with bounds or monotone responses,
        and otherwise mu = 20 and 200 steps for more than two classes and at least 400 rows. In a
        direct call, "auto" means 100.
    n_steps : int, default 100
        Number of annealing steps of the FSA estimators, at least 1; not used in a direct call. With
        more steps, fewer features are dropped at a time, and the fit takes longer.

    References
    ----------
    .. [1] A. Barbu, Y. She, L. Ding, G. Gramajo, "Feature Selection with Annealing for Computer
           Vision and Big Data Learning", IEEE Transactions on Pattern Analysis and Machine
           Intelligence 39 (2017).
    .. [2] A. Barbu, Y. She, L. Ding, G. Gramajo, "Feature Selection with Annealing for Regression,
           Classification and Ranking", arXiv:1310.2880v2 (2014).

    Examples
    --------
    >>> from annealed.learners import Schedule
    >>> Schedule("inverse", mu=1.0)(1000, 10, 10)
    array([670, 434, 257, 120,  10,  10,  10,  10,  10,  10])
    """

    def __init__(self, kind: str = "inverse", mu: float | str = "auto", n_steps: int = N_STEPS):
        self.kind = kind
        self.mu = mu
        self.n_steps = n_steps

    def __call__(self, n_features: int, k: int, n_steps: int) -> np.ndarray:
        """Return the number of features that remain after each step.

        Parameters
        ----------
        n_features : int
            Number M of features before the first step.
        k : int
            Number of features after the last step.
        n_steps : int
            Number E of steps.

        Returns
        -------
        ndarray of shape (n_steps,), int
            Non-increasing number of features.

        Raises
        ------
        ValueError
            If the kind is unknown or mu is out of range.
        """
        if not isinstance(self.kind, str) or self.kind not in SCHEDULES:
            raise ValueError(
                f"schedule={self.kind!r} is unknown; "
                f"expected one of {sorted(SCHEDULES)}, a Schedule or a function"
            )
        check_integer("n_steps", self.n_steps, 1)
        mu = 100.0 if isinstance(self.mu, str) and self.mu == "auto" else self.mu
        if not isinstance(mu, Real) or isinstance(mu, bool) or not 0.0 <= float(mu) < np.inf:
            raise ValueError(f"mu={self.mu!r} is not valid; expected 'auto' or a number >= 0")
        return SCHEDULES[self.kind](n_features, k, n_steps, float(mu))


def as_schedule(schedule: str | Schedule | Counts, mu: float = 100.0) -> Counts:
    """Convert a schedule to a function of (n_features, k, n_steps).

    Parameters
    ----------
    schedule : str, Schedule or function
        Name of a schedule, schedule object, or custom function.
    mu : float, default 100.0
        Speed of a schedule that is given by name, or whose speed is "auto".

    Returns
    -------
    function
        Function that returns the number of features after each step.

    Raises
    ------
    ValueError
        If the schedule is not of a supported type, or a parameter is out of range.
    """
    if not isinstance(schedule, Schedule) and callable(schedule):
        return schedule
    given = schedule if isinstance(schedule, Schedule) else Schedule(schedule)
    resolved = Schedule(
        given.kind,
        mu if isinstance(given.mu, str) and given.mu == "auto" else given.mu,
        given.n_steps,
    )
    resolved(1, 1, 1)  # validates the parameters
    return resolved


def step_counts(schedule: Counts, n_features: int, k: int, n_steps: int) -> np.ndarray:
    """Validate a schedule, and return the number of features that remain after each step.

    Raises
    ------
    ValueError
        If the counts increase, are outside the range from k to n_features, or do not end at k.
    """
    counts = np.asarray(schedule(n_features, k, n_steps))
    whole = counts.ndim == 1 and len(counts) > 0 and counts.dtype.kind in "iu"
    if not whole or counts[0] > n_features or counts[-1] != k or (np.diff(counts) > 0).any():
        flat = counts.ravel().tolist()
        returned = f"{flat[0]} ... {flat[-1]}" if len(flat) > 1 else flat
        raise ValueError(
            f"schedule={schedule!r} returned {returned}; "
            f"expected integers that decrease from at most {n_features} to {k}"
        )
    return counts
