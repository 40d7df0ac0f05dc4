"""Low-rank completion of tracks with gaps, and removal of points seen in only a few frames."""

import numpy as np

_FARTHEST = 1e9  # pixels: larger than any image, with a finite fourth power (heuristic)


def complete_tracks(tracks: np.ndarray, rank: int = 8, n_iterations: int = 20) -> np.ndarray:
    """Fill missing entries by low-rank completion, without changing observed entries.

    Each gap is first filled using the mean velocity of eight visible points, namely those whose
    motion is most similar in the frames in which both points are visible. The missing entries are
    then repeatedly replaced by the corresponding entries of the best low-rank approximation, since
    tracks of K rigid motions under an affine camera have a rank of at most 4K. Since there are few
    iterations, initial values that the observed entries do not determine hardly change.

    Parameters
    ----------
    tracks : ndarray of shape (F, P, 2)
        Positions in pixels; NaN where a point is not visible.
    rank : int, default 8
        Rank of the approximation after the mean track is subtracted.
    n_iterations : int, default 20
        Number of iterations.

    Returns
    -------
    ndarray of shape (F, P, 2)
        Tracks without NaN; ``tracks`` itself if no entries are missing.

    Raises
    ------
    ValueError
        If the shape is not (F, P, 2), a point is never seen, or a coordinate is infinite or exceeds
        1e9 pixels.
    """
    tracks = np.asarray(tracks, dtype=float)
    check_shape(tracks)
    far = np.argwhere(np.abs(tracks) > _FARTHEST)  # False for NaN
    if len(far):
        frame, point, _ = far[0].tolist()
        x, y = tracks[frame, point]
        raise ValueError(
            f"point {point} in frame {frame} has the coordinates ({x:g}, {y:g}); expected "
            "finite pixels, or NaN for a point that is not visible"
        )
    seen = np.isfinite(tracks).all(axis=2)
    if seen.all():
        return tracks
    never = np.flatnonzero(~seen.any(axis=0))
    if len(never):
        raise ValueError(
            f"{len(never)} of {tracks.shape[1]} points are not visible in any frame, the first "
            f"being point {never[0]}; remove them"
        )
    n_frames, n_points, _ = tracks.shape
    filled = _bridge(tracks, seen).transpose(1, 0, 2).reshape(n_points, -1)
    missing = ~np.repeat(seen.T, 2, axis=1)
    for _ in range(n_iterations):
        mean = filled.mean(axis=0)
        u, s, vt = np.linalg.svd(filled - mean, full_matrices=False)
        filled[missing] = ((u[:, :rank] * s[:rank]) @ vt[:rank] + mean)[missing]
    return filled.reshape(n_points, n_frames, 2).transpose(1, 0, 2)


def _bridge(tracks: np.ndarray, seen: np.ndarray, n_neighbours: int = 8) -> np.ndarray:
    """Extrapolate each track with the mean velocity of the points with the most similar motion."""
    moved = seen[1:] & seen[:-1]
    velocity = np.where(
        moved[:, :, None], np.nan_to_num(tracks[1:]) - np.nan_to_num(tracks[:-1]), 0.0
    )
    m = moved.T.astype(float)
    v = velocity.transpose(1, 0, 2)
    square = (v**2).sum(axis=2)
    common = m @ m.T
    apart = square @ m.T + m @ square.T - 2.0 * np.einsum("ptc,qtc->pq", v, v, optimize=True)
    dissimilarity = np.where(common > 0, apart / np.maximum(common, 1.0), np.inf)
    mean_velocity = velocity.sum(axis=1) / np.maximum(moved.sum(axis=1), 1)[:, None]
    out = tracks.copy()
    for p in np.flatnonzero(~seen.all(axis=0)):
        order = np.argsort(dissimilarity[p], kind="stable")
        order = order[np.isfinite(dissimilarity[p][order])]
        known = moved[:, order]
        use = known & (np.cumsum(known, axis=1) <= n_neighbours)
        count = use.sum(axis=1)
        alike = (
            np.einsum("tq,tqc->tc", use.astype(float), velocity[:, order])
            / np.maximum(count, 1)[:, None]
        )
        step = np.where(count[:, None] > 0, alike, mean_velocity)
        frames = np.flatnonzero(seen[:, p])
        for t in range(frames[0] - 1, -1, -1):
            out[t, p] = out[t + 1, p] - step[t]
        for t in range(frames[0] + 1, len(tracks)):
            if not seen[t, p]:
                out[t, p] = out[t - 1, p] + step[t - 1]
    return out


def thin_tracks(tracks: np.ndarray, min_frames: int) -> tuple[np.ndarray, np.ndarray]:
    """Select the points that are seen in at least ``min_frames`` frames.

    Parameters
    ----------
    tracks : ndarray of shape (F, P, 2)
        Positions in pixels; NaN where a point is not visible.
    min_frames : int
        Minimum number of frames in which a point is seen.

    Returns
    -------
    tracks : ndarray of shape (F, P', 2)
        Tracks of the selected points.
    kept : ndarray of shape (P',), int
        Indices of the selected points in the parameter ``tracks``.
    """
    kept = np.flatnonzero(np.isfinite(tracks).all(axis=2).sum(axis=0) >= min_frames)
    return tracks[:, kept], kept


def check_shape(array: np.ndarray) -> None:
    """Check that the shape is (F, P, 2), and raise a ValueError otherwise."""
    if array.ndim != 3 or array.shape[2] != 2:
        raise ValueError(f"tracks have shape {array.shape}; expected (n_frames, n_points, 2)")
