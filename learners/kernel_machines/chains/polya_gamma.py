"""Draws from the Polya-Gamma distribution PG(1, z).

Given one draw per row, a logistic likelihood becomes Gaussian.

References
----------
.. [1] N. G. Polson, J. G. Scott, J. Windle, "Bayesian Inference for Logistic Models Using
       Polya-Gamma Latent Variables", Journal of the American Statistical Association 108 (2013),
       section 4 and the supplement: the rejection sampler of Devroye.
"""

import math

import numpy as np

from ...compilation import jit

SPLIT = 0.64  # point where the two parts of the proposal meet, as in [1]


@jit
def _coefficient(n: int, x: float) -> float:
    """Compute the term a_n(x) of the alternating series of the Jacobi density."""
    k = (n + 0.5) * math.pi
    if x > SPLIT:
        return k * math.exp(-0.5 * k * k * x)
    return k * math.pow(2.0 / (math.pi * x), 1.5) * math.exp(-2.0 * (n + 0.5) ** 2 / x)


@jit
def _normal_cdf(x: float) -> float:
    return 0.5 * math.erfc(-x / math.sqrt(2.0))


@jit
def _truncated_inverse_gaussian(z: float, rng: np.random.Generator) -> float:
    """Draw from the inverse Gaussian with mean 1 / z and shape 1, truncated at ``SPLIT``."""
    if z * SPLIT < 1.0:
        while True:
            while True:
                e, f = rng.standard_exponential(), rng.standard_exponential()
                if e * e <= 2.0 * f / SPLIT:
                    break
            x = SPLIT / (1.0 + SPLIT * e) ** 2
            if rng.random() <= math.exp(-0.5 * z * z * x):
                return x
    mean = 1.0 / z
    while True:
        y = rng.standard_normal() ** 2
        x = mean + 0.5 * mean * mean * y - 0.5 * mean * math.sqrt(4.0 * mean * y + (mean * y) ** 2)
        if rng.random() > mean / (mean + x):
            x = mean * mean / x
        if x <= SPLIT:
            return x


@jit
def polya_gamma(z: float, rng: np.random.Generator) -> float:
    """Draw from the Polya-Gamma distribution PG(1, z), which has mean tanh(z / 2) / (2 z)."""
    z = 0.5 * abs(z)
    rate = math.pi**2 / 8.0 + 0.5 * z * z
    right = 0.5 * math.pi / rate * math.exp(-rate * SPLIT)
    root = math.sqrt(1.0 / SPLIT)
    left = 2.0 * (
        math.exp(-z) * _normal_cdf(root * (SPLIT * z - 1.0))
        + (math.exp(z) * _normal_cdf(-root * (SPLIT * z + 1.0)) if z < 300.0 else 0.0)
    )
    while True:
        x = (
            SPLIT + rng.standard_exponential() / rate
            if rng.random() < right / (right + left)
            else _truncated_inverse_gaussian(z, rng)
        )
        total = _coefficient(0, x)
        level = rng.random() * total
        n = 0
        while True:
            n += 1
            if n % 2:
                total -= _coefficient(n, x)
                if level <= total:
                    return 0.25 * x
            else:
                total += _coefficient(n, x)
                if level > total:
                    break
