"""Gaussian image pyramid."""

import math
from dataclasses import dataclass

import cv2
import numpy as np
import numpy.typing as npt

__all__ = ["Level", "gaussian_pyramid", "shrink"]


@dataclass(frozen=True)
class Level:
    """One level of a pyramid.

    Attributes
    ----------
    image : (h, w, 3) uint8 ndarray
        The resampled image.
    scale : float
        Pixels of the level per pixel of the image (1 is the image itself, 0.5 half its size).
    """

    image: npt.NDArray[np.uint8]
    scale: float

    def from_image(self, xy: npt.ArrayLike) -> npt.NDArray[np.float64]:
        """Image coordinates (..., 2) to coordinates on this level: ``(xy + 0.5) * scale - 0.5``.

        Parameters
        ----------
        xy : array of shape (..., 2)
            Image coordinates in pixels.

        Returns
        -------
        (..., 2) float64 ndarray
            In pixels of the level.
        """
        return (np.asarray(xy, dtype=np.float64) + 0.5) * self.scale - 0.5

    def to_image(self, xy: npt.ArrayLike) -> npt.NDArray[np.float64]:
        """Coordinates on this level (..., 2) to image coordinates: ``(xy + 0.5) / scale - 0.5``.

        Parameters
        ----------
        xy : array of shape (..., 2)
            Coordinates in pixels of the level.

        Returns
        -------
        (..., 2) float64 ndarray
            In pixels of the image.
        """
        return (np.asarray(xy, dtype=np.float64) + 0.5) / self.scale - 0.5


def gaussian_pyramid(
    image: npt.NDArray[np.uint8], scales_per_octave: int = 4, *, min_size: int = 12, min_scale: float = 0.0, max_scale: float = 1.0
) -> list[Level]:
    """Levels of scale ``2 ** (-k / scales_per_octave)``, for whole k, from large to small.

    Every octave starts from the one before it, halved. Within an octave a level of scale s (0.5 <= s < 1 of the
    octave's first level) is that image, blurred by a Gaussian of standard deviation ``0.5 * sqrt(1 / s**2 - 1)`` pixels
    (so that a pixel blur of 0.5 stays 0.5 on the level) and sampled bilinearly. Levels larger than the image are
    interpolated bilinearly.

    Parameters
    ----------
    image : (H, W, 3) uint8 ndarray
        RGB image.
    scales_per_octave : int, default 4
        Levels from one halving of the size to the next.
    min_size : int, default 12
        Levels whose shorter side has fewer pixels are left out.
    min_scale, max_scale : float
        Only levels with ``min_scale <= scale <= max_scale`` are computed (to a relative tolerance of 1e-9).

    Returns
    -------
    list of Level
        Empty where no level lies in the range. The scale is exact in x and y; the sides of a level are
        ``side * scale`` to within a pixel.

    Raises
    ------
    ValueError
        For an image that is not (H, W, 3) uint8 and for senseless parameters.
    """
    if not isinstance(image, np.ndarray) or image.dtype != np.uint8 or image.ndim != 3 or image.shape[2] != 3:
        raise ValueError(f"image of shape {np.shape(image)}: expected a uint8 array (H, W, 3)")
    if scales_per_octave < 1 or int(scales_per_octave) != scales_per_octave:
        raise ValueError(f"scales_per_octave={scales_per_octave}: expected a whole number of at least 1")
    if not 0 < max_scale <= 16:
        raise ValueError(f"max_scale={max_scale}: expected a number in (0, 16]")
    if min_size < 1 or min_scale < 0:
        raise ValueError(f"min_size={min_size}, min_scale={min_scale}: expected min_size >= 1 and min_scale >= 0")

    levels: list[Level] = []
    base, octave = np.ascontiguousarray(image), 0
    k = math.ceil(-scales_per_octave * math.log2(max_scale) - 1e-9)
    while True:
        scale = 2.0 ** (-k / scales_per_octave)
        sides = [round(side * scale) for side in image.shape[:2]]
        if min(sides) < min_size or scale < min_scale * (1 - 1e-9):
            return levels
        while octave < k // scales_per_octave:
            base, octave = _shrink(base, 0.5), octave + 1
        within = scale * 2.0**octave
        if within > 1:
            level = np.asarray(cv2.resize(base, None, fx=within, fy=within, interpolation=cv2.INTER_LINEAR), np.uint8)
        elif k % scales_per_octave == 0:
            level = base
        else:
            level = _shrink(base, within)
        levels.append(Level(level, scale))
        k += 1


def shrink(level: Level, scale: float) -> Level:
    """A smaller level, from one level alone: blurred and sampled as within an octave of `gaussian_pyramid`.

    Parameters
    ----------
    level : Level
        Level of a pyramid.
    scale : float
        Pixels of the new level per pixel of the given one, below 1.

    Returns
    -------
    Level
    """
    return Level(_shrink(level.image, scale), level.scale * scale)


def _shrink(image: npt.NDArray[np.uint8], scale: float) -> npt.NDArray[np.uint8]:
    blurred = cv2.GaussianBlur(image, (0, 0), 0.5 * math.sqrt(scale**-2 - 1), borderType=cv2.BORDER_REPLICATE)
    # With fx and fy given, the sampling positions follow the exact scale, not the ratio of the rounded sides.
    sides = [max(1, round(side * scale)) for side in image.shape[:2]]
    if 1 in sides:  # OpenCV refuses to round a side to zero
        return np.asarray(cv2.resize(blurred, (sides[1], sides[0]), interpolation=cv2.INTER_LINEAR), np.uint8)
    return np.asarray(cv2.resize(blurred, None, fx=scale, fy=scale, interpolation=cv2.INTER_LINEAR), np.uint8)
