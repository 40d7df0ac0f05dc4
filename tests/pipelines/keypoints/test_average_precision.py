"""The evaluation protocol: each rule on a case made by hand, the curve against scikit-learn."""

import numpy as np
import pytest
from annealed.pipelines.keypoints.measures import FALSE, HIT, NEITHER, curve, judge, pooled
from sklearn.metrics import average_precision_score


def outcomes(
    xy, points=((100.0, 100.0),), visible=None, ied=None, ignore=(), tolerance=0.05, score=None
):
    """Detections in falling order of score unless scores are given; IED 100: one pixel is one
    percent."""
    visible = [True] * len(points) if visible is None else visible
    ied = [100.0] * len(points) if ied is None else ied
    score = -np.arange(len(xy)) if score is None else score
    return judge(xy, score, points, visible, ied, ignore, tolerance).outcome.tolist()


def test_distance_rules():
    xy = [(100, 106), (100, 110), (100, 111), (105, 100)]
    assert outcomes(xy) == [NEITHER, FALSE, FALSE, HIT]
    assert outcomes(xy, tolerance=0.1) == [HIT, NEITHER, FALSE, NEITHER]


def test_a_second_hit_counts_neither_way():
    assert outcomes([(100, 101), (100, 100)]) == [HIT, NEITHER]
    # The better score goes first, whatever the order of the list.
    judged = judge([(100, 103), (100, 100)], [1.0, 2.0], [(100, 100)], [True], [100.0])
    assert judged.score.tolist() == [2.0, 1.0] and judged.outcome.tolist() == [HIT, NEITHER]


def test_every_face_is_spared():
    points = [(100, 100), (150, 100)]
    # 7 px from the second point: too far for a hit, too near to be false, although far from the
    # first.
    assert outcomes([(150, 107)], points) == [NEITHER]
    # The unit is each face's own IED: the same distance is false for a small face.
    assert outcomes([(150, 107)], points, ied=[100.0, 50.0]) == [FALSE]
    # Two faces, two detections near both: each point is hit once, the nearer one first.
    judged = judge(
        [(101, 100), (102, 100)], [2, 1], [(100, 100), (104, 100)], [True, True], [100.0, 100.0]
    )
    assert judged.face.tolist() == [0, 1] and judged.outcome.tolist() == [HIT, HIT]


def test_invisible_points():
    kwargs = {"points": [(100, 100)], "visible": [False]}
    assert outcomes([(100, 100), (100, 110), (100, 111)], **kwargs) == [NEITHER, NEITHER, FALSE]
    assert judge([(0, 0)], [1], [(100, 100)], [False], [100.0]).n_points == 0
    # A point without coordinates spares nothing.
    assert outcomes([(100, 100)], points=[(np.nan, np.nan)], visible=[False]) == [FALSE]


def test_ignore_boxes():
    box = [(50, 50, 70, 70)]
    assert outcomes([(60, 60), (70, 50), (71, 60)], ignore=box) == [NEITHER, NEITHER, FALSE]
    # Not even a hit counts in there, and the point stays to be found.
    judged = judge([(60, 60)], [1], [(60, 60)], [True], [100.0], box)
    assert judged.outcome.tolist() == [NEITHER] and judged.n_points == 1


def test_at_most_200_detections():
    xy = np.column_stack([np.full(250, 500.0), np.arange(250)])
    assert len(outcomes(xy)) == 200


def test_images_without_faces_or_detections():
    assert outcomes([(1, 2)], points=np.zeros((0, 2)), visible=[], ied=[]) == [FALSE]
    assert outcomes(np.zeros((0, 2))) == []
    assert pooled([]).average_precision != pooled([]).average_precision  # NaN
    none = pooled([judge(np.zeros((0, 2)), [], [(1, 1)], [True], [10.0])])
    assert none.average_precision == 0.0 and none.at_precision() == none.at_balance() == (
        0.0,
        np.inf,
    )


def test_curve_by_hand():
    c = curve([5, 4, 3, 2, 1], [HIT, HIT, NEITHER, FALSE, HIT], 4)
    np.testing.assert_allclose(c.precision, [1, 1, 2 / 3, 3 / 4])
    np.testing.assert_allclose(c.recall, [0.25, 0.5, 0.5, 0.75])
    assert c.average_precision == pytest.approx(0.25 + 0.25 + 0.25 * 0.75)
    assert c.at_precision(0.9) == (0.5, 4.0)
    assert c.at_precision(0.75) == c.at_balance() == (0.75, 1.0)
    assert c.at_threshold(2.5) == (1.0, 0.5)
    assert np.isnan(c.at_threshold(9)[0])


def test_average_precision_against_sklearn():
    rng = np.random.default_rng(0)
    hit = rng.random(300) < 0.4
    score = np.round(rng.normal(size=300) + hit, 1)  # with ties
    ours = curve(score, np.where(hit, HIT, FALSE), int(hit.sum())).average_precision
    assert ours == pytest.approx(average_precision_score(hit, score))
    # Points that nothing found lower the recall alone.
    assert curve(
        score, np.where(hit, HIT, FALSE), 2 * int(hit.sum())
    ).average_precision == pytest.approx(ours / 2)
