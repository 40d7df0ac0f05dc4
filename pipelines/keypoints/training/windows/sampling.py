"""Windows of views by their keys: positives around a keypoint, and random negatives.

A window is known by its *key*: view, level of the pyramid, y and x in one integer. No window is
taken twice.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np

from .....vision.pyramid import Level, gaussian_pyramid
from .....vision.windows.patches import extract_patches
from ...data import AnnotatedImage
from .fitting import TrainingSettings
from .views import SCALES_PER_OCTAVE, View, open_view

_VIEW, _LEVEL, _Y = 40, 32, 16  # first bits of the parts of a key; x takes the lowest 16 bits


def pack_keys(view: int, level: int, y: np.ndarray, x: np.ndarray) -> np.ndarray:
    """Keys of windows, int64: number of the view, level of the pyramid, pixel."""
    return (np.int64(view) << _VIEW) | (np.int64(level) << _LEVEL) | (y.astype(np.int64) << _Y) | x.astype(np.int64)


def unpack_keys(keys: np.ndarray) -> tuple[np.ndarray, np.ndarray, np.ndarray, np.ndarray]:
    """View, level, y and x of keys that `pack_keys` made."""
    return keys >> _VIEW, (keys >> _LEVEL) & 0xFF, (keys >> _Y) & 0xFFFF, keys & 0xFFFF


def keys_of_view(view: int) -> tuple[int, int]:
    """The least key of a view, and of the next one."""
    return view << _VIEW, (view + 1) << _VIEW


def positive_windows(level: Level, view: View, ied_range: tuple[float, float], radius: float) -> np.ndarray:
    """Pixels (n, 2) of the level, inside its frame, within ``radius`` of a visible keypoint of a
    face whose reference length there is in the range.
    """
    low, high = ied_range
    ied = view.reference_length * level.scale
    chosen = view.visible & (ied >= low) & (ied <= high) & np.isfinite(view.points).all(axis=1)
    reach = np.arange(-int(np.ceil(radius)) - 1, int(np.ceil(radius)) + 2)
    step = np.stack(np.meshgrid(reach, reach), axis=-1).reshape(-1, 2)
    found = [np.empty((0, 2), np.int64)]
    for point in level.from_image(view.points[chosen]):
        near = np.floor(point).astype(np.int64) + step
        found.append(near[np.hypot(*(near - point).T) <= radius])
    pixels = np.unique(np.concatenate(found), axis=0)
    height, width = level.image.shape[:2]
    return pixels[((pixels >= 0) & (pixels < [width, height])).all(axis=1)]  # no key holds a negative number


@dataclass(frozen=True)
class Windows:
    """Windows cut out of views: patches (n, 26, 26, 3), pixels of each window and one around it;
    keys (`pack_keys`); scores.

    Scores are those of a detector for mined windows, else 0.
    """

    patches: np.ndarray
    keys: np.ndarray
    scores: np.ndarray

    def __len__(self) -> int:
        return len(self.keys)

    def take(self, rows: np.ndarray) -> Windows:
        """The windows of these rows."""
        return Windows(self.patches[rows], self.keys[rows], self.scores[rows])


def join(parts: Sequence[Windows], window: int = 24) -> Windows:
    """All windows of the parts, in their order."""
    side = window + 2
    return Windows(
        np.concatenate([np.empty((0, side, side, 3), np.uint8), *[p.patches for p in parts]]),
        np.concatenate([np.empty(0, np.int64), *[p.keys for p in parts]]),
        np.concatenate([np.empty(0, np.float32), *[p.scores for p in parts]]),
    )


def _cut(levels: Sequence[Level], number: int, places: Sequence[np.ndarray], window: int) -> Windows:
    """Windows at the pixels ``places[k]`` (n, 2) of each level."""
    keys = np.concatenate([np.empty(0, np.int64), *(pack_keys(number, k, xy[:, 1], xy[:, 0]) for k, xy in enumerate(places))])
    return cut_keys(levels, keys, np.zeros(len(keys), np.float32), window)


def sample_view(
    image: AnnotatedImage,
    mirrored: bool,
    number: int,
    keypoint: str,
    settings: TrainingSettings,
    n_random: int,
    window: int = 24,
    candidates: Callable[[Sequence[Level]], Sequence[np.ndarray]] | None = None,
) -> tuple[Windows, Windows]:
    """Positives of one view, and negatives drawn evenly from all windows of its pyramid, or from
    some.

    Parameters
    ----------
    image, mirrored, number : AnnotatedImage, bool, int
        The view, and its number for the keys.
    keypoint : str
        The keypoint to train.
    settings : TrainingSettings
        Where positives and negatives lie; the seed.
    n_random : int
        Negatives to draw; those too near a keypoint are dropped, not replaced.
    window : int
        Side of a window in pixels.
    candidates : function, optional
        Takes the levels and returns for each the pixels (n, 2) of the windows that negatives are
        drawn from; all by default.
    """
    s, view = settings, open_view(image, keypoint, mirrored)
    levels = gaussian_pyramid(view.pixels, SCALES_PER_OCTAVE, max_scale=s.enlarged)
    positives = _cut(
        levels, number, [positive_windows(v, view, (s.ied_low, s.ied_high), s.positive_radius) for v in levels], window
    )
    rng = np.random.default_rng([s.seed, 1, number])
    some = None if candidates is None or not n_random else candidates(levels)
    sizes = [level.image.shape[0] * level.image.shape[1] for level in levels] if some is None else [len(xy) for xy in some]
    counts = np.array(sizes, dtype=np.int64)
    if not counts.sum():
        return positives, join([], window)
    drawn = np.unique(rng.integers(0, counts.sum(), n_random))
    places = []
    for k, (level, start) in enumerate(zip(levels, np.cumsum(counts) - counts)):
        index = drawn[(drawn >= start) & (drawn < start + counts[k])] - start
        width = level.image.shape[1]
        xy = np.column_stack([index % width, index // width]) if some is None else some[k][index]
        places.append(xy[view.is_background(level.to_image(xy), s.negative_distance, s.negative_pixels / level.scale)])
    return positives, _cut(levels, number, places, window)


def cut_keys(levels: Sequence[Level], key: np.ndarray, score: np.ndarray, window: int) -> Windows:
    """Windows of one view by their keys, in the order of the keys."""
    _, level_of, y, x = unpack_keys(key)
    patches = np.empty((len(key), window + 2, window + 2, 3), np.uint8)
    for k in np.unique(level_of):
        rows = level_of == k
        patches[rows] = extract_patches(levels[k].image, x[rows], y[rows], window)
    return Windows(patches, key, score)
