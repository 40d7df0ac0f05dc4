"""Invariances of the estimators: one table of laws, one of estimators, and the pairs that do not
hold by design, which docs/invariance.md lists with their reasons.

A law changes the data in a way that must not change the model: the same columns, and the same
scores on the same rows.
"""

import pickle
import tempfile
from dataclasses import dataclass, field, replace
from functools import cache
from pathlib import Path

import numpy as np
import scipy.sparse as sp
from annealed import learners
from sklearn.base import is_classifier
from sklearn.utils import get_tags
from sklearn.utils.validation import has_fit_parameter

N, M = 96, 20
TOLERANCE = 1e-6  # of the largest score
# Name -> parameters. After a comma: the kind of targets, or what the parameters mean.
ESTIMATORS = {
    "FSAClassifier": {},
    "FSAClassifier, balanced": {"class_weight": "balanced"},
    "FSAClassifier, piecewise": {"response": "piecewise"},
    "FSAClassifier, three classes": {},
    "FSARegressor": {},
    "FSARegressor, huber": {"loss": "huber"},
    "FSARegressor, poisson": {"loss": "poisson"},
    "FSARegressor, quantile": {"loss": "quantile"},
    "FSARegressor, piecewise": {"response": "piecewise"},
    "FSARegressor, two targets": {},
    "FSAClassifierCV": {"cv": 3},
    "FSARegressorCV": {"cv": 3},
    "FSAPath": {"sizes": [1, 3]},
    "FSARanker": {},
    "ScoreCardClassifier": {},
    "FDRSelector": {"fdr": 0.5},
    "ForwardBackwardClassifier": {},
    "ForwardBackwardRegressor": {},
    "TISPClassifier": {},
    "TISPRegressor": {},
    "LogitBoostClassifier": {"n_rounds": 20},
    "MinimaxSparseClassifier": {},
    "RankBoost": {"n_rounds": 3},
    "SDist": {"n_steps": 20},
    "SDistCV": {"cv": 2, "param_grid": {"kappa": [2, 5]}},
    "SparseFourierClassifier": {"n_steps": 50, "burn_in": 20, "n_chains": 1},
    "SparseFourierRegressor": {"n_steps": 50, "burn_in": 20, "n_chains": 1},
    "LinearChainCRF": {},
    "FSACRF": {},
    "ForwardBackwardCRF": {},
    "FOBOSClassifier": {},
    "RDAClassifier": {},
    "TruncatedGradientClassifier": {},
    "StabilizedTruncatedSGDClassifier": {"max_iter": 2},
}


@dataclass
class Fit:
    """What is fitted: the data, and how its answer compares with that of the original data."""

    X: object
    y: np.ndarray
    weight: np.ndarray | None = None
    qid: np.ndarray | None = None
    test: object = None  # rows to score
    parameters: dict = field(default_factory=dict)
    columns: np.ndarray | None = None  # position of each original column; None: the same
    answer: object = staticmethod(lambda scores: scores)  # scores as those of the original
    after: object = staticmethod(lambda estimator: estimator)
    rounded: bool = False  # float32: equal to single precision


def make(name, **parameters):
    kind = getattr(learners, name.split(",")[0])
    inner = {"FSAPath": learners.FSARegressor(), "FDRSelector": learners.FSARegressor()}
    estimator = kind(inner[name]) if name in inner else kind()
    if name == "SDistCV":
        estimator.set_params(estimator=learners.SDist(n_steps=5))
    parameters = {"n_features_to_select": 3, "random_state": 0} | ESTIMATORS[name] | parameters
    known = estimator.get_params()
    return estimator.set_params(**{k: v for k, v in parameters.items() if k in known})


def data(name, seed):
    """Random rows, targets of three columns, and new rows to score."""
    rng = np.random.default_rng([seed, 7])
    # Exact in single precision
    X, test = (rng.standard_normal((n, M)).astype(np.float32).astype(np.float64) for n in (N, 20))
    f = 1.5 * X[:, 1] - 2 * X[:, 4] + X[:, 6] + 0.5 * rng.standard_normal(N)
    qid = np.repeat(np.arange(N // 12), 12)
    if "Rank" in name or name.endswith("three classes"):
        y = np.digitize(f, [-1.5, 1.5])
    elif name.endswith("poisson"):
        y = rng.poisson(np.exp(f / 3)).astype(float)
    elif name.endswith("two targets"):
        y = np.column_stack([f, f + X[:, 2]])
    elif is_classifier(make(name)) or name.startswith(("FDR", "SDist")) or "CRF" in name:
        y = np.where(f > 0.3, 1, 0)
    else:
        y = f
    return Fit(X, y, qid=qid if "Rank" in name else None, test=test)


def run(name, case):
    """The columns (mask) or None, and the scores of the rows to score."""
    options = {}
    if case.weight is not None:
        options["sample_weight"] = case.weight
    if case.qid is not None:
        options["qid"] = case.qid
    estimator = case.after(make(name, **case.parameters).fit(case.X, case.y, **options))
    support = estimator.get_support() if hasattr(estimator, "get_support") else None
    if support is not None and case.columns is not None:
        support = support[case.columns]
    for method in ("decision_function", "predict_proba", "predict", "transform"):
        if hasattr(estimator, method):
            scores = getattr(estimator, method)(case.test)
            scores = np.asarray(scores.todense() if sp.issparse(scores) else scores, float)
            break
    if method == "transform":  # the selected columns themselves are compared by the support
        scores = np.zeros(1)
    if "Rank" in name:  # only differences of scores matter
        scores = scores - scores.mean()
    return support, scores


# -- the laws: (name, case, rng) -> case, or None where a law does not apply --------------------


def again(name, case, rng):
    return case


def rows_permuted(name, case, rng):
    order = rng.permutation(N)
    qid = None if case.qid is None else case.qid[order]
    return replace(case, X=case.X[order], y=case.y[order], qid=qid)


def columns_permuted(name, case, rng):
    order = rng.permutation(M)
    return replace(case, X=case.X[:, order], test=case.test[:, order], columns=np.argsort(order))


def affine(factor=1.0, shift=0.0, columns=slice(None)):
    def law(name, case, rng):
        X, test = case.X.copy(), case.test.copy()
        for data in (X, test):
            data[:, columns] = data[:, columns] * factor + shift
        return replace(case, X=X, test=test)

    return law


def constants_added(name, case, rng):
    """As many as there are columns, in the middle."""
    X, test = (np.insert(data, M * [4], 3.0, axis=1) for data in (case.X, case.test))
    return replace(case, X=X, test=test, columns=np.r_[:4, 4 + M : 2 * M])


def csr(name, case, rng):
    """Half of the values are zero."""
    if not get_tags(make(name)).input_tags.sparse:
        return None
    dense = replace(case, X=case.X * (np.abs(case.X) > 0.65))
    return replace(dense, X=sp.csr_array(dense.X), test=sp.csr_array(case.test)), dense


def fortran(name, case, rng):
    return replace(case, X=np.asfortranarray(case.X))


def single(name, case, rng):
    return replace(
        case, X=case.X.astype(np.float32), test=case.test.astype(np.float32), rounded=True
    )


def memory_map(name, case, rng):
    path = Path(tempfile.mkdtemp()) / "x.npy"
    np.save(path, case.X)
    return replace(case, X=np.load(path, mmap_mode="r"))


def dask(name, case, rng):
    if not name.startswith(("FSAClassifier", "FSARegressor")) or name.endswith("CV"):
        return None
    import dask.array as da

    return replace(case, X=da.from_array(case.X, chunks=(30, 4)))


def on_disk(name, case, rng):
    if not name.startswith(("FSAClassifier", "FSARegressor")) or name.endswith("CV"):
        return None
    path = Path(tempfile.mkdtemp()) / "x.npy"
    np.save(path, case.X)
    return replace(case, X=learners.on_disk(path, memory_limit="8KB"))


def two_jobs(name, case, rng):
    if "n_jobs" not in make(name).get_params():
        return None
    return replace(case, parameters={"n_jobs": 2})


def pickled(name, case, rng):
    return replace(case, after=lambda estimator: pickle.loads(pickle.dumps(estimator)))


def classes_renamed(name, case, rng):
    if not is_classifier(make(name)):
        return None
    return replace(case, y=np.array(["b", "c", "d"])[case.y])


def classes_swapped(name, case, rng):
    if not is_classifier(make(name)) or case.y.max() > 1:
        return None
    return replace(
        case, y=1 - case.y, answer=lambda s: -s if s.ndim == 1 or s.shape[1] == 1 else s[:, ::-1]
    )


def takes_weights(name):
    return has_fit_parameter(make(name), "sample_weight")


def weights_of_one(name, case, rng):
    return replace(case, weight=np.ones(N)) if takes_weights(name) else None


def repeated_rows(name, case, rng):
    """Both are changed: rows twice, against a weight of two."""
    if not takes_weights(name) or case.qid is not None:
        return None
    twice = np.arange(N) % 3 == 0
    double = replace(
        case,
        X=np.concatenate([case.X, case.X[twice]]),
        y=np.concatenate([case.y, case.y[twice]]),
    )
    return replace(case, weight=1.0 + twice), double


def removed_rows(name, case, rng):
    if not takes_weights(name) or case.qid is not None:
        return None
    stay = np.arange(N) % 4 > 0
    return replace(case, weight=stay * 1.0), replace(case, X=case.X[stay], y=case.y[stay])


def targets_scaled(name, case, rng):
    if is_classifier(make(name)) or case.y.dtype.kind != "f" or name == "FDRSelector":
        return None
    return replace(case, y=case.y * 1000.0, answer=lambda scores: scores / 1000.0)


LAWS = {
    "fitted again": again,
    "rows in another order": rows_permuted,
    "columns in another order": columns_permuted,
    "columns times 1e6": affine(1e6),
    "columns times 1e-6": affine(1e-6),
    "one column times 1e3": affine(1e3, columns=4),
    "columns plus 1000": affine(shift=1024.0),
    "a column negated": affine(-1.0, columns=4),
    "constant columns": constants_added,
    "CSR": csr,
    "Fortran order": fortran,
    "float32": single,
    "memory map": memory_map,
    "on disk": on_disk,
    "Dask": dask,
    "two jobs": two_jobs,
    "pickled": pickled,
    "classes renamed": classes_renamed,
    "classes swapped": classes_swapped,
    "weights of one": weights_of_one,
    "weight 2 = row twice": repeated_rows,
    "weight 0 = no row": removed_rows,
    "targets times 1000": targets_scaled,
}


# What does not hold, by the first words of the names; docs/invariance.md gives the reasons.
ONLINE = "FOBOS RDA TruncatedGradient StabilizedTruncatedSGD"
CRF = "LinearChainCRF FSACRF ForwardBackwardCRF"
SCALES = "columns times 1e6, columns times 1e-6, one column times 1e3, columns plus 1000"
STATED = {
    ONLINE: f"rows in another order, {SCALES}, constant columns, weight 2 = row twice, "
    "weight 0 = no row",
    CRF: f"rows in another order, {SCALES}, weight 2 = row twice, weight 0 = no row",
    "LinearChainCRF": "constant columns",
    "FSAClassifierCV FSARegressorCV SDistCV": "rows in another order, weight 2 = row twice, "
    "weight 0 = no row",
    "FSARegressor,poisson": "targets times 1000",
    "ScoreCardClassifier": "columns in another order, a column negated",
    "SparseFourier": "columns in another order, a column negated",
    "RankBoost": "columns in another order, a column negated",
    "SDist": "CSR",
    "StabilizedTruncatedSGD": "columns in another order",
    "FDRSelector": "weight 2 = row twice",
}


def stated(law, name):
    """Whether a law is one that the estimator does not follow, by design."""
    return any(
        law in laws.split(", ") and name.replace(", ", ",").startswith(tuple(names.split(" ")))
        for names, laws in STATED.items()
    )


@cache
def original(name, seed):
    return run(name, data(name, seed))


def broken(law, name, seed):
    """None if the law holds, "" where it does not apply, else a description."""
    case, rng = data(name, seed), np.random.default_rng([seed, 11])
    changed = LAWS[law](name, case, rng)
    if changed is None:
        return ""
    changed, first = changed if isinstance(changed, tuple) else (changed, None)
    support, scores = original(name, seed) if first is None else run(name, first)
    other_support, other = run(name, changed)
    other = changed.answer(other)
    if support is not None and not np.array_equal(support, other_support):
        return f"columns {np.flatnonzero(support)} and {np.flatnonzero(other_support)}"
    difference = float(np.abs(scores - other).max() / max(np.abs(scores).max(), 1e-300))
    if not difference <= (1e-3 if changed.rounded else TOLERANCE):
        return f"scores differ by {difference:.2g} of the largest"
    return None
