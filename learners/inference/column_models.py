"""Residuals from the regression of each column on the other columns, computed together."""

from collections.abc import Sequence

import numpy as np

_MAX_STEPS = 25  # maximum columns, besides common factors, that predict a column (heuristic)
# Minimum ratio of consecutive singular values at the end of the common factors (heuristic)
_MIN_RATIO = 1.3
# Minimum columns per factor: with fewer, a factor consists of the column that it should predict
_COLUMNS_PER_FACTOR = 20
_ROWS_PER_COLUMN = 10  # minimum rows per column for least squares on all other columns


def n_factors(singular_values: np.ndarray, n_features: int) -> int:
    """Estimate the number of common factors from the last large gap in the singular values.

    Parameters
    ----------
    singular_values : ndarray
        Singular values of the standardised columns, in descending order.
    n_features : int
        Number of columns.

    Returns
    -------
    int
        Number of common factors.

    Examples
    --------
    >>> n_factors(np.array([40.0, 20.0, 8.0, 7.9, 7.5]), 100)
    2
    """
    most = n_features // _COLUMNS_PER_FACTOR
    values = singular_values[: most + 1]
    return int(np.flatnonzero(np.append(True, values[:-1] > _MIN_RATIO * values[1:]))[-1])


def common_factors(Z: np.ndarray) -> np.ndarray:
    """Compute orthonormal scores of the common factors of standardised columns.

    The scores have shape (n_samples, number of factors). There may be no factors.
    """
    n, p = Z.shape
    values, U = np.linalg.eigh(Z @ Z.T if p > n else Z.T @ Z)
    s = np.sqrt(np.maximum(values[::-1], 0.0))
    U = U[:, ::-1][:, : n_factors(s, p)]
    return U if p > n else Z @ U / s[: U.shape[1]]


def standardised(X: np.ndarray) -> np.ndarray:
    """Standardise columns to mean 0 and variance 1 in double precision.

    Constant columns are set to 0.
    """
    Z = np.asarray(X, dtype=float) - X.mean(axis=0)
    scale = Z.std(axis=0)
    return Z / np.where(scale > 0, scale, 1.0)


def column_residuals(
    Z: np.ndarray, targets: np.ndarray, excluded: Sequence[np.ndarray]
) -> np.ndarray:
    """Compute the residuals of each target after regression on the columns outside its group.

    With at least ten rows per column, the method is least squares on all of these columns. With
    fewer rows, the targets are regressed on the common factors (dominant principal components).
    Orthogonal matching pursuit then adds columns until the extended Bayesian information criterion
    no longer improves.

    Parameters
    ----------
    Z : ndarray of shape (n_samples, n_features)
        Standardised columns.
    targets : ndarray of shape (n_samples, n_targets)
        Columns, or functions of columns, with mean 0.
    excluded : sequence of ndarray of int
        For each target, the columns that must not be used to predict it: the column itself and the
        other columns of its group.

    Returns
    -------
    ndarray of shape (n_samples, n_targets)
        Residuals of each target.

    Examples
    --------
    >>> Z = standardised(np.random.default_rng(0).standard_normal((200, 30)).cumsum(axis=1))
    >>> x = column_residuals(Z, Z[:, [9]], [np.array([9])])
    >>> bool(abs(Z[:, 8] @ Z[:, 9]) > 0.8 * 200), bool(abs(Z[:, 8] @ x[:, 0]) < 0.1 * 200)
    (True, True)
    """
    n, p = Z.shape
    if n >= _ROWS_PER_COLUMN * p:
        return _on_all_others(Z, targets, excluded)
    factors = common_factors(Z)
    rest = standardised(Z - factors @ (factors.T @ Z))
    return _matching_pursuit(rest, targets - factors @ (factors.T @ targets), excluded)


def _on_all_others(
    Z: np.ndarray, targets: np.ndarray, excluded: Sequence[np.ndarray]
) -> np.ndarray:
    """Compute the residuals from least squares on all other columns with a single inverse."""
    precision = np.linalg.inv(Z.T @ Z + 1e-10 * Z.size * np.eye(Z.shape[1]))
    coef = precision @ (Z.T @ targets)
    for a, columns in zip(coef.T, excluded):
        a -= precision[:, columns] @ np.linalg.solve(
            precision[np.ix_(columns, columns)], a[columns]
        )
        a[columns] = 0.0
    return targets - Z @ coef


def _matching_pursuit(
    Z: np.ndarray, targets: np.ndarray, excluded: Sequence[np.ndarray]
) -> np.ndarray:
    """Run orthogonal matching pursuit for all targets at once, each as long as it improves."""
    n, p = Z.shape
    price = np.exp(-(np.log(n) + 2.0 * np.log(p)) / n)
    residuals = targets.T.copy()
    active = np.arange(len(residuals))
    used = np.zeros((len(residuals), p), bool)
    for i, columns in enumerate(excluded):
        used[i, columns] = True
    basis = np.zeros((len(residuals), _MAX_STEPS, n))
    for step in range(min(_MAX_STEPS, p - 1)):
        strength = np.abs(residuals[active] @ Z)
        strength[used[active]] = 0.0
        best = strength.argmax(axis=1)
        used[active, best] = True
        new, before = Z[:, best].T, basis[active, :step]
        for _ in range(2):  # twice, to reduce rounding errors
            new = new - np.einsum("mt,mtn->mn", np.einsum("mtn,mn->mt", before, new), before)
        length = np.linalg.norm(new, axis=1)
        new = new / np.where(length > 1e-8 * np.sqrt(n), length, np.inf)[:, None]
        shorter = residuals[active] - np.einsum("mn,mn->m", residuals[active], new)[:, None] * new
        pays = (shorter**2).sum(axis=1) < price * (residuals[active] ** 2).sum(axis=1)
        basis[active, step] = new
        active, shorter = active[pays], shorter[pays]
        residuals[active] = shorter
        if not len(active):
            break
    return residuals.T
