"""Conversion of images and files to data URLs, for JSON and HTML pages."""

import base64
import io
import zipfile
from pathlib import Path

import cv2
import numpy as np

_QUALITY = 85


def smaller(image: np.ndarray, longest: int) -> np.ndarray:
    """Reduce an image to at most ``longest`` pixels on its longer side."""
    height, width = image.shape[:2]
    factor = longest / max(height, width)
    if factor >= 1:
        return image
    size = max(1, round(width * factor)), max(1, round(height * factor))
    return np.asarray(cv2.resize(image, size, interpolation=cv2.INTER_AREA))


def jpeg_url(image: np.ndarray, longest: int = 1600) -> str:
    """Convert an RGB image to the data URL of a JPEG file."""
    shown = cv2.cvtColor(smaller(image, longest), cv2.COLOR_RGB2BGR)
    data = cv2.imencode(".jpg", shown, [cv2.IMWRITE_JPEG_QUALITY, _QUALITY])[1]
    return "data:image/jpeg;base64," + base64.b64encode(data.tobytes()).decode()


def png_url(image: np.ndarray) -> str:
    """Convert an RGBA image to the data URL of a PNG file."""
    data = cv2.imencode(".png", cv2.cvtColor(image, cv2.COLOR_RGBA2BGRA))[1]
    return "data:image/png;base64," + base64.b64encode(data.tobytes()).decode()


def zip_url(folder: Path) -> str:
    """Pack all files in a folder into a zip archive, and return its data URL."""
    archive = io.BytesIO()
    with zipfile.ZipFile(archive, "w", zipfile.ZIP_DEFLATED) as file:
        for path in sorted(folder.rglob("*")):
            file.write(path, path.relative_to(folder))
    return "data:application/zip;base64," + base64.b64encode(archive.getvalue()).decode()
