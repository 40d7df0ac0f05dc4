"""A screen for pairs of columns whose product separates the classes when neither column does."""

from __future__ import annotations

import numpy as np
import scipy.sparse as sp

from ..types import Matrix

BLOCK_BYTES = 1 << 25  # of one block of pair scores


def strongest_products(X: Matrix, classes: np.ndarray, count: int) -> list[tuple[int, int]]:
    """Find the pairs (a, b), a <= b, whose product x_a x_b is most correlated with the class.

    Parameters
    ----------
    X : ndarray or CSR matrix of shape (n, p)
        Centred columns, or sparse ones.
    classes : ndarray of shape (n,), int
        Codes; of several classes each against the rest, and the largest correlation counts.
    count : int
        Pairs to return.

    Returns
    -------
    list of (int, int)
        Strongest first; ties in the order of the columns.

    Notes
    -----
    X' diag(y) X in blocks of rows: O(n p^2) time, O(p) memory per row of a block.
    """
    n, p = X.shape
    sparse = sp.issparse(X)
    square = X.multiply(X).tocsr() if sparse else X * X
    levels = np.unique(classes)
    targets = [(classes == c).astype(X.dtype) for c in (levels[1:] if len(levels) == 2 else levels)]
    targets = [(t - t.mean()) / max(t.std(), 1e-12) for t in targets]
    step = max(1, BLOCK_BYTES // (8 * p))
    columns = X.tocsc() if sparse else X
    found = np.empty((0, 3))
    for first in range(0, p, step):
        part = columns[:, first : first + step]

        def moments(left: Matrix, right: Matrix) -> np.ndarray:
            product = left.T @ right
            return (product.toarray() if sp.issparse(product) else product) / n

        mean = moments(part, X)
        variance = moments(part.multiply(part) if sparse else part * part, square) - mean**2
        scale = np.sqrt(np.maximum(variance, 1e-12 * max(float(variance.max()), 1e-300)))
        score = np.zeros_like(mean)
        for t in targets:
            weighted = sp.diags_array(t) @ part if sparse else part * t[:, None]
            np.maximum(score, np.abs(moments(weighted, X)) / scale, out=score)
        rows, cols = np.arange(first, first + score.shape[0])[:, None], np.arange(p)
        score[cols < rows] = -1.0
        few = score.size <= 4 * count
        best = (np.argsort(-score, axis=None, kind="stable") if few else np.argpartition(-score, count - 1, axis=None))[:count]
        a, b = np.unravel_index(best, score.shape)
        found = np.vstack([found, np.column_stack([score[a, b], a + first, b])])
        found = found[np.lexsort((found[:, 2], found[:, 1], -found[:, 0]))][:count]
    return [(int(a), int(b)) for score, a, b in found if score > 0]
