"""Learnt ranking of candidate segmentations, and choice of the number of motions.

The ranking function is eq. (18) of Barbu et al. (2014). To choose the number of motions, the best
candidates of all numbers are ranked.
"""

from collections.abc import Sequence
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Any, Self

import numpy as np
from scipy.special import softmax

from ...learners.common.additive import AdditiveModel
from ...learners.parameters import check_choice
from ...vision.tracks.features import Feature
from ..files import check_array, check_settings
from .candidate_set import CandidateSet, ranked_pairs, relative, relative_rows, split_by_sequence

# Settings that older files do not contain.
_LATER_SETTINGS = {"schedule": "inverse", "balance": 0.0, "standardize": False}
# Minimum and maximum of each setting in a model file, wider than any sensible setting (heuristic).
LIMITS: dict[str, tuple[float, float]] = {
    "alpha": (0, 100),
    "floor": (1e-6, 1000),
    **dict.fromkeys(("lowest", "highest", "dimensions"), (0.5, 20)),
    **dict.fromkeys(
        ("neighbours", "powers", "span", "n_thresholds", "n_smallest", "n_bins"), (1, 1000)
    ),
    "extra": (1, 10),
    "levels": (1, 100),
    **dict.fromkeys(("clusters", "nearest"), (0, 1000)),
}


@dataclass(frozen=True)
class RankerSettings:
    """Settings of a ranking function.

    With ``schedule="inverse_arxiv"``, the defaults are those of section 7.3.2 of [1]_.

    Parameters
    ----------
    response : {"piecewise", "linear"}, default "piecewise"
        Type of the responses to features: piecewise-linear or linear.
    n_features_to_select : int, default 40
        Number of features to select.
    n_bins : int, default 4
        Number of bins B of the piecewise-linear responses.
    n_steps : int, default 300
        Number of steps of the annealing schedule.
    learning_rate : float, default 0.5
        Step size of the optimisation.
    schedule : str, default "inverse"
        Type of annealing schedule, as in :class:`annealed.learners.Schedule`.
    mu : float, default 1.0
        Speed of the schedule; with larger values, features are removed earlier.
    shrinkage : float, default 0.01
        Shrinkage factor lambda of the prior, eq. (19) of [1]_.
    balance : float, default 0.0
        Exponent that balances the weights of sequences. If a sequence has n candidates, each of its
        n (n - 1) / 2 pairs has the weight ``n ** (-2 * balance)``. If the exponent is 1, all
        sequences have about the same total weight.
    standardize : bool, default False
        Whether to scale features to standard deviation 1 over the candidates of a sequence, so that
        scenes with different noise and depth are comparable. This only applies to linear responses.

    References
    ----------
    .. [1] A. Barbu, Y. She, L. Ding, G. Gramajo, "Feature Selection with Annealing for Regression,
           Classification and Ranking", arXiv:1310.2880v2 (2014).
    """

    response: str = "piecewise"
    n_features_to_select: int = 40
    n_bins: int = 4
    n_steps: int = 300
    learning_rate: float = 0.5
    schedule: str = "inverse"
    mu: float = 1.0
    shrinkage: float = 0.01
    balance: float = 0.0
    standardize: bool = False

    @classmethod
    def read(cls, record: Any) -> Self:
        """Read the settings from a header, or raise a ValueError if it is invalid."""
        settings = cls(
            **check_settings(
                {**_LATER_SETTINGS, **record}, {**_LATER_SETTINGS, **asdict(cls())}, LIMITS
            )
        )
        check_choice("response", settings.response, ("linear", "piecewise"))
        return settings


@dataclass(frozen=True)
class RankingFunction:
    """Learnt ranking function, eq. (18) of Barbu et al. (2014).

    The features of a candidate are relative to the other candidates of the same sequence.

    Attributes
    ----------
    response : {"piecewise", "linear"}
        As in :class:`RankerSettings`.
    model : AdditiveModel
        Sum of the responses to the selected features, in order of decreasing strength.
    standardize : bool, default False
        As in :class:`RankerSettings`.
    """

    response: str
    model: AdditiveModel
    standardize: bool = False

    @property
    def selected(self) -> np.ndarray:
        """Columns of the k selected features, in order of decreasing strength."""
        return self.model.selected

    @classmethod
    def learn(
        cls,
        sets: Sequence[CandidateSet],
        settings: RankerSettings,
        columns: np.ndarray | None = None,
    ) -> Self:
        """Learn a ranking function from candidates with known errors.

        Parameters
        ----------
        sets : sequence of CandidateSet
            Candidates of each training sequence, with errors.
        settings : RankerSettings
            Settings of the ranking function.
        columns : ndarray of int or None, default None
            Features that may be selected; None means all features.

        Returns
        -------
        RankingFunction

        Raises
        ------
        ValueError
            If no sequence has two candidates with different errors.
        """
        from ...learners import FSARanker, PiecewiseLinear, Prior, Schedule

        sets = [one for one in sets if len(one) > 1]
        pairs = ranked_pairs(sets)
        if not (pairs[:, 2] != 0.5).any():
            raise ValueError(
                "none of the sequences has two candidates with different errors; "
                "expected at least one"
            )
        columns = np.arange(sets[0].features.shape[1]) if columns is None else columns
        k, rate = min(settings.n_features_to_select, len(columns)), settings.learning_rate
        response: Any = (
            "linear" if settings.response == "linear" else PiecewiseLinear(settings.n_bins)
        )
        prior = Prior(shrinkage=settings.shrinkage)
        schedule = Schedule(settings.schedule, settings.mu, settings.n_steps)
        ranker = FSARanker(
            k,
            response=response,
            prior=prior,
            learning_rate=rate,
            schedule=schedule,
            refinement=None,
        )
        weights = None
        if settings.balance:
            weights = np.concatenate(
                [np.full(len(one), float(len(one)) ** -settings.balance) for one in sets]
            )
        rows = relative_rows(sets, settings.response, columns, settings.standardize)
        ranker.fit(rows, None, pairs=pairs, sample_weight=weights)
        model = AdditiveModel.from_estimator(ranker, by_importance=True)
        # A ranking has no intercept. The memory layout is that of a loaded model, so that scores
        # are bitwise equal.
        selected = columns[model.selected].astype(np.int64)
        model = replace(model, selected=selected, responses=model.responses.copy(), intercept=0.0)
        return cls(settings.response, model, settings.standardize)

    def scores(self, features: np.ndarray) -> np.ndarray:
        """Compute the scores of all candidates of one sequence; higher scores are better."""
        return self.model.scores_of_selected(
            relative(features[:, self.selected], self.response, self.standardize)
        )[:, 0]

    def scores_of_sets(self, sets: Sequence[CandidateSet]) -> list[np.ndarray]:
        """Compute the scores of the candidates of several sequences."""
        rows = relative_rows(sets, self.response, self.selected, self.standardize)
        return split_by_sequence(self.model.scores_of_selected(rows)[:, 0], sets)

    def arrays(self) -> dict[str, np.ndarray]:
        """Return the arrays that a model file stores.

        The arrays are ``ranking.selected``, of shape (k,), and ``ranking.responses`` and
        ``ranking.knots``, of shape (k, n_knots). A linear response has a single knot at zero.
        """
        responses = np.ascontiguousarray(self.model.responses[:, :, 0])
        knots = self.model.knots if self.model.knots.shape[1] else np.zeros_like(responses)
        parts = {"selected": self.selected, "responses": responses, "knots": knots}
        return {f"ranking.{name}": array for name, array in parts.items()}

    @classmethod
    def read(
        cls,
        path: str | Path,
        arrays: dict[str, np.ndarray],
        settings: RankerSettings,
        n_features: int,
    ) -> Self:
        """Read the function from the arrays of a model file.

        A ValueError is raised if the types, shapes or values are invalid.
        """
        selected = check_array(
            path, arrays, "ranking.selected", np.int64, (None,), 0, n_features - 1
        )
        linear = settings.response == "linear"
        shape = (len(selected), 1 if linear else settings.n_bins + 1)
        responses = check_array(path, arrays, "ranking.responses", np.float64, shape)
        knots = check_array(path, arrays, "ranking.knots", np.float64, shape)
        model = AdditiveModel(
            selected, knots[:, :0] if linear else knots, responses.reshape(*shape, 1)
        )
        return cls(settings.response, model, settings.standardize)


MOTIONS = (2, 3, 4, 5)  # numbers of motions from which "auto" chooses
# Features of the choice of the number, as spaces, and quantities of the models in all pairs of
# frames; chosen by cross-validation on the training sequences (experiments/notebook/motion.md)
_CUTS, _RESIDUAL = ("all", "neighbours"), "mean residual"
_LEVELS = (_CUTS, ("GRIC", _RESIDUAL, "median residual"))
_STEPS = (
    (*_CUTS, "homography", "dominant motion"),
    (
        _RESIDUAL,
        "mean margin to the best other",
        "worst motion's share fitted better",
        "share fitted clearly better",
    ),
)
_RIDGE = 0.005  # penalty of the weights, chosen with the features
# Divides the utilities, since they are overconfident on unfamiliar videos; minimises the sum of the
# log losses with videos and with kinds of scenes left out (benchmarks/motion_number.py)
TEMPERATURE = 1.5


@dataclass(frozen=True)
class MotionChooser:
    """Conditional logit model that chooses the number of motions [1]_.

    The alternatives are the best candidates with each number of motions. The utility of a candidate
    is linear in some of its features ("levels"). It is also linear in cumulative sums of other
    features ("steps"), taken over the alternatives with 3 motions up to this candidate. The weight
    of such a feature is thus the same for each additional motion. Only features in
    :class:`.PairFeatures` are used.

    Attributes
    ----------
    levels, steps : ndarray of int
        Columns of the two groups of features.
    weights : ndarray of shape (3 + n_levels + n_steps,)
        Weights for reaching 3, 4 and 5 motions, followed by those of the levels and of the steps.

    References
    ----------
    .. [1] D. McFadden, "Conditional logit analysis of qualitative choice behavior", in: Frontiers
           in Econometrics (1974).
    """

    levels: np.ndarray
    steps: np.ndarray
    weights: np.ndarray

    @classmethod
    def learn(
        cls,
        mixed: Sequence[CandidateSet],
        numbers: Sequence[int],
        ranking: RankingFunction,
        features: Sequence[Feature],
    ) -> Self:
        """Learn the model from sequences with a known number of motions.

        Parameters
        ----------
        mixed : sequence of CandidateSet
            Candidates of each sequence, with all numbers of motions.
        numbers : sequence of int
            True number of motions of each sequence; replaced by the nearest number for which there
            are candidates.
        ranking : RankingFunction
            Function that ranks candidates with the same number of motions.
        features : sequence of Feature
            Features of the candidates.

        Returns
        -------
        MotionChooser
        """
        untrained = cls(_columns(features, *_LEVELS), _columns(features, *_STEPS), np.empty(0))
        finals = [finalists(one, ranking) for one in mixed]
        inputs = [untrained.inputs(one) for one in finals]
        scale = np.maximum(np.concatenate(inputs).std(axis=0), 1e-9)
        true = [int(np.argmin(np.abs(one.n_motions - k))) for one, k in zip(finals, numbers)]
        return replace(
            untrained,
            weights=_conditional_logit([one / scale for one in inputs], true)
            / (scale * TEMPERATURE),
        )

    def inputs(self, finals: CandidateSet) -> np.ndarray:
        """Compute the inputs for the utilities of the alternatives.

        The mean of each input over the alternatives is subtracted.
        """
        steps = finals.features[:, self.steps]
        steps[0] = 0.0
        values = np.column_stack(
            [
                finals.n_motions[:, None] >= MOTIONS[1:],
                finals.features[:, self.levels],
                steps.cumsum(axis=0),
            ]
        )
        return values - values.mean(axis=0)

    def probabilities(self, mixed: CandidateSet, ranking: RankingFunction) -> dict[int, float]:
        """Compute the probability of each number of motions, in descending order of probability."""
        finals = finalists(mixed, ranking)
        chances = softmax(self.inputs(finals) @ self.weights).tolist()
        return dict(sorted(zip(finals.n_motions.tolist(), chances), key=lambda pair: -pair[1]))

    def arrays(self) -> dict[str, np.ndarray]:
        """Return the arrays that a model file stores."""
        return {f"number.{name}": array for name, array in vars(self).items()}

    @classmethod
    def read(cls, path: str | Path, arrays: dict[str, np.ndarray], n_features: int) -> Self | None:
        """Read the chooser from the arrays of a model file, or return None if the file has none."""
        if "number.weights" not in arrays:
            return None
        levels, steps = (
            check_array(path, arrays, f"number.{name}", np.int64, (None,), 0, n_features - 1)
            for name in ("levels", "steps")
        )
        shape = (len(MOTIONS) - 1 + len(levels) + len(steps),)
        return cls(levels, steps, check_array(path, arrays, "number.weights", np.float64, shape))


def _columns(
    features: Sequence[Feature], spaces: Sequence[str], quantities: Sequence[str]
) -> np.ndarray:
    """Return the columns of the features of some spaces, and of some quantities of all models."""
    listed = [
        column
        for column, (_, space, quantity) in enumerate(features)
        if space in spaces or (space.endswith(", all gaps") and quantity in quantities)
    ]
    return np.array(listed, np.int64)


def _conditional_logit(inputs: Sequence[np.ndarray], true: Sequence[int]) -> np.ndarray:
    """Return the weights (n,) of a conditional logit model with a ridge penalty, given the inputs
    (n_alternatives, n) of each sequence and the index of its true alternative."""
    from scipy.optimize import minimize  # only needed for training

    values, sizes = np.concatenate(inputs), [len(one) for one in inputs]
    starts = np.cumsum([0, *sizes[:-1]])
    sequence, chosen = np.repeat(np.arange(len(sizes)), sizes), starts + true

    def cost(weights: np.ndarray) -> tuple[float, np.ndarray]:
        # einsum calls no BLAS, so that the result does not depend on the number of threads.
        utilities = np.einsum("an,n->a", values, weights)
        chances = np.exp(utilities - np.maximum.reduceat(utilities, starts)[sequence])
        chances /= np.add.reduceat(chances, starts)[sequence]
        loss = 0.5 * _RIDGE * weights @ weights - np.log(chances[chosen]).mean()
        chances[chosen] -= 1.0
        return loss, np.einsum("a,an->n", chances, values) / len(sizes) + _RIDGE * weights

    return minimize(cost, np.zeros(values.shape[1]), jac=True, method="L-BFGS-B").x


def finalists(mixed: CandidateSet, ranking: RankingFunction) -> CandidateSet:
    """Return the best candidate for each number of motions, in order of increasing number."""
    groups = [np.flatnonzero(mixed.n_motions == k) for k in np.unique(mixed.n_motions)]
    return mixed.only(
        np.array([rows[np.argmax(ranking.scores(mixed.features[rows]))] for rows in groups])
    )
