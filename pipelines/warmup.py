"""Compilation of all functions by running each part of the package once."""

import warnings
from collections.abc import Callable

import numpy as np

from .. import learners, models
from ..learners.compilation import compiled_only
from . import keypoints


def warm_faces() -> None:
    """Detect keypoints in all modes, with and without the assembly of faces."""
    from ..models.keypoints.instances.assembly import Assembly
    from ..models.keypoints.windows.window_models import Mode

    detector, photograph = models.load_model("faces"), keypoints.sample_photograph()
    for mode in (None, *Mode):
        for assembly in Assembly:
            detector.detect(photograph, mode=mode, assembly=assembly)


def warm_motion() -> None:
    """Segment two synthetic motions."""
    rng = np.random.RandomState(0)
    shape, frames = rng.standard_normal((60, 2)) * 50, np.arange(20)[:, None, None]
    drift = np.where((np.arange(60) < 30)[:, None], [2.0, 1.0], [-1.0, 3.0])
    tracks = shape + frames * drift + 0.1 * rng.standard_normal((20, 60, 2))
    models.load_model("motion").segment(tracks.astype(float))


def warm_pets() -> None:
    """Classify one photograph."""
    from ..vision import Photograph

    models.load_model("pets").predict_proba([Photograph(keypoints.sample_photograph())])


def warm_learners() -> None:
    """Fit tables in single and double precision, in row-major and column-major order."""
    X = np.random.RandomState(0).standard_normal((600, 60))
    f = X[:, 0] - X[:, 1]
    y, grades, queries = f > 0, np.digitize(f, [-1.0, 1.0]), np.repeat(np.arange(60), 10)
    with compiled_only(), warnings.catch_warnings():
        warnings.simplefilter("ignore")
        for dtype in (np.float64, np.float32):
            for order in "CF":
                Z = np.asarray(X, dtype, order=order)  # type: ignore[call-overload]
                for bins in ("range", "quantile"):
                    learners.FSAClassifier(5, response=learners.PiecewiseLinear(bins=bins)).fit(
                        Z, y
                    )
                learners.FSAClassifier(5).fit(Z, y)
                learners.FSARegressor(5).fit(Z, f)
        for learner in (
            learners.FOBOSClassifier(max_iter=1, random_state=0),
            learners.RDAClassifier(max_iter=1, random_state=0),
            learners.TruncatedGradientClassifier(max_iter=1, random_state=0),
            learners.StabilizedTruncatedSGDClassifier(5, max_iter=2, random_state=0),
            learners.LogitBoostClassifier(3, response="linear"),
            learners.LogitBoostClassifier(3, response="constant"),
        ):
            learner.fit(X, y)
        learners.MinimaxSparseClassifier(2, n_features_to_select=4, solver="smoothing").fit(
            X[:100], y[:100]
        )
        learners.FSARanker(5).fit(X, grades, qid=queries)
        learners.RankBoost(3).fit(X, grades, qid=queries)
        learners.SDist(n_steps=5).fit(X[:, :10], y).predict(X[:, :10])


PARTS: dict[str, Callable[[], None]] = {
    function.__name__.removeprefix("warm_"): function
    for function in (warm_faces, warm_motion, warm_pets, warm_learners)
}
