"""Decisions about a fit: a plan based on facts about the problem and on the user's settings.

Solvers follow the plan. The table lists every rule that has a numeric threshold, and the source of
the number: a benchmark script, a reference, or "heuristic" where the exact value hardly matters.

============================== =============================================== ==============
decision                       condition                                       source
============================== =============================================== ==============
coefficients that rows support rows of the rarest class / ``ROWS_PER_...``     Peduzzi (1996)
rows are few                   they support fewer coefficients than requested  as above
very sparse columns            share of stored values <= ``MAX_STORED``        heuristic
annealing with a ridge         rows are few, the user gave no ridge            few_rows.py
slow schedule                  several classes and ``MIN_ROWS_SLOW`` rows      many_classes.py
shorter steps                  very sparse columns, one output                 sparse_words.py
exchanges                      rows are not few, cost <= ``MAX_SWAP_COST``     heuristic
exchanges are checked          numbers, ``MAX_CHECKED`` coefficients supported few_rows.py
longer search                  misclassified training rows > ``MIN_WRONG``     heuristic
Newton's method                cost of a step <= ``MAX_NEWTON_COST``           heuristic
held-out rows choose the size  ``FEW_COEFFICIENTS`` supported                  few_rows.py
============================== =============================================== ==============

References
----------
P. Peduzzi et al., "A simulation study of the number of events per variable in logistic regression
analysis", Journal of Clinical Epidemiology 49 (1996).
"""

from dataclasses import dataclass, replace
from math import isfinite
from typing import Literal

from ..model_selection.size import support_price
from ..objective.losses import Loss
from ..solvers import POOL_FACTOR, Counts, Schedule
from .settings import FitSettings

# Rows required per coefficient: rows of the rarest class, or rows with numeric targets (Peduzzi)
ROWS_PER_COEFFICIENT, ROWS_PER_COEFFICIENT_OF_NUMBERS = 10.0, 5.0
MAX_STORED = 0.1  # share of stored values up to which columns resemble word counts (heuristic)
# Ridge of annealing with few rows, for non-quadratic and for quadratic losses. Source: repeated
# cross-validation on eleven gene and face tables and four regression tables
# (benchmarks/few_rows.py). Values from 0.003 to 0.03 differ little; 0.1 and 0.3 are worse.
SMALL_SAMPLE_RIDGE, SMALL_SAMPLE_RIDGE_SQUARED = 0.01, 0.1
# Slow annealing for several classes. Source: the data sets "choose" of benchmarks/many_classes.py
# and samples of usps. It has no benefit with fewer rows, and 500 steps give the same error as 200.
# Bounds exclude exchanges and therefore get more steps (heuristic).
SLOW_MU, SLOW_STEPS, SLOW_STEPS_BOUNDED, MIN_ROWS_SLOW = 20.0, 200, 500, 400
# Factor for the loss's default step with very sparse columns, since tens of thousands of nearly
# uncorrelated columns overshoot together. Source: the data sets "choose" of
# benchmarks/sparse_words.py.
SPARSE_STEP = 1.0 / 30.0
# The variance of a very sparse column includes one additional non-zero row per this many rows, so
# that rare columns do not dominate. Source: the same data sets; 500 to 2,000 differ little.
MAX_DAMPING_ROWS = 1000.0
# Initial ridge of the search for very sparse columns: the most frequent choice on the same data
# sets, where a search over all ridges makes the same choices.
SPARSE_RIDGE = 3e-3
# Maximum multiplications per round of exchanges (about a second), per size of a path (about ten
# milliseconds) and per step of Newton's method (heuristic)
MAX_SWAP_COST, MAX_PATH_SWAP_COST, MAX_NEWTON_COST = 2e9, 2e7, 2e8
# Number of supported coefficients from which exchanges for numeric targets are not checked (1,000
# rows) (heuristic)
MAX_CHECKED = 200.0
# A checked exchange must gain this factor times sqrt(columns / rows) times the extended criterion's
# penalty for a support. On pure noise the gain is usually smaller (benchmarks/few_rows.py).
SWAP_GAIN_FACTOR = 2.6
# A signal is weak if a shrunken fit leaves more than this share of the targets' variance
# unexplained (heuristic). With a strong signal, exchanges are checked only if there are fewer than
# ten rows per coefficient, and fewer than 150 rows or 7.5 rows per coefficient.
WEAK_SIGNAL_RESIDUAL, SMALL_SAMPLE = 0.25, 30.0
MIN_WRONG = 0.01  # share of misclassified training rows above which labels look noisy (heuristic)
# Number of supported coefficients below which held-out rows choose the size, for classes and for
# numeric targets. On gene tables the criterion selects one to six features, with twice the error of
# twenty features. It is right on the simulated tables of Barbu et al. (2017), which support 14 and
# 60 or more coefficients.
FEW_COEFFICIENTS, FEW_COEFFICIENTS_OF_NUMBERS = 10.0, 30.0
# A fit with the squared loss uses moments for up to this many columns and from this many rows per
# column. It then takes a third to a tenth of the time (benchmarks/batches.py), and the sums need
# little memory compared with X.
MAX_CONDENSED, ROWS_PER_COLUMN = 2000, 10
MAX_ROWS_HELD_OUT = 1000  # maximum rows for choosing exchanges by folds


@dataclass(frozen=True)
class Facts:
    """Properties of a problem that determine the :class:`Plan` for a fit.

    Attributes
    ----------
    loss : Loss
        Loss function.
    classification : bool
        Whether the targets are classes.
    n_samples, n_features, n_units, n_outputs : int
        Number of rows, number of selectable columns, number of groups (or, if there are none, of
        selectable columns), and number of outputs.
    n_rows : float
        Sum of the row weights.
    n_rarest : float
        Number of rows in the rarest class or, for numeric targets, number of rows that carry
        information about the scores.
    sparse : bool
        Whether X is a sparse matrix.
    share_stored, stored_per_row : float
        Fraction of stored values in X, and mean number of stored values per row.
    bounded, grouped, out_of_core : bool
        Whether coefficients are bounded or responses are monotone, whether columns are grouped, and
        whether X is out of core.
    """

    loss: Loss
    classification: bool
    n_samples: int
    n_features: int
    n_units: int
    n_outputs: int
    n_rows: float
    n_rarest: float
    sparse: bool = False
    share_stored: float = 1.0
    stored_per_row: float = 0.0
    bounded: bool = False
    grouped: bool = False
    out_of_core: bool = False

    @property
    def supported_coefficients(self) -> float:
        """Number of coefficients that can be estimated reliably from the rows.

        With more coefficients, a lower training loss is only weak evidence of a better model.
        """
        rows = ROWS_PER_COEFFICIENT if self.classification else ROWS_PER_COEFFICIENT_OF_NUMBERS
        return self.n_rarest / rows

    @property
    def very_sparse(self) -> bool:
        """Whether the columns are mostly zero, as with word counts."""
        return self.sparse and self.share_stored <= MAX_STORED


@dataclass(frozen=True)
class Plan:
    """Plan for a fit with a given number of features.

    Attributes
    ----------
    schedule, n_steps : function, int
        Annealing schedule, and its number of steps.
    step_share : float
        Factor for the default step size of the loss.
    few_rows : bool
        Whether there are too few rows to estimate all coefficients of the model reliably.
    annealing_ridge : float
        Ridge penalty during annealing; 0 means no penalty.
    refinement : {"none", "gradient", "newton", "exchange"}
        Refinement method.
    newton : bool
        Whether Newton steps on all columns of the support are affordable.
    keeps_sparse : bool
        Whether Newton's method uses the sparse columns without converting them to a dense matrix.
    raw_ridge : bool
        Whether an automatic ridge penalty applies to the coefficients of the raw columns, so that
        columns with few non-zeros (such as rare words) do not dominate.
    search : bool
        Whether exchanges are followed by a longer search if the labels appear to be noisy.
    checks_swaps : bool
        Whether to compare the fit with exchanges, which may overfit, with a fit that uses shrinkage
        instead.
    alternatives : bool
        Whether to list alternatives to the selected features.
    discriminant : bool
        Whether to average the scores with those of linear discriminant analysis.
    size_by : {"user", "criterion", "folds"}
        Method that chooses the size.
    treatment_by_folds : bool
        Whether cross-validation chooses between exchanges and shrinkage.
    reasons : tuple of str
        Explanations of the decisions that differ from the default.
    """

    schedule: Counts
    n_steps: int
    step_share: float
    few_rows: bool
    annealing_ridge: float
    refinement: Literal["none", "gradient", "newton", "exchange"]
    newton: bool
    keeps_sparse: bool
    raw_ridge: bool
    search: bool
    checks_swaps: bool
    alternatives: bool
    discriminant: bool
    size_by: Literal["user", "criterion", "folds"]
    treatment_by_folds: bool
    reasons: tuple[str, ...] = ()


def decide(
    facts: Facts, settings: FitSettings, n_columns: float = 0.0, *, along_path: bool = False
) -> Plan:
    """Make the plan for a fit.

    Parameters
    ----------
    facts : Facts
        Properties of the problem.
    settings : FitSettings
        Settings of the fit.
    n_columns : float, default 0.0
        Number of columns of the model: the number of selected features times the number of columns
        per feature.
    along_path : bool, default False
        Whether the model is one of many along a path. Passes over all columns are then avoided, and
        features are exchanged only if the settings require it.

    Returns
    -------
    Plan
        Plan for the fit.
    """
    loss, given = facts.loss, settings.refinement
    supported, linear = facts.supported_coefficients, settings.response is None
    schedule, n_steps = _schedule(facts, settings)
    few = supported < n_columns if settings.few_rows is None else settings.few_rows
    keeps_sparse = (
        loss.pointwise
        and facts.n_outputs == 1
        and facts.very_sparse
        and settings.fit_intercept
        and not facts.bounded
    )
    refinement = _refinement(facts, settings, n_columns, few, keeps_sparse, along_path)
    newton = _newton_cost(facts, n_columns) <= MAX_NEWTON_COST

    # With few rows, the best subset on the training rows is unreliable. A ridge makes correlated
    # columns share their weight, so that their common signal is selected. With enough rows, a ridge
    # would hide the right column among them, and exchanges work better.
    annealing_ridge = 0.0
    shrinks = few and settings.chooses_ridge and given is not None and given.exchange is not True
    if shrinks and linear and loss.pointwise:
        default = SMALL_SAMPLE_RIDGE_SQUARED if loss.is_quadratic else SMALL_SAMPLE_RIDGE
        annealing_ridge = default if settings.annealing_ridge is None else settings.annealing_ridge

    # The longer search supports two classes, a loss that allows for flipped labels, and linear
    # responses without groups
    plain = settings.fit_prior is None and settings.fit_intercept and linear and not facts.grouped
    search = (
        given is not None and given.search == "auto" and loss.flip > 0.0 and facts.n_outputs == 1
    )
    exchanges = refinement == "exchange"
    numbers = not facts.classification and loss.pointwise and settings.few_rows is None
    may_overfit = (
        numbers and settings.chooses_ridge and given is not None and given.exchange is not True
    )

    can_hold_out = loss.pointwise and not facts.out_of_core and linear
    few_coefficients = FEW_COEFFICIENTS if facts.classification else FEW_COEFFICIENTS_OF_NUMBERS
    size_by: Literal["user", "criterion", "folds"] = "user"
    if settings.size == "auto":
        size_by = "folds" if can_hold_out and supported < few_coefficients else "criterion"

    reasons: tuple[str, ...] = ()
    if refinement == "newton" and few and settings.few_rows is None:
        reasons = (f"{facts.n_rows:g} rows support {supported:.3g} coefficients",)
    return Plan(
        schedule=schedule,
        n_steps=n_steps,
        step_share=SPARSE_STEP if facts.very_sparse and facts.n_outputs == 1 else 1.0,
        few_rows=few,
        annealing_ridge=annealing_ridge,
        refinement=refinement,
        newton=newton,
        keeps_sparse=keeps_sparse,
        raw_ridge=settings.standardize and facts.very_sparse and settings.fit_prior is None,
        search=search and plain and exchanges and not along_path,
        checks_swaps=exchanges and may_overfit and supported < MAX_CHECKED,
        alternatives=settings.names_alternatives
        and not along_path
        and refinement != "none"
        and loss.has_curvature
        and newton
        and not facts.out_of_core,
        discriminant=given is not None
        and given.discriminant
        and loss.log_odds
        and linear
        and not facts.bounded,
        size_by=size_by,
        treatment_by_folds=can_hold_out and facts.n_rows <= MAX_ROWS_HELD_OUT,
        reasons=reasons,
    )


def _schedule(facts: Facts, settings: FitSettings) -> tuple[Counts, int]:
    """Choose the schedule and the number of steps.

    A named schedule is slower for several classes with enough rows, and for bounds, which exclude
    exchanges. The multinomial gradient shrinks with the number of classes, so the order of the
    columns is not yet stable after a few steps.
    """
    schedule, n_steps = settings.schedule, settings.n_steps
    several = facts.classification and facts.n_outputs > 1 and facts.n_rows >= MIN_ROWS_SLOW
    if isinstance(schedule, Schedule) and settings.named_schedule and (several or facts.bounded):
        return Schedule(schedule.kind, SLOW_MU), SLOW_STEPS_BOUNDED if facts.bounded else SLOW_STEPS
    return schedule, n_steps


def _refinement(
    facts: Facts,
    settings: FitSettings,
    n_columns: float,
    few_rows: bool,
    keeps_sparse: bool,
    along_path: bool,
) -> Literal["none", "gradient", "newton", "exchange"]:
    """Choose the refinement method for one size by the first matching row of the table.

    ============ ======================================== ==========
    refinement   condition                                method
    ============ ======================================== ==========
    None                                                  "none"
    any          the loss has no curvature                "gradient"; with bounds "none"
    any          coefficients have bounds or directions   "newton"
    exchange     True                                     "exchange"
    exchange     "auto" or "cv", affordable, enough rows  "exchange"
    any          Newton's method is affordable            "newton"
    any                                                   "gradient"
    ============ ======================================== ==========
    """
    given = settings.refinement
    if given is None or (facts.bounded and not facts.loss.has_curvature):
        return "none"
    if not facts.loss.has_curvature:
        return "gradient"
    if facts.bounded:
        return "newton"
    limit = MAX_SWAP_COST
    if along_path:
        limit = MAX_PATH_SWAP_COST if settings.exchange_along_path else -1.0
    affordable = POOL_FACTOR * _newton_cost(facts, n_columns) <= limit
    if given.exchange is True or (given.exchange is not False and affordable and not few_rows):
        return "exchange"
    cost = _newton_cost(facts, n_columns, keeps_sparse)
    # No fixed step size is safe if the curvature is unbounded
    return (
        "newton"
        if cost <= MAX_NEWTON_COST or not isfinite(facts.loss.max_curvature)
        else "gradient"
    )


def _newton_cost(facts: Facts, n_columns: float, sparse: bool = False) -> float:
    """Estimate the number of multiplications in a Newton step (the dominant ones if sparse)."""
    if sparse:
        return facts.n_samples * min(n_columns, facts.stored_per_row) ** 2 + n_columns**3 / 10.0
    return (facts.n_samples + float(n_columns)) * float(n_columns) ** 2 * facts.n_outputs


def condenses(facts: Facts) -> bool:
    """Return whether a fit with the squared loss uses the columns' moments instead of the rows.

    Both methods give the same model, up to rounding.
    """
    return (
        not (facts.sparse or facts.out_of_core)
        and facts.n_features <= MAX_CONDENSED
        and facts.n_samples >= ROWS_PER_COLUMN * facts.n_features
        and facts.n_rows >= facts.n_features
    )


def searches(facts: Facts, plan: Plan, n_kept: int, share_wrong: float) -> bool:
    """Return whether a longer search follows the exchanges.

    ``share_wrong`` is the fraction of training rows that are still misclassified.
    """
    affordable = float(facts.n_samples) * facts.n_features * n_kept <= MAX_SWAP_COST
    return plan.search and 1 < n_kept < facts.n_features and affordable and share_wrong > MIN_WRONG


def keeps_swaps(facts: Facts, size: int, n_columns: int, gain: float, residual: float) -> bool:
    """Return whether a fit with exchanges is sufficiently better than a fit with shrinkage alone.

    Parameters
    ----------
    facts : Facts
        Properties of the problem.
    size, n_columns : int
        Number of selected features or groups, and number of columns of the model.
    gain : float
        Decrease in deviance due to the exchanges.
    residual : float
        Fraction of the target variance that the fit with shrinkage does not explain.
    """
    price = support_price(size, facts.n_units)
    if facts.loss.is_quadratic and residual > WEAK_SIGNAL_RESIDUAL:
        price *= SWAP_GAIN_FACTOR * (n_columns / facts.n_rows) ** 0.5
    elif facts.supported_coefficients >= min(max(SMALL_SAMPLE, 1.5 * n_columns), 2.0 * n_columns):
        return True
    return gain > price


def treatments(settings: FitSettings) -> tuple[FitSettings, ...]:
    """Return the two settings that cross-validation compares: exchanges and shrinkage.

    Each setting fixes ``few_rows``, so that the folds and the fit on all rows use the same method.
    If the user has fixed the method, only the given settings are returned.
    """
    given = settings.refinement
    if not settings.chooses_ridge or given is None or isinstance(given.exchange, bool):
        return (settings,)
    return replace(settings, few_rows=False), replace(settings, few_rows=True)
