"""Terms of the objective: losses of the scores and priors on the coefficients."""

from .base import DiagonalProduct, HessianProduct, Loss, OffsetLoss, effective_rows
from .losses import (
    FlippedLogisticLoss,
    MultinomialLoss,
    SquaredLoss,
    check_bounded,
    check_curvature,
    get_loss,
    loss_of_several_classes,
    losses_for,
    pointwise_loss,
    regression_loss,
)
from .pairwise import PairwiseLogisticLoss
from .priors import Prior
from .regression_losses import weighted_quantile

__all__ = [
    "DiagonalProduct",
    "FlippedLogisticLoss",
    "HessianProduct",
    "Loss",
    "MultinomialLoss",
    "OffsetLoss",
    "PairwiseLogisticLoss",
    "Prior",
    "SquaredLoss",
    "check_bounded",
    "check_curvature",
    "effective_rows",
    "get_loss",
    "loss_of_several_classes",
    "losses_for",
    "pointwise_loss",
    "regression_loss",
    "weighted_quantile",
]
