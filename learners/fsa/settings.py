"""Parameters of the FSA estimators as objects, and their validation."""

from dataclasses import dataclass, field
from typing import Any, Self

from sklearn.utils import check_random_state

from ..designs.responses import PiecewiseLinear, as_response
from ..objective import Loss, Prior, losses_for
from ..parameters import (
    check_choice,
    check_declared,
    check_jobs,
    check_real,
    checked,
    is_size,
    n_threads,
)
from ..sklearn_bases import BaseEstimator
from ..solvers.schedules import N_STEPS, Counts, Schedule, as_schedule


class Constraints(BaseEstimator):
    """Constraints on the selected features and on their responses.

    An object of this class is passed to an FSA estimator, such as :class:`FSAClassifier`, as its
    parameter ``constraints``. The response of a feature is its contribution to the score.

    Parameters
    ----------
    groups : array of shape (n_features,) or None, default None
        Group label of each column. Labels may be of any type that can be sorted. The columns of a
        group are selected or dropped together, according to the root mean square of their
        coefficients.
    include, exclude : array of int, str or bool, or None, default None
        Columns that are always selected, and columns that are never selected, given by index, by
        name or as a mask. Included columns count towards ``n_features_to_select``.
    bounds : pair, dict or array of shape (n_features, 2), or None, default None
        Lower and upper bounds on ``coef_``, the coefficients of the unscaled columns: one pair for
        all columns, ``{column: pair}`` for some columns, or a pair per column. None in a pair means
        no bound, so ``(0, None)`` means non-negative. The interval must contain 0. Bounds require
        linear responses and a single score per row (two classes or one target). They disable
        feature exchanges (see :class:`Refinement`).
    monotone : dict or array of shape (n_features,), or None, default None
        Direction in which the score may change as a column increases, given as ``{column:
        direction}`` or as one value per column: +1 (non-decreasing), -1 (non-increasing) or 0
        (unconstrained). The coefficient of a linear response has this sign or is 0. A
        piecewise-linear response is monotone, except for the response to NaN. With two classes, the
        direction refers to the score of the second class. Monotone columns require a single score
        per row and disable feature exchanges.

    Examples
    --------
    >>> import numpy as np
    >>> from annealed.learners import Constraints, FSARegressor
    >>> X = np.random.default_rng(0).standard_normal((100, 30))
    >>> model = FSARegressor(1, constraints=Constraints(exclude=[9]))
    >>> model.fit(X, X[:, 4] + 2 * X[:, 9]).get_support(indices=True)
    array([4])
    >>> rising = Constraints(monotone={4: +1})
    >>> curve = FSARegressor(1, response="piecewise", constraints=rising).fit(X, X[:, 4] ** 3)
    >>> bool((np.diff(curve.responses_[0, :, 0]) >= 0).all())
    True
    """

    def __init__(
        self,
        groups: Any = None,
        include: Any = None,
        exclude: Any = None,
        bounds: Any = None,
        monotone: Any = None,
    ):
        self.groups = groups
        self.include = include
        self.exclude = exclude
        self.bounds = bounds
        self.monotone = monotone


@dataclass(eq=False, repr=False)
class Refinement(BaseEstimator):
    """Refinement after annealing: feature exchanges, a longer search, and a final ridge fit.

    A fitted estimator describes the result in three attributes. ``ridge_`` is the ridge penalty of
    the final fit. ``refinement_`` is a text that names the steps and the automatic settings.
    ``alternatives_`` maps each selected column to up to five columns that could replace it, as
    pairs of a column and the predicted relative increase in the objective (below 0.05).

    Parameters
    ----------
    exchange : {"auto", True, False, "cv"}, default "auto"
        Whether to exchange selected features for other features as long as the objective decreases.

        * "auto": exchange if the estimated cost is at most about a second and there are at least
          ten rows of the rarest class per coefficient (with numeric targets or in ranking, five
          rows). With fewer rows, annealing with linear responses (except with the Cox loss or
          in ranking) uses a ridge penalty (0.01, or 0.1 for the squared loss), which spreads the
          coefficients over correlated columns. With numeric targets and fewer than 1,000 rows,
          exchanges that lower the deviance by less than a threshold based on the extended BIC may
          be replaced by a fit with this ridge penalty;
        * True or False: always or never;
        * "cv": like "auto", but with linear responses and at most 1,000 rows, three-fold
          cross-validation chooses between exchanges and the ridge penalty during annealing.
    ridge : float or "auto", default "auto"
        Non-negative factor s of the penalty ``s * ||theta||^2`` on the coefficients of the scaled
        columns in the final fit. For the squared loss, "auto" minimises the generalised
        cross-validation score. For other losses, it minimises the approximate leave-one-out
        deviance. In ranking, one query is left out at a time, or one item if there are fewer than
        five queries. The penalty is fixed (0.00005, or 0.001 with few rows) for the Cox loss and
        for losses of differences between class scores. For very sparse matrices, "auto" penalises
        the coefficients of the unscaled columns. It adds no penalty if the estimator's ``prior``
        has a positive ``shrinkage``.
    search : {"auto", False}, default "auto"
        Whether the exchanges are followed by a longer search, which repeatedly removes and adds
        features. "auto" means only for the flipped logistic loss with two classes, linear responses
        and no prior or groups, if more than 1% of the training rows are misclassified and the cost
        is moderate.
    discriminant : bool, default False
        Whether to average the scores with those of linear discriminant analysis with shrunken
        covariance on the same features. This reduces the error if several classes have few rows
        each, but the probabilities are overconfident. It only affects classifiers with linear
        responses, without bounds, and with the logistic, multinomial or (for two classes) flipped
        logistic loss.
    """

    exchange: bool | str = checked("auto", check_choice, ("auto", "cv", True, False))
    ridge: float | str = checked("auto", check_real, 0.0, unless=("auto",))
    search: bool | str = checked("auto", check_choice, ("auto", False))
    discriminant: bool = checked(False, check_choice, (True, False))


@dataclass
class FitSettings:
    """Validated parameters of one fit.

    Attributes
    ----------
    size : int, float or "auto"
        Number of features to select; 0 denotes the best constant model.
    response : PiecewiseLinear or None
        Piecewise-linear response; None for linear responses.
    prior : Prior or None
        Prior on the coefficients; None for no penalty.
    standardize : bool
        Whether to standardise the columns.
    schedule : function
        Function that maps the number of features, the size and the number of steps to the number of
        features after each step.
    n_steps : int
        Number of annealing steps.
    named_schedule : bool
        Whether the schedule was given by name. Its speed and number of steps are then chosen
        automatically.
    learning_rate : float or None
        Step size; None means the default of the loss.
    momentum, auto_momentum : float or None, float
        Momentum, where None means the default, and the default momentum. For losses whose default
        step size exceeds the limit set by their curvature, None means 0.
    refinement : Refinement or None
        Refinement after annealing; None for no refinement.
    fit_intercept : bool
        Whether to fit an intercept.
    random_state : int, RandomState or None
        Random seed for the subsampling of data.
    n_threads : int
        Number of threads.
    title : str or None
        Title of the progress bar.
    undecided : bool
        Whether the size or the refinement has yet to be chosen, by a criterion or by
        cross-validation.
    few_rows : bool or None
        Whether the fit is treated as having few rows, as decided by cross-validation. If None, the
        rule of ``Refinement`` applies.
    annealing_ridge : float or None
        Ridge penalty during annealing if there are few rows; None means the default.
    names_alternatives : bool
        Whether to compute ``alternatives_``.
    exchange_along_path : bool
        Whether to exchange features at each size of a path if this takes at most about ten
        milliseconds.
    chooses_ridge : bool
        Whether the ridge penalty is chosen automatically.
    fit_prior, ridge : Prior or None, float
        Prior of the final fit, which includes the user's ridge penalty, and the total ridge
        penalty.
    """

    size: int | float | str
    response: PiecewiseLinear | None
    prior: Prior | None
    standardize: bool
    schedule: Counts
    n_steps: int
    named_schedule: bool
    learning_rate: float | None
    momentum: float | None
    auto_momentum: float
    refinement: Refinement | None
    fit_intercept: bool
    random_state: Any
    n_threads: int
    title: str | None
    undecided: bool = False
    few_rows: bool | None = None
    annealing_ridge: float | None = None
    names_alternatives: bool = True
    exchange_along_path: bool = False
    chooses_ridge: bool = field(init=False)
    fit_prior: Prior | None = field(init=False)
    ridge: float = field(init=False)

    def __post_init__(self) -> None:
        given = (
            None
            if self.refinement is None or _is_auto(self.refinement.ridge)
            else float(self.refinement.ridge)
        )
        self.fit_prior = with_ridge(self.prior, given or 0.0)
        self.ridge = 0.0 if self.fit_prior is None else self.fit_prior.shrinkage
        self.chooses_ridge = self.refinement is not None and given is None and not self.ridge

    @classmethod
    def of(
        cls,
        estimator: BaseEstimator,
        tasks: tuple[str, ...],
        mu: float,
        momentum: float,
        n_bins: int,
    ) -> Self:
        """Create settings from the parameters of an estimator, and validate them.

        Parameters
        ----------
        estimator : FSAEstimator
            Estimator with declared parameters. If it has no size, the size is "auto".
        tasks : tuple of str
            Tasks whose losses are valid.
        mu, momentum, n_bins
            Parameter mu of a schedule given by name, default momentum, and number of bins of a
            response given by name.

        Raises
        ------
        ValueError
            If a parameter is not valid. The message states its name, its value and the expected
            values.
        """
        p = vars(estimator)
        auto = {name: _is_auto(value) for name, value in p.items()}
        refinement = Refinement() if auto["refinement"] else p["refinement"]
        for name, kind in (
            ("constraints", Constraints),
            ("refinement", Refinement),
            ("prior", Prior),
        ):
            value = refinement if name == "refinement" else p[name]
            if not (value is None or isinstance(value, kind)):
                raise ValueError(
                    f"{name}={p[name]!r} is not valid; expected a {kind.__name__} or None"
                )
        check_declared(estimator)
        if refinement is not None:
            check_declared(refinement)
        if p["prior"] is not None:
            p["prior"].check()
        check_jobs(p["n_jobs"])
        check_random_state(p["random_state"])
        size = p.get("n_features_to_select", "auto")
        if not is_size(size) and size != "auto":
            expected = "an integer >= 1, a fraction in (0, 1] or 'auto'"
            raise ValueError(f"n_features_to_select={size!r} is not valid; expected {expected}")
        n_jobs = n_threads(p["n_jobs"])
        if not auto["loss"] and not isinstance(p["loss"], Loss):
            names = sorted({"auto", *(name for task in tasks for name in losses_for(task))})
            if p["loss"] not in names:
                raise ValueError(
                    f"loss={p['loss']!r} is not valid; expected one of {names} or a Loss object"
                )
        return cls(
            size=size,
            response=None
            if isinstance(p["response"], str) and p["response"] == "linear"
            else as_response(p["response"], n_bins),
            prior=p["prior"],
            standardize=p["scaling"] == "standardize",
            schedule=as_schedule(p["schedule"], mu),
            n_steps=p["schedule"].n_steps if isinstance(p["schedule"], Schedule) else N_STEPS,
            named_schedule=isinstance(p["schedule"], str),
            learning_rate=None if auto["learning_rate"] else p["learning_rate"],
            momentum=None if auto["momentum"] else p["momentum"],
            auto_momentum=momentum,
            refinement=refinement,
            fit_intercept=p.get("fit_intercept", False),
            random_state=p["random_state"],
            n_threads=n_jobs,
            title=type(estimator).__name__ if p["verbose"] else None,
            undecided=size == "auto" or (refinement is not None and refinement.exchange == "cv"),
        )


def with_ridge(prior: Prior | None, ridge: float) -> Prior | None:
    """Return the prior with ``ridge`` added to its shrinkage."""
    if not ridge:
        return prior
    prior = prior or Prior()
    return Prior(prior.shrinkage + ridge, prior.second_order, prior.total_variation, prior.huber)


def _is_auto(value: Any) -> bool:
    return isinstance(value, str) and value == "auto"
