"""Windows cut out of images, with one pixel around each; and the values of features in a few of them, in NumPy.

The latter are the readable form of the compiled loops in ``kernels``: equal to the bit, and nobody waits for a compiler.
"""

import numpy as np
import numpy.typing as npt

from .kernels import MAGNITUDE_SCALE
from .programs import Program

__all__ = ["evaluate_few", "extract_patches", "pixel_of"]


def pixel_of(xy: npt.ArrayLike) -> npt.NDArray[np.int64]:
    """The pixel that holds a point: coordinates (..., 2) rounded, halves upwards.

    Parameters
    ----------
    xy : (..., 2) array_like of float
        Coordinates in pixels.

    Returns
    -------
    (..., 2) int64 ndarray
        Column and row of the pixel.
    """
    return np.floor(np.asarray(xy, dtype=np.float64) + 0.5).astype(np.int64)


def extract_patches(image: npt.NDArray[np.uint8], xs: npt.ArrayLike, ys: npt.ArrayLike, window: int = 24) -> npt.NDArray[np.uint8]:
    """Cut windows, with one pixel around them, out of an image.

    The window *at* pixel (x, y) has that pixel at its own (window // 2, window // 2): (12, 12) of 0..23, the upper left
    pixel of its lower right quarter. In the patch, one pixel larger on each side, it is (13, 13). A keypoint belongs to
    the window at `pixel_of` its coordinates on the pyramid level. Windows may reach over the frame (and centres may lie
    outside): the border pixels are repeated.

    Parameters
    ----------
    image : (H, W, 3) uint8 ndarray
    xs, ys : (n,) array_like of int
        Pixels.
    window : int, default 24
        Side of the windows in pixels.

    Returns
    -------
    (n, window + 2, window + 2, 3) uint8 ndarray

    Raises
    ------
    ValueError
        For another kind of image or coordinates that are no whole numbers.
    """
    if image.dtype != np.uint8 or image.ndim != 3 or image.shape[2] != 3:
        raise ValueError(f"image of shape {image.shape} and {image.dtype}: expected uint8 (H, W, 3)")
    columns, rows = np.atleast_1d(np.asarray(xs)), np.atleast_1d(np.asarray(ys))
    if columns.ndim != 1 or columns.shape != rows.shape:
        raise ValueError(f"xs {columns.shape} and ys {rows.shape}: expected two lists of one length")
    for name, values in (("xs", columns), ("ys", rows)):
        if values.size and not np.issubdtype(values.dtype, np.integer):
            raise ValueError(f"{name} of {values.dtype}: expected whole pixels (see pixel_of)")
    reach = np.arange(-(window // 2) - 1, window - window // 2 + 1)
    height, width = image.shape[:2]
    x = np.clip(columns.astype(np.int64)[:, None] + reach, 0, width - 1)
    y = np.clip(rows.astype(np.int64)[:, None] + reach, 0, height - 1)
    return image[y[:, :, None], x[:, None, :]]


def evaluate_few(
    patches: npt.NDArray[np.uint8],
    window: int,
    program: Program,
    cell_side: int,
    epsilon: np.float32,
    tangents: npt.NDArray[np.float32],
) -> npt.NDArray[np.float32]:
    """Values (n, m) of all features of a program in patches, rows of (window + 2)**2 * 3 bytes.

    Sums of pixels and of gradients' lengths are whole numbers; all else is done in the order and precision of the loops.
    """
    pixels = patches.reshape(-1, window + 2, window + 2, 3).transpose(0, 3, 1, 2).astype(np.int32)
    inner = pixels[:, :, 1:-1, 1:-1]
    integral = np.zeros((len(patches), 3, window + 1, window + 1), np.int32)
    integral[:, :, 1:, 1:] = inner.cumsum(axis=2).cumsum(axis=3)
    corners = integral[:, program.channel[:, None], program.corner_y, program.corner_x]
    used = np.arange(program.weight.shape[1]) < program.n_corners[:, None]
    sums = (corners * np.where(used, program.weight, 0)).sum(axis=2, dtype=np.int32)
    values = sums.astype(np.float32) * (program.inverse_area * _inverse_sigma(inner, integral)[:, None])
    f = program.with_0
    if len(f):
        length, bins = _gradients(pixels, tangents)
        histogram = _cell_histograms(length, bins, program.cells, cell_side, 2 * tangents.size)
        norm = _inverse_norm(histogram[:, program.blocks], epsilon)
        entries = histogram[:, program.cell[f], program.orientation[f]].astype(np.float32)
        values[:, f] = entries * norm[:, program.block[f]]
    return values


def _inverse_sigma(inner, integral):
    """1 / sigma of every window (n,)."""
    n = float(inner.shape[2] * inner.shape[3])
    boxes = integral[:, :, -1, -1].astype(np.float64)
    scaled_variance = n * (inner * inner).sum(axis=(1, 2, 3)).astype(np.float64) - (boxes * boxes).sum(axis=1)
    sigma = np.sqrt((scaled_variance * (1 / (3 * n * n))).astype(np.float32))
    return np.float32(1) / np.maximum(sigma, np.float32(1))


def _gradients(pixels, tangents):
    """Rounded lengths and bins (n, 3, window, window) of the gradients."""
    m = 2 * tangents.size
    gx = (pixels[:, :, 1:-1, 2:] - pixels[:, :, 1:-1, :-2]).astype(np.float32)
    gy = (pixels[:, :, 2:, 1:-1] - pixels[:, :, :-2, 1:-1]).astype(np.float32)
    length = (np.sqrt(gx * gx + gy * gy) * np.float32(MAGNITUDE_SCALE) + np.float32(0.5)).astype(np.int32)
    bins = (np.abs(gy)[..., None] > np.abs(gx)[..., None] * tangents).sum(axis=-1)
    return length, np.where((gx * gy < 0) & (bins > 0), m - bins, bins)


def _cell_histograms(length, bins, cells, side, n_bins):
    """Histograms (n, number of cells, n_bins), int32."""
    area = np.arange(side)
    at = (cells[:, 0, None, None], cells[:, 1, None, None] + area[:, None], cells[:, 2, None, None] + area)
    where = np.arange(len(length) * len(cells)).reshape(len(length), -1, 1, 1) * n_bins + bins[:, *at]
    histogram = np.bincount(where.ravel(), length[:, *at].ravel(), len(length) * len(cells) * n_bins)
    return histogram.reshape(len(length), len(cells), n_bins).astype(np.int32)


def _inverse_norm(histogram, epsilon):
    """1 / norm (n, blocks) of histograms (n, blocks, cells, bins), squares added one by one."""
    entries = histogram.reshape(*histogram.shape[:2], -1).astype(np.float32)
    energy = np.full(entries.shape[:2], epsilon * epsilon, np.float32)
    for k in range(entries.shape[2]):
        energy += entries[:, :, k] * entries[:, :, k]
    return np.float32(1) / np.sqrt(energy)
