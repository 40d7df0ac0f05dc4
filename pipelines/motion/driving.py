"""Synthetic driving scenes, whose tracks have errors and gaps similar to those of real trackers.

A scene contains moving bodies and a deep background. The camera moves through the scene on a
vehicle, stands still or is held by hand. The kinds of scenes differ in lens, depth, image size and
errors. The kinds in ``TEST_KINDS`` are only for evaluation.
"""

from dataclasses import dataclass, replace

import numpy as np
from scipy.spatial.transform import Rotation

from ...vision.tracks.io import TrackSequence
from .synthetic import project

WIDTH = 1000.0  # pixels
_MIN_POINTS = 8  # minimum number of points per motion
_MIN_MOVED = 3.0  # minimum movement of a body in pixels to count as a motion


@dataclass(frozen=True)
class DrivingKind:
    """Heuristic settings for generating driving scenes of one kind.

    Parameters
    ----------
    lens : (float, float)
        Range of the focal length divided by the image width.
    aspect : (float, float)
        Range of the image width divided by its height.
    depth : (float, float)
        Range of the depth of the background, in metres.
    errors : {"normal", "heavy", "walk", "mixed"}
        Distribution of the position errors. "normal" is Gaussian with the same scale for all
        points. In the other distributions, the scale differs between points and increases with the
        speed of a point. "heavy" has heavy tails. "walk" also has heavy tails, and the errors
        accumulate over frames. "mixed" is Gaussian, with a scale that is twenty times as large for
        a tenth of the points.
    frames : (int, int), default (5, 60)
        Minimum and maximum number of frames.
    bodies : (int, int), default (1, 5)
        Minimum and maximum number of moving bodies.
    shares : (float, float), default (0.01, 0.5)
        Minimum and maximum fraction of the points on each body.
    clutter : float, default 0.4
        Fraction of the background points that have arbitrary depths. The others lie on the ground
        and on facades.
    on_axis : float, default 0.0
        Fraction of the bodies that drive along the axis of the camera, towards it or away from it.
    camera : {"driven", "static", "hand-held"}, default "driven"
        Motion of the camera.
    """

    lens: tuple[float, float]
    aspect: tuple[float, float]
    depth: tuple[float, float]
    errors: str
    frames: tuple[int, int] = (5, 60)
    bodies: tuple[int, int] = (1, 5)
    shares: tuple[float, float] = (0.01, 0.5)
    clutter: float = 0.4
    on_axis: float = 0.0
    camera: str = "driven"


TRAINING_KINDS = {
    "road": DrivingKind((0.6, 1.1), (1.4, 2.2), (4.0, 150.0), "heavy"),
    "street": DrivingKind((0.5, 0.9), (1.6, 2.4), (3.0, 80.0), "walk"),
    "plain": DrivingKind((0.5, 1.0), (1.33, 2.4), (5.0, 120.0), "normal"),
    "axis": DrivingKind(
        (0.5, 1.0), (1.4, 2.2), (3.0, 110.0), "walk", (20, 60), (1, 4), (0.015, 0.1), 0.1, 0.7
    ),
    "static": DrivingKind(
        (0.5, 1.0),
        (1.33, 2.2),
        (3.0, 60.0),
        "walk",
        (10, 60),
        (1, 4),
        (0.02, 0.2),
        0.1,
        0.0,
        "static",
    ),
}
TRAINING_KINDS["hand-held"] = replace(
    TRAINING_KINDS["static"], shares=(0.02, 0.3), camera="hand-held"
)
TEST_KINDS = {
    "wide": DrivingKind((0.4, 0.5), (2.4, 3.0), (3.0, 60.0), "walk"),
    "long": DrivingKind((1.0, 1.2), (1.33, 1.5), (8.0, 200.0), "mixed"),
    "heavy": DrivingKind((0.7, 0.9), (1.6, 2.0), (3.0, 200.0), "heavy"),
}
KINDS = TRAINING_KINDS | TEST_KINDS


def driving_sequence(kind: str, seed: int) -> TrackSequence:
    """Generate the tracks of a driving scene.

    Parameters
    ----------
    kind : str
        Name in ``KINDS``.
    seed : int

    Returns
    -------
    TrackSequence
        Tracks, which are NaN where a point is not visible. Each scene is a separate video named
        ``driving_KIND_SEED``.
    """
    settings = KINDS[kind]
    for attempt in range(100):
        scene = _scene(np.random.default_rng([seed, attempt, *kind.encode()]), settings)
        if scene is not None:
            return TrackSequence(f"driving_{kind}_{seed}", *scene)
    raise AssertionError(f"no valid scene of kind {kind!r} was generated in 100 attempts")


def _scene(rng: np.random.Generator, kind: DrivingKind) -> tuple[np.ndarray, np.ndarray] | None:
    """Return tracks (F, P, 2) and motions (P,), or None if too little motion is visible."""
    n_frames = int(rng.integers(kind.frames[0], kind.frames[1] + 1))
    focal = rng.uniform(*kind.lens) * WIDTH
    size = np.array([WIDTH, WIDTH / rng.uniform(*kind.aspect)])
    camera, n_points = _path(rng, n_frames, kind.camera), int(rng.integers(150, 400))
    n_bodies = int(rng.integers(kind.bodies[0], kind.bodies[1] + 1))
    shares = np.exp(rng.uniform(np.log(kind.shares[0]), np.log(kind.shares[1]), n_bodies))
    shares *= min(1.0, 0.7 / shares.sum())
    incomplete = rng.choice([0.0, rng.uniform(0.0, 0.7)])
    bodies = [_background(rng, n_points, kind, camera, focal, size)]
    bodies += [_body(rng, n_frames, kind, camera) for _ in shares]
    tracks, labels = [], []
    for motion, (points, share) in enumerate(zip(bodies, [1.0 - shares.sum(), *shares])):
        pixels = project(points, camera, focal, size, 1.0)
        still = project(
            np.broadcast_to(points[n_frames // 2], points.shape), camera, focal, size, 1.0
        )
        if motion and _moved(pixels, still) < _MIN_MOVED:
            continue
        chosen = _chosen(rng, pixels, max(_MIN_POINTS, round(share * n_points)), incomplete)
        if len(chosen) < _MIN_POINTS:
            continue
        tracks.append(pixels[:, chosen])
        labels.append(np.full(len(chosen), motion))
    if len(tracks) < 2 or labels[0][0] != 0:
        return None
    positions = np.concatenate(tracks, axis=1)
    return positions + _errors(rng, positions, kind.errors), np.unique(
        np.concatenate(labels), return_inverse=True
    )[1]


def _path(rng: np.random.Generator, n_frames: int, camera: str) -> tuple[np.ndarray, np.ndarray]:
    """Generate the rotations (F, 3, 3) from the world to the camera, and the camera's positions (F,
    3). The camera moves forward with a slow turn and slight pitching, does not move, or makes a
    small random walk. The x-axis points right, y down, and z ahead."""
    t = np.arange(n_frames)
    if camera == "hand-held":
        walk = np.cumsum(rng.normal(0.0, [[0.003], [0.02]], (n_frames, 2, 3)), axis=0)
        return Rotation.from_rotvec(walk[:, 0]).as_matrix(), walk[:, 1]
    moves = float(camera != "static")
    yaw = moves * t * rng.normal(0.0, 0.004)
    pitch = moves * np.cumsum(rng.normal(0.0, 0.001, n_frames))
    speed = moves * rng.uniform(0.15, 1.2)
    steps = speed * np.column_stack([np.sin(yaw), np.zeros(n_frames), np.cos(yaw)])
    places = np.cumsum(steps, axis=0) - steps[0]
    return Rotation.from_euler("yx", np.column_stack([-yaw, pitch])).as_matrix(), places


def _background(
    rng: np.random.Generator,
    n_points: int,
    kind: DrivingKind,
    camera: tuple[np.ndarray, np.ndarray],
    focal: float,
    size: np.ndarray,
) -> np.ndarray:
    """Generate static points (F, n, 3) on the ground, on facades along the road and on other
    objects. Each point is in view in at least one frame."""
    n = 12 * n_points
    frame, height = rng.integers(len(camera[0]), size=n), rng.uniform(1.2, 1.8)
    rays = np.column_stack([rng.uniform(-0.5, 0.5, (n, 2)) * size, np.full(n, focal)]) / focal
    least, most = kind.depth
    depth = np.exp(rng.uniform(np.log(least), np.log(most), n))
    ground = height / np.maximum(rays[:, 1], 1e-3)
    front = rng.uniform(5.0, 20.0) / np.maximum(np.abs(rays[:, 0]), 1e-3)
    depth = np.where(
        rng.random(n) < 1.0 - kind.clutter,
        np.minimum(np.minimum(ground, front), depth.max()),
        depth,
    )
    depth = np.clip(np.minimum(depth, ground), least, most)
    points = np.einsum("nji,nj->ni", camera[0][frame], rays * depth[:, None]) + camera[1][frame]
    return np.broadcast_to(points, (len(camera[0]), n, 3))


def _body(
    rng: np.random.Generator,
    n_frames: int,
    kind: DrivingKind,
    camera: tuple[np.ndarray, np.ndarray],
) -> np.ndarray:
    """Generate points (F, n, 3) on the sides of a box that moves along, against or across the
    road."""
    sides = np.array([rng.uniform(0.6, 2.6), rng.uniform(1.2, 3.2), rng.uniform(0.6, 9.0)])
    heading = rng.choice(
        [0.0, np.pi, np.pi / 2, -np.pi / 2], p=[0.4, 0.3, 0.15, 0.15]
    ) + rng.normal(0.0, 0.1)
    middle = n_frames // 2
    on_axis = kind.on_axis > 0 and rng.random() < kind.on_axis
    if on_axis:
        ahead_x, _, ahead_z = camera[0][middle][2]
        heading = np.arctan2(ahead_x, ahead_z) + rng.choice([0.0, np.pi]) + rng.normal(0.0, 0.01)
    ahead = np.exp(rng.uniform(np.log(max(5.0, kind.depth[0])), np.log(min(60.0, kind.depth[1]))))
    place = camera[1][middle] + camera[0][middle].T @ np.array(
        [rng.uniform(-0.35, 0.35) * (min(ahead, 10.0) if on_axis else ahead), 0.0, ahead]
    )
    t = np.arange(n_frames)[:, None] - middle
    speed, turn = rng.uniform(0.1, 1.4), rng.normal(0.0, 0.004)
    angles = heading + t[:, 0] * turn
    centres = place + speed * t * np.array([np.sin(heading), 0.0, np.cos(heading)])
    n = 600
    points = rng.uniform(-0.5, 0.5, (n, 3))
    face = rng.integers(3, size=n)
    points[np.arange(n), face] = np.sign(rng.random(n) - 0.5) / 2
    points *= sides
    points[:, 1] += rng.uniform(0.0, 0.8)
    rotations = Rotation.from_euler("y", angles[:, None]).as_matrix()
    seen_from = camera[1][middle] - place
    normals = np.zeros((n, 3))
    normals[np.arange(n), face] = np.sign(points[np.arange(n), face])
    facing = (normals @ rotations[middle].T) @ seen_from > 0
    facing[face == 1] = False  # roofs and floors
    return np.einsum("tij,pj->tpi", rotations, points[facing]) + centres[:, None]


def _moved(pixels: np.ndarray, still: np.ndarray) -> float:
    """Compute the movement of a body in pixels, which is the median over its points of the maximum
    distance from a static body."""
    apart = np.linalg.norm(pixels - still, axis=2)
    seen = np.isfinite(apart)
    return (
        float(np.median(np.nanmax(np.where(seen.any(axis=0), apart, 0.0), axis=0)))
        if seen.any()
        else 0.0
    )


def _chosen(rng: np.random.Generator, pixels: np.ndarray, n: int, incomplete: float) -> np.ndarray:
    """Return the indices of at most ``n`` points. A share ``incomplete`` is in view in at least
    five frames and a third of all frames, and the others are in view in all frames."""
    count = np.isfinite(pixels).all(axis=2).sum(axis=0)
    whole = rng.permutation(np.flatnonzero(count == len(pixels)))
    part = rng.permutation(
        np.flatnonzero((count < len(pixels)) & (count >= max(5, len(pixels) / 3)))
    )
    some = part[: round(incomplete * n)]
    return np.concatenate([whole[: n - len(some)], some])


def _errors(rng: np.random.Generator, tracks: np.ndarray, errors: str) -> np.ndarray:
    """Generate position errors (F, P, 2) in pixels."""
    n_points = tracks.shape[1]
    if errors == "normal":
        return rng.uniform(0.1, 0.5) * rng.standard_normal(tracks.shape)
    step = np.linalg.norm(np.diff(tracks, axis=0), axis=2)
    speed = np.array([np.nanmedian(s) if np.isfinite(s).any() else 0.0 for s in step.T])
    scale = 0.06 * np.exp(rng.normal(0.0, 0.7, n_points)) * (1.0 + speed / 8.0)
    if errors == "mixed":
        scale[rng.random(n_points) < 0.1] *= 20.0
        return scale[:, None] * rng.standard_normal(tracks.shape)
    tails = rng.standard_t(2.5, tracks.shape) * scale[:, None]
    if errors == "walk":
        tails += 0.3 * np.cumsum(rng.standard_normal(tracks.shape), axis=0) * scale[:, None]
    return np.clip(tails, -15.0, 15.0)
