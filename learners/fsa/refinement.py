"""Refinement after annealing: feature exchanges and a fit of the selected features."""

from dataclasses import replace

import numpy as np
import scipy.sparse as sp

from ..designs.base import Design
from ..model_selection.ridge import CHOSEN_OPTIMISM, LeftOut, choose_ridge, raw_units
from ..objective.priors import Prior
from ..solvers import (
    SHRINKAGE,
    Annealed,
    SupportProblem,
    alternatives,
    bounded_fit,
    exchange,
    refit,
    search,
    shrunken_discriminant,
)
from ..solvers.accelerated_gradient import accelerated_gradient
from .policy import SPARSE_RIDGE, Plan, decide, searches
from .problem import FitProblem, Solution
from .settings import FitSettings


def refine(
    design: Design,
    state: Annealed,
    problem: FitProblem,
    settings: FitSettings,
    solution: Solution,
    *,
    along_path: bool = False,
    previous: Solution | None = None,
) -> Solution:
    """Refine the solution for one size.

    Parameters
    ----------
    design : Design
        Design with all features.
    state : Annealed
        Final state of annealing.
    problem : FitProblem
        Problem to solve.
    settings : FitSettings
        Settings of the fit.
    solution : Solution
        Solution at ``state``; it is changed in place.
    along_path : bool, default False
        Whether the model is one of many along a path. Passes over all columns are then avoided, and
        features are exchanged only if the settings require it.
    previous : Solution or None, default None
        Solution for the previous size on the path; its ridge is the initial guess for the new
        ridge.
    """
    facts, width = problem.facts, design.width
    plan = decide(facts, settings, len(state.kept) * width, along_path=along_path)
    if plan.refinement == "gradient":
        solution = _refined_by_gradient(problem, settings, solution)
    elif plan.refinement == "exchange":
        solution = _exchanged(design, state, problem, settings, plan, solution, along_path)
        # exchanged groups may differ in size
        plan = replace(plan, newton=decide(facts, settings, len(solution.kept) * width).newton)
    solution.plan = plan
    if plan.refinement == "newton" or (
        plan.refinement == "exchange" and settings.chooses_ridge and plan.newton
    ):
        solution = _refined_by_newton(problem, settings, solution, previous, along_path)
    solution.value, _ = problem.loss.value_and_gradient(
        problem.y, solution.design.scores(solution.coef) + solution.intercept, problem.sample_weight
    )
    if not along_path and plan.alternatives and plan.newton:
        support = support_problem(
            problem, settings, design, max(solution.ridge - settings.ridge, SHRINKAGE)
        )
        refined = replace(
            state, kept=solution.kept, coef=solution.coef, intercept=solution.intercept
        )
        solution.alternatives = alternatives(support, design, refined, problem.groups)
    return solution


def support_problem(
    problem: FitProblem, settings: FitSettings, design: Design, shrinkage: float = SHRINKAGE
) -> SupportProblem:
    """Return the problem of fitting the given features of the design with a ridge penalty."""
    return SupportProblem(
        problem.y,
        problem.loss,
        problem.sample_weight,
        settings.fit_intercept,
        settings.fit_prior,
        design.width,
        design.n_knots,
        shrinkage,
        n_rows=problem.n_copies,
    )


def _refined_by_gradient(
    problem: FitProblem, settings: FitSettings, solution: Solution
) -> Solution:
    target = (problem.y, problem.loss, problem.sample_weight)
    start = (solution.coef, solution.intercept)
    fitted = accelerated_gradient(
        solution.design,
        *target,
        *start,
        prior=settings.fit_prior or Prior(shrinkage=SHRINKAGE),
        fit_intercept=settings.fit_intercept,
    )
    ridge = settings.ridge or SHRINKAGE
    return replace(
        solution,
        coef=fitted[0],
        intercept=fitted[1],
        ridge=ridge,
        done=(f"gradient steps with ridge {ridge:.2g}",),
    )


def _exchanged(
    design: Design,
    state: Annealed,
    problem: FitProblem,
    settings: FitSettings,
    plan: Plan,
    solution: Solution,
    along_path: bool,
) -> Solution:
    """Exchange features, and run the longer search if the labels look noisy."""
    support = support_problem(problem, settings, design)
    rounds = 0 if along_path else 10
    kept, coef, intercept = exchange(
        support, design, state, groups=problem.groups, fixed=problem.included, rounds=rounds
    )
    done = "exchanges"
    small = design.keep(kept)
    wrong = problem.y * (small.scores(coef) + intercept) <= 0  # defined for two classes only
    if searches(problem.facts, plan, len(kept), float(problem.sample_weight @ wrong[:, 0])):
        flip = problem.loss.flip
        searched = search(
            design,
            problem.y,
            problem.sample_weight,
            kept,
            n_rows=problem.n_rows,
            flip=flip,
            fixed=problem.included,
        )
        done = "exchanges and the longer search"
        if not np.array_equal(searched, kept):
            small = design.keep(searched)
            fit = refit(
                support, small.matrix(), np.zeros((len(searched), 1)), np.zeros(1), tol=1e-9
            )
            kept, coef, intercept = searched, fit.theta[:, None], fit.intercept
    ridge = settings.ridge or SHRINKAGE
    return replace(
        solution,
        kept=kept,
        coef=coef,
        intercept=intercept,
        design=small,
        ridge=ridge,
        done=(done, f"ridge {ridge:.2g}"),
    )


def _refined_by_newton(
    problem: FitProblem,
    settings: FitSettings,
    solution: Solution,
    previous: Solution | None,
    along_path: bool,
) -> Solution:
    """Fit the selected features by Newton's method, with the user's or an automatic ridge."""
    small, coef, plan = solution.design, solution.coef, solution.plan
    assert plan is not None
    support = support_problem(problem, settings, small)
    theta, sparse = coef.reshape(-1, problem.y.shape[1]), plan.keeps_sparse
    A = small.uncentred() if sparse else small.matrix()  # type: ignore[attr-defined]
    # Centring changes the intercept alone
    shift = small.mean[:, 0] * small.inv if sparse else np.zeros(len(theta))
    intercept = solution.intercept - shift @ theta
    ridge, chosen = settings.ridge, ""
    if settings.chooses_ridge:
        unit = raw_units(small.inv) if plan.raw_ridge else np.ones(small.n_features * small.width)
        scaled = A @ sp.diags_array(unit) if sparse else A * unit
        parts = problem.loss.parts(problem.weight) if not problem.loss.pointwise else None
        left_out = LeftOut(
            problem.n_copies, parts, CHOSEN_OPTIMISM if problem.facts.very_sparse else 1.0
        )
        similar = (
            previous is not None
            and previous.plan is not None
            and previous.plan.few_rows == plan.few_rows
        )
        near = previous.ridge if previous is not None and similar else None
        if near is None and plan.raw_ridge and not plan.few_rows:
            near = SPARSE_RIDGE
        fit, ridge, chosen = choose_ridge(
            support,
            scaled,
            theta / unit[:, None],
            intercept,
            left_out,
            few_rows=plan.few_rows,
            near=near,
            until_stationary=not along_path,
        )
        fit.theta = fit.theta * unit[:, None]
    else:
        fit = refit(support, A, theta, intercept)
    fit.intercept = fit.intercept + shift @ fit.theta
    if problem.bounded:
        basis, bounds = problem.factors(solution.kept, small)
        support = replace(support, shrinkage=max(ridge, SHRINKAGE))
        start = replace(solution, coef=fit.theta.reshape(coef.shape))
        problem.project(start)
        fit = bounded_fit(support, A, start.coef.reshape(theta.shape), fit.intercept, bounds, basis)
    done = (
        solution.done[0] if plan.refinement == "exchange" else "no exchanges",
        f"ridge {ridge:.2g}{chosen}",
    )
    fitted = replace(
        solution,
        coef=fit.theta.reshape(coef.shape),
        intercept=fit.intercept,
        ridge=ridge,
        done=done,
    )
    if problem.bounded:  # converged up to rounding
        problem.project(fitted)
    elif plan.discriminant:
        _average_with_discriminant(problem, fitted)
    return fitted


def _average_with_discriminant(problem: FitProblem, solution: Solution) -> None:
    """Average the scores with those of linear discriminant analysis."""
    several = problem.y.shape[1] > 1
    members = problem.y if several else np.hstack([problem.y < 0, problem.y > 0]).astype(float)
    coef, intercept = shrunken_discriminant(
        solution.design.matrix(), members, problem.sample_weight, problem.n_copies
    )
    if not several:
        coef, intercept = coef[:, 1:] - coef[:, :1], intercept[1:] - intercept[:1]
    solution.coef = (solution.coef + coef[:, None]) / 2.0
    solution.intercept = (solution.intercept + intercept) / 2.0
    solution.done += ("mean with linear discriminant analysis",)
