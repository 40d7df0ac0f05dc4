"""Which rows of a matrix belong to which sequence."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from ..types import ArrayLike


class Sequences(NamedTuple):
    """Rows of sequences.

    Attributes
    ----------
    offsets : ndarray of shape (n_sequences + 1,), int
        Where each sequence begins, and the end, once the rows are ordered.
    order : ndarray of shape (n_rows,), int, or None
        Rows, sequence after sequence; None where they lie so already.
    """

    offsets: np.ndarray
    order: np.ndarray | None

    def ordered(self, rows: Any) -> Any:
        """Rows of an array (or sparse matrix), sequence after sequence."""
        return rows if self.order is None else rows[self.order]

    def restored(self, rows: np.ndarray) -> np.ndarray:
        """The inverse of :meth:`ordered`."""
        if self.order is None:
            return rows
        out = np.empty_like(rows)
        out[self.order] = rows
        return out


def find_sequences(n_rows: int, lengths: ArrayLike | None = None, sequence: ArrayLike | None = None) -> Sequences:
    """Sequences from their lengths, from one id per row, or all rows as one sequence.

    Raises
    ------
    ValueError
        If both are given, the lengths do not add up or are not positive integers, or there is not
        one id per row.

    Examples
    --------
    >>> find_sequences(5, lengths=[2, 3]).offsets
    array([0, 2, 5])
    >>> find_sequences(4, sequence=["b", "a", "b", "a"]).order  # in the order of their first rows
    array([0, 2, 1, 3])
    """
    if lengths is not None and sequence is not None:
        raise ValueError("lengths and sequence are both given; expected one of them")
    if sequence is not None:
        return _from_ids(n_rows, np.asarray(sequence))
    if lengths is None:
        return Sequences(np.array([0, n_rows]), None)
    given = np.atleast_1d(np.asarray(lengths))
    if given.ndim != 1 or given.dtype.kind not in "iu" or not len(given) or given.min() < 1:
        raise ValueError(f"lengths={_short(given)} is not valid; expected positive integers, one for each sequence")
    if given.sum() != n_rows:
        raise ValueError(f"lengths add up to {given.sum()}; expected the {n_rows} rows of X")
    return Sequences(np.concatenate([[0], np.cumsum(given)]).astype(np.int64), None)


def _from_ids(n_rows: int, ids: np.ndarray) -> Sequences:
    if ids.shape != (n_rows,):
        raise ValueError(f"sequence has shape {ids.shape}; expected one id for each of the {n_rows} rows")
    if ids.dtype.kind == "f" and np.isnan(ids).any():
        raise ValueError("sequence holds NaN; expected one id for each row")
    _, first, codes = np.unique(ids, return_index=True, return_inverse=True)
    codes = np.argsort(np.argsort(first))[codes]
    offsets = np.concatenate([[0], np.cumsum(np.bincount(codes))]).astype(np.int64)
    return Sequences(offsets, None if (np.diff(codes) >= 0).all() else np.argsort(codes, kind="stable"))


def sequence_weights(weight: np.ndarray, offsets: np.ndarray) -> np.ndarray:
    """The weight of each sequence from those of its rows.

    Raises
    ------
    ValueError
        If they differ within a sequence: a likelihood has one weight.
    """
    least, most = np.minimum.reduceat(weight, offsets[:-1]), np.maximum.reduceat(weight, offsets[:-1])
    uneven = np.flatnonzero(least < most)
    if len(uneven):
        s = uneven[0]
        raise ValueError(f"sample_weight goes from {least[s]:g} to {most[s]:g} in sequence {s}; expected one weight per sequence")
    return most


def _short(values: np.ndarray) -> str:
    text = values.tolist() if values.ndim else values
    return str(text) if len(str(text)) < 60 else str(text)[:57] + "..."
