"""Search for rotated faces in copies of a photograph that are rotated about its centre."""

from collections.abc import Callable, Sequence
from functools import cache, partial

import cv2
import numpy as np

from ....vision.pyramid import Level, gaussian_pyramid

#: Angles in degrees by which photographs without an upright face are rotated.
DEFAULT_ROLL = 30.0
#: Maximum rotation in degrees of faces that are assembled
#: (`annealed.models.keypoints.instances.assembly.MAX_ROLL`).
MAX_ROLL = 50.0

#: Angles in degrees by which photographs of objects without an upright orientation are rotated.
ALL_ROUND = tuple(range(0, 360, 30))

#: Levels with more pixels are neither rotated nor equalised (heuristic).
MAX_PIXELS = 4_000_000
#: Nor are levels rotated that would be larger than this after rotation, since the bounding box of a
#: rotated strip grows with the square of its length. Photographs with an aspect ratio of up to 3,
#: rotated by 30 degrees, stay below it if they are within `MAX_PIXELS`.
MAX_TURNED = 10_000_000

# Settings of the equalisation (heuristic)
_CLIP, _TILES = 2.5, 4

#: Local maxima (n, 4) of each keypoint: x, y, score, scale.
Maxima = dict[str, np.ndarray]


def turned(image: np.ndarray, degrees: float) -> np.ndarray:
    """Rotate a photograph about its centre without cropping it; border pixels are repeated.

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
    """Return the affine matrix that maps a photograph to its rotated copy, and the copy's size.

    The matrix has shape (2, 3), and the size is the width and height.
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


class RotatedLevel(Level):
    """Level of a rotated photograph, computed on access from a level of the photograph.

    ``matrix``, of shape (2, 3), and ``size`` (width and height) are the result of `turning` for the
    whole photograph.
    """

    def __init__(self, level: Level, matrix: np.ndarray, size: tuple[int, int]):
        back, scale = cv2.invertAffineTransform(matrix), level.scale
        # `Level.from_image` after the inverse rotation after `Level.to_image`
        back[:, 2] = 0.5 * (1 - scale) * back[:, :2].sum(axis=1) + scale * (back[:, 2] + 0.5) - 0.5
        width, height = (max(1, round(side * scale)) for side in size)
        self._level, self._back, self._size = level, back, (height, width)
        super().__init__(cache(partial(self.part, 0, 0, width, height)), scale)

    @property
    def shape(self) -> tuple[int, int]:
        return self._size

    def part(self, x: int, y: int, width: int, height: int) -> np.ndarray:
        return self.warped(np.array([[1.0, 0.0, x], [0.0, 1.0, y]]), (width, height))

    def spans(self, top: int, bottom: int) -> np.ndarray:
        # a row of the level is in the photograph where 0 <= at + slope * column < side, for x and y
        slope = np.where(abs(self._back[:, :1]) > 1e-9, self._back[:, :1], 1e-9)
        at = self._back[:, 1:2] * np.arange(top, bottom) + self._back[:, 2:] + 0.5
        sides = np.array(self._level.shape[::-1])[:, None]
        first, last = np.sort([-at / slope, (sides - at) / slope], axis=0)
        spans = np.ceil([first.max(axis=0), last.min(axis=0)])
        return spans.clip(0, self._size[1]).astype(np.int64)

    def warped(self, matrix: np.ndarray, size: tuple[int, int], grey: bool = False) -> np.ndarray:
        composed = self._back[:, :2] @ matrix
        composed[:, 2] += self._back[:, 2]
        return self._level.warped(composed, size, grey)


def turned_maxima(
    levels: Sequence[Level],
    shape: tuple[int, ...],
    degrees: Sequence[float],
    search: Callable[[list[Level]], Maxima],
) -> Maxima:
    """Search rotated copies of a photograph, and return the local maxima in its coordinates.

    ``levels`` is the pyramid of the photograph, which has the given shape (H, W, ...). Levels with
    more than `MAX_PIXELS` pixels, or more than `MAX_TURNED` pixels after rotation, are skipped, so
    small faces in large photographs are not detected.
    """
    height, width = shape[:2]
    boxes = [_box(height, width, angle) for angle in degrees]
    largest = max((across * down for across, down in boxes), default=1.0)
    limit = min(MAX_PIXELS / (height * width), MAX_TURNED / largest) ** 0.5
    maxima: dict[str, list[np.ndarray]] = {}
    for angle in degrees:
        matrix, size = turning(height, width, angle)
        back = cv2.invertAffineTransform(matrix)
        small = [level for level in levels if level.scale <= limit]
        rotated: list[Level] = [RotatedLevel(level, matrix, size) for level in small]
        for name, rows in search(rotated).items():
            moved = rows.copy()
            moved[:, :2] = rows[:, :2] @ back[:, :2].T + back[:, 2]
            maxima.setdefault(name, []).append(moved)
    return {name: np.concatenate(parts) for name, parts in maxima.items()}


def evened_levels(
    levels: Sequence[Level], shape: tuple[int, ...], scales_per_octave: int
) -> list[Level]:
    """Compute the pyramid of the photograph with equalised lightness from the original pyramid.

    The photograph has the given shape (H, W, ...). Levels with more than `MAX_PIXELS` pixels are
    omitted.
    """
    limit = min(1.0, (MAX_PIXELS / (shape[0] * shape[1])) ** 0.5)
    base = next((level for level in levels if level.scale <= limit), levels[-1])
    made = gaussian_pyramid(
        evened(base.image),
        scales_per_octave,
        min_size=1,
        min_scale=levels[-1].scale / base.scale,
        max_scale=max(1.0, levels[0].scale),
    )
    return [Level(partial(getattr, level, "image"), level.scale * base.scale) for level in made]
