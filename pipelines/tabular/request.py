"""What ``annealed select`` is asked for."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any


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
