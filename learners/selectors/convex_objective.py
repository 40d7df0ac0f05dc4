"""Forward-backward greedy selection for smooth convex functions, Liu et al. (2014), Algorithm 1."""

from collections.abc import Callable
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from ..common.validation import check_greedy, check_integer, check_real
from ..solvers.greedy import Step, greedy_search

Objective = Callable[[np.ndarray], tuple[float, npt.ArrayLike]]

_MAX_STEPS = 500  # maximum number of steps of a refit
_SUFFICIENT = 1e-4  # Armijo's fraction of the predicted decrease


class SparseMinimum(NamedTuple):
    """Result of :func:`forward_backward_minimise`.

    Attributes
    ----------
    coef : ndarray of shape (n_features,)
        Minimiser, which is 0 except at the selected and free coordinates.
    support : ndarray of int
        Selected coordinates in ascending order, without the coordinates in ``free``.
    value : float
        Objective at the minimiser.
    path : list of (action, feature, objective, size)
        Steps of the search, as named tuples with the fields ``action`` ("enter" or "leave"),
        ``feature`` (index of the coordinate), ``objective`` (after the refit) and ``size`` (number
        of selected coordinates).
    """

    coef: np.ndarray
    support: np.ndarray
    value: float
    path: list[Step]


def forward_backward_minimise(
    objective: Objective,
    start: npt.ArrayLike,
    n_features_to_select: int | None = None,
    *,
    free: npt.ArrayLike = (),
    criterion: str = "gradient",
    delta: float | None = None,
    epsilon: float | None = None,
    backward: bool = True,
    tol: float = 1e-6,
) -> SparseMinimum:
    """Minimise a smooth convex function over vectors with few non-zeros (Algorithm 1 of [1]_).

    Parameters
    ----------
    objective : function
        Function that returns the value and the gradient at a given vector. Outside its domain, it
        must return infinity and an arbitrary gradient of the same length.
    start : array-like of shape (n_features,)
        Starting point, which must be 0 except at the coordinates in ``free``. The objective must be
        finite at this point.
    n_features_to_select : int or None, default None
        Number of coordinates to select. The search stops earlier if ``delta`` or ``epsilon``
        requires it. None means no limit, and requires one of these thresholds.
    free : array-like of int, default ()
        Indices of coordinates that may always be non-zero and do not count towards
        ``n_features_to_select``.
    criterion : {"gradient", "objective"}, default "gradient"
        Criterion that determines which coordinate is added.

        * "gradient": largest absolute derivative (FoBa-gdt);
        * "objective": largest decrease in the objective when only this coordinate changes
          (FoBa-obj), which is many times slower.
    delta : float or None, default None
        Positive threshold for the criterion "objective": the search stops when no addition lowers
        the objective by at least ``delta``.
    epsilon : float or None, default None
        Positive threshold for the criterion "gradient": the search stops when no coordinate has an
        absolute derivative of at least ``epsilon``.
    backward : bool, default True
        Whether to take backward steps. Without them, the search with the criterion "gradient" is
        Forward-gdt [1]_ or, for quadratic objectives, orthogonal matching pursuit.
    tol : float, default 1e-6
        Positive tolerance: a refit ends when no derivative with respect to a selected or free
        coordinate exceeds it in absolute value.

    Returns
    -------
    SparseMinimum
        Minimiser, its support, and the steps.

    Raises
    ------
    ValueError
        If the starting point is not a vector, the objective is not finite at this point, a gradient
        has the wrong shape, or a parameter is out of range.

    References
    ----------
    .. [1] J. Liu, R. Fujimaki, J. Ye, "Forward-Backward Greedy Algorithms for General Convex Smooth
           Functions over A Cardinality Constraint", International Conference on Machine Learning
           (2014).

    Examples
    --------
    Covariance selection: two of five variables depend on each other given the others. The
    coordinates are the entries of the precision matrix, and its diagonal is free.

    >>> import numpy as np
    >>> from annealed.learners import forward_backward_minimise
    >>> rng = np.random.default_rng(0)
    >>> X = rng.standard_normal((500, 5))
    >>> X[:, 3] += X[:, 1]
    >>> S, (row, column) = np.cov(X.T), np.triu_indices(5)
    >>> def gaussian(entries):
    ...     precision = np.zeros((5, 5))
    ...     precision[row, column] = precision[column, row] = entries
    ...     sign, logdet = np.linalg.slogdet(precision)
    ...     if sign <= 0 or np.linalg.eigvalsh(precision)[0] <= 0:
    ...         return np.inf, np.zeros_like(entries)
    ...     slope = S - np.linalg.inv(precision)
    ...     value = (S * precision).sum() - logdet
    ...     return value, np.where(row == column, 1, 2) * slope[row, column]
    >>> start, diagonal = np.eye(5)[row, column], np.flatnonzero(row == column)
    >>> found = forward_backward_minimise(gaussian, start, 1, free=diagonal)
    >>> [(int(row[i]), int(column[i])) for i in found.support]
    [(1, 3)]
    """
    coef = np.array(start, dtype=np.float64)
    if coef.ndim != 1 or not len(coef):
        raise ValueError(f"start has shape {coef.shape}; expected a vector")
    always = np.unique(np.asarray(free, dtype=np.intp))
    if len(always) and not 0 <= always[0] <= always[-1] < len(coef):
        raise ValueError(
            f"free={free!r} is not valid; expected coordinates from 0 to {len(coef) - 1}"
        )
    if np.delete(coef, always).any():
        raise ValueError(
            "start has non-zero entries outside the free coordinates; expected zeros there"
        )
    check_greedy(criterion, delta, epsilon, n_features_to_select)
    if n_features_to_select is not None:
        check_integer("n_features_to_select", n_features_to_select, 1)
    check_real("tol", tol, 0.0, above=True)
    model = _ConvexModel(objective, coef, always, tol)
    size = min(n_features_to_select or len(coef), len(coef) - len(always))
    chosen, path = greedy_search(
        model, size, criterion=criterion, delta=delta, epsilon=epsilon, backward=backward
    )
    return SparseMinimum(model.coef, np.sort(np.array(chosen, dtype=np.intp)), model.value, path)


class _ConvexModel:
    """Model of a custom objective on selected coordinates, for :func:`~.greedy_search`."""

    def __init__(self, objective: Objective, coef: np.ndarray, free: np.ndarray, tol: float):
        self.objective, self.tol = objective, tol
        self.free = free
        self.chosen: list[int] = []
        self.coef, self.value = coef, self._at(coef)[0]
        if not np.isfinite(self.value):
            raise ValueError(f"the objective is {self.value} at start; expected a finite number")
        self._refit()

    def _at(self, coef: np.ndarray) -> tuple[float, np.ndarray]:
        value, gradient = self.objective(coef)
        gradient = np.asarray(gradient, dtype=np.float64)
        if gradient.shape != coef.shape:
            raise ValueError(
                f"the objective returned a gradient of shape {gradient.shape}; "
                f"expected {coef.shape}"
            )
        return float(value), gradient

    def _refit(self) -> None:
        positions = np.concatenate([self.free, np.array(self.chosen, dtype=np.intp)])
        self.coef, self.value = self._minimise(positions)

    def _minimise(self, positions: np.ndarray) -> tuple[np.ndarray, float]:
        """Minimise over the given coordinates by BFGS; backtracking keeps the objective finite."""
        coef = self.coef.copy()
        value, gradient = self._at(coef)
        gradient, inverse = gradient[positions], np.eye(len(positions))
        for step_number in range(_MAX_STEPS):
            if not len(positions) or np.abs(gradient).max() <= self.tol:
                break
            direction = -inverse @ gradient
            slope = float(gradient @ direction)
            if slope >= 0.0:  # rounding errors have corrupted the curvature estimate
                inverse, direction, slope = (
                    np.eye(len(positions)),
                    -gradient,
                    -float(gradient @ gradient),
                )
            length = 1.0
            while True:
                new = coef.copy()
                new[positions] += length * direction
                new_value, full = self._at(new)
                if np.isfinite(new_value) and new_value <= value + _SUFFICIENT * length * slope:
                    break
                length *= 0.5
                if length < 1e-14:
                    return coef, value
            moved, turned = length * direction, full[positions] - gradient
            coef, value, gradient = new, new_value, full[positions]
            product = float(moved @ turned)
            if product > 1e-14 * float(moved @ moved):
                if step_number == 0:
                    inverse *= product / float(turned @ turned)
                left = np.eye(len(positions)) - np.outer(moved, turned) / product
                inverse = left @ inverse @ left.T + np.outer(moved, moved) / product
        return coef, value

    def charges(self) -> np.ndarray:
        """Return the unit penalties, which are 0 since every unit is a single coordinate."""
        return np.zeros(len(self.coef))

    def strengths(self) -> np.ndarray:
        """Compute the absolute derivatives, with 0 for the free coordinates."""
        strength = np.abs(self._at(self.coef)[1])
        strength[self.free] = 0.0
        return strength

    def decreases(self, candidates: np.ndarray) -> np.ndarray:
        """Compute the decrease in the objective if each candidate alone is changed."""
        out = np.zeros(len(candidates))
        for unit in np.flatnonzero(candidates):
            out[unit] = self.value - self._minimise(np.array([unit]))[1]
        return out

    def add(self, unit: int) -> None:
        """Add a coordinate."""
        self.chosen.append(unit)
        self._refit()

    def remove(self, unit: int) -> None:
        """Remove a coordinate."""
        self.chosen.remove(unit)
        self.coef = self.coef.copy()
        self.coef[unit] = 0.0
        self._refit()

    def value_without(self, unit: int) -> float:
        """Compute the objective with one coordinate set to 0 and all others fixed."""
        coef = self.coef.copy()
        coef[unit] = 0.0
        return self._at(coef)[0]
