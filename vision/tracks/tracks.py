"""Checks of tracks, and an order of the points that depends on their coordinates alone."""

from __future__ import annotations

import numpy as np

from .representations import positions


def check_tracks(tracks: np.ndarray, n_motions: int | None = None) -> np.ndarray:
    """Return complete tracks as float64, or say what is wrong.

    Raises
    ------
    ValueError
        If the shape is not (F, P, 2), there are fewer than two frames, a value is not finite, ``n_motions`` is below 1 or above
        the number of points, or there are fewer than four points per motion.
    """
    tracks = np.asarray(tracks, dtype=float)
    if tracks.ndim != 3 or tracks.shape[2] != 2:
        raise ValueError(f"tracks have shape {tracks.shape}; expected (frames, points, 2)")
    n_frames, n_points, _ = tracks.shape
    if n_frames < 2:
        raise ValueError(f"tracks have {n_frames} frame{'s' * (n_frames != 1)}; motion needs at least 2")
    if n_motions is not None:
        if not 1 <= n_motions <= n_points:
            raise ValueError(f"motions is {n_motions}; expected a number from 1 to the number of points, {n_points}")
        if n_points < 4 * n_motions:
            raise ValueError(f"{n_points} points for {n_motions} motions; expected at least 4 points per motion, {4 * n_motions}")
    if not np.isfinite(tracks).all():
        raise ValueError("tracks have missing or infinite entries; complete them first (complete_tracks)")
    return tracks


def canonical_order(tracks: np.ndarray) -> np.ndarray:
    """Order of the points (P,) that depends on their coordinates alone, so that the given order has no influence."""
    return np.lexsort(positions(tracks).T[::-1])
