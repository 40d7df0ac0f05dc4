"""Gaussian image pyramid."""

import math
from collections.abc import Callable
from functools import cache, cached_property, partial

import cv2
import numpy as np
import numpy.typing as npt

from ..learners.parameters import check_integer, check_real

# For images with more pixels than LARGE, levels with more than KEPT are recomputed on access. Both
# values are heuristic: all levels of a photograph take 10 bytes per pixel, and computing a level
# takes less than a hundredth of the time needed to search it.
LARGE, KEPT = 32_000_000, 4_000_000


def nearest_pixel(xy: npt.ArrayLike) -> npt.NDArray[np.int64]:
    """Return the pixel that contains each point; halves are rounded up.

    Parameters
    ----------
    xy : array_like of shape (..., 2), float
        Coordinates in pixels. The centres of pixels have integer coordinates.

    Returns
    -------
    ndarray of shape (..., 2), int64
        Column and row of each pixel.
    """
    return np.floor(np.asarray(xy, dtype=np.float64) + 0.5).astype(np.int64)


class Level:
    """Level of a pyramid.

    Parameters
    ----------
    image : ndarray of shape (h, w, 3), uint8, or function
        Resampled image, or a function without parameters that returns it. The function is called
        whenever the image is accessed.
    scale : float
        Number of pixels of the level per pixel of the image: 1 for the image itself, 0.5 for an
        image of half the size.
    """

    def __init__(
        self, image: npt.NDArray[np.uint8] | Callable[[], npt.NDArray[np.uint8]], scale: float
    ):
        self._image, self.scale = image, scale

    def __reduce__(self) -> tuple[type, tuple[npt.NDArray[np.uint8], float]]:
        return Level, (self.image, self.scale)  # functions that cache images cannot be pickled

    @property
    def image(self) -> npt.NDArray[np.uint8]:
        """Resampled image."""
        return self._image() if callable(self._image) else self._image

    @property
    def shape(self) -> tuple[int, int]:
        """Number of rows and number of columns."""
        return self.image.shape[:2]

    def part(self, x: int, y: int, width: int, height: int) -> npt.NDArray[np.uint8]:
        """Return the pixels of a rectangle whose upper left pixel is (x, y).

        Parameters
        ----------
        x, y : int
            Upper left pixel. Border pixels are repeated outside the level.
        width, height : int
            Size of the rectangle in pixels.

        Returns
        -------
        ndarray of shape (height, width, 3), uint8
        """
        image, (rows, columns) = self.image, self.shape
        if 0 <= x <= columns - width and 0 <= y <= rows - height:
            return image[y : y + height, x : x + width].copy()  # does not keep a large level
        inside = (np.arange(at, at + n) for at, n in ((y, height), (x, width)))
        return image[np.ix_(*(i.clip(0, n - 1) for i, n in zip(inside, (rows, columns))))]

    def spans(self, top: int, bottom: int) -> npt.NDArray[np.int64]:
        """Return the range of columns that the image covers in each of several rows.

        Parameters
        ----------
        top, bottom : int
            First row, and the row after the last.

        Returns
        -------
        ndarray of shape (2, bottom - top)
            First column, and the column after the last, for each row.
        """
        return np.repeat([[0], [self.shape[1]]], bottom - top, axis=1)

    @cached_property
    def grey(self) -> npt.NDArray[np.uint8]:
        """Grey values of :attr:`image`."""
        return np.asarray(cv2.cvtColor(self.image, cv2.COLOR_RGB2GRAY), np.uint8)

    def warped(
        self, matrix: npt.NDArray[np.float64], size: tuple[int, int], grey: bool = False
    ) -> npt.NDArray[np.uint8]:
        """Sample an image from the level bilinearly; border pixels are repeated outside the level.

        Parameters
        ----------
        matrix : ndarray of shape (2, 3)
            Affine transform from pixel coordinates of the result to those of the level.
        size : tuple of int
            Width and height of the result.
        grey : bool, default False
            Whether to sample :attr:`grey` rather than the colours.

        Returns
        -------
        ndarray of shape (height, width, 3) or (height, width), uint8
        """
        warped = cv2.warpAffine(
            self.grey if grey else self.image,
            matrix,
            size,
            flags=cv2.INTER_LINEAR | cv2.WARP_INVERSE_MAP,
            borderMode=cv2.BORDER_REPLICATE,
        )
        return np.asarray(warped, np.uint8)

    def from_image(self, xy: npt.ArrayLike) -> npt.NDArray[np.float64]:
        """Convert image coordinates to this level: ``(xy + 0.5) * scale - 0.5``.

        Parameters
        ----------
        xy : array of shape (..., 2)
            Image coordinates in pixels.

        Returns
        -------
        ndarray of shape (..., 2), float64
            Coordinates in pixels of the level.
        """
        return (np.asarray(xy, dtype=np.float64) + 0.5) * self.scale - 0.5

    def to_image(self, xy: npt.ArrayLike) -> npt.NDArray[np.float64]:
        """Convert coordinates on this level to the image: ``(xy + 0.5) / scale - 0.5``.

        Parameters
        ----------
        xy : array of shape (..., 2)
            Coordinates in pixels of the level.

        Returns
        -------
        ndarray of shape (..., 2), float64
            Coordinates in pixels of the image.
        """
        return (np.asarray(xy, dtype=np.float64) + 0.5) / self.scale - 0.5


class _Octaves:
    """Levels of one image, computed on request. The first level of every octave and the last other
    level are cached."""

    def __init__(self, image: npt.NDArray[np.uint8], scales_per_octave: int):
        self.scales_per_octave = scales_per_octave
        self.bases = [np.ascontiguousarray(image)]
        self.last: tuple[int, npt.NDArray[np.uint8]] | None = None

    def level(self, k: int) -> npt.NDArray[np.uint8]:
        """Return the level of scale ``2 ** (-k / scales_per_octave)``."""
        octave = max(k // self.scales_per_octave, 0)
        while len(self.bases) <= octave:
            self.bases.append(_shrink(self.bases[-1], 0.5))
        base, within = self.bases[octave], 2.0 ** (octave - k / self.scales_per_octave)
        if within > 1:
            return np.asarray(
                cv2.resize(base, None, fx=within, fy=within, interpolation=cv2.INTER_LINEAR),
                np.uint8,
            )
        return base if k % self.scales_per_octave == 0 else _shrink(base, within)

    def recomputed(self, k: int) -> npt.NDArray[np.uint8]:
        """Recompute a level; only the last requested level stays in memory."""
        if self.last is None or self.last[0] != k:
            self.last = None  # freed before the next one is computed
            self.last = k, self.level(k)
        return self.last[1]


def gaussian_pyramid(
    image: npt.NDArray[np.uint8],
    scales_per_octave: int = 4,
    *,
    min_size: int = 12,
    min_scale: float = 0.0,
    max_scale: float = 1.0,
) -> list[Level]:
    """Compute the levels of a Gaussian image pyramid, from large to small.

    The scales are ``2 ** (-k / scales_per_octave)`` for integer k. The first level of each octave
    is the first level of the previous octave, reduced to half its size. Each other level is
    computed from the first level of its octave. If its scale relative to that level is s (0.5 < s <
    1), the first level is blurred by a Gaussian of standard deviation ``0.5 * sqrt(1 / s**2 - 1)``
    pixels and sampled bilinearly. A blur of 0.5 pixels in the image is thus preserved on every
    level. Levels larger than the image are interpolated bilinearly.

    Parameters
    ----------
    image : ndarray of shape (H, W, 3), uint8
        RGB image.
    scales_per_octave : int, default 4
        Number of levels per octave (a factor of two in size).
    min_size : int, default 12
        Minimum length of the shorter side in pixels; smaller levels are omitted.
    min_scale, max_scale : float
        Range of scales. Only levels with ``min_scale <= scale <= max_scale`` are computed, with a
        relative tolerance of 1e-9.

    Returns
    -------
    list of Level
        Levels of the pyramid; empty if no scale is in the range. The scale is exact in both
        directions, whereas the sides of a level are rounded to whole pixels.

    Raises
    ------
    ValueError
        If the image is not (H, W, 3) uint8, or a parameter is out of range.
    """
    if (
        not isinstance(image, np.ndarray)
        or image.dtype != np.uint8
        or image.ndim != 3
        or image.shape[2] != 3
    ):
        raise ValueError(
            f"image has dtype {getattr(image, 'dtype', None)} and shape {np.shape(image)}; "
            "expected a uint8 array of shape (H, W, 3)"
        )
    check_integer("scales_per_octave", scales_per_octave, 1)
    check_real("max_scale", max_scale, 0.0, 16.0, above=True)
    if min_size < 1 or min_scale < 0:
        raise ValueError(
            f"min_size={min_size}, min_scale={min_scale} are not valid; "
            "expected min_size >= 1 and min_scale >= 0"
        )

    levels: list[Level] = []
    octaves = _Octaves(image, scales_per_octave)
    k = math.ceil(-scales_per_octave * math.log2(max_scale) - 1e-9)
    large = image.shape[0] * image.shape[1] * max(1.0, 4.0 ** (-k / scales_per_octave)) > LARGE
    while True:
        scale = 2.0 ** (-k / scales_per_octave)
        sides = [round(side * scale) for side in image.shape[:2]]
        if min(sides) < min_size or scale < min_scale * (1 - 1e-9):
            return levels
        again = large and sides[0] * sides[1] > KEPT
        compute = partial(octaves.recomputed, k) if again else cache(partial(octaves.level, k))
        levels.append(Level(compute, scale))
        k += 1


def shrink(level: Level, scale: float) -> Level:
    """Compute a smaller level from a level, as `gaussian_pyramid` does within an octave.

    Parameters
    ----------
    level : Level
        Level of a pyramid.
    scale : float
        Scale of the new level relative to the given level, below 1.

    Returns
    -------
    Level
    """
    return Level(_shrink(level.image, scale), level.scale * scale)


def _shrink(image: npt.NDArray[np.uint8], scale: float) -> npt.NDArray[np.uint8]:
    # one channel at a time, so that the blurred image is never entirely in memory
    if image.ndim == 3 and image.shape[0] * image.shape[1] > LARGE:
        shrunk: npt.NDArray[np.uint8] | None = None
        for c in range(3):
            channel = _shrink(np.asarray(cv2.extractChannel(image, c), np.uint8), scale)
            shrunk = np.empty((*channel.shape, 3), np.uint8) if shrunk is None else shrunk
            shrunk[:, :, c] = channel
        assert shrunk is not None
        return shrunk
    blurred = cv2.GaussianBlur(
        image, (0, 0), 0.5 * math.sqrt(scale**-2 - 1), borderType=cv2.BORDER_REPLICATE
    )
    # Given fx and fy, OpenCV samples at the exact scale rather than at the ratio of the rounded
    # sides.
    sides = [max(1, round(side * scale)) for side in image.shape[:2]]
    del image
    # OpenCV raises an error if a side rounds to zero
    size = (sides[1], sides[0]) if 1 in sides else None
    return np.asarray(
        cv2.resize(blurred, size, fx=scale, fy=scale, interpolation=cv2.INTER_LINEAR), np.uint8
    )
