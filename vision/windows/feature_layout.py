"""Layout of Haar and HOG features, and the arrays that describe them in compiled loops."""

import math
from collections.abc import Mapping
from dataclasses import dataclass
from enum import IntEnum
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from .kernels import MAGNITUDE_SCALE

#: Columns of a feature array (n, 8), described in `annealed.vision.FeaturePool`.
Column = IntEnum("Column", "KIND CHANNEL X Y CELL_WIDTH CELL_HEIGHT CELL ORIENTATION", start=0)


#: Weights of the cells of each kind of Haar feature, row by row. The kinds compare two halves side
#: by side or one above the other, a centre with both sides, the two colours of a checkerboard, and
#: a centre with its surroundings.
HAAR_KINDS: Mapping[str, tuple[tuple[int, ...], ...]] = {
    "2h": ((1, -1),),
    "2v": ((1,), (-1,)),
    "3h": ((1, -2, 1),),
    "3v": ((1,), (-2,), (1,)),
    "4": ((1, -1), (-1, 1)),
    "centre": ((1, 1, 1), (1, -8, 1), (1, 1, 1)),
}


@dataclass(frozen=True)
class HogLayout:
    """Layout of the orientation histograms in a window.

    Attributes
    ----------
    cell : int
        Side of a cell in pixels.
    block : int
        Number of cells along each side of a block. Blocks overlap: one block begins at each cell.
    orientations : int
        Number of bins for the 180 degrees of unsigned directions; a multiple of 4. Bin k is centred
        at the gradient angle ``k * pi / orientations``, where x points right and y points down.
    epsilon : float
        Regularisation of the block norm: the histogram entries of a block are divided by ``sqrt(s +
        (epsilon * cell**2)**2)``, where s is the sum of their squares. Since the entries are sums
        of gradient magnitudes in grey levels, blocks with a mean gradient magnitude far below
        epsilon have features close to zero.
    """

    cell: int = 6
    block: int = 2
    orientations: int = 8
    epsilon: float = 1.0

    def __post_init__(self) -> None:
        if (
            self.cell < 1
            or self.block < 1
            or self.orientations < 4
            or self.orientations % 4
            or not self.epsilon > 0
        ):
            raise ValueError(
                f"{self} is not valid; expected cell >= 1, block >= 1, orientations divisible by "
                "4, and epsilon > 0"
            )


def haar_features(
    window: int,
    kinds: Mapping[str, tuple[tuple[int, ...], ...]],
    sides: tuple[int, ...],
    steps: tuple[int, ...],
) -> list[tuple[int, ...]]:
    """Return the Haar features of a pool, sorted by channel, kind, cell size and position."""
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
    """Return the HOG features of a pool, one per row, by channel, block, cell and orientation."""
    corners = range(0, window - hog.cell * hog.block + 1, hog.cell)
    return [
        (kind, channel, x, y, hog.cell, hog.cell, part, orientation)
        for channel in range(3)
        for y in corners
        for x in corners
        for part in range(hog.block * hog.block)
        for orientation in range(hog.orientations)
    ]


class WindowLayout(NamedTuple):
    """Layout of a window in the form required by the compiled loops; see `HogLayout`."""

    window: int  # side in pixels
    cell: int
    block: int
    orientations: int
    epsilon: np.float32  # in the units of the stored histograms
    tangents: npt.NDArray[np.float32]  # of the bins' borders below pi / 2


def window_layout(window: int, hog: HogLayout) -> WindowLayout:
    """Return the layout of a window of ``window`` x ``window`` pixels."""
    borders = (2 * np.arange(hog.orientations // 2) + 1) * math.pi / (2 * hog.orientations)
    epsilon = np.float32(hog.epsilon * hog.cell**2 * MAGNITUDE_SCALE)
    return WindowLayout(
        window, hog.cell, hog.block, hog.orientations, epsilon, np.tan(borders).astype(np.float32)
    )


class Program(NamedTuple):
    """Features in the form required by the compiled loops; see `compile_program`.

    There are n features with at most K corners each. The value of a Haar feature is computed from
    the values of the integral image at its corners, with integer weights. HOG features have no
    corners.
    """

    n_corners: npt.NDArray[np.int64]  # (n,)
    channel: npt.NDArray[np.int64]  # (n,)
    corner_y: npt.NDArray[np.int64]  # (n, K), from the window's top
    corner_x: npt.NDArray[np.int64]  # (n, K)
    weight: npt.NDArray[np.int32]  # (n, K)
    inverse_area: npt.NDArray[np.float32]  # (n,)
    cell: npt.NDArray[np.int64]  # (n,) row of `cells`
    block: npt.NDArray[np.int64]  # (n,) row of `blocks`
    orientation: npt.NDArray[np.int64]  # (n,)
    cells: npt.NDArray[np.int64]  # (number of different cells, 3): channel, y, x
    blocks: npt.NDArray[np.int64]  # (number of different blocks, cells per block): rows of `cells`
    block_corner: npt.NDArray[np.int64]  # (number of different blocks, 3): channel, y, x
    hog: npt.NDArray[np.int64]  # the HOG features
    # all features by their number of corners: the order of the loops
    order: npt.NDArray[np.uint64]


def compile_program(
    features: npt.NDArray[np.int32],
    kinds: Mapping[str, tuple[tuple[int, ...], ...]],
    hog: HogLayout | None,
) -> Program:
    """Compile features, of shape (n, 8), given the Haar kinds and the HOG layout of their pool.

    The features must have been validated by `FeaturePool.check`.
    """
    n, n_kinds = len(features), len(kinds)
    kind, channel, x, y, w, h, part_of_block, orientation = np.array(
        features.T, dtype=np.int64, order="C"
    )
    corners = [_corner_weights(rows) for rows in kinds.values()]
    width = max([8] + [len(c) for c in corners])
    # row, column and weight of every corner of each kind
    table = np.zeros((n_kinds + 1, width, 3), np.int64)
    counts = np.zeros(n_kinds + 1, np.int64)
    totals = np.ones(n_kinds + 1)
    for k, (corner, rows) in enumerate(zip(corners, kinds.values(), strict=True)):
        table[k, : len(corner)] = corner
        counts[k] = 6 if len(corner) <= 6 else max(8, len(corner))  # unused corners have weight 0
        totals[k] = np.abs(np.array(rows)).sum() / 2
    area = w * h * totals[kind]

    is_hog = kind == n_kinds
    cell_index, block_index = np.zeros(n, np.int64), np.zeros(n, np.int64)
    cells, blocks, block_corner = (
        np.empty((0, 3), np.int64),
        np.empty((0, 1), np.int64),
        np.empty((0, 3), np.int64),
    )
    if is_hog.any() and hog is not None:
        side, block = hog.cell, hog.block
        block_corner, which = np.unique(
            np.stack([channel, y, x], axis=1)[is_hog], axis=0, return_inverse=True
        )
        part = np.arange(block * block)
        shift = np.stack([0 * part, part // block * side, part % block * side], axis=1)
        cells, of_block = np.unique(
            (block_corner[:, None] + shift).reshape(-1, 3), axis=0, return_inverse=True
        )
        blocks = of_block.reshape(-1, block * block).astype(np.int64)
        block_index[is_hog] = which.reshape(-1)
        cell_index[is_hog] = blocks[block_index[is_hog], part_of_block[is_hog]]
    return Program(
        n_corners=counts[kind],
        channel=channel,
        corner_y=y[:, None] + table[kind, :, 0] * h[:, None],
        corner_x=x[:, None] + table[kind, :, 1] * w[:, None],
        weight=table[kind, :, 2].astype(np.int32),
        inverse_area=np.where(is_hog, 1, 1 / area).astype(np.float32),
        cell=cell_index,
        block=block_index,
        orientation=orientation,
        cells=np.ascontiguousarray(cells),
        blocks=np.ascontiguousarray(blocks),
        block_corner=np.ascontiguousarray(block_corner),
        hog=np.flatnonzero(is_hog),
        order=np.argsort(counts[kind], kind="stable").astype(np.uint64),
    )


def _corner_weights(rows: tuple[tuple[int, ...], ...]) -> list[tuple[int, int, int]]:
    """Return the corners (row, column, weight) of the integral image that give the weighted sum of
    the cells."""
    padded = np.pad(np.array(rows), 1)
    corners = padded[:-1, :-1] - padded[:-1, 1:] - padded[1:, :-1] + padded[1:, 1:]
    return [(int(r), int(c), int(corners[r, c])) for r, c in np.argwhere(corners)]
