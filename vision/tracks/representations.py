"""Vectors that represent tracks: velocities or positions, and their projections."""

from __future__ import annotations

import numpy as np


def velocities(tracks: np.ndarray) -> np.ndarray:
    """Velocity vectors followed by the last position, eq. (20) of Barbu et al. (2014).

    Parameters
    ----------
    tracks : ndarray of shape (F, P, 2)
        Positions in pixels.

    Returns
    -------
    ndarray of shape (P, 2F)
        Row p holds ``x1 - x2, y1 - y2, ..., xF, yF`` of point p.
    """
    return np.concatenate([tracks[:-1] - tracks[1:], tracks[-1:]]).transpose(1, 0, 2).reshape(tracks.shape[1], -1)


def positions(tracks: np.ndarray) -> np.ndarray:
    """Coordinates of each point one after another, (P, 2F), in pixels."""
    return tracks.transpose(1, 0, 2).reshape(tracks.shape[1], -1)


REPRESENTATIONS = {"velocity": velocities, "raw": positions}


def right_vectors(rows: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Right singular vectors of the measurement matrix, not scaled (Barbu et al. (2014), Algorithm
    2, steps 1 and 2).

    Parameters
    ----------
    rows : ndarray of shape (P, D)
        One point per row: the transposed measurement matrix.

    Returns
    -------
    vectors : ndarray of shape (P, n)
        Column i is v_{i+1}. Directions without energy (singular value below 1e-9 of the largest)
        are left out, all but the first.
    strengths : ndarray of shape (n,)
        Their singular values, falling.
    """
    left, strengths, _ = np.linalg.svd(rows, full_matrices=False)
    useful = max(1, int((strengths > 1e-9 * max(strengths[0], 1e-300)).sum()))
    return left[:, :useful], strengths[:useful]
