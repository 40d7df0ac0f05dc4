"""The estimators' shared parameters: their words for the docstrings, and one clear line for every bad value."""

from __future__ import annotations

import inspect
import sys
import warnings
from numbers import Integral, Real

import numba
import numpy as np
from sklearn.utils import check_array

from ..objective.losses import Loss
from ..objective.priors import Prior
from ..solvers.schedules import get_schedule

DOC = """
    Parameters
    ----------
    {size}
    loss : str or Loss
        {losses}
    response : {{"linear", "piecewise"}}
        Whether a feature acts through a coefficient or through a piecewise-linear function of its value (arXiv text, section 4.1).
        NaN is accepted by the latter and has a response of its own.
    n_bins : int, default {n_bins}
        B of the piecewise-linear responses.
    bins : {{"range", "quantile"}}
        Where the knots lie: equidistant between each column's least and greatest value, or at its quantiles.
    groups : array of shape (n_features,) or None
        Group of each column (any labels): columns of one group stay or fall together, and ``{counted}`` counts groups.
    prior : Prior or None
        Shrinkage and smoothness of the responses.
    schedule : {{"inverse", "inverse_arxiv", "exponential", "linear"}} or function, default "inverse"
        Number of features left after each step (see ``annealed.learners.solvers.schedules``).
    mu : float, default {mu}
        Speed of the schedule.
    n_steps : int, default 100
        E: steps of the schedule.
    learning_rate : float or "auto"
        Step size on standardised columns and mean gradients.
    momentum : float, default {momentum}
    polish : {{"auto", "swap", "refit", None}}
        After annealing: exchange features while the objective falls, look at all columns again, and refit ("swap"); refit alone;
        or nothing. "auto" exchanges where that is affordable and there are rows enough to tell supports apart: ten
        of the rarest class for each coefficient, or five rows where targets are numbers.
    warm_start : bool, default False
        Start the next call of ``fit`` from the coefficients of the last one, where its shapes agree.
    random_state : int, RandomState or None
        Which rows are read of data that are subsampled (see :func:`on_disk`, :func:`on_dask`). Everything else is deterministic.
    n_jobs : int or None
        Threads; the result does not depend on it.
    verbose : bool
        Show a progress bar.
"""

SIZE = """n_features_to_select : int, float or "auto", default 10
        k: how many features stay, or which fraction of them. More than there are keeps all, with a warning. "auto" takes the size
        with the least extended Bayesian information criterion along one annealing path (see :class:`FSAPath`)."""


def document(cls: type, losses: str, size: str = SIZE) -> None:
    """Put the shared parameters, with the defaults of ``cls``, in the place of ``{parameters}`` in its docstring."""
    defaults = {name: p.default for name, p in inspect.signature(cls).parameters.items()}
    counted = size.split(" ", 1)[0]
    words = {"size": size, "losses": losses, "counted": counted, **{n: defaults[n] for n in ("n_bins", "mu", "momentum")}}
    cls.__doc__ = (cls.__doc__ or "").replace("{parameters}", DOC.format(**words).rstrip())


def check_parameters(estimator, losses: tuple[str, ...]) -> None:
    """Check what the three estimators share.

    Raises
    ------
    ValueError
        Naming the parameter, its value and what was expected.
    """
    e = estimator
    _choice("response", e.response, ("linear", "piecewise"))
    _choice("bins", e.bins, ("range", "quantile"))
    _choice("polish", e.polish, ("auto", "swap", "refit", None))
    _require(_is_whole(e.n_bins) and 1 <= e.n_bins <= 126, "n_bins", e.n_bins, "an integer from 1 to 126")
    _require(_is_whole(e.n_steps) and e.n_steps >= 1, "n_steps", e.n_steps, "an integer >= 1")
    _require(_is_number(e.mu) and e.mu >= 0, "mu", e.mu, "a number >= 0")
    _require(_is_number(e.momentum) and 0 <= e.momentum < 1, "momentum", e.momentum, "a number in [0, 1)")
    rate = e.learning_rate
    _require(rate == "auto" or (_is_number(rate) and rate > 0), "learning_rate", rate, "'auto' or a positive number")
    _require(e.prior is None or isinstance(e.prior, Prior), "prior", e.prior, "a Prior or None")
    if e.prior is not None:
        e.prior.check()
    check_jobs(e.n_jobs)
    if isinstance(e.loss, str):
        _require(e.loss in losses, "loss", e.loss, f"one of {sorted(losses)} or a Loss object")
    else:
        _require(isinstance(e.loss, Loss), "loss", e.loss, f"one of {sorted(losses)} or a Loss object")
    if isinstance(e.schedule, str) or not callable(e.schedule):
        get_schedule(e.schedule)


def n_threads(n_jobs: int | None) -> int:
    """Threads for ``n_jobs`` as scikit-learn counts them: -1 is all of them."""
    limit = int(numba.config.NUMBA_NUM_THREADS)  # type: ignore[attr-defined]
    if n_jobs is None:
        return 1
    return max(1, min(limit, n_jobs if n_jobs > 0 else limit + 1 + n_jobs))


def number_to_keep(k: int | float, n_features: int) -> int:
    """How many of ``n_features`` stay for ``n_features_to_select=k``: an integer, or a fraction in (0, 1].

    Raises
    ------
    ValueError
        If ``k`` is neither.
    """
    if not is_size(k):
        raise ValueError(f"n_features_to_select={k!r} is not valid; expected an integer >= 1 or a fraction in (0, 1]")
    if not isinstance(k, Integral):
        return max(1, round(float(k) * n_features))
    if k > n_features:
        warnings.warn(f"n_features_to_select={k} is more than the {n_features} features; all are kept", stacklevel=4)
    return min(int(k), n_features)


def check_integer(name: str, value, least: int, most: int | None = None) -> None:
    """Complain unless ``value`` is an integer from ``least`` to ``most``."""
    _require(
        _is_whole(value) and value >= least and (most is None or value <= most),
        name,
        value,
        f"an integer >= {least}" if most is None else f"an integer from {least} to {most}",
    )


def check_real(name: str, value, least: float, most: float = sys.float_info.max, *, above: bool = False) -> None:
    """Complain unless ``value`` is a number of at least (or ``above``) ``least``, and at most ``most``: by default, finite."""
    is_number = isinstance(value, Real) and not isinstance(value, bool)
    expected = f"a number {'>' if above else '>='} {least:g}" + (f" and <= {most:g}" if most < sys.float_info.max else "")
    _require(is_number and (value > least if above else value >= least) and value <= most, name, value, expected)


def check_jobs(n_jobs) -> None:
    """Complain unless ``n_jobs`` counts as scikit-learn's does."""
    _require(n_jobs is None or (_is_whole(n_jobs) and n_jobs != 0), "n_jobs", n_jobs, "a non-zero integer or None")


def is_size(value) -> bool:
    """Whether ``value`` is a number of features: an integer >= 1 or a fraction in (0, 1]."""
    if _is_whole(value):
        return value >= 1
    return _is_number(value) and 0 < value <= 1


def _is_whole(value) -> bool:
    return isinstance(value, Integral) and not isinstance(value, bool)


def _is_number(value) -> bool:
    return isinstance(value, Real) and not isinstance(value, bool) and bool(np.isfinite(float(value)))


def _choice(name: str, value, allowed: tuple) -> None:
    if not any(value is a or (isinstance(value, str) and value == a) for a in allowed):
        raise ValueError(f"{name}={value!r} is unknown; expected one of {allowed}")


def _require(good: bool, name: str, value, expected: str) -> None:
    if not good:
        raise ValueError(f"{name}={value!r} is not valid; expected {expected}")


def check_sample_weight(sample_weight, n_samples: int) -> np.ndarray:
    """Weights (n_samples,) as float64: ones for None, the same number for all rows where it is one.

    Raises
    ------
    ValueError
        For another shape, a negative weight, NaN or infinity, and where all are zero.
    """
    if sample_weight is None:
        return np.ones(n_samples)
    if isinstance(sample_weight, Real):
        sample_weight = np.full(n_samples, float(sample_weight))
    weight = check_array(sample_weight, ensure_2d=False, dtype=np.float64, order="C", input_name="sample_weight")
    if weight.shape != (n_samples,):
        raise ValueError(f"sample_weight has shape {weight.shape}; expected one weight for each of the {n_samples} rows")
    if (weight < 0).any():
        raise ValueError(f"sample_weight holds {weight.min():g}; expected no negative weights")
    if not weight.any():
        raise ValueError("sample_weight is zero everywhere; expected at least one row with a positive weight")
    return weight


def feature_names(estimator) -> np.ndarray:
    """Names (n_features_in_,) of the columns that an estimator was fitted to: x0, x1, ... where they had none."""
    names = getattr(estimator, "feature_names_in_", None)
    return np.array([f"x{i}" for i in range(estimator.n_features_in_)], dtype=object) if names is None else names
