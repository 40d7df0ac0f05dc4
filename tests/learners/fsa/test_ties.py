"""What is equal but for rounding is not decided by rounding: the order of the rows changes no
selection."""

import numpy as np
import pytest
from annealed.learners import FSARegressor, Refinement
from annealed.learners.model_selection.size import beats_constant, choose_size


def selections(estimator, X, y, rng, n_orders=5):
    """Different selections, with the words on them, from the same rows in different orders."""
    orders = [rng.permutation(len(y)) for _ in range(n_orders)]
    return {
        (
            *estimator.fit(X[order], y[order]).get_support(indices=True).tolist(),
            estimator.refinement_,
        )
        for order in orders
    }


def table(seed):
    """Few rows, little noise: at ten columns both refinements find the truth in every fold, with
    losses equal to 1e-15."""
    rng = np.random.default_rng(seed)
    X = np.round(rng.standard_normal((60, 30)), 6)
    return (
        X,
        np.round(X[:, :5].sum(axis=1) - X[:, 5:10].sum(axis=1) + 0.05 * rng.standard_normal(60), 6),
        rng,
    )


@pytest.mark.parametrize(
    "options", [{"n_features_to_select": "auto"}, {"refinement": Refinement(exchange="cv")}]
)
@pytest.mark.parametrize("seed", [12, 14, 18])
def test_refinements_that_are_equal_but_for_rounding(seed, options):
    X, y, rng = table(seed)
    assert len(selections(FSARegressor(**options), X, y, rng)) == 1


@pytest.mark.parametrize("rule", ["explained", "best", "one_se"])
@pytest.mark.parametrize("sign", [1.0, -1.0])
def test_the_first_of_equal_losses(rule, sign):
    """Loss or minus a score, at any scale."""
    rng = np.random.default_rng(0)
    for scale in (1e-6, 1.0, 1e6):
        losses = (
            sign
            * scale
            * (1.0 + rng.random((5, 1)) * 1e-3)
            * (1.0 + 1e-14 * rng.standard_normal((5, 4)))
        )
        for constant in (losses[:, 0] * (1.0 + sign * 1e-13), losses[:, 0] + 0.1 * scale):
            orders = (rng.permutation(4) for _ in range(20))
            assert {choose_size(losses[:, order], rule, constant) for order in orders} == {0}
        assert not beats_constant(losses[:, 1], losses[:, 0] * (1.0 + sign * 1e-13))
