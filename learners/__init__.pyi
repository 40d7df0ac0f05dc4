"""Numbers in, sparse models out: losses, priors, schedules, designs, and the estimators built from
them."""

from .designs.responses import PiecewiseLinear
from .fsa.cross_validation import FSAClassifierCV, FSARegressorCV
from .fsa.estimators import FSAClassifier, FSARegressor
from .fsa.path import FSAPath
from .fsa.ranker import FSARanker
from .fsa.score_card import ScoreCardClassifier
from .fsa.settings import Constraints, Refinement
from .inference.intervals import FSAInference
from .inference.selector import FDRSelector, selection_pvalues
from .kernel_machines.estimators import SparseFourierClassifier, SparseFourierRegressor
from .kernel_machines.features import SparseFourierFeatures
from .metric_learning.cross_validation import SDistCV
from .metric_learning.sdist import SDist
from .objective.chain import ChainLoss
from .objective.losses import (
    CoxLoss,
    ExponentialLoss,
    GammaLoss,
    HuberisedHingeLoss,
    HuberLoss,
    LogisticLoss,
    LorenzLoss,
    Loss,
    MarginLoss,
    MultinomialLoss,
    NegativeBinomialLoss,
    PoissonLoss,
    QuantileLoss,
    SquaredLoss,
    TweedieLoss,
    VapnikLoss,
)
from .objective.pairwise import PairwiseLogisticLoss
from .objective.priors import Prior
from .online.stabilised import StabilizedTruncatedSGDClassifier
from .online.truncated import FOBOSClassifier, RDAClassifier, TruncatedGradientClassifier
from .selectors.convex_objective import SparseMinimum, forward_backward_minimise
from .selectors.forward_backward import ForwardBackwardClassifier, ForwardBackwardRegressor
from .selectors.logitboost import LogitBoostClassifier
from .selectors.minimax import MinimaxSparseClassifier
from .selectors.rankboost import RankBoost
from .selectors.tisp import TISPClassifier, TISPRegressor
from .sequences.linear_chain import LinearChainCRF
from .sequences.selection import FSACRF, ForwardBackwardCRF
from .solvers.schedules import Schedule
from .sources.dask_matrix import on_dask
from .sources.files import on_disk
from .sources.sparse_files import write_csr
from .stability import SelectionStability, selection_stability

__all__ = [
    "FSACRF",
    "ChainLoss",
    "Constraints",
    "CoxLoss",
    "ExponentialLoss",
    "FDRSelector",
    "FOBOSClassifier",
    "FSAClassifier",
    "FSAClassifierCV",
    "FSAInference",
    "FSAPath",
    "FSARanker",
    "FSARegressor",
    "FSARegressorCV",
    "ForwardBackwardCRF",
    "ForwardBackwardClassifier",
    "ForwardBackwardRegressor",
    "GammaLoss",
    "HuberLoss",
    "HuberisedHingeLoss",
    "LinearChainCRF",
    "LogisticLoss",
    "LogitBoostClassifier",
    "LorenzLoss",
    "Loss",
    "MarginLoss",
    "MinimaxSparseClassifier",
    "MultinomialLoss",
    "NegativeBinomialLoss",
    "PairwiseLogisticLoss",
    "PiecewiseLinear",
    "PoissonLoss",
    "Prior",
    "QuantileLoss",
    "RDAClassifier",
    "RankBoost",
    "Refinement",
    "SDist",
    "SDistCV",
    "Schedule",
    "ScoreCardClassifier",
    "SelectionStability",
    "SparseFourierClassifier",
    "SparseFourierFeatures",
    "SparseFourierRegressor",
    "SparseMinimum",
    "SquaredLoss",
    "StabilizedTruncatedSGDClassifier",
    "TISPClassifier",
    "TISPRegressor",
    "TruncatedGradientClassifier",
    "TweedieLoss",
    "VapnikLoss",
    "forward_backward_minimise",
    "on_dask",
    "on_disk",
    "selection_pvalues",
    "selection_stability",
    "write_csr",
]
