"""The learnt ranking of candidate segmentations, eq. (18) of the arXiv text."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Self

import numpy as np

from ...learners import FSARanker, Prior
from .candidate_set import CandidateSet, ranked_pairs, relative


@dataclass(frozen=True)
class RankerSettings:
    """How a ranking function is learnt.

    Parameters
    ----------
    response : {"linear", "piecewise"}
    n_features_to_select : int
    n_bins : int
        B of the piecewise-linear responses.
    n_steps, learning_rate, mu, shrinkage
        Of FSA: steps, step size, speed of the schedule, lambda. The defaults are those of section 7.3.2 of the arXiv text.
    """

    response: str = "piecewise"
    n_features_to_select: int = 40
    n_bins: int = 4
    n_steps: int = 300
    learning_rate: float = 0.5
    mu: float = 1.0
    shrinkage: float = 0.01


@dataclass(frozen=True)
class RankingFunction:
    """A learnt ranking function, eq. (18) of the arXiv text, on relative features.

    Attributes
    ----------
    response : str
    selected : ndarray of shape (k,), int64
        Columns of the feature pool, the strongest first.
    responses : ndarray of shape (k, n_knots)
        One coefficient per feature (linear), or the values at the knots.
    knots : ndarray of shape (k, n_knots)
        Ascending positions; zeros for linear responses.
    """

    response: str
    selected: np.ndarray
    responses: np.ndarray
    knots: np.ndarray

    @classmethod
    def learn(cls, sets: Sequence[CandidateSet], settings: RankerSettings, columns: np.ndarray | None = None) -> Self:
        """Learn from candidates with known errors.

        Parameters
        ----------
        sets : sequence of CandidateSet
        settings : RankerSettings
        columns : ndarray of int or None
            Features that may be selected; None means all.

        Raises
        ------
        ValueError
            If no sequence has two candidates of different error.
        """
        sets = [one for one in sets if len(one) > 1]
        pairs = ranked_pairs(sets)
        if not (pairs[:, 2] != 0.5).any():
            raise ValueError("no sequence has two candidates of different error; there is nothing to learn from")
        columns = np.arange(sets[0].features.shape[1]) if columns is None else columns
        X = np.concatenate([relative(one.features[:, columns], settings.response) for one in sets])
        ranker = FSARanker(
            min(settings.n_features_to_select, len(columns)),
            response=settings.response,
            n_bins=settings.n_bins,
            prior=Prior(shrinkage=settings.shrinkage),
            n_steps=settings.n_steps,
            learning_rate=settings.learning_rate,
            mu=settings.mu,
            polish=None,
        ).fit(X, None, pairs=pairs)
        kept = np.flatnonzero(ranker.get_support())
        order = np.argsort(-ranker.feature_importances_[kept], kind="stable")
        kept = kept[order]
        if settings.response == "linear":
            responses = np.ravel(ranker.coef_)[kept][:, None]
            knots = np.zeros_like(responses)
        else:
            responses, knots = ranker.responses_[order, :, 0], ranker.knots_[order]
        return cls(settings.response, columns[kept].astype(np.int64), np.asarray(responses, float), np.asarray(knots, float))

    def scores(self, features: np.ndarray) -> np.ndarray:
        """Scores (n_candidates,) of all candidates of one sequence; the greater the better."""
        return self._sum(relative(features[:, self.selected], self.response))

    def scores_of_sets(self, sets: Sequence[CandidateSet]) -> list[np.ndarray]:
        """Return the scores for each of several sequences: many at once take far less time than one by one."""
        found = self._sum(np.concatenate([relative(one.features[:, self.selected], self.response) for one in sets]))
        return np.split(found, np.cumsum([len(one) for one in sets])[:-1])

    def _sum(self, X):
        if self.response == "linear":
            return X @ self.responses[:, 0]
        return np.sum([np.interp(X[:, j], self.knots[j], self.responses[j]) for j in range(len(self.selected))], axis=0)
