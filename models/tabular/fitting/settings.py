"""Choice of the task, and construction of the estimator, for the options of ``annealed select``."""

import inspect
import tomllib
from collections.abc import Sequence
from typing import Any

import numpy as np

from ....learners import (
    Constraints,
    FSAClassifier,
    FSARegressor,
    PiecewiseLinear,
    Prior,
    Refinement,
    Schedule,
    ScoreCardClassifier,
)
from ....learners.objective.losses import get_loss, losses_for
from ...messages import suggestion
from ..encoding import CATEGORY
from .options import SelectionOptions, parse_number
from .table import Table

MAX_CLASSES = 10  # maximum number of distinct integers that are treated as classes

# parameters that --param does not accept, and what to use instead
NOT_SET = {
    "n_features_to_select": "use -k",
    "loss": "use --loss, and set its parameters with --param loss.NAME=VALUE",
    "response": "use --response, and set its parameters with --param response.NAME=VALUE",
    "class_weight": "use --class-weight",
    "constraints": "use --include, --bounds, --group and --monotone",
    "random_state": "use --seed",
    "warm_start": "a command fits only one model",
    "verbose": "use --quiet",
}
_PARTS: dict[str, Any] = {
    "prior": Prior,
    "refinement": Refinement,
    "schedule": Schedule,
    "response": PiecewiseLinear,
}


def guess_task(y: np.ndarray) -> str:
    """Return "classification" or "regression", depending on the values of the target.

    The task is classification if the target contains text, booleans, or at most ``MAX_CLASSES``
    distinct integers. However, it is regression if the target contains more than two distinct
    numbers and more than half as many distinct numbers as rows.

    Examples
    --------
    >>> guess_task(np.array([0.0, 1.0, 1.0])), guess_task(np.array([0.5, 1.0, 1.0]))
    ('classification', 'regression')
    """
    if y.dtype.kind not in "iuf":
        return "classification"
    values = np.unique(y)
    few = len(values) <= min(MAX_CLASSES, max(2, len(y) / 2))
    return "classification" if few and (values == np.round(values)).all() else "regression"


def task_note(y: np.ndarray, task: str) -> list[str]:
    """Return a one-line message if the result of :func:`guess_task` is uncertain."""
    values = np.unique(y) if y.dtype.kind in "iuf" else np.empty(0)
    if not 2 < len(values) <= MAX_CLASSES or (values != np.round(values)).any():
        return []
    if task == "classification":
        line = (
            f"the {len(values)} distinct numbers of the target are treated as classes "
            "(override: --task regression)"
        )
    else:
        line = (
            f"the target has {len(values)} distinct numbers in {len(y)} rows, too many for "
            "classes, so the task is regression"
        )
    return [line]


def classes_of_one_row(y: np.ndarray) -> np.ndarray:
    """Return the indices of rows whose class has no other rows.

    The result is empty if fewer than two classes would remain without these rows.
    """
    _, which, counts = np.unique(y, return_inverse=True, return_counts=True)
    return np.flatnonzero(counts[which] == 1) if (counts > 1).sum() >= 2 else np.empty(0, int)


def check_target(y: np.ndarray, task: str) -> None:
    """Check that a target is suitable for the task.

    Raises
    ------
    ValueError
        If the target of a regression contains labels, classes are fractional numbers, there are
        more than half as many classes as rows, or the target is constant.
    """
    if task == "regression" and y.dtype.kind not in "iuf":
        raise ValueError(
            f"the target contains labels such as {str(y[0])!r}; "
            "expected numbers for --task regression"
        )
    if task == "classification":
        fractional = y[y != np.round(y)] if y.dtype.kind == "f" else []
        if len(fractional):
            raise ValueError(
                f"the target contains continuous values such as {fractional[0]:g}; "
                "expected labels for --task classification"
            )
        if (n_classes := len(np.unique(y))) > max(2, len(y) / 2):
            otherwise = ", or --task regression" if y.dtype.kind in "iuf" else ""
            raise ValueError(
                f"the target has {n_classes} distinct labels in {len(y)} rows; "
                f"expected several rows per class{otherwise}"
            )
    if len(np.unique(y)) < 2:
        expected = (
            "at least two classes" if task == "classification" else "at least two distinct numbers"
        )
        raise ValueError(f"the target has only one value ({str(y[0])!r}); expected {expected}")


def units_of(table: Table, prefixes: Sequence[str]) -> np.ndarray:
    """Return the unit of selection to which each matrix column belongs.

    A unit is a column of the table, or a group of columns whose names have a common prefix.

    Raises
    ------
    ValueError
        If no column name begins with one of the prefixes.
    """
    units = table.encoding.groups.copy()
    for prefix in prefixes:
        if not (numbers := [i for i, name in enumerate(table.names) if name.startswith(prefix)]):
            raise ValueError(
                f"--group {prefix}: no usable column has this prefix; the columns are "
                f"{', '.join(table.names[:10])}"
            )
        together = np.isin(table.encoding.groups, numbers)
        units[together] = units[together].min()
    return np.unique(units, return_inverse=True)[1]


def make_model(request: SelectionOptions, table: Table, task: str, k: int) -> Any:
    """Return the estimator that selects k units.

    Raises
    ------
    ValueError
        If an option is not compatible with the table, or a parameter is unknown.
    """
    y, units = table.y, units_of(table, request.group)
    if (request.card or request.response == "piecewise") and hasattr(table.X, "tocsr"):
        raise ValueError(
            f"--{'card' if request.card else 'response piecewise'} is not available for sparse "
            "tables; use linear responses"
        )
    if request.card and len(np.unique(y)) != 2:
        raise ValueError(
            f"--card: the target has {len(np.unique(y))} distinct values; expected two classes"
        )
    if request.card:
        return _with_params(ScoreCardClassifier(k), request)
    if request.class_weight and task != "classification":
        raise ValueError(
            f"--class-weight {request.class_weight[0]} is not available for regression; use "
            "--task classification"
        )
    if request.loss != "auto":
        _check_loss(request.loss, task, len(np.unique(y)))
    model: Any = FSAClassifier(k) if task == "classification" else FSARegressor(k)
    wanted = np.isin(table.encoding.groups, [table.names.index(name) for name in request.include])
    directions, bounds = _directions(request.monotone, table, task), _bounds(request.bounds, table)
    limited = [
        {text.rpartition("=")[0] for text in given} for given in (request.bounds, request.monotone)
    ]
    if both := set.intersection(*limited):
        raise ValueError(
            f"column {min(both)!r} is named by both --bounds and --monotone; use only one of them"
        )
    alone = units.max() + 1 == len(units)
    if not alone or wanted.any() or directions is not None or bounds is not None:
        constraints = Constraints(
            None if alone else units,
            wanted if wanted.any() else None,
            bounds=bounds,
            monotone=directions,
        )
        model.set_params(constraints=constraints)
    if task == "classification":
        model.set_params(class_weight=_class_weight(request.class_weight, np.unique(y)))
    return _with_params(
        model.set_params(response=request.response, loss=request.loss, random_state=request.seed),
        request,
    )


def _check_loss(loss: str, task: str, n_classes: int) -> None:
    kind = "multiclass" if n_classes > 2 else "binary"
    known = losses_for(kind if task == "classification" else task)
    if loss not in known:
        hint = ", or --task regression" if loss in losses_for("regression") else ""
        raise ValueError(
            f"--loss {loss} is not available for {task}{suggestion(loss, known)}; expected one "
            f"of {', '.join(sorted(known))}{hint}"
        )


def _with_params(model: Any, request: SelectionOptions) -> Any:
    """Set the parameters of ``--param`` on the estimator, and return it."""
    parts: dict[str, dict[str, Any]] = {}
    for given in request.param:
        name, sign, text = given.partition("=")
        owner, _, part = name.rpartition(".")
        if not sign:
            raise ValueError(f"--param {given} is not valid; expected NAME=VALUE")
        if not owner and name in NOT_SET:
            raise ValueError(f"--param {given}: {NOT_SET[name]}")
        known = model.get_params(deep=False).keys() - NOT_SET.keys()
        make = _PARTS.get(owner) or (
            type(get_loss(request.loss)) if owner == "loss" and request.loss != "auto" else None
        )
        if (owner == "loss" and make is None) or (
            owner == "response" and request.response != "piecewise"
        ):
            raise ValueError(
                f"--param {given}: this {owner} has no parameters; use another --{owner}"
            )
        if owner:
            known = (
                set(inspect.signature(make).parameters)
                if make is not None and owner in model.get_params(deep=False)
                else set()
            )
        if part not in known:
            expected = ", ".join(sorted(known)) or f"{', '.join(_PARTS)} or loss before the dot"
            raise ValueError(
                f"--param {given}: {type(model).__name__} has no such parameter; "
                f"expected one of {expected}"
            )
        try:
            value = tomllib.loads(f"value = {text}")["value"]
        except tomllib.TOMLDecodeError:
            value = None if text == "None" else text
        if not owner:
            model.set_params(**{name: value})
            continue
        parts.setdefault(owner, {})[part] = value
        model.set_params(**{owner: (make or dict)(**parts[owner])})
    return model


def _class_weight(given: Sequence[str], classes: np.ndarray) -> str | dict[Any, float] | None:
    if list(given) == ["balanced"]:
        return "balanced"
    labels = {str(label): label for label in classes.tolist()}
    weights = {}
    for text in given:
        name = text.rpartition("=")[0]
        if name not in labels:
            raise ValueError(
                f"--class-weight {text} is not valid; expected balanced, or CLASS=NUMBER, where "
                f"CLASS is one of {', '.join(labels)}"
            )
        weights[labels[name]] = parse_number("--class-weight", text)
    return weights or None


def _columns_of(option: str, given: str, table: Table, expected: str) -> np.ndarray:
    """Return a mask of the matrix columns of the column in "COLUMN=..."."""
    name, sign, _ = given.rpartition("=")
    if not sign or not name:
        raise ValueError(f"{option} {given} is not valid; expected {expected}")
    if name not in table.names:
        raise ValueError(
            f"{option} {given}: column {name!r} cannot be used "
            f"({table.left_out.get(name, 'not in the table')})"
        )
    number = table.names.index(name)
    if table.encoding.columns[number].kind == CATEGORY:
        raise ValueError(
            f"{option} {given}: {name!r} is categorical; expected a column of numbers or dates"
        )
    return table.encoding.groups == number


def _directions(monotone: Sequence[str], table: Table, task: str) -> np.ndarray | None:
    """Return +1, -1 or 0 for each matrix column, given options such as "COLUMN=+" and
    "COLUMN=-"."""
    directions, expected = np.zeros(table.X.shape[1], int), "COLUMN=+ or COLUMN=-"
    for given in monotone:
        if given[-1:] not in "+-":
            raise ValueError(f"--monotone {given} is not valid; expected {expected}")
        directions[_columns_of("--monotone", given, table, expected)] = (
            1 if given[-1:] == "+" else -1
        )
    if monotone and task == "classification" and (n := len(np.unique(table.y))) > 2:
        raise ValueError(
            f"--monotone {monotone[0]}: the target has {n} classes; "
            "expected two classes, or regression"
        )
    return directions if monotone else None


def _bounds(
    bounds: Sequence[str], table: Table
) -> dict[int, tuple[float | None, float | None]] | None:
    """Return pairs of bounds for the matrix columns, given options such as "COLUMN=LOW:HIGH"."""
    result = {}
    for given in bounds:
        low, sign, high = given.rpartition("=")[2].partition(":")
        if not sign:
            raise ValueError(
                f"--bounds {given} is not valid; expected COLUMN=LOW:HIGH, such as age=0: or "
                "age=-1:1"
            )
        ends = tuple(parse_number("--bounds", given, end) if end else None for end in (low, high))
        if (ends[0] or 0.0) > 0.0 or (ends[1] or 0.0) < 0.0:
            raise ValueError(f"--bounds {given} is not valid; expected bounds that include 0")
        result[int(np.flatnonzero(_columns_of("--bounds", given, table, "COLUMN=LOW:HIGH"))[0])] = (
            ends
        )
    return result or None  # type: ignore[return-value]
