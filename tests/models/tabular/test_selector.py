"""``TabularSelector``: the decisions and numbers of ``annealed select`` on frames of many kinds,
and the conventions of scikit-learn."""

import pickle
import re

import numpy as np
import pandas as pd
import pytest
from annealed import TabularSelector
from annealed.learners import FSAClassifier, FSAClassifierCV
from annealed.models import load_model
from annealed.pipelines.tabular.request import Request
from annealed.pipelines.tabular.selection import select_file
from sklearn.base import clone
from sklearn.linear_model import LogisticRegression
from sklearn.model_selection import GridSearchCV, cross_val_score
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.utils.estimator_checks import parametrize_with_checks

pl, pa = pytest.importorskip("polars"), pytest.importorskip("pyarrow")
N = 120
rng = np.random.default_rng(0)
NUMBERS = pd.DataFrame(rng.standard_normal((N, 5)).round(3), columns=list("abcde"))
CITY = rng.choice(["Oslo", "Rome", "Kiel"], N)
DAYS = pd.Series(pd.date_range("2020-01-01", periods=N, freq="37h"))
GAPS = rng.random(N) < 0.1
NOISE = 0.5 * rng.standard_normal(N)
SCORE = NUMBERS["a"] - NUMBERS["b"] + (CITY == "Rome") + NOISE
TWO = pd.Series(np.where(SCORE > 0, "yes", "no"))
MIXED = NUMBERS.assign(city=CITY, day=DAYS.dt.tz_localize("Europe/Berlin"), flag=NUMBERS["c"] > 0)
WITH_GAPS = MIXED.assign(a=NUMBERS["a"].mask(GAPS), city=pd.Series(CITY).mask(GAPS[::-1]))
# frame, target, and options
FRAMES = {
    "numbers": (NUMBERS, SCORE, {}),
    "text": (NUMBERS.assign(city=CITY), SCORE, {}),
    "booleans": (MIXED[["flag", "a", "b"]], TWO, {}),
    "a boolean target": (MIXED, SCORE > 0, {}),
    "dates with a time zone": (MIXED, SCORE + DAYS.dt.day_of_year / 40, {}),
    "gaps": (WITH_GAPS, TWO, {}),
    "a column without values": (MIXED.assign(empty=np.nan, none=None), SCORE, {}),
    "categories": (MIXED.astype({"city": "category"}), SCORE, {}),
    "ordered text": (
        NUMBERS.assign(level=np.array(["low", "medium", "high"])[rng.integers(0, 3, N)]),
        SCORE,
        {},
    ),
    "skewed numbers": (NUMBERS.assign(skewed=np.exp(2 * NUMBERS["d"] + 3)), NUMBERS["d"], {}),
    "dates as text": (NUMBERS.assign(day=DAYS.dt.strftime("%d/%m/%Y")), SCORE, {}),
    "thousands": (NUMBERS.assign(price=[f"{n:,}" for n in rng.integers(900, 99999, N)]), TWO, {}),
    "rows with numbers": (MIXED.assign(id=np.arange(N) + 5), SCORE, {}),
    "duplicates": (pd.concat([MIXED, MIXED[:20]]), pd.concat([TWO, TWO[:20]]), {}),
    "response curves": (WITH_GAPS, SCORE, {"response": "piecewise"}),
    "three classes": (MIXED, pd.cut(SCORE, 3, labels=["x", "y", "z"]).astype(str), {}),
    "weights": (MIXED.assign(w=rng.random(N)), SCORE, {"weight": "w", "include": ["c"]}),
    "bounds": (
        NUMBERS,
        SCORE,
        {"bounds": {"a": (0, None), "b": (-0.5, 0.5)}, "monotone": {"c": -1}},
    ),
    "nullable dtypes": (WITH_GAPS.convert_dtypes(), TWO.convert_dtypes(), {}),
    "Arrow dtypes": (WITH_GAPS.convert_dtypes(dtype_backend="pyarrow"), TWO, {}),
    "Polars": (pl.from_pandas(MIXED), pl.Series(SCORE.to_numpy()), {}),
    "Polars with gaps": (
        pl.from_pandas(WITH_GAPS).with_columns(pl.col("city").cast(pl.Categorical)),
        pl.Series(TWO.tolist()),
        {},
    ),
    "PyArrow": (pa.Table.from_pandas(MIXED), SCORE, {}),
}


def as_pandas(data):
    return data.to_pandas() if hasattr(data, "to_pandas") else data


@pytest.mark.parametrize("case", FRAMES)
def test_frames_have_the_numbers_of_the_command(case, tmp_path):
    X, y, options = FRAMES[case]
    selector = TabularSelector(3, **options).fit(X, y)

    whole = as_pandas(X).reset_index(drop=True)
    whole["target"] = np.asarray(as_pandas(y))
    whole.to_parquet(tmp_path / "t.parquet")
    given = {name: TabularSelector(1, **options).__dict__[name] for name in options}
    words = {"bounds": ["a=0:", "b=-0.5:0.5"], "monotone": ["c=-"]}
    request = Request("target", "3", **{name: words.get(name, v) for name, v in given.items()})
    other = select_file(tmp_path / "t.parquet", request)
    assert selector.columns_ == other.columns
    assert selector.scores_ == other.validation.scores
    assert selector.left_out_ == other.table.left_out

    selector.save(tmp_path / "m.safetensors")
    loaded, plain = (
        TabularSelector.load(tmp_path / "m.safetensors"),
        load_model(tmp_path / "m.safetensors"),
    )
    predicted = selector.predict(X)
    np.testing.assert_array_equal(predicted, loaded.predict(X))
    np.testing.assert_array_equal(predicted, plain.predict(as_pandas(X)))
    assert predicted.dtype == loaded.predict(X).dtype
    assert list(selector.transform(X).columns) == selector.get_feature_names_out().tolist()


def test_labels_keep_their_type():
    assert TabularSelector(2).fit(MIXED, SCORE > 0).predict(MIXED).dtype == bool
    assert TabularSelector(2).fit(MIXED, (SCORE > 0).astype(int)).predict(MIXED).dtype == int
    assert TabularSelector(2).fit(MIXED, TWO).classes_.tolist() == ["no", "yes"]


def test_new_rows(tmp_path):
    """Unknown levels and further columns are accepted; a missing column is one line."""
    X, y, _ = FRAMES["text"]
    selector = TabularSelector(3).fit(X, y)
    assert set(selector.get_feature_names_out()) == {"a", "b", "city"}
    new = X[:4].assign(city=["Paris", None, "Rome", "Oslo"], further=1)
    assert np.isfinite(selector.predict(new)).all()
    for method in (selector.predict, selector.transform, selector.explain):
        with pytest.raises((ValueError, KeyError), match="'a'"):
            method(X.drop(columns="a"))
    values = selector.explain(X)
    np.testing.assert_allclose(values.scores[:, 0], selector.predict(X))
    assert set(values.names) == {"a", "b", "city"}


@pytest.mark.parametrize(
    "X, options, message",
    [
        (NUMBERS.set_axis(list("abcda"), axis=1), {}, "two columns have the name 'a'"),
        (NUMBERS[:7], {}, "X has 7 rows and y has 120; expected the same number of rows"),
        (
            NUMBERS,
            {"include": ["z"]},
            "column 'z' for include does not exist; the columns are a, b",
        ),
        (NUMBERS, {"row_groups": "a", "time": "b"}, "time is not available with row_groups"),
        (NUMBERS, {"n_features_to_select": 0}, "n_features_to_select=0 is not valid"),
        (NUMBERS, {"kinds": {"a": "date"}}, "kinds a=date: the column cannot be used"),
        (NUMBERS, {"scoring": "r2", "task": "classification"}, "continuous values such as"),
        (NUMBERS, {"scoring": "roc_auc"}, "scoring roc_auc is not valid; expected one of r2"),
        (NUMBERS.assign(a=1, b=1)[["a", "b"]], {}, "no usable columns"),
        (pl.LazyFrame({"a": [1.0]}), {}, "X is a LazyFrame"),
    ],
)
def test_bad_input_is_one_line_with_names_of_parameters(X, options, message):
    options = {"n_features_to_select": 2} | options
    with pytest.raises((ValueError, TypeError), match=re.escape(message)) as error:
        TabularSelector(**options).fit(X, SCORE)
    assert "\n" not in str(error.value) and "--" not in str(error.value)


def test_report_export_and_pickle(tmp_path):
    selector = TabularSelector().fit(MIXED, TWO)
    selector.report(tmp_path / "report")
    page = (tmp_path / "report" / "select.html").read_text()
    assert "Calibration" in page and "P-value" in page
    selector.export(tmp_path / "m.sql", dialect="sqlite")
    assert '"city"' in (tmp_path / "m.sql").read_text()
    assert [row["columns"] for row in selector.path_][:3] == [0, 1, 2]
    selector.save(tmp_path / "m.safetensors")
    with pytest.raises(ValueError, match="does not contain the training rows"):
        TabularSelector.load(tmp_path / "m.safetensors").report(tmp_path / "report")
    copy = pickle.loads(pickle.dumps(selector))
    np.testing.assert_array_equal(copy.predict(MIXED), selector.predict(MIXED))


def test_plots():
    pytest.importorskip("matplotlib").use("Agg")
    selector = TabularSelector(3).fit(MIXED, SCORE)
    names = [label.get_text() for label in selector.plot().get_yticklabels()]
    assert names == [column["name"] for column in selector.columns_]
    sizes = selector.plot_path().get_lines()[0].get_xdata()
    assert list(sizes) == [row["columns"] for row in selector.path_]


def test_tools_of_scikit_learn():
    y = TWO.to_numpy()
    selector = clone(TabularSelector(3, task="classification", bounds={"a": (0, None)}))
    assert cross_val_score(selector, MIXED, y, cv=3).mean() > 0.7
    search = GridSearchCV(
        TabularSelector(task="classification"), {"n_features_to_select": [1, 3]}, cv=2
    )
    assert search.fit(MIXED, y).best_params_ == {"n_features_to_select": 3}
    numbers = TabularSelector(2, exclude=["city", "day", "flag"])
    pipeline = make_pipeline(numbers, StandardScaler(), LogisticRegression()).fit(MIXED, y)
    assert pipeline.score(MIXED, y) > 0.7
    chosen = numbers.set_output(transform="polars").fit(MIXED, y).transform(MIXED)
    assert isinstance(chosen, pl.DataFrame) and chosen.columns == ["a", "b"]
    weight = np.where(y == "yes", 5.0, 1.0)
    with pytest.raises(ValueError, match="intervals is not available with weight"):
        TabularSelector(2, intervals=True).fit(MIXED, y, sample_weight=weight)
    heavy = TabularSelector(2).fit(MIXED, y, sample_weight=weight)
    assert (heavy.predict(MIXED) == "yes").sum() > (numbers.predict(MIXED) == "yes").sum()


def test_other_estimators_name_the_column_of_text():
    for estimator in (FSAClassifier(2), FSAClassifierCV()):
        text = MIXED.drop(columns=["day", "flag"])
        for frame in (text, text.astype({"city": "category"}), pl.from_pandas(text)):
            with pytest.raises(
                ValueError, match=r"column 'city' contains text \('\w+'\).*TabularSelector"
            ):
                estimator.fit(frame, TWO)


ONE_ROW = {"check_fit2d_1sample": "one row makes each column constant, which the message says"}
OBJECTS = {"check_dtype_object": "objects of several types are labels"}

FOLDS = "the folds that calibrate probabilities differ between weights and copies"
WEIGHTS = {"check_sample_weight_equivalence_on_dense_data": FOLDS}


@parametrize_with_checks(
    [TabularSelector(2, task=task) for task in ("classification", "regression")],
    expected_failed_checks=lambda selector: (
        ONE_ROW | (OBJECTS if selector.task == "regression" else WEIGHTS)
    ),
)
def test_conventions(estimator, check):
    check(estimator)
