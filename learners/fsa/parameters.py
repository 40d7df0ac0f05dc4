"""The parameters of the FSA estimators: their text for the docstrings, and one clear line for every bad value."""

from __future__ import annotations

from sklearn.utils import check_random_state

from ..common.validation import check_choice, check_integer, check_jobs, check_real, is_size
from ..designs.responses import as_response
from ..objective.losses import Loss
from ..objective.priors import Prior
from ..solvers.schedules import as_schedule

SIZE = """n_features_to_select : int, float or "auto", default 10
        k: how many features are selected, or which fraction of them, in (0, 1]; of groups where there are ``feature_groups``. More
        than there are keeps all, with a warning. "auto" takes the size with the least extended Bayesian
        information criterion along one annealing path (see :class:`FSAPath`), with few rows that of the least loss of held-out
        rows; none where no size is better than a constant."""

PARAMETERS = """
    loss : str or Loss, default "auto"
        {losses}
    response : {"linear", "piecewise"} or PiecewiseLinear, default "linear"
        Whether a feature acts through a coefficient or through a piecewise-linear function of its value ([2]_, section 4.1).
        "piecewise" is ``PiecewiseLinear(n_bins={n_bins})``: more bins follow the data more closely and need more rows. NaN is
        accepted by piecewise-linear responses and has a response of its own.
    feature_groups : array of shape (n_features,) or None, default None
        Label of each column's group, of any type: the columns of a group are selected or dropped together, by the root mean square
        of their coefficients.
    prior : Prior or None, default None
        Shrinkage and smoothness of the responses; greater strengths give smaller and smoother ones.
    alpha : float or "auto", default "auto"
        Ridge: ``alpha * ||theta||^2`` of the standardised coefficients is added to the mean loss, in annealing and in the fit; at
        least 0. "auto" lets the data choose that of the fit, by generalised cross-validation in regression, else by the
        approximate deviance of rows (in ranking: queries) left out; annealing is without one, or with 0.01 (0.1 for the squared
        loss) where there are too few rows for exchanges (see ``polish``). A ``prior`` with a shrinkage takes the place of "auto";
        it adds to a number.
    scaling : {"auto", "unit_variance", "none", "maximum", "row_length"}, default "auto"
        Units in which features compete. "unit_variance" divides each column by its standard deviation, "maximum" by its greatest
        absolute value, "none" by nothing: large columns win. "row_length" replaces values by sign(x) ln(1 + abs(x)), divides rows
        by their length, and goes on as "unit_variance": for counts such as words; ``coef_`` belongs to the changed values. "auto"
        is "unit_variance"; the ridge of the fit acts in the raw units of a sparse matrix, where rare words would be loud.
    include, exclude : array of int, str or bool, or None, default None
        Columns that stay, and columns that cannot be selected: by number, by name, or as a mask. Included columns count in k.
    bounds : pair, dict or array of shape (n_features, 2), or None, default None
        Least and greatest coefficient in units of the raw columns, of all columns, of some (``{column: pair}``) or of each; None in
        a pair is no bound, and 0 lies between. ``(0, None)`` is non-negative. One output and linear responses only; features
        are then not exchanged.
    missing : {"error", "median"}, default "error"
        What NaN is to linear responses: an error, or the median of the column's other values in training (``medians_``), also where
        the model predicts. Dense arrays only; ``transform`` returns columns as they are. Piecewise-linear responses need neither.
    schedule : {"inverse", "inverse_arxiv", "exponential", "linear"}, Schedule or function, default "inverse"
        How many features are left after each step. A name has the speed mu = {mu}; ``Schedule("inverse", mu=...)`` sets it: the
        greater mu, the sooner features are dropped. A function of (n_features, k, n_steps) gives the numbers of features, never
        rising, the last one k.
    n_steps : int, default 100
        E, at least 1: length of the schedule. More steps drop fewer features at a time and take longer. Unless ``polish`` is None,
        annealing ends with the step that reaches k, about half of ``n_steps`` for "inverse".
    learning_rate : float or "auto", default "auto"
        Step size, above 0, on standardised columns and mean gradients. "auto" is 3 for the logistic and multinomial losses, 1 for
        the Huberised hinge, the Lorenz, the quantile and Cox's loss, 5 for the pairwise loss, and for the others one over the
        Lipschitz constant of the gradient, by power iteration on the columns that remain.
    momentum : float or "auto", default "auto"
        In [0, 1): part of the last step that is added to each step; it is dropped with the features. "auto" is {momentum}.
    polish : {"auto", "swap", "refit", None}, default "auto"
        After annealing: exchange features while the objective falls, search all columns again, and refit ("swap"); refit alone
        ("refit"); or nothing. "auto" exchanges where that is affordable and there are rows enough to tell supports apart: ten of
        the rarest class for each coefficient, or five rows where targets are numbers; else it refits. With less than 150 rows of
        numbers, and with few rows where the size is "auto", folds decide whether exchanges or shrinkage without them serve."""

FIT_INTERCEPT = """
    fit_intercept : bool, default True
        Whether the scores have a constant; it is neither dropped nor shrunk."""

LAST = """
    warm_start : bool, default False
        Start the next call of ``fit`` from the coefficients of the last one, where its shapes agree.
    random_state : int, RandomState or None, default None
        Which rows are read of data that are subsampled (see :func:`on_disk`, :func:`on_dask`). Everything else is deterministic.
    n_jobs : int or None, default None
        Threads, -1 for all; None is one. The result does not depend on it.
    verbose : bool, default False
        Show a progress bar."""

CLASS_WEIGHT = """
    class_weight : dict, "balanced" or None, default None
        Factor of the weights of each class's rows; "balanced" gives all classes the same total weight."""

ATTRIBUTES = """
    support_ : ndarray of shape (n_features,), bool
        Selected columns.
    coef_ : ndarray of shape {coef_shape}
        For linear responses, in units of the raw columns; 0 where not selected.
    intercept_ : {intercept_shape}
    medians_ : ndarray of shape (n_features,)
        With ``missing="median"``: what stands for NaN; 0 for a column that held nothing else.
    alpha_ : float
        Ridge of the fit.
    alternatives_ : dict of int to list of (int, float)
        For each selected column up to five that could take its place, and the share of the objective that this is predicted to
        cost (below 0.05; negative where it would gain), least first; among the columns that were dropped late. Groups stand as
        wholes, each by its first column. Empty along paths, out of core, and where the fit is too large for Newton's method.
    knots_ : ndarray of shape (k, n_bins + 1)
        For piecewise-linear responses: ascending knots of each selected column.
    responses_ : ndarray of shape (k, n_bins + 1, n_outputs)
        Values at the knots. The mean of each curve over the training rows is zero. ``n_outputs`` is 1{outputs}.
    missing_responses_ : ndarray of shape (k, n_outputs)
        Response to NaN; 0 where the column had none in training.
    feature_importances_ : ndarray of shape (n_features,)
        Root mean square of each feature's standardised coefficients; 0 where not selected.
    loss_curve_ : ndarray of shape (n_iter_,)
        Mean training loss before each step.
    n_iter_ : int
        Steps of annealing: with a ``polish`` they end when k is reached.
    n_features_in_ : int
    feature_names_in_ : ndarray of shape (n_features_in_,)
        Where X has column names."""

REFERENCES = """
    References
    ----------
    .. [1] A. Barbu, Y. She, L. Ding, G. Gramajo, "Feature Selection with Annealing for Computer Vision and Big Data Learning",
       IEEE Transactions on Pattern Analysis and Machine Intelligence 39 (2017).
    .. [2] A. Barbu, Y. She, L. Ding, G. Gramajo, "Feature Selection with Annealing for Regression, Classification and Ranking",
       arXiv:1310.2880v2 (2014)."""


def check_parameters(estimator) -> None:
    """Check what the FSA estimators share.

    Raises
    ------
    ValueError
        Naming the parameter, its value and what was expected.
    """
    e = estimator
    k = getattr(e, "n_features_to_select", "auto")
    if not is_size(k) and not (isinstance(k, str) and k == "auto"):
        raise ValueError(f"n_features_to_select={k!r} is not valid; expected an integer >= 1, a fraction in (0, 1] or 'auto'")
    as_response(e.response)
    as_schedule(e.schedule)
    check_choice("polish", e.polish, ("auto", "swap", "refit", None))
    check_integer("n_steps", e.n_steps, 1)
    if not _is_auto(e.momentum):
        check_real("momentum", e.momentum, 0.0, 1.0, below=True)
    if not _is_auto(e.learning_rate):
        check_real("learning_rate", e.learning_rate, 0.0, above=True)
    if not _is_auto(e.alpha):
        check_real("alpha", e.alpha, 0.0)
    if e.prior is not None:
        if not isinstance(e.prior, Prior):
            raise ValueError(f"prior={e.prior!r} is not valid; expected a Prior or None")
        e.prior.check()
    check_choice("scaling", e.scaling, ("auto", "unit_variance", "none", "maximum", "row_length"))
    check_choice("missing", e.missing, ("error", "median"))
    if e.missing == "median" and e._is_piecewise:
        raise ValueError("missing='median' is not valid with response='piecewise', where NaN has a response; expected 'error'")
    check_jobs(e.n_jobs)
    check_random_state(e.random_state)
    known = e.loss in e._losses if isinstance(e.loss, str) else isinstance(e.loss, Loss)
    if not known:
        raise ValueError(f"loss={e.loss!r} is not valid; expected one of {sorted(e._losses)} or a Loss object")


def _is_auto(value) -> bool:
    return isinstance(value, str) and value == "auto"
