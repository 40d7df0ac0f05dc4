"""Gradient histograms around points, compared with a direct computation."""

import numpy as np
from annealed.vision.point_histograms import (
    CELLS,
    DIRECTIONS,
    VALUES_PER_POINT,
    Frame,
    cut_frame,
    point_histograms,
)
from annealed.vision.pyramid import gaussian_pyramid
from skimage.data import astronaut


def plain(pixels, x, y, cell):
    """The histograms of one point at whole pixels of cells, with sums written out."""
    grey = pixels.astype(float)
    padded = np.pad(grey, 1, mode="edge")
    gx, gy = padded[1:-1, 2:] - padded[1:-1, :-2], padded[2:, 1:-1] - padded[:-2, 1:-1]
    shares = np.zeros((*grey.shape, DIRECTIONS))
    angles = np.arange(DIRECTIONS) * np.pi / 4
    for i, j in np.ndindex(grey.shape):
        g = np.array([gx[i, j], gy[i, j]])
        if not g.any():
            continue
        sector = int(np.arctan2(g[1], g[0]) % (2 * np.pi) // (np.pi / 4)) % 8
        pair = [sector, (sector + 1) % 8]
        shares[i, j, pair] = np.linalg.solve(
            np.stack([np.cos(angles[pair]), np.sin(angles[pair])]), g
        )
    out = []
    for row in range(CELLS):
        for column in range(CELLS):
            top, left = y + (row - 2) * cell, x + (column - 2) * cell
            out.append(shares[top : top + cell, left : left + cell].sum(axis=(0, 1)))
    values = np.concatenate(out)
    return np.minimum(values / (np.linalg.norm(values) + 4 * cell * cell), 0.25)


def test_histograms_are_sums_of_gradients():
    pixels = astronaut()[60:130, 180:250, 1]
    frame = Frame(np.ascontiguousarray(pixels), 0j, 1.0)
    for cell in (4, 5):
        for x, y in ((30, 32), (40, 28)):
            # A point in the middle of its cells: half a pixel off where these have an even number
            # of pixels.
            result = point_histograms(frame, np.array([x - 0.5 + 1j * (y - 0.5)]), cell)
            assert result.shape == (1, VALUES_PER_POINT)
            np.testing.assert_allclose(result[0], plain(pixels, x, y, cell), atol=2e-4)


def test_between_pixels_values_are_interpolated_and_outside_repeated():
    frame = Frame(np.ascontiguousarray(astronaut()[60:130, 180:250, 1]), -1 - 1j, 10.0)
    around = [point_histograms(frame, np.array([1 + 1.2j + step]), 4)[0] for step in (0, 0.05, 0.1)]
    assert np.abs(around[1] - (around[0] + around[2]) / 2).max() < 0.02
    assert np.isfinite(point_histograms(frame, np.array([-50 + 0j, 900j]), 4)).all()


def test_a_frame_is_the_upright_face():
    image = astronaut()
    levels = gaussian_pyramid(image)
    upright = cut_frame(levels, 100 + 0j, 200 + 100j, (0.0, 0.0, 1.0, 0.5), 50)
    assert upright.pixels.shape == (25, 50) and upright.pixels.dtype == np.uint8
    turned = np.ascontiguousarray(
        np.rot90(image, -1)
    )  # clockwise: (x, y) goes to (height - 1 - y, x)
    same = cut_frame(
        gaussian_pyramid(turned), 100j, complex(511 - 100, 200), (0.0, 0.0, 1.0, 0.5), 50
    )
    assert np.abs(same.pixels.astype(int) - upright.pixels.astype(int)).mean() < 3
