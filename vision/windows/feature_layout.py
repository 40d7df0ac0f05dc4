"""What a feature is: columns of a feature array, cells of Haar features, layout of the orientation histograms."""

from collections.abc import Mapping
from dataclasses import dataclass
from enum import IntEnum

__all__ = ["HAAR_KINDS", "Column", "HogLayout", "haar_features", "hog_features"]


class Column(IntEnum):
    """Columns of a feature array (n, 8); `annealed.vision.FeaturePool` says what they hold."""

    KIND = 0
    CHANNEL = 1
    X = 2
    Y = 3
    CELL_WIDTH = 4
    CELL_HEIGHT = 5
    CELL = 6
    ORIENTATION = 7


HAAR_KINDS: Mapping[str, tuple[tuple[int, ...], ...]] = {
    "2h": ((1, -1),),
    "2v": ((1,), (-1,)),
    "3h": ((1, -2, 1),),
    "3v": ((1,), (-2,), (1,)),
    "4": ((1, -1), (-1, 1)),
    "centre": ((1, 1, 1), (1, -8, 1), (1, 1, 1)),
}
"""Weights of the cells of each kind of Haar feature, row by row: a difference of two halves across or along, a centre against both
sides, a checkerboard, and a centre against its surroundings."""


@dataclass(frozen=True)
class HogLayout:
    """How orientation histograms are laid over the window.

    Attributes
    ----------
    cell : int
        Side of a cell in pixels.
    block : int
        Cells per side of a block; blocks start at every cell.
    orientations : int
        Bins over half a turn (unsigned), a multiple of 4; bin k is centred at the angle ``k * pi / orientations`` of
        the gradient (x to the right, y down).
    epsilon : float
        A block is divided by ``sqrt(sum of squares + (epsilon * cell**2)**2)``, where a histogram entry is a sum of
        gradient lengths in grey levels: epsilon is the mean length below which a block counts as flat.
    """

    cell: int = 6
    block: int = 2
    orientations: int = 8
    epsilon: float = 1.0

    def __post_init__(self) -> None:
        if self.cell < 1 or self.block < 1 or self.orientations < 4 or self.orientations % 4 or not self.epsilon > 0:
            raise ValueError(f"{self}: expected cell, block >= 1, a multiple of 4 as orientations, epsilon > 0")


def haar_features(
    window: int, kinds: Mapping[str, tuple[tuple[int, ...], ...]], sides: tuple[int, ...], steps: tuple[int, ...]
) -> list[tuple[int, ...]]:
    """Rows of all Haar features of a pool: by channel, kind, cell, position."""
    return [
        (kind, channel, x, y, w, h, 0, 0)
        for channel in range(3)
        for kind, weights in enumerate(kinds.values())
        for h, step_y in zip(sides, steps, strict=True)
        for w, step_x in zip(sides, steps, strict=True)
        for y in range(0, window - len(weights) * h + 1, step_y)
        for x in range(0, window - len(weights[0]) * w + 1, step_x)
    ]


def hog_features(window: int, kind: int, hog: HogLayout) -> list[tuple[int, ...]]:
    """Rows of all HOG features of a pool: by channel, block, cell, orientation."""
    corners = range(0, window - hog.cell * hog.block + 1, hog.cell)
    return [
        (kind, channel, x, y, hog.cell, hog.cell, part, orientation)
        for channel in range(3)
        for y in corners
        for x in corners
        for part in range(hog.block * hog.block)
        for orientation in range(hog.orientations)
    ]
