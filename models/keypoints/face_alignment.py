"""Aligned crops of faces, with the eyes at fixed positions."""

import cv2
import numpy as np

from ...learners.parameters import check_integer
from ...vision.images import as_rgb
from .instances import Instance, SimilarityTransform

#: Template of a crop: the eye centres, as fractions of its side from the top left corner. At 112
#: pixels, they lie within 0.7 pixels of the usual template for face recognition (heuristic).
EYES = {"right_eye": (0.345, 0.465), "left_eye": (0.655, 0.465)}


def check_size(size: int) -> None:
    """Check that the side of the crops is between 8 and 4096 pixels."""
    check_integer("size", size, 8, 4096)


def align_face(image: np.ndarray, face: Instance, size: int = 112) -> np.ndarray:
    """Crop a face, rotated and scaled so that the eyes are at fixed positions.

    A similarity transform maps the centres of the two eyes to the fractions (0.345, 0.465) and
    (0.655, 0.465) of the side, with the subject's right eye on the left. If pixel centres have
    integer coordinates, these positions are ``fraction * size - 0.5``. Pixels outside the
    photograph are black.

    Parameters
    ----------
    image : ndarray of shape (H, W, 3), uint8
        RGB photograph.
    face : Instance
        Face detected in the photograph, with the keypoints ``left_eye`` and ``right_eye``.
    size : int, default 112
        Side of the crop in pixels, from 8 to 4096.

    Returns
    -------
    ndarray of shape (size, size, 3), uint8
        RGB crop.

    Raises
    ------
    ValueError
        If the size is out of range, or the face does not have two distinct eyes.

    Examples
    --------
    >>> from annealed.models import align_face, load_model
    >>> from skimage.data import astronaut
    >>> image = astronaut()
    >>> faces = load_model("faces").find(image).instances
    >>> align_face(image, faces[0], size=96).shape
    (96, 96, 3)
    """
    check_size(size)
    eyes = np.array(
        [complex(p.x, p.y) for name in EYES if (p := face.keypoints.get(name)) is not None]
    )
    if len(eyes) < len(EYES) or eyes[0] == eyes[1]:
        raise ValueError(
            f"the face has the keypoints {', '.join(face.keypoints)}; expected both eyes, at "
            "different positions"
        )
    template = np.array([complex(*share) for share in EYES.values()]) * size - (0.5 + 0.5j)
    to_image = SimilarityTransform.least_squares(template, eyes)
    # The image is first shrunk by an integer factor, because the transform interpolates only
    # between neighbouring pixels.
    corners = to_image.to_image(np.array([0, size, size * 1j, size + size * 1j]))
    factor = max(1, int(to_image.reference_length))
    low = np.floor([corners.real.min(), corners.imag.min()]).astype(int).clip(0) // factor * factor
    high = np.ceil([corners.real.max(), corners.imag.max()]).astype(int).clip(0) + factor + 1
    part: np.ndarray = as_rgb(image)[low[1] : high[1], low[0] : high[0]]
    part = part[: part.shape[0] // factor * factor, : part.shape[1] // factor * factor]
    if not part.size:
        return np.zeros((size, size, 3), np.uint8)
    part = (
        cv2.resize(part, None, fx=1 / factor, fy=1 / factor, interpolation=cv2.INTER_AREA)
        if factor > 1
        else part
    )
    a = to_image.scale_rotation / factor
    b = (to_image.translation - complex(*low) + (0.5 + 0.5j)) / factor - (0.5 + 0.5j)
    matrix = np.array([[a.real, -a.imag, b.real], [a.imag, a.real, b.imag]])
    return cv2.warpAffine(part, matrix, (size, size), flags=cv2.INTER_LINEAR | cv2.WARP_INVERSE_MAP)
