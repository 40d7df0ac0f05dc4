"""Figures 4.4 and 4.5 of Ma (thesis): photographs of cats and dogs, and the keypoints of their
visual words.
"""

import numpy as np
from annealed.pipelines.pets.data import Photographs, read_pets
from annealed.vision.words.dense_sift import CELL_OF_SIZE, N_CELLS, DenseSift
from matplotlib.collections import LineCollection
from matplotlib.figure import Figure

from ..datasets import data_folder

_SIDE = 400  # pixels of the longer side, as in training
_STEP = 40  # pixels between the drawn keypoints
_SIZE = 8.0  # of the drawn keypoints, in pixels


def keypoints(data_dir=None) -> Figure:
    """Figures 4.4 and 4.5: two cats and two dogs of the training photographs, and the descriptors
    of keypoints on one dog.

    Descriptors of some keypoints are drawn as in Ma (thesis): a star of eight orientations in each
    of 4 x 4 cells.
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
    """Line segments (n, 2, 2) in pixels: the orientations of the cells of each keypoint, with
    lengths by their share.
    """
    descriptors = DenseSift(step=_STEP, sizes=(_SIZE,)).describe(image)
    cells = descriptors.values.reshape(-1, N_CELLS, N_CELLS, 8) / 512.0  # of length one
    width = CELL_OF_SIZE * _SIZE
    offset = width * (np.arange(N_CELLS) - N_CELLS / 2 + 0.5)
    angle = 2.0 * np.pi * np.arange(8) / 8
    x = descriptors.positions[:, 0, None, None, None] + offset[None, None, :, None]
    y = descriptors.positions[:, 1, None, None, None] + offset[None, :, None, None]
    ends = x + width * cells * np.cos(angle), y + width * cells * np.sin(angle)
    segments = np.stack([np.broadcast_arrays(x, ends[0]), np.broadcast_arrays(y, ends[1])], axis=-1)
    return np.moveaxis(segments, 0, -2).reshape(-1, 2, 2)
