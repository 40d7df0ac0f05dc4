"""Methods of the motion experiments: rankings of candidate segmentations, with their settings."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial
from importlib.util import find_spec
from typing import Any

import numpy as np

from ...learners import RankBoost
from ...models.motion import (
    CandidateSet,
    RankerSettings,
    RankingFunction,
    ranked_pairs,
    relative_rows,
    split_by_sequence,
)
from ..common.config import check_names
from .benchmark import Benchmark

METHODS = ("fsa", "rankboost", "lambdarank", "ridge", "rule", "fit", "oracle")


@dataclass(frozen=True)
class Choice:
    """Choice of candidates, features and settings for the ranker."""

    families: str
    settings: RankerSettings
    part: str = "all"

    def describe(self) -> dict[str, Any]:
        """Return the choice as a row of a table."""
        return {
            "families": self.families,
            "features": self.part,
            "ranker": f"{self.settings.response} {self.settings.n_features_to_select}",
        }


# Settings of Barbu et al. (2014), section 7.3.2, whose mu refers to the schedule of that paper.
PAPER = RankerSettings("piecewise", 40, schedule="inverse_arxiv")
# Settings for the candidates without pairs of frames. They were chosen in earlier experiments on
# all data, which every table states.
HINDSIGHT = RankerSettings("linear", 200)
# Chosen by cross-validation on Hopkins155, and on the synthetic training scenes with each kind held
# out in turn (experiments/pages/motion_results.md makes its own choices).
SHIPPED = RankerSettings("linear", 60, n_steps=100, balance=1.0, standardize=True)
# Grid of the nested protocol, which is searched inside the training folds; the first choice wins a
# tie.
GRID = (
    *(
        Choice("pairs", RankerSettings("linear", k, n_steps=100), "pairs")
        for k in (60, 30, 120, 213)
    ),
    *(Choice("pairs", RankerSettings("linear", k, n_steps=100), "all") for k in (60, 200)),
    Choice("pairs", RankerSettings("piecewise", 60, n_steps=100), "pairs"),
)


# Function that scores the candidates of several sequences.
Scorer = Callable[[Sequence[CandidateSet]], list[np.ndarray]]
Fit = Callable[[Sequence[CandidateSet]], Scorer]


@dataclass(frozen=True)
class Method:
    """Method to evaluate: its name, its candidate families, and a function that fits a scorer."""

    name: str
    families: str
    fit: Fit


def table_methods(benchmark: Benchmark, names: Sequence[str]) -> list[Method]:
    """Return the methods to evaluate; a name in ``METHODS`` may refer to several methods."""
    methods = []
    rule = partial(fit_rule, benchmark.features.get_feature_names_out())
    for families in benchmark.sets:
        part = "pairs" if families == "pairs" else "subspaces"
        columns = benchmark.columns("all", part)
        if "oracle" in names:
            methods.append(Method(f"oracle, {families}", families, lambda train: oracle_rule))
        if "fit" in names and families != "pairs":
            methods.append(Method(f"fit, {families}", families, lambda train: rule))
        for name, label, fit in _LEARNT:
            if name in names and (families == "pairs" or name in ("rankboost", "lambdarank")):
                methods.append(
                    Method(f"{label}, {families}", families, partial(fit, columns=columns))
                )
        if "fsa" in names:
            settings, remark = _FSA[families]
            for kind in ("likelihood", "prior", "all"):
                fit_kind = partial(
                    fit_fsa, settings=settings, columns=benchmark.columns(kind, part)
                )
                methods.append(Method(f"FSA, {families}, {kind} ({remark})", families, fit_kind))
    return methods


def check_methods(names: Sequence[str]) -> None:
    """Check that the methods are known and that the packages they require are installed."""
    check_names("method", names, METHODS)
    if "lambdarank" in names and not has_lightgbm():
        raise ValueError(
            "method 'lambdarank' requires lightgbm; install lightgbm or omit the method"
        )


def has_lightgbm() -> bool:
    """Return whether LightGBM is installed."""
    return find_spec("lightgbm") is not None


def fit_fsa(train: Sequence[CandidateSet], settings: RankerSettings, columns: np.ndarray) -> Scorer:
    """Fit an FSA ranking."""
    return RankingFunction.learn(train, settings, columns).scores_of_sets


def fit_rankboost(
    train: Sequence[CandidateSet], columns: np.ndarray | slice = slice(None)
) -> Scorer:
    """Fit RankBoost with 100 rounds on features scaled to [0, 1] within each sequence."""
    train = [one for one in train if len(one) > 1]
    ranker = RankBoost(100).fit(
        relative_rows(train, "piecewise", columns), pairs=ranked_pairs(train)
    )
    return lambda sets: split_by_sequence(
        ranker.predict(relative_rows(sets, "piecewise", columns)), sets
    )


def fit_ridge(train: Sequence[CandidateSet], columns: np.ndarray, shrinkage: float = 0.1) -> Scorer:
    """Fit a ridge regression that predicts the better candidate of each pair.

    Its inputs are the differences between the features of the candidates. The shrinkage is relative
    to the mean diagonal entry of the Gram matrix; its default value is heuristic.
    """
    pairs = ranked_pairs(train)
    rows = relative_rows(train, "linear", columns)
    scale = np.maximum(np.sqrt(np.square(rows).mean(axis=0)), 1e-12)
    i, j = pairs[:, :2].astype(int).T
    apart = (rows[i] - rows[j]) / scale
    gram = apart.T @ apart
    gram[np.diag_indices_from(gram)] += shrinkage * np.trace(gram) / len(gram)
    weights = np.linalg.solve(gram, apart.T @ (2.0 * pairs[:, 2] - 1.0)) / scale
    return lambda sets: split_by_sequence(relative_rows(sets, "linear", columns) @ weights, sets)


def fit_best_rule(train: Sequence[CandidateSet], columns: np.ndarray) -> Scorer:
    """Find the feature whose minimum selects the candidates with the smallest mean error."""
    errors = np.zeros(len(columns))
    for one in train:
        errors += one.known_errors[np.argmin(one.features[:, columns], axis=0)]
    best = columns[int(np.argmin(errors))]
    return lambda sets: [-one.features[:, best] for one in sets]


def fit_lambdarank(
    train: Sequence[CandidateSet], columns: np.ndarray | slice = slice(None)
) -> Scorer:
    """Fit LambdaRank (LightGBM, 100 trees, 64 bins per feature) to the features of RankBoost."""
    import lightgbm

    train = [one for one in train if len(one) > 1]
    # A candidate's grade is its rank among the distinct errors of the sequence; the best candidate
    # has the highest grade.
    grades = [np.unique(-one.known_errors.round(12), return_inverse=True)[1] for one in train]
    # Columns are sampled for each tree, as is usual if there are about as many columns as rows.
    ranker = lightgbm.LGBMRanker(
        n_estimators=100,
        min_child_samples=5,
        num_leaves=15,
        max_bin=63,
        colsample_bytree=0.3,
        random_state=0,
        n_jobs=1,
        verbose=-1,
    )
    ranker.fit(
        relative_rows(train, "piecewise", columns),
        np.concatenate(grades),
        group=[len(one) for one in train],
    )
    return lambda sets: split_by_sequence(
        np.asarray(ranker.booster_.predict(relative_rows(sets, "piecewise", columns))), sets
    )


def fit_rule(feature_names: np.ndarray, sets: Sequence[CandidateSet]) -> list[np.ndarray]:
    """Score candidates as in velocity clustering.

    The score is the negative mean distance from the subspaces in raw coordinates.
    """
    column = list(feature_names).index("raw: likelihood, mean distance")
    return [-one.features[:, column] for one in sets]


def oracle_rule(sets: Sequence[CandidateSet]) -> list[np.ndarray]:
    """Score candidates by the true error, which bounds the performance of all rankings."""
    return [-one.known_errors for one in sets]


# Trained methods other than FSA: name, label, function.
_LEARNT: tuple[tuple[str, str, Callable[..., Scorer]], ...] = (
    ("rankboost", "RankBoost", fit_rankboost),
    ("lambdarank", "LambdaRank", fit_lambdarank),
    ("ridge", "pairwise ridge", fit_ridge),
    ("rule", "best single feature", fit_best_rule),
)
# Settings of FSA for each set of candidates, and their note in the table.
_FSA = {
    "paper": (PAPER, "settings of the paper"),
    "joined": (HINDSIGHT, "settings known in hindsight"),
    "pairs": (GRID[0].settings, "first setting of the grid"),
}
