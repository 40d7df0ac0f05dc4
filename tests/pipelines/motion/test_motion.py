"""The motion experiments' protocol, and `annealed motion`."""

import json
from dataclasses import replace

import numpy as np
import pytest
from annealed.learners import Schedule
from annealed.models import load_model
from annealed.models.motion.candidate_set import CandidateSet
from annealed.models.motion.ranker import Segmentation
from annealed.pipelines.common.samples import write_sample
from annealed.pipelines.common.video import write_video
from annealed.pipelines.motion import evaluate as evaluate_module
from annealed.pipelines.motion import report as motion_report
from annealed.pipelines.motion.benchmark import POOLS, Benchmark
from annealed.pipelines.motion.drawing import COLOURS, draw_tracks
from annealed.pipelines.motion.evaluate import (
    choose_in_training_folds,
    cross_validate,
    evaluate,
    folds,
)
from annealed.pipelines.motion.methods import GRID, PAPER
from annealed.pipelines.motion.segment import FileSegmentation, segment_file, write_overlay
from annealed.pipelines.motion.synthetic import TEST_SEEDS, TRAINING_SEEDS, perspective_sequence
from annealed.vision.images import read_image
from annealed.vision.tracks.features import SegmentationFeatures
from annealed.vision.tracks.labels import canonical_labels, misclassification
from annealed.vision.tracks.tracker import Tracker
from annealed.vision.tracks.video import read_frames
from annealed_experiments.tables import motion as paper_table
from annealed_experiments.tables.motion import printed
from helpers import Scene, invented_sets, rigid_motions, run


def test_a_video_is_never_in_two_folds():
    videos = np.array([f"v{i}" for i in range(25)] * 3)
    fold = folds(videos, 3)
    for v in np.unique(videos):
        assert len(np.unique(fold[videos == v])) == 1
    counts = np.bincount(fold) // 3
    assert counts.min() >= 2 and counts.max() <= 3 and len(counts) == 10
    assert (fold != folds(videos, 4)).any()
    with pytest.raises(ValueError, match="9 videos cannot be split into 10 folds"):
        folds(videos[:9], 0)


def invented_benchmark():
    sets = invented_sets()
    pool = SegmentationFeatures(
        representations=("raw",), dimensions=(2.0,), n_thresholds=2, neighbours=(3,), n_smallest=1
    )
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
    assert len(every) == len(results) == 6
    averages = {r["method"]: r["test_average"] for r in every}
    assert min(averages.values()) == averages["oracle, joined"] == averages["oracle, paper"]
    assert {r["motions"] for r in rows} == {2, 3, "all"}


def test_number_of_steps_is_what_is_reported():
    steps = []

    def watched(items, n):
        assert len(items) == n == 2 * 4
        yield from map(steps.append, items)

    evaluate(invented_benchmark(), ["fit", "oracle"], 2, progress=watched)
    assert len(steps) == 2 * 4


def test_choices_are_made_by_inner_errors_alone():
    fold = np.arange(40) % 10
    rng = np.random.default_rng(0)
    inner, outer = rng.uniform(1, 2, (3, 10, 40)), rng.uniform(0, 1, (3, 10, 40))
    inner[1] -= 0.9  # the best inside, though not outside
    outer[1] += 5.0
    grid = GRID[:3]
    test, train, chosen = choose_in_training_folds(fold, inner, outer, grid)
    np.testing.assert_array_equal(test, outer[1, fold, np.arange(40)])
    assert all(row.items() >= grid[1].describe().items() for row in chosen) and len(chosen) == 10
    assert train.min() >= 5.0


def test_unknown_methods():
    with pytest.raises(ValueError, match=r"method 'svm' is unknown; expected one of fsa"):
        evaluate(invented_benchmark(), ["svm"])


@pytest.fixture(scope="module")
def sequences():
    """A video each: two or three noisy rigid motions."""
    return [rigid_motions(2 + i % 2, 14, 10, noise=1.0, seed=i) for i in range(10)]


@pytest.fixture(scope="module")
def data(tmp_path_factory, sequences):
    folder = tmp_path_factory.mktemp("tracks")
    for i, (tracks, truth) in enumerate(sequences):
        np.savez(folder / f"scene{i}.npz", tracks=tracks, labels=truth)
    return folder


def test_segment_json(data, tmp_path):
    tracks, truth = rigid_motions(2, 14, 10, noise=0.5, seed=0)
    np.savez(tmp_path / "clear.npz", tracks=tracks, labels=truth)
    result = run(
        "motion", "segment", tmp_path / "clear.npz", data / "scene2.npz", "--motions", "2", "--json"
    )
    assert result.exit_code == 0 and len(result.stdout.splitlines()) == 2
    record = json.loads(result.stdout.splitlines()[0])
    assert list(record) == [
        "sequence",
        "motions",
        "probability_of_motions",
        "numbers",
        "labels",
        "unseen",
        "candidates",
    ]
    assert record["probability_of_motions"] == 1.0 and record["unseen"] == []
    assert record["numbers"] == [{"motions": 2, "probability": 1.0}]
    assert record["sequence"] == "clear" and record["motions"] == 2
    assert misclassification(truth, record["labels"]) <= 0.1
    scores = [c["score"] for c in record["candidates"]]
    assert scores == sorted(scores, reverse=True)
    assert all(set(c) == {"family", "dimension", "score"} for c in record["candidates"])


def test_the_sample_video_has_three_motions(tmp_path):
    """A background and two discs that cross before it."""
    write_sample(tmp_path / "moving.avi")
    result = segment_file(load_model("motion"), tmp_path / "moving.avi", None)
    assert result.segmentation.n_motions == 3
    first = result.tracks[0]
    seen = np.isfinite(first[:, 0]) & (result.labels >= 0)
    discs = [
        np.hypot(*(first - centre).T) < radius
        for centre, radius in (((105, 101), 50), ((380, 225), 50))
    ]
    for disc in discs:
        labels = result.labels[seen & disc]
        assert len(labels) > 5 and np.bincount(labels).max() >= 0.9 * len(labels)
    background = result.labels[seen & ~np.any(discs, axis=0)]
    assert np.mean(background == 0) > 0.8


def test_an_unclear_number_of_motions_is_reported_with_the_next(sequences):
    tracks, truth = sequences[0]
    clear, unclear = (
        FileSegmentation(
            "scene",
            truth,
            Segmentation(truth, 2, [], np.empty(0), probabilities),
            np.empty(0, int),
            tracks,
        ).describe()
        for probabilities in ({2: 0.9, 3: 0.1}, {2: 0.6, 4: 0.3, 3: 0.1})
    )
    assert clear.endswith("probability of this number 0.90")
    assert unclear.endswith("probability of this number 0.60, of 4 motions 0.30")


def test_shuffled_points_give_the_same_answer(sequences, tmp_path):
    tracks, _ = sequences[1]
    order = np.random.default_rng(0).permutation(tracks.shape[1])
    np.savez(tmp_path / "a.npz", tracks=tracks)
    np.savez(tmp_path / "b.npz", tracks=tracks[:, order])
    found = run(
        "motion", "segment", tmp_path / "a.npz", tmp_path / "b.npz", "--json"
    ).stdout.splitlines()
    a, b = (np.array(json.loads(line)["labels"]) for line in found)
    np.testing.assert_array_equal(canonical_labels(a[order]), canonical_labels(b))


def test_one_bad_file_does_not_stop_the_others(data, tmp_path):
    np.savez(tmp_path / "one.npz", tracks=np.zeros((1, 20, 2)))
    result = run(
        "motion", "segment", tmp_path / "one.npz", data / "scene0.npz", "--motions", "2", "--json"
    )
    first, second = (json.loads(line) for line in result.stdout.splitlines())
    assert result.exit_code == 1
    assert first == {
        "sequence": "one",
        "error": f"{tmp_path / 'one.npz'}: tracks have 1 frame; expected at least 2",
    }
    assert second["sequence"] == "scene0"
    assert len(result.stderr.splitlines()) == 1


@pytest.mark.parametrize(
    "tracks, motions, message",
    [
        ((10, 7, 2), "2", "7 points for 2 motions; expected at least 4 points per motion, 8"),
        ((10, 7, 2), "auto", "7 points for 2 motions"),
        ((1, 20, 2), "auto", "1 frame; expected at least 2"),
        ((10, 20, 2), "0", "--motions 0 is not valid; expected an integer >= 1"),
        (
            (10, 20, 2),
            "21",
            "n_motions=21 is not valid; expected an integer from 1 to 20, the number of points",
        ),
        ((10, 20, 2), "many", "--motions many is not valid; expected an integer >= 1 or auto"),
        (None, "2", "20 of 20 points are not visible in any frame"),
    ],
)
def test_bad_input_is_one_line(tmp_path, tracks, motions, message):
    values = (
        np.full((10, 20, 2), np.nan)
        if tracks is None
        else np.random.default_rng(0).uniform(size=tracks)
    )
    np.savez(tmp_path / "t.npz", tracks=values)
    result = run("motion", "segment", tmp_path / "t.npz", "--motions", motions)
    assert result.exit_code == 2 and result.stdout == ""
    assert len(result.stderr.splitlines()) == 1 and message in result.stderr


def test_other_bad_calls(data, tmp_path):
    np.savez(tmp_path / "t.npz", tracks=np.zeros((5, 20, 2)))
    for arguments, message in (
        (["segment", data / "scene0.npz", "--model", "mouse"], "mouse"),
        (
            ["segment", data / "scene0.npz", data / "scene1.npz", "--overlay", tmp_path / "o.mp4"],
            "--overlay accepts a single FILE, not 2",
        ),
        (["evaluate", "--data", tmp_path], "t: the sequence has no labels"),
        (
            ["evaluate", "--data", data, "--partitions", "0"],
            "--partitions 0 is not valid; expected an integer >= 1",
        ),
        (["evaluate", "--data", data, "--method", "svm"], "method 'svm' is unknown"),
        (
            ["train", "--data", tmp_path, "--out", tmp_path / "m.safetensors"],
            "t: the sequence has no labels",
        ),
        (
            [
                "train",
                "--data",
                data,
                "--out",
                tmp_path / "m.safetensors",
                "--min-motion-size",
                "-1",
            ],
            "expected an integer >= 0",
        ),
        (
            ["train", "--data", data, "--out", tmp_path / "m.safetensors", "--driving", "-1"],
            "--driving -1 is not valid; expected an integer >= 0",
        ),
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
    assert (
        run(
            "motion",
            "train",
            "--data",
            few,
            "--out",
            tmp_path / "mine.safetensors",
            "--synthetic",
            1,
            "--driving",
            1,
            "--quiet",
        ).exit_code
        == 0
    )
    result = run(
        "motion",
        "segment",
        data / "scene0.npz",
        "--motions",
        "2",
        "--model",
        tmp_path / "mine.safetensors",
    )
    assert result.exit_code == 0 and "scene0: 2 motions of " in result.stdout
    shown = run("models", "show", tmp_path / "mine.safetensors", "--json")
    assert shown.exit_code == 0 and "likelihood" in shown.stdout


def test_evaluate_writes_its_report(data, tmp_path):
    report = tmp_path / "report"
    arguments = [
        "--method",
        "fit",
        "--method",
        "oracle",
        "--partitions",
        "1",
        "--report",
        report,
        "--json",
        "--quiet",
    ]
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
    command = [
        "motion",
        "evaluate",
        "--data",
        data,
        "--method",
        "fit",
        "--report",
        report,
        "--json",
        "--quiet",
        "--partitions",
    ]
    rows = json.loads(run(*command, 1).stdout)["rows"]
    assert (report / "finished" / "precious.txt").read_text() == "thesis"
    before = (report / ".annealed-finished").read_bytes()
    again = run(*command, 1)
    assert (
        again.exit_code == 2
        and "contains finished results; use --resume or another folder" in again.stderr
    )
    assert (report / ".annealed-finished").read_bytes() == before
    monkeypatch.setattr(evaluate_module, "cross_validate", lambda *_: pytest.fail("made twice"))
    assert json.loads(run(*command, 1, "--resume").stdout)["rows"] == rows
    monkeypatch.undo()
    assert len(json.loads(run(*command, 2, "--resume").stdout)["rows"]) == len(rows)
    (data / "scene0.npz").rename(tmp_path / "scene0.npz")
    np.savez(
        data / "scene0.npz",
        **{
            name: array + (name == "tracks")
            for name, array in np.load(tmp_path / "scene0.npz").items()
        },
    )
    other = run(*command, 1, "--resume")
    (tmp_path / "scene0.npz").replace(data / "scene0.npz")
    assert other.exit_code == 2 and "created with different settings or data" in other.stderr


@pytest.fixture(scope="session")
def scene_video(tmp_path_factory):
    scene = Scene()
    path = tmp_path_factory.mktemp("video") / "scene.avi"
    write_video(path, scene.frames(), 25.0)
    return scene, path


def test_a_video_goes_in_and_coloured_tracks_come_out(scene_video, tmp_path):
    scene, path = scene_video
    result = run(
        "motion", "segment", path, "--motions", 3, "--overlay", tmp_path / "o.mp4", "--json"
    )
    assert result.exit_code == 0, result.stderr
    labels = np.array(json.loads(result.stdout)["labels"])
    tracks = Tracker().track(path)
    truth = scene.truth(tracks)
    followed = labels >= 0
    seen = np.isfinite(tracks).all(axis=2)
    assert seen[:, followed].sum() > 0.9 * seen.sum()  # the others are seen in a few frames
    assert misclassification(truth[followed], labels[followed]) <= 0.05
    assert sum(1 for _ in read_frames(tmp_path / "o.mp4")) == scene.n_frames


def test_overlay_shows_the_colours(scene_video, tmp_path):
    scene, path = scene_video
    tracks = Tracker().track(path)
    write_overlay(path, tmp_path / "out.mp4", tracks, scene.truth(tracks))
    frames = list(read_frames(tmp_path / "out.mp4"))
    assert len(frames) == scene.n_frames
    for colour in COLOURS[:3].astype(int):
        assert (np.abs(frames[10].astype(int) - colour).sum(axis=2) < 60).sum() > 100
    assert [p.name for p in tmp_path.iterdir()] == ["out.mp4"]


def test_the_printed_table_is_whole():
    numbers = printed()
    assert len(numbers) == 9 * 11 + 3
    # The average over all 155 is that of 120 and 35 sequences, up to rounding.
    for column in ("RV", "SC", "VC", "RankBoost test", "all test"):
        both = (120 * numbers["all", "2", column] + 35 * numbers["all", "3", column]) / 155
        assert abs(both - numbers["all", "all", column]) < 0.011


def test_the_table_of_the_paper_and_its_figure_share_their_cells(data, tmp_path, monkeypatch):
    monkeypatch.setattr(paper_table, "PAPER", replace(PAPER, n_steps=5))
    monkeypatch.setattr(paper_table, "POOLS", {"paper": (("paper",), SegmentationFeatures())})
    (tmp_path / "hopkins155").symlink_to(data)
    common = ["--data", tmp_path, "--runs", 1, "--checkpoint", tmp_path / "cells"]
    drawn = run("reproduce", "motion-table", "--figures", tmp_path / "figures", *common)
    assert drawn.exit_code == 0, drawn.stderr
    assert (tmp_path / "figures" / "motion-table.png").read_bytes().startswith(b"\x89PNG")
    monkeypatch.setattr(paper_table, "cross_validate", lambda *_: pytest.fail("made twice"))
    record = json.loads(run("reproduce", "motion-table", *common, "--json").stdout)
    methods = ["RV", "SC", "SSC", "VC", "RankBoost", "likelihood", "prior", "all"]
    assert sorted({row["method"] for row in record["rows"]}) == sorted(methods)
    last = record["rows"][-1]
    assert last["method"] == "all" and last["partitions"] == [last["test_average"]]
    assert last["test_interval"][0] <= last["test_average"] <= last["test_interval"][1]


def test_the_schedule_of_the_paper_leaves_what_it_says():
    left = Schedule(PAPER.schedule, PAPER.mu)(2068, PAPER.n_features_to_select, PAPER.n_steps)
    assert [int(left[step - 1]) for step in (1, 2, 10, 50)] == [1033, 689, 187, 40]
    assert len(POOLS["paper"][1].get_feature_names_out()) == 2068


def test_the_other_reading_has_trajectories_alone_and_more_than_2000_columns():
    names = POOLS["trajectories"][1].get_feature_names_out()
    assert len(names) == 2006 and not any("velocity" in name for name in names)


def test_perspective_sequences():
    one, again = perspective_sequence(7), perspective_sequence(7)
    np.testing.assert_array_equal(one.tracks, again.tracks)
    assert one.n_motions in (2, 3) and 50 <= len(one.tracks) <= 100
    seen = np.isfinite(one.tracks).all(axis=2)
    assert (
        0.1 < 1 - seen.mean() < 0.7
        and seen.sum(axis=0).min() >= 5
        and np.bincount(one.labels).min() >= 8
    )
    assert not set(TRAINING_SEEDS) & set(TEST_SEEDS)


def test_tracks_and_masks_of_a_video(tmp_path):
    video, masks, out = tmp_path / "scene.avi", tmp_path / "masks", tmp_path / "o.avi"
    frames = list(Scene().frames())[:12]
    write_video(video, frames, 10.0)
    more = (
        "--out",
        tmp_path / "t.npz",
        "--masks",
        masks,
        "--overlay",
        out,
        "--motions",
        3,
        "--json",
    )
    result = run("motion", "segment", video, *more)
    assert result.exit_code == 0, result.output
    written = np.load(tmp_path / "t.npz")
    np.testing.assert_array_equal(written["tracks"], Tracker().track(video))
    assert written["labels"].tolist() == json.loads(result.stdout)["labels"]
    assert (
        written["probability"].shape == written["labels"].shape
        and written["visible"].shape == written["tracks"].shape[:2]
    )
    assert [path.name for path in sorted(masks.iterdir())] == [
        f"{i:06d}.png.png" for i in range(1, 13)
    ]
    mask = read_image(masks / "000006.png.png")[..., 0]
    assert (
        mask.shape == (240, 320)
        and set(np.unique(mask)) == {0, 255}
        and 0.05 < (mask == 0).mean() < 0.5
    )
    shown = list(read_frames(out))
    plain = draw_tracks(frames[5], written["tracks"], written["labels"], 5)
    assert len(shown) == 12 and np.abs(shown[5].astype(int) - plain)[mask == 0].mean() > 20
    again = run("motion", "segment", tmp_path / "t.npz", "--masks", masks)
    assert (
        again.exit_code == 2
        and "masks require images; expected a video instead of tracks" in again.stderr
    )
    for arguments, message in (
        (("--out", tmp_path / "t.txt"), "expected .npz, .csv or .parquet"),
        ((video, "--out", tmp_path / "t.csv"), "--out accepts a single FILE, not 2"),
        (("--masks", video), "the folder cannot be created"),
    ):
        refused = run("motion", "segment", video, *arguments)
        assert (
            refused.exit_code == 2 and message in refused.stderr and refused.stderr.count("\n") == 1
        ), refused.output
