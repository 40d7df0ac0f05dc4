"""How many features: candidate sizes and the extended Bayesian information criterion."""

from __future__ import annotations

import numpy as np
from scipy.special import gammaln

MOST = 300  # greatest size tried by default


def default_sizes(n_units: int, n_samples: int) -> np.ndarray:
    """Sizes to try, ascending: every one up to 8, then in steps of about a fifth, up to a third of the rows.

    Parameters
    ----------
    n_units : int
        Features (or groups).
    n_samples : int

    Returns
    -------
    ndarray of int

    Examples
    --------
    >>> default_sizes(1000, 100)
    array([ 1,  2,  3,  4,  5,  6,  7,  8, 10, 12, 14, 17, 20, 24, 29, 33])
    """
    most = min(n_units, max(10, n_samples // 3), MOST)
    sizes = [1]
    while sizes[-1] < most:
        sizes.append(min(most, max(sizes[-1] + 1, round(1.2 * sizes[-1]))))
    return np.array(sizes)


def ebic(value: float, n_samples: float, k: int, n_units: int, degrees: int, *, squared: bool, gamma: float = 1.0) -> float:
    """Extended BIC: -2 log likelihood + degrees ln n + 2 gamma ln C(M, k) [1]_.

    Parameters
    ----------
    value : float
        Mean loss. Twice its sum stands for -2 log likelihood, which it is for the logistic losses; for the ``squared`` loss that is
        n ln(2 value), the variance being unknown.
    n_samples : float
    k, n_units : int
        Features chosen, and among how many.
    degrees : int
        Free coefficients.
    squared : bool
        Whether the loss is the squared one.
    gamma : float, default 1.0
        Weight of the number of possible supports; 0 is the BIC.

    Returns
    -------
    float
        The smaller, the better.

    References
    ----------
    .. [1] J. Chen, Z. Chen, "Extended Bayesian information criteria for model selection with large model spaces", Biometrika 95
       (2008).
    """
    fit = n_samples * np.log(max(2.0 * value, 1e-300)) if squared else 2.0 * n_samples * value
    ways = gammaln(n_units + 1) - gammaln(k + 1) - gammaln(n_units - k + 1)
    return float(fit + degrees * np.log(max(n_samples, 2.0)) + 2.0 * gamma * ways)
