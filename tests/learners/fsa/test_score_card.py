"""Score cards: rules with whole points, their table of risks, and what they are as a sum of
steps."""

import itertools

import numpy as np
import pandas as pd
import pytest
from annealed.learners import ScoreCardClassifier
from annealed.learners.fsa.score_card import candidate_rules, rule_matrix
from annealed.models import TabularModel, load_model
from sklearn.linear_model import LogisticRegression
from sklearn.metrics import log_loss, roc_auc_score
from sklearn.utils.estimator_checks import parametrize_with_checks


def planted(n=1000, seed=0):
    """Whole numbers; columns 2 and 5 from a value on, and whether 7 is missing, decide."""
    rng = np.random.default_rng(seed)
    X = rng.integers(0, 100, (n, 10)).astype(float)
    X[rng.random(n) < 0.3, 7] = np.nan
    score = 3 * (X[:, 2] >= 60) - 2 * (X[:, 5] >= 30) + np.isnan(X[:, 7])
    return X, rng.random(n) < 1 / (1 + np.exp(-score))


@pytest.mark.filterwarnings("ignore:n_features_to_select", "ignore:class")
@parametrize_with_checks([ScoreCardClassifier()])
def test_scikit_learn_checks(estimator, check):
    check(estimator)


def test_planted_rules_and_points_come_back():
    X, y = planted(20_000)
    card = ScoreCardClassifier(3, points=3).fit(
        pd.DataFrame(X, columns=[f"c{j}" for j in range(10)]), y
    )
    assert [rule.split()[0] for rule, _ in card.rules()] == ["c2", "c5", "c7"]
    assert card.rules()[2][0] == "c7 is missing"
    assert np.abs(card.rule_thresholds_[:2] - [60, 30]).max() <= 1
    assert card.points_.tolist() == [3, -2, 1] and card.scale_ == pytest.approx(1.0, abs=0.1)
    assert card.get_support(indices=True).tolist() == [2, 5, 7]
    assert card.risk_table_[:, 0].tolist() == [-2, -1, 0, 1, 2, 3, 4]


@pytest.mark.parametrize(("k", "points"), [(1, 1), (4, 2), (5, 5), (12, 100)])
def test_points_are_whole_numbers_and_the_table_says_the_probability(k, points):
    X, y = planted()
    card = ScoreCardClassifier(k, points=points).fit(X, y)
    assert card.points_.dtype.kind == "i" and 1 <= len(card.points_) == len(card.rules()) <= k
    assert (np.abs(card.points_) <= points).all() and (card.points_ != 0).all()
    by_hand = sum(
        p * (np.isnan(X[:, j]) if np.isnan(cut) else X[:, j] >= cut)
        for j, cut, p in zip(card.rule_columns_, card.rule_thresholds_, card.points_, strict=True)
    )
    assert np.array_equal(card.total_points(X), by_hand)
    risk = dict(card.risk_table_)
    assert np.allclose(
        [risk[total] for total in by_hand], card.predict_proba(X)[:, 1], rtol=0, atol=1e-12
    )
    assert (np.diff(card.risk_table_[:, 1]) > 0).all()


def test_rounding_is_nearly_the_best_there_is():
    X, y = planted(400)
    card = ScoreCardClassifier(4, points=3).fit(X, y)
    held = rule_matrix(X, card.rule_columns_, card.rule_thresholds_)

    def loss(points):
        total = (held @ points)[:, None]
        return log_loss(y, LogisticRegression(C=1e6).fit(total, y).predict_proba(total))

    best = min(
        loss(np.sign(card.points_) * points)
        for points in itertools.product(range(4), repeat=held.shape[1])
        if any(points)
    )
    assert loss(card.points_) <= best * (1 + 1e-3)


def test_probabilities_are_calibrated():
    X, y = planted(20_000)
    card = ScoreCardClassifier(4).fit(X[:10_000], y[:10_000])
    p, new = card.predict_proba(X[10_000:])[:, 1], y[10_000:]
    for total in np.unique(p):
        rows = p == total
        assert abs(new[rows].mean() - total) <= 0.03 + 3 * np.sqrt(total * (1 - total) / rows.sum())


def test_a_weight_of_two_is_a_row_twice():
    X, y = planted(300)
    weight = np.random.default_rng(1).integers(0, 4, 300)
    weighted = ScoreCardClassifier(3).fit(X, y, sample_weight=weight)
    repeated = ScoreCardClassifier(3).fit(np.repeat(X, weight, axis=0), np.repeat(y, weight))
    assert weighted.rules() == repeated.rules()
    assert np.allclose(weighted.risk_table_, repeated.risk_table_, rtol=1e-6)


def test_labels_files_and_cards_that_separate(tmp_path):
    X, y = planted()
    labels = np.where(y, "ill", "healthy")
    card = ScoreCardClassifier(4).fit(X, labels)
    assert (
        card.classes_.tolist() == ["healthy", "ill"]
        and roc_auc_score(y, card.decision_function(X)) > 0.75
    )
    TabularModel.from_estimator(card).save(tmp_path / "card.safetensors")
    kept = load_model(tmp_path / "card.safetensors")
    new = planted(500, 1)[0]
    assert np.array_equal(kept.predict(new), card.predict(new))
    assert np.allclose(kept.predict_proba(new), card.predict_proba(new), rtol=0, atol=1e-12)
    sure = ScoreCardClassifier(2).fit(X, X[:, 2] >= 60)  # Platt's targets: no certainty
    assert 0.5 < sure.predict_proba(X).max() < 1 and np.isfinite(sure.risk_table_).all()


def test_candidate_rules():
    X = np.array(
        [
            [0.0, 5.0, np.nan, 1.0],
            [1.0, 5.0, np.nan, np.nan],
            [1.0, 5.0, np.nan, 3.0],
            [0.0, 5.0, np.nan, 2.0],
        ]
    )
    columns, thresholds = candidate_rules(X, np.ones(4), 9)
    assert columns.tolist() == [0, 3, 3, 3]  # nothing of constants and of what is all missing
    assert np.array_equal(thresholds, [1.0, 2.0, 3.0, np.nan], equal_nan=True)
    assert rule_matrix(X, columns, thresholds).T.tolist() == [
        [0, 1, 1, 0],
        [0, 0, 1, 1],
        [0, 0, 1, 0],
        [0, 1, 0, 0],
    ]
    rare = np.zeros((1000, 1))
    rare[:20] = 1.0
    assert candidate_rules(rare, np.ones(1000), 3)[1].tolist() == [1.0]
    assert (
        len(candidate_rules(np.random.default_rng(0).random((1000, 2)), np.ones(1000), 9)[0]) == 18
    )


@pytest.mark.parametrize(
    ("parameters", "message"),
    [
        (
            {"n_features_to_select": 0},
            "n_features_to_select=0 is not valid; expected an integer >= 1",
        ),
        ({"n_features_to_select": 0.5}, "n_features_to_select=0.5 is not valid"),
        ({"points": 0}, "points=0 is not valid; expected an integer from 1 to 1000"),
        ({"points": 2.5}, "points=2.5 is not valid"),
        ({"n_thresholds": 126}, "n_thresholds=126 is not valid; expected an integer from 1 to 125"),
    ],
)
def test_bad_parameters(parameters, message):
    X, y = planted(50)
    with pytest.raises(ValueError, match=message):
        ScoreCardClassifier(**parameters).fit(X, y)


def test_a_column_that_says_nothing_gives_a_card_without_rules():
    X, y = np.tile([0.0, 1.0], 20)[:, None], np.repeat([0, 1], 20)
    card = ScoreCardClassifier(1).fit(X, y)
    assert (
        card.rules() == [] and not card.support_.any() and card.total_points(X).tolist() == [0] * 40
    )
    assert np.allclose(card.predict_proba(X), 0.5) and card.risk_table_.tolist() == [[0.0, 0.5]]


def test_bad_data():
    X, y = planted(50)
    with pytest.raises(
        ValueError, match="Only binary classification is supported; y contains 3 classes"
    ):
        ScoreCardClassifier(2).fit(X, np.arange(50) % 3)
    with pytest.raises(ValueError, match="all columns of X are constant; at least one must vary"):
        ScoreCardClassifier(2).fit(np.ones((50, 2)), y)
    X[3, 4] = np.inf
    with pytest.raises(ValueError, match="infinity"):
        ScoreCardClassifier(2).fit(X, y)
