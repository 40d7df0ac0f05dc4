"""Compiled terms of single-score losses, for the loops of designs and online learners.

Two numbers select the loss in a loop: a code, which is one of the constants below, and a parameter
(``flip`` for the logistic losses, the half width ``h`` for the Huberised hinge, otherwise 0). Both
are given by ``kernel_code`` of a loss object. The classes in ``losses`` document the formulas and
their sources.
"""

import numpy as np

from ..compilation import jit

SQUARED, LOGISTIC, HUBERISED_HINGE, LORENZ, HINGE, EXPONENTIAL = range(6)


@jit(plain=True, error_model="numpy")
def loss_terms(kind: int, parameter: float, y: float, score: float) -> tuple[float, float]:
    """Compute the value and slope of the loss with code ``kind`` at one score.

    Margin losses ignore the score if y = 0.
    """
    if kind == SQUARED:
        return 0.5 * (score - y) * (score - y), score - y
    if y == 0.0:
        return 0.0, 0.0
    u = y * score
    if kind == LOGISTIC:
        e = np.exp(-abs(u))
        larger, smaller = 1.0 / (1.0 + e), e / (1.0 + e)
        right, wrong = (larger, smaller) if u > 0 else (smaller, larger)
        if parameter == 0.0:
            return np.log1p(e) + max(-u, 0.0), -y * wrong
        clean = (1.0 - 2.0 * parameter) * right
        return -np.log(parameter + clean), -y * clean / (parameter + clean) * wrong
    if kind == HUBERISED_HINGE:
        h = parameter
        slope = 0.0 if u > 1.0 + h else -1.0 if u < 1.0 - h else (u - 1.0 - h) / (2.0 * h)
        value = 1.0 - u if u < 1.0 - h else h * slope * slope  # (1 + h - u)^2 / 4h, 0 above 1 + h
        return value, y * slope
    if kind == LORENZ:
        v = min(u - 1.0, 0.0)
        return np.log1p(v * v), y * (2.0 * v / (1.0 + v**2))
    if kind == HINGE:
        return max(1.0 - u, 0.0), y * (-1.0 if u < 1.0 else 0.0)
    value = np.exp(-max(u, -500.0))
    return value, -y * value


@jit(plain=True)
def margin_slope(kind: int, parameter: float, u: float) -> float:
    """Compute the derivative of the loss with code ``kind`` with respect to the margin u = y f."""
    return loss_terms(kind, parameter, 1.0, u)[1]
