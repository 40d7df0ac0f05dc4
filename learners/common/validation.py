"""Validation of parameters and data, with one-line error messages."""

import sys
import warnings
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from numbers import Integral, Real
from typing import Any

import numpy as np
import scipy.sparse as sp
from sklearn.utils import check_array
from sklearn.utils.validation import validate_data

from ..compilation import all_threads
from ..sklearn_bases import BaseEstimator
from ..types import ArrayLike, Matrix


@contextmanager
def rollback_on_error(estimator: BaseEstimator) -> Iterator[None]:
    """Restore the estimator's previous state if fitting fails or is interrupted."""
    before = vars(estimator).copy()
    try:
        yield
    except BaseException:
        estimator.__dict__.clear()
        estimator.__dict__.update(before)
        raise


def check_container(name: str, values: Any, *, numbers: bool = True) -> None:
    """Reject lazy frames and masked values, and also dates if ``numbers`` are expected.

    Raises
    ------
    TypeError
        If the values are a lazy frame.
    ValueError
        If there are masked values, dates or durations.

    Examples
    --------
    >>> check_container("y", np.array(["2024-03-01"], "M8[D]"))
    Traceback (most recent call last):
    ...
    ValueError: y contains datetime64[D] values; expected numbers, such as (y - ...
    """
    if type(values).__name__ == "LazyFrame":
        raise TypeError(
            f"{name} is a LazyFrame, which contains no values yet; call its collect() first"
        )
    if np.ma.is_masked(values):
        n = np.ma.count_masked(values)
        raise ValueError(
            f"{name} is a masked array with {n} masked values; replace them first, for example "
            "with its filled method"
        )
    if not numbers:
        return
    dtypes = getattr(values, "dtypes", None)
    if dtypes is None:
        dtypes = [
            np.asarray(values[:1]).dtype
            if isinstance(values, list | tuple)
            else getattr(values, "dtype", None)
        ]
    for dtype in dtypes if hasattr(dtypes, "__iter__") else [dtypes]:  # data frame or series
        # Polars types have no ``kind``
        if getattr(dtype, "kind", "") in ("m", "M") or str(dtype).startswith(
            ("Date", "Duration", "Time")
        ):
            unit = 'np.timedelta64(1, "D")'
            raise ValueError(
                f"{name} contains {dtype} values; convert them to numbers, for example with "
                f"({name} - {name}.min()) / {unit}"
            )


def validated(estimator: BaseEstimator, X: Matrix, y: Any = "no_validation", **options: Any) -> Any:
    """Return X, or X and y, after :func:`check_container` and scikit-learn's ``validate_data``.

    Raises
    ------
    ValueError, TypeError
        If :func:`check_container` or ``validate_data`` rejects the data.
    """
    check_container("X", X)
    if not isinstance(y, str):
        check_container("y", y, numbers=options.get("y_numeric", False))
    try:
        return validate_data(estimator, X, y, **options)
    except ValueError as error:
        for name in getattr(X, "columns", ()) if "convert" in str(error) else ():
            text = next((cell for cell in X[name] if isinstance(cell, str)), None)
            if text is not None:
                raise ValueError(
                    f"column {name!r} contains text ({text!r}); expected numbers "
                    "(TabularSelector accepts text, dates and missing values)"
                ) from None
        raise


def n_threads(n_jobs: int | None) -> int:
    """Return the number of threads for ``n_jobs``, as defined by scikit-learn (-1: all cores)."""
    if n_jobs is None:
        return 1
    limit = all_threads()
    return max(1, min(limit, n_jobs if n_jobs > 0 else limit + 1 + n_jobs))


def resolve_n_features(k: int | float, n_features: int, what: str = "features") -> int:
    """Return the number of features that ``n_features_to_select=k`` selects.

    ``k`` is an integer, or a fraction of ``n_features`` in (0, 1].

    Raises
    ------
    ValueError
        If ``k`` is neither an integer nor a valid fraction.
    """
    if not is_size(k):
        raise ValueError(
            f"n_features_to_select={k!r} is not valid; "
            "expected an integer >= 1 or a fraction in (0, 1]"
        )
    if not isinstance(k, Integral):
        return max(1, round(float(k) * n_features))
    if k > n_features:
        warnings.warn(
            f"n_features_to_select={k} exceeds the {n_features} available {what}, so all of "
            "them are kept",
            stacklevel=2,
        )
    return min(int(k), n_features)


def check_finite(
    X: Matrix, names: np.ndarray | None = None, expected: str = "expected finite numbers"
) -> None:
    """Check that a dense or sparse matrix is finite.

    Raises
    ------
    ValueError
        If the matrix contains NaN or infinity. The message names the first position.

    Examples
    --------
    >>> check_finite(np.array([[0.0, 1.0], [2.0, np.nan]]))
    Traceback (most recent call last):
    ...
    ValueError: X contains NaN (row 1, column 1); expected finite numbers
    """
    values = X.data if sp.issparse(X) else X
    with np.errstate(over="ignore", invalid="ignore"):
        # Checking the sum is cheap and nearly always sufficient.
        if np.isfinite(values.sum()) or np.isfinite(values).all():
            return
    at = np.unravel_index(int(np.argmin(np.isfinite(values))), values.shape)
    row, column = (i[at[0]] for i in sp.coo_array(X).coords) if sp.issparse(X) else at
    what, column = (
        "NaN" if np.isnan(values[at]) else "infinity",
        column if names is None else names[column],
    )
    raise ValueError(f"X contains {what} (row {row}, column {column}); {expected}")


def check_squares(X: Matrix) -> None:
    """Check that the squares of a finite dense or CSR matrix neither overflow nor underflow.

    Raises
    ------
    ValueError
        If the squares of a column overflow or underflow. The message names the first such column.

    Examples
    --------
    >>> check_squares(np.array([[0.0, 1.0], [1e-200, 2.0]]))
    Traceback (most recent call last):
    ...
    ValueError: column 0 of X contains values up to 1e-200, whose squares underflow; expected ...
    """
    most = abs(X).max(axis=0)
    most = most.toarray().ravel() if sp.issparse(most) else most
    wrong = (most > 1e150) | ((most < 1e-150) & (most > 0))
    if wrong.any():
        column = int(np.argmax(wrong))
        what = "overflow" if most[column] > 1 else "underflow"
        raise ValueError(
            f"column {column} of X contains values up to {most[column]:g}, whose squares "
            f"{what}; rescale the column"
        )


def check_integer(name: str, value: Any, low: int, high: int | None = None) -> None:
    """Check that ``value`` is an integer from ``low`` to ``high``."""
    expected = f"an integer >= {low}" if high is None else f"an integer from {low} to {high}"
    _require(
        _is_whole(value) and value >= low and (high is None or value <= high),
        name,
        value,
        expected,
    )


def check_real(
    name: str,
    value: Any,
    low: float,
    high: float = sys.float_info.max,
    *,
    above: bool = False,
    below: bool = False,
) -> None:
    """Check that ``low <= value <= high``; ``above`` and ``below`` make the limits exclusive."""
    expected = f"a number {'>' if above else '>='} {low:g}"
    if high < sys.float_info.max:
        expected += f" and {'<' if below else '<='} {high:g}"
    inside = (
        _is_number(value)
        and (value > low if above else value >= low)
        and (value < high if below else value <= high)
    )
    _require(inside, name, value, expected)


def check_jobs(n_jobs: object) -> None:
    """Check that ``n_jobs`` is a non-zero integer or None."""
    _require(
        n_jobs is None or (_is_whole(n_jobs) and n_jobs != 0),
        "n_jobs",
        n_jobs,
        "a non-zero integer or None",
    )


def is_size(value: Any) -> bool:
    """Return whether ``value`` is an integer >= 1 or a fraction in (0, 1]."""
    return value >= 1 if _is_whole(value) else _is_number(value) and 0 < value <= 1


def _is_whole(value: Any) -> bool:
    return isinstance(value, Integral) and not isinstance(value, bool)


def _is_number(value: Any) -> bool:
    return isinstance(value, Real) and not isinstance(value, bool)


def check_choice(name: str, value: Any, allowed: tuple) -> None:
    """Check that ``value`` is in ``allowed``."""
    if not _is_one_of(value, allowed):
        raise ValueError(f"{name}={value!r} is unknown; expected one of {allowed}")


def _is_one_of(value: Any, allowed: tuple) -> bool:
    return any(value is a or (isinstance(value, str) and value == a) for a in allowed)


def check_parameters(
    check: Callable,
    estimator: BaseEstimator,
    names: tuple[str, ...],
    *limits: Any,
    unless: tuple = (),
    **options: bool,
) -> None:
    """Check parameters of an estimator by type, range or choice; values in ``unless`` are valid."""
    for name in names:
        value = getattr(estimator, name)
        if not _is_one_of(value, unless):
            check(name, value, *limits, **options)


def check_greedy(
    criterion: str, delta: float | None, epsilon: float | None, size: int | float | None
) -> None:
    """Check the entry criterion and the thresholds of a greedy search.

    Raises
    ------
    ValueError
        If a parameter is not valid. The message states its name, its value and the expectation.
    """
    check_choice("criterion", criterion, ("gradient", "objective"))
    for name, value, belongs in (("delta", delta, "objective"), ("epsilon", epsilon, "gradient")):
        if value is not None:
            check_real(name, value, 0.0, above=True)
            if criterion != belongs:
                raise ValueError(
                    f"{name}={value!r} applies to criterion={belongs!r}, not to {criterion!r}"
                )
    if size is None and delta is None and epsilon is None:
        raise ValueError("n_features_to_select=None requires a threshold; set delta or epsilon")


def _require(good: bool, name: str, value: Any, expected: str) -> None:
    if not good:
        raise ValueError(f"{name}={value!r} is not valid; expected {expected}")


def check_offset(offset: ArrayLike, n_samples: int, n_outputs: int) -> np.ndarray:
    """Return the offsets of the scores as a float64 array of shape (n_samples, n_outputs).

    Raises
    ------
    ValueError
        If the shape is wrong, or an offset is not finite.
    """
    values = check_array(offset, ensure_2d=False, dtype=np.float64, input_name="offset")
    if values.shape not in ((n_samples, n_outputs), (n_samples,) if n_outputs == 1 else ()):
        raise ValueError(
            f"offset has shape {values.shape}; "
            f"expected {n_outputs} number{'s' * (n_outputs > 1)} for each of the {n_samples} rows"
        )
    return values.reshape(n_samples, n_outputs)


def check_sample_weight(sample_weight: ArrayLike | None, n_samples: int) -> np.ndarray:
    """Return the row weights as a float64 array; None means ones, and a scalar is repeated.

    Raises
    ------
    ValueError
        If the shape is wrong, a weight is negative or not finite, or all weights are zero.
    """
    if sample_weight is None:
        return np.ones(n_samples)
    if isinstance(sample_weight, Real):
        sample_weight = np.full(n_samples, float(sample_weight))
    weight = check_array(
        sample_weight, ensure_2d=False, dtype=np.float64, order="C", input_name="sample_weight"
    )
    if weight.shape != (n_samples,):
        raise ValueError(
            f"sample_weight has shape {weight.shape}; "
            f"expected one weight for each of the {n_samples} rows"
        )
    if (weight < 0).any():
        raise ValueError(f"sample_weight contains {weight.min():g}; expected non-negative weights")
    if not weight.any():
        raise ValueError(
            "sample_weight is zero everywhere; at least one row must have a positive weight"
        )
    return weight
