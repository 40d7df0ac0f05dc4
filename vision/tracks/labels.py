"""Names of labels, and the error of a segmentation."""

from __future__ import annotations

import numpy as np
from scipy.optimize import linear_sum_assignment


def renamed(labels: np.ndarray) -> np.ndarray:
    """Labels renamed 0, 1, 2, ... in the order of first appearance: equal for equal partitions."""
    _, first, inverse = np.unique(labels, return_index=True, return_inverse=True)
    return np.argsort(np.argsort(first))[inverse]


def by_size(labels: np.ndarray) -> np.ndarray:
    """Labels renamed 0, 1, ... by falling number of points; among equal ones the order of first appearance decides.

    Examples
    --------
    >>> by_size(np.array([4, 2, 2]))
    array([1, 0, 0])
    """
    names, first, inverse, counts = np.unique(labels, return_index=True, return_inverse=True, return_counts=True)
    rank = np.empty(len(names), np.int64)
    rank[np.lexsort((first, -counts))] = np.arange(len(names))
    return rank[inverse]


def misclassification(truth: np.ndarray, labels: np.ndarray) -> float:
    """Share of points with a wrong label under the best matching of the names, eq. (22) of the arXiv text.

    Parameters
    ----------
    truth, labels : array-like of shape (P,)
        The numbers of labels may differ.

    Returns
    -------
    float
        In [0, 1).

    Examples
    --------
    >>> misclassification([0, 0, 1, 1], [7, 7, 3, 7])
    0.25
    """
    truth_names, t = np.unique(truth, return_inverse=True)
    label_names, l = np.unique(labels, return_inverse=True)
    if len(t) != len(l):
        raise ValueError(f"truth has {len(t)} labels, the segmentation {len(l)}; expected as many")
    counts = np.zeros((len(truth_names), len(label_names)), np.int64)
    np.add.at(counts, (t, l), 1)
    return float(1.0 - counts[linear_sum_assignment(-counts)].sum() / len(t))
