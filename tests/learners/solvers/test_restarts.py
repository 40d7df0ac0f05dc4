"""The longer search where labels are noisy."""

import numpy as np
from annealed.learners import Constraints, FSAClassifier
from annealed.learners.designs.factory import make_design
from annealed.learners.objective.losses import FlippedLogisticLoss
from annealed.learners.solvers.newton import SupportProblem, refit
from annealed.learners.solvers.restarts import search
from annealed_experiments.tables.simulated import simulate


def noisy(seed=0):
    data = simulate("classification", 300, 200, 5, label_noise=0.2, random_state=seed)
    return data, data.y[:, None].astype(float), np.full(300, 1 / 300)


def objective(design, y, weight, support):
    problem = SupportProblem(y, FlippedLogisticLoss(0.1), weight, shrinkage=1e-4)
    return refit(
        problem,
        design.keep(np.sort(support)).matrix(),
        np.zeros((len(support), 1)),
        np.zeros(1),
        n_iter=200,
        tol=1e-9,
    ).value


def test_never_a_worse_objective_and_always_the_same():
    better = 0
    for seed in range(5):
        data, y, weight = noisy(seed)
        design = make_design(data.X, weight)
        start = np.sort(np.random.default_rng(seed).choice(200, 5, replace=False))
        found = search(design, y, weight, start, n_rows=300.0, flip=0.02)
        assert len(found) == 5 and (np.diff(found) > 0).all()
        assert objective(design, y, weight, found) <= objective(design, y, weight, start) + 1e-9
        assert np.array_equal(found, search(design, y, weight, start, n_rows=300.0, flip=0.02))
        better += data.found(FSAClassifier(5).fit(data.X, data.y).get_support(indices=True)) == 1
    assert better >= 3


def test_fixed_features_stay():
    data, y, weight = noisy()
    found = search(
        make_design(data.X, weight),
        y,
        weight,
        np.array([1, 2, 100, 150, 199]),
        n_rows=300.0,
        flip=0.02,
        fixed=np.arange(200) == 150,
    )
    assert 150 in found
    assert 150 in FSAClassifier(5, constraints=Constraints(include=[150])).fit(
        data.X, data.y
    ).get_support(indices=True)
