"""Sparse matrices in a folder that contains the CSR arrays, which are read in row ranges."""

import shutil
import zipfile
from collections.abc import Iterable, Iterator
from functools import partial
from os import PathLike
from pathlib import Path
from typing import IO, Any, Literal

import numpy as np
import scipy.sparse as sp

from .matrix import PIECE_BYTES, Source, float_dtype

_TEXT = 32 << 20  # bytes of a LIBSVM file to read at once
_SUFFIXES = (".svm", ".svmlight", ".libsvm")


class SparseSource(Source):
    """Sparse matrix in a folder written by :func:`write_csr`, or a subset of its rows.

    Parameters
    ----------
    folder : path
        Folder with ``index.npz``, ``data.bin`` and ``indices.bin``.
    index : ndarray of int or None, default None
        Row indices in any order; None means all rows.

    Attributes
    ----------
    nnz : int
        Number of stored values.
    target : ndarray of shape (n_samples,) or None
        Labels of a LIBSVM file, which are stored in memory.
    """

    def __init__(self, folder: str | PathLike[str], index: np.ndarray | None = None) -> None:
        self.folder = Path(folder)
        with np.load(self.folder / "index.npz") as file:
            self._indptr, self._base, width = file["indptr"], int(file["base"]), int(file["width"])
            self.dtype = self.stored = np.dtype(str(file["dtype"]))
            target = file.get("target")
        for name, size in (("data.bin", self.stored.itemsize), ("indices.bin", 4)):
            n_bytes, expected = (self.folder / name).stat().st_size, int(self._indptr[-1]) * size
            if n_bytes != expected:
                raise ValueError(f"{name} has {n_bytes} bytes; expected {expected}")
        self.index = np.arange(len(self._indptr) - 1) if index is None else index
        self.shape = len(self.index), width
        self.target = target if target is None or index is None else target[index]
        self.nnz = int(np.diff(self._indptr)[self.index].sum())
        self._reopen = partial(SparseSource, self.folder.absolute(), index)

    def __getitem__(self, where: Any) -> Any:
        return (
            super().__getitem__(where)
            if isinstance(where, tuple)
            else SparseSource(self.folder, self.index[where]).set_limits(
                self.memory_limit, self.subsample
            )
        )

    def blocks(self, n_values: int) -> Iterator[tuple[np.ndarray, sp.csr_array]]:
        """Iterate over all rows in file order, as pairs of row indices and rows.

        Parameters
        ----------
        n_values : int
            Maximum number of stored values in a block. A block has at least one row.
        """
        start, n = 0, len(self._indptr) - 1
        while start < n:
            stop = max(
                start + 1,
                int(np.searchsorted(self._indptr, self._indptr[start] + n_values, side="right"))
                - 1,
            )
            here = np.flatnonzero((self.index >= start) & (self.index < stop))
            if len(here):
                block = self._rows(start, stop)
                yield (
                    here,
                    block
                    if np.array_equal(self.index[here], np.arange(start, stop))
                    else block[self.index[here] - start],
                )
            start = stop

    def _rows(self, start: int, stop: int) -> sp.csr_array:
        first, last = int(self._indptr[start]), int(self._indptr[stop])
        data, indices = (
            np.fromfile(
                self.folder / name, dtype, last - first, offset=first * np.dtype(dtype).itemsize
            )
            for name, dtype in (("data.bin", self.stored), ("indices.bin", np.int32))
        )
        indices -= self._base
        parts = data, indices, self._indptr[start : stop + 1] - first
        block = sp.csr_array(parts, (stop - start, self.shape[1]))
        block.sum_duplicates()
        return block

    def read(self, rows: slice, columns: np.ndarray, out: np.ndarray) -> None:
        some = self if rows == slice(0, self.shape[0]) else self[rows]
        for here, block in some.blocks(PIECE_BYTES):
            out[here] = block[:, columns].toarray()


def write_rows(
    blocks: Iterable[tuple[np.ndarray, sp.csr_array]],
    folder: str | PathLike[str],
    n_features: int,
    dtype: np.dtype,
) -> SparseSource:
    """Write blocks of rows, given together with the row indices, to a folder.

    Returns
    -------
    SparseSource
        Matrix with the rows in the order of their indices.
    """
    folder, positions, lengths = Path(folder), [np.zeros(0, int)], [np.zeros(1, np.int64)]
    with (folder / "data.bin").open("wb") as data, (folder / "indices.bin").open("wb") as indices:
        for rows, block in blocks:
            block.data.tofile(data)
            block.indices.astype(np.int32, copy=False).tofile(indices)
            positions.append(rows)
            lengths.append(np.diff(block.indptr))
    np.savez(
        folder / "index.npz",
        indptr=np.cumsum(np.concatenate(lengths)),
        base=0,
        width=n_features,
        dtype=str(dtype),
    )
    return SparseSource(folder, np.argsort(np.concatenate(positions)))


def write_csr(
    path: str | PathLike[str],
    folder: str | PathLike[str],
    *,
    n_features: int | None = None,
    zero_based: bool | Literal["auto"] = "auto",
) -> SparseSource:
    """Convert a sparse matrix file to a folder of files that ``fit`` can read in blocks of rows.

    The conversion needs memory for only a few numbers per row.

    Parameters
    ----------
    path : path
        LIBSVM text file (``.svm``, ``.svmlight`` or ``.libsvm``), or CSR matrix written by
        ``scipy.sparse.save_npz`` (``.npz``). LIBSVM values are converted to single precision.
    folder : path
        New folder, which :func:`on_disk` can open later.
    n_features : int or None, default None
        Number of columns of a LIBSVM file. If None, it is derived from the largest index.
    zero_based : bool or "auto", default "auto"
        Whether the first column of a LIBSVM file has index 0. With "auto", this is assumed if index
        0 occurs in the file.

    Returns
    -------
    SparseSource
        Matrix of shape (n_samples, n_features) whose ``target`` contains the labels of a LIBSVM
        file.

    Raises
    ------
    ValueError
        If the file is damaged or of an unknown type, or an index exceeds ``n_features``.
    FileExistsError
        If the folder already exists.

    Examples
    --------
    >>> import os, tempfile
    >>> import numpy as np, scipy.sparse as sp
    >>> from annealed.learners import FSARegressor, write_csr
    >>> X = sp.random_array((500, 80), density=0.1, rng=np.random.default_rng(0), format="csr")
    >>> path = os.path.join(tempfile.mkdtemp(), "X.npz")
    >>> sp.save_npz(path, X)
    >>> source = write_csr(path, path + ".csr")
    >>> y = (X[:, [3]] - X[:, [7]]).toarray()[:, 0]
    >>> FSARegressor(2).fit(source, y).get_support(indices=True)
    array([3, 7])
    """
    path, folder = Path(path).resolve(strict=True), Path(folder)
    kind = path.suffix.lower()
    if kind != ".npz" and kind not in _SUFFIXES:
        raise ValueError(
            f"{path}: unknown file type {kind!r}; expected .npz, {', '.join(_SUFFIXES)}"
        )
    folder.mkdir()
    try:
        with (
            (folder / "data.bin").open("wb") as data,
            (folder / "indices.bin").open("wb") as indices,
        ):
            index = (
                _of_npz(path, data, indices)
                if kind == ".npz"
                else _of_text(path, data, indices, n_features, zero_based)
            )
        np.savez(folder / "index.npz", **index)
        return SparseSource(folder)
    except Exception as error:  # zipfile, zlib, NumPy and scikit-learn raise different exceptions
        shutil.rmtree(folder)
        raise ValueError(
            f"{path}: the file is damaged or not a matrix in this format "
            f"({' '.join(str(error).split())})"
        ) from None


def _of_text(
    path: Path, data: IO[bytes], indices: IO[bytes], n_features: int | None, zero_based: Any
) -> dict[str, Any]:
    from sklearn.datasets import load_svmlight_file

    counts, target, low, high = [np.zeros(1, np.int64)], [], np.inf, 0
    most = np.iinfo(np.int32).max  # scikit-learn requires a number to read parts
    for offset in range(0, path.stat().st_size, _TEXT):
        X, y = load_svmlight_file(
            str(path),
            dtype=np.float32,
            zero_based=True,
            offset=offset,
            length=_TEXT,
            n_features=most,
        )
        counts.append(np.diff(X.indptr).astype(np.int64))
        target.append(y)
        if X.nnz:
            low, high = min(low, X.indices.min()), max(high, X.indices.max() + 1)
        X.data.tofile(data)
        X.indices.astype(np.int32).tofile(indices)
    base = int(low > 0) if zero_based == "auto" else int(not zero_based)
    width = int(high) - base if n_features is None else n_features
    if low < base or high - base > width or width < 1:
        raise ValueError(
            f"the indices range from {low:g} to {high - 1}; expected {base} to {width + base - 1}"
        )
    indptr = np.cumsum(np.concatenate(counts))
    return {
        "indptr": indptr,
        "base": base,
        "width": width,
        "dtype": "float32",
        "target": np.concatenate(target),
    }


def _of_npz(path: Path, data: IO[bytes], indices: IO[bytes]) -> dict[str, Any]:
    with np.load(path) as file:
        if file["format"].item() != b"csr":
            raise ValueError(f"the format is {file['format'].item()!r}; expected b'csr'")
        indptr, width = file["indptr"].astype(np.int64), int(file["shape"][1])
    with zipfile.ZipFile(path) as archive:
        dtype = None
        for name, out in (("data", data), ("indices", indices)):
            with archive.open(f"{name}.npy") as file:
                np.lib.format.read_magic(file)
                stored = np.lib.format.read_array_header_1_0(file)[2]
                kind = np.dtype(np.int32) if out is indices else float_dtype(stored)
                dtype = dtype or kind
                while piece := file.read(PIECE_BYTES):
                    np.frombuffer(piece, stored).astype(kind).tofile(out)
    return {"indptr": indptr, "base": 0, "width": width, "dtype": str(dtype)}
