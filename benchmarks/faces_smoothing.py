"""Smoothed points of faces in videos with known motion: photographs moved, opening their mouth, and
at rest.

    python benchmarks/faces_smoothing.py --data DATA/faces/test [--photographs 12]

Prints the error and the jitter of the 68 points, in inter-eye distances, without smoothing, with
that of video files, and with that of cameras. The error is the root mean square deviation from the
true path; the mean offset of each point, which no filter changes, is subtracted. The jitter is the
root mean square second difference of the deviations.
"""

import tempfile
from pathlib import Path

import cv2
import numpy as np
from annealed.models import load_model
from annealed.models.keypoints.instances.smoothing import DEFAULT_CUTOFF, smoothed
from annealed.pipelines.common.video import write_video
from annealed.pipelines.keypoints.data import read_annotations
from annealed.pipelines.keypoints.video import detect_video
from annealed.vision.images import read_image
from common import new_parser, print_head, print_line

SIZE = (640, 480)
RATE = 25.0
IED = 60.0  # mean inter-eye distance in pixels
SIDE = 360  # side of the patch around a face, in pixels
OPEN = 0.25  # largest opening of the mouth in inter-eye distances
MOUTH = slice(48, 68)  # iBUG points
KINDS = ("moving", "talking", "still")


def transforms(kind, n_frames, rng):
    """Return similarity transforms (n_frames, 2, 3) from a patch to the frames. A moving face sways
    by one inter-eye distance up to 0.7 times per second, so that it moves by up to 4 inter-eye
    distances per second."""
    amplitude = {"moving": 1.0, "talking": 0.15, "still": 0.0}[kind]
    frequency, phase = rng.uniform(0.3, 0.7, 4), rng.uniform(0, 2 * np.pi, 4)
    moves = []
    for time in np.arange(n_frames) / RATE:
        sway = amplitude * np.sin(2 * np.pi * frequency * time + phase)
        x, y, roll, zoom = sway * [IED, 0.7 * IED, 10.0, 0.15]
        matrix = cv2.getRotationMatrix2D((SIDE / 2, SIDE / 2), roll, float(np.exp(zoom)))
        matrix[:, 2] += [(SIZE[0] - SIDE) / 2 + x + 0.3, (SIZE[1] - SIDE) / 2 + y + 0.6]
        moves.append(matrix)
    return np.array(moves)


def openings(kind, n_frames, rng):
    """Return the displacement of the lower lip in inter-eye distances; a speaker has three to five
    syllables per second."""
    time = np.arange(n_frames) / RATE
    syllables = np.sin(np.pi * rng.uniform(3, 5) * time) ** 2
    phrase = np.clip(2 * np.sin(2 * np.pi * 0.4 * time + rng.uniform(0, 6)), 0, 1)
    return (kind == "talking") * OPEN * syllables * phrase


class Mouth:
    """The patch of a photograph around a face whose mouth opens: the part below the line of the
    lips is moved down, which leaves a dark gap."""

    def __init__(self, image):
        points = image.landmarks[0]
        scale, middle = IED / float(image.reference_length[0]), points.mean(axis=0)
        matrix = np.column_stack([scale * np.eye(2), SIDE / 2 - scale * middle])
        self.pixels = cv2.warpAffine(
            read_image(image.path),
            matrix,
            (SIDE, SIDE),
            flags=cv2.INTER_AREA,
            borderMode=cv2.BORDER_REPLICATE,
        )
        self.points = points * scale + matrix[:, 2]
        mouth = self.points[48:68]
        down = mouth.mean(axis=0) - self.points[36:48].mean(axis=0)
        self.down = down / np.hypot(*down)
        self.across = np.array([self.down[1], -self.down[0]])
        self.line = self.points[60:68].mean(axis=0)
        self.half_width = np.ptp(mouth @ self.across) / 2

    def share(self, xy):
        """Return the share of the opening by which points (..., 2) of the closed mouth move."""
        below = (xy - self.line) @ self.down / IED
        beside = (xy - self.line) @ self.across / (1.6 * self.half_width)
        return np.exp(-(beside**4)) / (1 + np.exp(-below / 0.02))

    def opened(self, opening):
        """Return pixels and points with the lower lip moved by a number of inter-eye distances."""
        move = opening * IED * self.down
        points = self.points + self.share(self.points)[:, None] * move
        if opening == 0:
            return self.pixels, points
        # the part that moves: from above the mouth down
        x, y = np.rint(self.line - [3 * self.half_width, 0.4 * IED]).astype(int).clip(0)
        width = round(6 * self.half_width)
        target = np.stack(np.meshgrid(np.arange(x, min(x + width, SIDE)), np.arange(y, SIDE)), -1)
        # The displacement grows with the place, so that bisection along the movement inverts it.
        low, high = np.zeros(target.shape[:2]), np.ones(target.shape[:2])
        for _ in range(10):
            share = (low + high) / 2
            less = self.share(target - share[..., None] * move) > share
            low, high = np.where(less, share, low), np.where(less, high, share)
        source = target - share[..., None] * move
        part = cv2.remap(self.pixels, source.astype(np.float32), None, cv2.INTER_LINEAR)
        gap = source - self.line
        inside = np.hypot(
            gap @ self.across / (0.7 * self.half_width), gap @ self.down / (0.03 * IED)
        )
        dark = np.clip(2 - 2 * inside, 0, 1)[..., None] * min(1.0, opening / 0.05)
        pixels = self.pixels.copy()
        pixels[y:, x : x + width] = np.round(part * (1 - dark) + [60, 20, 20] * dark)
        return pixels, points


def scene(kind, image, n_frames, rng):
    """Return the true points (n_frames, 68, 2), and the frames."""
    moves, mouth = transforms(kind, n_frames, rng), Mouth(image)
    truth, frames = [], []
    for gap, move in zip(openings(kind, n_frames, rng), moves, strict=True):
        pixels, points = mouth.opened(gap)
        truth.append(points @ move[:, :2].T + move[:, 2])
        pixels = cv2.warpAffine(
            pixels, move, SIZE, flags=cv2.INTER_LINEAR, borderMode=cv2.BORDER_REPLICATE
        )
        noise = rng.integers(-3, 4, pixels.shape, np.int8)
        frames.append(np.clip(pixels + noise, 0, 255).astype(np.uint8))
    return np.array(truth), frames


def error_and_jitter(points, truth, chosen=slice(None)):
    """Compute the error and the jitter of some of the points, in inter-eye distances."""
    deviation = (points - truth)[:, chosen] / IED
    deviation = deviation - deviation.mean(axis=0)
    jitter = np.diff(deviation, 2, axis=0)
    return tuple(float(np.sqrt((v**2).sum(axis=2).mean())) for v in (deviation, jitter))


def main(argv=None):
    parser = new_parser(__doc__)
    parser.add_argument("--data", type=Path, required=True)
    parser.add_argument("--photographs", type=int, default=12)
    parser.add_argument("--frames", type=int, default=64)
    parser.add_argument("--cutoff", type=float, default=DEFAULT_CUTOFF)
    args = parser.parse_args(argv)
    cv2.setNumThreads(1)
    detector = load_model("faces")
    images = [
        im
        for im in read_annotations(args.data)
        if len(im.instances) == 1 and im.landmarks is not None and np.isfinite(im.landmarks).all()
    ]
    images = images[:: max(1, len(images) // args.photographs)][: args.photographs]
    print_head("kind", "smoothing", "error", "jitter", "error of the mouth", "photographs")
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "made.avi"
        for kind in KINDS:
            rows = {"off": [], "file": [], "camera": []}
            for number, image in enumerate(images):
                truth, frames = scene(kind, image, args.frames, np.random.default_rng(number))
                write_video(path, frames, RATE)
                results = [
                    (r.time, r.instances[:1])
                    for r in detect_video(detector, str(path), smooth="off")
                ]
                if not all(faces for _, faces in results):
                    continue
                for name, row in rows.items():
                    points = np.array([p.landmarks for p in points_of(name, results, args.cutoff)])
                    inner = slice(8, -1)
                    values = error_and_jitter(points[inner], truth[inner])
                    row.append((*values, error_and_jitter(points[inner], truth[inner], MOUTH)[0]))
            for name, row in rows.items():
                print_line(kind, name, *(f"{v:.4f}" for v in np.mean(row, axis=0)), len(row))


def points_of(name, results, cutoff):
    """Return the face of each frame as detected, smoothed as in a file, or smoothed as from a
    camera."""
    if name == "off":
        return [faces[0] for _, faces in results]
    known = len(results) if name == "file" else 0
    return [smoothed(results[: max(i + 1, known)], i, cutoff)[0] for i in range(len(results))]


if __name__ == "__main__":
    main()
