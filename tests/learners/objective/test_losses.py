"""Losses against finite differences, and the bounds that step sizes and Newton steps rely on."""

import numpy as np
import pytest
from annealed.learners.objective.base import charges_of, effective_rows
from annealed.learners.objective.chain import ChainLoss
from annealed.learners.objective.losses import (
    LOSSES,
    FlippedLogisticLoss,
    HuberisedHingeLoss,
    LogisticLoss,
    LorenzLoss,
    Loss,
    MarginLoss,
    MultinomialLoss,
    NegativeBinomialLoss,
    PoissonLoss,
    SquaredLoss,
    TweedieLoss,
    VapnikLoss,
    get_loss,
    losses_for,
    pointwise_loss,
)
from annealed.learners.objective.margin_kernels import loss_terms, margin_slope
from annealed.learners.objective.pairwise import PairwiseLogisticLoss
from scipy.optimize import minimize

N = 40


def _problem(loss, seed=0):
    """Targets and scores that suit the loss, with uneven weights and scores far from symmetric."""
    rng = np.random.default_rng(seed)
    q = 3 if loss.several_classes or loss.is_quadratic else 1
    scores = rng.standard_normal((N, q)) * 2.0 + 0.7
    weight = rng.uniform(0.1, 3.0, N)
    weight /= weight.sum()
    if loss.is_quadratic:
        y = rng.standard_normal((N, q)) + 5.0
    elif loss.censored:
        y = np.where(rng.random((N, 1)) < 0.7, 1.0, -1.0) * rng.integers(1, 15, (N, 1))
    elif loss.link == "log":
        y = rng.poisson(3.0, (N, 1)).astype(float)
        if loss.name == "gamma":
            y += rng.random((N, 1))
    elif loss.target_scaling == "median":
        y = rng.standard_normal((N, 1))
    elif loss.several_classes:
        y = np.eye(q)[rng.choice(q, N, p=[0.6, 0.3, 0.1])]
    else:
        y = np.where(rng.random((N, q)) < 0.7, 1.0, -1.0)
    return y, scores, weight


def _pairwise():
    rng = np.random.default_rng(3)
    pairs = rng.integers(0, N, (70, 2))
    pairs = pairs[pairs[:, 0] != pairs[:, 1]]
    return PairwiseLogisticLoss(pairs, rng.random(len(pairs)), rng.uniform(0.2, 2.0, len(pairs)))


def _concrete(cls):
    """Every loss of the package below ``cls``: a new one is tested without being listed."""
    for loss in cls.__subclasses__():
        if loss.__module__.startswith("annealed.") and loss.name:
            yield loss
        yield from _concrete(loss)


def _chain():
    return ChainLoss([1, 7, N - 8], np.random.default_rng(4).standard_normal((3, 3)))


MEANS = ["poisson", "gamma", "tweedie", "negative_binomial"]
MADE = {"chain": _chain, "pairwise_logistic": _pairwise}  # losses that need arguments
VARIANTS = [
    HuberisedHingeLoss(0.35),
    FlippedLogisticLoss(0.2),
    VapnikLoss(LorenzLoss()),
    VapnikLoss(LogisticLoss()),
    TweedieLoss(1.0),
    TweedieLoss(1.9),
    NegativeBinomialLoss(0.2),
]
ALL = [*(MADE.get(cls.name, cls)() for cls in _concrete(Loss)), *VARIANTS]
IDS = [f"{type(loss).__name__}{i}" for i, loss in enumerate(ALL)]
CURVED = [loss for loss in ALL if loss.has_curvature]
COMPILED = [loss for loss in ALL if loss.kernel_code is not None]


def test_the_table_holds_every_loss_of_rows():
    assert {cls.name: cls for cls in _concrete(Loss) if cls is not ChainLoss} == LOSSES


def test_each_loss_says_for_which_tasks_it_is():
    tasks = {"binary", "multiclass", "regression", "ranking", "online"}
    for name, loss in LOSSES.items():
        assert loss.tasks and loss.tasks <= tasks, name
        assert ("online" in loss.tasks) == (loss().kernel_code is not None), name
        if loss.tasks & {"binary", "multiclass", "regression"} and not loss.censored:
            assert pointwise_loss(name).pointwise, name
    assert losses_for("ranking") == ["pairwise_logistic"]
    assert not Loss().tasks  # a custom loss is passed as an object


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


@pytest.mark.parametrize("loss", CURVED, ids=lambda loss: type(loss).__name__)
def test_curvature_is_never_negative_and_bounded(loss):
    y, scores, weight = _problem(loss)
    curvature = loss.curvature(y, scores, weight)
    assert curvature.shape == scores.shape
    assert (curvature >= 0).all()
    if loss.pointwise:
        assert (curvature <= loss.max_curvature * weight[:, None] * (1 + 1e-12)).all()


@pytest.mark.parametrize("loss", CURVED, ids=lambda loss: type(loss).__name__)
def test_curvature_is_the_derivative_of_the_gradient_of_means(loss):
    if loss.link != "log":
        return
    y, scores, weight = _problem(loss)
    slope = (
        loss.gradient(y, scores + 1e-5, weight) - loss.gradient(y, scores - 1e-5, weight)
    ) / 2e-5
    np.testing.assert_allclose(loss.curvature(y, scores, weight), slope, rtol=1e-6, atol=1e-12)


@pytest.mark.parametrize("name", MEANS)
def test_surrogate_is_the_loss_in_a_band_and_touching_parabolas_outside(name):
    loss = get_loss(name)
    y, scores, weight = _problem(loss)
    surrogate = loss.surrogate(y, weight)
    low, high = (surrogate.centre + side * surrogate.half_width for side in (-1, 1))
    inside = np.clip(scores, low, high)
    assert surrogate.value(y, inside, weight) == pytest.approx(loss.value(y, inside, weight))
    for end, side in ((low, -1.0), (high, 1.0)):
        edge, one = np.broadcast_to(end, y.shape), np.ones(1)
        slope, bend = loss.gradient(y, edge, weight), loss.curvature(y, edge, weight)
        np.testing.assert_allclose(
            surrogate.gradient(y, edge + 3.0 * side, weight), slope + 3.0 * side * bend
        )
        expected = loss.value(y, edge, weight) + (slope * side * 3.0 + 4.5 * bend).sum()
        assert surrogate.value(y, edge + 3.0 * side, weight) == pytest.approx(expected)
    e = 1e-5
    for i in range(0, N, 3):
        target, score = y[i : i + 1], scores[i : i + 1]
        rise = surrogate.value(target, score + e, one) - surrogate.value(target, score - e, one)
        slope = surrogate.gradient(target, score, one).item()
        assert slope == pytest.approx(rise / (2 * e), abs=1e-6)
    for f in np.linspace(-20, 20, 41):
        every = np.full_like(y, f)
        rise = surrogate.gradient(y, every + e, weight) - surrogate.gradient(y, every - e, weight)
        bound = surrogate.curvature_bound(y) * weight[:, None]
        assert (rise / (2 * e) <= bound * 1.2 + 1e-9).all()


@pytest.mark.parametrize(
    "loss", [SquaredLoss(), LorenzLoss(), HuberisedHingeLoss(0.1), HuberisedHingeLoss(0.35)]
)
def test_curvature_majorises(loss):
    """value(f + d) <= value(f) + gradient d + curvature d^2 / 2 row by row (where the curvature is
    not the zero of a flat part)."""
    rng = np.random.default_rng(1)
    one = np.ones(1)
    for _ in range(300):
        y = np.array([[rng.choice([-1.0, 1.0])]])
        f, d = rng.normal(0, 2, (2, 1, 1))
        if (
            isinstance(loss, HuberisedHingeLoss | LorenzLoss)
            and loss.curvature(y, f, one)[0, 0] == 0
        ):
            continue
        bound = (
            loss.value(y, f, one)
            + (loss.gradient(y, f, one) * d + 0.5 * loss.curvature(y, f, one) * d * d).item()
        )
        assert loss.value(y, f + d, one) <= bound + 1e-9


def test_printed_formulas():
    """Barbu et al. (2014), (4), (5), (7) and (8); Barbu et al. (2017), (8), over
    margins or residuals u."""
    u, h = np.linspace(-3, 4, 141), 0.1
    np.testing.assert_allclose(LogisticLoss().margin_value(u), np.log(1 + np.exp(-u)))
    hinge = np.where(u > 1 + h, 0.0, np.where(u < 1 - h, 1 - u, (1 + h - u) ** 2 / (4 * h)))
    np.testing.assert_allclose(HuberisedHingeLoss(h).margin_value(u), hinge, atol=1e-12)
    np.testing.assert_allclose(
        LorenzLoss().margin_value(u), np.where(u > 1, 0.0, np.log(1 + (u - 1) ** 2)), atol=1e-12
    )
    assert SquaredLoss().value(np.zeros((1, 1)), np.full((1, 1), 3.0), np.ones(1)) == pytest.approx(
        4.5
    )


@pytest.mark.parametrize("flip", [0.01, 0.1, 0.3])
def test_flipped_logistic_is_the_likelihood_of_flipped_labels(flip):
    u = np.linspace(-30, 30, 61)
    clean = 1 / (1 + np.exp(-u))
    mixture = -np.log((1 - flip) * clean + flip * (1 - clean))
    np.testing.assert_allclose(
        FlippedLogisticLoss(flip).margin_value(u), mixture, rtol=1e-9, atol=1e-12
    )
    assert FlippedLogisticLoss(flip).margin_value(np.array([-800.0]))[0] == pytest.approx(
        -np.log(flip)
    )


@pytest.mark.parametrize("loss", ["squared", "logistic", "multinomial", *MEANS, "cox"])
def test_best_constant_minimises(loss):
    loss = get_loss(loss)
    y, _, weight = _problem(loss)
    q = y.shape[1]
    best = minimize(
        lambda b: loss.value(y, np.broadcast_to(b, (N, q)), weight), np.zeros(q), tol=1e-12
    ).fun
    start = np.broadcast_to(loss.best_constant(y, weight), (N, q))
    assert loss.value(y, start, weight) == pytest.approx(best, abs=1e-8)


@pytest.mark.parametrize("loss", COMPILED, ids=lambda loss: type(loss).__name__)
def test_compiled_terms_are_those_of_the_classes(loss):
    one = np.ones(1)
    for f in np.linspace(-5, 5, 101):
        for target in (-1.0, 1.0):
            y, score = np.array([[target]]), np.array([[f]])
            value, slope = loss_terms(*loss.kernel_code, target, f)
            assert value == pytest.approx(loss.value(y, score, one), abs=1e-12)
            assert slope == pytest.approx(loss.gradient(y, score, one).item(), abs=1e-12)
            assert target * margin_slope(*loss.kernel_code, target * f) == pytest.approx(
                slope, abs=1e-12
            )


def test_a_subclass_has_no_compiled_form():
    class Doubled(LogisticLoss):
        def margin_value(self, u):
            return 2.0 * super().margin_value(u)

    assert LogisticLoss().kernel_code == (1, 0.0)
    assert Doubled().kernel_code is None


def test_facts_of_custom_losses():
    class OnlySlope(MarginLoss):
        def margin_slope(self, u):
            return -np.ones_like(u)

    class Curved(Loss):
        def curvature(self, y, scores, sample_weight):
            return np.ones_like(scores)

    assert (
        not OnlySlope().has_curvature
        and not Loss().has_curvature
        and not VapnikLoss(OnlySlope()).has_curvature
    )
    assert Curved().has_curvature
    assert OnlySlope().default_step_size is None
    assert VapnikLoss(LorenzLoss()).default_step_size == LorenzLoss().default_step_size


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
    with pytest.raises(ValueError, match=r"loss='cubic' is unknown; expected one of"):
        get_loss("cubic")


def test_charges_are_what_columns_without_effect_gain():
    rng = np.random.default_rng(0)
    n, sizes = 400, np.array([1, 1, 21])
    weight, scores = np.full(n, 1 / n), np.zeros((n, 1))
    y = 3.0 * rng.standard_normal((n, 1))
    squared = SquaredLoss().charges(sizes, y, scores, weight, n)
    Z = rng.standard_normal((500, n, 20))
    gains = [0.5 * (y[:, 0] @ z @ np.linalg.solve(z.T @ z, z.T @ y[:, 0])) / n for z in Z]
    assert squared[:2].tolist() == [0, 0] and squared[2] == pytest.approx(np.mean(gains), rel=0.1)
    # Counts that vary twice as much as Poisson's
    y = rng.negative_binomial(4, 0.5, (n, 1)).astype(float)
    poisson = PoissonLoss().charges(sizes, y, np.full((n, 1), np.log(y.mean())), weight, n)
    np.testing.assert_allclose(poisson, charges_of(sizes, n, y.var() / y.mean()))
    assert y.var() / y.mean() > 1.7
    np.testing.assert_allclose(
        LogisticLoss().charges(sizes, np.sign(y - 3), scores, weight, n), charges_of(sizes, n)
    )
    three = MultinomialLoss().charges(
        sizes, np.eye(3)[np.arange(n) % 3], np.zeros((n, 3)), weight, n
    )
    np.testing.assert_allclose(three, charges_of(sizes, n, 2.0))
    assert not SquaredLoss().charges(np.array([4, 4]), y, scores, weight, n).any()


def test_weights_count_as_copies_or_by_their_effective_number():
    copies, y = np.array([1.0, 3.0, 2.0]), np.array([[1.0], [-1.0], [2.0]])
    many = np.repeat(np.arange(3), copies.astype(int))
    sizes, scores = np.array([1, 3]), np.zeros((6, 1))
    repeated = SquaredLoss().charges(
        sizes, y[many], scores, np.full(6, 1 / 6), effective_rows(np.ones(6))
    )
    weighted = SquaredLoss().charges(sizes, y, scores[:3], copies / 6, effective_rows(copies))
    np.testing.assert_allclose(weighted, repeated)
    assert effective_rows(copies / 6) == pytest.approx(36 / 14)
