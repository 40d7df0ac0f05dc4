"""Non-maximum suppression of scored windows over position and scale, with averaged positions."""

from dataclasses import dataclass

import numpy as np

from .window_models import Localisation


def suppress_non_maxima(
    x: np.ndarray,
    y: np.ndarray,
    scale: np.ndarray,
    score: np.ndarray,
    localisation: Localisation,
    reference_length: float,
    radius: float = 0.3,
    threshold: float = -np.inf,
    max_detections: int = 200,
    octaves: float = np.inf,
) -> np.ndarray:
    """Find the local maxima of scored windows over position and scale.

    The window with the highest score is a detection and suppresses all windows within the radius,
    by default at all scales. The best remaining window is the next detection, and so on. The
    position of a detection is the weighted mean of the windows around the maximum (see
    `Localisation`).

    Parameters
    ----------
    x, y, scale, score : ndarray of shape (n,)
        Position of each window in image coordinates, scale of its level (level pixels per image
        pixel), and its score.
    localisation : Localisation
        Position of the keypoint relative to the windows.
    reference_length : float
        Reference length of the objects on which the model was trained, in pixels of a pyramid
        level.
    radius : float, default 0.3
        Radius of suppression, in units of ``reference_length`` (pixels on the level of the
        maximum).
    threshold, max_detections : float and int, default -inf and 200
        Minimum score of a detection, and maximum number of detections. Those with the highest
        scores are returned.
    octaves : float, default inf
        Maximum difference in scale, in octaves, between a maximum and the windows that it
        suppresses.

    Returns
    -------
    ndarray of shape (n_detections, 4)
        Columns x, y (image coordinates), score and scale, in order of decreasing score.
    """
    maxima = local_maxima(
        *(x, y, scale, score, localisation, reference_length, radius, threshold, max_detections),
        octaves=octaves,
    )
    return maxima.positions(localisation)


@dataclass(frozen=True)
class LocalMaxima:
    """Local maxima of scored windows, in order of decreasing score, and the windows around each.

    The maxima do not depend on the localisation, so its parameters can be varied. Each of the n
    maxima has a score, the scale of its level, and a ``unit``: the reference length in image
    pixels. Each of the m windows around them has the index of its ``maximum``, a position ``xy`` in
    image coordinates, the ``square`` of the distance from the maximum (in these units), and the
    ``relative`` score, i.e. its score minus that of the maximum.
    """

    score: np.ndarray
    scale: np.ndarray
    unit: np.ndarray
    maximum: np.ndarray
    xy: np.ndarray
    square: np.ndarray
    relative: np.ndarray

    def positions(self, localisation: Localisation) -> np.ndarray:
        """Return the maxima in the format of :func:`suppress_non_maxima`.

        The radius of ``localisation`` must not exceed that given to :func:`local_maxima`.
        """
        c, n = localisation, len(self.score)
        weight = np.exp(c.sharpness * self.relative) * (self.square <= c.radius**2)
        total = np.bincount(self.maximum, weight, n)
        x, y = (np.bincount(self.maximum, weight * axis, n) / total for axis in self.xy.T)
        x += (c.offset_x + c.annotation_x) * self.unit
        return np.stack([x, y + c.offset_y * self.unit, self.score, self.scale], axis=1)


def local_maxima(
    x: np.ndarray,
    y: np.ndarray,
    scale: np.ndarray,
    score: np.ndarray,
    localisation: Localisation,
    reference_length: float,
    radius: float = 0.3,
    threshold: float = -np.inf,
    max_detections: int = 200,
    octaves: float = np.inf,
) -> LocalMaxima:
    """Return the local maxima and the windows around each maximum.

    The windows around a maximum are those within the ``radius``, ``octaves`` and ``margin`` of the
    localisation. See :func:`suppress_non_maxima` for the parameters.
    """
    # Ties are independent of the input order: coarser windows come first, then those nearer the top
    # left.
    order = np.lexsort((x, y, scale, -score))
    x, y, scale, score = (np.asarray(v[order], dtype=np.float64) for v in (x, y, scale, score))
    c, unit, octave = localisation, reference_length / scale, np.log2(scale)
    falling, free = -score, np.flatnonzero(score >= threshold)
    maxima: list[int] = []
    around, squares = [np.empty(0, np.int64)], [np.empty(0)]
    while len(maxima) < max_detections and len(free):
        i = int(free[0])
        # Windows before i score higher, so windows around a better maximum nearby cannot shift this
        # one.
        last = int(np.searchsorted(falling, falling[i] + c.margin, side="right"))
        square = ((x[i:last] - x[i]) ** 2 + (y[i:last] - y[i]) ** 2) / unit[i] ** 2
        near = np.flatnonzero(square <= c.radius**2)
        near = near[abs(octave[i + near] - octave[i]) <= c.octaves]
        maxima.append(i)
        around.append(i + near)
        squares.append(square[near])
        far = (x[free] - x[i]) ** 2 + (y[free] - y[i]) ** 2 > (radius * unit[i]) ** 2
        free = free[far | (abs(octave[free] - octave[i]) > octaves)]
    windows, best = np.concatenate(around), np.array(maxima, np.int64)
    of = np.repeat(np.arange(len(best)), [len(some) for some in around[1:]])
    return LocalMaxima(
        score[best],
        scale[best],
        unit[best],
        of,
        np.stack([x, y], axis=1)[windows],
        np.concatenate(squares),
        score[windows] - score[best][of],
    )
