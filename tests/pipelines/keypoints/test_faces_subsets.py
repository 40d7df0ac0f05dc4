"""Parts of an evaluation of face keypoints: bands of size and pose, reliability of
probabilities."""

from pathlib import Path

import numpy as np
from annealed.models.keypoints.instances.instance_finder import log_odds_of
from annealed.models.keypoints.instances.shape_models import Pose, RigidModel, rotation_of
from annealed.pipelines.keypoints.data import AnnotatedImage
from annealed.pipelines.keypoints.evaluate import subsets_of
from annealed.pipelines.keypoints.measures import (
    FALSE,
    HIT,
    NEITHER,
    MatchedDetections,
    reliability,
)


def image(ied, landmarks=None):
    faces = np.zeros((1, 9, 2))
    faces[0, 0, 0] = ied
    return AnnotatedImage(Path("a.png"), faces, np.ones((1, 9), bool), np.zeros((0, 4)), landmarks)


def test_photographs_by_size_and_pose():
    rigid = RigidModel(np.random.default_rng(0).normal(size=(12, 3)))
    seen = rigid.project(rotation_of(Pose(0.2, 0.0, -0.3)), 30.0, 50 + 50j)
    landmarks = np.stack([seen.real, seen.imag], axis=1)[None]
    nobody = AnnotatedImage(
        Path("b.png"), np.zeros((0, 9, 2)), np.zeros((0, 9), bool), np.zeros((0, 4))
    )
    found = subsets_of([image(24), image(30), nobody, image(30, landmarks), image(200)], rigid)
    assert found == {
        "IED 0-25": [0],
        "IED 25-32": [1, 3],
        "IED 45-": [4],
        "yaw 8-16": [3],
        "roll 12-": [3],
    }


def test_reliability_counts_hits_by_probability():
    p = np.array([0.99, 0.99, 0.6, 0.6, 0.05])
    outcome = np.array([HIT, HIT, HIT, FALSE, NEITHER], np.int8)
    judged = MatchedDetections(np.zeros((5, 2)), log_odds_of(p), outcome, np.full(5, -1), 3)
    rows = reliability([judged])
    assert [(row["from"], row["detections"], row["share"]) for row in rows] == [
        (0.5, 2, 0.5),
        (0.98, 2, 1.0),
    ]
    np.testing.assert_allclose([row["probability"] for row in rows], [0.6, 0.99])
    assert reliability([]) == []
