"""The base of the FSA estimators: one constructor, and ``fit`` as encode, make the design, anneal, refine, set the attributes."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import Any, Self

import numpy as np
from sklearn.base import BaseEstimator
from sklearn.feature_selection import SelectorMixin
from sklearn.utils.validation import check_is_fitted

from ..common.additive import AdditiveModel
from ..common.constructors import InheritsParameters
from ..common.targets import group_codes
from ..common.validation import n_threads, number_to_keep
from ..compilation import n_values, problem_of, threads
from ..designs.base import Design, NotFiniteError
from ..designs.factory import as_out_of_core, make_design, rescaled, row_length
from ..designs.responses import PiecewiseLinear, as_response, width_of
from ..objective.losses import Loss
from ..objective.priors import Prior
from ..solvers.annealing import Annealed
from ..solvers.schedules import Counts, Schedule, as_schedule
from ..sources.matrix import OutOfCoreMatrix
from .callbacks import StepCallbacksMixin
from .constraints import constrained
from .input_data import check_data, check_finite, filled, medians
from .parameters import check_parameters
from .path_solver import StepCallback, anneal_path, auto_size, settings_of_size, without_features
from .problem import FitProblem, Solution, fitted_attributes
from .refinement import RefinementSettings, annealing_prior, refine_path, shrinks_while_annealing


class FSAEstimator(InheritsParameters, StepCallbacksMixin, SelectorMixin, BaseEstimator):
    """What the FSA estimators share; a subclass supplies ``_encode`` and its defaults."""

    _losses: tuple[str, ...] = ()
    _mu: float = 100.0
    _momentum: float = 0.0
    _n_bins: int = 6
    _annealing_ridge: float | None = None  # with few rows; None is the default
    _path_exchanges: bool = False  # along paths too, where that is cheap
    _constant: bool = False  # fit the best constant, which "auto" may choose too

    support_: np.ndarray
    intercept_: Any
    _flat: bool

    def __init__(
        self,
        n_features_to_select: int | float | str | None = 10,
        *,
        loss: str | Loss = "auto",
        response: str | PiecewiseLinear = "linear",
        feature_groups=None,
        prior: Prior | None = None,
        alpha: float | str = "auto",
        scaling: str = "auto",
        include=None,
        exclude=None,
        bounds=None,
        missing: str = "error",
        schedule: str | Schedule | Counts = "inverse",
        n_steps: int = 100,
        learning_rate: float | str = "auto",
        momentum: float | str = "auto",
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
        self.feature_groups = feature_groups
        self.prior = prior
        self.alpha = alpha
        self.scaling = scaling
        self.include = include
        self.exclude = exclude
        self.bounds = bounds
        self.missing = missing
        self.schedule = schedule
        self.n_steps = n_steps
        self.learning_rate = learning_rate
        self.momentum = momentum
        self.polish = polish
        self.fit_intercept = fit_intercept
        self.warm_start = warm_start
        self.random_state = random_state
        self.n_jobs = n_jobs
        self.verbose = verbose

    def _encode(self, *args: Any, **options: Any) -> FitProblem:
        """Check the data and encode the targets."""
        raise NotImplementedError

    # -- fitting --------------------------------------------------------------------------------------------------------

    def _fit(self, X, y=None, **options) -> Self:
        check_parameters(self)
        problem = constrained(self, self._encode(X, y, **options))
        with self._solving(problem):
            design = self._make_design(problem)
            size, settings = self._choice(problem, design)
            if size:
                states = self._anneal(problem, design, np.array([size]), settings=settings)
                (solution,) = refine_path(design, states, problem, settings)
            else:
                solution = without_features(problem, design, self.fit_intercept)
        return self._set_attributes(problem, solution)

    def _fit_path(self, problem: FitProblem, sizes: np.ndarray, callbacks: Sequence[StepCallback]) -> list[Solution]:
        """Solutions of all ``sizes`` (ascending) from one run."""
        with self._solving(problem):
            return self._solve_path(problem, self._make_design(problem), sizes, callbacks)

    def _solve_path(
        self,
        problem: FitProblem,
        design: Design,
        sizes: np.ndarray,
        callbacks: Sequence[StepCallback] = (),
        settings: RefinementSettings | None = None,
        patient: bool = True,
    ) -> list[Solution]:
        """Solutions of all ``sizes``: one run of annealing, or two where rows are enough for the small sizes alone."""
        settings = self._refinement if settings is None else settings
        few = np.array([shrinks_while_annealing(problem, settings, int(k), design.width) for k in sizes])
        states = {}
        if few.any() and not few.all():  # greater ones in a run with another prior; callbacks follow the one to the smallest
            states = self._anneal(problem, design, sizes[few], settings=settings)
            sizes = sizes[~few]
        states |= self._anneal(problem, design, sizes, callbacks, settings)
        return refine_path(design, states, problem, settings, patient)

    @contextmanager
    def _solving(self, problem: FitProblem) -> Iterator[None]:
        """Threads as asked for, and an error that says where X is not finite."""
        try:
            width = width_of(as_response(self.response, self._n_bins))
            with threads(n_threads(self.n_jobs)), problem_of(n_values(problem.X) * width):
                yield
        except NotFiniteError as error:
            if not isinstance(problem.X, OutOfCoreMatrix):
                check_finite(self, problem.X)  # says where
            raise ValueError(f"{error} (response='piecewise' and missing='median' accept NaN)") from None

    def _make_design(self, problem: FitProblem) -> Design:
        response = as_response(self.response, self._n_bins) or "linear"
        design = make_design(problem.X, problem.sample_weight, response, self.random_state)
        if self.scaling in ("none", "maximum"):
            design = rescaled(design, problem.X, self.scaling)
        return design if problem.allowed is None else design.keep(problem.allowed)

    def _choice(self, problem: FitProblem, design: Design) -> tuple[int, RefinementSettings]:
        """The size to select and how it is refined; "auto", and few rows, solve smaller problems first to choose them."""
        if self._constant:
            return 0, self._refinement
        if self.n_features_to_select == "auto":
            return auto_size(self, problem, design)
        k = self._n_kept(problem)
        return k, settings_of_size(self, problem, design, k)

    def _n_kept(self, problem: FitProblem) -> int:
        what = "features" if self.feature_groups is None else "groups"
        k = number_to_keep(self.n_features_to_select, problem.n_units, what)  # type: ignore[arg-type]
        if k < problem.n_included:
            raise ValueError(
                f"include names {problem.n_included} {what}, but n_features_to_select is {k}; expected at most that many"
            )
        return k

    def _anneal(
        self,
        problem: FitProblem,
        design: Design,
        sizes: np.ndarray,
        callbacks: Sequence[StepCallback] = (),
        settings: RefinementSettings | None = None,
    ) -> dict[int, Annealed]:
        # Steps longer than the bound on the curvature allows, as some losses take them, leave no room for momentum.
        momentum = self._momentum if problem.loss.default_step_size is None else 0.0
        with self._reported_steps(problem, self._attributes) as reports:
            return anneal_path(
                design,
                problem,
                sizes,
                schedule=as_schedule(self.schedule, self._mu),
                n_steps=self.n_steps,
                learning_rate=self.learning_rate,
                momentum=momentum if isinstance(self.momentum, str) else self.momentum,
                prior=annealing_prior(problem, settings or self._refinement, int(sizes[-1]), design.width),
                fit_intercept=self.fit_intercept,
                all_steps=self.polish is None,
                start=self._start(design, problem.y),
                callbacks=[*callbacks, *reports],
                progress=type(self).__name__ if self.verbose else None,
            )

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

    @property
    def _refinement(self) -> RefinementSettings:
        return RefinementSettings(
            self.polish, self.prior, self.fit_intercept, self.alpha, self._annealing_ridge, self.scaling == "auto",
            path_exchanges=self._path_exchanges,
        )  # fmt: skip

    def _attributes(self, problem: FitProblem, solution: Solution) -> dict[str, Any]:
        return fitted_attributes(problem, solution, self._is_piecewise)

    def _set_attributes(self, problem: FitProblem, solution: Solution) -> Self:
        for name, value in self._attributes(problem, solution).items():
            setattr(self, name, value)
        if self.warm_start:
            self._last = solution.kept, solution.coef, solution.intercept
        return self

    # -- what scikit-learn asks -----------------------------------------------------------------------------------------

    @property
    def _is_piecewise(self) -> bool:
        return not (isinstance(self.response, str) and self.response == "linear")

    def __sklearn_tags__(self):
        tags = super().__sklearn_tags__()
        tags.input_tags.sparse = not self._is_piecewise
        tags.input_tags.allow_nan = self._is_piecewise or self.missing == "median"
        tags.target_tags.required = True
        return tags

    def _get_support_mask(self):
        check_is_fitted(self)
        return self.support_

    def _validate(self, X, y: Any = "no_validation", **options):
        imputed = self.missing == "median"
        checked = check_data(self, X, y, piecewise=self._is_piecewise, allow_nan=self._is_piecewise or imputed, **options)
        if self.scaling != "row_length" and not imputed:
            return checked
        X = checked[0] if isinstance(checked, tuple) else checked
        if isinstance(X, OutOfCoreMatrix):
            what, expected = ("missing='median'", "'error'") if imputed else ("scaling='row_length'", "'unit_variance'")
            raise ValueError(f"{what} is for arrays and sparse matrices; expected {expected} for data out of core")
        if imputed:
            if options.get("reset", True):
                self.medians_ = medians(X)
            X = filled(X, self.medians_)
        X = row_length(X) if self.scaling == "row_length" else X
        return (X, *checked[1:]) if isinstance(checked, tuple) else X

    def _groups(self, n_features: int) -> np.ndarray | None:
        return group_codes(self.feature_groups, n_features)

    def transform(self, X):
        """Return the selected columns.

        Parameters
        ----------
        X : array, sparse matrix or data out of core of shape (n_samples, n_features)
            Out of core the selected columns alone are read, on Dask lazily.

        Returns
        -------
        array or sparse matrix of shape (n_samples, k)
        """
        source = as_out_of_core(X)
        if source is None:
            return super().transform(X)
        check_is_fitted(self)
        return self._validate(source, reset=False).chosen(np.flatnonzero(self.support_))

    def _scores(self, X) -> np.ndarray:
        """Scores (n_samples, n_outputs) of raw rows."""
        check_is_fitted(self)
        X = self._validate(X, reset=False)
        model = AdditiveModel.from_estimator(self)
        if isinstance(X, OutOfCoreMatrix):
            return X.scores(model.scores_of_selected, model.selected, np.size(self.intercept_))
        return model.scores(X)
