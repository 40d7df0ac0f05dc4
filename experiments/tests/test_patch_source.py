"""Fits on windows that stay on disk equal fits on their features in memory, and the lazy design of
windows in memory."""

import pickle

import numpy as np
import pytest
from annealed.learners import FSAClassifier, on_dask, on_disk
from annealed.learners.designs.out_of_core import PiecewiseBlockDesign
from annealed.learners.designs.responses import PiecewiseLinear
from annealed.learners.objective.losses import LogisticLoss
from annealed.vision import FeaturePool, extract_patches
from annealed.vision.windows.patch_design import PatchDesign
from annealed_experiments.faces.patch_source import ImageWindows, PatchSource
from PIL import Image
from skimage.data import astronaut

POOL = FeaturePool()
FEATURES = POOL.features[::150]
IMAGE = np.ascontiguousarray(astronaut()[:200, 100:300])
N = 500


@pytest.fixture(scope="module")
def places(tmp_path_factory):
    """Windows of two image files."""
    rng, folder = np.random.default_rng(0), tmp_path_factory.mktemp("images")
    paths = [folder / "0.png", folder / "1.png"]
    for path, image in zip(paths, (IMAGE, IMAGE[::-1])):
        Image.fromarray(image).save(path)
    return ImageWindows(
        paths, np.repeat([0, 1], N // 2), rng.integers(0, 200, N), rng.integers(0, 200, N)
    )


@pytest.fixture(scope="module")
def patches(places):
    x, y, half = places.x, places.y, N // 2
    return np.concatenate(
        [
            extract_patches(IMAGE, x[:half], y[:half]),
            extract_patches(IMAGE[::-1], x[half:], y[half:]),
        ]
    )


@pytest.fixture(scope="module")
def sources(tmp_path_factory, patches, places):
    """The same windows: in one file, and as places in image files."""
    path = tmp_path_factory.mktemp("windows") / "patches.npy"
    np.save(path, patches)
    return PatchSource(path, POOL, FEATURES), PatchSource(places, POOL, FEATURES)


@pytest.fixture(scope="module")
def fitted(patches):
    values = POOL.evaluate(patches, FEATURES)
    y = values[:, 100] + values[:, 300] > np.median(values[:, 100] + values[:, 300])
    return values, y, FSAClassifier(3, response="piecewise").fit(values, y)


def _same(a, b):
    np.testing.assert_array_equal(a.support_, b.support_)
    for name in ("responses_", "intercept_", "knots_", "loss_curve_"):
        np.testing.assert_allclose(
            getattr(a, name), getattr(b, name), rtol=1e-5, atol=1e-5, err_msg=name
        )


@pytest.mark.parametrize("where", [0, 1], ids=["file", "images"])
def test_windows_on_disk(sources, fitted, where):
    values, y, here = fitted
    from_disk = FSAClassifier(3, response="piecewise").fit(
        on_disk(sources[where], memory_limit="400KB"), y
    )
    _same(from_disk, here)
    np.testing.assert_array_equal(from_disk.predict(sources[where]), here.predict(values))


def test_on_dask(sources, fitted):
    dask = pytest.importorskip("dask", reason="needs annealed[dask]")
    import dask.array as da

    X = da.from_array(pickle.loads(pickle.dumps(sources[1])), chunks=(300, 250))
    with dask.config.set(scheduler="synchronous"):
        _same(
            FSAClassifier(3, response="piecewise").fit(on_dask(X, memory_limit="200KB"), fitted[1]),
            fitted[2],
        )


def test_the_design_of_windows_in_memory(sources, patches):
    """Codes of the two designs may differ by one in 252 where rounding decides."""
    rng = np.random.default_rng(1)
    weight = np.full(N, 1 / N)
    disk = PiecewiseBlockDesign(
        on_disk(sources[0], memory_limit="400KB"), weight, PiecewiseLinear()
    )
    lo, span = disk.knots[:, 0], disk.knots[:, -1] - disk.knots[:, 0]
    bin_width = np.where(span > 0, span / disk.n_bins, 1.0)
    memory = PatchDesign(
        patches,
        weight,
        pool=POOL,
        features=FEATURES,
        n_bins=disk.n_bins,
        low=lo,
        bin_width=bin_width,
    )
    np.testing.assert_allclose(disk.mean, memory.mean, atol=1e-4)
    np.testing.assert_allclose(disk.inv, memory.inv, rtol=1e-3, atol=1e-6)
    coef = (
        rng.standard_normal((len(FEATURES), disk.width, 1))
        * (disk.inv > 0)[:, None, None]
        / len(FEATURES)
    )
    y = rng.choice([-1.0, 1.0], N)[:, None]
    for a, b in zip(
        *(
            d.scores_and_gradient(coef, np.zeros(1), LogisticLoss(), y, weight)
            for d in (disk, memory)
        )
    ):
        np.testing.assert_allclose(a, b, atol=2e-4)


def test_bad_windows(tmp_path):
    np.save(tmp_path / "small.npy", np.zeros((3, 5, 5, 3), np.uint8))
    with pytest.raises(ValueError, match=r"expected uint8 of shape \(n, 26, 26, 3\)"):
        PatchSource(tmp_path / "small.npy")
    np.save(tmp_path / "flat.npy", np.zeros((3, 5)))
    with pytest.raises(ValueError, match=r"windows have shape \(3, 5\)"):
        PatchSource(tmp_path / "flat.npy")
    with pytest.raises(ValueError, match="expected one-dimensional arrays of equal length"):
        ImageWindows(["a.png"], [0, 0], [1], [1])
    with pytest.raises(ValueError, match="int64, float64 and int64; expected integers"):
        ImageWindows(["a.png"], [0], [np.nan], [1])
    (tmp_path / "cut.npy").write_bytes((tmp_path / "small.npy").read_bytes()[:-9])
    with pytest.raises(ValueError, match=r"cut\.npy: the file is not a complete \.npy file"):
        PatchSource(tmp_path / "cut.npy")
    with pytest.raises(ValueError, match="indices of the 1 paths"):
        ImageWindows(["a.png"], [1], [1], [1])
    with pytest.raises(ValueError, match=r"nothing\.png: no such file"):
        PatchSource(ImageWindows([tmp_path / "nothing.png"], [0], [1], [1]))
