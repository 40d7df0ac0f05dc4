"""Learners on the same windows of painted faces, and the modes of search: small."""

import csv

import cv2
import numpy as np
import pytest
from annealed.learners.designs.piecewise_linear import hat_basis
from annealed.models.keypoints.detector import KeypointDetector
from annealed.models.keypoints.windows.window_models import KeypointModel, Mode
from annealed.pipelines.keypoints.faces import KEYPOINTS
from annealed.pipelines.keypoints.measures import FALSE, HIT, MatchedDetections
from annealed.pipelines.keypoints.training.windows.fitting import TrainingSettings
from annealed.vision.windows.feature_layout import HAAR_KINDS
from annealed.vision.windows.feature_pool import FeaturePool
from annealed.vision.windows.patch_design import PatchDesign
from annealed.vision.windows.responses import Responses
from annealed_experiments.faces import curves
from annealed_experiments.faces.learners import WindowLearners, hat_columns, histogram_svm
from annealed_experiments.registry import draw, has_cells
from helpers import run

POOL = FeaturePool(kinds={k: HAAR_KINDS[k] for k in ("2h", "centre")}, sides=(4, 6))
SETTINGS = TrainingSettings(
    n_features=20,
    first_rows=300,
    n_steps=6,
    final_steps=12,
    rounds=1,
    n_random=200,
    per_round=100,
    views_per_round=6,
)


def paint(folder, names, seed):
    """Photographs with two dark dots as eyes, annotated in keypoints.csv."""
    folder.mkdir(parents=True)
    rng = np.random.default_rng(seed)
    with (folder / "keypoints.csv").open("w", newline="") as file:
        table = csv.writer(file)
        table.writerow(["image", "face", "keypoint", "x", "y", "visible"])
        for name in names:
            pixels = cv2.resize(
                rng.integers(90, 160, (8, 9, 3), dtype=np.uint8),
                (100, 90),
                interpolation=cv2.INTER_CUBIC,
            )
            middle, ied = np.array([rng.uniform(40, 60), rng.uniform(35, 55)]), rng.uniform(26, 32)
            for k, dx in enumerate((0.5, -0.5)):
                x, y = middle + [dx * ied, 0.0]
                place, colour = (round(16 * x), round(16 * y)), (10, 10, 60 * k)
                cv2.circle(
                    pixels, place, round(16 * ied * (0.12 + 0.08 * k)), colour, -1, cv2.LINE_AA, 4
                )
                table.writerow([name, 0, KEYPOINTS[k], f"{x:.2f}", f"{y:.2f}", 1])
            cv2.imwrite(str(folder / name), pixels)


@pytest.fixture(scope="module")
def data(tmp_path_factory):
    folder = tmp_path_factory.mktemp("painted")
    paint(folder / "faces" / "train", [f"t_{i}.png" for i in range(14)], 0)
    paint(folder / "faces" / "test", [f"e_{i}.png" for i in range(4)], 1)
    (folder / "faces" / "background").mkdir()
    ground = np.random.default_rng(2).integers(80, 170, (60, 70, 3), dtype=np.uint8)
    cv2.imwrite(str(folder / "faces" / "background" / "ground.png"), ground)
    return folder


@pytest.fixture(scope="module")
def windows():
    rng = np.random.default_rng(0)
    patches = rng.integers(0, 256, (120, 26, 26, 3), dtype=np.uint8)
    y = np.where(np.arange(120) % 3 == 0, 1.0, -1.0)
    patches[y > 0, 10:16, 10:16] //= 4
    return patches, y


def test_hat_columns_are_those_of_the_design(windows):
    design = PatchDesign(
        windows[0],
        np.full(120, 1 / 120),
        pool=POOL,
        features=POOL.features[POOL.n_haar :][:9],
        n_bins=6,
    )
    columns = hat_columns(design).toarray().reshape(120, 9, 7)
    np.testing.assert_allclose(columns, hat_basis(6)[design.codes(np.arange(120))], atol=1e-12)


def test_weak_learners_lower_the_loss_as_they_say(windows):
    patches, y = windows
    learners = WindowLearners(patches, y, POOL, SETTINGS)
    assert len(learners.rows) == 120  # fewer than asked for: all of them
    g, h = -y[:, None] / 240, np.full((120, 1), 0.25 / 120)
    gains = learners.gains(g, h, np.arange(learners.design.n_features))
    best = int(np.argmax(gains))
    step, values = learners.step(g, h, best)
    assert values.shape == (1, 7) and float(
        -(g * step).sum() - 0.5 * (h * step**2).sum()
    ) == pytest.approx(gains[best], rel=0.02)


@pytest.mark.parametrize("name", curves.LEARNERS)
def test_each_learner_tells_the_windows_apart(windows, name):
    learner, choices = curves.LEARNERS[name]
    model = learner(
        *windows, POOL, SETTINGS, **{parameter: values[-1] for parameter, values in choices.items()}
    )
    scores = model.scores(windows[0], POOL)
    assert scores[windows[1] > 0].mean() > scores[windows[1] < 0].mean() + 1.0
    assert len(model.features) == 864 if learner is histogram_svm else len(model.features) <= 20


def test_curves_are_resumed_and_drawn(data, tmp_path, monkeypatch):
    options = {
        "photographs": 14,
        "settings": SETTINGS,
        "pool": POOL,
        "checkpoint": tmp_path / "cells.jsonl",
    }
    two = {name: curves.LEARNERS[name] for name in ("FSA, random negatives", "SVM of histograms")}
    monkeypatch.setattr(curves, "LEARNERS", two)
    made = curves.faces_curves(data_dir=data, **options)
    assert [row["method"] for row in made["rows"]] == list(two)
    for row in made["rows"]:
        assert (
            0.0 <= row["AP_5"] <= row["AP_10"] + 1e-9 <= 1.0 + 1e-9
            and row["chosen"]
            and row["windows"] > 100
        )
    monkeypatch.setattr(curves._Windows, "try_out", None)  # nothing is fitted again
    assert curves.faces_curves(data_dir=data, **options) == made
    assert draw("faces-curves", tmp_path, data, runs=1, **options) == [
        tmp_path / "faces-curves.png"
    ]
    with pytest.raises(
        ValueError, match="method 'LDA' is unknown; expected one of FSA, random negatives, SVM"
    ):
        curves.faces_curves(data_dir=data, methods=["LDA"])


def test_the_command_knows_sets_and_checkpoints(data, tmp_path):
    assert has_cells("faces-curves") and has_cells("faces-modes")
    for name, known in (
        ("faces-curves", "left_eye, right_eye"),
        ("faces-modes", "left_eye, right_eye"),
    ):
        result = run(
            "reproduce", name, "--data", data, "--set", "tail", "--checkpoint", tmp_path / name
        )
        assert (
            result.exit_code == 2
            and f"set 'tail' is unknown; expected one of {known}" in result.stderr
        )


def test_kept_points_lie_where_the_curve_is_read():
    """Ten hits among the first twenty of ten thousand detections."""
    hit = np.zeros(10_000, bool)
    hit[1:20:2] = True
    outcome, xy, face = np.where(hit, HIT, FALSE), np.zeros((10_000, 2)), np.zeros(10_000, int)
    parts = [
        MatchedDetections(xy[half], -np.arange(10_000.0)[half], outcome[half], face[half], 5)
        for half in (slice(0, None, 2), slice(1, None, 2))
    ]
    kept = curves._kept(parts)
    assert (
        kept["recall"] == pytest.approx(np.arange(1, 11) / 10) and kept["precision"] == [0.5] * 10
    )


def test_modes_of_a_detector(data, tmp_path, monkeypatch):
    monkeypatch.setattr(curves, "MODES", {Mode.SCAN: "FSA-PL"})
    model = KeypointModel(
        POOL.features[:1], Responses([-1.0], [0.5], [[-2, -1, 0, 1, 2]]), 0.0, np.float32([-1.0])
    )
    options = {
        "model": KeypointDetector({"right_eye": model}, POOL),
        "sets": ["right_eye"],
        "checkpoint": tmp_path / "cells",
    }
    (row,) = curves.faces_modes(data_dir=data, **options)["rows"]
    assert (
        row["method"] == "scan"
        and row["seconds"] > 0
        and row["paper_AP_10"] == 0.901
        and 0 <= row["AP_10"] <= 1
    )
    assert draw("faces-modes", tmp_path, data, **options)[0].stat().st_size > 5_000
    monkeypatch.setattr(curves, "DEFAULT_ASSEMBLIES", ("detectors alone",))
    options = {"model": options["model"], "checkpoint": tmp_path / "keypoints"}
    (row,) = curves.faces_keypoints(data_dir=data, **options)["rows"]
    low, high = map(float, row["AP_10_interval"].split(" to "))
    assert row["data"] == "right_eye" and low <= row["AP_10"] <= high
    assert draw("faces-keypoints", tmp_path, data, **options)[0].stat().st_size > 5_000
