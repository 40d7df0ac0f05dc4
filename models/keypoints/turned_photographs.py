"""Turned faces: the search of a photograph that is turned about its middle, and the way back."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import cv2
import numpy as np

DEFAULT_ROLL = 30.0
"""Degrees by which photographs without an upright face are turned."""
MAX_ROLL = 50.0
"""Degrees: faces that are turned further are not assembled (`annealed.models.faces.assembly.MAX_ROLL`)."""

Maxima = dict[str, np.ndarray]
"""Local maxima (n, 4) x, y, score, scale of each keypoint."""


def turned(image: np.ndarray, degrees: float) -> tuple[np.ndarray, np.ndarray]:
    """Turn a photograph about its middle; nothing is cut off, and its border is repeated outside.

    Parameters
    ----------
    image : ndarray of shape (H, W, 3), uint8
    degrees : float
        Counter-clockwise.

    Returns
    -------
    image : ndarray of shape (H', W', 3), uint8
    back : ndarray of shape (2, 3), float64
        Affine map from pixels of the turned photograph to those of the original.
    """
    height, width = image.shape[:2]
    matrix = cv2.getRotationMatrix2D(((width - 1) / 2, (height - 1) / 2), degrees, 1.0)
    cosine, sine = abs(matrix[0, :2])
    size = (int(height * sine + width * cosine) + 1, int(height * cosine + width * sine) + 1)
    matrix[:, 2] += [(size[0] - width) / 2, (size[1] - height) / 2]
    shown = cv2.warpAffine(image, matrix, size, flags=cv2.INTER_LINEAR, borderMode=cv2.BORDER_REPLICATE)
    return np.asarray(shown, np.uint8), cv2.invertAffineTransform(matrix)


def turned_maxima(image: np.ndarray, degrees: Sequence[float], search: Callable[[np.ndarray], Maxima]) -> Maxima:
    """Local maxima that a search finds in a photograph turned by each of some angles, at their places in the original."""
    found: dict[str, list[np.ndarray]] = {}
    for angle in degrees:
        shown, back = turned(image, angle)
        for name, rows in search(shown).items():
            moved = rows.copy()
            moved[:, :2] = rows[:, :2] @ back[:, :2].T + back[:, 2]
            found.setdefault(name, []).append(moved)
    return {name: np.concatenate(parts) for name, parts in found.items()}
