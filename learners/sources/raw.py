"""Matrices in raw and NumPy files."""

import mmap
import os
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import numpy as np

from .matrix import PIECE_BYTES, Source, float_dtype

# Threads that read columns in parallel, since disks process many small reads at once
READERS = 8


class RawSource(Source):
    """Row-major or column-major array in a file, which is read without memory mapping.

    Parameters
    ----------
    path : path
        File to read.
    offset : int
        Position of the first value, in bytes.
    shape : (int, int)
        Number of rows and number of columns.
    dtype : dtype
        Data type in the file.
    strides : (int, int)
        Number of bytes between rows, and between columns. One of the two is the size of a value.
    """

    def __init__(
        self,
        path: str | os.PathLike[str],
        offset: int,
        shape: tuple[int, int],
        dtype: Any,
        strides: tuple[int, int],
    ) -> None:
        self.path, self.offset, self.shape, self.strides = (
            os.fspath(path),
            int(offset),
            shape,
            strides,
        )
        self.stored, self.dtype = np.dtype(dtype), float_dtype(dtype)
        size = self.stored.itemsize
        if strides[1] == size or shape[1] == 1:
            self.order = "C"
        elif strides[0] == size or shape[0] == 1:
            self.order = "F"
        else:
            raise ValueError(
                f"{path}: the view has strides {strides}; "
                "expected contiguous rows or contiguous columns"
            )
        end = self.offset + sum((n - 1) * s for n, s in zip(shape, strides)) + size
        if os.path.getsize(self.path) < end:
            raise ValueError(
                f"{path}: the file has {os.path.getsize(self.path)} bytes; "
                f"expected {end} for shape {shape} and dtype {self.stored}"
            )

    def read(self, rows: slice, columns: np.ndarray, out: np.ndarray) -> None:
        (self._read_rows if self.order == "C" else self._read_columns)(rows, columns, out)

    def _read_rows(self, rows: slice, columns: np.ndarray, out: np.ndarray) -> None:
        """Read row ranges, from the first to the last requested column."""
        size, m = self.stored.itemsize, len(columns)
        first, width = int(columns[0]), int(columns[-1] - columns[0]) + 1
        dense = width == m
        direct = (
            dense
            and self.strides[0] == width * size
            and self.stored == out.dtype
            and out.flags.c_contiguous
        )
        step = max(1, PIECE_BYTES // self.strides[0])
        piece = np.empty(0 if direct else step * self.strides[0], np.uint8)
        with open(self.path, "rb", buffering=0) as file:
            as_requested(file.fileno())
            for start in range(rows.start, rows.stop, step):
                stop = min(rows.stop, start + step)
                target = out[start - rows.start : stop - rows.start]
                at = self.offset + start * self.strides[0] + first * size
                if direct:
                    _fill(file, target, at)
                    continue
                length = (stop - start - 1) * self.strides[0] + width * size
                _fill(file, piece[:length], at)
                block = np.ndarray(
                    (stop - start, width), self.stored, piece, strides=(self.strides[0], size)
                )
                target[:] = block if dense else block[:, columns - first]

    def _read_columns(self, rows: slice, columns: np.ndarray, out: np.ndarray) -> None:
        size, n = self.stored.itemsize, rows.stop - rows.start
        direct = self.stored == out.dtype and out.flags.f_contiguous
        at = self.offset + rows.start * size + np.asarray(columns, dtype=np.int64) * self.strides[1]
        turned = out.T

        def read_columns(mine: np.ndarray) -> None:
            piece = np.empty(0 if direct else n, self.stored)
            with open(self.path, "rb", buffering=0) as file:  # file position of this thread
                as_requested(file.fileno())
                for j in mine:
                    _fill(file, turned[j] if direct else piece, int(at[j]))
                    if not direct:
                        turned[j] = piece

        with ThreadPoolExecutor(READERS) as readers:
            list(
                readers.map(
                    read_columns,
                    np.array_split(np.arange(len(columns)), min(READERS, len(columns))),
                )
            )


def as_requested(file: int) -> None:
    """Disable the operating system's read-ahead for a file.

    The package reads blocks ahead itself, and read-ahead by the operating system does not help if
    the remaining columns are scattered.
    """
    if hasattr(os, "posix_fadvise"):
        os.posix_fadvise(file, 0, 0, os.POSIX_FADV_RANDOM)


def _fill(file: Any, out: np.ndarray, at: int) -> None:
    """Read exactly ``out.nbytes`` bytes at position ``at``."""
    file.seek(at)
    view = memoryview(out.reshape(-1).view(np.uint8).data)
    while len(view):
        n_bytes = file.readinto(view)
        if not n_bytes:
            raise ValueError(f"{file.name} is truncated: it ends before its last value")
        view = view[n_bytes:]


def mapped(X: np.memmap) -> RawSource:
    """Create a source that reads the file behind a memory-mapped array or a view of one."""
    base: Any = X
    while isinstance(base.base, np.ndarray):
        base = base.base
    if X.filename is None or base._mmap is None:
        raise ValueError("the memmap is not backed by a file; expected a memmap opened from a path")
    start = np.frombuffer(base._mmap, np.uint8).__array_interface__["data"][0]
    page = base.offset - base.offset % mmap.ALLOCATIONGRANULARITY
    at = page + X.__array_interface__["data"][0] - start
    return RawSource(
        X.filename, at, (X.shape[0], X.shape[1]), X.dtype, (X.strides[0], X.strides[1])
    )
