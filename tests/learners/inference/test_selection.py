"""Selection with a bounded share of false columns: the parts against formulas, the whole on made
data."""

import warnings

import numpy as np
import pytest
import scipy.sparse as sp
from annealed.learners import (
    Constraints,
    FDRSelector,
    FSAClassifier,
    FSARanker,
    FSARegressor,
    selection_pvalues,
)
from annealed.learners.inference.column_models import column_residuals, common_factors, standardised
from annealed.learners.inference.knockoffs import (
    e_values,
    exchangeability,
    gaussian_knockoffs,
    knockoff_threshold,
)

RNG = np.random.default_rng(0)
X = RNG.standard_normal((200, 60))
SIGNAL = X[:, :12].sum(axis=1)
Y = SIGNAL + RNG.standard_normal(200)
METHODS = ["conditional", "knockoffs"]


def correlated(n, kind, rng, p=60):
    """Rows of autoregressive columns, or of columns with a common factor."""
    Z = rng.standard_normal((n, p))
    if kind == "factor":
        return np.sqrt(0.5) * (Z + rng.standard_normal((n, 1)))
    for j in range(1, p):
        Z[:, j] = 0.6 * Z[:, j - 1] + np.sqrt(1 - 0.36) * Z[:, j]
    return Z


def few(Z, rng, k=6):
    true = np.sort(rng.permutation(Z.shape[1])[:k])
    return true, Z[:, true] @ rng.choice([-1.0, 1.0], k) + rng.standard_normal(len(Z))


@pytest.mark.parametrize("method", METHODS)
@pytest.mark.parametrize(
    "estimator, y",
    [
        (FSARegressor(), Y),
        (FSAClassifier(), np.where(SIGNAL > 0, "yes", "no")),
        (FSAClassifier(), np.digitize(SIGNAL, [-1.5, 1.5])),
        (FSARegressor(loss="poisson"), np.random.default_rng(1).poisson(np.exp(0.4 * SIGNAL))),
        (
            FSARegressor(loss="cox"),
            np.column_stack([np.random.default_rng(1).exponential(np.exp(-SIGNAL)), np.ones(200)]),
        ),
        (FSARegressor(response="piecewise"), np.sin(2 * X[:, :5]).sum(axis=1)),
    ],
)
def test_every_kind_of_target(method, estimator, y):
    found = FDRSelector(estimator, fdr=0.3, method=method, random_state=0).fit(X, y)
    chosen = found.get_support(indices=True)
    assert found.method_ == method and len(chosen) and np.mean(chosen >= 12) <= 0.5
    assert 0.0 <= found.estimated_fdr_ <= 0.3
    np.testing.assert_array_equal(found.estimator_.get_support(), found.support_)
    assert found.predict(X).shape == (200,) and found.transform(X).shape == (200, len(chosen))
    assert not hasattr(estimator, "support_")


@pytest.mark.slow
@pytest.mark.parametrize("kind", ["autoregressive", "factor"])
@pytest.mark.parametrize("method", METHODS)
def test_the_mean_share_of_false_columns_is_bounded(kind, method):
    shares, found = [], []
    for seed in range(20):
        rng = np.random.default_rng(seed)
        Z = correlated(250, kind, rng)
        true, y = few(Z, rng)
        chosen = (
            FDRSelector(FSARegressor(), fdr=0.2, method=method, random_state=seed)
            .fit(Z, y)
            .get_support(indices=True)
        )
        shares.append(np.mean(~np.isin(chosen, true)) if len(chosen) else 0.0)
        found.append(np.isin(true, chosen).mean())
    assert np.mean(shares) <= 0.2 + 2 * np.std(shares, ddof=1) / np.sqrt(20)
    assert np.mean(found) > 0.8


@pytest.mark.parametrize("method", METHODS)
def test_of_noise_something_is_selected_at_most_as_often_as_asked(method):
    some = 0
    for seed in range(30):
        rng = np.random.default_rng(seed)
        Z, y = correlated(100, "autoregressive", rng, 40), rng.standard_normal(100)
        found = FDRSelector(FSARegressor(), fdr=0.1, method=method, random_state=seed).fit(Z, y)
        some += found.support_.any()
        if not found.support_.any():
            assert np.isnan(found.estimated_fdr_) and np.ptp(found.predict(Z)) == 0
    assert some <= 6  # 3 expected


def test_pvalues_of_null_columns_are_uniform():
    rng, values = np.random.default_rng(0), []
    for _ in range(10):
        Z = correlated(200, "factor", rng)
        y = Z[:, :3] @ [1.0, -1.0, 1.0] + rng.standard_normal(200)
        keep = FSARegressor(3 + 20, constraints=Constraints(include=np.arange(23))).fit(Z, y)
        values += selection_pvalues(keep.set_params(constraints=None), Z, y)[3:].tolist()
    assert abs(np.mean(np.array(values) < 0.1) - 0.1) < 0.06
    assert abs(np.mean(values) - 0.5) < 0.08


def test_pvalues_stand_in_the_order_of_the_selected_columns():
    model = FSARegressor(14).fit(X, Y)
    values = selection_pvalues(model, X, Y)
    chosen = model.get_support(indices=True)
    assert (values[chosen < 12] < 1e-6).all() and (values[chosen >= 12] > 1e-4).all()


def test_auto_follows_from_the_columns_alone():
    rng = np.random.default_rng(0)
    for kind, n, method in (
        ("autoregressive", 400, "knockoffs"),
        ("autoregressive", 200, "conditional"),
        ("copies", 400, "conditional"),
        ("factor", 400, "conditional"),
    ):
        Z = correlated(n, kind, rng)
        if kind == "copies":
            Z[:, 1] = Z[:, 0] + 0.2 * rng.standard_normal(n)
        assert FDRSelector(FSARegressor(), fdr=0.3).fit(Z, few(Z, rng)[1]).method_ == method


def test_groups_stand_or_fall_together_and_included_columns_are_not_tested():
    groups = np.arange(60) // 2
    for method in METHODS:
        estimator = FSARegressor(constraints=Constraints(groups, include=[50], exclude=[40]))
        found = FDRSelector(estimator, fdr=0.2, method=method, random_state=0).fit(X, Y)
        assert found.support_[:12].all() and found.support_[50:52].all() and not found.support_[40]
        pairs = found.support_.reshape(-1, 2)
        assert (pairs[:20, 0] == pairs[:20, 1]).all()


def test_same_seed_same_selection_and_several_draws():
    one, two = (
        FDRSelector(FSARegressor(), 0.3, method="knockoffs", n_draws=5, random_state=3).fit(X, Y)
        for _ in range(2)
    )
    np.testing.assert_array_equal(one.statistics_, two.statistics_)
    assert one.support_[:12].all() and set(np.unique(one.selection_probabilities_ * 5 % 1)) <= {0.0}
    other = FDRSelector(FSARegressor(), 0.3, method="knockoffs", random_state=4).fit(X, Y)
    assert not np.array_equal(one.statistics_, other.statistics_)


def test_a_function_makes_the_knockoffs():
    calls = []

    def independent(columns, random_state):
        calls.append(columns.shape)
        return random_state.standard_normal(columns.shape)

    found = FDRSelector(
        FSARegressor(), 0.2, method="knockoffs", knockoffs=independent, random_state=0
    ).fit(X, Y)
    assert calls == [X.shape] and found.support_[:12].all()


def test_knockoffs_have_the_moments_of_the_columns():
    rng = np.random.default_rng(0)
    S = 0.6 ** np.abs(np.subtract.outer(range(5), range(5)))
    Z = rng.standard_normal((20_000, 5)) @ np.linalg.cholesky(S).T * [1, 2, 3, 4, 5] + 7
    for covariance in (None, S * np.outer(range(1, 6), range(1, 6))):
        both = np.corrcoef(Z.T, gaussian_knockoffs(Z, np.random.RandomState(0), covariance).T)
        np.testing.assert_allclose(both[5:, 5:], S, atol=0.03)
        cross = both[:5, 5:] - S
        np.testing.assert_allclose(cross - np.diag(np.diag(cross)), 0.0, atol=0.03)
        assert np.diag(cross).max() < -0.2  # copies differ from their columns


def test_the_diagnostic_sees_knockoffs_that_do_not_suit():
    rng = np.random.default_rng(0)
    Z, good, bad = correlated(500, "autoregressive", rng), [], []
    for seed in range(5):
        state = np.random.RandomState(seed)
        good.append(exchangeability(Z, gaussian_knockoffs(Z, state), state))
        bad.append(exchangeability(Z, state.standard_normal(Z.shape), state))
    assert np.median(good) > 0.05 and max(bad) == 0.005
    skewed = np.exp(Z)
    assert (
        exchangeability(
            skewed, gaussian_knockoffs(skewed, np.random.RandomState(0)), np.random.RandomState(0)
        )
        < 0.05
    )


def test_threshold_and_e_values_against_their_formulas():
    W = np.array([5.0, 4.0, 3.0, -2.5, 2.0, 1.0, -0.5, 0.0])
    for fdr in (0.2, 0.34, 0.5, 0.9):
        passing = [
            t for t in np.abs(W) if t > 0 and (1 + (-t >= W).sum()) / max((t <= W).sum(), 1) <= fdr
        ]
        assert knockoff_threshold(W, fdr) == min(passing, default=np.inf)
    assert knockoff_threshold(np.zeros(4), 0.1) == np.inf
    np.testing.assert_allclose(
        e_values(np.array([W, -W]), 0.68), np.where(W >= 3.0, 8.0 / 1.0, 0.0) / 2
    )


def test_residuals_of_columns_are_what_the_others_do_not_say():
    rng = np.random.default_rng(0)
    long = standardised(correlated(2000, "autoregressive", rng, 40))
    own = [np.array([7]), np.array([20, 21])]
    exact = column_residuals(long, long[:, [7, 20]], own)
    for residual, columns, j in zip(exact.T, own, (7, 20)):
        others = np.delete(long, columns, axis=1)
        np.testing.assert_allclose(
            residual, long[:, j] - others @ np.linalg.lstsq(others, long[:, j])[0], atol=1e-6
        )
    for kind, variance in (("autoregressive", (1 - 0.36) / (1 + 0.36)), ("factor", 0.5)):
        wide = standardised(correlated(150, kind, rng, 300))
        assert common_factors(wide).shape[1] == (kind == "factor")
        spread = column_residuals(wide, wide[:, 50:80], [np.array([j]) for j in range(50, 80)]).var(
            axis=0
        )
        assert abs(spread.mean() - variance) < 0.08


@pytest.mark.parametrize(
    "change, said",
    [
        ({"fdr": 0}, r"fdr=0 is not valid; expected a number in \(0, 1\)"),
        ({"fdr": 1.0}, "fdr=1.0 is not valid"),
        ({"method": "x"}, "method='x' is unknown"),
        ({"n_draws": 0}, "n_draws=0 is not valid"),
        ({"knockoffs": "x"}, "knockoffs='x' is unknown"),
        (
            {"method": "knockoffs", "knockoffs": lambda X, _: X[:, 1:]},
            r"returned an array of shape \(200, 59\)",
        ),
        ({"estimator": FSARanker()}, "expected FSAClassifier or FSARegressor"),
    ],
)
def test_bad_parameters(change, said):
    with pytest.raises(ValueError, match=said):
        FDRSelector(FSARegressor()).set_params(**change).fit(X, Y)


def broken(kind):
    Z = X.copy()
    if kind == "constant":
        Z[:] = 3.0
    elif kind == "copy":
        Z[:, 9] = 1.0 - 2.0 * Z[:, 5]
    elif kind == "missing":
        Z[3, 3] = np.nan
    elif kind == "sparse":
        return sp.csr_matrix(Z), Y
    elif kind == "few":
        return Z[:30], Y[:30]
    return Z, Y


@pytest.mark.parametrize(
    "kind, said",
    [
        ("constant", "column 0 is constant"),
        ("copy", "column 9 is a copy of column 5"),
        ("missing", "row 3, column 3"),
        ("sparse", "require a dense array"),
        ("few", "30 rows, but tests of columns require at least 50"),
    ],
)
def test_bad_tables(kind, said):
    selector = FDRSelector(FSARegressor())
    with pytest.raises(ValueError, match=said) as caught:
        selector.fit(*broken(kind))
    assert "\n" not in str(caught.value) and not hasattr(selector, "support_")


@pytest.mark.parametrize("seed", range(3))
def test_curved_columns_are_named(seed):
    rng = np.random.default_rng(seed)
    z = rng.standard_normal((400, 4))
    Z = np.hstack([z, z**2 + 0.3 * rng.standard_normal(z.shape)])
    bent = z[:, 1] ** 2 + rng.standard_normal(400)
    with pytest.warns(
        UserWarning, match="depend nonlinearly on column 1, but .* response='piecewise'"
    ):
        FDRSelector(FSARegressor()).fit(Z, bent)
    with warnings.catch_warnings():
        warnings.filterwarnings("error", message=".*depend nonlinearly")
        FDRSelector(FSARegressor()).fit(Z[:, :4], bent)  # no other column is
        FDRSelector(FSARegressor()).fit(Z, z[:, 0] + rng.standard_normal(400))
        heavy = rng.standard_t(3, (400, 8))
        FDRSelector(FSAClassifier()).fit(heavy, heavy[:, 0] + heavy[:, 1] > 0)
