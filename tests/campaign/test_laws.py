"""Laws of the estimators: neither the form of the data nor the way of running changes a model."""

import multiprocessing
import pickle
from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pandas as pd
import pytest
import scipy.sparse as sp
from annealed import learners
from sklearn.base import clone, is_classifier
from sklearn.utils.estimator_checks import check_estimator

pytestmark = pytest.mark.slow
RNG = np.random.default_rng(0)
X = RNG.integers(-40, 40, (90, 8)) / 8.0  # exact in every type of float
FUNCTION = X[:, 1] - 2 * X[:, 4] + 0.5 * X[:, 6]
BATCH = {
    "FSAClassifier": {},
    "FSARegressor": {},
    "ForwardBackwardClassifier": {},
    "ForwardBackwardRegressor": {},
    "TISPClassifier": {},
    "TISPRegressor": {},
    "LogitBoostClassifier": {},
    "MinimaxSparseClassifier": {"n_features_to_select": 3},
    "FSAClassifier, piecewise": {"response": "piecewise"},
    "FSARegressor, piecewise": {"response": "piecewise"},
}
# Form of X -> function; each must give the same model.
FORMS = {
    "Fortran order": np.asfortranarray,
    "big-endian": lambda X: X.astype(">f8"),
    "float32": lambda X: X.astype(np.float32),
    "float16": lambda X: X.astype(np.float16),
    "read-only": lambda X: np.frombuffer(X.tobytes()).reshape(X.shape),
    "strided": lambda X: np.repeat(X, 2, axis=1)[:, ::2],
    "negative strides": lambda X: X[::-1].copy()[::-1],
    "list": lambda X: X.tolist(),
    "table": lambda X: pd.DataFrame(X),
    "nullable table": lambda X: pd.DataFrame(X).convert_dtypes(),
    "memory map": None,
}


def make(name):
    estimator = getattr(learners, name.split(",")[0])()
    parameters = {"n_features_to_select": 3, "random_state": 0, **BATCH[name]}
    return estimator.set_params(**{k: v for k, v in parameters.items() if k in estimator.get_params()})


def target(estimator):
    return (FUNCTION > 0).astype(int) if is_classifier(estimator) else FUNCTION


def answer(estimator, data=X):
    return np.asarray(estimator.decision_function(data) if is_classifier(estimator) else estimator.predict(data), float)


@pytest.mark.parametrize("name", BATCH)
def test_forms_of_the_data(tally, tmp_path, name):
    estimator = make(name)
    y = target(estimator)
    first = answer(estimator.fit(X, y))
    np.save(tmp_path / "x.npy", X)
    for form, change in FORMS.items():

        def same(change=change):
            data = np.load(tmp_path / "x.npy", mmap_mode="r") if change is None else change(X)
            again = answer(clone(estimator).fit(data, y))
            return None if np.allclose(first, again, rtol=1e-4, atol=1e-4) else f"differs by {np.abs(first - again).max():g}"

        tally.attempt("laws of estimators", f"{name}, {form}", same)
    order = np.random.default_rng(1).permutation(8)
    rows = np.random.default_rng(1).permutation(90)
    back = np.argsort(order)

    def permuted():
        again = clone(estimator).fit(X[rows][:, order], y[rows])
        support = np.asarray(again.get_support())[back]
        return None if (support == estimator.get_support()).all() else "other columns in another order"

    def copied():
        for other in (pickle.loads(pickle.dumps(estimator)), clone(estimator).fit(X, y)):
            if not np.array_equal(answer(other), first):
                return "a copy answers otherwise"
        return None

    def rescaled(factor):
        again = clone(estimator).fit(X * factor, y)
        return None if (again.get_support() == estimator.get_support()).all() else "other columns"

    def sparse():
        dense = X * (np.abs(X) > 2)
        one, two = (clone(estimator).fit(data, y).get_support() for data in (dense, sp.csr_array(dense)))
        return None if (one == two).all() else "other columns"

    tally.attempt("laws of estimators", f"{name}, order", permuted)
    tally.attempt("laws of estimators", f"{name}, copies", copied)
    for factor in (2.0**-20, 2.0**20):
        tally.attempt("laws of estimators", f"{name}, scale {factor:g}", lambda factor=factor: rescaled(factor))
    # Columns, and where there are numbers also targets, at the ends of the range: the right columns, or a refusal.
    for factor in (1e-300, 1e-160, 1e160, 1e300):
        tally.attempt("laws of estimators", f"{name}, scale {factor:g}", lambda factor=factor: rescaled(factor))
        if not is_classifier(estimator):

            def targets(factor=factor):
                again = clone(estimator).fit(X, y * factor)
                return None if (again.get_support() == estimator.get_support()).all() else "other columns"

            tally.attempt("laws of estimators", f"{name}, target {factor:g}", targets)
    if name.startswith("FSA") and "piecewise" not in name:
        tally.attempt("laws of estimators", f"{name}, sparse", sparse)
    for bad in (np.nan, np.inf, -np.inf):

        def spoilt(bad=bad):
            data = X.copy()
            data[3, 1] = bad
            clone(estimator).fit(data, y)
            return None if np.isnan(bad) and "piecewise" in name else "was accepted"

        tally.attempt("laws of estimators", f"{name}, {bad}", spoilt)
    tally.check("laws of estimators")


def fit_in_child(name, queue):
    estimator = make(name)
    queue.put(answer(estimator.fit(X, target(estimator))))


@pytest.mark.parametrize("name", BATCH)
def test_threads_and_forks(tally, name):
    estimator = make(name)
    y = target(estimator)
    first = answer(estimator.fit(X, y))

    def threads():
        with ThreadPoolExecutor(8) as pool:
            found = list(pool.map(lambda _: answer(clone(estimator).fit(X, y)), range(8)))
        return None if all(np.array_equal(one, first) for one in found) else "another answer in a thread"

    def fork():
        context = multiprocessing.get_context("fork")
        queue = context.Queue()
        child = context.Process(target=fit_in_child, args=(name, queue))
        child.start()
        try:
            found = queue.get(timeout=60)
        except Exception:
            return "no answer from a forked process"
        finally:
            child.join(5)
            child.kill()
        return None if np.array_equal(found, first) else "another answer in a forked process"

    tally.attempt("threads and forks", f"{name}, threads", threads)
    if "fork" in multiprocessing.get_all_start_methods():
        tally.attempt("threads and forks", f"{name}, fork", fork)
    tally.check("threads and forks")


# Named checks that an estimator fails on purpose, with the reason.
DRAWN = "rows are drawn at random, one by one"
CONTEXT, WEIGHT = "the answer for a row depends on its sequence", "a weight belongs to a whole sequence"
EXPECTED_ONLINE = {f"check_sample_weight_equivalence_on_{kind}_data": DRAWN for kind in ("dense", "sparse")}
EXPECTED_OF_SEQUENCES = {
    **{f"check_sample_weight_equivalence_on_{kind}_data": WEIGHT for kind in ("dense", "sparse")},
    "check_sample_weights_not_overwritten": WEIGHT,
    "check_classifiers_one_label_sample_weights": WEIGHT,
    "check_methods_sample_order_invariance": CONTEXT,
    "check_methods_subset_invariance": CONTEXT,
}
PUBLIC = sorted(name for name in learners.__all__ if hasattr(getattr(learners, name, None), "fit"))


@pytest.mark.parametrize("name", PUBLIC)
def test_checks_of_scikit_learn(tally, name):
    try:
        estimator = getattr(learners, name)()
    except TypeError:
        pytest.skip("takes an estimator")
    failing = EXPECTED_OF_SEQUENCES if name.endswith("CRF") else EXPECTED_ONLINE if hasattr(estimator, "partial_fit") else {}
    for found in check_estimator(estimator, expected_failed_checks=failing, on_fail=None, on_skip=None):
        failure = f"{found['exception']!r}"[:300] if found["status"] == "failed" else None
        if found["status"] != "skipped":
            tally.note("checks of scikit-learn", f"{name}, {found['check_name']}", failure)
    tally.check("checks of scikit-learn")
