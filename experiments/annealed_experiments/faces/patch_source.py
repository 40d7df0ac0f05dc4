"""Features of windows that stay on disk, as a matrix for the block reader of the learners and for
Dask."""

import os
from collections.abc import Sequence
from typing import Any

import numpy as np
import numpy.typing as npt
from annealed.learners.sources.matrix import Source
from annealed.vision.images import read_image
from annealed.vision.windows.feature_pool import FeaturePool
from annealed.vision.windows.patches import extract_patches

_ROWS = 1024  # number of windows whose features are computed together, 2 MB of pixels (heuristic)


class ImageWindows:
    """Windows of images on disk, extracted on access.

    Parameters
    ----------
    paths : sequence of path
        Image files.
    image : array_like of shape (n,), int
        Index in ``paths`` of the image of each window. Consecutive windows of one image are
        extracted together.
    x, y : array_like of shape (n,), int
        Pixels at which the windows lie; see `annealed.vision.windows.patches.extract_patches`.
    window : int, default 24

    Attributes
    ----------
    shape : tuple of int
        Shape of the array of windows: (n, window + 2, window + 2, 3).

    Raises
    ------
    ValueError
        If the lists have different lengths, a value is not an integer, or an image is not in
        ``paths``.
    """

    def __init__(
        self,
        paths: Sequence[str | os.PathLike[str]],
        image: npt.ArrayLike,
        x: npt.ArrayLike,
        y: npt.ArrayLike,
        window: int = 24,
    ) -> None:
        self.paths, self.window = [os.fspath(path) for path in paths], window
        self.image, self.x, self.y = np.asarray(image), np.asarray(x), np.asarray(y)
        if not (self.image.ndim == 1 and self.image.shape == self.x.shape == self.y.shape):
            raise ValueError(
                f"image, x and y have shapes {self.image.shape}, {self.x.shape} and "
                f"{self.y.shape}; expected one-dimensional arrays of equal length"
            )
        if self.image.size and any(
            places.dtype.kind not in "iu" for places in (self.image, self.x, self.y)
        ):
            raise ValueError(
                f"image, x and y have dtypes {self.image.dtype}, {self.x.dtype} and "
                f"{self.y.dtype}; expected integers"
            )
        if not np.isin(self.image, np.arange(len(self.paths))).all():
            raise ValueError(
                f"image contains values from {self.image.min()} to {self.image.max()}; "
                f"expected indices of the {len(self.paths)} paths"
            )
        self.shape = (len(self.image), window + 2, window + 2, 3)

    def __getitem__(self, rows: slice) -> npt.NDArray[np.uint8]:
        image, x, y = self.image[rows], self.x[rows], self.y[rows]
        out = np.empty((len(image), *self.shape[1:]), np.uint8)
        for i in np.unique(image):
            here = image == i
            out[here] = extract_patches(read_image(self.paths[i]), x[here], y[here], self.window)
        return out


class PatchSource(Source):
    """Matrix of the values of pool features in windows on disk, computed block by block.

    The matrix has one float32 row per window and one column per feature. The estimators read it in
    blocks within 2 GiB of memory, or within the limit of ``annealed.learners.on_disk(source,
    memory_limit=...)``: the features of the next block are computed while the current one is in
    use, and dropped features are not computed again.
    ``dask.array.from_array(source, chunks=(4096, -1))`` turns it into a Dask array; the Dask
    workers then read the windows and compute the features.

    Parameters
    ----------
    patches : path, `ImageWindows` or array
        Windows with a margin of one pixel, a uint8 array of shape (n, window + 2, window + 2, 3),
        in a ``.npy`` file or in any object of this shape whose row slices are such arrays, for
        example ``h5py.Dataset`` or ``zarr.Array``.
    pool : FeaturePool, optional
    features : array_like of shape (m, 8), int, optional
        All features of the pool by default.

    Raises
    ------
    ValueError
        If the windows have the wrong shape or type, a file is damaged, or a feature does not fit
        into the window.
    FileNotFoundError

    Examples
    --------
    >>> import os, tempfile
    >>> import numpy as np
    >>> from annealed.learners import FSAClassifier, on_disk
    >>> from annealed.vision import FeaturePool
    >>> from annealed_experiments.faces.patch_source import PatchSource
    >>> patches = np.random.default_rng(0).integers(0, 256, (300, 26, 26, 3), dtype=np.uint8)
    >>> path = os.path.join(tempfile.mkdtemp(), "patches.npy")
    >>> np.save(path, patches)
    >>> source = PatchSource(path, features=FeaturePool().features[:300])
    >>> source.shape
    (300, 300)
    >>> y = source[:, 70] > np.median(source[:, 70])
    >>> model = FSAClassifier(2, response="piecewise").fit(on_disk(source, memory_limit="256KB"), y)
    >>> bool(model.support_[70])
    True
    """

    stored = np.dtype(np.uint8)
    dtype = np.dtype(np.float32)

    def __init__(
        self, patches: Any, pool: FeaturePool | None = None, features: npt.ArrayLike | None = None
    ) -> None:
        self.pool = FeaturePool() if pool is None else pool
        self.features = self.pool.check(self.pool.features if features is None else features)
        self._patches = os.fspath(patches) if isinstance(patches, (str, os.PathLike)) else patches
        shape = self._windows().shape
        if len(shape) != 4:
            raise ValueError(
                f"windows have shape {tuple(shape)}; "
                f"expected (n, {self.pool.window + 2}, {self.pool.window + 2}, 3)"
            )
        self.pool.check_patches(self._windows()[:1])
        self.shape = (shape[0], len(self.features))

    def _windows(self) -> Any:
        if not isinstance(self._patches, str):
            return self._patches
        try:
            return np.load(self._patches, mmap_mode="r")
        except (ValueError, EOFError):
            raise ValueError(
                f"{self._patches}: the file is not a complete .npy file; "
                "expected windows written by numpy.save"
            ) from None

    def read(
        self, rows: slice, columns: npt.NDArray[np.int64], out: npt.NDArray[np.float32]
    ) -> None:
        """Fill ``out``, of shape (rows, columns), with the values of the features at the positions
        ``columns``."""
        windows, features = self._windows(), self.features[columns]
        for first in range(rows.start, rows.stop, _ROWS):
            last = min(rows.stop, first + _ROWS)
            out[first - rows.start : last - rows.start] = self.pool.evaluate(
                np.asarray(windows[first:last]), features
            )
