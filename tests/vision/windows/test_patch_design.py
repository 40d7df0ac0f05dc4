"""The lazy design of training windows agrees with stored codes."""

import numpy as np
import pytest
from annealed.learners.compilation import problem_size
from annealed.learners.designs.piecewise_linear import PiecewiseDesign, hat_basis
from annealed.learners.objective.losses import LogisticLoss
from annealed.vision import FeaturePool, extract_patches
from annealed.vision.windows.patch_design import PatchDesign, value_range
from annealed.vision.windows.responses import Responses
from skimage.data import astronaut

POOL = FeaturePool()


@pytest.fixture(scope="module")
def patches():
    rng = np.random.default_rng(0)
    return extract_patches(astronaut(), rng.integers(0, 512, 1111), rng.integers(0, 512, 1111))


@pytest.fixture(scope="module")
def weight():
    weight = np.random.default_rng(4).random(1111)
    return weight / weight.sum()


@pytest.fixture(scope="module", params=[6, 4, 9])
def designs(request, patches, weight):
    """The design under test, and the learners' own on the same values and bins."""
    rng = np.random.default_rng(1)
    chosen = np.sort(rng.choice(len(POOL.features), 400, replace=False))
    chosen[-20:] = np.arange(len(POOL.features) - 20, len(POOL.features))
    features = POOL.features[chosen]
    lazy = PatchDesign(patches, weight, features=features, n_bins=request.param, cache_bytes=0)
    knots = lazy.low[:, None].astype(float) + lazy.bin_width[:, None].astype(float) * np.arange(
        request.param + 1
    )
    plain = PiecewiseDesign.from_matrix(POOL.evaluate(patches, features), knots, weight)
    return lazy, plain


def test_codes(designs):
    lazy, plain = designs
    codes = plain.codes.transpose(0, 2, 1).reshape(-1, lazy.n_features)[: lazy.n_samples]
    rows = np.random.default_rng(0).permutation(lazy.n_samples)[:200]
    ours = lazy.codes(rows)
    difference = np.abs(ours.astype(int) - codes[rows])
    assert difference.max() <= 1
    assert (difference > 0).mean() < 1e-3
    assert np.array_equal(lazy.codes(rows, [5, 17, 399]), ours[:, [5, 17, 399]])


def test_moments(designs, weight):
    lazy, _ = designs
    weighted = PiecewiseDesign(lazy.stored().codes, lazy.n_samples, lazy.n_bins, False, weight)
    np.testing.assert_allclose(lazy.mean, weighted.mean, atol=1e-6)
    np.testing.assert_allclose(lazy.inv, weighted.inv, rtol=1e-5)


def test_verbs_agree_with_the_stored_design(designs):
    lazy, _ = designs
    stored = lazy.stored()
    basis = hat_basis(lazy.n_bins)
    flat = stored.codes.transpose(0, 2, 1).reshape(-1, lazy.n_features)[: lazy.n_samples]
    expanded = (basis[flat] - lazy.mean) * lazy.inv[:, None]
    rng = np.random.default_rng(2)
    coef, residual = (
        rng.normal(size=(lazy.n_features, lazy.width, 2)),
        rng.normal(size=(lazy.n_samples, 2)),
    )
    scores, gradient = (
        np.einsum("nmw,mwq->nq", expanded, coef),
        np.einsum("nmw,nq->mwq", expanded, residual),
    )
    for design in (lazy, stored):
        np.testing.assert_allclose(design.scores(coef), scores, atol=2e-3)
        np.testing.assert_allclose(design.gradient(residual), gradient, atol=2e-2)


def test_fused_pass(designs, weight):
    lazy, _ = designs
    rng = np.random.default_rng(3)
    coef, y = (
        0.05 * rng.normal(size=(lazy.n_features, lazy.width, 1)),
        np.sign(rng.normal(size=(lazy.n_samples, 1))),
    )
    ours = lazy.scores_and_gradient(coef, np.array([0.3]), LogisticLoss(), y, weight)
    theirs = super(PatchDesign, lazy).scores_and_gradient(
        coef, np.array([0.3]), LogisticLoss(), y, weight
    )
    for one, two in zip(ours, theirs, strict=True):
        np.testing.assert_allclose(one, two, rtol=1e-6, atol=1e-9)


def test_keep_stores_codes_once_they_fit(designs):
    lazy, _ = designs
    kept = np.arange(0, 400, 7)
    still_lazy = lazy.keep(kept)
    assert isinstance(still_lazy, PatchDesign)
    lazy.cache_bytes = len(kept) * lazy.n_samples
    stored = lazy.keep(kept)
    lazy.cache_bytes = 0
    assert isinstance(stored, PiecewiseDesign)
    coef = np.random.default_rng(0).normal(size=(len(kept), lazy.width, 1))
    full = np.zeros((400, lazy.width, 1))
    full[kept] = coef
    expected = lazy.scores(full)
    for design in (still_lazy, stored):
        np.testing.assert_allclose(design.scores(coef), expected, atol=1e-4)
        assert np.array_equal(design.mean, lazy.mean[kept])
    again = stored.keep(np.array([1, 3]))
    np.testing.assert_allclose(
        again.scores(coef[[1, 3]]),
        still_lazy.keep(np.array([1, 3])).scores(coef[[1, 3]]),
        atol=1e-5,
    )


def test_raw_coefficients_score_windows(designs, patches):
    """Inputs of a scan: raw responses, bins and intercept."""
    lazy, _ = designs
    coef = 0.1 * np.random.default_rng(0).normal(size=(400, lazy.width, 1))
    raw, intercept = lazy.unstandardise(coef, np.array([0.2]))
    partial = POOL.partial_scores(
        patches,
        lazy.features,
        Responses(lazy.low, lazy.bin_width, raw[:, :, 0]),
        float(intercept[0]),
    )
    # Codes round positions to 1/42 of a bin, scans do not.
    np.testing.assert_allclose(partial[:, -1], lazy.scores(coef)[:, 0] + 0.2, atol=0.5)
    assert np.corrcoef(partial[:, -1], lazy.scores(coef)[:, 0])[0, 1] > 0.999


def test_threads_change_nothing(designs):
    lazy, _ = designs
    residual = np.random.default_rng(2).normal(size=(lazy.n_samples, 1))
    gradients = []
    for n_threads in (1, 2):
        with problem_size(np.inf, n_threads):
            gradients.append(lazy.gradient(residual))
    assert np.array_equal(*gradients)


def test_windows_in_a_file(designs, patches, weight, tmp_path):
    lazy = designs[0] if isinstance(designs, tuple) else designs
    np.save(tmp_path / "windows.npy", patches)
    mapped = np.load(tmp_path / "windows.npy", mmap_mode="r")
    on_disk = PatchDesign(mapped, weight, features=lazy.features, n_bins=lazy.n_bins, cache_bytes=0)
    assert np.shares_memory(on_disk._rows, mapped)  # read block by block, never copied
    residual = np.random.default_rng(0).standard_normal((len(patches), 1))
    np.testing.assert_array_equal(on_disk.gradient(residual), lazy.gradient(residual))


def test_constant_windows(weight):
    design = PatchDesign(
        np.full((1111, 26, 26, 3), 9, np.uint8), weight, features=POOL.features[::6000]
    )
    assert not design.inv.any()
    assert not design.gradient(np.ones((1111, 1))).any()


def test_range(patches):
    features = POOL.features[::9000]
    low, bin_width = value_range(POOL, patches, features, 5)
    values = POOL.evaluate(patches, features)
    np.testing.assert_allclose(low, np.percentile(values, 0.1, axis=0), rtol=1e-5)
    np.testing.assert_allclose(low + 5 * bin_width, np.percentile(values, 99.9, axis=0), rtol=1e-4)


def test_bad_input(patches, weight):
    with pytest.raises(ValueError, match="expected one weight for each of the 1111 patches"):
        PatchDesign(patches, weight[1:], features=POOL.features[:3])
    with pytest.raises(ValueError, match="pass both or neither"):
        PatchDesign(patches, weight, features=POOL.features[:3], low=[0.0, 0.0, 0.0])
    with pytest.raises(ValueError, match="expected a lower bound and a positive bin width"):
        PatchDesign(
            patches, weight, features=POOL.features[:2], low=[0.0, 0.0], bin_width=[1.0, 0.0]
        )
    with pytest.raises(ValueError, match="n_bins=0"):
        PatchDesign(patches, weight, features=POOL.features[:2], n_bins=0)
