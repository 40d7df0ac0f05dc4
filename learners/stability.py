"""Stability of a selection under resampling: Cohen's kappa, Ma (thesis), eq. (3.34)."""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np
from joblib import Parallel, delayed
from sklearn.utils import check_random_state, indexable

from .common.validation import check_choice, check_integer
from .plots import plot_bars
from .sklearn_bases import clone
from .solvers.annealing import strongest
from .types import ArrayLike, Matrix, Seed


def cohen_kappa(a: np.ndarray, b: np.ndarray) -> float:
    """Compute the chance-corrected agreement between two selections (Cohen's kappa [1]_).

    Parameters
    ----------
    a, b : ndarray of bool, shape (n_features,)
        Masks of the selected features.

    Returns
    -------
    float
        Kappa: 1 for identical selections (including all or no features), and about 0 for
        independent selections.

    References
    ----------
    .. [1] Y. Ma, "Flexible Sparse Learning of Feature Subspaces", PhD thesis, Columbia University,
           2017, section 3.6.1.

    Examples
    --------
    >>> cohen_kappa(np.array([True, True, False, False]), np.array([True, False, False, True]))
    0.0
    """
    agreement = float(np.mean(a == b))
    chance = float(a.mean() * b.mean() + (1 - a.mean()) * (1 - b.mean()))
    return 1.0 if chance == 1.0 else (agreement - chance) / (1.0 - chance)


@dataclass(frozen=True)
class SelectionStability:
    """Result of :func:`selection_stability`.

    Attributes
    ----------
    kappa : float
        Mean chance-corrected agreement (Cohen's kappa) over all pairs of repeats, eq. (3.34) of
        [1]_; 1 if all selections are identical.
    frequency : ndarray of shape (n_features,)
        Fraction of the repeats that selected each feature.
    supports : ndarray of bool, shape (n_repeats, n_features)
        Selection of each repeat.
    names : sequence of str or None, default None
        Feature names to show in the plot: the column names if the data were a data frame, otherwise
        None.

    References
    ----------
    .. [1] Y. Ma, "Flexible Sparse Learning of Feature Subspaces", PhD thesis, Columbia University,
           2017.
    """

    kappa: float
    frequency: np.ndarray
    supports: np.ndarray
    names: Any = None

    def plot(self, ax: Any = None, names: Any = None, top: int = 30) -> Any:
        """Plot the most frequently selected features.

        Parameters
        ----------
        ax : matplotlib.axes.Axes or None, default None
            Axes to draw on; by default, a new figure is created.
        names : sequence of str or None, default None
            Name of each feature. By default, the attribute ``names`` is used or, if it is None, x0,
            x1, ...
        top : int, default 30
            Maximum number of features to show.

        Returns
        -------
        matplotlib.axes.Axes
            Axes of the plot.

        Raises
        ------
        ValueError
            If the number of names differs from the number of features.
        """
        names = self.names if names is None else names
        if names is not None and len(names) != len(self.frequency):
            raise ValueError(
                f"there are {len(names)} names; "
                f"expected one for each of the {len(self.frequency)} features"
            )
        order = np.argsort(-self.frequency, kind="stable")[
            : min(top, int(self.supports.any(0).sum()))
        ]
        labels = [f"x{j}" if names is None else str(names[j]) for j in order]
        ax = plot_bars(labels, self.frequency[order], "fraction of repeats", ax=ax)
        ax.set_xlim(0, 1)
        ax.set_title(f"mean kappa {self.kappa:.2f} over {len(self.supports)} repeats")
        return ax


def selection_stability(
    estimator: Any,
    X: Matrix,
    y: ArrayLike,
    n_repeats: int = 20,
    *,
    resample: Any = "half",
    n_features: int | None = None,
    sample_weight: ArrayLike | None = None,
    offset: ArrayLike | None = None,
    random_state: Seed = None,
    n_jobs: int | None = None,
) -> SelectionStability:
    """Fit a selector to resampled data and compare the selections.

    Parameters
    ----------
    estimator : estimator
        Selector with ``get_support``, or an estimator with ``selected_features_`` or ``coef_``. The
        non-zero entries of ``coef_`` are the selected features.
    X : array-like or sparse matrix of shape (n_samples, n_features)
        Training rows.
    y : array-like of shape (n_samples,)
        Targets.
    n_repeats : int, default 20
        Number of fits; at least 2.
    resample : {"half", "bootstrap", "permute"}, default "half"
        Resampling scheme. "half" draws random halves of the rows in complementary pairs [2]_,
        stratified by class. "bootstrap" draws bootstrap samples. "permute" only shuffles the rows,
        which affects online learners alone; the selections of other selectors always agree. Each
        fit uses a new ``random_state`` if the estimator has this parameter.
    n_features : int or None, default None
        If given, the support of each fit consists of the features with the ``n_features`` largest
        absolute coefficients, instead of the selected features. This makes the kappas of estimators
        with different sparsity comparable.
    sample_weight : array of shape (n_samples,) or None, default None
        Row weights, passed to each fit; None means equal weights.
    offset : array of shape (n_samples,) or None, default None
        Offsets added to the scores in every fit; only supported by the estimators of feature
        selection with annealing (FSA). None means no offsets.
    random_state : int, RandomState or None, default None
        Random seed for the resampling.
    n_jobs : int or None, default None
        Number of fits to run in parallel; -1 means all processors, and None means one. The result
        does not depend on it.

    Returns
    -------
    SelectionStability
        Mean chance-corrected agreement of the selections (Cohen's kappa [1]_), frequency with which
        each feature is selected, and support of each fit.

    Raises
    ------
    ValueError
        If there are fewer than two repeats, ``resample`` is unknown, ``y`` has the wrong length, or
        the estimator does not expose its selection.

    References
    ----------
    .. [1] Y. Ma, "Flexible Sparse Learning of Feature Subspaces", PhD thesis, Columbia University,
           2017, section 3.6.1, eq. (3.34).
    .. [2] R. D. Shah, R. J. Samworth, "Variable selection with error control", JRSS B 75 (2013).

    Examples
    --------
    >>> import numpy as np
    >>> from annealed.learners import FSAClassifier, selection_stability
    >>> X = np.random.default_rng(0).standard_normal((200, 20))
    >>> y = X[:, 3] > X[:, 7]
    >>> stability = selection_stability(FSAClassifier(2), X, y, n_repeats=6, random_state=0)
    >>> stability.kappa, np.flatnonzero(stability.frequency == 1)
    (1.0, array([3, 7]))
    """
    check_integer("n_repeats", n_repeats, 2)
    check_choice("resample", resample, ("half", "bootstrap", "permute"))
    names = getattr(X, "columns", None)
    y = np.asarray(y)
    X, y = indexable(X if hasattr(X, "shape") else np.asarray(X), y)
    if n_features is not None:
        check_integer("n_features", n_features, 1, X.shape[1])
    given = {"sample_weight": sample_weight, "offset": offset}
    of_rows = {name: np.asarray(values) for name, values in given.items() if values is not None}
    seeds = check_random_state(random_state).randint(2**31 - 1, size=n_repeats)
    supports = np.array(
        Parallel(n_jobs=n_jobs)(
            delayed(_support)(clone(estimator), X, y, of_rows, rows, n_features, int(seed))
            for rows, seed in zip(_resampled(y, resample, seeds), seeds, strict=True)
        )
    )
    return SelectionStability(mean_kappa(supports), supports.mean(axis=0), supports, names)


def mean_kappa(supports: np.ndarray) -> float:
    """Compute the mean kappa over all pairs of supports, as in Ma (thesis), eq. (3.34).

    ``supports`` is a boolean array of shape (n_repeats, n_features).
    """
    n = len(supports)
    return float(
        np.mean([cohen_kappa(supports[i], supports[j]) for i in range(n) for j in range(i)])
    )


def _resampled(y: np.ndarray, resample: str, seeds: np.ndarray) -> Iterator[np.ndarray]:
    """Yield the rows of each fit; halves come in complementary pairs."""
    n = len(y)
    classes, counts = np.unique(y, return_counts=True)
    strata, halves = [np.flatnonzero(y == c) for c in classes], -(-counts // 2)
    fractions = y.dtype.kind == "f" and (y % 1.0 != 0.0).any()
    if fractions or halves.sum() > 0.75 * n:  # numeric targets with few repeated values
        strata, halves = [np.arange(n)], np.array([n // 2])
    for fit, seed in enumerate(seeds):
        rng = np.random.RandomState(seed if resample != "half" else seeds[fit - fit % 2])
        if resample == "permute":
            yield rng.permutation(n)
        elif resample == "bootstrap":
            yield rng.randint(n, size=n)
        else:
            orders = zip((rng.permutation(rows) for rows in strata), halves, strict=True)
            part = [rows[-half:] if fit % 2 else rows[:half] for rows, half in orders]
            yield rng.permutation(np.concatenate(part))


def _support(
    estimator: Any,
    X: Matrix,
    y: np.ndarray,
    of_rows: dict[str, np.ndarray],
    rows: np.ndarray,
    n_features: int | None,
    seed: int,
) -> np.ndarray:
    if "random_state" in estimator.get_params():
        estimator.set_params(random_state=seed)
    part = X.iloc[rows] if hasattr(X, "iloc") else X[rows]
    options = {name: values[rows] for name, values in of_rows.items()}
    return selected(estimator.fit(part, y[rows], **options), X.shape[1], n_features)


def selected(estimator: Any, n_features_in: int, n_features: int | None = None) -> np.ndarray:
    """Return the support of a fitted selector.

    Parameters
    ----------
    estimator : estimator
        Fitted estimator.
    n_features_in : int
        Number of columns in the training data of the estimator.
    n_features : int or None, default None
        If given, select the features with the ``n_features`` largest absolute coefficients instead.

    Returns
    -------
    ndarray of bool, shape (n_features_in,)
        Mask of the selected features.

    Raises
    ------
    ValueError
        If the estimator has neither ``get_support`` nor ``selected_features_`` nor ``coef_``.
    """
    mask = np.zeros(n_features_in, dtype=bool)
    if n_features is not None:
        if not hasattr(estimator, "coef_"):
            raise ValueError(
                f"{type(estimator).__name__} has no coef_; "
                "expected a linear estimator when n_features is given"
            )
        mask[strongest(np.abs(np.atleast_2d(estimator.coef_)).max(axis=0), n_features)] = True
    elif hasattr(estimator, "get_support"):
        mask[:] = estimator.get_support()
    elif hasattr(estimator, "selected_features_"):
        mask[estimator.selected_features_] = True
    elif hasattr(estimator, "coef_"):
        mask[:] = (np.atleast_2d(estimator.coef_) != 0).any(axis=0)
    else:
        raise ValueError(
            f"{type(estimator).__name__} does not expose its selection; "
            "expected get_support, selected_features_ or coef_"
        )
    return mask
