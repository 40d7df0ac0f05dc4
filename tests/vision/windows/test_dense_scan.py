"""The dense scan agrees with single windows."""

import numpy as np
import pytest
from annealed.learners.compilation import numpy_backend
from annealed.vision import (
    FeaturePool,
    HogLayout,
    Responses,
    extract_patches,
    level_channels,
    scan,
)
from annealed.vision.windows import level_features
from skimage.data import astronaut

POOL = FeaturePool()
IMAGE = astronaut()[60:125, 170:251]


def dense_values(channels, feature):
    """Return the value of one feature in every window of a level."""
    program = channels.pool.compile(np.atleast_2d(feature))
    windows = np.arange(channels.rows)[:, None] * channels.stride + np.arange(channels.width)
    if len(program.hog):
        cells, inverse_norm = channels.hog
        cell, block = channels.hog_offsets(program)[0].astype(np.int64)
        return cells.ravel()[windows + cell] * inverse_norm.ravel()[windows + block]
    offsets = channels.corner_offsets(program)[0].astype(np.int64)
    corners = channels.integral[windows[..., None] + offsets]
    scale = program.inverse_area[0] * channels.inverse_sigma[:, : channels.width]
    return (corners @ program.weight[0]) * scale


@pytest.fixture(scope="module")
def model():
    rng = np.random.default_rng(0)
    haar = rng.choice(POOL.n_haar, 90, replace=False)
    hog = POOL.n_haar + rng.choice(864, 30, replace=False)
    features = POOL.features[rng.permutation(np.concatenate([haar, hog]))]
    ys, xs = np.mgrid[: IMAGE.shape[0], : IMAGE.shape[1]]
    patches = extract_patches(IMAGE, xs.ravel(), ys.ravel())
    values = POOL.evaluate(patches, features)
    low = np.percentile(values, 2, axis=0)
    bin_width = (np.percentile(values, 98, axis=0) - low) / 6 + 1e-6
    return patches, values, (features, Responses(low, bin_width, rng.normal(size=(120, 7))), -0.25)


def test_values_of_every_window(model):
    _, values, (features, *_) = model
    channels = level_channels(IMAGE, POOL)
    for f in range(len(features)):
        dense = dense_values(channels, features[f])
        np.testing.assert_allclose(dense.ravel(), values[:, f], rtol=1e-6, atol=1e-7)


def test_scores_of_every_window(model):
    patches, _, additive = model
    scores = scan(level_channels(IMAGE, POOL), *additive)
    assert scores.shape == IMAGE.shape[:2]
    assert scores.dtype == np.float32
    np.testing.assert_allclose(
        scores.ravel(), POOL.partial_scores(patches, *additive)[:, -1], atol=1e-4
    )


def test_rejection(model):
    patches, _, additive = model
    partial = POOL.partial_scores(patches, *additive)
    thresholds = np.percentile(partial, 3, axis=0).astype(np.float32)
    thresholds[::5] = -np.inf
    margin = np.abs(partial - thresholds).min(axis=1)
    thresholds_clear = (
        margin > 1e-4
    )  # a sum within rounding of its threshold may fall on either side
    channels = level_channels(IMAGE, POOL)
    scores = scan(channels, *additive, thresholds).ravel()
    rejected = (partial < thresholds).any(axis=1)
    assert 0.1 < rejected.mean() < 0.9
    assert np.array_equal(np.isneginf(scores)[thresholds_clear], rejected[thresholds_clear])
    kept = ~np.isneginf(scores)
    assert np.array_equal(scores[kept], scan(channels, *additive).ravel()[kept])
    assert np.isneginf(scan(channels, *additive, np.full(120, np.inf))).all()


@pytest.mark.parametrize("height, width", [(1, 1), (1, 40), (33, 2), (31, 64)])
def test_any_size_of_image(height, width, model):
    image = IMAGE[:height, :width]
    _, _, (features, responses, intercept) = model
    ys, xs = np.mgrid[:height, :width]
    patches = extract_patches(image, xs.ravel(), ys.ravel())
    scores = scan(level_channels(image, POOL), features, responses, intercept)
    expected = POOL.partial_scores(patches, features, responses, intercept)[:, -1]
    np.testing.assert_allclose(scores.ravel(), expected, atol=1e-4)


def test_another_pool_and_number_of_bins():
    pool = FeaturePool(
        window=15,
        kinds={"long": ((1, -1, 1, -1, 1, -1),), "2v": ((1,), (-1,))},
        sides=(2, 3),
        hog=HogLayout(cell=3, block=3, orientations=4),
    )
    rng = np.random.default_rng(2)
    features = pool.features[rng.choice(len(pool.features), 60)]
    ys, xs = np.mgrid[: IMAGE.shape[0], : IMAGE.shape[1]]
    patches = extract_patches(IMAGE, xs.ravel(), ys.ravel(), window=15)
    additive = (
        features,
        Responses(np.full(60, -0.5), np.full(60, 0.1), rng.normal(size=(60, 11))),
        1.0,
    )
    np.testing.assert_allclose(
        scan(level_channels(IMAGE, pool), *additive).ravel(),
        pool.partial_scores(patches, *additive)[:, -1],
        atol=1e-4,
    )


def test_sums_may_wrap_around():
    image = np.full((3000, 1100, 3), 250, np.uint8)  # squares sum to 6e11
    image[-80:, -80:] = (
        IMAGE[-80:, -80:][:80, :80] if IMAGE.shape[0] >= 80 else np.resize(IMAGE, (80, 80, 3))
    )
    feature = POOL.features[1234]
    dense = dense_values(level_channels(image, POOL), feature)
    (value,) = POOL.evaluate(extract_patches(image, [1060], [2960]), feature)[0]
    np.testing.assert_allclose(dense[2960, 1060], value, rtol=1e-6)


def test_no_features():
    scores = scan(
        level_channels(IMAGE, POOL), POOL.features[:0], Responses([], [], np.empty((0, 7))), 0.75
    )
    assert (scores == 0.75).all()


def test_bad_input(model):
    channels = level_channels(IMAGE, POOL)
    _, _, (features, responses, intercept) = model
    with pytest.raises(
        ValueError,
        match="there are responses for 119 features; expected one for each of the 120 features",
    ):
        scan(channels, features, responses.take(np.arange(119)), intercept)
    with pytest.raises(ValueError, match="for each of the 120 features"):
        scan(channels, features, responses, intercept, np.zeros(3))
    with pytest.raises(ValueError, match=r"expected uint8 of shape \(H, W, 3\)"):
        level_channels(IMAGE[:, :, 0], POOL)
    with pytest.raises(ValueError, match="for each of the 120 features"):
        Responses(responses.low[:-1], responses.bin_width, responses.values)


def test_memory_that_is_not_set_changes_no_score(model, monkeypatch):
    take = level_features.Buffers.take

    def unset(*args):
        taken = take(*args)
        taken.view(np.uint8)[...] = 255  # NaN, as floats
        return taken

    with numpy_backend():
        expected = scan(level_channels(IMAGE, POOL), *model[2])
        monkeypatch.setattr(level_features.Buffers, "take", unset)
        np.testing.assert_array_equal(scan(level_channels(IMAGE, POOL), *model[2]), expected)
