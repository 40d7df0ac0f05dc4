"""Validation of data, with one-line error messages."""

from collections.abc import Iterator
from contextlib import contextmanager
from numbers import Real
from typing import Any

import numpy as np
import scipy.sparse as sp
from sklearn.utils import check_array
from sklearn.utils.validation import validate_data

from ..parameters import (  # noqa: F401  # re-exported for estimators
    check_choice,
    check_greedy,
    check_integer,
    check_jobs,
    check_parameters,
    check_real,
    is_size,
    n_threads,
    resolve_n_features,
)
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
    """Reject lazy data frames, masked values and, if ``numbers`` is set, dates and durations.

    Raises
    ------
    TypeError
        If the values are a lazy data frame.
    ValueError
        If there are masked values or, with ``numbers``, dates or durations.

    Examples
    --------
    >>> check_container("y", np.array(["2024-03-01"], "M8[D]"))
    Traceback (most recent call last):
    ...
    ValueError: y contains datetime64[D] values; convert them to numbers, for example ...
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
    """Check X, or X and y, with :func:`check_container` and ``validate_data``, and return them.

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
    what = "NaN" if np.isnan(values[at]) else "infinity"
    column = column if names is None else names[column]
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
    ValueError: column 0 of X contains values up to 1e-200, whose squares underflow; rescale ...
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


def check_offset(offset: ArrayLike, n_samples: int, n_outputs: int) -> np.ndarray:
    """Validate offsets, and return them with shape (n_samples, n_outputs).

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
    """Validate row weights, and return them as an array; None means ones, and a scalar is repeated.

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
