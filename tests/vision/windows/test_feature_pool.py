"""The feature pool compared with a reference implementation, its mirror images, and
scikit-image."""

import numpy as np
import pytest
from annealed.vision.pyramid import nearest_pixel
from annealed.vision.windows.feature_layout import Column, HogLayout
from annealed.vision.windows.feature_pool import FeaturePool
from annealed.vision.windows.kernels import MAGNITUDE_SCALE
from annealed.vision.windows.patches import extract_patches
from annealed.vision.windows.responses import Responses
from hypothesis import given, settings
from hypothesis import strategies as st
from skimage.data import astronaut
from skimage.feature import haar_like_feature, hog

POOL = FeaturePool()
IMAGE = astronaut()


@pytest.fixture(scope="module")
def patches():
    rng = np.random.default_rng(0)
    real = extract_patches(IMAGE, rng.integers(-5, 517, 60), rng.integers(-5, 517, 60))
    noise = rng.integers(0, 256, (10, 26, 26, 3)).astype(np.uint8)
    black_white = (rng.integers(0, 2, (3, 26, 26, 3)) * 255).astype(np.uint8)
    flat = np.full((1, 26, 26, 3), 77, np.uint8)
    return np.concatenate([real, noise, black_white, flat])


@pytest.fixture(scope="module")
def some_features():
    rng = np.random.default_rng(1)
    chosen = [
        rng.choice(np.flatnonzero(POOL.features[:, Column.KIND] == kind), 30, replace=False)
        for kind in range(7)
    ]
    return POOL.features[rng.permutation(np.concatenate(chosen))]


def plain_value(pool, feature, patch):
    """One feature of one patch, straight from the definition."""
    patch = patch.astype(float)
    inner = patch[1:-1, 1:-1]
    x, y, w, h = feature[[Column.X, Column.Y, Column.CELL_WIDTH, Column.CELL_HEIGHT]]
    if feature[Column.KIND] < len(pool.kinds):
        weights = np.array(list(pool.kinds.values())[feature[Column.KIND]])
        sigma = max(1.0, np.sqrt(np.mean([inner[:, :, c].var() for c in range(3)])))
        total = sum(
            weight
            * inner[
                y + i * h : y + (i + 1) * h, x + j * w : x + (j + 1) * w, feature[Column.CHANNEL]
            ].sum()
            for (i, j), weight in np.ndenumerate(weights)
        )
        return total / (sigma * w * h * np.abs(weights).sum() / 2)
    layout, plane = pool.hog, patch[:, :, feature[Column.CHANNEL]]
    gx, gy = plane[1:-1, 2:] - plane[1:-1, :-2], plane[2:, 1:-1] - plane[:-2, 1:-1]
    length = np.rint(4 * np.hypot(gx, gy)) / 4
    bins = (
        np.floor(np.arctan2(gy, gx) / (np.pi / layout.orientations) + 0.5).astype(int)
        % layout.orientations
    )
    histograms = []
    for part in range(layout.block**2):
        top, left = y + part // layout.block * layout.cell, x + part % layout.block * layout.cell
        cell = np.s_[top : top + layout.cell, left : left + layout.cell]
        histograms.append(
            np.bincount(bins[cell].ravel(), length[cell].ravel(), layout.orientations)
        )
    norm = np.sqrt((np.array(histograms) ** 2).sum() + (layout.epsilon * layout.cell**2) ** 2)
    return histograms[feature[Column.CELL]][feature[Column.ORIENTATION]] / norm


def numpy_values(pool, features, patches):
    """Values (n, m) of features in patches: whole numbers summed exactly, all else in the order and
    precision of the loops."""
    program, window, tangents = pool.compile(features), pool.window, pool.layout.tangents
    pixels = patches.transpose(0, 3, 1, 2).astype(np.int32)
    inner = pixels[:, :, 1:-1, 1:-1]
    integral = np.zeros((len(patches), 3, window + 1, window + 1), np.int32)
    integral[:, :, 1:, 1:] = inner.cumsum(axis=2).cumsum(axis=3)
    corners = integral[:, program.channel[:, None], program.corner_y, program.corner_x]
    used = np.arange(program.weight.shape[1]) < program.n_corners[:, None]
    sums = (corners * np.where(used, program.weight, 0)).sum(axis=2, dtype=np.int32)
    values = sums.astype(np.float32) * (
        program.inverse_area * _inverse_sigma(inner, integral)[:, None]
    )
    f = program.hog
    if len(f):
        length, bins = _gradients(pixels, tangents)
        histogram = _cell_histograms(
            length, bins, program.cells, pool.layout.cell, 2 * tangents.size
        )
        norm = _inverse_norm(histogram[:, program.blocks], pool.layout.epsilon)
        entries = histogram[:, program.cell[f], program.orientation[f]].astype(np.float32)
        values[:, f] = entries * norm[:, program.block[f]]
    return values


def _inverse_sigma(inner, integral):
    """1 / sigma of every window (n,)."""
    n = float(inner.shape[2] * inner.shape[3])
    boxes = integral[:, :, -1, -1].astype(np.float64)
    scaled_variance = n * (inner * inner).sum(axis=(1, 2, 3)).astype(np.float64) - (
        boxes * boxes
    ).sum(axis=1)
    sigma = np.sqrt((scaled_variance * (1 / (3 * n * n))).astype(np.float32))
    return np.float32(1) / np.maximum(sigma, np.float32(1))


def _gradients(pixels, tangents):
    """Rounded lengths and bins (n, 3, window, window) of the gradients."""
    m = 2 * tangents.size
    gx = (pixels[:, :, 1:-1, 2:] - pixels[:, :, 1:-1, :-2]).astype(np.float32)
    gy = (pixels[:, :, 2:, 1:-1] - pixels[:, :, :-2, 1:-1]).astype(np.float32)
    length = (np.sqrt(gx * gx + gy * gy) * np.float32(MAGNITUDE_SCALE) + np.float32(0.5)).astype(
        np.int32
    )
    bins = (np.abs(gy)[..., None] > np.abs(gx)[..., None] * tangents).sum(axis=-1)
    return length, np.where((gx * gy < 0) & (bins > 0), m - bins, bins)


def _cell_histograms(length, bins, cells, side, n_bins):
    """Histograms (n, number of cells, n_bins), int32."""
    area = np.arange(side)
    at = (
        cells[:, 0, None, None],
        cells[:, 1, None, None] + area[:, None],
        cells[:, 2, None, None] + area,
    )
    where = (
        np.arange(len(length) * len(cells)).reshape(len(length), -1, 1, 1) * n_bins + bins[:, *at]
    )
    histogram = np.bincount(
        where.ravel(), length[:, *at].ravel(), len(length) * len(cells) * n_bins
    )
    return histogram.reshape(len(length), len(cells), n_bins).astype(np.int32)


def _inverse_norm(histogram, epsilon):
    """1 / norm (n, blocks) of histograms (n, blocks, cells, bins), squares added one by one."""
    entries = histogram.reshape(*histogram.shape[:2], -1).astype(np.float32)
    energy = np.full(entries.shape[:2], epsilon * epsilon, np.float32)
    for k in range(entries.shape[2]):
        energy += entries[:, :, k] * entries[:, :, k]
    return np.float32(1) / np.sqrt(energy)


def test_size_of_the_pool():
    features = POOL.features
    assert len(features) == 61_608
    assert POOL.n_haar == 60_744
    assert len(np.unique(features, axis=0)) == len(features)
    for channel in range(3):
        ours = features[features[:, Column.CHANNEL] == channel, Column.KIND]
        assert (ours < 6).sum() == 20_248
        assert (ours == 6).sum() == 288
    assert np.array_equal(POOL.check(features), features)


def test_all_features_against_the_definition(patches, some_features):
    plain = np.array([[plain_value(POOL, f, p) for f in some_features] for p in patches[::4]])
    values = POOL.evaluate(patches[::4], some_features)
    assert values.dtype == np.float32
    np.testing.assert_allclose(values, plain, rtol=2e-5, atol=2e-5)


def test_subset_equals_full(patches, some_features):
    full = POOL.evaluate(patches)
    index = {tuple(f): i for i, f in enumerate(POOL.features.tolist())}
    columns = [index[tuple(f)] for f in some_features.tolist()]
    assert np.array_equal(full[:, columns], POOL.evaluate(patches, some_features))
    assert np.array_equal(full[5:6], POOL.evaluate(patches[5:6]))
    assert np.array_equal(
        POOL.evaluate(patches, some_features), numpy_values(POOL, some_features, patches)
    )


def test_no_patches_and_no_features(patches):
    assert POOL.evaluate(patches[:0], POOL.features[:3]).shape == (0, 3)
    assert POOL.evaluate(patches[:2], POOL.features[:0]).shape == (2, 0)


def test_constant_window_has_no_features():
    assert not POOL.evaluate(np.full((1, 26, 26, 3), 200, np.uint8)).any()


def test_mirror_law(patches):
    mirrored, signs = POOL.mirrored(POOL.features)
    ours = POOL.evaluate(patches[:, :, ::-1])
    np.testing.assert_allclose(POOL.evaluate(patches, mirrored), signs * ours, rtol=1e-6, atol=1e-7)
    back, again = POOL.mirrored(mirrored)
    assert np.array_equal(back, POOL.features)
    assert np.array_equal(signs, again)
    # The default grid is symmetric for HOG and for most Haar features; every mirror image is a
    # legal feature anyway.
    assert np.array_equal(POOL.check(mirrored), mirrored)


@settings(max_examples=25, deadline=None)
@given(st.integers(0, 6), st.integers(0, 2), st.data())
def test_any_feature_that_fits(kind, channel, data):
    columns, rows = ([2, 1, 3, 1, 2, 3, 2][kind], [1, 2, 1, 3, 2, 3, 2][kind])
    w, h = (
        (6, 6)
        if kind == 6
        else (data.draw(st.integers(1, 24 // columns)), data.draw(st.integers(1, 24 // rows)))
    )
    x, y = data.draw(st.integers(0, 24 - columns * w)), data.draw(st.integers(0, 24 - rows * h))
    hog_part = (data.draw(st.integers(0, 3)), data.draw(st.integers(0, 7))) if kind == 6 else (0, 0)
    feature = np.array([kind, channel, x, y, w, h, *hog_part])
    patch = extract_patches(IMAGE, [200], [100])
    np.testing.assert_allclose(
        POOL.evaluate(patch, feature)[0, 0],
        plain_value(POOL, feature, patch[0]),
        rtol=2e-5,
        atol=2e-5,
    )


def test_another_pool():
    pool = FeaturePool(
        window=16,
        kinds={"2h": ((1, -1),), "diagonal": ((2, -1), (0, -1)), "long": ((1, -1, 1, -1, 1, -1),)},
        sides=(2, 5),
        steps=(3, 4),
        hog=HogLayout(cell=4, block=3, orientations=12, epsilon=2.0),
    )
    assert len(pool.features) == pool.n_haar + 3 * 4 * 9 * 12
    patch = extract_patches(IMAGE, [200, 230], [100, 120], window=16)
    chosen = pool.features[::17]
    plain = [[plain_value(pool, f, p) for f in chosen] for p in patch]
    np.testing.assert_allclose(pool.evaluate(patch, chosen), plain, rtol=2e-5, atol=2e-5)
    again = FeaturePool.from_dict(pool.to_dict())
    assert np.array_equal(again.features, pool.features)
    assert again.to_dict() == pool.to_dict()
    with pytest.raises(ValueError, match="'diagonal' has no mirror image in the pool"):
        pool.mirrored(pool.features)


def test_haar_parity_with_scikit_image():
    window = IMAGE[90:114, 210:234]
    integral = np.pad(window[:, :, 0].astype(np.int64).cumsum(0).cumsum(1), ((1, 0), (1, 0)))
    sigma = max(1.0, np.sqrt(window.reshape(-1, 3).var(axis=0).mean()))
    patch = extract_patches(IMAGE, [222], [102])
    for kind, theirs, columns, rows in (
        (0, "type-2-x", 2, 1),
        (1, "type-2-y", 1, 2),
        (2, "type-3-x", 3, 1),
        (4, "type-4", 2, 2),
    ):
        ours = np.array(
            [f for f in POOL.features if f[Column.KIND] == kind and f[Column.CHANNEL] == 0][::37]
        )
        values = (
            POOL.evaluate(patch, ours)[0]
            * sigma
            * ours[:, Column.CELL_WIDTH]
            * ours[:, Column.CELL_HEIGHT]
        )
        values *= 1 if kind < 2 else 2
        expected = []
        for f in ours:
            w, h = f[Column.CELL_WIDTH], f[Column.CELL_HEIGHT]
            cells = [
                [
                    (f[Column.Y] + i * h, f[Column.X] + j * w),
                    (f[Column.Y] + (i + 1) * h - 1, f[Column.X] + (j + 1) * w - 1),
                ]
                for i in range(rows)
                for j in range(columns)
            ]
            sums = [
                window[a[0] : b[0] + 1, a[1] : b[1] + 1, 0].sum(dtype=np.int64) for a, b in cells
            ]
            coordinates = np.empty((1, len(cells)), dtype=object)
            for n, corners in enumerate(
                cells if kind != 4 else [cells[0], cells[1], cells[3], cells[2]]
            ):
                coordinates[0, n] = corners
            value = haar_like_feature(
                integral[1:, 1:],
                0,
                0,
                24,
                24,
                feature_type=np.array([theirs], dtype=object),
                feature_coord=coordinates,
            )[0]
            # Theirs weigh the middle cell of three once and have the other sign.
            expected.append(-value + (-sums[1] if kind == 2 else 0) if kind != 4 else -value)
        np.testing.assert_allclose(np.abs(values), np.abs(expected), rtol=1e-4, atol=1e-2)


def test_hog_parity_with_scikit_image():
    patch = extract_patches(IMAGE, [222], [102])
    hog_features = POOL.features[POOL.n_haar :]
    # the window and one cell around it, so that border gradients are included
    surround = IMAGE[84:120, 204:240]
    for channel in range(3):
        fine = hog(surround[:, :, channel], 16, (6, 6), (6, 6), "L1", feature_vector=False).reshape(
            6, 6, 16
        )
        fine = np.roll(fine[1:5, 1:5], 1, axis=2)
        # of no unit: only ratios within a block remain
        histogram = (fine[:, :, 0::2] + fine[:, :, 1::2]) * 1e6
        ours = hog_features[hog_features[:, Column.CHANNEL] == channel]
        expected = []
        for f in ours:
            i, j = f[Column.Y] // 6, f[Column.X] // 6
            block = histogram[i : i + 2, j : j + 2]
            expected.append(
                block[f[Column.CELL] // 2, f[Column.CELL] % 2, f[Column.ORIENTATION]]
                / np.sqrt((block**2).sum())
            )
        np.testing.assert_allclose(POOL.evaluate(patch, ours)[0], expected, atol=0.02)


def test_patches_repeat_the_border():
    xs, ys = np.array([0, -3, 511, 250, 515]), np.array([0, 200, 511, -2, 520])
    padded = np.pad(IMAGE, ((40, 40), (40, 40), (0, 0)), mode="edge")
    for patch, x, y in zip(extract_patches(IMAGE, xs, ys), xs, ys, strict=True):
        assert np.array_equal(patch, padded[y + 40 - 13 : y + 40 + 13, x + 40 - 13 : x + 40 + 13])
    (patch,) = extract_patches(IMAGE, [77], [99])
    assert np.array_equal(patch[13, 13], IMAGE[99, 77])
    assert nearest_pixel([[1.5, 1.49], [-0.5, -0.51]]).tolist() == [[2, 1], [0, -1]]


def test_names_are_unique():
    names = [POOL.name(feature) for feature in POOL.features[::29]]
    assert len(set(names)) == len(names)
    assert POOL.name(POOL.features[-1]) == "blue hog block at (12, 12), cell 3, orientation 7"


def test_partial_scores_are_interpolated_tables(patches, some_features):
    rng = np.random.default_rng(3)
    values = POOL.evaluate(patches, some_features)
    for n_bins in (1, 4, 6, 7, 13):
        lo, hi = np.percentile(values, [5, 95], axis=0)
        step = (hi - lo) / n_bins + 1e-6
        coef = rng.normal(size=(len(lo), n_bins + 1))
        expected = 0.5 + np.cumsum(
            [
                np.interp(values[:, m], lo[m] + step[m] * np.arange(n_bins + 1), coef[m])
                for m in range(len(lo))
            ],
            axis=0,
        )
        partial = POOL.partial_scores(patches, some_features, Responses(lo, step, coef), 0.5)
        np.testing.assert_allclose(partial, expected.T, atol=2e-4)


@pytest.mark.parametrize(
    "feature",
    [
        [7, 0, 0, 0, 6, 6, 0, 0],
        [0, 3, 0, 0, 2, 2, 0, 0],
        [0, 0, 21, 0, 2, 2, 0, 0],
        [6, 0, 0, 0, 6, 6, 4, 0],
    ],
)
def test_features_that_do_not_fit(feature, patches):
    with pytest.raises(ValueError, match=r"feature \[.*\] is not in this pool"):
        POOL.evaluate(patches, feature)


def test_bad_input(patches):
    with pytest.raises(ValueError, match=r"expected uint8 of shape \(n, 26, 26, 3\)"):
        POOL.evaluate(patches[:, 1:-1, 1:-1])
    with pytest.raises(ValueError, match="expected integers"):
        extract_patches(IMAGE, [1.5], [2.0])
    with pytest.raises(ValueError, match="definition of the feature pool"):
        FeaturePool.from_dict({"window": 24})
    with pytest.raises(ValueError, match="sum to zero"):
        FeaturePool(kinds={"odd": ((1, 1),)})
    with pytest.raises(ValueError, match="width > 0"):
        POOL.partial_scores(patches, POOL.features[:1], Responses([0.0], [0.0], [[0.0, 1.0]]), 0.0)
