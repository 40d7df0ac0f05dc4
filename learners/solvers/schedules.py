"""How many features are left after each step: pure functions of the step number."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

Schedule = Callable[[int, int, int, float], np.ndarray]


def inverse(n_features: int, k: int, n_steps: int, mu: float) -> np.ndarray:
    """M_e = k + (M - k) max(0, (E - 2e) / (2 e mu + E)), e = 1..E: eq. (3) of the PAMI text; k is reached at e = E / 2.

    Examples
    --------
    >>> inverse(1000, 10, 10, 1.0)
    array([670, 434, 257, 120,  10,  10,  10,  10,  10,  10])
    """
    e = np.arange(1, n_steps + 1)
    left = k + (n_features - k) * np.maximum(0.0, (n_steps - 2.0 * e) / (2.0 * e * mu + n_steps))
    return _whole(left, n_features, k)


def inverse_arxiv(n_features: int, k: int, n_steps: int, mu: float) -> np.ndarray:
    """M_e = max(k, M / (1 + e mu) - 1 / E), eq. (3) of the arXiv text: another curve, to which that text's mu belongs."""
    e = np.arange(1, n_steps + 1)
    return _whole(np.maximum(k, n_features / (1.0 + e * mu) - 1.0 / n_steps), n_features, k)


def exponential(n_features: int, k: int, n_steps: int, mu: float) -> np.ndarray:
    """M_e = max(k, M xi^e) with xi = (k / M)^(2 mu / E): for mu = 1 it reaches k at e = E / 2, for larger mu sooner."""
    e = np.arange(1, n_steps + 1)
    return _whole(np.maximum(k, n_features * (max(k, 1) / n_features) ** (2.0 * mu * e / n_steps)), n_features, k)


def linear(n_features: int, k: int, n_steps: int, mu: float) -> np.ndarray:
    """Falls on a straight line from M to k at e = E / (2 max(mu, 1))."""
    e = np.arange(1, n_steps + 1)
    return _whole(k + (n_features - k) * np.maximum(0.0, 1.0 - 2.0 * e * max(mu, 1.0) / n_steps), n_features, k)


def _whole(left: np.ndarray, n_features: int, k: int) -> np.ndarray:
    counts = np.clip(np.floor(left + 1e-9).astype(np.int64), k, n_features)
    counts[-1] = k  # whatever the parameters, the last step leaves exactly k
    return np.minimum.accumulate(counts)


SCHEDULES: dict[str, Schedule] = {
    "inverse": inverse,
    "inverse_arxiv": inverse_arxiv,
    "exponential": exponential,
    "linear": linear,
}


def get_schedule(schedule: str | Schedule) -> Schedule:
    """Return the schedule of that name, or the function itself.

    Raises
    ------
    ValueError
        If it is neither a function nor one of ``SCHEDULES``.
    """
    if callable(schedule):
        return schedule
    if not isinstance(schedule, str) or schedule not in SCHEDULES:
        raise ValueError(f"schedule={schedule!r} is unknown; expected one of {sorted(SCHEDULES)} or a function")
    return SCHEDULES[schedule]


def step_counts(schedule: str | Callable, n_features: int, k: int, n_steps: int, mu: float) -> np.ndarray:
    """Number of features left after each step, checked: a custom function may give anything.

    Raises
    ------
    ValueError
        If the counts rise, leave the range k..n_features or do not end at k.
    """
    counts = np.asarray(get_schedule(schedule)(n_features, k, n_steps, mu))
    whole = counts.ndim == 1 and len(counts) > 0 and counts.dtype.kind in "iu"
    if not whole or counts[0] > n_features or counts[-1] != k or (np.diff(counts) > 0).any():
        raise ValueError(
            f"schedule={schedule!r} gave {_ends(counts)}; expected integers that fall from at most {n_features} to {k}"
        )
    return counts


def _ends(counts: np.ndarray) -> str:
    flat = counts.ravel().tolist()
    return f"{flat[0]} ... {flat[-1]}" if len(flat) > 1 else str(flat)
