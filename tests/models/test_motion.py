"""Ranking of candidate segmentations, its protocol, and `annealed motion`."""

import json

import numpy as np
import pytest
from annealed.models import load_model
from annealed.models.motion.candidate_set import CandidateSet, candidate_set, ranked_pairs, relative
from annealed.models.motion.ranker import SegmentationRanker
from annealed.models.motion.ranking_function import RankerSettings, RankingFunction
from annealed.pipelines.motion import evaluate as evaluate_module
from annealed.pipelines.motion import report as motion_report
from annealed.pipelines.motion.benchmark import Benchmark
from annealed.pipelines.motion.cross_validation import cross_validate, folds
from annealed.pipelines.motion.evaluate import evaluate, n_steps
from annealed.pipelines.motion.methods import GRID, SMALL_MOTION
from annealed.pipelines.motion.nested_choice import NestedErrors, choose_in_training_folds
from annealed.vision.tracks.candidates import JOINED_FAMILIES, Candidate
from annealed.vision.tracks.features import SegmentationFeatures
from annealed.vision.tracks.io import TrackSequence
from annealed.vision.tracks.labels import by_size, canonical_labels, misclassification
from helpers import run

FEATURES = SegmentationFeatures(n_thresholds=5, neighbours=(3, 7), dimensions=(2.0, 4.0), n_smallest=2)


def rigid_motions(n_motions=2, n_points=14, n_frames=10, noise=0.05, seed=0):
    """Point clouds that turn about axes of their own and move; tracks (F, P, 2) and labels (P,)."""
    rng = np.random.default_rng(seed)
    parts = []
    for k in range(n_motions):
        cloud, rows = rng.uniform(-60, 60, (n_points, 3)), np.linalg.qr(rng.standard_normal((3, 3)))[0]
        place, speed = rng.uniform(100, 300, 2), rng.uniform(-4, 4, 2)
        angles = (0.03 + 0.02 * k) * np.arange(n_frames)
        turns = np.stack([np.cos(angles), -np.sin(angles), np.zeros(n_frames)], axis=1)
        sides = np.stack([np.sin(angles), np.cos(angles), np.zeros(n_frames)], axis=1)
        seen = cloud @ rows
        flat = np.stack([seen @ turns.T, 0.8 * (seen @ sides.T) + 0.6 * seen[:, 2:]], axis=2).transpose(1, 0, 2)
        parts.append(flat + place + np.arange(n_frames)[:, None, None] * speed)
    tracks = np.concatenate(parts, axis=1)
    return tracks + noise * rng.standard_normal(tracks.shape), np.repeat(np.arange(n_motions), n_points)


def invented_sets(n_sets=40, n_features=30, seed=0):
    """Candidates whose error is told by the first feature and, in part, by the second."""
    rng = np.random.default_rng(seed)
    sets = []
    for i in range(n_sets):
        n = int(rng.integers(1, 6))
        errors = rng.choice([0.0, 0.1, 0.2, 0.4], n)
        features = rng.normal(size=(n, n_features)) + 10 * rng.normal(size=n_features)
        features[:, 0] += 30 * errors
        features[:, 1] -= 10 * errors
        labels = [np.arange(20) < rng.integers(4, 16) for _ in range(n)]
        sets.append(CandidateSet(f"s{i}", f"v{i % 20}", [Candidate(l.astype(int), "raw", 4) for l in labels], features, errors))
    return sets


@pytest.mark.parametrize("response", ["linear", "piecewise"])
def test_ranking_learns_what_tells_the_error(response):
    function = RankingFunction.learn(invented_sets(), RankerSettings(response, 2, n_steps=60))
    assert set(function.selected) == {0, 1}
    picked = [s.errors[np.argmax(function.scores(s.features))] - s.errors.min() for s in invented_sets(seed=1)]
    assert np.mean(picked) < 0.02


@pytest.mark.parametrize("response", ["linear", "piecewise"])
def test_scores_compare_candidates_of_one_sequence_alone(response):
    """A shift that all candidates of a sequence share says nothing."""
    features = np.random.default_rng(0).normal(size=(4, 7))
    np.testing.assert_allclose(relative(features + np.arange(7), response), relative(features, response), atol=1e-12)


def test_pairs_stay_within_a_sequence():
    sets = invented_sets(6)
    pairs = ranked_pairs(sets)
    owner = np.repeat(np.arange(6), [len(s) for s in sets])
    errors = np.concatenate([s.errors for s in sets])
    i, j = pairs[:, :2].astype(int).T
    assert (owner[i] == owner[j]).all()
    assert len(pairs) == sum(len(s) * (len(s) - 1) // 2 for s in sets)
    np.testing.assert_array_equal(pairs[:, 2], np.select([errors[i] < errors[j], errors[i] > errors[j]], [1.0, 0.0], 0.5))


def test_nothing_to_learn_from():
    sets = [CandidateSet("a", "a", [Candidate(np.zeros(8, int), "raw", 4)] * 2, np.zeros((2, 3)), np.zeros(2))]
    with pytest.raises(ValueError, match="no sequence has two candidates of different error"):
        RankingFunction.learn(sets, RankerSettings("linear", 2))


def test_small_motions_are_left_out_unless_nothing_else_is_there():
    labels = [np.arange(20) < n for n in (2, 9, 10)]
    one = CandidateSet("a", "a", [Candidate(l.astype(int), "raw", 4) for l in labels], np.zeros((3, 1)), np.array([0.0, 0.1, 0.2]))
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
        sets.append(one.candidate_set(tracks, len(np.unique(truth)), TrackSequence("", tracks, truth)))
    mixed = [one.mixed_set(tracks, TrackSequence("", tracks, truth)) for tracks, truth in sequences[:3]]
    return one.fit(sets, mixed)


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
    assert (tmp_path / "m.safetensors").read_bytes() == (tmp_path / "again.safetensors").read_bytes()


def test_what_is_not_trained_says_so(tmp_path):
    tracks, _ = rigid_motions(2, 10)
    with pytest.raises(ValueError, match="not trained"):
        SegmentationRanker().segment(tracks, 2)
    with pytest.raises(ValueError, match="nothing to save"):
        SegmentationRanker().save(tmp_path / "m.safetensors")


def test_without_a_chooser_the_number_must_be_given(ranker):
    tracks, _ = rigid_motions(2, 10)
    with pytest.raises(ValueError, match="give the number"):
        SegmentationRanker(JOINED_FAMILIES, FEATURES, ranker.settings, function=ranker.function).segment(tracks)


def test_labels_by_size():
    np.testing.assert_array_equal(by_size(np.array([5, 5, 1, 2, 2, 2])), [1, 1, 2, 0, 0, 0])


# -- the protocol -----------------------------------------------------------------------------------------------------


def test_a_video_is_never_in_two_folds():
    videos = np.array([f"v{i}" for i in range(25)] * 3)
    fold = folds(videos, 3)
    for v in np.unique(videos):
        assert len(np.unique(fold[videos == v])) == 1
    counts = np.bincount(fold) // 3
    assert counts.min() >= 2 and counts.max() <= 3 and len(counts) == 10
    assert (fold != folds(videos, 4)).any()
    with pytest.raises(ValueError, match="9 videos cannot be divided into 10 folds"):
        folds(videos[:9], 0)


def invented_benchmark():
    sets = invented_sets()
    pool = SegmentationFeatures(representations=("raw",), dimensions=(2.0,), n_thresholds=2, neighbours=(3,), n_smallest=1)
    n = len(pool.get_feature_names_out())
    sets = [CandidateSet(s.name, s.video, s.candidates, s.features[:, :n], s.errors) for s in sets]
    return Benchmark({"paper": sets, "joined": sets}, np.array([2, 3] * 20), np.zeros(40), pool)


def test_the_test_fold_takes_no_part_in_training():
    """Errors of the test fold may be anything without changing what is picked there."""
    sets = invented_benchmark().sets["joined"]
    fold = folds(np.array([s.video for s in sets]), 0)
    seen = []

    def learn(train):
        seen.append({s.video for s in train})
        return lambda sets: [-one.features[:, 0] for one in sets]

    cross_validate(sets, fold, learn)
    for q, videos in enumerate(seen):
        assert not videos & {s.video for s, f in zip(sets, fold) if f == q}


def test_table_has_every_line_and_the_oracle_is_below_all():
    methods = ["rankboost", "fit", "oracle"]
    benchmark = invented_benchmark()
    results = evaluate(benchmark, methods, 1)
    rows = motion_report.table_rows(benchmark, results)
    every = [r for r in rows if (r["category"], r["motions"]) == ("all", "all")]
    assert len(every) == n_steps(benchmark, methods, 1)
    for size in (0, SMALL_MOTION):
        averages = {r["method"]: r["test_average"] for r in every if r["min_motion_size"] == size}
        assert min(averages.values()) == averages["oracle, joined"] == averages["oracle, paper"]
    assert {r["motions"] for r in rows} == {2, 3, "all"}


@pytest.mark.parametrize("sizes", [(0,), (0, 5, 10)])
def test_number_of_steps_is_what_is_reported(sizes):
    steps = []
    benchmark = invented_benchmark()
    evaluate(benchmark, ["fit", "oracle"], 2, sizes, on_step=lambda: steps.append(1))
    assert len(steps) == n_steps(benchmark, ["fit", "oracle"], 2, sizes) == 2 * 4 * len(sizes)


def test_choices_are_made_by_inner_errors_alone():
    fold = np.arange(40) % 10
    rng = np.random.default_rng(0)
    inner, outer = rng.uniform(1, 2, (3, 10, 40)), rng.uniform(0, 1, (3, 10, 40))
    inner[1] -= 0.9  # the best inside, though not outside
    outer[1] += 5.0
    grid = GRID[:3]
    test, train, chosen = choose_in_training_folds(NestedErrors(fold, inner, outer), grid, np.ones(3, bool))
    np.testing.assert_array_equal(test, outer[1, fold, np.arange(40)])
    assert all(row.items() >= grid[1].describe().items() for row in chosen) and len(chosen) == 10
    assert train.min() >= 5.0


def test_more_smallest_than_dimensions():
    with pytest.raises(ValueError, match="n_smallest is 4; expected at most the number of dimensions, 2"):
        SegmentationFeatures(dimensions=(2.0, 4.0))


def test_unknown_methods():
    with pytest.raises(ValueError, match=r"method 'svm' is unknown; expected fsa"):
        evaluate(invented_benchmark(), ["svm"])


# -- the command line -------------------------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def data(tmp_path_factory, sequences):
    folder = tmp_path_factory.mktemp("tracks")
    for i, (tracks, truth) in enumerate(sequences):
        np.savez(folder / f"scene{i}.npz", tracks=tracks, labels=truth)
    return folder


def test_segment_json(data):
    result = run("motion", "segment", data / "scene0.npz", data / "scene2.npz", "--motions", "2", "--json")
    assert result.exit_code == 0 and len(result.stdout.splitlines()) == 2
    record = json.loads(result.stdout.splitlines()[0])
    assert list(record) == ["sequence", "motions", "labels", "candidates"]
    assert record["sequence"] == "scene0" and record["motions"] == 2
    with np.load(data / "scene0.npz") as content:
        assert misclassification(content["labels"], record["labels"]) <= 0.1
    scores = [c["score"] for c in record["candidates"]]
    assert scores == sorted(scores, reverse=True)
    assert all(set(c) == {"family", "dimension", "score"} for c in record["candidates"])


def test_shuffled_points_give_the_same_answer(sequences, tmp_path):
    tracks, _ = sequences[1]
    order = np.random.default_rng(0).permutation(tracks.shape[1])
    np.savez(tmp_path / "a.npz", tracks=tracks)
    np.savez(tmp_path / "b.npz", tracks=tracks[:, order])
    found = run("motion", "segment", tmp_path / "a.npz", tmp_path / "b.npz", "--json").stdout.splitlines()
    a, b = (np.array(json.loads(line)["labels"]) for line in found)
    np.testing.assert_array_equal(canonical_labels(a[order]), canonical_labels(b))


def test_one_bad_file_does_not_stop_the_others(data, tmp_path):
    np.savez(tmp_path / "one.npz", tracks=np.zeros((1, 20, 2)))
    result = run("motion", "segment", tmp_path / "one.npz", data / "scene0.npz", "--motions", "2", "--json")
    first, second = (json.loads(line) for line in result.stdout.splitlines())
    assert result.exit_code == 2
    assert first == {"sequence": "one", "error": f"{tmp_path / 'one.npz'}: tracks have 1 frame; motion needs at least 2"}
    assert second["sequence"] == "scene0"
    assert len(result.stderr.splitlines()) == 1


@pytest.mark.parametrize(
    "tracks, motions, message",
    [
        ((10, 7, 2), "2", "7 points for 2 motions; expected at least 4 points per motion, 8"),
        ((10, 7, 2), "auto", "7 points for 2 motions"),
        ((1, 20, 2), "auto", "1 frame; motion needs at least 2"),
        ((10, 20, 2), "0", "--motions 0: expected at least 1"),
        ((10, 20, 2), "21", "motions is 21; expected a number from 1 to the number of points, 20"),
        ((10, 20, 2), "many", "--motions many: expected a number or auto"),
        (None, "2", "20 of 20 points are never seen"),
    ],
)
def test_bad_input_is_one_line(tmp_path, tracks, motions, message):
    values = np.full((10, 20, 2), np.nan) if tracks is None else np.random.default_rng(0).uniform(size=tracks)
    np.savez(tmp_path / "t.npz", tracks=values)
    result = run("motion", "segment", tmp_path / "t.npz", "--motions", motions)
    assert result.exit_code == 2 and result.stdout == ""
    assert len(result.stderr.splitlines()) == 1 and message in result.stderr


def test_other_bad_calls(data, tmp_path):
    np.savez(tmp_path / "t.npz", tracks=np.zeros((5, 20, 2)))
    for arguments, message in (
        (["segment", data / "scene0.npz", "--model", "mouse"], "mouse"),
        (["segment", data / "scene0.npz", data / "scene1.npz", "--overlay", tmp_path / "o.mp4"], "--overlay takes one FILE, not 2"),
        (["evaluate", "--data", tmp_path], "t: has no labels"),
        (["evaluate", "--data", data, "--partitions", "0"], "--partitions 0: expected at least 1"),
        (["evaluate", "--data", data, "--method", "svm"], "method 'svm' is unknown"),
        (["train", "--data", tmp_path, "--out", tmp_path / "m.safetensors"], "t: has no labels"),
        (["train", "--data", data, "--out", tmp_path / "m.safetensors", "--min-motion-size", "-1"], "expected 0 or more"),
    ):
        result = run("motion", *arguments)
        assert result.exit_code == 2 and result.stdout == "", arguments
        assert len(result.stderr.splitlines()) == 1 and message in result.stderr, result.stderr
    assert [p.name for p in tmp_path.iterdir()] == ["t.npz"]


def test_train_then_segment(data, tmp_path):
    few = tmp_path / "few"
    few.mkdir()
    for i in range(3):
        (few / f"scene{i}.npz").write_bytes((data / f"scene{i}.npz").read_bytes())
    assert run("motion", "train", "--data", few, "--out", tmp_path / "mine.safetensors", "--quiet").exit_code == 0
    result = run("motion", "segment", data / "scene0.npz", "--motions", "2", "--model", tmp_path / "mine.safetensors")
    assert result.exit_code == 0 and "scene0: 2 motions of " in result.stdout
    shown = run("models", "show", tmp_path / "mine.safetensors", "--json")
    assert shown.exit_code == 0 and "likelihood" in shown.stdout


def test_evaluate_writes_its_report(data, tmp_path):
    report = tmp_path / "report"
    arguments = ["--method", "fit", "--method", "oracle", "--partitions", "1", "--report", report, "--json", "--quiet"]
    result = run("motion", "evaluate", "--data", data, *arguments)
    assert result.exit_code == 0
    record = json.loads(result.stdout)
    assert list(record) == ["name", "settings", "rows"] and record["settings"]["sequences"] == 10
    assert {"table.md", "results.json", "cumulative.png"} <= {p.name for p in report.iterdir()}
    assert "oracle, joined" in (report / "table.md").read_text()


def test_evaluate_never_deletes_and_goes_on_only_when_asked(data, tmp_path, monkeypatch):
    report = tmp_path / "report"
    (report / "finished").mkdir(parents=True)
    (report / "finished" / "precious.txt").write_text("thesis")
    command = ["motion", "evaluate", "--data", data, "--method", "fit", "--report", report, "--json", "--quiet", "--partitions"]
    rows = json.loads(run(*command, 1).stdout)["rows"]
    assert (report / "finished" / "precious.txt").read_text() == "thesis"
    before = (report / ".annealed-finished").read_bytes()
    again = run(*command, 1)
    assert again.exit_code == 2 and "go on from them with --resume, or take another folder" in again.stderr
    assert (report / ".annealed-finished").read_bytes() == before
    monkeypatch.setattr(evaluate_module, "cross_validate", lambda *_: pytest.fail("made twice"))
    assert json.loads(run(*command, 1, "--resume").stdout)["rows"] == rows
    monkeypatch.undo()
    assert len(json.loads(run(*command, 2, "--resume").stdout)["rows"]) == len(rows)
    (data / "scene0.npz").rename(tmp_path / "scene0.npz")
    np.savez(data / "scene0.npz", **{name: array + (name == "tracks") for name, array in np.load(tmp_path / "scene0.npz").items()})
    other = run(*command, 1, "--resume")
    (tmp_path / "scene0.npz").replace(data / "scene0.npz")
    assert other.exit_code == 2 and "made from other settings or data" in other.stderr


def test_the_shipped_model_says_what_it_is():
    model = load_model("motion")
    assert isinstance(model, SegmentationRanker)
    assert model.training["sequences"] == 155
    assert len(model.selected_names()) == model.settings.n_features_to_select
    tracks, truth = rigid_motions(3, 20, 15, noise=0.3, seed=5)
    found = candidate_set(tracks, 3, model.families, model.features, TrackSequence("", tracks, truth))
    assert misclassification(truth, model.segment(tracks, 3).labels) <= found.errors.min() + 0.05
