"""One-Euro filter [1]_, which smooths slow points strongly and follows fast points.

References
----------
.. [1] G. Casiez, N. Roussel, D. Vogel, "1 Euro Filter: A Simple Speed-based Low-pass Filter for
       Noisy Input in Interactive Systems", CHI (2012).
"""

from typing import TypeVar

import numpy as np

Cutoff = TypeVar("Cutoff", float, np.ndarray)
# Hz, at rest; this and the next value were chosen on videos of training photographs
# (benchmarks/faces_persons.py)
DEFAULT_CUTOFF = 0.5
DEFAULT_SPEED_COEFFICIENT = 5.0  # Hz per eye distance per second
_SPEED_CUTOFF = 1.0  # Hz, for the speed itself, as in the paper


class OneEuroFilter:
    """Low-pass filter of points with a cut-off frequency that increases with their speed.

    At rest, a low cut-off removes jitter. During fast motion, a high cut-off limits the lag (Casiez
    et al., 2012). The speed is computed for each point separately. A first-order filter lags behind
    a steady movement by 1 / (2 pi cutoff) seconds.

    Parameters
    ----------
    cutoff : float, default 0.5
        Positive cut-off frequency at rest, in Hz. Lower values smooth more strongly.
    speed_coefficient : float, default 5.0
        Increase in the cut-off frequency, in Hz, per unit of speed. The unit is ``scale`` (a
        parameter of the call) per second. Higher values reduce the lag. With the defaults, the lag
        at a speed of one unit is 29 milliseconds.

    Raises
    ------
    ValueError
        If a parameter is out of range.

    Examples
    --------
    >>> import numpy as np
    >>> still = OneEuroFilter()
    >>> trembling = np.random.default_rng(0).normal(size=(100, 1, 2)) * 0.002
    >>> quiet = [still(points, i / 25) for i, points in enumerate(trembling)]
    >>> bool(np.std(quiet[25:]) < np.std(trembling[25:]) / 3)
    True
    """

    def __init__(
        self, cutoff: float = DEFAULT_CUTOFF, speed_coefficient: float = DEFAULT_SPEED_COEFFICIENT
    ):
        if not 0 < cutoff < np.inf or not 0 <= speed_coefficient < np.inf:
            raise ValueError(
                f"cutoff={cutoff}, speed_coefficient={speed_coefficient} are not valid; "
                "expected cutoff > 0 and speed_coefficient >= 0"
            )
        self.cutoff, self.speed_coefficient = cutoff, speed_coefficient
        # raw positions, filtered positions, speed and time
        self._last: tuple[np.ndarray, np.ndarray, np.ndarray, float] | None = None

    @property
    def time(self) -> float:
        """Time of the last call in seconds, or minus infinity before the first call."""
        return -np.inf if self._last is None else self._last[-1]

    def __call__(self, points: np.ndarray, time: float, scale: float = 1.0) -> np.ndarray:
        """Filter the points of the next frame.

        Parameters
        ----------
        points : ndarray of shape (n, 2)
            Positions of the same points in each call.
        time : float
            Time in seconds, later than in the last call.
        scale : float, default 1.0
            Unit of the speed in units of the positions; for a face, its reference length.

        Returns
        -------
        ndarray of shape (n, 2)
            Filtered positions; in the first call, these are the given positions.

        Raises
        ------
        ValueError
            If the time is not later than in the last call.
        """
        points = np.asarray(points, float)
        if self._last is None:
            self._last = points, points, np.zeros_like(points), time
            return points
        raw, filtered, velocity, before = self._last
        if not (step := time - before) > 0:
            raise ValueError(f"time={time} is not valid; expected a time later than {before}")
        velocity = velocity + _weight(_SPEED_CUTOFF, step) * (
            (points - raw) / (step * scale) - velocity
        )
        cutoff = self.cutoff + self.speed_coefficient * np.hypot(*velocity.T)
        filtered = filtered + _weight(cutoff, step)[:, None] * (points - filtered)
        self._last = points, filtered, velocity, time
        return filtered


def _weight(cutoff: Cutoff, step: float) -> Cutoff:
    """Compute the weight of the new value, eq. (6) of the paper: 1 / (1 + tau / step) with tau = 1
    / (2 pi cutoff)."""
    return 1 / (1 + 1 / (2 * np.pi * cutoff * step))
