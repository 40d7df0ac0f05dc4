"""Numbers in, sparse models out: losses, priors, schedules, designs, and the estimators built from them."""

from .fsa import FSAClassifier, FSARegressor
from .greedy import ForwardBackwardClassifier, ForwardBackwardRegressor
from .logitboost import LogitBoostClassifier
from .losses import (
    ExponentialLoss,
    HuberisedHingeLoss,
    LogisticLoss,
    LorenzLoss,
    Loss,
    MarginLoss,
    MultinomialLoss,
    PairwiseLogisticLoss,
    SquaredLoss,
    VapnikLoss,
)
from .minimax import MinimaxSparseClassifier
from .online import FOBOSClassifier, RDAClassifier, TruncatedGradientClassifier
from .path import FSAClassifierCV, FSAPath, FSARegressorCV
from .priors import Prior
from .rankboost import RankBoost
from .ranking import FSARanker
from .sdist import SDist
from .sdist_cv import SDistCV
from .sources import on_disk
from .stabilised import StabilizedTruncatedSGDClassifier
from .stability import SelectionStability, selection_stability
from .tisp import TISPClassifier, TISPRegressor

__all__ = [
    "ExponentialLoss",
    "FOBOSClassifier",
    "FSAClassifier",
    "FSAClassifierCV",
    "FSAPath",
    "FSARanker",
    "FSARegressor",
    "FSARegressorCV",
    "ForwardBackwardClassifier",
    "ForwardBackwardRegressor",
    "HuberisedHingeLoss",
    "LogisticLoss",
    "LogitBoostClassifier",
    "LorenzLoss",
    "Loss",
    "MarginLoss",
    "MinimaxSparseClassifier",
    "MultinomialLoss",
    "PairwiseLogisticLoss",
    "Prior",
    "RDAClassifier",
    "RankBoost",
    "SDist",
    "SDistCV",
    "SelectionStability",
    "SquaredLoss",
    "StabilizedTruncatedSGDClassifier",
    "TISPClassifier",
    "TISPRegressor",
    "TruncatedGradientClassifier",
    "VapnikLoss",
    "on_disk",
    "selection_stability",
]
