"""Pictures that training makes of photographs: heads turned to a side, and views unlike them."""

import numpy as np
import pytest
from annealed.models import load_model
from annealed.models.keypoints.instances.shape_models import pose_of
from annealed.pipelines.keypoints.data import AnnotatedImage
from annealed.pipelines.keypoints.detect import sample_photograph
from annealed.pipelines.keypoints.faces import FACES
from annealed.pipelines.keypoints.training.synthetic_views import (
    hard_augmentations,
    rolled,
    turned_head,
    yaw_augmentations,
)
from PIL import Image


@pytest.fixture(scope="module")
def detector():
    return load_model("faces")


@pytest.fixture(scope="module")
def photograph(detector, tmp_path_factory):
    """A part of the sample photograph; its annotations are what the shipped model finds."""
    path, pixels = (
        tmp_path_factory.mktemp("made") / "face.png",
        sample_photograph()[20:260, 100:360],
    )
    Image.fromarray(pixels).save(path)
    (face,) = detector.find(pixels).instances
    points = np.array(
        [[face.landmarks[list(FACES.landmarks[name])].mean(axis=0) for name in FACES.keypoints]]
    )
    return AnnotatedImage(
        path, points, np.ones((1, 9), bool), np.array([[0.0, 0, 9, 9]]), face.landmarks[None]
    )


@pytest.mark.parametrize("degrees", [-30, -15, 0, 15, 30])
def test_a_turned_head_has_that_pose_and_is_found(photograph, detector, degrees):
    rigid = detector.finder.rigid
    made = turned_head(photograph, degrees, rigid)
    yaw = [
        np.degrees(pose_of(rigid.fit(image.landmarks[0] @ [1, 1j])[0]).yaw)
        for image in (photograph, made)
    ]
    assert yaw[1] - yaw[0] == pytest.approx(degrees, abs=6)
    pixels = made.pixels()
    assert (pixels == made.pixels()).all() and pixels.dtype == np.uint8
    if abs(degrees) <= 15:
        (face,) = detector.find(pixels).instances
        assert (
            np.hypot(*(face.landmarks - made.landmarks[0]).T).mean()
            < 0.1 * made.reference_length[0]
        )


def test_not_turned_it_is_the_photograph(photograph, detector):
    made = turned_head(photograph, 0.0, detector.finder.rigid)
    np.testing.assert_allclose(made.landmarks, photograph.landmarks, atol=1e-9)
    difference = np.abs(made.pixels().astype(int) - photograph.pixels())
    assert made.visible.all() and difference.mean() < 0.5


def test_points_behind_the_head_are_hidden(photograph, detector):
    left, right = (turned_head(photograph, degrees, detector.finder.rigid) for degrees in (-45, 45))
    ears = [FACES.keypoints.index(name) for name in ("left_ear", "right_ear")]
    assert right.visible[0, ears].tolist() == [False, True] and left.visible[0, ears].tolist() == [
        True,
        False,
    ]


def test_heads_without_landmarks_are_not_turned(photograph):
    without = AnnotatedImage(
        photograph.path, photograph.instances, photograph.visible, photograph.ignore
    )
    assert (
        yaw_augmentations([without], [without], 45.0)
        == yaw_augmentations([photograph], [photograph], 0.0)
        == []
    )


def test_unlike_views_know_where_the_points_are(photograph, detector):
    made = hard_augmentations([photograph])
    assert {name: len(pictures) for name, pictures in made.items()} == dict.fromkeys(
        made, 1
    ) and len(made) == 6
    for name, (picture,) in made.items():
        if name == "uneven light":  # may be too hard
            continue
        faces = detector.find(picture.pixels(), min_probability=0.05).instances
        assert len(faces) >= len(picture.instances), name
        for truth, ied in zip(picture.landmarks, picture.reference_length):
            errors = [np.hypot(*(face.landmarks - truth).T).mean() for face in faces]
            assert min(errors) < 0.35 * ied, name
    turned = rolled(photograph, 20.0)
    eyes = [np.diff(image.instances[0, :2] @ [1, 1j])[0] for image in (photograph, turned)]
    assert np.degrees(np.angle(eyes[1] / eyes[0])) == pytest.approx(-20)
    corners = turned.ignore[0]
    assert corners[2] - corners[0] == pytest.approx(
        9 * (np.cos(np.radians(20)) + np.sin(np.radians(20)))
    )
