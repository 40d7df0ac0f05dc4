"""What ``annealed select`` is asked for: each of its options once, with its help."""

from collections.abc import Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Annotated, Any, Literal

from typer import Option

Words = Sequence[str]
Task = Literal["auto", "classification", "regression"]
Response = Literal["linear", "piecewise"]
SizeRule = Literal["explained", "best", "one-se"]
Dates = Literal["dayfirst", "monthfirst"]
Separator = Annotated[
    str | None, Option(help="What separates the columns of a text file; by default detected.")
]
Encoding = Annotated[
    str | None, Option(help="Encoding of a text file, such as latin-1 or utf-16; by default UTF-8.")
]
_MAX_WEIGHT = 1e100  # sums of larger ones overflow


def parse_number(option: str, given: str, text: str | None = None) -> float:
    """Return the number in what is given for an option, by default that after the last "=".

    Raises
    ------
    ValueError
        If it is none.
    """
    text = given.rpartition("=")[2] if text is None else text
    try:
        return float(text)
    except ValueError:
        raise ValueError(f"{option} {given}: {text!r} is no number") from None


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
    size_rule : {"explained", "best", "one-se"}
        How "auto" chooses, see :func:`annealed.learners.model_selection.size.choose_size`.
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

    target: Annotated[
        str | None, Option(help="Column to predict (npz and svmlight bring their own).")
    ] = None
    k: Annotated[
        str | None,
        Option("-k", help="How many columns to select; auto: chosen by cross-validation."),
    ] = None
    size_rule: Annotated[
        SizeRule,
        Option(
            help="With -k auto: the fewest columns that explain 97% of what the best number does; best; one-se."
        ),
    ] = "explained"
    task: Annotated[Task, Option(help="auto: text and few whole numbers are classes.")] = "auto"
    response: Annotated[
        Response, Option(help="piecewise: a curve for each column instead of a line.")
    ] = "linear"
    loss: Annotated[
        str, Option(help="Loss of the fit: logistic, lorenz, huber, quantile, poisson and others.")
    ] = "auto"
    class_weight: Annotated[
        Words,
        Option(metavar="CLASS=NUMBER", help="Weight of a class, or balanced; may be repeated."),
    ] = ()
    param: Annotated[
        Words,
        Option(
            metavar="NAME=VALUE", help="Another parameter of the estimator, such as schedule.mu=20."
        ),
    ] = ()
    score: Annotated[
        str | None,
        Option(help="Chooses the size and is shown first: roc_auc, log_loss, r2 and others."),
    ] = None
    include: Annotated[
        Words, Option(help="Column that is selected in any case; may be repeated.")
    ] = ()
    exclude: Annotated[Words, Option(help="Column that may not be selected; may be repeated.")] = ()
    monotone: Annotated[
        Words,
        Option(
            metavar="COLUMN=+|-", help="Column with which the score may only rise (+) or fall (-)."
        ),
    ] = ()
    bounds: Annotated[
        Words,
        Option(
            metavar="COLUMN=LEAST:GREATEST",
            help="Bounds of a coefficient, such as age=0: or age=-1:1.",
        ),
    ] = ()
    group: Annotated[
        Words, Option(help="Beginning of names of columns that are selected together.")
    ] = ()
    kinds: Annotated[
        Words,
        Option(
            "--as",
            metavar="COLUMN=KIND",
            help="Read a column as number, category, date or low<medium<high.",
        ),
    ] = ()
    card: Annotated[
        bool, Option("--card", help="A score card of k rules with whole points, for two classes.")
    ] = False
    keep_rare: Annotated[
        bool, Option("--keep-rare", help="Keep classes of one row; there are no scores then.")
    ] = False
    weight: Annotated[str | None, Option(help="Column of how much each row counts.")] = None
    row_groups: Annotated[
        str | None, Option(help="Column that names rows which stay together in cross-validation.")
    ] = None
    time: Annotated[
        str | None, Option(help="Column that orders the rows: folds are scored on later ones.")
    ] = None
    split_duplicates: Annotated[
        bool, Option("--split-duplicates", help="Equal rows need not be in one fold.")
    ] = False
    boosting: Annotated[
        bool, Option("--boosting", help="Also the score of gradient boosting on all columns.")
    ] = False
    test: Annotated[Path | None, Option(help="Another table, whose rows score the model.")] = None
    fdr: Annotated[
        float | None, Option(help="Instead of -k: at most this share of the columns is false.")
    ] = None
    intervals: Annotated[
        bool, Option("--intervals", help="Confidence intervals of 95% of the coefficients.")
    ] = False
    pvalues: bool = False
    seed: Annotated[int, Option(min=0, max=2**32 - 1, help="Of folds, halves and drawn rows.")] = 0
    memory_limit: Annotated[
        str | None,
        Option(
            help="Memory of a fit on .parquet, such as 2GB: not read whole. Folders: 2GiB by default."
        ),
    ] = None
    dask: Annotated[
        str | None,
        Option(help="Address of a Dask scheduler, whose workers fit .parquet: tcp://host:8786."),
    ] = None
    sep: Separator = None
    encoding: Encoding = None
    dates: Annotated[
        Dates | None, Option(help="How dates such as 31/12/2019 are written; by default found out.")
    ] = None

    def check(self) -> None:
        """Complain about wishes that exclude each other.

        Raises
        ------
        ValueError
            If there are such.
        """
        if (self.k is None) == (self.fdr is None):
            raise ValueError("expected either -k or --fdr")
        if self.size_rule != "explained" and self.k != "auto":
            raise ValueError(
                f"--size-rule {self.size_rule}: the number of columns is given; expected -k auto"
            )
        if self.card and self.k == "auto":
            raise ValueError(
                "-k auto: a score card needs a number of rules; expected -k with a number"
            )
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
                raise ValueError(f"--card: {option} is not for score cards; expected one of them")
        for option, given in tests.items():
            if given and self.weight is not None:
                raise ValueError(
                    f"{option}: tests and intervals take no weights; expected no --weight"
                )
        if self.fdr is not None and not 0 < self.fdr < 1:
            raise ValueError(f"fdr={self.fdr!r} is not valid; expected a number > 0 and < 1")
        if self.intervals and self.response != "linear":
            raise ValueError("--intervals: of coefficients; expected no --response piecewise")
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
            raise ValueError("--time orders the rows; expected no --row-groups")

    @property
    def needs_inference(self) -> bool:
        """Whether the selected columns get p-values or intervals: not with weights, nor in a score
        card."""
        return (
            not self.card
            and self.weight is None
            and (self.fdr is not None or self.intervals or self.pvalues)
        )

    def record(self) -> dict[str, Any]:
        """The wishes for JSON; None where there is none."""
        unset = {"pvalues", *(name for name in ("memory_limit", "dask") if not getattr(self, name))}
        found = {name: value or None for name, value in asdict(self).items() if name not in unset}
        return {
            name: list(v) if isinstance(v, tuple) else v if v is None else getattr(v, "name", v)
            for name, v in found.items()
        }
