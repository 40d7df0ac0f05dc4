"""Features and sparse additive models in the form that the compiled loops read, and the buffers of these loops."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from .feature_layout import Column, HogLayout
from .kernels import LANES
from .responses import Responses

__all__ = ["BlockTables", "CompiledModel", "Program", "block_offsets", "block_tables", "compile_model", "compile_program"]

_FIRST_STAGE = 8  # features of the first stage of a cascade; every next stage has twice as many. A choice


class Program(NamedTuple):
    """Features in the form that the loops read (`compile_program` makes it); n features, K corners at most.

    A Haar feature is a sum of integral image values at corners with whole weights; ``n_corners`` is 0 for HOG.
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
    with_6: npt.NDArray[np.int64]  # features with 6 corners,
    with_8: npt.NDArray[np.int64]  # with 8 or more,
    with_0: npt.NDArray[np.int64]  # and HOG


class BlockTables(NamedTuple):
    """Buffers of one block of windows, reused from block to block."""

    pixels: npt.NDArray[np.uint8]  # ((window + 2)**2 * 3, LANES)
    integral: npt.NDArray[np.int32]  # (3 * (window + 1)**2 * LANES,)
    inverse_sigma: npt.NDArray[np.float32]  # (LANES,)
    histogram: npt.NDArray[np.int32]  # (cells, orientations, LANES)
    inverse_norm: npt.NDArray[np.float32]  # (blocks, LANES)
    sums: npt.NDArray[np.int32]  # (LANES,)


def block_tables(program: Program, window: int, orientations: int) -> BlockTables:
    """Buffers for evaluating a program on blocks of windows."""
    return BlockTables(
        np.zeros(((window + 2) ** 2 * 3, LANES), np.uint8),
        np.zeros(3 * (window + 1) ** 2 * LANES, np.int32),
        np.zeros(LANES, np.float32),
        np.zeros((max(1, len(program.cells)), orientations, LANES), np.int32),
        np.zeros((max(1, len(program.blocks)), LANES), np.float32),
        np.zeros(LANES, np.int32),
    )


def compile_program(
    features: npt.NDArray[np.int32], kinds: Mapping[str, tuple[tuple[int, ...], ...]], hog: HogLayout | None
) -> Program:
    """Compile features (n, 8) that `FeaturePool.check` has accepted; kinds and layout are those of the pool."""
    n, n_kinds = len(features), len(kinds)
    kind = features[:, Column.KIND].astype(np.int64)
    x, y = features[:, Column.X].astype(np.int64), features[:, Column.Y].astype(np.int64)
    w, h = features[:, Column.CELL_WIDTH].astype(np.int64), features[:, Column.CELL_HEIGHT].astype(np.int64)
    corners = [_corner_weights(rows) for rows in kinds.values()]
    width = max([8] + [len(c) for c in corners])
    table = np.zeros((n_kinds + 1, width, 3), np.int64)  # row, column and weight of every corner, by kind
    counts = np.zeros(n_kinds + 1, np.int64)
    totals = np.ones(n_kinds + 1)
    for k, (found, rows) in enumerate(zip(corners, kinds.values(), strict=True)):
        table[k, : len(found)] = found
        counts[k] = 6 if len(found) <= 6 else max(8, len(found))  # spare corners have weight 0
        totals[k] = np.abs(np.array(rows)).sum() / 2
    area = w * h * totals[kind]
    channel = features[:, Column.CHANNEL].astype(np.int64)

    is_hog = kind == n_kinds
    cell_index, block_index = np.zeros(n, np.int64), np.zeros(n, np.int64)
    cells, blocks, block_corner = np.empty((0, 3), np.int64), np.empty((0, 1), np.int64), np.empty((0, 3), np.int64)
    if is_hog.any() and hog is not None:
        side, block = hog.cell, hog.block
        block_corner, which = np.unique(np.stack([channel, y, x], axis=1)[is_hog], axis=0, return_inverse=True)
        part = np.arange(block * block)
        shift = np.stack([0 * part, part // block * side, part % block * side], axis=1)
        cells, of_block = np.unique((block_corner[:, None] + shift).reshape(-1, 3), axis=0, return_inverse=True)
        blocks = of_block.reshape(-1, block * block).astype(np.int64)
        block_index[is_hog] = which.reshape(-1)
        cell_index[is_hog] = blocks[block_index[is_hog], features[is_hog, Column.CELL]]
    return Program(
        n_corners=counts[kind],
        channel=channel,
        corner_y=y[:, None] + table[kind, :, 0] * h[:, None],
        corner_x=x[:, None] + table[kind, :, 1] * w[:, None],
        weight=table[kind, :, 2].astype(np.int32),
        inverse_area=np.where(is_hog, 1, 1 / area).astype(np.float32),
        cell=cell_index,
        block=block_index,
        orientation=features[:, Column.ORIENTATION].astype(np.int64),
        cells=np.ascontiguousarray(cells),
        blocks=np.ascontiguousarray(blocks),
        block_corner=np.ascontiguousarray(block_corner),
        with_6=np.flatnonzero(counts[kind] == 6),
        with_8=np.flatnonzero(counts[kind] >= 8),
        with_0=np.flatnonzero(is_hog),
    )


def _corner_weights(rows: tuple[tuple[int, ...], ...]) -> list[tuple[int, int, int]]:
    """(row, column, weight) of the integral image's corners whose sum is the weighted sum of the cells."""
    padded = np.pad(np.array(rows), 1)
    corners = padded[:-1, :-1] - padded[:-1, 1:] - padded[1:, :-1] + padded[1:, 1:]
    return [(int(r), int(c), int(corners[r, c])) for r, c in np.argwhere(corners)]


def block_offsets(program: Program, window: int) -> npt.NDArray[np.uint64]:
    """Where the corners lie in the integral images of a block of windows."""
    side = window + 1
    flat = (program.channel[:, None] * side + program.corner_y) * side + program.corner_x
    return (flat * LANES).astype(np.uint64)


@dataclass(frozen=True)
class CompiledModel:
    """A sparse additive model of windows in the form that the compiled loops read. n features, q outputs.

    Attributes
    ----------
    program : Program
        The features.
    slope, shift : (n,) float32 ndarrays
        A numerator s of feature f, times its scale, lies at ``s * slope[f] - shift[f]`` among the bins.
    top : float32
        Number of bins.
    start : (q, n) float32 ndarray
        Responses at the left border.
    rises : (q, n, 6 * K) float32 ndarray
        How much the response rises in each bin.
    intercept : (q,) float32 ndarray
    limits : (n,) float32 ndarray
        Rejection thresholds of the first output.
    stages : (m + 1,) int64 ndarray
        Features 0, 8, 24, 56, ..., n, and the first one that needs histograms: windows that are rejected in one stage
        do not enter the next.
    plain : int
        Stages before the first feature that needs histograms.
    """

    program: Program
    slope: npt.NDArray[np.float32]
    shift: npt.NDArray[np.float32]
    top: np.float32
    start: npt.NDArray[np.float32]
    rises: npt.NDArray[np.float32]
    intercept: npt.NDArray[np.float32]
    limits: npt.NDArray[np.float32]
    stages: npt.NDArray[np.int64]
    plain: int


def compile_model(
    program: Program, responses: Responses, intercept: npt.ArrayLike, thresholds: npt.ArrayLike | None = None
) -> CompiledModel:
    """Prepare a model for any number of levels; parameters and errors as in `annealed.vision.scan`."""
    n_features = len(program.channel)
    responses.check_length(n_features)
    tables = [responses.tables(q) for q in range(responses.n_outputs)]
    offset = np.atleast_1d(np.asarray(intercept, dtype=np.float32))
    if offset.shape != (responses.n_outputs,):
        raise ValueError(f"intercept of shape {offset.shape}: expected one number for each of {responses.n_outputs} outputs")
    low, inverse_bin_width, top, *_ = tables[0]
    limits = np.full(n_features, -np.inf, np.float32) if thresholds is None else np.asarray(thresholds, dtype=np.float32)
    if limits.shape != (n_features,) or np.isnan(limits).any():
        raise ValueError(f"thresholds of shape {limits.shape}: expected one number for each of {n_features} features")
    start, rises = np.stack([table.start for table in tables]), np.stack([table.rises for table in tables])
    first_hog = int(program.with_0.min(initial=n_features))
    stages = stage_ends(n_features, first_hog)
    return CompiledModel(
        program, program.inverse_area * inverse_bin_width, low * inverse_bin_width, top, start, rises, offset, limits,
        stages, int(np.searchsorted(stages, first_hog)),
    )  # fmt: skip


def stage_ends(n_features: int, first_hog: int) -> npt.NDArray[np.int64]:
    """Where stages begin and end; see `CompiledModel`."""
    ends = np.minimum(_FIRST_STAGE * (2 ** np.arange(60) - 1), n_features)
    return np.unique(np.append(ends, [first_hog, n_features])).astype(np.int64)
