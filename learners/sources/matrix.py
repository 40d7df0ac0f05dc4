"""Interface of out-of-core matrices, with base classes for files and torch tensors."""

from collections.abc import Callable
from typing import Any, Self

import numpy as np

from ..parameters import check_real
from ..types import Matrix

# Number of rows summed at once in the precision of the data; blocks consist of such chunks
CHUNK = 512
PIECE_BYTES = 8 << 20  # bytes read at once if unrequested data must be read, too
_UNITS = {
    "KB": 1e3,
    "MB": 1e6,
    "GB": 1e9,
    "TB": 1e12,
    "KIB": 2**10,
    "MIB": 2**20,
    "GIB": 2**30,
    "TIB": 2**40,
    "B": 1,
}


def parse_bytes(limit: int | str) -> int:
    """Convert a limit such as 2000000000, "2GB" or "512 MiB" to a number of bytes.

    Parameters
    ----------
    limit : int or str
        Number of bytes, or text with a unit: B, KB, MB, GB, TB, KiB, MiB, GiB or TiB.

    Returns
    -------
    int
        Number of bytes, at least 1.

    Raises
    ------
    ValueError
        If the limit is not valid, or below 1.

    Examples
    --------
    >>> parse_bytes("1.5 GB"), parse_bytes("64MiB"), parse_bytes(1000)
    (1500000000, 67108864, 1000)
    """
    try:
        if isinstance(limit, str):
            words = limit.strip().upper()
            unit = next(u for u in _UNITS if words.endswith(u))
            n_bytes = int(float(words[: -len(unit)]) * _UNITS[unit])
        else:
            n_bytes = int(limit)
    except (StopIteration, ValueError, TypeError, OverflowError):
        n_bytes = 0
    if n_bytes < 1:
        raise ValueError(
            f"memory_limit={limit!r} is not valid; expected a number of bytes such as 2000000000, "
            "or text such as '2GB'"
        )
    return n_bytes


def float_dtype(dtype: Any) -> np.dtype:
    """Return the type to which values are converted when they are read.

    Parameters
    ----------
    dtype : dtype
        Stored data type.

    Returns
    -------
    dtype
        float32 for floats of at most 32 bits, otherwise float64.

    Raises
    ------
    ValueError
        If the data are not numeric.
    """
    dtype = np.dtype(dtype)
    if dtype.kind not in "fiub":
        raise ValueError(f"the matrix has dtype {dtype}; expected numbers")
    return (
        np.dtype(np.float32) if dtype.kind == "f" and dtype.itemsize <= 4 else np.dtype(np.float64)
    )


class OutOfCoreMatrix:
    """Base class for matrices that are not arrays in memory.

    Attributes
    ----------
    shape : tuple of int
        Number of rows and number of columns.
    dtype : dtype
        Type to which values are converted when they are read: float32 or float64.
    names : list of str or None
        Column names; None if the data have no names.
    memory_limit : int or None
        Number of bytes that a fit may use; None means the default for this type of data.
    subsample : float
        Fraction of the rows that a step reads while the remaining columns do not fit into memory,
        in (0, 1].
    """

    shape: tuple[int, int]
    dtype: np.dtype
    names: list[str] | None = None
    memory_limit: int | None = None
    subsample: float = 1.0

    def set_limits(self, memory_limit: int | str | None, subsample: float) -> Self:
        """Set the limits on memory and rows that apply to a fit.

        Parameters
        ----------
        memory_limit : int, str or None
            Number of bytes, or text such as "2GB".
        subsample : float
            Fraction of the rows that a step reads, in (0, 1].

        Returns
        -------
        OutOfCoreMatrix
            The matrix itself.

        Raises
        ------
        ValueError
            If a value is out of range.
        """
        check_real("subsample", subsample, 0.0, 1.0, above=True)
        self.memory_limit = None if memory_limit is None else parse_bytes(memory_limit)
        self.subsample = float(subsample)
        return self

    def __copy__(self) -> Any:
        """Return a view of the matrix with independent limits."""
        new = type(self).__new__(type(self))
        new.__dict__.update(self.__dict__)
        return new

    def __getitem__(self, where: Any) -> None:
        raise TypeError(
            "data on a device cannot be split into folds; use arrays in memory, or criterion='ebic'"
        )

    def scores(self, function: Callable[..., Any], columns: np.ndarray, n_outputs: int) -> Any:
        """Apply a function that returns n_outputs values per row to the given columns."""
        raise NotImplementedError

    def chosen(self, columns: np.ndarray) -> Any:
        """Return all rows of the given columns without reading other columns."""
        raise NotImplementedError


class Source(OutOfCoreMatrix):
    """Matrix in a file.

    Attributes
    ----------
    stored : dtype
        Data type in the file.
    order : {"C", "F"}
        Memory layout of the file and of the rectangles that are read.
    row_step, column_step : int
        Number of rows and columns of the smallest rectangle that can be read.
    target, weight : ndarray of shape (n_samples,) or None
        Targets and weights in the file, which are read into memory for ``fit(source,
        source.target)``.
    """

    stored: np.dtype
    order: str = "C"
    row_step: int = 1
    column_step: int = 1
    ndim = 2
    target: np.ndarray | None = None
    weight: np.ndarray | None = None
    _reopen: "Callable[[], Source] | None" = None  # reopens the file in another process

    def __reduce_ex__(self, protocol: Any) -> Any:
        """Reduce the source, for pickling, to a call that reopens the file."""
        limits = {"memory_limit": self.memory_limit, "subsample": self.subsample}
        return (
            super().__reduce_ex__(protocol) if self._reopen is None else (self._reopen, (), limits)
        )

    def __len__(self) -> int:
        return self.shape[0]

    def __array__(self, *args: Any, **kwargs: Any) -> np.ndarray:
        raise TypeError(
            f"X is a file of {self.shape[0]} x {self.shape[1]} values, which this method would "
            "read into memory; pass an array"
        )

    def __getitem__(self, where: Any) -> Any:
        """Return some rows as an out-of-core matrix, or the values of some rows and columns.

        Cross-validation uses the first form.
        """
        rows, columns = where if isinstance(where, tuple) else (where, Ellipsis)
        whole = isinstance(rows, slice) and rows == slice(None)
        some = self if whole else RowSubset(self, np.arange(self.shape[0])[rows])
        if columns is Ellipsis:
            return some
        wanted, back = np.unique(np.arange(self.shape[1])[columns], return_inverse=True)
        out = some._empty(some.shape[0], len(wanted))
        if out.size:
            some.read(slice(0, some.shape[0]), wanted, out)
        return out if back.ndim and np.array_equal(back, np.arange(len(back))) else out[:, back]

    def _empty(self, n_rows: int, n_columns: int) -> np.ndarray:
        order: Any = self.order
        return np.empty((n_rows, n_columns), self.dtype, order=order)

    def chosen(self, columns: np.ndarray) -> Any:
        return self[:, columns]

    def cuts(self, height: int) -> list[slice]:
        """Split the rows into ranges of at most ``height`` rows, but at least ``row_step`` rows."""
        step = max(1, height // self.row_step) * self.row_step
        if self.row_step == 1 and step > CHUNK:
            step -= step % CHUNK  # align with the chunks of sums over rows
        return [
            slice(start, min(start + step, self.shape[0]))
            for start in range(0, self.shape[0], step)
        ]

    def read(self, rows: slice, columns: np.ndarray, out: np.ndarray) -> None:
        """Read values into ``out``, of shape (rows, columns); ``columns`` must be ascending."""
        raise NotImplementedError

    def scores(self, function: Callable[..., Any], columns: np.ndarray, n_outputs: int) -> Any:
        out = np.empty((self.shape[0], n_outputs))
        for rows in self.cuts(
            max(CHUNK, PIECE_BYTES // (self.dtype.itemsize * max(1, len(columns))))
        ):
            block = self._empty(rows.stop - rows.start, len(columns))
            if len(columns):  # a model of size 0 has no columns
                self.read(rows, columns, block)
            out[rows] = function(block)
        return out


class RowSubset(Source):
    """Subset of the rows of another matrix in a file, in any order.

    The rows between the requested rows are also read.

    Parameters
    ----------
    source : Source
        Complete matrix; its limits apply.
    index : ndarray of int
        Row indices. Ranges of the file are read, which is efficient if the indices are ascending,
        as in folds without shuffling.
    """

    def __init__(self, source: Source, index: np.ndarray) -> None:
        self.source, self.index = source, np.atleast_1d(index)
        self.shape, self.dtype, self.stored = (
            (len(self.index), source.shape[1]),
            source.dtype,
            source.stored,
        )
        self.order, self.column_step, self.names = source.order, source.column_step, source.names
        self.memory_limit, self.subsample = source.memory_limit, source.subsample
        self.target, self.weight = (
            None if v is None else v[self.index] for v in (source.target, source.weight)
        )

    def read(self, rows: slice, columns: np.ndarray, out: np.ndarray) -> None:
        wanted = self.index[rows]
        height = max(PIECE_BYTES, out.nbytes) // (len(columns) * self.dtype.itemsize)
        for stretch in self.source.cuts(max(self.source.row_step, height)):
            inside = np.flatnonzero((wanted >= stretch.start) & (wanted < stretch.stop))
            if len(inside) == 0:
                continue
            positions = wanted[inside]
            first, last = int(positions.min()), int(positions.max()) + 1
            block = self._empty(last - first, len(columns))
            self.source.read(slice(first, last), columns, block)
            part = _as_slice(positions - first)
            if isinstance(part, slice):
                block = block[part]
            elif self.order == "C":  # np.take is more than twice as fast as indexing
                block = np.take(block, part, axis=0)
            else:
                block = np.take(block.T, part, axis=1).T
            out[_as_slice(inside)] = block


def _as_slice(index: np.ndarray) -> slice | np.ndarray:
    """Convert consecutive indices to a slice, which makes copying several times faster."""
    return slice(int(index[0]), int(index[-1]) + 1) if (np.diff(index) == 1).all() else index


class TorchMatrix(OutOfCoreMatrix):
    """Out-of-core matrix that wraps a float32 tensor, which remains on its device.

    Parameters
    ----------
    X : torch.Tensor of shape (n_samples, n_features)
        Dense tensor of real numbers. It is copied if it is not float32.

    Raises
    ------
    ValueError
        If the tensor is not two-dimensional, or is sparse or complex.
    """

    def __init__(self, X: Matrix) -> None:
        import torch

        if X.ndim != 2:
            raise ValueError(f"X has shape {tuple(X.shape)}; expected two dimensions")
        if X.layout != torch.strided or X.is_complex():
            raise ValueError(
                f"X is a {X.layout} tensor of {X.dtype}; expected a dense tensor of real numbers"
            )
        self.tensor = X.detach().to(dtype=torch.float32)
        self.shape, self.dtype = (int(X.shape[0]), int(X.shape[1])), np.dtype(np.float32)

    def scores(self, function: Callable[..., Any], columns: np.ndarray, n_outputs: int) -> Any:
        return function(self.chosen(columns))

    def chosen(self, columns: np.ndarray) -> Any:
        import torch

        return self.tensor[:, torch.from_numpy(columns).to(self.tensor.device)].cpu().numpy()
