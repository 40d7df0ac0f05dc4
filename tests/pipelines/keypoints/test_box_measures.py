"""Average precision of objects by the similarity of their keypoints."""

from pathlib import Path

import numpy as np
import pytest
from annealed.models.keypoints.schema import Schema
from annealed.pipelines.keypoints.data import AnnotatedImage
from annealed.pipelines.keypoints.measures import oks_rows

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


def test_hidden_points_do_not_count():
    moved = POINTS + [[0, 0], [0, 0], [60, 0]]
    assert ap(annotated((True, True, False)), moved) == [1.0] * 10
    assert ap(annotated(), moved) == [1.0] * 4 + [0.0] * 6  # two of three: 0.667


def test_a_second_object_on_the_same_one_is_false_and_one_to_ignore_is_neither():
    assert ap(annotated(), POINTS, POINTS + 1, probability=[0.5, 0.9])[0] == 1.0
    away = POINTS + [200, 0]
    assert ap(annotated(), POINTS, away, probability=[0.5, 0.9])[0] == 0.5
    assert ap(annotated(ignore=[(190, 0, 260, 60)]), POINTS, away, probability=[0.5, 0.9])[0] == 1.0
