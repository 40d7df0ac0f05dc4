"""What ``annealed select`` is asked for, and the estimator that this makes."""

from __future__ import annotations

import inspect
import tomllib
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
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
_PARTS: dict[str, Any] = {"prior": Prior, "refinement": Refinement, "schedule": Schedule, "response": PiecewiseLinear}


@dataclass(frozen=True)
class Request:
    """What a selection is asked for; the options of ``annealed select`` by their names.

    Attributes
    ----------
    target : str or None
        Column to predict; npz and svmlight files bring their own.
    k : str or None
        A number from 1 on, or "auto"; more than there are columns keeps all, with a warning. None
        with ``fdr``.
    task : {"auto", "classification", "regression"}
    response : {"linear", "piecewise"}
    loss : str
        Name of a loss that the estimator of the task knows.
    class_weight : sequence of str
        "balanced", or "CLASS=NUMBER" each.
    param : sequence of str
        "NAME=VALUE": other parameters of the estimator, those of its parts as "prior.shrinkage=1".
    score : str or None
        Name in :data:`.validation.SCORES`: chooses the size, and is shown first.
    include, exclude : sequence of str
        Columns that are selected in any case, and columns that may not be.
    monotone : sequence of str
        "COLUMN=+" or "COLUMN=-": columns with which the score may only rise, or fall.
    bounds : sequence of str
        "COLUMN=LEAST:GREATEST", either of which may be empty: bounds of coefficients.
    group : sequence of str
        Beginnings of the names of columns that are selected together, and count as one.
    kinds : sequence of str
        "COLUMN=KIND", number, category, date or low<medium<high: how a column is read instead of as
        it looks.
    card : bool
        A score card of k rules instead of k columns: two classes.
    keep_rare : bool
        Classes of one row stay, so that there is no cross-validation.
    weight, row_groups, time : str or None
        Columns of the weight of each row; of rows that stay together in cross-validation; of what
        orders the rows, so that each fold is predicted from earlier ones.
    split_duplicates : bool
        Equal rows may be in different folds.
    boosting : bool
        Score gradient boosting on all columns, too.
    test : path or None
        Another table whose rows score the model.
    fdr : float or None
        Select the columns of which at most this share is false.
    intervals, pvalues : bool
        Whether coefficients get confidence intervals, and columns p-values; both with ``fdr``.
    seed : int
        Of folds, halves and drawn rows.
    memory_limit : str or None
        Bytes, such as "2GB", that a table in Parquet files may use; None: all in memory, but for
        folders.
    dask : str or None
        Address of a Dask scheduler, on whose workers a table in Parquet files is fitted.
    sep, encoding, dates : str or None
        See :func:`.tables.read_frame` and :func:`.encoding.encode_frame`.
    """

    target: str | None = None
    k: str | None = None
    task: str = "auto"
    response: str = "linear"
    loss: str = "auto"
    class_weight: Sequence[str] = ()
    param: Sequence[str] = ()
    score: str | None = None
    include: Sequence[str] = ()
    exclude: Sequence[str] = ()
    monotone: Sequence[str] = ()
    bounds: Sequence[str] = ()
    group: Sequence[str] = ()
    kinds: Sequence[str] = ()
    card: bool = False
    keep_rare: bool = False
    weight: str | None = None
    row_groups: str | None = None
    time: str | None = None
    split_duplicates: bool = False
    boosting: bool = False
    test: Path | None = None
    fdr: float | None = None
    intervals: bool = False
    pvalues: bool = False
    seed: int = 0
    memory_limit: str | None = None
    dask: str | None = None
    sep: str | None = None
    encoding: str | None = None
    dates: str | None = None

    def check(self) -> None:
        """Complain about wishes that exclude each other.

        Raises
        ------
        ValueError
            If there are such.
        """
        if (self.k is None) == (self.fdr is None):
            raise ValueError("expected either -k or --fdr")
        if self.card and self.k == "auto":
            raise ValueError("-k auto: a score card needs a number of rules; expected -k with a number")
        linear = {"--response piecewise": self.response != "linear", "--monotone": self.monotone, "--bounds": self.bounds}
        choice = {
            "--include": self.include,
            "--group": self.group,
            "--loss": self.loss != "auto",
            "--class-weight": self.class_weight,
        }
        sure = {"--fdr": self.fdr is not None, "--intervals": self.intervals}
        for option, given in (linear | choice | sure).items():
            if self.card and given:
                raise ValueError(f"--card: {option} is not for score cards; expected one of them")
        for option, given in sure.items():
            if given and self.weight is not None:
                raise ValueError(f"{option}: tests and intervals take no weights; expected no --weight")
        if self.row_groups is not None and self.time is not None:
            raise ValueError("--time orders the rows; expected no --row-groups")

    def record(self) -> dict[str, Any]:
        """The wishes for JSON; None where there is none."""
        unsaid = {"pvalues", *(name for name in ("memory_limit", "dask") if not getattr(self, name))}
        found = {name: value or None for name, value in asdict(self).items() if name not in unsaid}
        return {name: list(v) if isinstance(v, tuple) else v if v is None else getattr(v, "name", v) for name, v in found.items()}


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
            raise ValueError(f"--group {beginning}: no usable column begins so; the columns are {', '.join(table.names[:10])}")
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
        raise ValueError(f"--{'card' if request.card else 'response piecewise'}: a sparse table has linear responses only")
    if request.card and len(np.unique(y)) != 2:
        raise ValueError(f"--card: the target has {len(np.unique(y))} different values; expected two classes")
    if request.card:
        return _with_params(ScoreCardClassifier(k), request)
    if request.class_weight and task != "classification":
        raise ValueError(f"--class-weight {request.class_weight[0]}: a regression has no classes; expected no weights of classes")
    model: Any = FSAClassifier(k) if task == "classification" else FSARegressor(k)
    wanted = np.isin(table.encoding.groups, [table.names.index(name) for name in request.include])
    directions, bounds = _directions(request.monotone, table, task), _bounds(request.bounds, table)
    for name in {given.rpartition("=")[0] for given in request.monotone} & {given.rpartition("=")[0] for given in request.bounds}:
        raise ValueError(f"column {name!r} has --bounds and --monotone; expected one of them")
    alone = units.max() + 1 == len(units)
    if not alone or wanted.any() or directions is not None or bounds is not None:
        constraints = Constraints(None if alone else units, wanted if wanted.any() else None, bounds=bounds, monotone=directions)
        model.set_params(constraints=constraints)
    if task == "classification":
        model.set_params(class_weight=_class_weight(request.class_weight, np.unique(y)))
    return _with_params(model.set_params(response=request.response, loss=request.loss, random_state=request.seed), request)


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
        make = _PARTS.get(owner) or (type(get_loss(request.loss)) if owner == "loss" and request.loss != "auto" else None)
        if (owner == "loss" and make is None) or (owner == "response" and request.response != "piecewise"):
            raise ValueError(f"--param {given}: expected a --{owner} that has parameters")
        if owner:
            known = set(inspect.signature(make).parameters) if make is not None and owner in model.get_params(deep=False) else set()
        if part not in known:
            expected = ", ".join(sorted(known)) or f"one of {', '.join(_PARTS)} or loss before the point"
            raise ValueError(f"--param {given}: {type(model).__name__} has no such parameter; expected {expected}")
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
        name, _, number = text.rpartition("=")
        if name not in labels:
            raise ValueError(f"--class-weight {text}: expected balanced, or CLASS=NUMBER with one of {', '.join(labels)}")
        weights[labels[name]] = _number("--class-weight", text, number)
    return weights or None


def _number(option: str, given: str, text: str) -> float:
    try:
        return float(text)
    except ValueError:
        raise ValueError(f"{option} {given}: {text!r} is no number") from None


def _columns_of(option: str, given: str, table: Table, expected: str) -> np.ndarray:
    """Which columns of the matrix "COLUMN=..." speaks of."""
    name, sign, _ = given.rpartition("=")
    if not sign or not name:
        raise ValueError(f"{option} {given}: expected {expected}")
    if name not in table.names:
        raise ValueError(f"{option} {given}: no usable column {name!r}; {table.left_out.get(name, 'the table has none')}")
    number = table.names.index(name)
    if table.encoding.columns[number].kind == CATEGORY:
        raise ValueError(f"{option} {given}: {name!r} is a category; expected a column of numbers or dates")
    return table.encoding.groups == number


def _directions(monotone: Sequence[str], table: Table, task: str) -> np.ndarray | None:
    """+1, -1 or 0 for each column of the matrix, from "COLUMN=+" and "COLUMN=-"."""
    directions, expected = np.zeros(table.X.shape[1], int), "COLUMN=+ or COLUMN=-"
    for given in monotone:
        if given[-1:] not in "+-":
            raise ValueError(f"--monotone {given}: expected {expected}")
        directions[_columns_of("--monotone", given, table, expected)] = 1 if given[-1:] == "+" else -1
    if monotone and task == "classification" and (n := len(np.unique(table.y))) > 2:
        raise ValueError(f"--monotone {monotone[0]}: the target has {n} classes; expected two, or a regression")
    return directions if monotone else None


def _bounds(bounds: Sequence[str], table: Table) -> dict[int, tuple[float | None, float | None]] | None:
    """Pairs of bounds by column of the matrix, from "COLUMN=LEAST:GREATEST"."""
    found = {}
    for given in bounds:
        low, sign, high = given.rpartition("=")[2].partition(":")
        if not sign:
            raise ValueError(f"--bounds {given}: expected COLUMN=LEAST:GREATEST, such as age=0: or age=-1:1")
        ends = tuple(_number("--bounds", given, end) if end else None for end in (low, high))
        if (ends[0] or 0.0) > 0.0 or (ends[1] or 0.0) < 0.0:
            raise ValueError(f"--bounds {given}: expected bounds with 0 between them")
        found[int(np.flatnonzero(_columns_of("--bounds", given, table, "COLUMN=LEAST:GREATEST"))[0])] = ends
    return found or None  # type: ignore[return-value]
