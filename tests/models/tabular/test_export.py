"""An exported model says what the fitted one says, wherever it runs."""

import json
import shutil

import exported
import numpy as np
import pandas as pd
import pytest
from annealed.learners import (
    FOBOSClassifier,
    FSAClassifier,
    FSARanker,
    FSARegressor,
    LogitBoostClassifier,
    PiecewiseLinear,
    RankBoost,
    RDAClassifier,
)
from annealed.models import TabularModel, export
from annealed.models.tabular.encoding import ColumnEncoding, TableEncoding
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from sklearn.compose import ColumnTransformer
from sklearn.decomposition import PCA
from sklearn.feature_selection import VarianceThreshold
from sklearn.impute import SimpleImputer
from sklearn.linear_model import LogisticRegression
from sklearn.pipeline import FeatureUnion, Pipeline, make_pipeline
from sklearn.preprocessing import (
    FunctionTransformer,
    MaxAbsScaler,
    MinMaxScaler,
    OneHotEncoder,
    OrdinalEncoder,
    RobustScaler,
    StandardScaler,
    TargetEncoder,
)

rng = np.random.default_rng(0)
N = 160
FRAME = pd.DataFrame(rng.standard_normal((N, 6)) * [1, 10, 0.1, 1, 1000, 1] + [0, 50, 0, 10, 0, -3], columns=list("abcdef"))
FRAME["city"] = rng.choice(["Oslo", "Rome", "St. John's", 'the "big" one', "Łódź"], N)
FRAME["size"] = rng.choice([1.0, 2.0, 3.0], N)
FRAME["day"] = pd.Timestamp("2021-01-01") + pd.to_timedelta(rng.integers(0, 400 * 86400, N), "s")
HOLES = FRAME.copy()
for j, name in enumerate(HOLES.columns):
    HOLES.loc[HOLES.index[j::7], name] = None
NEW = HOLES.copy()
NEW.loc[NEW.index[::5], "city"] = "elsewhere"

SIGNAL = FRAME["a"] + FRAME["b"] / 10 - 5 + 2.0 * (FRAME["city"] == "Rome") + (FRAME["day"] > "2021-07-01") + 0.5 * FRAME["size"]
NOISY = (SIGNAL + 0.3 * rng.standard_normal(N)).to_numpy()
TARGETS = {
    "two": np.where(NOISY > 1, "yes", "no"),
    "truth": NOISY > 1,
    "three": np.digitize(NOISY, [0, 2]),
    "number": NOISY,
    "counts": np.round(np.exp(np.clip(NOISY, -3, 4))),
    "outputs": np.column_stack([NOISY, FRAME["c"] + NOISY]),
}
CITIES = ("Oslo", "Rome", "St. John's", 'the "big" one')
DATE = ColumnEncoding("day", "date", fill=18700.0)
KEPT = ColumnEncoding("day", "date")
CITY = ColumnEncoding("city", "category", None, CITIES, "Łódź", (0.2, 0.3, 0.1, 0.2))
OTHER = ColumnEncoding("city", "category", None, ("Rome", "(other)", "(missing)"), "Oslo")


def numbers(fill):
    return [ColumnEncoding(name, fill=fill) for name in "abcdef"]


def encoded(estimator, target, *columns, fill=0.5):
    """A model of a table, as ``annealed select --save`` keeps it."""
    encoding = TableEncoding((*numbers(fill), *columns))
    return TabularModel.from_estimator(estimator.fit(encoding.encode(HOLES), TARGETS[target]), encoding)


def plain(estimator, target):
    return TabularModel.from_estimator(estimator.fit(FRAME[list("abcdef")], TARGETS[target]))


def online(estimator, target):
    return make_pipeline(StandardScaler(), SimpleImputer(), estimator).fit(FRAME[list("abcdef")], TARGETS[target])


def mixed(numeric, category, estimator, target):
    """A pipeline on a table with numbers and categories."""
    columns = ColumnTransformer([("n", numeric, list("abc")), ("c", category, ["city", "size"])], remainder="drop")
    return Pipeline([("columns", columns), ("keep", VarianceThreshold()), ("model", estimator)]).fit(HOLES, TARGETS[target])


def knots(bins="quantile"):
    return PiecewiseLinear(n_bins=4, bins=bins)


def onehot(**options):
    return make_pipeline(SimpleImputer(strategy="most_frequent"), OneHotEncoder(**{"handle_unknown": "ignore"} | options))


def scaled(scaler=None, **options):
    return make_pipeline(SimpleImputer(**options), scaler or StandardScaler())


MODELS = {
    "linear, two classes": lambda: plain(FSAClassifier(3), "two"),
    "linear, truth values": lambda: plain(FSAClassifier(3), "truth"),
    "linear, three classes": lambda: plain(FSAClassifier(3), "three"),
    "linear, number": lambda: plain(FSARegressor(3), "number"),
    "linear, counts": lambda: plain(FSARegressor(3, loss="poisson"), "counts"),
    "linear, several outputs": lambda: plain(FSARegressor(3), "outputs"),
    "linear, multinomial of two": lambda: plain(FSAClassifier(3, loss="multinomial"), "two"),
    "linear, hinge of three": lambda: plain(FSAClassifier(3, loss="huberised_hinge"), "three"),
    "linear, no intercept": lambda: plain(FSARegressor(3, fit_intercept=False), "number"),
    "linear, median": lambda: plain(FSARegressor(3, loss="quantile"), "number"),
    "ranks": lambda: plain(FSARanker(3), "three"),
    "online": lambda: online(RDAClassifier(0.01, loss="logistic"), "three"),
    "online, no probabilities": lambda: online(FOBOSClassifier(0.01), "two"),
    "constant in bins": lambda: plain(LogitBoostClassifier(2), "two"),
    "an estimator": lambda: FSAClassifier(2).fit(FRAME[list("abcdef")], TARGETS["two"]),
    "an estimator of curves": lambda: FSARegressor(2, response="piecewise").fit(FRAME[list("abcdef")], TARGETS["number"]),
    "curves, two classes": lambda: plain(FSAClassifier(3, response="piecewise"), "two"),
    "curves, three classes": lambda: plain(FSAClassifier(3, response="piecewise"), "three"),
    "curves, quantiles": lambda: plain(FSARegressor(3, response=knots()), "number"),
    "curves, counts": lambda: plain(FSARegressor(3, response="piecewise", loss="poisson"), "counts"),
    "gaps filled": lambda: encoded(FSAClassifier(3), "two"),
    "gaps with a response": lambda: encoded(FSAClassifier(3, response="piecewise"), "two", fill=None),
    "gaps, three classes": lambda: encoded(FSAClassifier(3, response=knots()), "three", fill=None),
    "dates": lambda: encoded(FSARegressor(5), "number", DATE),
    "dates with curves": lambda: encoded(FSARegressor(5, response="piecewise"), "number", KEPT, fill=None),
    "categories": lambda: encoded(FSAClassifier(5), "two", CITY),
    "categories, three classes": lambda: encoded(FSAClassifier(6), "three", CITY),
    "categories, levels put together": lambda: encoded(FSARegressor(6), "number", OTHER),
    "categories and curves": lambda: encoded(FSAClassifier(8, response="piecewise"), "three", OTHER, KEPT, fill=None),
    "everything, counts": lambda: encoded(FSARegressor(9, loss="poisson"), "counts", CITY, DATE),
    "pipeline, scaled": lambda: mixed(scaled(), onehot(), FSAClassifier(5), "two"),
    "pipeline, least to greatest": lambda: mixed(scaled(MinMaxScaler((-1, 1))), onehot(drop="first"), FSARegressor(5), "number"),
    "pipeline, robust": lambda: mixed(
        scaled(RobustScaler(), strategy="median"), onehot(min_frequency=30), FSAClassifier(5), "three"
    ),
    "pipeline, largest": lambda: mixed(scaled(MaxAbsScaler()), OneHotEncoder(handle_unknown="ignore"), FSAClassifier(6), "two"),
    "pipeline, indicator": lambda: mixed(scaled(add_indicator=True), onehot(), FSARegressor(8), "number"),
    "pipeline, curves": lambda: mixed(StandardScaler(), onehot(), FSAClassifier(4, response="piecewise"), "two"),
    "pipeline, ordered": lambda: mixed(
        scaled(),
        make_pipeline(OrdinalEncoder(handle_unknown="use_encoded_value", unknown_value=-1), SimpleImputer()),
        FSARegressor(4, response="piecewise"),
        "number",
    ),
    "pipeline, mean of the target": lambda: mixed(scaled(), TargetEncoder(cv=4), FSAClassifier(4), "two"),
    "pipeline, means of three": lambda: mixed(scaled(), TargetEncoder(cv=4), FSAClassifier(6), "three"),
    "pipeline, union": lambda: make_pipeline(
        SimpleImputer(),
        FeatureUnion([("a", StandardScaler()), ("b", FunctionTransformer()), ("c", "drop")]),
        "passthrough",
        FSARegressor(4),
    ).fit(HOLES[list("abcdef")], TARGETS["number"]),
}
_made: dict = {}


def model_of(name):
    if name not in _made:
        _made[name] = MODELS[name]()
    return _made[name]


def rows_of(model):
    """Rows with whatever the model takes: those without gaps where it takes none."""
    if isinstance(model, Pipeline) or getattr(model, "encoding", None) is not None:
        names = getattr(model, "feature_names_in_", None)
        return NEW if names is None else NEW[list(names)]
    return FRAME[list("abcdef")]


def said(model, rows):
    """Scores (n, outputs), predictions, and probabilities or None."""
    task = model.steps[-1][1] if isinstance(model, Pipeline) else model
    scores = model.predict(rows) if not hasattr(model, "decision_function") else model.decision_function(rows)
    loss = getattr(getattr(task, "loss_", None), "link", "identity")
    scores = np.log(scores) if loss == "log" else scores
    classes = getattr(task, "classes", getattr(task, "classes_", None))
    has = classes is not None and getattr(task, "probabilities", "?") is not None and hasattr(model, "predict_proba")
    return scores.reshape(len(rows), -1), model.predict(rows), model.predict_proba(rows) if has else None


def close(a, b, tolerance):
    a, b = np.asarray(a, float), np.asarray(b, float)
    assert a.shape == b.shape
    np.testing.assert_array_less(np.abs(a - b) / np.maximum(1.0, np.abs(b)), tolerance)


def check_query(found, expected):
    scores, predicted, probabilities = expected
    close(found.filter(regex="^score"), scores, 1e-12)
    if predicted.dtype.kind == "f":
        close(found.filter(regex="^prediction"), predicted.reshape(len(predicted), -1), 1e-12)
    else:
        sure = np.abs(np.diff(np.sort(np.column_stack([np.zeros(len(scores)), scores]), axis=1)[:, -2:])).ravel() > 1e-9
        np.testing.assert_array_equal(found["prediction"].to_numpy().astype(predicted.dtype)[sure], predicted[sure])
    if probabilities is not None:
        close(found.filter(regex="^probability"), probabilities, 1e-12)


def test_there_are_forty():
    assert len(MODELS) == 40


@pytest.mark.parametrize("name", MODELS)
def test_sqlite(name, tmp_path):
    model = model_of(name)
    check_query(exported.in_sqlite(model, rows_of(model), tmp_path), said(model, rows_of(model)))


@pytest.mark.parametrize("name", MODELS)
def test_duckdb(name, tmp_path):
    pytest.importorskip("duckdb")
    model = model_of(name)
    check_query(exported.in_duckdb(model, rows_of(model), tmp_path), said(model, rows_of(model)))


@pytest.mark.parametrize("name", MODELS)
def test_json(name, tmp_path):
    model = model_of(name)
    found, classes = exported.from_json(model, rows_of(model), tmp_path)
    scores, predicted, probabilities = said(model, rows_of(model))
    close(np.transpose([values for (what, _), values in found.items() if what == "score"]), scores, 1e-12)
    if probabilities is not None:
        close(np.transpose([found["probability", str(label)] for label in classes]), probabilities, 1e-12)
    if classes is not None:
        np.testing.assert_array_equal(np.array(classes)[found["prediction", ""]], predicted)


@pytest.mark.skipif(shutil.which("gcc") is None, reason="needs a C compiler")
@pytest.mark.parametrize("name", MODELS)
def test_c(name, tmp_path):
    model = model_of(name)
    scores, predicted, probabilities = said(model, rows_of(model))
    wide = scores.shape[1] if probabilities is None else probabilities.shape[1]
    found, results, classes = exported.in_c(model, rows_of(model), tmp_path, scores.shape[1], wide)
    close(found, scores, 1e-12)
    if probabilities is not None:
        close(results, probabilities, 1e-12)
    labels = getattr(model, "classes", getattr(model, "classes_", None))
    if labels is None:
        close(results, predicted.reshape(len(predicted), -1), 1e-12)
    else:
        np.testing.assert_array_equal(labels[classes], predicted)


@pytest.mark.parametrize("name", MODELS)
def test_onnx(name, tmp_path):
    pytest.importorskip("onnxruntime")
    model = model_of(name)
    scores, predicted, probabilities = said(model, rows_of(model))
    found = exported.in_onnx(model, rows_of(model), tmp_path)
    close(found["score"], scores, 1e-5)
    if probabilities is not None:
        close(found["probabilities"], probabilities, 1e-5)
    if "variable" in found:
        close(found["variable"], predicted.reshape(len(predicted), -1), 1e-5)
    else:
        assert np.mean(found["label"] == predicted) > 0.99  # ties of float32
