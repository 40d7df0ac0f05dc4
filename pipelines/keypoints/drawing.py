"""Drawing of detections on a photograph."""

from collections.abc import Sequence
from pathlib import Path
from zlib import crc32

import cv2
import numpy as np

from ...models import Detection, Instance
from ...models.files import replacing

# Colours that most colour-blind readers can distinguish; the two points of a pair have a bright and
# a dark tone.
COLOURS = {
    "left_eye": (86, 180, 233),
    "right_eye": (0, 114, 178),
    "left_nose": (240, 228, 66),
    "right_nose": (190, 160, 0),
    "left_mouth": (255, 140, 130),
    "right_mouth": (213, 60, 50),
    "left_ear": (80, 220, 170),
    "right_ear": (0, 158, 115),
    "chin": (204, 121, 200),
}
_OTHER = (255, 255, 255)
_PALETTE = list(COLOURS.values())
_SHORT_SIDE = 480  # smaller images are enlarged, so that the symbols are visible


def draw_detections(
    image: np.ndarray,
    detections: Sequence[Detection],
    instances: Sequence[Instance] = (),
    landmarks: bool = False,
) -> np.ndarray:
    """Draw faces and detections, with a legend below the image.

    Each face is drawn as a box with its person number and probability, and each detection as a
    disc. If there are no faces, a ring around each detection shows the size of its window.
    ``landmarks`` are drawn as small points. Images are uint8 RGB arrays. Small images are enlarged
    by an integer factor. The best detections are drawn on top of the others.
    """
    factor = min(8, max(1, -(-_SHORT_SIDE // min(image.shape[:2]))))
    canvas = (
        cv2.resize(image, None, fx=factor, fy=factor, interpolation=cv2.INTER_CUBIC)
        if factor > 1
        else image.copy()
    )
    draw_symbols(canvas, detections, instances, factor, landmarks)
    return np.vstack(
        [canvas, _legend(canvas.shape[1], list(dict.fromkeys(d.keypoint for d in detections)))]
    )


def draw_symbols(
    canvas: np.ndarray,
    detections: Sequence[Detection],
    instances: Sequence[Instance] = (),
    factor: int = 1,
    landmarks: bool = False,
) -> None:
    """Draw boxes, discs and rings into an enlarged image, in place."""
    shift = 4  # OpenCV draws with a precision of 1/16 pixel

    def fixed(*values: float) -> list[int]:
        return [round(((v + 0.5) * factor - 0.5) * 2**shift) for v in values]

    def circle(
        x: float, y: float, radius: float, colour: tuple[int, int, int], thickness: int
    ) -> None:
        cv2.circle(
            canvas, fixed(x, y), round(radius * 2**shift), colour, thickness, cv2.LINE_AA, shift
        )

    for instance in instances:
        x0, y0, x1, y1 = fixed(*instance.box)
        cv2.rectangle(canvas, (x0, y0), (x1, y1), _OTHER, 1, cv2.LINE_AA, shift)
        at = (max(x0 >> shift, 0), max((y0 >> shift) - 4, 12))
        number = "" if instance.person is None else f"{instance.person}:  "
        text = f"{number}{instance.probability:.2f}"
        cv2.putText(canvas, text, at, cv2.FONT_HERSHEY_SIMPLEX, 0.4, _OTHER, 1, cv2.LINE_AA)
        for x, y in instance.landmarks if landmarks else ():
            circle(x, y, 1.5, _OTHER, -1)
    for d in reversed(detections):
        colour = _colour(d.keypoint)
        size = d.size * factor
        if not instances:
            circle(d.x, d.y, size / 2, colour, 1)
        radius = min(max(size * 0.06, 3.0), 9.0)
        circle(d.x, d.y, radius + 1.5, (20, 20, 20), -1)
        circle(d.x, d.y, radius, colour, -1)


def _colour(keypoint: str) -> tuple[int, int, int]:
    """Return the colour of a keypoint, which is fixed even for objects other than faces."""
    return COLOURS.get(keypoint) or _PALETTE[crc32(keypoint.encode()) % len(_PALETTE)]


def _legend(width: int, names: list[str]) -> np.ndarray:
    font, scale, row, cell = cv2.FONT_HERSHEY_SIMPLEX, 0.45, 22, 112
    ordered = [name for name in COLOURS if name in names] + [
        name for name in names if name not in COLOURS
    ]
    columns = max(1, (width - 8) // cell)
    strip = np.full((max(1, -(-len(ordered) // columns)) * row + 6, width, 3), 32, np.uint8)
    if not ordered:
        cv2.putText(strip, "nothing detected", (8, 18), font, scale, _OTHER, 1, cv2.LINE_AA)
    for i, name in enumerate(ordered):
        x, y = 8 + i % columns * cell, 3 + i // columns * row
        cv2.circle(strip, (x + 6, y + 11), 6, _colour(name), -1, cv2.LINE_AA)
        cv2.putText(
            strip, name.replace("_", " "), (x + 17, y + 15), font, scale, _OTHER, 1, cv2.LINE_AA
        )
    return strip


def square_around(image: np.ndarray, xy: np.ndarray, width: float, side: int) -> np.ndarray:
    """Return a square crop around a point, resized to ``side`` pixels.

    The crop covers ``width`` pixels of the image. Outside the image, border pixels are repeated.
    """
    zoom = side / max(width, 8.0)
    matrix = np.array([[zoom, 0, side / 2 - zoom * xy[0]], [0, zoom, side / 2 - zoom * xy[1]]])
    return cv2.warpAffine(
        image, matrix, (side, side), flags=cv2.INTER_LINEAR, borderMode=cv2.BORDER_REPLICATE
    )


def check_image_name(path: Path) -> None:
    """Check that the suffix of a file name belongs to an image format that can be written."""
    _encoded(path, np.zeros((16, 16, 3), np.uint8))


def write_image(path: str | Path, image: np.ndarray) -> None:
    """Write an RGB image in the format given by the file suffix.

    No partial file is left after an error.
    """
    data = _encoded(Path(path), image)
    with replacing(path) as temporary:
        temporary.write_bytes(data)


def _encoded(path: Path, image: np.ndarray) -> bytes:
    try:
        written, data = cv2.imencode(path.suffix, cv2.cvtColor(image, cv2.COLOR_RGB2BGR))
    except cv2.error:
        written = False
    if not written:
        raise ValueError(
            f"{path}: unknown file type; expected a file name that ends in .png, .jpg or "
            "another image suffix"
        )
    return data.tobytes()
