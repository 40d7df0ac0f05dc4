"""How sure a selection of columns is: a bounded share of false ones, a p-value and an interval for
each of them."""

from typing import Any

import numpy as np
import pandas as pd
from sklearn.base import clone

from ...learners import Constraints, FDRSelector, FSAInference, selection_pvalues
from .encoding import Table

_FEW_VALUES = 10  # of a column: a normal model of it is a rough one
_SKEWED = 2.0  # absolute skewness above which a normal model is a rough one


def fdr_columns(table: Table, model: Any, fdr: float) -> tuple[list[str], dict[str, Any]]:
    """The columns of which at most a share ``fdr`` is false in the mean, and what that rests on.

    Parameters
    ----------
    table : Table
    model : FSAClassifier or FSARegressor
        Whose columns are tested; those that it includes are selected in any case, and not tested.
    fdr : float
        In (0, 1).

    Returns
    -------
    names : list of str
        Of the columns; none may be.
    certainty : dict
        ``fdr``, ``chosen_by``, ``method``, ``estimated_fdr`` (None where nothing is selected),
        ``exchangeability``
        (p-value of the diagnostic, None without knockoffs), and ``notes``: lines for people.

    Raises
    ------
    ValueError
        If the table cannot be tested.
    """
    groups = table.encoding.groups
    given = model.constraints or Constraints()
    grouped = clone(given).set_params(groups=groups if given.groups is None else given.groups)
    found = FDRSelector(clone(model).set_params(constraints=grouped), fdr, random_state=0).fit(
        _named(table), table.y
    )
    names = [table.names[number] for number in np.unique(groups[found.support_])]
    method = (
        "distilled conditional randomisation test"
        if found.method_ == "conditional"
        else "knockoffs"
    )
    notes = [
        f"{method}: in the mean over repeated samples at most {fdr:.0%} of the selected columns say nothing beyond the others",
        *_assumptions(table),
    ]
    if not names:
        notes.append(
            f"nothing can be trusted: no column is selected at a share of false ones of {fdr:.0%}"
        )
    if found.exchangeability_ < 0.05:
        notes.append(
            f"the knockoffs do not suit these columns (p = {found.exchangeability_:.3f}): do not rely on the share"
        )
    return names, {
        "fdr": fdr,
        "chosen_by": "the share of false columns",
        "method": found.method_,
        "estimated_fdr": None if np.isnan(found.estimated_fdr_) else found.estimated_fdr_,
        "exchangeability": None if np.isnan(found.exchangeability_) else found.exchangeability_,
        "notes": notes,
    }


def add_certainty(
    columns: list[dict[str, Any]], table: Table, model: Any, intervals: bool
) -> list[str]:
    """Give each column that a fitted model selected its ``pvalue``, and with ``intervals`` its
    ``interval`` of 95%; returns lines that say why there is none.
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
        notes.append(f"no p-values: {error}")
    for column in columns:
        at = int(np.flatnonzero(numbers == table.names.index(column["name"]))[0])
        column["pvalue"] = None if np.isnan(pvalues[at]) else float(pvalues[at])
        if intervals:
            column["interval"] = None if "levels" in column else ends[at].tolist()
    return notes


def _named(table: Table) -> Any:
    """The matrix with the names of its columns, for lines about them."""
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
    """What is assumed of columns that are far from normal."""
    Z = table.X - table.X.mean(axis=0)
    rough = np.abs((Z**3).mean(axis=0)) > _SKEWED * Z.std(axis=0) ** 3
    rough |= np.array([len(np.unique(column)) < _FEW_VALUES for column in table.X.T])
    words = "numbers are skewed or have few values: each is assumed to depend on the others as a linear model says"
    return [f"{rough.sum()} of {len(rough)} {words}"] if rough.any() else []
