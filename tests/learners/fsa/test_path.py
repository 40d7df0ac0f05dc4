"""Paths and the choice of the size."""

import numpy as np
import pandas as pd
import pytest
from annealed.learners import (
    Constraints,
    FSAClassifier,
    FSAClassifierCV,
    FSAPath,
    FSARanker,
    FSARegressor,
    FSARegressorCV,
    Refinement,
)
from annealed.learners.fsa import fit as fit_module
from annealed.learners.fsa.policy import keeps_swaps
from annealed.learners.model_selection.size import default_sizes, ebic
from annealed.learners.objective.regression_losses import QuantileLoss
from annealed.learners.solvers.annealing import anneal
from sklearn import config_context
from sklearn.linear_model import LogisticRegression
from sklearn.model_selection import GroupKFold, KFold, cross_validate


def problem(n=300, m=60, seed=0, noise=1.0):
    rng = np.random.default_rng(seed)
    X = rng.standard_normal((n, m))
    return X, X[:, [3, 7, 11, 20]] @ [2.0, -2.0, 1.5, 1.5] + noise * rng.standard_normal(n)


def test_sizes_supports_and_models_agree():
    X, y = problem()
    path = FSAPath(FSARegressor(refinement=Refinement(ridge=0.0)), sizes=[2, 4, 9, 4]).fit(X, y)
    assert path.sizes_.tolist() == [2, 4, 9]
    assert path.supports_.sum(axis=1).tolist() == [2, 4, 9]
    assert (np.diff(path.losses_) < 0).all()
    for row, k in zip(path.supports_, path.sizes_):
        model = path.get_estimator(k)
        assert np.array_equal(model.support_, row) and model.n_features_to_select == k
        rest = LinearRegressionOn(X, y, row)
        assert np.allclose(model.predict(X), rest, atol=1e-2)
    assert path.best_size_ == 4
    assert np.flatnonzero(path.supports_[1]).tolist() == [3, 7, 11, 20]
    with pytest.raises(ValueError, match=r"k=5 is not on the path; expected one of \[2, 4, 9\]"):
        path.get_estimator(5)


def LinearRegressionOn(X, y, support):
    Z = np.column_stack([X[:, support], np.ones(len(X))])
    return Z @ np.linalg.lstsq(Z, y, rcond=None)[0]


def test_swap_makes_the_path_as_good_as_single_fits():
    X, y = problem(150, 100, seed=3)
    path = FSAPath(FSARegressor(refinement=Refinement(exchange=True)), sizes=range(1, 11)).fit(X, y)
    for k, loss in zip(path.sizes_, path.losses_):
        alone = FSAPath(FSARegressor(), sizes=[k]).fit(X, y).losses_[0]
        assert loss <= alone * 1.05


@pytest.mark.parametrize("response", ["linear", "piecewise"])
def test_path_for_every_kind_of_estimator(response):
    X, y = problem()
    for model, target, extra in (
        (FSAClassifier(response=response), np.where(y > 0, "up", "down"), {}),
        (
            FSAClassifier(response=response, loss="lorenz"),
            np.digitize(y, [-1, 1]),
            {"sample_weight": np.ones(300)},
        ),
        (FSARanker(response=response), np.round(y), {"qid": np.arange(300) // 30}),
    ):
        path = FSAPath(model, sizes=[1, 4, 8], trajectory=True).fit(X, target, **extra)
        assert set(np.flatnonzero(path.supports_[1])) >= {3, 7}
        assert len(path.trajectory_) == len(path.loss_curve_)
        counts = [len(kept) for kept, _ in path.trajectory_]
        assert counts[-1] == 1 and {8, 4, 1} <= set(counts) and (np.diff(counts) <= 0).all()
        if isinstance(model, FSAClassifier):
            assert path.score_path(X, target)[1] > 0.7


def test_path_names_groups_and_errors():
    X, y = problem()
    frame = pd.DataFrame(X, columns=[f"f{j}" for j in range(60)])
    path = FSAPath(FSARegressor(), sizes=[4]).fit(frame, y)
    assert list(path.get_estimator(4).get_feature_names_out()) == ["f3", "f7", "f11", "f20"]
    grouped = FSAPath(
        FSARegressor(constraints=Constraints(groups=np.arange(60) // 2)), sizes=[3, 100]
    ).fit(X, y)
    assert grouped.sizes_.tolist() == [3, 30] and grouped.supports_.sum(axis=1).tolist() == [6, 60]
    for bad in ([], [-1], [1.5], "all", [[1]]):
        with pytest.raises(ValueError, match="expected 'auto' or integers >= 0"):
            FSAPath(FSARegressor(), sizes=bad).fit(X, y)
    with pytest.raises(ValueError, match="expected FSAClassifier, FSARegressor or FSARanker"):
        FSAPath(LogisticRegression()).fit(X, y > 0)


def test_ebic_by_hand():
    # n = 100, k = 2 of 10: C(10, 2) = 45 ways
    assert ebic(0.5, 100, 2, 10, 2, unknown_dispersion=False) == pytest.approx(
        100 + 2 * np.log(100) + 2 * np.log(45)
    )
    assert ebic(0.25, 100, 2, 10, 2, unknown_dispersion=True) == pytest.approx(
        100 * np.log(0.5) + 2 * np.log(100) + 2 * np.log(45)
    )
    assert default_sizes(5, 1000).tolist() == [1, 2, 3, 4, 5]
    assert default_sizes(10**6, 10**6)[-1] == 300


def test_cross_validation_equals_its_definition():
    X, y = problem(200, 30)
    folds = KFold(4, shuffle=True, random_state=0)
    sizes = np.array([1, 2, 4, 8, 16])
    model = FSARegressorCV(sizes, cv=folds, scoring="neg_mean_absolute_error").fit(X, y)
    scores = np.empty((4, 5))
    for fold, (train, test) in enumerate(folds.split(X)):
        path = FSAPath(FSARegressor(), sizes).fit(X[train], y[train])
        scores[fold] = [
            -np.abs(path.get_estimator(k).predict(X[test]) - y[test]).mean() for k in sizes
        ]
    assert np.allclose(model.cv_scores_, scores)
    assert model.n_features_ == sizes[scores.mean(axis=0).argmax()]
    assert np.array_equal(model.coef_, FSARegressor(model.n_features_).fit(X, y).coef_)


def test_one_standard_error_chooses_no_more():
    X, y = problem(200, 30)
    best = FSAClassifierCV(cv=4).fit(X, y > 0)
    sparse = FSAClassifierCV(cv=4, rule="one_se").fit(X, y > 0)
    assert sparse.n_features_ <= best.n_features_
    assert best.support_.sum() == best.n_features_
    X, y = problem(300, 30)  # rows enough for the criterion to choose
    assert (
        FSAClassifierCV(criterion="ebic").fit(X, y > 0).n_features_
        == FSAClassifier("auto").fit(X, y > 0).support_.sum()
    )


def test_cv_errors_in_one_line():
    X, y = problem(40, 25)
    for parameters, message in (
        ({"criterion": "aic"}, "criterion='aic' is unknown"),
        ({"rule": "two_se"}, "rule='two_se' is unknown"),
        ({"sizes": [-1]}, "sizes="),
        ({"loss": "hinge"}, "loss='hinge'"),
    ):
        with pytest.raises(ValueError, match=message) as caught:
            FSARegressorCV(**parameters).fit(X, y)
        assert "\n" not in str(caught.value)


def test_splitters_pass_through():
    X, y = problem(90, 25)
    subject = np.arange(90) // 10
    splits = list(GroupKFold(3).split(X, y, subject))
    assert FSARegressorCV([2, 4], cv=splits).fit(X, y).cv_scores_.shape == (3, 2)


def test_a_path_costs_little_more_than_a_fit(monkeypatch):
    """One annealing run serves all sizes: what it reads, in columns, is little more than what one
    fit reads."""
    X, y = problem(300, 1000)
    read = []

    def counted(design, y, loss, counts, **settings):
        read.append(design.n_features + int(np.sum(counts)))
        return anneal(design, y, loss, counts, **settings)

    monkeypatch.setattr(fit_module, "anneal", counted)
    FSARegressor(20, refinement=Refinement(exchange=False)).fit(X, y)
    FSAPath(FSARegressor(refinement=Refinement(exchange=False)), sizes=range(1, 21)).fit(X, y)
    fit, path = read  # one run each
    assert path < 1.5 * fit


@pytest.mark.parametrize("response", ["linear", "piecewise"])
def test_auto_selects_nothing_where_no_column_says_anything(response):
    rng = np.random.default_rng(0)
    X, y = rng.standard_normal((400, 30)), rng.standard_normal(400)
    for model, target in (
        (FSAClassifier, y > 0),
        (FSARegressor, y),
        (FSAClassifier, np.digitize(y, [-0.5, 0.5])),
    ):
        fitted = model("auto", response=response).fit(X, target)
        assert not fitted.support_.any() and fitted.alternatives_ == {}
        assert len(np.unique(fitted.predict(X))) == 1
        with pytest.warns(UserWarning, match="No features were selected"):
            assert fitted.transform(X).shape == (400, 0)
    assert FSARegressor("auto", response=response, constraints=Constraints(include=[3])).fit(
        X, y
    ).get_support(indices=True).tolist() == [3]


def test_with_few_rows_held_out_rows_may_speak_against_the_criterion():
    rng = np.random.default_rng(0)
    X, noise = rng.standard_normal((60, 200)), rng.standard_normal(60)
    sizes = [
        FSAClassifier("auto").fit(X, rng.permutation(noise > 0)).support_.sum() for _ in range(5)
    ]
    assert max(sizes) <= 1


def correlated(seed, n=90, m=80):
    """Columns that share a few factors, which carry a weak signal."""
    rng = np.random.default_rng(seed)
    factors = rng.standard_normal((n + 2000, 5))
    X = factors @ rng.standard_normal((5, m)) + rng.standard_normal((n + 2000, m))
    y = factors.sum(axis=1) + 2.0 * rng.standard_normal(n + 2000)
    return X[:n], y[:n], X[n:], y[n:]


def test_with_few_rows_held_out_rows_choose_between_exchanges_and_shrinkage():
    errors = []
    for seed in range(4):
        X, y, X_new, y_new = correlated(seed)
        chosen = FSARegressor(10, refinement=Refinement(exchange="cv"))
        models = [
            chosen,
            FSARegressor(10, refinement=Refinement(exchange=True)),
            FSARegressor("auto"),
        ]
        errors.append([np.mean((model.fit(X, y).predict(X_new) - y_new) ** 2) for model in models])
        assert chosen.refinement_.startswith(
            "3-fold cross-validation chose shrinkage: no exchanges, ridge 0.1"
        )
    chosen, exchanged, automatic = np.mean(errors, axis=0)
    assert chosen < 0.85 * exchanged and automatic < 0.85 * exchanged
    X, y = problem(n=100, seed=1)
    # a few clear columns are found in any case
    for refinement in ("auto", Refinement(exchange="cv")):
        found = FSARegressor(4, refinement=refinement).fit(X, y)
        assert found.get_support(indices=True).tolist() == [3, 7, 11, 20]
    found = set(FSARegressor("auto").fit(X, y).get_support(indices=True))
    assert found >= {3, 7, 11, 20} and len(found) <= 6


@pytest.mark.parametrize("k", [20, 40])
def test_with_hundreds_of_rows_exchanges_have_to_gain_more_than_chance(k):
    def errors_of(X, y, X_new, y_new):
        fits = [
            FSARegressor(k, refinement=how).fit(X, y)
            for how in ("auto", Refinement(True), Refinement(False))
        ]
        return fits[0], [np.mean((fit.predict(X_new) - y_new) ** 2) for fit in fits]

    doubted, (model, exchanged, _) = errors_of(*correlated(k, n=400, m=300))
    assert (
        doubted.refinement_.startswith("no exchanges")
        and model < 0.9 * exchanged
        and doubted.alternatives_
    )
    rng = np.random.default_rng(k)
    X = rng.standard_normal((2400, 300)) + rng.standard_normal((2400, 1))
    y = X[:, ::20] @ np.resize([1.0, -1.0], 15) + rng.standard_normal(2400)
    sure, (model, exchanged, left) = errors_of(X[:400], y[:400], X[400:], y[400:])
    assert (
        sure.refinement_.startswith("exchanges")
        and model == exchanged < 0.5 * left
        and sure.support_[::20].all()
    )


def test_held_out_rows_choose_a_given_size_of_two_classes_with_hundreds_of_rows():
    errors = []
    for seed in range(3):
        X, y, X_new, y_new = correlated(seed, n=400)
        models = [
            FSAClassifier(15, refinement=how).fit(X, y > 0) for how in (Refinement("cv"), "auto")
        ]
        errors.append([np.mean(model.predict(X_new) != (y_new > 0)) for model in models])
        assert models[0].refinement_.startswith("3-fold cross-validation chose shrinkage")
        assert models[1].refinement_.startswith("exchanges")
    chosen, plain = np.mean(errors, axis=0)
    assert chosen < plain


def test_classes_of_four_rows_are_held_out_in_four_folds():
    rng = np.random.default_rng(0)
    y, rows = np.repeat(np.arange(6), 4), np.arange(24)
    X = rng.standard_normal((24, 80))
    X[rows, y] += 4.0
    X[rows, 6 + y] += 4.0
    model = FSAClassifier("auto").fit(X, y)  # the criterion stops at one
    assert model.support_.sum() >= 6 and np.array_equal(model.predict(X), y)


def test_without_columns_the_best_constant_of_the_loss_is_left():
    rng = np.random.default_rng(0)
    X, y = rng.standard_normal((500, 20)), rng.standard_normal(500)
    upper = FSARegressor("auto", loss=QuantileLoss(0.9)).fit(X, y)
    assert not upper.support_.any() and upper.predict(X[:1])[0] == pytest.approx(
        np.quantile(y, 0.9), abs=0.1
    )


@pytest.mark.parametrize("family", [FSAClassifierCV, FSARegressorCV])
def test_groups_of_rows_are_routed_to_the_choice_of_the_size(family):
    X, y = problem(120, 25)
    target = y > 0 if family is FSAClassifierCV else y
    groups = np.repeat(np.arange(12), 10)
    seen = []

    class Recorded(GroupKFold):
        def split(self, X, y=None, groups=None):
            seen.append(None if groups is None else set(np.asarray(groups)))
            return super().split(X, y, groups)

    with config_context(enable_metadata_routing=True):
        model = family(sizes=[1, 4], cv=Recorded(2)).set_fit_request(groups=True)
        scores = cross_validate(model, X, target, cv=GroupKFold(3), params={"groups": groups})[
            "test_score"
        ]
    assert len(scores) == 3 and all(len(part) == 8 for part in seen) and len(seen) == 3


@pytest.mark.parametrize("size", [6, "auto"])
@pytest.mark.parametrize("classes", [0, 2, 3])
def test_folds_of_few_rows_know_neither_the_order_nor_repetitions(size, classes):
    rng = np.random.default_rng(classes)
    X = rng.standard_normal((60, 80))
    y = X[:, :6].sum(axis=1) + rng.standard_normal(60)
    y = np.argsort(np.argsort(y)) * classes // 60 if classes else y
    make = FSAClassifier if classes else FSARegressor
    weight = rng.integers(0, 3, 60)
    order, copies = rng.permutation(60), rng.permutation(np.repeat(np.arange(60), weight))
    plain, turned = make(size).fit(X, y), make(size).fit(X[order], y[order])
    np.testing.assert_array_equal(plain.support_, turned.support_)
    np.testing.assert_allclose(plain.coef_, turned.coef_, rtol=1e-6, atol=1e-9)
    weighted, repeated = (
        make(size).fit(X, y, sample_weight=weight),
        make(size).fit(X[copies], y[copies]),
    )
    np.testing.assert_array_equal(weighted.support_, repeated.support_)
    np.testing.assert_allclose(weighted.coef_, repeated.coef_, rtol=1e-6, atol=1e-9)


@pytest.mark.parametrize("response", ["linear", "piecewise"])
def test_size_zero_is_the_best_constant(response):
    X, y = problem()
    with_zero = FSAPath(FSARegressor(response=response), sizes=[0, 2, 5]).fit(X, y)
    without = FSAPath(FSARegressor(response=response), sizes=[2, 5]).fit(X, y)
    assert with_zero.sizes_.tolist() == [0, 2, 5] and with_zero.supports_.sum(axis=1).tolist() == [
        0,
        2,
        5,
    ]
    constant = with_zero.get_estimator(0)
    assert (
        np.allclose(constant.predict(X), y.mean()) and constant.refinement_ == "the best constant"
    )
    assert with_zero.losses_[0] == pytest.approx(0.5)  # of targets of variance one
    for k in (2, 5):
        assert np.array_equal(
            with_zero.get_estimator(k).predict(X), without.get_estimator(k).predict(X)
        )
    assert np.allclose(
        with_zero.score_path(X, y), [constant.score(X, y), *without.score_path(X, y)]
    )


def test_size_zero_of_classes_is_their_share():
    X, y = problem()
    for target in (y > 1.0, np.digitize(y, [-1, 1])):
        path = FSAPath(FSAClassifier(loss="logistic"), sizes=[0, 3]).fit(X, target)
        share = np.unique(target, return_counts=True)[1] / len(target)
        assert np.allclose(path.get_estimator(0).predict_proba(X[:2]), share, atol=1e-5)
    assert FSAPath(FSAClassifier(), sizes=[0]).fit(X, y > 0).supports_.sum() == 0
    included = FSAPath(FSARegressor(constraints=Constraints(include=[1, 2])), sizes=[0, 1]).fit(
        X, y
    )
    assert included.sizes_.tolist() == [0, 2]


def test_the_refinement_says_what_it_did():
    X, y = problem()
    assert FSARegressor(4, refinement=None).fit(X, y).refinement_ == "annealing alone"
    assert FSARegressor(4).fit(X, y).refinement_.startswith("exchanges, ridge ")
    assert FSARegressor(4).fit(X, y).refinement_.endswith("by generalised cross-validation")
    assert (
        FSARegressor(4, refinement=Refinement(exchange=False, ridge=0.5)).fit(X, y).refinement_
        == "no exchanges, ridge 0.5"
    )
    assert (
        FSAClassifier(4, loss="logistic").fit(X, y > 0).refinement_.startswith("exchanges, ridge ")
    )
    several = FSAClassifier(4).fit(X, np.digitize(y, [-1, 1]))
    assert several.refinement_.startswith("exchanges, ridge ") and several.refinement_.endswith(
        "approximate leave-one-out"
    )
    rng = np.random.default_rng(0)
    flipped = np.where(rng.random(300) < 0.1, y <= 0, y > 0)
    assert (
        FSAClassifier(4)
        .fit(X, flipped)
        .refinement_.startswith("exchanges and the longer search, ridge ")
    )
    few = FSARegressor(20).fit(X[:50], y[:50])
    assert few.refinement_.startswith("no exchanges, ridge ") and few.refinement_.endswith(
        "; 50 rows support 10 coefficients"
    )
    by_criterion = FSARegressor("auto").fit(X, y).refinement_
    assert by_criterion.startswith(
        "size 4 by the extended Bayesian information criterion: exchanges, ridge "
    )
    by_folds = FSARegressor("auto").fit(X[:60], y[:60])
    assert by_folds.refinement_.startswith(
        f"size {by_folds.support_.sum()} by 5-fold cross-validation: "
    )
    assert "support" not in by_folds.refinement_  # the folds have decided, not the number of rows
    noise = FSARegressor("auto").fit(X, rng.standard_normal(300))
    assert (
        noise.refinement_
        == "size 0 by the extended Bayesian information criterion: the best constant"
    )
    gradient = FSARegressor(4, loss=QuantileLoss(0.5)).fit(X, y)
    assert gradient.refinement_.startswith(
        ("gradient steps with ridge", "exchanges", "no exchanges")
    )


def test_cross_validation_of_the_refinement_is_left_out_where_rows_are_enough():
    X, y = problem(1100)
    asked, plain = (
        FSARegressor(4, refinement=Refinement(exchange="cv")).fit(X, y),
        FSARegressor(4).fit(X, y),
    )
    assert np.array_equal(asked.coef_, plain.coef_) and asked.refinement_ == plain.refinement_
    labels = y[:120] > 0
    few = FSAClassifier(3, refinement=Refinement(exchange="cv")).fit(X[:120], labels)
    assert few.refinement_.startswith("3-fold cross-validation chose ")
    again = FSAClassifier(3, refinement=Refinement(exchange="cv")).fit(X[:120][::-1], labels[::-1])
    assert again.refinement_ == few.refinement_ and np.array_equal(again.support_, few.support_)


@pytest.mark.parametrize("k, kept", [(30, True), (50, False)])
def test_with_a_strong_signal_exchanges_are_checked_below_seven_rows_per_column(k, kept):
    X, y = problem(260, 100)
    facts = FSARegressor().encode(X, y).facts
    assert keeps_swaps(facts, k, k, gain=0.0, residual=0.05) == kept
    assert keeps_swaps(facts, k, k, gain=1e6, residual=0.05)


@pytest.mark.parametrize("refinement", [None, "auto"])
def test_criterion_is_known_at_every_size(refinement):
    rng = np.random.default_rng(0)
    X = rng.standard_normal((200, 20))
    model = FSARegressor(refinement=refinement)
    y = X[:, 3] - X[:, 7] + 0.5 * rng.standard_normal(200)
    path = FSAPath(model, sizes=[0, 1, 2, 5]).fit(X, y)
    assert np.isfinite(path.ebic_).all() and path.best_size_ == 2
    assert FSAPath(model, sizes=[0, 1, 2, 5]).fit(X, rng.standard_normal(200)).best_size_ == 0
    assert np.isfinite(FSAPath(model, sizes=[2]).fit(X, y).ebic_).all()
    chosen = FSARegressorCV([0, 2, 5], criterion="ebic", refinement=refinement).fit(X, y)
    assert chosen.n_features_ == 2
