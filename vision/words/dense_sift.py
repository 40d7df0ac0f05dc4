"""Dense SIFT (Lowe, 2004): descriptors on a regular grid at several scales."""

from dataclasses import dataclass, replace

import cv2
import numpy as np
import numpy.typing as npt

from ...learners.parameters import check_declared, check_integer, check_real, checked
from ..images import as_rgb

N_CELLS = 4  # cells along each side of a descriptor
N_ORIENTATIONS = 8
N_VALUES = N_CELLS * N_CELLS * N_ORIENTATIONS
CLIP = 0.2  # maximum value after the first normalisation (Lowe 2004, section 6.1)
CELL_OF_SIZE = 1.5  # width of a cell in units of the keypoint's size (OpenCV's convention)


# Permutation that mirrors a descriptor: columns of cells are reversed, and angle a becomes pi - a.
_MIRROR = (
    np.arange(N_VALUES)
    .reshape(N_CELLS, N_CELLS, N_ORIENTATIONS)[:, ::-1][..., [4, 3, 2, 1, 0, 7, 6, 5]]
    .ravel()
)


@dataclass(frozen=True)
class Descriptors:
    """Descriptors of one image.

    Attributes
    ----------
    positions : ndarray of shape (n, 2), float32
        Coordinates x and y of the keypoints, in pixels.
    sizes : ndarray of shape (n,), float32
        Diameters of the keypoints in pixels.
    values : ndarray of shape (n, 128), uint8
        Descriptors. As in OpenCV, the values are sorted by row of cells, column of cells and
        orientation. Descriptors are scaled to a norm of 512, except for those of flat regions.
    width, height : int
        Size of the image.
    """

    positions: np.ndarray
    sizes: np.ndarray
    values: np.ndarray
    width: int
    height: int

    def mirrored(self) -> "Descriptors":
        """Return the descriptors of the mirror image.

        Returns
        -------
        Descriptors
            Mirrored descriptors, in the same order as the original descriptors.
        """
        positions = np.column_stack([self.width - 1 - self.positions[:, 0], self.positions[:, 1]])
        return replace(self, positions=positions, values=self.values[:, _MIRROR])

    def quarters(self) -> np.ndarray:
        """Return the index of the quarter of the image in which each keypoint lies.

        Quarter 0 is at the top left, 1 at the top right, 2 at the bottom left, and 3 at the bottom
        right.

        Returns
        -------
        ndarray of shape (n_keypoints,), int64
            Quarter of each keypoint.
        """
        right = self.positions[:, 0] >= self.width / 2 - 0.5
        below = self.positions[:, 1] >= self.height / 2 - 0.5
        return 2 * below + right.astype(np.int64)


@dataclass(frozen=True)
class DenseSift:
    """Upright SIFT descriptors [1]_ on a grid.

    Each value of a descriptor is a sum of gradient magnitudes for one cell and one orientation.
    Each magnitude is weighted by a Gaussian window and distributed linearly over the nearest cells
    and the two nearest of eight orientations. The spatial weights are separable, so the sums for
    all keypoints are computed together, first along the rows and then along the columns of the
    grid. They equal the sums of OpenCV's descriptor for a keypoint with angle 0 in octave 0.

    Parameters
    ----------
    sizes : tuple of float, default (4.0, 6.0, 9.0, 13.0)
        Diameters of the keypoints, in pixels (``cv2.KeyPoint.size``). Each descriptor has 4 x 4
        cells, whose width is 1.5 times the diameter.
    step : int, default 8
        Distance between neighbouring keypoints in pixels, at least 1.
    sigma : float, default 1.6
        Standard deviation, in pixels, of the blur after smoothing; greater than 0.5, since the
        input is assumed to have a blur of 0.5 pixels.

    Raises
    ------
    ValueError
        If a parameter is out of range.

    References
    ----------
    .. [1] D. G. Lowe, "Distinctive image features from scale-invariant keypoints", International
           Journal of Computer Vision 60 (2004).

    Examples
    --------
    >>> import numpy as np
    >>> described = DenseSift(sizes=(4.0,), step=16).describe(np.zeros((64, 96, 3), np.uint8))
    >>> described.positions.shape, described.values.shape
    ((24, 2), (24, 128))
    """

    sizes: tuple[float, ...] = (4.0, 6.0, 9.0, 13.0)
    step: int = checked(8, check_integer, 1)
    sigma: float = checked(1.6, check_real, 0.5, above=True)

    def __post_init__(self) -> None:
        if not self.sizes or min(self.sizes) <= 0:
            raise ValueError(
                f"sizes={self.sizes!r} is not valid; expected one or more positive sizes"
            )
        check_declared(self)

    def grid(self, height: int, width: int) -> tuple[np.ndarray, np.ndarray]:
        """Return the rows and columns of a grid of keypoints centred in the image.

        Parameters
        ----------
        height, width : int
            Size of the image in pixels.

        Returns
        -------
        tuple of two ndarrays of int
            Rows y and columns x of the keypoints.
        """
        return tuple(np.arange((n - 1) % self.step // 2, n, self.step) for n in (height, width))  # type: ignore[return-value]

    def describe(self, image: npt.ArrayLike) -> Descriptors:
        """Describe an image.

        Parameters
        ----------
        image : array_like
            Image in any form accepted by :func:`annealed.vision.as_rgb`.

        Returns
        -------
        Descriptors
            Descriptors, sorted by size and, for each size, by row.
        """
        grey = cv2.cvtColor(as_rgb(image), cv2.COLOR_RGB2GRAY).astype(np.float32)
        # Lowe's base image; the camera is assumed to have blurred it by 0.5 already.
        maps = _orientation_maps(
            cv2.GaussianBlur(grey, (0, 0), float(np.sqrt(self.sigma**2 - 0.25)))
        )
        rows, columns = self.grid(*grey.shape)
        values = [_describe(maps, rows, columns, *_cell_windows(size)) for size in self.sizes]
        x, y = np.meshgrid(columns, rows)
        positions = np.column_stack([x.ravel(), y.ravel()]).astype(np.float32)
        sizes = np.repeat(np.asarray(self.sizes, np.float32), len(positions))
        height, width = grey.shape
        return Descriptors(
            np.tile(positions, (len(self.sizes), 1)), sizes, np.concatenate(values), width, height
        )


def _cell_windows(size: float) -> tuple[np.ndarray, np.ndarray]:
    """Return the first offset (4,) and the weights (4, n) of each row of cells. The weights are the
    product of the cell's triangle and the descriptor's Gaussian."""
    width = CELL_OF_SIZE * size
    reach = int(np.floor(width * (N_CELLS + 1) / 2))
    offsets = np.arange(-reach, reach + 1)
    in_cells = offsets / width
    triangles = np.maximum(
        0.0, 1.0 - np.abs(in_cells + N_CELLS / 2 - 0.5 - np.arange(N_CELLS)[:, None])
    )
    weights = triangles * np.exp(-(in_cells**2) / (N_CELLS**2 / 2))
    first = np.argmax(weights > 0, axis=1)
    length = int((weights > 0).sum(axis=1).max())
    padded = np.pad(weights, ((0, 0), (0, length)))
    windows = np.stack([padded[i, f : f + length] for i, f in enumerate(first)])
    return offsets[first], windows.astype(np.float32)


def _orientation_maps(image: np.ndarray) -> np.ndarray:
    """Compute gradient magnitudes (H, W, 8) by orientation; angles are anticlockwise, and the
    outermost pixels are zero as in OpenCV."""
    dx, dy = image[1:-1, 2:] - image[1:-1, :-2], image[:-2, 1:-1] - image[2:, 1:-1]
    magnitude = np.sqrt(dx * dx + dy * dy)
    angle = np.arctan2(dy, dx) * np.float32(N_ORIENTATIONS / (2.0 * np.pi))
    low = np.floor(angle)
    share = angle - low
    maps = np.zeros((*image.shape, N_ORIENTATIONS), np.float32)
    inside, first = maps[1:-1, 1:-1], low.astype(np.int64)[..., None]
    np.put_along_axis(inside, first % N_ORIENTATIONS, ((1 - share) * magnitude)[..., None], axis=2)
    np.put_along_axis(inside, (first + 1) % N_ORIENTATIONS, (share * magnitude)[..., None], axis=2)
    return maps


def _describe(
    maps: np.ndarray, rows: np.ndarray, columns: np.ndarray, first: np.ndarray, windows: np.ndarray
) -> np.ndarray:
    """Compute descriptors (n, 128) at all grid points. Weighted sums of the maps, over the rows and
    then over the columns of each cell, are scaled to length 1, clipped, scaled to length 512 and
    stored as bytes."""
    reach = int(max(-first.min(), (first + windows.shape[1]).max()))
    weights = np.zeros((N_CELLS, 2 * reach), np.float32)
    for cell, start, window in zip(weights, first + reach, windows):
        cell[start : start + len(window)] = window
    padded = np.pad(maps, ((reach, reach), (reach, reach), (0, 0)))
    width, n = padded.shape[1:]
    band = np.stack([weights @ padded[y : y + 2 * reach].reshape(-1, width * n) for y in rows])
    band = np.ascontiguousarray(band.reshape(-1, width, n).transpose(1, 0, 2)).reshape(width, -1)
    sums = np.stack([weights @ band[x : x + 2 * reach] for x in columns])
    values = (
        sums.reshape(len(columns), N_CELLS, len(rows), N_CELLS, n)
        .transpose(2, 0, 3, 1, 4)
        .reshape(-1, N_VALUES)
    )
    limit = np.sqrt(np.square(values).sum(axis=1, keepdims=True)) * np.float32(CLIP)
    values = np.minimum(values, limit)
    length = np.sqrt(np.square(values).sum(axis=1, keepdims=True))
    scaled = values * (np.float32(512) / np.maximum(length, np.float32(1.1920929e-7)))
    return np.minimum(scaled + np.float32(0.5), 255).astype(np.uint8)
