"""Chosen windows, strips, Algorithm 3 and the context, against the dense scan and plain reference code."""

from dataclasses import replace

import numpy as np
import pytest
from annealed.models import KeypointDetector, load_model
from annealed.models.files import read_model, write_model
from annealed.models.keypoints.guided_search import FARTHEST, Guide
from annealed.models.keypoints.non_maximum_suppression import Localisation
from annealed.models.keypoints.shape_model import learn_shape
from annealed.models.keypoints.shape_regression import Context, Refinement, cut_window
from annealed.models.keypoints.window_models import KeypointModel, OffsetModel
from annealed.vision import FeaturePool, Responses, extract_patches, level_channels
from annealed.vision.pyramid import gaussian_pyramid
from annealed.vision.windows.dense_scan import scan_level
from annealed.vision.windows.level_features import Buffers
from annealed.vision.windows.sparse_scan import predict_windows, score_windows
from skimage.data import astronaut

POOL = FeaturePool()
IMAGE = np.ascontiguousarray(astronaut()[40:240, 120:320])


def bins(features):
    ys, xs = np.mgrid[5 : IMAGE.shape[0] : 9, 5 : IMAGE.shape[1] : 9]
    values = POOL.evaluate(extract_patches(IMAGE, xs.ravel(), ys.ravel()), features)
    low = np.percentile(values, 2, axis=0).astype(np.float32)
    return low, ((np.percentile(values, 98, axis=0) - low) / 6 + 1e-6).astype(np.float32)


def classifier(seed, k=60, share=0.0, threshold=0.0):
    """A random cascade; every threshold alone rejects the given share of the windows."""
    rng = np.random.default_rng(seed)
    features = POOL.features[rng.choice(len(POOL.features), k, replace=False)]
    responses = Responses(*bins(features), rng.normal(size=(k, 7)))
    model = KeypointModel(features, responses, 0.25, np.full(k, -np.inf, np.float32), threshold=threshold)
    if share:
        ys, xs = np.mgrid[5 : IMAGE.shape[0] : 9, 5 : IMAGE.shape[1] : 9]
        sums = model.partial_scores(extract_patches(IMAGE, xs.ravel(), ys.ravel()), POOL)
        model = replace(model, thresholds=np.quantile(sums, share, axis=0).astype(np.float32))
    return model


def regressor(seed, k=30, size=0.5):
    rng = np.random.default_rng(seed)
    features = POOL.features[rng.choice(len(POOL.features), k, replace=False)]
    values = rng.normal(size=(k, 7, 2)).astype(np.float32) * np.float32(size)
    return OffsetModel(features, Responses(*bins(features), values), np.float32([0.5, -1]))


GUIDE = Guide((classifier(1, 20, threshold=-5.0), classifier(2, 40, threshold=-6.0)), regressor(3))


@pytest.mark.parametrize("share", [0.0, 0.02, 0.2])
def test_chosen_windows_score_as_in_the_dense_scan(share):
    model = classifier(4, 130, share).compiled(POOL)
    channels = level_channels(IMAGE, POOL)
    dense = scan_level(channels, model)
    ys, xs = np.divmod(np.random.default_rng(0).permutation(dense.size), dense.shape[1])
    np.testing.assert_array_equal(score_windows(channels, model, xs, ys), dense[ys, xs])
    assert score_windows(channels, model, [], []).shape == (0,)
    with pytest.raises(ValueError, match="outside"):
        score_windows(channels, model, [IMAGE.shape[1]], [0])


def test_histograms_of_single_windows_are_those_of_the_level():
    channels = level_channels(IMAGE, POOL)
    program = POOL.compile(POOL.features[POOL.n_haar :])
    places = np.random.default_rng(1).permutation(200 * channels.stride)[:50]
    places = places[places % channels.stride < 200].astype(np.uint64)
    cells, norms = channels.window_hog(places, program.cells, program.blocks)
    all_cells, all_norms = channels.hog
    rows, columns = np.divmod(places.astype(int), channels.stride)
    for i, (c, y, x) in enumerate(program.cells):
        at = (rows + y) * channels.stride + columns + x
        np.testing.assert_array_equal(cells[:, i], all_cells[8 * c : 8 * c + 8, at].T)
    for i, (c, y, x) in enumerate(program.block_corner):
        np.testing.assert_array_equal(norms[:, i], all_norms[c, (rows + y) * channels.stride + columns + x])


def test_few_or_many_windows_make_no_difference():
    model, few, many = classifier(9, 80, 0.02).compiled(POOL), level_channels(IMAGE, POOL), level_channels(IMAGE, POOL)
    assert len(many.hog) == 2
    ys, xs = (part.ravel() for part in np.mgrid[4:200:30, 7:200:30])
    np.testing.assert_array_equal(score_windows(few, model, xs, ys), score_windows(many, model, xs, ys))
    assert not few.has_hog and many.has_hog


def test_buffers_are_taken_over():
    model, buffers = classifier(10, 60, 0.02).compiled(POOL), Buffers()
    for image in (IMAGE, IMAGE[30:90, 20:100], IMAGE[:150, ::-1]):
        image = np.ascontiguousarray(image)
        expected = scan_level(level_channels(image, POOL), model)
        np.testing.assert_array_equal(scan_level(level_channels(image, POOL, buffers=buffers), model), expected)


def test_a_mirrored_guide_leads_to_the_mirrored_windows():
    place = Localisation(offset_x=0.01, offset_y=0.02)
    one = replace(classifier(8, 60, 0.02), localisation=place)
    other = one.mirrored(POOL).localisation
    x, y = GUIDE.windows(level_channels(IMAGE, POOL), POOL, True, place)
    mirrored = level_channels(np.ascontiguousarray(IMAGE[:, ::-1]), POOL)
    mx, my = GUIDE.mirrored(POOL).windows(mirrored, POOL, True, other)
    width = IMAGE.shape[1]  # the window at x shows what the one at width - x shows in the mirror; 0 has no partner
    assert {(width - a, b) for a, b in zip(x, y) if a > 0} == {(a, b) for a, b in zip(mx, my) if a > 0}


def test_offsets_are_those_of_the_patches():
    model = regressor(5)
    ys, xs = np.mgrid[3:190:20, 3:190:20]
    found = predict_windows(level_channels(IMAGE, POOL), model.compiled(POOL), xs.ravel(), ys.ravel())
    patches = extract_patches(IMAGE, xs.ravel(), ys.ravel())
    np.testing.assert_allclose(found, model.predict(patches, POOL), atol=1e-4)
    mirrored = model.mirrored(POOL).predict(patches[:, :, ::-1], POOL)
    np.testing.assert_allclose(mirrored, model.predict(patches, POOL) * [-1, 1] - [1, 0], atol=1e-4)


@pytest.mark.parametrize("margin", [0, 7])
def test_strips_are_the_whole_to_the_bit(margin):
    model = classifier(6, 80, 0.02).compiled(POOL)
    whole = scan_level(level_channels(IMAGE, POOL), model)
    for top, bottom in ((0, 60), (60, 131), (131, 200)):
        part = level_channels(IMAGE, POOL, (top, bottom), margin)
        scores = scan_level(part, model)
        np.testing.assert_array_equal(scores, whole[part.first : part.first + part.rows])
        assert part.first == max(0, top - margin) and part.rows == min(200, bottom + margin) - part.first
    with pytest.raises(ValueError, match="rows"):
        level_channels(IMAGE, POOL, (150, 201))


def test_a_large_image_is_detected_in_strips_as_in_one_piece(monkeypatch):
    detector = KeypointDetector({"a": classifier(7, 60, 0.01)}, POOL, guides={"a": GUIDE})
    for mode in ("scan", "regress", "prune+regress"):
        whole = detector.detect(IMAGE, threshold=-np.inf, mode=mode)
        assert whole
        monkeypatch.setattr("annealed.models.keypoints.detector.STRIP", 4000)
        assert len(list(detector.strips(gaussian_pyramid(IMAGE)[0], mode))) > 1
        assert detector.detect(IMAGE, threshold=-np.inf, mode=mode) == whole
        monkeypatch.undo()


@pytest.mark.parametrize("prune", [False, True])
def test_algorithm_3_by_hand(prune):
    ys, xs = (part.ravel() for part in np.mgrid[5:200:10, 5:200:10])
    patches = extract_patches(IMAGE, xs, ys)
    left = np.ones(len(xs), bool)
    for node in GUIDE.prune if prune else ():
        left &= node.scores(patches, POOL) >= node.threshold
    assert not prune or 0.05 < left.mean() < 0.95
    wanted = set()
    for x, y, (dx, dy) in zip(xs[left], ys[left], GUIDE.offsets.predict(patches[left], POOL)):
        if max(abs(dx), abs(dy)) <= FARTHEST:
            px, py = int(np.floor(x + dx + 0.5)), int(np.floor(y + dy + 0.5))
            wanted |= {(px + i, py + j) for i in range(-2, 3) for j in range(-2, 3) if 0 <= px + i < 200 and 0 <= py + j < 200}
    x, y = GUIDE.windows(level_channels(IMAGE, POOL), POOL, prune)
    assert len(x) == len(wanted) and set(zip(x.tolist(), y.tolist())) == wanted
    # The classifier decides about these windows as it does in the scan.
    detector = KeypointDetector({"a": classifier(8, 60, 0.02)}, POOL, guides={"a": GUIDE})
    (level,) = gaussian_pyramid(IMAGE, min_scale=1.0)
    mode = "prune+regress" if prune else "regress"
    scan = {tuple(row) for row in detector.score_level(level, "a").tolist()}
    guided = {tuple(row) for row in detector.score_level(level, "a", mode).tolist()}
    assert guided == {row for row in scan if (row[0], row[1]) in wanted}


def test_the_verifier_decides_behind_the_cascade_alone(tmp_path):
    place = Localisation(offset_x=0.03, mark_x=0.01)
    scan, verifier = classifier(8, 60, 0.02, 0.5), replace(classifier(11, 40, 0.02, 0.25), localisation=place)
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
    assert replace(GUIDE, verifier=verifier).mirrored(POOL).verifier.localisation == verifier.mirrored(POOL).localisation
    arrays, header = read_model(path, "keypoint detector")
    del arrays["a/verifier/coef"]
    write_model(path, "keypoint detector", arrays, header)
    with pytest.raises(ValueError, match="'a/verifier/coef' is missing"):
        load_model(path)


def test_modes_that_were_not_learnt():
    detector = KeypointDetector({"a": classifier(1), "b": classifier(2)}, POOL, guides={"a": replace(GUIDE, prune=()), "b": GUIDE})
    detector.check_mode("regress")
    with pytest.raises(ValueError, match="expected one of scan, regress, prune"):
        detector.detect(IMAGE, mode="fast")
    with pytest.raises(ValueError, match="not learnt to prune for a"):
        detector.detect(IMAGE, mode="prune+regress")
    with pytest.raises(ValueError, match="only 'scan'"):
        replace(detector, guides={}).detect(IMAGE, mode="regress")


def test_the_default_mode_is_the_fastest_that_was_learnt():
    detector = KeypointDetector({"a": classifier(1), "b": classifier(2)}, POOL, guides={"a": GUIDE, "b": replace(GUIDE, prune=())})
    assert detector.check_mode(None) == "scan" and detector.check_mode(None, ["a"]) == "prune+regress"
    detector = replace(detector, guides={"a": GUIDE, "b": GUIDE})
    assert detector.check_mode(None) == "prune+regress"
    assert detector.detect(IMAGE) == detector.detect(IMAGE, mode="prune+regress")
    without = replace(detector, guides={})
    assert without.check_mode(None) == "scan" and without.detect(IMAGE) == without.detect(IMAGE, mode="scan")


def test_many_images_in_any_number_of_processes():
    detector = KeypointDetector({"a": classifier(7, 60, 0.01)}, POOL, guides={"a": GUIDE})
    images = [IMAGE, IMAGE[:100], IMAGE[:, 50:], IMAGE[::-1]]
    options = {"mode": "regress", "threshold": -np.inf, "min_size": 30}
    one = [detector.detect(image, **options) for image in images]
    for n_jobs in (1, 3):
        assert list(detector.detect_many(images, n_jobs, **options)) == one
    with pytest.raises(ValueError, match="n_jobs=0"):
        list(detector.detect_many(images, 0))
    answers = detector.detect_many([IMAGE, IMAGE.astype(complex), IMAGE], 2, **options)
    assert next(answers) == one[0]  # a bad image speaks up when it is its turn
    with pytest.raises(ValueError, match="complex"):
        next(answers)


NAMES = ("left_eye", "right_eye", "mouth", "chin")
MEAN = np.array([[0.5, -0.3], [-0.5, -0.3], [0, 0.6], [0, 1.2]])


def shape_model(noise=0.01):
    """Faces whose chin goes down twice as far as the mouth does."""
    rng = np.random.default_rng(0)
    low = rng.normal(size=300) * 0.05
    faces = np.repeat(MEAN[None], 300, axis=0)
    faces[:, 2, 1] += low
    faces[:, 3, 1] += 2 * low
    turn = rng.uniform(20, 60, 300) * np.exp(1j * rng.normal(size=300) * 0.1)
    z = turn[:, None] * (faces[..., 0] + 1j * faces[..., 1]) + 100
    seen = np.ones((300, 4), bool)
    return learn_shape(np.stack([z.real, z.imag], axis=2), seen, NAMES, np.arange(3), noise)


def test_the_shape_tells_what_is_missing():
    shape = shape_model()
    assert abs(shape.places[0] - shape.places[1]) == pytest.approx(1)
    turn, shift = 40 * np.exp(0.2j), 200 + 90j
    for low in (-0.1, 0.0, 0.1):
        face = MEAN[:, 0] + 1j * (MEAN[:, 1] + np.array([0, 0, low, 2 * low]))
        image = turn * face + shift
        expected, frame = shape.complete(image[:3], np.arange(3))
        assert abs(expected[3] - image[3]) < 0.02 * 40
        assert abs(frame.turn) == pytest.approx(40, rel=0.1) and np.angle(frame.turn) == pytest.approx(0.2, abs=0.02)
    image = turn * (MEAN[:, 0] + 1j * MEAN[:, 1]) + shift
    expected, _ = shape.complete(image[[0, 2]], np.array([0, 2]))
    np.testing.assert_allclose(expected, image, atol=0.03 * 40)


def test_anchors_are_gathered_to_faces():
    context = Context(shape_model(0.02))
    rng = np.random.default_rng(1)
    centres, sizes = np.array([100 + 100j, 300 + 120j]), np.array([40.0, 60.0])
    peaks = {}
    for i, name in enumerate(NAMES[:3]):
        place = centres + sizes * (MEAN[i, 0] + 1j * MEAN[i, 1]) + rng.normal(size=2)
        far = rng.uniform(500, 900, 5) + 1j * rng.uniform(500, 900, 5)
        xy, unit = np.append(place, far), np.append(sizes * 1.2, np.full(5, 30.0))
        score = np.append([8.0, 6.0], np.full(5, -1.0))
        peaks[name] = np.column_stack([xy.real, xy.imag, score, 28.3 / unit])
    peaks["mouth"] = peaks["mouth"][1:]  # the first face's mouth was not found
    faces = context.faces(peaks, dict.fromkeys(NAMES, 0.0))
    by_size = {len(face.which): face for face in faces[:2]}
    np.testing.assert_array_equal(by_size[3].which, [0, 1, 2])
    np.testing.assert_array_equal(by_size[2].which, [0, 1])
    assert abs(by_size[2].found.mean() - (100 + 88j)) < 2
    assert [face.score for face in faces] == sorted((face.score for face in faces), reverse=True)
    assert all(len(face.which) >= 2 for face in faces)


def test_windows_of_a_face_are_turned_and_scaled():
    levels = gaussian_pyramid(IMAGE)
    straight = cut_window(levels, 90 + 80j, 1 + 0j, 24)
    np.testing.assert_array_equal(straight, extract_patches(IMAGE, [90], [80])[0])
    quarter = cut_window(levels, 90 + 80j, 1j, 24)  # the patch's x runs down the image
    np.testing.assert_array_equal(quarter[13, 13:], IMAGE[80:93, 90])
    level = levels[4]
    x, y = level.to_image([30, 25])
    half = cut_window(levels, complex(x, y), 2 + 0j, 24)
    np.testing.assert_array_equal(half, extract_patches(level.image, [30], [25])[0])


def whole_detector():
    models = {name: classifier(i, 15, threshold=0.5) for i, name in enumerate(NAMES)}
    steps = (Refinement(regressor(9, size=0.01), 14.0), Refinement(regressor(10, size=0.01), 20.0))
    context = Context(shape_model(), {"chin": steps}, weight=2.0, thresholds={"chin": 3.0}, least=-100.0)
    return KeypointDetector(models, POOL, guides=dict.fromkeys(NAMES, GUIDE), context=context)


def test_the_context_answers_for_the_chin():
    detector = whole_detector()
    small = IMAGE[:120, :120]
    found = detector.detect(small, ["chin"], threshold=-np.inf, max_detections=5, mode="scan")
    assert found and {d.keypoint for d in found} == {"chin"}
    assert found == [d for d in detector.detect(small, threshold=-np.inf, max_detections=5, mode="scan") if d.keypoint == "chin"]
    assert detector.default_threshold("chin") == 3.0 and detector.default_threshold("chin", context=False) == 0.5
    # By hand, from the anchors' peaks.
    levels = detector.pyramid(small)
    faces = detector.context.faces(detector.anchor_peaks(levels, most=5), dict.fromkeys(NAMES, 0.5), 5)
    place, frame, verified = detector.context.place(faces[0], levels, "chin", POOL, detector.models["chin"])
    assert any(d.x == place.real and d.score == pytest.approx(faces[0].score + 2 * verified) for d in found)
    expected, frame = detector.context.shape.complete(faces[0].found, faces[0].which)
    # The first answer: the expected place moved by the mean vote of the first regressor.
    first = replace(detector.context, refinements={"chin": detector.context.refinements["chin"][:1]})
    votes = np.array([0, -1, 1, -1j, 1j])
    unit = frame.turn / 14
    patches = np.stack([cut_window(levels, expected[3] + unit * v, unit, 24) for v in votes])
    dx, dy = regressor(9, size=0.01).predict(patches, POOL).T
    moved = expected[3] + unit * (votes + dx + 1j * dy).mean()
    assert first.place(faces[0], levels, "chin", POOL, detector.models["chin"])[0] == pytest.approx(moved)
    # Without it the chin is looked for like everything else.
    alone = detector.detect(small, ["chin"], threshold=-np.inf, mode="scan", context=False)
    assert alone == KeypointDetector({"chin": detector.models["chin"]}, POOL).detect(small, threshold=-np.inf)


def test_one_file_serves_all_modes(tmp_path):
    path = tmp_path / "d.safetensors"
    detector = whole_detector()
    detector.save(path)
    loaded = load_model(path)
    small = IMAGE[:100, :100]
    for mode in ("scan", "regress", "prune+regress"):
        assert loaded.detect(small, threshold=0.0, mode=mode) == detector.detect(small, threshold=0.0, mode=mode)
    loaded.save(tmp_path / "again.safetensors")
    assert (tmp_path / "again.safetensors").read_bytes() == path.read_bytes()


@pytest.mark.parametrize(
    "change, message",
    [
        (lambda a, h: a.pop("chin/offsets/coef"), "'chin/offsets/coef' is missing"),
        (lambda a, h: a.update({"chin/offsets/intercept": np.float32([0, np.inf])}), "finite"),
        (lambda a, h: h["guides"]["chin"].update(grid=0), "grid=0"),
        (lambda a, h: h["guides"].update(nose=h["guides"]["chin"]), "unknown keypoint 'nose'"),
        (lambda a, h: h["guides"]["chin"].pop("prune"), "damaged header"),
        (lambda a, h: a.update({"context/mean": a["context/mean"][:3]}), "'context/mean' is float64"),
        (lambda a, h: h["context"].update(noise=-1), "noise=-1"),
        (lambda a, h: h["context"].update(anchors=["chin"]), "anchors"),
        (lambda a, h: h["context"]["refinements"].update(chin=["x"]), "refinements of 'chin'"),
        (lambda a, h: h["context"].update(thresholds=3), "damaged header"),
    ],
)
def test_damaged_parts(tmp_path, change, message):
    path = tmp_path / "d.safetensors"
    whole_detector().save(path)
    arrays, header = read_model(path, "keypoint detector")
    change(arrays, header)
    write_model(path, "keypoint detector", arrays, header)
    with pytest.raises(ValueError, match=message) as error:
        load_model(path)
    assert str(error.value).startswith(str(path)) and "\n" not in str(error.value)
