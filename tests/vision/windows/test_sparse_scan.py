"""Chosen windows, strips and reused memory agree with the dense scan of a whole level."""

import numpy as np
import pytest
from annealed.vision import level_channels
from annealed.vision.windows.level_features import Buffers
from annealed.vision.windows.scan import scan_level, score_windows
from window_models import IMAGE, POOL, random_classifier


@pytest.mark.parametrize("share", [0.0, 0.02, 0.2])
def test_chosen_windows_score_as_in_the_dense_scan(share):
    model = random_classifier(4, 130, share).compiled(POOL)
    channels = level_channels(IMAGE, POOL)
    dense = scan_level(channels, model)
    ys, xs = np.divmod(np.random.default_rng(0).permutation(dense.size), dense.shape[1])
    np.testing.assert_array_equal(score_windows(channels, model, xs, ys), dense[ys, xs])
    assert score_windows(channels, model, [], []).shape == (0,)
    with pytest.raises(ValueError, match="outside"):
        score_windows(channels, model, [IMAGE.shape[1]], [0])


def test_histograms_of_single_windows_are_those_of_the_level():
    channels = level_channels(IMAGE, POOL)
    program = POOL.compile(POOL.features[POOL.n_haar :])
    places = np.random.default_rng(1).permutation(200 * channels.stride)[:50]
    places = places[places % channels.stride < 200].astype(np.uint64)
    cells, norms = channels.window_hog(places, program)
    all_cells, all_norms = channels.hog
    rows, columns = np.divmod(places.astype(int), channels.stride)
    for i, (c, y, x) in enumerate(program.cells):
        at = (rows + y) * channels.stride + columns + x
        np.testing.assert_array_equal(cells[:, i], all_cells[8 * c : 8 * c + 8, at].T)
    for i, (c, y, x) in enumerate(program.block_corner):
        np.testing.assert_array_equal(
            norms[:, i], all_norms[c, (rows + y) * channels.stride + columns + x]
        )


def test_few_or_many_windows_make_no_difference():
    model, few, many = (
        random_classifier(9, 80, 0.02).compiled(POOL),
        level_channels(IMAGE, POOL),
        level_channels(IMAGE, POOL),
    )
    assert len(many.hog) == 2
    ys, xs = (part.ravel() for part in np.mgrid[4:200:30, 7:200:30])
    np.testing.assert_array_equal(
        score_windows(few, model, xs, ys), score_windows(many, model, xs, ys)
    )
    assert not few.has_hog and many.has_hog


def test_buffers_are_taken_over():
    model, buffers = random_classifier(10, 60, 0.02).compiled(POOL), Buffers()
    for image in (IMAGE, IMAGE[30:90, 20:100], IMAGE[:150, ::-1]):
        image = np.ascontiguousarray(image)
        expected = scan_level(level_channels(image, POOL), model)
        np.testing.assert_array_equal(
            scan_level(level_channels(image, POOL, buffers=buffers), model), expected
        )


@pytest.mark.parametrize("margin", [0, 7])
def test_strips_are_the_whole_to_the_bit(margin):
    model = random_classifier(6, 80, 0.02).compiled(POOL)
    whole = scan_level(level_channels(IMAGE, POOL), model)
    for top, bottom in ((0, 60), (60, 131), (131, 200)):
        part = level_channels(IMAGE, POOL, (top, bottom), margin)
        scores = scan_level(part, model)
        np.testing.assert_array_equal(scores, whole[part.first : part.first + part.rows])
        held = np.arange(part.first, part.first + part.rows) % 3 == 0
        every_third = np.where(held[:, None], scores, -np.inf)
        np.testing.assert_array_equal(scan_level(part, model, 3), every_third)
        assert (
            part.first == max(0, top - margin)
            and part.rows == min(200, bottom + margin) - part.first
        )
    with pytest.raises(ValueError, match="rows"):
        level_channels(IMAGE, POOL, (150, 201))
