"""Selection of the columns of a data frame, as a scikit-learn estimator."""

import re
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any, Self

import numpy as np
import pandas as pd
from sklearn.metrics import accuracy_score, r2_score
from sklearn.utils import ClassifierTags, RegressorTags, Tags, check_array, column_or_1d
from sklearn.utils.metaestimators import available_if
from sklearn.utils.validation import check_is_fitted, validate_data

from ...learners.common import SupportMixin, check_container, check_integer, check_sample_weight
from ...learners.plots import plot_bars, plot_scores
from ...learners.sklearn_bases import BaseEstimator
from .encoding import as_words
from .explanation import Contributions, explain
from .export.writers import export
from .fitting import (
    Selection,
    SelectionOptions,
    SelectionParameters,
    select_table,
    shown,
    table_from_frame,
    usable,
)
from .model import TabularModel


@dataclass(eq=False, repr=False, kw_only=True)
class _Parameters(SelectionParameters):
    n_features_to_select: int | str = field(default="auto", kw_only=False)


class TabularSelector(SupportMixin, BaseEstimator, _Parameters):
    """Selector of the data frame columns that predict a target, as in ``annealed select``.

    The encoding, the selection, the scores and the model are identical to those of the command. A
    text column is selected or dropped as a whole.

    Parameters
    ----------
    n_features_to_select : int or "auto", default "auto"
        Number of columns to select. "auto" chooses it by cross-validation, or by ``fdr`` if that is
        given.
    size_rule : {"explained", "best", "one-se"}, default "explained"
        Rule by which "auto" chooses the number of columns. "best" chooses the number with the
        lowest cross-validated loss. "explained" chooses the smallest number that achieves 97% of
        the largest improvement over a constant model. "one-se" chooses the smallest number whose
        loss is within one standard error of the lowest.
    task : {"auto", "classification", "regression"}, default "auto"
        Type of task. With "auto", text, booleans and few distinct integers are treated as classes.
        The cross-validation functions of scikit-learn stratify their folds only if the task is
        "classification".
    response : {"linear", "piecewise"}, default "linear"
        Response to each column: a line, or a piecewise-linear curve.
    loss : str, default "auto"
        Name of a loss of :class:`.FSAClassifier` or :class:`.FSARegressor`.
    class_weight : "balanced" or dict, default ()
        Class weights, as in :class:`.FSAClassifier`.
    param : dict, default ()
        Other parameters of the estimator. Nested parameters are written in the form
        ``{"schedule.mu": 20}``.
    scoring : str or None, default None
        Score, such as "roc_auc", by which the number of columns is chosen, instead of the loss.
    include, exclude : sequence of str, default ()
        Columns that are always selected, and columns that are never selected.
    monotone : dict, default ()
        Columns with an increasing (+1) or decreasing (-1) effect, such as ``{"dose": -1}``.
    bounds : dict, default ()
        Bounds of coefficients, such as ``{"age": (0, None)}``.
    group : sequence of str, default ()
        Prefixes of column names. Columns with the same prefix are selected together and count as
        one column.
    kinds : dict, default ()
        Column types that override the detected ones: "number", "category", "date", or ordered
        levels such as "low<medium<high".
    card : bool, default False
        Whether to fit a score card with ``n_features_to_select`` rules; requires two classes.
    keep_rare : bool, default False
        Whether to keep classes with a single row; cross-validation is then not possible.
    offset, exposure : str or None, default None
        Column that is added to the score (``offset``) or whose logarithm is added (``exposure``).
        This column is also required for prediction.
    weight, row_groups, time : str or None, default None
        Names of the columns that contain the sample weights, the groups of rows that are assigned
        to the same fold, and the times of the rows. If times are given, each fold is predicted from
        earlier rows.
    split_duplicates : bool, default False
        Whether to allow identical rows in different folds.
    boosting : bool, default False
        Whether to also score gradient boosting on all columns.
    fdr : float or None, default None
        False discovery rate to control, instead of a number of columns.
    intervals : bool, default False
        Whether to compute 95% confidence intervals of the coefficients.
    seed : int, default 0
        Random seed for the folds, for random halves of the rows and for sampling rows.
    dates : {"dayfirst", "monthfirst"} or None, default None
        Order of day and month in dates such as 31/12/2019. If None, it is detected.

    Attributes
    ----------
    task_ : {"classification", "regression"}
    columns_ : list of dict
        Selected columns, in order of decreasing effect, with their name, coefficient, effect,
        stability and other properties.
    scores_ : dict of str to dict of str to float
        Cross-validated scores of the selected columns, all columns and a constant model.
    path_ : list of dict
        Number of columns and cross-validated score, for each number of columns.
    notes_ : list of str
        One-line messages about decisions on columns.
    left_out_ : dict of str to str
        Reason for which each dropped column was dropped.
    model_ : TabularModel
        Model that :meth:`save` writes.
    classes_ : ndarray of shape (n_classes,)
        Class labels; only in classification.
    support_ : ndarray of shape (n_features_in_,), bool
        Mask of the original columns that the model requires.
    n_features_in_ : int
        Number of columns of X.
    feature_names_in_ : ndarray of shape (n_features_in_,)
        Column names of X; only set if X has column names.

    Examples
    --------
    >>> import numpy as np, pandas as pd
    >>> from annealed.models import TabularSelector
    >>> rng = np.random.default_rng(0)
    >>> frame = pd.DataFrame(rng.standard_normal((200, 5)), columns=list("abcde"))
    >>> frame["city"] = rng.choice(["Oslo", "Rome"], 200)
    >>> y = 2 * frame["b"] + (frame["city"] == "Rome")
    >>> selector = TabularSelector(2).fit(frame, y)
    >>> selector.get_feature_names_out().tolist(), round(selector.scores_["selected"]["R2"], 3)
    (['b', 'city'], 1.0)
    """

    def fit(self, X: Any, y: Any, sample_weight: Any = None) -> Self:
        """Select columns and fit the model.

        Parameters
        ----------
        X : DataFrame, dict of arrays, or array of shape (n_samples, n_columns)
            Training data, such as a pandas or Polars DataFrame or a PyArrow table.
        y : array of shape (n_samples,)
            Target, as numbers or labels. Rows without a target are dropped.
        sample_weight : array of shape (n_samples,) or None, default None
            Row weights; None means equal weights.

        Returns
        -------
        TabularSelector
            Fitted estimator (this object).

        Raises
        ------
        ValueError
            If the frame or the target is not compatible with the options.
        """
        with _parameter_names():
            options, k = SelectionOptions.of(self), self.n_features_to_select
            if k != "auto":
                check_integer("n_features_to_select", k, 1)
            weighted = (
                options if sample_weight is None else replace(options, weight="sample_weight")
            )
            weighted.check(None if self.fdr is not None else k)
            frame, target = as_frame(X), _as_series(self, y)
            validate_data(self, frame if is_frame(X) else X, skip_check_array=True)
            if len(frame) != len(target):
                raise ValueError(
                    f"X has {len(frame)} rows and y has {len(target)}; "
                    "expected the same number of rows"
                )
            table = usable(table_from_frame(frame, target, options, []))
            if sample_weight is not None:
                table.weight = check_sample_weight(sample_weight, len(frame))[table.rows]
            selection = select_table(table, None if k == "auto" else int(k), options)
        selection.settings = {"k": str(k), **options.record()}
        model = selection.to_model(None if target.name is None else str(target.name))
        self._store(replace(model, classes=_labels(target, model.classes)))
        self.support_ = np.isin(frame.columns, selection.sources)
        self.selection_, self.left_out_ = selection, selection.table.left_out
        self.columns_, self.path_ = selection.columns, selection.record()["path"]
        self.notes_ = [_in_parameters(line) for line in selection.table.notes]
        return self

    def _store(self, model: TabularModel) -> Self:
        self.model_, self.task_, self.scores_ = model, model.task, model.about["scores"]
        if model.classes is not None:
            self.classes_ = model.classes
        return self

    def predict(self, X: Any) -> np.ndarray:
        """Predict the target for each row of X.

        Parameters
        ----------
        X : DataFrame, dict of arrays, or array of shape (n_samples, n_columns)
            Rows with the columns of the model; other columns are ignored.

        Returns
        -------
        ndarray of shape (n_samples,)
            Predicted numbers or labels.
        """
        rows = self._rows(X)
        return self.model_.predict(rows)

    @available_if(lambda self: getattr(self, "task_", self.task) != "regression")
    def predict_proba(self, X: Any) -> np.ndarray:
        """Predict class probabilities.

        Parameters
        ----------
        X : DataFrame, dict of arrays, or array of shape (n_samples, n_columns)
            Rows, as in :meth:`predict`.

        Returns
        -------
        ndarray of shape (n_samples, n_classes)
            Probabilities in the order of ``classes_``.
        """
        rows = self._rows(X)
        return self.model_.predict_proba(rows)

    def score(self, X: Any, y: Any, sample_weight: Any = None) -> float:
        """Compute the accuracy for classification, or R^2 for regression.

        Parameters
        ----------
        X : DataFrame, dict of arrays, or array of shape (n_samples, n_columns)
            Rows, as in :meth:`predict`.
        y : array of shape (n_samples,)
            True target.
        sample_weight : array of shape (n_samples,) or None, default None
            Row weights; None means equal weights.

        Returns
        -------
        float
        """
        measure = accuracy_score if self.task_ == "classification" else r2_score
        return float(measure(y, self.predict(X), sample_weight=sample_weight))

    def transform(self, X: Any) -> Any:
        """Select the original columns that the model requires.

        Parameters
        ----------
        X : DataFrame, dict of arrays, or array of shape (n_samples, n_columns)
            Rows, as in :meth:`predict`.

        Returns
        -------
        DataFrame of pandas or Polars, or ndarray of shape (n_samples, n_selected)
            Required columns, in the same type as X. Other types of frames are converted to a pandas
            DataFrame.
        """
        check_is_fitted(self, "model_")
        if not is_frame(X):
            self._rows(X)
            return np.asarray(X)[:, self.support_]
        frame = X if hasattr(X, "to_dict") else as_frame(X)
        return frame[self.get_feature_names_out().tolist()]

    def explain(self, X: Any, background: Any = None) -> Contributions:
        """Compute contributions to the scores; see :func:`annealed.models.explain`.

        Parameters
        ----------
        X : DataFrame, dict of arrays, or array of shape (n_samples, n_columns)
            Rows, as in :meth:`predict`.
        background : as X, or None, default None
            Background rows, whose mean contributions are subtracted.

        Returns
        -------
        Contributions
        """
        rows = None if background is None else self._rows(background)
        return explain(self.model_, self._rows(X), rows)

    def report(self, folder: str | Path) -> None:
        """Write select.html and select.json, as ``annealed select --report`` does.

        Parameters
        ----------
        folder : path
            Folder to which the report is written; created if necessary.

        Raises
        ------
        ValueError
            If the selector was loaded from a file, since files do not contain training rows.
        """
        from .report import write_report

        selection = self._selection()
        selection.add_details()
        write_report(Path(folder), selection)

    def plot(self, ax: Any = None) -> Any:
        """Plot the effects of the selected columns.

        Parameters
        ----------
        ax : matplotlib.axes.Axes or None, default None
            Axes to draw on; by default, a new figure is created.

        Returns
        -------
        matplotlib.axes.Axes
            The axes of the plot.
        """
        columns = self._selection().columns
        return plot_bars(
            list(map(shown, columns)),
            [column["effect"] for column in columns],
            "effect on the score",
            ax=ax,
        )

    def plot_path(self, ax: Any = None) -> Any:
        """Plot the held-out scores against the number of columns.

        Parameters
        ----------
        ax : matplotlib.axes.Axes or None, default None
            Axes to draw on; by default, a new figure is created.

        Returns
        -------
        matplotlib.axes.Axes
            The axes of the plot.
        """
        v = self._selection().validation
        label = next(iter(v.scores["selected"])) if v.scores else "score"
        return plot_scores(v.sizes, v.path, selected=v.size, label=label, ax=ax)

    def export(self, path: str | Path, **options: Any) -> None:
        """Write the model as SQL, ONNX, C, JSON or a spreadsheet.

        Parameters
        ----------
        path : path
            Output file; its suffix determines the format.
        **options
            Options of :func:`annealed.models.export`.
        """
        check_is_fitted(self, "model_")
        export(self.model_, path, **options)

    def save(self, path: str | Path) -> None:
        """Write a model file, as ``annealed select --out`` does.

        Parameters
        ----------
        path : path
            Model file; an existing model is replaced.
        """
        check_is_fitted(self, "model_")
        self.model_.save(path)

    @classmethod
    def load(cls, path: str | Path) -> Self:
        """Read a model file written by :meth:`save` or ``annealed select --out``.

        Parameters
        ----------
        path : path
            Model file.

        Returns
        -------
        TabularSelector
            Fitted selector, which can predict, transform, explain and export.

        Raises
        ------
        ValueError
            If the file does not contain a model that was fitted to a data frame.
        """
        model = TabularModel.load(path)
        if model.encoding is None:
            raise ValueError(f"{path}: the model was fitted on a matrix; use load_model to read it")
        names = np.array(model.encoding.sources, object)
        task: Any = model.task
        selector = cls(max(len(names), 1), task=task)
        selector.feature_names_in_, selector.n_features_in_ = names, len(names)
        selector.support_ = np.ones(len(names), bool)
        return selector._store(model)

    def _selection(self) -> Selection:
        check_is_fitted(self, "model_")
        if not hasattr(self, "selection_"):
            raise ValueError(
                "a selector loaded from a file does not contain the training rows; call fit first"
            )
        return self.selection_

    def _rows(self, X: Any) -> pd.DataFrame:
        check_is_fitted(self, "model_")
        if not is_frame(X):
            X = check_array(X, dtype=None, ensure_all_finite=False)
            validate_data(self, X, reset=False, skip_check_array=True)
        return as_frame(X, getattr(self, "feature_names_in_", None))

    def __sklearn_tags__(self) -> Tags:
        tags = super().__sklearn_tags__()
        task = getattr(self, "task_", self.task)
        tags.estimator_type = {"classification": "classifier", "regression": "regressor"}.get(task)
        tags.classifier_tags = ClassifierTags() if task == "classification" else None
        tags.regressor_tags = RegressorTags() if task == "regression" else None
        tags.target_tags.required = tags.input_tags.allow_nan = tags.input_tags.string = True
        return tags


def is_frame(X: Any) -> bool:
    """Return whether a table has column names: a data frame, or a dict of arrays."""
    return hasattr(X, "columns") or (isinstance(X, Mapping) and not hasattr(X, "tocsr"))


def as_frame(X: Any, names: Any = None) -> pd.DataFrame:
    """Convert a table to a pandas DataFrame with distinct strings as column names.

    ``names`` contains the column names for an array; by default, x0, x1, ...

    Raises
    ------
    ValueError
        If names are duplicated.
    """
    check_container("X", X, numbers=False)
    if hasattr(X, "to_pandas"):
        X = X.to_pandas()
    elif not is_frame(X):
        X = check_array(X, dtype=None, ensure_all_finite=False)
        names = [f"x{i}" for i in range(X.shape[1])] if names is None else names
        X = pd.DataFrame(X, columns=names).infer_objects()
    frame = X if isinstance(X, pd.DataFrame) else pd.DataFrame(dict(X))
    if not all(isinstance(name, str) for name in frame.columns):
        frame = frame.set_axis([str(name) for name in frame.columns], axis=1)
    if not frame.columns.is_unique:
        twice = frame.columns[frame.columns.duplicated()][0]
        raise ValueError(f"two columns have the name {twice!r}; expected distinct names")
    return frame


def _as_series(estimator: BaseEstimator, y: Any) -> pd.Series:
    if y is None:
        raise ValueError(
            f"{type(estimator).__name__} requires y to be passed, but the target y is None"
        )
    check_container("y", y, numbers=False)
    y = y.to_pandas() if hasattr(y, "to_pandas") else y
    return y if isinstance(y, pd.Series) else pd.Series(column_or_1d(y, warn=True), name="y")


def _labels(target: pd.Series, classes: np.ndarray | None) -> np.ndarray | None:
    """Return the classes in the type of the target; in the encoded table, text and booleans are
    text."""
    if classes is None or classes.dtype.kind not in "US":
        return classes
    labels = pd.Series(target.dropna().unique())
    by_text = dict(zip(as_words(labels), labels.tolist()))
    return np.array([by_text[text] for text in classes.tolist()])


def _in_parameters(message: str) -> str:
    """Replace option names with parameter names in a message."""
    names = {"-k": "n_features_to_select", "--as": "kinds", "--score": "scoring"}
    return re.sub(
        r"(?<![\w-])(?:-k\b|--[a-z][a-z-]+)",
        lambda option: names.get(option[0], option[0][2:].replace("-", "_")),
        message,
    )


@contextmanager
def _parameter_names() -> Iterator[None]:
    """Context manager that replaces command-line options with parameter names in error messages."""
    try:
        yield
    except ValueError as error:
        raise ValueError(_in_parameters(str(error))) from None
