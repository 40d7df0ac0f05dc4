"""The choice of the number of motions: the best candidates of all numbers are compared by a ranking
of their own."""

from collections.abc import Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any, Self

import numpy as np

from ..files import check_settings
from .candidate_set import CandidateSet
from .header import read_settings
from .ranking_function import RankerSettings, RankingFunction

# by ten folds of Hopkins155, three divisions: experiments/notebook/motion.md
SETTINGS = RankerSettings("linear", 30, n_steps=100)
_N_FOLDS = 5  # by video
_FACTORS = np.geomspace(0.01, 100.0, 161)


@dataclass(frozen=True)
class MotionChooser:
    """Learnt choice of the number of motions.

    Attributes
    ----------
    function : RankingFunction
        Ranks candidates across numbers of motions.
    settings : RankerSettings
        How it was learnt.
    certainty : float
        Factor of the scores in the probabilities, exp(factor x score) up to their sum.
    best_only : bool
        Whether the best candidate of each number is compared; False: all candidates, as older model
        files do.
    """

    function: RankingFunction
    settings: RankerSettings = SETTINGS
    certainty: float = 1.0
    best_only: bool = True

    @classmethod
    def learn(cls, mixed: Sequence[CandidateSet], ranking: RankingFunction, columns: np.ndarray | None = None) -> Self:
        """Learn from candidates of all numbers of motions, with errors; ``ranking`` compares those
        with the same number. Of the features those in ``columns`` may be selected."""
        finals = [finalists(one, ranking) for one in mixed]
        return cls(RankingFunction.learn(finals, SETTINGS, columns), SETTINGS, learn_certainty(finals, columns))

    def choose(self, mixed: CandidateSet, ranking: RankingFunction) -> tuple[int, float]:
        """Number of motions of the best candidate, and its probability."""
        compared = finalists(mixed, ranking) if self.best_only else mixed
        numbers, best = best_by_number(compared, self.function.scores(compared.features))
        chances = np.exp(self.certainty * (best - best.max()))
        return int(numbers[np.argmax(best)]), float(chances.max() / chances.sum())

    def record(self) -> dict[str, Any]:
        """What the header of a model file holds."""
        return {"settings": asdict(self.settings), "certainty": self.certainty, "best_only": self.best_only}

    @classmethod
    def read(cls, path: str | Path, arrays: dict[str, np.ndarray], record: Any, settings: RankerSettings, n_features: int) -> Self:
        """Take the arrays ``chooser...`` of a model file; older files have no record: all
        candidates, settings of the ranking."""
        if record is None:
            record = {"settings": asdict(settings), "certainty": 1.0, "best_only": False}
        rest = {name: value for name, value in record.items() if name != "settings"}
        checked = check_settings(rest, {"certainty": 1.0, "best_only": True}, {"certainty": (0, 1e6)})
        settings = read_settings(record["settings"])
        return cls(RankingFunction.read(path, arrays, "chooser", settings, n_features), settings, **checked)


def finalists(mixed: CandidateSet, ranking: RankingFunction) -> CandidateSet:
    """The best candidate of each number of motions."""
    groups = [np.flatnonzero(mixed.n_motions == k) for k in np.unique(mixed.n_motions)]
    return mixed.only(np.array([rows[np.argmax(ranking.scores(mixed.features[rows]))] for rows in groups]))


def best_by_number(mixed: CandidateSet, scores: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Numbers of motions among the candidates, rising, and the greatest score of each."""
    numbers = np.unique(mixed.n_motions)
    return numbers, np.array([scores[mixed.n_motions == k].max() for k in numbers])


def learn_certainty(finals: Sequence[CandidateSet], columns: np.ndarray | None = None) -> float:
    """Factor of the scores that makes the numbers with the least error most likely on held-out
    videos; 1 with too few videos."""
    names = np.unique([one.video for one in finals])
    if len(names) < _N_FOLDS:
        return 1.0
    fold = np.random.default_rng(0).permutation(len(names))[np.searchsorted(names, [one.video for one in finals])] % _N_FOLDS
    margins: list[np.ndarray] = []  # scores of all numbers relative to the true one's
    for q in range(_N_FOLDS):
        function = RankingFunction.learn([one for one, f in zip(finals, fold) if f != q], SETTINGS, columns)
        held_out = [one for one, f in zip(finals, fold) if f == q]
        for one, scores in zip(held_out, function.scores_of_sets(held_out)):
            numbers, best = best_by_number(one, scores)
            margins.append(best - best[numbers == one.n_motions[int(np.argmin(one.known_errors))]])
    costs = [sum(float(np.log(np.exp(np.minimum(factor * m, 500.0)).sum())) for m in margins) for factor in _FACTORS]
    return float(_FACTORS[int(np.argmin(costs))])
