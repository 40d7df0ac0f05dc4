"""What all features share on one level: integral images, deviations, orientation histograms."""

from dataclasses import dataclass, field
from functools import cached_property
from typing import Any

import cv2
import numpy as np
import numpy.typing as npt

from .feature_pool import FeaturePool
from .kernels import MAGNITUDE_SCALE
from .level_kernels import dense_gradients, dense_histograms, dense_integrals, window_histograms
from .programs import Program

__all__ = ["GROUP", "Buffers", "LevelChannels", "level_channels"]

GROUP = 64
"""Neighbouring windows of a row that are scored together."""


class Buffers:
    """Memory that the tables of one strip reuse from the strip before: allocating it anew takes as long as the sums."""

    def __init__(self) -> None:
        self._held: dict[str, npt.NDArray[np.uint8]] = {}

    def take(self, name: str, shape: tuple[int, ...], dtype: npt.DTypeLike) -> npt.NDArray[Any]:
        """An uninitialised array; it overwrites the array of this name that was taken before."""
        size = int(np.prod(shape)) * np.dtype(dtype).itemsize
        if name not in self._held or self._held[name].size < size:
            self._held[name] = np.empty(size, np.uint8)
        return self._held[name][:size].view(dtype).reshape(shape)


@dataclass(eq=False)
class LevelChannels:
    """What all features share on one level, or on a strip of it; `level_channels` makes it.

    Integral images and standard deviations are computed at once, gradients and orientation histograms at first use.

    Attributes
    ----------
    pool : FeaturePool
        Pool of the models: side of the window and layout of the histograms.
    top, bottom : int
        Rows of the level whose windows are searched: ``top <= y < bottom``.
    first : int
        First row of the level that the tables hold: above ``top`` where a margin was asked for.
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
    expected_requests : float
        Guess of the final number of requests for the histograms of single windows, as a multiple of those so far.
    n_requests : int
        Windows whose histograms have been requested so far; the sparse scan counts them.
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
    expected_requests: float = 1.0
    n_requests: int = 0
    _buffers: Buffers = field(default_factory=Buffers, repr=False)

    @property
    def plane(self) -> int:
        """Entries of one channel's integral image, and of one bin's or one channel's table of ``hog``."""
        return (self.rows + self.pool.window) * self.stride

    @property
    def has_hog(self) -> bool:
        """Whether ``hog`` has been computed."""
        return "hog" in self.__dict__

    @cached_property
    def hog(self) -> tuple[npt.NDArray[Any], npt.NDArray[np.float32]]:
        """Histogram entries of the cell, and 1 / norm of the block, whose top left pixel is the entry's.

        Shapes (3 * orientations, plane) and (3, plane).
        """
        block = self.pool.hog.block if self.pool.hog else 1
        cells = self._buffers.take("cells", (3 * self.pool.n_orientations, self.plane), self.entry)
        inverse_norm = self._buffers.take("norms", (3, self.plane), np.float32)
        cell, epsilon, _ = self.pool.hog_constants
        length, bins = self.gradient
        dense_histograms(length, bins, cell, epsilon, block, cells, inverse_norm)
        return cells, inverse_norm

    @cached_property
    def gradient(self) -> npt.NDArray[np.uint16]:
        """Length and bin of the gradient at every pixel, (2, 3, rows + window, stride)."""
        found = self._buffers.take("gradient", (2, 3, self.rows + self.pool.window, self.stride), np.uint16)
        dense_gradients(self.planes, self.pool.hog_constants[2], found[0], found[1])
        return found

    @property
    def entry(self) -> type:
        """Type of the histogram entries: 16 bits where the largest sum fits, for half the memory."""
        largest = (self.pool.hog.cell if self.pool.hog else 1) ** 2 * MAGNITUDE_SCALE * 255 * 2**0.5
        return np.uint16 if largest < 65535 else np.int32

    def window_hog(
        self, places: npt.NDArray[np.uint64], cells: npt.NDArray[np.int64], blocks: npt.NDArray[np.int64]
    ) -> tuple[npt.NDArray[Any], npt.NDArray[np.float32]]:
        """Histograms of single windows, equal to ``hog`` to the bit.

        Parameters
        ----------
        places : (n,) uint64 ndarray
            Flat positions of the windows in the level.
        cells, blocks : (c, 3) and (b, 3) int64 ndarray
            Those of a `Program`.

        Returns
        -------
        cells : (n, c, orientations) ndarray
            Entries of the histograms.
        inverse_norms : (n, b) float32 ndarray
            1 / norm of each block.
        """
        histogram: npt.NDArray[Any] = np.empty((len(places), len(cells), self.pool.n_orientations), self.entry)
        inverse_norm = np.empty((len(places), len(blocks)), np.float32)
        cell, epsilon, _ = self.pool.hog_constants
        length, bins = self.gradient
        window_histograms(length, bins, places, cells, blocks, cell, epsilon, histogram, inverse_norm)
        return histogram, inverse_norm

    def corner_offsets(self, program: Program) -> npt.NDArray[np.uint64]:
        """Positions of all corners of a program in the flat integral image, relative to the window's: (n, K).

        Parameters
        ----------
        program : Program
            Compiled features.

        Returns
        -------
        (n, K) uint64 ndarray
            Positions.
        """
        corners = program.channel[:, None] * self.plane + program.corner_y * self.stride + program.corner_x
        return corners.astype(np.uint64)

    def hog_offsets(self, program: Program) -> npt.NDArray[np.uint64]:
        """Positions of each feature's cell and block in the flat tables of ``hog``: (n, 2), 0 for Haar features.

        Parameters
        ----------
        program : Program
            Compiled features.

        Returns
        -------
        (n, 2) uint64 ndarray
            Positions.
        """
        offsets = np.zeros((len(program.channel), 2), np.uint64)
        f = program.with_0
        c, y, x = program.cells[program.cell[f]].T
        offsets[f, 0] = (c * self.pool.n_orientations + program.orientation[f]) * self.plane + y * self.stride + x
        offsets[f, 1] = program.block_corner[program.block[f]] @ np.array([self.plane, self.stride, 1])
        return offsets


def level_channels(
    image: npt.NDArray[np.uint8],
    pool: FeaturePool | None = None,
    rows: tuple[int, int] | None = None,
    margin: int = 0,
    buffers: Buffers | None = None,
    expected_requests: float = 1.0,
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
        Further rows above and below the strip, where the level has them.
    buffers : Buffers, optional
        Memory to reuse: it invalidates all tables that were made with the same buffers before.
    expected_requests : float, default 1.0
        See `LevelChannels`; it changes the time, not the values.

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
    return LevelChannels(pool, top, bottom, first, end - first, width, stride, *tables, expected_requests, _buffers=buffers)
