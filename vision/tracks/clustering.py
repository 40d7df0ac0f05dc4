"""Spectral clustering: angular affinity, its leading eigenvectors, and k-means."""

import numpy as np
from scipy.linalg import LinAlgError, eigh


def angular_affinity(points: np.ndarray, alpha: float) -> np.ndarray:
    """Compute the angular affinity, eq. (21) of Barbu et al. (2014), with a zero diagonal.

    Parameters
    ----------
    points : ndarray of shape (P, d)
        Points as vectors, one per row.
    alpha : float
        Exponent of the squared cosine.

    Returns
    -------
    ndarray of shape (P, P)
        Affinity. The diagonal is zero, as in Ng, Jordan and Weiss (2001), since a diagonal of ones
        would favour clusters of single points.
    """
    unit = points / np.maximum(np.linalg.norm(points, axis=1, keepdims=True), 1e-300)
    affinity = np.square(unit @ unit.T) ** alpha
    np.fill_diagonal(affinity, 0.0)
    return affinity


def _seeds(points: np.ndarray, uniforms: np.ndarray) -> np.ndarray:
    """Draw centres (n_runs, K, d) by the k-means++ rule from row r of ``uniforms`` (n_runs, K)."""
    centres = np.empty((*uniforms.shape, points.shape[1]))
    nearest = np.ones((len(uniforms), len(points)))
    for c, drawn in enumerate(uniforms.T):
        running = nearest.cumsum(axis=1)
        beyond = running > drawn[:, None] * running[:, -1:]
        chosen = np.where(beyond[:, -1], beyond.argmax(axis=1), len(points) - 1)
        centres[:, c] = points[chosen]
        distance = np.square(points - centres[:, c, None]).sum(axis=2)
        nearest = np.minimum(nearest, distance) if c else distance
    return centres


def _best_run(points: np.ndarray, uniforms: np.ndarray, n_iterations: int) -> np.ndarray:
    """Return the labels of the best of several runs of k-means; row r of ``uniforms`` (n_runs, K)
    seeds run r."""
    n_points, width = points.shape
    n_runs, n_clusters = uniforms.shape
    centres = _seeds(points, uniforms)
    labels = np.full((n_runs, n_points), -1)
    moving = np.arange(n_runs)  # runs that still change, all in parallel
    for _ in range(n_iterations):
        now = centres[moving]
        worth = (now.reshape(-1, width) @ points.T).reshape(
            -1, n_clusters, n_points
        ) - 0.5 * np.square(now).sum(axis=2)[..., None]
        best, nearest = worth[:, 0], np.zeros((len(now), n_points), int)
        for c in range(1, n_clusters):  # nearest centre; the first one wins a tie
            np.copyto(nearest, c, where=worth[:, c] > best)
            best = np.maximum(best, worth[:, c])
        changed = (nearest != labels[moving]).any(axis=1)
        labels[moving] = nearest
        moving, now = moving[changed], now[changed]
        if not len(moving):
            break
        members = (nearest[changed][:, None] == np.arange(n_clusters)[:, None]).astype(float)
        sums, counts = members.reshape(-1, n_points) @ points, members.sum(axis=2)[..., None]
        centres[moving] = np.where(counts > 0, sums.reshape(now.shape) / np.maximum(counts, 1), now)
    totals = np.square(points - np.take_along_axis(centres, labels[..., None], axis=1)).sum(
        axis=(1, 2)
    )
    best = 0
    for run in range(n_runs):
        # Rounding errors must not decide between tied runs: only a clear improvement replaces the
        # best run.
        best = run if totals[run] < totals[best] * (1.0 - 1e-9) else best
    return labels[best]


def k_means(points: np.ndarray, n_clusters: int, n_runs: int = 30) -> np.ndarray:
    """Cluster points by k-means, initialised by k-means++ with a fixed random seed.

    Parameters
    ----------
    points : ndarray of shape (P, d)
        Points to cluster.
    n_clusters : int
        Number of clusters.
    n_runs : int, default 30
        Number of runs; the run with the smallest sum of squared distances is used.

    Returns
    -------
    ndarray of shape (P,), int64
        Labels from 0 to n_clusters - 1.
    """
    uniforms = np.random.RandomState(0).uniform(size=(n_runs, n_clusters))
    return _best_run(np.ascontiguousarray(points, float), uniforms, 100)


def leading_eigenvectors(affinity: np.ndarray, n_vectors: int) -> np.ndarray:
    """Compute the leading eigenvectors of the normalised affinity [1]_.

    The last n eigenvectors can be used to form n clusters, for any n up to ``n_vectors``.

    Parameters
    ----------
    affinity : ndarray of shape (P, P)
        Symmetric, non-negative matrix with a zero diagonal.
    n_vectors : int
        Number of eigenvectors, at most P.

    Returns
    -------
    ndarray of shape (P, n_vectors)
        Eigenvectors as columns, in order of increasing eigenvalue.

    References
    ----------
    .. [1] A. Y. Ng, M. I. Jordan, Y. Weiss, "On spectral clustering: analysis and an algorithm",
           Advances in Neural Information Processing Systems 14 (2001).
    """
    root = 1.0 / np.sqrt(np.maximum(affinity.sum(axis=1), 1e-300))
    n = len(affinity)
    normalised = affinity * root[:, None] * root[None, :]
    try:
        return eigh(normalised, subset_by_index=(n - n_vectors, n - 1), check_finite=False)[1]
    except LinAlgError:  # many equal eigenvalues, for example if all tracks are the same
        return eigh(normalised, driver="evd", check_finite=False)[1][:, n - n_vectors :]


def embedded_clusters(vectors: np.ndarray, n_clusters: int, n_runs: int = 30) -> np.ndarray:
    """Scale the rows of the leading eigenvectors to unit length and cluster them by k-means.

    Parameters
    ----------
    vectors : ndarray of shape (P, >= n_clusters)
        Eigenvectors from :func:`leading_eigenvectors`; the last ``n_clusters`` columns are used.
    n_clusters : int
        Number of clusters.
    n_runs : int, default 30
        Number of runs of k-means.

    Returns
    -------
    ndarray of shape (P,), int
        Labels from 0 to n_clusters - 1. A cluster may be empty if points coincide.
    """
    rows = vectors[:, vectors.shape[1] - n_clusters :]
    return k_means(
        rows / np.maximum(np.linalg.norm(rows, axis=1, keepdims=True), 1e-300), n_clusters, n_runs
    )
