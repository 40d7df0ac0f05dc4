"""Declaration and validation of parameters; scikit-learn is not imported."""

import sys
import warnings
from collections.abc import Callable
from dataclasses import dataclass, field, fields
from inspect import Parameter, signature
from numbers import Integral, Real
from typing import Any, TypeVar, dataclass_transform

from .compilation import all_threads

Estimator = TypeVar("Estimator")
# Parameters that most estimators share, in their order
_SHARED = (
    "ridge",
    "fit_transitions",
    "fit_intercept",
    "max_iter",
    "tol",
    "class_weight",
    "random_state",
    "n_jobs",
    "verbose",
)


@dataclass_transform(kw_only_default=True, field_specifiers=(field,))
def estimator(cls: type[Estimator]) -> type[Estimator]:
    """Turn the annotated attributes of a class and its bases into keyword parameters.

    A dataclass has the parameters of its bases first. Here, the shared ones come last, so that
    they have the same order in each estimator, whether or not they are inherited.
    """
    made: Any = dataclass(eq=False, repr=False, kw_only=True)(cls)
    place = {name: number for number, name in enumerate(_SHARED, 1)}
    constructor = signature(made.__init__)
    ordered = sorted(
        constructor.parameters.values(),
        key=lambda p: place.get(p.name, 0) if p.kind is Parameter.KEYWORD_ONLY else 0,
    )
    made.__init__.__signature__ = constructor.replace(parameters=ordered)
    return made


def limits(check: Callable, *arguments: Any, **options: Any) -> dict[str, Any]:
    """Return the metadata of a parameter that ``check`` validates in ``check_declared``."""
    return {"check": (check, arguments, options)}


def checked(default: Any, check: Callable, *arguments: Any, **options: Any) -> Any:
    """Declare a keyword parameter by its default value and its limits.

    Examples
    --------
    >>> @estimator
    ... class Example:
    ...     n_steps: int = checked(100, check_integer, 1)
    ...     size: int | None = checked(None, check_integer, 1, unless=(None,))
    >>> check_declared(Example(n_steps=0))
    Traceback (most recent call last):
        ...
    ValueError: n_steps=0 is not valid; expected an integer >= 1
    """
    return field(default=default, metadata=limits(check, *arguments, **options))


def check_declared(estimator: Any) -> None:
    """Check the parameters that are declared with limits, in the order of their declaration."""
    for parameter in fields(estimator):
        if "check" in parameter.metadata:
            check, arguments, options = parameter.metadata["check"]
            check_parameters(check, estimator, (parameter.name,), *arguments, **options)


def n_threads(n_jobs: int | None) -> int:
    """Return the number of threads for a value of ``n_jobs`` as defined by scikit-learn."""
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
    """Check that ``low <= value <= high``.

    If ``above`` is set, ``low`` itself is not allowed. If ``below`` is set, ``high`` itself is not
    allowed.
    """
    expected = (
        f"a number {'>' if above else '>='} {low:g}"
        if high == sys.float_info.max
        else f"a number in {'[('[above]}{low:g}, {high:g}{'])'[below]}"
    )
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
    estimator: object,
    names: tuple[str, ...],
    *limits: Any,
    unless: tuple = (),
    **options: bool,
) -> None:
    """Check the type, range or choice of parameters; values in ``unless`` are always valid."""
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
        If a parameter is not valid. The message states its name, its value and the expected values.
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
        value = f" {value}" if name.startswith("-") else f"={value!r}"
        raise ValueError(f"{name}{value} is not valid; expected {expected}")
