"""Synthetic perspective sequences of rigid bodies, with a moving camera, lost tracks and drift."""

from dataclasses import dataclass

import numpy as np
from scipy.spatial.transform import Rotation

from ...vision.tracks.io import TrackSequence

SIZE = (640.0, 480.0)  # pixels
TRAINING_SEEDS = range(80)
TEST_SEEDS = range(1000, 1060)
_MIN_FRAMES_SEEN = 8


@dataclass(frozen=True)
class SceneSettings:
    """Heuristic settings that determine the difficulty of the scenes.

    Parameters
    ----------
    motions : tuple of int, default (2, 3)
        Numbers of motions, including the background.
    frames : tuple of int, default (50, 100)
        Minimum and maximum number of frames.
    noise : float, default 0.3
        Standard deviation of the position noise, in pixels.
    lost_fraction : float, default 0.5
        Fraction of the points that are tracked in only some of the frames. In addition, a third of
        all points have a short gap.
    drifting : float, default 0.03
        Fraction of the points that start to drift away from their true path in some frame.
    """

    motions: tuple[int, ...] = (2, 3)
    frames: tuple[int, int] = (50, 100)
    noise: float = 0.3
    lost_fraction: float = 0.5
    drifting: float = 0.03


def perspective_sequence(seed: int, settings: SceneSettings | None = None) -> TrackSequence:
    """Generate the tracks of a synthetic scene.

    Parameters
    ----------
    seed : int
    settings : SceneSettings or None, default None
        Settings of the scene; None means the defaults.

    Returns
    -------
    TrackSequence
        Tracks, which are NaN where a point is outside the image, behind the camera or lost. Each
        scene is a separate video, named ``perspective_SEED``. A point that drifts keeps the label
        of its body.
    """
    settings = settings or SceneSettings()
    rng = np.random.default_rng(seed)
    n_frames = int(rng.integers(settings.frames[0], settings.frames[1] + 1))
    n_motions = int(rng.choice(settings.motions))
    focal = rng.uniform(280, 450)
    camera = _path(rng, n_frames, speed=rng.uniform(0.02, 0.05), turn=rng.uniform(0.0, 0.004))
    tracks, labels = [], []
    for motion in range(n_motions):
        points = _background(rng, focal) if motion == 0 else _body(rng)
        turned = np.broadcast_to(points, (n_frames, *points.shape))
        if motion:
            centre = (
                np.array(
                    [rng.uniform(-0.25, 0.25) * SIZE[0], rng.uniform(-0.25, 0.25) * SIZE[1], focal]
                )
                / focal
            )
            centre = centre * rng.uniform(2.5, 6.0)
            rotations, places = _path(
                rng, n_frames, speed=rng.uniform(0.005, 0.025), turn=rng.uniform(0.0, 0.006)
            )
            turned = np.einsum("tij,pj->tpi", rotations, points) + (centre + places)[:, None]
        tracks.append(project(turned, camera, focal, np.array(SIZE), 0.3))
        labels.append(np.full(len(points), motion))
    positions, truth = np.concatenate(tracks, axis=1), np.concatenate(labels)
    _lose(rng, positions, settings)
    _drift(rng, positions, settings)
    positions += settings.noise * rng.standard_normal(positions.shape)
    seen = np.isfinite(positions).all(axis=2)
    kept = seen.sum(axis=0) >= _MIN_FRAMES_SEEN
    # A motion with too few visible points does not count.
    kept &= (np.bincount(truth[kept], minlength=n_motions) >= 8)[truth]
    if len(np.unique(truth[kept])) < 2:
        return perspective_sequence(seed + 1_000_000, settings)
    return TrackSequence(
        f"perspective_{seed}", positions[:, kept], np.unique(truth[kept], return_inverse=True)[1]
    )


def _path(
    rng: np.random.Generator, n_frames: int, speed: float, turn: float
) -> tuple[np.ndarray, np.ndarray]:
    """Generate the rotations (F, 3, 3) and translations (F, 3) of a smooth motion, which is steady
    with a slow oscillation."""
    t = np.arange(n_frames)[:, None]
    axis, direction, swing = (v / np.linalg.norm(v) for v in rng.standard_normal((3, 3)))
    wave = np.sin(2 * np.pi * t / rng.uniform(40, 120) + rng.uniform(0, 6.3))
    rotations = Rotation.from_rotvec(t * turn * axis + 4.0 * turn * wave * swing).as_matrix()
    return rotations, t * speed * direction + 5.0 * speed * (wave - wave[0]) * swing


def _background(rng: np.random.Generator, focal: float) -> np.ndarray:
    """Generate points (n, 3) of a scene with relief that fills the first image, with a wall, a
    floor or clutter at all depths."""
    n = int(rng.integers(80, 200))
    rays = np.column_stack([rng.uniform(-0.5, 0.5, (n, 2)) * SIZE, np.full(n, focal)]) / focal
    kind = rng.integers(3)
    if kind == 0:
        depth = rng.uniform(4, 8) / (1.0 + rays[:, :2] @ rng.uniform(-0.6, 0.6, 2))
    elif kind == 1:
        depth = np.where(rays[:, 1] > 0.05, 1.5 / np.maximum(rays[:, 1], 0.15), rng.uniform(8, 12))
    else:
        depth = np.exp(rng.uniform(np.log(2.0), np.log(15.0), n))
    return rays * depth[:, None]


def _body(rng: np.random.Generator) -> np.ndarray:
    """Generate points (n, 3) on the sides of a box that face the camera, relative to its centre."""
    n = int(rng.integers(20, 70))
    sides = rng.uniform(1.0, 3.0, 3)
    points = rng.uniform(-0.5, 0.5, (n, 3))
    face = rng.integers(3, size=n)
    points[np.arange(n), face] = np.where(face == 2, -0.5, 0.5)
    return (points * sides) @ Rotation.random(random_state=int(rng.integers(2**31))).as_matrix().T


def project(
    points: np.ndarray,
    camera: tuple[np.ndarray, np.ndarray],
    focal: float,
    size: np.ndarray,
    nearest: float,
) -> np.ndarray:
    """Project points of shape (F, P, 3) to pixels of shape (F, P, 2).

    The camera is given by its rotations and positions. Points outside the image, or closer than the
    minimum depth, become NaN.
    """
    rotations, places = camera
    seen = np.einsum("tij,tpj->tpi", rotations, points - places[:, None])
    depth = np.where(seen[:, :, 2] > nearest, seen[:, :, 2], np.nan)
    pixels = focal * seen[:, :, :2] / depth[:, :, None] + size / 2
    with np.errstate(invalid="ignore"):
        pixels[((pixels < 0) | (pixels > size)).any(axis=2)] = np.nan
    return pixels


def _lose(rng: np.random.Generator, tracks: np.ndarray, settings: SceneSettings) -> None:
    """Restrict some tracks to a part of the frames, and leave short gaps in others."""
    n_frames, n_points, _ = tracks.shape
    for p in np.flatnonzero(rng.random(n_points) < settings.lost_fraction):
        length = int(rng.uniform(0.3, 0.9) * n_frames)
        start = int(rng.integers(n_frames - length + 1))
        tracks[:start, p] = tracks[start + length :, p] = np.nan
    if settings.lost_fraction > 0:
        for p in np.flatnonzero(rng.random(n_points) < 1 / 3):
            start = int(rng.integers(n_frames))
            tracks[start : start + int(rng.integers(3, 10)), p] = np.nan


def _drift(rng: np.random.Generator, tracks: np.ndarray, settings: SceneSettings) -> None:
    """Make some points drift away from their true path, as at the border of an occluding body."""
    n_frames, n_points, _ = tracks.shape
    for p in np.flatnonzero(rng.random(n_points) < settings.drifting):
        start = int(rng.integers(n_frames))
        drift = rng.standard_normal(2) * 0.8
        tracks[start:, p] += np.arange(n_frames - start)[:, None] * drift
