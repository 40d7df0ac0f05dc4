"""Laws of the estimators: neither the form of the data nor the way of running changes a model."""

import copy
import io
import multiprocessing
import pickle
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import joblib
import laws
import numpy as np
import pandas as pd
import polars as pl
import pytest
import scipy.sparse as sp
from annealed import learners
from sklearn.base import clone, is_classifier
from sklearn.utils import get_tags
from sklearn.utils.validation import has_fit_parameter

RNG = np.random.default_rng(0)
X = RNG.integers(-40, 40, (90, 8)) / 8.0  # exact in every type of float
FUNCTION = X[:, 1] - 2 * X[:, 4] + 0.5 * X[:, 6]
QUERIES = np.repeat(np.arange(9), 10)
ESTIMATORS = {
    "FSAClassifier": {},
    "FSARegressor": {},
    "FSARanker": {},
    "ForwardBackwardClassifier": {},
    "ForwardBackwardRegressor": {},
    "TISPClassifier": {},
    "TISPRegressor": {},
    "LogitBoostClassifier": {},
    "MinimaxSparseClassifier": {},
    "FSAClassifier, piecewise": {"response": "piecewise"},
    "FSARegressor, piecewise": {"response": "piecewise"},
    "FSAClassifier, three classes": {},
    "FSARegressor, two targets": {},
    "FSAClassifierCV": {"cv": 3},
    "FSARegressorCV": {"cv": 3},
    "RankBoost": {"n_rounds": 3},
    "SDist": {"n_steps": 20},
    "SparseFourierClassifier": {"n_steps": 300, "burn_in": 100},
    "SparseFourierRegressor": {"n_steps": 300, "burn_in": 100},
    "LinearChainCRF": {},
    "FSACRF": {},
    "ForwardBackwardCRF": {},
    "FOBOSClassifier": {},
    "RDAClassifier": {},
    "TruncatedGradientClassifier": {},
    "StabilizedTruncatedSGDClassifier": {"max_iter": 2},
}
# Rows in another order are another problem to these: they draw rows, or rows are a sequence.
DRAWS = {"FOBOS", "RDA", "TruncatedGradient", "StabilizedTruncatedSGD", "SDist", "SparseFourier"}


def draws(name):
    return name.startswith(tuple(DRAWS))


def ordered(name):
    """Whether the model depends on the order of the rows."""
    return (
        draws(name) or "CRF" in name or name.endswith("CV")
    )  # CV: rows are shared out in their order


def make(name):
    estimator = getattr(learners, name.split(",")[0])()
    parameters = {"n_features_to_select": 3, "random_state": 0, **ESTIMATORS[name]}
    return estimator.set_params(
        **{k: v for k, v in parameters.items() if k in estimator.get_params()}
    )


def target(name):
    if "Rank" in name:
        return np.digitize(FUNCTION, [-4.0, 4.0])
    if name.endswith("two targets"):
        return np.column_stack([FUNCTION, -FUNCTION])
    if name.endswith("three classes"):
        return np.digitize(FUNCTION, [-4.0, 4.0])
    return (FUNCTION > 0).astype(int) if is_classifier(make(name)) else FUNCTION


def fitted(name, data, y, **options):
    if "Rank" in name:
        options.setdefault("qid", QUERIES)
    return make(name).fit(data, y, **options)


def answer(estimator, data):
    if hasattr(estimator, "decision_function"):
        return np.asarray(estimator.decision_function(data), float)
    if hasattr(estimator, "predict_proba"):
        return np.asarray(estimator.predict_proba(data), float)
    return np.asarray(estimator.predict(data), float)


def support(estimator):
    return np.asarray(estimator.get_support())


def differs(first, again, tolerance=1e-9):
    """None, or by how much two answers differ."""
    if np.allclose(first, again, rtol=tolerance, atol=tolerance):
        return None
    return f"differs by {np.abs(first - again).max():g}"


def unaligned(X):
    buffer = np.empty(X.nbytes + 1, np.uint8)[1:]
    result = buffer.view(X.dtype).reshape(X.shape)
    result[:] = X
    return result


# Form of X -> function and tolerance; each must give the same model.
FORMS = {
    "Fortran order": (np.asfortranarray, 1e-9),
    "big-endian": (lambda X: X.astype(">f8"), 1e-9),
    "float32": (lambda X: X.astype(np.float32), 1e-3),
    "float32, Fortran order": (lambda X: np.asfortranarray(X, np.float32), 1e-3),
    "float16": (lambda X: X.astype(np.float16), 1e-3),
    "long double": (lambda X: X.astype(np.longdouble), 1e-9),
    "read-only": (lambda X: np.frombuffer(X.tobytes()).reshape(X.shape), 1e-9),
    "unaligned": (unaligned, 1e-9),
    "strided": (lambda X: np.repeat(X, 2, axis=1)[:, ::2], 1e-9),
    "negative strides": (lambda X: X[::-1].copy()[::-1], 1e-9),
    "part of a larger array": (lambda X: np.pad(X, 3)[3:-3, 3:-3], 1e-9),
    "list": (lambda X: X.tolist(), 1e-9),
    "objects": (lambda X: X.astype(object), 1e-9),
    "table": (lambda X: pd.DataFrame(X, columns=list("abcdefgh")), 1e-9),
    "nullable table": (lambda X: pd.DataFrame(X, columns=list("abcdefgh")).convert_dtypes(), 1e-9),
    "table of polars": (lambda X: pl.DataFrame(X, schema=list("abcdefgh")), 1e-9),
    "memory map": (None, 1e-9),
}


def formed(change, path):
    return np.load(path, mmap_mode="r") if change is None else change(X)


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("name", ESTIMATORS)
def test_forms_of_the_data(tally, tmp_path, name):
    y = target(name)
    first = fitted(name, X, y)
    expected = answer(first, X)
    np.save(tmp_path / "x.npy", X)
    for form, (change, tolerance) in FORMS.items():

        def fit(change=change, tolerance=tolerance):
            data = formed(change, tmp_path / "x.npy")
            return differs(expected, answer(fitted(name, data, y), data), tolerance)

        def ask(change=change, tolerance=tolerance):
            return differs(expected, answer(first, formed(change, tmp_path / "x.npy")), tolerance)

        tally.attempt("estimator invariants", f"{name}, {form}", fit)
        tally.attempt("estimator invariants", f"{name}, answers for {form}", ask)
    tally.check("estimator invariants")


SPARSE = {
    "CSR matrix": sp.csr_matrix,
    "CSC": sp.csc_array,
    "COO": sp.coo_array,
    "64-bit indices": lambda A: sp.csr_array(
        (A.data, A.indices.astype(np.int64), A.indptr.astype(np.int64)), A.shape
    ),
    "unsorted": lambda A: sp.csr_array(
        (A.data[(order := unsorted(A))], A.indices[order], A.indptr), A.shape
    ),
    "explicit zeros": lambda A: sp.csr_array(
        (np.append(A.data, 0.0), np.append(A.indices, 0), [*A.indptr[:-1], A.nnz + 1]), A.shape
    ),
    "float32": lambda A: A.astype(np.float32),
}


def unsorted(A):
    return np.concatenate([np.arange(a, b)[::-1] for a, b in zip(A.indptr, A.indptr[1:])])


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize(
    "name", [name for name in ESTIMATORS if get_tags(make(name)).input_tags.sparse]
)
def test_forms_of_sparse_data(tally, name):
    # Nearest neighbours: rows that are nearly all zero lie at one distance, and rounding would
    # choose among them.
    y, A = target(name), sp.csr_array(X * (np.abs(X) > (0.3 if name == "SDist" else 2)))
    A.data[-1] = A.data[-1] or 1.0
    expected = answer(fitted(name, A, y), A)
    for form, change in SPARSE.items():
        tolerance = 1e-3 if form == "float32" else 1e-9

        def fit(change=change, tolerance=tolerance):
            data = change(A.copy())
            return differs(expected, answer(fitted(name, data, y), data), tolerance)

        tally.attempt("estimator invariants", f"{name}, sparse, {form}", fit)
    if not draws(name) and "piecewise" not in name and name != "LinearChainCRF":

        def same():
            equal = support(fitted(name, A, y)) == support(fitted(name, A.toarray(), y))
            return None if equal.all() else "other columns"

        tally.attempt("estimator invariants", f"{name}, sparse and dense", same)
    tally.check("estimator invariants")


# Form of targets -> function.
NUMBERS = {
    "list": lambda y: y.tolist(),
    "Series": pd.Series,
    "Series with another index": lambda y: pd.Series(y, index=np.arange(len(y))[::-1]),
    "big-endian": lambda y: y.astype(y.dtype.newbyteorder(">")),
    "read-only": lambda y: np.frombuffer(y.tobytes(), y.dtype),
    "strided": lambda y: np.repeat(y, 2)[::2],
    "float32": lambda y: y.astype(np.float32),
}
LABELS = {
    "booleans": lambda y: y.astype(bool),
    "words": lambda y: np.array(["no", "yes", "zebra"])[y],
    "objects": lambda y: np.array(["no", "yes", "zebra"], object)[y],
    "negative": lambda y: y - 1,
    "8 bits": lambda y: y.astype(np.int8),
    "floats": lambda y: y.astype(float),
    "large": lambda y: y + 2**60,
    "categories": lambda y: pd.Series(np.array(["no", "yes", "zebra"])[y]).astype("category"),
}


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("name", ESTIMATORS)
def test_forms_of_the_targets(tally, name):
    y = target(name)
    expected = answer(fitted(name, X, y), X)
    forms = {k: v for k, v in NUMBERS.items() if y.ndim == 1}
    if is_classifier(make(name)):
        forms |= {k: v for k, v in LABELS.items() if k != "booleans" or y.max() == 1}
    for form, change in forms.items():

        def fit(change=change, form=form):
            return differs(
                expected, answer(fitted(name, X, change(y)), X), 1e-3 if form == "float32" else 1e-9
            )

        tally.attempt("estimator invariants", f"{name}, targets as {form}", fit)
    tally.check("estimator invariants")


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("name", ESTIMATORS)
def test_order_scale_weights_and_copies(tally, name):
    y, rng = target(name), np.random.default_rng(1)
    first = fitted(name, X, y)
    expected, selects = answer(first, X), hasattr(first, "get_support")

    def note(law, use):
        tally.attempt("estimator invariants", f"{name}, {law}", use)

    def same_columns(data=X, targets=y, back=slice(None)):
        return (
            None
            if (support(fitted(name, data, targets))[back] == support(first)).all()
            else "other columns"
        )

    copies = {
        "pickle": lambda one: pickle.loads(pickle.dumps(one)),
        "deep copy": copy.deepcopy,
        "the same again": lambda one: fitted(name, X, y),
        "joblib": lambda one: joblib.load(stored(one)),
    }
    for way, copied in copies.items():
        note(way, lambda copied=copied: differs(expected, answer(copied(first), X), 0))
    note(
        "clone",
        lambda: differs(
            expected,
            answer(clone(first).fit(X, y, **({"qid": QUERIES} if "Rank" in name else {})), X),
            0,
        ),
    )
    before = X.copy()
    note("data left alone", lambda: None if (before == X).all() else "the data were changed")
    note(
        "rows one by one",
        lambda: (
            None
            if "CRF" in name
            else differs(
                expected[:5], np.concatenate([answer(first, X[i : i + 1]) for i in range(5)])
            )
        ),
    )
    if "n_jobs" in first.get_params():
        note("two jobs", lambda: differs(expected, answer(fitted_with(name, y, n_jobs=2), X), 0))
    if selects and not draws(name):
        order = rng.permutation(8)
        note("columns in another order", lambda: same_columns(X[:, order], back=np.argsort(order)))
        for factor in (
            () if "CRF" in name else (2.0**-20, 2.0**20)
        ):  # their ridge is in units of the columns
            note(f"columns times {factor:g}", lambda factor=factor: same_columns(X * factor))
        # Columns and targets at the ends of the range: the right columns, or a refusal.
        for factor in (1e-300, 1e-160, 1e160, 1e300):
            note(f"columns times {factor:g}", lambda factor=factor: same_columns(X * factor))
            if not is_classifier(first) and "Rank" not in name:
                note(
                    f"targets times {factor:g}",
                    lambda factor=factor: same_columns(targets=y * factor),
                )
        if not ordered(name) and "Rank" not in name:
            rows = rng.permutation(90)
            note("rows in another order", lambda: same_columns(X[rows], y[rows]))
    if has_fit_parameter(first, "sample_weight"):
        note(
            "weights of one",
            lambda: differs(expected, answer(fitted(name, X, y, sample_weight=np.ones(90)), X)),
        )
        note(
            "weights as a list",
            lambda: differs(expected, answer(fitted(name, X, y, sample_weight=[1] * 90), X)),
        )
        for weights in (np.full(90, np.nan), np.full(90, np.inf), np.ones(89), np.zeros(90)):
            refused(
                note,
                f"weights of {len(weights)} times {weights[0]}",
                lambda w=weights: fitted(name, X, y, sample_weight=w),
            )
    tally.check("estimator invariants")


def stored(estimator):
    file = io.BytesIO()
    joblib.dump(estimator, file)
    file.seek(0)
    return file


def fitted_with(name, y, **parameters):
    return (
        make(name)
        .set_params(**parameters)
        .fit(X, y, **({"qid": QUERIES} if "Rank" in name else {}))
    )


def refused(note, law, use):
    """Note a trial that must end in a ValueError."""

    def call():
        use()
        return "was accepted"

    note(law, call)


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("name", ESTIMATORS)
def test_bad_data(tally, name):
    y = target(name)
    first = fitted(name, X, y)

    def note(law, use):
        tally.attempt("estimator invariants", f"{name}, {law}", use)

    gaps = get_tags(first).input_tags.allow_nan
    for bad in (np.nan, np.inf, -np.inf):
        spoilt = X.copy()
        spoilt[3, 1] = bad
        if not (np.isnan(bad) and gaps):
            refused(note, f"{bad}", lambda data=spoilt: fitted(name, data, y))
            refused(note, f"answer for {bad}", lambda data=spoilt: answer(first, data))
    spoilt = np.asarray(y, float).copy()
    spoilt[5] = np.nan
    refused(note, "nan in the targets", lambda: fitted(name, X, spoilt))
    others = {
        "no rows": (X[:0], y[:0]),
        "no columns": (X[:, :0], y),
        "targets of another length": (X, y[:-1]),
        "one column as a vector": (X[:, 0], y),
        "three dimensions": (X[None], y),
        "words": (X.astype(str).astype(object) + "x", y),
        "complex numbers": (X + 1j, y),
    }
    for form, (data, targets) in others.items():
        refused(note, form, lambda data=data, targets=targets: make(name).fit(data, targets))
    for form, data in {
        "a column less": X[:, :7],
        "a column more": np.hstack([X, X[:, :1]]),
    }.items():
        refused(note, form, lambda data=data: answer(first, data))
    tally.check("estimator invariants")


def fit_in_child(name, queue):
    queue.put(answer(fitted(name, X, target(name)), X))


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("name", ESTIMATORS)
def test_threads_and_forks(tally, name):
    y = target(name)
    expected = answer(fitted(name, X, y), X)

    def threads():
        with ThreadPoolExecutor(8) as pool:
            result = list(pool.map(lambda _: answer(fitted(name, X, y), X), range(8)))
        return (
            None
            if all(np.array_equal(one, expected) for one in result)
            else "another answer in a thread"
        )

    def fork():
        context = multiprocessing.get_context("fork")
        queue = context.Queue()
        child = context.Process(target=fit_in_child, args=(name, queue))
        child.start()
        try:
            result = queue.get(timeout=60)
        except Exception:
            return "no answer from a forked process"
        finally:
            child.join(5)
            child.kill()
        return None if np.array_equal(result, expected) else "another answer in a forked process"

    tally.attempt("threads and forks", f"{name}, threads", threads)
    if "fork" in multiprocessing.get_all_start_methods():
        tally.attempt("threads and forks", f"{name}, fork", fork)
    tally.check("threads and forks")


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize(
    "seed", [0, *(pytest.param(seed, marks=pytest.mark.slow) for seed in (1, 2))]
)
@pytest.mark.parametrize("name", laws.ESTIMATORS)
def test_invariance(tally, name, seed):
    """Every law of the table, for each estimator that does not depart from it by design."""
    for law in laws.LAWS:
        failure = "" if laws.stated(law, name) else laws.broken(law, name, seed)
        if failure != "":  # it applies
            tally.note("invariance", f"{name}, {law}", failure)
    tally.check("invariance")


def test_exceptions_are_on_the_page():
    """Estimators and laws of the table are known, and each estimator has its rows on the page."""
    page = (Path(__file__).parents[2] / "docs" / "invariance.md").read_text(encoding="utf-8")
    for names, departures in laws.STATED.items():
        assert set(departures.split(", ")) <= set(laws.LAWS), departures
        for name in names.replace(",", " ").split():
            assert f"{name}" in page, name
