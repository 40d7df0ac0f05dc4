"""The fit of a stage of the cascade that refines faces: annealing finds the values that matter,
ridge regression their weights."""

from dataclasses import replace

import numpy as np
from annealed.models.keypoints.instances.shape_regression import RegressionStage, ShapeRegressor
from annealed.pipelines.keypoints.faces import FACES
from annealed.pipelines.keypoints.training.instances.refinement import (
    RegressionSettings,
    Runs,
    annealed,
    fit_stage,
    move_runs,
)


def test_a_stage_selects_what_predicts_the_displacement():
    rng = np.random.default_rng(0)
    values = rng.random((400, 256)).astype(np.float32)  # two points
    weights = np.zeros((256, 3))
    weights[[5, 77, 200]] = [[1, 0, 2], [0, 1, 1], [1, -1, 0]]
    target = values @ weights
    settings = replace(RegressionSettings(), n_features=3, ridge=1e-3)
    kept = annealed(values, target, settings)
    assert kept.tolist() == [5, 77, 200]
    stage = fit_stage(values, target, kept, 24, 6, settings)
    np.testing.assert_allclose(stage.displacement(values[0]), target[0], atol=0.01)


def test_all_values_are_kept_where_more_are_asked_for():
    values, target = np.random.default_rng(1).random((20, 8)), np.ones((20, 2))
    assert annealed(values, target, RegressionSettings()).tolist() == list(range(8))


def test_all_runs_of_a_stage_move_as_single_ones():
    rng = np.random.default_rng(2)
    n, q, mirror = 9, 4, FACES.point_order(9)
    features = np.sort(rng.choice(n * 128, 30, replace=False)).astype(np.int32)
    stage = RegressionStage(
        24,
        6,
        features,
        rng.normal(size=(30, q)).astype(np.float16),
        rng.random(q).astype(np.float32),
    )
    basis = rng.normal(size=(q, n, 2)).astype(np.float32)
    regressor = ShapeRegressor(
        rng.random((n, 2)), basis, (stage,), np.eye(n), np.zeros((n, 2), np.float32), mirror
    )
    values, units = (
        rng.random((5, n * 128)).astype(np.float32),
        rng.normal(size=5) + 1j * rng.normal(size=5),
    )
    now = rng.normal(size=(5, n)) + 1j * rng.normal(size=(5, n))
    runs = Runs([], np.zeros(5, int), now.copy(), now, np.ones(5))
    move_runs(runs, regressor, stage, values, units)
    for row in range(5):
        np.testing.assert_allclose(
            runs.now[row],
            regressor.move(stage, now[row], values[row].reshape(n, 128), units[row]),
            rtol=1e-4,
            atol=1e-5,
        )
