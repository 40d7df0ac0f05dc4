"""Methods of the motion experiments: rankings of candidate segmentations, and the settings that they are chosen from."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial
from importlib.util import find_spec
from typing import Any

import numpy as np

from ...learners import RankBoost
from ...models.motion.candidate_set import CandidateSet, ranked_pairs, relative_rows, split_by_sequence
from ...models.motion.ranking_function import RankerSettings, RankingFunction
from .benchmark import Benchmark

METHODS = ("fsa", "rankboost", "lambdarank", "fit", "oracle")
SMALL_MOTION = 10  # min_motion_size of the second half of the table; found in hindsight (see docs/motion.md)


@dataclass(frozen=True)
class Choice:
    """Choice made before training: candidates, features, and the settings of one ranker or of several that are averaged."""

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


# Scores the candidates of each of several sequences.
Scorer = Callable[[Sequence[CandidateSet]], list[np.ndarray]]


@dataclass(frozen=True)
class Method:
    """A line of the table: the candidates that are ranked, and a function that learns a scorer from training sets."""

    name: str
    families: str
    fit: Callable[[Sequence[CandidateSet]], Scorer]


def table_methods(benchmark: Benchmark, names: Sequence[str]) -> list[Method]:
    """Lines of the table for the names in ``METHODS``."""
    found = []
    rule = partial(fit_rule, benchmark.features.get_feature_names_out())
    for families in [f for f in ("paper", "joined") if f in benchmark.sets]:
        if "oracle" in names:
            found.append(Method(f"oracle, {families}", families, lambda train: oracle_rule))
        if "fit" in names:
            found.append(Method(f"fit, {families}", families, lambda train: rule))
        if "rankboost" in names:
            found.append(Method(f"RankBoost, {families}", families, fit_rankboost))
        if "lambdarank" in names:
            found.append(Method(f"LambdaRank, {families}", families, fit_lambdarank))
        if "fsa" in names:
            for kind in ("likelihood", "prior", "all"):
                fit = partial(fit_fsa, settings=HINDSIGHT[families].settings, columns=benchmark.columns(kind))
                found.append(Method(f"FSA, {families}, {kind} (hindsight)", families, fit))
    if "fsa" in names and "video" in benchmark.sets:
        fit = partial(fit_fsa, settings=(SHIPPED,), columns=benchmark.columns("all"))
        found.append(Method("FSA, video, all (as shipped)", "video", fit))
    return found


def check_methods(names: Sequence[str]) -> None:
    """Raise a ValueError if a method is unknown, or needs a package that is not installed."""
    unknown = [m for m in names if m not in METHODS]
    if unknown:
        raise ValueError(f"method {unknown[0]!r} is unknown; expected {', '.join(METHODS)}")
    if "lambdarank" in names and not has_lightgbm():
        raise ValueError("method 'lambdarank' needs lightgbm; install it or leave the method out")


def has_lightgbm() -> bool:
    """Whether LightGBM is installed."""
    return find_spec("lightgbm") is not None


def fit_fsa(train: Sequence[CandidateSet], settings: Sequence[RankerSettings], columns: np.ndarray) -> Scorer:
    """Learn an FSA ranking; several settings give the mean of several rankings."""
    scorers = [fit_one(train, one, columns) for one in settings]
    return lambda sets: average([scorer(sets) for scorer in scorers])


def fit_one(train: Sequence[CandidateSet], settings: RankerSettings, columns: np.ndarray) -> Scorer:
    """Learn one ranking. Scores have mean 0 within a sequence, and root mean square 1 over the training candidates."""
    function = RankingFunction.learn(train, settings, columns)

    def centred(sets: Sequence[CandidateSet]) -> list[np.ndarray]:
        return [scores - scores.mean() for scores in function.scores_of_sets(sets)]

    scale = max(float(np.sqrt(np.mean(np.concatenate(centred(train)) ** 2))), 1e-12)
    return lambda sets: [scores / scale for scores in centred(sets)]


def average(scores: Sequence[list[np.ndarray]]) -> list[np.ndarray]:
    """Sum of the scores by several rankings, all with weight 1."""
    return [np.sum(one, axis=0) for one in zip(*scores)]


def fit_rankboost(train: Sequence[CandidateSet]) -> Scorer:
    """Learn RankBoost with 100 rounds on features relative to the range within the sequence."""
    train = [one for one in train if len(one) > 1]
    ranker = RankBoost(100).fit(relative_rows(train, "piecewise"), pairs=ranked_pairs(train))
    return lambda sets: split_by_sequence(ranker.predict(relative_rows(sets, "piecewise")), sets)


def fit_lambdarank(train: Sequence[CandidateSet]) -> Scorer:
    """Learn LambdaRank (LightGBM, 100 trees, 64 bins per feature) on the same features."""
    import lightgbm

    train = [one for one in train if len(one) > 1]
    # Grades: position among the different errors of the sequence, the best highest.
    grades = [np.unique(-one.known_errors.round(12), return_inverse=True)[1] for one in train]
    # Columns are sampled per tree, as is usual where there are about as many columns as rows.
    settings: dict[str, Any] = {
        "n_estimators": 100,
        "min_child_samples": 5,
        "num_leaves": 15,
        "max_bin": 63,
        "colsample_bytree": 0.3,
    }
    ranker = lightgbm.LGBMRanker(**settings, random_state=0, n_jobs=1, verbose=-1)
    ranker.fit(relative_rows(train, "piecewise"), np.concatenate(grades), group=[len(one) for one in train])
    return lambda sets: split_by_sequence(np.asarray(ranker.booster_.predict(relative_rows(sets, "piecewise"))), sets)


def fit_rule(feature_names: np.ndarray, sets: Sequence[CandidateSet]) -> list[np.ndarray]:
    """Rule of velocity clustering: least mean distance to the subspaces in raw coordinates."""
    column = list(feature_names).index("raw: likelihood, mean distance")
    return [-one.features[:, column] for one in sets]


def oracle_rule(sets: Sequence[CandidateSet]) -> list[np.ndarray]:
    """Score by the truth: an upper bound of all rankings."""
    return [-one.known_errors for one in sets]
