"""Intervals that tables show beside their means."""

import numpy as np

_Z = 1.959963984540054  # of 95%


def wilson(share: float, runs: int) -> tuple[float, float]:
    """The 95% interval of Wilson (1927) for a share of independent runs.

    Examples
    --------
    >>> low, high = wilson(1.0, 20)
    >>> round(low, 3), high
    (0.839, 1.0)
    """
    shrunk = 1.0 + _Z**2 / runs
    centre = (share + _Z**2 / (2 * runs)) / shrunk
    half = _Z / shrunk * np.sqrt(share * (1.0 - share) / runs + (_Z / (2 * runs)) ** 2)
    return max(0.0, float(centre - half)), min(1.0, float(centre + half))


def bootstrap_mean(values: np.ndarray, groups: np.ndarray, random_state: int = 0) -> list[float]:
    """The 95% interval of a mean from 2,000 resamples of whole groups (videos, days, photographs).

    Examples
    --------
    >>> bootstrap_mean(np.ones(6), np.array([0, 0, 1, 1, 2, 2]))
    [1.0, 1.0]
    """
    index = np.unique(groups, return_inverse=True)[1]
    sums, counts = np.bincount(index, values), np.bincount(index)
    drawn = np.random.RandomState(random_state).randint(len(counts), size=(2000, len(counts)))
    return np.quantile(sums[drawn].sum(axis=1) / counts[drawn].sum(axis=1), [0.025, 0.975]).tolist()
