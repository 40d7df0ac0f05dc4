"""Figures of cats and dogs and the keypoints of their visual words, from Ma (thesis)."""

import numpy as np
from annealed.pipelines.pets.data import Photographs, read_pets
from annealed.vision.words.dense_sift import CELL_OF_SIZE, N_CELLS, DenseSift
from matplotlib.collections import LineCollection
from matplotlib.figure import Figure

from ..datasets import data_folder

_SIDE = 400  # longer side in pixels, as in training
_STEP = 40  # distance between drawn keypoints in pixels
_SIZE = 8.0  # size of the drawn keypoints in pixels


def keypoints(data_dir=None) -> Figure:
    """Draw two cats and two dogs of the training photographs, and descriptors on one dog (Figures
    4.4 and 4.5).

    The descriptors of some keypoints are drawn as in Ma (thesis), with a star of eight orientations
    in each of 4 x 4 cells.
    """
    files = [f for f in read_pets(data_folder(data_dir) / "pets") if f.split != "test"]
    chosen = [
        f
        for label in sorted({f.label for f in files})[:2]
        for f in [f for f in files if f.label == label][:2]
    ]
    photographs = Photographs(chosen, _SIDE)
    figure = Figure(figsize=(12, 7), layout="constrained")
    grid = figure.add_gridspec(2, 4)
    for place, photograph in zip((grid[0, 0], grid[1, 0], grid[0, 1], grid[1, 1]), photographs):
        ax = figure.add_subplot(place)
        ax.imshow(photograph.image)
        ax.axis("off")
    image = photographs[len(chosen) - 1].image
    ax = figure.add_subplot(grid[:, 2:])
    ax.imshow(image)
    ax.axis("off")
    ax.add_collection(LineCollection(list(_stars(image)), colors="C1", linewidths=0.7))
    return figure


def _stars(image) -> np.ndarray:
    """Return line segments (n, 2, 2) in pixels for the orientations in each keypoint's cells, with
    lengths proportional to their shares.
    """
    descriptors = DenseSift(step=_STEP, sizes=(_SIZE,)).describe(image)
    cells = descriptors.values.reshape(-1, N_CELLS, N_CELLS, 8) / 512.0  # scaled to length one
    width = CELL_OF_SIZE * _SIZE
    offset = width * (np.arange(N_CELLS) - N_CELLS / 2 + 0.5)
    angle = 2.0 * np.pi * np.arange(8) / 8
    x = descriptors.positions[:, 0, None, None, None] + offset[None, None, :, None]
    y = descriptors.positions[:, 1, None, None, None] + offset[None, :, None, None]
    ends = x + width * cells * np.cos(angle), y + width * cells * np.sin(angle)
    segments = np.stack([np.broadcast_arrays(x, ends[0]), np.broadcast_arrays(y, ends[1])], axis=-1)
    return np.moveaxis(segments, 0, -2).reshape(-1, 2, 2)
