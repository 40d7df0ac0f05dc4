"""The papers' simulated data and the designs off the papers' path: one place for benchmarks, tests and ``annealed reproduce``."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from scipy.signal import lfilter
from sklearn.utils import check_random_state


@dataclass(frozen=True)
class Simulated:
    """A data set whose answer is known.

    Attributes
    ----------
    X : ndarray of shape (n_samples, n_features), float32
    y : ndarray of shape (n_samples,)
        -1 / +1, or real numbers.
    support : ndarray of shape (k,), int
        The relevant columns, ascending.
    coef : ndarray of shape (k,)
        Their coefficients.
    """

    X: np.ndarray
    y: np.ndarray
    support: np.ndarray
    coef: np.ndarray

    def found(self, selected: np.ndarray) -> float:
        """Share of the relevant columns among the selected ones (PCD, as a fraction); 1 counts as a detection (DR)."""
        return float(np.isin(self.support, selected).mean())


def autoregressive(n_samples: int, n_features: int, rng, correlation: float = 0.9) -> np.ndarray:
    """Normal rows with correlation ``correlation ** |i - j|`` between columns i and j, eq. (16) of the PAMI text; float32."""
    noise = rng.standard_normal((n_samples, n_features))
    noise[:, 1:] *= np.sqrt(1.0 - correlation**2)
    return lfilter([1.0], [1.0, -correlation], noise, axis=1).astype(np.float32)


def equicorrelated(n_samples: int, n_features: int, rng) -> np.ndarray:
    """Rows z 1 + e with normal z and e, correlation 0.5 between any two columns: eq. (18) of the PAMI text; float32."""
    return (rng.standard_normal((n_samples, 1)) + rng.standard_normal((n_samples, n_features))).astype(np.float32)


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
        y = sign of the sum of the relevant columns, eq. (17) of the PAMI text, or that sum plus standard normal noise.
    columns : {"ar1", "equicorrelated"}
    label_noise : float
        Share of rows whose label is drawn at random (half of them stay right); 0.1 in the PAMI text.
    random_support : bool
        Relevant columns anywhere; otherwise columns 10, 20, ..., 10 k (counted from one).
    random_signs : bool
        Coefficients -1 or +1 at random; otherwise all are 1.
    random_state : int, RandomState or None

    Raises
    ------
    ValueError
        If the task or the columns are unknown or there is no room for k relevant columns.
    """
    if task not in ("classification", "regression"):
        raise ValueError(f"task={task!r} is unknown; expected 'classification' or 'regression'")
    if columns not in _COLUMNS:
        raise ValueError(f"columns={columns!r} is unknown; expected one of {sorted(_COLUMNS)}")
    if (k if random_support else 10 * k) > n_features:
        raise ValueError(f"n_features={n_features} leaves no room for k={k} relevant columns")
    rng = check_random_state(random_state)
    X = _COLUMNS[columns](n_samples, n_features, rng)
    support = np.sort(rng.choice(n_features, k, replace=False)) if random_support else 10 * np.arange(1, k + 1) - 1
    coef = rng.choice([-1.0, 1.0], k) if random_signs else np.ones(k)
    signal = X[:, support].astype(np.float64) @ coef
    if task == "regression":
        return Simulated(X, signal + rng.standard_normal(n_samples), support, coef)
    y = np.where(signal > 0, 1, -1)
    if label_noise:
        random = rng.random_sample(n_samples) < label_noise
        y[random] = rng.choice([-1, 1], np.count_nonzero(random))
    return Simulated(X, y, support, coef)
