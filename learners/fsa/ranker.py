"""FSA for ranking: scores that order the items of each query."""

from dataclasses import dataclass, field
from typing import Any, Self

import numpy as np

from ..common.validation import check_sample_weight, rollback_on_error
from ..objective.pairwise import PairwiseLogisticLoss, check_pairs, graded_pairs
from ..sklearn_bases import with_callbacks
from .estimators import FSAEstimator
from .problem import FitProblem, check_data, fit_problem


@dataclass(eq=False, repr=False, kw_only=True)
class FSARanker(FSAEstimator):
    """Ranker that selects exactly k features by annealing ([1]_; [2]_, section 5).

    Feature selection with annealing (FSA) approximately minimises mean pairwise loss + prior(theta)
    + ridge ||theta||^2 subject to theta_j != 0 for exactly k features (columns) j. Here theta are
    the coefficients of the scaled columns; ``prior`` and ``refinement`` define the penalties. No
    intercept is fitted, since it would not affect the order.

    Parameters
    ----------
    n_features_to_select : int, float or "auto", default 10
        Number k of features to select, as in :class:`FSAClassifier`, but "auto" always uses the
        extended BIC.
    loss : {"auto", "pairwise_logistic"} or Loss, default "auto"
        Pairwise loss. All values mean the logistic loss of score differences, eq. (17) of [2]_. The
        pairs of a :class:`PairwiseLogisticLoss` object are ignored.
    response : {"linear", "piecewise"} or PiecewiseLinear, default "linear"
        As in :class:`FSAClassifier`, but "piecewise" means ``PiecewiseLinear(n_bins=4)``.
    constraints, prior, scaling, schedule : object
        As in :class:`FSAClassifier`.
    learning_rate : float or "auto", default "auto"
        As in :class:`FSAClassifier`, but "auto" means 5.
    momentum, refinement, warm_start, random_state, n_jobs, verbose : object
        As in :class:`FSAClassifier`.

    Attributes
    ----------
    loss_ : PairwiseLogisticLoss
        Loss function that was minimised, with the training pairs.
    coef_ : ndarray of shape (n_features,)
        Coefficients of the unscaled columns; only for linear responses.
    intercept_ : float
        Constant that offsets the means of the columns; it does not affect the order.
    support_, knots_, responses_, missing_responses_, ridge_, refinement_, alternatives_
        As in :class:`FSAClassifier`.

    References
    ----------
    .. [1] A. Barbu, Y. She, L. Ding, G. Gramajo, "Feature Selection with Annealing for Computer
           Vision and Big Data Learning", IEEE Transactions on Pattern Analysis and Machine
           Intelligence 39 (2017).
    .. [2] A. Barbu, Y. She, L. Ding, G. Gramajo, "Feature Selection with Annealing for Regression,
           Classification and Ranking", arXiv:1310.2880v2 (2014).

    Examples
    --------
    >>> import numpy as np
    >>> from annealed.learners import FSARanker
    >>> X = np.random.default_rng(0).standard_normal((100, 30))
    >>> ranker = FSARanker(2).fit(X, X[:, 4] + 2 * X[:, 9], qid=np.repeat(range(10), 10))
    >>> ranker.get_support(indices=True)
    array([4, 9])
    """

    _tasks = ("ranking",)
    _n_bins = 4

    fit_intercept: bool = field(default=False, init=False)

    @with_callbacks
    def fit(  # type: ignore[override]
        self,
        X: Any,
        y: Any = None,
        *,
        qid: Any = None,
        pairs: Any = None,
        sample_weight: Any = None,
    ) -> Self:
        """Select features and fit the model.

        Parameters
        ----------
        X : array or sparse matrix of shape (n_samples, n_features)
            Training data.
        y : array of shape (n_samples,) or None, default None
            Relevance grades, where higher grades are better; not required if ``pairs`` is given.
        qid : array of shape (n_samples,) or None, default None
            Query of each item. Only items of the same query are compared. If neither ``qid`` nor
            ``pairs`` is given, all items belong to one query.
        pairs : array of shape (n_pairs, 3) or None, default None
            Preferences (i, j, r), where r in [0, 1] is the probability that item i is preferred to
            item j: 1 if item i should score higher, 0 if it should score lower, and 0.5 for a tie.
            If given, ``y`` and ``qid`` are ignored.
        sample_weight : array of shape (n_samples,) or None, default None
            Item weights. The weight of a pair is the product of its two item weights.

        Returns
        -------
        FSARanker
            The fitted estimator.

        Raises
        ------
        ValueError
            If no pair of items expresses a preference, X contains NaN and the responses are linear,
            or a parameter is out of range.
        """
        settings = self.fit_settings()
        with rollback_on_error(self):
            return self._solve(
                self.encode(X, y, qid=qid, pairs=pairs, sample_weight=sample_weight), settings
            )

    def encode(
        self,
        X: Any,
        y: Any = None,
        *,
        qid: Any = None,
        pairs: Any = None,
        sample_weight: Any = None,
    ) -> FitProblem:
        """Validate the arguments of :meth:`fit`, and return them as a problem for the solvers.

        Parameters
        ----------
        X, y, qid, pairs, sample_weight : array
            As for :meth:`fit`.

        Returns
        -------
        FitProblem
            Validated data, pairs, loss and constraints.
        """
        if not isinstance(self.loss, str) and self.loss.name != "pairwise_logistic":
            raise ValueError(
                f"loss={self.loss!r} does not compare rows; expected 'auto', "
                "'pairwise_logistic' or a pairwise loss"
            )
        if pairs is None:
            X, y = check_data(self, X, y, piecewise=self._is_piecewise, y_numeric=True)
            ij = graded_pairs(y, qid)
            r = np.ones(len(ij))
        else:
            X = check_data(self, X, piecewise=self._is_piecewise)
            ij, r = check_pairs(pairs, X.shape[0])
        if not len(ij):
            raise ValueError(
                f"every query has the same grade for all its items (n_samples={X.shape[0]}); "
                "expected at least one query with different grades"
            )
        weight = check_sample_weight(sample_weight, X.shape[0])
        pair_weight = weight[ij[:, 0]] * weight[ij[:, 1]]
        if not pair_weight.sum() > 0:
            raise ValueError(
                "sample_weight leaves no pair of rows with positive weights; expected at least one"
            )
        self.loss_ = PairwiseLogisticLoss(ij, r, pair_weight)
        return fit_problem(self, X, np.zeros((X.shape[0], 1)), weight, flat=True)

    def decision_function(self, X: Any) -> np.ndarray:
        """Compute the scores of items.

        Parameters
        ----------
        X : array or sparse matrix of shape (n_samples, n_features)
            Rows to score.

        Returns
        -------
        ndarray of shape (n_samples,)
            Scores; higher scores are better.
        """
        return self._scores(X)[:, 0]

    predict = decision_function
