"""Selection of the columns of a table that predict its target."""

import warnings
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from sklearn.base import clone

from ....learners import Constraints, ScoreCardClassifier, selection_stability
from ....learners.common.additive import AdditiveModel
from ....learners.sources.matrix import Source
from ..encoding import CATEGORY, DATE, LOGARITHM, RANK, ColumnEncoding
from ..model import TabularModel
from .leaks import leaks, test_rows_notes
from .options import Note, SelectionOptions
from .refits import costs, interaction
from .settings import (
    check_target,
    classes_of_one_row,
    guess_task,
    make_model,
    task_note,
    units_of,
)
from .table import Table
from .validation import (
    HeldOut,
    Progress,
    Splits,
    Validation,
    check_score,
    fitted,
    folds,
    measures,
    validate,
)

N_HALVES = 20  # random halves of the rows that measure the stability of a column
# maximum sizes tried; heuristic, for less than 10 s with 10,000 rows and 200 columns
MAX_SIZES = {"linear": 50, "piecewise": 20}
_MAX_ALTERNATIVES = 3
_PLAIN = SelectionOptions()


@dataclass
class Selection:
    """Result of :func:`select_columns`.

    Attributes
    ----------
    task : {"classification", "regression"}
        Type of model.
    table : Table
        Table from which the columns were selected.
    model : FSAClassifier, FSARegressor or ScoreCardClassifier
        Estimator fitted to all rows.
    columns : list of dict
        Selected columns, in order of decreasing effect; empty if no columns improve on a constant
        model. The keys are ``name``, ``coefficient`` (None for response curves and score cards),
        ``effect`` (standard deviation of the contribution to the score), ``stability`` (fraction of
        random halves of the rows for which the column is selected), ``levels`` (contribution of
        each level, for categorical columns) or ``curve`` (response curve, for numeric columns),
        ``distribution`` (histogram, for columns of numbers or dates), ``alternatives`` (columns
        that could replace it) and, in a report, ``cost`` (see :func:`.refits.costs`).
    validation : Validation
        Cross-validation results.
    kappa : float or None
        Chance-corrected agreement between the selections on random halves of the rows.
    size_chosen : bool
        Whether the number of columns was chosen by cross-validation.
    request : SelectionOptions
        Options of the selection.
    sample : Table
        Rows on which the number of columns was chosen and the selection was scored, encoded like
        the table.
    splits : list of (ndarray, ndarray)
        Training and held-out rows of each fold, as indices in the sample.
    settings : dict
        Options shown in the report.
    certainty : dict
        Statistical guarantees; see :mod:`.inference`.
    interaction : dict or None
        Strongest interaction, computed only for a report; see :func:`.refits.interaction`.
    seconds : dict of str to float
        Wall-clock time of each step of ``annealed select``.
    """

    task: str
    table: Table
    model: Any
    columns: list[dict[str, Any]]
    validation: Validation
    kappa: float | None
    size_chosen: bool
    request: SelectionOptions
    sample: Table
    splits: Splits
    settings: dict[str, Any] = field(default_factory=dict)
    certainty: dict[str, Any] = field(default_factory=dict)
    interaction: dict[str, Any] | None = None
    seconds: dict[str, float] = field(default_factory=dict)

    def add_certainty(self) -> None:
        """Add p-values and, if requested, confidence intervals to the columns.

        Messages that explain missing p-values and intervals are appended to the notes.
        """
        if self.request.card or self.table.fit_options:  # not valid with weights or offsets
            return
        from .inference import add_certainty

        more = add_certainty(self.columns, self.sample, self.model, self.request.intervals)
        self.certainty["notes"] = [*self.certainty.get("notes", ()), *more]

    def add_details(self, progress: Progress = lambda iterable, what: iterable) -> None:
        """Add the details of a report: p-values, the cost of each column, and the main interaction.

        A second call has no effect.
        """
        if not self.certainty:
            self.add_certainty()
        if self.columns and self.splits and not self.request.card and self.interaction is None:
            names, data = [column["name"] for column in self.columns], self.sample
            cost = costs(data, self.task, self.request, names, self.splits, progress)
            self.columns = [column | {"cost": cost.get(column["name"])} for column in self.columns]
            self.interaction = interaction(data, self.task, self.request, names, self.splits)

    @property
    def sources(self) -> list[str]:
        """Columns of the original table from which the selected columns are computed."""
        made_of = {column.name: column.source for column in self.table.encoding.columns}
        return list(dict.fromkeys(made_of[column["name"]] for column in self.columns))

    @property
    def logarithms(self) -> list[str]:
        """Names of the columns that were replaced by their logarithms."""
        return [column.name for column in self.table.encoding.columns if column.form == LOGARITHM]

    def to_model(self, target: str | None) -> TabularModel:
        """Return the model for ``annealed predict``.

        Its header contains the name of the target and the cross-validated scores.
        """
        return TabularModel.from_estimator(
            self.model,
            self.table.encoding,
            self.table.offset_column,
            target=target,
            n_rows=len(self.table.y),
            scores=self.validation.scores,
        )

    @property
    def card(self) -> dict[str, Any] | None:
        """Return the rules and the risk table of a score card, or None if there is no score card.

        Each rule includes its points. The risk table contains the probability and the number of
        rows for each sum of points.
        """
        if not isinstance(self.model, ScoreCardClassifier):
            return None
        encoding, model = self.table.encoding, self.model
        places = zip(model.rule_columns_, model.rule_thresholds_, strict=True)
        names = [
            _rule(encoding.columns[encoding.groups[column]], encoding.labels[column], cut)
            for column, cut in places
        ]
        totals = model.total_points(self.table.X)
        return {
            "class": model.classes_[1],
            "rules": [
                {"rule": name, "points": int(points)}
                for name, points in zip(names, model.points_, strict=True)
            ],
            "risk": [
                {"points": int(total), "probability": p, "rows": int((totals == total).sum())}
                for total, p in model.risk_table_
            ],
        }

    @property
    def nothing(self) -> str:
        """Return a one-line explanation of why no column was selected.

        It states the rule and the best number of columns.
        """
        v = self.validation
        if "fdr" in self.certainty:
            return (
                f"no columns were selected at a false discovery rate of {self.certainty['fdr']:.0%}"
            )
        line = (
            "no columns were selected, because no size predicts held-out rows better than a "
            "constant by one standard error"
        )
        if v.best is None:
            return line
        k, measure, score = v.sizes[v.best], next(iter(v.scores["selected"])), v.path_scores[v.best]
        return f"{line}; the best size, -k {k}, has a cross-validated {measure} of {score:.3f}"

    def record(self) -> dict[str, Any]:
        """Return the selection as JSON values."""
        v = self.validation
        path = [
            {"columns": k, "score": float(s), "folds": f.tolist(), "loss": float(loss.mean())}
            for k, s, f, loss in zip(v.sizes, v.path_scores, v.path.T, v.losses.T, strict=True)
        ]
        return {
            "selected": self.columns,
            "task": self.task,
            "n_columns": len(self.columns),
            "n_rows": len(self.table.y),
            "chosen_by": "cross-validation"
            if self.size_chosen
            else self.certainty.get("chosen_by", "the user"),
            "scores": v.scores,
            "best_size": None if self.columns or v.best is None else path[v.best],
            "size_chosen_in_folds": v.nested,
            "path": path,
            "errors": v.errors,
            "stability": self.kappa,
            "interaction": self.interaction,
            "certainty": self.certainty,
            **({"card": self.card} if self.card else {}),
            "left_out": [
                {"name": name, "reason": why} for name, why in self.table.left_out.items()
            ],
            "notes": self.table.notes,
            "settings": self.settings,
        }


def select_table(
    table: Table,
    k: int | None,
    request: SelectionOptions,
    *,
    name: str = "",
    progress: Progress = lambda iterable, what: iterable,
    note: Note = lambda text: None,
    test: Table | None = None,
    fit: Callable[[Any, int, Table], Any] = fitted,
) -> Selection:
    """Select the columns of an encoded table that predict its target.

    Parameters
    ----------
    table : Table
    k : int or None
        Number of columns. If None, it is chosen by cross-validation or by controlling the false
        discovery rate.
    request : SelectionOptions
    name : str
        Name of the table, shown in the first message.
    progress : function
        Function that takes an iterable and a label, and returns the iterable with a progress
        display.
    note : function
        Function that is called with each one-line message before the fit.
    test : Table or None
        Test rows on which the final model is also scored.
    fit : function
        Function that fits the final model, given the estimator, the number of columns and the
        table.

    Returns
    -------
    Selection

    Raises
    ------
    ValueError
        If the table is not compatible with the options.
    """
    table, task = _with_task(table, request)
    check_score(request.scoring, task)
    if request.offset_column is not None and task != "regression":
        raise ValueError(
            "--offset and --exposure are not available for classification; use --task regression"
        )
    sample = table.sampled(task, request.seed, request.split_duplicates)
    table.notes = [*sample.notes, *leaks(sample, task)]
    if test is not None:
        table.notes += [
            *test.notes,
            *test_rows_notes(sample if isinstance(table.X, Source) else table, test, task),
        ]
    n_columns, splits = len(table.names), folds(sample, task, request.seed)
    note(
        f"reading {name}: {len(table.y)} rows, {n_columns} usable "
        f"column{'s' * (n_columns != 1)}; {len(splits)} folds"
    )
    for text in table.notes:
        note(text)
    units = units_of(table, request.group)
    n_units = int(units.max()) + 1
    if k is not None and k > n_units and not request.card:
        warnings.warn(
            f"-k {k}: there are only {n_units} usable columns; all are selected", stacklevel=2
        )
        k = n_units
    discoveries, certainty = None, dict[str, Any]()
    if request.fdr is not None:
        from .inference import fdr_columns

        discoveries, certainty = fdr_columns(
            table, make_model(request, table, task, 1), request.fdr
        )
        k = len(np.unique(units[table.columns_of(discoveries)]))
    selection = select_columns(table, task, k, request, progress, discoveries, sample, fit)
    selection.certainty = certainty
    if request.fdr is not None or request.intervals:
        selection.add_certainty()
    if test is not None and selection.validation.scores:
        predicted = HeldOut.of(selection.model, test.with_logarithms(selection.logarithms))
        selection.validation.scores["test"] = measures(task, predicted, request.measure)
    return selection


def _with_task(table: Table, request: SelectionOptions) -> tuple[Table, str]:
    """Return the task, and the table with a validated target and without classes of one row."""
    task: str = request.task
    if task == "auto":
        task = guess_task(table.y)
        table.notes += task_note(table.y, task)
    check_target(table.y, task)
    if task == "classification":
        single = classes_of_one_row(table.y)
        if len(single) and not request.keep_rare:
            table = table.drop_rows(single)
        table.y = table.y.astype(np.int64) if table.y.dtype.kind == "f" else table.y
    return table, task


def select_columns(
    table: Table,
    task: str,
    k: int | None,
    request: SelectionOptions = _PLAIN,
    progress: Progress = lambda iterable, what: iterable,
    only: Sequence[str] | None = None,
    sample: Table | None = None,
    fit: Callable[[Any, int, Table], Any] = fitted,
) -> Selection:
    """Select columns by FSA: a given number of them, or a number chosen by cross-validation.

    Parameters
    ----------
    table : Table
    task : {"classification", "regression"}
    k : int or None
        Number of columns. If None, it is chosen by cross-validation.
    request : SelectionOptions
        Other options.
    progress : function
        Function that takes an iterable and a label, and returns the iterable with a progress
        display.
    only : sequence of str or None, default None
        Columns of the final model: k columns, or an empty sequence. If it is given, the scores and
        the stability refer to a separate selection of k columns.
    sample : Table or None, default None
        Rows on which the number of columns is chosen, the selection is scored and the stability is
        measured. None means all rows.
    fit : function
        Function that fits the final model, given the estimator, the number of columns and the
        table.

    Raises
    ------
    ValueError
        If ``include`` names more than k columns.
    """
    sample = table if sample is None else sample
    units = units_of(table, request.group)
    n_required = len(np.unique(units[table.columns_of(request.include)]))
    if k is not None and n_required > k:
        raise ValueError(f"-k {k}: --include names {n_required} columns; expected at most {k}")
    model = make_model(request, table, task, k or max(n_required, 1))
    if only is not None and not only:
        nothing = Validation(0)
        return Selection(
            task, table, fit(model, 0, table), [], nothing, None, False, request, sample, []
        )
    splits = folds(sample, task, request.seed)
    if k is None and not splits:
        labels, counts = np.unique(sample.y, return_counts=True)
        single = task == "classification" and len(sample.y) >= 4 and counts.min() == 1
        few = (
            f"the single row of class {labels[counts.argmin()]!s} is"
            if single
            else f"{len(sample.y)} rows are"
        )
        raise ValueError(f"-k auto: {few} too few for cross-validation; use -k with a number")
    validation = Validation(k or 1)
    if splits:
        sizes = (
            np.array([k])
            if request.card
            else _sizes(int(units.max()) + 1, len(sample.y), k, request.response)
        )
        sizes = np.unique([*([0] if k is None else []), *np.maximum(sizes, max(n_required, 1))])
        validation = validate(sample, task, model, k, sizes, splits, progress, request)
    logs = table.better_logarithms(task)
    table, sample = table.with_logarithms(logs), sample.with_logarithms(logs)
    frequency, kappa = np.full(len(table.names), np.nan), None
    if validation.size:
        frequency, kappa = _stability(
            clone(model).set_params(n_features_to_select=validation.size),
            sample,
            task,
            request.seed,
            progress,
        )
    if only is not None:
        given = model.constraints or Constraints(units)
        model.set_params(constraints=clone(given).set_params(exclude=~table.columns_of(only)))
    model = fit(model, validation.size, table)
    if validation.calibration is not None:
        model.calibration_ = validation.calibration
    # out of core, effects and distributions are those of the sampled rows
    columns = _describe(sample if isinstance(table.X, Source) else table, model, frequency, units)
    return Selection(
        task, table, model, columns, validation, kappa, k is None, request, sample, splits
    )


def _sizes(n_columns: int, n_rows: int, k: int | None, response: str) -> np.ndarray:
    """Return the numbers of columns to try: all numbers up to 8, followed by geometric steps to
    slightly more than k."""
    n_max = min(
        n_columns, max(n_rows // 3, 1), MAX_SIZES[response] if k is None else max(20, 2 * k)
    )
    sizes = [1]
    while sizes[-1] < n_max:
        sizes.append(min(n_max, max(sizes[-1] + 1, round(1.3 * sizes[-1]))))
    return np.unique([*sizes, *([] if k is None else [min(k, n_columns)])])


def _stability(
    model: Any, table: Table, task: str, seed: int, progress: Progress
) -> tuple[np.ndarray, float | None]:
    """Compute the fraction of random halves that select each column, and the agreement between the
    halves; both are NaN if the halves are too small."""
    y, n_columns = table.y, len(table.names)
    if (task == "classification" and np.unique(y, return_counts=True)[1].min() < 4) or len(y) < 8:
        return np.full(n_columns, np.nan), None
    list(progress([None], "random halves of the rows"))
    stability = selection_stability(
        model, table.X, y, N_HALVES, resample="half", random_state=seed, **table.fit_options
    )
    first = np.unique(table.encoding.groups, return_index=True)[1]
    return np.maximum.reduceat(stability.frequency, first), float(stability.kappa)


def _describe(
    table: Table, model: Any, frequency: np.ndarray, units: np.ndarray
) -> list[dict[str, Any]]:
    """Return the selected columns in order of decreasing effect."""
    additive, groups = AdditiveModel.from_estimator(model), table.encoding.groups
    parts = additive.contributions(table.X)
    columns = []
    for number in np.unique(groups[additive.selected]):
        members = np.flatnonzero(groups[additive.selected] == number)
        encoding = table.encoding.columns[number]
        added = parts[:, members].sum(axis=1)
        effect = float(np.sqrt((added.std(axis=0) ** 2).sum()))
        column = {
            "name": encoding.name,
            "coefficient": None,
            "effect": effect,
            "kind": encoding.kind,
            **({"form": encoding.form} if encoding.form else {}),
            "stability": None if np.isnan(frequency[number]) else float(frequency[number]),
            **(
                {}
                if isinstance(model, ScoreCardClassifier)
                else _shape(encoding, additive, members)
            ),
            **({"ranks": list(encoding.levels)} if encoding.kind == RANK else {}),
            **(
                {}
                if encoding.kind == CATEGORY
                else {"distribution": _distribution(table, int(number))}
            ),
            "alternatives": _alternatives(table, int(number), units, model),
        }
        columns.append(column)
    return sorted(columns, key=lambda column: -column["effect"])


def shown(column: dict[str, Any]) -> str:
    """Return the displayed name of a selected column: log(NAME) if its logarithm is used."""
    return f"log({column['name']})" if column.get("form") == LOGARITHM else column["name"]


def _distribution(table: Table, number: int) -> dict[str, Any]:
    """Compute a histogram and the mean of the values of a column."""
    values = table.X[:, np.flatnonzero(table.encoding.groups == number)]
    values = (values.toarray() if hasattr(values, "toarray") else values).ravel()
    values = values[~np.isnan(values)]
    low, high = np.percentile(values, [1, 99])
    counts, edges = np.histogram(values, 20, (low, high) if high > low else None)
    return {
        "from": float(edges[0]),
        "to": float(edges[-1]),
        "rows": counts.tolist(),
        "mean": float(values.mean()),
    }


def _rule(column: ColumnEncoding, label: str, threshold: float) -> str:
    """Describe a rule of a score card in words."""
    if np.isnan(threshold):
        return f"{label} is missing"
    if column.kind == CATEGORY:
        return label
    words = {
        DATE: lambda: str(np.datetime64(0, "D") + int(threshold)),
        RANK: lambda: column.levels[int(np.ceil(threshold))],
    }
    return f"{label} >= {words.get(column.kind, lambda: format(threshold, '.10g'))()}"


def _shape(
    encoding: ColumnEncoding, additive: AdditiveModel, members: np.ndarray
) -> dict[str, Any]:
    """Return the coefficient of a column (the norm if there are several classes), the coefficients
    of its levels, or its response curve."""
    table = additive.responses[members]
    if encoding.kind == CATEGORY:
        steps = table[:, -1] - table[:, 0] if additive.knots.shape[1] else table[:, 0]
        levels = [
            {"level": encoding.reference, "coefficient": [0.0] * table.shape[2]},
            *(
                {"level": level, "coefficient": step.tolist()}
                for level, step in zip(encoding.levels, steps)
            ),
        ]
        value = float(steps[0, 0]) if steps.shape == (1, 1) else float(np.sqrt((steps**2).sum()))
        return {"coefficient": value, "levels": levels}
    if additive.knots.shape[1]:
        missing = additive.missing_responses
        curve = {
            "x": additive.knots[members[0]].tolist(),
            "y": table[0].tolist(),
            "missing": None if missing is None else missing[members[0]].tolist(),
        }
        return {"curve": curve}
    coefficient = table[0, 0]
    return {
        "coefficient": float(coefficient[0])
        if len(coefficient) == 1
        else float(np.sqrt((coefficient**2).sum()))
    }


def _alternatives(table: Table, number: int, units: np.ndarray, model: Any) -> list[dict[str, Any]]:
    """Return columns that could replace a selected column, with the relative increase in training
    loss."""
    unit = units[np.flatnonzero(table.encoding.groups == number)[0]]
    alternatives = getattr(model, "alternatives_", {}).get(
        int(np.flatnonzero(units == unit)[0]), []
    )
    names = table.encoding.groups
    return [
        {"name": table.names[names[j]], "cost": max(cost, 0.0)}
        for j, cost in alternatives[:_MAX_ALTERNATIVES]
    ]
