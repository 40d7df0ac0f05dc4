"""Statistical guarantees of a selection: false discovery rate, p-values and intervals."""

from typing import Any

import numpy as np
import pandas as pd
from sklearn.base import clone

from ....learners import Constraints, FDRSelector, FSAInference, selection_pvalues
from .table import Table

_FEW_VALUES = 10  # number of distinct values below which a normal model of a column is rough
_SKEWED = 2.0  # absolute skewness above which a normal model is rough


def fdr_columns(table: Table, model: Any, fdr: float) -> tuple[list[str], dict[str, Any]]:
    """Select columns while controlling the false discovery rate, and describe the guarantee.

    Parameters
    ----------
    table : Table
    model : FSAClassifier or FSARegressor
        Estimator for which the columns are tested. Columns that its constraints require are always
        selected, without a test.
    fdr : float
        False discovery rate to control, in (0, 1).

    Returns
    -------
    names : list of str
        Names of the selected columns; possibly empty.
    certainty : dict
        Entries ``fdr``, ``chosen_by``, ``method``, ``estimated_fdr`` (None if nothing is selected),
        ``exchangeability`` (p-value of the diagnostic; None without knockoffs), and ``notes``
        (messages to print).

    Raises
    ------
    ValueError
        If the table cannot be tested.
    """
    groups = table.encoding.groups
    given = model.constraints or Constraints()
    grouped = clone(given).set_params(groups=groups if given.groups is None else given.groups)
    selector = FDRSelector(clone(model).set_params(constraints=grouped), fdr, random_state=0).fit(
        _named(table), table.y
    )
    names = [table.names[number] for number in np.unique(groups[selector.support_])]
    method = (
        "distilled conditional randomisation test"
        if selector.method_ == "conditional"
        else "knockoffs"
    )
    notes = [
        f"{method}: at most {fdr:.0%} of the selected columns are false discoveries, on average "
        "over repeated samples",
        *_assumptions(table),
    ]
    if not names:
        notes.append(f"no columns were selected at a false discovery rate of {fdr:.0%}")
    if selector.exchangeability_ < 0.05:
        notes.append(
            f"the knockoffs do not match these columns (p = {selector.exchangeability_:.3f}), so "
            "the false discovery rate is unreliable"
        )
    return names, {
        "fdr": fdr,
        "chosen_by": "the share of false columns",
        "method": selector.method_,
        "estimated_fdr": None if np.isnan(selector.estimated_fdr_) else selector.estimated_fdr_,
        "exchangeability": None
        if np.isnan(selector.exchangeability_)
        else selector.exchangeability_,
        "notes": notes,
    }


def add_certainty(
    columns: list[dict[str, Any]], table: Table, model: Any, intervals: bool
) -> list[str]:
    """Add a ``pvalue`` and, if ``intervals`` is set, a 95% ``interval`` to each selected column.

    The function returns one-line messages that explain missing p-values and intervals.
    """
    notes: list[str] = []
    if not columns:
        return notes
    X, y, groups = _named(table), table.y, table.encoding.groups
    numbers = groups[model.support_]
    ends = np.full((len(numbers), 2), np.nan)
    if intervals:
        ends = FSAInference(clone(model), random_state=0).fit(X, y).intervals_
    try:
        pvalues = selection_pvalues(model, X, y)
    except ValueError as error:
        pvalues = np.full(len(numbers), np.nan)
        notes.append(f"p-values could not be computed: {error}")
    for column in columns:
        at = int(np.flatnonzero(numbers == table.names.index(column["name"]))[0])
        column["pvalue"] = None if np.isnan(pvalues[at]) else float(pvalues[at])
        if intervals:
            column["interval"] = None if "levels" in column else ends[at].tolist()
    return notes


def _named(table: Table) -> Any:
    """Return the matrix with column names, for use in messages."""
    if hasattr(table.X, "tocsr"):
        return table.X
    groups = table.encoding.groups
    several = np.bincount(groups)[groups] > 1
    names = [
        f"{table.names[j]} ({i})" if many else table.names[j]
        for i, (j, many) in enumerate(zip(groups, several))
    ]
    return pd.DataFrame(table.X, columns=names, copy=False)


def _assumptions(table: Table) -> list[str]:
    """Return lines about the assumptions if columns are far from normal."""
    Z = table.X - table.X.mean(axis=0)
    rough = np.abs((Z**3).mean(axis=0)) > _SKEWED * Z.std(axis=0) ** 3
    rough |= np.array([len(np.unique(column)) < _FEW_VALUES for column in table.X.T])
    words = (
        "columns are skewed or have few distinct values, but the tests assume that each column "
        "depends linearly on the others"
    )
    return [f"{rough.sum()} of {len(rough)} {words}"] if rough.any() else []
