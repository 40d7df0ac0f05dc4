"""Features of photographs of animals (Ma (thesis), section 4.1.2): visual words and colours."""

import math
from dataclasses import dataclass
from typing import NamedTuple

import cv2
import numpy as np
import numpy.typing as npt

from ...learners.types import Seed
from ..images import as_rgb
from .dense_sift import DenseSift, Descriptors
from .visual_words import ImageRows, WordCounts, frequencies

N_SHADES = 10  # number of shades of each colour channel


class Box(NamedTuple):
    """Box in an image.

    The coordinates are those of the outer edges of the outermost pixels.
    """

    x_min: float
    y_min: float
    x_max: float
    y_max: float

    def check(self, width: int, height: int) -> "Box":
        """Return the box clipped to an image of the given size.

        Raises
        ------
        ValueError
            If the box is not finite, is too small, or extends more than one pixel beyond the image.
        """
        text = f"head box ({', '.join(f'{v:g}' for v in self)})"
        if not all(math.isfinite(v) for v in self):
            raise ValueError(f"{text} contains NaN or infinity; expected four finite numbers")
        if self.x_max - self.x_min < 2 or self.y_max - self.y_min < 2:
            raise ValueError(
                f"{text} is too small; expected at least two pixels in width and height"
            )
        if self.x_min < -1 or self.y_min < -1 or self.x_max > width + 1 or self.y_max > height + 1:
            raise ValueError(f"{text} extends beyond its image of {width} x {height} pixels")
        return Box(
            max(0.0, self.x_min),
            max(0.0, self.y_min),
            min(float(width), self.x_max),
            min(float(height), self.y_max),
        )


@dataclass(frozen=True)
class Photograph:
    """Photograph of an animal, optionally with a head box.

    Attributes
    ----------
    image : ndarray
        Image in any form accepted by :func:`annealed.vision.as_rgb`.
    head : tuple of four float or None
        Box around the head (x_min, y_min, x_max, y_max), in pixels of ``image``.
    """

    image: npt.ArrayLike
    head: tuple[float, float, float, float] | None = None

    def resized(self, side: int) -> "Photograph":
        """Resize the photograph so that its longer side has ``side`` pixels.

        The head box is checked and scaled with the image.

        Parameters
        ----------
        side : int
            Length of the longer side in pixels.

        Returns
        -------
        Photograph
            Resized photograph. If the size does not change, this is the same object.

        Raises
        ------
        ValueError
            If the box lies outside the image.
        """
        pixels = as_rgb(self.image)
        height, width = pixels.shape[:2]
        head = None if self.head is None else Box(*self.head).check(width, height)
        scale = side / max(height, width)
        if scale != 1:
            size = (max(1, round(width * scale)), max(1, round(height * scale)))
            pixels = np.asarray(
                cv2.resize(
                    pixels, size, interpolation=cv2.INTER_AREA if scale < 1 else cv2.INTER_LINEAR
                ),
                np.uint8,
            )
            if head is not None:
                head = Box(*(v * scale for v in head))
        return Photograph(pixels, head)

    def head_image(self, side: int) -> np.ndarray | None:
        """Return the head as a square RGB image, or None if the photograph has no head box.

        Parameters
        ----------
        side : int
            Side of the square in pixels.

        Returns
        -------
        ndarray of shape (side, side, 3), uint8, or None
            Image of the head.
        """
        if self.head is None:
            return None
        pixels = as_rgb(self.image)
        height, width = pixels.shape[:2]
        x0, y0 = min(round(self.head[0]), width - 1), min(round(self.head[1]), height - 1)
        crop = pixels[y0 : max(y0 + 1, round(self.head[3])), x0 : max(x0 + 1, round(self.head[2]))]
        shrinks = max(crop.shape[:2]) > side
        return cv2.resize(
            crop, (side, side), interpolation=cv2.INTER_AREA if shrinks else cv2.INTER_LINEAR
        )


def shade_bins(image: npt.ArrayLike) -> np.ndarray:
    """Return the colour bin of each pixel, as an array of shape (H, W).

    The bin is 100 r + 10 g + b, where r, g and b are floor(10 v / 256) for the value v of each
    channel.
    """
    shades = (as_rgb(image).astype(np.int32) * N_SHADES) >> 8
    return shades @ np.array([N_SHADES**2, N_SHADES, 1], np.int32)


def colour_histogram(image: npt.ArrayLike) -> np.ndarray:
    """Compute the joint histogram of red, green and blue in 10 x 10 x 10 bins.

    Parameters
    ----------
    image : array_like
        Image in any form accepted by :func:`annealed.vision.as_rgb`.

    Returns
    -------
    ndarray of shape (1000,), int64
        Number of pixels in each bin (see :func:`shade_bins`).
    """
    return np.bincount(shade_bins(image).ravel(), minlength=N_SHADES**3)


class PetColumns(ImageRows):
    """Features of photographs for given vocabularies.

    The parameters and attributes are those of :class:`.estimators.PetFeatures`, which learns the
    vocabularies.
    """

    words_: WordCounts
    head_words_: WordCounts | None

    sift = DenseSift(sizes=(4.0, 6.0, 9.0, 13.0), step=8)
    head_sift = DenseSift(sizes=(4.0, 6.0, 9.0, 13.0), step=6)

    def __init__(
        self,
        n_words: int = 5000,
        *,
        heads: bool = True,
        side: int = 400,
        head_side: int = 128,
        random_state: Seed = None,
    ):
        self.n_words = n_words
        self.heads = heads
        self.side = side
        self.head_side = head_side
        self.random_state = random_state

    def describe(self, photograph: Photograph) -> Descriptors:
        """Compute the descriptors of the whole image, with positions in the resized photograph.

        Parameters
        ----------
        photograph : Photograph
            Photograph, with or without a head box.

        Returns
        -------
        Descriptors
            Descriptors of the whole image.
        """
        return self.sift.describe(photograph.resized(self.side).image)

    def describe_head(self, photograph: Photograph) -> Descriptors | None:
        """Compute the descriptors of the cropped head; None if the photograph has no head box.

        Parameters
        ----------
        photograph : Photograph
            Photograph, with or without a head box.

        Returns
        -------
        Descriptors or None
            Descriptors of the head.
        """
        head = photograph.resized(self.side).head_image(self.head_side)
        return None if head is None else self.head_sift.describe(head)

    def row(self, image: Photograph) -> np.ndarray:
        resized = image.resized(self.side)
        parts = [self.words_.counts(self.sift.describe(resized.image))]
        if self.head_words_ is not None:
            head = resized.head_image(self.head_side)
            empty = np.zeros(self.n_words, np.int64)
            parts.append(
                empty if head is None else self.head_words_.counts(self.head_sift.describe(head))
            )
        parts.append(colour_histogram(resized.image))
        return np.concatenate([frequencies(counts, self.words_.power) for counts in parts])

    def get_feature_names_out(self, input_features: object = None) -> np.ndarray:
        self.check_fitted()
        names = [self.words_.get_feature_names_out()]
        if self.head_words_ is not None:
            names.append(
                np.array(
                    [f"head {name}" for name in self.head_words_.get_feature_names_out()],
                    dtype=object,
                )
            )
        shades = np.ndindex(N_SHADES, N_SHADES, N_SHADES)
        names.append(np.array([f"colour {r} {g} {b}" for r, g, b in shades], dtype=object))
        return np.concatenate(names)

    @property
    def n_whole(self) -> int:
        """Number of columns for the words of the whole image; the other columns follow them."""
        return 5 * self.n_words
