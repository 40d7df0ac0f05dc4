"""Conversion of image files and arrays to ``uint8`` RGB."""

import os
import warnings
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from typing import Any

import numpy as np
import numpy.typing as npt
from PIL import Image, ImageOps, UnidentifiedImageError

# Pillow also reads formats that start other programs (EPS starts Ghostscript): those are not
# opened.
_FORMATS = (
    *(
        "AVIF",
        "BMP",
        "DDS",
        "DIB",
        "GIF",
        "ICNS",
        "ICO",
        "IM",
        "JPEG",
        "JPEG2000",
        "MPO",
        "MSP",
        "PCX",
        "PNG",
        "PPM",
        "PSD",
        "QOI",
    ),
    *("SGI", "SUN", "TGA", "TIFF", "WEBP", "XBM", "XPM"),
)
_TO_CONVERT = (".heic", ".heif", ".svg", ".eps", ".pdf", ".raw", ".dng", ".cr2", ".nef", ".arw")
_ORIENTATION = 0x0112  # EXIF
# number of rows converted at a time, so that a large photograph is not copied as a whole
_STRIP_ROWS = 256


def _open(name: str) -> Image.Image:
    """Open an image file; the less common formats of Pillow are loaded only if none of the common
    ones matches."""
    for load in (Image.preinit, Image.init):
        load()
        with suppress(UnidentifiedImageError):
            return Image.open(name, formats=[format for format in _FORMATS if format in Image.OPEN])
    raise UnidentifiedImageError(name)


def read_image(path: str | os.PathLike[str]) -> npt.NDArray[np.uint8]:
    """Read an image file as an upright RGB array.

    The EXIF orientation is applied, and transparent pixels are blended over white. Grey values of
    more than 8 bits are scaled from their full range (such as [0, 65535] for 16 bits) to [0, 255],
    and floats from [0, 1] to [0, 255].

    Parameters
    ----------
    path : str or path
        Image file in any format that Pillow reads.

    Returns
    -------
    ndarray of shape (H, W, 3), uint8

    Raises
    ------
    ValueError
        If the file is missing, empty, damaged or not an image, or contains floats outside [0, 1].
        The message is a single line that starts with the file name.
    """
    with _opened(path) as image:
        if image.mode == "I" and image.format == "TIFF":
            raise _Unsupported(
                "32-bit grey images have no fixed range of values; expected 8 or 16 bits"
            )
        n_frames = _n_frames(image)
        image.load()
        if image.getexif().get(_ORIENTATION, 1) != 1:
            ImageOps.exif_transpose(image, in_place=True)
        pixels = _pillow_to_rgb(image)
    if n_frames > 1:
        warnings.warn(
            f"{os.fspath(path)}: the file has {n_frames} frames or pages; only the first is used",
            stacklevel=2,
        )
    return pixels


def _n_frames(image: Image.Image) -> int:
    """Return the number of frames or pages of a file, or 1 if the additional frames are previews or
    cannot be counted."""
    if image.format not in ("GIF", "WEBP", "PNG", "AVIF", "TIFF"):
        return 1
    try:
        n = int(getattr(image, "n_frames", 1))
        image.seek(0)
        return n
    except Exception:  # the first frame of a damaged file may be readable
        return 1


def image_size(path: str | os.PathLike[str]) -> tuple[int, int]:
    """Return the width and height of the upright image in a file, given its EXIF orientation.

    The pixels are not decoded. The function raises the same errors as :func:`read_image`.
    """
    with _opened(path) as image:
        width, height = image.size
        return (height, width) if image.getexif().get(_ORIENTATION, 1) >= 5 else (width, height)


class _Unsupported(Exception):
    """Raised for a file that is intact but not supported."""


@contextmanager
def _opened(path: str | os.PathLike[str]) -> Iterator[Image.Image]:
    """Context manager that opens an image file; any error inside becomes a one-line ValueError that
    starts with the file name."""
    name = os.fspath(path)
    try:
        if os.path.exists(name) and not os.path.isfile(name) and not os.path.isdir(name):
            # reading a pipe would block
            raise _Unsupported("the path is not a regular file; expected an image file")
        with warnings.catch_warnings():
            # Pillow warns about large photographs and unusual metadata; an image that cannot be
            # decoded raises an error below.
            warnings.simplefilter("ignore")
            with _open(name) as image:
                yield image
    except _Unsupported as error:
        raise ValueError(f"{name}: {error}") from None
    except FileNotFoundError:
        raise ValueError(f"{name}: no such file") from None
    except IsADirectoryError:
        raise ValueError(f"{name}: this is a folder; expected an image file") from None
    except UnidentifiedImageError:
        empty = os.path.getsize(name) == 0
        hint = "; convert it to PNG or JPEG" if name.lower().endswith(_TO_CONVERT) else ""
        raise ValueError(
            f"{name}: the file is {'empty' if empty else 'not a readable image' + hint}"
        ) from None
    # decoders raise OSError, SyntaxError, struct.error, EOFError, zlib.error, ...
    except Exception as error:
        reason = " ".join(str(error).split())[:200] or type(error).__name__
        raise ValueError(f"{name}: the image is damaged or unreadable ({reason})") from None


def _pillow_to_rgb(image: Image.Image) -> npt.NDArray[np.uint8]:
    mode = image.mode
    if mode == "I" or mode.startswith("I;16"):  # "I" is 16-bit grey in some formats
        return as_rgb(np.clip(np.asarray(image), 0, 65535).astype(np.uint16))
    if mode == "F":
        return as_rgb(np.asarray(image))
    if mode in ("RGBA", "LA", "PA", "La", "RGBa") or "transparency" in image.info:
        return as_rgb(np.asarray(image.convert("RGBA")))
    pixels = np.empty((image.height, image.width, 3), np.uint8)
    for top in range(0, image.height, _STRIP_ROWS):
        strip = image.crop((0, top, image.width, min(top + _STRIP_ROWS, image.height)))
        pixels[top : top + _STRIP_ROWS] = np.asarray(
            strip if strip.mode == "RGB" else strip.convert("RGB")
        )
    return pixels


def as_rgb(image: Any) -> npt.NDArray[np.uint8]:
    """Convert an array to 8-bit RGB.

    Parameters
    ----------
    image : (H, W), (H, W, 1), (H, W, 3) or (H, W, 4) array_like
        Grey, RGB or RGBA image of type ``uint8``, ``uint16`` (scaled from [0, 65535] to [0, 255]),
        ``bool``, or float in [0, 1] (both scaled to [0, 255]). Transparent pixels are blended over
        white.

    Returns
    -------
    ndarray of shape (H, W, 3), uint8
        C-contiguous image; ``image`` itself if it already has this form.

    Raises
    ------
    ValueError
        If the shape or type is not supported, the image is empty, or a float lies outside [0, 1].

    Examples
    --------
    >>> import numpy as np
    >>> from annealed.vision import as_rgb
    >>> as_rgb(np.full((1, 1), 7, np.uint8)).tolist()
    [[[7, 7, 7]]]
    """
    pixels = np.asarray(image)
    if pixels.ndim not in (2, 3) or (pixels.ndim == 3 and pixels.shape[2] not in (1, 3, 4)):
        raise ValueError(f"image has shape {pixels.shape}; expected (H, W), (H, W, 3) or (H, W, 4)")
    if 0 in pixels.shape:
        raise ValueError(f"image has shape {pixels.shape}; expected at least one pixel")
    if pixels.dtype == np.bool_:
        pixels = pixels.astype(np.uint8) * np.uint8(255)
    elif pixels.dtype == np.uint16:
        pixels = ((pixels.astype(np.uint32) + 128) // 257).astype(np.uint8)
    elif np.issubdtype(pixels.dtype, np.floating):
        if not np.isfinite(pixels).all() or pixels.min() < 0 or pixels.max() > 1:
            raise ValueError(
                f"image has dtype {pixels.dtype} and contains NaN or values outside [0, 1]; "
                "expected finite values from 0 to 1"
            )
        pixels = np.rint(pixels * 255).astype(np.uint8)
    elif pixels.dtype != np.uint8:
        raise ValueError(
            f"image has dtype {pixels.dtype}; expected uint8, uint16, bool, or floats from 0 to 1"
        )
    if pixels.ndim == 2:
        pixels = pixels[:, :, None]
    if pixels.shape[2] == 1:
        pixels = np.repeat(pixels, 3, axis=2)
    elif pixels.shape[2] == 4:
        alpha = pixels[:, :, 3:].astype(np.uint32)
        blended = pixels[:, :, :3].astype(np.uint32) * alpha + 255 * (255 - alpha)
        pixels = ((blended + 127) // 255).astype(np.uint8)
    return np.ascontiguousarray(pixels)
