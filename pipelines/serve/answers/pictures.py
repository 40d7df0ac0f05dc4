"""Pictures inside JSON: data URLs."""

from __future__ import annotations

import base64

import cv2
import numpy as np

_QUALITY = 85


def jpeg_url(image: np.ndarray, longest: int = 1600) -> str:
    """Return an RGB image as JPEG, its longer side shrunk to at most so many pixels."""
    height, width = image.shape[:2]
    factor = min(1.0, longest / max(height, width))
    if factor < 1:
        size = max(1, round(width * factor)), max(1, round(height * factor))
        image = np.asarray(cv2.resize(image, size, interpolation=cv2.INTER_AREA))
    data = cv2.imencode(".jpg", cv2.cvtColor(image, cv2.COLOR_RGB2BGR), [cv2.IMWRITE_JPEG_QUALITY, _QUALITY])[1]
    return "data:image/jpeg;base64," + base64.b64encode(data.tobytes()).decode()


def png_url(image: np.ndarray) -> str:
    """Return an RGBA image as PNG."""
    data = cv2.imencode(".png", cv2.cvtColor(image, cv2.COLOR_RGBA2BGRA))[1]
    return "data:image/png;base64," + base64.b64encode(data.tobytes()).decode()
