"""Gradient histograms around the points of a shape, in an image aligned with the shape.

The histograms are the descriptors of cascaded shape regression. As in HOG and SIFT, each point is
surrounded by cells, and each cell has a histogram of signed gradient directions.
"""

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
    """Upright image of a shape, in which ``unit`` pixels correspond to one unit of the shape.

    Pixel (0, 0) lies at ``origin`` (x + iy in shape coordinates).

    Attributes
    ----------
    pixels : ndarray of shape (h, w), uint8
        Grey values.
    origin : complex
        Shape coordinates of the centre of the first pixel.
    unit : float
        Number of pixels per unit of the shape.
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
        Similarity transform ``image = scale_rotation * shape + translation`` from the shape to
        image pixels.
    box : tuple of float
        Box x0, y0, x1, y1 in shape coordinates.
    unit : float
        Number of pixels in the result per unit of the shape.

    Returns
    -------
    Frame
        Grey crop; outside the image, border pixels are repeated.
    """
    # The smallest level with at least as many pixels as the result, or else the largest level.
    fine = [level for level in levels if level.scale * abs(scale_rotation) >= 0.999 * unit]
    level = fine[-1] if fine else levels[0]
    origin = complex(box[0], box[1])
    size = (int(np.ceil((box[2] - box[0]) * unit)), int(np.ceil((box[3] - box[1]) * unit)))
    corner = scale_rotation * origin + translation
    first = level.from_image([corner.real, corner.imag])
    step = scale_rotation / unit * level.scale
    matrix = np.array([[step.real, -step.imag, first[0]], [step.imag, step.real, first[1]]])
    colour = cv2.warpAffine(
        level.image,
        matrix,
        size,
        flags=cv2.INTER_LINEAR | cv2.WARP_INVERSE_MAP,
        borderMode=cv2.BORDER_REPLICATE,
    )
    return Frame(np.asarray(cv2.cvtColor(colour, cv2.COLOR_RGB2GRAY), np.uint8), origin, unit)


def point_histograms(frame: Frame, points: np.ndarray, cell: int) -> np.ndarray:
    """Compute gradient histograms around points.

    Each point is surrounded by 4 x 4 square cells; the gradient at a pixel is split between the two
    nearest of 8 signed directions. The values of a point are divided by their Euclidean norm and
    clipped.

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
        Histograms of the cells in row order, with 8 directions each. For points outside the frame,
        the border of the frame is repeated.
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
    sums = _cell_sums(pixels, cell)
    height, width = sums.shape[0], sums.shape[1]
    n = len(xs)
    out = np.empty((n, CELLS * CELLS * DIRECTIONS), np.float32)
    half = np.float32(0.5 * (CELLS - 1))
    # Entry (y, x) holds the sums of the cell that starts at pixel (y, x), whose centre lies half a
    # cell further.
    shift = np.float32(0.5 * (cell - 1))
    for p in range(n):
        square = np.float32(0.0)
        for i in range(CELLS):
            y = min(
                max(ys[p] + (np.float32(i) - half) * np.float32(cell) - shift, np.float32(0.0)),
                np.float32(height - 1.001),
            )
            y0 = int(y)
            fy = y - np.float32(y0)
            for j in range(CELLS):
                x = min(
                    max(xs[p] + (np.float32(j) - half) * np.float32(cell) - shift, np.float32(0.0)),
                    np.float32(width - 1.001),
                )
                x0 = int(x)
                fx = x - np.float32(x0)
                a = (np.float32(1) - fy) * (np.float32(1) - fx)
                b = (np.float32(1) - fy) * fx
                c = fy * (np.float32(1) - fx)
                d = fy * fx
                start = (i * CELLS + j) * DIRECTIONS
                for k in range(DIRECTIONS):
                    value = (
                        a * sums[y0, x0, k]
                        + b * sums[y0, x0 + 1, k]
                        + c * sums[y0 + 1, x0, k]
                        + d * sums[y0 + 1, x0 + 1, k]
                    )
                    out[p, start + k] = value
                    square += value * value
        scale = np.float32(1.0) / (np.sqrt(square) + np.float32(floor * cell * cell))
        for t in range(CELLS * CELLS * DIRECTIONS):
            out[p, t] = min(out[p, t] * scale, np.float32(clip))
    return out


@jit
def _cell_sums(pixels: np.ndarray, cell: int) -> np.ndarray:
    """Sum the gradient in each direction over cells; entry (y, x, k) belongs to the cell that
    starts at pixel (y, x)."""
    height, width = pixels.shape
    rows = np.zeros((height, width, DIRECTIONS), np.float32)
    diagonal = np.float32(np.sqrt(2.0))
    for y in range(height):
        above, below = max(y - 1, 0), min(y + 1, height - 1)
        for x in range(width):
            gx = np.float32(pixels[y, min(x + 1, width - 1)]) - np.float32(pixels[y, max(x - 1, 0)])
            gy = np.float32(pixels[below, x]) - np.float32(pixels[above, x])
            ax, ay = abs(gx), abs(gy)
            # The gradient is a sum of two neighbouring directions, one along an axis and one
            # diagonal, with positive weights.
            if ax >= ay:
                axis = 0 if gx >= 0 else 4
            else:
                axis = 2 if gy >= 0 else 6
            corner = (1 if gy >= 0 else 7) if gx >= 0 else (3 if gy >= 0 else 5)
            rows[y, x, axis] += abs(ax - ay)
            rows[y, x, corner] += diagonal * min(ax, ay)
    wide = width - cell + 1
    tall = height - cell + 1
    across = np.empty((height, wide, DIRECTIONS), np.float32)
    total = np.empty(DIRECTIONS, np.float32)
    for y in range(height):
        for k in range(DIRECTIONS):
            total[k] = 0
        for x in range(width):
            for k in range(DIRECTIONS):
                total[k] += rows[y, x, k]
            if x >= cell - 1:
                for k in range(DIRECTIONS):
                    across[y, x - cell + 1, k] = total[k]
                    total[k] -= rows[y, x - cell + 1, k]
    sums = np.zeros((tall, wide, DIRECTIONS), np.float32)
    for y in range(cell):
        sums[0] += across[y]
    for y in range(1, tall):
        sums[y] = sums[y - 1] + across[y + cell - 1] - across[y - 1]
    return sums
