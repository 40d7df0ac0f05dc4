"""Explanation of scores by the contributions of columns."""

from dataclasses import dataclass
from typing import Any

import numpy as np
import pandas as pd

from ..messages import naming_extra
from .export.builder import formula_of


@dataclass(frozen=True)
class Contributions:
    """Contributions of columns to the scores of rows, from :func:`explain`.

    Attributes
    ----------
    names : tuple of str
        Columns that the model uses.
    outputs : tuple of str
        Names of the scores (classes or targets). A single score has an empty name.
    values : ndarray of shape (n_rows, n_names, n_outputs)
        Contribution of each column. The sum over the columns, plus ``base``, is the score.
    base : ndarray of shape (n_outputs,)
        Intercept or, if background rows were given, their mean score.
    data : DataFrame
        Explained rows, with the columns in ``names``.
    """

    names: tuple[str, ...]
    outputs: tuple[str, ...]
    values: np.ndarray
    base: np.ndarray
    data: Any

    @property
    def scores(self) -> np.ndarray:
        """Compute the scores of the rows.

        Returns
        -------
        ndarray of shape (n_rows, n_outputs)
            Sum of the contributions and the base for each row.
        """
        return self.values.sum(axis=1) + self.base

    def to_frame(self) -> pd.DataFrame:
        """Return the contributions as a DataFrame with one row per input row.

        Returns
        -------
        DataFrame
            Columns for the score, for the contribution of each column, and for the base (named
            "(intercept)"). If there are several scores, these columns are repeated for each score.
        """
        columns = {}
        for o, output in enumerate(self.outputs):
            to = f" to {output}" if output else ""
            columns[f"score of {output}" if output else "score"] = self.scores[:, o]
            columns |= {
                f"contribution of {name}{to}": self.values[:, i, o]
                for i, name in enumerate(self.names)
            }
            columns[f"contribution of (intercept){to}"] = np.full(len(self.values), self.base[o])
        return pd.DataFrame(columns, index=self.data.index)

    def to_shap(self) -> Any:
        """Return the contributions as an ``Explanation`` object of the package shap.

        Returns
        -------
        shap.Explanation
            Explanation with values of shape (n_rows, n_names) or, for several scores, (n_rows,
            n_names, n_outputs).

        Raises
        ------
        ModuleNotFoundError
            If the package shap is not installed.
        """
        with naming_extra("to_shap requires the package shap", "shap"):
            import shap
        base = np.tile(self.base, (len(self.values), 1))
        parts = {"data": self.data.to_numpy(), "feature_names": list(self.names)}
        if len(self.outputs) == 1:
            return shap.Explanation(self.values[:, :, 0], base[:, 0], **parts)
        return shap.Explanation(self.values, base, output_names=list(self.outputs), **parts)


def explain(model: Any, X: Any, background: Any = None) -> Contributions:
    """Compute the contribution of each column to the scores of rows.

    Parameters
    ----------
    model : TabularModel, fitted estimator or fitted Pipeline
        Model of a type accepted by :func:`annealed.models.export`.
    X : frame, or array of shape (n_rows, n_columns)
        Rows in the input format of the model.
    background : frame, array of shape (n_rows, n_columns) or None, default None
        Background rows, such as the training rows. If they are given, their mean contributions are
        subtracted, so that the contributions are the Shapley values of the additive score.

    Returns
    -------
    Contributions
        Contributions of the columns, and the base.

    Raises
    ------
    ValueError
        If the model cannot be explained, or the rows do not match its input format.

    Examples
    --------
    >>> import numpy as np
    >>> from annealed.learners import FSARegressor
    >>> from annealed.models import explain
    >>> X = np.random.default_rng(0).standard_normal((100, 30))
    >>> fitted = FSARegressor(2).fit(X, X[:, 4] + 2 * X[:, 9])
    >>> why = explain(fitted, X[:3])
    >>> why.names, bool(np.allclose(why.scores[:, 0], fitted.predict(X[:3])))
    (('x4', 'x9'), True)
    """
    formula = formula_of(model)
    encoding = getattr(model, "encoding", None)
    if encoding is not None:
        X, background = (
            rows if rows is None else encoding.with_parts(_frame(rows, ()))
            for rows in (X, background)
        )
    frame = _frame(X, formula.inputs)
    values, base = formula.contributions(frame), np.array(formula.intercept)
    if background is not None:
        mean = formula.contributions(_frame(background, formula.inputs)).mean(axis=0)
        values, base = values - mean, base + mean.sum(axis=0)
    names = tuple(formula.columns)
    return Contributions(names, formula.outputs, values, base, frame[list(names)])


def _frame(X: Any, names: tuple[str, ...]) -> Any:
    if hasattr(X, "columns"):
        return X.rename(columns=str)
    X = np.asarray(X.toarray() if hasattr(X, "toarray") else X)
    if X.ndim != 2 or X.shape[1] != len(names):
        raise ValueError(
            f"X has shape {X.shape}; "
            f"expected {f'{len(names)} columns' if names else 'a table with column names'}"
        )
    return pd.DataFrame(X, columns=list(names))
