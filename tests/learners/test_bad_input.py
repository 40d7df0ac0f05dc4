"""What users hand in: bad input is told in one line that names the value and the expectation; odd
but good input is taken."""

import warnings

import numpy as np
import pandas as pd
import pytest
import scipy.sparse as sp
from annealed.learners import (
    FSACRF,
    ExponentialLoss,
    FOBOSClassifier,
    ForwardBackwardClassifier,
    ForwardBackwardCRF,
    ForwardBackwardRegressor,
    FSAClassifier,
    FSAClassifierCV,
    FSARegressor,
    FSARegressorCV,
    LinearChainCRF,
    LogisticLoss,
    LogitBoostClassifier,
    MinimaxSparseClassifier,
    PairwiseLogisticLoss,
    RDAClassifier,
    SDist,
    SDistCV,
    SparseFourierClassifier,
    StabilizedTruncatedSGDClassifier,
    TISPClassifier,
    TISPRegressor,
    TruncatedGradientClassifier,
    VapnikLoss,
    on_disk,
    selection_stability,
)
from scipy.optimize import minimize
from sklearn.base import clone
from sklearn.exceptions import NotFittedError
from sklearn.feature_selection import SelectKBest
from sklearn.model_selection import KFold
from sklearn.utils.validation import check_is_fitted

SELECTORS = [
    ForwardBackwardClassifier(2),
    LogitBoostClassifier(2),
    MinimaxSparseClassifier(),
    TISPClassifier(2),
]
ONLINE = [
    FOBOSClassifier(),
    RDAClassifier(),
    StabilizedTruncatedSGDClassifier(2),
    TruncatedGradientClassifier(),
]
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
        "schedule": "x",
        "annealing": np.nan,
        "min_bursts": -1,
        "burst_growth": 1.0,
        "n_jobs": 0,
        "threshold": "x",
        "n_features_to_select": True,
    },
    SDist: {
        "kappa": "x",
        "bagging": None,
        "n_features_to_select": 2.5,
        "feature_fraction": "x",
        "n_jobs": 1.5,
        "max_products": -1,
    },
    SDistCV: {"param_grid": 3, "tolerance": -1.0, "n_jobs": 0},
}


@pytest.mark.parametrize(
    "cls, name, value",
    [(cls, name, value) for cls, some in BAD.items() for name, value in some.items()],
)
def test_bad_parameters(cls, name, value):
    with pytest.raises(ValueError) as caught:
        cls(**{name: value}).fit(X, Y)
    assert str(caught.value).startswith(f"{name}={value!r}")
    assert "; expected " in str(caught.value)
    assert "\n" not in str(caught.value)


@pytest.mark.parametrize("model", EVERY, ids=lambda m: type(m).__name__)
def test_bad_labels(model):
    with pytest.raises(
        ValueError, match=r"^y contains only one class \('a'\); a classifier needs at least two$"
    ):
        model.fit(X, ["a"] * 40)
    with pytest.raises(
        ValueError, match=r"^y mixes labels of type NoneType and str; expected labels of one type$"
    ):
        model.fit(X, np.array(["a", None] * 20, dtype=object))
    with pytest.raises(TypeError, match="bytes is not supported"):
        model.fit(X, np.array([b"a", b"b"] * 20))


@pytest.mark.parametrize(
    "model", [*SELECTORS, *ONLINE, FSAClassifier(2)], ids=lambda m: type(m).__name__
)
def test_numbers_without_squares(model):
    with pytest.raises(
        ValueError, match=r"squares overflow float64.*expected finite values of moderate magnitude"
    ):
        model.fit(X * 1e200, Y)


def test_pairs_and_searches_of_a_metric():
    metric = SDist(n_neighbors=3, n_steps=3).fit(X, Y)
    with pytest.raises(ValueError, match=r"shapes \(1, 6\) and \(5, 6\); expected equal shapes"):
        metric.pair_distance((X[:1], X[:5]))
    with pytest.raises(ValueError, match=r"u and v have shapes \(2,\) and \(6,\); expected \(6,\)"):
        metric.get_metric()(X[0, :2], X[1])
    for grid, message in (
        ({"n_steps": [5, 0]}, "n_steps=0"),
        ({"kappa": ["x"]}, "kappa='x'"),
        ({"classifier": ["x"]}, "classifier='x'"),
    ):
        with pytest.raises(ValueError, match=message):
            SDistCV(SDist(), grid).fit(X, Y)
    with pytest.raises(
        ValueError, match=r"^estimator=FSAClassifier.* is not valid; expected an SDist or None"
    ):
        SDistCV(FSAClassifier()).fit(X, Y)


def test_distances_that_overflow():
    for kind in (np.asarray, sp.csr_array):
        with pytest.raises(
            ValueError,
            match=r"^X contains values up to .*e\+30, whose squares overflow float32; rescale",
        ):
            SDist().fit(kind((X * 1e30).astype(np.float32)), Y)


@pytest.mark.parametrize(
    "model",
    [FSARegressor(2), ForwardBackwardRegressor(2), TISPRegressor(2)],
    ids=lambda m: type(m).__name__,
)
def test_targets_without_squares(model):
    with pytest.raises(
        ValueError, match=r"^y contains values up to .*e\+200, whose squares overflow; rescale"
    ):
        model.fit(X, 1e200 * X[:, 0])


def test_losses_that_do_not_fit():
    for model in (
        *SELECTORS[:2],
        SELECTORS[3],
        FSAClassifier(2),
        FSARegressor(2),
        TISPRegressor(2),
    ):
        with pytest.raises(
            ValueError,
            match=r"loss=PairwiseLogisticLoss\(\) compares samples; expected a "
            r"loss that is a sum over",
        ):
            clone(model).set_params(loss=PairwiseLogisticLoss()).fit(X, Y)
    for model in (LogitBoostClassifier(2), TISPClassifier(2)):
        with pytest.raises(
            ValueError, match=r"loss=ExponentialLoss\(\) has unbounded curvature; expected"
        ):
            model.set_params(loss=ExponentialLoss()).fit(X, Y)


def test_a_loss_of_class_differences_serves_two_classes():
    differences = ForwardBackwardClassifier(3, loss=VapnikLoss(LogisticLoss()), ridge=1e-2).fit(
        X, Y
    )
    np.testing.assert_array_equal(
        differences.support_, ForwardBackwardClassifier(3, ridge=1e-2).fit(X, Y).support_
    )
    assert np.isfinite(differences.predict_proba(X)).all()
    assert differences.score(X, Y) > 0.9


def test_the_exponential_loss_fits_an_intercept():
    rng = np.random.default_rng(1)
    y = np.where(X[:, 2] + 0.5 + rng.normal(size=40) > 0, 1.0, -1.0)
    model = ForwardBackwardClassifier(1, loss=ExponentialLoss()).fit(X[:, 2:3], y)
    z = (X[:, 2] - X[:, 2].mean()) / X[:, 2].std()

    def objective(w):
        return np.exp(-y * (w[0] * z + w[1])).mean() + 0.5e-4 * w[0] ** 2

    assert model.path_[-1].objective == pytest.approx(
        minimize(objective, np.zeros(2)).fun, rel=1e-6
    )


@pytest.mark.parametrize("model", ONLINE, ids=lambda m: type(m).__name__)
def test_streams(model):
    with pytest.raises(
        ValueError, match=r"^sample_weight contains -1; expected non-negative weights$"
    ):
        model.fit(X, Y, sample_weight=-np.ones(40))
    model = clone(model).partial_fit(X, np.where(Y, "a", "b"), classes=["a", "b"])
    with pytest.raises(
        ValueError, match=r"^y contains the unknown label 'c'; expected labels from \['a', 'b'\]$"
    ):
        model.partial_fit(X, ["c"] * 40)
    with pytest.raises(
        ValueError,
        match=r"^classes=\['a', 'c'\] differs from the classes of the first "
        r"call; expected \['a', 'b'\]$",
    ):
        model.partial_fit(X, np.where(Y, "a", "b"), classes=["a", "c"])


def test_fewer_features_than_requested_are_reported():
    with pytest.warns(
        UserWarning,
        match="2 features were selected instead of n_features_to_select=5; increase r or max_cuts",
    ):
        MinimaxSparseClassifier(1, max_cuts=2, n_features_to_select=5).fit(X, Y)
    with pytest.warns(UserWarning, match="n_features_to_select=9 exceeds the 6 available features"):
        MinimaxSparseClassifier(6, n_features_to_select=9).fit(X, Y)


def test_the_search_keeps_the_names_of_columns():
    frame = pd.DataFrame(X, columns=list("abcdef"))
    search = SDistCV(
        SDist(n_neighbors=3, random_state=0), {"max_order": [2], "n_steps": [5]}, cv=2
    ).fit(frame, X[:, 0] * X[:, 1] > 0)
    assert set("".join(search.best_estimator_.interactions_)) <= set("abcdef*^2")
    assert search.predict(frame).shape == (40,)


def test_stability_says_what_is_wrong():
    some = FSAClassifier(2)
    for options in ({"n_repeats": 1}, {"n_repeats": 2.5}, {"n_features": 7}, {"n_features": 0}):
        with pytest.raises(
            ValueError, match=rf"^{next(iter(options))}=.* is not valid; expected an integer"
        ):
            selection_stability(some, X, Y, **options)
    for y in (Y[:-1], np.tile(Y, 2)):
        with pytest.raises(ValueError, match="inconsistent numbers of samples"):
            selection_stability(some, X, y, 2)
    with pytest.raises(ValueError, match="1 names; expected one for each of the 6 features"):
        selection_stability(some, sp.coo_array(X), Y, 2).plot(names=["a"])


def test_halves_are_stratified_by_class_and_plain_for_numbers():
    class Rows(SelectKBest):
        def fit(self, X, y):
            fitted.append(y)
            return super().fit(X, y > 0.5)

    fitted = []
    y = np.repeat([0.0, 1.0], [30, 10])
    selection_stability(Rows(k=1), X, y, 2)
    selection_stability(Rows(k=1), X, X[:, 0], 2)
    # prices that occur twice
    selection_stability(Rows(k=1), X, np.repeat(np.round(X[:20, 0], 9), 2), 2)
    assert [(len(v), v.sum()) for v in fitted[:2]] == [(20, 5)] * 2
    assert [len(np.unique(v)) for v in fitted[2:4]] == [20] * 2
    assert len(np.unique(fitted[2:4])) == 40  # complementary
    assert all(len(np.unique(v)) < 20 for v in fitted[4:])


def test_the_size_is_searched_in_files_too(tmp_path):
    y = X[:, 2] + 0.1 * X[:, 3]
    np.save(tmp_path / "X.npy", X)
    model = FSARegressorCV([1, 2, 3], cv=3).fit(on_disk(tmp_path / "X.npy", memory_limit="1KB"), y)
    np.testing.assert_allclose(
        model.coef_, FSARegressorCV([1, 2, 3], cv=3).fit(X, y).coef_, rtol=1e-6
    )


def untidy(A):
    """The same sparse matrix, read-only, with every entry in two halves, in falling order of
    columns, and zeros stored."""
    A = sp.coo_array(A)
    row, column = np.repeat(A.row, 2), np.repeat(A.col, 2)
    data = np.repeat(A.data / 2, 2)
    empty = np.argwhere(A.toarray() == 0)
    row, column = np.append(row, empty[:, 0]), np.append(column, empty[:, 1])
    data = np.append(data, np.zeros(len(empty)))
    order = np.lexsort((-column, row))
    parts = (
        data[order],
        column[order],
        np.append(0, np.cumsum(np.bincount(row, minlength=A.shape[0]))),
    )
    for part in parts:
        part.flags.writeable = False
    return sp.csr_array(parts, shape=A.shape)


@pytest.mark.parametrize(
    "model", [*SELECTORS, *ONLINE, FSAClassifier(2)], ids=lambda m: type(m).__name__
)
def test_untidy_sparse_matrices_are_what_they_stand_for(model):
    tidy = sp.csr_array(np.where(X > 0.3, X, 0.0))
    model = clone(model)
    if "random_state" in model.get_params():
        model.set_params(random_state=0)
    expected = clone(model).fit(tidy, Y).coef_
    np.testing.assert_allclose(model.fit(untidy(tidy), Y).coef_, expected, rtol=1e-7, atol=1e-12)


@pytest.mark.parametrize("make", [FSARegressor, ForwardBackwardRegressor, TISPRegressor])
def test_numbers_whose_squares_underflow_are_refused(make):
    X = np.random.default_rng(0).standard_normal((60, 6))
    y = X[:, 2] - X[:, 4]
    with pytest.raises(
        ValueError, match=r"column 0 of X contains values around .*whose squares underflow"
    ):
        make(2).fit(X * 1e-300, y)
    with pytest.raises(ValueError, match=r"y contains values up to .*whose squares underflow"):
        make(2).fit(X, y * 1e-300)
    for scale in (1e-140, 1e140):
        assert make(2).fit(X * scale, y * scale).get_support().nonzero()[0].tolist() == [2, 4]
    zeros = np.concatenate([X, np.zeros((60, 1)), np.full((60, 1), 1e-300)], axis=1)
    assert make(2).fit(zeros[:, :7], y).get_support().nonzero()[0].tolist() == [2, 4]


@pytest.mark.parametrize("make", [FSACRF, ForwardBackwardCRF])
@pytest.mark.parametrize("scale, what", [(1e-160, "underflow"), (1e160, "overflow")])
def test_numbers_without_squares_are_refused_for_sequences(make, scale, what):
    X = np.random.default_rng(0).standard_normal((30, 4))
    for data in (X * scale, sp.csr_matrix(X * scale)):
        with pytest.raises(
            ValueError, match=f"column 0 of X contains values up to .*, whose squares {what}"
        ):
            make(2).fit(data, X[:, 1] > 0)


@pytest.mark.parametrize(
    "estimator",
    [FSARegressor(3), FSAClassifier(3), TISPRegressor(3), *SELECTORS],
    ids=lambda e: type(e).__name__,
)
@pytest.mark.parametrize("kind", [np.asarray, sp.csr_array])
def test_columns_that_are_all_constant_are_said(estimator, kind):
    """One line; and none where a column varies."""
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        clone(estimator).fit(kind(np.full((40, 6), 0.1)), Y)
    assert [str(one.message) for one in caught if "are constant" in str(one.message)] == [
        "all columns of X that may be selected are constant, so the selection is arbitrary and the "
        "model predicts a constant"
    ]
    one = np.full((40, 6), 0.1)
    one[:, 4] = X[:, 2]
    with warnings.catch_warnings():
        warnings.filterwarnings("error", message=".*are constant")
        assert 4 in clone(estimator).fit(kind(one), Y).get_support(indices=True)


def test_a_fold_of_one_class_is_said_to_be_a_fold():
    with pytest.raises(
        ValueError,
        match=r"^the training rows of fold 1 of 2 "
        r"contain only one class \('b'\); a class",
    ):
        FSAClassifierCV(cv=KFold(2)).fit(X, np.repeat(["a", "b"], 20))


@pytest.mark.parametrize(
    "estimator",
    [FSAClassifier(2), FSAClassifierCV(), *SELECTORS, *ONLINE],
    ids=lambda e: type(e).__name__,
)
def test_weights_that_leave_one_class(estimator):
    """A row of weight zero is a row that is not there."""
    with pytest.raises(ValueError, match="rows with positive weights contain only one class"):
        clone(estimator).fit(X, Y, sample_weight=1.0 * Y)


@pytest.mark.parametrize(
    "estimator", [FSARegressor(2), TISPRegressor(2), ForwardBackwardRegressor(2)]
)
@pytest.mark.parametrize("kind", [np.asarray, list, pd.Series])
@pytest.mark.parametrize("dtype", ["M8[D]", "m8[s]"])
def test_targets_that_are_times(estimator, kind, dtype):
    with pytest.raises(
        ValueError,
        match=r"^y contains (datetime|timedelta)64\[.*\] values; convert them to numbers",
    ):
        clone(estimator).fit(X, kind(np.arange(40).astype(dtype)))


def test_dates_are_labels_and_not_columns():
    days = np.where(Y, np.datetime64("2024-03-01"), np.datetime64("2024-03-02"))
    assert FSAClassifier(2).fit(X, days).score(X, days) > 0.9
    with pytest.raises(ValueError, match=r"^X contains datetime64"):
        FSAClassifier(2).fit(pd.DataFrame(X).assign(day=days), Y)


def test_masks_are_not_ignored():
    hidden = np.ma.array(X, mask=np.sort(X, axis=0)[-3] < X)
    for estimator, data, target in (
        (FSARegressor(2), X, hidden[:, 0]),
        (FSAClassifier(2), hidden, Y),
        (TISPClassifier(2), hidden, Y),
        (SDist(2), hidden, Y),
        (SparseFourierClassifier(), hidden, Y),
        (LinearChainCRF(), hidden, Y),
    ):
        with pytest.raises(ValueError, match=r"masked values; replace them first"):
            estimator.fit(data, target)
    FSARegressor(2).fit(np.ma.array(X), X[:, 0])  # nothing is hidden


@pytest.mark.parametrize(
    "estimator", [FSARegressor(2), FSAClassifier(2), TISPClassifier(2), FOBOSClassifier()]
)
def test_frames_that_are_lazy(estimator):
    polars = pytest.importorskip("polars")
    frame = polars.DataFrame(X, schema=list("abcdef"))
    fitted = clone(estimator).fit(frame, Y)
    for attempt in (
        lambda: clone(estimator).fit(frame.lazy(), Y),
        lambda: fitted.predict(frame.lazy()),
    ):
        with pytest.raises(
            TypeError,
            match=r"^X is a LazyFrame, which contains no values yet; "
            r"call its collect\(\) first$",
        ):
            attempt()


@pytest.mark.parametrize("error", [KeyboardInterrupt, MemoryError])
@pytest.mark.parametrize(
    "estimator",
    [FSAClassifier(2), FSARegressor(2), FSAClassifierCV([1, 2])],
    ids=lambda e: type(e).__name__,
)
def test_an_interrupted_fit_leaves_no_trace(estimator, error, monkeypatch):
    """Not fitted is not fitted; and the last fit stays whole."""
    estimator = clone(estimator)
    fitted = clone(estimator).fit(X[:, :5], Y)
    before = {
        name: np.array(value, copy=True)
        for name, value in vars(fitted).items()
        if name.endswith("_")
    }

    def interrupted(*_, **__):
        raise error

    monkeypatch.setattr("annealed.learners.fsa.estimators.solve", interrupted)
    for model in (estimator, fitted):
        with pytest.raises(error):
            model.fit(X, Y)
    with pytest.raises(NotFittedError):
        check_is_fitted(estimator)
    assert before.keys() == {name for name in vars(fitted) if name.endswith("_")}
    assert fitted.n_features_in_ == 5 and fitted.predict(X[:, :5]).shape == (40,)
