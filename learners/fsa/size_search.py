"""Choice of the size and the refinement by an information criterion or cross-validation."""

from collections.abc import Callable, Sequence
from dataclasses import replace

import numpy as np

from ..designs.factory import make_design
from ..model_selection.size import (
    beats_constant,
    choose_size,
    default_sizes,
    folds_by_content,
)
from .fit import (
    best_constant,
    condensed,
    information_criterion,
    size_of,
    solve_path,
    solving,
    training_problems,
)
from .policy import decide, treatments
from .problem import FitProblem, Solution
from .settings import FitSettings, Refinement

_N_FOLDS, _N_FOLDS_OF_SIZE = 5, 3  # three suffice for a given size (heuristic)
# Largest size chosen by cross-validation, which takes seconds for several classes (heuristic)
_MAX_HELD_OUT = 50

Split = tuple[np.ndarray, np.ndarray]
Score = Callable[[FitProblem, Solution, np.ndarray], float]  # score on held-out rows


def resolve_size(problem: FitProblem, settings: FitSettings) -> tuple[FitSettings, str]:
    """Resolve ``n_features_to_select="auto"`` and ``Refinement(exchange="cv")``.

    Returns
    -------
    settings : FitSettings
        Settings that are no longer ``undecided``.
    why : str
        Prefix for the description of the refinement; empty if nothing was chosen automatically.
    """
    with solving(problem, settings):
        return (
            _size_by_criterion(problem, settings)
            if settings.size == "auto"
            else _refinement_by_folds(problem, settings)
        )


def _size_by_criterion(problem: FitProblem, settings: FitSettings) -> tuple[FitSettings, str]:
    """Return the size with the lowest extended Bayesian information criterion.

    If rows are few, the held-out loss replaces the criterion. The size is 0 if no size is better
    than a constant.
    """
    sizes = np.unique(
        np.clip(
            default_sizes(problem.n_units, round(problem.n_rows)), max(1, problem.n_included), None
        )
    )
    by_folds = decide(problem.facts, settings).size_by == "folds"
    whole, problem = problem, condensed(problem, settings)
    plain = settings
    if settings.chooses_ridge:  # the criterion requires maximum likelihood
        plain = replace(settings, refinement=Refinement(settings.refinement.exchange, 0.0))  # type: ignore[union-attr]
    path = [
        (information_criterion(problem, solution), solution.size)
        for solution in solve_path(problem, plain, sizes, early_stop=True)
    ]
    lowest, size = min(path)
    design = make_design(
        problem.X, problem.sample_weight, settings.response or "linear", settings.random_state
    )
    constant = information_criterion(problem, best_constant(problem, settings, design))
    folds = _folds(whole) if by_folds else []
    if folds:
        return _size_by_folds(whole, settings, folds)
    size = 0 if lowest >= constant and not problem.n_included else size
    return replace(
        settings, size=size
    ), f"size {size} by the extended Bayesian information criterion: "


def _size_by_folds(
    problem: FitProblem, settings: FitSettings, folds: list[Split]
) -> tuple[FitSettings, str]:
    """Return the size and refinement with the lowest held-out loss; see :func:`.choose_size`.

    The largest size is the number of training rows in a fold, but at most 50. The size is 0 if the
    best size is not better than a constant (:func:`.beats_constant`).
    """
    n_training = round(problem.n_rows) * (_N_FOLDS - 1) // _N_FOLDS
    sizes = default_sizes(problem.n_units, 3 * min(n_training, _MAX_HELD_OUT))
    sizes = np.unique(np.clip(sizes, max(1, problem.n_included), None))
    tried: dict[int, list[FitSettings]] = {int(k): [] for k in sizes}
    rows: dict[int, list[np.ndarray]] = {int(k): [] for k in sizes}
    for one, candidates in _candidate_settings(problem, settings, sizes):
        for k, losses in zip(
            candidates.tolist(), _row_losses(problem, one, folds, candidates), strict=True
        ):
            tried[k].append(replace(one, size=k))
            rows[k].append(losses)
    (constant,) = _row_losses(problem, settings, folds, np.array([0]))
    tests = [test for _, test in folds]

    def by_fold(losses: np.ndarray) -> np.ndarray:
        return np.array([np.average(losses[test], weights=problem.weight[test]) for test in tests])

    of_size = {
        k: np.array([by_fold(losses) for losses in row_losses]).T for k, row_losses in rows.items()
    }
    which = {k: choose_size(losses, "best") for k, losses in of_size.items()}
    means = np.column_stack([losses[:, which[k]] for k, losses in of_size.items()])
    best, held = int(sizes[choose_size(means, "best")]), np.concatenate(tests)
    beaten = beats_constant(rows[best][which[best]][held], constant[held], problem.weight[held])
    if not beaten and not problem.n_included:
        return replace(
            settings, size=0
        ), "size 0: no size predicts held-out rows clearly better than a constant: "
    k = int(sizes[choose_size(means, constant=by_fold(constant))])
    return tried[k][which[k]], f"size {k} by {len(folds)}-fold cross-validation: "


def _row_losses(
    problem: FitProblem, settings: FitSettings, folds: list[Split], sizes: np.ndarray
) -> np.ndarray:
    """Compute the out-of-fold loss (n_sizes, n_rows) of each row, for linear responses."""
    losses = np.zeros((len(sizes), len(problem.y)))
    if not len(sizes):
        return losses
    place = {int(k): i for i, k in enumerate(sizes)}

    def score(part: FitProblem, solution: Solution, rows: np.ndarray) -> float:
        losses[place[solution.size], rows] = problem.loss.row_values(
            problem.y[rows], solution.scores(problem, rows)
        )
        return 0.0

    held_out(problem, settings, folds, sizes, score)
    return losses


def _refinement_by_folds(problem: FitProblem, settings: FitSettings) -> tuple[FitSettings, str]:
    """Choose between exchanges and shrinkage for a given size if there are at most 1,000 rows."""
    sizes = np.array([size_of(problem, settings)])

    def score(part: FitProblem, solution: Solution, rows: np.ndarray) -> float:
        return -problem.loss.value(
            problem.y[rows], solution.scores(problem, rows), problem.sample_weight[rows]
        )

    choices = _candidate_settings(problem, settings, sizes)
    folds = (
        _folds(problem, _N_FOLDS_OF_SIZE)
        if decide(problem.facts, settings).treatment_by_folds
        else []
    )
    if not folds or sum(len(candidates) for _, candidates in choices) < 2:
        return settings, ""
    losses = -np.hstack(
        [held_out(problem, one, folds, candidates, score) for one, candidates in choices]
    )
    chosen = choices[choose_size(losses, "best")][0]
    return (
        chosen,
        f"{len(folds)}-fold cross-validation chose "
        f"{'shrinkage' if chosen.few_rows else 'exchanges'}: ",
    )


def _candidate_settings(
    problem: FitProblem, settings: FitSettings, sizes: np.ndarray
) -> list[tuple[FitSettings, np.ndarray]]:
    """Return the settings of :func:`treatments`, and the sizes to try with each.

    Ties favour exchanges, then the smaller size.
    """
    ways = treatments(settings)
    if len(ways) == 1:
        return [(settings, sizes)]
    plans = [
        decide(problem.facts, settings, round(k * problem.columns_per_unit)) for k in sizes.tolist()
    ]
    exchanged = np.array(
        [k < problem.n_units and plan.refinement == "exchange" for k, plan in zip(sizes, plans)],
        bool,
    )
    return [(ways[0], sizes[exchanged]), (ways[1], sizes)]


def _folds(problem: FitProblem, n_folds: int = _N_FOLDS) -> list[Split]:
    present = np.flatnonzero(problem.weight > 0)
    design = make_design(problem.X, problem.sample_weight)
    content = design.scores(np.ones((design.n_features, 1, 1)))[present]
    target = problem.y[present].real
    if problem.classification:
        target = target.argmax(axis=1) if target.shape[1] > 1 else target[:, 0] > 0
    return [
        (present[train], present[test])
        for train, test in folds_by_content(target, content, problem.classification, n_folds)
    ]


def held_out(
    problem: FitProblem,
    settings: FitSettings,
    splits: Sequence[Split],
    sizes: np.ndarray,
    score: Score,
) -> np.ndarray:
    """Compute held-out scores, of shape (n_folds, n_sizes), for ascending ``sizes``.

    Parameters
    ----------
    problem : FitProblem
        Problem to solve.
    settings : FitSettings
        Settings of the fits. If ``few_rows`` is False, each size has a separate annealing run;
        otherwise, one run passes through all sizes.
    splits : sequence of (ndarray of int, ndarray of int)
        For each fold, the rows to fit and the rows to score.
    sizes : ndarray of int
        Numbers of features, in ascending order.
    score : function
        Function called with the training problem, a solution and the rows to score; it returns the
        score.
    """
    scores = np.empty((len(splits), len(sizes)))
    silent = replace(settings, title=None, names_alternatives=False)
    for fold, part in enumerate(training_problems(problem, settings, splits)):
        runs = sizes[:, None] if settings.few_rows is False else [sizes]
        solutions = [
            solution for run in runs if len(run) for solution in solve_path(part, silent, run)
        ]
        scores[fold] = [score(part, solution, splits[fold][1]) for solution in solutions]
    return scores
