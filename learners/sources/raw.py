"""Matrices in raw and NumPy files."""

import mmap
import os
from concurrent.futures import ThreadPoolExecutor
from threading import Lock
from typing import Any

import numpy as np

from .matrix import PIECE_BYTES, Source, float_dtype

# Threads that read columns in parallel: disks serve many small reads at once
READERS = 8
_POSITION = Lock()


class RawSource(Source):
    """Row- or column-major array in a file, read without memory mapping.

    Parameters
    ----------
    path : path
        File to read.
    offset : int
        Position of the first value, in bytes.
    shape : (int, int)
        Numbers of rows and columns.
    dtype : dtype
        Data type in the file.
    strides : (int, int)
        Bytes from row to row and from column to column; one of them is the size of a value.
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
                f"{path}: strides {strides} of a view; "
                "expected whole rows or whole columns of neighbouring values"
            )
        end = self.offset + sum((n - 1) * s for n, s in zip(shape, strides)) + size
        if os.path.getsize(self.path) < end:
            raise ValueError(
                f"{path}: {os.path.getsize(self.path)} bytes; {shape} {self.stored} need {end}"
            )

    def read(self, rows: slice, columns: np.ndarray, out: np.ndarray) -> None:
        file = os.open(self.path, os.O_RDONLY | getattr(os, "O_BINARY", 0))
        as_requested(file)
        try:
            if self.order == "C":
                self._read_rows(file, rows, columns, out)
            else:
                self._read_columns(file, rows, columns, out)
        finally:
            os.close(file)

    def _read_rows(self, file: Any, rows: slice, columns: np.ndarray, out: np.ndarray) -> None:
        """Ranges of whole rows, from the first to the last requested column."""
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
        for start in range(rows.start, rows.stop, step):
            stop = min(rows.stop, start + step)
            target = out[start - rows.start : stop - rows.start]
            at = self.offset + start * self.strides[0] + first * size
            if direct:
                _fill(file, target, at, self.path)
                continue
            length = (stop - start - 1) * self.strides[0] + width * size
            _fill(file, piece[:length], at, self.path)
            block = np.ndarray(
                (stop - start, width), self.stored, piece, strides=(self.strides[0], size)
            )
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
            list(
                readers.map(
                    read_columns,
                    np.array_split(np.arange(len(columns)), min(READERS, len(columns))),
                )
            )


def as_requested(file: int) -> None:
    """Disable the system's read-ahead: blocks are read ahead here, and the remaining columns are
    scattered."""
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
    """``os.preadv`` for Windows: threads share the file position, so they take turns."""
    with _POSITION:
        os.lseek(file, at, os.SEEK_SET)
        data = os.read(file, len(view))
    view[: len(data)] = data
    return len(data)


def mapped(X: np.memmap) -> RawSource:
    """Position of a mapped array (or a view of one) in its file."""
    base: Any = X
    while isinstance(base.base, np.ndarray):
        base = base.base
    if X.filename is None or base._mmap is None:
        raise ValueError("a memmap without a file; expected one that was opened from a path")
    start = np.frombuffer(base._mmap, np.uint8).__array_interface__["data"][0]
    page = base.offset - base.offset % mmap.ALLOCATIONGRANULARITY
    at = page + X.__array_interface__["data"][0] - start
    return RawSource(
        X.filename, at, (X.shape[0], X.shape[1]), X.dtype, (X.strides[0], X.strides[1])
    )
