"""FSA for ranking: scores that order the items of each query."""

from __future__ import annotations

from typing import Any, Self

import numpy as np

from ..common.docstrings import fill_docstring
from ..common.validation import check_sample_weight
from ..objective.pairwise import PairwiseLogisticLoss, check_pairs, graded_pairs
from .base import FSAEstimator
from .callbacks import with_callbacks
from .estimators import CLASSIFIER_TEXTS
from .parameters import LAST, PARAMETERS, SIZE
from .problem import FitProblem

_TEXTS = CLASSIFIER_TEXTS | {
    "parameters": PARAMETERS + LAST,
    "losses": '"auto" and "pairwise_logistic" are eq. (17) of [2]_.',
    "n_bins": "4",
    "coef_shape": "(n_features,)",
    "intercept_shape": "float",
    "outputs": "",
}


@fill_docstring(size=SIZE, **_TEXTS)
class FSARanker(FSAEstimator, without=("fit_intercept",)):
    """Learning to rank on exactly k features, by annealing (section 5 of Barbu et al. (2014) [2]_; Algorithm 1 of [1]_).

    Parameters
    ----------
    {size}
    {parameters}

    Attributes
    ----------
    {attributes}

    {references}

    Examples
    --------
    >>> import numpy as np
    >>> from annealed.learners import FSARanker
    >>> X = np.random.default_rng(0).standard_normal((100, 30))
    >>> FSARanker(2).fit(X, X[:, 4] + 2 * X[:, 9], qid=np.repeat(range(10), 10)).get_support(indices=True)
    array([4, 9])
    """

    _losses = ("auto", "pairwise_logistic")
    _n_bins = 4

    def __init__(self, *args: Any, **parameters: Any):
        super().__init__(*args, fit_intercept=False, **parameters)  # a constant orders nothing

    @with_callbacks
    def fit(self, X, y=None, *, qid=None, pairs=None, sample_weight=None) -> Self:
        """Select features and fit.

        Parameters
        ----------
        X : array or sparse matrix of shape (n_samples, n_features)
        y : array of shape (n_samples,) or None, default None
            Relevance grades, greater is better. Not needed with ``pairs``.
        qid : array of shape (n_samples,) or None, default None
            Query of each item: items are compared within a query only; one query when neither this nor ``pairs`` is given.
        pairs : array of shape (n_pairs, 3) or None, default None
            Rows (i, j, r): i should score above j (r = 1), below (0) or level (0.5); takes the place of ``y`` and ``qid``.
        sample_weight : array of shape (n_samples,) or None, default None
            A pair weighs as much as the product of its items' weights.

        Returns
        -------
        FSARanker
            The estimator itself.

        Raises
        ------
        ValueError
            If no pair has a preference, NaN with linear responses, or a parameter out of range.
        """
        return self._fit(X, y, qid=qid, pairs=pairs, sample_weight=sample_weight)

    def _encode(self, X, y=None, *, qid=None, pairs=None, sample_weight=None) -> FitProblem:
        if not isinstance(self.loss, str) and self.loss.name != "pairwise_logistic":
            raise ValueError(f"loss={self.loss!r} does not compare rows; expected one of {sorted(self._losses)}")
        if pairs is None:
            X, y = self._validate(X, y, y_numeric=True)
            ij = graded_pairs(y, qid)
            r = np.ones(len(ij))
        else:
            X = self._validate(X)
            ij, r = check_pairs(pairs, X.shape[0])
        if not len(ij):
            raise ValueError(f"no two items of a query differ in grade (n_samples={X.shape[0]}); nothing can be learnt")
        weight = check_sample_weight(sample_weight, X.shape[0])
        pair_weight = weight[ij[:, 0]] * weight[ij[:, 1]]
        if not pair_weight.sum() > 0:
            raise ValueError("sample_weight is zero in every pair; expected at least one pair of rows with positive weights")
        loss = PairwiseLogisticLoss(ij, r, pair_weight)
        return FitProblem(X, np.zeros((X.shape[0], 1)), loss, weight, self._groups(X.shape[1]), flat=True)

    def decision_function(self, X) -> np.ndarray:
        """Score items.

        Parameters
        ----------
        X : array or sparse matrix of shape (n_samples, n_features)

        Returns
        -------
        ndarray of shape (n_samples,)
            The greater the better.
        """
        return self._scores(X)[:, 0]

    def predict(self, X) -> np.ndarray:
        """Score items, as :meth:`decision_function` does.

        Parameters
        ----------
        X : array or sparse matrix of shape (n_samples, n_features)

        Returns
        -------
        ndarray of shape (n_samples,)
            The greater the better.
        """
        return self.decision_function(X)
