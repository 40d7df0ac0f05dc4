"""The fit of a stage of the cascade that refines faces: annealing finds the values that matter, ridge regression their weights."""

from dataclasses import replace

import numpy as np
from annealed.pipelines.faces.training.assembly.refinement import RefinementSettings, annealed, fit_stage


def test_a_stage_selects_what_predicts_the_displacement():
    rng = np.random.default_rng(0)
    values = rng.random((400, 256)).astype(np.float32)  # two points
    weights = np.zeros((256, 3))
    weights[[5, 77, 200]] = [[1, 0, 2], [0, 1, 1], [1, -1, 0]]
    target = values @ weights
    settings = replace(RefinementSettings(), n_features=3, ridge=1e-3)
    kept = annealed(values, target, settings)
    assert kept.tolist() == [5, 77, 200]
    stage = fit_stage(values, target, kept, 24, 6, settings)
    np.testing.assert_allclose(stage.displacement(values[0].reshape(2, 128)), target[0], atol=0.01)


def test_all_values_are_kept_where_more_are_asked_for():
    values, target = np.random.default_rng(1).random((20, 8)), np.ones((20, 2))
    assert annealed(values, target, RefinementSettings()).tolist() == list(range(8))
