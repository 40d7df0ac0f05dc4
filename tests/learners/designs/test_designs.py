"""Every design against an explicit standardised matrix."""

from functools import partial
from typing import NamedTuple

import numpy as np
import pytest
import scipy.sparse as sp
from annealed.learners.designs import kernels
from annealed.learners.designs.base import Design
from annealed.learners.designs.dense import DenseDesign
from annealed.learners.designs.piecewise_linear import PiecewiseDesign, hat_basis, sublevels
from annealed.learners.designs.responses import even_knots
from annealed.learners.designs.sparse import SparseDesign
from annealed.learners.objective.losses import LOSSES, LogisticLoss

# Targets that the losses are made for; the others take -1 and +1. Of survival times: ranks,
# negative where censored.
TARGETS = {
    **dict.fromkeys(
        ("poisson", "negative_binomial", "tweedie"),
        lambda rng, q: rng.integers(0, 5, (N, q)).astype(float),
    ),
    "gamma": lambda rng, q: rng.uniform(0.1, 5.0, (N, q)),
    "cox": lambda rng, q: rng.choice([-1.0, 1.0], (N, q)) * rng.integers(1, 100, (N, q)),
}


def plus_minus(rng, q):
    return rng.choice([-1.0, 1.0], (N, q))


N, M = 701, 37  # several blocks of rows for piecewise-linear designs, none of them full at the end


def _data(dtype=np.float64, order="C", seed=0):
    rng = np.random.default_rng(seed)
    X = rng.standard_normal((N, M)) * rng.uniform(0.01, 100, M) + rng.uniform(-1000, 1000, M)
    X[:, 5] = 3.7  # constant
    X[:, 20] = np.round(X[:, 20])
    weight = rng.uniform(0.0, 2.0, N)
    weight[::7] = 0.0
    weight /= weight.sum()
    return np.asarray(X, dtype=dtype, order=order), weight


def _standardised(X, weight):
    """The explicit matrix, in double precision."""
    X = X.astype(np.float64)
    mean = weight @ X
    scale = np.sqrt(weight @ (X - mean) ** 2)
    scale[scale < 1e-6 * np.abs(mean)] = np.inf
    return (X - mean) / scale


def _expanded(X, knots, weight, missing=False):
    """Hat functions one by one with np.interp, on positions rounded as the design rounds them."""
    n_bins = knots.shape[1] - 1
    steps = sublevels(n_bins)
    out = np.zeros((len(X), X.shape[1], n_bins + 1 + missing))
    for j in range(X.shape[1]):
        seen = ~np.isnan(X[:, j])
        position = (
            np.round(np.interp(X[seen, j], knots[j], np.arange(n_bins + 1.0)) * steps) / steps
        )
        for b in range(n_bins + 1):
            out[seen, j, b] = np.interp(position, np.arange(n_bins + 1.0), np.eye(n_bins + 1)[b])
        if missing:
            out[~seen, j, -1] = 1.0
    mean = np.einsum("n,nmw->mw", weight, out)
    scale = np.sqrt(np.einsum("n,nmw->m", weight, (out - mean) ** 2))
    scale[scale < 1e-9] = np.inf
    return ((out - mean) / scale[:, None]).reshape(len(X), -1)


class Case(NamedTuple):
    """A design, its explicit matrix, and how far sums over rows may be apart."""

    design: Design
    explicit: np.ndarray
    weight: np.ndarray
    # columns lie up to 1e5 standard deviations from 0: single precision leaves three digits
    single: bool
    constant: bool = True  # column 5 is constant


def _dense(dtype, order):
    X, weight = _data(dtype, order)
    return Case(DenseDesign(X, weight), _standardised(X, weight), weight, dtype == np.float32)


def _sparse(kind):
    X, weight = _data()
    X = np.where(np.random.default_rng(1).random(X.shape) < 0.8, 0.0, X)
    return Case(
        SparseDesign(kind(X), weight), _standardised(X, weight), weight, False, constant=False
    )


def _piecewise(dtype):
    X, weight = _data(dtype)
    knots = even_knots(X.min(axis=0), X.max(axis=0), 6)
    return Case(
        PiecewiseDesign.from_matrix(X, knots, weight),
        _expanded(X, knots, weight),
        weight,
        dtype == np.float32,
    )


def _missing():
    X, weight = _data()
    X[np.random.default_rng(2).random(X.shape) < 0.1] = np.nan
    knots = np.sort(np.random.default_rng(3).uniform(-1500, 1500, (M, 4)), axis=1)  # any, ascending
    design = PiecewiseDesign.from_matrix(X, knots, weight, missing=True)
    return Case(design, _expanded(X, knots, weight, True), weight, False, constant=False)


CASES = {
    **{
        f"dense {dtype.__name__} {order}": partial(_dense, dtype, order)
        for dtype in (np.float64, np.float32)
        for order in "CF"
    },
    **{f"sparse {kind.__name__}": partial(_sparse, kind) for kind in (sp.csr_matrix, sp.csc_array)},
    **{
        f"piecewise {dtype.__name__}": partial(_piecewise, dtype)
        for dtype in (np.float64, np.float32)
    },
    "piecewise missing": _missing,
}


@pytest.fixture(scope="module", params=CASES)
def case(request):
    return CASES[request.param]()


@pytest.mark.parametrize("q", [1, 3])
def test_scores_gradient_and_keep_match_the_explicit_matrix(case, q):
    rng = np.random.default_rng(7)
    tolerance = 2e-2 if case.single else 1e-8
    design, weight, kept = case.design, case.weight, np.arange(M)
    for _ in range(4):
        columns = (kept[:, None] * design.width + np.arange(design.width)).ravel()
        coef = rng.standard_normal((len(kept), design.width, q))
        residual = rng.standard_normal((N, q)) * weight[:, None]
        explicit = case.explicit[:, columns]
        np.testing.assert_allclose(
            design.scores(coef),
            explicit @ coef.reshape(-1, q),
            atol=tolerance * np.sqrt(len(columns)),
        )
        np.testing.assert_allclose(
            design.gradient(residual).reshape(-1, q), explicit.T @ residual, atol=tolerance
        )
        np.testing.assert_allclose(design.matrix(), explicit, atol=tolerance)
        for name, cls in LOSSES.items():
            if cls.several_classes or "ranking" in cls.tasks or (name == "cox" and q > 1):
                continue
            loss, y = cls(), TARGETS.get(name, plus_minus)(rng, q)
            b = rng.standard_normal(q)
            gradient, residual_sum, value = design.scores_and_gradient(
                0.1 * coef, b, loss, y, weight
            )
            scores = explicit @ (0.1 * coef.reshape(-1, q)) + b
            r = loss.gradient(y, scores, weight)
            np.testing.assert_allclose(gradient.reshape(-1, q), explicit.T @ r, atol=tolerance)
            np.testing.assert_allclose(residual_sum, r.sum(axis=0), atol=tolerance)
            assert value == pytest.approx(loss.value(y, scores, weight), rel=max(tolerance, 1e-9))
        before = design
        stay = np.sort(rng.choice(len(kept), max(1, len(kept) * 3 // 5), replace=False))
        design, kept = design.keep(stay), kept[stay]
        assert before.n_features > design.n_features == len(stay)


def test_the_original_stays_usable_after_keep(case):
    rng = np.random.default_rng(9)
    coef, kept = rng.standard_normal((M, case.design.width, 1)), np.array([2, 30])
    before = case.design.scores(coef)
    small = case.design.keep(kept)
    small.scores(coef[kept])
    np.testing.assert_array_equal(case.design.scores(coef), before)
    np.testing.assert_allclose(
        case.design.keep(kept).scores(coef[kept]), small.scores(coef[kept]), rtol=1e-6, atol=1e-6
    )


def test_unstandardise_gives_the_same_scores_from_raw_columns(case):
    rng, design = np.random.default_rng(8), case.design
    coef = rng.standard_normal((M, design.width, 2))
    raw, offset = design.unstandardise(coef, np.array([1.0, -2.0]))
    columns = (
        case.explicit.reshape(N, M, -1) / np.where(design.inv > 0, design.inv, np.inf)[:, None]
        + design.mean
    )
    scores = np.einsum("nmw,mwq->nq", columns, raw) + offset
    np.testing.assert_allclose(
        scores, design.scores(coef) + [1.0, -2.0], atol=0.1 if case.single else 1e-6
    )


def test_constant_columns_count_nothing(case):
    if not case.constant:
        return
    coef = np.zeros((M, case.design.width, 1))
    coef[5] = 1e6
    assert case.design.inv[5] == 0
    np.testing.assert_array_equal(case.design.scores(coef), 0.0)
    assert (case.design.gradient(np.ones((N, 1)))[5] == 0).all()


def test_moments_survive_a_large_offset():
    X = (np.random.default_rng(0).standard_normal((1000, 3)) + 2.0**20).astype(np.float32)
    design = DenseDesign(X, np.full(1000, 1e-3))
    np.testing.assert_allclose(1 / design.inv, X.astype(np.float64).std(axis=0), rtol=1e-4)


def test_designs_do_not_copy_or_change_the_data():
    for order in "CF":
        X, weight = _data(np.float32, order)
        before = X.copy()
        design = DenseDesign(X, weight)
        assert np.shares_memory(design.stored_columns(slice(None)), X)
        design.scores_and_gradient(
            np.ones((M, 1, 1)), np.zeros(1), LogisticLoss(), np.ones((N, 1)), weight
        )
        design.matrix()
        np.testing.assert_array_equal(X, before)


def test_codes_on_any_knots_are_rounded_positions():
    rng = np.random.default_rng(0)
    X = rng.normal(size=(130, 70))
    X[rng.uniform(size=X.shape) < 0.1] = np.nan
    knots = np.sort(rng.normal(size=(70, 5)), axis=1)
    knots[2], knots[3], X[:9, 3] = 1.0, [-1.0, 0.5, 0.5, 1.0, 2.0], 0.5
    codes = np.zeros((70, kernels.ROWS), np.uint8)
    kernels.encode_knots(X, knots, 63, codes)
    for x, edges, code in zip(X.T, knots, codes[:, :130], strict=True):
        bins = np.clip(np.searchsorted(edges, x, side="right") - 1, 0, 3)
        left, width = edges[bins], np.diff(edges)[bins]
        part = np.clip((x - left) / np.where(width > 0, width, np.inf), 0.0, 1.0)
        known = ~np.isnan(x)
        assert (code[~known] == kernels.MISSING).all()
        assert np.array_equal(code[known], np.floor((bins + part)[known] * 63 + 0.5))


def test_hat_basis_is_a_partition_of_one():
    for n_bins in (1, 5, 126):
        np.testing.assert_allclose(hat_basis(n_bins)[:255].sum(axis=1), 1.0)
        assert (hat_basis(n_bins, missing=True)[255] == np.eye(n_bins + 2)[-1]).all()
    with pytest.raises(
        ValueError, match="n_bins=127 is not valid; expected an integer from 1 to 126"
    ):
        sublevels(127)


@pytest.mark.parametrize("layout", ["csr", "csc"])
def test_sparse_products_in_blocks(monkeypatch, layout):
    """Products of few entries at a time, and columns that are dropped but still stored, give what
    the whole gives."""
    rng = np.random.default_rng(0)
    X = sp.random(40, 30, 0.3, format=layout, random_state=0, dtype=np.float32)
    weight = np.full(40, 1 / 40)
    whole = SparseDesign(X, weight)
    for name, value in (
        ("_BLOCK_ENTRIES", 25),
        ("_READ_ENTRIES", 25),
        ("_READ_ENTRIES_PER_COLUMN", 1),
    ):
        monkeypatch.setattr(f"annealed.learners.designs.sparse.{name}", value)
    parts = SparseDesign(X, weight)
    assert np.shares_memory(whole.X.data, X.data) and len(list(parts._blocks())) > 10
    np.testing.assert_allclose(parts.inv, whole.inv, rtol=1e-13)
    # all stored; half of those; copied together
    for kept in (np.arange(30), np.arange(0, 30, 2), np.arange(0, 30, 5)):
        one, two = (design.keep(kept) for design in (whole, parts))
        coef, residual = rng.normal(size=(len(kept), 1, 2)), rng.normal(size=(40, 2))
        expected = (X.toarray()[:, kept] - whole.mean[kept, 0]) * whole.inv[kept]
        assert two.matrix().dtype == np.float32
        np.testing.assert_allclose(two.matrix(), expected, rtol=1e-6)
        np.testing.assert_allclose(two.scores(coef), expected @ coef[:, 0], atol=1e-12)
        np.testing.assert_allclose(two.gradient(residual)[:, 0], expected.T @ residual, atol=1e-12)
        np.testing.assert_allclose(one.scores(coef), two.scores(coef), atol=1e-12)
    assert two.X.shape == (40, 6) and parts.keep(np.arange(15)).X is parts.X


@pytest.mark.parametrize("ratio", [1e6, 1e7, 1e10])
@pytest.mark.parametrize("zeros", [False, True])
@pytest.mark.parametrize("layout", [sp.csr_array, sp.csc_array])
def test_moments_of_sparse_columns_with_large_means(ratio, zeros, layout, monkeypatch):
    """Variances about a mean of the first block; with rows that are not stored, of weight zero or
    not."""
    rng = np.random.default_rng(1)
    X = rng.standard_normal((500, 8)) * [1, 2, 3, 4, 5, 6, 7, 8] + ratio
    weight = rng.uniform(0.5, 2.0, 500)
    weight[:30] = 0.0
    weight /= weight.sum()
    if zeros:
        X[:30] = 0.0  # they do not count
        X[40:60, 3] = 0.0  # these do
    monkeypatch.setattr("annealed.learners.designs.sparse._READ_ENTRIES", 400)
    design = SparseDesign(layout(X), weight)
    about = X[100]
    mean = weight @ (X - about)
    deviation = np.sqrt(weight @ (X - about - mean) ** 2)
    np.testing.assert_allclose(1.0 / design.inv, deviation, rtol=1e-15 * ratio)
    np.testing.assert_allclose(design.mean[:, 0], about + mean, rtol=1e-14)


def test_sparse_columns_that_are_constant():
    weight = np.random.default_rng(0).uniform(0.0, 1.0, 1001)
    weight /= weight.sum()
    for value in (0.1, 1e9 / 3, -7.3):
        for dtype in (np.float64, np.float32):
            design = SparseDesign(sp.csr_array(np.full((1001, 2), value, dtype)), weight)
            assert not design.inv.any()


@pytest.mark.parametrize("order", ["C", "F"])
@pytest.mark.parametrize("ratio", [1e3, 1e5, 3e6])
def test_single_precision_about_a_large_mean(order, ratio):
    """Moments, scores and gradients of float32 columns as those of the same numbers in float64."""
    rng = np.random.default_rng(2)
    X = np.asarray(rng.standard_normal((3000, 12)) + ratio, dtype=np.float32, order=order)
    weight = rng.uniform(0.5, 2.0, 3000)
    weight /= weight.sum()
    coef, residual = rng.standard_normal((12, 1, 2)), rng.standard_normal((3000, 2)) / 3000
    narrow, wide = DenseDesign(X, weight), DenseDesign(X.astype(np.float64), weight)
    np.testing.assert_allclose(narrow.inv, wide.inv, rtol=1e-5)
    for kept in (np.arange(12), np.arange(0, 12, 2)):
        one, other = narrow.keep(kept), wide.keep(kept)
        np.testing.assert_allclose(one.scores(coef[kept]), other.scores(coef[kept]), atol=1e-4)
        np.testing.assert_allclose(one.gradient(residual), other.gradient(residual), atol=1e-5)
        np.testing.assert_allclose(one.matrix(), other.matrix(), atol=1e-5)


def test_float32_columns_that_differ_by_a_rounding_are_constant():
    X = np.where(
        np.random.default_rng(0).random((2000, 3)) > 0.5,
        np.float32(0.1),
        np.nextafter(np.float32(0.1), np.float32(1)),
    )
    assert not DenseDesign(X, np.full(2000, 1 / 2000)).inv.any()
