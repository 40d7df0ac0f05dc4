"""Whole faces: shape models, pose, assembly from candidates, refinement, probabilities, and the
file that holds them."""

from dataclasses import replace
from types import SimpleNamespace

import numpy as np
import pytest
from annealed.models import KeypointDetector, load_model
from annealed.models.files import read_model, write_model
from annealed.models.keypoints.instances.assembly import Assembler
from annealed.models.keypoints.instances.instance_finder import (
    InstanceFinder,
    InstanceProbabilities,
    RefinedShape,
    log_odds_of,
    probability_of,
    suppress_instances,
)
from annealed.models.keypoints.instances.shape_models import (
    Pose,
    RigidModel,
    factorise,
    learn_shape,
    pose_of,
    rotation_of,
)
from annealed.models.keypoints.instances.shape_regression import (
    RegressionStage,
    ShapeClassifier,
    ShapeRegressor,
)
from annealed.pipelines.keypoints.detect import sample_photograph
from annealed.vision.point_histograms import VALUES_PER_POINT
from annealed.vision.pyramid import gaussian_pyramid
from window_models import IMAGE, POOL, random_classifier

ANCHORS = ("left_eye", "right_eye", "left_nose", "right_nose", "left_mouth", "right_mouth")
KEYPOINTS = (*ANCHORS, "chin")
# A head: eyes, nose sides, mouth corners, chin; x to the right, y down, z away from the viewer.
HEAD = np.array(
    [
        [0.5, -0.5, 0],
        [-0.5, -0.5, 0],
        [0.2, 0.1, -0.4],
        [-0.2, 0.1, -0.4],
        [0.4, 0.5, 0],
        [-0.4, 0.5, 0],
        [0, 1.2, 0.1],
    ]
)
MIRROR = np.array([1, 0, 3, 2, 5, 4, 6])


def views(n=200, seed=0, noise=0.0):
    """Views of the head from random directions, complex image points."""
    rng = np.random.default_rng(seed)
    rigid = RigidModel(HEAD)
    poses = [Pose(*rng.normal(size=3) * [0.4, 0.2, 0.2]) for _ in range(n)]
    seen = [rigid.project(rotation_of(pose), rng.uniform(20, 60), 100 + 90j) for pose in poses]
    ied = abs(np.array(seen)[:, :1] - np.array(seen)[:, 1:2])
    return poses, np.array(seen) + noise * ied * (
        rng.normal(size=(n, 7)) + 1j * rng.normal(size=(n, 7))
    )


def assembler(noise=0.02):
    _, faces = views()
    both = np.concatenate([faces, -faces.real[:, MIRROR] + 1j * faces.imag[:, MIRROR]])
    # the anchors, then all points that are refined
    both = np.concatenate([both[:, :6], both], axis=1)
    names = (*ANCHORS, *(f"point{i}" for i in range(7)))
    shape = learn_shape(
        np.stack([both.real, both.imag], axis=2),
        np.ones(both.shape, bool),
        names,
        np.arange(6),
        noise,
        abs(both[:, 0] - both[:, 1]),
    )
    shape = replace(shape, covariance=shape.covariance[:12])
    rigid = RigidModel(np.concatenate([HEAD[:6], HEAD]))
    return Assembler(shape, shape.mean_points[None, :6], rigid, np.ones(6), np.zeros(6))


def maxima(faces, seed=0, clutter=8):
    """Local maxima of all anchors: those of some faces, and clutter that scores less."""
    rng = np.random.default_rng(seed)
    by_name = {}
    for i, name in enumerate(ANCHORS):
        rows = [[face[i].real, face[i].imag, 4.0, 28.3 / abs(face[0] - face[1])] for face in faces]
        rows += [
            [*rng.uniform(0, 600, 2), rng.uniform(-5, 0), 28.3 / rng.uniform(20, 60)]
            for _ in range(clutter)
        ]
        by_name[name] = np.array(rows)
    return by_name


def test_poses_are_angles_of_the_rotation():
    for pose in (Pose(0.3, -0.2, 0.5), Pose(-0.7, 0.1, -0.2), Pose(0.0, 0.0, 0.0)):
        np.testing.assert_allclose(pose_of(rotation_of(pose)), pose, atol=1e-12)
    nose = np.array([0, 0, -1.0])  # points to the viewer
    assert (rotation_of(Pose(0.3, 0, 0)) @ nose)[0] > 0.2  # the face looks to the right
    assert (rotation_of(Pose(0, 0.3, 0)) @ nose)[1] > 0.2  # and down
    # turned clockwise: its right side goes down
    assert (rotation_of(Pose(0, 0, 0.3)) @ [1, 0, 0])[1] > 0.2


def test_a_view_gives_the_pose():
    poses, seen = views(50)
    rigid = RigidModel(HEAD)
    for pose, points in zip(poses, seen):
        rotation, scale, translation = rigid.fit(points)
        np.testing.assert_allclose(pose_of(rotation), pose, atol=0.02)
        np.testing.assert_allclose(
            rigid.project(rotation, scale, translation), points, atol=0.02 * scale
        )


def test_factorisation_recovers_the_head_from_its_views():
    poses, seen = views(300, noise=0.01)
    rigid = factorise(seen, MIRROR)
    centred = HEAD - HEAD.mean(axis=0)
    recovered = rigid.points - rigid.points.mean(axis=0)
    # The mean pose of the views counts as pitch zero: the shape may be turned a little about x.
    u, _, vt = np.linalg.svd(recovered.T @ centred)
    np.testing.assert_allclose(recovered @ (u @ vt), centred, atol=0.06)
    error = [abs(pose_of(rigid.fit(points)[0]).yaw - pose.yaw) for pose, points in zip(poses, seen)]
    assert np.median(error) < 0.06
    with pytest.raises(ValueError, match="the same pose"):
        factorise(np.repeat(HEAD[None, :, 0] + 1j * HEAD[None, :, 1], 20, axis=0), MIRROR)


@pytest.mark.parametrize("assembly", ["2d", "3d"])
def test_candidates_are_assembled_to_faces(assembly):
    head = RigidModel(HEAD)
    faces = [
        head.project(rotation_of(Pose(0.3, 0.1, 0.1)), 30.0, 100 + 120j),
        head.project(rotation_of(Pose(-0.2, -0.1, -0.05)), 45.0, 420 + 380j),
    ]
    model = assembler()
    by_name = maxima(faces)
    by_name["left_mouth"] = by_name["left_mouth"][1:]  # of the first face not found
    made = model.assemble(model.candidates(by_name, 28.3), assembly)
    for face in faces:
        ied = abs(face[0] - face[1])
        assert min(abs(h.points[:6] - face[:6]).mean() / ied for h in made[:2]) < 0.15
    assert len(made[0].rows) == 6 and len(made[1].rows) == 5
    # Candidates are used with their log-odds: those below the minimum do not take part.
    nothing = {name: rows - [0, 0, 20, 0] for name, rows in by_name.items()}
    assert model.assemble(model.candidates(nothing, 28.3), assembly) == []


MIRROR = np.array([1, 0, 3, 2, 5, 4, 6], np.int32)


def cascade(n=7, q=3, k=40, seed=0):
    rng = np.random.default_rng(seed)
    basis = rng.normal(size=(q, n, 2)).astype(np.float32)
    stages = []
    for ied, cell in ((20, 4), (24, 3)):
        features = np.sort(rng.choice(n * VALUES_PER_POINT, k, replace=False)).astype(np.int32)
        stages.append(
            RegressionStage(
                ied,
                cell,
                features,
                rng.normal(size=(k, q)).astype(np.float16) / 100,
                np.zeros(q, np.float32),
            )
        )
    shape = assembler().shape
    return ShapeRegressor(
        shape.mean[6:], basis, tuple(stages), np.eye(n), np.zeros((n, 2), np.float32), MIRROR
    )


def finder():
    rng = np.random.default_rng(5)
    classifier = ShapeClassifier(
        np.arange(50, dtype=np.int32), rng.normal(size=50).astype(np.float32), 1.0
    )
    weights = np.tile([0.3, 0.2, 0.1, -0.5, -0.2, -0.3, 0.1, 1.0], (7, 1))
    probabilities = InstanceProbabilities(
        np.array([0.5, 0.2, 0.1, 0.3, -2.0]), weights, weights - [0, 0, 0, 0, 0, 0, 0, 1.0], -3.0
    )
    return InstanceFinder(
        assembler(), cascade(), KEYPOINTS, classifier, probabilities, np.full(6, 0.3)
    )


def test_refinement_follows_the_face():
    """The same pixels moved by whole pixels give the same correction."""
    regressor = cascade()
    levels = gaussian_pyramid(IMAGE)
    start = 40 * regressor.mean_points + 90 + 80j
    moved, histograms = regressor.refine(levels, start)
    assert histograms.shape == (7, VALUES_PER_POINT) and abs(moved - start).max() > 0.01
    shifted = np.roll(IMAGE, (16, 8), axis=(0, 1))
    np.testing.assert_allclose(
        regressor.refine(gaussian_pyramid(shifted), start + 8 + 16j)[0] - (8 + 16j), moved, atol=0.6
    )


def test_the_histograms_may_be_those_around_the_refined_points():
    regressor, levels = cascade(), gaussian_pyramid(IMAGE)
    start = 40 * regressor.mean_points + 90 + 80j
    last, refined = (replace(regressor, described=n).refine(levels, start) for n in (-1, 2))
    np.testing.assert_array_equal(refined[0], last[0])
    np.testing.assert_array_equal(refined[1], regressor.describe(levels, last[0], 24, 3)[0])
    assert abs(refined[1] - last[1]).max() > 0.01


def test_the_mirror_image_is_refined_alike():
    """A face and its mirror image give mirrored results, even if the selected values are not
    symmetric."""
    regressor = cascade()
    start = 40 * regressor.mean_points + 90 + 80j
    width = IMAGE.shape[1]
    expected = width - 1 - np.conj(regressor.refine(gaussian_pyramid(IMAGE), start)[0])
    mirrored = np.ascontiguousarray(IMAGE[:, ::-1])
    refined, _ = regressor.refine(gaussian_pyramid(mirrored), (width - 1 - np.conj(start))[MIRROR])
    np.testing.assert_allclose(refined, expected[MIRROR], atol=0.3)


def test_two_refinements_are_averaged():
    model, levels = finder(), gaussian_pyramid(IMAGE)
    once = model.refine(42 * model.regressor.mean_points + 93 + 78j, 2.0, levels)
    assert once.disagreement is None
    twice = model.refine_again(once, levels)
    other, _ = model.regressor.refine(
        levels, model.regressor.align(once.points).to_image(model.regressor.mean_points)
    )
    np.testing.assert_allclose(twice.points, (once.points + other) / 2)
    np.testing.assert_allclose(twice.disagreement, abs(other - once.points) / once.reference_length)


def test_answers_that_lie_apart_and_turned_faces_count_by_their_logarithm_and_angle():
    points, nothing = np.array([10 + 10j, 40 + 10j]), np.empty((0, 0))
    refined = RefinedShape(points, nothing, 0.0, 0.0, 60.0, np.array([0.017, 0.0]))
    model = SimpleNamespace(
        regressor=SimpleNamespace(to_keypoints=np.eye(2)),
        _pose=lambda points: Pose(-0.5, 0.0, 0.0),
    )
    positions, log_odds_of = np.array([13 + 10j, np.nan]), np.array([1.0, np.nan])
    inputs = InstanceFinder.point_inputs(model, refined, 2.0, positions, log_odds_of)
    np.testing.assert_allclose(inputs[0], [2, 1, 1, 0.5, np.log(0.02), 0.5, np.log(2), 1])
    np.testing.assert_allclose(inputs[1], [2, 0, 0, 0, np.log(0.003), 0.5, np.log(2), 1])


def test_faces_have_pose_box_and_probabilities():
    model, levels = finder(), gaussian_pyramid(IMAGE)
    face = 40 * assembler().shape.mean_points[6:] + 90 + 80j
    faces, complete, _ = model.find(maxima([face], clutter=0), levels, 28.3, 0.0)
    assert len(faces) == 1 and complete
    (one,) = faces
    assert (
        set(one.keypoints) == set(KEYPOINTS)
        and one.landmarks.shape == (7, 2)
        and 0 < one.probability < 1
    )
    x0, y0, x1, y1 = one.box
    assert x0 < x1 and y0 < y1 and np.isfinite(one.pose).all()
    assert all(
        0 <= p.probability_5 <= p.probability <= one.probability for p in one.keypoints.values()
    )
    assert model.find(maxima([face], clutter=0), levels, 28.3, 1.0) == ([], True, [])
    record = one.record()
    assert (
        set(record) == {"probability", "pose", "box", "keypoints"}
        and len(record["keypoints"]["chin"]) == 3
    )
    with pytest.raises(ValueError, match="was not trained to predict probabilities"):
        replace(model, probabilities=None).find(maxima([face]), levels, 28.3)


def detector():
    models = {name: random_classifier(i, 12, threshold=100.0) for i, name in enumerate(ANCHORS)}
    return KeypointDetector(models, POOL, finder=finder())


def test_the_detector_reports_keypoints_of_faces():
    model = detector()
    assert model.keypoints == list(KEYPOINTS)
    everything = model.find(IMAGE, min_probability=0.0, mode="scan")
    assert everything.instances and {d.keypoint for d in everything.detections} == set(KEYPOINTS)
    scores = [d.score for d in everything.detections]
    assert scores == sorted(scores, reverse=True)
    np.testing.assert_allclose(
        [probability_of(d.score) for d in everything.detections],
        [d.probability for d in everything.detections],
        atol=1e-9,
    )
    lowest = sorted(face.probability for face in everything.instances)[
        len(everything.instances) // 2
    ]
    some = model.find(IMAGE, min_probability=lowest, mode="scan")
    assert all(face.probability >= lowest for face in some.instances) and len(
        some.detections
    ) == 7 * len(some.instances)
    chins = model.detect(IMAGE, keypoints=["chin"], min_probability=lowest, mode="scan")
    assert [d.keypoint for d in chins] == ["chin"] * len(some.instances)
    alone = model.find(IMAGE, threshold=-np.inf, assembly="none", mode="scan")
    assert not alone.instances and {d.keypoint for d in alone.detections} <= set(ANCHORS)
    assert all(d.probability is None for d in alone.detections)


class Blind(KeypointDetector):
    """Detects nothing, and records the sizes of photographs."""

    def anchor_maxima(self, levels, anchors, *args):
        self.info.setdefault("searched", []).append(levels[0].image.shape[:2])
        return dict.fromkeys(anchors, np.empty((0, 4)))


@pytest.mark.parametrize("options, n", [({}, 4), ({"roll": 0}, 1), ({"min_probability": 0.0}, 4)])
def test_photographs_without_an_upright_face_are_searched_turned_and_in_evened_light(options, n):
    blind = Blind(
        {name: random_classifier(i, 12) for i, name in enumerate(ANCHORS)}, POOL, finder=finder()
    )
    assert blind.find(IMAGE, mode="scan", **options).instances == []
    searched, size = blind.info["searched"], IMAGE.shape[:2]
    assert (
        len(searched) == n
        and searched[0] == size
        and all(min(shape) > min(size) for shape in searched[1:3])
    )
    assert searched[3:] == [size] * (n > 3)


@pytest.mark.parametrize("shift", [(0, 0), (12, -9)])
def test_the_face_in_a_box_is_that_of_the_whole_photograph(shift):
    model, pixels = load_model("faces"), sample_photograph()
    (face,) = model.find(pixels).instances
    box = np.add(face.box, (*shift, *shift))
    (inside,) = model.find(pixels, boxes=[box.tolist()]).instances
    np.testing.assert_allclose(inside.landmarks, face.landmarks, atol=0.1 * face.reference_length)
    assert (
        inside.probability > 0.9
        and np.abs(np.subtract(inside.box, face.box)).max() < 0.1 * face.reference_length
    )


def test_a_box_without_a_face_gets_points_too():
    result = load_model("faces").find(
        np.full((200, 300, 3), 128, np.uint8), boxes=[(50, 40, 150, 150), (10, 10, 60, 70)]
    )
    first, second = result.instances
    assert first.probability < 0.1 and len(result.detections) == 18
    assert 50 <= first.landmarks[:, 0].mean() <= 150 and 10 <= second.landmarks[:, 0].mean() <= 60


def test_a_face_in_the_place_of_a_better_one_is_the_same():
    face = 40 * assembler().shape.mean_points[:6]
    small, beside = face.mean() + 0.4 * (face - face.mean()), face + 60
    assert suppress_instances([face, small, beside], [40.0, 16.0, 40.0]) == [0, 2]


def test_nonsense_is_refused():
    model = detector()
    for options, message in (
        ({"assembly": "4d"}, "assembly='4d' is unknown; expected one of none, 2d, 3d"),
        ({"keypoints": ["chin"], "assembly": "none"}, "'chin' has no detector of its own"),
        (
            {"min_probability": 1.5},
            r"min_probability=1.5 is not valid; expected a number in \[0, 1\]",
        ),
        ({"min_probability": 0.5, "threshold": 1.0}, "use only one of them"),
        ({"min_probability": 0.5, "assembly": "none"}, "requires? assembled faces"),
        ({"roll": 60}, "roll=60 is not valid; expected an angle from 0 to 50 degrees"),
        (
            {"boxes": [(5, 1, 5, 9)]},
            r"box \(5, 1, 5, 9\) is not valid; expected x0, y0, x1, y1 with x0 < x1",
        ),
        ({"boxes": [(900, 1, 950, 9)]}, "expected a box inside the image of"),
    ):
        with pytest.raises(ValueError, match=message):
            model.detect(IMAGE, **options)
    with pytest.raises(ValueError, match="is not available for this model"):
        replace(model, finder=None).detect(IMAGE, assembly="2d")


def test_save_and_load(tmp_path):
    model, path = detector(), tmp_path / "faces.safetensors"
    model.save(path)
    loaded = load_model(path)
    assert (
        loaded.find(IMAGE, min_probability=0.0, mode="scan").detections
        == model.find(IMAGE, min_probability=0.0, mode="scan").detections
    )
    arrays, header = read_model(path, "keypoint detector")
    described = {k: v for k, v in header.items() if k not in ("format", "version", "kind")}
    former, name = tmp_path / "former.safetensors", "faces/probabilities/face"
    write_model(former, "keypoint detector", arrays | {name: np.delete(arrays[name], 3)}, described)
    assert load_model(former).finder.probabilities.face.tolist() == [0.5, 0.2, 0.1, 0.0, -2.0]
    for name, change, message in (
        (
            "faces/regression/0/features",
            lambda a: a + 7 * VALUES_PER_POINT,
            "expected integers from 0",
        ),
        ("faces/regression/mirror", lambda a: np.zeros_like(a), "expected pairs of points"),
        ("faces/shape/rigid", lambda a: a[:3], "faces/shape/rigid"),
        ("faces/probabilities/face", lambda a: a * np.nan, "contains NaN"),
    ):
        damaged = tmp_path / "damaged.safetensors"
        changed = dict(arrays) | {name: change(arrays[name])}
        write_model(
            damaged,
            "keypoint detector",
            changed,
            described,
        )
        with pytest.raises(ValueError, match=message):
            load_model(damaged)


def test_probabilities_and_log_odds():
    p = np.array([0.01, 0.5, 0.9])
    np.testing.assert_allclose(probability_of(log_odds_of(p)), p)
    assert np.isfinite(log_odds_of(1.0)) and probability_of(1e9) <= 1.0
