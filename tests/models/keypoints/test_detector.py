"""Non-maximum suppression, the keypoint detector and its file, against brute force and the pool's
own partial sums."""

from dataclasses import replace

import numpy as np
import pytest
from annealed.learners.common.additive import AdditiveModel
from annealed.models import KeypointDetector, load_model, resolve_model
from annealed.models.files import read_model, write_model
from annealed.models.keypoints.windows.non_maximum_suppression import (
    local_maxima,
    suppress_non_maxima,
)
from annealed.models.keypoints.windows.window_models import (
    DEFAULT_REFERENCE_LENGTH,
    KeypointModel,
    Localisation,
)
from annealed.vision.windows.feature_pool import FeaturePool
from annealed.vision.windows.patches import extract_patches
from annealed.vision.windows.responses import Responses

POOL = FeaturePool()
IED = DEFAULT_REFERENCE_LENGTH


def random_model(seed=0, k=12, **more):
    rng = np.random.default_rng(seed)
    features = POOL.features[rng.choice(len(POOL.features), k, replace=False)]
    responses = Responses(rng.uniform(-1, 0, k), rng.uniform(0.1, 0.4, k), rng.normal(size=(k, 7)))
    return KeypointModel(features, responses, 0.25, np.full(k, -np.inf, np.float32), **more)


def photograph(seed=0, shape=(60, 70)):
    rng = np.random.default_rng(seed)
    smooth = np.cumsum(np.cumsum(rng.normal(size=(*shape, 3)), axis=0), axis=1)
    return np.clip(
        128 + 30 * smooth / smooth.std() + rng.normal(size=(*shape, 3)) * 10, 0, 255
    ).astype(np.uint8)


def maxima_by_hand(x, y, scale, score, c, suppression):
    maxima, left = [], sorted(range(len(x)), key=lambda i: (-score[i], scale[i], y[i], x[i]))
    while left:
        i = left[0]
        unit = IED / scale[i]
        distance = {j: np.hypot(x[j] - x[i], y[j] - y[i]) / unit for j in range(len(x))}
        lower = [
            j
            for j in range(len(x))
            if (-score[j], scale[j], y[j], x[j]) >= (-score[i], scale[i], y[i], x[i])
        ]
        near = [
            j
            for j in lower
            if distance[j] <= c.radius
            and score[j] >= score[i] - c.margin
            and abs(np.log2(scale[j] / scale[i])) <= c.octaves
        ]
        w = np.exp(c.sharpness * (score[near] - score[i]))
        px, py = (
            (w @ x[near]) / w.sum() + c.offset_x * unit,
            (w @ y[near]) / w.sum() + c.offset_y * unit,
        )
        maxima.append((px, py, score[i], scale[i]))
        left = [j for j in left if distance[j] > suppression]
    return np.array(maxima)


@pytest.mark.parametrize("seed", range(5))
def test_non_maximum_suppression_against_brute_force(seed):
    rng = np.random.default_rng(seed)
    n = 150
    x, y = rng.uniform(0, 200, n), rng.uniform(0, 200, n)
    scale, score = 2.0 ** (-rng.integers(0, 12, n) / 4), np.round(rng.normal(size=n) * 3, 1)
    c = Localisation(
        radius=0.5, octaves=0.6, sharpness=1.5, margin=2.0, offset_x=0.02, offset_y=-0.01
    )
    expected = maxima_by_hand(x, y, scale, score, c, 0.6)
    np.testing.assert_allclose(
        suppress_non_maxima(x, y, scale, score, c, IED, 0.6), expected, atol=1e-9
    )
    # One search serves every averaging within its radius.
    wide = local_maxima(x, y, scale, score, replace(c, radius=0.9), IED, 0.6)
    np.testing.assert_allclose(wide.positions(c), expected, atol=1e-12)
    # The order of the windows does not matter; a threshold and a maximum truncate the list.
    shuffled = rng.permutation(n)
    again = suppress_non_maxima(
        x[shuffled], y[shuffled], scale[shuffled], score[shuffled], c, IED, 0.6, threshold=1.0
    )
    np.testing.assert_allclose(again, expected[expected[:, 2] >= 1.0], atol=1e-9)
    assert len(suppress_non_maxima(x, y, scale, score, c, IED, 0.6, max_detections=3)) == 3


def test_no_windows():
    assert suppress_non_maxima(*np.empty((4, 0)), Localisation(), IED).shape == (0, 4)


def test_localisation_refuses_nonsense():
    with pytest.raises(ValueError, match="finite"):
        Localisation(radius=float("nan"))
    with pytest.raises(ValueError, match="at least 0"):
        Localisation(margin=-1.0)
    with pytest.raises(ValueError, match="localisation"):
        Localisation.from_dict({"raduis": 1.0})


def test_scores_are_those_of_the_pool():
    image, model = photograph(), random_model()
    detector = KeypointDetector({"chin": model}, POOL)
    best = detector.detect(image, threshold=-np.inf, max_size=24)[0]
    h, w = image.shape[:2]
    ys, xs = np.divmod(np.arange(h * w), w)
    sums = model.partial_scores(extract_patches(image, xs, ys), POOL)
    assert (
        best.score == pytest.approx(sums[:, -1].max(), abs=1e-4)
        and best.size == 24
        and best.keypoint == "chin"
    )
    # A peak alone: the weighted mean of a radius of 0 is the window's own pixel.
    alone = replace(model, localisation=Localisation(radius=0.0))
    best = KeypointDetector({"chin": alone}, POOL).detect(image, threshold=-np.inf, max_size=24)[0]
    assert best.y * w + best.x == pytest.approx(sums[:, -1].argmax())


def test_thresholds_sizes_and_order():
    image = photograph(1)
    detector = KeypointDetector({"a": random_model(1), "b": random_model(2, threshold=2.0)}, POOL)
    detections = detector.detect(image, threshold=-np.inf)
    scores = [d.score for d in detections]
    assert scores == sorted(scores, reverse=True) and {d.keypoint for d in detections} == {"a", "b"}
    assert detector.detect(image) == [
        d for d in detections if d.score >= (2.0 if d.keypoint == "b" else 0.0)
    ]
    assert all(d.size >= 33 for d in detector.detect(image, threshold=-np.inf, min_size=33))
    assert {
        d.size for d in detector.detect(image, threshold=-np.inf, min_size=12, max_size=12)
    } == {12.0}
    assert detector.detect(image, keypoints=["b"], threshold=-np.inf) == [
        d for d in detections if d.keypoint == "b"
    ]
    assert len(detector.detect(image, keypoints=["b"], threshold=-np.inf, max_detections=2)) == 2
    assert detector.detect(photograph(shape=(3, 3))) == []
    with pytest.raises(ValueError, match="keypoint 'nose' is unknown; expected one of a, b"):
        detector.detect(image, keypoints=["nose"])
    with pytest.raises(ValueError, match="min_size=1"):
        detector.detect(image, min_size=1)
    with pytest.raises(ValueError, match="max_size=10"):
        detector.detect(image, max_size=10)


def test_rejection_only_takes_windows_away():
    image, model = photograph(3), random_model(3)
    detector = KeypointDetector({"a": model}, POOL)
    patches = extract_patches(image, np.arange(70), np.full(70, 30))
    sums = model.partial_scores(patches, POOL)
    limits = np.quantile(sums, 0.9, axis=0).astype(np.float32) - 1
    rejecting = KeypointDetector({"a": replace(model, thresholds=limits)}, POOL)
    windows = [
        [
            tuple(row)
            for windows in d.search.score_levels(d.search.pyramid(image), "a")
            for row in windows
        ]
        for d in (rejecting, detector)
    ]
    assert windows[0] and set(windows[0]) < set(windows[1])


def test_a_mirrored_model_answers_in_the_mirrored_photograph():
    image, model = (
        photograph(4),
        random_model(4, localisation=Localisation(offset_x=0.05, offset_y=-0.02)),
    )
    mirrored = KeypointDetector({"a": model.mirrored(POOL, IED)}, POOL)
    one = KeypointDetector({"a": model}, POOL).detect(image, threshold=-np.inf, max_size=24)
    other = mirrored.detect(np.ascontiguousarray(image[:, ::-1]), threshold=-np.inf, max_size=24)
    # Windows at the frame's first column have no mirror image among those at pixels; the best ones
    # do.
    assert one[0].score == pytest.approx(other[0].score, abs=1e-4)
    assert one[0].x == pytest.approx(image.shape[1] - 1 - other[0].x, abs=0.02)
    assert one[0].y == pytest.approx(other[0].y, abs=0.02)
    twice = model.mirrored(POOL, IED).mirrored(POOL, IED)
    np.testing.assert_array_equal(twice.features, model.features)
    np.testing.assert_allclose(twice.responses.low, model.responses.low, atol=1e-6)
    assert twice.localisation.offset_x == pytest.approx(0.05)


def test_marks_lie_on_the_same_side_of_a_keypoint_and_its_mirror_image():
    image, model = photograph(4), random_model(4, localisation=Localisation(annotation_x=0.1))
    plain = replace(model, localisation=Localisation())
    for one, other in ((model, plain), (model.mirrored(POOL, IED), plain.mirrored(POOL, IED))):
        moved, still = (
            KeypointDetector({"a": m}, POOL).detect(image, threshold=-np.inf)[0]
            for m in (one, other)
        )
        assert (
            moved.x - still.x == pytest.approx(0.1 * IED * still.size / 24) and moved.y == still.y
        )


def detector_file(path):
    models = {"a": random_model(5, threshold=1.5), "b": random_model(6, k=3)}
    detector = KeypointDetector(models, POOL, info={"summary": "two", "scores": [1, 2]})
    detector.save(path)
    return detector


def test_save_and_load(tmp_path):
    path = tmp_path / "d.safetensors"
    detector = detector_file(path)
    loaded = load_model(path)
    assert (
        loaded.keypoints == ["a", "b"]
        and loaded.info == detector.info
        and loaded.pool.to_dict() == POOL.to_dict()
    )
    image = photograph(7)
    assert loaded.detect(image) == detector.detect(image)
    loaded.save(tmp_path / "again.safetensors")
    assert (tmp_path / "again.safetensors").read_bytes() == path.read_bytes()
    with pytest.raises(ValueError, match="neither a file nor a shipped model"):
        resolve_model("nothing")


@pytest.mark.parametrize(
    "change, message",
    [
        (lambda a, h: a.pop("b/lo"), "'b/lo' is missing"),
        (lambda a, h: a.update({"a/lo": a["a/lo"][:-1]}), "'a/lo' has dtype float32"),
        (lambda a, h: a.update({"a/features": a["a/features"] + 50}), "is not in this pool"),
        (lambda a, h: a.update({"a/step": -a["a/step"]}), "positive bin widths"),
        (
            lambda a, h: a.update({"a/coef": a["a/coef"] * np.float32(np.inf)}),
            "contains NaN or a value",
        ),
        (lambda a, h: h.pop("pool"), "the file is damaged .KeyError"),
        (lambda a, h: h["pool"].pop("kinds"), "definition of the feature pool"),
        (lambda a, h: h.update(keypoints="ab"[:0]), "damaged"),
        (lambda a, h: h["models"]["a"].pop("threshold"), "the file is damaged .KeyError"),
        (lambda a, h: h["models"]["a"].update(localisation=3), "localisation"),
        (lambda a, h: h.update(scales_per_octave="x"), "damaged"),
    ],
)
def test_damaged_contents(tmp_path, change, message):
    path = tmp_path / "d.safetensors"
    detector_file(path)
    arrays, header = read_model(path, "keypoint detector")
    change(arrays, header)
    write_model(path, "keypoint detector", arrays, header)
    with pytest.raises(ValueError, match=message) as error:
        load_model(path)
    assert str(error.value).startswith(str(path)) and "\n" not in str(error.value)


def test_unknown_kind(tmp_path):
    write_model(tmp_path / "x.safetensors", "riddle", {}, {})
    with pytest.raises(ValueError, match="unknown kind 'riddle'"):
        load_model(tmp_path / "x.safetensors")


def test_a_window_model_is_an_additive_model_in_single_precision():
    model, patches = (
        random_model(6),
        np.random.default_rng(6).integers(0, 256, (40, 26, 26, 3), dtype=np.uint8),
    )
    responses = model.responses
    knots = responses.low[:, None] + responses.bin_width[:, None] * np.arange(responses.n_bins + 1)
    additive = AdditiveModel(
        np.arange(len(knots)), knots, responses.values[:, :, None], None, model.intercept
    )
    values = POOL.evaluate(patches, model.features)
    np.testing.assert_allclose(
        additive.scores(values)[:, 0], model.scores(patches, POOL), atol=1e-4
    )
