"""Ranking of candidate segmentations: learning, saving, the shipped model."""

import annealed.models.motion.ranker as ranker_module
import annealed.models.motion.ranking_function as ranking_function
import numpy as np
import pytest
from annealed.models import load_model
from annealed.models.files import read_model, write_model
from annealed.models.motion.candidate_set import (
    CandidateSet,
    candidate_set,
    joined,
    ranked_pairs,
    relative,
)
from annealed.models.motion.ranker import SegmentationRanker
from annealed.models.motion.ranking_function import (
    MotionChooser,
    RankerSettings,
    RankingFunction,
)
from annealed.models.weights import FOLDER
from annealed.vision.tracks.candidates import JOINED_FAMILIES, Candidate
from annealed.vision.tracks.features import Feature, SegmentationFeatures
from annealed.vision.tracks.io import TrackSequence
from annealed.vision.tracks.labels import canonical_labels, misclassification
from helpers import invented_sets, rigid_motions

FEATURES = SegmentationFeatures(
    n_thresholds=5, neighbours=(3, 7), dimensions=(2.0, 4.0), n_smallest=2
)


@pytest.mark.parametrize("response", ["linear", "piecewise"])
def test_ranking_learns_what_tells_the_error(response):
    function = RankingFunction.learn(invented_sets(), RankerSettings(response, 2, n_steps=60))
    assert set(function.selected) == {0, 1}
    picked = [
        s.errors[np.argmax(function.scores(s.features))] - s.errors.min()
        for s in invented_sets(seed=1)
    ]
    assert np.mean(picked) < 0.02


def test_standardized_features_know_no_unit():
    features = np.random.default_rng(0).normal(size=(5, 3)) * [1.0, 7.0, 0.0]
    again = relative(features * 4.0 + 1.0, "linear", standardize=True)
    np.testing.assert_allclose(again, relative(features, "linear", standardize=True), atol=1e-12)
    np.testing.assert_allclose(again.std(axis=0), [1.0, 1.0, 0.0])
    settings = RankerSettings("linear", 2, n_steps=60, standardize=True)
    function = RankingFunction.learn(invented_sets(), settings)
    one = invented_sets(seed=1)[0]
    np.testing.assert_allclose(function.scores(one.features), function.scores(one.features * 9.0))


@pytest.mark.parametrize("response", ["linear", "piecewise"])
def test_scores_compare_candidates_of_one_sequence_alone(response):
    """A shift common to all candidates of a sequence has no effect."""
    features = np.random.default_rng(0).normal(size=(4, 7))
    np.testing.assert_allclose(
        relative(features + np.arange(7), response), relative(features, response), atol=1e-12
    )


def test_pairs_stay_within_a_sequence():
    sets = invented_sets(6)
    pairs = ranked_pairs(sets)
    owner = np.repeat(np.arange(6), [len(s) for s in sets])
    errors = np.concatenate([s.errors for s in sets])
    i, j = pairs[:, :2].astype(int).T
    assert (owner[i] == owner[j]).all()
    assert len(pairs) == sum(len(s) * (len(s) - 1) // 2 for s in sets)
    np.testing.assert_array_equal(
        pairs[:, 2], np.select([errors[i] < errors[j], errors[i] > errors[j]], [1.0, 0.0], 0.5)
    )


def test_nothing_to_learn_from():
    sets = [
        CandidateSet(
            "a", "a", [Candidate(np.zeros(8, int), "raw", 4)] * 2, np.zeros((2, 3)), np.zeros(2)
        )
    ]
    with pytest.raises(
        ValueError, match="none of the sequences has two candidates with different errors"
    ):
        RankingFunction.learn(sets, RankerSettings("linear", 2))


def test_small_motions_are_left_out_unless_nothing_else_is_there():
    labels = [np.arange(20) < n for n in (2, 9, 10)]
    one = CandidateSet(
        "a",
        "a",
        [Candidate(l.astype(int), "raw", 4) for l in labels],
        np.zeros((3, 1)),
        np.array([0.0, 0.1, 0.2]),
    )
    assert one.without_small(0) is one or len(one.without_small(0)) == 3
    np.testing.assert_array_equal(one.without_small(5).errors, [0.1, 0.2])
    assert len(one.without_small(15)) == 3


@pytest.fixture(scope="module")
def sequences():
    """A video each: two or three noisy rigid motions."""
    return [rigid_motions(2 + i % 2, 14, 10, noise=1.0, seed=i) for i in range(10)]


@pytest.fixture(scope="module")
def ranker(sequences):
    one = SegmentationRanker(JOINED_FAMILIES, FEATURES, RankerSettings("linear", 20, n_steps=50))
    sets = []
    for tracks, truth in sequences:
        sets.append(
            one.candidate_set(tracks, len(np.unique(truth)), TrackSequence("", tracks, truth))
        )
    mixed = [
        joined(list(one.sets_by_number(tracks, TrackSequence("", tracks, truth)).values()))
        for tracks, truth in sequences[:3]
    ]
    return one.fit(sets, mixed, [len(np.unique(truth)) for _, truth in sequences[:3]])


def test_saved_and_loaded_the_answer_is_the_same(ranker, sequences, tmp_path):
    ranker.save(tmp_path / "m.safetensors")
    loaded = load_model(tmp_path / "m.safetensors")
    assert loaded.selected_names() == ranker.selected_names()
    assert set(ranker.selected_names()) <= set(FEATURES.get_feature_names_out())
    for tracks, _ in sequences[:2]:
        for number in (2, None):
            a, b = ranker.segment(tracks, number), loaded.segment(tracks, number)
            np.testing.assert_array_equal(a.labels, b.labels)
            np.testing.assert_array_equal(a.scores, b.scores)
    ranker.save(tmp_path / "again.safetensors")
    assert (tmp_path / "m.safetensors").read_bytes() == (
        tmp_path / "again.safetensors"
    ).read_bytes()


def test_what_is_not_trained_says_so(tmp_path):
    tracks, _ = rigid_motions(2, 10)
    with pytest.raises(ValueError, match="not fitted"):
        SegmentationRanker().segment(tracks, 2)
    with pytest.raises(ValueError, match="call fit before you save"):
        SegmentationRanker().save(tmp_path / "m.safetensors")


def test_without_a_chooser_the_number_must_be_given(ranker):
    tracks, _ = rigid_motions(2, 10)
    with pytest.raises(ValueError, match="set n_motions"):
        SegmentationRanker(
            JOINED_FAMILIES, FEATURES, ranker.settings, function=ranker.function
        ).segment(tracks)


def candidates_of_numbers(truth, rng, largest=5):
    """Candidates for 2 to ``largest`` motions, whose GRIC is smallest at the true number; a step
    beyond it makes a motion that another one fits better."""
    numbers = np.arange(2, largest + 1)
    gric = 0.1 * np.abs(numbers - truth) + 0.05 * rng.normal(size=len(numbers))
    worst = (numbers > truth) + 0.2 * rng.normal(size=len(numbers))
    features = np.column_stack([rng.normal(size=len(numbers)), 100.0 + gric, worst])
    listed = [Candidate(np.arange(20) % k, "raw", 4) for k in numbers]
    return CandidateSet("", "", listed, features)


def test_the_number_of_motions_is_learnt():
    names = (("velocity", "GRIC"), ("best model, all gaps", "GRIC"))
    worst = ("homography, all gaps", "worst motion's share fitted better")
    features = [Feature("likelihood", *name) for name in (*names, worst)]
    ranking = RankingFunction.learn(invented_sets(), RankerSettings("linear", 1, n_steps=20))
    rng = np.random.default_rng(0)
    truths = rng.integers(2, 6, 200).tolist()
    sets = [candidates_of_numbers(k, rng) for k in truths]
    chooser = MotionChooser.learn(sets[:150], truths[:150], ranking, features)
    assert chooser.levels.tolist() == [1] and chooser.steps.tolist() == [2]
    answers = [chooser.probabilities(one, ranking) for one in sets[150:]]
    right = [next(iter(answer)) == k for answer, k in zip(answers, truths[150:])]
    assert np.mean(right) > 0.85
    assert np.mean([max(answer.values()) for answer in answers]) == pytest.approx(
        np.mean(right), abs=0.15
    )
    assert all(list(a.values()) == sorted(a.values(), reverse=True) for a in answers)
    few = chooser.probabilities(candidates_of_numbers(3, rng, largest=4), ranking)
    assert set(few) == {2, 3, 4} and sum(few.values()) == pytest.approx(1.0)


def test_the_temperature_reduces_the_confidence_in_the_number(monkeypatch):
    names = (("velocity", "GRIC"), ("best model, all gaps", "GRIC"), ("velocity", "other"))
    features = [Feature("likelihood", *name) for name in names]
    ranking = RankingFunction.learn(invented_sets(), RankerSettings("linear", 1, n_steps=20))
    rng = np.random.default_rng(0)
    truths = rng.integers(2, 6, 50).tolist()
    sets = [candidates_of_numbers(k, rng) for k in truths]
    choosers = []
    for temperature in (1.0, 2.0):
        monkeypatch.setattr(ranking_function, "TEMPERATURE", temperature)
        choosers.append(MotionChooser.learn(sets, truths, ranking, features))
    for one in sets[:5]:
        fitted, reduced = (chooser.probabilities(one, ranking) for chooser in choosers)
        assert list(fitted) == list(reduced) and max(reduced.values()) < max(fitted.values())
        assert np.log(reduced[3] / reduced[2]) == pytest.approx(np.log(fitted[3] / fitted[2]) / 2.0)


def test_the_shipped_model_says_what_it_is():
    model = load_model("motion")
    assert isinstance(model, SegmentationRanker)
    assert model.training["sequences"] == 155
    assert len(model.selected_names()) == model.settings.n_features_to_select
    tracks, truth = rigid_motions(3, 20, 15, noise=0.3, seed=5)
    candidates = candidate_set(
        tracks, 3, model.families, model.features, TrackSequence("", tracks, truth)
    )
    assert (
        misclassification(truth, model.segment(tracks, 3).labels) <= candidates.errors.min() + 0.05
    )


def test_tracks_that_say_nothing_are_said():
    model = load_model("motion")
    with pytest.warns(UserWarning, match=r"no track moves by 0\.01 pixels or more"):
        model.segment(np.zeros((5, 24, 2)), 2)
    one = np.random.default_rng(0).normal(size=(6, 1, 2)).cumsum(axis=0)
    with pytest.warns(UserWarning, match="only 1 of 24 tracks are distinct"):
        model.segment(np.repeat(one, 24, axis=1), 2)
    corners = np.random.default_rng(1).uniform(0, 300, (1, 24, 2))
    with pytest.warns(UserWarning, match="the motion of a single plane explains all tracks"):
        model.segment(corners + np.arange(9)[:, None, None] * [3.0, 1.0])
    tracks = np.random.default_rng(0).uniform(size=(6, 24, 2))
    for bad in (np.inf, -np.inf, 1e302):
        tracks[2, 3, 1] = bad
        with pytest.raises(
            ValueError, match=r"point 3 in frame 2 has the coordinates .*expected finite pixels"
        ):
            model.segment(tracks, 2)


@pytest.mark.parametrize(
    "change",
    [
        lambda h: h["families"][0].update(highest=None),
        lambda h: h["families"][0].update(lowest=30),
        lambda h: h["families"][0].update(representation="x"),
        lambda h: h["families"].clear(),
        lambda h: h["pool"][1].update(parts=["x"]),
        lambda h: h["pool"][0].update(kind="x"),
        lambda h: h["pool"].clear(),
        lambda h: h["settings"].update(response=3.7),
        lambda h: h["settings"].pop("n_bins"),
        lambda h: h.update(min_motion_size=-1),
        lambda h: h.update(training=3),
        lambda h: h.update(families=3),
    ],
)
def test_senseless_settings_are_refused_when_read(tmp_path, change):
    arrays, header = read_model(FOLDER / "motion.safetensors", "segmentation ranker")
    change(header)
    write_model(tmp_path / "m.safetensors", "segmentation ranker", arrays, header)
    with pytest.raises(ValueError, match=r"m\.safetensors: the file is damaged") as error:
        SegmentationRanker.load(tmp_path / "m.safetensors")
    assert len(str(error.value)) <= 300


def test_files_with_the_first_features_go_on_answering(ranker, sequences, tmp_path):
    """Old files hold one record of features, no version, and no choice of the number."""
    ranker.save(tmp_path / "new.safetensors")
    arrays, header = read_model(tmp_path / "new.safetensors", SegmentationRanker.KIND)
    record = {k: v for k, v in header["pool"][0].items() if k != "kind"}
    settings = {k: v for k, v in header["settings"].items() if k not in ("schedule", "balance")}
    old = {k: v for k, v in header.items() if k != "feature_set"} | {
        "pool": record,
        "settings": settings,
    }
    arrays = {k: v for k, v in arrays.items() if not k.startswith("number")}
    write_model(tmp_path / "old.safetensors", SegmentationRanker.KIND, arrays, old)
    tracks, _ = sequences[0]
    a, b = (
        load_model(tmp_path / f"{name}.safetensors").segment(tracks, 2) for name in ("new", "old")
    )
    np.testing.assert_array_equal(a.scores, b.scores)
    write_model(
        tmp_path / "later.safetensors", SegmentationRanker.KIND, arrays, header | {"feature_set": 9}
    )
    with pytest.raises(
        ValueError,
        match="feature set 9 is not supported by this version of annealed, which reads feature "
        "sets 1 to 2; update",
    ):
        load_model(tmp_path / "later.safetensors")


def test_the_memory_for_many_tracks_is_reported(ranker, monkeypatch):
    monkeypatch.setattr(ranker_module, "_MANY", 20)
    tracks, _ = rigid_motions(2, 14, 10)
    with pytest.warns(
        UserWarning,
        match=r"28 tracks require about 0 GB of memory; those of 20 tracks require 0 GB",
    ):
        ranker.segment(tracks, 2)


def test_points_of_which_nothing_is_known_get_the_largest_motion(ranker):
    tracks, _ = rigid_motions(2, 14, 12)
    tracks = np.concatenate([tracks, tracks[:, :3]], axis=1)
    tracks[:, 28] = np.nan
    tracks[1:, 29] = np.nan
    tracks[1:, 30] = np.nan
    answer = ranker.segment(tracks, 2)
    assert answer.unseen.tolist() == [28, 29, 30] and answer.probability_of_motions == 1.0
    assert (answer.labels[28:] == 0).all() and all(len(c.labels) == 31 for c in answer.candidates)
    np.testing.assert_array_equal(
        canonical_labels(answer.labels[:28]),
        canonical_labels(ranker.segment(tracks[:, :28], 2).labels),
    )


def test_short_tracks_are_segmented_and_too_few_are_rejected():
    tracks, truth = rigid_motions(2, 30, 20, noise=0.3)
    model = load_model("motion")
    with pytest.raises(ValueError, match="7 points for 2 motions; expected at least 4 points per"):
        model.segment(tracks[:, :7])
    cut = tracks.copy()
    cut[12:, ::3] = np.nan  # lost
    cut[:8, 1::3] = np.nan  # detected later
    cut[9, 2::3] = np.nan  # interrupted
    answer = model.segment(cut, 2)
    assert misclassification(truth, answer.labels) < 0.05 and not len(answer.unseen)


def test_outliers_are_labelled_when_asked_for():
    tracks, _ = rigid_motions(2, 30, 20, noise=0.2)
    rng = np.random.default_rng(0)
    tracks[:, [3, 40]] += np.cumsum(rng.normal(0, 6, (20, 2, 2)), axis=0)
    model = load_model("motion")
    plain, marked = model.segment(tracks, 2), model.segment(tracks, 2, outliers=True)
    assert plain.labels.min() == 0
    assert set(np.flatnonzero(marked.labels < 0)) >= {3, 40} and (marked.labels < 0).sum() <= 6
    np.testing.assert_array_equal(
        marked.labels[marked.labels >= 0], plain.labels[marked.labels >= 0]
    )


def test_the_number_of_motions_has_a_probability():
    tracks, _ = rigid_motions(2, 30, 20, noise=0.3)
    answer = load_model("motion").segment(tracks)
    assert answer.n_motions in (2, 3, 4, 5) and 0.25 <= answer.probability_of_motions <= 1.0
