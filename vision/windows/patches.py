"""Windows extracted from images, each with a margin of one pixel."""

import numpy as np
import numpy.typing as npt


def extract_patches(
    image: npt.NDArray[np.uint8], xs: npt.ArrayLike, ys: npt.ArrayLike, window: int = 24
) -> npt.NDArray[np.uint8]:
    """Extract windows from an image, each with a margin of one pixel.

    The window *at* pixel (x, y) has this pixel at position (window // 2, window // 2). For a window
    with a side of 24 pixels, this position is (12, 12), the upper left pixel of the lower right
    quarter. In the patch, which includes the margin, it is (13, 13). A keypoint belongs to the
    window at the `nearest_pixel` of its coordinates on the pyramid level. Windows may extend beyond
    the image or lie outside it. Border pixels are repeated.

    Parameters
    ----------
    image : ndarray of shape (H, W, 3), uint8
    xs, ys : array_like of shape (n,), int
        Pixels of the windows.
    window : int, default 24
        Side of the windows in pixels.

    Returns
    -------
    ndarray of shape (n, window + 2, window + 2, 3), uint8

    Raises
    ------
    ValueError
        If the image is invalid, or a coordinate is not an integer.
    """
    if image.dtype != np.uint8 or image.ndim != 3 or image.shape[2] != 3:
        raise ValueError(
            f"image has shape {image.shape} and dtype {image.dtype}; "
            "expected uint8 of shape (H, W, 3)"
        )
    columns, rows = np.atleast_1d(np.asarray(xs)), np.atleast_1d(np.asarray(ys))
    if columns.ndim != 1 or columns.shape != rows.shape:
        raise ValueError(
            f"xs and ys have shapes {columns.shape} and {rows.shape}; "
            "expected one-dimensional arrays of equal length"
        )
    for name, values in (("xs", columns), ("ys", rows)):
        if values.size and not np.issubdtype(values.dtype, np.integer):
            raise ValueError(
                f"{name} has dtype {values.dtype}; expected integers (see nearest_pixel)"
            )
    reach = np.arange(-(window // 2) - 1, window - window // 2 + 1)
    height, width = image.shape[:2]
    x = np.clip(columns.astype(np.int64)[:, None] + reach, 0, width - 1)
    y = np.clip(rows.astype(np.int64)[:, None] + reach, 0, height - 1)
    return image[y[:, :, None], x[:, None, :]]
