"""The linear-chain conditional random field: against enumeration, finite differences and crfsuite,
and as an estimator."""

from itertools import product

import numpy as np
import pytest
import scipy.sparse as sp
from annealed.learners import FSACRF, ChainLoss, ForwardBackwardCRF, LinearChainCRF
from annealed.learners.objective.chain import _chain_terms, chain_terms, reference_terms
from annealed.learners.sequences.problem import ChainProblem, minimise
from annealed.learners.sequences.units import UnitModel, exchange
from sklearn import config_context
from sklearn.exceptions import ConvergenceWarning
from sklearn.linear_model import LogisticRegression
from sklearn.model_selection import LeaveOneGroupOut, cross_val_score
from sklearn.utils.estimator_checks import parametrize_with_checks

CONTEXT = "a row is labelled by all rows of its sequence"
WEIGHT = "all rows are one sequence, which has one weight"
EXPECTED_FAILURES = {
    "check_methods_sample_order_invariance": CONTEXT,
    "check_methods_subset_invariance": CONTEXT,
    "check_classifiers_one_label_sample_weights": WEIGHT,
    "check_sample_weight_equivalence_on_dense_data": WEIGHT,
    "check_sample_weight_equivalence_on_sparse_data": WEIGHT,
    "check_sample_weights_not_overwritten": WEIGHT,
}


def sequences(seed=0, n_sequences=6, length=40, n_classes=3, d=4, noise=1.0):
    """Labels that last, and columns that are noisy copies of their indicators; the later columns
    are noise."""
    rng = np.random.default_rng(seed)
    y = np.empty((n_sequences, length), int)
    for labels in y:
        labels[0] = rng.integers(n_classes)
        for t in range(1, length):
            labels[t] = rng.integers(n_classes) if rng.random() < 0.2 else labels[t - 1]
    y = y.ravel()
    X = rng.normal(0, noise, (len(y), d))
    X[:, : min(d, n_classes)] += np.eye(n_classes)[y][:, : min(d, n_classes)]
    return X, y, np.full(n_sequences, length)


def random_chains(seed, lengths, n_classes):
    rng = np.random.default_rng(seed)
    n = sum(lengths)
    offsets = np.concatenate([[0], np.cumsum(lengths)])
    scores, transitions = (
        2.0 * rng.standard_normal((n, n_classes)),
        rng.standard_normal((n_classes, n_classes)),
    )
    return (
        scores,
        rng.integers(n_classes, size=n),
        transitions,
        offsets,
        rng.uniform(0.5, 2.0, len(lengths)),
    )


# -- the loss --------------------------------------------------------------------------------------


@pytest.mark.parametrize("seed", range(3))
def test_enumeration_of_all_labels(seed):
    """Partition function, marginals, expected transitions and best path of a chain of five rows,
    from all 3^5 labellings."""
    scores, codes, transitions, offsets, _ = random_chains(seed, [5], 3)
    paths = np.array(list(product(range(3), repeat=5)))
    total = scores[np.arange(5), paths].sum(axis=1) + transitions[paths[:, :-1], paths[:, 1:]].sum(
        axis=1
    )
    log_z = np.logaddexp.reduce(total)
    p = np.exp(total - log_z)
    marginals = np.array([[p[paths[:, t] == c].sum() for c in range(3)] for t in range(5)])
    loss = ChainLoss(transitions=transitions)
    np.testing.assert_allclose(loss.marginals(scores), marginals, atol=1e-12)
    np.testing.assert_array_equal(loss.best_path(scores), paths[total.argmax()])
    own = scores[np.arange(5), codes].sum() + transitions[codes[:-1], codes[1:]].sum()
    value, gradient, moved = chain_terms(scores, codes, transitions, offsets, np.ones(1))
    assert value == pytest.approx(log_z - own)
    np.testing.assert_allclose(gradient, marginals - np.eye(3)[codes], atol=1e-12)
    expected = np.zeros((3, 3))
    for path, weight in zip(paths, p, strict=True):
        np.add.at(expected, (path[:-1], path[1:]), weight)
    np.subtract.at(expected, (codes[:-1], codes[1:]), 1.0)
    np.testing.assert_allclose(moved, expected, atol=1e-12)


@pytest.mark.parametrize("lengths", [[1], [1, 1, 3], [30, 1, 12], [200]])
def test_compiled_terms_are_those_of_the_reference(lengths):
    problem = random_chains(1, lengths, 4)
    for ours, reference in zip(chain_terms(*problem), reference_terms(*problem), strict=True):
        np.testing.assert_allclose(ours, reference, rtol=1e-10, atol=1e-12)


def test_gradient_over_transitions_is_the_derivative():
    scores, codes, transitions, offsets, weights = random_chains(2, [7, 1, 9], 3)
    gradient = chain_terms(scores, codes, transitions, offsets, weights)[2]
    for i, j in product(range(3), repeat=2):
        e = np.zeros((3, 3))
        e[i, j] = 1e-5
        up, down = (
            chain_terms(scores, codes, transitions + s * e, offsets, weights)[0] for s in (1, -1)
        )
        assert gradient[i, j] == pytest.approx((up - down) / 2e-5, rel=1e-5, abs=1e-8)


@pytest.mark.parametrize("size", [1e3, 1e6])
def test_huge_scores_do_not_underflow(size):
    """Rows that contradict transitions by more than a double holds: the scaled form gives way to
    logarithms."""
    scores = np.array([[size, 0.0], [0.0, size], [size, 0.0]])
    transitions = size * np.array([[1.0, -3.0], [-3.0, 1.0]])
    codes, offsets, weights = np.array([0, 0, 0]), np.array([0, 3]), np.ones(1)
    assert np.isnan(
        _chain_terms(
            scores, codes, transitions, offsets, weights, np.empty((3, 2)), np.zeros((2, 2))
        )
    )
    value, gradient, moved = chain_terms(scores, codes, transitions, offsets, weights)
    assert (
        value == pytest.approx(0.0, abs=1e-6)
        and np.isfinite(gradient).all()
        and np.isfinite(moved).all()
    )
    assert ChainLoss(transitions=transitions).best_path(scores).tolist() == [0, 0, 0]


def test_without_transitions_it_is_the_multinomial_loss():
    X, y, lengths = sequences()
    X += 3.0  # the intercepts matter
    ours = LinearChainCRF(1.4, fit_transitions=False).fit(X, y, lengths)
    theirs = LogisticRegression(C=1 / 1.4, tol=1e-8, max_iter=1000).fit(X, y)
    np.testing.assert_allclose(ours.predict_proba(X), theirs.predict_proba(X), atol=1e-4)
    assert not ours.transitions_.any()


# -- the estimator ---------------------------------------------------------------------------------


@parametrize_with_checks(
    [LinearChainCRF()], expected_failed_checks=lambda estimator: EXPECTED_FAILURES
)
def test_scikit_learn_checks(estimator, check):
    check(estimator)


def test_objective_is_what_it_says():
    X, y, lengths = sequences()
    model = LinearChainCRF(1.0).fit(X, y, lengths)
    penalty = 0.5 * ((model.coef_**2).sum() + (model.transitions_**2).sum())
    assert model.objective_ == pytest.approx(
        penalty - model.log_likelihood(X, y, lengths), rel=1e-12
    )
    assert (
        model.coef_.shape == (3, 4)
        and model.transitions_.shape == (3, 3)
        and model.intercept_.shape == (3,)
    )


def test_lengths_ids_and_sparse_rows_agree():
    X, y, lengths = sequences()
    ids = np.repeat(["b", "a", "f", "c", "e", "d"], 40)
    model = LinearChainCRF().fit(X, y, lengths)
    shuffled = np.random.default_rng(0).permutation(6)
    # the sequences interleaved
    rows = np.lexsort((shuffled[np.repeat(np.arange(6), 40)], np.tile(np.arange(40), 6)))
    for other in (
        LinearChainCRF().fit(X, y, sequence=ids),
        LinearChainCRF().fit(sp.csr_array(X), y, lengths),
        LinearChainCRF().fit(sp.csc_matrix(X), y, lengths),
        LinearChainCRF().fit(X[rows], y[rows], sequence=ids[rows]),
    ):
        np.testing.assert_allclose(other.coef_, model.coef_, atol=2e-3)
        assert other.objective_ == pytest.approx(model.objective_, rel=1e-7)
    for method in ("marginal", "viterbi"):
        expected = model.predict(X, lengths, method=method)
        np.testing.assert_array_equal(
            model.predict(X[rows], sequence=ids[rows], method=method), expected[rows]
        )
    assert model.log_likelihood(X[rows], y[rows], sequence=ids[rows]) == pytest.approx(
        model.log_likelihood(X, y, lengths)
    )
    one_by_one = [model.predict_proba(X[i : i + 40]) for i in range(0, 240, 40)]
    np.testing.assert_allclose(
        model.predict_proba(X, lengths), np.concatenate(one_by_one), atol=1e-12
    )


def test_any_labels_and_blocks_of_sequences(monkeypatch):
    X, y, lengths = sequences()
    model = LinearChainCRF().fit(X, y, lengths)
    words = LinearChainCRF().fit(X, np.array(["eat", "sleep", "wash"])[y], lengths)
    assert set(words.predict(X, lengths)) <= {"eat", "sleep", "wash"}
    monkeypatch.setattr("annealed.learners.sequences.problem._BLOCK_ROWS", 50)
    blocks = LinearChainCRF().fit(X, y, lengths)
    assert blocks.objective_ == pytest.approx(model.objective_, rel=1e-8)


def test_a_weight_of_two_is_the_sequence_twice():
    X, y, lengths = sequences()
    twice = LinearChainCRF().fit(np.r_[X, X[:40]], np.r_[y, y[:40]], np.r_[lengths, 40])
    weighted = LinearChainCRF().fit(
        X, y, lengths, sample_weight=np.repeat([2.0, 1, 1, 1, 1, 1], 40)
    )
    none = LinearChainCRF().fit(X, y, lengths, sample_weight=np.repeat([0.0, 1, 1, 1, 1, 1], 40))
    assert weighted.objective_ == pytest.approx(twice.objective_, rel=1e-7)
    assert none.objective_ == pytest.approx(
        LinearChainCRF().fit(X[40:], y[40:], lengths[1:]).objective_, rel=1e-7
    )


def test_cross_validation_over_days_hands_the_ids_on():
    X, y, lengths = sequences()
    days = np.repeat(np.arange(6), lengths)
    with config_context(enable_metadata_routing=True):
        found = cross_val_score(
            LinearChainCRF(), X, y, cv=LeaveOneGroupOut(), params={"sequence": days, "groups": days}
        )
    by_hand = []
    for day in range(6):
        train = days != day
        by_hand.append(
            LinearChainCRF()
            .fit(X[train], y[train], sequence=days[train])
            .score(X[~train], y[~train])
        )
    np.testing.assert_allclose(found, by_hand)


def _with(row, column, value):
    X = sequences()[0].copy()
    X[row, column] = value
    return X


@pytest.mark.parametrize(
    "change, message",
    [
        ({"lengths": [40, 40]}, "lengths add up to 80; expected 240, the number of rows of X"),
        (
            {"lengths": [240, 0]},
            r"lengths=\[240, 0\] is not valid; expected an integer >= 1 for each",
        ),
        ({"lengths": [120.5, 119.5]}, "expected an integer >= 1 for each"),
        ({"lengths": [240], "sequence": np.zeros(240)}, "both given"),
        (
            {"sequence": np.zeros(7)},
            r"sequence has shape \(7,\); expected one id for each of the 240 rows",
        ),
        ({"y": np.zeros(240)}, "y contains only one class"),
        ({"sample_weight": np.arange(240.0)}, "expected one weight per sequence"),
        (
            {"X": np.full((240, 4), np.nan)},
            r"X contains NaN \(row 0, column 0\); expected finite numbers",
        ),
        (
            {"X": _with(7, 2, np.inf)},
            r"X contains infinity \(row 7, column 2\); expected finite numbers",
        ),
        (
            {"X": sp.csr_matrix(_with(9, 3, np.nan))},
            r"X contains NaN \(row 9, column 3\); expected finite numbers",
        ),
    ],
)
def test_bad_input_is_one_line(change, message):
    X, y, _ = sequences()
    for model in (LinearChainCRF(), FSACRF(1), ForwardBackwardCRF(1)):
        with pytest.raises(ValueError, match=message) as caught:
            model.fit(**{"X": X, "y": y, **change})
        assert "\n" not in str(caught.value)


def test_nan_in_what_is_predicted_is_one_line():
    X, y, lengths = sequences()
    model = LinearChainCRF().fit(X, y, lengths)
    with pytest.raises(
        ValueError, match=r"^X contains NaN \(row 3, column 1\); expected finite numbers$"
    ):
        model.predict(_with(3, 1, np.nan), lengths)


@pytest.mark.parametrize(
    "parameters, message",
    [
        ({"ridge": -1}, "ridge=-1 is not valid"),
        ({"max_iter": 0}, "max_iter=0 is not valid"),
        ({"tol": 0.0}, "tol=0.0 is not valid"),
        ({"fit_transitions": "yes"}, "fit_transitions='yes' is unknown"),
    ],
)
def test_bad_parameters(parameters, message):
    X, y, _ = sequences()
    with pytest.raises(ValueError, match=message):
        LinearChainCRF(**parameters).fit(X, y)


def test_unseen_labels_and_methods():
    X, y, lengths = sequences()
    model = LinearChainCRF().fit(X, y, lengths)
    with pytest.raises(
        ValueError,
        match=r"y contains the label 7, which was not seen during fit; expected one of \[0, 1, 2\]",
    ):
        model.log_likelihood(X, np.where(y == 1, 7, y), lengths)
    with pytest.raises(ValueError, match="method='best' is unknown"):
        model.predict(X, lengths, method="best")
    assert model.score(X, np.full(240, 7), lengths) == 0.0
    with pytest.warns(ConvergenceWarning, match="max_iter=3"):
        LinearChainCRF(max_iter=3).fit(X, y, lengths)


def test_crfsuite_finds_the_same_optimum(tmp_path):
    pycrfsuite = pytest.importorskip("pycrfsuite")
    rng = np.random.default_rng(5)
    _, y, lengths = sequences(5, n_sequences=8, length=60)
    on = (rng.random((len(y), 6)) < np.where(np.arange(6) % 3 == y[:, None], 0.6, 0.1)).astype(
        float
    )
    X = np.c_[on, np.ones(len(y))]  # crfsuite shrinks the constant: a column like the others
    trainer = pycrfsuite.Trainer(algorithm="lbfgs", verbose=False)
    named = [[f"x{j}" for j in np.flatnonzero(row)] for row in X]
    chunks = [slice(60 * s, 60 * s + 60) for s in range(8)]
    for rows in chunks:
        trainer.append(named[rows], y[rows].astype(str).tolist())
    every = {"feature.possible_states": True, "feature.possible_transitions": True}
    trainer.set_params(
        {"c1": 0.0, "c2": 0.5, "max_iterations": 10_000, "epsilon": 1e-8, "delta": 1e-10, **every}
    )
    trainer.train(str(tmp_path / "model"))
    model = LinearChainCRF(1.0, fit_intercept=False, tol=1e-12).fit(X, y, lengths)
    assert model.objective_ == pytest.approx(trainer.logparser.last_iteration["loss"], rel=1e-6)
    tagger = pycrfsuite.Tagger()
    tagger.open(str(tmp_path / "model"))
    theirs = np.concatenate([np.array(tagger.tag(named[rows]), int) for rows in chunks])
    np.testing.assert_array_equal(model.predict(X, lengths, method="viterbi"), theirs)


# -- selection -------------------------------------------------------------------------------------


SELECTORS = [
    ForwardBackwardCRF(2),
    ForwardBackwardCRF(2, criterion="objective"),
    FSACRF(2),
    FSACRF(2, criterion="norm", polish=None),
]


@parametrize_with_checks(SELECTORS, expected_failed_checks=lambda estimator: EXPECTED_FAILURES)
def test_scikit_learn_checks_of_selectors(estimator, check):
    check(estimator)


def grouped(seed=0):
    """Six groups of two columns; groups 1 and 4 carry the labels, column 5 is often on and says
    nothing."""
    rng = np.random.default_rng(seed)
    _, y, lengths = sequences(seed, n_sequences=6, length=60)
    X = rng.normal(0, 1, (len(y), 12))
    X[:, 2:4] += 1.5 * np.eye(3)[y][:, :2]
    X[:, 8] += 1.5 * (y == 2)
    X[:, 5] *= 30.0
    return X, y, lengths, np.repeat(["a", "b", "c", "d", "e", "f"], 2)


@pytest.mark.parametrize(
    "model",
    [
        ForwardBackwardCRF(2),
        ForwardBackwardCRF(2, backward=False),
        ForwardBackwardCRF(2, criterion="objective"),
        ForwardBackwardCRF(2, polish="swap"),
        ForwardBackwardCRF(None, criterion="objective", delta=5.0),
        FSACRF(2),
        FSACRF(2, polish=None),
        FSACRF(2, criterion="norm", polish=None, schedule="inverse", n_steps=6),
    ],
    ids=repr,
)
def test_groups_that_carry_the_labels_are_found(model):
    X, y, lengths, groups = grouped()
    model.set_params(feature_groups=groups).fit(X, y, lengths)
    assert model.selected_groups_.tolist() == ["b", "e"]
    np.testing.assert_array_equal(model.get_support(indices=True), [2, 3, 8, 9])
    plain = LinearChainCRF().fit(X[:, [2, 3, 8, 9]], y, lengths)
    assert model.objective_ == pytest.approx(plain.objective_, rel=1e-7)
    assert model.coef_.shape == (3, 12) and not np.delete(model.coef_, [2, 3, 8, 9], axis=1).any()
    assert model.score(X, y, lengths) == pytest.approx(
        plain.score(X[:, [2, 3, 8, 9]], y, lengths), abs=0.01
    )
    assert model.transform(X).shape == (360, 4)


def test_paths_say_what_entered_and_left():
    X, y, lengths, groups = grouped()
    path = ForwardBackwardCRF(3, groups, backward=False).fit(X, y, lengths).path_
    assert [step.action for step in path] == ["enter"] * 3 and [step.size for step in path] == [
        1,
        2,
        3,
    ]
    assert path[0].objective > path[1].objective > path[2].objective
    path = FSACRF(2, groups, polish=None).fit(X, y, lengths).path_
    assert [step.action for step in path] == ["leave"] * 4 and [step.size for step in path] == [
        5,
        4,
        3,
        2,
    ]
    assert {step.feature for step in path} == {0, 2, 3, 5}


def test_single_coefficients_are_selected_as_in_the_paper():
    """Liu et al. (2014), section 5: one feature per column and class; a column counts once one of
    its features is in."""
    X, y, lengths, _ = grouped()
    problem = _problem(X, y, lengths)
    model = ForwardBackwardCRF(4, per_class=True).fit(X, y, lengths)
    used = {step.feature for step in model.path_ if step.action == "enter"} - {
        step.feature for step in model.path_ if step.action == "leave"
    }
    assert (
        used == set(np.flatnonzero(model.coef_.T.ravel())) and len(used) == 4
    )  # column * n_classes + class
    np.testing.assert_array_equal(
        model.get_support(indices=True), np.unique([unit // 3 for unit in used])
    )
    empty = minimise(problem.keep(np.zeros((12, 3), bool))[1]).with_coef(np.zeros((12, 3)))
    slope = np.abs(problem.value_and_gradient(empty)[1].coef) / X.std(axis=0)[:, None]
    assert model.path_[0].feature == np.argmax(slope)
    chosen = model.coef_.T != 0
    columns, part = problem.keep(chosen)
    fit = minimise(part)
    np.testing.assert_allclose(fit.coef, model.coef_.T[columns], atol=1e-3)
    assert not fit.coef[~chosen[columns]].any()
    whole = LinearChainCRF().fit(X, y, lengths)
    assert minimise(problem.keep(np.ones((12, 3), bool))[1]).value == pytest.approx(
        whole.objective_, rel=1e-7
    )
    with pytest.raises(ValueError, match="per_class"):
        ForwardBackwardCRF(4, per_class="yes").fit(X, y, lengths)


def test_exchanges_lower_the_objective_and_are_on_the_path():
    X, y, lengths, _ = grouped()
    model = UnitModel(_problem(X, y, lengths), np.repeat(np.arange(6), 6).reshape(12, 3), [0, 5])
    before = model.value
    path = exchange(model)
    assert sorted(model.units) == [1, 4] and model.value < before
    assert [step.action for step in path] == ["leave", "enter"] * 2


def _problem(X, y, lengths):
    return ChainProblem(X, y, 3, np.concatenate([[0], np.cumsum(lengths)]), np.ones(len(lengths)))


def test_the_linear_schedule_drops_one_unit_per_cut():
    X, y, lengths, _ = grouped()
    path = FSACRF(2, polish=None).fit(X, y, lengths).path_
    objectives = [
        objective for _, _, objective, _ in path
    ]  # of the model that is left before each unit leaves
    assert [size for *_, size in path] == list(range(X.shape[1] - 1, 1, -1))
    assert (np.diff(objectives) > 0).all()  # fitted anew each time


def test_a_sensor_that_never_fires_is_not_selected():
    X, y, lengths, groups = grouped()
    X[:, :2] = 0.0
    for model in (ForwardBackwardCRF(6, groups), FSACRF(5, groups)):
        model.fit(X, y, lengths)
        assert "a" not in model.selected_groups_ and np.isfinite(model.coef_).all()


@pytest.mark.parametrize(
    "model, message",
    [
        (ForwardBackwardCRF(0), "n_features_to_select=0 is not valid"),
        (ForwardBackwardCRF(None), "set delta or epsilon"),
        (ForwardBackwardCRF(2, delta=1.0), "delta=1.0 applies to criterion='objective'"),
        (ForwardBackwardCRF(2, criterion="best"), "criterion='best' is unknown"),
        (FSACRF(2, criterion="gradient"), "criterion='gradient' is unknown"),
        (FSACRF(2, ["a", "b"]), "groups has shape"),
        (FSACRF(2, polish="refit"), "polish='refit' is unknown"),
        (FSACRF(2, schedule="fast"), "schedule='fast' is unknown"),
    ],
)
def test_bad_parameters_of_selectors(model, message):
    X, y, lengths, _ = grouped()
    with pytest.raises(ValueError, match=message):
        model.fit(X, y, lengths)


@pytest.mark.parametrize(
    "selector", [ForwardBackwardCRF(2, criterion="objective", polish="swap"), FSACRF(2)]
)
def test_groups_pay_for_their_coefficients(selector):
    rng = np.random.default_rng(0)
    y = np.repeat(rng.integers(0, 2, 60), 5)
    X = np.hstack(
        [
            rng.standard_normal((300, 2)) + 0.5 * y[:, None],
            rng.integers(0, 30, 300)[:, None] == np.arange(30),
        ]
    )
    model = selector.set_params(feature_groups=["a", "b", *["c"] * 30], ridge=0.1).fit(
        X, y, lengths=[100, 100, 100]
    )
    assert model.selected_groups_.tolist() == ["a", "b"]
