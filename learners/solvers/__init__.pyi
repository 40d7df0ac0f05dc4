"""Annealing loop, its schedules, and refinements such as Newton fits and feature exchanges."""

from .annealing import Annealed, anneal, strengths, strongest
from .discriminant import shrunken_discriminant
from .exchanges import POOL_FACTOR, Units, alternatives, exchange
from .greedy import Step, greedy_search
from .newton import (
    SHRINKAGE,
    Fit,
    SupportProblem,
    bounded_fit,
    fit_at,
    hessian,
    refit,
    solve_positive,
)
from .restarts import search
from .schedules import Counts, Schedule, as_schedule, step_counts
from .step_size import annealing_step, limited_step, safe_step, start_direction

__all__ = [
    "POOL_FACTOR",
    "SHRINKAGE",
    "Annealed",
    "Counts",
    "Fit",
    "Schedule",
    "Step",
    "SupportProblem",
    "Units",
    "alternatives",
    "anneal",
    "annealing_step",
    "as_schedule",
    "bounded_fit",
    "exchange",
    "fit_at",
    "greedy_search",
    "hessian",
    "limited_step",
    "refit",
    "safe_step",
    "search",
    "shrunken_discriminant",
    "solve_positive",
    "start_direction",
    "step_counts",
    "strengths",
    "strongest",
]
