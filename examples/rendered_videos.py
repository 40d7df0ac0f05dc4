"""Render a video of moving textured bodies with ground truth: a hand-held camera indoors, or a
camera that drives along a street.

    python examples/rendered_videos.py driving street.avi --truth street.npz
    annealed motion segment street.avi --overlay coloured.avi

TRUTH holds ``labels`` (frames, H, W): 0 where the static scene is visible, otherwise the number of
the body.
"""

import argparse
from pathlib import Path

import cv2
import numpy as np

SIZE = (640, 360)
FOCAL = 460.0
NEAREST = 0.7  # minimum distance of drawn objects from the camera, in metres


def texture(rng, shape=(192, 192)):
    """Return a random texture of several scales with some shapes, (H, W, 3), uint8."""
    colour, total = rng.uniform(70, 190) + rng.normal(0, 25, 3), np.zeros((*shape, 3))
    for cell, strength in ((48, 45), (16, 30), (6, 25)):
        coarse = rng.normal(
            0, strength, (shape[0] // cell + 2, shape[1] // cell + 2, 1)
        ) * rng.uniform(0.7, 1, 3)
        total += cv2.resize(coarse.astype(np.float32), shape[::-1], interpolation=cv2.INTER_CUBIC)
    picture = np.clip(colour + total, 0, 255).astype(np.uint8)
    for x, y, w, h in rng.integers(4, 60, (14, 4)):
        corner = (int(x * 3), int(y * 3))
        shade = np.clip(rng.uniform(20, 235) + rng.normal(0, 30, 3), 0, 255).tolist()
        cv2.rectangle(picture, corner, (corner[0] + int(w), corner[1] + int(h) // 2), shade, -1)
    return picture


def plane(origin, first, second, n, m):
    """Return a rectangle as n x m quadrangles, (n * m, 4, 3)."""
    u, v = np.meshgrid(np.arange(n + 1) / n, np.arange(m + 1) / m, indexing="ij")
    grid = np.asarray(origin) + u[..., None] * first + v[..., None] * second
    return np.stack([grid[:-1, :-1], grid[1:, :-1], grid[1:, 1:], grid[:-1, 1:]], axis=2).reshape(
        -1, 4, 3
    )


def box(centre, size):
    """Return the six sides of a box, (6, 4, 3)."""
    x, y, z = np.diag(size)
    low = np.asarray(centre) - np.asarray(size) / 2
    pairs = (
        (low, x, y),
        (low + z, x, y),
        (low, z, y),
        (low + x, z, y),
        (low, x, z),
        (low + y, x, z),
    )
    return np.concatenate([plane(origin, a, b, 1, 1) for origin, a, b in pairs])


def turned(yaw, pitch=0.0, roll=0.0):
    """Return a rotation matrix (3, 3)."""
    return cv2.Rodrigues(np.array([0, yaw, 0.0]))[0] @ cv2.Rodrigues(np.array([pitch, 0, roll]))[0]


def smooth(rng, n_frames, size):
    """Return a smooth random walk, (n_frames, 3)."""
    steps = cv2.GaussianBlur(rng.normal(0, size, (n_frames + 40, 3)), (1, 0), 4.0)[
        20 : 20 + n_frames
    ]
    return np.cumsum(steps, axis=0)


def indoors(rng, n_frames):
    """Return the quadrangles of the static scene, the bodies, and the poses of bodies and
    camera."""
    x, y, z = 7.0 * np.eye(3)
    still = [
        plane([-3.5, -2, 7], x, 4 / 7 * y, 4, 2),
        plane([-3.5, -2, 0], z, 4 / 7 * y, 4, 2),
        plane([3.5, -2, 0], z, 4 / 7 * y, 4, 2),
        plane([-3.5, 1.6, 0], x, z, 4, 4),
        box([-2, 0.8, 5.5], [1.2, 1.6, 0.8]),
        box([2.4, 0.9, 4.5], [1, 1.4, 1]),
    ]
    bodies = [box([0, 0, 0], [0.9, 1.1, 0.7]), box([0, 0, 0], [0.7, 0.7, 0.9])]
    t = np.arange(n_frames)[:, None]
    starts, speeds = (
        np.array([[-1.3, 0.6, 3.6], [1.0, -0.2, 3.0]]),
        np.array([[0.035, 0.0, 0.02], [-0.02, 0.012, 0.025]]),
    )
    poses = [
        [(turned(0.4 + spin * i), place) for i, place in enumerate(start + t * speed)]
        for start, speed, spin in zip(starts, speeds, (0.012, -0.015))
    ]
    tilt, shift = smooth(rng, n_frames, 0.012), smooth(rng, n_frames, 0.05)
    camera = [(turned(*angles), place * [1, 0.4, 0.6]) for angles, place in zip(tilt, shift)]
    return still, bodies, poses, camera


def street(rng, n_frames):
    """Return the same for a street, along which the camera moves 0.45 m per frame."""
    still = [plane([-7, 1.5, 0.5], [14, 0, 0], [0, 0, 100], 5, 40)]
    for side in (-1, 1):
        z = 4.0
        while z < 100:
            width, depth, height = rng.uniform(5, 12), rng.uniform(7.5, 11), rng.uniform(4, 10)
            still.append(plane([side * depth, 1.5, z], [0, 0, width], [0, -height, 0], 3, 2))
            still.append(plane([side * depth, 1.5, z], [side * 8, 0, 0], [0, -height, 0], 2, 2))
            z += width + rng.uniform(0, 3)
    still.append(plane([-60, 1.5, 110], [120, 0, 0], [0, -30, 0], 6, 2))
    bodies = [
        box([0, 0, 0], [1.8, 1.4, 4]),
        box([0, 0, 0], [2.0, 2.2, 5]),
        box([0, 0, 0], [0.8, 1.7, 0.8]),
    ]
    paths = (
        ([1.6, 0.8, 12], [0, 0, 0.62]),
        ([-2.6, 0.4, 45], [0, 0, -0.35]),
        ([-5.0, 0.65, 17], [0.09, 0, 0.1]),
    )
    t = np.arange(n_frames)[:, None]
    poses = [
        [(np.eye(3), place) for place in np.array(start) + t * np.array(speed)]
        for start, speed in paths
    ]
    tilt = smooth(rng, n_frames, 0.002)
    camera = [(turned(*angles), np.array([0, 0, 0.45 * i])) for i, angles in enumerate(tilt)]
    return still, bodies, poses, camera


def avenue(rng, n_frames):
    """Return the same for an avenue, along which the camera moves 0.38 m per frame and turns slowly
    to the right, with facades on the right, trees and parked cars on the left."""
    still = [plane([-40, 1.4, 0.5], [80, 0, 0], [0, 0, 110], 12, 44)]
    z = 6.0
    while z < 110:
        width, height = rng.uniform(6, 14), rng.uniform(5, 14)
        still.append(plane([9.0 + 0.05 * z, 1.4, z], [0, 0, width], [0, -height, 0], 3, 3))
        still.append(plane([9.0 + 0.05 * z, 1.4, z], [9, 0, 0], [0, -height, 0], 2, 3))
        still.append(box([-6.5 + rng.uniform(-0.5, 0.5), 0.75, z + 2], [1.7, 1.3, 4.2]))
        still.append(box([-8.5, -0.6, z + rng.uniform(4, 6)], [0.5, 4.0, 0.5]))
        still.append(box([-8.5, -3.6, z + 5], [3.0, 2.4, 3.0]))
        z += width + rng.uniform(0, 2)
    still.append(plane([-90, 1.4, 120], [180, 0, 0], [0, -25, 0], 8, 2))
    bodies = [
        box([0, 0, 0], [1.9, 2.0, 4.6]),
        box([0, 0, 0], [1.8, 1.4, 4.2]),
        box([0, 0, 0], [0.7, 1.8, 1.7]),
    ]
    paths = (
        ([0.3, 0.4, 10], [0.03, 0, 0.5]),
        ([-2.4, 0.7, 40], [0.01, 0, -0.3]),
        ([3.6, 0.5, 13], [0.02, 0, 0.24]),
    )
    t = np.arange(n_frames)[:, None]
    poses = [
        [(turned(0.003 * i), place) for i, place in enumerate(np.array(start) + t * speed)]
        for start, speed in paths
    ]
    tilt = smooth(rng, n_frames, 0.002) + 0.004 * t * [1.0, 0.0, 0.0]
    headings = 0.002 * t[:, 0] ** 2 * 0.38
    places = np.column_stack([headings, 0.0 * headings, 0.38 * t[:, 0]])
    return still, bodies, poses, [(turned(*angles), at) for angles, at in zip(tilt, places)]


SCENES = {"indoors": indoors, "driving": street, "avenue": avenue}


def draw(frame, labels, corners, picture, label):
    """Draw a textured quadrangle (4, 3), in the camera's coordinates, over the image."""
    if corners[:, 2].min() < NEAREST:
        return
    pixels = (FOCAL * corners[:, :2] / corners[:, 2:] + np.array(SIZE) / 2).astype(np.float32)
    low = np.floor(pixels.min(axis=0)).clip(0, SIZE).astype(int)
    high = np.ceil(pixels.max(axis=0) + 1).clip(0, SIZE).astype(int)
    if (high <= low).any():
        return
    shrink = 1.0 / max(1.0, np.sqrt(picture.size / 3 / max(cv2.contourArea(pixels), 1.0)))
    if shrink < 0.7:  # a camera averages over each of its pixels
        size = [max(2, round(shrink * side)) for side in picture.shape[1::-1]]
        picture = cv2.resize(picture, size, interpolation=cv2.INTER_AREA)
    height, width = picture.shape[:2]
    ends = np.array([[0, 0], [width, 0], [width, height], [0, height]], np.float32) - 0.5
    matrix = cv2.getPerspectiveTransform(ends, pixels - low.astype(np.float32))
    size = tuple((high - low).tolist())
    drawn = cv2.warpPerspective(
        picture, matrix, size, flags=cv2.INTER_LINEAR, borderMode=cv2.BORDER_REPLICATE
    )
    inside = np.zeros(size[::-1], np.uint8)
    cv2.fillConvexPoly(inside, np.round(16 * (pixels - low)).astype(np.int32), 1, cv2.LINE_8, 4)
    place = slice(low[1], high[1]), slice(low[0], high[0])
    frame[place][inside > 0] = drawn[inside > 0]
    labels[place][inside > 0] = label


def render(kind, seed=0, n_frames=40):
    """Return frames (n_frames, H, W, 3), RGB, uint8, and the body that each pixel shows, 0 for
    none."""
    rng = np.random.default_rng(seed)
    still, bodies, poses, camera = SCENES[kind](rng, n_frames)
    quads = [(0, quad, texture(rng)) for part in still for quad in part]
    quads += [
        (number, quad, texture(rng)) for number, body in enumerate(bodies, 1) for quad in body
    ]
    frames, truth = [], []
    for t, (turn, place) in enumerate(camera):
        frame, labels = np.full((*SIZE[::-1], 3), 190, np.uint8), np.zeros(SIZE[::-1], np.uint8)
        seen = []
        for number, quad, picture in quads:
            if number:
                own_turn, own_place = poses[number - 1][t]
                quad = quad @ own_turn.T + own_place
            seen.append(
                (
                    number > 0,
                    -np.linalg.norm((quad - place).mean(axis=0)),
                    (quad - place) @ turn,
                    picture,
                    number,
                )
            )
        for _, _, corners, picture, number in sorted(seen, key=lambda one: one[:2]):
            draw(frame, labels, corners, picture, number)
        noisy = cv2.GaussianBlur(frame, (3, 3), 0.6) + 2 * rng.normal(size=frame.shape)
        frames.append(np.clip(noisy, 0, 255).astype(np.uint8))
        truth.append(labels)
    return np.array(frames), np.array(truth)


def main(argv=None):
    """Render one video."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("kind", choices=SCENES)
    parser.add_argument("out", type=Path)
    parser.add_argument("--truth", type=Path)
    parser.add_argument("--frames", type=int, default=40)
    parser.add_argument("--seed", type=int, default=0)
    args = parser.parse_args(argv)
    frames, truth = render(args.kind, args.seed, args.frames)
    writer = cv2.VideoWriter(str(args.out), cv2.VideoWriter_fourcc(*"MJPG"), 25.0, SIZE)
    for frame in frames:
        writer.write(frame[..., ::-1])
    writer.release()
    if args.truth:
        np.savez_compressed(args.truth, labels=truth)


if __name__ == "__main__":
    main()
