"""Matrices in files: raw and NumPy files, Zarr, HDF5, Parquet."""

from __future__ import annotations

import mmap
import os
from collections.abc import Callable, Iterable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager, suppress
from copy import copy
from functools import partial
from pathlib import Path
from threading import Lock
from typing import Any

import numpy as np

from .batches import BatchSource
from .matrix import PIECE_BYTES, RowSubset, Source, float_dtype
from .sparse_files import SparseSource

# Threads that read columns of a file at the same time: a disk serves many small reads together
READERS = 8
_POSITION = Lock()


class RawSource(Source):
    """A row- or column-major array in a file, read with plain file reads: nothing of it is mapped.

    Parameters
    ----------
    path : path
        The file.
    offset : int
        Where the first value lies, in bytes.
    shape : (int, int)
        Rows and columns.
    dtype : dtype
        As stored.
    strides : (int, int)
        Bytes from row to row and from column to column; one of them is the size of a value.
    """

    def __init__(
        self, path: str | os.PathLike[str], offset: int, shape: tuple[int, int], dtype: Any, strides: tuple[int, int]
    ) -> None:
        self.path, self.offset, self.shape, self.strides = os.fspath(path), int(offset), shape, strides
        self.stored, self.dtype = np.dtype(dtype), float_dtype(dtype)
        size = self.stored.itemsize
        if strides[1] == size or shape[1] == 1:
            self.order = "C"
        elif strides[0] == size or shape[0] == 1:
            self.order = "F"
        else:
            raise ValueError(f"{path}: strides {strides} of a view; expected whole rows or whole columns of neighbouring values")
        end = self.offset + sum((n - 1) * s for n, s in zip(shape, strides)) + size
        if os.path.getsize(self.path) < end:
            raise ValueError(f"{path}: {os.path.getsize(self.path)} bytes; {shape} {self.stored} need {end}")

    def read(self, rows: slice, columns: np.ndarray, out: np.ndarray) -> None:
        file = os.open(self.path, os.O_RDONLY | getattr(os, "O_BINARY", 0))
        _as_asked(file)
        try:
            if self.order == "C":
                self._read_rows(file, rows, columns, out)
            else:
                self._read_columns(file, rows, columns, out)
        finally:
            os.close(file)

    def cost(self, columns: np.ndarray) -> int:
        width = len(columns) if self.order == "F" else int(columns[-1] - columns[0]) + 1
        return self.shape[0] * width * self.stored.itemsize

    def _read_rows(self, file: Any, rows: slice, columns: np.ndarray, out: np.ndarray) -> None:
        """Stretches of whole rows, from the first to the last column asked for."""
        size, m = self.stored.itemsize, len(columns)
        first, width = int(columns[0]), int(columns[-1] - columns[0]) + 1
        dense = width == m
        direct = dense and self.strides[0] == width * size and self.stored == out.dtype and out.flags.c_contiguous
        step = max(1, PIECE_BYTES // self.strides[0])
        piece = np.empty(0 if direct else step * self.strides[0], np.uint8)
        for start in range(rows.start, rows.stop, step):
            stop = min(rows.stop, start + step)
            target = out[start - rows.start : stop - rows.start]
            at = self.offset + start * self.strides[0] + first * size
            if direct:
                _fill(file, target, at, self.path)
                continue
            length = (stop - start - 1) * self.strides[0] + width * size
            _fill(file, piece[:length], at, self.path)
            block = np.ndarray((stop - start, width), self.stored, piece, strides=(self.strides[0], size))
            target[:] = block if dense else block[:, columns - first]

    def _read_columns(self, file: Any, rows: slice, columns: np.ndarray, out: np.ndarray) -> None:
        size, n = self.stored.itemsize, rows.stop - rows.start
        direct = self.stored == out.dtype and out.flags.f_contiguous
        at = self.offset + rows.start * size + np.asarray(columns, dtype=np.int64) * self.strides[1]
        turned = out.T

        def read_columns(mine: np.ndarray) -> None:
            piece = np.empty(0 if direct else n, self.stored)
            for j in mine:
                _fill(file, turned[j] if direct else piece, int(at[j]), self.path)
                if not direct:
                    turned[j] = piece

        with ThreadPoolExecutor(READERS) as readers:
            list(readers.map(read_columns, np.array_split(np.arange(len(columns)), min(READERS, len(columns)))))


def _as_asked(file: int) -> None:
    """Let the system read what is asked for and no more: blocks are read ahead here, and the
    remaining columns lie apart."""
    if hasattr(os, "posix_fadvise"):
        os.posix_fadvise(file, 0, 0, os.POSIX_FADV_RANDOM)


def _fill(file: int, out: np.ndarray, at: int, path: str) -> None:
    """Read exactly ``out.nbytes`` bytes from position ``at``."""
    view = memoryview(out.reshape(-1).view(np.uint8).data)
    while len(view):
        got = os.preadv(file, [view], at) if hasattr(os, "preadv") else _in_turn(file, view, at)
        if not got:
            raise ValueError(f"{path} ends before its last value")
        view, at = view[got:], at + got


def _in_turn(file: int, view: memoryview, at: int) -> int:
    """What ``os.preadv`` does, where it is missing (Windows): threads share the position in the
    file, so one at a time."""
    with _POSITION:
        os.lseek(file, at, os.SEEK_SET)
        found = os.read(file, len(view))
    view[: len(found)] = found
    return len(found)


@contextmanager
def damage_named(name: str) -> Iterator[None]:
    """Errors of decoders, of any type and without the file's name, as a ValueError with it.

    Examples
    --------
    >>> with damage_named("a.parquet"):
    ...     raise OSError("unexpected end")
    Traceback (most recent call last):
    ValueError: a.parquet: damaged or unreadable (unexpected end)
    """
    try:
        yield
    except (RuntimeError, OSError, ValueError, KeyError) as error:
        raise ValueError(f"{name}: damaged or unreadable ({' '.join(str(error).split())[:200]})") from None


class ChunkedSource(Source):
    """A Zarr array or HDF5 data set: whole chunks are read.

    Parameters
    ----------
    array : zarr.Array or h5py.Dataset
        Of two dimensions, in chunks.
    """

    def __init__(self, array: Any) -> None:
        self.array, self.shape = array, tuple(array.shape)
        self.name = str(array.file.filename if hasattr(array, "file") else getattr(array, "store_path", "a Zarr array"))
        self.stored, self.dtype = np.dtype(array.dtype), float_dtype(array.dtype)
        self.row_step, self.column_step = (min(c, n) for c, n in zip(array.chunks, self.shape))
        if hasattr(array, "file") and array.file.driver == "sec2":  # HDF5 in an ordinary file
            _as_asked(array.file.id.get_vfd_handle())

    def read(self, rows: slice, columns: np.ndarray, out: np.ndarray) -> None:
        unit = self.column_step
        touched = np.unique(columns // unit)
        for start in range(rows.start, rows.stop, self.row_step):
            stop = min(rows.stop, start + self.row_step)
            target = out[start - rows.start : stop - rows.start]
            most = max(1, PIECE_BYTES // (self.row_step * unit * self.stored.itemsize))
            first = 0
            while first < len(touched):  # runs of neighbouring chunks
                last = first
                while last + 1 < len(touched) and touched[last + 1] == touched[last] + 1 and last - first < most - 1:
                    last += 1
                low, high = int(touched[first]) * unit, min((int(touched[last]) + 1) * unit, self.shape[1])
                a, b = np.searchsorted(columns, [low, high])
                with damage_named(self.name):
                    target[:, a:b] = np.asarray(self.array[start:stop, low:high])[:, columns[a:b] - low]
                first = last + 1


class ParquetPart:
    """A file of a Parquet table; what the names of its folders say, as in ``year=2024``, is columns
    too.

    Parameters
    ----------
    file : pyarrow.parquet.ParquetFile
    name : str, default "ParquetFile"
        For errors.
    groups : sequence of int or None, default None
        Numbers of the groups of rows; all by default.
    keys : dict of str to pyarrow.Scalar or None, default None
        Values of the columns that the folders name. What the file itself holds goes before them.
    """

    def __init__(self, file: Any, name: str = "ParquetFile", groups: Sequence[int] | None = None, keys: Any = None) -> None:
        self.file, self.name = file, name
        self.groups = range(file.num_row_groups) if groups is None else groups
        self.kinds = dict(zip(file.schema_arrow.names, file.schema_arrow.types))
        self.keys = {key: value for key, value in (keys or {}).items() if key not in self.kinds}
        self.kinds |= {key: value.type for key, value in self.keys.items()}

    def kind(self, name: str) -> Any:
        """A column's type."""
        if name not in self.kinds:
            raise ValueError(f"{self.name}: the table has no column {name!r}; it has {', '.join([*self.kinds][:20])}")
        return self.kinds[name]

    def read(self, group: int, names: Sequence[str]) -> list[Any]:
        """Columns of a group of rows."""
        import pyarrow as pa

        for name in names:
            self.kind(name)
        with damage_named(self.name):
            stored = self.file.read_row_group(group, columns=[name for name in names if name not in self.keys])
        keys = {key: pa.chunked_array([pa.repeat(self.keys[key], len(stored))]) for key in self.keys if key in names}
        return [keys[name] if name in keys else stored.column(name) for name in names]


class ParquetSource(Source):
    """Columns of a Parquet table: nothing but the columns asked for is read, in groups of rows.
    Missing values are NaN.

    Parameters
    ----------
    parts : sequence of ParquetPart
        Of numbers, in the columns that are read.
    columns : list of str or None, default None
        Names of columns; all that are stored by default.
    target, weight : str or None, default None
        Columns that are read into memory, as the attributes of these names, and not among those.
    """

    order = "F"
    names: list[str]

    def __init__(self, parts: Sequence[ParquetPart], columns: Any = None, target: str | None = None, weight: str | None = None):
        every = parts[0].file.schema_arrow.names
        own = [name for name in (target, weight) if name is not None]
        self.names = [name for name in every if name not in own] if columns is None else list(columns)
        if both := set(own) & set(self.names):
            raise ValueError(f"columns={columns!r} hold {both.pop()!r}; expected neither the target nor the weight")
        if not self.names:
            raise ValueError(f"columns={columns!r} of a table of {len(every)}; expected one at least")
        self._groups = [(part, g) for part in parts for g in part.groups]
        self.target, self.weight = (None if name is None else self._whole(name) for name in (target, weight))
        self.dtype = self.stored = np.result_type(*(kind for part in parts for kind in self._kinds(part)))
        rows = [part.file.metadata.row_group(g).num_rows for part, g in self._groups]
        self._edges = np.concatenate([[0], np.cumsum(rows)]).astype(int)
        self.shape = int(self._edges[-1]), len(self.names)
        self.row_step = max(rows, default=1)

    def matching(self, filters: Any) -> Source:
        """The rows for which pyarrow's filters hold."""
        import pyarrow as pa
        from pyarrow.parquet import filters_to_expression

        expression, found = filters_to_expression(filters), [np.empty(0, int)]
        names = sorted({name for clause in ([filters] if isinstance(filters[0][0], str) else filters) for name, *_ in clause})
        for start, end, (part, g) in zip(self._edges, self._edges[1:], self._groups):
            table = pa.table([*part.read(g, names), np.arange(start, end)], [*names, "number of the row"])
            found.append(table.filter(expression).column(len(names)).to_numpy())
        rows = np.concatenate(found)
        if not len(rows):
            raise ValueError(f"filters={filters!r} leave no row of the table")
        return self if len(rows) == self.shape[0] else RowSubset(self, rows)

    def _whole(self, name: str) -> np.ndarray:
        """A column of any kind."""
        return np.concatenate([part.read(g, [name])[0].to_pandas() for part, g in self._groups])

    def _kinds(self, part: ParquetPart) -> Iterator[np.dtype]:
        """What the numbers of each column are read as."""
        for name in self.names:
            kind = part.kind(name)
            try:
                yield float_dtype(kind.to_pandas_dtype())
            except (ValueError, TypeError, NotImplementedError):
                raise ValueError(f"{part.name}: column {name!r} holds {kind}; expected numbers") from None

    def cuts(self, height: int) -> list[slice]:
        found, start = [], 0
        for stop, after in zip(self._edges[1:], [*self._edges[2:], np.inf]):
            if after - start > height:
                found.append(slice(start, int(stop)))
                start = int(stop)
        return found

    def read(self, rows: slice, columns: np.ndarray, out: np.ndarray) -> None:
        for first_row, end, (part, g) in zip(self._edges, self._edges[1:], self._groups):
            start, stop = max(rows.start, first_row), min(rows.stop, end)
            if start >= stop:
                continue
            # Few at a time: their values are in memory twice
            for first in range(0, len(columns), 256):
                for j, cells in enumerate(part.read(g, [self.names[c] for c in columns[first : first + 256]])):
                    values = cells.to_numpy()
                    out[start - rows.start : stop - rows.start, first + j] = values[start - first_row : stop - first_row]

    def cost(self, columns: np.ndarray) -> int:
        """Bytes of these columns as they are stored, compressed."""
        total = 0
        for part in dict.fromkeys(part for part, _ in self._groups):
            meta = part.file.metadata
            at = {meta.schema.column(i).path: i for i in range(meta.num_columns)}
            places = [at[self.names[j]] for j in columns if self.names[j] not in part.keys]
            total += sum(meta.row_group(g).column(place).total_compressed_size for g in part.groups for place in places)
        return total


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
    """A matrix in a file, for ``fit`` and ``predict``: read in blocks, never whole.

    Parameters
    ----------
    data : path, numpy.memmap, h5py.Dataset, zarr.Array, pyarrow.parquet.ParquetFile or Source
        Paths end in ``.npy``, ``.h5``, ``.hdf5``, ``.zarr`` or ``.parquet``, or are folders of
        ``.parquet`` files, also nested: one table, in the order of the names; or a folder that
        :func:`write_csr` wrote. Parquet also by URL, such as ``s3://bucket/big``.
    batches : function or None, default None
        Instead of ``data``: returns an iterable of (X, y) or (X, y, weight), arrays or data frames
        of some rows; called for each pass over the data, and always of the same batches.
    name : str or None, default None
        The array's name in an HDF5 file or a Zarr group; not needed where there is only one.
    columns : list of str or None, default None
        Columns of a Parquet table; all that are stored by default, but for the next two. The names
        of folders such as ``year=2024`` are columns that can be asked for.
    target, weight : str or None, default None
        Columns of a Parquet table that become the attributes ``target`` and ``weight``, in memory:
        ``fit(source, source.target, sample_weight=source.weight)``. Batches have them anyway.
    filters : list or None, default None
        Rows of a Parquet table, as pyarrow's filters: ``[("year", ">=", 2024), ("x", "<", 5)]``.
        Files and groups of rows that hold none are not read.
    memory_limit : int, str or None, default None
        Bytes of memory that a fit may use, such as 2000000000 or "2GB"; 2 GiB where None. The
        remaining columns stay in memory once they fit into half of it. The result does not depend
        on it, to rounding.
    subsample : float, default 1.0
        Fraction of the rows, in (0, 1], that a step reads while the remaining columns do not fit
        into memory: some blocks of rows, drawn anew each time by the estimator's ``random_state``.
        The rows must not be sorted by what they are.

    Returns
    -------
    Source
        A matrix of shape (n_samples, n_features); ``source[rows]`` are some of its rows,
        ``source[rows, columns]`` the numbers.

    Raises
    ------
    ValueError
        For files of another kind or damaged ones, arrays that are not 2-D, columns that are not
        numbers and limits out of range.
    FileNotFoundError
    ModuleNotFoundError
        Where the package that reads such files is not installed.

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
            raise ValueError("batches stand for themselves; expected no data, name, columns, target, weight and filters with them")
        return BatchSource(batches).set_limits(memory_limit, subsample)
    if isinstance(data, Source):
        if memory_limit is None and subsample == 1.0:
            return data
        source = copy(data)
    elif isinstance(data, (str, os.PathLike)):
        source = _of_path(str(data) if "://" in str(data) else Path(data), name, filters, columns, target, weight)
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
    except Exception as error:  # each library has its own exceptions for damaged files
        reason = " ".join(str(error).split())
        raise ValueError(reason if reason.startswith(str(path)) else f"{path}: {reason}") from None
    if isinstance(source, ChunkedSource):
        source.name = str(path)
    source._reopen = partial(_of_path, anywhere(path), name, filters, *columns)
    return source


def anywhere(path: Path | str) -> Path | str:
    """What names the same place in another process."""
    return path if isinstance(path, str) else path.absolute()


def _of_array(data: Any, filters: Any, columns: list[str] | None, target: str | None, weight: str | None) -> Source:
    """The source of an array or a table that is open."""
    module = type(data).__module__.split(".")[0]
    if module == "pyarrow":
        data = (ParquetPart(data),)
    if isinstance(data, tuple):
        return ParquetSource(data, columns, target, weight)
    if not isinstance(data, np.memmap | SparseSource) and module not in ("h5py", "zarr"):
        kind = type(data).__name__
        raise ValueError(f"{kind} is not a file; expected a path, numpy.memmap, h5py.Dataset, zarr.Array or ParquetFile")
    for option, given in (("columns", columns), ("target", target), ("weight", weight), ("filters", filters)):
        if given is not None:
            raise ValueError(f"{option}={given!r} of an array; expected a Parquet table, whose columns have names")
    if data.ndim != 2 or 0 in data.shape:
        raise ValueError(f"an array of shape {data.shape}; expected rows and columns")
    if isinstance(data, SparseSource):
        return data
    if isinstance(data, np.memmap):
        return _mapped(data)
    if module == "h5py" and data.chunks is None and data.id.get_offset() is not None:
        size = data.dtype.itemsize
        return RawSource(data.file.filename, data.id.get_offset(), data.shape, data.dtype, (data.shape[1] * size, size))
    return ChunkedSource(data if data.chunks is not None else _Whole(data))


class _Whole:
    """An array without chunks, in stretches of rows."""

    def __init__(self, array: Any) -> None:
        self.shape, self.dtype, self._array = array.shape, array.dtype, array
        self.chunks = (max(1, PIECE_BYTES // (array.shape[1] * array.dtype.itemsize)), array.shape[1])

    def __getitem__(self, where: Any) -> Any:
        return self._array[where]


def _open(path: Path | str, name: str | None, filters: Any) -> Any:
    if isinstance(path, str):
        return open_parquet(path, filters)
    kind = path.suffix.lower()
    if name is not None and kind in (".npy", ".parquet"):
        raise ValueError(f"name={name!r} of a {kind} file; expected an HDF5 file or a Zarr group, whose arrays have names")
    if (path / "index.npz").exists():
        return SparseSource(path)
    if kind == ".parquet" or (path.is_dir() and kind != ".zarr" and any(path.rglob("*.parquet"))):
        return open_parquet(path, filters)
    if kind == ".npy":
        with path.open("rb") as file:
            if file.read(6) != b"\x93NUMPY":
                raise ValueError("not what numpy.save writes; expected an array in NumPy's format")
        return np.load(path, mmap_mode="r")
    try:
        if kind in (".h5", ".hdf5"):
            import h5py

            return _only(h5py.File(path, "r"), name)
        if kind == ".zarr":
            import zarr

            return _only(zarr.open(str(path), mode="r"), name)
    except ModuleNotFoundError as error:
        raise _without(error, path) from None
    raise ValueError(f"unknown kind of file {kind!r}; expected .npy, .h5, .hdf5, .zarr, .parquet or a folder of .parquet files")


def _without(error: ModuleNotFoundError, where: Path | str) -> ModuleNotFoundError:
    """The error of a missing package, which says how to install it."""
    extra = {"pyarrow": "parquet", "fsspec": "dask"}.get(str(error.name), "disk")
    return ModuleNotFoundError(
        f"{where}: reading it needs {error.name} (pip install '.[{extra}]' in the checkout of annealed)", name=error.name
    )


def open_parquet(where: str | Path, filters: Any = None) -> tuple[ParquetPart, ...]:
    """Open a Parquet file, or those of a folder, also nested: one table, in the order of the names.

    Parameters
    ----------
    where : Path, or str of a URL
    filters : list or None, default None
        Leave out groups of rows that have none for which pyarrow's filters hold.

    Returns
    -------
    tuple of ParquetPart

    Raises
    ------
    ValueError
        That names a file which is damaged; for a folder without any, and filters of other columns.
    ModuleNotFoundError
        Without pyarrow, or fsspec where a URL needs it.
    """
    try:
        from pyarrow import OSFile, dataset, fs, scalar, unify_schemas
        from pyarrow.parquet import ParquetFile, filters_to_expression

        with damage_named(str(where)):
            system, root = _file_system(where)
            place = system.get_file_info(root)
            folder = place.type == fs.FileType.Directory
            inside = system.get_file_info(fs.FileSelector(root, recursive=True)) if folder else [place]
            files = [file.path for file in inside if file.is_file and file.path.lower().endswith(".parquet")]
            options = dataset.FileSystemFactoryOptions(root, dataset.HivePartitioning.discover())
            made = dataset.FileSystemDatasetFactory(
                system, sorted(files, key=lambda name: name.split("/")), dataset.ParquetFileFormat(), options
            )
            # files may hold what their folders say, too, in wider numbers
            table = made.finish(unify_schemas(made.inspect_schemas(), promote_options="permissive"))
    except ModuleNotFoundError as error:
        raise _without(error, where) from None
    if not files:
        what = "does not exist; " if place.type == fs.FileType.NotFound else "a folder, " * folder
        raise ValueError(f"{where}: {what}expected a table in .parquet, or a folder of such files")
    said = [field for field, values in zip(table.partitioning.schema, table.partitioning.dictionaries) if values is not None]
    try:
        wanted = None if filters is None else filters_to_expression(filters)
        fragments = list(table.get_fragments(wanted))
    except Exception as error:
        reason, columns = str(error).split(" in ")[0], ", ".join(table.schema.names[:20])
        raise ValueError(f"filters={filters!r}: {reason}; expected such as [('year', '=', 2024)] of {columns}") from None
    if not fragments:
        raise ValueError(f"filters={filters!r} leave no row of the table")
    parts = []
    for fragment in fragments:
        name = f"{where}: {fragment.path[len(root) + 1 :]}" if len(fragment.path) > len(root) else str(where)
        with damage_named(name):
            found = dataset.get_partition_keys(fragment.partition_expression)
            keys = {field.name: scalar(found.get(field.name), field.type) for field in said}
            stream = OSFile(fragment.path) if isinstance(system, fs.LocalFileSystem) else fragment.open()
            with suppress(AttributeError, OSError):  # other systems and some releases before 24 have no descriptor
                _as_asked(stream.fileno())
            groups = None if wanted is None else [g.id for g in fragment.subset(wanted, schema=table.schema).row_groups]
            parts.append(ParquetPart(ParquetFile(stream, metadata=fragment.metadata), name, groups, keys))
    return tuple(parts)


def _file_system(where: str | Path) -> tuple[Any, str]:
    """Where a path or a URL leads, and the path there."""
    from pyarrow import fs

    if isinstance(where, Path):
        return fs.LocalFileSystem(), where.as_posix()
    try:
        system, root = fs.FileSystem.from_uri(where)
    except ValueError:  # a kind of URL that is left to fsspec
        from fsspec.core import url_to_fs

        other, root = url_to_fs(where)
        system = fs.PyFileSystem(fs.FSSpecHandler(other))
    return system, root.rstrip("/")


def _only(group: Any, name: str | None) -> Any:
    """The array of that name, or the only one at the top."""
    if hasattr(group, "chunks"):
        return group
    names = [key for key in group if hasattr(group[key], "chunks")]
    if name is None and len(names) == 1:
        name = names[0]
    if name is None or name not in group or not hasattr(group[name], "chunks"):
        expected = " or ".join(names) or "a path inside: none is at its top"
        raise ValueError(f"name={name!r} is not one of its arrays; expected {expected}")
    return group[name]


def _mapped(X: np.memmap) -> RawSource:
    """Where in its file a mapped array (or a view of one) lies."""
    base: Any = X
    while isinstance(base.base, np.ndarray):
        base = base.base
    if X.filename is None or base._mmap is None:
        raise ValueError("a memmap without a file; expected one that was opened from a path")
    start = np.frombuffer(base._mmap, np.uint8).__array_interface__["data"][0]
    page = base.offset - base.offset % mmap.ALLOCATIONGRANULARITY
    at = page + X.__array_interface__["data"][0] - start
    return RawSource(X.filename, at, (X.shape[0], X.shape[1]), X.dtype, (X.strides[0], X.strides[1]))
