"""Pictures unlike annotated photographs, made from these: heads turned in the picture, uneven and
dim light, blur, a covered part, and several faces in one picture.
"""

from collections.abc import Sequence
from dataclasses import replace
from functools import partial

import cv2
import numpy as np

from ....models.keypoints.windows.turned_photographs import turned, turning
from ....vision.images import image_size, read_image
from ..data import AnnotatedImage, View

# IED around a face that is pasted beside others, and the IED of the smallest and the largest of
# them in pixels
_AROUND, _PASTED = 2.2, (28.0, 50.0)


def rolled(image: AnnotatedImage, degrees: float) -> AnnotatedImage:
    """The photograph turned about its middle, counter-clockwise; nothing is cut off."""
    width, height = image_size(image.path)
    return image.moved(turning(height, width, degrees)[0], partial(turned, degrees=degrees))


def _lit(middle: np.ndarray, ied: float, direction: float, darkest: float, pixels: np.ndarray) -> np.ndarray:
    """In light that falls, across the face, from one to a share ``darkest``, in a direction in
    radians."""
    height, width = pixels.shape[:2]
    x, y = np.arange(width) - middle[0], np.arange(height)[:, None] - middle[1]
    along = (np.cos(direction) * x + np.sin(direction) * y) / ied
    light = darkest ** np.clip(along / 2 + 0.5, 0, 1)
    return np.rint(pixels * light[..., None]).astype(np.uint8)


def _dimmed(light: float, pixels: np.ndarray) -> np.ndarray:
    """In a share of the light."""
    return np.rint(pixels * light).astype(np.uint8)


def _blurred(deviation: float, pixels: np.ndarray) -> np.ndarray:
    """Out of focus: a Gaussian, its deviation in pixels."""
    return np.asarray(cv2.GaussianBlur(pixels, (0, 0), deviation), np.uint8)


def _covered(middle: np.ndarray, ied: float, pixels: np.ndarray) -> np.ndarray:
    """With a grey square of one and a half IED around its middle."""
    (left, top), (right, bottom) = (np.rint(middle + side * ied).astype(int).clip(0) for side in (-0.75, 0.75))
    pixels = pixels.copy()
    pixels[top:bottom, left:right] = 110
    return pixels


def pasted(images: Sequence[AnnotatedImage], rng: np.random.Generator) -> AnnotatedImage:
    """The first faces of some photographs side by side, of different sizes."""
    parts, faces, landmarks, left = [], [], [], 0
    for image in images:
        width, height = image_size(image.path)
        middle, ied = np.nanmean(image.instances[0], axis=0), float(image.reference_length[0])
        low = np.maximum(np.floor(middle - _AROUND * ied), 0).astype(int)
        high = np.minimum(np.ceil(middle + _AROUND * ied), [width, height]).astype(int)
        size = np.rint((high - low) * float(np.exp(rng.uniform(*np.log(_PASTED)))) / ied).astype(int)
        shown = lambda xy, low=low, ratio=size / (high - low), left=left: (xy - low + 0.5) * ratio - 0.5 + [left, 0]  # noqa: E731
        parts.append((image.path, (*low.tolist(), *high.tolist()), tuple(size.tolist())))
        faces.append(shown(image.instances[0]))
        landmarks.append(None if image.landmarks is None else shown(image.landmarks[0]))
        left += int(size[0])
    known = None if any(one is None for one in landmarks) else np.array(landmarks)
    visible = np.concatenate([image.visible[:1] for image in images])
    return replace(
        images[0],
        instances=np.array(faces),
        visible=visible,
        ignore=np.zeros((0, 4)),
        landmarks=known,
        view=partial(_pasted, parts),
    )


def _pasted(parts: Sequence[tuple], pixels: np.ndarray) -> np.ndarray:
    shown = []
    for number, (path, (x0, y0, x1, y1), size) in enumerate(parts):
        whole = read_image(path) if number else pixels
        shown.append(np.asarray(cv2.resize(whole[y0:y1, x0:x1], size, interpolation=cv2.INTER_AREA), np.uint8))
    height = max(part.shape[0] for part in shown)
    return np.concatenate([np.pad(part, ((0, height - len(part)), (0, 0), (0, 0)), mode="edge") for part in shown], axis=1)


def unlike_views(images: Sequence[AnnotatedImage], seed: int = 0) -> dict[str, list[AnnotatedImage]]:
    """One picture of each kind of each photograph with one face."""
    some = [image for image in images if len(image.instances) == 1 and image.view is None]
    rng = np.random.default_rng([seed, len(some)])
    made: dict[str, list[AnnotatedImage]] = {}
    for number, image in enumerate(some):
        others = [some[(number + step) % len(some)] for step in (0, 1, 2)]
        middle, ied = np.nanmean(image.instances[0], axis=0), float(image.reference_length[0])
        views: dict[str, AnnotatedImage | View] = {
            "rolled": rolled(image, float(rng.choice([-1, 1]) * rng.uniform(8, 28))),
            "uneven light": partial(_lit, middle, ied, float(rng.uniform(0, 2 * np.pi)), float(rng.uniform(0.05, 0.3))),
            "dim": partial(_dimmed, float(rng.uniform(0.08, 0.3))),
            "blurred": partial(_blurred, float(rng.uniform(0.02, 0.06)) * ied),
            "covered": partial(_covered, middle + ied * np.array([rng.uniform(-0.8, 0.8), rng.choice([-0.7, 1.0])]), ied),
            "three in one": pasted(others, rng),
        }
        for name, view in views.items():
            made.setdefault(name, []).append(view if isinstance(view, AnnotatedImage) else replace(image, view=view))
    return made
