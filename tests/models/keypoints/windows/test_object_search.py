"""Whole objects by a cascade of one or two nodes: against scores of windows, in the file, and
as starts of guides and hypotheses."""

import json
from collections import Counter
from dataclasses import replace

import numpy as np
import pytest
from annealed.models import load_model
from annealed.models.files import read_model, write_model
from annealed.models.keypoints.detector import KeypointDetector
from annealed.models.keypoints.instances.assembly import Candidates
from annealed.models.keypoints.instances.instance_finder import MAX_INSTANCES, RefinedShape
from annealed.models.keypoints.instances.shape_models import RigidModel, pose_of
from annealed.models.keypoints.windows import object_search
from annealed.models.keypoints.windows.object_search import WHOLE, ObjectSearch, level_at
from annealed.models.keypoints.windows.window_models import FaceCascade
from annealed.pipelines.keypoints.detect import sample_photograph
from annealed.vision import pyramid
from annealed.vision.pyramid import gaussian_pyramid, nearest_pixel
from annealed.vision.windows.patches import extract_patches
from window_models import GUIDE, IMAGE, LARGER, POOL, random_classifier, two_nodes

LEVELS = gaussian_pyramid(IMAGE)


def detector(**more):
    parts = {"guides": {"a": GUIDE}, "face_cascade": two_nodes("a")} | more
    return KeypointDetector({"a": random_classifier(8)}, POOL, **parts)


def test_the_second_node_takes_the_best_window_around_a_maximum():
    cascade = two_nodes("a")
    search = ObjectSearch(cascade, POOL, 28.3, 4)
    maxima = search.first_maxima(LEVELS)
    rows = search.second_scores(maxima, LEVELS)
    assert 50 < len(rows) < len(maxima)
    expected = []
    for x, y, _, scale in maxima:
        scores = []
        for octaves in (0, -0.25, 0.25):
            level = level_at(LEVELS, 2 * scale * 2**octaves)
            shifts = [[0, 0], [-2, 0], [2, 0], [0, -2], [0, 2]][: 1 if octaves else 5]
            at = nearest_pixel(level.from_image([x, y])) + shifts
            patches = extract_patches(level.image, *at.T, 48)
            sums = cascade.second.classifier.partial_scores(patches, LARGER)
            passed = (sums >= cascade.second.classifier.thresholds).all(axis=1)
            scores += np.where(passed, sums[:, -1], -np.inf).tolist()
        if scores[0] > -np.inf:  # its own window
            expected.append(max(scores))
    np.testing.assert_allclose(np.sort(rows[:, 2]), np.sort(expected), atol=2e-4)
    found = search.find(LEVELS)
    assert (found[:, 2] >= -1.0).all() and (np.diff(found[:, 2]) <= 0).all() and len(found)


def test_levels_of_a_large_image_are_computed_once_per_distance(monkeypatch):
    search = ObjectSearch(two_nodes("a"), POOL, 28.3, 4)
    expected = search.second_scores(search.first_maxima(LEVELS), LEVELS)
    monkeypatch.setattr(pyramid, "LARGE", 0)
    monkeypatch.setattr(pyramid, "KEPT", 0)
    monkeypatch.setattr(object_search, "_PATCHES", 8)
    levels, computed = gaussian_pyramid(IMAGE), Counter()
    maxima, level = search.first_maxima(levels), pyramid._Octaves.level
    monkeypatch.setattr(
        pyramid._Octaves, "level", lambda self, k: computed.update([k]) or level(self, k)
    )
    rows = search.second_scores(maxima, levels)
    np.testing.assert_allclose(np.sort(rows[:, 2]), np.sort(expected[:, 2]), atol=1e-5)
    assert len(maxima) > 50 and max(computed.values()) <= 3


def test_larger_windows_detect_objects_with_a_single_node(tmp_path):
    classifier = random_classifier(5, 40, 0.01, -1.0, LARGER)
    made = detector(face_cascade=FaceCascade(classifier, {"a": (0.1, 0.2)}, 1.0, pool=LARGER))
    objects, searched = made.search.objects(LEVELS), 0
    assert (np.diff(objects[:, 2]) <= 0).all() and objects[-1, 2] >= -1.0
    for level in LEVELS[::2]:
        x, y, score, _ = objects[np.isclose(objects[:, 3], level.scale)].T
        at = nearest_pixel(level.from_image(np.column_stack([x, y])))
        sums = classifier.partial_scores(extract_patches(level.image, *at.T, 48), LARGER)
        assert (sums >= classifier.thresholds - 2e-4).all()
        np.testing.assert_allclose(sums[:, -1], score, atol=2e-4)
        searched += len(x)
    assert searched == len(objects) > 10
    made.save(tmp_path / "d.safetensors")
    loaded = load_model(tmp_path / "d.safetensors").search
    np.testing.assert_array_equal(loaded.objects(LEVELS), objects)


def test_levels_between_those_of_a_pyramid():
    assert level_at(LEVELS, LEVELS[2].scale) is LEVELS[2]
    between = level_at(LEVELS, 0.9 * LEVELS[2].scale)
    assert between.scale == pytest.approx(0.9 * LEVELS[2].scale)
    assert level_at(LEVELS, 1.1) is None


def test_objects_start_the_guides_of_their_level_and_its_neighbours():
    made = detector()
    objects = made.search.objects(LEVELS)
    np.testing.assert_array_equal(
        made.anchor_maxima(LEVELS, ["a"], "prune+regress")[WHOLE], objects
    )
    windows = made.search.proposed_windows(LEVELS, "a")
    for level, proposed in zip(LEVELS, windows):
        near = abs(np.log2(objects[:, 3] / level.scale)) < 0.3
        assert near.any() or not len(proposed)
    assert sum(map(len, windows)) > 0


def test_the_second_node_is_kept_in_the_file(tmp_path):
    made, path = detector(), tmp_path / "d.safetensors"
    made.save(path)
    np.testing.assert_array_equal(
        load_model(path).search.objects(LEVELS), made.search.objects(LEVELS)
    )
    arrays, header = read_model(path, "keypoint detector")
    damaged = json.loads(json.dumps(header))
    damaged["face_cascade"]["second"]["finer"] = 0.5
    write_model(path, "keypoint detector", arrays, damaged)
    with pytest.raises(ValueError, match=r"finer=0\.5"):
        load_model(path)
    del arrays["faces/second/coef"]
    write_model(path, "keypoint detector", arrays, header)
    with pytest.raises(ValueError, match="'faces/second/coef' is missing"):
        load_model(path)


def test_whole_objects_support_hypotheses_and_start_their_own():
    finder = load_model("faces").finder
    assembler, n = finder.assembler, len(finder.anchors)
    maxima = {name: np.empty((0, 4)) for name in finder.anchors}
    maxima[WHOLE] = np.array([[100.0, 80.0, 2.0, 1.0], [300.0, 80.0, 1.0, 0.5]])
    # A model without log-odds of whole objects ignores them.
    known = {"slope": assembler.slope[:n], "offset": assembler.offset[:n]}
    assembler = replace(assembler, **known)
    finder = replace(finder, assembler=assembler)
    none = assembler.whole_objects(maxima, 28.3)
    assert not len(none.anchor) and finder.with_whole([], none, 5) == []
    scored = [np.append(assembler.slope, 1.5), np.append(assembler.offset, 0.5)]
    finder = replace(finder, assembler=replace(assembler, slope=scored[0], offset=scored[1]))
    whole = finder.assembler.whole_objects(maxima, 28.3)
    alone = finder.with_whole([], whole, 5)
    supports = np.array([3.5, 2.0]) - assembler.min_log_odds
    np.testing.assert_allclose([made.score for made in alone], supports)
    np.testing.assert_allclose(
        [made.points[:n].mean() for made in alone], [100 + 80j, 300 + 80j], atol=1e-9
    )
    assert [made.reference_length for made in alone] == [28.3, 56.6]
    both = finder.with_whole([replace(alone[1], score=4.0)], whole, 5)
    assert both[0].score == pytest.approx(4.0 + supports[1]) and len(both) == 3
    assert len(finder.with_whole([], whole, 1)) == 1
    assert len(finder.with_whole([], whole, 5, supports[0])) == 1


def test_whole_objects_are_refined_from_several_shapes_that_share_their_support():
    finder = load_model("faces").finder
    mean, n = finder.assembler.shape.mean_points, len(finder.anchors)
    assembler = replace(finder.assembler, templates=np.stack([mean, mean.real, 2 * mean]))
    finder = replace(finder, assembler=assembler)
    whole = Candidates(
        np.full(6, n), 100j * np.arange(6), np.arange(6.0, 0.0, -1.0), np.full(6, 30.0)
    )
    hypotheses = finder.with_whole([], whole, 1)
    assert len(hypotheses) == 16  # four objects, two sizes, two shapes
    assert {round(made.points[:n].mean().imag) for made in hypotheses} == {0, 100, 200, 300}
    assert {round(made.reference_length, 1) for made in hypotheses} == {27.0, 33.6}
    spread = sorted({round(float(np.ptp(made.points.imag)), 1) for made in hypotheses})
    assert spread[0] == 0 and spread[-1] == pytest.approx(2 * 33.6 * np.ptp(mean.imag), abs=0.1)

    points = finder.regressor.mean_points
    shapes = [
        RefinedShape(20 * points + shift, np.empty(0), 0.0, support, 20.0, yaw=0.0)
        for shift, support in ((0, 1.0), (2, 5.0), (90, 2.0))
    ]
    assert [shape.support for shape in finder.share_support(shapes)] == [5.0, 5.0, 2.0]
    assert load_model("faces").finder.share_support(shapes) is shapes


def test_the_pose_of_points_in_a_plane_is_their_rotation():
    finder = load_model("faces").finder
    flat = RigidModel(finder.assembler.rigid.points * [1, 1, 0])
    points = 20 * np.exp(0.3j) * (flat.points @ [1, 1j, 0])[len(finder.anchors) :]
    finder = replace(
        finder,
        assembler=replace(finder.assembler, rigid=flat),
        regressor=replace(finder.regressor, mean=flat.points[len(finder.anchors) :, :2]),
    )
    moved = points + np.random.default_rng(0).normal(size=len(points))
    np.testing.assert_allclose(finder._pose(moved), pose_of(finder.rigid.fit(moved)[0]), atol=1e-6)


def test_whole_objects_that_do_not_resemble_a_face_are_dropped():
    detector, pixels = load_model("faces"), sample_photograph()
    finder, levels = detector.finder, detector.search.pyramid(pixels)
    (face,) = detector.find(pixels).instances
    middle, length = face.places(finder.anchors).mean(), face.reference_length
    scale, far = detector.reference_length / length, [30 + 400j, 250 + 450j]
    places = np.array([middle + 0.1 * length, middle + 0.8j * length, *far])
    objects = np.column_stack(
        [places.real, places.imag, [9.0, -1, -1, -1], np.full(4, 1.1 * scale)]
    )
    likely = finder.likely_objects(levels, detector.reference_length, 0.0, objects)
    # the object is moved to the refined shape, and the one near it is dropped as a part of the face
    np.testing.assert_allclose(likely, [[middle.real, middle.imag, 9.0, scale]], rtol=0.03)
    objects[:, 2] = -15.0  # not clearly a face
    likely = finder.likely_objects(levels, detector.reference_length, -10.0, objects)
    np.testing.assert_array_equal(likely, objects[:2])
    n = 2 * MAX_INSTANCES + 5
    many = np.column_stack([np.arange(n) * 15.0 + 20, np.full((n, 2), [400.0, 0]), np.full(n, 3.0)])
    assert len(finder.likely_objects(levels, detector.reference_length, -99.0, many)) == n - 5
    assert not len(finder.likely_objects(levels, 28.3, 0.0, objects[:0]))


def test_refinement_of_background_stops_early():
    finder, pixels = load_model("faces").finder, sample_photograph()
    levels = load_model("faces").search.pyramid(pixels)
    mean = finder.regressor.mean_points
    for place, stops in ((222 + 135j, False), (40 + 400j, True)):
        whole = finder.refine(place + 42 * mean, 20.0, levels)
        early = finder.refine(place + 42 * mean, 20.0, levels, -3.0)
        assert (abs(whole.points - early.points).max() > 0) == stops
        np.testing.assert_array_equal(whole.histograms, early.histograms)
        log_odds = [finder.trained.face @ refined.inputs for refined in (whole, early)]
        assert abs(np.diff(log_odds)) < 1 and (log_odds[0] < -4) == stops
