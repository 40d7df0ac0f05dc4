"""Regression-guided search and the modes of a detector, against plain reference code."""

from dataclasses import replace

import numpy as np
import pytest
from annealed.models import KeypointDetector, load_model
from annealed.models.files import read_model, write_model
from annealed.models.keypoints.guided_search import MAX_OFFSET
from annealed.models.keypoints.non_maximum_suppression import Localisation
from annealed.vision import extract_patches, level_channels
from annealed.vision.pyramid import gaussian_pyramid
from annealed.vision.windows.sparse_scan import predict_windows
from window_models import GUIDE, IMAGE, POOL, offset_regressor, random_classifier


def test_offsets_are_those_of_the_patches():
    model = offset_regressor(5)
    ys, xs = np.mgrid[3:190:20, 3:190:20]
    found = predict_windows(level_channels(IMAGE, POOL), model.compiled(POOL), xs.ravel(), ys.ravel())
    patches = extract_patches(IMAGE, xs.ravel(), ys.ravel())
    np.testing.assert_allclose(found, model.predict(patches, POOL), atol=1e-4)
    mirrored = model.mirrored(POOL).predict(patches[:, :, ::-1], POOL)
    np.testing.assert_allclose(mirrored, model.predict(patches, POOL) * [-1, 1] - [1, 0], atol=1e-4)


def test_a_mirrored_guide_leads_to_the_mirrored_windows():
    place = Localisation(offset_x=0.01, offset_y=0.02)
    one = replace(random_classifier(8, 60, 0.02), localisation=place)
    other = one.mirrored(POOL, 28.3).localisation
    x, y = GUIDE.windows(level_channels(IMAGE, POOL), POOL, True, 28.3, place)
    mirrored = level_channels(np.ascontiguousarray(IMAGE[:, ::-1]), POOL)
    mx, my = GUIDE.mirrored(POOL, 28.3).windows(mirrored, POOL, True, 28.3, other)
    width = IMAGE.shape[1]  # the window at x shows what the one at width - x shows in the mirror; 0 has no partner
    assert {(width - a, b) for a, b in zip(x, y) if a > 0} == {(a, b) for a, b in zip(mx, my) if a > 0}


@pytest.mark.parametrize("prune", [False, True])
def test_proposed_windows_by_hand(prune):
    ys, xs = (part.ravel() for part in np.mgrid[5:200:10, 5:200:10])
    patches = extract_patches(IMAGE, xs, ys)
    kept = np.ones(len(xs), bool)
    for node in GUIDE.prune if prune else ():
        kept &= node.scores(patches, POOL) >= node.threshold
    assert not prune or 0.05 < kept.mean() < 0.95
    wanted = set()
    for x, y, (dx, dy) in zip(xs[kept], ys[kept], GUIDE.offsets.predict(patches[kept], POOL)):
        if max(abs(dx), abs(dy)) <= MAX_OFFSET:
            px, py = int(np.floor(x + dx + 0.5)), int(np.floor(y + dy + 0.5))
            wanted |= {(px + i, py + j) for i in range(-2, 3) for j in range(-2, 3) if 0 <= px + i < 200 and 0 <= py + j < 200}
    x, y = GUIDE.windows(level_channels(IMAGE, POOL), POOL, prune, 28.3)
    assert len(x) == len(wanted) and set(zip(x.tolist(), y.tolist())) == wanted
    # The classifier decides about these windows as it does in the scan.
    detector = KeypointDetector({"a": random_classifier(8, 60, 0.02)}, POOL, guides={"a": GUIDE})
    (level,) = gaussian_pyramid(IMAGE, min_scale=1.0)
    mode = "prune+regress" if prune else "regress"
    scan = {tuple(row) for row in detector.score_level(level, "a").tolist()}
    guided = {tuple(row) for row in detector.score_level(level, "a", mode).tolist()}
    assert guided == {row for row in scan if (row[0], row[1]) in wanted}


def test_a_large_image_is_detected_in_strips_as_in_one_piece(monkeypatch):
    detector = KeypointDetector({"a": random_classifier(7, 60, 0.01)}, POOL, guides={"a": GUIDE})
    for mode in ("scan", "regress", "prune+regress"):
        whole = detector.detect(IMAGE, threshold=-np.inf, mode=mode)
        assert whole
        monkeypatch.setattr("annealed.models.keypoints.window_search.STRIP_PIXELS", 4000)
        assert len(list(detector.strips(gaussian_pyramid(IMAGE)[0], mode))) > 1
        assert detector.detect(IMAGE, threshold=-np.inf, mode=mode) == whole
        monkeypatch.undo()


def test_the_verifier_decides_behind_the_cascade_alone(tmp_path):
    place = Localisation(offset_x=0.03, annotation_x=0.01)
    scan, verifier = random_classifier(8, 60, 0.02, 0.5), replace(random_classifier(11, 40, 0.02, 0.25), localisation=place)
    shared = KeypointDetector({"a": scan}, POOL, guides={"a": GUIDE})
    detector = replace(shared, guides={"a": replace(GUIDE, verifier=verifier)})
    alone = KeypointDetector({"a": verifier}, POOL, guides={"a": GUIDE})
    path = tmp_path / "d.safetensors"
    detector.save(path)
    for found in (detector, load_model(path)):
        for mode, other in (("scan", shared), ("regress", shared), ("prune+regress", alone)):
            assert found.default_threshold("a", mode=mode) == other.default_threshold("a") == (0.25 if other is alone else 0.5)
            for threshold in (None, -np.inf):
                expected = other.detect(IMAGE, mode=mode, threshold=threshold)
                assert found.detect(IMAGE, mode=mode, threshold=threshold) == expected
    mirrored = replace(GUIDE, verifier=verifier).mirrored(POOL, 28.3)
    assert mirrored.verifier.localisation == verifier.mirrored(POOL, 28.3).localisation
    arrays, header = read_model(path, "keypoint detector")
    del arrays["a/verifier/coef"]
    write_model(path, "keypoint detector", arrays, header)
    with pytest.raises(ValueError, match="'a/verifier/coef' is missing"):
        load_model(path)


def test_modes_that_the_model_does_not_have():
    models = {"a": random_classifier(1), "b": random_classifier(2)}
    detector = KeypointDetector(models, POOL, guides={"a": replace(GUIDE, prune=()), "b": GUIDE})
    detector.check_mode("regress")
    with pytest.raises(ValueError, match="expected one of scan, regress, prune"):
        detector.detect(IMAGE, mode="fast")
    with pytest.raises(ValueError, match="does not have it for a, only 'scan' and 'regress'"):
        detector.detect(IMAGE, mode="prune+regress")
    with pytest.raises(ValueError, match="only 'scan'"):
        replace(detector, guides={}).detect(IMAGE, mode="regress")


def test_the_default_mode_is_the_fastest_of_the_model():
    models = {"a": random_classifier(1), "b": random_classifier(2)}
    detector = KeypointDetector(models, POOL, guides={"a": GUIDE, "b": replace(GUIDE, prune=())})
    assert detector.check_mode(None) == "scan" and detector.check_mode(None, ["a"]) == "prune+regress"
    detector = replace(detector, guides={"a": GUIDE, "b": GUIDE})
    assert detector.check_mode(None) == "prune+regress"
    assert detector.detect(IMAGE) == detector.detect(IMAGE, mode="prune+regress")
    without = replace(detector, guides={})
    assert without.check_mode(None) == "scan" and without.detect(IMAGE) == without.detect(IMAGE, mode="scan")
