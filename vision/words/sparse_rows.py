"""Dense rows, one at a time, joined to a sparse matrix in the memory of the matrix alone."""

from __future__ import annotations

from collections.abc import Iterable

import numpy as np
import scipy.sparse as sp


def sparse_rows(rows: Iterable[np.ndarray], n_columns: int) -> sp.csr_matrix:
    """Join rows to a sparse matrix.

    The values grow in place. Joining many small matrices would take the memory twice, and much of
    theirs would not be given back.

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
    data, columns, ends = bytearray(), bytearray(), [0]  # they grow in place; arrays of NumPy 2.5 are copied
    for row in rows:
        present = np.flatnonzero(row)
        data += row[present].astype(np.float32).tobytes()
        columns += present.astype(np.int32).tobytes()
        ends.append(ends[-1] + len(present))
    values, positions = np.frombuffer(data, np.float32), np.frombuffer(columns, np.int32)
    return sp.csr_matrix((values, positions, np.array(ends)), shape=(len(ends) - 1, n_columns))
