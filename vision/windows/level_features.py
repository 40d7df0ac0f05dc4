"""What all features share on one level: integral images, deviations, orientation histograms."""

from dataclasses import dataclass, field
from typing import Any

import cv2
import numpy as np
import numpy.typing as npt

from .feature_pool import FeaturePool
from .kernels import MAGNITUDE_SCALE
from .level_kernels import dense_gradients, dense_histograms, dense_integrals, window_histograms

__all__ = ["GROUP", "LevelChannels", "level_channels"]

GROUP = 64
"""Neighbouring windows of a row that are scored together."""

_OWN = 60  # the histograms of one window alone take about as long as a level's of so many pixels


class Buffers:
    """Memory that the tables of one strip take over from those of the strip before: fresh memory costs as much as the sums."""

    def __init__(self) -> None:
        self._held: dict[str, npt.NDArray[np.uint8]] = {}

    def take(self, name: str, shape: tuple[int, ...], dtype: npt.DTypeLike) -> npt.NDArray[Any]:
        """An array with any contents; the one of this name that was taken before loses its own."""
        size = int(np.prod(shape)) * np.dtype(dtype).itemsize
        if name not in self._held or self._held[name].size < size:
            self._held[name] = np.empty(size, np.uint8)
        return self._held[name][:size].view(dtype).reshape(shape)


@dataclass(frozen=True)
class LevelChannels:
    """What all features share on one level: integral images and standard deviations, histograms when asked for.

    Attributes
    ----------
    pool : FeaturePool
        Gives the window's side and the layout of the histograms.
    top, bottom : int
        Rows of the level whose windows are meant: ``top <= y < bottom``.
    first : int
        First row of the level that the tables hold, above ``top`` where windows around were asked for.
    rows, width : int
        Rows held, and the level's width; there is one window per pixel.
    stride : int
        Entries per row of all tables: the width, rounded up to whole groups of lanes, plus the window.
    planes : (3, rows + window + 1, stride + 1) uint8 ndarray
        The level's channels with the border pixels repeated; their pixel (window // 2 + 1, window // 2 + 1) is the
        level's (0, first).
    integral : (3 * (rows + window) * stride,) int32 ndarray
        Integral image of each channel. Sums may wrap around; box sums of one window are exact all the same.
    inverse_sigma : (rows, stride) float32 ndarray
        1 / sigma of the window at each pixel.
    expected : float
        In the end, histograms of so many times the windows are wanted that have been asked for when it matters: a guess.
    """

    pool: FeaturePool
    top: int
    bottom: int
    first: int
    rows: int
    width: int
    stride: int
    planes: npt.NDArray[np.uint8]
    integral: npt.NDArray[np.int32]
    inverse_sigma: npt.NDArray[np.float32]
    expected: float = 1.0
    _buffers: Buffers = field(default_factory=Buffers, repr=False)
    _hog: list[tuple[npt.NDArray[Any], npt.NDArray[np.float32]]] = field(default_factory=list, repr=False)
    _gradient: list[npt.NDArray[np.uint16]] = field(default_factory=list, repr=False)
    _asked: list[int] = field(default_factory=lambda: [0], repr=False)

    @property
    def plane(self) -> int:
        """Entries of one channel's integral image, and of one bin's or one channel's table of ``hog``."""
        return (self.rows + self.pool.window) * self.stride

    def prefers_hog(self, n_windows: int) -> bool:
        """Whether to compute ``hog``, or use it, for the histograms of some more windows: not before it is the cheaper way."""
        self._asked[0] += n_windows
        return bool(self._hog) or self._asked[0] * _OWN * self.expected > self.plane

    @property
    def has_hog(self) -> bool:
        """Whether ``hog`` has been computed."""
        return bool(self._hog)

    @property
    def hog(self) -> tuple[npt.NDArray[Any], npt.NDArray[np.float32]]:
        """Histogram entries of the cell, and 1 / norm of the block, whose top left pixel is the entry's.

        Shapes (3 * orientations, plane) and (3, plane); computed at first use.
        """
        if not self._hog:
            block = self.pool.hog.block if self.pool.hog else 1
            cells = self._buffers.take("cells", (3 * self.pool.n_orientations, self.plane), self.entry)
            inverse_norm = self._buffers.take("norms", (3, self.plane), np.float32)
            cell, epsilon, _ = self.pool.hog_arguments()
            length, bins = self.gradient
            dense_histograms(length, bins, cell, epsilon, block, cells, inverse_norm)
            self._hog.append((cells, inverse_norm))
        return self._hog[0]

    @property
    def gradient(self) -> npt.NDArray[np.uint16]:
        """Length and bin of the gradient at every pixel, (2, 3, rows + window, stride); computed at first use."""
        if not self._gradient:
            found = self._buffers.take("gradient", (2, 3, self.rows + self.pool.window, self.stride), np.uint16)
            dense_gradients(self.planes, self.pool.hog_arguments()[2], found[0], found[1])
            self._gradient.append(found)
        return self._gradient[0]

    @property
    def entry(self) -> type:
        """Kind of the entries: half the memory where the largest sum fits into 16 bits."""
        largest = (self.pool.hog.cell if self.pool.hog else 1) ** 2 * MAGNITUDE_SCALE * 255 * 2**0.5
        return np.uint16 if largest < 65535 else np.int32

    def window_hog(
        self, places: npt.NDArray[np.uint64], cells: npt.NDArray[np.int64], blocks: npt.NDArray[np.int64]
    ) -> tuple[npt.NDArray[Any], npt.NDArray[np.float32]]:
        """The same for some windows alone, to the bit: (n, number of cells, orientations) and (n, number of blocks).

        ``places`` are flat places in the level, ``cells`` and ``blocks`` those of a `Program`.
        """
        histogram: npt.NDArray[Any] = np.empty((len(places), len(cells), self.pool.n_orientations), self.entry)
        inverse_norm = np.empty((len(places), len(blocks)), np.float32)
        cell, epsilon, _ = self.pool.hog_arguments()
        length, bins = self.gradient
        window_histograms(length, bins, places, cells, blocks, cell, epsilon, histogram, inverse_norm)
        return histogram, inverse_norm


def level_channels(
    image: npt.NDArray[np.uint8],
    pool: FeaturePool | None = None,
    rows: tuple[int, int] | None = None,
    margin: int = 0,
    buffers: Buffers | None = None,
    expected: float = 1.0,
) -> LevelChannels:
    """Prepare one pyramid level, or a strip of it, for scanning; any number of models can then use it.

    Parameters
    ----------
    image : (H, W, 3) uint8 ndarray
    pool : FeaturePool, optional
        The pool of the models; ``FeaturePool()`` by default.
    rows : tuple of int, optional
        First row and end of a strip, all rows by default. The values of its windows are those of the whole level, to the bit.
    margin : int, default 0
        So many rows more above and below the strip, where the level has them.
    buffers : Buffers, optional
        Memory to reuse: what was made with the same buffers before is not to be used any more.
    expected : float, default 1
        See :class:`LevelChannels`; the values do not depend on it.

    Returns
    -------
    LevelChannels

    Raises
    ------
    ValueError
        For another kind of image and for rows that it does not have.
    """
    if image.dtype != np.uint8 or image.ndim != 3 or image.shape[2] != 3 or image.size == 0:
        raise ValueError(f"image of shape {image.shape} and {image.dtype}: expected uint8 (H, W, 3)")
    pool = FeaturePool() if pool is None else pool
    height, width = image.shape[:2]
    top, bottom = (0, height) if rows is None else rows
    if not 0 <= top < bottom <= height:
        raise ValueError(f"rows={rows}: expected some of the {height} rows of the level")
    first, end = max(0, top - margin), min(height, bottom + margin)
    window = pool.window
    stride = -(-width // GROUP) * GROUP + window
    before, after = window // 2 + 1, window - window // 2
    # Pixels beyond the strip come from the level; only beyond the level's frame is the border repeated.
    above, below = min(before, first), min(after, height - end)
    part = image[first - above : end + below]
    buffers = Buffers() if buffers is None else buffers
    held = end - first + window  # rows of the tables
    planes = buffers.take("planes", (3, held + 1, stride + 1), np.uint8)
    for plane, channel in zip(planes, cv2.split(part), strict=True):
        plane[:] = cv2.copyMakeBorder(
            channel, before - above, after - below, before, stride + 1 - before - width, borderType=cv2.BORDER_REPLICATE
        )
    integral = buffers.take("integral", (3 * held * stride,), np.int32)
    squares = buffers.take("squares", (held * stride,), np.int32)
    inverse_sigma = buffers.take("sigma", (end - first, stride), np.float32)
    dense_integrals(planes, window, stride, integral, squares, inverse_sigma)
    tables = planes, integral, inverse_sigma
    return LevelChannels(pool, top, bottom, first, end - first, width, stride, *tables, expected, buffers)
