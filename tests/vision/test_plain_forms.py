"""The NumPy versions of the detection loops agree with the compiled ones."""

import numpy as np
import pytest
from annealed.learners.compilation import problem_size
from annealed.models import load_model
from annealed.models.keypoints.instances import assembly
from annealed.pipelines.common.image_folders import list_images
from annealed.vision import level_channels
from annealed.vision.images import read_image
from annealed.vision.point_histograms import Frame, point_histograms
from annealed.vision.tracks.pairs.geometry import distances
from annealed.vision.windows.scan import predict_windows, scan_level, score_windows
from hypothesis import given, settings
from hypothesis import strategies as st
from window_models import IMAGE, POOL, offset_regressor, random_classifier

MODELS = [
    random_classifier(seed, 100, share).compiled(POOL)
    for seed, share in ((4, 0.0), (5, 0.02), (6, 0.2))
]
OFFSETS = offset_regressor(3).compiled(POOL)
seeds = st.integers(0, 1000)


def both(call):
    """Results of a call with NumPy, and compiled."""
    with problem_size(0):
        plain = call()
    return plain, call()


def pixels(seed, height, width, noise):
    """A part of a photograph with some noise: large gradients and flat parts."""
    rng = np.random.default_rng(seed)
    y, x = rng.integers(0, 200 - height), rng.integers(0, 200 - width)
    part = IMAGE[y : y + height, x : x + width].astype(int) + rng.integers(
        -noise, noise + 1, (height, width, 3)
    )
    return np.clip(part, 0, 255).astype(np.uint8)


sizes = st.integers(1, 90), st.integers(1, 130)
images = st.builds(pixels, seeds, *sizes, st.sampled_from([0, 3, 255]))


@settings(max_examples=15, deadline=None)
@given(images)
def test_tables_of_a_level(image):
    def tables():
        channels = level_channels(image, POOL)
        return channels, channels.hog

    (plain, plain_hog), (compiled, compiled_hog) = both(tables)
    height, width = plain.rows + POOL.window, plain.stride
    np.testing.assert_array_equal(plain.inverse_sigma, compiled.inverse_sigma)
    np.testing.assert_array_equal(plain.gradient, compiled.gradient)
    for a, b, side in zip(
        plain_hog, compiled_hog, (POOL.layout.cell, POOL.layout.cell * POOL.layout.block)
    ):
        a, b = (
            np.reshape(v, (-1, height, width))[:, : height - side + 1, : width - side + 1]
            for v in (a, b)
        )
        np.testing.assert_array_equal(a, b)


@settings(max_examples=15, deadline=None)
@given(
    images,
    st.sampled_from(range(len(MODELS))),
    st.booleans(),
    st.sampled_from([0.0, 0.01, 0.3, 1.0]),
    seeds,
)
def test_scores_of_windows(image, number, dense, share, seed):
    model = MODELS[number]
    ys, xs = np.nonzero(np.random.default_rng(seed).uniform(size=image.shape[:2]) < share)
    height, width = image.shape[:2]
    spans = np.random.default_rng(seed).integers(0, width + 1, (2, height))
    columns = np.arange(width)

    def scores():
        channels = level_channels(image, POOL)
        assert not dense or channels.hog  # computed at once, for all windows
        everywhere, chosen = scan_level(channels, model), score_windows(channels, model, xs, ys)
        np.testing.assert_array_equal(chosen, everywhere[ys, xs])
        np.testing.assert_array_equal(scan_level(channels, model, 2)[::2], everywhere[::2])
        within = (columns >= spans[0, :, None]) & (columns < spans[1, :, None])
        expected = np.where(within, everywhere, -np.inf)
        np.testing.assert_array_equal(scan_level(channels, model, 1, spans), expected)
        return everywhere, predict_windows(channels, OFFSETS, xs, ys)

    plain, compiled = both(scores)
    # A sum near a rejection threshold may fall on either side of it: none does here.
    np.testing.assert_allclose(plain[0], compiled[0], atol=5e-5)
    np.testing.assert_allclose(plain[1], compiled[1], atol=5e-5)


def test_histograms_of_windows():
    program, rng = POOL.compile(POOL.features[POOL.n_haar :]), np.random.default_rng(0)
    channels = level_channels(IMAGE, POOL)
    places = (rng.integers(0, 200, 30) * channels.stride + rng.integers(0, 200, 30)).astype(
        np.uint64
    )
    for a, b in zip(*both(lambda: channels.window_hog(places, program))):
        np.testing.assert_array_equal(a, b)


@settings(max_examples=25, deadline=None)
@given(seeds, st.integers(20, 60), st.integers(20, 60), st.integers(3, 7), st.integers(0, 20))
def test_histograms_around_points(seed, height, width, cell, n):
    rng = np.random.default_rng(seed)
    frame = Frame(np.ascontiguousarray(pixels(seed, height, width, 20)[..., 1]), 0j, 1.0)
    points = rng.uniform(-10, width + 10, n) + 1j * rng.uniform(-10, height + 10, n)
    np.testing.assert_allclose(*both(lambda: point_histograms(frame, points, cell)), atol=1e-5)


@settings(max_examples=40, deadline=None)
@given(seeds, st.integers(1, 20), st.integers(1, 4), st.integers(2, 6))
def test_pairs_of_candidates(seed, n, n_templates, n_anchors):
    rng = np.random.default_rng(seed)
    templates = rng.normal(size=(n_templates, n_anchors)) + 1j * rng.normal(
        size=(n_templates, n_anchors)
    )
    anchor, position = (
        rng.integers(0, n_anchors, n),
        40 * (rng.normal(size=n) + 1j * rng.normal(size=n)),
    )
    strength, ied = rng.uniform(0, 8, n), rng.uniform(15, 45, n)
    best, max_turn = (
        np.sort(rng.choice(n, rng.integers(1, n + 1), replace=False)),
        rng.choice([1.0, np.pi]),
    )

    def pairs():
        result = np.zeros((n + n * n * n_templates, 6))
        return result[
            : assembly._score_pairs(
                best, anchor, position, strength, ied, templates, max_turn, result
            )
        ]

    np.testing.assert_allclose(*both(pairs), atol=1e-9)


@pytest.mark.parametrize("n", [0, 1])
def test_hardly_any_windows(n):
    channels, at = level_channels(IMAGE, POOL), np.arange(n)
    for a, b in zip(
        *both(
            lambda: (
                score_windows(channels, MODELS[1], at, at),
                predict_windows(channels, OFFSETS, at, at),
            )
        )
    ):
        np.testing.assert_allclose(a, b, atol=5e-5)


@settings(max_examples=25, deadline=None)
@given(seeds, st.integers(0, 30), st.integers(0, 30))
def test_distances_to_homographies(seed, m, n):
    rng = np.random.default_rng(seed)
    models, rows = rng.normal(size=(m, 1, 9)), rng.normal(size=(n, 4))
    np.testing.assert_allclose(
        *both(lambda: distances("homography", models, rows)), rtol=1e-4, atol=1e-6
    )


@pytest.mark.data
@pytest.mark.slow
def test_photographs(data_dir):
    detector = load_model("faces")
    for path in list_images(data_dir / "faces" / "test")[:12]:
        plain, compiled = both(lambda path=path: detector.find(read_image(path)).instances)
        assert len(plain) == len(compiled), path
        for a, b in zip(plain, compiled):
            np.testing.assert_allclose(a.landmarks, b.landmarks, atol=0.05)
