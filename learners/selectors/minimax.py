"""Minimax sparse logistic regression, a cutting-plane method, Tan et al. (2013)."""

import warnings
from dataclasses import field, replace
from typing import Self

import numpy as np
import scipy.sparse as sp
from sklearn.utils import Tags

from ..compilation import n_values, problem_size
from ..designs.base import Design
from ..model_selection.ridge import CHOSEN_OPTIMISM, LeftOut, choose_ridge, raw_units
from ..parameters import (
    check_choice,
    check_declared,
    check_integer,
    check_real,
    checked,
    estimator,
    limits,
    resolve_n_features,
)
from ..solvers import SupportProblem, refit, strongest
from ..types import ArrayLike, Matrix
from .base import ScaledSelector, SelectingClassifier
from .minimax_solvers import LOSS, ReducedProblem, WeightedGram, solve_newton, solve_smoothing

# C="auto" times the rows: cross-validation on text (benchmarks/sparse_words.py choose)
_AUTO_C = 25.0


@estimator
class MinimaxSparseClassifier(ScaledSelector, SelectingClassifier):
    """Minimax sparse logistic regression for two classes ([1]_).

    The classifier minimises a convex relaxation of the following objective, with d in {0, 1}^p
    selecting ``r`` of the p columns::

        min over d of min over w of  1/2 ||w||^2 + C sum_i s_i ln(1 + exp(-y_i (w * d) . x_i))

    Here w are the coefficients, x_i is a row of the scaled columns, y_i = -1 or +1 is its label,
    and s_i is its weight. The loss is a sum over the rows, not a mean. The relaxation allows d in
    [0, 1]^p and is solved in its minimax form (eq. (5) of [1]_). A cut is a set of ``r`` features,
    which defines a constraint. Algorithm 1 of [1]_ repeatedly adds the cut whose constraint is
    violated most, and jointly optimises the mixture weights of all cuts, whose sum is one. The
    columns are read once per cut, which suits data with many more features than rows.

    Parameters
    ----------
    r : int, default 10
        Number of features per cut, at least 1.
    C : float or "auto", default 10.0
        Positive factor of the loss, as in eq. (4) of [1]_. "auto" means 25 divided by the sum of
        the row weights, which is equivalent to minimising the mean loss plus 0.02 ||w||^2. It suits
        columns with few non-zeros, such as word counts: with a weaker penalty, columns that each
        explain a single row would be selected.
    max_cuts : int, default 10
        Maximum number of cuts (T_m in [1]_), at least 1.
    n_features_to_select : int or None, default None
        Number of features to select. No more cuts are added once this number is reached, and the
        weakest features of the last cut are omitted if there are too many. A warning is issued if
        there are too few. If None, the cuts determine the number. In this case, with ``C="auto"``,
        no more cuts are added once all training rows are classified correctly.
    retrain_C : float, "auto" or None, default 5.0
        Positive value of C in a final ridge logistic regression on the selected features, as in
        [1]_. If None, the coefficients of the relaxed problem are used. "auto" chooses the ridge
        penalty that minimises the approximate leave-one-out deviance; if X is sparse, the penalty
        applies to the coefficients of the unscaled columns.
    scaling : {"standardize", "none"}, default "standardize"
        "standardize" scales each column to variance one; "none" divides all columns by the same
        number.
    solver : {"newton", "smoothing"}, default "newton"
        Solver of the reduced problem over all cuts so far.

        * "newton": Newton's method for the coefficients, alternating with closed-form updates of
          the mixture weights;
        * "smoothing": smoothing coordinate descent (Algorithms 2 and 3 of [1]_). It converges to
          the same solution, but needs about 1 / tol sweeps and stops after 2000.
    fit_intercept : bool, default True
        Whether to fit an intercept. It belongs to every cut and is penalised like the coefficients
        in the relaxed problem, but is not penalised in the final regression.
    tol : float, default 1e-3
        Positive relative duality gap to which the reduced problems are solved.
    class_weight : dict, "balanced" or None, default None
        Factors for the row weights, as ``{label: factor}``. "balanced" gives all classes the same
        total weight. None means no factors.

    Attributes
    ----------
    support_ : ndarray of shape (n_features,), bool
        Mask of the selected columns.
    classes_ : ndarray of shape (2,)
        Class labels in ascending order.
    coef_ : ndarray of shape (1, n_features)
        Coefficients of the unscaled columns; 0 for columns that are not selected.
    intercept_ : ndarray of shape (1,)
        Intercept of the scores.
    objective_ : ndarray of shape (n_iter_,)
        Objective of the reduced problem after each cut; it never increases.
    gap_ : float
        Relative duality gap of the last reduced problem.
    n_iter_ : int
        Number of cuts.
    n_features_in_ : int
        Number of training columns.
    feature_names_in_ : ndarray of shape (n_features_in_,)
        Column names of X; only set if X has column names.

    References
    ----------
    .. [1] M. Tan, I. W. Tsang, L. Wang, "Minimax Sparse Logistic Regression for Very
           High-Dimensional Feature Selection", IEEE Transactions on Neural Networks and Learning
           Systems 24 (2013), 1609-1622.

    Examples
    --------
    >>> import numpy as np
    >>> from annealed.learners import MinimaxSparseClassifier
    >>> X = np.random.default_rng(0).standard_normal((200, 50))
    >>> y = X[:, 3] > X[:, 7]
    >>> MinimaxSparseClassifier(n_features_to_select=2).fit(X, y).get_support(indices=True)
    array([3, 7])
    """

    loss = "logistic"

    r: int = field(default=10, kw_only=False, metadata=limits(check_integer, 1))
    C: float | str = checked(10.0, check_real, 0.0, above=True, unless=("auto",))
    max_cuts: int = checked(10, check_integer, 1)
    n_features_to_select: int | None = checked(None, check_integer, 1, unless=(None,))
    retrain_C: float | str | None = checked(
        5.0, check_real, 0.0, np.inf, above=True, unless=(None, "auto")
    )
    scaling: str = "standardize"
    fit_intercept: bool = True
    solver: str = checked("newton", check_choice, ("newton", "smoothing"))
    tol: float = checked(1e-3, check_real, 0.0, above=True)

    def __sklearn_tags__(self) -> Tags:
        tags = super().__sklearn_tags__()
        tags.classifier_tags.multi_class = False
        return tags

    def fit(self, X: Matrix, y: ArrayLike, sample_weight: ArrayLike | None = None) -> Self:
        """Select features and fit the model.

        Parameters
        ----------
        X : array or sparse matrix of shape (n_samples, n_features)
            Training data.
        y : array of shape (n_samples,)
            Labels of any type with exactly two classes.
        sample_weight : array of shape (n_samples,) or None
            Row weights; None means equal weights.

        Returns
        -------
        self
            The fitted estimator.

        Raises
        ------
        ValueError
            If y does not have two classes, X contains NaN, or a parameter is out of range.
        """
        check_declared(self)
        X, encoded, loss, weight = self._encode(X, y, sample_weight)
        if len(self.classes_) > 2:
            raise ValueError(
                "Only binary classification is supported. The type of the target is multiclass: "
                f"{len(self.classes_)} classes instead of two"
            )
        used = weight > 0  # a row of weight zero has no dual variable
        if not used.all():
            X, encoded, weight = X[used], encoded[used], weight[used]
        total = weight.sum()
        size = (
            None
            if self.n_features_to_select is None
            else resolve_n_features(self.n_features_to_select, X.shape[1])
        )
        with problem_size(n_values(X)):
            design = self._make_design(X, weight / total)
        C = _AUTO_C / total if self.C == "auto" else float(self.C)
        kept, coef, intercept = self._cutting_planes(design, encoded[:, 0], C * weight, size)
        if size is not None and len(kept) < size:
            warnings.warn(
                f"{len(kept)} features were selected instead of n_features_to_select={size}; "
                "increase r or max_cuts",
                stacklevel=2,
            )
        if self.retrain_C is not None:
            # C times the sum of losses + ||w||^2 / 2 is equivalent to the mean loss + ||w||^2 / (2
            # C total).
            problem = SupportProblem(encoded, loss, weight / total, self.fit_intercept)
            small = design.keep(kept)
            raw = self.retrain_C == "auto" and sp.issparse(X)
            Z = small.matrix().astype(np.float64)
            unit = (raw_units(small.inv) if raw else np.ones(len(kept)))[:, None]
            if self.retrain_C == "auto":
                left_out = LeftOut(total, optimism=CHOSEN_OPTIMISM if raw else 1.0)
                fit, _, _ = choose_ridge(
                    problem, Z * unit[:, 0], coef / unit, intercept, left_out, few_rows=True
                )
            else:
                problem = replace(problem, shrinkage=0.5 / (self.retrain_C * total))
                fit = refit(problem, Z, coef, intercept, tol=1e-10)
            coef, intercept = fit.theta * unit, fit.intercept
        self._store(design, kept, coef, intercept)
        return self

    def _cutting_planes(
        self, design: Design, y: np.ndarray, upper: np.ndarray, size: int | None
    ) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """Run Algorithm 1, which adds the most violated constraints one at a time.

        The reduced problem over all constraints is solved after each addition. The targets ``y``
        (n_samples,) are -1 or +1, and ``upper`` contains the bounds C_i on alpha. The search ends
        once ``size`` different features are selected; surplus features of the last cut, which are
        the weakest, are omitted. The method returns the selected features in ascending order, their
        weights (k, 1), and the constant. The column of the constant belongs to every cut, so its
        weight is shrunk like the others.
        """
        constant = int(bool(self.fit_intercept))
        Z = np.ones((len(y), constant))
        columns = np.empty(0, int)  # columns of the design; the constant comes first in Z
        members = np.empty((0, constant))
        mixture, reduced = np.empty(0), None
        zero = np.zeros(len(y))
        alpha = -upper * LOSS.margin_slope(zero)
        gram = WeightedGram(upper * LOSS.margin_curvature(zero))
        objective: list[float] = []
        for n_cuts in range(1, self.max_cuts + 1):
            # The most violated constraint has the r columns with the largest c_j = (sum_i alpha_i
            # y_i x_ij)^2.
            c = design.gradient((alpha * y)[:, None])[:, 0, 0] ** 2
            cut = strongest(c, min(self.r, len(c)))
            new = cut[~np.isin(cut, columns)]
            if (
                reduced is not None
                and c[cut].sum() <= (1.0 + self.tol) * (members[:, constant:] @ c[columns]).max()
            ):
                break  # no constraint is violated
            if size is not None and len(columns) + len(new) > size:
                weak = np.delete(new, strongest(c[new], size - len(columns)))
                cut, new = np.setdiff1d(cut, weak), np.setdiff1d(new, weak)
            columns = np.concatenate([columns, new])
            if len(new):
                Z_new = design.keep(new).matrix()
                Z = np.hstack([Z.astype(Z_new.dtype), Z_new])
            members = np.pad(members, ((0, 1), (0, len(new))))
            members[-1] = np.concatenate([np.ones(constant), np.isin(columns, cut)])
            problem = ReducedProblem(Z, y, members, upper)
            if self.solver == "newton":
                mixture = np.append(mixture * (1.0 - 1.0 / n_cuts), 1.0 / n_cuts)
                start = None if reduced is None else np.append(reduced.coef, np.zeros(len(new)))
                reduced = solve_newton(problem, mixture, coef=start, gram=gram, tol=self.tol)
            else:
                reduced = solve_smoothing(problem, tol=self.tol)
            alpha, mixture = reduced.alpha, reduced.mixture
            objective.append(reduced.primal)
            separated = self.C == "auto" and (y * (Z @ reduced.coef) > 0).all()
            if separated if size is None else len(columns) >= size:
                break
        assert reduced is not None
        order = np.argsort(columns)
        self.objective_ = np.array(objective)
        self.gap_ = reduced.gap
        self.n_iter_ = len(objective)
        return (
            columns[order],
            reduced.coef[constant:][order, None],
            reduced.coef[:constant].sum(keepdims=True),
        )
