"""Data of the thesis' tables: XOR and double rings with their Bayes errors, and the real sets in the folder of real data."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import scipy.sparse as sp
from scipy.integrate import quad
from scipy.stats import norm

XOR_SPREAD = 1.0 / 1.394
RING_SPREAD = 0.48
NOISE_SCALE = 0.35
VOTES = 15  # neighbours that vote on the simulated cases, in every metric
SPARSE_SETS = ("dexter", "pcmac", "dorothea")


def simulated_case(case: str, n: int, p: int, seed: int, *, noise_scale: float = NOISE_SCALE, n_test: int = 2000):
    """Draw one of the thesis' two scenarios: two informative columns of unit variance among p, the others standard normal times
    a scale.

    Parameters
    ----------
    case : {"xor", "rings"}
        XOR: (c, c y) + s e with c = +-1. Rings: (rho + 0.48 e) u, rho = 2 for y = 1 and 1 for y = -1, u uniform on the circle.
    n, n_test : int
        Training and test rows.
    p : int
        Columns.
    seed : int
    noise_scale : float
        1 for columns of equal scale.

    Returns
    -------
    X, y, X_test, y_test : ndarray
        float32 columns and labels -1 / +1.

    Raises
    ------
    ValueError
        For another case.
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
        raise ValueError(f"case={case!r}; expected 'xor' or 'rings'")
    X = np.hstack([Z / Z.std(axis=0), noise_scale * rng.standard_normal((total, p - 2))]).astype(np.float32)
    return X[:n], y[:n], X[n:], y[n:]


def bayes_error(case: str) -> float:
    """Bayes error of a case of :func:`simulated_case`, integrated.

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

    return float(quad(lambda r: 0.5 * min(density(r, 1.0), density(r, 2.0)), 0.0, 8.0, points=[1.0, 1.5, 2.0])[0])


def load_set(name: str, data_dir: str | Path):
    """Read a real set.

    Parameters
    ----------
    name : str
        ``madelon``, ``ionosphere``, ``usps_7v9``, ``arcene``, ``gisette_valid`` (dense) or ``dexter``, ``pcmac``, ``dorothea``
        (CSR).
    data_dir : path
        Folder of the real data.

    Returns
    -------
    X_train, y_train, X_test, y_test
        Labels -1 / +1; dense columns float32, sparse ones float64.

    Raises
    ------
    ValueError
        If the files are not there.
    """
    folder = Path(data_dir) / name.split("_7v9")[0]
    try:
        if name in SPARSE_SETS:
            parts = [sp.csr_matrix(sp.load_npz(folder / f"X_{s}.npz")).astype(np.float64) for s in ("train", "test")]
            labels = [np.load(folder / f"y_{s}.npy") for s in ("train", "test")]
            return parts[0], labels[0], parts[1], labels[1]
        with np.load(folder / f"{name}.npz") as data:
            return data["X_train"].astype(np.float32), data["y_train"], data["X_test"].astype(np.float32), data["y_test"]
    except FileNotFoundError as error:
        raise ValueError(f"{error.filename}: no such file; expected the set {name} in {data_dir}") from None


def random_split(X, y, seed: int, share: float = 0.7):
    """Random ``share`` of the rows for training, the others for testing: X_train, y_train, X_test, y_test."""
    order = np.random.RandomState(seed).permutation(len(y))
    n = round(share * len(y))
    return X[order[:n]], y[order[:n]], X[order[n:]], y[order[n:]]
