"""Average precision of objects by the similarity of their keypoints."""

import json
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from annealed.models.keypoints.schema import Schema
from annealed.pipelines.keypoints.data import AnnotatedImage, read_annotations
from annealed.pipelines.keypoints.measures import oks_rows
from PIL import Image

POINTS = np.array([[10.0, 10.0], [30.0, 10.0], [20.0, 40.0]])
SCHEMA = Schema("kite", ("left", "right", "tail"))


def annotated(visible=(True, True, True), ignore=()):
    boxes = np.array([[0.0, 0.0, 100.0, 100.0]])  # the root of the area is 100
    ignored = np.array(ignore, float).reshape(-1, 4)
    return AnnotatedImage(
        Path("a.png"), POINTS[None], np.array([visible]), ignored, schema=SCHEMA, boxes=boxes
    )


def ap(image, *found, probability=None):
    rows = oks_rows([image], [found], [probability or [0.9] * len(found)])
    assert [row["oks"] for row in rows] == [*np.arange(0.5, 1, 0.05).round(2).tolist(), "mean"]
    assert rows[-1]["ap"] == pytest.approx(np.mean([row["ap"] for row in rows[:-1]]))
    return [row["ap"] for row in rows[:-1]]


def test_the_similarity_decides_from_which_threshold_on_an_object_is_missed():
    assert ap(annotated(), POINTS) == [1.0] * 10
    # 7 pixels are 0.07 of the root of the area: exp(-0.7 ** 2 / 2) = 0.783
    assert ap(annotated(), POINTS + [7, 0]) == [1.0] * 6 + [0.0] * 4
    assert ap(annotated()) == [0.0] * 10


def test_hidden_points_count_and_unknown_points_do_not():
    moved = POINTS + [[0, 0], [0, 0], [60, 0]]
    two_of_three = [1.0] * 4 + [0.0] * 6  # 0.667
    assert ap(annotated(), moved) == ap(annotated((True, True, False)), moved) == two_of_three
    unknown = replace(annotated(), instances=np.where(moved == POINTS, POINTS, np.nan)[None])
    assert ap(unknown, moved) == [1.0] * 10


def test_precision_is_the_maximum_from_a_recall_on():
    away = POINTS + [200, 0]
    image = replace(annotated(), instances=np.stack([POINTS, POINTS + 50]))
    image = replace(image, visible=np.ones((2, 3), bool), boxes=np.tile(image.boxes, (2, 1)))
    found = POINTS, away, POINTS + 50
    # one of one, one of two, two of three: 51 values at 1, 50 at 2 / 3
    expected = (51 + 50 * 2 / 3) / 101
    assert ap(image, *found, probability=[0.9, 0.8, 0.7]) == [pytest.approx(expected)] * 10


def test_average_precision_is_that_of_pycocotools(tmp_path):
    coco = pytest.importorskip("pycocotools.coco", reason="needs annealed[integrations]")
    from pycocotools.cocoeval import COCOeval

    rng = np.random.default_rng(0)
    found, probability, truth, results = [], [], [], []
    for number in range(1, 41):
        n, m = rng.integers(0, 4), rng.integers(1, 6)
        every = rng.uniform(0, 300, (n + 1, 1, 2)) + POINTS + rng.normal(0, 2, (n + 1, 3, 2))
        seen = rng.choice([0, 1, 2], (n + 1, 3), p=[0.1, 0.2, 0.7])
        # the last one has no points: predictions on it, or the first of them, do not count
        seen[:n, :2], seen[n], crowd = 2, 0, number % 2
        boxes = np.concatenate([every.min(axis=1) - 2, every.max(axis=1) + 2], axis=1)
        areas = rng.uniform(0.4, 1, n + 1) * np.prod(boxes[:, 2:] - boxes[:, :2], axis=1)
        near = every[rng.integers(0, n + 1, m)]
        found.append(list(near + rng.normal(0, 1, (m, 3, 2)) * rng.uniform(0, 3, (m, 1, 1))))
        probability.append(rng.uniform(0, 1, m).tolist())
        for points, v, (x0, y0, x1, y1), area in zip(every, seen, boxes, areas):
            values = {"keypoints": np.column_stack([points, v]).ravel().tolist(), "area": area}
            values |= {"num_keypoints": int((v > 0).sum()), "bbox": [x0, y0, x1 - x0, y1 - y0]}
            values |= {"iscrowd": crowd if not v.any() else 0, "image_id": number}
            truth.append({"id": len(truth) + 1, "category_id": 1, **values})
        for points, p in zip(found[-1], probability[-1]):
            values = np.column_stack([points, [2, 2, 2]]).ravel().tolist()
            results.append({"image_id": number, "category_id": 1, "keypoints": values, "score": p})
        Image.new("L", (400, 400)).save(tmp_path / f"{number:02}.png")
    category = {"id": 1, "name": "kite", "keypoints": list(SCHEMA.keypoints), "skeleton": []}
    file = coco.COCO()
    file.dataset = {
        "images": [{"id": number, "file_name": f"{number:02}.png"} for number in range(1, 41)],
        "annotations": truth,
        "categories": [category],
    }
    (tmp_path / "annotations.json").write_text(json.dumps(file.dataset))
    file.createIndex()
    judged = COCOeval(file, file.loadRes(results), "keypoints")
    judged.params.kpt_oks_sigmas = np.full(3, 0.05)
    judged.evaluate()
    judged.accumulate()
    expected = judged.eval["precision"][:, :, 0, 0, 0].mean(axis=1)
    images = read_annotations(tmp_path, SCHEMA)
    rows = oks_rows(images, found, probability)
    assert 0.1 < expected.mean() < 0.8
    np.testing.assert_allclose([row["ap"] for row in rows], [*expected, expected.mean()])
    as_crowds = [replace(image, crowds=None) for image in images]
    assert oks_rows(as_crowds, found, probability)[-1]["ap"] > expected.mean()


def test_a_second_object_on_the_same_one_is_false_and_one_to_ignore_is_neither():
    assert ap(annotated(), POINTS, POINTS + 1, probability=[0.5, 0.9])[0] == 1.0
    away = POINTS + [200, 0]
    assert ap(annotated(), POINTS, away, probability=[0.5, 0.9])[0] == 0.5
    assert ap(annotated(ignore=[(190, 0, 260, 60)]), POINTS, away, probability=[0.5, 0.9])[0] == 1.0
