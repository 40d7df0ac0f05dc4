"""Matrices whose rows a function generates in batches."""

from collections.abc import Callable, Iterable, Iterator, Sequence
from reprlib import repr
from threading import Lock
from typing import Any

import numpy as np

from .matrix import Source, float_dtype


class BatchSource(Source):
    """Matrix that is given as batches of rows, which are read in every pass over the data.

    Parameters
    ----------
    batches : function
        Function that returns the same iterable of (X, y) or (X, y, weight) on each call. X is a
        dense array or a numeric data frame of shape (rows, n_features), and y and weight contain
        one value per row.

    Attributes
    ----------
    target, weight : ndarray of shape (n_samples,)
        Targets and weights of all batches, in memory. ``weight`` is None if the batches have no
        weights.

    Raises
    ------
    ValueError
        If a batch is not valid, its columns differ from those of the first batch, or a later pass
        differs from the first pass.
    """

    def __init__(self, batches: Callable[[], Iterable[Any]]) -> None:
        contents = [
            (len(X), names or X.shape[1], float_dtype(X.dtype), rest)
            for X, names, rest in _checked(batches)
        ]
        sizes, columns, kinds, rests = zip(*contents) if contents else ((0,), (0,), (), ())
        for i, (batch_columns, rest) in enumerate(zip(columns, rests)):
            if batch_columns != columns[0]:
                raise ValueError(
                    f"batch {i} of batches has columns {repr(batch_columns)}; expected "
                    f"{repr(columns[0])}, as in the first batch"
                )
            if len(rest) != len(rests[0]):
                raise ValueError(
                    f"batch {i} of batches has {1 + len(rest)} parts; expected "
                    f"{1 + len(rests[0])}, as in the first batch"
                )
        self.names = columns[0] if isinstance(columns[0], list) else None
        self.shape = sum(sizes), columns[0] if self.names is None else len(self.names)
        if 0 in self.shape:
            raise ValueError(
                f"batches have {self.shape[0]} rows and {self.shape[1]} columns; expected at "
                "least one row and one column"
            )
        self.dtype = self.stored = np.result_type(*kinds)
        self.target, self.weight = (*map(np.concatenate, zip(*rests)), None)[:2]
        self._passes = _Passes(batches, sizes)

    def read(self, rows: slice, columns: np.ndarray, out: np.ndarray) -> None:
        self._passes.read(rows, slice(None) if len(columns) == self.shape[1] else columns, out)


class _Passes:
    """State of the current pass over the batches, shared by copies of a source."""

    def __init__(self, batches: Callable[[], Iterable[Any]], sizes: Sequence[int]) -> None:
        self.batches, self.sizes, self._lock = batches, sizes, Lock()
        self._begin()

    def __reduce__(self) -> "tuple[type[_Passes], tuple[Any, ...]]":
        return _Passes, (self.batches, self.sizes)

    def _begin(self) -> None:
        self._coming, self._number, self._start, self._block = (
            _checked(self.batches),
            -1,
            0,
            np.empty((0, 0)),
        )

    def _next(self) -> None:
        self._start += len(self._block)
        self._number += 1
        self._block = next(self._coming, (self._block[:0], None, None))[0]
        size, expected = len(self._block), self.sizes[self._number]
        if size != expected:
            raise ValueError(
                f"batch {self._number} of batches has {size} rows; expected {expected}, as in "
                "the first pass"
            )

    def read(self, rows: slice, columns: Any, out: np.ndarray) -> None:
        """Fill ``out`` with the requested rows, and skip the rows between the last request and this
        one."""
        with self._lock:
            if rows.start < self._start:
                self._begin()
            at = rows.start
            while at < rows.stop:
                while at >= self._start + len(self._block):
                    self._next()
                stop = min(rows.stop, self._start + len(self._block))
                out[at - rows.start : stop - rows.start] = self._block[
                    at - self._start : stop - self._start, columns
                ]
                at = stop


def _checked(
    batches: Callable[[], Iterable[Any]],
) -> Iterator[tuple[np.ndarray, list[str] | None, list[np.ndarray]]]:
    """Return the values, column names, targets and optional weights of a batch."""
    for i, batch in enumerate(batches()):
        if not isinstance(batch, tuple) or len(batch) not in (2, 3):
            raise ValueError(
                f"batch {i} of batches is a {type(batch).__name__}; "
                "expected (X, y) or (X, y, weight)"
            )
        X, *rest = map(np.asarray, batch)
        if X.ndim != 2:
            raise ValueError(
                f"X of batch {i} of batches is a {type(batch[0]).__name__}; "
                "expected a dense two-dimensional array of numbers"
            )
        if any(values.shape[:1] != X.shape[:1] for values in rest):
            shapes = " and ".join(str(values.shape) for values in rest)
            raise ValueError(
                f"batch {i} of batches contains X of shape {X.shape} and other arrays of shape "
                f"{shapes}; expected a target (and a weight, if given) for each row"
            )
        yield (
            X,
            [str(name) for name in batch[0].columns] if hasattr(batch[0], "columns") else None,
            rest,
        )
