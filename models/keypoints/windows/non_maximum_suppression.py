"""Non-maximum suppression: from scored windows to keypoints, and where exactly these lie."""

from __future__ import annotations

from dataclasses import asdict, dataclass
from typing import Any

import numpy as np

from ...files import check_settings

DEFAULT_REFERENCE_LENGTH = 28.3
"""Reference length of detectors whose file does not name one: the geometric mean of 20
and 40 pixels."""


@dataclass(frozen=True)
class Localisation:
    """How the position of a keypoint is computed from the windows around a local maximum of the
    score.

    Distances are in units of the detector's reference length on the pyramid level of the maximum.

    Parameters
    ----------
    radius : float, default 0.18
        Windows within this distance of the maximum take part.
    octaves : float, default 0.6
        Largest difference of scale to the maximum, in octaves.
    sharpness : float, default 1.5
        Weights are ``exp(sharpness * (score - largest score))``.
    margin : float, default 3.0
        Windows whose score is lower than the maximum by more than this take no part.
    offset_x, offset_y : float, default 0.0
        Vector from the weighted mean of the windows' pixels to the keypoint.
    annotation_x : float, default 0.0
        How much further right the annotations lie, the same for a keypoint and its mirror image: a
        model that is trained on photographs and their mirror images cannot learn it.

    Raises
    ------
    ValueError
        For numbers that are not finite, and negative ones among the first four.
    """

    radius: float = 0.18
    octaves: float = 0.6
    sharpness: float = 1.5
    margin: float = 3.0
    offset_x: float = 0.0
    offset_y: float = 0.0
    annotation_x: float = 0.0

    def __post_init__(self) -> None:
        values = asdict(self)
        if not all(isinstance(v, int | float) and np.isfinite(v) for v in values.values()):
            raise ValueError(f"{self}: expected finite numbers")
        if min(self.radius, self.octaves, self.sharpness, self.margin) < 0:
            raise ValueError(f"{self}: expected radius, octaves, sharpness and margin of at least 0")

    def to_dict(self) -> dict[str, float]:
        """Return the constants as plain data for a file's header."""
        values = asdict(self)
        values["mark_x"] = values.pop("annotation_x")  # its name in model files
        return values

    @classmethod
    def from_dict(cls, data: Any) -> Localisation:
        """Return the constants that :meth:`to_dict` described; ValueError for missing, unknown or
        invalid entries."""
        example = cls().to_dict()
        limits = dict.fromkeys(("radius", "octaves"), (0, 10)) | dict.fromkeys(("offset_x", "offset_y", "mark_x"), (-10, 10))
        record = {"mark_x": 0.0, **data} if isinstance(data, dict) else data
        try:
            values = check_settings(record, example, limits)
        except ValueError as error:
            raise ValueError(f"localisation: {error}") from None
        values["annotation_x"] = values.pop("mark_x")
        return cls(**values)


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
) -> np.ndarray:
    """Find the local maxima of scored windows over position and scale.

    The best window is a detection; it suppresses the windows of ALL scales within the radius; the
    best remaining one is the next detection, and so on. Positions are weighted means of the windows
    around a maximum (see `Localisation`).

    Parameters
    ----------
    x, y, scale, score : ndarray of shape (n,)
        Windows' pixels in image coordinates, pixels of their level per image pixel, scores.
    localisation : Localisation
        Where the keypoint lies relative to the windows.
    reference_length : float
        Reference length of an object in pixels of a level that the model was trained for.
    radius : float, default 0.3
        Radius of suppression, in units of ``reference_length`` on the level of the maximum.
    threshold, max_detections : float and int, default -inf and 200
        Least score, and at most this many detections, the best.

    Returns
    -------
    ndarray of shape (n_detections, 4)
        x, y (image coordinates), score, scale; by falling score.
    """
    # Equal scores: the coarser window first, then from the top left, whatever the order in which
    # they came.
    order = np.lexsort((x, y, scale, -score))
    x, y, scale, score = (np.asarray(v[order], dtype=np.float64) for v in (x, y, scale, score))
    c = localisation
    free = score >= threshold
    octave = np.log2(scale)
    maxima: list[list[float]] = []
    while len(maxima) < max_detections and free.any():
        i = int(free.argmax())
        unit = reference_length / scale[i]
        distance = (x - x[i]) ** 2 + (y - y[i]) ** 2
        near = (distance <= (c.radius * unit) ** 2) & (score >= score[i] - c.margin) & (abs(octave - octave[i]) <= c.octaves)
        # Windows before i score higher: those around a better maximum nearby cannot pull this one
        # away.
        near[:i] = False
        weight = np.exp(c.sharpness * (score[near] - score[i]))
        weight /= weight.sum()
        shift_x, shift_y = (c.offset_x + c.annotation_x) * unit, c.offset_y * unit
        maxima.append([weight @ x[near] + shift_x, weight @ y[near] + shift_y, score[i], scale[i]])
        free &= distance > (radius * unit) ** 2
    return np.array(maxima).reshape(-1, 4)
