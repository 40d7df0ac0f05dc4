"""Canonical labels, and the misclassification rate of a segmentation."""

import numpy as np
import numpy.typing as npt


def canonical_labels(labels: np.ndarray) -> np.ndarray:
    """Renumber labels as 0, 1, 2, ... in order of first appearance.

    Parameters
    ----------
    labels : ndarray of shape (P,)

    Returns
    -------
    ndarray of shape (P,), int64

    Examples
    --------
    >>> canonical_labels(np.array([7, 7, 3, 7]))
    array([0, 0, 1, 0])
    """
    _, first, inverse = np.unique(labels, return_index=True, return_inverse=True)
    return np.argsort(np.argsort(first))[inverse]


def by_size(labels: np.ndarray) -> np.ndarray:
    """Renumber labels as 0, 1, ... in order of decreasing size; ties are in order of appearance.

    Parameters
    ----------
    labels : ndarray of shape (P,)

    Returns
    -------
    ndarray of shape (P,), int64

    Examples
    --------
    >>> by_size(np.array([4, 2, 2]))
    array([1, 0, 0])
    """
    names, first, inverse, counts = np.unique(
        labels, return_index=True, return_inverse=True, return_counts=True
    )
    rank = np.empty(len(names), np.int64)
    rank[np.lexsort((first, -counts))] = np.arange(len(names))
    return rank[inverse]


def misclassification(truth: npt.ArrayLike, labels: npt.ArrayLike) -> float:
    """Compute the fraction of points with a wrong label, eq. (22) of Barbu et al. (2014) [1]_.

    Estimated labels are matched to true labels so that this fraction is as small as possible.

    Parameters
    ----------
    truth, labels : array-like of shape (P,)
        True and estimated labels; they may have different numbers of classes.

    Returns
    -------
    float
        Fraction in [0, 1).

    Raises
    ------
    ValueError
        If ``truth`` and ``labels`` have different lengths.

    References
    ----------
    .. [1] A. Barbu, Y. She, L. Ding, G. Gramajo, "Feature Selection with Annealing for Regression,
           Classification and Ranking", arXiv:1310.2880v2 (2014), section 6.3.

    Examples
    --------
    >>> misclassification([0, 0, 1, 1], [7, 7, 3, 7])
    0.25
    """
    truth_names, t = np.unique(truth, return_inverse=True)
    label_names, clusters = np.unique(labels, return_inverse=True)
    if len(t) != len(clusters):
        raise ValueError(
            f"truth has {len(t)} labels and labels has {len(clusters)}; expected equal lengths"
        )
    from scipy.optimize import linear_sum_assignment

    counts = np.zeros((len(truth_names), len(label_names)), np.int64)
    np.add.at(counts, (t, clusters), 1)
    return float(1.0 - counts[linear_sum_assignment(-counts)].sum() / len(t))
