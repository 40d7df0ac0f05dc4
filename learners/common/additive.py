"""Evaluation of fitted additive models: sums of single-column responses."""

from dataclasses import dataclass
from typing import Any, Self

import numpy as np
import numpy.typing as npt
from scipy.special import expit, softmax


@dataclass(frozen=True)
class AdditiveModel:
    """Additive model: the intercept plus one response per selected column, eq. (12) of [1]_.

    The shapes determine the kind of response. Without knots, the response is linear. With one
    response per knot, it is linear between the knots and constant outside them. With one fewer
    response than knots, it is constant in each of the ``n_knots - 1`` bins. Image windows are
    scored by compiled loops instead (`annealed.vision.windows.kernels.accumulate`), which compute
    the same sum in float32 with a rejection threshold after each term.

    Parameters
    ----------
    selected : ndarray of shape (k,), int
        Columns of X.
    knots : ndarray of shape (k, n_knots)
        Knot positions in ascending order; ``n_knots`` is 0 for linear responses.
    responses : ndarray of shape (k, r, n_outputs)
        Coefficients (r = 1), values at the knots (r = ``n_knots``), or values in the bins (r =
        ``n_knots - 1``).
    missing_responses : ndarray of shape (k, n_outputs) or None, default None
        Response to a missing value (NaN). If None, the score of a row with a missing value is NaN.
    intercept : ndarray of shape (n_outputs,) or float, default 0.0
        Intercept of each output.

    Raises
    ------
    ValueError
        If the shapes are inconsistent.

    References
    ----------
    .. [1] A. Barbu, Y. She, L. Ding, G. Gramajo, "Feature Selection with Annealing for Computer
           Vision and Big Data Learning", IEEE Transactions on Pattern Analysis and Machine
           Intelligence 39 (2017), section 2.5.

    Examples
    --------
    >>> import numpy as np
    >>> knots, responses = np.array([[0.0, 1.0, 2.0]]), np.array([[[0.0], [5.0], [5.0]]])
    >>> model = AdditiveModel(np.array([2]), knots, responses, intercept=1.0)
    >>> model.scores(np.array([[9.0, 9.0, 0.5], [9.0, 9.0, 7.0]])).ravel()
    array([3.5, 6. ])
    """

    selected: npt.NDArray[np.integer]
    knots: npt.NDArray[np.floating]
    responses: npt.NDArray[np.floating]
    missing_responses: npt.NDArray[np.floating] | None = None
    intercept: npt.NDArray[np.floating] | float = 0.0

    def __post_init__(self) -> None:
        k, n_knots = self.knots.shape
        good = self.selected.shape == (k,) and self.responses.ndim == 3 and len(self.responses) == k
        good = good and self.responses.shape[1] in (
            (1,) if n_knots == 0 else (n_knots, n_knots - 1)
        )
        if not good or (
            self.missing_responses is not None
            and self.missing_responses.shape != self.responses[:, 0].shape
        ):
            missing = None if self.missing_responses is None else self.missing_responses.shape
            raise ValueError(
                f"the shapes are inconsistent: {len(self.selected)} selected columns, knots "
                f"{self.knots.shape}, responses {self.responses.shape}, missing {missing}"
            )

    @classmethod
    def from_estimator(cls, estimator: Any, by_importance: bool = False) -> Self:
        """Create a model from the coefficients, or the knots and responses, of a fitted selector.

        Parameters
        ----------
        estimator : fitted selector
            Estimator whose coefficients, or knots and responses, the model uses.
        by_importance : bool, default False
            Whether to sort the columns by decreasing ``feature_importances_`` instead of by index.

        Returns
        -------
        AdditiveModel
            Model that computes the same scores as the estimator.
        """
        selected = np.flatnonzero(estimator.get_support())
        order = (
            np.argsort(-estimator.feature_importances_[selected], kind="stable")
            if by_importance
            else np.arange(len(selected))
        )
        selected = selected[order]
        intercept = np.atleast_1d(np.asarray(estimator.intercept_, float))
        if hasattr(estimator, "responses_"):
            missing = getattr(estimator, "missing_responses_", None)
            return cls(
                selected,
                np.asarray(estimator.knots_, float)[order],
                np.asarray(estimator.responses_, float)[order],
                None if missing is None else missing[order],
                intercept,
            )
        coef = np.atleast_2d(estimator.coef_)[:, selected].T
        return cls(selected, np.empty((len(selected), 0)), coef[:, None], None, intercept)

    def scores(self, X: Any) -> npt.NDArray[np.floating]:
        """Compute the scores of rows.

        Parameters
        ----------
        X : (n_samples, n_features) array or sparse matrix
            Rows to score.

        Returns
        -------
        ndarray of shape (n_samples, n_outputs)
            Scores of the rows.
        """
        return self.scores_of_selected(X[:, self.selected])

    def scores_of_selected(self, values: Any) -> npt.NDArray[np.floating]:
        """Compute the scores from the selected columns alone, given in the order of ``selected``.

        Parameters
        ----------
        values : (n_samples, k) array or sparse matrix
            Values of the selected columns.

        Returns
        -------
        ndarray of shape (n_samples, n_outputs)
            Scores of the rows.
        """
        if not self.knots.shape[1] and (
            self.missing_responses is None
            or hasattr(values, "toarray")
            or not np.isnan(values).any()
        ):
            return values @ self.responses[:, 0] + self.intercept
        values = _dense(values)
        scores = np.zeros((len(values), self.responses.shape[2])) + self.intercept
        for j in range(values.shape[1]):
            scores += self._response(j, values[:, j])
        return scores

    def contributions(self, X: Any, reference: float | None = None) -> npt.NDArray[np.floating]:
        """Compute the contribution of each selected column to the scores.

        Parameters
        ----------
        X : (n_samples, n_features) array or sparse matrix
            Rows to explain.
        reference : float, optional
            Value whose response is subtracted. With 0.0 for word counts, for example, absent words
            contribute nothing.

        Returns
        -------
        ndarray of shape (n_samples, k, n_outputs)
            Contribution of each selected column to each score.
        """
        values = _dense(X[:, self.selected])
        terms = np.empty((*values.shape, self.responses.shape[2]))
        for j in range(values.shape[1]):
            terms[:, j] = self._response(j, values[:, j])
        return terms if reference is None else terms - self.responses_at(reference)

    def responses_at(self, value: float) -> npt.NDArray[np.floating]:
        """Compute the response of each selected column to one common value.

        Parameters
        ----------
        value : float
            Value at which every response is evaluated.

        Returns
        -------
        ndarray of shape (k, n_outputs)
            Response of each selected column.
        """
        at = np.array([float(value)])
        return np.array([self._response(j, at)[0] for j in range(len(self.selected))]).reshape(
            self.responses[:, 0].shape
        )

    def _response(self, j: int, x: npt.NDArray[np.floating]) -> npt.NDArray[np.floating]:
        """Return the responses (n, n_outputs) of the j-th selected column to values (n,)."""
        knots, table = self.knots[j], self.responses[j]
        if not len(knots):
            result = x[:, None] * table[0]
        elif len(table) == len(knots):
            result = np.stack([np.interp(x, knots, curve) for curve in table.T], axis=1)
        else:
            result = table[np.clip(np.searchsorted(knots, x, side="right") - 1, 0, len(table) - 1)]
        if self.missing_responses is not None:
            result[np.isnan(x)] = self.missing_responses[j]
        return result


def _dense(values: Any) -> npt.NDArray[np.floating]:
    return np.asarray(values.toarray() if hasattr(values, "toarray") else values, dtype=np.float64)


def class_probabilities(
    scores: npt.NDArray[np.floating], slope: float = 1.0, flip: float = 0.0
) -> npt.NDArray[np.floating]:
    """Convert scores to the probabilities of the observed labels, one column per class.

    Parameters
    ----------
    scores : (n_samples,) or (n_samples, n_classes) ndarray
        Score of the second of two classes, or one score per class.
    slope, flip : float
        Parameters of the link function, softmax(slope * scores). For two classes, it is flip + (1 -
        2 flip) / (1 + exp(-slope * score)), where ``flip`` is the fraction of flipped labels.
    """
    if scores.ndim == 2:
        return softmax(slope * scores, axis=1)
    p = flip + (1.0 - 2.0 * flip) * expit(slope * scores)
    return np.column_stack([1.0 - p, p])
