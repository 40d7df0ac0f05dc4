"""Speed of the feature pool and the dense scan: one core, warm.

    python benchmarks/scan.py

The yardstick for the scan is portable C (vector code by the compiler, one core): 2.4e9 features of windows per second.
"""

import time
from functools import partial

import cv2
import numpy as np
from annealed.vision import FeaturePool, extract_patches, gaussian_pyramid, level_channels, scan
from annealed.vision.windows.kernels import LANES
from annealed.vision.windows.patch_design import PatchDesign
from annealed.vision.windows.responses import Responses
from skimage.data import astronaut


def seconds(work, repeats=5):
    """Least processor time of several runs, after one to compile."""
    work()
    times = []
    for _ in range(repeats):
        start = time.process_time()
        work()
        times.append(time.process_time() - start)
    return min(times)


def main():
    cv2.setNumThreads(1)
    pool = FeaturePool()
    image = np.asarray(cv2.resize(astronaut(), (640, 480)))
    rng = np.random.default_rng(0)
    patches = extract_patches(image, rng.integers(0, 640, 2048), rng.integers(0, 480, 2048))

    levels = gaussian_pyramid(image)
    channels = [level_channels(level.image, pool) for level in levels]
    n_windows = sum(c.rows * c.width for c in channels)
    print(f"pyramid of 640x480, {len(levels)} levels, {n_windows} windows: {1e3 * seconds(lambda: gaussian_pyramid(image)):.1f} ms")
    print(f"integral images: {1e3 * seconds(lambda: [level_channels(level.image, pool) for level in levels]):.1f} ms")

    def histograms():
        for level in levels:
            _ = level_channels(level.image, pool).hog

    print(f"integral images and histograms: {1e3 * seconds(histograms):.1f} ms")

    def model(count):
        chosen = pool.features[rng.choice(pool.n_haar, count, replace=False)]
        values = pool.evaluate(patches[:500], chosen)
        return chosen, Responses(values.min(axis=0), np.ptp(values, axis=0) / 6 + 1e-6, rng.normal(size=(count, 7))), 0.0

    large = model(1500)
    level = channels[4]
    rate = 1500 * level.rows * level.width / seconds(lambda: scan(level, *large), 3)
    print(f"exhaustive scan, 1,500 Haar features: {rate:.2e} features of windows per second (portable C: 2.4e9)")
    small = model(40)
    print(f"40 features of every window of the pyramid: {1e3 * seconds(lambda: [scan(c, *small) for c in channels]):.1f} ms")

    weight = np.full(len(patches), 1 / len(patches))
    for name, features in (("60,744 Haar", pool.features[: pool.n_haar]), ("all 61,608", pool.features)):
        design = PatchDesign(patches, weight, features=features)
        coef = rng.normal(size=(design.n_features, design.width, 1))
        residual = rng.normal(size=(len(patches), 1))
        rows, worker = np.arange(LANES), design.worker()
        share = LANES / len(patches)
        times = (
            share * seconds(partial(design.scores, coef), 2),
            share * seconds(partial(design.gradient, residual), 2),
            seconds(partial(worker.encode, rows), 20),
        )
        rates = ", ".join(f"{what} {LANES / t:.0f}" for what, t in zip(("scores", "gradient", "codes alone"), times, strict=True))
        print(f"{name} features of given windows, windows per second: {rates}")


if __name__ == "__main__":
    main()
