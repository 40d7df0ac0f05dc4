"""Masks of moving objects in rendered scenes with known masks: textured discs and boxes that rotate
and move over a moving background.

    python benchmarks/motion_masks.py [SCENES]

Prints the intersection over union of the moving objects, averaged over the frames of each scene,
with a given number of motions, and that of the convex hulls of the labelled tracks as a simple
baseline.
"""

import tempfile
import time
from pathlib import Path

import cv2
import numpy as np
from annealed.models import load_model
from annealed.models.motion.dense_masks import background_of
from annealed.pipelines.common.video import write_video
from annealed.pipelines.motion.segment import segment_file
from common import new_parser, print_head, print_line

SIZE = (320, 240)
N_FRAMES = 30


def texture(rng, height, width):
    """Return a random coloured image of coarse and fine grain."""
    grains = []
    for cell in (6, 18):
        coarse = rng.uniform(0, 255, (height // cell + 2, width // cell + 2, 3)).astype(np.float32)
        grains.append(cv2.resize(coarse, (width, height), interpolation=cv2.INTER_CUBIC))
    return np.mean(grains, axis=0).clip(0, 255).astype(np.uint8)


def scene(seed):
    """Yield frames, and masks of the moving objects."""
    rng = np.random.default_rng(seed)
    background, drift = texture(rng, 420, 520), rng.uniform(-1, 1, 2)
    things = []
    for k in range(int(rng.integers(1, 3))):
        side = int(rng.integers(70, 100))
        shape = np.zeros((side, side), np.uint8)
        if rng.random() < 0.5:
            cv2.circle(shape, (side // 2, side // 2), side // 2 - 1, 255, -1)
        else:
            shape[side // 8 : -side // 8] = 255
        start = np.array([60.0, 70.0]) if k == 0 else np.array([250.0, 160.0])
        velocity = (
            rng.uniform(1.2, 2.8) * np.array([1, rng.uniform(-0.4, 0.4)]) * (1 if k == 0 else -1)
        )
        things.append((texture(rng, side, side), shape, start, velocity, rng.uniform(-1, 1)))
    for t in range(N_FRAMES):
        frame = cv2.warpAffine(
            background, np.array([[1, 0, -90 + drift[0] * t], [0, 1, -80 + drift[1] * t]]), SIZE
        )
        moving = np.zeros(SIZE[::-1], bool)
        for pixels, shape, start, velocity, turn in things:
            matrix = cv2.getRotationMatrix2D(
                (shape.shape[1] / 2, shape.shape[0] / 2), turn * t, 1.0
            )
            matrix[:, 2] += start + velocity * t - shape.shape[0] / 2
            inside = cv2.warpAffine(shape, matrix, SIZE) > 127
            frame = np.where(inside[..., None], cv2.warpAffine(pixels, matrix, SIZE), frame)
            moving |= inside
        yield (
            np.clip(frame + 2 * rng.normal(size=frame.shape), 0, 255).astype(np.uint8),
            moving,
            len(things),
        )


def overlap(predicted, truth):
    return float((predicted & truth).sum() / max((predicted | truth).sum(), 1))


def hulls(tracks, labels, background):
    for t in range(len(tracks)):
        mask = np.zeros(SIZE[::-1], np.uint8)
        for k in np.unique(labels[(labels >= 0) & (labels != background)]):
            points = tracks[t, labels == k]
            points = points[np.isfinite(points).all(axis=1)]
            if len(points) > 2:
                cv2.fillConvexPoly(mask, cv2.convexHull(np.round(points).astype(np.int32)), 1)
        yield mask > 0


def main(argv=None):
    parser = new_parser(__doc__)
    parser.add_argument("scenes", type=int, nargs="?", default=20)
    n_scenes = parser.parse_args(argv).scenes
    ranker = load_model("motion")
    print_head("scene", "motions", "masks", "hulls of tracks", "seconds")
    rows = []
    with tempfile.TemporaryDirectory() as folder:
        for seed in range(n_scenes):
            frames, truth, numbers = zip(*scene(seed), strict=True)
            video, masks = Path(folder) / f"{seed}.avi", Path(folder) / str(seed)
            masks.mkdir()
            write_video(video, frames, 25.0)
            start = time.process_time()
            segmentation = segment_file(ranker, video, numbers[0] + 1, masks=masks)
            seconds = time.process_time() - start
            written = [cv2.imread(str(path), 0) == 0 for path in sorted(masks.iterdir())]
            simple = hulls(
                segmentation.tracks,
                segmentation.labels,
                background_of(segmentation.tracks, segmentation.labels),
            )
            scores = [
                np.mean([overlap(a, b) for a, b in zip(some, truth, strict=True)])
                for some in (written, simple)
            ]
            rows.append(scores)
            print_line(
                seed, numbers[0] + 1, *(f"{score:.3f}" for score in scores), f"{seconds:.1f}"
            )
    print("median:", ", ".join(f"{score:.3f}" for score in np.median(rows, axis=0)))


if __name__ == "__main__":
    main()
