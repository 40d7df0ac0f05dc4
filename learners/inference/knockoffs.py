"""Knockoffs: synthetic columns exchangeable with the originals but unrelated to the target."""

from collections.abc import Callable
from dataclasses import replace

import numpy as np
from scipy.optimize import minimize_scalar
from scipy.stats import rankdata
from sklearn.covariance import ledoit_wolf_shrinkage

from ..fsa import FitProblem, FitSettings, solve
from ..solvers.annealing import strengths
from .column_models import n_factors, standardised
from .conditional import size_by_criterion

_N_FLIPS = 199  # random swaps in the test of exchangeability
# Sizes of the fits whose strengths are summed (heuristic, from seeds that are not in any report)
_SIZES = np.array([0.25, 0.5, 0.75, 1.0])
_MAX_PAIRS = 2000  # column pairs compared in that test (heuristic)

Sampler = Callable[[np.ndarray, np.random.RandomState], np.ndarray]


def gaussian_knockoffs(
    X: np.ndarray, random_state: np.random.RandomState, covariance: np.ndarray | None = None
) -> np.ndarray:
    """Draw Gaussian Model-X knockoffs (eq. (3.2) of [1]_) with equal s_j for all columns j.

    Columns are standardised, and the s_j minimise the reconstructability [2]_. An unknown
    covariance is estimated ("second-order" knockoffs) and, except for the common factors, shrunk as
    in [3]_. The full covariance matrix is not formed, so there may be many columns.

    Parameters
    ----------
    X : ndarray of shape (n_samples, n_features)
        Original columns.
    random_state : RandomState
        Random number generator.
    covariance : ndarray of shape (n_features, n_features) or None, default None
        Covariance of the columns, if known.

    Returns
    -------
    ndarray of shape (n_samples, n_features)
        Knockoffs, in the same units as X.

    References
    ----------
    .. [1] E. Candes, Y. Fan, L. Janson, J. Lv, "Panning for gold: Model-X knockoffs for high
           dimensional controlled variable selection", JRSS B 80 (2018).
    .. [2] A. Spector, L. Janson, "Powerful knockoffs via minimizing reconstructability", Annals of
           Statistics 50 (2022).
    .. [3] O. Ledoit, M. Wolf, "A well-conditioned estimator for large-dimensional covariance
           matrices", Journal of Multivariate Analysis 88 (2004).

    Examples
    --------
    >>> X = np.random.default_rng(0).standard_normal((2000, 2)) @ np.array([[1.0, 0.6], [0.0, 0.8]])
    >>> copies = gaussian_knockoffs(X, np.random.RandomState(0))
    >>> np.round(np.corrcoef(X.T, copies.T)[0, [1, 3]], 1)
    array([0.6, 0.6])
    """
    (n, p), mean, scale = X.shape, X.mean(axis=0), X.std(axis=0)
    if covariance is None:
        Z = standardised(X)
        V, spectrum, floor = _shrunken_spectrum(Z)
    else:
        scale = np.sqrt(np.diag(covariance))
        Z = (X - mean) / scale
        spectrum, V = np.linalg.eigh(covariance / np.outer(scale, scale))
        spectrum, floor = np.maximum(spectrum, 1e-10), np.inf
    copies = p - V.shape[1]  # number of eigenvalues at the floor
    most = min(1.0, 2.0 * min(spectrum.min(), floor if copies else np.inf))
    values = np.append(spectrum, [floor] if copies else [])
    times = np.append(np.ones(len(spectrum)), [copies] if copies else [])
    s = minimize_scalar(
        lambda s: float(times @ (1.0 / (2.0 * values - s))) + p / s,
        bounds=(1e-6 * most, most * (1 - 1e-6)),
        method="bounded",
    ).x
    noise = random_state.standard_normal((n, p))
    inside = noise @ V
    spread = np.sqrt(np.maximum(2.0 * s - s * s / spectrum, 0.0))
    outer = np.sqrt(max(2.0 * s - s * s / floor, 0.0)) if copies else 0.0
    rest = outer * (noise - inside @ V.T) if copies else 0.0
    return mean + scale * (Z + ((inside * spread) - (Z @ V) * (s / spectrum)) @ V.T + rest)


def _shrunken_spectrum(Z: np.ndarray) -> tuple[np.ndarray, np.ndarray, float]:
    """Return eigenvectors (p, r) and eigenvalues of a shrunken correlation matrix.

    The third result is the common eigenvalue of all other directions.
    """
    n, p = Z.shape
    _, s, Vt = np.linalg.svd(Z, full_matrices=False)
    stay = s > 1e-8 * s[0]
    s, Vt = s[stay], Vt[stay]
    r = n_factors(s, p)
    rest = Z - (Z @ Vt[:r].T) @ Vt[:r]
    share = ledoit_wolf_shrinkage(rest)
    target = float((rest**2).sum()) / n / max(p - r, 1)
    values = s**2 / n
    values[r:] = (1.0 - share) * values[r:] + share * target
    return Vt.T, values, max(share * target, 1e-10)


def antisymmetric_statistics(
    problem: FitProblem,
    settings: FitSettings,
    copies: np.ndarray,
    random_state: np.random.RandomState,
) -> np.ndarray:
    """Compute the statistic W of each unit: its strength minus that of its knockoff.

    Model-X knockoffs are described in the first reference of :func:`gaussian_knockoffs`. A unit is
    a column or a group of columns. Models of several sizes are fitted to the columns together with
    their knockoffs, and the strengths are summed over these fits. The largest size is twice the
    size with the lowest extended Bayesian information criterion along a path, and at least half the
    number of coefficients that can be estimated reliably from the rows. The other sizes are a
    quarter, a half and three quarters of the largest size. Relevant columns are strong in all fits,
    whereas irrelevant columns are strong only in the largest fit. Originals and knockoffs are
    swapped at random, so that the result does not depend on their order.

    Parameters
    ----------
    problem : FitProblem
        Problem with a dense X. All columns must be selectable, and none may be included.
    settings : FitSettings
        Settings of the fit.
    copies : ndarray of shape (n_samples, n_features)
        Knockoffs of the columns.
    random_state : RandomState
        Random number generator.

    Returns
    -------
    ndarray of shape (n_units,)
        Statistic W of each unit.
    """
    units = problem.n_units
    groups = np.arange(problem.n_features) if problem.groups is None else problem.groups
    flip = random_state.randint(2, size=units).astype(bool)
    X = np.hstack(
        [np.where(flip[groups], copies, problem.X), np.where(flip[groups], problem.X, copies)]
    )
    both = np.append(groups, groups + units)
    doubled = replace(
        problem, X=X, names=None, bounds=None, groups=None if problem.groups is None else both
    )
    supported = problem.facts.supported_coefficients * 0.5 / problem.columns_per_unit
    size = int(np.clip(max(supported, 2 * size_by_criterion(doubled, settings)), 1, 2 * units))
    strength = np.zeros(2 * units)
    for part in np.unique(np.ceil(size * _SIZES).astype(int)):
        fit = solve(doubled, replace(settings, size=int(part)))
        coef = np.zeros((doubled.n_features, *fit.coef.shape[1:]))
        coef[fit.kept] = fit.coef
        strength += strengths(coef, both)
    return np.where(flip, -1.0, 1.0) * (strength[:units] - strength[units:])


def knockoff_threshold(W: np.ndarray, fdr: float) -> float:
    """Return the threshold of knockoffs+, as in Barber and Candes (2015), eq. (1.9).

    The threshold for the statistics W is the smallest t > 0 with (1 + #{W <= -t}) / #{W >= t} <=
    fdr.

    Returns
    -------
    float
        Threshold; infinity if none exists.

    Examples
    --------
    >>> knockoff_threshold(np.array([5.0, 4.0, 3.0, 2.0, -1.0]), 0.25)
    2.0
    """
    for t in np.unique(np.abs(W[W != 0.0])):
        if 1 + np.count_nonzero(-t >= W) <= fdr * np.count_nonzero(t <= W):
            return float(t)
    return np.inf


def e_values(draws: np.ndarray, fdr: float) -> np.ndarray:
    """Average the e-values over draws of knockoffs, as in Ren and Barber (2024), eq. (8).

    The threshold of each draw is that of :func:`knockoff_threshold` for half of ``fdr``.

    Parameters
    ----------
    draws : ndarray of shape (n_draws, n_units)
        Statistics W of each draw.
    fdr : float
        Target level of the false discovery rate.

    Returns
    -------
    ndarray of shape (n_units,)
        Mean e-value of each unit.
    """
    values = np.zeros(draws.shape)
    for value, W in zip(values, draws):
        t = knockoff_threshold(W, fdr / 2.0)
        value[t <= W] = len(W) / (1.0 + np.count_nonzero(-t >= W))
    return values.mean(axis=0)


def exchangeability(
    X: np.ndarray, copies: np.ndarray, random_state: np.random.RandomState
) -> float:
    """Compute a p-value for the hypothesis that columns and knockoffs are exchangeable.

    A random half of the columns is compared with its knockoffs. The test statistics are the mean
    differences of the ranks, of their squares and cubes, and of their products with the ranks of
    the other columns. The null distribution is simulated by swapping these columns with their
    knockoffs in random rows.

    Parameters
    ----------
    X, copies : ndarray of shape (n_samples, n_features)
        Columns and their knockoffs.
    random_state : RandomState
        Random number generator.

    Returns
    -------
    float
        P-value, at least 1 / 200. A small value indicates that the knockoffs are not exchangeable
        with the columns; a large value does not prove that they are.
    """
    n, p = X.shape
    Z, K = np.split(rankdata(np.vstack([X, copies]), axis=0) / n - 1.0, 2)
    moved = random_state.permutation(p)[: -(-p // 2)]
    rest = np.setdiff1d(np.arange(p), moved)
    differences = [Z[:, moved] ** power - K[:, moved] ** power for power in (1, 2, 3)]
    if len(rest):
        strongest = np.argsort(-np.abs(Z[:, moved].T @ Z[:, rest]), axis=None)[:_MAX_PAIRS]
        a, b = np.unravel_index(strongest, (len(moved), len(rest)))
        differences.append((Z[:, moved[a]] - K[:, moved[a]]) * Z[:, rest[b]])
    D = np.hstack(differences)
    D /= np.maximum(np.sqrt((D**2).sum(axis=0)), 1e-12)
    signs = np.vstack([np.ones(n), random_state.choice([-1.0, 1.0], (_N_FLIPS, n))])
    largest = np.abs(signs @ D).max(axis=1)
    return float(np.mean(largest >= largest[0] * (1.0 - 1e-12)))
