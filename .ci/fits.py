"""Print the selections and predictions of fits of every kind as JSON, for comparison between
processors in .ci/processors.py."""

import json

import numpy as np
from annealed.learners import (
    ForwardBackwardClassifier,
    ForwardBackwardRegressor,
    FSAClassifier,
    FSAClassifierCV,
    FSARegressor,
    FSARegressorCV,
    LogitBoostClassifier,
    MinimaxSparseClassifier,
    TISPClassifier,
    TISPRegressor,
)

TWO_CLASSES = [MinimaxSparseClassifier(), FSAClassifier(5, loss="lorenz")]
CLASSIFIERS = [
    *(
        FSAClassifier(5),
        FSAClassifier(5, response="piecewise"),
        FSAClassifier("auto"),
        FSAClassifierCV([2, 5, 8], cv=3),
    ),
    *(TISPClassifier(5), LogitBoostClassifier(5), ForwardBackwardClassifier(5)),
]
REGRESSORS = [
    *(
        FSARegressor(5),
        FSARegressor(5, response="piecewise"),
        FSARegressor("auto"),
        FSARegressorCV([2, 5, 8], cv=3),
    ),
    *(TISPRegressor(5), ForwardBackwardRegressor(5)),
]


def record(estimator, X, y):
    """Columns selected, and scores of the rows."""
    model = estimator.fit(X, y)
    scores = model.decision_function(X) if hasattr(model, "decision_function") else model.predict(X)
    return {
        "selected": model.get_support(indices=True).tolist(),
        "scores": np.ravel(scores).tolist(),
    }


fits = {}
for seed in range(2):
    rng = np.random.default_rng(seed)
    # columns that resemble each other
    X = np.round(rng.standard_normal((120, 40)) + rng.standard_normal((120, 1)), 6)
    y = np.round(X[:, :5].sum(axis=1) - X[:, 5:10].sum(axis=1) + 2 * rng.standard_normal(120), 6)
    for estimator in REGRESSORS:
        fits[f"{estimator}, seed {seed}"] = record(estimator, X, y)
    for estimator in [*TWO_CLASSES, *CLASSIFIERS]:
        fits[f"{estimator}, two classes, seed {seed}"] = record(estimator, X, y > 0)
    for estimator in CLASSIFIERS:
        fits[f"{estimator}, three classes, seed {seed}"] = record(
            estimator, X, np.digitize(y, [-1.5, 1.5])
        )
print(json.dumps(fits))
