"""What the options of the FSA estimators do: variants, ranking, parameters and refusals."""

import inspect
import itertools
from dataclasses import replace

import numpy as np
import pandas as pd
import pytest
import scipy.sparse as sp
from annealed.learners import (
    Constraints,
    FSAClassifier,
    FSAClassifierCV,
    FSAPath,
    FSARanker,
    FSARegressor,
    FSARegressorCV,
    LogisticLoss,
    Loss,
    MarginLoss,
    PiecewiseLinear,
    Prior,
    Refinement,
    Schedule,
)
from annealed.learners.designs.sparse import SparseDesign
from annealed.learners.fsa import policy
from annealed.learners.fsa.policy import Facts, decide
from annealed.learners.fsa.problem import varying_columns
from annealed.learners.objective.losses import HingeLoss, SquaredLoss
from annealed.learners.objective.pairwise import graded_pairs
from sklearn.base import BaseEstimator, clone
from sklearn.impute import SimpleImputer
from sklearn.linear_model import LogisticRegression
from sklearn.model_selection import GridSearchCV
from sklearn.pipeline import make_pipeline
from small_problems import classes, problem, words

# -- variants --------------------------------------------------------------------------------------


def test_groups_stay_or_fall_together():
    X, y = problem(300)
    # the informative columns 3, 7, 11 lie in g01, g02, g03
    groups = np.repeat([f"g{j:02d}" for j in range(10)], 3)
    order = np.random.default_rng(0).permutation(30)
    model = FSARegressor(3, constraints=Constraints(groups=groups[order])).fit(X[:, order], y)
    assert set(groups[order][model.support_]) == {"g01", "g02", "g03"}
    assert model.support_.sum() == 9
    assert model.score(X[:, order], y) > 0.9
    assert (
        FSARegressor("auto", constraints=Constraints(groups=groups)).fit(X, y).support_.sum() == 9
    )
    with pytest.raises(
        ValueError, match=r"groups has shape \(3,\); expected one label for each of the 30 features"
    ):
        FSARegressor(3, constraints=Constraints(groups=[1, 2, 3])).fit(X, y)


def test_groups_with_ties_keep_exactly_k():
    X = np.zeros((40, 12))
    X[:, 9] = np.arange(40)
    model = FSARegressor(
        3, constraints=Constraints(groups=np.repeat([5, 2, 8, 1], 3)), schedule=Schedule(n_steps=20)
    ).fit(X, X[:, 9])
    assert model.support_.sum() == 9 and model.support_[9]


class Huber(Loss):
    """A loss of the user's own for regression."""

    def value(self, y, scores, sample_weight):
        d = np.abs(scores - y)
        return float(sample_weight @ np.where(d < 0.5, d**2 / 2, 0.5 * (d - 0.25)).sum(axis=1))

    def gradient(self, y, scores, sample_weight):
        return np.clip(scores - y, -0.5, 0.5) * sample_weight[:, None]


class Exponential(MarginLoss):
    """A binary loss of the user's own: AdaBoost's."""

    max_curvature = 5.0

    def margin_value(self, u):
        return np.exp(-u)

    def margin_slope(self, u):
        return -np.exp(-u)

    def margin_curvature(self, u):
        return np.exp(-u)


def test_a_loss_of_ones_own():
    X, y = problem()
    outliers = y + 10 * (np.arange(200) % 25 == 0)
    assert list(
        FSARegressor(3, loss=Huber(), schedule=Schedule(n_steps=200))
        .fit(X, outliers)
        .get_support(indices=True)
    ) == [
        3,
        7,
        11,
    ]
    assert list(FSAClassifier(3, loss=Exponential()).fit(X, y > 0).get_support(indices=True)) == [
        3,
        7,
        11,
    ]
    X, label = classes()
    assert list(FSAClassifier(2, loss=Exponential()).fit(X, label).get_support(indices=True)) == [
        4,
        9,
    ]


def test_piecewise_finds_what_linear_cannot():
    rng = np.random.default_rng(0)
    X = rng.standard_normal((600, 20))
    y = np.abs(X[:, 6]) + np.abs(X[:, 13]) > 1.5
    assert FSAClassifier(2).fit(X, y).score(X, y) < 0.7
    for bins in ("range", "quantile"):
        model = FSAClassifier(2, response=PiecewiseLinear(8, bins)).fit(X, y)
        assert list(model.get_support(indices=True)) == [6, 13]
        assert model.score(X, y) > 0.9
        assert model.responses_.shape == (2, 9, 1) and (np.diff(model.knots_, axis=1) > 0).all()


def test_missing_values_have_a_response_of_their_own():
    rng = np.random.default_rng(0)
    X = rng.standard_normal((500, 20))
    y = 2 * X[:, 6] + 0.1 * rng.standard_normal(500)
    gone = rng.random(500) < 0.2
    y[gone] = 5.0  # missingness itself tells
    X[gone, 6] = np.nan
    X[rng.random((500, 20)) < 0.05] = np.nan
    model = FSARegressor(1, response="piecewise").fit(X, y)
    assert list(model.get_support(indices=True)) == [6]
    at_nan = model.predict(np.where(np.arange(20) == 6, np.nan, 0.0)[None])
    assert at_nan == pytest.approx(y[np.isnan(X[:, 6])].mean(), abs=0.3)


def test_nan_first_met_at_prediction_gets_the_mean_response():
    X, y = problem()
    model = FSARegressor(2, response="piecewise").fit(X, y)
    chosen = model.get_support(indices=True)
    row = X[:1].copy()
    row[0, chosen] = np.nan
    assert model.predict(row)[0] == pytest.approx(model.predict(X).mean(), abs=1e-2)


def test_quantile_knots_on_many_equal_values():
    X = np.random.default_rng(0).poisson(0.3, (400, 15)).astype(float)
    y = X[:, 2] + X[:, 5]
    model = FSARegressor(2, response=PiecewiseLinear(4, "quantile")).fit(X, y)
    assert list(model.get_support(indices=True)) == [2, 5]
    assert (np.diff(model.knots_, axis=1) > 0).all()
    assert model.score(X, y) > 0.99


def test_warm_start_goes_on_from_the_last_fit():
    X, y = problem(400, 60)
    cold = FSAClassifier(3, refinement=None, schedule=Schedule(n_steps=60)).fit(X, y > 0)
    warm = FSAClassifier(3, refinement=None, schedule=Schedule(n_steps=60), warm_start=True).fit(
        X, y > 0
    )
    assert np.array_equal(cold.coef_, warm.coef_)
    warm.fit(X, y > 0)
    assert warm.loss_curve_[0] < cold.loss_curve_[0] - 0.1  # starts where the first ended
    assert np.array_equal(cold.support_, warm.support_)
    warm.set_params(n_features_to_select=4).fit(X[:, :40], y > 0)
    assert warm.support_.sum() == 4


def test_automatic_size_finds_the_true_one():
    rng = np.random.default_rng(5)
    X = rng.standard_normal((300, 100))
    score = X[:, :6] @ [2, -2, 2, -2, 2, -2]
    for model, y in (
        (FSARegressor("auto"), score + rng.standard_normal(300)),
        (FSAClassifier("auto"), score > rng.logistic(size=300)),
    ):
        chosen = model.fit(X, y).support_
        assert chosen[:6].all() and chosen.sum() <= 7


def test_class_weight_equals_sample_weight():
    X, y = problem()
    label = y > 1
    by_class = FSAClassifier(3, class_weight={False: 1.0, True: 3.0}).fit(X, label)
    by_sample = FSAClassifier(3).fit(X, label, sample_weight=1.0 + 2.0 * label)
    assert np.array_equal(by_class.coef_, by_sample.coef_)


# -- ranking ---------------------------------------------------------------------------------------


def test_queries_equal_their_pairs():
    X, y = problem(90)
    grade, qid = np.digitize(y, [-1, 0, 1]), np.repeat(np.arange(9), 10)
    ij = graded_pairs(grade, qid)
    assert all(qid[i] == qid[j] and grade[i] > grade[j] for i, j in ij)
    assert len(ij) == sum((g[:, None] > g[None]).sum() for g in grade.reshape(9, 10))
    by_query = FSARanker(3).fit(X, grade, qid=qid)
    by_pair = FSARanker(3).fit(X, pairs=np.column_stack([ij, np.ones(len(ij))]))
    flipped = FSARanker(3).fit(X, pairs=np.column_stack([ij[:, ::-1], np.zeros(len(ij))]))
    assert np.allclose(by_query.coef_, by_pair.coef_) and np.allclose(by_query.coef_, flipped.coef_)
    assert np.corrcoef(by_query.predict(X), y)[0, 1] > 0.9  # greater is better
    shuffled = np.random.default_rng(0).permutation(90)
    again = FSARanker(3).fit(X[shuffled], grade[shuffled], qid=qid[shuffled])
    assert np.allclose(by_query.coef_, again.coef_, atol=1e-6)


def test_pair_weight_is_the_product_of_its_items():
    X, y = problem(60)
    ij = graded_pairs(np.round(y))
    weight = np.random.default_rng(0).integers(0, 3, 60)
    copies = np.repeat(np.arange(len(ij)), weight[ij[:, 0]] * weight[ij[:, 1]])
    repeated = FSARanker(2, refinement=None).fit(
        X, pairs=np.column_stack([ij[copies], np.ones(len(copies))])
    )
    weighted = FSARanker(2, refinement=None).fit(X, np.round(y), sample_weight=weight)
    assert np.array_equal(weighted.support_, repeated.support_)


@pytest.mark.parametrize(
    "arguments, message",
    [
        ({"pairs": [[0, 1]]}, r"pairs has shape \(1, 2\); expected \(n_pairs, 3\)"),
        (
            {"pairs": [[0, 99, 1]]},
            r"pairs contains invalid entries; expected row numbers from 0 to 29",
        ),
        ({"pairs": [[0, 1, 2]]}, r"r in \[0, 1\]"),
        ({"y": np.zeros(30)}, "every query has the same grade for all its items"),
        (
            {"y": np.arange(30), "qid": [1, 2]},
            "qid has 2 entries; expected one for each of the 30 rows",
        ),
        (
            {"y": np.arange(30), "sample_weight": np.zeros(30)},
            "(sample_weight is zero|at least one non-zero)",
        ),
    ],
)
def test_ranking_errors(arguments, message):
    X, _ = problem(30)
    with pytest.raises(ValueError, match=message) as caught:
        FSARanker(2).fit(X, **arguments)
    assert "\n" not in str(caught.value)


# -- parameters ------------------------------------------------------------------------------------

SHARED = {
    "n_features_to_select",
    "loss",
    "response",
    "constraints",
    "prior",
    "scaling",
    "schedule",
    "learning_rate",
    "momentum",
    "refinement",
    "fit_intercept",
    "warm_start",
    "random_state",
    "n_jobs",
    "verbose",
}


def test_parameters():
    search = {"sizes", "cv", "scoring", "criterion", "rule"}
    assert (
        set(FSAClassifier().get_params(deep=False)) == SHARED | {"class_weight"}
        and len(SHARED) == 15
    )
    assert set(FSARegressor().get_params(deep=False)) == SHARED
    assert set(FSARanker().get_params(deep=False)) == SHARED - {"fit_intercept"}
    assert (
        set(FSAClassifierCV().get_params(deep=False))
        == SHARED - {"n_features_to_select"} | {"class_weight"} | search
    )
    assert (
        set(FSARegressorCV().get_params(deep=False)) == SHARED - {"n_features_to_select"} | search
    )
    assert FSAClassifierCV().n_features_to_select == "auto" and "n_features_to_select" not in vars(
        FSAClassifierCV()
    )
    assert FSAClassifier(3, class_weight="balanced").get_params()["n_features_to_select"] == 3
    assert FSARegressorCV([1, 2], rule="one_se").get_params()["sizes"] == [1, 2]
    for wrong in (
        lambda: FSARegressor(class_weight="balanced"),
        lambda: FSARanker(fit_intercept=True),
        lambda: FSAClassifierCV(n_features_to_select=3),
        lambda: FSAClassifier(mu=3.0),
    ):
        with pytest.raises(TypeError):
            wrong()


def test_a_subclass_keeps_the_parameters():
    class Same(FSAClassifier):
        pass

    class Titled(FSAClassifier):
        def __init__(self, n_features_to_select=3, *, title="", loss="logistic"):
            super().__init__(n_features_to_select, loss=loss)
            self.title = title

    X, y = problem()
    assert set(clone(Same(2, loss="lorenz")).get_params()) == SHARED | {"class_weight"}
    assert clone(Same(2, loss="lorenz")).loss == "lorenz"
    model = clone(Titled(2, title="t", loss="lorenz"))
    assert model.get_params() == {"n_features_to_select": 2, "title": "t", "loss": "lorenz"}
    assert np.array_equal(
        model.fit(X, y > 0).coef_, FSAClassifier(2, loss="lorenz").fit(X, y > 0).coef_
    )


def test_defaults_that_differ():
    X, y = problem(200)
    for kind, target, mu, momentum, n_bins in (
        (FSAClassifier, y > 0, 100.0, 0.0, 6),
        (FSARegressor, y, 30.0, 0.9, 6),
        (FSARanker, np.round(y), 100.0, 0.0, 4),
    ):
        named = kind(3, response="piecewise", refinement=None).fit(X, target)
        spelt = kind(
            3,
            response=PiecewiseLinear(n_bins),
            schedule=Schedule(mu=mu),
            momentum=momentum,
            refinement=None,
        ).fit(X, target)
        np.testing.assert_array_equal(named.responses_, spelt.responses_)
        assert np.array_equal(
            kind(3, schedule=Schedule()).fit(X, target).coef_, kind(3).fit(X, target).coef_
        )


def test_objects_in_grids():
    X, y = problem(200)
    grid = {"schedule__mu": [1.0, 100.0], "response__n_bins": [2, 4]}
    model = FSAClassifier(3, schedule=Schedule(n_steps=20), response=PiecewiseLinear())
    search = GridSearchCV(model, grid, cv=2).fit(X, y > 0)
    assert set(search.best_params_) == set(grid)
    assert (
        model.schedule.mu == "auto"
        and search.best_estimator_.knots_.shape[1] == search.best_params_["response__n_bins"] + 1
    )


def test_annealing_ends_when_k_is_reached():
    X, y = problem(200)
    assert FSAClassifier(3).fit(X, y > 0).n_iter_ <= 50
    assert FSAClassifier(3, refinement=None).fit(X, y > 0).n_iter_ == 100


# -- errors ----------------------------------------------------------------------------------------

BAD = [
    ("n_features_to_select", 0),
    ("n_features_to_select", 1.5),
    ("n_features_to_select", "many"),
    ("n_features_to_select", True),
    ("loss", "hinge"),
    ("loss", 3),
    ("response", "cubic"),
    ("response", PiecewiseLinear(0)),
    ("response", PiecewiseLinear(127)),
    ("response", PiecewiseLinear(bins="uniform")),
    ("constraints", [1]),
    ("constraints", Constraints(groups=[1])),
    ("constraints", Constraints(include=[30])),
    ("constraints", Constraints(bounds=(1, 2))),
    ("prior", 0.1),
    ("prior", Prior(shrinkage=-1)),
    ("prior", Prior(huber=0)),
    ("schedule", "cosine"),
    ("schedule", 5),
    ("schedule", lambda m, k, n: np.full(n, m)),
    ("schedule", Schedule(mu=-1)),
    ("schedule", Schedule(mu=np.nan)),
    ("schedule", Schedule(kind="cosine")),
    ("schedule", Schedule(n_steps=0)),
    ("schedule", Schedule(n_steps=2.5)),
    ("learning_rate", "fast"),
    ("learning_rate", 0),
    ("momentum", 1.0),
    ("scaling", "unit_variance"),
    ("refinement", "shine"),
    ("refinement", True),
    ("refinement", Refinement(exchange="swap")),
    ("refinement", Refinement(exchange=None)),
    ("refinement", Refinement(ridge=-1.0)),
    ("refinement", Refinement(ridge="none")),
    ("refinement", Refinement(ridge=True)),
    ("refinement", Refinement(search=True)),
    ("refinement", Refinement(discriminant="lda")),
    ("n_jobs", 0),
    ("random_state", "seed"),
]


@pytest.mark.parametrize(
    "name, value", BAD, ids=[f"{n}={getattr(v, '__name__', repr(v))}"[:40] for n, v in BAD]
)
def test_bad_parameters_in_one_line(name, value):
    X, y = problem(40)
    for model, target in ((FSAClassifier(2), y > 0), (FSARegressor(2), y), (FSARanker(2), y)):
        with pytest.raises(ValueError) as caught:
            model.set_params(**{name: value}).fit(X, target)
        assert "\n" not in str(caught.value)
        if name != "random_state":
            names = [name, *value.get_params()] if isinstance(value, BaseEstimator) else [name]
            assert any(one in str(caught.value) for one in names)


def test_bad_data_in_one_line():
    X, y = problem(40)
    with pytest.raises(
        ValueError, match=r"^y contains only one class \('a'\); a classifier needs at least two$"
    ):
        FSAClassifier(2).fit(X, ["a"] * 40)
    with pytest.raises(ValueError, match=r"sample_weight is zero|at least one non-zero"):
        FSARegressor(2).fit(X, y, sample_weight=np.zeros(40))
    X[5, 7] = np.nan
    for form in (np.asarray, sp.csr_array):
        with pytest.raises(
            ValueError,
            match=r"X contains (NaN|infinity) \(row 5, column 7\); response='linear' requires",
        ):
            FSAClassifier(2).fit(form(X), y > 0)
    frame = pd.DataFrame(X, columns=[f"f{j}" for j in range(30)])
    with pytest.raises(ValueError, match="column f7"):
        FSARegressor(2).fit(frame, y)


def test_scikit_learn_callbacks():
    callback = pytest.importorskip("sklearn.callback")
    X, y = problem()
    log = []

    class Watch:
        def setup(self, estimator, context):
            pass

        def on_fit_task_begin(self, estimator, context):
            pass

        def on_fit_task_end(self, estimator, context, *, fitted_estimator=None):
            if fitted_estimator is not None:
                log.append((fitted_estimator.support_.sum(), fitted_estimator.score(X, y > 0)))

        def teardown(self, estimator, context):
            log.append("end")

    assert isinstance(Watch(), callback.FitCallback)
    quiet = FSAClassifier(3).fit(X, y > 0)
    watched = FSAClassifier(3).set_callbacks(Watch()).fit(X, y > 0)
    assert np.array_equal(quiet.coef_, watched.coef_)
    assert log[-1] == "end" and log[-2][0] == 3 and len(log) == watched.n_iter_ + 1
    assert log[-2][1] > 0.8


def test_path_of_one_size_is_the_fit():
    X, y = problem()
    direct = FSARegressor(3).fit(X, y)
    assert np.array_equal(
        FSAPath(FSARegressor(), [3]).fit(X, y).get_estimator(3).coef_, direct.coef_
    )


def test_the_lists_of_the_constructors_agree():
    """They are written out in every class: one name has one default and one place."""
    lists = [
        {name: one.default for name, one in list(inspect.signature(kind).parameters.items())}
        for kind in (FSAClassifier, FSARegressor, FSARanker, FSAClassifierCV, FSARegressorCV)
    ]
    order = list(lists[0])
    for one in lists:
        shared = [name for name in one if name in lists[0]]
        assert shared == [name for name in order if name in one]
        assert all(one[name] == lists[0][name] for name in shared)


FACTS = Facts(
    SquaredLoss(),
    False,
    n_samples=1000,
    n_features=100,
    n_units=100,
    n_outputs=1,
    n_rows=1000.0,
    n_rarest=1000.0,
)
NO_CURVATURE, MANY = {"loss": HingeLoss()}, {"n_samples": 10**9}


@pytest.mark.parametrize(
    "refinement, facts, n_columns, expected",
    [
        (None, {}, 10, "none"),
        (Refinement(True), NO_CURVATURE, 10, "gradient"),
        (Refinement(True), NO_CURVATURE | {"bounded": True}, 10, "none"),
        (Refinement(True), MANY, 10, "exchange"),
        (Refinement(True), {"bounded": True}, 10, "newton"),
        (Refinement(), {}, 10, "exchange"),
        (Refinement("cv"), {}, 10, "exchange"),
        (Refinement(), {"n_rarest": 40.0}, 10, "newton"),
        (Refinement(False), {}, 10, "newton"),
        (Refinement(False), MANY, 10, "gradient"),
    ],
)
def test_how_a_size_is_refined(refinement, facts, n_columns, expected):
    plan = decide(
        replace(FACTS, **facts), FSARegressor(refinement=refinement).fit_settings(), n_columns
    )
    assert plan.refinement == expected


def test_the_plan_of_few_rows_says_why():
    settings = FSARegressor().fit_settings()
    plan = decide(replace(FACTS, n_rows=40.0, n_rarest=40.0), settings, 10)
    assert plan.few_rows and plan.annealing_ridge == policy.SMALL_SAMPLE_RIDGE_SQUARED
    assert plan.reasons == ("40 rows support 8 coefficients",)
    enough = decide(FACTS, settings, 10)
    assert not enough.few_rows and enough.annealing_ridge == 0.0 and enough.reasons == ()


@pytest.mark.parametrize("n_rarest, size_by", [(40.0, "folds"), (1000.0, "criterion")])
def test_what_chooses_the_size(n_rarest, size_by):
    facts = replace(FACTS, n_rarest=n_rarest)
    assert decide(facts, FSARegressor("auto").fit_settings()).size_by == size_by
    assert decide(facts, FSARegressor(3).fit_settings()).size_by == "user"
    assert (
        decide(replace(facts, out_of_core=True), FSARegressor("auto").fit_settings()).size_by
        == "criterion"
    )


def test_a_ranker_needs_a_loss_of_pairs():
    X, y = problem(40)
    with pytest.raises(
        ValueError,
        match=r"^loss=LogisticLoss\(\) does not compare rows; "
        r"expected 'auto', 'pairwise_logistic' or a pairwise loss",
    ):
        FSARanker(2, loss=LogisticLoss()).fit(X, y)


@pytest.mark.parametrize("family", [FSAClassifier, FSARegressor, FSAClassifierCV, FSARegressorCV])
def test_gaps_of_linear_models_are_filled_in_a_pipeline(family):
    rng = np.random.default_rng(0)
    X = rng.standard_normal((200, 12)) + 3.0
    y = X[:, 3] - X[:, 7] + 0.3 * rng.standard_normal(200)
    y = y if "Regressor" in family.__name__ else y > 0
    holes = np.where(rng.random(X.shape) < 0.1, np.nan, X)
    size = {"sizes": [1, 2, 4]} if "CV" in family.__name__ else {"n_features_to_select": 2}
    with pytest.raises(ValueError, match="fill the missing values with SimpleImputer"):
        family(**size).fit(holes, y)
    model = make_pipeline(SimpleImputer(strategy="median"), family(**size)).fit(holes, y)
    assert {3, 7} <= set(model[-1].get_support(indices=True))
    filled = np.where(np.isnan(holes), np.nanmedian(holes, axis=0), holes)
    plain = family(**size).fit(filled, y)
    assert np.array_equal(model[-1].coef_, plain.coef_) and np.array_equal(
        model.predict(holes), plain.predict(filled)
    )
    with pytest.raises(ValueError, match="fill the missing values with SimpleImputer"):
        plain.predict(holes)


def steps_of(n_classes, n_rows, schedule="inverse"):
    rng = np.random.default_rng(0)
    X, y = rng.standard_normal((n_rows, 8)), np.arange(n_rows) % n_classes
    return len(FSAClassifier(2, schedule=schedule, refinement=None).fit(X, y).loss_curve_)


def test_several_classes_with_rows_enough_are_annealed_longer():
    assert steps_of(3, 400) == 200
    assert steps_of(2, 400) == steps_of(3, 399) == 100
    assert (
        steps_of(3, 400, Schedule()) == 100
    )  # a schedule that is given as an object is taken as it is


# -- words ---------------------------------------------------------------------------------------


@pytest.mark.parametrize("k", [pytest.param(40, marks=pytest.mark.slow), 120])
def test_words_no_worse_than_the_l1_penalty_at_as_many(k):
    right, found = np.zeros(2), np.zeros(2)
    for seed in range(2):
        X, y, true = words(3000, seed=seed)
        train, test = slice(0, 2000), slice(2000, None)
        paths = (
            LogisticRegression(C=C, l1_ratio=1.0, solver="liblinear").fit(X[train], y[train])
            for C in np.geomspace(0.02, 2, 25)
        )
        *_, last = itertools.takewhile(lambda path: np.count_nonzero(path.coef_) <= k, paths)
        models = FSAClassifier(k).fit(X[train], y[train]), last
        right += [model.score(X[test], y[test]) for model in models]
        found += [np.count_nonzero(model.coef_[0][true]) for model in models]
    assert right[0] >= right[1] and found[0] > found[1]


def test_words_of_weighted_rows_are_those_of_repeated_rows():
    X, y, _ = words(300, 500)
    weight = np.random.default_rng(0).integers(1, 3, 300)
    rows = np.repeat(np.arange(300), weight)
    weighted, repeated = (
        FSAClassifier(20).fit(X, y, sample_weight=weight),
        FSAClassifier(20).fit(X[rows], y[rows]),
    )
    np.testing.assert_allclose(weighted.coef_, repeated.coef_, rtol=1e-6, atol=1e-8)


def test_a_word_of_one_row_is_not_louder_than_a_common_one():
    X, y, _ = words()
    problem = FSAClassifier(20).encode(X, y)
    design = SparseDesign(problem.X, problem.sample_weight)
    before = design.inv.copy()
    design.damp(min(problem.n_copies, 1000))
    rows = np.bincount(X.indices, minlength=X.shape[1])
    assert problem.facts.very_sparse and np.all(design.inv <= before)
    assert np.all(design.inv[rows == 1] < 0.9 * before[rows == 1]) and np.all(
        design.inv[rows > 100] > 0.95 * before[rows > 100]
    )


def test_rare_words_do_not_dominate_however_many_rows_there_are():
    """From a thousand rows on, the variances of words do not depend on the number of rows."""
    X, y, _ = words(1500)
    once, thrice = (
        FSAClassifier(100, refinement=None).fit(X, y, sample_weight=np.full(1500, weight))
        for weight in (1.0, 3.0)
    )
    np.testing.assert_array_equal(once.support_, thrice.support_)


@pytest.mark.parametrize("layout", [sp.csr_array, sp.csc_array])
def test_sparse_columns_that_vary(layout):
    X = np.zeros((6, 5))
    X[:, 1], X[:5, 2], X[2, 3], X[:, 4] = 2.0, 2.0, 1.0, np.arange(6) + 1
    weight = np.array([1.0, 1, 1, 1, 1, 0])
    np.testing.assert_array_equal(varying_columns(layout(X), np.ones(6)), [2, 3, 4])
    np.testing.assert_array_equal(varying_columns(layout(X), weight), [3, 4])
