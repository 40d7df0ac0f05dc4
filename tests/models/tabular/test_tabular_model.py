"""Any fitted linear or piecewise-linear estimator comes back from its file with the same
predictions."""

import json
from typing import Any

import numpy as np
import pandas as pd
import pytest
from annealed import __version__
from annealed.learners import (
    FOBOSClassifier,
    ForwardBackwardRegressor,
    FSAClassifier,
    FSAClassifierCV,
    FSARanker,
    FSARegressor,
    LogitBoostClassifier,
    MinimaxSparseClassifier,
    RankBoost,
    RDAClassifier,
    TISPClassifier,
)
from annealed.models import TabularModel, load_model
from annealed.models.files import read_header, read_model, write_model

rng = np.random.default_rng(0)
X = rng.standard_normal((150, 20))
TWO = np.where(X[:, 3] - X[:, 7] > 0, "yes", "no")
THREE = np.digitize(X[:, 5], [-0.5, 0.5])
NUMBER = X[:, 3] + 0.5 * X[:, 7]

FITTED: dict[str, tuple[Any, np.ndarray]] = {
    "two": (FSAClassifier(2), TWO),
    "three": (FSAClassifier(2), THREE),
    "bool": (FSAClassifier(2), X[:, 3] > 0),
    "multinomial of two": (FSAClassifier(2, loss="multinomial"), TWO),
    "curves": (FSAClassifier(2, response="piecewise"), THREE),
    "cv": (FSAClassifierCV([1, 3]), TWO),
    "number": (FSARegressor(2), NUMBER),
    "outputs": (FSARegressor(2), np.column_stack([NUMBER, X[:, 1]])),
    "counts": (FSARegressor(2, loss="poisson"), np.round(np.exp(NUMBER))),
    "survival": (FSARegressor(2, loss="cox"), np.column_stack([np.exp(-NUMBER), np.ones(150)])),
    "ranks": (FSARanker(2), np.digitize(NUMBER, [-1, 0, 1])),
    "forward-backward": (ForwardBackwardRegressor(2), NUMBER),
    "tisp": (TISPClassifier(2), TWO),
    "minimax": (MinimaxSparseClassifier(2), TWO),
    "boosting": (LogitBoostClassifier(2), TWO),
    "online": (RDAClassifier(3), THREE),
    "online hinge": (FOBOSClassifier(3, loss="hinge"), TWO),
}


@pytest.mark.parametrize("name", FITTED)
def test_predictions_survive_the_file(name, tmp_path):
    estimator, y = FITTED[name]
    estimator.fit(X, y)
    TabularModel.from_estimator(estimator).save(tmp_path / "m.safetensors")
    kept = load_model(tmp_path / "m.safetensors")
    if kept.classes is not None:
        np.testing.assert_array_equal(kept.predict(X), estimator.predict(X))
        np.testing.assert_allclose(
            kept.decision_function(X), estimator.decision_function(X), atol=1e-9
        )
    elif hasattr(estimator, "predict"):
        np.testing.assert_allclose(kept.predict(X), estimator.predict(X), atol=1e-9)
    if hasattr(estimator, "predict_proba"):
        np.testing.assert_allclose(kept.predict_proba(X), estimator.predict_proba(X), atol=1e-9)
    else:
        with pytest.raises(ValueError, match="does not predict probabilities"):
            kept.predict_proba(X)
    assert read_header(tmp_path / "m.safetensors")["about"]["annealed"] == __version__


def test_a_frame_needs_the_selected_columns_only(tmp_path):
    frame = pd.DataFrame(X, columns=[f"c{j}" for j in range(20)])
    model = TabularModel.from_estimator(FSAClassifier(2).fit(frame, TWO))
    assert model.selected == ["c3", "c7"]
    np.testing.assert_array_equal(model.predict(frame[["c7", "c3"]]), model.predict(X))
    with pytest.raises(ValueError, match="no column 'c7'"):
        model.predict(frame[["c3"]])
    with pytest.raises(ValueError, match=r"shape \(150, 3\); expected 20 columns"):
        model.predict(X[:, :3])


def test_what_cannot_be_kept_is_refused():
    with pytest.raises(ValueError, match="not a fitted linear or piecewise-linear selector"):
        TabularModel.from_estimator(FSAClassifier(2))
    with pytest.raises(ValueError, match="not a fitted linear or piecewise-linear selector"):
        TabularModel.from_estimator(RankBoost(3).fit(X, np.digitize(NUMBER, [-1, 0, 1])))


@pytest.mark.parametrize(
    "change",
    [
        {"task": "guessing"},
        {"link": "square"},
        {"columns": ["a"]},
        {"classes": ["a", "b", "c"]},
        {"encoding": [{"name": 3}]},
        {"encoding": []},
        {"about": 3},
        {"columns": 7},
    ],
)
def test_damaged_headers_are_one_line(change, tmp_path):
    path = tmp_path / "m.safetensors"
    TabularModel.from_estimator(FSAClassifier(2).fit(X, TWO)).save(path)
    arrays, header = read_model(path, "tabular model")
    header = {
        key: value for key, value in header.items() if key not in ("format", "version", "kind")
    }
    write_model(path, "tabular model", arrays, json.loads(json.dumps({**header, **change})))
    with pytest.raises(ValueError, match="damaged") as caught:
        load_model(path)
    assert "\n" not in str(caught.value) and str(path) in str(caught.value)
