"""An exported model gives the results of the fitted one in every format."""

import csv
import shutil
import sys

import exported
import numpy as np
import pandas as pd
import pytest
from annealed.learners import (
    FOBOSClassifier,
    FSAClassifier,
    FSAClassifierCV,
    FSARanker,
    FSARegressor,
    LogitBoostClassifier,
    PiecewiseLinear,
    RankBoost,
    RDAClassifier,
)
from annealed.learners.common.additive import AdditiveModel
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
FRAME = pd.DataFrame(
    rng.standard_normal((N, 6)) * [1, 10, 0.1, 1, 1000, 1] + [0, 50, 0, 10, 0, -3],
    columns=list("abcdef"),
)
FRAME["city"] = rng.choice(["Oslo", "Rome", "St. John's", 'the "big" one', "Łódź"], N)
FRAME["size"] = rng.choice([1.0, 2.0, 3.0], N)
FRAME["day"] = pd.Timestamp("2021-01-01") + pd.to_timedelta(rng.integers(0, 400 * 86400, N), "s")
HOLES = FRAME.copy()
for j, name in enumerate(HOLES.columns):
    HOLES.loc[HOLES.index[j::7], name] = None
YEARS = np.random.default_rng(1).uniform(0.02, 1.0, N)
NEW = HOLES.assign(years=YEARS)
NEW.loc[NEW.index[::5], "city"] = "elsewhere"

SIGNAL = (
    FRAME["a"]
    + FRAME["b"] / 10
    - 5
    + 2.0 * (FRAME["city"] == "Rome")
    + (FRAME["day"] > "2021-07-01")
    + 0.5 * FRAME["size"]
)
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
LOGARITHM, RANK = (
    ColumnEncoding("a", fill=0.3, form="log"),
    ColumnEncoding("city", "rank", 1.0, CITIES),
)
OTHER = ColumnEncoding("city", "category", None, ("Rome", "(other)", "(missing)"), "Oslo")


def numbers(fill):
    return [ColumnEncoding(name, fill=fill) for name in "abcdef"]


def encoded(estimator, target, *columns, fill=0.5):
    """A model of a table, as ``annealed select --out`` stores it."""
    encoding = TableEncoding((*numbers(fill), *columns))
    return TabularModel.from_estimator(
        estimator.fit(encoding.encode(HOLES), TARGETS[target]), encoding
    )


def exposed(estimator, target, link):
    """A model of a table whose column "years" is an exposure or an offset."""
    encoding, years = TableEncoding((*numbers(0.5), CITY)), HOLES.assign(years=YEARS)["years"]
    shift = {"log": np.log(years), "identity": years}[link]
    fitted = estimator.fit(encoding.encode(HOLES), TARGETS[target], offset=shift)
    return TabularModel.from_estimator(fitted, encoding, ("years", link))


def plain(estimator, target):
    return TabularModel.from_estimator(estimator.fit(FRAME[list("abcdef")], TARGETS[target]))


def online(estimator, target):
    return make_pipeline(StandardScaler(), SimpleImputer(), estimator).fit(
        FRAME[list("abcdef")], TARGETS[target]
    )


def mixed(numeric, category, estimator, target):
    """A pipeline on a table with numbers and categories."""
    columns = ColumnTransformer(
        [("n", numeric, list("abc")), ("c", category, ["city", "size"])], remainder="drop"
    )
    return Pipeline(
        [("columns", columns), ("keep", VarianceThreshold()), ("model", estimator)]
    ).fit(HOLES, TARGETS[target])


def knots(bins="quantile"):
    return PiecewiseLinear(n_bins=4, bins=bins)


def onehot(**options):
    return make_pipeline(
        SimpleImputer(strategy="most_frequent"),
        OneHotEncoder(**{"handle_unknown": "ignore"} | options),
    )


def scaled(scaler=None, **options):
    return make_pipeline(SimpleImputer(**options), scaler or StandardScaler())


MODELS = {
    "linear, two classes": lambda: plain(FSAClassifier(3), "two"),
    "linear, calibrated": lambda: plain(FSAClassifierCV([3]), "two"),
    "linear, calibrated three": lambda: plain(FSAClassifierCV([3]), "three"),
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
    "an estimator of curves": lambda: FSARegressor(2, response="piecewise").fit(
        FRAME[list("abcdef")], TARGETS["number"]
    ),
    "curves, two classes": lambda: plain(FSAClassifier(3, response="piecewise"), "two"),
    "curves, three classes": lambda: plain(FSAClassifier(3, response="piecewise"), "three"),
    "curves, quantiles": lambda: plain(FSARegressor(3, response=knots()), "number"),
    "curves, counts": lambda: plain(
        FSARegressor(3, response="piecewise", loss="poisson"), "counts"
    ),
    "gaps filled": lambda: encoded(FSAClassifier(3), "two"),
    "gaps with a response": lambda: encoded(
        FSAClassifier(3, response="piecewise"), "two", fill=None
    ),
    "gaps, three classes": lambda: encoded(FSAClassifier(3, response=knots()), "three", fill=None),
    "dates": lambda: encoded(FSARegressor(5), "number", DATE),
    "dates with curves": lambda: encoded(
        FSARegressor(5, response="piecewise"), "number", KEPT, fill=None
    ),
    "categories": lambda: encoded(FSAClassifier(5), "two", CITY),
    "categories, three classes": lambda: encoded(FSAClassifier(6), "three", CITY),
    "categories, levels put together": lambda: encoded(FSARegressor(6), "number", OTHER),
    "categories and curves": lambda: encoded(
        FSAClassifier(8, response="piecewise"), "three", OTHER, KEPT, fill=None
    ),
    "logarithms and ranks": lambda: encoded(FSARegressor(8), "number", LOGARITHM, RANK),
    "everything, counts": lambda: encoded(FSARegressor(9, loss="poisson"), "counts", CITY, DATE),
    "exposure, amounts": lambda: exposed(FSARegressor(5, loss="tweedie"), "counts", "log"),
    "offset, two classes": lambda: exposed(FSAClassifier(5), "two", "identity"),
    "pipeline, scaled": lambda: mixed(scaled(), onehot(), FSAClassifier(5), "two"),
    "pipeline, lowest to highest": lambda: mixed(
        scaled(MinMaxScaler((-1, 1))), onehot(drop="first"), FSARegressor(5), "number"
    ),
    "pipeline, robust": lambda: mixed(
        scaled(RobustScaler(), strategy="median"),
        onehot(min_frequency=30),
        FSAClassifier(5),
        "three",
    ),
    "pipeline, largest": lambda: mixed(
        scaled(MaxAbsScaler()), OneHotEncoder(handle_unknown="ignore"), FSAClassifier(6), "two"
    ),
    "pipeline, indicator": lambda: mixed(
        scaled(add_indicator=True), onehot(), FSARegressor(8), "number"
    ),
    "pipeline, curves": lambda: mixed(
        StandardScaler(), onehot(), FSAClassifier(4, response="piecewise"), "two"
    ),
    "pipeline, ordered": lambda: mixed(
        scaled(),
        make_pipeline(
            OrdinalEncoder(handle_unknown="use_encoded_value", unknown_value=-1), SimpleImputer()
        ),
        FSARegressor(4, response="piecewise"),
        "number",
    ),
    "pipeline, mean of the target": lambda: mixed(
        scaled(), TargetEncoder(cv=4), FSAClassifier(4), "two"
    ),
    "pipeline, means of three": lambda: mixed(
        scaled(), TargetEncoder(cv=4), FSAClassifier(6), "three"
    ),
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
    """Rows that the model accepts: without gaps if it takes none."""
    if isinstance(model, Pipeline) or getattr(model, "encoding", None) is not None:
        names = getattr(model, "feature_names_in_", None)
        return NEW if names is None else NEW[list(names)]
    return FRAME[list("abcdef")]


def said(model, rows):
    """Scores (n, outputs), predictions, and probabilities or None."""
    task = model.steps[-1][1] if isinstance(model, Pipeline) else model
    scores = (
        model.predict(rows)
        if not hasattr(model, "decision_function")
        else model.decision_function(rows)
    )
    loss = getattr(getattr(task, "loss_", None), "link", "identity")
    scores = np.log(scores) if loss == "log" else scores
    classes = getattr(task, "classes", getattr(task, "classes_", None))
    has = (
        classes is not None
        and getattr(task, "probabilities", "?") is not None
        and hasattr(model, "predict_proba")
    )
    return (
        scores.reshape(len(rows), -1),
        model.predict(rows),
        model.predict_proba(rows) if has else None,
    )


def close(a, b, tolerance):
    a, b = np.asarray(a, float), np.asarray(b, float)
    assert a.shape == b.shape
    np.testing.assert_array_less(np.abs(a - b) / np.maximum(1.0, np.abs(b)), tolerance)


def check_query(result, expected):
    scores, predicted, probabilities = expected
    close(result.filter(regex="^score"), scores, 1e-12)
    if predicted.dtype.kind == "f":
        close(result.filter(regex="^prediction"), predicted.reshape(len(predicted), -1), 1e-12)
    else:
        sure = (
            np.abs(
                np.diff(np.sort(np.column_stack([np.zeros(len(scores)), scores]), axis=1)[:, -2:])
            ).ravel()
            > 1e-9
        )
        np.testing.assert_array_equal(
            result["prediction"].to_numpy().astype(predicted.dtype)[sure], predicted[sure]
        )
    if probabilities is not None:
        close(result.filter(regex="^probability"), probabilities, 1e-12)


def test_there_are_forty_five():
    assert len(MODELS) == 45
    for name in ("linear, calibrated", "linear, calibrated three"):
        assert model_of(name).slope not in (0.0, 1.0)


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
    result, classes = exported.from_json(model, rows_of(model), tmp_path)
    scores, predicted, probabilities = said(model, rows_of(model))
    close(
        np.transpose([values for (what, _), values in result.items() if what == "score"]),
        scores,
        1e-12,
    )
    if probabilities is not None:
        close(
            np.transpose([result["probability", str(label)] for label in classes]),
            probabilities,
            1e-12,
        )
    if classes is not None:
        np.testing.assert_array_equal(np.array(classes)[result["prediction", ""]], predicted)


@pytest.mark.skipif(shutil.which("gcc") is None, reason="needs a C compiler")
@pytest.mark.parametrize("name", MODELS)
def test_c(name, tmp_path):
    model = model_of(name)
    scores, predicted, probabilities = said(model, rows_of(model))
    wide = scores.shape[1] if probabilities is None else probabilities.shape[1]
    computed, results, classes = exported.in_c(
        model, rows_of(model), tmp_path, scores.shape[1], wide
    )
    close(computed, scores, 1e-12)
    if probabilities is not None:
        close(results, probabilities, 1e-12)
    labels = getattr(model, "classes", getattr(model, "classes_", None))
    if labels is None:
        close(results, predicted.reshape(len(predicted), -1), 1e-12)
    else:
        np.testing.assert_array_equal(labels[classes], predicted)


@pytest.mark.skipif(shutil.which("gcc") is None, reason="needs a C compiler")
def test_c_ignores_blanks_around_texts(tmp_path):
    frame = pd.DataFrame({"word": [" a", "b\t ", "a b ", " ", "", None, "ab", "c"] * 5})
    encoding = TableEncoding((ColumnEncoding("word", "category", None, ("a", "b", "a b"), "c"),))
    y = np.random.default_rng(0).normal(size=40)
    model = TabularModel.from_estimator(FSARegressor(3).fit(encoding.encode(frame), y), encoding)
    expected = model.predict(frame.apply(lambda column: column.str.strip()))
    close(exported.in_c(model, frame, tmp_path, 1, 1)[0].ravel(), expected, 1e-12)


@pytest.mark.parametrize("name", MODELS)
def test_onnx(name, tmp_path):
    pytest.importorskip("onnxruntime")
    model = model_of(name)
    scores, predicted, probabilities = said(model, rows_of(model))
    result = exported.in_onnx(model, rows_of(model), tmp_path)
    close(result["score"], scores, 1e-5)
    if probabilities is not None:
        close(result["probabilities"], probabilities, 1e-5)
    if "variable" in result:
        close(result["variable"], predicted.reshape(len(predicted), -1), 1e-5)
    else:
        assert np.mean(result["label"] == predicted) > 0.99  # ties of float32


DIALECTS = ("postgres", "sqlite", "duckdb", "mysql", "bigquery")


@pytest.mark.parametrize("dialect", DIALECTS)
@pytest.mark.parametrize(
    "name", ["categories and curves", "everything, counts", "linear, hinge of three"]
)
def test_every_dialect_parses(name, dialect, tmp_path):
    sqlglot = pytest.importorskip("sqlglot")
    query = exported.written(
        model_of(name), tmp_path / "m.sql", dialect=dialect, table="a.b", keys=["k"]
    )
    tree = sqlglot.parse_one(query, read=dialect)
    assert [column.alias for column in tree.selects][:2] == [
        "k",
        tree.selects[1].alias,
    ] and tree.selects[1].alias.startswith("score")


@pytest.mark.parametrize("place", [exported.in_sqlite, exported.in_duckdb])
def test_keys_stand_before_the_scores(place, tmp_path):
    model = model_of("categories")
    result = place(model, NEW.assign(key=range(N)), tmp_path, keys=["key", "city"])
    assert list(result.columns)[:3] == ["key", "city", "score"] and result["key"].tolist() == list(
        range(N)
    )
    with pytest.raises(ValueError, match="key 'score' conflicts with the name of a result column"):
        export(model, tmp_path / "m.sql", keys=["score"])


def test_sqlite_says_that_it_needs_exp(tmp_path):
    with pytest.warns(UserWarning, match="the query calls EXP or LN"):
        export(model_of("linear, two classes"), tmp_path / "m.sql", dialect="sqlite")
    assert "-- the query calls EXP or LN" in (tmp_path / "m.sql").read_text()
    export(model_of("linear, number"), tmp_path / "m.sql", dialect="sqlite")
    assert "EXP" not in (tmp_path / "m.sql").read_text()


def test_infinity_and_nan_count_as_missing(tmp_path):
    duckdb = pytest.importorskip("duckdb")
    query = exported.written(
        model_of("gaps filled"), tmp_path / "m.sql", dialect="duckdb", table="t"
    )
    columns = ", ".join(f"{value} AS {name}" for name in "abcdef" for value in ["x"])
    values = "(VALUES ('nan'::DOUBLE), ('inf'::DOUBLE), ('-inf'::DOUBLE), (NULL))"
    with duckdb.connect() as connection:
        connection.execute(f"CREATE TABLE t AS SELECT {columns} FROM {values} AS v(x)")
        scores = connection.execute(query).df()["score"]
    assert scores.notna().all() and scores.nunique() == 1


NAMES = st.text(
    st.characters(exclude_categories=["Cs"], exclude_characters="\0"), min_size=1, max_size=12
)
ODD = [
    'a"b',
    "a'b",
    "a`b",
    "*/ x",
    "a\\",
    "-- x",
    "??/",
    "a;b",
    "=1+1",
    "score",
    "select",
    "a\nb",
    "%s",
    "{0}",
    "é",
    "c1",
    "k1",
]


@settings(
    max_examples=25, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture]
)
@given(
    names=st.lists(NAMES | st.sampled_from(ODD), min_size=2, max_size=2, unique_by=str.lower),
    words=st.lists(NAMES, min_size=1, unique_by=str.strip),
)
def test_odd_names_and_levels(names, words, tmp_path_factory):
    """Names of columns and levels do not change the results of a query and of C code."""
    folder = tmp_path_factory.mktemp("odd")
    levels = tuple(
        dict.fromkeys(word.strip(" ") for word in words if word.strip() == word.strip(" ") != "")
    )
    frame = pd.DataFrame(
        {
            names[0]: np.linspace(-1, 1, 12),
            names[1]: [[*levels, "else"][i % (len(levels) + 1)] for i in range(12)],
        }
    )
    encoding = TableEncoding(
        (ColumnEncoding(names[0]), ColumnEncoding(names[1], "category", None, levels, "else"))
    )
    if not levels:
        return
    y = np.arange(12) + 3.0 * (frame[names[1]] == levels[0])
    model = TabularModel.from_estimator(
        FSARegressor(1 + len(levels)).fit(encoding.encode(frame), y), encoding
    )
    for place in (exported.in_sqlite, exported.in_duckdb):
        close(place(model, frame, folder)["score"], model.predict(frame), 1e-12)
    if shutil.which("gcc"):
        close(exported.in_c(model, frame, folder, 1, 1)[0].ravel(), model.predict(frame), 1e-12)
    if not set(names) & {"score", "label", "variable", "probabilities"}:
        close(exported.in_onnx(model, frame, folder)["score"].ravel(), model.predict(frame), 1e-5)


@pytest.mark.parametrize("suffix", ["xlsx", "csv"])
@pytest.mark.parametrize(
    "name",
    [
        "gaps with a response",
        "categories, three classes",
        "everything, counts",
        "linear, hinge of three",
    ],
)
def test_score_sheet(name, suffix, tmp_path):
    """The formulas, evaluated as a spreadsheet program does."""
    formulas, openpyxl = pytest.importorskip("formulas"), pytest.importorskip("openpyxl")
    model = model_of(name)
    export(model, tmp_path / f"m.{suffix}")
    if suffix == "csv":
        book = openpyxl.Workbook()
        for row in csv.reader((tmp_path / "m.csv").open(newline="")):
            book.active.append([cell or None for cell in row])
    else:
        book = openpyxl.load_workbook(tmp_path / "m.xlsx")
    sheet, rows = book.active, rows_of(model)
    head = [cell.value for cell in sheet[1]]
    for i in (1, 3, 12):
        for j, title in enumerate(head, 1):
            if title in rows and not str(sheet.cell(2, j).value or "").startswith("="):
                cell = rows[title].iloc[i]
                days = isinstance(cell, pd.Timestamp) and (
                    cell - pd.Timestamp("1899-12-30")
                ) / pd.Timedelta(days=1)
                sheet.cell(2, j).value = None if pd.isna(cell) else days or cell
        book.save(tmp_path / "filled.xlsx")
        solved = formulas.ExcelModel().loads(str(tmp_path / "filled.xlsx")).finish().calculate()
        values = {
            key.rsplit("!", 1)[1]: value.value[0, 0]
            for key, value in solved.items()
            if hasattr(value, "value")
        }
        result = {
            title: values.get(f"{openpyxl.utils.get_column_letter(j)}2")
            for j, title in enumerate(head, 1)
        }
        scores, predicted, probabilities = (
            part if part is None else part[i] for part in said(model, rows)
        )
        close([value for title, value in result.items() if title.startswith("score")], scores, 1e-9)
        if probabilities is not None:
            labels = getattr(model, "classes", getattr(model, "classes_", None))
            close([result[f"probability of {label}"] for label in labels], probabilities, 1e-9)
            assert str(result["prediction"]) in (
                str(predicted),
                f"{predicted:.1f}" if not isinstance(predicted, str) else "",
            )


@pytest.mark.parametrize("response", ["linear", "piecewise"])
def test_truth_values_in_a_score_sheet(response, tmp_path):
    formulas, openpyxl = pytest.importorskip("formulas"), pytest.importorskip("openpyxl")
    a, b = np.arange(80) % 2 == 0, np.arange(80) % 4 < 2
    words = np.where(np.arange(80) % 5 == 0, None, (np.arange(80) % 3 == 0).astype(object))
    frame = pd.DataFrame({"a": a, "b": b, "word": words, "c": np.arange(80.0)})
    numbers = [
        ColumnEncoding(name, fill=None if response == "piecewise" else 0.3) for name in "abc"
    ]
    encoding = TableEncoding(
        (*numbers, ColumnEncoding("word", "category", None, ("False", "(missing)"), "True"))
    )
    y = 3.0 * a - 2.0 * b + frame["c"] / 50 + 4.0 * (words == False)  # noqa: E712
    model = TabularModel.from_estimator(
        FSARegressor(5, response=response).fit(encoding.encode(frame), y), encoding
    )
    export(model, tmp_path / "m.xlsx")
    book = openpyxl.load_workbook(tmp_path / "m.xlsx")
    head = [cell.value for cell in book.active[1]]
    for row in (
        [True, False, True, 3.0],
        [False, True, False, 7.0],
        [1.0, 0.0, None, 70.0],
        [None, True, "True", 1.0],
    ):
        cells = dict(zip(("a", "b", "word", "c"), row))
        for name in head[: head.index(next(title for title in head if title.endswith(" adds")))]:
            book.active.cell(2, head.index(name) + 1).value = cells[name]
        book.save(tmp_path / "filled.xlsx")
        solved = formulas.ExcelModel().loads(str(tmp_path / "filled.xlsx")).finish().calculate()
        values = {
            key.rsplit("!", 1)[1]: value.value[0, 0]
            for key, value in solved.items()
            if hasattr(value, "value")
        }
        wanted = pd.DataFrame(
            {name: pd.Series([cell], dtype=object) for name, cell in cells.items()}
        )
        result = values[f"{openpyxl.utils.get_column_letter(head.index('prediction') + 1)}2"]
        close([result], model.predict(wanted), 1e-9)


def test_a_name_is_no_formula(tmp_path):
    encoding = TableEncoding((ColumnEncoding("=1+1", fill=0.0),))
    frame = pd.DataFrame({"=1+1": np.arange(20.0)})
    model = TabularModel.from_estimator(
        FSARegressor(1).fit(encoding.encode(frame), np.arange(20.0)), encoding
    )
    export(model, tmp_path / "m.csv")
    assert next(csv.reader((tmp_path / "m.csv").open()))[0] == '="=1+1"'
    openpyxl = pytest.importorskip("openpyxl")
    export(model, tmp_path / "m.xlsx")
    assert openpyxl.load_workbook(tmp_path / "m.xlsx").active.cell(1, 1).data_type == "s"


def fit(*steps, target="number"):
    return make_pipeline(*steps).fit(FRAME[list("abcdef")], TARGETS[target])


REFUSED = {
    "not a fitted linear": lambda: LogisticRegression().fit(FRAME[["a"]], TARGETS["two"]),
    "not a fitted linear or": lambda: RankBoost(3).fit(FRAME[list("abc")], TARGETS["three"]),
    "not a fitted linear or piecewise": lambda: FSARegressor(2),
    "the step PCA": lambda: fit(PCA(2), FSARegressor(2)),
    "the step FunctionTransformer": lambda: fit(FunctionTransformer(np.abs), FSARegressor(2)),
    "the step MinMaxScaler": lambda: fit(MinMaxScaler(clip=True), FSARegressor(2)),
    "the step SimpleImputer": lambda: fit(SimpleImputer(missing_values=-1), FSARegressor(2)),
    "the step OneHotEncoder": lambda: fit(
        StandardScaler(), OneHotEncoder(sparse_output=False), FSARegressor(2)
    ),
}


@pytest.mark.parametrize("message", REFUSED)
def test_what_cannot_be_exported_is_refused(message, tmp_path):
    path = tmp_path / "m.sql"
    with pytest.raises(ValueError, match=message) as caught:
        export(REFUSED[message](), path)
    assert "\n" not in str(caught.value) or len(str(caught.value)) < 600
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize(
    "name, options, message",
    [
        ("m.txt", {}, "expected a file name that ends in .sql, .onnx"),
        ("m.sql", {"dialect": "oracle"}, "dialect 'oracle' is unknown; expected one of postgres"),
        ("m.onnx", {"dialect": "duckdb"}, "dialect is only available for .sql files"),
        ("m.c", {"table": "t"}, "table is only available for .sql files"),
        ("nowhere/m.sql", {}, "cannot be written"),
    ],
)
def test_options_are_checked(name, options, message, tmp_path):
    with pytest.raises(ValueError, match=message):
        export(model_of("linear, number"), tmp_path / name, **options)
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize("suffix", ["sql", "c", "json", "csv", "onnx", "xlsx"])
def test_nothing_half_written_stays(suffix, tmp_path, monkeypatch):
    """A failed export keeps the existing file."""
    path = tmp_path / f"m.{suffix}"
    export(model_of("linear, number"), path)
    before = path.read_bytes()
    bad = TabularModel(
        AdditiveModel(np.array([0]), np.empty((1, 0)), np.ones((1, 1, 1))),
        "regression",
        ("\ud800",),
    )
    with pytest.raises(ValueError, match="characters that are not valid text"):
        export(bad, path)
    monkeypatch.setattr(
        "pathlib.Path.write_bytes",
        lambda *given: (_ for _ in ()).throw(OSError(28, "no space left")),
    )
    with pytest.raises(ValueError, match="cannot be written"):
        export(model_of("linear, number"), path)
    assert path.read_bytes() == before and len(list(tmp_path.iterdir())) == 1


def test_a_model_of_no_column(tmp_path):
    """A model without columns exports its constant."""
    frame = FRAME[list("abcdef")]
    model = TabularModel.from_estimator(online(RDAClassifier(3), "two").steps[-1][1])
    assert not len(model.additive.selected)
    for place in (exported.in_sqlite, exported.in_duckdb):
        assert place(model, frame, tmp_path)["score"].nunique() == 1
    with pytest.raises(ValueError, match="a model without columns cannot be exported to ONNX"):
        export(model, tmp_path / "m.onnx")


def test_packages_that_are_missing_are_named(tmp_path, monkeypatch):
    for package, suffix in (("onnx", "onnx"), ("openpyxl", "xlsx")):
        monkeypatch.setitem(sys.modules, package, None)
        with pytest.raises(
            ModuleNotFoundError,
            match=rf"requires the package {package}; run pip install '\.\[export\]' in the "
            rf"annealed checkout",
        ):
            export(model_of("linear, number"), tmp_path / f"m.{suffix}")
