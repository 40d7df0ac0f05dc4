"""Rank-based convergence diagnostics of chains: split R-hat and effective sample size.

References
----------
.. [1] A. Vehtari, A. Gelman, D. Simpson, B. Carpenter, P.-C. Bürkner, "Rank-Normalization, Folding,
       and Localization: An Improved R-hat for Assessing Convergence of MCMC", Bayesian Analysis 16
       (2021), eqs. (1) to (14).
"""

import numpy as np
from scipy.special import ndtri
from scipy.stats import rankdata


def _split(traces: np.ndarray) -> np.ndarray:
    """Split each chain into two halves."""
    half = traces.shape[1] // 2
    return np.concatenate([traces[:, :half], traces[:, traces.shape[1] - half :]])


def _normal_scores(traces: np.ndarray) -> np.ndarray:
    return ndtri((rankdata(traces).reshape(traces.shape) - 0.375) / (traces.size + 0.25))


def r_hat(traces: np.ndarray) -> float:
    """Compute the rank-normalised split R-hat.

    Parameters
    ----------
    traces : ndarray of shape (n_chains, n_draws)
        Draws of each chain.

    Returns
    -------
    float
        R-hat, which is close to 1 if the chains agree; Vehtari et al. (2021) recommend a value
        below 1.01. It is infinite for chains that are constant at different values, and NaN for
        fewer than 4 draws.
    """
    if traces.shape[1] < 4:
        return float("nan")
    if np.ptp(traces) == 0:
        return 1.0
    folded = np.abs(traces - np.median(traces))
    return max(
        _basic_r_hat(_normal_scores(_split(values)))
        for values in (traces, folded)
        if np.ptp(values) > 0
    )


def _basic_r_hat(traces: np.ndarray) -> float:
    n = traces.shape[1]
    within = traces.var(axis=1, ddof=1).mean()
    between = n * traces.mean(axis=1).var(ddof=1)
    if within == 0:
        return 1.0 if between == 0 else float("inf")
    return float(np.sqrt(((n - 1) / n * within + between / n) / within))


def effective_sample_size(traces: np.ndarray) -> float:
    """Compute the effective sample size from the autocorrelations of the ranks.

    This is the number of independent draws that would estimate the mean with the same accuracy.

    Parameters
    ----------
    traces : ndarray of shape (n_chains, n_draws)
        Draws of each chain.

    Returns
    -------
    float
        Effective sample size. It is NaN for fewer than 4 draws, and the number of draws if all of
        them are equal.
    """
    if traces.shape[1] < 4:
        return float("nan")
    if np.ptp(traces) == 0:
        return float(traces.size)
    traces = _normal_scores(_split(traces))
    m, n = traces.shape
    centred = traces - traces.mean(axis=1, keepdims=True)
    spectrum = np.fft.rfft(centred, 2 * n, axis=1)
    autocovariance = np.fft.irfft(np.abs(spectrum) ** 2, axis=1)[:, :n].mean(axis=0) / n
    within = autocovariance[0] * n / (n - 1)
    total = within * (n - 1) / n + traces.mean(axis=1).var(ddof=1)
    if total <= 0:
        return float(traces.size)
    correlation = 1.0 - (within - autocovariance * n / (n - 1)) / total
    correlation[0] = 1.0
    pairs = correlation[: n - n % 2].reshape(-1, 2).sum(axis=1)  # Geyer's initial monotone sequence
    stop = int(np.argmax(pairs <= 0)) if (pairs <= 0).any() else len(pairs)
    time = -1.0 + 2.0 * np.minimum.accumulate(pairs[: max(stop, 1)]).sum()
    return float(m * n / max(time, 1.0 / np.log10(m * n)))
