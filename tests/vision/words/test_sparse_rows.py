"""Rows joined one at a time: the matrix of all of them."""

import tracemalloc

import numpy as np
import pytest
from annealed.vision.words.visual_words import sparse_rows


@pytest.mark.parametrize("n_rows", [0, 1, 40])
def test_rows_are_those_of_the_dense_matrix(n_rows):
    X = np.random.default_rng(n_rows).integers(-1, 2, (n_rows, 7)).astype(np.float32)
    X[::3] = 0.0  # rows without values
    matrix = sparse_rows(iter(X), 7)
    assert (
        matrix.shape == (n_rows, 7) and matrix.dtype == np.float32 and matrix.has_canonical_format
    )
    np.testing.assert_array_equal(matrix.toarray(), X)
    assert matrix.nnz == np.count_nonzero(X)
    assert len(matrix.data) == matrix.nnz == len(matrix.indices)  # no spare capacity is left


def test_the_memory_is_that_of_the_matrix():
    rng = np.random.default_rng(0)
    tracemalloc.start()
    try:
        X = sparse_rows(
            (rng.random(2000, dtype=np.float32) * (rng.random(2000) < 0.3) for _ in range(1500)),
            2000,
        )
        peak = tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()
    assert peak < 1.4 * (X.data.nbytes + X.indices.nbytes) + 1e6
