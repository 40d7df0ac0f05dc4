"""Learnt ranking of candidate segmentations, and choice of the number of motions.

The ranking function is eq. (18) of Barbu et al. (2014). To choose the number of motions, the best
candidates of all numbers are ranked.
"""

from collections.abc import Sequence
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Any, Self

import numpy as np

from ...learners.common.additive import AdditiveModel
from ...learners.parameters import check_choice
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
        Piecewise-linear or linear responses.
    n_features_to_select : int, default 40
    n_bins : int, default 4
        Number of bins B of the piecewise-linear responses.
    n_steps : int, default 300
        Number of steps of the annealing schedule.
    learning_rate : float, default 0.5
    schedule : str, default "inverse"
        Kind of annealing schedule, as in :class:`annealed.learners.Schedule`.
    mu : float, default 1.0
        Speed of the schedule; larger values drop features earlier.
    shrinkage : float, default 0.01
        Parameter lambda of the prior, eq. (19) of [1]_.
    balance : float, default 0.0
        Exponent that balances the weights of sequences. If a sequence has n candidates, each of its
        n (n - 1) / 2 pairs has the weight ``n ** (-2 * balance)``. With 1, all sequences have about
        the same total weight.
    standardize : bool, default False
        Whether to scale features to standard deviation 1 over the candidates of a sequence, so that
        scenes with different noise and depth are comparable. It only applies to linear responses.

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
        """Read the settings of a model file; raise a ValueError if the header is invalid."""
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
    model : AdditiveModel
        Sum of the responses to the selected features, strongest first.
    standardize : bool, default False
        As in :class:`RankerSettings`.
    """

    response: str
    model: AdditiveModel
    standardize: bool = False

    @property
    def selected(self) -> np.ndarray:
        """Columns of the k selected features, strongest first."""
        return self.model.selected

    @classmethod
    def learn(
        cls,
        sets: Sequence[CandidateSet],
        settings: RankerSettings,
        columns: np.ndarray | None = None,
    ) -> Self:
        """Learn from candidates with known errors.

        Parameters
        ----------
        sets : sequence of CandidateSet
        settings : RankerSettings
        columns : ndarray of int or None, default None
            Features that may be selected; None means all.

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
        prior, schedule = (
            Prior(shrinkage=settings.shrinkage),
            Schedule(settings.schedule, settings.mu, settings.n_steps),
        )
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
        """Return the scores of all candidates of one sequence; higher scores are better."""
        return self.model.scores_of_selected(
            relative(features[:, self.selected], self.response, self.standardize)
        )[:, 0]

    def scores_of_sets(self, sets: Sequence[CandidateSet]) -> list[np.ndarray]:
        """Return the scores of several sequences, which are computed together for speed."""
        rows = relative_rows(sets, self.response, self.selected, self.standardize)
        return split_by_sequence(self.model.scores_of_selected(rows)[:, 0], sets)

    def arrays(self) -> dict[str, np.ndarray]:
        """Return the arrays for a model file.

        They are ``selected``, of shape (k,), and ``responses`` and ``knots``, of shape (k,
        n_knots). A linear response has a single knot at zero.
        """
        responses = np.ascontiguousarray(self.model.responses[:, :, 0])
        knots = self.model.knots if self.model.knots.shape[1] else np.zeros_like(responses)
        return {"selected": self.selected, "responses": responses, "knots": knots}

    @classmethod
    def read(
        cls,
        path: str | Path,
        arrays: dict[str, np.ndarray],
        name: str,
        settings: RankerSettings,
        n_features: int,
    ) -> Self:
        """Read the function from the arrays of a model file whose names start with ``name``.

        A ValueError is raised if the types, shapes or values are invalid.
        """
        selected = check_array(
            path, arrays, f"{name}.selected", np.int64, (None,), 0, n_features - 1
        )
        linear = settings.response == "linear"
        shape = (len(selected), 1 if linear else settings.n_bins + 1)
        responses = check_array(path, arrays, f"{name}.responses", np.float64, shape)
        knots = check_array(path, arrays, f"{name}.knots", np.float64, shape)
        model = AdditiveModel(
            selected, knots[:, :0] if linear else knots, responses.reshape(*shape, 1)
        )
        return cls(settings.response, model, settings.standardize)


# Settings with the best likelihood in ten folds of all training sequences
# (experiments/notebook/motion.md)
SETTINGS = RankerSettings("linear", 30, n_steps=100)
_N_FOLDS = 5  # sequences of one video are in the same fold
_FACTORS = np.geomspace(0.01, 100.0, 161)


@dataclass(frozen=True)
class MotionChooser:
    """Learnt model that chooses the number of motions.

    Attributes
    ----------
    function : RankingFunction
        Function that ranks candidates with different numbers of motions.
    settings : RankerSettings
        Training settings of the function.
    certainty : float
        Factor of the scores in the probabilities, which are proportional to exp(certainty * score).
    best_only : bool
        Whether only the best candidates of each number are compared. If False, all candidates are
        compared, as in older model files.
    """

    function: RankingFunction
    settings: RankerSettings = SETTINGS
    certainty: float = 1.0
    best_only: bool = True

    @classmethod
    def learn(
        cls,
        mixed: Sequence[CandidateSet],
        ranking: RankingFunction,
        columns: np.ndarray | None = None,
    ) -> Self:
        """Learn from candidates with known errors for all numbers of motions.

        Candidates with the same number are compared by ``ranking``. Only features in ``columns``
        may be selected.
        """
        finals = [finalists(one, ranking) for one in mixed]
        return cls(
            RankingFunction.learn(finals, SETTINGS, columns),
            SETTINGS,
            learn_certainty(finals, columns),
        )

    def probabilities(self, mixed: CandidateSet, ranking: RankingFunction) -> dict[int, float]:
        """Return the probability of each number of motions, most probable first."""
        compared = finalists(mixed, ranking) if self.best_only else mixed
        numbers, best = best_by_number(compared, self.function.scores(compared.features))
        chances = np.exp(self.certainty * (best - best.max()))
        order = np.argsort(-best, kind="stable")
        return dict(zip(numbers[order].tolist(), (chances / chances.sum())[order].tolist()))

    def record(self) -> dict[str, Any]:
        """Return the header entry for a model file."""
        return {
            "settings": asdict(self.settings),
            "certainty": self.certainty,
            "best_only": self.best_only,
        }

    @classmethod
    def read(
        cls,
        path: str | Path,
        arrays: dict[str, np.ndarray],
        record: Any,
        settings: RankerSettings,
        n_features: int,
    ) -> Self:
        """Read the chooser from the arrays of a model file whose names start with ``chooser``.

        In older files, there is no record, and the chooser compares all candidates and uses the
        settings of the ranking.
        """
        if record is None:
            record = {"settings": asdict(settings), "certainty": 1.0, "best_only": False}
        rest = {name: value for name, value in record.items() if name != "settings"}
        checked = check_settings(
            rest, {"certainty": 1.0, "best_only": True}, {"certainty": (0, 1e6)}
        )
        settings = RankerSettings.read(record["settings"])
        return cls(
            RankingFunction.read(path, arrays, "chooser", settings, n_features), settings, **checked
        )


def finalists(mixed: CandidateSet, ranking: RankingFunction) -> CandidateSet:
    """Return the best candidate of each number of motions."""
    groups = [np.flatnonzero(mixed.n_motions == k) for k in np.unique(mixed.n_motions)]
    return mixed.only(
        np.array([rows[np.argmax(ranking.scores(mixed.features[rows]))] for rows in groups])
    )


def best_by_number(mixed: CandidateSet, scores: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Return the numbers of motions in ascending order, and the maximum score for each of them."""
    numbers = np.unique(mixed.n_motions)
    return numbers, np.array([scores[mixed.n_motions == k].max() for k in numbers])


def learn_certainty(finals: Sequence[CandidateSet], columns: np.ndarray | None = None) -> float:
    """Return the factor of the scores that maximises the likelihood of the best number of motions.

    The likelihood is computed on held-out videos. The factor is 1 if there are too few videos.
    """
    names = np.unique([one.video for one in finals])
    if len(names) < _N_FOLDS:
        return 1.0
    fold = (
        np.random.default_rng(0).permutation(len(names))[
            np.searchsorted(names, [one.video for one in finals])
        ]
        % _N_FOLDS
    )
    margins: list[np.ndarray] = []  # scores of all numbers minus that of the best number
    for q in range(_N_FOLDS):
        function = RankingFunction.learn(
            [one for one, f in zip(finals, fold) if f != q], SETTINGS, columns
        )
        held_out = [one for one, f in zip(finals, fold) if f == q]
        for one, scores in zip(held_out, function.scores_of_sets(held_out)):
            numbers, best = best_by_number(one, scores)
            margins.append(best - best[numbers == one.n_motions[int(np.argmin(one.known_errors))]])
    costs = [
        sum(float(np.log(np.exp(np.minimum(factor * m, 500.0)).sum())) for m in margins)
        for factor in _FACTORS
    ]
    return float(_FACTORS[int(np.argmin(costs))])
