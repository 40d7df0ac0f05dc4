"""Validated parameters of an FSA estimator."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Self

from sklearn.utils import check_random_state

from ..common.validation import check_choice, check_jobs, check_real, is_size, n_threads
from ..designs.responses import PiecewiseLinear, as_response
from ..objective import Loss, Prior, losses_for
from ..sklearn_bases import BaseEstimator
from ..solvers.schedules import N_STEPS, Counts, Schedule, as_schedule


class Constraints(BaseEstimator):
    """Constraints on a selection.

    Parameters
    ----------
    groups : array of shape (n_features,) or None, default None
        Label of each column's group, of any type. The columns of a group are selected or dropped
        together, according to the root mean square of their coefficients.
    include, exclude : array of int, str or bool, or None, default None
        Required columns, and columns that cannot be selected, given by index, by name, or as a
        mask. Included columns count towards k.
    bounds : pair, dict or array of shape (n_features, 2), or None, default None
        Lower and upper bounds on the coefficients in units of the raw columns: one pair for all
        columns, ``{column: pair}`` for some, or a pair for each. None in a pair means no bound, and
        the interval must contain 0. ``(0, None)`` means non-negative. Bounds require one output and
        linear responses; features are then not exchanged.
    monotone : dict or array of shape (n_features,), or None, default None
        Columns in which the scores are non-decreasing (+1) or non-increasing (-1): ``{column:
        direction}``, or one of +1, 0, -1 for each column. The coefficient has this sign; a
        piecewise-linear response is monotone, except for the response to NaN. With two classes the
        score is that of the second class. Monotone columns require one output; features are then
        not exchanged.

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


class Refinement(BaseEstimator):
    """Steps after annealing: feature exchanges, a longer search, and the final ridge fit.

    Parameters
    ----------
    exchange : {"auto", True, False, "cv"}, default "auto"
        Whether to exchange selected features for others as long as the objective decreases:

        * "auto": yes if it takes at most about a second and there are enough rows, that is, ten
          rows of the rarest class, or five rows with numeric targets, per coefficient. With fewer
          than 1,000 numeric targets the gain from exchanges must also exceed a multiple of the
          extended Bayesian information criterion's penalty for a support: 2.6 sqrt(k / rows) if the
          signal is weak; 1 if it is strong and there are fewer than 150 rows and fewer than ten per
          coefficient. With fewer rows, annealing uses a ridge instead (0.01, or 0.1 for the squared
          loss), which selects the common signal of correlated columns;
        * True, False: always, never;
        * "cv": as "auto", but with up to 1,000 rows three-fold cross-validation chooses between
          exchanges and shrinkage.
    ridge : float or "auto", default "auto"
        Factor s >= 0 of the penalty ``s * ||theta||^2`` of the final fit, on standardised
        coefficients. "auto" minimises generalised cross-validation for the squared loss, and the
        approximate leave-one-out deviance of rows (of queries in ranking) for the other losses. A
        prior with shrinkage replaces "auto".
    search : {"auto", False}, default "auto"
        Whether to search longer with two classes and noisy labels, removing and adding features in
        rounds.
    discriminant : bool, default False
        Whether to average the scores with those of linear discriminant analysis on the same
        features, with a shrunk covariance. This lowers the error if several classes have few rows
        each, but the probabilities are overconfident. It requires a classifier with a logistic loss
        and linear responses, and otherwise has no effect.
    """

    def __init__(
        self,
        exchange: bool | str = "auto",
        ridge: float | str = "auto",
        search: bool | str = "auto",
        discriminant: bool = False,
    ):
        self.exchange = exchange
        self.ridge = ridge
        self.search = search
        self.discriminant = discriminant

    def check(self) -> None:
        """Check the parameters.

        Raises
        ------
        ValueError
            If a parameter is not valid; the message names it, its value and what was expected.
        """
        check_choice("exchange", self.exchange, ("auto", "cv", True, False))
        check_choice("search", self.search, ("auto", False))
        check_choice("discriminant", self.discriminant, (True, False))
        if not _is_auto(self.ridge):
            check_real("ridge", self.ridge, 0.0)


@dataclass
class FitSettings:
    """Parameters of one fit, which the estimators describe.

    Attributes
    ----------
    size : int, float or "auto"
        Number of features to select; 0 is the best constant.
    response : PiecewiseLinear or None
        Piecewise-linear response; None for a linear one.
    prior : Prior or None
    standardize : bool
    schedule : function
        Function of the number of features, the number to keep and the number of steps.
    n_steps : int
    named_schedule : bool
        Whether the schedule was given by name, so that its speed and number of steps are automatic.
    learning_rate : float or None
        Step size; None for the default of the loss.
    momentum, auto_momentum : float or None, float
        Momentum. If the first is None, the second applies, or 0 for a loss whose steps are longer
        than its curvature allows.
    refinement : Refinement or None
        Steps after annealing; None for the paper's algorithm.
    fit_intercept : bool
    random_state : int, RandomState or None
    n_threads : int
    title : str or None
        Title of a progress bar.
    undecided : bool
        Whether a criterion or cross-validation chooses the size or its refinement.
    few_rows : bool or None
        Whether rows count as few, according to cross-validation; None applies the rule of
        ``Refinement``.
    annealing_ridge : float or None
        Ridge of annealing with few rows; None for the default.
    names_alternatives : bool
        Whether to compute ``alternatives_``.
    exchange_along_path : bool
        Whether features are exchanged at each size of a path, if that takes about ten milliseconds.
    chooses_ridge : bool
        Whether the ridge of the fit is automatic.
    fit_prior, ridge : Prior or None, float
        Prior of the final fit, including the user's ridge, and the total ridge.
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
        parameters: Mapping[str, Any],
        tasks: tuple[str, ...],
        mu: float,
        momentum: float,
        n_bins: int,
        title: str,
    ) -> Self:
        """Check the parameters of an estimator.

        Parameters
        ----------
        parameters : mapping
            Arguments of the constructor; a missing size means "auto".
        tasks : tuple of str
            Tasks whose losses are allowed.
        mu, momentum, n_bins
            Values used for "auto" and for named settings.
        title : str
            Title of the progress bar of a verbose fit.

        Raises
        ------
        ValueError
            If a parameter is not valid; the message names it, its value and what was expected.
        """
        p, auto = parameters, {name: _is_auto(value) for name, value in parameters.items()}
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
        if refinement is not None:
            refinement.check()
        if p["prior"] is not None:
            p["prior"].check()
        check_choice("scaling", p["scaling"], ("standardize", "none"))
        if not auto["learning_rate"]:
            check_real("learning_rate", p["learning_rate"], 0.0, above=True)
        if not auto["momentum"]:
            check_real("momentum", p["momentum"], 0.0, 1.0, below=True)
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
            title=title if p["verbose"] else None,
            undecided=size == "auto" or (refinement is not None and refinement.exchange == "cv"),
        )


def with_ridge(prior: Prior | None, ridge: float) -> Prior | None:
    """Return a prior with ``ridge`` added to its shrinkage."""
    if not ridge:
        return prior
    prior = prior or Prior()
    return Prior(prior.shrinkage + ridge, prior.second_order, prior.total_variation, prior.huber)


def _is_auto(value: Any) -> bool:
    return isinstance(value, str) and value == "auto"
