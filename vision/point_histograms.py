"""Gradient histograms around the points of a shape, in an image that is aligned with the shape.

The histograms are the descriptors of cascaded shape regression. As in HOG and SIFT, each point is
surrounded by cells, and each cell has a histogram of signed gradient directions.
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass

import cv2
import numpy as np

from ..learners.compilation import jit
from .pyramid import Level

#: Signed gradient directions, 45 degrees apart.
DIRECTIONS = 8
#: Cells in x and in y around a point.
CELLS = 4
VALUES_PER_POINT = CELLS * CELLS * DIRECTIONS

#: Permutation of a point's values under mirroring: cells and directions are swapped left to right.
MIRRORED_VALUES = (
    np.arange(VALUES_PER_POINT)
    .reshape(CELLS, CELLS, DIRECTIONS)[:, ::-1, (4 - np.arange(DIRECTIONS)) % 8]
    .ravel()
)

# maximum value of a normalised histogram, so that one strong edge does not dominate (heuristic)
_CLIP = 0.25
# added to the norm, in grey values of a cell, so that flat areas stay near zero (heuristic)
_FLOOR = 4.0


@dataclass(frozen=True)
class Frame:
    """Image of a shape in an upright position, with coordinates relative to the shape.

    Shape coordinates are complex numbers x + iy.

    Attributes
    ----------
    pixels : ndarray of shape (h, w), uint8
        Grey values.
    origin : complex
        Shape coordinates of the centre of pixel (0, 0).
    unit : float
        Number of pixels per unit of shape coordinates.
    """

    pixels: np.ndarray
    origin: complex
    unit: float


def cut_frame(
    levels: Sequence[Level],
    scale_rotation: complex,
    translation: complex,
    box: tuple[float, float, float, float],
    unit: float,
) -> Frame:
    """Crop the region around a shape from a pyramid.

    Parameters
    ----------
    levels : list of Level
        Levels of the pyramid, from large to small.
    scale_rotation, translation : complex
        Similarity transform ``image = scale_rotation * shape + translation`` from shape coordinates
        to image pixels.
    box : tuple of float
        Box x0, y0, x1, y1 in shape coordinates.
    unit : float
        Number of pixels of the crop per unit of shape coordinates.

    Returns
    -------
    Frame
        Grey crop. Outside the image, border pixels are repeated.
    """
    # The smallest level with at least as many pixels as the result, or else the largest level.
    least = 0.999 * unit / abs(scale_rotation)
    level = next((level for level in reversed(levels) if level.scale >= least), levels[0])
    origin = complex(box[0], box[1])
    size = (math.ceil((box[2] - box[0]) * unit), math.ceil((box[3] - box[1]) * unit))
    corner = scale_rotation * origin + translation
    first = level.from_image([corner.real, corner.imag])
    step = scale_rotation / unit * level.scale
    matrix = np.array([[step.real, -step.imag, first[0]], [step.imag, step.real, first[1]]])
    return Frame(level.warped(matrix, size, grey=True), origin, unit)


def point_histograms(frame: Frame, points: np.ndarray, cell: int) -> np.ndarray:
    """Compute gradient histograms around points.

    Each point is surrounded by 4 x 4 square cells. The gradient at a pixel is split between the two
    nearest of 8 signed directions. The histogram values of a point are divided by their Euclidean
    norm and clipped.

    Parameters
    ----------
    frame : Frame
        Image, from :func:`cut_frame`.
    points : ndarray of shape (n,), complex
        Points x + iy in shape coordinates.
    cell : int
        Side of a cell in pixels of the frame.

    Returns
    -------
    ndarray of shape (n, 128), float32
        Histograms, with 8 directions for each cell and the cells in row-major order. Border pixels
        of the frame are repeated outside it.
    """
    at = (points - frame.origin) * frame.unit
    return _histograms(
        frame.pixels,
        at.real.astype(np.float32),
        at.imag.astype(np.float32),
        int(cell),
        _CLIP,
        _FLOOR,
    )


def _plain_histograms(
    pixels: np.ndarray, xs: np.ndarray, ys: np.ndarray, cell: int, clip: float, floor: float
) -> np.ndarray:
    grey = np.pad(pixels.astype(np.float32), 1, mode="edge")
    gx, gy = grey[1:-1, 2:] - grey[1:-1, :-2], grey[2:, 1:-1] - grey[:-2, 1:-1]
    ax, ay = abs(gx), abs(gy)
    axis = np.where(ax >= ay, np.where(gx >= 0, 0, 4), np.where(gy >= 0, 2, 6))
    corner = np.where(gx >= 0, np.where(gy >= 0, 1, 7), np.where(gy >= 0, 3, 5))
    shares = np.zeros((*pixels.shape, DIRECTIONS), np.float32)
    np.put_along_axis(shares, axis[..., None], abs(ax - ay)[..., None], axis=2)
    np.put_along_axis(
        shares, corner[..., None], (np.sqrt(np.float32(2)) * np.minimum(ax, ay))[..., None], axis=2
    )
    sums = cv2.boxFilter(shares, -1, (cell, cell), anchor=(0, 0), normalize=False)
    sides = np.array(pixels.shape) - cell
    first = (np.arange(CELLS) - 0.5 * (CELLS - 1)) * cell - 0.5 * (cell - 1)
    y, x = (np.clip(np.add.outer(at, first), 0, side - 0.001) for at, side in zip((ys, xs), sides))
    y, x = y[:, :, None], x[:, None, :]
    top, left = y.astype(np.int64), x.astype(np.int64)
    fy, fx = ((at - first)[..., None].astype(np.float32) for at, first in ((y, top), (x, left)))
    above = sums[top, left] * (1 - fx) + sums[top, left + 1] * fx
    below = sums[top + 1, left] * (1 - fx) + sums[top + 1, left + 1] * fx
    out = (above * (1 - fy) + below * fy).reshape(len(xs), VALUES_PER_POINT)
    norm = np.sqrt(np.square(out).sum(axis=1, keepdims=True)) + np.float32(floor * cell * cell)
    return np.minimum(out / norm, np.float32(clip))


@jit(plain=_plain_histograms, by_size=False)
def _histograms(
    pixels: np.ndarray, xs: np.ndarray, ys: np.ndarray, cell: int, clip: float, floor: float
) -> np.ndarray:
    shares, bins = _split_gradients(pixels)
    height, width = pixels.shape[0] - cell + 1, pixels.shape[1] - cell + 1
    n = len(xs)
    out = np.zeros((n, CELLS * CELLS * DIRECTIONS), np.float32)
    half = np.float32(0.5 * (CELLS - 1))
    # A cell is interpolated between those that start at whole pixels; these start half a cell
    # before its centre.
    shift = np.float32(0.5 * (cell - 1))
    left = np.empty(CELLS, np.int64)
    across = np.empty((CELLS, cell + 1), np.float32)
    for p in range(n):
        values = out[p]
        for j in range(CELLS):
            x = min(
                max(xs[p] + (np.float32(j) - half) * np.float32(cell) - shift, np.float32(0.0)),
                np.float32(width - 1.001),
            )
            left[j] = int(x)
            across[j] = np.float32(1)
            across[j, cell] = x - np.float32(left[j])
            across[j, 0] = np.float32(1) - across[j, cell]
        for i in range(CELLS):
            y = min(
                max(ys[p] + (np.float32(i) - half) * np.float32(cell) - shift, np.float32(0.0)),
                np.float32(height - 1.001),
            )
            top = int(y)
            below = y - np.float32(top)
            for row in range(cell + 1):
                down = np.float32(1)
                if row == 0:
                    down -= below
                elif row == cell:
                    down = below
                for k in range(cell + 1):
                    for j in range(CELLS):  # neighbouring sums are independent of each other
                        weight = down * across[j, k]
                        column = left[j] + k
                        for part in range(2):
                            direction = bins[part, top + row, column]
                            value = np.uint64((i * CELLS + j) * DIRECTIONS + direction)
                            values[value] += weight * shares[part, top + row, column]
        square = np.float32(0.0)
        for t in range(CELLS * CELLS * DIRECTIONS):
            square += out[p, t] * out[p, t]
        scale = np.float32(1.0) / (np.sqrt(square) + np.float32(floor * cell * cell))
        for t in range(CELLS * CELLS * DIRECTIONS):
            out[p, t] = min(out[p, t] * scale, np.float32(clip))
    return out


@jit
def _split_gradients(pixels: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Split the gradient at each pixel between two directions, one along an axis and one diagonal.

    The weights, which are positive, and the directions are returned.
    """
    height, width = pixels.shape
    shares = np.empty((2, height, width), np.float32)
    bins = np.empty((2, height, width), np.uint8)
    diagonal = np.float32(np.sqrt(2.0))
    padded = np.empty((3, width + 2), np.int32)
    for y in range(height):
        for i in range(3):
            row = pixels[min(max(y + i - 1, 0), height - 1)]
            padded[i, 0], padded[i, width + 1] = row[0], row[width - 1]
            for x in range(width):
                padded[i, x + 1] = row[x]
        for x in range(np.uint64(width)):
            gx = padded[1, x + 2] - padded[1, x]
            gy = padded[2, x + 1] - padded[0, x + 1]
            ax, ay = abs(gx), abs(gy)
            shares[0, y, x] = np.float32(abs(ax - ay))
            shares[1, y, x] = diagonal * np.float32(min(ax, ay))
            right, down = np.int32(gx >= 0), np.int32(gy >= 0)
            # 0 to the right, 2 down, 4 to the left, 6 up
            bins[0, y, x] = 4 - 4 * right if ax >= ay else 6 - 4 * down
            bins[1, y, x] = (7 - 6 * down) if right else (5 - 2 * down)
    return shares, bins
