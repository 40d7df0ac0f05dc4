"""When code is compiled, and that plain expressions give the same: equal supports, coefficients to
1e-10."""

import os
import subprocess
import sys
import threading
from concurrent.futures import ThreadPoolExecutor

import annealed.learners as learners
import numpy as np
import pytest
import scipy.sparse as sp
import threadpoolctl
from annealed.learners import compilation
from annealed.learners.designs import kernels
from annealed.learners.objective import losses
from annealed.learners.selectors import logitboost
from hypothesis import given, settings
from hypothesis import strategies as st

LOSSES = ["logistic", "flipped_logistic", "huberised_hinge", "lorenz", "squared"]


@pytest.fixture
def compiled(monkeypatch):
    """Everything is compiled, however small."""
    monkeypatch.setattr(compilation, "SMALL", -1)


def both(fit):
    """What ``fit`` gives with plain expressions and with compiled code."""
    plain = fit()
    before, compilation.SMALL = compilation.SMALL, -1
    try:
        return plain, fit()
    finally:
        compilation.SMALL = before


def python(code, *arguments, **environment):
    """Run code in a fresh interpreter, which says what it compiles: a test of --quiet may have
    silenced this process."""
    environment = {"ANNEALED_QUIET": ""} | environment
    done = subprocess.run(
        [sys.executable, "-c", code, *arguments],
        capture_output=True,
        text=True,
        env={**os.environ, **{name: str(value) for name, value in environment.items()}},
    )
    assert done.returncode == 0, done.stderr
    return done


def table(n=200, m=50, seed=0):
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n, m))
    return X, X[:, 0] - X[:, 1] + 0.3 * rng.normal(size=n)


FIRST_FITS = """
import sys, warnings
import numpy as np
from sklearn.datasets import load_breast_cancer, load_diabetes
from sklearn.model_selection import GridSearchCV
import annealed.learners as A
warnings.simplefilter("ignore")
rng = np.random.default_rng(0)
X = rng.normal(size=(200, 50))
f = X[:, 0] + X[:, 1]
y = f > 0
wide = rng.normal(size=(1000, 1000)).astype(np.float32)
grades, qid = np.digitize(f, [-1, 1]), np.repeat(np.arange(20), 10)
cancer, diabetes = load_breast_cancer(return_X_y=True), load_diabetes(return_X_y=True)
A.FSAClassifier(5).fit(X, y).predict(X)
A.FSAClassifier(5).fit(X, grades).predict_proba(X)
A.FSAClassifier(5).fit(*cancer)
A.FSARegressor(5).fit(*diabetes).predict(diabetes[0])
A.FSAClassifier(10).fit(wide, wide[:, :10].sum(axis=1) > 0)
for bins in ("range", "quantile"):
    A.FSAClassifier(5, response=A.PiecewiseLinear(bins=bins)).fit(X, y).decision_function(X)
A.FSARanker(5).fit(X, grades, qid=qid).predict(X)
A.FSARanker(5, response="piecewise").fit(X, grades, qid=qid)
A.FSAPath(A.FSAClassifier()).fit(X, y)
A.FSAClassifierCV().fit(X, y)
A.SDist(n_steps=10).fit(X[:, :10], y).predict(X[:, :10])
A.ForwardBackwardClassifier(5).fit(X, y)
A.ForwardBackwardRegressor(5).fit(X, f)
A.TISPClassifier(5).fit(X, y)
A.TISPRegressor(5).fit(X, f)
for response in ("linear", "constant", "piecewise"):
    A.LogitBoostClassifier(5, response=response).fit(X, y)
A.MinimaxSparseClassifier(2, n_features_to_select=5).fit(X, y)
A.RankBoost(10).fit(X, grades, qid=qid).predict(X)
for learner in (A.FOBOSClassifier, A.RDAClassifier, A.TruncatedGradientClassifier):
    learner(random_state=0).fit(X, y).predict(X)
GridSearchCV(A.FSAClassifier(), {"n_features_to_select": [2, 5]}, cv=3).fit(X, y)
assert "numba" not in sys.modules
"""


def test_small_first_fits_never_meet_the_compiler():
    python(FIRST_FITS)


@pytest.mark.parametrize(
    "kind",
    [
        "import annealed.learners",
        "from annealed.learners import FSAClassifier",
        "import annealed.vision",
    ],
)
def test_imports_load_what_is_used_only(kind):
    code = (
        f"import sys, sklearn.feature_selection; before = set(sys.modules); {kind}; "
        "print(*set(sys.modules) - before)"
    )
    loaded = set(python(code).stdout.split())
    assert not loaded & {
        "numba",
        "scipy.stats",
        "matplotlib",
        "cv2",
        "rich",
        "pandas",
        "skimage",
        "PIL",
    }


def test_the_stubs_list_what_there_is():
    import annealed.vision as vision

    for package in (learners, vision):
        for name in package.__all__:
            assert getattr(package, name).__module__.startswith("annealed."), name


# -- equal results ---------------------------------------------------------------------------------


@settings(max_examples=40, deadline=None)
@given(
    loss=st.sampled_from(LOSSES),
    response=st.sampled_from(["linear", "piecewise", "quantile"]),
    exchange=st.sampled_from(["auto", False, None]),
    weighted=st.booleans(),
    sparse=st.booleans(),
    classes=st.sampled_from([2, 3]),
    ridge=st.sampled_from([0.0, "auto"]),
    offset=st.sampled_from([0.0, 100.0]),
    order=st.sampled_from("CF"),
    seed=st.integers(0, 3),
)
def test_classifiers(
    loss, response, exchange, weighted, sparse, classes, ridge, offset, order, seed
):
    X, f = table(120, 12, seed)
    X = np.asarray(X + offset, order=order)
    y = f > 0 if classes == 2 else np.digitize(f, [-0.7, 0.7])
    weight = np.random.default_rng(seed).uniform(size=len(y)) if weighted else None
    if response == "linear":
        X = sp.csr_array(np.where(np.abs(X - offset) > 0.5, X, 0.0)) if sparse else X
    else:
        X = np.where(np.abs(X - offset) > 2.0, np.nan, X) if sparse else X  # dense, with gaps
        response = learners.PiecewiseLinear(
            4, bins="range" if response == "piecewise" else "quantile"
        )
    refinement = None if exchange is None else learners.Refinement(exchange, ridge)
    settings = {"loss": loss, "response": response, "refinement": refinement}
    plain, compiled = both(lambda: learners.FSAClassifier(3, **settings).fit(X, y, weight))
    assert np.array_equal(plain.support_, compiled.support_)
    scores = compiled.decision_function(X)
    # The ridge of several classes is chosen by fits that end where a step gains no more: with the
    # majorising curvature of some losses the last steps differ by the rounding of the objective.
    tolerance = 1e-8 if classes == 3 and ridge == "auto" else 1e-10
    assert np.abs(plain.decision_function(X) - scores).max() <= tolerance * max(
        1.0, np.abs(scores).max()
    )


@pytest.mark.parametrize("response", ["linear", "piecewise"])
@pytest.mark.parametrize("outputs", [1, 2])
def test_regressors(response, outputs):
    X, f = table(150, 15)
    y = f if outputs == 1 else np.column_stack([f, X[:, 3]])
    plain, compiled = both(lambda: learners.FSARegressor(4, response=response).fit(X, y))
    assert np.array_equal(plain.support_, compiled.support_)
    assert np.allclose(plain.predict(X), compiled.predict(X), rtol=0, atol=1e-10)


def estimators():
    X, f = table()
    y, grades, qid = f > 0, np.digitize(f, [-1, 1]), np.repeat(np.arange(20), 10)
    online = {"random_state": 0, "max_iter": 5}
    yield from [
        (learners.ForwardBackwardClassifier(5), X, y, {}),
        (learners.ForwardBackwardRegressor(5), X, f, {}),
        (learners.TISPClassifier(5), X, y, {}),
        (learners.LogitBoostClassifier(5), X, y, {}),
        (learners.LogitBoostClassifier(5, response="piecewise"), X, y, {}),
        (learners.LogitBoostClassifier(5, response="constant"), X, grades, {}),
        (learners.MinimaxSparseClassifier(2, n_features_to_select=5), X, y, {}),
        (learners.RankBoost(20), X, grades, {"qid": qid}),
        (learners.FSARanker(5), X, grades, {"qid": qid}),
        (learners.FSARanker(5, response="piecewise"), X, grades, {"qid": qid}),
        (learners.SDist(n_steps=20), X[:, :10], y, {}),
        (learners.SDist(n_steps=20, solver="sgd", random_state=0), X[:, :10], grades, {}),
    ]
    for learner in (
        learners.FOBOSClassifier,
        learners.RDAClassifier,
        learners.TruncatedGradientClassifier,
    ):
        for loss in ("hinge", "logistic"):
            yield learner(loss=loss, **online), X, y, {}


@pytest.mark.parametrize(
    "estimator, X, y, options", list(estimators()), ids=lambda value: type(value).__name__
)
def test_other_estimators(estimator, X, y, options):
    scores = [
        getattr(e, "decision_function", e.predict)(X)
        for e in both(lambda: _clone(estimator).fit(X, y, **options))
    ]
    assert np.allclose(*scores, rtol=1e-10, atol=1e-10)


def _clone(estimator):
    from sklearn.base import clone

    return clone(estimator)


def kernel_cases():
    rng = np.random.default_rng(0)
    X = rng.normal(size=(130, 7))
    X[rng.uniform(size=X.shape) < 0.1] = np.nan
    full, weight = rng.normal(size=(130, 7)), rng.integers(0, 3, 130).astype(float)
    low, high = np.sort(rng.normal(size=(2, 7)), axis=0)
    low[2] = high[2] = 1.0
    codes = rng.integers(0, 256, (2, 7, kernels.ROWS)).astype(np.uint8)
    residual, features = rng.normal(size=(2, kernels.ROWS)), np.array([1, 3, 6])
    y, scores = np.where(rng.normal(size=(130, 2)) > 0, 1.0, -1.0), rng.normal(size=(130, 2))
    y[3, 0] = 0.0
    scale = 252.0 / np.maximum(high - low, 0.1)
    yield kernels.encode_even, (X, low, scale, 252.0, np.zeros((7, kernels.ROWS), np.uint8))
    yield (
        kernels.encode_even_columns,
        (np.asfortranarray(X), low, scale, 252.0, np.zeros((7, kernels.ROWS), np.uint8)),
    )
    f4 = [np.float32(v) for v in (low, scale)]
    yield (
        kernels.encode_even,
        (X.astype("f"), *f4, np.float32(252), np.zeros((7, kernels.ROWS), np.uint8)),
    )
    yield kernels.table_histograms, (0, 2, codes, features, residual, np.empty((3, 256)))
    for flip in (0.0, 0.02):
        terms = np.empty(y.shape), np.empty(y.shape)
        yield losses.flipped_logistic_terms, (y, scores, weight, flip, *terms)
    sums = (
        np.ascontiguousarray(full.T),
        low,
        high,
        features,
        weight,
        scores[:, 0].copy(),
        np.empty((3, 3)),
    )
    yield logitboost.weighted_sums, sums


@pytest.mark.parametrize(
    "kernel, args", list(kernel_cases()), ids=lambda value: getattr(value, "__name__", "")
)
def test_plain_forms_are_the_compiled_ones(kernel, args):
    results = []
    for form in (kernel.plain, kernel.compiled):
        own = [a.copy(order="K") if isinstance(a, np.ndarray) else a for a in args]
        results.append([form(*own), *own])
    for plain, compiled in zip(*results, strict=True):
        assert plain is None or np.allclose(plain, compiled, rtol=1e-12, atol=1e-12, equal_nan=True)


# -- one rule --------------------------------------------------------------------------------------


def test_the_old_name_of_the_numpy_backend_warns():
    with pytest.warns(FutureWarning, match="plain_forms was renamed to numpy_backend"):
        backend = compilation.plain_forms()
    with backend:
        assert compilation.is_small(np.inf)


def test_the_size_of_the_problem_decides():
    assert compilation.is_small(compilation.SMALL) and not compilation.is_small(
        compilation.SMALL + 1
    )
    with compilation.problem_size(np.inf):
        assert not compilation.is_small(1)
        with compilation.problem_size(1):
            assert compilation.is_small(np.inf)
    assert compilation.is_small(1)


def test_read_only_data_are_no_second_variant(compiled):
    X, f = table(60, 5)
    learners.FSAClassifier(2).fit(X, f > 0)
    variants = {
        k.__name__: len(k.dispatcher.signatures) for k in (kernels.first_rows, kernels.fused_rows)
    }
    X.flags.writeable = False
    learners.FSAClassifier(2).fit(X, f > 0)
    assert variants == {
        k.__name__: len(k.dispatcher.signatures) for k in (kernels.first_rows, kernels.fused_rows)
    }


# -- threads and forks -----------------------------------------------------------------------------


@pytest.mark.parametrize("response", ["linear", "piecewise"])
def test_threads_change_nothing(compiled, response):
    X, f = table(3000, 20)
    one = learners.FSAClassifier(3, response=response).fit(X, f > 0).decision_function(X)
    os.environ["NUMBA_NUM_THREADS"], before = "3", os.environ.get("NUMBA_NUM_THREADS")
    try:
        three = (
            learners.FSAClassifier(3, response=response, n_jobs=3)
            .fit(X, f > 0)
            .decision_function(X)
        )
    finally:
        os.environ.pop("NUMBA_NUM_THREADS") if before is None else os.environ.update(
            NUMBA_NUM_THREADS=before
        )
    assert np.array_equal(one, three)


def blas_threads():
    """Threads of the loaded BLAS libraries."""
    libraries = threadpoolctl.threadpool_info()
    return {each["num_threads"] for each in libraries if each["user_api"] == "blas"}


def test_blas_is_limited_in_a_fit_and_restored():
    with threadpoolctl.threadpool_limits(2, user_api="blas"):
        outside = blas_threads()
        inside = []
        X, f = table(50, 3)
        with compilation.problem_size(10):
            inside.append(blas_threads())
            with compilation.problem_size(10, 2):  # of compiled loops
                inside.append(blas_threads())
        learners.FSAClassifier(2).fit(X, f > 0)
        assert inside == [{1}, {1}]
        assert blas_threads() == outside


@pytest.mark.parametrize("small", [True, False])
def test_eight_threads_at_once(small, monkeypatch):
    monkeypatch.setattr(compilation, "SMALL", compilation.SMALL if small else -1)
    tables = [table(400, 20, seed) for seed in range(8)]
    gate = threading.Barrier(8)

    def fit(data, wait=True):
        X, f = data
        if wait:
            gate.wait()
        return [
            learners.FSAClassifier(3, response=r).fit(X, f > 0).decision_function(X)
            for r in ("linear", "piecewise")
        ]

    with ThreadPoolExecutor(8) as pool:
        together = list(pool.map(fit, tables))
    for data, found in zip(tables, together, strict=True):
        assert all(np.array_equal(a, b) for a, b in zip(found, fit(data, wait=False), strict=True))


FORK = """
import os, sys, warnings
import numpy as np
import annealed.learners.compilation as compilation
from annealed.learners import FSAClassifier
compilation.SMALL = -1
warnings.simplefilter("ignore", DeprecationWarning)  # Python 3.12 warns of threads before a fork
X = np.random.default_rng(0).normal(size=(3000, 20))
y = X[:, 0] > 0
def scores():
    model = FSAClassifier(2, response=sys.argv[1], n_jobs=int(sys.argv[2]))
    return model.fit(X, y).decision_function(X)
mine = scores()
child = os.fork()
if child == 0:
    os._exit(0 if np.array_equal(scores(), mine) else 7)
assert os.waitpid(child, 0)[1] == 0
"""


@pytest.mark.skipif(not hasattr(os, "fork"), reason="needs os.fork")
@pytest.mark.parametrize("response", ["linear", "piecewise"])
@pytest.mark.parametrize("n_jobs", [1, 2])
def test_a_fork_after_a_fit(response, n_jobs):
    python(FORK, response, str(n_jobs), NUMBA_NUM_THREADS=2)


# -- where machine code is kept --------------------------------------------------------------------

COMPILE = """
import sys
import annealed.learners.compilation as compilation
compilation.REPORT_AFTER = 0.0
import numba.core.caching as caching
nowhere = len(sys.argv) > 1
if nowhere:  # as where neither the package nor the home folder can be written
    locators = caching.CacheImpl._locator_classes
    caching.CacheImpl._locator_classes = [c for c in locators if "UserProvided" in c.__name__]
from annealed.learners.online.kernels import shrink
assert shrink.compiled(3.0, 1.0) == 2.0
"""


def test_a_line_says_that_code_is_compiled(tmp_path):
    first = python(COMPILE, NUMBA_CACHE_DIR=tmp_path / "kept")
    assert (
        first.stderr.startswith("annealed: compiling (first run only")
        and len(first.stderr.splitlines()) == 1
    )
    assert python(COMPILE, NUMBA_CACHE_DIR=tmp_path / "kept").stderr == ""  # found on disk
    assert python(COMPILE, NUMBA_CACHE_DIR=tmp_path / "other", ANNEALED_QUIET=1).stderr == ""


def test_no_folder_can_be_written(tmp_path):
    os.environ.pop("NUMBA_CACHE_DIR", None)
    temporary = tmp_path / "temporary"
    temporary.mkdir()
    first = python(COMPILE, "nowhere", TMPDIR=temporary)
    assert len(first.stderr.splitlines()) == 1 and str(temporary) in first.stderr
    assert any(temporary.rglob("*.nbi"))
    assert python(COMPILE, "nowhere", TMPDIR=temporary).stderr == ""
    work = tmp_path / "work"
    work.mkdir()
    code = (
        f"import os, tempfile; os.chdir({str(work)!r}); tempfile.tempdir = {str(work)!r}\n{COMPILE}"
    )
    # where no temporary folder can be written
    assert "not cached" in python(code, "nowhere").stderr and not list(work.iterdir())
    for folder in temporary.iterdir():  # anyone may write to it: nothing is loaded from there
        folder.chmod(0o777)
    assert "not cached" in python(COMPILE, "nowhere", TMPDIR=temporary).stderr


def test_two_processes_and_one_folder(tmp_path):
    with ThreadPoolExecutor(2) as pool:
        done = list(pool.map(lambda _: python(COMPILE, NUMBA_CACHE_DIR=tmp_path), range(2)))
    assert all(len(run.stderr.splitlines()) <= 1 for run in done)


NAMED = """
import sys
import numpy as np
from {module} import {name} as Pair
from kernel import total
assert total.compiled(Pair(np.ones(3), 2.0)) == 6.0
hits = total.dispatcher.stats.cache_hits
assert len(hits) == int(sys.argv[1]), hits
"""


@pytest.mark.parametrize("module, name", [("pairs", "Other"), ("elsewhere", "Pair")])
def test_a_cache_that_names_a_renamed_class_is_absent(module, name, tmp_path, monkeypatch):
    definition = (
        "from typing import Any, NamedTuple\n"
        "class {}(NamedTuple):\n    values: Any\n    factor: float\n"
    )
    kernel = (
        "from annealed.learners.compilation import jit\n"
        "@jit\ndef total(pair):\n    return pair.values.sum() * pair.factor\n"
    )
    (tmp_path / "kernel.py").write_text(kernel)
    (tmp_path / "pairs.py").write_text(definition.format("Pair"))
    monkeypatch.setenv("PYTHONPATH", str(tmp_path), prepend=os.pathsep)
    for hits in "01":
        python(NAMED.format(module="pairs", name="Pair"), hits, NUMBA_CACHE_DIR=tmp_path / "kept")
    (tmp_path / "pairs.py").unlink()
    (tmp_path / f"{module}.py").write_text(definition.format(name))
    for hits in "01":  # compiled anew, and kept
        python(NAMED.format(module=module, name=name), hits, NUMBA_CACHE_DIR=tmp_path / "kept")


# -- interrupts ------------------------------------------------------------------------------------

INTERRUPT = """
import signal, sys
from numba.core import codegen, event
import numpy as np
import annealed.learners.compilation as compilation

where, left = sys.argv[1], int(sys.argv[2])
def count(*arguments):
    global left
    left -= 1
    if left == 0:
        signal.raise_signal(signal.SIGINT)

if where == "callback":  # of LLVM, which swallows exceptions
    hook = codegen.CPUCodeLibrary._object_compiled_hook
    codegen.CPUCodeLibrary._object_compiled_hook = classmethod(
        lambda cls, *a: (count(), hook.__func__(cls, *a))[1]
    )
else:
    class Listener(event.Listener):
        on_start = on_end = count
    event.register("numba:run_pass", Listener())
"""
FIT = """
compilation.SMALL = -1
from annealed.learners import FSAClassifier
X = np.random.default_rng(0).normal(size=(300, 20))
for attempt in range(2):
    try:
        FSAClassifier(2).fit(X, X[:, 0] > 0)
        print("fitted")
    except KeyboardInterrupt:
        print("interrupted")
assert signal.getsignal(signal.SIGINT) is signal.default_int_handler
"""
COMMAND = """
from annealed.pipelines.common import image_folders
image_folders.MAX_FEW = -1
sys.argv = ["annealed", "faces", "detect", "--json"]
from annealed.pipelines.cli import main
main()
"""
MOMENTS = [("callback", 1), ("callback", 3), ("pass", 101)]
MOMENTS += [
    pytest.param(*moment, marks=pytest.mark.slow)
    for moment in (("callback", 2), ("pass", 1), ("pass", 30))
]


@pytest.mark.parametrize("where, number", MOMENTS)
def test_an_interrupt_while_compiling_is_one(where, number, tmp_path):
    done = python(INTERRUPT + FIT, where, str(number), NUMBA_CACHE_DIR=tmp_path, ANNEALED_QUIET=1)
    assert done.stdout.split() == ["interrupted", "fitted"] and done.stderr == ""


@pytest.mark.parametrize("where, number", [("callback", 1), ("pass", 30)])
def test_an_interrupted_command_says_so(where, number, tmp_path):
    environment = {**os.environ, "NUMBA_CACHE_DIR": str(tmp_path), "ANNEALED_QUIET": "1"}
    command = [sys.executable, "-c", INTERRUPT + COMMAND, where, str(number)]
    done = subprocess.run(command, capture_output=True, text=True, env=environment)
    assert (done.returncode, done.stdout, done.stderr) == (130, "", "annealed: interrupted\n")
