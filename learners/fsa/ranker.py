"""Learning to rank: scores that order the items of each query."""

from __future__ import annotations

from collections.abc import Callable
from typing import Self

import numpy as np

from ..common.validation import check_parameters, check_sample_weight, document
from ..objective.losses import Loss
from ..objective.pairwise import PairwiseLogisticLoss, graded_pairs
from ..objective.priors import Prior
from .base import _FSA, Encoded, with_callbacks


class FSARanker(_FSA):
    """Learning to rank on exactly k features (arXiv text, section 5): scores that order the items of each query.
    {parameters}

    Attributes
    ----------
    support_, coef_, feature_importances_, loss_curve_, n_iter_, n_features_in_
        As in :class:`FSAClassifier`.

    Examples
    --------
    >>> import numpy as np
    >>> from annealed.learners import FSARanker
    >>> X = np.random.default_rng(0).standard_normal((100, 30))
    >>> FSARanker(2).fit(X, X[:, 4] + 2 * X[:, 9], qid=np.repeat(range(10), 10)).get_support(indices=True)
    array([4, 9])
    """

    _losses = ("pairwise_logistic",)

    def __init__(
        self,
        n_features_to_select: int | float | str = 10,
        *,
        loss: str | Loss = "pairwise_logistic",
        response: str = "linear",
        n_bins: int = 4,
        bins: str = "range",
        groups=None,
        prior: Prior | None = None,
        schedule: str | Callable = "inverse",
        mu: float = 100.0,
        n_steps: int = 100,
        learning_rate: float | str = "auto",
        momentum: float = 0.0,
        polish: str | None = "auto",
        warm_start: bool = False,
        random_state=None,
        n_jobs: int | None = None,
        verbose: bool = False,
    ):
        super().__init__(
            n_features_to_select,
            loss=loss,
            response=response,
            n_bins=n_bins,
            bins=bins,
            groups=groups,
            prior=prior,
            schedule=schedule,
            mu=mu,
            n_steps=n_steps,
            learning_rate=learning_rate,
            momentum=momentum,
            polish=polish,
            fit_intercept=False,
            warm_start=warm_start,
            random_state=random_state,
            n_jobs=n_jobs,
            verbose=verbose,
        )

    @with_callbacks
    def fit(self, X, y=None, *, qid=None, pairs=None, sample_weight=None) -> Self:
        """Select features and fit.

        Parameters
        ----------
        X : array or sparse matrix of shape (n_samples, n_features)
        y : array of shape (n_samples,) or None
            Relevance grades, greater is better. Not needed with ``pairs``.
        qid : array of shape (n_samples,) or None
            Query of each item: items are compared within a query only; one query when neither this nor ``pairs`` is given.
        pairs : array of shape (n_pairs, 3) or None
            Rows (i, j, r): i should score above j (r = 1), below (0) or level (0.5); takes the place of ``y`` and ``qid``.
        sample_weight : array of shape (n_samples,) or None
            A pair weighs as much as the product of its items' weights.
        """
        return self._fit(self._encode(X, y, qid=qid, pairs=pairs, sample_weight=sample_weight))

    def _encode(self, X, y=None, *, qid=None, pairs=None, sample_weight=None) -> Encoded:
        if pairs is None:
            X, y = self._validate(X, y, y_numeric=True)
            ij = graded_pairs(y, qid)
            r = np.ones(len(ij))
        else:
            X = self._validate(X)
            pairs = np.asarray(pairs, dtype=np.float64)
            if pairs.ndim != 2 or pairs.shape[1] != 3 or not len(pairs):
                raise ValueError(f"pairs has shape {pairs.shape}; expected (n_pairs, 3): i, j, r")
            ij, r = pairs[:, :2].astype(np.int64), pairs[:, 2]
            if ij.min() < 0 or ij.max() >= X.shape[0] or not ((r >= 0) & (r <= 1)).all():
                raise ValueError(f"pairs must hold rows of X (0 to {X.shape[0] - 1}) and r in [0, 1]")
        if not len(ij):
            raise ValueError(f"no two items of a query differ in grade (n_samples={X.shape[0]}); nothing can be learnt")
        weight = check_sample_weight(sample_weight, X.shape[0])
        pair_weight = weight[ij[:, 0]] * weight[ij[:, 1]]
        if not pair_weight.sum() > 0:
            raise ValueError("sample_weight is zero in every pair; expected at least one pair of rows with positive weights")
        check_parameters(self, self._losses)
        loss = PairwiseLogisticLoss(ij, r, pair_weight)
        return Encoded(X, np.zeros((X.shape[0], 1)), loss, weight, flat=True)

    def decision_function(self, X) -> np.ndarray:
        """Scores (n_samples,): the greater the better."""
        return self._scores(X)[:, 0]

    def predict(self, X) -> np.ndarray:
        """Scores (n_samples,): the greater the better."""
        return self.decision_function(X)


document(FSARanker, '"pairwise_logistic", eq. (17) of the arXiv text.')
