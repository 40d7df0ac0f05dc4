"""Simulated data of the papers and other designs, for benchmarks, tests and tables.

Equations refer to Barbu et al. (2017), "Feature Selection with Annealing for Computer Vision and
Big Data Learning", IEEE Transactions on Pattern Analysis and Machine Intelligence 39. XOR and
double rings are from Y. Ma, "Flexible Sparse Learning of Feature Subspaces", PhD thesis, Columbia
University (2017).
"""

from dataclasses import dataclass

import numpy as np
from scipy.integrate import quad
from scipy.signal import lfilter
from scipy.stats import norm
from sklearn.utils import check_random_state

XOR_SPREAD = 1.0 / 1.394
RING_SPREAD = 0.48
NOISE_SCALE = 0.35
VOTES = 15  # number of voting neighbours for the cases of Ma (thesis), in every metric


@dataclass(frozen=True)
class Simulated:
    """Simulated data set with its relevant columns.

    Attributes
    ----------
    X : ndarray of shape (n_samples, n_features), float32
    y : ndarray of shape (n_samples,)
        Labels -1 and +1, or real numbers.
    support : ndarray of shape (k,), int
        Relevant columns in ascending order.
    coef : ndarray of shape (k,)
        Coefficients of the relevant columns.
    """

    X: np.ndarray
    y: np.ndarray
    support: np.ndarray
    coef: np.ndarray

    def found(self, selected: np.ndarray) -> float:
        """Return the share in [0, 1] of the relevant columns that are selected (PCD); 1 counts as a
        detection (DR).
        """
        return float(np.isin(self.support, selected).mean())


def autoregressive(n_samples: int, n_features: int, rng, correlation: float = 0.9) -> np.ndarray:
    """Draw normal rows, float32, with correlation ``correlation ** |i - j|`` between columns i and
    j.
    """
    noise = rng.standard_normal((n_samples, n_features))
    noise[:, 1:] *= np.sqrt(1.0 - correlation**2)
    return lfilter([1.0], [1.0, -correlation], noise, axis=1).astype(np.float32)


def equicorrelated(n_samples: int, n_features: int, rng) -> np.ndarray:
    """Draw rows z 1 + e, float32, with normal z and e (eq. (18)); any two columns have correlation
    0.5.
    """
    return (
        rng.standard_normal((n_samples, 1)) + rng.standard_normal((n_samples, n_features))
    ).astype(np.float32)


_COLUMNS = {"ar1": autoregressive, "equicorrelated": equicorrelated}


def simulate(
    task: str,
    n_samples: int,
    n_features: int,
    k: int,
    *,
    columns: str = "ar1",
    label_noise: float = 0.0,
    random_support: bool = False,
    random_signs: bool = False,
    random_state=None,
) -> Simulated:
    """Draw a data set.

    Parameters
    ----------
    task : {"classification", "regression"}
        y is the sign of the sum of the relevant columns, eq. (17), or that sum plus standard normal
        noise.
    n_samples, n_features, k : int
        Rows, columns and relevant columns.
    columns : {"ar1", "equicorrelated"}
    label_noise : float
        Share of rows whose label is drawn at random; half of these labels remain correct.
    random_support : bool
        Whether the relevant columns have random positions; otherwise, they are columns 10, 20, ...,
        10 k (counted from one).
    random_signs : bool
        Whether the coefficients are randomly -1 or +1; otherwise, all are 1.
    random_state : int, RandomState or None, default None
        Random seed.

    Returns
    -------
    Simulated

    Raises
    ------
    ValueError
        If the task or the kind of columns is unknown, or there are too few columns for k relevant
        ones.
    """
    if task not in ("classification", "regression"):
        raise ValueError(f"task={task!r} is unknown; expected 'classification' or 'regression'")
    if columns not in _COLUMNS:
        raise ValueError(f"columns={columns!r} is unknown; expected one of {sorted(_COLUMNS)}")
    if (k if random_support else 10 * k) > n_features:
        raise ValueError(f"n_features={n_features} is too small for k={k} relevant columns")
    rng = check_random_state(random_state)
    X = _COLUMNS[columns](n_samples, n_features, rng)
    support = (
        np.sort(rng.choice(n_features, k, replace=False))
        if random_support
        else 10 * np.arange(1, k + 1) - 1
    )
    coef = rng.choice([-1.0, 1.0], k) if random_signs else np.ones(k)
    signal = X[:, support].astype(np.float64) @ coef
    if task == "regression":
        return Simulated(X, signal + rng.standard_normal(n_samples), support, coef)
    y = np.where(signal > 0, 1, -1)
    if label_noise:
        random = rng.random_sample(n_samples) < label_noise
        y[random] = rng.choice([-1, 1], np.count_nonzero(random))
    return Simulated(X, y, support, coef)


def simulated_case(
    case: str,
    n: int,
    p: int,
    seed: int,
    *,
    noise_scale: float = NOISE_SCALE,
    n_test: int = 2000,
    tenth: bool = False,
):
    """Draw a case of Ma (thesis), Figure 2.3, with two informative columns among p.

    The informative columns have unit variance, and the other columns are normal noise. For "xor",
    they are (c, c y) + s e with c = +-1. For "rings", they are (rho + 0.48 e) u, with rho = 2 for
    y = 1 and rho = 1 for y = -1, and u uniform on the circle. With ``tenth``, a tenth of the
    columns is informative, as in Ma (thesis), which gives no details. Each of the two informative
    columns is then the mean of p // 20 columns of unit variance, which share half of their variance
    with it, so that the Bayes error is unchanged. X and y for n rows, and X_test and y_test for
    ``n_test`` rows are returned, with float32 columns and labels -1 and +1.
    """
    rng = np.random.default_rng(seed)
    total = n + n_test
    y = np.where(rng.random(total) < 0.5, 1, -1)
    if case == "xor":
        c = np.where(rng.random(total) < 0.5, 1.0, -1.0)
        Z = np.column_stack([c, c * y]) + XOR_SPREAD * rng.standard_normal((total, 2))
    elif case == "rings":
        u = rng.standard_normal((total, 2))
        u /= np.linalg.norm(u, axis=1)[:, None]
        Z = (np.where(y == 1, 2.0, 1.0) + RING_SPREAD * rng.standard_normal(total))[:, None] * u
    else:
        raise ValueError(f"case={case!r} is unknown; expected 'xor' or 'rings'")
    Z = Z / Z.std(axis=0)
    if tenth:
        parts = []
        for column in Z.T:
            spread = rng.standard_normal((total, max(1, p // 20)))
            part = column[:, None] + spread - spread.mean(axis=1, keepdims=True)
            parts.append(part / part.std(axis=0))
        Z = np.hstack(parts)
    X = np.hstack([Z, noise_scale * rng.standard_normal((total, p - Z.shape[1]))]).astype(
        np.float32
    )
    return X[:n], y[:n], X[n:], y[n:]


def bayes_error(case: str) -> float:
    """Compute the Bayes error of a case of :func:`simulated_case` by numerical integration.

    Examples
    --------
    >>> round(bayes_error("xor"), 3), round(bayes_error("rings"), 3)
    (0.15, 0.149)
    """
    if case == "xor":
        right = norm.cdf(1.0 / XOR_SPREAD)
        return float(2.0 * right * (1.0 - right))

    def density(r, rho):
        return norm.pdf(r, rho, RING_SPREAD) + norm.pdf(-r, rho, RING_SPREAD)

    return float(
        quad(
            lambda r: 0.5 * min(density(r, 1.0), density(r, 2.0)), 0.0, 8.0, points=[1.0, 1.5, 2.0]
        )[0]
    )
