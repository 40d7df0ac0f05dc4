"""Report of a selection as a self-contained HTML page and as JSON."""

import re
from html import escape
from pathlib import Path
from typing import Any

import numpy as np

from ... import __version__
from ...learners.common.additive import AdditiveModel
from ..files import write_texts
from ..pages.charts import curve_chart, effect_chart, level_chart, score_chart, short
from ..pages.layout import html_page, small, table
from .encoding import DATE
from .fitting import N_HALVES, Selection, by_reason, shown

REPORT_FILES = ("select.json", "select.html")
N_ROWS = 11  # number of explained rows (heuristic)
_MAX_SHOWN = 12  # maximum number of classes in the confusion matrix
MAX_PICTURES = 30  # maximum number of response curves and bars; the table lists all columns
_LONG = {
    "R2": "R² (share of the variance explained)",
    "D2": "D² (share of the deviance explained)",
}


_RULES = {
    "explained": (
        "the smallest that explains 97% of the {loss} that the best size explains beyond a constant"
    ),
    "best": "the one with the lowest {loss}",
    "one-se": "the smallest whose {loss} is within one standard error of the best size",
}


def write_report(folder: Path, selection: Selection) -> None:
    """Write ``select.html`` and ``select.json`` to a folder, which is created if necessary.

    Raises
    ------
    ValueError
        If the files cannot be written.
    """
    record = {"name": "select", "rows": selection.columns, **selection.record()}
    write_texts(folder, dict(zip(REPORT_FILES, (record, page(selection)))))


def page(selection: Selection) -> str:
    """Return the report on a selection as an HTML page."""
    name = Path(selection.settings.get("table", "table")).name
    sections = (
        _summary,
        _scores,
        _errors,
        _card,
        _columns,
        *(() if not selection.columns or selection.card else (_responses, _rows, _alternatives)),
        _left_out,
        _how,
    )
    target = selection.settings.get("target") or "its target"
    body = "".join(section(selection) for section in sections)
    return html_page(
        f"{name}: selected columns", f"{name}: the columns that predict {target}", body
    )


def _summary(selection: Selection) -> str:
    k, total = len(selection.columns), len(selection.table.encoding.columns)
    chosen = "chosen by cross-validation" if selection.size_chosen else "as requested"
    chosen = (
        f"at most {selection.certainty['fdr']:.0%} expected false discoveries"
        if "fdr" in selection.certainty
        else chosen
    )
    words = (
        f"<p><b>{k}</b> of {total} usable columns, {chosen}; {selection.task} on "
        f"{len(selection.table.y)} rows."
    )
    if not k:
        return f"{words} <b>{escape(selection.nothing)}.</b></p>"
    scores = selection.validation.scores
    if scores:
        measure, score = next(iter(scores["selected"].items()))
        rest = [
            f"{name} {_cell(next(iter(values.values())), '.3f')}"
            for name, values in scores.items()
            if name != "selected"
        ]
        long = escape(_LONG.get(measure, measure))
        words += f" On held-out rows the {long} is <b>{score:.3f}</b> ({'; '.join(rest)})."
        if score <= next(iter(scores["baseline"].values())):
            words += (
                " <b>That is no better than the baseline: the columns may not predict the "
                "target.</b>"
            )
    return words + "</p>"


def _scores(selection: Selection) -> str:
    v = selection.validation
    if not v.scores:
        return "<h2>Scores</h2><p>There are too few rows for cross-validation.</p>"
    measures = list(v.scores["selected"])
    rows = [
        (name, *(_cell(values[m], ".3f") for m in measures)) for name, values in v.scores.items()
    ]
    body = "<h2>Scores by cross-validation</h2>" + table(
        ["", *(_LONG.get(m, m) for m in measures)], rows, bold=0
    )
    number = ", but their number is not: the scores are optimistic"
    if v.nested:
        number = ", and their number is chosen by the other folds"
    constant = "the most frequent class" if selection.task == "classification" else "the mean"
    body += small(
        f"Held-out rows of {len(v.path)} folds; the columns are selected again in each "
        f"fold{number if selection.size_chosen else ''}. "
        f'"All columns" is a ridge model on every usable column; the baseline predicts {constant}.'
    )
    mean, error = (
        v.path_scores,
        v.path.std(axis=0, ddof=1) / np.sqrt(len(v.path)) if len(v.path) > 1 else v.path[0] * 0,
    )
    lines = {name: next(iter(v.scores[name].values())) for name in ("all columns", "baseline")}
    body += score_chart(v.sizes, mean, error, v.size, lines, measures[0].replace("R2", "R²"))
    words = "Score against the number of columns, one path per fold; bars show one standard error."
    if selection.size_chosen:
        score = selection.settings.get("scoring")
        loss = "log loss" if selection.task == "classification" else "squared error"
        loss = score.replace("_", " ") if score else loss
        words += (
            " The size is "
            f"{_RULES[selection.settings.get('size_rule', 'explained')].format(loss=loss)}."
        )
    return body + small(words) + small(f"{measures[0]} by the number of columns: {v.curve}.")


def _errors(selection: Selection) -> str:
    """Return the confusion matrix, calibration and residuals of the held-out rows."""
    errors, body = selection.validation.errors, ""
    if confusion := errors.get("confusion"):
        classes, counts = (
            confusion["classes"][:_MAX_SHOWN],
            np.array(confusion["rows"])[:_MAX_SHOWN, :_MAX_SHOWN],
        )
        rows = [(str(name), *(f"{n:g}" for n in row)) for name, row in zip(classes, counts)]
        body += table(["true class / predicted as", *map(str, classes)], rows)
    if calibration := errors.get("calibration"):
        rows = [
            (str(g["rows"]), f"{g['predicted']:.3g}", f"{g['observed']:.3g}") for g in calibration
        ]
        what = (
            f"probability of {short(str(confusion['classes'][1]))}" if confusion else "prediction"
        )
        body += table(["rows", f"{what}, mean", "observed, mean"], rows, numbers=(0, 1, 2))
        body += small(
            "Calibration: held-out rows in ten groups by their prediction. Where both "
            "means agree, the predictions can be trusted."
        )
    if residuals := errors.get("residuals"):
        body += table(
            ["share of rows", "residual below"],
            [(f"{r['share']:.0%}", f"{r['residual']:.3g}") for r in residuals],
        )
    return body and f"<h2>Errors on held-out rows</h2>{body}"


def _card(selection: Selection) -> str:
    if (card := selection.card) is None:
        return ""
    rules = table(
        ["rule", "points"], [(row["rule"], f"{row['points']:+d}") for row in card["rules"]]
    )
    risks = [
        (str(row["points"]), f"{row['probability']:.1%}", str(row["rows"])) for row in card["risk"]
    ]
    words = (
        "Add the points of the rules that hold. Each sum has a probability and a number of "
        "rows of the table."
    )
    head = ["sum", f"probability of {short(str(card['class']))}", "rows"]
    return f"<h2>Score card</h2>{rules}{small(words)}{table(head, risks)}"


def _columns(selection: Selection) -> str:
    cells = {"effect": ".3g", "stability": "0.0%", "pvalue": ".2g", "cost": ".3g"}
    rows = [
        (shown(c), _coefficient(c), *(_cell(c.get(what), form) for what, form in cells.items()))
        for c in selection.columns
    ]
    pictured = selection.columns[:MAX_PICTURES]
    notes = "".join(
        small(f"{escape(line)}.")
        for line in [*selection.certainty.get("notes", ()), *_interaction(selection)]
    )
    if not pictured:
        return f"<h2>Selected columns</h2><p>None.</p>{notes}"
    chart = effect_chart(
        [shown(c) for c in pictured],
        [c["effect"] for c in pictured],
        [c["stability"] for c in pictured],
    )
    kappa = (
        ""
        if selection.kappa is None
        else f" The kappa of two halves is {selection.kappa:.2f} (1: the same columns, 0: chance)."
    )
    words = (
        "Coefficient: change of the score per unit of the column; for several classes the norm. "
        "Effect: standard deviation of the column's contribution to the score. "
        f"Stability: fraction of {N_HALVES} random halves of the rows that select the "
        f"column again.{kappa} "
        "P-value: of the hypothesis that the target does not depend on the column given "
        "all others, valid for a column named in advance. "
        "Cost: loss of the first score without the column, with the others refitted on "
        "the same folds, not selected again."
    )
    shown_table = table(["column", "coefficient", "effect", "stability", "p-value", "cost"], rows)
    return f"<h2>Selected columns</h2>{shown_table}{chart}{small(words)}{notes}"


def _interaction(selection: Selection) -> list[str]:
    if selection.interaction is None:
        return []
    (a, b), gain = selection.interaction["columns"], selection.interaction["gain"]
    line = (
        f"Strongest interaction of two numeric columns: the product of {a} and {b}; "
        f"with it the first score is {abs(gain):.3g} {'better' if gain > 0 else 'worse'}"
    )
    return [line]


def _cell(value: float | None, form: str) -> str:
    return "–" if value is None or value != value else format(value, form)


def _coefficient(column: dict[str, Any]) -> str:
    if column.get("interval"):
        return "{:.4g} ({:.3g} to {:.3g})".format(column["coefficient"], *column["interval"])
    if "levels" in column:
        return f"{len(column['levels'])} levels"
    return (
        ("curve" if "curve" in column else "rules")
        if column["coefficient"] is None
        else f"{column['coefficient']:.4g}"
    )


def _responses(selection: Selection) -> str:
    pictures = []
    shapes = [(c, *_shape(selection, c)) for c in selection.columns[:MAX_PICTURES]]
    values = [v for _, _, curves in shapes for curve in curves for v in curve]
    spread = (min([*values, 0.0]), max([*values, 0.0])) if values else (0.0, 1.0)
    for column, x, curves in shapes:
        if "levels" in column:
            if len(curves) == 1:
                pictures.append(
                    level_chart(
                        [entry["level"] for entry in column["levels"]],
                        curves[0],
                        column["name"],
                        spread,
                    )
                )
        else:
            unit = " (days since 1970)" if column["kind"] == DATE else ""
            if ranks := column.get("ranks"):
                unit = f" (0 {short(ranks[0], 12)} to {len(ranks) - 1} {short(ranks[-1], 12)})"
            pictures.append(
                curve_chart(
                    x, curves, short(shown(column)) + unit, spread, column["distribution"]["rows"]
                )
            )
    classes: list[Any] = list(getattr(selection.model, "classes_", []))
    if len(classes) > 2:
        colours = ("blue", "orange", "green", "purple", "red", "grey")
        legend = (
            " Lines: "
            + ", ".join(f"{colours[i % 6]} {short(str(c))}" for i, c in enumerate(classes[:12]))
            + "."
        )
    elif classes:
        legend = f" The score is the log odds of {classes[1]!s}."
    else:
        log = selection.model.loss_.link == "log"
        legend = f" The score is the {'logarithm of the ' if log else ''}prediction."
    words = (
        "Contribution to the score against the value of the column, from its 1st to its "
        "99th percentile; 0 at its mean. "
        f"All charts share one scale. The bars show the distribution of the rows.{escape(legend)}"
    )
    return f'<h2>Partial effects</h2><div class="curves">{"".join(pictures)}</div>{small(words)}'


def _shape(selection: Selection, column: dict[str, Any]) -> tuple[list[float], list[list[float]]]:
    """Return values of a column and its contributions to each output at these values."""
    if "levels" in column:
        return [], np.transpose([entry["coefficient"] for entry in column["levels"]]).tolist()
    low, high, mean = (column["distribution"][name] for name in ("from", "to", "mean"))
    if "curve" in column:
        knots, curves = np.array(column["curve"]["x"]), np.array(column["curve"]["y"]).T
        x = np.unique([low, high, *knots[(knots > low) & (knots < high)]])
        return x.tolist(), [np.interp(x, knots, curve).tolist() for curve in curves]
    place = int(np.flatnonzero(selection.table.columns_of([column["name"]]))[0])
    x = np.array([low, high])
    return x.tolist(), [
        (slope * (x - mean)).tolist() for slope in np.atleast_2d(selection.model.coef_)[:, place]
    ]


def _rows(selection: Selection) -> str:
    """Return a collapsible section with the columns' contributions in several rows, from the lowest
    to the highest score."""
    rows, additive = selection.table, AdditiveModel.from_estimator(selection.model)
    parts, groups = additive.contributions(rows.X), rows.encoding.groups[additive.selected]
    names = [rows.names[number] for number in np.unique(groups)]
    added = np.stack(
        [parts[:, groups == number].sum(axis=1) for number in np.unique(groups)], axis=1
    )
    o = (added.sum(axis=1) + additive.intercept).argmax(axis=1)  # the score of the predicted class
    added -= added.mean(axis=0)
    scores = added.sum(axis=1)[np.arange(len(o)), o]
    shift = {} if rows.offset is None else {"offset": rows.offset}
    predicted, body = selection.model.predict(rows.X, **shift), ""
    for i in np.argsort(scores, kind="stable")[
        np.unique(np.linspace(0, len(scores) - 1, N_ROWS).astype(int))
    ]:
        strongest = sorted(zip(names, added[i, :, o[i]]), key=lambda pair: -abs(pair[1]))[
            :MAX_PICTURES
        ]
        answer = (
            predicted[i]
            if selection.task == "classification"
            else f"{np.ravel(predicted[i])[0]:.4g}"
        )
        head = (
            f"Row {rows.rows[i] + 1 if len(rows.rows) else i + 1}: {answer}, {scores[i]:+.3g} "
            "from the mean score"
        )
        adds = [(name, f"{value:+.3g}") for name, value in strongest]
        body += (
            f"<details><summary>{escape(head)}</summary>{table(['column', 'adds'], adds)}</details>"
        )
    words = (
        "Rows from the lowest to the highest score, with the contribution of each column "
        "relative to its average over all rows."
    )
    return f"<h2>Explained rows</h2>{body}{small(words)}"


def _alternatives(selection: Selection) -> str:
    costs = {
        c["name"]: [f"{a['name']} ({a['cost']:.1%})" for a in c["alternatives"]]
        for c in selection.columns
    }
    if not (rows := [(name, ", ".join(others)) for name, others in costs.items() if others]):
        return (
            "<h2>Alternatives</h2><p>No other column could replace a selected one for less "
            "than 5% of the loss.</p>"
        )
    others = table(["column", "possible replacements (cost)"], rows, numbers=())
    words = small(
        "Cost: increase in the training loss, up to 5%, by a quadratic approximation. "
        "The other coefficients are adjusted."
    )
    return f"<h2>Alternatives</h2>{others}{words}"


def _left_out(selection: Selection) -> str:
    rows = [
        (why, str(len(names)), ", ".join(names[:50]) + (", …" if len(names) > 50 else ""))
        for why, names in by_reason(selection.table.left_out).items()
    ]
    body = (
        table(["reason", "columns", "names"], rows, numbers=(1,))
        if rows
        else "<p>No column was dropped.</p>"
    )
    other = [note for note in selection.table.notes if not re.match(r"\d+ columns? dropped", note)]
    notes = "".join(f"<li>{escape(note)}</li>" for note in other)
    return f"<h2>Dropped columns</h2>{body}" + (f"<ul>{notes}</ul>" if notes else "")


def _how(selection: Selection) -> str:
    settings = ", ".join(
        f"{name} = {value}" for name, value in selection.settings.items() if value is not None
    )
    return "<h2>Settings</h2>" + small(
        f"annealed {__version__}, {type(selection.model).__name__}; {escape(settings)}."
    )
