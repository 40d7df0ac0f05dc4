"""The estimator that the options of ``annealed select`` make."""

import inspect
import tomllib
from collections.abc import Sequence
from typing import Any

import numpy as np

from ...learners import (
    Constraints,
    FSAClassifier,
    FSARegressor,
    PiecewiseLinear,
    Prior,
    Refinement,
    Schedule,
    ScoreCardClassifier,
)
from ...learners.objective.losses import get_loss
from ...models.tabular.encoding import CATEGORY
from .encoding import Table
from .request import Request, parse_number

# parameters that --param does not take, and why
NOT_SET = {
    "n_features_to_select": "-k says how many columns",
    "loss": "--loss names it, and --param loss.NAME=VALUE its parameters",
    "response": "--response names it, and --param response.NAME=VALUE its parameters",
    "class_weight": "--class-weight says it",
    "constraints": "--include, --bounds, --group and --monotone say them",
    "random_state": "--seed sets it",
    "warm_start": "a command fits once",
    "verbose": "progress is shown unless there is --quiet",
}
_PARTS: dict[str, Any] = {
    "prior": Prior,
    "refinement": Refinement,
    "schedule": Schedule,
    "response": PiecewiseLinear,
}


def units_of(table: Table, beginnings: Sequence[str]) -> np.ndarray:
    """For each column of the matrix what it is selected with: its column of the table, or those
    whose names begin alike.

    Raises
    ------
    ValueError
        If no column begins so.
    """
    units = table.encoding.groups.copy()
    for beginning in beginnings:
        numbers = [i for i, name in enumerate(table.names) if name.startswith(beginning)]
        if not numbers:
            raise ValueError(
                f"--group {beginning}: no usable column begins so; the columns are {', '.join(table.names[:10])}"
            )
        together = np.isin(table.encoding.groups, numbers)
        units[together] = units[together].min()
    return np.unique(units, return_inverse=True)[1]


def make_model(request: Request, table: Table, task: str, k: int) -> Any:
    """Return the estimator for k units.

    Raises
    ------
    ValueError
        For wishes that the table does not allow, and for parameters that there are not.
    """
    y, units = table.y, units_of(table, request.group)
    if (request.card or request.response == "piecewise") and hasattr(table.X, "tocsr"):
        raise ValueError(
            f"--{'card' if request.card else 'response piecewise'}: a sparse table has linear responses only"
        )
    if request.card and len(np.unique(y)) != 2:
        raise ValueError(
            f"--card: the target has {len(np.unique(y))} different values; expected two classes"
        )
    if request.card:
        return _with_params(ScoreCardClassifier(k), request)
    if request.class_weight and task != "classification":
        raise ValueError(
            f"--class-weight {request.class_weight[0]}: a regression has no classes; expected no weights of classes"
        )
    model: Any = FSAClassifier(k) if task == "classification" else FSARegressor(k)
    wanted = np.isin(table.encoding.groups, [table.names.index(name) for name in request.include])
    directions, bounds = _directions(request.monotone, table, task), _bounds(request.bounds, table)
    for name in {given.rpartition("=")[0] for given in request.monotone} & {
        given.rpartition("=")[0] for given in request.bounds
    }:
        raise ValueError(f"column {name!r} has --bounds and --monotone; expected one of them")
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


def _with_params(model: Any, request: Request) -> Any:
    """The estimator with ``--param``."""
    parts: dict[str, dict[str, Any]] = {}
    for given in request.param:
        name, sign, text = given.partition("=")
        owner, _, part = name.rpartition(".")
        if not sign:
            raise ValueError(f"--param {given}: expected NAME=VALUE")
        if not owner and name in NOT_SET:
            raise ValueError(f"--param {given}: {NOT_SET[name]}")
        known = model.get_params(deep=False).keys() - NOT_SET.keys()
        make = _PARTS.get(owner) or (
            type(get_loss(request.loss)) if owner == "loss" and request.loss != "auto" else None
        )
        if (owner == "loss" and make is None) or (
            owner == "response" and request.response != "piecewise"
        ):
            raise ValueError(f"--param {given}: expected a --{owner} that has parameters")
        if owner:
            known = (
                set(inspect.signature(make).parameters)
                if make is not None and owner in model.get_params(deep=False)
                else set()
            )
        if part not in known:
            expected = (
                ", ".join(sorted(known)) or f"one of {', '.join(_PARTS)} or loss before the point"
            )
            raise ValueError(
                f"--param {given}: {type(model).__name__} has no such parameter; expected {expected}"
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
                f"--class-weight {text}: expected balanced, or CLASS=NUMBER with one of {', '.join(labels)}"
            )
        weights[labels[name]] = parse_number("--class-weight", text)
    return weights or None


def _columns_of(option: str, given: str, table: Table, expected: str) -> np.ndarray:
    """Which columns of the matrix "COLUMN=..." speaks of."""
    name, sign, _ = given.rpartition("=")
    if not sign or not name:
        raise ValueError(f"{option} {given}: expected {expected}")
    if name not in table.names:
        raise ValueError(
            f"{option} {given}: no usable column {name!r}; {table.left_out.get(name, 'the table has none')}"
        )
    number = table.names.index(name)
    if table.encoding.columns[number].kind == CATEGORY:
        raise ValueError(
            f"{option} {given}: {name!r} is a category; expected a column of numbers or dates"
        )
    return table.encoding.groups == number


def _directions(monotone: Sequence[str], table: Table, task: str) -> np.ndarray | None:
    """+1, -1 or 0 for each column of the matrix, from "COLUMN=+" and "COLUMN=-"."""
    directions, expected = np.zeros(table.X.shape[1], int), "COLUMN=+ or COLUMN=-"
    for given in monotone:
        if given[-1:] not in "+-":
            raise ValueError(f"--monotone {given}: expected {expected}")
        directions[_columns_of("--monotone", given, table, expected)] = (
            1 if given[-1:] == "+" else -1
        )
    if monotone and task == "classification" and (n := len(np.unique(table.y))) > 2:
        raise ValueError(
            f"--monotone {monotone[0]}: the target has {n} classes; expected two, or a regression"
        )
    return directions if monotone else None


def _bounds(
    bounds: Sequence[str], table: Table
) -> dict[int, tuple[float | None, float | None]] | None:
    """Pairs of bounds by column of the matrix, from "COLUMN=LEAST:GREATEST"."""
    found = {}
    for given in bounds:
        low, sign, high = given.rpartition("=")[2].partition(":")
        if not sign:
            raise ValueError(
                f"--bounds {given}: expected COLUMN=LEAST:GREATEST, such as age=0: or age=-1:1"
            )
        ends = tuple(parse_number("--bounds", given, end) if end else None for end in (low, high))
        if (ends[0] or 0.0) > 0.0 or (ends[1] or 0.0) < 0.0:
            raise ValueError(f"--bounds {given}: expected bounds with 0 between them")
        found[
            int(np.flatnonzero(_columns_of("--bounds", given, table, "COLUMN=LEAST:GREATEST"))[0])
        ] = ends
    return found or None  # type: ignore[return-value]
