"""Four models of rigid motion between two frames: batched least-squares fits and distances.

A row z = (x, y, x', y') contains the coordinates of a point in two frames. The models are:

* "affinity": a plane in 4-D, exact for a planar body under an affine camera
* "homography": a planar body under a perspective camera, or any body under a rotating camera
* "fundamental": the fundamental matrix of any rigid body
* "epipolar": affine epipolar geometry, a hyperplane in 4-D

Each fit is the eigenvector with the smallest eigenvalue of a sum of moments, so many fits can be
computed as a batch of small eigenproblems.
"""

from typing import NamedTuple

import numpy as np

from ....learners.compilation import jit


class Geometry(NamedTuple):
    """Properties of a geometric model of the motion between two frames.

    They are the number of points that determine the model, the number of equations per point, the
    number of parameters, and the dimension of the manifold that the model defines in the 4-D space
    of the coordinates x, y, x', y'.
    """

    name: str
    n_minimal: int
    n_equations: int
    n_parameters: int
    dimension: int


GEOMETRIES = (
    Geometry("affinity", 3, 2, 6, 2),
    Geometry("homography", 4, 2, 8, 2),
    Geometry("fundamental", 8, 1, 7, 3),
    Geometry("epipolar", 4, 1, 4, 3),
)
_TINY = 1e-12


def moments(name: str, rows: np.ndarray) -> np.ndarray:
    """Compute each point's contribution to the normal matrix of a least-squares fit.

    Parameters
    ----------
    name : str
        Name of the model: "affinity", "homography", "fundamental" or "epipolar".
    rows : ndarray of shape (n, 4)
        Coordinates x, y, x', y' of the points, approximately standardised.

    Returns
    -------
    ndarray of shape (n, q, q)
        Contributions, which :func:`fit` expects to be summed over the points of a motion. The size
        q is 5 for the affine models "affinity" and "epipolar", and 9 for the other two models.
    """
    x, y, x2, y2 = rows.T
    one, zero = np.ones(len(rows)), np.zeros(len(rows))
    if name == "homography":
        first = np.column_stack([-x, -y, -one, zero, zero, zero, x2 * x, x2 * y, x2])
        second = np.column_stack([zero, zero, zero, -x, -y, -one, y2 * x, y2 * y, y2])
        return first[:, :, None] * first[:, None, :] + second[:, :, None] * second[:, None, :]
    if name == "fundamental":
        products = np.column_stack([x2 * x, x2 * y, x2, y2 * x, y2 * y, y2, x, y, one])
    else:
        products = np.column_stack([rows, one])
    return products[:, :, None] * products[:, None, :]


def fit(name: str, sums: np.ndarray) -> np.ndarray:
    """Fit several models of one type by least squares, given sums of moments.

    Parameters
    ----------
    name : str
        Name of the model: "affinity", "homography", "fundamental" or "epipolar".
    sums : ndarray of shape (m, q, q)
        Sum of :func:`moments` over the points of each of m fits.

    Returns
    -------
    ndarray of shape (m, r, q)
        Fitted models, each given by r vectors: two for "affinity", and one for the other models.
        The vectors have unit length, without the last entry for the affine models, which is the
        offset.
    """
    if name in ("homography", "fundamental"):
        return np.linalg.eigh(sums)[1][:, :, 0][:, None, :]
    n = np.maximum(sums[:, 4, 4], _TINY)
    mean = sums[:, :4, 4] / n[:, None]
    vectors = np.linalg.eigh(
        sums[:, :4, :4] - n[:, None, None] * mean[:, :, None] * mean[:, None, :]
    )[1]
    normals = vectors[:, :, : 2 if name == "affinity" else 1].transpose(0, 2, 1)
    return np.concatenate([normals, -np.einsum("mrj,mj->mr", normals, mean)[:, :, None]], axis=2)


def distances(name: str, models: np.ndarray, rows: np.ndarray) -> np.ndarray:
    """Compute the distance of each point from each model.

    Distances from the affine models are orthogonal distances in 4-D, and those from the other
    models are Sampson distances.

    Parameters
    ----------
    name : str
        Name of the model: "affinity", "homography", "fundamental" or "epipolar".
    models : ndarray of shape (m, r, q)
        Models from :func:`fit`.
    rows : ndarray of shape (n, 4)
        Coordinates x, y, x', y' of the points.

    Returns
    -------
    ndarray of shape (m, n), float32
        Distances, in the same units as ``rows``.
    """
    if name == "homography":
        return _homography_distances(np.ascontiguousarray(models[:, 0]), np.ascontiguousarray(rows))
    if name == "fundamental":
        return _fundamental_distances(models[:, 0], rows)
    m, r, q = models.shape
    apart = models.reshape(m * r, q)[:, :4] @ rows.T + models.reshape(m * r, q)[:, 4:]
    return np.sqrt(np.square(apart).reshape(m, r, len(rows)).sum(axis=1)).astype(np.float32)


def own_distances(name: str, models: np.ndarray, rows: np.ndarray) -> np.ndarray:
    """Compute the distance of each point from its own model, as in :func:`distances`.

    Parameters
    ----------
    name : str
        Name of the model, as in :func:`distances`.
    models : ndarray of shape (n, r, q)
        Models from :func:`fit`.
    rows : ndarray of shape (n, 4)
        Coordinates x, y, x', y' of the points.

    Returns
    -------
    ndarray of shape (n,), float32
        Distances, in the same units as ``rows``.
    """
    if name not in ("homography", "fundamental"):
        apart = np.einsum("nrq,nq->nr", models[:, :, :4], rows) + models[:, :, 4]
        return np.sqrt(np.square(apart).sum(axis=1)).astype(np.float32)
    (x, y, x2, y2), h = np.ascontiguousarray(rows.T), np.ascontiguousarray(models[:, 0].T)
    a, b, last = h[0] * x + h[1] * y + h[2], h[3] * x + h[4] * y + h[5], h[6] * x + h[7] * y + h[8]
    if name == "homography":
        return _first_order(h, x2, y2, last, x2 * last - a, y2 * last - b)
    c, d = h[0] * x2 + h[3] * y2 + h[6], h[1] * x2 + h[4] * y2 + h[7]
    return _sampson(x2 * a + y2 * b + last, a, b, c, d)


def _plain_homography_distances(models: np.ndarray, rows: np.ndarray) -> np.ndarray:
    first = np.column_stack([rows[:, :2], np.ones(len(rows))]).T
    x2, y2 = rows[:, 2], rows[:, 3]
    w = models[:, 6:] @ first
    return _first_order(
        models.T[:, :, None],
        x2,
        y2,
        w,
        x2 * w - models[:, :3] @ first,
        y2 * w - models[:, 3:6] @ first,
    )


def _first_order(
    h: np.ndarray, x2: np.ndarray, y2: np.ndarray, w: np.ndarray, e1: np.ndarray, e2: np.ndarray
) -> np.ndarray:
    """Compute first-order distances to homographies ``h`` from the algebraic errors ``e1`` and
    ``e2``."""
    a, b, c, d = x2 * h[6] - h[0], x2 * h[7] - h[1], y2 * h[6] - h[3], y2 * h[7] - h[4]
    square = w * w
    p, q, r = a * a + b * b + square, a * c + b * d, c * c + d * d + square
    error = r * e1 * e1 - 2.0 * q * e1 * e2 + p * e2 * e2
    return np.sqrt(np.maximum(error / np.maximum(p * r - q * q, 1e-24), 0.0)).astype(np.float32)


@jit(plain=_plain_homography_distances, by_size=False)
def _homography_distances(models: np.ndarray, rows: np.ndarray) -> np.ndarray:
    """Compute first-order geometric distances: the two algebraic errors e, weighted by the inverse
    of J J' with J = de/dz."""
    out = np.empty((len(models), len(rows)), np.float32)
    for m in range(len(models)):
        h = models[m]
        for i in range(len(rows)):
            x, y, x2, y2 = rows[i]
            w = h[6] * x + h[7] * y + h[8]
            e1 = x2 * w - (h[0] * x + h[1] * y + h[2])
            e2 = y2 * w - (h[3] * x + h[4] * y + h[5])
            a, b = x2 * h[6] - h[0], x2 * h[7] - h[1]
            c, d = y2 * h[6] - h[3], y2 * h[7] - h[4]
            p, q, r = a * a + b * b + w * w, a * c + b * d, c * c + d * d + w * w
            determinant = max(p * r - q * q, 1e-24)
            out[m, i] = np.sqrt(
                max((r * e1 * e1 - 2.0 * q * e1 * e2 + p * e2 * e2) / determinant, 0.0)
            )
    return out


def _fundamental_distances(models: np.ndarray, rows: np.ndarray) -> np.ndarray:
    """Compute the Sampson distance to fundamental matrices."""
    first, second = (
        np.column_stack([rows[:, part], np.ones(len(rows))]).T
        for part in (slice(0, 2), slice(2, 4))
    )
    a, b, last = models[:, :3] @ first, models[:, 3:6] @ first, models[:, 6:] @ first
    c, d = models[:, [0, 3, 6]] @ second, models[:, [1, 4, 7]] @ second
    e = rows[:, 2] * a + rows[:, 3] * b + last
    return _sampson(e, a, b, c, d)


def _sampson(
    e: np.ndarray, a: np.ndarray, b: np.ndarray, c: np.ndarray, d: np.ndarray
) -> np.ndarray:
    """Compute the Sampson distance from the algebraic error ``e`` and its four derivatives."""
    return (abs(e) / np.sqrt(np.maximum(a * a + b * b + c * c + d * d, 1e-24))).astype(np.float32)
