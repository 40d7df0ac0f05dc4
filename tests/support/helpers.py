"""Helpers shared by tests of several modules."""

import cv2
import numpy as np
from annealed.models import KeypointDetector
from annealed.models.keypoints.windows.window_models import KeypointModel
from annealed.models.motion.candidate_set import CandidateSet
from annealed.pipelines.cli.app import app
from annealed.pipelines.keypoints.data import AnnotatedImage
from annealed.vision import Photograph
from annealed.vision.tracks.candidates import Candidate
from annealed.vision.windows.feature_layout import HAAR_KINDS
from annealed.vision.windows.feature_pool import FeaturePool
from annealed.vision.windows.responses import Responses
from typer.testing import CliRunner


def run(*args):
    """Run ``annealed`` in this process."""
    return CliRunner().invoke(app, [str(a) for a in args])


def save_tiny_detector(path):
    """Save a detector of bright left and dark right borders, as two keypoints that any photograph
    has."""
    pool = FeaturePool(
        kinds={k: HAAR_KINDS[k] for k in ("2h", "2v", "centre")}, sides=(4,), hog=None
    )
    responses = Responses([-1.0], [0.5], [[-2, -1, 0, 1, 2]])
    one = KeypointModel(pool.features[:1], responses, 0.0, np.float32([0.5]), threshold=0.8)
    KeypointDetector(
        {"left_eye": one, "chin": one.mirrored(pool, 28.3)}, pool, info={"summary": "tiny"}
    ).save(path)
    return path


def face_images(folder, painted):
    """Write painted faces (pixels, points (1, 9, 2), visible (1, 9)) as annotated photographs."""
    images = []
    for i, (pixels, faces, visible) in enumerate(painted):
        path = folder / f"p_{i:02d}.png"
        cv2.imwrite(str(path), pixels[:, :, ::-1])
        images.append(AnnotatedImage(path, faces, visible, np.zeros((0, 4))))
    return images


def rigid_motions(n_motions=2, n_points=25, n_frames=15, noise=0.05, seed=0):
    """Point clouds that rotate about different axes and move; tracks (F, P, 2) and labels (P,)."""
    rng = np.random.default_rng(seed)
    parts = []
    for k in range(n_motions):
        cloud, rows = (
            rng.uniform(-60, 60, (n_points, 3)),
            np.linalg.qr(rng.standard_normal((3, 3)))[0],
        )
        place, speed = rng.uniform(100, 300, 2), rng.uniform(-4, 4, 2)
        angles = (0.03 + 0.02 * k) * np.arange(n_frames)
        turns = np.stack([np.cos(angles), -np.sin(angles), np.zeros(n_frames)], axis=1)
        sides = np.stack([np.sin(angles), np.cos(angles), np.zeros(n_frames)], axis=1)
        seen = cloud @ rows
        flat = np.stack(
            [seen @ turns.T, 0.8 * (seen @ sides.T) + 0.6 * seen[:, 2:]], axis=2
        ).transpose(1, 0, 2)
        parts.append(flat + place + np.arange(n_frames)[:, None, None] * speed)
    tracks = np.concatenate(parts, axis=1)
    return tracks + noise * rng.standard_normal(tracks.shape), np.repeat(
        np.arange(n_motions), n_points
    )


def texture(rng, height, width):
    """Grey random image without aliasing, slightly coloured."""
    coarse = rng.uniform(20, 235, (height // 8 + 2, width // 8 + 2)).astype(np.float32)
    grey = cv2.resize(coarse, (width, height), interpolation=cv2.INTER_CUBIC).clip(0, 255)
    return np.stack([grey, 0.9 * grey, 0.8 * grey], axis=2).astype(np.uint8)


class Scene:
    """Two patches that rotate and move over a moving background, with the true object of each
    pixel."""

    size = (320, 240)
    n_frames = 30

    def __init__(self):
        rng = np.random.default_rng(0)
        self.background = texture(rng, 320, 420)
        self.patches = [texture(rng, 96, 96), texture(rng, 90, 110)]

    def matrices(self, t):
        """Affine maps from the pictures into frame t."""
        maps = [np.array([[1, 0, -40 - 0.8 * t], [0, 1, -30 + 0.4 * t]])]
        for patch, (x, y, angle) in zip(
            self.patches,
            [(30 + 2.5 * t, 30 + 0.8 * t, 0.9 * t), (190 - 2.0 * t, 130 - 1.2 * t, -0.7 * t)],
        ):
            height, width = patch.shape[:2]
            m = cv2.getRotationMatrix2D((width / 2, height / 2), angle, 1.0)
            m[:, 2] += (x, y)
            maps.append(m)
        return maps

    def frames(self):
        for t in range(self.n_frames):
            maps = self.matrices(t)
            frame = cv2.warpAffine(self.background, maps[0], self.size)
            for patch, m in zip(self.patches, maps[1:]):
                inside = cv2.warpAffine(np.full(patch.shape[:2], 255, np.uint8), m, self.size)
                frame = np.where(
                    inside[:, :, None] > 127, cv2.warpAffine(patch, m, self.size), frame
                )
            yield frame

    def truth(self, tracks):
        """Object of each track where it was first seen: 0 the background, 1 and 2 the patches."""
        labels = []
        for p in range(tracks.shape[1]):
            t = int(np.flatnonzero(np.isfinite(tracks[:, p, 0]))[0])
            label = 0
            for i, (patch, m) in enumerate(zip(self.patches, self.matrices(t)[1:])):
                x, y = np.linalg.solve(m[:, :2], tracks[t, p] - m[:, 2])
                if 0 <= x < patch.shape[1] and 0 <= y < patch.shape[0]:
                    label = i + 1
            labels.append(label)
        return np.array(labels)


def invented_sets(n_sets=40, n_features=30, seed=0):
    """Candidates whose error is predicted from the first feature and, in part, from the second."""
    rng = np.random.default_rng(seed)
    sets = []
    for i in range(n_sets):
        n = int(rng.integers(1, 6))
        errors = rng.choice([0.0, 0.1, 0.2, 0.4], n)
        features = rng.normal(size=(n, n_features)) + 10 * rng.normal(size=n_features)
        features[:, 0] += 30 * errors
        features[:, 1] -= 10 * errors
        labels = [np.arange(20) < rng.integers(4, 16) for _ in range(n)]
        sets.append(
            CandidateSet(
                f"s{i}",
                f"v{i % 20}",
                [Candidate(l.astype(int), "raw", 4) for l in labels],
                features,
                errors,
            )
        )
    return sets


def picture(label, seed, shape=(90, 120)):
    """Noise, with rings for one class and crosses for the other."""
    rng = np.random.default_rng(seed)
    image = cv2.GaussianBlur(rng.integers(60, 190, (*shape, 3)).astype(np.uint8), (0, 0), 2.0)
    for _ in range(4):
        x, y = (int(rng.integers(15, side - 15)) for side in (shape[1], shape[0]))
        colour = tuple(int(v) for v in rng.integers(0, 256, 3))
        if label == "ring":
            cv2.circle(image, (x, y), 9, colour, 3)
        else:
            cv2.line(image, (x - 9, y), (x + 9, y), colour, 3)
            cv2.line(image, (x, y - 9), (x, y + 9), colour, 3)
    return image


def photographs(n, heads=True, first=0):
    labels = ["ring", "cross"] * (n // 2)
    box = (20, 10, 80, 70) if heads else None
    return [Photograph(picture(label, first + i), box) for i, label in enumerate(labels)], labels
