"""The options of ``annealed select``: each one once, with its help text."""

from collections.abc import Sequence
from dataclasses import asdict, dataclass
from functools import partial
from pathlib import Path
from typing import Annotated, Any, Literal

from typer import Option

Words = Sequence[str]
Task = Literal["auto", "classification", "regression"]
Response = Literal["linear", "piecewise"]
SizeRule = Literal["explained", "best", "one-se"]
Dates = Literal["dayfirst", "monthfirst"]
# panels of the help
_Task = partial(Option, rich_help_panel="Target and task")
_Columns = partial(Option, rich_help_panel="Columns")
_Rows = partial(Option, rich_help_panel="Rows")
_Certainty = partial(Option, rich_help_panel="Certainty")
_Input = partial(Option, rich_help_panel="Input")
Separator = Annotated[
    str | None,
    _Input(metavar="CHARACTER", help="Column separator of a text file (default: detected)."),
]
Encoding = Annotated[
    str | None,
    _Input(metavar="NAME", help="Encoding of a text file, such as latin-1 (default: UTF-8)."),
]
_MAX_WEIGHT = 1e100  # sums of larger ones overflow


def parse_number(option: str, given: str, text: str | None = None) -> float:
    """Parse the number in the value of an option, by default the part after the last "=".

    Raises
    ------
    ValueError
        If it is not a number.
    """
    text = given.rpartition("=")[2] if text is None else text
    try:
        return float(text)
    except ValueError:
        raise ValueError(f"{option} {given}: {text!r} is not a number") from None


@dataclass(frozen=True)
class Request:
    """Settings of a selection: the options of ``annealed select`` by their names.

    Attributes
    ----------
    target : str or None
        Column to predict; npz and svmlight files bring their own.
    k : str or None
        A positive integer, or "auto"; more than the number of columns keeps all, with a warning.
        None with ``fdr``.
    size_rule : {"explained", "best", "one-se"}
        How "auto" chooses, see :func:`annealed.learners.model_selection.size.choose_size`.
    task : {"auto", "classification", "regression"}
    response : {"linear", "piecewise"}
    loss : str
        Name of a loss that the estimator of the task accepts.
    class_weight : sequence of str
        "balanced", or "CLASS=NUMBER" each.
    param : sequence of str
        "NAME=VALUE": other parameters of the estimator, nested ones as "prior.shrinkage=1".
    score : str or None
        Name in :data:`.validation.SCORES`: chooses the size, and is reported first.
    include, exclude : sequence of str
        Columns that are always selected, and columns that are never selected.
    monotone : sequence of str
        "COLUMN=+" or "COLUMN=-": columns with an increasing or decreasing effect on the score.
    bounds : sequence of str
        "COLUMN=LOW:HIGH", either of which may be empty: bounds of coefficients.
    group : sequence of str
        Prefixes of the names of columns that are selected together, and count as one.
    kinds : sequence of str
        "COLUMN=KIND", number, category, date or low<medium<high: overrides the detected kind of a
        column.
    card : bool
        Fit a score card of k rules instead of k columns: two classes.
    keep_rare : bool
        Keep classes with a single row, which makes cross-validation impossible.
    weight, row_groups, time : str or None
        Columns of the sample weights; of the groups of rows that stay together in
        cross-validation; and of the order of the rows, so that each fold is predicted from earlier
        ones.
    split_duplicates : bool
        Allow identical rows in different folds.
    boosting : bool
        Also score gradient boosting on all columns.
    test : path or None
        Another table whose rows score the model.
    fdr : float or None
        False discovery rate to control, instead of ``k``.
    intervals, pvalues : bool
        Whether coefficients get confidence intervals, and columns p-values; both with ``fdr``.
    seed : int
        Random seed of folds, halves and sampled rows.
    memory_limit : str or None
        Memory, such as "2GB", for a table in Parquet files; None: read into memory, except for
        folders.
    dask : str or None
        Address of a Dask scheduler whose workers fit a table in Parquet files.
    sep, encoding, dates : str or None
        See :func:`.tables.read_frame` and :func:`.encoding.encode_frame`.
    """

    target: Annotated[
        str | None,
        _Task(metavar="COLUMN", help="Column to predict (npz and svmlight files bring their own)."),
    ] = None
    k: Annotated[
        str | None,
        _Task("-k", metavar="N", help="Number of columns to select, or auto: by cross-validation."),
    ] = None
    size_rule: Annotated[
        SizeRule,
        _Task(
            help="With -k auto. explained: the smallest size with 97% of the gain of the best one; "
            "best: the lowest loss; one-se: the smallest within one standard error."
        ),
    ] = "explained"
    task: Annotated[
        Task, _Task(help="auto: text, booleans and few distinct whole numbers are classes.")
    ] = "auto"
    response: Annotated[
        Response, _Task(help="piecewise: a response curve for each column instead of a line.")
    ] = "linear"
    loss: Annotated[
        str,
        _Task(metavar="NAME", help="Loss: logistic, lorenz, huber, quantile, poisson and others."),
    ] = "auto"
    class_weight: Annotated[
        Words, _Task(metavar="CLASS=NUMBER", help="Weight of a class, or balanced; repeatable.")
    ] = ()
    param: Annotated[
        Words,
        _Task(
            metavar="NAME=VALUE",
            help="Other parameter of the estimator, such as schedule.mu=20; repeatable.",
        ),
    ] = ()
    score: Annotated[
        str | None,
        _Task(
            metavar="NAME",
            help="Score that chooses the size and is reported first: roc_auc, log_loss, r2, ...",
        ),
    ] = None
    include: Annotated[
        Words, _Columns(metavar="COLUMN", help="Column that is always selected; repeatable.")
    ] = ()
    exclude: Annotated[
        Words, _Columns(metavar="COLUMN", help="Column that is never selected; repeatable.")
    ] = ()
    monotone: Annotated[
        Words,
        _Columns(
            metavar="COLUMN=+|-",
            help="Column with an increasing (+) or decreasing (-) effect; repeatable.",
        ),
    ] = ()
    bounds: Annotated[
        Words,
        _Columns(
            metavar="COLUMN=LOW:HIGH",
            help="Bounds of a coefficient, such as age=0: or age=-1:1; repeatable.",
        ),
    ] = ()
    group: Annotated[
        Words,
        _Columns(metavar="PREFIX", help="Prefix of columns to select as a group; repeatable."),
    ] = ()
    kinds: Annotated[
        Words,
        _Columns(
            "--as",
            metavar="COLUMN=KIND",
            help="Read a column as number, category, date or low<medium<high; repeatable.",
        ),
    ] = ()
    card: Annotated[
        bool,
        _Columns("--card", help="Fit a score card: k rules with integer points (binary targets)."),
    ] = False
    keep_rare: Annotated[
        bool,
        _Rows("--keep-rare", help="Keep classes with a single row; disables cross-validation."),
    ] = False
    weight: Annotated[str | None, _Rows(metavar="COLUMN", help="Column of sample weights.")] = None
    row_groups: Annotated[
        str | None,
        _Rows(metavar="COLUMN", help="Column of groups of rows that stay in the same fold."),
    ] = None
    time: Annotated[
        str | None, _Rows(metavar="COLUMN", help="Time column: forward-chaining cross-validation.")
    ] = None
    split_duplicates: Annotated[
        bool, _Rows("--split-duplicates", help="Allow identical rows in different folds.")
    ] = False
    boosting: Annotated[
        bool, _Certainty("--boosting", help="Also score gradient boosting on all columns.")
    ] = False
    test: Annotated[
        Path | None, _Rows(metavar="TABLE", help="Another table, whose rows score the model.")
    ] = None
    fdr: Annotated[
        float | None,
        _Certainty(metavar="RATE", help="False discovery rate to control, instead of -k."),
    ] = None
    intervals: Annotated[
        bool, _Certainty("--intervals", help="95% confidence intervals of the coefficients.")
    ] = False
    pvalues: bool = False
    seed: Annotated[int, _Certainty(min=0, max=2**32 - 1, help="Random seed.")] = 0
    memory_limit: Annotated[
        str | None,
        _Input(
            metavar="SIZE",
            help="Memory for .parquet, such as 2GB (default: 2GiB for folders, else no limit).",
        ),
    ] = None
    dask: Annotated[
        str | None,
        _Input(
            metavar="ADDRESS",
            help="Dask scheduler whose workers fit .parquet files, such as tcp://host:8786.",
        ),
    ] = None
    sep: Separator = None
    encoding: Encoding = None
    dates: Annotated[
        Dates | None, _Input(help="Order of dates such as 31/12/2019 (default: detected).")
    ] = None

    def check(self) -> None:
        """Check that no options exclude each other.

        Raises
        ------
        ValueError
            If two of them do.
        """
        if (self.k is None) == (self.fdr is None):
            raise ValueError("expected either -k or --fdr")
        if self.size_rule != "explained" and self.k != "auto":
            raise ValueError(
                f"--size-rule {self.size_rule}: needs -k auto, not a given number of columns"
            )
        if self.card and self.k == "auto":
            raise ValueError("-k auto: not available for a score card; expected a number of rules")
        tests = {"--fdr": self.fdr is not None, "--intervals": self.intervals}
        not_for_cards = {
            "--response piecewise": self.response != "linear",
            "--monotone": self.monotone,
            "--bounds": self.bounds,
            "--include": self.include,
            "--group": self.group,
            "--loss": self.loss != "auto",
            "--class-weight": self.class_weight,
            **tests,
        }
        for option, given in not_for_cards.items():
            if self.card and given:
                raise ValueError(
                    f"--card: {option} is not available for score cards; expected only one of them"
                )
        for option, given in tests.items():
            if given and self.weight is not None:
                raise ValueError(
                    f"{option}: not available with --weight; expected only one of them"
                )
        if self.fdr is not None and not 0 < self.fdr < 1:
            raise ValueError(f"fdr={self.fdr!r} is not valid; expected a number > 0 and < 1")
        if self.intervals and self.response != "linear":
            raise ValueError(
                "--intervals: not available with --response piecewise; expected only one of them"
            )
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
                        f"{option} {text}: {name or text!r} is named twice; expected once"
                    )
        for text in self.class_weight:
            if "=" in text and not 0 <= parse_number("--class-weight", text) <= _MAX_WEIGHT:
                raise ValueError(
                    f"--class-weight {text}: expected a number from 0 to {_MAX_WEIGHT:g}"
                )
        if self.row_groups is not None and self.time is not None:
            raise ValueError("--time: not available with --row-groups; expected only one of them")

    @property
    def needs_inference(self) -> bool:
        """Whether the selected columns get p-values or intervals: never with weights or in a score
        card."""
        return (
            not self.card
            and self.weight is None
            and (self.fdr is not None or self.intervals or self.pvalues)
        )

    def record(self) -> dict[str, Any]:
        """The options for JSON; None for those that are not set."""
        unset = {"pvalues", *(name for name in ("memory_limit", "dask") if not getattr(self, name))}
        options = {name: value or None for name, value in asdict(self).items() if name not in unset}
        return {
            name: list(v) if isinstance(v, tuple) else v if v is None else getattr(v, "name", v)
            for name, v in options.items()
        }
