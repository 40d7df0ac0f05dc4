"""Linear discriminant analysis with shrunken covariance, in closed form."""

import numpy as np

_RIDGE = 1e-6  # ridge of the covariance, for columns that do not vary within classes


def shrunken_discriminant(
    A: np.ndarray, members: np.ndarray, sample_weight: np.ndarray, n_rows: float
) -> tuple[np.ndarray, np.ndarray]:
    """Compute the coefficients and intercept of linear discriminant analysis.

    The scores are the log class probabilities, up to a constant. The within-class covariance is
    shrunk towards a multiple of the identity, by an amount that depends on its estimation error
    (eq. (14) of [1]_).

    Parameters
    ----------
    A : ndarray of shape (n_samples, p)
        Columns with similar scales.
    members : ndarray of shape (n_samples, n_classes)
        One-hot encoded classes.
    sample_weight : ndarray of shape (n_samples,)
        Row weights that sum to one.
    n_rows : float
        Sum of the row weights before normalisation.

    Returns
    -------
    coef : ndarray of shape (p, n_classes)
        Coefficients of the scores.
    intercept : ndarray of shape (n_classes,)
        Intercepts of the scores.

    References
    ----------
    .. [1] O. Ledoit, M. Wolf, "A well-conditioned estimator for large-dimensional covariance
           matrices", Journal of Multivariate Analysis 88 (2004).

    Examples
    --------
    >>> A = np.array([[-1.0], [-3.0], [3.0], [1.0]])
    >>> coef, _ = shrunken_discriminant(A, np.eye(2)[[0, 0, 1, 1]], np.full(4, 0.25), 4.0)
    >>> coef.round(3)
    array([[-2.,  2.]])
    """
    share = np.maximum(sample_weight @ members, 1e-300)
    means = (members.T * sample_weight) @ A / share[:, None]
    inner, eye = A - members @ means, np.eye(A.shape[1])
    S = inner.T @ (sample_weight[:, None] * inner)
    level = np.trace(S) / len(S)
    noise = (sample_weight @ (inner**2).sum(axis=1) ** 2 - (S**2).sum()) / n_rows
    shrinkage = min(1.0, noise / max(((S - level * eye) ** 2).sum(), 1e-300))
    coef = np.linalg.solve((1.0 - shrinkage) * S + (shrinkage * level + _RIDGE) * eye, means.T)
    return coef, np.log(share) - 0.5 * (means.T * coef).sum(axis=0)
