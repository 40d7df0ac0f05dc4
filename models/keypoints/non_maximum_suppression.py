"""From scored windows to keypoints: local maxima over position and scale, and where exactly they lie."""

from __future__ import annotations

from dataclasses import asdict, dataclass
from typing import Any

import numpy as np
from numba import njit

IED = 28.3
"""Inter-eye distance in pixels of a pyramid level at which the windows were learnt: the middle of 20 to 40, on a log scale."""


@dataclass(frozen=True)
class Localisation:
    """How the position of a keypoint is read from the windows around a peak.

    Attributes
    ----------
    radius : float
        Windows within this distance of the peak take part; in units of ``IED`` at the peak's level.
    octaves : float
        Largest difference of scale to the peak.
    sharpness : float
        Weights are ``exp(sharpness * (score - peak score))``.
    margin : float
        Windows that score lower than the peak by more than this take no part: what takes part is defined by the scores alone.
    offset_x, offset_y : float
        Where the keypoint lies, seen from the weighted mean of the windows' pixels; in units of ``IED``.
    mark_x : float
        How much further right the annotators' marks lie; in units of ``IED``. What has learnt from photographs and their mirror
        images cannot know it. It is the same for a keypoint and its mirror image.
    """

    radius: float = 0.18
    octaves: float = 0.6
    sharpness: float = 1.5
    margin: float = 3.0
    offset_x: float = 0.0
    offset_y: float = 0.0
    mark_x: float = 0.0

    def __post_init__(self) -> None:
        values = asdict(self)
        if not all(isinstance(v, int | float) and np.isfinite(v) for v in values.values()):
            raise ValueError(f"{self}: expected finite numbers")
        if min(self.radius, self.octaves, self.sharpness, self.margin) < 0:
            raise ValueError(f"{self}: expected radius, octaves, sharpness and margin of at least 0")

    def to_dict(self) -> dict[str, float]:
        """Return the constants as plain data for a file's header."""
        return asdict(self)

    @classmethod
    def from_dict(cls, data: Any) -> Localisation:
        """Return the constants that :meth:`to_dict` described; ValueError if there is something missing or senseless."""
        try:
            return cls(**data)
        except TypeError as error:
            raise ValueError(f"localisation: {error}") from None


def find_peaks(x, y, scale, score, localisation: Localisation, suppression=0.3, threshold=-np.inf, max_peaks=200):
    """Local maxima of scored windows over position and scale.

    The best window left is a peak; windows of ALL scales within ``suppression`` of it (in ``IED`` at its level) go with
    it; and so on. The position is the weighted mean of the windows around the peak (see :class:`Localisation`).

    Parameters
    ----------
    x, y : ndarray of shape (n,)
        Windows' pixels in image coordinates.
    scale : ndarray of shape (n,)
        Pixels of the window's level per image pixel.
    score : ndarray of shape (n,)
        Scores.
    localisation : Localisation
        Where the keypoint is, seen from the windows.
    suppression : float
        Radius in units of ``IED``.
    threshold : float
        Peaks below it are left out.
    max_peaks : int
        At most so many, the best.

    Returns
    -------
    ndarray of shape (n_peaks, 4)
        x, y, score, scale; by falling score.
    """
    # Equal scores: the coarser window first, then from the top left, whatever the order in which they came.
    order = np.lexsort((x, y, scale, -score))
    columns = [np.ascontiguousarray(v[order], dtype=np.float64) for v in (x, y, scale, score)]
    c = localisation
    return _find_peaks(  # type: ignore[call-arg]
        *columns, c.radius, c.octaves, c.sharpness, c.margin, c.offset_x + c.mark_x, c.offset_y, suppression, threshold, max_peaks
    )


@njit(cache=True, nogil=True)
def _find_peaks(x, y, scale, score, radius, octaves, sharpness, margin, dx, dy, suppression, threshold, max_peaks):
    n = len(x)
    free = np.ones(n, np.bool_)
    peaks = np.empty((min(n, max_peaks), 4))
    found = 0
    octave = np.log2(scale)
    for i in range(n):
        if found == max_peaks or score[i] < threshold:
            break
        if not free[i]:
            continue
        unit = IED / scale[i]
        near = (radius * unit) ** 2
        clear = (suppression * unit) ** 2
        weight = 0.0
        sum_x = 0.0
        sum_y = 0.0
        # Windows from i on score no higher: those around a better peak nearby cannot pull this one away.
        for j in range(i, n):
            distance = (x[j] - x[i]) ** 2 + (y[j] - y[i]) ** 2
            if distance <= clear:
                free[j] = False
            if distance <= near and score[j] >= score[i] - margin and abs(octave[j] - octave[i]) <= octaves:
                w = np.exp(sharpness * (score[j] - score[i]))
                weight += w
                sum_x += w * x[j]
                sum_y += w * y[j]
        peaks[found, 0] = sum_x / weight + dx * unit
        peaks[found, 1] = sum_y / weight + dy * unit
        peaks[found, 2] = score[i]
        peaks[found, 3] = scale[i]
        found += 1
    return peaks[:found]
