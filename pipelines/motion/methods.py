"""What stands in the motion experiments' table: methods that rank candidate segmentations, and the settings they choose from."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from ...learners import RankBoost
from ...models.motion.candidate_set import CandidateSet, ranked_pairs, relative
from ...models.motion.ranking_function import RankerSettings, RankingFunction
from ...vision.tracks.features import FeaturePool

SMALL_MOTION = 10  # min_motion_size of the second half of the table; found in hindsight (see docs/motion.md)


@dataclass(frozen=True)
class Choice:
    """What may be chosen before training: candidates, features, and the settings of one ranker or of several that are averaged."""

    families: str
    settings: tuple[RankerSettings, ...]
    features: str = "all"
    min_motion_size: int = 0

    def describe(self) -> dict[str, Any]:
        """A row for tables."""
        return {
            "families": self.families,
            "features": self.features,
            "rankers": [f"{s.response} {s.n_features_to_select}" for s in self.settings],
            "min_motion_size": self.min_motion_size,
        }


# Settings known from earlier experiments on all the data: chosen in hindsight, and marked so wherever they are shown.
HINDSIGHT = {
    "paper": Choice("paper", (RankerSettings("piecewise", 40),)),
    "joined": Choice("joined", (RankerSettings("linear", 200),)),
}
SHIPPED = RankerSettings("linear", 200, learning_rate=0.1)
# What the nested protocol chooses from, inside the training folds; among equals the first wins.
# A hundred steps stop earlier than the paper's 300; rankings do not lose by that, and the grid has to be fitted thousands of times.
_LINEAR_40, _LINEAR, _PIECEWISE_40, _PIECEWISE = (
    RankerSettings(response, k, n_steps=100) for response in ("linear", "piecewise") for k in (40, 200)
)
GRID = tuple(
    Choice(families, settings, min_motion_size=size)
    for size in (0, SMALL_MOTION)
    for families, settings in (
        ("joined", (_LINEAR_40, _LINEAR, _PIECEWISE)),
        ("joined", (_LINEAR, _PIECEWISE)),
        ("joined", (_LINEAR_40,)),
        ("joined", (_LINEAR,)),
        ("joined", (_PIECEWISE,)),
        ("paper", (_PIECEWISE_40,)),
    )
)


# A method learns from training sets and returns a function that scores the candidates of each of several sequences.
Scorer = Callable[[Sequence[CandidateSet]], list[np.ndarray]]


def split(values: np.ndarray, sets: Sequence[CandidateSet]) -> list[np.ndarray]:
    """Rows of all sequences one after another, divided by sequence."""
    return np.split(values, np.cumsum([len(one) for one in sets])[:-1])


def learn_fsa(train: Sequence[CandidateSet], choice: Choice, columns: np.ndarray) -> Scorer:
    """Learn an FSA ranking; several settings give the mean of several rankings."""
    scorers = [learn_one(train, settings, columns) for settings in choice.settings]
    return lambda sets: average([scorer(sets) for scorer in scorers])


def learn_one(train: Sequence[CandidateSet], settings: RankerSettings, columns: np.ndarray) -> Scorer:
    """Learn one ranking. Scores have mean 0 within a sequence, and root mean square 1 over the training candidates."""
    function = RankingFunction.learn(train, settings, columns)

    def centred(sets: Sequence[CandidateSet]) -> list[np.ndarray]:
        return [scores - scores.mean() for scores in function.scores_of_sets(sets)]

    scale = max(float(np.sqrt(np.mean(np.concatenate(centred(train)) ** 2))), 1e-12)
    return lambda sets: [scores / scale for scores in centred(sets)]


def average(scores: Sequence[list[np.ndarray]]) -> list[np.ndarray]:
    """Sum of the scores by several rankings: each has the same say."""
    return [np.sum(one, axis=0) for one in zip(*scores)]


def learn_rankboost(train: Sequence[CandidateSet]) -> Scorer:
    """Learn RankBoost on features relative to the range within the sequence."""
    train = [one for one in train if len(one) > 1]
    ranker = RankBoost(100).fit(_relative_rows(train), pairs=ranked_pairs(train))
    return lambda sets: split(ranker.predict(_relative_rows(sets)), sets)


def learn_lambdarank(train: Sequence[CandidateSet]) -> Scorer:
    """Learn LambdaRank (LightGBM, 100 trees, 64 bins per feature) on the same features."""
    import lightgbm

    train = [one for one in train if len(one) > 1]
    # Grades: position among the different errors of the sequence, the best highest.
    grades = [np.unique(-one.errors.round(12), return_inverse=True)[1] for one in train if one.errors is not None]
    # Columns are sampled per tree, as is usual where there are about as many columns as rows.
    settings: dict[str, Any] = {
        "n_estimators": 100,
        "min_child_samples": 5,
        "num_leaves": 15,
        "max_bin": 63,
        "colsample_bytree": 0.3,
    }
    ranker = lightgbm.LGBMRanker(**settings, random_state=0, n_jobs=1, verbose=-1)
    ranker.fit(_relative_rows(train), np.concatenate(grades), group=[len(one) for one in train])
    return lambda sets: split(np.asarray(ranker.booster_.predict(_relative_rows(sets))), sets)


def _relative_rows(sets: Sequence[CandidateSet]) -> np.ndarray:
    return np.concatenate([relative(one.features, "piecewise") for one in sets])


def fit_rule(pool: FeaturePool) -> Scorer:
    """Rule of velocity clustering: least mean distance to the subspaces in raw coordinates."""
    column = list(pool.get_feature_names_out()).index("raw: likelihood, mean distance")
    return lambda sets: [-one.features[:, column] for one in sets]


def oracle_rule(sets: Sequence[CandidateSet]) -> list[np.ndarray]:
    """Score by the truth: what no ranking can beat."""
    return [-one.errors for one in sets if one.errors is not None]
