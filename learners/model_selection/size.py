"""Choice of the number of features by the extended BIC or by cross-validation."""

import numpy as np
from scipy.special import gammaln

from ..objective.base import effective_rows

MAX_SIZE = 300  # largest default size
# Fraction of the best size's improvement that suffices, chosen on simulated and dozens of public
# tables. 95% misses columns if the best size leaves little loss.
SHARE = 0.97
# Minimum class probability of a held-out row, so that a single overconfident error does not
# dominate
MIN_PROBABILITY = 1e-3
# Relative difference up to which losses count as equal, to exclude effects of rounding and row
# order
EQUAL = 1e-9
_MIN_FOLDS = 3  # heuristic


def default_sizes(n_units: int, n_samples: int) -> np.ndarray:
    """Return the default candidate sizes in ascending order.

    These are all sizes up to 8, followed by sizes that increase by about a fifth each, up to a
    third of the number of rows.

    Parameters
    ----------
    n_units : int
        Number of features (or groups).
    n_samples : int
        Number of rows.

    Returns
    -------
    ndarray of int
        Candidate sizes.

    Examples
    --------
    >>> default_sizes(1000, 100)
    array([ 1,  2,  3,  4,  5,  6,  7,  8, 10, 12, 14, 17, 20, 24, 29, 33])
    """
    most = min(n_units, max(10, n_samples // 3), MAX_SIZE)
    sizes = [1]
    while sizes[-1] < most:
        sizes.append(min(most, max(sizes[-1] + 1, round(1.2 * sizes[-1]))))
    return np.array(sizes)


def ebic(
    value: float,
    n_samples: float,
    k: int,
    n_units: int,
    degrees: int,
    *,
    unknown_dispersion: bool,
    gamma: float = 1.0,
) -> float:
    """Compute -2 log likelihood + degrees ln(n_samples) + 2 gamma ln C(n_units, k), as in [1]_.

    C(n, k) denotes the number of subsets of size k of n features.

    Parameters
    ----------
    value : float
        Mean loss. The term -2 log likelihood is twice the sum of the losses, which is exact for
        logistic losses. If the dispersion is unknown, such as the variance for the squared loss,
        the term is n_samples ln(2 value).
    n_samples : float
        Number of rows.
    k, n_units : int
        Number of selected features, and total number of features.
    degrees : int
        Number of free coefficients.
    unknown_dispersion : bool
        Whether the dispersion is estimated; see :class:`.Loss`.
    gamma : float, default 1.0
        Weight of the penalty for the number of possible supports; 0 gives the BIC.

    Returns
    -------
    float
        Value of the criterion; lower values are better.

    References
    ----------
    .. [1] J. Chen, Z. Chen, "Extended Bayesian information criteria for model selection with large
           model spaces", Biometrika 95 (2008).
    """
    return (
        deviance(value, n_samples, unknown_dispersion)
        + degrees * float(np.log(max(n_samples, 2.0)))
        + gamma * support_price(k, n_units)
    )


def deviance(value: float, n_samples: float, unknown_dispersion: bool) -> float:
    """Compute -2 log likelihood from the mean loss; see :func:`ebic`."""
    return float(
        n_samples * np.log(max(2.0 * value, 1e-300))
        if unknown_dispersion
        else 2.0 * n_samples * value
    )


def support_price(k: int, n_units: int) -> float:
    """Compute the penalty 2 ln C(n_units, k) for the number of possible supports of size k."""
    return float(2.0 * (gammaln(n_units + 1) - gammaln(k + 1) - gammaln(n_units - k + 1)))


def choose_size(
    losses: np.ndarray, rule: str = "explained", constant: np.ndarray | None = None
) -> int:
    """Choose a size by the held-out losses.

    Parameters
    ----------
    losses : ndarray of shape (n_folds, n_sizes)
        Mean loss, or negative score, of the held-out rows in each fold, for ascending sizes. If
        losses differ only by rounding, the smaller size is chosen.
    rule : {"explained", "best", "one_se"}, default "explained"
        Rule that chooses the size. "explained" selects the smallest size that achieves 97% of the
        best size's improvement over a constant model. "best" selects the size with the lowest mean
        loss. "one_se" selects the smallest size whose mean loss is within one standard error, over
        the folds, of the lowest.
    constant : ndarray of shape (n_folds,) or None, default None
        Losses of a constant model, used by "explained". If they are None, or if no size improves on
        them, "explained" chooses the same size as "best".

    Returns
    -------
    int
        Index of the chosen size.

    Examples
    --------
    >>> losses = np.array([[1.04, 0.52, 0.51, 0.50], [1.05, 0.50, 0.50, 0.50]])
    >>> choose_size(losses, constant=np.array([1.2, 1.2])), choose_size(losses, "best")
    (1, 3)
    >>> choose_size(np.array([[1.1, 1.0], [1.0, 1.0]]), "one_se")
    0
    """
    mean = losses.mean(axis=0)
    rounding = EQUAL * abs(mean.min())
    best = int(np.argmax(mean <= mean.min() + rounding))
    if rule == "one_se":
        difference = losses - losses[:, [best]]
        error = difference.std(axis=0, ddof=1) / np.sqrt(len(losses)) if len(losses) > 1 else 0.0
        return int(np.argmax(difference.mean(axis=0) <= error + rounding))
    explained = np.zeros(1) if rule == "best" or constant is None else constant.mean() - mean
    return (
        int(np.argmax(explained >= SHARE * explained[best])) if explained.max() > rounding else best
    )


def beats_constant(
    losses: np.ndarray,
    constant: np.ndarray,
    weight: np.ndarray | None = None,
    groups: np.ndarray | None = None,
) -> bool:
    """Return whether the mean gain over a constant model exceeds one standard error.

    The standard error is computed over the held-out rows or groups. If the gain is smaller,
    estimators select no columns.

    Parameters
    ----------
    losses, constant : ndarray of shape (n_rows,)
        Loss of each row for the best size and for a constant model.
    weight : ndarray of shape (n_rows,) or None, default None
        Row weights; None means equal weights.
    groups : ndarray of shape (n_rows,) or None, default None
        Groups of the rows. If given, the standard error is computed over groups.

    Examples
    --------
    >>> beats_constant(np.array([0.5, 0.7, 0.9]), np.ones(3))
    True
    >>> beats_constant(np.array([0.1, 1.2, 1.2]), np.ones(3))
    False
    """
    weight = np.ones(len(losses)) if weight is None else weight
    gain, share = constant - losses, weight / weight.sum()
    mean = float(share @ gain)
    variance, n = float(share @ (gain - mean) ** 2), effective_rows(weight)
    if groups is not None:  # sum over groups
        sums = np.bincount(np.unique(groups, return_inverse=True)[1], share * (gain - mean))
        variance, n = len(sums) * float(sums @ sums), len(sums)
    return bool(
        mean > max(np.sqrt(variance / max(n - 1.0, 1.0)), EQUAL * abs(float(share @ constant)))
    )


def folds_by_content(
    target: np.ndarray, content: np.ndarray, stratify: bool, n_folds: int = 5
) -> list[tuple[np.ndarray, np.ndarray]]:
    """Return the training and held-out rows of folds that depend on the contents of the rows.

    The number of folds is at most the number of rows in the rarest class; there are no folds if
    that class has fewer than three rows. Rows are sorted by class (or target) and content, and are
    assigned to the folds in turn. Identical rows share a fold. The folds therefore do not depend on
    the order of the rows, or on whether a row is repeated or weighted.

    Parameters
    ----------
    target : ndarray of shape (n_samples,) or (n_samples, n_outputs)
        Class codes or numeric targets.
    content : ndarray of shape (n_samples, 1)
        Number that identifies the contents of a row, such as the sum of its standardised values.
    stratify : bool
        Whether the targets are classes.
    n_folds : int, default 5
        Maximum number of folds.

    Returns
    -------
    list of (ndarray of int, ndarray of int)
        Training rows and held-out rows of each fold.
    """
    scale = max(float(np.abs(content).max(initial=0.0)), np.finfo(float).tiny)
    content = np.round(content / scale, 9)  # sums of equal rows may differ by rounding
    distinct, which = np.unique(np.column_stack([target, content]), axis=0, return_inverse=True)
    rarest = np.unique(distinct[:, 0], return_counts=True)[1].min() if stratify else len(distinct)
    n_folds = min(n_folds, int(rarest))
    fold = which.ravel() % n_folds
    rows = np.arange(len(fold))
    return (
        [(rows[fold != i], rows[fold == i]) for i in range(n_folds)]
        if n_folds >= _MIN_FOLDS
        else []
    )
