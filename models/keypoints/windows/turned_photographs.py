"""Search for rotated faces in photographs that are rotated about their centre."""

from collections.abc import Callable, Sequence

import cv2
import numpy as np

#: Angles in degrees by which photographs without an upright face are rotated.
DEFAULT_ROLL = 30.0
#: Maximum rotation in degrees of faces that are assembled
#: (`annealed.models.keypoints.instances.assembly.MAX_ROLL`).
MAX_ROLL = 50.0

#: Angles in degrees by which photographs of objects without an upright orientation are rotated.
ALL_ROUND = tuple(range(0, 360, 30))

#: Larger photographs are shrunk before rotation (heuristic).
MAX_PIXELS = 4_000_000
#: Photographs that would be larger than this after rotation are also shrunk, since the bounding box
#: of a rotated strip grows with the square of its length. Photographs with an aspect ratio of up to
#: 3, rotated by 30 degrees, stay below it if they are within `MAX_PIXELS`.
MAX_TURNED = 10_000_000

# Settings of the equalisation (heuristic)
_CLIP, _TILES = 2.5, 4

#: Local maxima (n, 4) of each keypoint: x, y, score, scale.
Maxima = dict[str, np.ndarray]


def turned(image: np.ndarray, degrees: float) -> np.ndarray:
    """Rotate a photograph about its centre without cropping; border pixels are repeated.

    Parameters
    ----------
    image : ndarray of shape (H, W, 3), uint8
    degrees : float
        Counter-clockwise angle in degrees.

    Returns
    -------
    ndarray of shape (H', W', 3), uint8
    """
    matrix, size = turning(image.shape[0], image.shape[1], degrees)
    return np.asarray(
        cv2.warpAffine(
            image, matrix, size, flags=cv2.INTER_LINEAR, borderMode=cv2.BORDER_REPLICATE
        ),
        np.uint8,
    )


def turning(height: int, width: int, degrees: float) -> tuple[np.ndarray, tuple[int, int]]:
    """Return the affine matrix that maps a photograph to its rotated copy.

    The matrix has shape (2, 3). The width and height of the copy are also returned.
    """
    matrix = cv2.getRotationMatrix2D(((width - 1) / 2, (height - 1) / 2), degrees, 1.0)
    across, down = _box(height, width, degrees)
    size = (int(across) + 1, int(down) + 1)
    matrix[:, 2] = matrix[:, 2] + [(size[0] - width) / 2, (size[1] - height) / 2]
    return matrix, size


def _box(height: float, width: float, degrees: float) -> tuple[float, float]:
    """Return the width and height of the bounding box of a rotated photograph."""
    cosine, sine = abs(np.cos(np.radians(degrees))), abs(np.sin(np.radians(degrees)))
    return height * sine + width * cosine, height * cosine + width * sine


def evened(image: np.ndarray) -> np.ndarray:
    """Equalise the lightness of a photograph tile by tile, with limited contrast.

    The photograph is a uint8 array of shape (H, W, 3).
    """
    lab = cv2.cvtColor(image, cv2.COLOR_RGB2LAB)
    lab[..., 0] = cv2.createCLAHE(_CLIP, (_TILES, _TILES)).apply(lab[..., 0])
    return np.asarray(cv2.cvtColor(lab, cv2.COLOR_LAB2RGB), np.uint8)


def turned_maxima(
    image: np.ndarray, degrees: Sequence[float], search: Callable[[np.ndarray, float], Maxima]
) -> Maxima:
    """Return the local maxima of a photograph searched at several angles, in its coordinates.

    Photographs with more than `MAX_PIXELS` pixels, or more than `MAX_TURNED` after rotation, are
    reduced to this number of pixels, since only larger faces are searched. The scale factor is the
    second argument of ``search``.
    """
    height, width = image.shape[:2]
    largest = max(
        (box[0] * box[1] for box in (_box(height, width, angle) for angle in degrees)), default=1.0
    )
    factor = min(1.0, (MAX_PIXELS / (height * width)) ** 0.5, (MAX_TURNED / largest) ** 0.5)
    if factor < 1:
        # OpenCV raises an error if a side rounds to zero
        sides = [max(1, round(side * factor)) for side in (width, height)]
        exact = None if 1 not in sides else sides
        image = np.asarray(
            cv2.resize(image, exact, fx=factor, fy=factor, interpolation=cv2.INTER_AREA), np.uint8
        )
    enlarged = np.array([width / image.shape[1], height / image.shape[0]])
    maxima: dict[str, list[np.ndarray]] = {}
    for angle in degrees:
        back = cv2.invertAffineTransform(turning(image.shape[0], image.shape[1], angle)[0])
        for name, rows in search(turned(image, angle), factor).items():
            moved = rows.copy()
            moved[:, :2] = (rows[:, :2] @ back[:, :2].T + back[:, 2] + 0.5) * enlarged - 0.5
            moved[:, 3] *= factor
            maxima.setdefault(name, []).append(moved)
    return {name: np.concatenate(parts) for name, parts in maxima.items()}
