"""The estimators' shared parameters: their words for the docstrings, and one clear line for every bad value."""

from __future__ import annotations

import inspect
import sys
import warnings
from collections.abc import Callable
from numbers import Integral, Real

import numba
import numpy as np
from sklearn.utils.multiclass import check_classification_targets

from ..objective.losses import Loss
from ..objective.priors import Prior
from ..solvers.schedules import get_schedule
from ..sources.files import n_bytes

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
    memory_limit : int, str or None
        For data outside memory: bytes to be used, such as 2000000000 or "2GB". By default 2 GiB for files and half a GiB, on the
        client, for Dask. A ``numpy.memmap`` is read in blocks where this is given. The result does not depend on it.
    subsample : float, default 1.0
        For data outside memory: part of the rows that a step reads while the columns left do not fit; blocks of rows at random.
    device : str or None
        Where torch computes, such as "cpu" or "cuda"; needs ``annealed[torch]``. Without it tensors are used where they are.
    random_state : int, RandomState or None
        Which rows ``subsample`` takes. Everything else is deterministic.
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
    _require(_is_number(e.subsample) and 0 < e.subsample <= 1, "subsample", e.subsample, "a number in (0, 1]")
    if e.memory_limit is not None:
        n_bytes(e.memory_limit)
    _require(e.device is None or isinstance(e.device, str), "device", e.device, "the name of a device such as 'cpu' or 'cuda'")
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


def group_codes(groups, n_features: int) -> np.ndarray | None:
    """Groups as whole numbers 0, 1, ... in the order of their first column.

    Raises
    ------
    ValueError
        If there is not one label per feature.
    """
    if groups is None:
        return None
    labels = np.asarray(groups)
    if labels.shape != (n_features,):
        raise ValueError(f"groups has shape {labels.shape}; expected one label for each of the {n_features} features")
    _, first, codes = np.unique(labels, return_index=True, return_inverse=True)
    return np.argsort(np.argsort(first))[codes]


def step_counts(schedule: str | Callable, n_features: int, k: int, n_steps: int, mu: float) -> np.ndarray:
    """Number of features left after each step, checked where the schedule is a function of the user's.

    Raises
    ------
    ValueError
        If the counts rise, leave the range k..n_features or do not end at k.
    """
    counts = np.asarray(get_schedule(schedule)(n_features, k, n_steps, mu))
    whole = counts.ndim == 1 and len(counts) > 0 and counts.dtype.kind in "iu"
    if not whole or counts[0] > n_features or counts[-1] != k or (np.diff(counts) > 0).any():
        raise ValueError(
            f"schedule={schedule!r} gave {_ends(counts)}; expected integers that fall from at most {n_features} to {k}"
        )
    return counts


def _ends(counts: np.ndarray) -> str:
    flat = counts.ravel().tolist()
    return f"{flat[0]} ... {flat[-1]}" if len(flat) > 1 else str(flat)


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


def class_codes(y) -> tuple[np.ndarray, np.ndarray]:
    """Classes in ascending order, and the place of each row's label among them.

    Raises
    ------
    ValueError
        For numbers that are no labels, labels that cannot be ordered, or one class only.
    TypeError
        For labels that are bytes.
    """
    try:
        check_classification_targets(y)
        classes, codes = np.unique(y, return_inverse=True)
    except TypeError:
        kinds = sorted({type(label).__name__ for label in np.ravel(y).tolist()})
        if len(kinds) == 1:  # scikit-learn says why they cannot be labels
            raise
        raise ValueError(f"y mixes labels of type {' and '.join(kinds)}; expected labels of one type") from None
    if len(classes) < 2:
        raise ValueError(f"y holds one class only ({classes.tolist()[0]!r}); a classifier needs at least two")
    return classes, codes


def unit_variance(y, share: np.ndarray) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Targets (n, q) of mean 0 and variance 1 per output under weights that sum to one, their means and their scales.

    Otherwise a support that all outputs share would serve the output with the largest unit.

    Raises
    ------
    ValueError
        For numbers so large that their squares overflow.
    """
    targets = np.asarray(y, dtype=np.float64).reshape(len(y), -1)
    mean = share @ targets
    with np.errstate(over="ignore"):
        scale = np.sqrt(share @ (targets - mean) ** 2)
    if not np.isfinite(scale).all():
        most = np.abs(targets).max()
        raise ValueError(f"y holds values up to {most:g}, whose squares overflow; expected numbers of moderate size")
    scale[scale == 0] = 1.0
    return (targets - mean) / scale, mean, scale


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
