"""Sparse online learners against slow references written row by row, and their invariances."""

import warnings

import numpy as np
import pytest
import scipy.sparse as sp
from annealed.learners import (
    ExponentialLoss,
    FOBOSClassifier,
    HuberisedHingeLoss,
    LogisticLoss,
    RDAClassifier,
    StabilizedTruncatedSGDClassifier,
    TruncatedGradientClassifier,
    selection_stability,
)
from annealed.learners.online.stabilised import rejection_rate
from annealed.learners.stability import cohen_kappa
from hypothesis import given, settings
from hypothesis import strategies as st
from sklearn.base import clone
from sklearn.datasets import make_classification
from sklearn.feature_selection import SelectKBest
from sklearn.linear_model import LogisticRegression
from sklearn.metrics import cohen_kappa_score
from sklearn.utils.estimator_checks import parametrize_with_checks

NOT_FOR_SGD = dict.fromkeys(
    (
        "check_sample_weight_equivalence_on_dense_data",
        "check_sample_weight_equivalence_on_sparse_data",
    ),
    "a row of weight zero still takes its turn in the order of a stochastic method",
)
BASELINES = [TruncatedGradientClassifier, FOBOSClassifier, RDAClassifier]


@parametrize_with_checks(
    [
        TruncatedGradientClassifier(random_state=0),
        FOBOSClassifier(penalty=1e-4, loss="logistic", random_state=0),
        RDAClassifier(penalty=1e-4, rho=0.0, random_state=0),
        StabilizedTruncatedSGDClassifier(0.9, n_paths=2, random_state=0),
    ],
    expected_failed_checks=lambda _: NOT_FOR_SGD,
)
def test_scikit_learn_checks(estimator, check):
    check(estimator)


def sparse_problem(n=60, p=30, seed=0):
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n, p)) * (rng.random((n, p)) < 0.3)
    y = np.where(X[:, 0] + X[:, 1] - X[:, 2] + 0.3 * rng.normal(size=n) > 0, 1, -1)
    return sp.csr_array(X), y


def soft(w, g):
    return np.sign(w) * np.maximum(np.abs(w) - g, 0)


def slow_slope(loss, u):
    return -1.0 / (1.0 + np.exp(u)) if loss == "logistic" else -float(u < 1)


@pytest.mark.parametrize("loss", ["hinge", "logistic"])
@pytest.mark.parametrize("method", BASELINES)
def test_lazy_shrinkage_equals_eager_steps(method, loss):
    X, y = sparse_problem()
    dense, square = X.toarray(), float(X.multiply(X).sum()) / X.shape[0]
    model = method(loss=loss, max_iter=3, shuffle=False).fit(X, y)
    w, b, g, g0, t = np.zeros(30), 0.0, np.zeros(30), 0.0, 0
    for _ in range(3):
        for x, label in zip(dense, y):
            residual = label * slow_slope(loss, label * (x @ w + b))
            t += 1
            if method is TruncatedGradientClassifier:
                w, b = w - 0.3 / square * residual * x, b - 0.3 / square * residual
                w = soft(w, 5 * 1e-4) if t % 5 == 0 else w
            elif method is FOBOSClassifier:
                eta = 1.0 / square / np.sqrt(t)
                w, b = soft(w - eta * residual * x, eta * 1e-3), b - eta * residual
            else:
                g, g0 = g + residual * x, g0 + residual
                w = -np.sqrt(t) / square * soft(g / t, 1e-3 + square * 0.005 / np.sqrt(t))
                b = -g0 / (square * np.sqrt(t))
    np.testing.assert_allclose(model.coef_[0], w, atol=1e-12)
    assert model.intercept_[0] == pytest.approx(b)
    np.testing.assert_array_equal(model.get_support(), w != 0)


def slow_stabilised(model, X, y, targets):
    """Algorithms 3.2-3.4, row by row on dense arrays; annealed stages or the threshold."""
    printed = model.selection == "threshold"
    n, p = X.shape
    rate = model.learning_rate / ((X**2).sum() / n)
    rngs = [
        np.random.RandomState(s)
        for s in np.random.RandomState(first_seed(model)).randint(2**31 - 1, size=model.n_paths)
    ]
    orders = [np.concatenate([rng.permutation(n) for _ in range(model.max_iter)]) for rng in rngs]
    w, b = np.zeros((model.n_paths, p)), np.zeros(model.n_paths)
    active, gravity = np.ones(p, bool), 0.0
    per_stage = model.burst_size * model.n_bursts
    touched, survived = np.zeros(p), np.zeros(p)
    since_last = []
    for stage, target in enumerate(targets):
        updates = []
        for m in range(model.n_paths):
            rows = orders[m][stage * per_stage : (stage + 1) * per_stage]
            for burst in np.split(rows, range(model.burst_size, len(rows), model.burst_size)):
                count, before = np.zeros(p), w[m].copy()
                for i in burst:
                    residual = y[i] * slow_slope(model.loss, y[i] * (X[i] @ w[m] + b[m]))
                    w[m] = np.where(active, w[m] - rate * residual * X[i], 0)
                    b[m] -= rate * residual
                    count += (X[i] != 0) & active & (printed or residual != 0)
                seen = count > 0
                updates += list(np.abs(w[m] - before)[seen] / count[seen])
                w[m] = soft(w[m], gravity * count)
                touched += seen
                survived += seen & (w[m] != 0)
        dropped = printed or active.sum() > target or target == model.n_features_to_select
        probability = np.where(touched > 0, survived / np.maximum(touched, 1), 1.0)
        strength = np.abs(w.mean(axis=0))
        order = sorted(
            np.flatnonzero(active), key=lambda j: (-np.round(probability, 12)[j], -strength[j], j)
        )
        since_last = [] if target < active.sum() or printed else since_last
        active &= (
            probability >= model.threshold if printed else np.isin(np.arange(p), order[:target])
        )
        assert active.sum() == target
        w[:, ~active] = 0
        since_last.append((w.mean(axis=0), b.mean()))
        touched, survived = (np.zeros(p), np.zeros(p)) if dropped else (touched, survived)
        place = int(
            rejection_rate(active.mean(), model.rejection, model.annealing) * (len(updates) - 1)
        )
        gravity = np.sort(updates)[place] if updates else 0.0
    return np.mean([w for w, _ in since_last], axis=0), np.mean([b for _, b in since_last]), active


def first_seed(model):
    return np.random.RandomState(model.random_state).randint(2**31 - 1)


@pytest.mark.parametrize("loss", ["hinge", "logistic"])
@pytest.mark.parametrize("selection", ["annealed", "threshold"])
def test_stabilised_stages_equal_a_slow_reference(selection, loss, monkeypatch):
    monkeypatch.setattr(
        "annealed.learners.online.stabilised.POOL", 100000
    )  # all updates, not a sample
    X, y = sparse_problem()
    settings = {"rejection": 0.3} if selection == "threshold" else {}
    model = StabilizedTruncatedSGDClassifier(
        6, loss=loss, selection=selection, n_paths=3, max_iter=2, random_state=1, **settings
    ).fit(X, y)
    w, b, active = slow_stabilised(model, X.toarray(), y, model.history_[:, 0].astype(int))
    np.testing.assert_allclose(model.coef_[0], w, atol=1e-10)
    assert model.intercept_[0] == pytest.approx(b)
    assert 0 < active.sum() < 30 and not model.coef_[0][~active].any()
    assert selection == "threshold" or active.sum() == 6


def test_bursts_grow_as_columns_leave():
    X, y = sparse_problem(200)
    fixed = StabilizedTruncatedSGDClassifier(4, n_paths=2, random_state=0).fit(X, y)
    first = clone(fixed).set_params(burst_growth=np.exp(-1.0), max_iter=1, n_bursts=200).fit(X, y)
    np.testing.assert_array_equal(
        first.coef_, clone(fixed).set_params(max_iter=1, n_bursts=200).fit(X, y).coef_
    )
    grown = clone(fixed).set_params(burst_growth=np.exp(-1.0)).fit(X, y)
    active = grown.history_[:, 0]
    assert active[-1] == 4 and len(active) < len(fixed.history_)
    # K_s = ceil(5 log(e 30 / active)) rows a burst, five bursts a stage: the stages use up the rows
    # of all passes
    before = np.concatenate([[30], active[:-1]])
    rows = 5 * np.ceil(5 * (1.0 - np.log(before / 30)))
    assert rows[:-1].sum() < 20 * 200 <= rows.sum()


@pytest.mark.parametrize("selection", ["annealed", "threshold"])
def test_any_number_of_threads_gives_the_same_model(selection):
    X, y = sparse_problem(200)
    model = StabilizedTruncatedSGDClassifier(5, selection=selection, n_paths=5, random_state=0)
    one, three = (clone(model).set_params(n_jobs=n_jobs).fit(X, y) for n_jobs in (1, 3))
    np.testing.assert_array_equal(one.coef_, three.coef_)
    np.testing.assert_array_equal(one.history_, three.history_)


def test_active_features_only_ever_leave():
    X, y = sparse_problem(300, 50)
    model = StabilizedTruncatedSGDClassifier(4, random_state=0).fit(X, y)
    left = model.history_[:, 0]
    assert (np.diff(left) <= 0).all() and left[-1] == 4
    assert model.get_support().sum() <= 4
    assert {0, 1, 2} <= set(np.flatnonzero(model.get_support()))
    repaired = StabilizedTruncatedSGDClassifier(
        selection="threshold", rejection=0.7, min_bursts=5, random_state=0
    ).fit(X, y)
    assert (np.diff(repaired.history_[:, 0]) <= 0).all() and repaired.history_[-1, 0] < 50


@pytest.mark.parametrize("method", [*BASELINES, StabilizedTruncatedSGDClassifier])
@pytest.mark.parametrize("kind", [sp.csr_matrix, sp.csc_array, np.asarray])
def test_sparse_and_dense_rows_agree(method, kind):
    X, y = sparse_problem()
    expected = method(random_state=0, max_iter=3).fit(X, y).coef_
    Z = X.toarray() if kind is np.asarray else kind(X)
    np.testing.assert_allclose(
        method(random_state=0, max_iter=3).fit(Z, y).coef_, expected, atol=1e-12
    )


@pytest.mark.parametrize("method", BASELINES)
def test_a_stream_of_batches_equals_one_pass(method):
    X, y = sparse_problem()
    whole = method(max_iter=1, shuffle=False)
    whole.partial_fit(X, y, classes=[-1, 1])
    parts = method(max_iter=1, shuffle=False)
    parts.partial_fit(X[:20], y[:20], classes=[-1, 1])
    parts._row_length = whole._row_length  # the first batch sets the scale of the steps
    fresh = method(max_iter=1, shuffle=False).partial_fit(X[:1], y[:1], classes=[-1, 1])
    fresh._begin(30)
    fresh._row_length = whole._row_length
    for start in range(0, 60, 20):
        fresh.partial_fit(X[start : start + 20], y[start : start + 20])
    np.testing.assert_allclose(fresh.coef_, whole.coef_, atol=1e-12)


def test_stabilised_learns_from_a_stream():
    X, y = make_classification(
        3000,
        60,
        n_informative=5,
        n_redundant=0,
        shuffle=False,
        class_sep=1.5,
        flip_y=0,
        random_state=1,
    )
    model = StabilizedTruncatedSGDClassifier(
        5, loss="logistic", n_stages=40, n_paths=4, random_state=0
    )
    for start in range(0, 2500, 100):
        model.partial_fit(X[start : start + 100], y[start : start + 100], classes=[0, 1])
    assert set(np.flatnonzero(model.get_support())) <= set(range(5)) | set(
        np.flatnonzero(model.get_support())[:1]
    )
    assert model.score(X[2500:], y[2500:]) > 0.85
    with pytest.raises(ValueError, match="the unknown label"):
        model.partial_fit(X[:2], [0, 7])
    with pytest.raises(ValueError, match="first call"):
        StabilizedTruncatedSGDClassifier().partial_fit(X, y)


@pytest.mark.parametrize(
    "loss",
    [
        "squared",
        "lorenz",
        "exponential",
        HuberisedHingeLoss(0.5),
        LogisticLoss(),
        ExponentialLoss(),
    ],
)
def test_every_loss_of_ours(loss):
    X, y = sparse_problem(300)
    assert (
        StabilizedTruncatedSGDClassifier(5, loss=loss, learning_rate=0.2, random_state=0)
        .fit(X, y)
        .score(X, y)
        > 0.75
    )


def test_labels_weights_and_refit():
    X, y = sparse_problem(300)
    names = np.where(y > 0, "yes", "no")
    model = StabilizedTruncatedSGDClassifier(3, loss="logistic", refit=1e-3, random_state=0).fit(
        X, names
    )
    assert set(model.predict(X)) == {"yes", "no"} and model.score(X, names) > 0.75
    assert model.predict_proba(X).sum(axis=1) == pytest.approx(1.0)
    kept = np.flatnonzero(model.get_support())
    square = float(X.multiply(X).sum()) / 300
    reference = LogisticRegression(C=1 / (300 * 1e-3 * square), tol=1e-8).fit(
        X.toarray()[:, kept], names
    )
    np.testing.assert_allclose(model.coef_[0, kept], reference.coef_[0], rtol=1e-2)
    rare = FOBOSClassifier(random_state=0, class_weight={"yes": 100.0, "no": 1.0}).fit(X, names)
    assert (rare.predict(X) == "yes").mean() > (names == "yes").mean()
    digits = np.digitize(X.toarray()[:, 0], [-0.5, 0.5])
    three = TruncatedGradientClassifier(random_state=0).fit(X, digits)
    assert three.coef_.shape == (3, 30) and three.score(X, digits) > 0.7


@pytest.mark.parametrize(
    "bad",
    [
        {"loss": "cubic"},
        {"selection": "all"},
        {"n_features_to_select": 0},
        {"rejection": 2},
        {"n_paths": 0},
        {"max_iter": 0},
        {"refit": 0},
    ],
)
def test_bad_parameters_are_named(bad):
    X, y = sparse_problem()
    with pytest.raises(ValueError, match=f"{next(iter(bad))}={next(iter(bad.values()))!r}"):
        StabilizedTruncatedSGDClassifier(**bad).fit(X, y)


@settings(max_examples=50, deadline=None)
@given(st.lists(st.tuples(st.booleans(), st.booleans()), min_size=2, max_size=30))
def test_kappa_equals_scikit_learn(pairs):
    a, b = np.array(pairs).T
    if len(set(a)) == 1 and len(set(b)) == 1 and a[0] == b[0]:
        assert cohen_kappa(a, b) == 1.0
    else:
        assert cohen_kappa(a, b) == pytest.approx(cohen_kappa_score(a, b))


def test_stability_of_any_selector():
    X, y = make_classification(
        300, 20, n_informative=3, n_redundant=0, shuffle=False, class_sep=2, random_state=0
    )
    for resample in ("permute", "bootstrap", "half"):
        result = selection_stability(SelectKBest(k=3), X, y, 5, resample=resample, random_state=0)
        assert result.supports.shape == (5, 20) and result.frequency.sum() == pytest.approx(3)
    assert (
        selection_stability(SelectKBest(k=3), X, y, 4, resample="permute").kappa == 1.0
    )  # the order of the rows does not matter to it
    dense = selection_stability(
        TruncatedGradientClassifier(gravity=0.0), X, y, 4, n_features=3, random_state=0
    )
    assert dense.supports.sum(axis=1).tolist() == [3, 3, 3, 3]
    ax = result.plot()
    assert len(ax.patches) == np.count_nonzero(result.frequency) < 20
    with pytest.raises(ValueError, match="n_repeats=1"):
        selection_stability(SelectKBest(k=3), X, y, 1)


@pytest.mark.data
def test_dexter(data_dir):
    folder = data_dir / "dexter"
    parts = {
        s: sp.csr_matrix(sp.load_npz(folder / f"X_{s}.npz")).astype(float)
        for s in ("train", "test")
    }
    for s, X in parts.items():
        parts[s] = sp.diags_array(1 / np.sqrt(np.asarray(X.multiply(X).sum(axis=1)).ravel())) @ X
    model = StabilizedTruncatedSGDClassifier(
        0.015, loss="logistic", learning_rate=3.0, random_state=0
    )
    model.fit(parts["train"], np.load(folder / "y_train.npy"))
    assert model.score(parts["test"], np.load(folder / "y_test.npy")) > 0.9
    assert model.get_support().sum() == 300


LEARNERS = [*BASELINES, StabilizedTruncatedSGDClassifier]


def offset_problem():
    X = np.random.default_rng(0).standard_normal((300, 20))
    return X, X[:, 3] > X[:, 7]


@pytest.mark.parametrize("learner", LEARNERS)
@pytest.mark.parametrize("in_parts", [False, True])
def test_columns_far_from_zero_are_said(learner, in_parts):
    """One line that names the remedy, in ``fit`` and on a stream of single rows."""
    X, y = offset_problem()
    X = X + [1e3, *[0] * 19]
    model = learner(random_state=0)
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        if in_parts:
            for i in range(25):
                model.partial_fit(X[i : i + 1], y[i : i + 1], classes=[False, True])
        else:
            model.fit(X, y)
    (message,) = [str(one.message) for one in caught if "far from zero" in str(one.message)]
    assert "StandardScaler" in message and "\n" not in message


@pytest.mark.parametrize("learner", LEARNERS)
@pytest.mark.parametrize("kind", [np.asarray, sp.csr_array])
def test_columns_about_zero_pass_without_a_word(learner, kind):
    X, y = offset_problem()
    for data in (X, X + 2.0, np.abs(X) * (X > 0.5), X[:4]):
        with warnings.catch_warnings():
            warnings.filterwarnings("error", message=".*far from zero")
            learner(random_state=0).fit(kind(data), y[: len(data)])
            learner(random_state=0).partial_fit(kind(data[:1]), y[:1], classes=[False, True])
