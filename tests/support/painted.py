"""Painted objects of three points, as annotated images, and a small training on them."""

import json

import cv2
import numpy as np
from annealed.vision.windows.feature_layout import HAAR_KINDS
from annealed.vision.windows.feature_pool import FeaturePool

POOL = FeaturePool(kinds={k: HAAR_KINDS[k] for k in ("2h", "2v", "centre")}, sides=(3, 6), hog=None)
NAMES = ["head", "tail", "fin"]
LAYOUT = np.array([[-1.0, 0.0], [1.0, 0.1], [0.2, -0.7]])
COLOURS = ((250, 250, 250), (10, 10, 10), (220, 40, 40))


def paint(seed, turn=0.0):
    """Three dots on a blurred background, and their positions."""
    rng = np.random.default_rng(seed)
    pixels = cv2.resize(
        rng.integers(90, 160, (10, 12, 3), dtype=np.uint8),
        (160, 140),
        interpolation=cv2.INTER_CUBIC,
    )
    size, angle = rng.uniform(24, 32), turn * rng.uniform(-np.pi, np.pi)
    around = np.array([[np.cos(angle), np.sin(angle)], [-np.sin(angle), np.cos(angle)]])
    points = (
        np.array([rng.uniform(60, 100), rng.uniform(55, 85)])
        + size * (LAYOUT + rng.normal(0, 0.03, (3, 2))) @ around
    )
    for (x, y), colour in zip(points, COLOURS):
        cv2.circle(
            pixels,
            (round(16 * x), round(16 * y)),
            round(16 * 0.22 * size),
            colour,
            -1,
            cv2.LINE_AA,
            4,
        )
    return pixels, points


def folder_of(path, number, turn=0.0, first=0):
    path.mkdir()
    coco = {
        "images": [],
        "annotations": [],
        "categories": [{"id": 7, "name": "fish", "keypoints": NAMES}],
    }
    for i in range(number):
        pixels, points = paint(first + i, turn)
        cv2.imwrite(str(path / f"{i:03}.png"), pixels[..., ::-1])
        coco["images"].append({"id": i, "file_name": f"{i:03}.png"})
        low, high = points.min(axis=0) - 5, points.max(axis=0) + 5
        keypoints = np.column_stack([points, [2, 2, 2]]).ravel().tolist()
        coco["annotations"].append(
            {
                "id": i,
                "image_id": i,
                "category_id": 7,
                "keypoints": keypoints,
                "bbox": [*low, *(high - low)],
            }
        )
    (path / "annotations.json").write_text(json.dumps(coco))
    return path


GIVEN = {"side": 0.85, "anchors": ("head", "tail", "fin"), "n_features": 40, "rounds": 1}
