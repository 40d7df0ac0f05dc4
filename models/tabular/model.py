"""Model files of linear or piecewise-linear estimators, loaded without executing code."""

from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, ClassVar, Self

import numpy as np
from scipy.special import expit

from ... import __version__
from ...learners.common import AdditiveModel, class_probabilities, feature_names
from ...learners.parameters import check_choice
from ..files import ModelFile, check_array
from .encoding import CATEGORY, TableEncoding, offsets

TASKS = ("classification", "regression", "ranking")
LINKS = ("identity", "log")
PROBABILITIES = ("softmax", "separate", None)
# kinds of NumPy types of labels that JSON supports
_LABELS = {"b": bool, "i": int, "u": int, "f": float, "U": str, "O": str}


@dataclass(frozen=True)
class TabularModel(ModelFile):
    """Fitted column selector that can be stored in a file.

    The score is linear, or a sum of piecewise-linear or constant responses. Create a model with
    :meth:`from_estimator`, store it with :meth:`save`, and read it with :meth:`load` or
    :func:`annealed.models.load_model`.

    Parameters
    ----------
    additive : AdditiveModel
        Fitted function of the selected columns.
    task : {"classification", "regression", "ranking"}
        Type of the predictions.
    columns : tuple of str
        Names of all columns on which the estimator was fitted or, if ``encoding`` is given, of its
        columns.
    classes : ndarray of shape (n_classes,) or None, default None
        Class labels, for classification.
    link : {"identity", "log"}, default "identity"
        Link function. If it is "log", as for counts, the prediction is exp(score).
    probabilities : {"softmax", "separate", None}, default "softmax"
        Conversion of the scores of several classes to probabilities. "softmax" converts them
        jointly. "separate" converts the score of each class separately and normalises the results.
        None means that the model does not predict probabilities, as with the hinge loss of the
        online learners.
    encoding : TableEncoding or None, default None
        Encoding of the columns of a table; None if the model was fitted to a matrix.
    flip, slope : float, default 0.0 and 1.0
        Calibration parameters. Probabilities are flip + (1 - 2 flip) / (1 + exp(-slope * score))
        for two classes, and softmax(slope * scores) for more.
    offset : (str, str) or None, default None
        Name of an offset column, and its link. The column (for "identity") or its logarithm (for
        "log") is added to the scores.
    about : dict, optional
        Additional metadata to store in the model file, such as scores; JSON-serialisable.

    Examples
    --------
    >>> import numpy as np, tempfile
    >>> from annealed.learners import FSAClassifier
    >>> from annealed.models import TabularModel, load_model
    >>> X = np.random.default_rng(0).standard_normal((200, 50))
    >>> fitted = FSAClassifier(2).fit(X, X[:, 3] > X[:, 7])
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     TabularModel.from_estimator(fitted).save(f"{folder}/model.safetensors")
    ...     kept = load_model(f"{folder}/model.safetensors")
    >>> bool((kept.predict(X) == fitted.predict(X)).all()), kept.selected
    (True, ['x3', 'x7'])
    """

    KIND: ClassVar[str] = "tabular model"
    additive: AdditiveModel
    task: str
    columns: tuple[str, ...]
    classes: np.ndarray | None = None
    link: str = "identity"
    probabilities: str | None = "softmax"
    encoding: TableEncoding | None = None
    flip: float = 0.0
    slope: float = 1.0
    offset: tuple[str, str] | None = None
    about: dict[str, Any] = field(default_factory=dict)

    @property
    def selected(self) -> list[str]:
        """Names of the columns that the model uses."""
        return [self.columns[i] for i in self.additive.selected]

    @classmethod
    def from_estimator(
        cls,
        estimator: Any,
        encoding: TableEncoding | None = None,
        offset: tuple[str, str] | None = None,
        **about: Any,
    ) -> Self:
        """Create a model from a fitted estimator.

        Parameters
        ----------
        estimator : fitted estimator
            Fitted selector that has either ``coef_`` or both ``knots_`` and ``responses_``.
        encoding : TableEncoding or None, default None
            Encoding of the table on which the estimator was fitted. Only the columns that the model
            uses are retained.
        offset : (str, str) or None, default None
            Name and link of the offset column, as in :class:`TabularModel`; required if the
            estimator was fitted with an offset.
        **about
            Additional metadata to store in the model file; JSON-serialisable.

        Returns
        -------
        TabularModel
            Model that makes the same predictions as the estimator.

        Raises
        ------
        ValueError
            If the estimator is not fitted, or is neither linear nor a sum of responses to single
            columns.
        """
        if not (hasattr(estimator, "coef_") or hasattr(estimator, "responses_")) or not hasattr(
            estimator, "get_support"
        ):
            raise ValueError(
                f"{estimator!r} is not a fitted linear or piecewise-linear selector; "
                "expected coef_ or responses_"
            )
        if getattr(estimator, "_has_offset", False) and offset is None:
            raise ValueError(
                "the estimator was fitted with an offset; pass offset=(column, 'identity' or 'log')"
            )
        additive = AdditiveModel.from_estimator(estimator)
        names = tuple(str(name) for name in feature_names(estimator))
        if encoding is not None:
            additive, encoding = _used(additive, encoding)
            names = tuple(encoding.labels)
        classes = getattr(estimator, "classes_", None)
        without_classes = "regression" if hasattr(estimator, "score") else "ranking"
        task = without_classes if classes is None else "classification"
        loss = getattr(estimator, "loss_", None)
        calibration = getattr(estimator, "calibration_", None)
        slope, flip = calibration or (1.0, getattr(loss, "flip", 0.0))
        about = {"annealed": __version__, "estimator": type(estimator).__name__, **about}
        return cls(
            additive,
            task,
            names,
            classes,
            getattr(loss, "link", "identity"),
            _kind_of_probabilities(estimator),
            encoding,
            flip,
            slope,
            offset,
            about,
        )

    # -- prediction --------------------------------------------------------------------------------

    def _matrix(self, X: Any) -> Any:
        if self.encoding is not None:
            return self.encoding.encode(X)
        if hasattr(X, "columns"):
            if missing := [name for name in self.selected if name not in X.columns]:
                raise ValueError(
                    f"the table has no column {missing[0]!r}, which the model requires"
                )
            matrix = np.zeros((len(X), len(self.columns)))
            matrix[:, self.additive.selected] = X[self.selected].to_numpy(
                dtype=np.float64, na_value=np.nan
            )
            X = matrix
        X = X if hasattr(X, "tocsr") else np.asarray(X)
        if X.ndim != 2 or X.shape[1] != len(self.columns):
            raise ValueError(f"X has shape {X.shape}; expected {len(self.columns)} columns")
        return X.tocsr() if hasattr(X, "tocsr") else X

    def decision_function(self, X: Any) -> np.ndarray:
        """Compute the scores of rows.

        Parameters
        ----------
        X : frame or array of shape (n_rows, n_columns)
            Table with the model's columns, or with all columns on which the estimator was fitted.

        Returns
        -------
        ndarray of shape (n_rows,) or (n_rows, n_outputs)
            Scores as computed by the estimator. There is a single score for two classes.
        """
        scores = self.additive.scores(self._matrix(X))
        if self.offset is not None:
            name, link = self.offset
            if name not in getattr(X, "columns", ()):
                raise ValueError(f"the table has no column {name!r}, which the model requires")
            scores = scores + offsets(X[name], link)[:, None]
        if self.classes is not None and len(self.classes) == 2 and scores.shape[1] == 2:
            return scores[:, 1] - scores[:, 0]
        return scores[:, 0] if scores.shape[1] == 1 else scores

    def predict(self, X: Any) -> np.ndarray:
        """Predict labels, numbers or ranking scores.

        Parameters
        ----------
        X : frame or array of shape (n_rows, n_columns)
            Rows, as in :meth:`decision_function`.

        Returns
        -------
        ndarray of shape (n_rows,) or (n_rows, n_outputs)
            Predictions as computed by the estimator.
        """
        scores = self.decision_function(X)
        if self.classes is not None:
            return self.classes[
                (scores > 0).astype(int) if scores.ndim == 1 else scores.argmax(axis=1)
            ]
        return np.exp(scores) if self.link == "log" else scores

    def predict_proba(self, X: Any) -> np.ndarray:
        """Predict class probabilities.

        Parameters
        ----------
        X : frame or array of shape (n_rows, n_columns)
            Rows, as in :meth:`decision_function`.

        Returns
        -------
        ndarray of shape (n_rows, n_classes)
            Probabilities in the order of ``classes``.

        Raises
        ------
        ValueError
            If the model does not predict classes or does not predict probabilities.
        """
        if self.classes is None or self.probabilities is None:
            raise ValueError(
                f"a {self.task} model fitted by {self.about.get('estimator')} does not predict "
                "probabilities"
            )
        scores = self.decision_function(X)
        if scores.ndim == 1 or self.probabilities == "softmax":
            return class_probabilities(scores, self.slope, self.flip)
        p = expit(scores)
        return p / np.maximum(p.sum(axis=1, keepdims=True), 1e-300)

    # -- files -------------------------------------------------------------------------------------

    def _to_file(self, path: Path) -> tuple[dict[str, np.ndarray], dict[str, Any]]:
        additive = self.additive
        numbers = {
            name: getattr(additive, name)
            for name in ("knots", "responses", "missing_responses", "intercept")
        }
        arrays = {
            name: np.atleast_1d(np.asarray(v, np.float64))
            for name, v in numbers.items()
            if v is not None
        }
        arrays["selected"] = additive.selected.astype(np.int64)
        for name, array in arrays.items():
            check_array(path, arrays, name, array.dtype, array.shape)
        return arrays, {
            "summary": self.summary,
            "task": self.task,
            "link": self.link,
            "probabilities": self.probabilities,
            "flip": self.flip,
            "slope": self.slope,
            "offset": self.offset,
            "columns": self.columns,
            "about": self.about,
            "classes": None
            if self.classes is None
            else [_LABELS[self.classes.dtype.kind](label) for label in self.classes],
            "encoding": None if self.encoding is None else self.encoding.header(),
        }

    @property
    def summary(self) -> str:
        """Return a one-line summary of the model."""
        return (
            f"{self.task} on {len(self.additive.selected)} of {len(self.columns)} columns "
            f"({self.about.get('estimator', '')})"
        )

    @classmethod
    def _from_file(cls, path: Path, arrays: dict[str, np.ndarray], header: dict[str, Any]) -> Self:
        columns, classes = header["columns"], header["classes"]
        selected = check_array(path, arrays, "selected", np.int64, (None,), 0, len(columns) - 1)
        k = len(selected)
        knots = check_array(path, arrays, "knots", np.float64, (k, None))
        responses = check_array(path, arrays, "responses", np.float64, (k, None, None))
        outputs = responses.shape[2]
        intercept = check_array(path, arrays, "intercept", np.float64, (outputs,))
        missing = None
        if "missing_responses" in arrays:
            missing = check_array(path, arrays, "missing_responses", np.float64, (k, outputs))
        if not all(isinstance(name, str) for name in columns):
            raise ValueError(f"the columns are {columns}; expected a name for each column")
        for name, allowed in (("task", TASKS), ("link", LINKS), ("probabilities", PROBABILITIES)):
            check_choice(name, header[name], allowed)
        encoding = (
            None if header["encoding"] is None else TableEncoding.from_header(header["encoding"])
        )
        if encoding is not None and encoding.labels != columns:
            raise ValueError("the encoding does not match the columns of the model")
        labels = None if classes is None else np.array(classes)
        n = outputs if labels is None else len(labels)
        if labels is not None and (
            labels.ndim != 1 or n < 2 or outputs not in (n, 1 if n == 2 else n)
        ):
            raise ValueError(f"the classes {classes} do not match the {outputs} outputs")
        additive = AdditiveModel(selected, knots, responses, missing, intercept)
        kinds = header["link"], header["probabilities"]
        flip, slope = float(header.get("flip", 0.0)), float(header.get("slope", 1.0))
        if not (0.0 <= flip < 0.5 and 0.0 < slope < np.inf):
            raise ValueError(
                f"flip={flip}, slope={slope} are not valid; expected 0 <= flip < 0.5 and slope > 0"
            )
        return cls(
            additive,
            header["task"],
            tuple(columns),
            labels,
            *kinds,
            encoding,
            flip,
            slope,
            None if header.get("offset") is None else tuple(header["offset"]),
            dict(header["about"]),
        )


def _used(additive: AdditiveModel, encoding: TableEncoding) -> tuple[AdditiveModel, TableEncoding]:
    """Return the model and encoding restricted to the columns that the model uses."""
    groups = encoding.groups
    used = np.unique(groups[additive.selected])
    position = np.cumsum(np.isin(groups, used)) - 1
    responses = additive.responses
    # the curve of a 0/1 column becomes a line, so that shares give the mean of the effects
    if responses.shape[1] == additive.knots.shape[1]:
        low, high = additive.responses_at(0.0)[:, None], additive.responses_at(1.0)[:, None]
        level = np.array([column.kind == CATEGORY for column in encoding.columns])[
            groups[additive.selected]
        ]
        responses = np.where(
            level[:, None, None], low + additive.knots[:, :, None] * (high - low), responses
        )
    moved = AdditiveModel(
        position[additive.selected],
        additive.knots,
        responses,
        additive.missing_responses,
        additive.intercept,
    )
    return moved, encoding.only(used.tolist())


def _kind_of_probabilities(estimator: Any) -> str | None:
    if not hasattr(estimator, "predict_proba"):
        return None
    probe = np.array([[0.0, 1.0, 3.0]])
    expected = class_probabilities(probe, *(getattr(estimator, "calibration_", None) or (1.0,)))
    return "softmax" if np.allclose(estimator._probabilities(probe), expected) else "separate"
