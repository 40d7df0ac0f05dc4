"""Dense rows, one at a time, joined to a sparse matrix in the memory of the matrix alone."""

from __future__ import annotations

from collections.abc import Iterable

import numpy as np
import scipy.sparse as sp

_GROWTH = 1.2  # of the arrays when they are full


def sparse_rows(rows: Iterable[np.ndarray], n_columns: int) -> sp.csr_matrix:
    """Join rows to a sparse matrix.

    The values grow in place. Joining many small matrices would take the memory twice, and much of theirs would not be given back.

    Parameters
    ----------
    rows : iterable of ndarray of shape (n_columns,)
        Read once, one at a time.
    n_columns : int

    Returns
    -------
    CSR matrix of shape (n_rows, n_columns), float32

    Examples
    --------
    >>> sparse_rows(iter([np.array([0.0, 2.0]), np.array([1.0, 0.0])]), 2).toarray()
    array([[0., 2.],
           [1., 0.]], dtype=float32)
    """
    data, columns, ends = np.empty(0, np.float32), np.empty(0, np.int32), [0]
    for row in rows:
        present = np.flatnonzero(row)
        end = ends[-1] + len(present)
        if end > len(data):
            room = max(end, int(_GROWTH * len(data)))
            data.resize(room, refcheck=False)
            columns.resize(room, refcheck=False)
        data[ends[-1] : end], columns[ends[-1] : end] = row[present], present
        ends.append(end)
    data.resize(ends[-1], refcheck=False)
    columns.resize(ends[-1], refcheck=False)
    return sp.csr_matrix((data, columns, np.array(ends)), shape=(len(ends) - 1, n_columns))
