"""Columns that stay or may not come, bounds of coefficients, units of columns, groups of rows."""

import itertools

import numpy as np
import pandas as pd
import pytest
import scipy.sparse as sp
from annealed.learners import (
    Constraints,
    ForwardBackwardClassifier,
    ForwardBackwardRegressor,
    FSAClassifier,
    FSAClassifierCV,
    FSAPath,
    FSARanker,
    FSARegressor,
    FSARegressorCV,
    PiecewiseLinear,
    Refinement,
)
from scipy.optimize import lsq_linear
from sklearn.metrics import log_loss
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import FunctionTransformer, MaxAbsScaler, Normalizer


def data(n=200, m=60):
    rng = np.random.default_rng(0)
    X = rng.standard_normal((n, m))
    return X, 2 * X[:, 3] - X[:, 7] + X[:, 9] + 0.5 * rng.standard_normal(n)


@pytest.mark.parametrize(
    "refinement", ["auto", Refinement(exchange=True), Refinement(exchange=False), None]
)
@pytest.mark.parametrize("classify", [False, True])
def test_columns_that_stay_and_that_may_not_come(refinement, classify):
    X, y = data()
    family, target = (FSAClassifier, y > 0) if classify else (FSARegressor, y)
    model = family(
        5, constraints=Constraints(include=[50, 51], exclude=[3]), refinement=refinement
    ).fit(X, target)
    found = set(model.get_support(indices=True).tolist())
    assert {50, 51, 7, 9} < found and 3 not in found and len(found) == 5
    assert model.coef_.ravel()[50] != 0


def test_names_masks_groups_and_paths():
    X, y = data()
    frame = pd.DataFrame(X, columns=[f"c{i}" for i in range(60)])
    by_name = FSARegressor(4, constraints=Constraints(include="c50", exclude=["c3"])).fit(frame, y)
    by_mask = FSARegressor(
        4, constraints=Constraints(include=np.arange(60) == 50, exclude=np.arange(60) == 3)
    ).fit(X, y)
    assert np.array_equal(by_name.support_, by_mask.support_)
    assert np.allclose(by_name.predict(frame), by_mask.predict(X))
    grouped = FSARegressor(
        3, constraints=Constraints(np.arange(60) // 2, include=[50], exclude=[9])
    ).fit(X, y)
    assert grouped.support_[[50, 51]].all() and not grouped.support_[9]
    path = FSAPath(
        FSARegressor(constraints=Constraints(include=[1, 2], exclude=[3])), sizes=[1, 2, 3, 5]
    ).fit(X, y)
    assert (
        path.supports_.sum(axis=1).tolist() == [2, 3, 5]
        and path.supports_[:, [1, 2]].all()
        and not path.supports_[:, 3].any()
    )
    chosen = FSARegressorCV([2, 4], constraints=Constraints(include=["c50"], exclude="c3")).fit(
        frame, y
    )
    assert chosen.support_[50] and not chosen.support_[3]
    piecewise = FSARegressor(
        3, constraints=Constraints(include=[50], exclude=[3]), response=PiecewiseLinear(2)
    ).fit(X, y)
    assert piecewise.support_[[50, 7]].all() and np.isfinite(piecewise.predict(X)).all()
    sparse = FSARegressor(4, constraints=Constraints(include=[50], exclude=[3])).fit(
        sp.csr_array(X), y
    )
    assert np.array_equal(sparse.support_, by_mask.support_)


@pytest.mark.parametrize(
    ("parameters", "message"),
    [
        ({"include": ["a"]}, "include: 'a' is not a column"),
        (
            {"exclude": [60]},
            "exclude: 60 is not a column; expected a name or a number from 0 to 59",
        ),
        ({"include": 3, "exclude": 3}, "column 3 is in both include and exclude"),
        (
            {"include": [1, 2, 3, 4, 5]},
            "include names 5 features, more than n_features_to_select=4",
        ),
        ({"exclude": range(60)}, "leaves no column"),
        ({"include": np.ones(3, bool)}, "include has shape"),
        ({"bounds": (1, 2)}, "lower <= 0 <= upper"),
        ({"bounds": 3}, "bounds: 3 is not valid"),
        ({"bounds": {"a": (0, 1)}}, "'a' is not a column"),
        ({"bounds": (0, None)}, "piecewise-linear responses"),
        ({"monotone": {"a": 1}}, "monotone: 'a' is not a column"),
        ({"monotone": {3: 2}}, "monotone: 2 is not a valid direction for column 3; expected"),
        ({"monotone": {3: "+"}}, "monotone: '\\+' is not a valid direction for column 3"),
        ({"monotone": [1, 0]}, "or one of .1, 0, -1 for each column"),
        (
            {"monotone": {3: 1}, "bounds": {3: (0, 1)}},
            "column 3 is in both bounds and monotone; name it in only one of them",
        ),
    ],
)
def test_bad_demands(parameters, message):
    X, y = data()
    response = "piecewise" if "piecewise" in message else "linear"
    with pytest.raises(ValueError, match=message) as caught:
        FSARegressor(4, constraints=Constraints(**parameters), response=response).fit(X, y)
    assert "\n" not in str(caught.value)


def test_bounded_coefficients_are_those_of_the_bounded_least_squares():
    X, y = data()
    model = FSARegressor(
        4,
        constraints=Constraints(bounds={3: (None, 5.0), 7: (-2.5, 2.5)}),
        refinement=Refinement(ridge=0.0),
    ).fit(X, 3 * y)
    support = model.get_support(indices=True)
    assert (
        {3, 7, 9} < set(support.tolist())
        and model.coef_[3] <= 5 + 1e-9
        and model.coef_[7] >= -2.5 - 1e-9
    )
    A, target = X[:, support] - X[:, support].mean(axis=0), 3 * y - 3 * y.mean()
    lower, upper = np.full(4, -np.inf), np.full(4, np.inf)
    upper[support == 3], lower[support == 7], upper[support == 7] = 5.0, -2.5, 2.5
    assert np.allclose(
        model.coef_[support], lsq_linear(A, target, (lower, upper), tol=1e-12).x, atol=2e-3
    )
    positive = FSAClassifier(4, constraints=Constraints(bounds=(0, None))).fit(X, y > 0)
    assert (
        (positive.coef_ >= 0).all() and positive.support_[[3, 9]].all() and not positive.support_[7]
    )


@pytest.mark.parametrize("kind", [np.asarray, sp.csr_array])
def test_scaling(kind):
    X, y = data()
    X = X.copy()
    X[:, 20] = 1000 * np.random.default_rng(1).standard_normal(200)
    X[:, 9] *= 0.01
    assert not FSARegressor(3).fit(kind(X), y).support_[20]
    for scaling in ("none", "standardize"):
        # exchanges know no units
        model = FSARegressor(3, scaling=scaling, refinement=Refinement(exchange=False)).fit(
            kind(X), y
        )
        assert model.support_.sum() == 3 and (
            scaling == "none" or (model.score(kind(X), y) > 0.5 and not model.support_[20])
        )


@pytest.mark.parametrize("kind", [np.asarray, sp.csr_array])
def test_units_of_pipelines(kind):
    """Greatest value one, and counts as logarithms in rows of length one, for which the estimator
    has no words of its own."""
    X, y = data()
    X = X.copy()
    X[:, 20] = 1000 * np.random.default_rng(1).standard_normal(200)
    plain = FSARegressor(3, scaling="none", refinement=Refinement(exchange=False))
    model = make_pipeline(MaxAbsScaler(), plain).fit(kind(X), y)
    assert (
        model.score(kind(X), y) > 0.5
        and model[-1].support_.sum() == 3
        and not model[-1].support_[20]
    )
    counts = kind(np.random.default_rng(2).poisson(0.5, (200, 60)).astype(float))
    words = make_pipeline(
        FunctionTransformer(np.log1p, accept_sparse=True), Normalizer(), FSAClassifier(3)
    ).fit(counts, y > 0)
    changed = np.log1p(counts.toarray() if sp.issparse(counts) else counts)
    changed /= np.maximum(np.linalg.norm(changed, axis=1, keepdims=True), 1e-300)
    assert np.allclose(
        words.decision_function(counts), (changed @ words[-1].coef_.T + words[-1].intercept_)[:, 0]
    )
    assert words[:-1].transform(counts).shape == (200, 60) and words.transform(counts).shape == (
        200,
        3,
    )


def test_groups_of_rows_stay_together():
    rng = np.random.default_rng(0)
    X, groups = rng.standard_normal((120, 30)), np.repeat(range(12), 10)
    X = X + rng.standard_normal((12, 30))[groups]
    patient = rng.standard_normal(12)[groups]  # what only the group says
    together = FSARegressorCV([1, 2, 5, 10]).fit(X, patient, groups=groups)
    apart = FSARegressorCV([1, 2, 5, 10]).fit(X, patient)
    assert together.cv_scores_.mean() < apart.cv_scores_.mean()
    assert together.cv_scores_.shape == (5, 4)
    FSAClassifierCV([1, 2], cv=3).fit(X, patient > 0, groups=groups)
    with pytest.raises(ValueError, match="expected at least two"):
        FSAClassifierCV([1, 2]).fit(X, patient > 0, groups=np.zeros(120))


def test_few_rows_choose_the_size_by_held_out_rows():
    rng = np.random.default_rng(0)
    factor = rng.standard_normal((80, 1))
    X = rng.standard_normal((80, 400))
    X[:, :40] += factor  # many columns that say a little
    y = factor[:, 0] + 0.1 * rng.standard_normal(80) > 0
    assert FSAClassifier("auto").fit(X, y).support_.sum() >= 5
    permuted = [
        int(FSAClassifier("auto").fit(X, rng.permutation(y)).support_.sum()) for _ in range(5)
    ]
    assert np.median(permuted) == 0


@pytest.mark.parametrize("family", [FSAClassifier, FSARegressor])
def test_alternatives_are_columns_that_say_the_same(family):
    X, y = data()
    X = np.column_stack([X, X[:, 3] + 0.02 * np.random.default_rng(5).standard_normal(200)])
    target = y > 0 if family is FSAClassifier else y
    model = family(3, constraints=Constraints(exclude=[0])).fit(X, target)
    support = set(model.get_support(indices=True).tolist())
    assert set(model.alternatives_) == support
    twin = (support & {3, 60}).pop()
    others = [j for j, _ in model.alternatives_[twin]]
    assert others[0] == 63 - twin and all(
        share < 0.05 for row in model.alternatives_.values() for _, share in row
    )
    assert not support & {j for row in model.alternatives_.values() for j, _ in row}
    assert family(3, refinement=None).fit(X, target).alternatives_ == {}


def test_polars_frames():
    polars = pytest.importorskip("polars")
    X, y = data()
    frame = polars.DataFrame({f"c{i}": X[:, i] for i in range(60)})
    model = (
        FSARegressor(3, constraints=Constraints(include=["c50"]))
        .fit(frame, polars.Series(y))
        .set_output(transform="polars")
    )
    assert model.feature_names_in_[50] == "c50" and model.transform(frame).columns == list(
        model.get_feature_names_out()
    )
    assert np.allclose(
        model.predict(frame),
        FSARegressor(3, constraints=Constraints(include=[50])).fit(X, y).predict(X),
    )


def test_alternatives_of_groups_of_columns():
    rng = np.random.default_rng(0)
    X = rng.standard_normal((400, 24))
    X[:, 20:22] = X[:, 4:6] + 0.2 * rng.standard_normal((400, 2))
    y = X[:, 4] + X[:, 5] + X[:, 10] + 2.0 * rng.standard_normal(400)
    model = FSARegressor(2, constraints=Constraints(groups=np.arange(24) // 2)).fit(X, y)
    twin = 4 if model.support_[4] else 20
    assert set(model.alternatives_) == {twin, 10} and model.alternatives_[twin][0][0] == 24 - twin


@pytest.mark.parametrize("model", [ForwardBackwardClassifier, ForwardBackwardRegressor])
def test_columns_in_and_out_of_forward_backward(model):
    rng = np.random.default_rng(0)
    X = pd.DataFrame(rng.standard_normal((200, 12)), columns=[f"c{j}" for j in range(12)])
    signal = X["c3"] + X["c7"] - X["c9"] + 0.1 * rng.standard_normal(200)
    y = signal > 0 if model is ForwardBackwardClassifier else signal
    fitted = model(3, include=["c5"], exclude=[3]).fit(X, y)
    assert fitted.get_support(indices=True).tolist() == [5, 7, 9]
    assert fitted.path_[0].feature == 5 and {step.feature for step in fitted.path_} == {5, 7, 9}
    plain = model(3).fit(X.drop(columns="c3"), y)
    assert np.allclose(
        model(3, exclude="c3").fit(X, y).coef_.ravel()[[7, 9]], plain.coef_.ravel()[[6, 8]]
    )
    groups = np.arange(12) // 2  # columns 2 and 3, 6 and 7, ...
    kept = (
        model(2, feature_groups=groups, include=[0], exclude=[6])
        .fit(X, y)
        .get_support(indices=True)
        .tolist()
    )
    assert kept[:2] == [0, 1] and 6 not in kept
    with pytest.raises(
        ValueError,
        match="include names 2 features, more than n_features_to_select=1",
    ):
        model(1, include=[1, 2]).fit(X, y)
    with pytest.raises(
        ValueError, match="column 'c4' is in both include and exclude; name it in only one of them"
    ):
        model(3, include=["c4"], exclude=[4]).fit(X, y)


# -- curves that may only rise, and signs --------------------------------------------------------


def curved(seed, n=300, m=12):
    """Columns 3 and 7 act monotonically, 9 does not; gaps."""
    rng = np.random.default_rng(seed)
    X = rng.standard_normal((n, m))
    y = (
        2 * np.tanh(2 * X[:, 3])
        - np.exp(0.5 * X[:, 7])
        + np.abs(X[:, 9])
        + 0.5 * rng.standard_normal(n)
    )
    X[rng.random((n, m)) < 0.05] = np.nan
    return X, y


@pytest.mark.parametrize("classify", [False, True])
@pytest.mark.parametrize(
    "refinement", ["auto", Refinement(exchange=True), Refinement(ridge=0.01), None]
)
def test_no_curve_turns_back(classify, refinement):
    """25 seeds for each of the eight: 200 fits with directions, right and wrong ones."""
    directions = np.zeros(12, int)
    directions[[3, 7, 9, 0]] = 1, -1, 1, -1
    family = FSAClassifier if classify else FSARegressor
    for seed in range(25):
        X, y = curved(seed)
        target = y > np.median(y) if classify else y
        response = PiecewiseLinear(5, bins=("range", "quantile")[seed % 2])
        model = family(
            4,
            response=response,
            constraints=Constraints(monotone=directions),
            refinement=refinement,
        ).fit(X, target)
        rises = np.diff(model.responses_[:, :, 0], axis=1) * directions[model.support_, None]
        assert (rises >= 0).all() and model.support_[3]
        assert rises[np.flatnonzero(model.support_) == 3].sum() > 0  # no empty promise


@pytest.mark.parametrize("classify", [False, True])
def test_where_the_truth_is_monotone_little_is_lost(classify):
    """The mean loss of new rows is at most 1% above that of the fit without directions."""
    losses = np.empty((20, 2))
    for seed, row in enumerate(losses):
        X, y = curved(seed, 2000)
        target = y > np.median(y) if classify else y
        for i, constraints in enumerate((None, Constraints(monotone={3: 1, 7: -1}))):
            model = (FSAClassifier if classify else FSARegressor)(
                3, response="piecewise", constraints=constraints
            )
            model.fit(X[:400], target[:400])
            if classify:
                row[i] = log_loss(target[400:], model.predict_proba(X[400:]))
            else:
                row[i] = np.mean((target[400:] - model.predict(X[400:])) ** 2)
    assert losses[:, 1].mean() <= 1.01 * losses[:, 0].mean()


def test_monotone_curves_are_those_of_the_constrained_least_squares():
    X, y = (np.nan_to_num(part) for part in curved(3))
    constraints = Constraints(monotone={3: -1, 7: -1, 9: 1})
    model = FSARegressor(
        3, response=PiecewiseLinear(6), constraints=constraints, refinement=Refinement(ridge=1e-6)
    ).fit(X[:, :10], y)
    support = model.get_support(indices=True)
    columns, lower, upper = [np.ones(len(y))], [-np.inf], [np.inf]
    for knots, j in zip(
        model.knots_, support, strict=True
    ):  # increments: ramps between neighbouring knots
        sign = constraints.monotone.get(int(j), 0)
        columns += [
            np.clip((X[:, j] - low) / (high - low), 0.0, 1.0)
            for low, high in itertools.pairwise(knots)
        ]
        lower += [0.0 if sign > 0 else -np.inf] * 6
        upper += [0.0 if sign < 0 else np.inf] * 6
    upper = np.maximum(upper, 1e-12)
    best = lsq_linear(np.column_stack(columns), y, (lower, upper), tol=1e-12).cost / len(y)
    assert np.mean((y - model.predict(X[:, :10])) ** 2) / 2 == pytest.approx(best, rel=1e-3)


def test_signs_of_linear_coefficients():
    X, y = data()
    free = FSARegressor(3).fit(X, y)
    right = FSARegressor(3, constraints=Constraints(monotone={3: 1, 7: -1})).fit(X, y)
    assert np.allclose(right.coef_, free.coef_, atol=1e-4) and np.array_equal(
        right.support_, free.support_
    )
    wrong = FSARegressor(3, constraints=Constraints(monotone={3: -1}, bounds={7: (-0.5, 0.5)})).fit(
        X, y
    )
    assert wrong.coef_[3] <= 0 and wrong.coef_[7] >= -0.5 - 1e-12
    bounds = FSARegressor(3, constraints=Constraints(bounds={3: (None, 0), 7: (-0.5, 0.5)})).fit(
        X, y
    )
    assert np.array_equal(wrong.coef_, bounds.coef_)
    sparse = FSAClassifier(3, constraints=Constraints(monotone={3: 1, 7: 1})).fit(
        sp.csr_array(X), y > 0
    )
    assert sparse.coef_[0, 3] > 0 and sparse.coef_[0, 7] >= 0


def test_directions_on_every_path():
    """Names, groups, columns that may not come, "auto", paths, cross-validation, Poisson, ranking,
    compiled fits."""
    X, y = curved(0)
    frame = pd.DataFrame(X, columns=[f"c{j}" for j in range(12)])
    monotone = {"c3": -1, "c7": 1, "c9": 1}
    signs = np.array([monotone.get(name, 0) for name in frame])
    piecewise = {
        "response": PiecewiseLinear(4),
        "constraints": Constraints(exclude=["c0"], monotone=monotone),
    }

    def check(model):
        assert (
            not model.support_[0]
            and (
                np.diff(model.responses_[:, :, 0], axis=1) * signs[model.support_, None] >= 0
            ).all()
        )

    check(FSARegressor("auto", **piecewise).fit(frame, y))
    check(FSARegressorCV([2, 4], cv=3, **piecewise).fit(frame, y))
    check(FSAClassifierCV([2, 4], criterion="ebic", **piecewise).fit(frame, y > 0))
    check(FSARegressor(4, loss="poisson", **piecewise).fit(frame, np.round(np.exp(y / 3))))
    check(FSAClassifier(4, loss="huberised_hinge", **piecewise).fit(frame, y > 0))
    path = FSAPath(FSARegressor(**piecewise), [1, 3, 5]).fit(frame, y)
    for k in (1, 3, 5):
        check(path.get_estimator(k))
    piecewise["constraints"] = Constraints(np.arange(12) // 2, exclude=["c0"], monotone=monotone)
    check(FSARegressor(2, **piecewise).fit(frame, y))
    check(FSARanker(3, **piecewise).fit(frame, np.digitize(y, [-1, 0, 1])))
    large = np.random.default_rng(0).standard_normal((3000, 40))  # stored as codes
    found = FSARegressor(2, response="piecewise", constraints=Constraints(monotone={5: 1})).fit(
        large, large[:, 5] ** 2 + large[:, 5]
    )
    assert (np.diff(found.responses_[np.flatnonzero(found.support_) == 5][0, :, 0]) >= 0).all()


def test_directions_are_for_one_output():
    X, y = data()
    with pytest.raises(
        ValueError,
        match=r"monotone=\{3: 1\} is not available with several classes or outputs; use None",
    ):
        FSAClassifier(3, constraints=Constraints(monotone={3: 1})).fit(X, np.digitize(y, [-1, 1]))
    with pytest.raises(ValueError, match="is not available with several classes or outputs"):
        FSARegressor(3, constraints=Constraints(monotone={3: 1})).fit(X, np.column_stack([y, y]))


@pytest.mark.parametrize(
    "constraints", [Constraints(bounds={1: (0, None)}), Constraints(monotone={3: -1})]
)
def test_bounds_that_do_not_bind_select_the_same_columns(constraints):
    right = 0
    for seed in range(10):
        rng = np.random.default_rng(seed)
        X = rng.standard_normal((300, 30))
        y = 2 * X[:, 1] - X[:, 3] + 0.5 * X[:, 4] + 0.3 * rng.standard_normal(300)
        right += FSARegressor(3, constraints=constraints).fit(X, y).get_support(
            indices=True
        ).tolist() == [1, 3, 4]
    assert right >= 9
