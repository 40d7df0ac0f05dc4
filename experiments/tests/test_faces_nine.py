"""Pruning of the detections of all nine keypoints by assembled faces."""

from types import SimpleNamespace

import numpy as np
import pytest
from annealed.models.keypoints.instances.assembly import Hypothesis
from annealed.pipelines.keypoints.data import AnnotatedImage
from annealed.pipelines.keypoints.faces import KEYPOINTS
from annealed_experiments.faces import nine
from annealed_experiments.registry import has_cells


def maxima(*places):
    """Return the columns x, y, score and scale, with decreasing scores."""
    return np.array([[z.real, z.imag, -float(i), 1.0] for i, z in enumerate(places)])


@pytest.fixture
def pruning():
    """A pruning with one face of length 10, and one keypoint at 100 + 50i."""
    face = Hypothesis(np.array([0]), 3.0, np.array([100 + 50j]), 10.0)
    assembler = SimpleNamespace(
        anchors=["left_eye"],
        candidates=lambda maxima, unit: maxima,
        assemble=lambda candidates, assembly, min_support: [face] if min_support <= 3.0 else [],
    )
    return nine.Pruning(assembler, 2.0)


def test_detections_within_half_a_length_of_a_face_remain(pruning):
    found = pruning.near({"left_eye": maxima(103 + 54j, 100 + 50j, 104 + 54j)}, 28.3)
    assert found["left_eye"][:, 0].tolist() == [103.0, 100.0]  # at distances of 5 and 0
    strict = nine.Pruning(pruning.assembler, 4.0)
    assert not len(strict.near({"left_eye": maxima(100 + 50j)}, 28.3)["left_eye"])


def test_rows_pool_the_sides_and_count_false_detections(tmp_path):
    points = np.full((1, 9, 2), np.nan)
    points[0, :2] = [[110, 50], [90, 50]]
    image = AnnotatedImage(
        tmp_path / "a.png", points, np.isfinite(points).all(axis=2), np.zeros((0, 4))
    )
    left, right = maxima(110 + 50j, 150 + 90j), maxima(10 + 10j, 90 + 50j)
    found = [{"left_eye": left, "right_eye": right}]
    shown = nine._judged([image], found, {"left_eye": 0.0, "right_eye": -1.0})
    (row,) = nine._rows(nine._judged([image], found), shown, 0.5)
    assert row["data"] == "eyes" and row["seconds"] == 0.5
    assert row["recall_10"] == 1.0 and row["false_per_image"] == 0.5  # one of two keypoints
    # tied scores: at 0, one of two is a hit; at -1, two of four
    assert row["AP_10"] == row["AP_5"] == pytest.approx(0.5)


def test_the_table_has_cells_and_checks_methods():
    assert has_cells("faces-nine") and set(nine.ADDED) < set(KEYPOINTS)
    with pytest.raises(ValueError, match="method 'SDM' is unknown; expected one of detectors"):
        nine.faces_nine(data_dir=".", methods=["SDM"])
