"""Dask arrays, data frames and files as out-of-core matrices.

Dask is imported only for files, which are read by the workers.
"""

import pickle
from collections.abc import Callable
from copy import copy
from typing import Any

import numpy as np

from ..types import Matrix
from .matrix import OutOfCoreMatrix, RowSubset, Source, float_dtype
from .sparse_files import SparseSource

# bytes of a file per task, several of which a worker holds at a time (heuristic)
BLOCK_BYTES = 64 << 20


class DaskMatrix(OutOfCoreMatrix):
    """Dask array, numeric data frame or file as an out-of-core matrix.

    Parameters
    ----------
    X : dask.array.Array, dask.dataframe.DataFrame or Source
        Numeric matrix of shape (n_samples, n_features).
    memory_limit : int, str or None, default None
        See :func:`on_dask`.
    subsample : float, default 1.0
        See :func:`on_dask`.

    Raises
    ------
    ValueError
        If a limit is out of range, a column is not numeric, a chunk is not a NumPy array, or the
        array is not two-dimensional.
    """

    def __init__(
        self, X: Matrix, memory_limit: int | str | None = None, subsample: float = 1.0
    ) -> None:
        self.set_limits(memory_limit, subsample)
        if isinstance(X, Source):
            self.names, X = X.names, _array_of(X)
        if hasattr(X, "to_dask_array"):
            self.names = [str(name) for name in X.columns]
            for name, dtype in X.dtypes.items():
                if getattr(dtype, "kind", "O") not in "fiub":
                    raise ValueError(f"column {str(name)!r} has dtype {dtype}; expected numbers")
            X = X.to_dask_array(lengths=True)
        if X.ndim != 2:
            raise ValueError(f"the Dask array has shape {X.shape}; expected two dimensions")
        if any(np.isnan(size) for size in X.shape):
            X = X.compute_chunk_sizes()
        if not isinstance(X._meta, np.ndarray):
            raise ValueError(
                f"the chunks of the Dask array are of type {type(X._meta).__name__}; expected "
                "NumPy arrays"
            )
        X = X.astype(float_dtype(X.dtype))
        self.array, self.shape, self.dtype = X, X.shape, X.dtype

    def __getitem__(self, where: Any) -> Any:
        """Return some rows as a lazy matrix, or the values of some rows and columns."""
        if isinstance(where, tuple):
            rows, columns = where
            return self.array[rows][:, columns].compute()
        new = copy(self)
        new.array = self.array[where]
        new.shape = new.array.shape
        return new

    def scores(self, function: Callable[..., Any], columns: np.ndarray, n_outputs: int) -> Any:
        """Return the scores as a lazy Dask array."""
        chosen = self.array[:, columns].rechunk({1: -1})
        return chosen.map_blocks(
            function, dtype=np.float64, chunks=(chosen.chunks[0], (n_outputs,))
        )

    def chosen(self, columns: np.ndarray) -> Any:
        """Return the given columns as a lazy Dask array."""
        return self.array[:, columns]


def on_dask(X: Matrix, memory_limit: int | str | None = None, subsample: float = 1.0) -> DaskMatrix:
    """Wrap a Dask collection for ``fit`` and ``predict``, with a memory limit or subsampled rows.

    If neither is needed, pass the collection itself.

    Parameters
    ----------
    X : dask.array.Array, dask.dataframe.DataFrame or Source
        Numeric matrix of shape (n_samples, n_features), with chunks of any shape. A file from
        :func:`on_disk` is read by the workers, which need access to it at the same path. Its own
        ``memory_limit`` and ``subsample`` apply unless other values are given here.
    memory_limit : int, str or None, default None
        Memory on the client that a fit may use, in bytes or as text such as "2GB"; None means 0.5
        GiB, unless X is a Source with a limit. During feature selection, the columns that have not
        been dropped are sent to the client once they fit into half of the limit. The result does
        not depend on the limit, up to rounding.
    subsample : float, default 1.0
        Fraction of the rows, in (0, 1], that each gradient step reads until the columns that have
        not been dropped are sent to the client. Random row chunks are drawn for each step with the
        estimator's ``random_state``. With a value below 1, the rows must not be sorted by class or
        by any other value.

    Returns
    -------
    DaskMatrix
        Matrix of shape (n_samples, n_features) that can be passed to ``fit`` and ``predict``.

    Raises
    ------
    TypeError
        If X is of an unsupported type, or is a sparse matrix from :func:`write_csr`.
    ValueError
        If a limit is out of range, a column is not numeric, a chunk is not a NumPy array, or the
        array is not two-dimensional.

    Examples
    --------
    >>> import numpy as np
    >>> import dask.array as da  # doctest: +SKIP
    >>> from annealed.learners import FSAClassifier, on_dask
    >>> X = np.random.default_rng(0).standard_normal((1000, 50)).astype(np.float32)
    >>> D = on_dask(da.from_array(X, chunks=(200, 50)), memory_limit="100KB")  # doctest: +SKIP
    >>> FSAClassifier(2).fit(D, X[:, 3] > X[:, 7]).get_support(indices=True)  # doctest: +SKIP
    array([3, 7])
    """
    if isinstance(X, Source) and not isinstance(X, SparseSource):
        return DaskMatrix(
            X, memory_limit or X.memory_limit, subsample if subsample != 1.0 else X.subsample
        )
    if type(X).__module__.split(".")[0] not in ("dask", "dask_expr"):
        raise TypeError(f"X is a {type(X).__name__}; expected a Dask array or data frame")
    return DaskMatrix(X, memory_limit, subsample)


def _array_of(source: Source) -> Any:
    """Return a Dask array of a file, with chunks that follow the layout of the file."""
    import dask.array as da
    from dask.delayed import delayed

    if isinstance(source, RowSubset):
        return _array_of(source.source)[source.index]
    m, size = source.shape[1], source.dtype.itemsize
    rows = source.cuts(max(1, BLOCK_BYTES // (size * (m if source.order == "C" else min(m, 64)))))
    width = max(1, BLOCK_BYTES // (size * max(r.stop - r.start for r in rows)))
    width = min(m, -(-width // source.column_step) * source.column_step)
    # bytes, since the scheduler reads the graph but must not open files
    held = delayed(pickle.loads, pure=False)(pickle.dumps(source))
    block = delayed(_block, pure=False)
    columns = [slice(first, min(m, first + width)) for first in range(0, m, width)]
    return da.block(
        [
            [
                da.from_delayed(
                    block(held, r, c), (r.stop - r.start, c.stop - c.start), dtype=source.dtype
                )
                for c in columns
            ]
            for r in rows
        ]
    )


def _block(source: Source, rows: slice, columns: slice) -> np.ndarray:
    out = np.empty(
        (rows.stop - rows.start, columns.stop - columns.start), source.dtype, order=source.order
    )  # type: ignore[call-overload]
    source.read(rows, np.arange(columns.start, columns.stop), out)
    return out
