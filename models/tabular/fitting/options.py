"""Options of a selection, with the help texts of ``annealed select``."""

import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass, field, fields
from functools import partial
from itertools import product
from typing import Any, Literal, Self, TypeAlias

Note = Callable[[str], object]  # function called with a line to print
Words = Sequence[str]
Pairs: TypeAlias = Any  # a mapping, or strings "NAME=VALUE"
Task = Literal["auto", "classification", "regression"]
Response = Literal["linear", "piecewise"]
SizeRule = Literal["explained", "best", "one-se"]
Dates = Literal["dayfirst", "monthfirst"]


def option(panel: str, *flags: str, **settings: Any) -> dict[str, Any]:
    """Return the metadata of a field, which describe a command-line option and its help panel."""
    return {"flags": flags, "rich_help_panel": panel, **settings}


_task = partial(option, "Target and task")
_columns = partial(option, "Columns")
_rows = partial(option, "Rows")
_certainty = partial(option, "Certainty")
_MAX_WEIGHT = 1e100  # sums of larger weights may overflow


def parse_number(option: str, given: str, text: str | None = None) -> float:
    """Parse the number in the value of an option: by default, the text after the last "=".

    Raises
    ------
    ValueError
        If the value is not a number.
    """
    text = given.rpartition("=")[2] if text is None else text
    try:
        return float(text)
    except ValueError:
        raise ValueError(f"{option} {given}: {text!r} is not a number") from None


@dataclass(eq=False, repr=False, kw_only=True)
class SelectionParameters:
    """Parameters of a selection; see :class:`.TabularSelector`."""

    size_rule: SizeRule = field(
        default="explained",
        metadata=_task(
            help="Rule for -k auto: explained (smallest size with 97% of the best gain), best "
            "(lowest loss), or one-se (smallest size within one standard error of the best)."
        ),
    )
    task: Task = field(
        default="auto",
        metadata=_task(
            help="Type of task; auto treats text, booleans and few distinct integers as classes."
        ),
    )
    response: Response = field(
        default="linear",
        metadata=_task(help="Response to each column: linear (a line) or piecewise (a curve)."),
    )
    loss: str = field(
        default="auto",
        metadata=_task(
            metavar="NAME",
            help="Loss function, such as logistic, lorenz, huber, quantile or poisson.",
        ),
    )
    class_weight: Pairs = field(
        default=(),
        metadata=_task(metavar="CLASS=NUMBER", help="Weight of a class (repeatable), or balanced."),
    )
    param: Pairs = field(
        default=(),
        metadata=_task(
            metavar="NAME=VALUE",
            help="Other parameter of the estimator, such as schedule.mu=20; repeatable.",
        ),
    )
    scoring: str | None = field(
        default=None,
        metadata=_task(
            "--score",
            metavar="NAME",
            help="Score by which the size is chosen, such as roc_auc, log_loss or r2.",
        ),
    )
    include: Words = field(
        default=(),
        metadata=_columns(metavar="COLUMN", help="Column that is always selected; repeatable."),
    )
    exclude: Words = field(
        default=(),
        metadata=_columns(metavar="COLUMN", help="Column that is never selected; repeatable."),
    )
    monotone: Pairs = field(
        default=(),
        metadata=_columns(
            metavar="COLUMN=+|-",
            help="Column with an increasing (+) or decreasing (-) effect; repeatable.",
        ),
    )
    bounds: Pairs = field(
        default=(),
        metadata=_columns(
            metavar="COLUMN=LOW:HIGH",
            help="Bounds of a coefficient, such as age=0: or age=-1:1; repeatable.",
        ),
    )
    group: Words = field(
        default=(),
        metadata=_columns(
            metavar="PREFIX", help="Prefix of columns that are selected together; repeatable."
        ),
    )
    kinds: Pairs = field(
        default=(),
        metadata=_columns(
            "--as",
            metavar="COLUMN=KIND",
            help="Type of a column: number, category, date or low<medium<high; repeatable.",
        ),
    )
    card: bool = field(
        default=False,
        metadata=_columns(
            "--card", help="Fit a score card of k rules with integer points, for a binary target."
        ),
    )
    keep_rare: bool = field(
        default=False,
        metadata=_rows(
            "--keep-rare", help="Keep classes with a single row, which disables cross-validation."
        ),
    )
    weight: str | None = field(
        default=None, metadata=_rows(metavar="COLUMN", help="Column of sample weights.")
    )
    offset: str | None = field(
        default=None,
        metadata=_rows(metavar="COLUMN", help="Column that is added to the score, in regression."),
    )
    exposure: str | None = field(
        default=None,
        metadata=_rows(
            metavar="COLUMN", help="Column whose logarithm is the offset, such as years at risk."
        ),
    )
    row_groups: str | None = field(
        default=None,
        metadata=_rows(
            metavar="COLUMN",
            help="Column that labels groups of rows; each group stays in one fold.",
        ),
    )
    time: str | None = field(
        default=None,
        metadata=_rows(
            metavar="COLUMN", help="Column of times, for forward-chaining cross-validation."
        ),
    )
    split_duplicates: bool = field(
        default=False,
        metadata=_rows("--split-duplicates", help="Allow identical rows in different folds."),
    )
    boosting: bool = field(
        default=False,
        metadata=_certainty("--boosting", help="Also score gradient boosting on all columns."),
    )
    fdr: float | None = field(
        default=None,
        metadata=_certainty(
            metavar="RATE", help="False discovery rate to control (instead of -k)."
        ),
    )
    intervals: bool = field(
        default=False,
        metadata=_certainty(
            "--intervals", help="Compute 95% confidence intervals of the coefficients."
        ),
    )
    seed: int = field(default=0, metadata=_certainty(min=0, max=2**32 - 1, help="Random seed."))
    dates: Dates | None = field(
        default=None,
        metadata=option(
            "Input", help="Order of day and month in dates such as 31/12/2019 (default: detected)."
        ),
    )


@dataclass(eq=False, repr=False, kw_only=True)
class SelectionOptions(SelectionParameters):
    """Options of a selection, in the notation of ``annealed select``."""

    def check(self, k: Any) -> None:
        """Check that the options are compatible with each other and with ``k``.

        Here ``k`` is a number, "auto" or None.

        Raises
        ------
        ValueError
            If two options are incompatible.
        """
        if (k is None) == (self.fdr is None):
            raise ValueError("expected exactly one of -k (a number of columns, or auto) and --fdr")
        if self.size_rule != "explained" and k != "auto":
            raise ValueError(f"--size-rule {self.size_rule} is only available with -k auto")
        if self.card and k == "auto":
            raise ValueError(
                "-k auto is not available for a score card; use -k with the number of rules"
            )
        chosen: dict[str, object] = {
            "--card": self.card,
            "--response piecewise": self.response != "linear",
            "--monotone": self.monotone,
            "--bounds": self.bounds,
            "--include": self.include,
            "--group": self.group,
            "--loss": self.loss != "auto",
            "--class-weight": self.class_weight,
            "--offset": self.offset is not None,
            "--exposure": self.exposure is not None,
            "--fdr": self.fdr is not None,
            "--intervals": self.intervals,
            "--weight": self.weight is not None,
            "--row-groups": self.row_groups is not None,
            "--time": self.time is not None,
        }
        exclusive = [
            *(("--card", option) for option in list(chosen)[1:12]),
            *product(("--fdr", "--intervals"), ("--weight", "--offset", "--exposure")),
            ("--intervals", "--response piecewise"),
            ("--exposure", "--offset"),
            ("--time", "--row-groups"),
        ]
        for option, other in exclusive:
            if chosen[option] and chosen[other]:
                raise ValueError(f"{option} is not available with {other}; use only one of them")
        if self.fdr is not None and not 0 < self.fdr < 1:
            raise ValueError(f"fdr={self.fdr!r} is not valid; expected a number in (0, 1)")
        lists = {
            "--monotone": self.monotone,
            "--bounds": self.bounds,
            "--class-weight": self.class_weight,
            "--as": self.kinds,
        }
        for option, given in lists.items():
            names = [text.rpartition("=")[0] for text in given]
            for text, name in zip(given, names):
                if names.count(name) > 1:
                    raise ValueError(
                        f"{option} {text}: {name or text!r} is given twice; name it only once"
                    )
        for text in self.class_weight:
            if "=" in text and not 0 <= parse_number("--class-weight", text) <= _MAX_WEIGHT:
                raise ValueError(
                    f"--class-weight {text} is not valid; expected a number in [0, {_MAX_WEIGHT:g}]"
                )

    @property
    def keep_missing(self) -> bool:
        """Whether missing values have a separate response; otherwise, the median is imputed."""
        return self.card or self.response == "piecewise"

    @property
    def offset_column(self) -> tuple[str, str] | None:
        """Name of the offset column, and its link: "log" for exposures, otherwise "identity"."""
        name, link = self.exposure or self.offset, "log" if self.exposure else "identity"
        return None if name is None else (name, link)

    @property
    def of_rows(self) -> dict[str, str]:
        """Names of the columns with properties of rows, such as weights, by option."""
        names = ("row_groups", "weight", "offset", "exposure", "time")
        return {name: getattr(self, name) for name in names if getattr(self, name) is not None}

    @property
    def measure(self) -> str | None:
        """Score by which the number of columns is chosen; None means the loss."""
        from ....learners.objective.losses import LOSSES

        log_link = self.loss in LOSSES and LOSSES[self.loss].link == "log"
        return "d2" if self.scoring is None and log_link else self.scoring

    def record(self) -> dict[str, Any]:
        """Return the options as JSON values, with None for options that are not set."""
        return {
            name: list(value) if isinstance(value, tuple) and value else value or None
            for name, value in asdict(self).items()
        }

    @classmethod
    def of(cls, estimator: Any) -> Self:
        """Return the options of an estimator in the notation of the command line.

        For example, ``{"age": (0, None)}`` becomes ``age=0:``.

        Examples
        --------
        >>> given = SelectionOptions(bounds={"age": (0, None)}, monotone={"dose": -1})
        >>> options = SelectionOptions.of(given)
        >>> options.bounds, options.monotone
        (('age=0:',), ('dose=-',))
        """
        given = {}
        for entry in fields(cls):
            value = getattr(estimator, entry.name)
            if isinstance(value, Mapping):
                signs = {1: "+", -1: "-"} if entry.name == "monotone" else {}
                value = tuple(f"{name}={signs.get(v) or _notation(v)}" for name, v in value.items())
            elif entry.default == ():
                value = (value,) if isinstance(value, str) else tuple(value or ())
            given[entry.name] = value
        return cls(**given)


def _notation(value: Any) -> str:
    """Format a value as on the command line: bounds are joined by a colon, names are unchanged, and
    other values are written as JSON."""
    if isinstance(value, tuple | list):
        return ":".join("" if end is None else _notation(end) for end in value)
    return (
        str(value) if isinstance(value, str) or value is None else json.dumps(value, default=float)
    )
