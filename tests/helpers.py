"""What tests of several modules use."""

import cv2
import numpy as np
from annealed.models import KeypointDetector
from annealed.models.keypoints.window_models import KeypointModel
from annealed.pipelines.cli.app import app
from annealed.pipelines.faces.data import FaceImage
from annealed.vision.windows.feature_layout import HAAR_KINDS
from annealed.vision.windows.feature_pool import FeaturePool
from annealed.vision.windows.responses import Responses
from typer.testing import CliRunner


def run(*args):
    """Run ``annealed`` in this process."""
    return CliRunner().invoke(app, [str(a) for a in args])


def save_tiny_detector(path):
    """Save a detector of bright left and dark right borders, as two keypoints: any photograph has some."""
    pool = FeaturePool(kinds={k: HAAR_KINDS[k] for k in ("2h", "2v", "centre")}, sides=(4,), hog=None)
    responses = Responses([-1.0], [0.5], [[-2, -1, 0, 1, 2]])
    one = KeypointModel(pool.features[:1], responses, 0.0, np.float32([0.5]), threshold=0.8)
    KeypointDetector({"left_eye": one, "chin": one.mirrored(pool, 28.3)}, pool, info={"summary": "tiny"}).save(path)
    return path


def face_images(folder, painted):
    """Write painted faces (pixels, points (1, 9, 2), visible (1, 9)) as annotated photographs."""
    images = []
    for i, (pixels, faces, visible) in enumerate(painted):
        path = folder / f"p_{i:02d}.png"
        cv2.imwrite(str(path), pixels[:, :, ::-1])
        images.append(FaceImage(path, faces, visible, np.zeros((0, 4))))
    return images
