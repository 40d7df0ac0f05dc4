"""Regression-guided search and the modes of a detector, compared with reference code."""

import json
from dataclasses import replace

import numpy as np
import pytest
from annealed.models import KeypointDetector, load_model
from annealed.models.files import read_model, write_model
from annealed.models.keypoints.detections import DetectionOptions
from annealed.models.keypoints.windows.object_search import level_at
from annealed.models.keypoints.windows.window_models import MAX_OFFSET, Localisation, regions
from annealed.vision import extract_patches, level_channels
from annealed.vision.pyramid import gaussian_pyramid
from annealed.vision.windows.scan import predict_windows, scan_level
from window_models import GUIDE, IMAGE, POOL, face_cascade, offset_regressor, random_classifier


def test_offsets_are_those_of_the_patches():
    model = offset_regressor(5)
    ys, xs = np.mgrid[3:190:20, 3:190:20]
    predicted = predict_windows(
        level_channels(IMAGE, POOL), model.compiled(POOL), xs.ravel(), ys.ravel()
    )
    patches = extract_patches(IMAGE, xs.ravel(), ys.ravel())
    np.testing.assert_allclose(predicted, model.predict(patches, POOL), atol=1e-4)
    mirrored = model.mirrored(POOL).predict(patches[:, :, ::-1], POOL)
    np.testing.assert_allclose(mirrored, model.predict(patches, POOL) * [-1, 1] - [1, 0], atol=1e-4)


def test_a_mirrored_guide_leads_to_the_mirrored_windows():
    place = Localisation(offset_x=0.01, offset_y=0.02)
    one = replace(random_classifier(8, 60, 0.02), localisation=place)
    other = one.mirrored(POOL, 28.3).localisation
    channels = level_channels(IMAGE, POOL)
    x, y = GUIDE.windows(channels, POOL, GUIDE.grid_points(channels), 28.3, place)
    mirrored = level_channels(np.ascontiguousarray(IMAGE[:, ::-1]), POOL)
    mx, my = GUIDE.mirrored(POOL).windows(mirrored, POOL, GUIDE.grid_points(mirrored), 28.3, other)
    width = IMAGE.shape[
        1
    ]  # the window at x shows what the one at width - x shows in the mirror; 0 has no partner
    assert {(width - a, b) for a, b in zip(x, y) if a > 0} == {
        (a, b) for a, b in zip(mx, my) if a > 0
    }


def windows_by_hand(xs, ys):
    """The 25 windows around each prediction of the regressor."""
    wanted = set()
    for x, y, (dx, dy) in zip(xs, ys, GUIDE.offsets.predict(extract_patches(IMAGE, xs, ys), POOL)):
        if max(abs(dx), abs(dy)) <= MAX_OFFSET:
            px, py = int(np.floor(x + dx + 0.5)), int(np.floor(y + dy + 0.5))
            wanted |= {
                (px + i, py + j)
                for i in range(-2, 3)
                for j in range(-2, 3)
                if 0 <= px + i < 200 and 0 <= py + j < 200
            }
    return wanted


def test_proposed_windows_by_hand():
    ys, xs = (part.ravel() for part in np.mgrid[5:200:10, 5:200:10])
    wanted = windows_by_hand(xs, ys)
    channels = level_channels(IMAGE, POOL)
    x, y = GUIDE.windows(channels, POOL, GUIDE.grid_points(channels), 28.3)
    assert len(x) == len(wanted) and set(zip(x.tolist(), y.tolist())) == wanted
    # The classifier decides about these windows as it does in the scan.
    detector = KeypointDetector({"a": random_classifier(8, 60, 0.02)}, POOL, guides={"a": GUIDE})
    levels = gaussian_pyramid(IMAGE, min_scale=1.0)
    scan = {tuple(row) for row in detector.search.score_levels(levels, "a")[0].tolist()}
    guided = {
        tuple(row) for row in detector.search.score_levels(levels, "a", "regress")[0].tolist()
    }
    assert guided == {row for row in scan if (row[0], row[1]) in wanted}


def test_windows_near_faces_by_hand():
    cascade = face_cascade("a", "b", share=0.2)
    models = {"a": random_classifier(8, 60, 0.02), "b": random_classifier(9, 60)}
    detector = KeypointDetector(
        models, POOL, guides=dict.fromkeys("ab", GUIDE), face_cascade=cascade
    )
    levels = gaussian_pyramid(IMAGE)
    coarse = levels[6]
    assert level_at(levels, cascade.coarser) is coarse
    assert level_at(levels[:3], cascade.coarser).scale == pytest.approx(coarse.scale)
    scores = scan_level(level_channels(coarse.image, POOL), cascade.classifier.compiled(POOL))
    ys, xs = np.nonzero(scores > -np.inf)
    assert 0 < len(xs) < 0.5 * scores.size
    for name in "ab":
        grid = set()
        for x, y in levels[0].from_image(
            coarse.to_image(np.column_stack([xs, ys]))
        ) + 28.3 * np.array(cascade.expected[name]):
            left, top = 5 + 10 * np.floor((x - 5) / 10), 5 + 10 * np.floor((y - 5) / 10)
            grid |= {(int(left + i), int(top + j)) for i in (0, 10) for j in (0, 10)}
        grid = sorted((x, y) for x, y in grid if 5 <= x < 200 and 5 <= y < 200)
        assert 0 < len(grid) < 400
        wanted = windows_by_hand(*np.array(grid).T)
        assert set(map(tuple, detector.search.proposed_windows(levels, name)[0].tolist())) == wanted
        # One keypoint or both at a time, whatever the parts of the level: the scores are those of
        # the scan.
        scan = {tuple(row) for row in detector.search.score_levels(levels[:1], name)[0].tolist()}
        windows = [
            tuple(row)
            for row in detector.search.score_levels(levels, name, "prune+regress")[0].tolist()
        ]
        assert len(windows) == len(set(windows)) and set(windows) == {
            row for row in scan if (row[0], row[1]) in wanted
        }
    both = detector.detect(IMAGE, threshold=-np.inf)
    alone = [
        d for name in "ab" for d in detector.detect(IMAGE, keypoints=[name], threshold=-np.inf)
    ]
    assert both and sorted(both) == sorted(alone)


def test_nothing_is_searched_where_no_face_is():
    blind = face_cascade("a")
    blind = replace(
        blind, classifier=replace(blind.classifier, thresholds=np.full(20, 1e6, np.float32))
    )
    detector = KeypointDetector(
        {"a": random_classifier(8)}, POOL, guides={"a": GUIDE}, face_cascade=blind
    )
    assert detector.detect(IMAGE, threshold=-np.inf) == [] and detector.detect(
        IMAGE, threshold=-np.inf, mode="scan"
    )


def test_parts_of_a_level_hold_all_margins():
    rng = np.random.default_rng(0)
    points = rng.integers(0, [300, 200], (40, 2))
    for most in (10_000_000, 5000):
        parts = regions(points, 12, most)
        assert sorted(np.concatenate([members for _, _, members in parts]).tolist()) == list(
            range(40)
        )
        for rows, columns, members in parts:
            x, y = points[members].T
            assert rows.start == y.min() - 12 and rows.stop == y.max() + 13
            assert columns.start <= x.min() - 12 and columns.stop >= x.max() + 13
    assert len(parts) > 3


def test_a_large_image_is_detected_in_strips_as_in_one_piece(monkeypatch):
    classifier = random_classifier(7, 60, 0.01)
    detector = KeypointDetector(
        {"a": classifier}, POOL, guides={"a": GUIDE}, face_cascade=face_cascade("a")
    )
    for mode in ("scan", "regress", "prune+regress"):
        whole = detector.detect(IMAGE, threshold=-np.inf, mode=mode)
        assert whole
        monkeypatch.setattr("annealed.models.keypoints.windows.window_search.STRIP_PIXELS", 4000)
        assert len(list(detector.search.strips(gaussian_pyramid(IMAGE)[0], mode))) > 1
        assert [d[1:3] for d in detector.detect(IMAGE, threshold=-np.inf, mode=mode)] == [
            d[1:3] for d in whole
        ]
        monkeypatch.undo()


def test_the_face_cascade_is_kept_in_the_file(tmp_path):
    detector = KeypointDetector(
        {"a": random_classifier(8)}, POOL, guides={"a": GUIDE}, face_cascade=face_cascade("a")
    )
    path = tmp_path / "d.safetensors"
    detector.save(path)
    loaded = load_model(path)
    assert (
        loaded.detect(IMAGE, threshold=-np.inf) == detector.detect(IMAGE, threshold=-np.inf) != []
    )
    arrays, header = read_model(path, "keypoint detector")
    for change, message in (
        (lambda h: h["face_cascade"].update(coarser=2.0), "coarser=2.0"),
        (lambda h: h["face_cascade"]["expected"].update(a=[0.0, "x"]), "a=\\[0.0, 'x'\\]"),
        (lambda h: h["guides"]["a"].update(prune=[{}]), "an older format"),
    ):
        damaged = json.loads(json.dumps(header))
        change(damaged)
        write_model(path, "keypoint detector", arrays, damaged)
        with pytest.raises(ValueError, match=message):
            load_model(path)
    del arrays["face/coef"]
    write_model(path, "keypoint detector", arrays, header)
    with pytest.raises(ValueError, match="'face/coef' is missing"):
        load_model(path)


def test_modes_that_the_model_does_not_have():
    models = {"a": random_classifier(1), "b": random_classifier(2)}
    detector = KeypointDetector(models, POOL, guides={"a": GUIDE, "b": GUIDE})
    detector.resolve(DetectionOptions(mode="regress"))
    with pytest.raises(ValueError, match="expected one of scan, regress, prune"):
        detector.detect(IMAGE, mode="fast")
    with pytest.raises(ValueError, match="use mode='scan' or 'regress'"):
        detector.detect(IMAGE, mode="prune+regress")
    with pytest.raises(ValueError, match="is not available for a; use mode='scan'"):
        replace(detector, guides={}).detect(IMAGE, mode="regress")


def test_the_default_mode_is_the_fastest_of_the_model():
    models = {"a": random_classifier(1), "b": random_classifier(2)}
    detector = KeypointDetector(
        models, POOL, guides={"a": GUIDE, "b": GUIDE}, face_cascade=face_cascade("a")
    )
    assert (
        detector.resolve(DetectionOptions()).mode == "scan"
        and detector.resolve(DetectionOptions(["a"])).mode == "prune+regress"
    )
    detector = replace(detector, face_cascade=face_cascade("a", "b"))
    assert detector.resolve(DetectionOptions()).mode == "prune+regress"
    assert detector.detect(IMAGE) == detector.detect(IMAGE, mode="prune+regress")
    without = replace(detector, guides={})
    assert without.resolve(DetectionOptions()).mode == "scan" and without.detect(
        IMAGE
    ) == without.detect(IMAGE, mode="scan")
