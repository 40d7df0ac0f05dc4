"""Random models of windows of one photograph, for the tests of scans and detectors."""

from dataclasses import replace

import numpy as np
from annealed.models.keypoints.windows.window_models import (
    FaceCascade,
    Guide,
    KeypointModel,
    OffsetModel,
    SecondNode,
)
from annealed.vision import FeaturePool, Responses, extract_patches
from skimage.data import astronaut

POOL = FeaturePool()
IMAGE = np.ascontiguousarray(astronaut()[40:240, 120:320])


def bins(features, pool=POOL):
    ys, xs = np.mgrid[5 : IMAGE.shape[0] : 9, 5 : IMAGE.shape[1] : 9]
    values = pool.evaluate(extract_patches(IMAGE, xs.ravel(), ys.ravel(), pool.window), features)
    low = np.percentile(values, 2, axis=0).astype(np.float32)
    return low, ((np.percentile(values, 98, axis=0) - low) / 6 + 1e-6).astype(np.float32)


def random_classifier(seed, k=60, share=0.0, threshold=0.0, pool=POOL):
    """A random cascade; every threshold alone rejects the given share of the windows."""
    rng = np.random.default_rng(seed)
    features = pool.features[rng.choice(len(pool.features), k, replace=False)]
    responses = Responses(*bins(features, pool), rng.normal(size=(k, 7)))
    model = KeypointModel(
        features, responses, 0.25, np.full(k, -np.inf, np.float32), threshold=threshold
    )
    if share:
        ys, xs = np.mgrid[5 : IMAGE.shape[0] : 9, 5 : IMAGE.shape[1] : 9]
        patches = extract_patches(IMAGE, xs.ravel(), ys.ravel(), pool.window)
        sums = model.partial_scores(patches, pool)
        model = replace(model, thresholds=np.quantile(sums, share, axis=0).astype(np.float32))
    return model


def offset_regressor(seed, k=30, size=0.5):
    rng = np.random.default_rng(seed)
    features = POOL.features[rng.choice(len(POOL.features), k, replace=False)]
    values = rng.normal(size=(k, 7, 2)).astype(np.float32) * np.float32(size)
    return OffsetModel(features, Responses(*bins(features), values), np.float32([0.5, -1]))


GUIDE = Guide(offset_regressor(3))


LARGER = FeaturePool(48, sides=(6, 12))


def two_nodes(*names):
    """The cascade below with a random second node that accepts some of its local maxima."""
    second = random_classifier(5, 40, 0.01, -1.0, LARGER)
    return replace(face_cascade(*names), second=SecondNode(second, LARGER, 2.0))


def face_cascade(*names, share=0.08):
    """A random cascade that detects faces in some windows of every level, and the keypoints at
    random positions."""
    rng = np.random.default_rng(4)
    return FaceCascade(
        random_classifier(1, 20, share),
        {name: tuple(rng.uniform(-0.6, 0.6, 2)) for name in names},
        2.0**-1.5,
    )
