"""The chains of sparse Fourier features: every move leaves the prior as it is, and the posterior is
the right one."""

from itertools import product
from math import factorial

import numpy as np
import pytest
from annealed.learners.compilation import jit
from annealed.learners.kernel_machines.chains import moves, polya_gamma, sampler
from annealed.learners.kernel_machines.chains.atoms import (
    AtomPrior,
    draw_frequencies,
    draw_sequence,
    empty_atoms,
)
from annealed.learners.kernel_machines.chains.diagnostics import effective_sample_size, r_hat
from annealed.learners.kernel_machines.chains.gram import (
    INTERCEPT_PRECISION,
    atom_features,
    commit,
    cos_sin,
    empty_gram,
    evaluate,
    refresh,
)
from annealed.learners.kernel_machines.chains.screening import screen
from scipy.special import expit, gammaln, logsumexp
from scipy.stats import chisquare

PRIOR = AtomPrior(3, 2, 0.7, 0.4, 0.6, 2.5, 1.3, 5.0)
SEQUENCES = [s for n in (1, 2) for s in product(range(3), repeat=n) if len(set(s)) == n]


@pytest.fixture(scope="module")
def table():
    rng = np.random.default_rng(3)
    X = rng.standard_normal((60, 3))
    X[:, 2] = 0.6 * X[:, 0] - 0.8 * X[:, 2]
    X = (X - X.mean(axis=0)) / X.std(axis=0)
    return screen(np.ascontiguousarray(X.T), np.sign(X[:, 0] * X[:, 1]), 1.0, "triples", 2)


def as_atoms(state, prior=PRIOR, most=3):
    atoms = empty_atoms(most, prior.max_order)
    for l, columns in enumerate(state):
        atoms.columns[l, : len(columns)] = columns
        atoms.length[l] = len(columns)
        atoms.omega[l, : len(columns)] = 0.3 + 0.1 * l
    return atoms


def log_urn(counts, masses):
    """Log probability of draws whose probabilities are Dirichlet, in closed form."""
    counts, masses = np.array(counts), np.array(masses)
    return (
        gammaln(masses.sum())
        - gammaln(masses.sum() + counts.sum())
        + (gammaln(masses + counts) - gammaln(masses)).sum()
    )


def log_density(state, prior=PRIOR):
    """Log prior of atoms in their order, from the closed forms instead of the urns."""
    p = prior.n_columns
    starts, steps = np.zeros(p), np.zeros((p, p + 1))
    for columns in state:
        starts[columns[0]] += 1
        for t, column in enumerate(columns[: prior.max_order - 1]):
            steps[column, columns[t + 1] if t + 1 < len(columns) else p] += 1
    found = len(state) * np.log(prior.expected) - gammaln(len(state) + 1.0)
    found += log_urn(starts, np.full(p, prior.start_mass / p))
    return found + sum(
        log_urn(row, [*np.full(p, prior.step_mass / p), prior.stop_mass]) for row in steps
    )


def predictive(columns, others, prior=PRIOR):
    count = np.log(prior.expected / (len(others) + 1))
    return np.exp(log_density([*others, columns], prior) - log_density(others, prior) - count)


def table_weight(columns, table):
    base, key = len(table.column_weight) + 1, 0
    for column in sorted(columns):
        key = key * base + column + 1
    return dict(zip(table.keys.tolist(), table.weight)).get(key, 0.0) / factorial(len(columns))


def log_birth(columns, others, table):
    return np.log(0.5 * predictive(columns, others) + 0.5 * table_weight(columns, table))


def growth(column, following, others, table):
    """Probability of a following column that is not the null state."""
    row = np.full(3, PRIOR.step_mass / 3)
    for other in others:
        for t in range(len(other) - 1):
            if other[t] == column:
                row[other[t + 1]] += 1
    return 0.5 * row[following] / row.sum() + 0.25 * table.column_weight[following] + 0.25 / 3


def expected_ratio(kind, before, after, removed, table):
    """Log of prior times proposal ratio, by the independent formulas above."""
    ratio = log_density(after) - log_density(before)
    others = [s for l, s in enumerate(before) if l != removed]
    old = before[removed] if removed >= 0 else None
    new = (
        after[removed]
        if removed >= 0 and len(after) == len(before)
        else after[-1]
        if after
        else None
    )
    if kind == moves.BIRTH:
        return ratio - log_birth(new, before, table)
    if kind == moves.DEATH:
        return ratio + log_birth(old, others, table)
    if kind == moves.REPLACE:
        return ratio + log_birth(old, others, table) - log_birth(new, others, table)
    if kind == moves.GROW:
        return ratio - np.log(growth(old[-1], new[-1], others, table))
    if kind == moves.SHRINK:
        return ratio + np.log(growth(new[-1], old[-1], others, table))
    if kind == moves.ORDER:
        return ratio
    (t,) = [t for t in range(len(old)) if old[t] != new[t]] or [0]
    if kind == moves.COLUMN:
        weight = 0.5 * table.column_weight + 0.5 / 3
        return ratio + np.log(weight[old[t]] / weight[new[t]])
    return ratio + np.log(table.n_neighbours[old[t]] / table.n_neighbours[new[t]])


STATES = [[], *([a] for a in SEQUENCES), *([a, b] for a in SEQUENCES for b in SEQUENCES)]


@pytest.mark.parametrize(
    "kind", [k for k in range(9) if k != moves.WALK], ids=lambda k: moves.NAMES[k]
)
def test_detailed_balance_by_enumeration(kind, table):
    """From every state of up to two atoms on three columns: the ratio that a move is accepted by is
    the one of its formulas."""
    rng = np.random.default_rng(0)
    columns, omega = np.zeros(2, np.int64), np.zeros(2)
    seen = set()
    for before in STATES:
        atoms = as_atoms(before)
        for _ in range(40):
            possible, removed, n, ratio = moves.propose(
                kind, atoms, len(before), PRIOR, table, columns, omega, rng
            )
            if not possible:
                continue
            new = tuple(columns[:n].tolist())
            after = list(before)
            if n == 0:
                after = after[:removed] + after[removed + 1 :]
            elif removed < 0:
                after.append(new)
            else:
                after[removed] = new
            assert ratio == pytest.approx(
                expected_ratio(kind, before, after, removed, table), abs=1e-10
            )
            seen.add((tuple(before), tuple(after)))
    assert len(seen) > 20


def test_walk_is_symmetric_up_to_the_density(table):
    atoms = as_atoms([(0, 1)])
    columns, omega = np.zeros(2, np.int64), np.zeros(2)
    rng = np.random.default_rng(1)
    for _ in range(20):
        _, _, n, ratio = moves.propose(moves.WALK, atoms, 1, PRIOR, table, columns, omega, rng)

        def log_t(w):
            return (
                -0.5
                * (PRIOR.degrees + 2)
                * np.log1p((w**2).sum() / (PRIOR.degrees * PRIOR.scale**2))
            )

        assert n == 2 and ratio == pytest.approx(log_t(omega) - log_t(atoms.omega[0]), abs=1e-12)


def test_births_and_growth_propose_what_their_formulas_say(table):
    rng = np.random.default_rng(2)
    columns, omega = np.zeros(2, np.int64), np.zeros(2)
    before = [(0, 1), (2,)]
    atoms = as_atoms(before)
    found = dict.fromkeys([*SEQUENCES, None], 0)
    for _ in range(20_000):
        possible, _, n, _ = moves.propose(moves.BIRTH, atoms, 2, PRIOR, table, columns, omega, rng)
        found[tuple(columns[:n].tolist()) if possible else None] += 1
    expected = np.array([np.exp(log_birth(s, before, table)) for s in SEQUENCES])
    # an urn may give a column twice: not possible
    expected = np.append(expected, 1.0 - expected.sum())
    assert chisquare(list(found.values()), expected * 20_000).pvalue > 1e-4
    grown = np.zeros(4)
    for _ in range(20_000):
        possible, removed, n, _ = moves.propose(
            moves.GROW, atoms, 2, PRIOR, table, columns, omega, rng
        )
        if removed == 1:
            grown[columns[1] if possible else 3] += 1
    expected = np.array([growth(2, j, before[:1], table) for j in range(2)])
    assert (
        chisquare(
            [grown[0], grown[1], grown[3]], np.append(expected, 1 - expected.sum()) * grown.sum()
        ).pvalue
        > 1e-4
    )


def statistics(columns, length, omega, size):
    """Functions of the atoms whose means are compared."""
    used = [columns[l, : length[l]] for l in range(size)]
    distinct = len(set(np.concatenate(used).tolist())) if size else 0
    logs = [np.log(np.abs(omega[l, : length[l]])).mean() for l in range(size)]
    return [
        size,
        size**2,
        sum(length[:size]),
        distinct,
        sum(logs),
        float(size > 1 and columns[0, 0] == columns[1, 0]),
    ]


@jit
def draw_prior(atoms, prior, rng):
    """Draw all atoms from the prior by rejection; their number."""
    most = len(atoms.length)
    while True:
        size = rng.poisson(prior.expected)
        if size > most:
            continue
        good = True
        for l in range(size):
            n = draw_sequence(atoms.columns[l], atoms, l, -1, prior, rng)
            if n == 0:
                good = False
                break
            atoms.length[l] = n
            draw_frequencies(atoms.omega[l], n, prior, rng)
        if good:
            return size


GEWEKE_PRIOR = AtomPrior(6, 3, 1.0, 0.5, 0.5, 3.0, 1.5, 5.0)


@pytest.fixture(scope="module")
def forward():
    """Statistics of atoms drawn from the prior itself."""
    rng, atoms, found = np.random.default_rng(5), empty_atoms(12, 3), []
    for _ in range(20_000):
        size = draw_prior(atoms, GEWEKE_PRIOR, rng)
        found.append(statistics(atoms.columns, atoms.length, atoms.omega, size))
    return np.array(found)


@pytest.mark.parametrize(
    "kind", [*range(9), None], ids=lambda k: "all" if k is None else moves.NAMES[k]
)
def test_without_likelihood_the_chain_reproduces_the_prior(kind, forward):
    """Geweke (2004): births and deaths with one more kind of move, and all together."""
    rng = np.random.default_rng([7, 99 if kind is None else kind])
    X = rng.standard_normal((80, 6))
    X[:, 4] += X[:, 5]
    XT = np.ascontiguousarray(((X - X.mean(axis=0)) / X.std(axis=0)).T)
    table = screen(XT, np.sign(XT[0] * XT[1]), 1.5, "triples", 3)
    probabilities = moves.PROBABILITIES.copy()
    if kind is not None:
        probabilities[:] = 0.0
        probabilities[[moves.BIRTH, moves.DEATH]] = 0.3
        probabilities[kind] += 0.4 if kind not in (moves.BIRTH, moves.DEATH) else 0.0
        probabilities[{moves.GROW: moves.SHRINK, moves.SHRINK: moves.GROW}.get(kind, kind)] = max(
            probabilities[kind], 0.3
        )
    chain = sampler.run_chain(
        sampler.PRIOR_ONLY,
        XT,
        XT[0],
        GEWEKE_PRIOR,
        table,
        rng,
        max_components=12,
        precision=1.0,
        n_steps=400_000,
        burn_in=2000,
        n_kept=4000,
        probabilities=probabilities,
    )
    kept = chain.kept
    found = np.array(
        [statistics(*one) for one in zip(kept.columns, kept.length, kept.omega, kept.size)]
    )
    for ours, theirs in zip(found.T, forward.T):
        error = np.hypot(
            ours.std() / np.sqrt(effective_sample_size(ours[None])),
            theirs.std() / np.sqrt(len(theirs)),
        )
        assert abs(ours.mean() - theirs.mean()) < 4.5 * error


def random_design(n=25, seed=11):
    rng = np.random.default_rng(seed)
    X = rng.standard_normal((n, 2))
    XT = np.ascontiguousarray(((X - X.mean(axis=0)) / X.std(axis=0)).T)
    y = np.where(np.cos(1.5 * XT[0]) + 0.7 * rng.standard_normal(n) > 0.3, 1.0, -1.0)
    return XT, y


@pytest.mark.parametrize("likelihood", [sampler.GAUSSIAN, sampler.LOGISTIC])
def test_the_posterior_is_that_of_importance_sampling(likelihood):
    """AtomPrior draws weighted by their likelihood, against the chain: number of atoms, columns in
    use, order."""
    prior, precision = AtomPrior(2, 2, 1.0, 0.5, 0.5, 1.5, 1.5, 5.0), 1.0
    XT, y = random_design(25 if likelihood == sampler.GAUSSIAN else 12)
    n = len(y)
    target = (y - y.mean()) / y.std() if likelihood == sampler.GAUSSIAN else (y + 1) / 2
    rng, atoms = np.random.default_rng(0), empty_atoms(6, 2)
    phase, features = np.empty(n), np.empty((2, n))
    weights, values = [], []
    for _ in range(30_000):
        size = draw_prior(atoms, prior, rng)
        F = np.ones((1 + 2 * size, n))
        for l in range(size):
            atom_features(atoms.columns[l], atoms.omega[l], atoms.length[l], XT, phase, features)
            F[1 + 2 * l : 3 + 2 * l] = features
        ridge = np.r_[INTERCEPT_PRECISION, np.full(2 * size, precision)]
        if likelihood == sampler.GAUSSIAN:
            covariance = np.eye(n) + (F.T / ridge) @ F
            rest = sampler.NOISE_RATE + 0.5 * target @ np.linalg.solve(covariance, target)
            weights.append(
                -0.5 * np.linalg.slogdet(covariance)[1]
                - (sampler.NOISE_SHAPE + n / 2) * np.log(rest)
            )
        else:  # ten draws of the weights
            scores = (rng.standard_normal((10, len(ridge))) / np.sqrt(ridge)) @ F
            weights.append(logsumexp(np.log(expit(scores * y)).sum(axis=1)))
        values.append(
            [size, float((atoms.columns[:size, 0] == 0).any()), atoms.length[:size].sum()]
        )
    weights = np.exp(np.array(weights) - max(weights))
    expected = np.average(values, axis=0, weights=weights)
    spread = np.sqrt((weights**2) @ (values - expected) ** 2) / weights.sum()
    table = screen(XT, y, 1.5, "pairs", 2)
    chain = sampler.run_chain(
        likelihood,
        XT,
        target,
        prior,
        table,
        np.random.default_rng(1),
        max_components=6,
        precision=precision,
        n_steps=400_000,
        burn_in=4000,
        n_kept=8000,
    )
    kept = chain.kept
    found = np.array(
        [
            [s, float((c[:s, 0] == 0).any()), k[:s].sum()]
            for c, k, s in zip(kept.columns, kept.length, kept.size)
        ]
    )
    for ours, mean, theirs in zip(found.T, expected, spread):
        error = np.hypot(ours.std() / np.sqrt(effective_sample_size(ours[None])), theirs)
        assert abs(ours.mean() - mean) < 4.5 * error, (ours.mean(), mean, error)


@pytest.mark.parametrize("weighted", [False, True])
def test_updates_equal_fresh_factorisations(weighted):
    rng = np.random.default_rng(0)
    n, p, precision, size = 120, 5, 1.3, 0
    XT = rng.standard_normal((p, n))
    gram = empty_gram(n, 8)
    gram.target[:] = rng.standard_normal(n)
    if weighted:
        gram.weight[:] = rng.random(n)
    refresh(gram, 0, precision)
    for _ in range(200):
        kind = rng.integers(3)
        removed = -1 if size == 0 or (kind == 0 and size < 8) else int(rng.integers(size))
        adds = bool(removed < 0 or kind != 1)
        if adds:
            columns = rng.permutation(p)[:2].astype(np.int64)
            atom_features(columns, rng.standard_normal(2), 2, XT, gram.phase, gram.added)
        commit(gram, size, removed, adds, *evaluate(gram, size, removed, adds, precision, weighted))
        size += int(adds) - int(removed >= 0)
        F = gram.features[: 1 + 2 * size]
        A = (F * gram.weight) @ F.T + np.diag(
            np.r_[INTERCEPT_PRECISION, np.full(2 * size, precision)]
        )
        c = F @ gram.target
        assert np.abs(gram.inverse[: len(F), : len(F)] - np.linalg.inv(A)).max() < 1e-8
        assert gram.scalars[0] == pytest.approx(np.linalg.slogdet(A)[1], abs=1e-8)
        assert gram.scalars[1] == pytest.approx(c @ np.linalg.solve(A, c), abs=1e-8)


def test_cosines_and_sines():
    phase = np.random.default_rng(0).standard_normal(1000) * 10.0 ** np.linspace(-8, 5, 1000)
    out = np.empty((2, 1000))
    cos_sin(phase, out)
    np.testing.assert_allclose(out, [np.cos(phase), np.sin(phase)], atol=1e-15)


@pytest.mark.parametrize("z", [0.0, 0.5, 2.0, 12.0, 700.0])
def test_polya_gamma_moments(z):
    rng = np.random.default_rng(0)
    draws = np.array([polya_gamma.polya_gamma(z, rng) for _ in range(20_000)])
    mean = 0.25 if z == 0 else np.tanh(z / 2) / (2 * z)
    assert abs(draws.mean() - mean) < 4.5 * draws.std() / np.sqrt(len(draws))
    if 0 < z < 100:
        variance = (np.sinh(z) - z) / (4 * z**3 * np.cosh(z / 2) ** 2)
        assert draws.var() == pytest.approx(variance, rel=0.1)


def test_r_hat_and_effective_sample_size():
    rng = np.random.default_rng(0)
    good = rng.standard_normal((4, 500))
    assert r_hat(good) < 1.02 and effective_sample_size(good) > 1500
    assert r_hat(good + np.arange(4)[:, None]) > 1.5
    walk = np.zeros(2000)
    for i in range(1, 2000):
        walk[i] = 0.9 * walk[i - 1] + rng.standard_normal()
    assert 50 < effective_sample_size(walk[None]) < 220  # (1 - 0.9) / (1 + 0.9) of 2,000: 105
    assert (
        r_hat(np.ones((2, 9))) == 1.0
        and np.isnan(r_hat(np.ones((2, 3))))
        and r_hat(np.repeat([[0.0], [1.0]], 9, 1)) == np.inf
    )
