"""Compilation of each part of the package by running it once (``annealed warmup``)."""

import warnings
from collections.abc import Callable

import numpy as np

from ..learners.compilation import compiled_only


def warm_faces() -> None:
    """Run detection in all modes, with and without assembly of faces."""
    from ..models import load_model
    from ..models.keypoints.instances.assembly import Assembly
    from ..models.keypoints.windows.window_models import Mode
    from .keypoints.detect import sample_photograph

    detector = load_model("faces")
    for mode in (None, *Mode):
        for assembly in Assembly:
            detector.detect(sample_photograph(), mode=mode, assembly=assembly)


def warm_motion() -> None:
    """Segment two synthetic motions."""
    from ..models import load_model

    rng = np.random.RandomState(0)
    shape, frames = rng.standard_normal((60, 2)) * 50, np.arange(20)[:, None, None]
    drift = np.where((np.arange(60) < 30)[:, None], [2.0, 1.0], [-1.0, 3.0])
    tracks = shape + frames * drift + 0.1 * rng.standard_normal((20, 60, 2))
    load_model("motion").segment(tracks.astype(float))


def warm_pets() -> None:
    """Classify one photograph."""
    from ..models import load_model
    from ..vision import Photograph
    from .keypoints.detect import sample_photograph

    load_model("pets").predict_proba([Photograph(sample_photograph())])


def warm_learners() -> None:
    """Fit tables in single and double precision, row-major and column-major."""
    import annealed.learners as learners

    rng = np.random.RandomState(0)
    X = rng.standard_normal((600, 60))
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
            learners.FOBOSClassifier,
            learners.RDAClassifier,
            learners.TruncatedGradientClassifier,
        ):
            learner(max_iter=1, random_state=0).fit(X, y)
        learners.StabilizedTruncatedSGDClassifier(5, max_iter=2, random_state=0).fit(X, y)
        for response in ("linear", "constant"):
            learners.LogitBoostClassifier(3, response=response).fit(X, y)
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
