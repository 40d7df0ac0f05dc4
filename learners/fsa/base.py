"""What the FSA estimators share: from the constructor through the solver to the fitted attributes."""

from __future__ import annotations

import warnings
from collections.abc import Callable
from dataclasses import dataclass, replace
from numbers import Integral
from typing import Any, Self

import numba
import numpy as np
import pandas as pd
import scipy.sparse as sp
from sklearn.base import BaseEstimator
from sklearn.feature_selection import SelectorMixin
from sklearn.utils import check_random_state
from sklearn.utils.validation import check_is_fitted, validate_data
from tqdm import tqdm

from ..common.targets import group_codes
from ..common.validation import check_parameters, is_size, n_threads
from ..designs.base import Design, NotFiniteError
from ..designs.factory import as_out_of_core, local, make_design
from ..designs.responses import PiecewiseLinear
from ..objective.losses import Loss
from ..objective.priors import Prior
from ..solvers.accelerated_gradient import accelerated_gradient
from ..solvers.annealing import Annealed, anneal, strengths
from ..solvers.criteria import default_sizes, ebic
from ..solvers.newton import SHRINKAGE, SupportProblem, refit
from ..solvers.schedules import step_counts
from ..solvers.step_size import annealing_step
from ..solvers.swapping import POOL, polish
from ..sources.matrix import OutOfCoreMatrix

try:
    from sklearn.callback import CallbackSupportMixin, with_callbacks
except ImportError:  # scikit-learn before 1.9

    class CallbackSupportMixin:  # type: ignore[no-redef]
        """Stands in where scikit-learn has no callbacks."""

    def with_callbacks(method):
        """Nothing to manage."""
        return method


_SWAP_COST = 2e9  # multiplications per round of exchanges up to which polish="auto" makes them
_NEWTON_COST = 2e8  # the same for one step of Newton's method along a path
_STEPS_PER_SIZE = 5  # gradient steps before each further cut along a path
_FEW_ROWS_SHRINKAGE = 1e-3  # of a refit with too few rows to tell its columns apart; by cross-validation on the training parts of
# Arcene, Dexter, Leukemia and PCMAC, where 1e-4 to 1e-2 differ little


@dataclass
class Encoded:
    """What the solver sees of one call of ``fit``.

    Attributes
    ----------
    X : array or sparse matrix
    y : ndarray of shape (n_samples, n_outputs)
        Targets as the loss wants them.
    loss : Loss
    weight : ndarray of shape (n_samples,)
        Not yet normalised.
    shift, scale : ndarray of shape (n_outputs,) or float
        Scores times ``scale`` plus ``shift`` are in the units of the user's targets.
    flat : bool
        Whether the user's targets were 1-D, so that ``coef_`` is too.
    """

    X: Any
    y: np.ndarray
    loss: Loss
    weight: np.ndarray
    shift: np.ndarray | float = 0.0
    scale: np.ndarray | float = 1.0
    flat: bool = False


@dataclass
class Solution:
    """One model: the chosen columns and their standardised coefficients."""

    kept: np.ndarray
    coef: np.ndarray
    intercept: np.ndarray
    design: Design
    size: int
    value: float
    ebic: float
    loss_curve: np.ndarray


class _FSA(CallbackSupportMixin, SelectorMixin, BaseEstimator):
    """What the three estimators share."""

    _losses: tuple[str, ...] = ()

    def __init__(
        self,
        n_features_to_select: int | float | str = 10,
        *,
        loss: str | Loss = "auto",
        response: str = "linear",
        n_bins: int = 6,
        bins: str = "range",
        groups=None,
        prior: Prior | None = None,
        schedule: str | Callable = "inverse",
        mu: float = 100.0,
        n_steps: int = 100,
        learning_rate: float | str = "auto",
        momentum: float = 0.0,
        polish: str | None = "auto",
        fit_intercept: bool = True,
        warm_start: bool = False,
        random_state=None,
        n_jobs: int | None = None,
        verbose: bool = False,
    ):
        self.n_features_to_select = n_features_to_select
        self.loss = loss
        self.response = response
        self.n_bins = n_bins
        self.bins = bins
        self.groups = groups
        self.prior = prior
        self.schedule = schedule
        self.mu = mu
        self.n_steps = n_steps
        self.learning_rate = learning_rate
        self.momentum = momentum
        self.polish = polish
        self.fit_intercept = fit_intercept
        self.warm_start = warm_start
        self.random_state = random_state
        self.n_jobs = n_jobs
        self.verbose = verbose

    # -- scikit-learn's questions ---------------------------------------------------------------------------------------

    def __sklearn_tags__(self):
        tags = super().__sklearn_tags__()
        tags.input_tags.sparse = self.response == "linear"
        tags.input_tags.allow_nan = self.response == "piecewise"
        tags.target_tags.required = True
        return tags

    def _get_support_mask(self):
        check_is_fitted(self)
        return self.support_

    def _validate(self, X, y="no_validation", **kwargs):
        out_of_core = as_out_of_core(X)
        if out_of_core is not None:
            return self._validate_out_of_core(out_of_core, y, **kwargs)
        piecewise = self.response == "piecewise"
        checked = validate_data(
            self,
            X,
            y,
            accept_sparse=False if piecewise else ("csr", "csc"),
            dtype=[np.float64, np.float32],
            ensure_all_finite="allow-nan" if piecewise and not kwargs.get("reset", True) else False,
            **kwargs,
        )
        matrix = checked[0] if isinstance(checked, tuple) else checked
        # A dense matrix to fit is checked by the first read that is made of it.
        if not piecewise and (sp.issparse(matrix) or not kwargs.get("reset", True)):
            self._check_finite(matrix)
        return checked

    def _validate_out_of_core(self, X: OutOfCoreMatrix, y, **kwargs):
        """The checks that need no values: shapes, names and targets."""
        like = np.broadcast_to(np.zeros((), X.dtype), X.shape)
        if not kwargs.get("reset", True):
            validate_data(self, like if X.names is None else pd.DataFrame(columns=X.names), reset=False, skip_check_array=True)
            return X
        checked = validate_data(self, like, local(y), dtype=X.dtype, ensure_all_finite=False, **kwargs)
        if X.names is not None:
            self.feature_names_in_ = np.asarray(X.names, dtype=object)
        return (X, checked[1]) if isinstance(checked, tuple) else X

    def _check_finite(self, X):
        values = X.data if sp.issparse(X) else X
        with np.errstate(over="ignore", invalid="ignore"):
            if np.isfinite(values.sum()) or np.isfinite(values).all():  # the sum is cheap and nearly always enough
                return
        rows, columns = (a[0] for a in np.nonzero(~np.isfinite(X.toarray() if sp.issparse(X) else X)))
        name = getattr(self, "feature_names_in_", np.arange(X.shape[1]))[columns]
        raise ValueError(
            f"X contains NaN or infinity (first in row {rows}, column {name}); response='linear' needs finite numbers, "
            "response='piecewise' accepts NaN"
        )

    def transform(self, X):
        """The chosen columns of X, (n_samples, k); out of core these alone are read, on Dask lazily."""
        source = as_out_of_core(X)
        if source is None:
            return super().transform(X)
        check_is_fitted(self)
        return self._validate(source, reset=False).chosen(np.flatnonzero(self.support_))

    # -- fitting --------------------------------------------------------------------------------------------------------

    def _n_kept(self, n_units: int) -> int:
        k = self.n_features_to_select
        if not is_size(k):
            raise ValueError(f"n_features_to_select={k!r} is not valid; expected an integer >= 1, a fraction in (0, 1] or 'auto'")
        if not isinstance(k, Integral):
            return max(1, round(float(k) * n_units))  # type: ignore[arg-type]
        if k > n_units:
            what = "features" if self.groups is None else "groups"
            warnings.warn(f"n_features_to_select={k} is more than the {n_units} {what}; all are kept", stacklevel=6)
        return min(int(k), n_units)

    def _rate(self, loss: Loss, sample_weight):
        if self.learning_rate != "auto":
            return float(self.learning_rate)
        return annealing_step(loss, sample_weight)

    def _fit(self, problem: Encoded) -> Self:
        """Solve and set the fitted attributes."""
        (solution,) = self._solve(problem)
        for name, value in self._attributes(problem, solution).items():
            setattr(self, name, value)
        if self.warm_start:
            self._last = solution.kept, solution.coef, solution.intercept
        return self

    def _solve(self, problem: Encoded, sizes=None, observe: Callable[[int, Annealed], None] | None = None) -> list[Solution]:
        """One annealing run through all ``sizes`` (of the constructor's ``n_features_to_select`` where None), smallest first."""
        check_parameters(self, self._losses)
        check_random_state(self.random_state)
        if not problem.weight.sum() > 0:
            raise ValueError("sample_weight is zero everywhere; expected at least one row with a positive weight")
        m = problem.X.shape[1]
        groups = group_codes(self.groups, m)
        n_units = m if groups is None else int(groups.max()) + 1
        auto = sizes is None and isinstance(self.n_features_to_select, str) and self.n_features_to_select == "auto"
        if sizes is None and not auto:
            sizes = np.array([self._n_kept(n_units)])
        share = problem.weight / problem.weight.sum()
        threads = numba.get_num_threads()
        numba.set_num_threads(n_threads(self.n_jobs))
        try:
            response = "linear" if self.response == "linear" else PiecewiseLinear(self.n_bins, self.bins)
            design = make_design(problem.X, share, response, self.random_state)
            if auto:
                tried = self._walk(
                    problem, design, share, groups, default_sizes(n_units, round(problem.weight.sum())), observe, patient=False
                )
                sizes = np.array([min(tried, key=lambda solution: solution.ebic).size])
            return self._walk(problem, design, share, groups, sizes, observe)
        except NotFiniteError as error:
            if not isinstance(problem.X, OutOfCoreMatrix):
                self._check_finite(problem.X)  # says where
            raise ValueError(f"{error} (response='piecewise' accepts NaN)") from None
        finally:
            numba.set_num_threads(threads)

    def _walk(self, problem, design, share, groups, sizes, observe, patient=True):
        """Anneal to the greatest size, then on through the others; polish what was left at each, smallest first.

        Unless ``patient``, sizes beyond twice that of the least criterion so far (plus ten) are not looked at.
        """
        y, loss = problem.y, problem.loss
        n_units = design.n_features if groups is None else int(groups.max()) + 1
        counts = step_counts(self.schedule, n_units, int(sizes[-1]), self.n_steps, self.mu)
        if self.polish is not None:
            # From the step that reaches k on the refit does better: no gradient steps are needed there.
            counts = counts[: int(np.argmax(counts == sizes[-1])) + 1]
        counts = np.concatenate([counts, np.repeat(sizes[-2::-1], _STEPS_PER_SIZE)])
        last_step = {int(k): int(np.flatnonzero(counts == k)[-1]) for k in sizes}
        wanted = {step: k for k, step in last_step.items()}
        passed: dict[int, Annealed] = {}
        context = self._callback_context(problem)

        def callback(step, state):
            bar.update()
            if observe is not None:
                observe(step, state)
            if step in wanted:
                passed[wanted[step]] = replace(
                    state,
                    coef=state.coef.copy(),
                    intercept=state.intercept.copy(),
                    dropped_at=state.dropped_at.copy(),
                    loss_curve=list(state.loss_curve),
                )
            if context is not None:
                self._tell(context, problem, state)

        coef, intercept = self._start(design, y)
        with tqdm(total=len(counts), desc=type(self).__name__, disable=not self.verbose) as bar:
            anneal(
                design,
                y,
                loss,
                counts,
                sample_weight=share,
                learning_rate=self._rate(loss, share),
                prior=self.prior,
                momentum=self.momentum,
                fit_intercept=self.fit_intercept,
                groups=groups,
                coef=coef,
                intercept=intercept,
                callback=callback,
            )
        if context is not None:
            context.call_on_fit_task_end(estimator=self, X=problem.X, y=y)
        n_rows = float(problem.weight.sum())  # weights count rows, as everywhere in scikit-learn
        solutions: list[Solution] = []
        for k in sizes:
            if not patient and solutions and k > 10 + 2 * min(solutions, key=lambda s: s.ebic).size:
                break
            kept, coef, intercept = self._polish(design, passed[k], problem, share, groups, along=len(sizes) > 1)
            small = design.keep(kept)
            value = loss.value(y, small.scores(coef) + intercept, share)
            criterion = ebic(value, n_rows, int(k), n_units, _degrees(coef, loss), squared=loss.is_quadratic)
            solutions.append(Solution(kept, coef, intercept, small, int(k), value, criterion, np.array(passed[k].loss_curve)))
        return solutions

    def _start(self, design, y):
        """Where annealing starts: zero, or the last fit's solution with ``warm_start``."""
        if not (self.warm_start and hasattr(self, "_last")):
            return None, None
        kept, last, intercept = self._last
        if kept[-1] >= design.n_features or last.shape[1:] != (design.width, y.shape[1]):
            return None, None
        coef = np.zeros((design.n_features, design.width, y.shape[1]))
        coef[kept] = last
        return coef, intercept

    def _polish(self, design, state, data, sample_weight, groups, along):
        """Polish at one size; ``along`` a path of many sizes without passes over all columns, and with exchanges only on demand."""
        if self.polish is None:
            return state.kept, state.coef, state.intercept
        y, loss = data.y, data.loss
        columns = float(len(state.kept) * design.width)
        cost = (design.n_samples + columns) * columns**2 * y.shape[1]
        newton = loss.has_curvature
        worth = POOL * cost <= _SWAP_COST and self._evidence(y, data.weight) >= columns
        if newton and self.polish != "swap" and cost <= _NEWTON_COST and (along or not worth or self.polish == "refit"):
            prior = self.prior
            if prior is None and not worth and hasattr(self, "classes_"):
                prior = Prior(shrinkage=_FEW_ROWS_SHRINKAGE)
            problem = SupportProblem(y, loss, sample_weight, self.fit_intercept, prior, design.width, design.n_knots)
            fit = refit(problem, state.design.matrix(), state.coef.reshape(-1, y.shape[1]), state.intercept)
            return state.kept, fit.theta.reshape(state.coef.shape), fit.intercept
        if newton and (self.polish == "swap" or (self.polish == "auto" and worth and not along)):
            return polish(
                design,
                y,
                loss,
                sample_weight,
                state.kept,
                state.coef,
                state.intercept,
                state.dropped_at,
                fit_intercept=self.fit_intercept,
                prior=self.prior,
                groups=groups,
                rounds=0 if along else 10,
            )
        coef, intercept = accelerated_gradient(
            state.design,
            y,
            loss,
            sample_weight,
            state.coef,
            state.intercept,
            prior=self.prior or Prior(shrinkage=SHRINKAGE),
            fit_intercept=self.fit_intercept,
        )
        return state.kept, coef, intercept

    def _evidence(self, y, weight) -> float:
        """How many columns the rows can tell apart, by rules of thumb: beyond, a lower training loss says little about a support.

        Ten rows of the rarest class for each coefficient (P. Peduzzi et al., J. Clinical Epidemiology 49, 1996), or five rows where
        the targets are numbers.
        """
        n_rows = float(weight.sum())  # a row of weight two is two rows
        if not hasattr(self, "classes_"):
            return n_rows / 5.0
        counts = weight @ (y > 0)
        return float(min(counts.min(), n_rows - counts.max())) / 10.0

    def _attributes(self, problem: Encoded, solution: Solution) -> dict[str, Any]:
        """The fitted attributes of one solution."""
        m, q = problem.X.shape[1], problem.y.shape[1]
        kept, design = solution.kept, solution.design
        raw, offset = design.unstandardise(solution.coef, solution.intercept)
        raw, offset = raw * problem.scale, offset * problem.scale + problem.shift
        support = np.zeros(m, bool)
        support[kept] = True
        importance = np.zeros(m)
        importance[kept] = strengths(solution.coef)
        found = {
            "support_": support,
            "feature_importances_": importance,
            "intercept_": offset[0] if problem.flat else offset,
            "loss_curve_": solution.loss_curve,
            "n_iter_": len(solution.loss_curve),
            "_flat": problem.flat,
        }
        if self.response == "piecewise":
            found["knots_"] = design.knots  # type: ignore[attr-defined]
            # The hat functions add up to one, so a curve's level is free: its mean over the training rows becomes zero.
            level = np.einsum("kw,kwq->kq", design.mean, raw)
            raw = raw - level[:, None]
            found["intercept_"] = offset[0] + level.sum() if problem.flat else offset + level.sum(axis=0)
            found["responses_"] = raw[:, : self.n_bins + 1]
            # Where training saw no NaN in a column, one met later says nothing.
            seen = design.met_missing(problem.weight > 0)  # type: ignore[attr-defined]
            found["missing_responses_"] = np.where(seen[:, None], raw[:, -1], 0.0)
        else:
            coef = np.zeros((q, m))
            coef[:, kept] = raw[:, 0].T
            found["coef_"] = coef[0] if problem.flat else coef
        return found

    # -- scikit-learn's callbacks (1.9 and later) -----------------------------------------------------------------------

    def _callback_context(self, problem):
        if not getattr(self, "_skl_callbacks", None):  # nobody listens: the contexts would only cost time
            return None
        context = self._init_callback_context(max_subtasks=None)
        context.call_on_fit_task_begin(estimator=self, X=problem.X, y=problem.y)
        return context

    def _tell(self, context, problem, state):
        step = context.subcontext(task_name="step")
        step.call_on_fit_task_begin(estimator=self, X=problem.X, y=problem.y)
        so_far = Solution(state.kept, state.coef, state.intercept, state.design, 0, np.nan, np.nan, np.array(state.loss_curve))
        step.call_on_fit_task_end(
            estimator=self,
            X=problem.X,
            y=problem.y,
            reconstruction_attributes=lambda: self._attributes(problem, so_far),
        )

    # -- predicting -----------------------------------------------------------------------------------------------------

    def _scores(self, X) -> np.ndarray:
        """Scores (n, q) of raw rows."""
        check_is_fitted(self)
        X = self._validate(X, reset=False)
        if isinstance(X, OutOfCoreMatrix):
            return X.scores(self._of_chosen, np.flatnonzero(self.support_), np.size(self.intercept_))
        return self._of_chosen(X[:, self.support_])

    def _of_chosen(self, X) -> np.ndarray:
        """Scores (n, q) from the chosen columns (n, k) alone."""
        if self.response == "linear":
            return X @ np.atleast_2d(self.coef_)[:, self.support_].T + self.intercept_
        scores = np.tile(np.atleast_1d(self.intercept_), (X.shape[0], 1))
        for j in range(X.shape[1]):
            x = X[:, j]
            seen = ~np.isnan(x)
            for q in range(scores.shape[1]):
                scores[seen, q] += np.interp(x[seen], self.knots_[j], self.responses_[j, :, q])
            scores[~seen] += self.missing_responses_[j]
        return scores


def _degrees(coef: np.ndarray, loss: Loss) -> int:
    """Free coefficients: centring takes one knot, the losses of several classes one class."""
    k, width, q = coef.shape
    return k * max(1, width - 1) * (q - loss.redundant_outputs if q > 1 else q)
