"""Sample files: photographs from scikit-image, a synthetic video and a table from scikit-learn."""

import shutil
import tempfile
from collections.abc import Iterator
from pathlib import Path

import numpy as np

TABLE, TARGET, VIDEO = "breast_cancer.csv", "diagnosis", "moving.avi"
_SIZE = (480, 320)  # width and height of the video
_N_FRAMES = 40


def sample(name: str) -> bytes:
    """Return the content of a sample file; see :func:`write_sample`."""
    with tempfile.TemporaryDirectory(dir=".") as folder:
        path = Path(folder) / name
        write_sample(path)
        return path.read_bytes()


def write_sample(path: Path) -> None:
    """Write a sample: ``astronaut.png``, ``cat.png``, ``moving.avi`` or ``breast_cancer.csv``."""
    if path.name == TABLE:
        path.write_bytes(_table())
    elif path.name == VIDEO:
        from .video import write_video

        write_video(path, _scene(), 20.0)
    else:
        shutil.copyfile(_photograph({"cat.png": "chelsea.png"}.get(path.name, path.name)), path)


def _photograph(name: str) -> Path:
    import skimage

    return Path(skimage.__file__).parent / "data" / name


def _table() -> bytes:
    """Return the Wisconsin breast cancer data with named classes, 569 rows and 30 columns (Street,
    Wolberg and Mangasarian, 1993)."""
    from sklearn.datasets import load_breast_cancer

    data = load_breast_cancer(as_frame=True)
    frame = data.frame.assign(**{TARGET: data.target_names[data.target]}).drop(columns="target")
    return frame.to_csv(index=False).encode()


def _scene() -> Iterator[np.ndarray]:
    """Render two photograph patches that rotate and move over a third patch, which moves slowly."""
    import cv2

    from ...vision.images import read_image

    background = cv2.resize(read_image(_photograph("gravel.png")), (640, 460)) // 2 + 40
    coffee, cat = read_image(_photograph("coffee.png")), read_image(_photograph("chelsea.png"))
    pieces = [
        cv2.resize(coffee[60:340, 150:450], (130, 122)),
        cv2.resize(cat[20:260, 100:340], (120, 120)),
    ]
    for t in range(_N_FRAMES):
        frame = cv2.warpAffine(
            background, np.array([[1.0, 0.0, -60 - 0.7 * t], [0.0, 1.0, -70 + 0.5 * t]]), _SIZE
        )
        places = [(40 + 3.2 * t, 40 + 0.9 * t, 0.8 * t), (320 - 3.4 * t, 165 - 1.0 * t, -0.7 * t)]
        for piece, (x, y, angle) in zip(pieces, places):
            height, width = piece.shape[:2]
            matrix = cv2.getRotationMatrix2D((width / 2, height / 2), angle, 1.0)
            matrix[:, 2] += np.array((x, y))
            disc = cv2.circle(
                np.zeros((height, width), np.uint8),
                (width // 2, height // 2),
                min(width, height) // 2 - 2,
                255,
                -1,
            )
            inside = cv2.warpAffine(disc, matrix, _SIZE)[:, :, None] > 127
            frame = np.where(inside, cv2.warpAffine(piece, matrix, _SIZE), frame)
        yield np.asarray(frame, np.uint8)
