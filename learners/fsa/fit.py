"""Solver for a fitting problem: design, annealing through the sizes, and refinement."""

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, nullcontext
from dataclasses import replace

import numpy as np

from ..common import check_finite, progress_bar, resolve_n_features
from ..compilation import n_values, problem_size
from ..designs import (
    Design,
    FirstReadDesign,
    NotFiniteError,
    SparseDesign,
    make_design,
    unscaled,
    width_of,
)
from ..model_selection.size import deviance, ebic
from ..objective import Prior, SquaredLoss
from ..solvers import (
    Annealed,
    SupportProblem,
    anneal,
    annealing_step,
    limited_step,
    refit,
    step_counts,
)
from ..sources import Moments, OutOfCoreMatrix, moments_of
from .policy import MAX_DAMPING_ROWS, Plan, condenses, decide, keeps_swaps
from .problem import FINITE, FitProblem, Solution
from .refinement import refine
from .settings import FitSettings, with_ridge

_STEPS_PER_SIZE = 5  # gradient steps between the sizes of a path (heuristic)

StepCallback = Callable[[int, Annealed], object]
Start = tuple[np.ndarray, np.ndarray, np.ndarray]  # columns, coefficients, intercept


def solve(
    problem: FitProblem,
    settings: FitSettings,
    *,
    start: Start | None = None,
    callbacks: Sequence[StepCallback] = (),
) -> Solution:
    """Select features and fit the model for the size given in the settings.

    Parameters
    ----------
    problem : FitProblem
        Problem to solve.
    settings : FitSettings
        Settings with a numeric ``size``.
    start : (kept, coef, intercept) or None
        Columns, coefficients and intercept with which annealing starts; ignored if the shapes do
        not match. None means coefficients of zero and the best constant as intercept.
    callbacks : sequence of functions
        Functions called as ``callback(step, state)`` after each annealing step.
    """
    size = size_of(problem, settings)
    (solution,) = solve_path(problem, settings, np.array([size]), start=start, callbacks=callbacks)
    if solution.plan is None or not solution.plan.checks_swaps:
        return solution
    (shrunken,) = solve_path(
        problem, replace(settings, few_rows=True, title=None), np.array([size]), start=start
    )
    if np.array_equal(solution.kept, shrunken.kept):
        return solution
    free, n_rows, width = problem.loss.unknown_dispersion, problem.n_rows, solution.design.width
    scores = solution.design.scores(solution.coef) + solution.intercept
    sizes = np.array([len(each.kept) for each in (solution, shrunken)]) * max(1, width - 1)
    charges = problem.loss.charges(
        sizes, problem.y, scores, problem.sample_weight, problem.n_copies
    )
    gain = deviance(shrunken.value + charges[1], n_rows, free) - deviance(
        solution.value + charges[0], n_rows, free
    )
    residual = 2.0 * shrunken.value  # targets have variance one
    return (
        solution
        if keeps_swaps(problem.facts, size, len(solution.kept) * width, gain, residual)
        else shrunken
    )


def solve_path(
    problem: FitProblem,
    settings: FitSettings,
    sizes: np.ndarray,
    *,
    start: Start | None = None,
    callbacks: Sequence[StepCallback] = (),
    early_stop: bool = False,
) -> list[Solution]:
    """Fit one model for each size in ``sizes`` (ascending) in one annealing run.

    Size 0 denotes the best constant model. If ``early_stop`` is set, the path ends at the first
    size above 2 b + 10, where b is the size with the lowest information criterion so far.
    """
    with solving(problem, settings):
        design = make_design(
            problem.X, problem.sample_weight, settings.response or "linear", settings.random_state
        )
        if not settings.standardize:
            design = unscaled(design, problem.X)
        elif isinstance(design, SparseDesign) and problem.facts.very_sparse:
            design.damp(min(problem.n_copies, MAX_DAMPING_ROWS))
        if problem.allowed is not None:
            design = design.keep(problem.allowed)
        with_constant, sizes = sizes[0] == 0, sizes[sizes > 0]
        # If only the larger sizes have too few rows, these sizes are annealed with a ridge in a
        # separate run. Callbacks follow the other run.
        few = anneals_with_ridge(problem, settings, sizes)
        states: dict[int, Annealed] = {}
        for run, shrinks in ((sizes[few], True), (sizes[~few], False)):
            if len(run):
                plan = decide(problem.facts, settings, float(run[0]) * problem.columns_per_unit)
                follow = not shrinks or bool(few.all())
                states |= _anneal(
                    design, problem, settings, plan, run, *((start, callbacks) if follow else ())
                )
        # after annealing, whose first pass over the data also computes the moments
        solutions = [best_constant(problem, settings, design)] if with_constant else []
        previous = None
        for k in sorted(states):
            if early_stop and solutions:
                best = min(solutions, key=lambda s: information_criterion(problem, s))
                if k > 10 + 2 * best.size:
                    break
            solution = Solution.of(states[k], k, settings.ridge)
            if settings.refinement is None:  # the paper's algorithm
                solution.value, _ = problem.loss.value_and_gradient(
                    problem.y,
                    solution.design.scores(solution.coef) + solution.intercept,
                    problem.sample_weight,
                )
            else:
                solution = refine(
                    design,
                    states[k],
                    problem,
                    settings,
                    solution,
                    along_path=len(states) > 1,
                    previous=previous,
                )
            previous = solution
            solutions.append(solution)
    return solutions


def information_criterion(problem: FitProblem, solution: Solution) -> float:
    """Return the extended Bayesian information criterion of a solution."""
    # Centring removes one knot, and multiclass losses remove one class
    k, width, q = solution.coef.shape
    degrees = k * max(1, width - 1) * (q - problem.loss.redundant_outputs if q > 1 else q)
    return ebic(
        solution.value,
        problem.n_rows,
        solution.size,
        problem.n_units,
        degrees,
        unknown_dispersion=problem.loss.unknown_dispersion,
    )


def anneals_with_ridge(problem: FitProblem, settings: FitSettings, sizes: np.ndarray) -> np.ndarray:
    """Return, for each size, whether annealing uses a ridge penalty."""
    columns = sizes * problem.columns_per_unit
    return np.array(
        [decide(problem.facts, settings, k).annealing_ridge > 0.0 for k in columns.tolist()], bool
    )


@contextmanager
def solving(problem: FitProblem, settings: FitSettings) -> Iterator[None]:
    """Context manager that limits the threads of a fit and locates non-finite values in X."""
    try:
        width = 1 if settings.response is None else width_of(settings.response)
        with problem_size(n_values(problem.X) * width, settings.n_threads):
            yield
    except NotFiniteError as error:
        if not isinstance(problem.X, OutOfCoreMatrix):
            check_finite(problem.X, problem.names, FINITE)  # raises an error with the position
        raise ValueError(f"{error} (response='piecewise' accepts NaN)") from None


def size_of(problem: FitProblem, settings: FitSettings) -> int:
    """Return the number of features (or groups) to select.

    Raises
    ------
    ValueError
        If the number is smaller than the number of included features.
    """
    what, k = "features" if problem.groups is None else "groups", settings.size
    if problem.allowed is not None:
        what += " that may be selected and vary"
    if not (isinstance(k, int) and k <= problem.n_units):  # a fraction, or too large
        k = resolve_n_features(k, problem.n_units, what)  # type: ignore[arg-type]
    if 0 < k < problem.n_included:
        raise ValueError(
            f"include names {problem.n_included} {what}, more than n_features_to_select={k}"
        )
    return k


def best_constant(problem: FitProblem, settings: FitSettings, design: Design) -> Solution:
    """Return the solution without features, which predicts the best constant."""
    loss, weight, q = problem.loss, problem.sample_weight, problem.y.shape[1]
    intercept = np.zeros(q)
    if settings.fit_intercept:
        intercept = loss.best_constant(problem.y, weight)
        if loss.has_curvature:  # the constant has a closed form for some losses only
            support = SupportProblem(problem.y, loss, weight)
            intercept = refit(
                support, np.zeros((design.n_samples, 0)), np.zeros((0, q)), intercept
            ).intercept
    value = loss.value(problem.y, np.broadcast_to(intercept, problem.y.shape), weight)
    nothing, coef = np.zeros(0, int), np.zeros((0, design.width, q))
    return Solution(
        nothing,
        coef,
        intercept,
        design.keep(nothing),
        0,
        value,
        np.array([value]),
        done=("the best constant",),
    )


def _start(
    design: Design, problem: FitProblem, start: Start | None
) -> tuple[np.ndarray | None, np.ndarray | None]:
    """Return initial values of all coefficients and of the intercept."""
    shape = design.n_features, design.width, problem.y.shape[1]
    if start is None or start[1].shape[1:] != shape[1:]:
        return None, None
    _, position, before = np.intersect1d(
        problem.columns(np.arange(shape[0])), start[0], return_indices=True
    )
    coef = np.zeros(shape)
    coef[position] = start[1][before]
    return coef, start[2]


def _anneal(
    design: Design,
    problem: FitProblem,
    settings: FitSettings,
    plan: Plan,
    sizes: np.ndarray,
    start: Start | None = None,
    callbacks: Sequence[StepCallback] = (),
) -> dict[int, Annealed]:
    """Return the states of one annealing run at ascending ``sizes``, planned for the first size."""
    weight, prior = problem.sample_weight, with_ridge(settings.prior, plan.annealing_ridge)
    loss = problem.loss.surrogate(problem.y, weight)
    rate = (
        settings.learning_rate
        or (loss.default_step_size or 0.0) * plan.step_share
        or annealing_step(loss, weight, bound=loss.curvature_bound(problem.y))
    )
    if (
        prior is not None
        and prior.second_order
        and design.n_knots > 2
        and not settings.learning_rate
    ):
        # Without this limit, steps would diverge, since the rate ignores the curvature of the prior
        smoothness = Prior(second_order=prior.second_order)
        bound = float(np.linalg.norm(smoothness.curvature(design.n_knots, design.width), 2))
        rate = limited_step(rate, 1.0 / bound)
    momentum = settings.momentum
    if momentum is None:  # momentum is unstable if steps exceed the curvature limit
        momentum = settings.auto_momentum if loss.default_step_size is None else 0.0
    coef, intercept = _start(design, problem, start)
    size_after: dict[int, int] = {}
    states: dict[int, Annealed] = {}

    def counts_of(design: Design) -> np.ndarray:
        n_units = problem.n_units
        if problem.groups is None:  # exclude columns that are constant up to rounding
            n_units = max(int(np.count_nonzero(design.inv)), int(sizes[-1]))
        counts = _counts(n_units, settings, plan, sizes)
        last = len(counts) - 1 - np.argmax(counts[::-1] == sizes[:, None], axis=1)
        size_after.update(zip(last.tolist(), sizes.tolist(), strict=True))
        return counts

    def after_step(step: int, state: Annealed) -> None:
        if step in size_after:  # copy: the loop reuses its arrays
            states[size_after[step]] = replace(
                state,
                coef=state.coef.copy(),
                intercept=state.intercept.copy(),
                dropped_at=state.dropped_at.copy(),
                loss_curve=list(state.loss_curve),
            )
        if shown is not None:
            shown.update()
        for callback in callbacks:
            callback(step, state)

    bar = (
        nullcontext()
        if settings.title is None
        else progress_bar(
            title=settings.title,
            total=len(_counts(problem.n_units, settings, plan, sizes)),
            shown=True,
        )
    )
    with bar as shown:
        anneal(
            design,
            problem.y,
            loss,
            counts_of if isinstance(design, FirstReadDesign) else counts_of(design),
            sample_weight=weight,
            learning_rate=rate,
            prior=prior,
            momentum=momentum,
            fit_intercept=settings.fit_intercept,
            groups=problem.groups,
            fixed=problem.included,
            project=problem.project if problem.bounded else None,
            coef=coef,
            intercept=intercept,
            callback=after_step,
        )
    return states


def _counts(n_units: int, settings: FitSettings, plan: Plan, sizes: np.ndarray) -> np.ndarray:
    """Return the number of features after each step.

    The schedule leads to the largest size, and the other sizes follow. With a refinement, the
    schedule is cut off at the largest size, because a refit is better than further gradient steps.
    """
    counts = step_counts(plan.schedule, n_units, int(sizes[-1]), plan.n_steps)
    if settings.refinement is not None:
        counts = counts[: int(np.argmax(counts == sizes[-1])) + 1]
    return np.concatenate([counts, np.repeat(sizes[-2::-1], _STEPS_PER_SIZE)])


# -- moments instead of rows ----------------------------------------------------------------------


def condensed(problem: FitProblem, settings: FitSettings) -> FitProblem:
    """Return an equivalent problem with far fewer rows if that saves time.

    Otherwise, the same problem is returned.
    """
    if not (_by_moments(problem, settings) and condenses(problem.facts)):
        return problem
    moments = problem.moments = problem.moments or moments_of(problem.X, problem.y, problem.weight)
    # the fit reports constant columns and non-finite numbers
    return _on(moments, problem) if moments.is_regular else problem


def _by_moments(problem: FitProblem, settings: FitSettings) -> bool:
    """Return whether the moments of the rows suffice for the fit."""
    return isinstance(problem.loss, SquaredLoss) and settings.response is None


def training_problems(
    problem: FitProblem, settings: FitSettings, splits: Sequence[tuple[np.ndarray, np.ndarray]]
) -> Iterator[FitProblem]:
    """Return the problem on the training rows of each split.

    If the fits require only the moments of the columns, these are summed over folds, so that the
    rows are read only once for all splits and for a later fit on all rows.
    """
    tests = [test for _, test in splits]
    everything = np.sort(np.concatenate(tests))
    folds = all(
        np.array_equal(np.sort(np.concatenate(split)), everything) for split in splits
    ) and (_by_moments(problem, settings) and condenses(problem.facts))
    parts = [
        moments_of(problem.X[test], problem.y[test], problem.weight[test])
        for test in (tests if folds else ())
    ]
    regular = bool(parts) and all(part.is_regular for part in parts)
    problem.moments = sum(parts[1:], parts[0]) if regular else None
    for i, (train, _) in enumerate(splits):
        others = parts[:i] + parts[i + 1 :]
        yield _on(sum(others[1:], others[0]), problem) if regular else problem.rows(train)


def _on(moments: Moments, problem: FitProblem) -> FitProblem:
    """Return the problem on a few rows that have the given moments."""
    m, rows = problem.X.shape[1], moments.equivalent_rows()
    return with_class_counts(
        replace(
            problem,
            X=rows[:, :m],
            y=rows[:, m:],
            weight=np.full(len(rows), moments.n_rows / len(rows)),
        )
    )


def with_class_counts(problem: FitProblem) -> FitProblem:
    """Update ``facts.n_rarest`` of a problem with targets encoded as -1 and +1."""
    if problem.classification:
        positive = 0.5 * (problem.weight @ (1.0 + problem.y))
        problem.facts = replace(
            problem.facts, n_rarest=float(min(positive.min(), problem.n_rows - positive.max()))
        )
    return problem
