"""Losses against finite differences, and the bounds that step sizes and Newton steps rely on."""

import numpy as np
import pytest
from annealed.learners.objective.losses import (
    LOSSES,
    FlippedLogisticLoss,
    HuberisedHingeLoss,
    LorenzLoss,
    MultinomialLoss,
    SquaredLoss,
    get_loss,
)
from annealed.learners.objective.margin_kernels import huberised_hinge_slope, logistic_slope, lorenz_slope
from annealed.learners.objective.pairwise import PairwiseLogisticLoss
from scipy.optimize import minimize

N = 40


def _problem(loss, seed=0):
    """Targets and scores that suit the loss, with uneven weights and scores far from symmetric."""
    rng = np.random.default_rng(seed)
    q = 3 if isinstance(loss, MultinomialLoss | SquaredLoss) else 1
    scores = rng.standard_normal((N, q)) * 2.0 + 0.7
    weight = rng.uniform(0.1, 3.0, N)
    weight /= weight.sum()
    if isinstance(loss, SquaredLoss):
        y = rng.standard_normal((N, q)) + 5.0
    elif isinstance(loss, MultinomialLoss):
        y = np.eye(q)[rng.choice(q, N, p=[0.6, 0.3, 0.1])]
    else:
        y = np.where(rng.random((N, q)) < 0.7, 1.0, -1.0)
    return y, scores, weight


def _pairwise():
    rng = np.random.default_rng(3)
    pairs = rng.integers(0, N, (70, 2))
    pairs = pairs[pairs[:, 0] != pairs[:, 1]]
    return PairwiseLogisticLoss(pairs, rng.random(len(pairs)), rng.uniform(0.2, 2.0, len(pairs)))


ALL = [*(LOSSES[name]() for name in LOSSES), HuberisedHingeLoss(0.35), FlippedLogisticLoss(0.2), _pairwise()]
IDS = [f"{type(loss).__name__}{i}" for i, loss in enumerate(ALL)]


@pytest.mark.parametrize("loss", ALL, ids=IDS)
def test_gradient_is_the_derivative_of_the_value(loss):
    y, scores, weight = _problem(loss)
    gradient = loss.gradient(y, scores, weight)
    for i in range(0, N, 3):
        for q in range(scores.shape[1]):
            e = np.zeros_like(scores)
            e[i, q] = 1e-5
            slope = (loss.value(y, scores + e, weight) - loss.value(y, scores - e, weight)) / 2e-5
            assert gradient[i, q] == pytest.approx(slope, rel=1e-4, abs=1e-9)


@pytest.mark.parametrize("loss", ALL, ids=IDS)
def test_curvature_is_never_negative_and_bounded(loss):
    y, scores, weight = _problem(loss)
    curvature = loss.curvature(y, scores, weight)
    assert curvature.shape == scores.shape
    assert (curvature >= 0).all()
    if loss.pointwise:
        assert (curvature <= loss.max_curvature * weight[:, None] * (1 + 1e-12)).all()


@pytest.mark.parametrize("loss", [SquaredLoss(), LorenzLoss(), HuberisedHingeLoss(0.1), HuberisedHingeLoss(0.35)])
def test_curvature_majorises(loss):
    """value(f + d) <= value(f) + gradient d + curvature d^2 / 2 row by row (where the curvature is not the zero of a flat part)."""
    rng = np.random.default_rng(1)
    one = np.ones(1)
    for _ in range(300):
        y = np.array([[rng.choice([-1.0, 1.0])]])
        f, d = rng.normal(0, 2, (2, 1, 1))
        if isinstance(loss, HuberisedHingeLoss | LorenzLoss) and loss.curvature(y, f, one)[0, 0] == 0:
            continue
        bound = loss.value(y, f, one) + (loss.gradient(y, f, one) * d + 0.5 * loss.curvature(y, f, one) * d * d).item()
        assert loss.value(y, f + d, one) <= bound + 1e-9


@pytest.mark.parametrize("flip", [0.01, 0.1, 0.3])
def test_flipped_logistic_is_the_likelihood_of_flipped_labels(flip):
    u = np.linspace(-30, 30, 61)
    clean = 1 / (1 + np.exp(-u))
    mixture = -np.log((1 - flip) * clean + flip * (1 - clean))
    np.testing.assert_allclose(FlippedLogisticLoss(flip).margin_value(u), mixture, rtol=1e-9, atol=1e-12)
    assert FlippedLogisticLoss(flip).margin_value(np.array([-800.0]))[0] == pytest.approx(-np.log(flip))


@pytest.mark.parametrize("loss", ["squared", "logistic", "multinomial"])
def test_best_constant_minimises(loss):
    loss = get_loss(loss)
    y, _, weight = _problem(loss)
    q = y.shape[1]
    best = minimize(lambda b: loss.value(y, np.broadcast_to(b, (N, q)), weight), np.zeros(q), tol=1e-12).fun
    start = np.broadcast_to(loss.best_constant(y, weight), (N, q))
    assert loss.value(y, start, weight) == pytest.approx(best, abs=1e-8)


def test_slopes_for_kernels_are_those_of_the_classes():
    for u in np.linspace(-5, 5, 101):
        at = np.array([u])
        assert logistic_slope(u) == pytest.approx(get_loss("logistic").margin_slope(at)[0], abs=1e-12)
        assert huberised_hinge_slope(u, 0.1) == pytest.approx(HuberisedHingeLoss(0.1).margin_slope(at)[0], abs=1e-12)
        assert lorenz_slope(u) == pytest.approx(LorenzLoss().margin_slope(at)[0], abs=1e-12)


def test_multinomial_curvature_majorises_the_full_hessian():
    loss = MultinomialLoss()
    y, scores, weight = _problem(loss)
    p = np.exp(scores) / np.exp(scores).sum(axis=1, keepdims=True)
    bound = loss.curvature(y, scores, weight)
    for i in range(N):
        full = weight[i] * (np.diag(p[i]) - np.outer(p[i], p[i]))
        assert np.linalg.eigvalsh(np.diag(bound[i]) - full).min() >= -1e-12


def test_ranking_sign():
    """r = 1 says that item i scores higher: the printed sign of eq. (17)."""
    loss = PairwiseLogisticLoss(np.array([[0, 1]]), np.array([1.0]))
    above, below = np.array([[2.0], [0.0]]), np.array([[0.0], [2.0]])
    assert loss.value(None, above, None) < loss.value(None, below, None)


def test_unknown_loss_is_named():
    with pytest.raises(ValueError, match=r"loss='hinge' is unknown; expected one of"):
        get_loss("hinge")
