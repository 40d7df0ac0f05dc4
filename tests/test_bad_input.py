"""Bad input of every learner but the annealed ones: one line that names the value and what was expected."""

import inspect
import re

import annealed.learners
import numpy as np
import pandas as pd
import pytest
from annealed.learners import (
    FOBOSClassifier,
    ForwardBackwardClassifier,
    FSAClassifier,
    FSARegressorCV,
    LogitBoostClassifier,
    MinimaxSparseClassifier,
    RDAClassifier,
    SDist,
    SDistCV,
    StabilizedTruncatedSGDClassifier,
    TISPClassifier,
    TruncatedGradientClassifier,
)
from sklearn.base import clone

SELECTORS = [ForwardBackwardClassifier(2), LogitBoostClassifier(2), MinimaxSparseClassifier(), TISPClassifier(2)]
ONLINE = [FOBOSClassifier(), RDAClassifier(), StabilizedTruncatedSGDClassifier(2), TruncatedGradientClassifier()]
EVERY = [*SELECTORS, *ONLINE, SDist(), SDistCV(), FSAClassifier(2)]
X = np.random.default_rng(0).standard_normal((40, 6))
Y = X[:, 2] > 0
BAD = {
    ForwardBackwardClassifier: {"loss": 3, "ridge": np.inf, "n_features_to_select": 0},
    LogitBoostClassifier: {"n_bins": 0, "loss": None, "learning_rate": np.inf, "subsample": 1.5},
    MinimaxSparseClassifier: {"C": np.inf, "tol": np.nan, "n_features_to_select": 0.5},
    TISPClassifier: {"learning_rate": np.inf, "n_steps": -1, "loss": [1]},
    FOBOSClassifier: {"penalty": -1.0, "learning_rate": np.inf, "max_iter": True},
    RDAClassifier: {"gamma": 0.0, "rho": -1.0, "penalty": "x"},
    TruncatedGradientClassifier: {"burst_size": 0, "gravity": np.nan, "loss": "x"},
    StabilizedTruncatedSGDClassifier: {
        "mu": "x",
        "annealing": np.nan,
        "min_bursts": -1,
        "n_jobs": 0,
        "threshold": "x",
        "n_features_to_select": True,
    },
    SDist: {"kappa": "x", "bagging": None, "n_features_to_select": 2.5, "feature_fraction": "x", "n_jobs": 1.5, "max_products": -1},
    SDistCV: {"param_grid": 3, "tolerance": -1.0, "n_jobs": 0},
}


@pytest.mark.parametrize("cls, name, value", [(cls, name, value) for cls, some in BAD.items() for name, value in some.items()])
def test_bad_parameters(cls, name, value):
    with pytest.raises(ValueError) as caught:
        cls(**{name: value}).fit(X, Y)
    assert str(caught.value).startswith(f"{name}={value!r}")
    assert "; expected " in str(caught.value)
    assert "\n" not in str(caught.value)


@pytest.mark.parametrize("model", EVERY, ids=lambda m: type(m).__name__)
def test_bad_labels(model):
    with pytest.raises(ValueError, match=r"^y holds one class only \('a'\); a classifier needs at least two$"):
        model.fit(X, ["a"] * 40)
    with pytest.raises(ValueError, match=r"^y mixes labels of type NoneType and str; expected labels of one type$"):
        model.fit(X, np.array(["a", None] * 20, dtype=object))


@pytest.mark.parametrize("model", [*SELECTORS, *ONLINE, FSAClassifier(2)], ids=lambda m: type(m).__name__)
def test_numbers_without_squares(model):
    with pytest.raises(ValueError, match=r"squares overflow float64.*expected finite numbers of moderate size"):
        model.fit(X * 1e200, Y)


@pytest.mark.parametrize("model", ONLINE, ids=lambda m: type(m).__name__)
def test_streams(model):
    with pytest.raises(ValueError, match="Negative values"):
        model.fit(X, Y, sample_weight=-np.ones(40))
    model = clone(model).partial_fit(X, np.where(Y, "a", "b"), classes=["a", "b"])
    with pytest.raises(ValueError, match=r"^y holds 'c'; expected only the classes \['a', 'b'\]$"):
        model.partial_fit(X, ["c"] * 40)
    with pytest.raises(ValueError, match=r"^classes=\['a', 'c'\] are not those of the first call, \['a', 'b'\]$"):
        model.partial_fit(X, np.where(Y, "a", "b"), classes=["a", "c"])


def test_fewer_features_than_asked_for_are_told():
    with pytest.warns(UserWarning, match="2 features found, n_features_to_select=5; expected a greater r or max_cuts"):
        MinimaxSparseClassifier(1, max_cuts=2, n_features_to_select=5).fit(X, Y)
    with pytest.warns(UserWarning, match="n_features_to_select=9 is more than the 6 features"):
        MinimaxSparseClassifier(6, n_features_to_select=9).fit(X, Y)


def test_the_search_keeps_the_names_of_columns():
    frame = pd.DataFrame(X, columns=list("abcdef"))
    search = SDistCV(SDist(n_neighbors=3, random_state=0), {"max_order": [2], "n_steps": [5]}, cv=2).fit(
        frame, X[:, 0] * X[:, 1] > 0
    )
    assert set("".join(search.best_estimator_.interactions_)) <= set("abcdef*^2")
    assert search.predict(frame).shape == (40,)


def test_the_size_is_searched_in_files_too(tmp_path):
    y = X[:, 2] + 0.1 * X[:, 3]
    np.save(tmp_path / "X.npy", X)
    model = FSARegressorCV([1, 2, 3], cv=3, memory_limit="1KB").fit(np.load(tmp_path / "X.npy", mmap_mode="r"), y)
    np.testing.assert_allclose(model.coef_, FSARegressorCV([1, 2, 3], cv=3).fit(X, y).coef_, rtol=1e-6)


@pytest.mark.parametrize("name", [n for n in annealed.learners.__all__ if inspect.isclass(getattr(annealed.learners, n))])
def test_docstrings_name_the_parameters_that_there_are(name):
    cls = getattr(annealed.learners, name)
    section = re.search(r"\nParameters\n-+\n(.*?)(\n\n[A-Z][a-z]+\n---|\Z)", inspect.getdoc(cls) or "", re.S)
    if section is None:
        return
    lines = [line.split(" :")[0] for line in section[1].splitlines() if line and not line.startswith(" ")]
    documented = {word.strip() for line in lines for word in line.split(",")}
    assert documented == set(inspect.signature(cls).parameters)
