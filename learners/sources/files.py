"""Matrices in files of all supported formats, including Zarr arrays and HDF5 data sets."""

import os
from collections.abc import Callable, Iterable
from copy import copy
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np

from .batches import BatchSource
from .matrix import PIECE_BYTES, Source, float_dtype
from .parquet import ParquetPart, ParquetSource, damage_named, open_parquet, without_package
from .raw import RawSource, as_requested, mapped
from .sparse_files import SparseSource


class ChunkedSource(Source):
    """Zarr array or HDF5 data set, read in whole chunks or, if it has no chunks, in row ranges.

    Parameters
    ----------
    array : zarr.Array or h5py.Dataset
        Two-dimensional array.
    """

    def __init__(self, array: Any) -> None:
        self.array, self.shape = array, tuple(array.shape)
        self.name = str(
            array.file.filename
            if hasattr(array, "file")
            else getattr(array, "store_path", "a Zarr array")
        )
        self.stored, self.dtype = np.dtype(array.dtype), float_dtype(array.dtype)
        m = self.shape[1]
        chunks = array.chunks or (max(1, PIECE_BYTES // (m * self.stored.itemsize)), m)
        self.row_step, self.column_step = (min(c, n) for c, n in zip(chunks, self.shape))
        if hasattr(array, "file") and array.file.driver == "sec2":  # HDF5 in a regular file
            as_requested(array.file.id.get_vfd_handle())

    def read(self, rows: slice, columns: np.ndarray, out: np.ndarray) -> None:
        unit = self.column_step
        touched = np.unique(columns // unit)
        most = max(1, PIECE_BYTES // (self.row_step * unit * self.stored.itemsize))
        # Adjacent chunks, a few at a time
        breaks = np.flatnonzero((np.diff(touched) > 1) | (np.arange(1, len(touched)) % most == 0))
        runs = np.split(touched, breaks + 1)
        for start in range(rows.start, rows.stop, self.row_step):
            stop = min(rows.stop, start + self.row_step)
            target = out[start - rows.start : stop - rows.start]
            for run in runs:
                low, high = int(run[0]) * unit, min((int(run[-1]) + 1) * unit, self.shape[1])
                a, b = np.searchsorted(columns, [low, high])
                with damage_named(self.name):
                    target[:, a:b] = np.asarray(self.array[start:stop, low:high])[
                        :, columns[a:b] - low
                    ]


def on_disk(
    data: Any = None,
    *,
    batches: Callable[[], Iterable[Any]] | None = None,
    name: str | None = None,
    columns: list[str] | None = None,
    target: str | None = None,
    weight: str | None = None,
    filters: list[Any] | None = None,
    memory_limit: int | str | None = None,
    subsample: float = 1.0,
) -> Source:
    """Open a matrix in a file for ``fit`` and ``predict``, which read it in blocks.

    Parameters
    ----------
    data : path, numpy.memmap, h5py.Dataset, zarr.Array, pyarrow.parquet.ParquetFile or Source
        File or open array. Files must have the extension ``.npy``, ``.h5``, ``.hdf5``, ``.zarr`` or
        ``.parquet``. A folder of ``.parquet`` files, including those in subfolders, is read as one
        table, in the order of the file names. A folder written by :func:`write_csr` is also
        accepted. Parquet files may be given by URL, such as ``s3://bucket/big``.
    batches : function or None, default None
        Function to use instead of ``data``. It returns an iterable of batches (X, y) or (X, y,
        weight), where X is an array or a data frame. It is called for each pass over the data and
        must return the same batches every time.
    name : str or None, default None
        Name of the array in an HDF5 file or a Zarr group. It may be omitted if there is only one
        array.
    columns : list of str or None, default None
        Columns of a Parquet table. By default, these are all stored columns except the target and
        the weight. Folder names such as ``year=2024`` define additional columns that can be
        requested.
    target, weight : str or None, default None
        Columns of a Parquet table that are read into memory and become the attributes ``target``
        and ``weight``, for ``fit(source, source.target, sample_weight=source.weight)``. A source of
        batches always has these attributes.
    filters : list or None, default None
        pyarrow filters that select rows of a Parquet table, such as ``[("year", ">=", 2024), ("x",
        "<", 5)]``. Files and row groups without matching rows are not read.
    memory_limit : int, str or None, default None
        Memory that a fit may use, in bytes or as text such as "2GB"; None means 2 GiB. During
        feature selection, the columns that have not been dropped are loaded into memory once they
        fit into half of the limit. The result does not depend on the limit, up to rounding.
    subsample : float, default 1.0
        Fraction of the rows, in (0, 1], that each gradient step reads until the columns that have
        not been dropped fit into memory. Random blocks of rows are drawn for each step with the
        estimator's ``random_state``. With a value below 1, the rows must not be sorted by class or
        by any other value.

    Returns
    -------
    Source
        Matrix of shape (n_samples, n_features). ``source[rows]`` is a Source with the given rows,
        and ``source[rows, columns]`` is an array of the given entries.

    Raises
    ------
    ValueError
        If a file is damaged or of an unknown type, an array is not two-dimensional, a column is not
        numeric, or a limit is out of range.
    FileNotFoundError
        If the file does not exist.
    ModuleNotFoundError
        If the package that reads this file format is not installed.

    Examples
    --------
    >>> import numpy as np, os, tempfile
    >>> from annealed.learners import FSAClassifier, on_disk
    >>> X = np.random.default_rng(0).standard_normal((1000, 50)).astype(np.float32)
    >>> path = os.path.join(tempfile.mkdtemp(), "X.npy")
    >>> np.save(path, X)
    >>> model = FSAClassifier(2).fit(on_disk(path, memory_limit="64KB"), X[:, 3] > X[:, 7])
    >>> model.get_support(indices=True)
    array([3, 7])
    >>> def batches():
    ...     for start in range(0, 1000, 300):
    ...         rows = X[start : start + 300]
    ...         yield rows, rows[:, 5] > rows[:, 9]
    >>> source = on_disk(batches=batches, memory_limit="64KB")
    >>> FSAClassifier(2).fit(source, source.target).get_support(indices=True)
    array([5, 9])
    """
    if batches is not None:
        if data is not None or name or columns is not None or target or weight or filters:
            raise ValueError(
                "batches cannot be combined with data, name, columns, target, weight or filters; "
                "pass batches alone"
            )
        return BatchSource(batches).set_limits(memory_limit, subsample)
    if isinstance(data, Source):
        if memory_limit is None and subsample == 1.0:
            return data
        source = copy(data)
    elif isinstance(data, (str, os.PathLike)):
        source = _of_path(
            str(data) if "://" in str(data) else Path(data), name, filters, columns, target, weight
        )
    else:
        source = _of_array(data, filters, columns, target, weight)
    if filters is not None:
        source = source.matching(filters)  # type: ignore[attr-defined]
    return source.set_limits(memory_limit, subsample)


def _of_path(path: Path | str, name: str | None, filters: Any, *columns: Any) -> Source:
    if isinstance(path, Path) and not path.exists():
        raise FileNotFoundError(f"{path} does not exist")
    try:
        source = _of_array(_open(path, name, filters), filters, *columns)
    except ModuleNotFoundError:
        raise
    except Exception as error:  # libraries raise different exceptions for damaged files
        reason = " ".join(str(error).split())
        raise ValueError(reason if reason.startswith(str(path)) else f"{path}: {reason}") from None
    if isinstance(source, ChunkedSource):
        source.name = str(path)
    source._reopen = partial(_of_path, anywhere(path), name, filters, *columns)
    return source


def anywhere(path: Path | str) -> Path | str:
    """Return an absolute path or an unchanged URL, which any process can open."""
    return path if isinstance(path, str) else path.absolute()


def _of_array(
    data: Any, filters: Any, columns: list[str] | None, target: str | None, weight: str | None
) -> Source:
    """Return the source of an open array or table."""
    module = type(data).__module__.split(".")[0]
    if module == "pyarrow":
        data = (ParquetPart(data),)
    if isinstance(data, tuple):
        return ParquetSource(data, columns, target, weight)
    if not isinstance(data, np.memmap | SparseSource) and module not in ("h5py", "zarr"):
        kind = type(data).__name__
        raise ValueError(
            f"data is a {kind}; expected a path, numpy.memmap, h5py.Dataset, zarr.Array or "
            "ParquetFile"
        )
    for option, given in (
        ("columns", columns),
        ("target", target),
        ("weight", weight),
        ("filters", filters),
    ):
        if given is not None:
            raise ValueError(f"{option}={given!r} requires named columns, as in a Parquet table")
    if data.ndim != 2 or 0 in data.shape:
        raise ValueError(f"the array has shape {data.shape}; expected two dimensions")
    if isinstance(data, SparseSource):
        return data
    if isinstance(data, np.memmap):
        return mapped(data)
    if module == "h5py" and data.chunks is None and data.id.get_offset() is not None:
        size = data.dtype.itemsize
        return RawSource(
            data.file.filename,
            data.id.get_offset(),
            data.shape,
            data.dtype,
            (data.shape[1] * size, size),
        )
    return ChunkedSource(data)


def _open(path: Path | str, name: str | None, filters: Any) -> Any:
    if isinstance(path, str):
        return open_parquet(path, filters)
    kind = path.suffix.lower()
    if name is not None and kind in (".npy", ".parquet"):
        raise ValueError(
            f"name={name!r} is not available for a {kind} file; only HDF5 files and Zarr groups "
            "contain named arrays"
        )
    if (path / "index.npz").exists():
        return SparseSource(path)
    if kind == ".parquet" or (path.is_dir() and kind != ".zarr" and any(path.rglob("*.parquet"))):
        return open_parquet(path, filters)
    if kind == ".npy":
        with path.open("rb") as file:
            if file.read(6) != b"\x93NUMPY":
                raise ValueError(
                    "the file was not written by numpy.save; expected an array in the .npy format"
                )
        return np.load(path, mmap_mode="r")
    try:
        if kind in (".h5", ".hdf5"):
            import h5py

            return _only(h5py.File(path, "r"), name)
        if kind == ".zarr":
            import zarr

            return _only(zarr.open(str(path), mode="r"), name)
    except ModuleNotFoundError as error:
        raise without_package(error, path) from None
    raise ValueError(
        f"unknown file type {kind!r}; "
        "expected .npy, .h5, .hdf5, .zarr, .parquet or a folder of .parquet files"
    )


def _only(group: Any, name: str | None) -> Any:
    """Return the array of the given name, or the only array at the top level."""
    if hasattr(group, "chunks"):
        return group
    names = [key for key in group if hasattr(group[key], "chunks")]
    if name is None and len(names) == 1:
        name = names[0]
    if name is None or name not in group or not hasattr(group[name], "chunks"):
        expected = (
            " or ".join(names)
            or "the path of an array inside the file, which has no array at the top level"
        )
        raise ValueError(f"name={name!r} is not an array of the file; expected {expected}")
    return group[name]
