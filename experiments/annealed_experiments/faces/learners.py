"""Learners of Barbu et al. (2017), Figure 7: annealing, LogitBoost, and an SVM on HOG.

Each learner returns a :class:`~annealed.models.keypoints.windows.window_models.KeypointModel` of
piecewise-linear responses with the same bins, so that all models scan photographs with the same
code.
"""

from dataclasses import replace
from typing import Any

import numpy as np
import scipy.sparse as sp
from annealed.learners.designs.kernels import ROWS
from annealed.learners.designs.piecewise_linear import hat_basis, sublevels
from annealed.learners.objective.losses import get_loss
from annealed.learners.selectors.logitboost import CodeLearners, boost, in_blocks
from annealed.models.keypoints.windows.window_models import KeypointModel
from annealed.pipelines.keypoints.training.windows.fitting import (
    WindowFitSettings,
    balanced_weights,
    fit_rows,
)
from annealed.vision.windows.feature_pool import FeaturePool
from annealed.vision.windows.patch_design import PatchDesign
from annealed.vision.windows.responses import Responses
from sklearn.svm import LinearSVC

SHARE_TRIED = 0.1  # share of the features tried per round of LogitBoost (section 3.3.1)
_BLOCK = 2048  # number of windows encoded at a time


def annealing(
    patches, y, pool: FeaturePool, settings: WindowFitSettings, loss: str, learning_rate: float
) -> KeypointModel:
    """Fit FSA with a given loss and step size."""
    return fit_rows(
        patches, y, pool, replace(settings, loss=loss, learning_rate=learning_rate), seed=[0, 2]
    )


def _model(
    design: PatchDesign, features: np.ndarray, values: np.ndarray, intercept: float
) -> KeypointModel:
    """Return a model of selected features of a design in the order of the pool, without
    rejection."""
    responses = Responses(design.low[features], design.bin_width[features], values)
    return KeypointModel(
        design.features[features], responses, intercept, np.full(len(features), -np.inf, np.float32)
    )


class WindowLearners:
    """Piecewise-linear weak learners on windows, for
    :func:`~annealed.learners.selectors.logitboost.boost`.

    The next feature is chosen on a sample of rows, with as many rows of each class as in the first
    stage of annealing. Its response is fitted on all rows, because the codes of all features and
    rows do not fit in memory.

    Parameters
    ----------
    patches : ndarray of shape (n, 26, 26, 3), uint8
        Windows.
    y : ndarray of shape (n,)
        Labels, -1 or +1.
    pool : FeaturePool
        Pool of candidate features.
    settings : WindowFitSettings
        ``n_bins`` and ``first_rows`` are used.
    """

    def __init__(
        self, patches: np.ndarray, y: np.ndarray, pool: FeaturePool, settings: WindowFitSettings
    ) -> None:
        rng = np.random.default_rng([0, 3])
        of_class = [
            rng.permutation(np.flatnonzero(sign * y > 0))[: settings.first_rows // 2]
            for sign in (-1, 1)
        ]
        self.rows = np.sort(np.concatenate(of_class))
        counts = [
            np.count_nonzero(sign * y > 0) / len(rows)
            for sign, rows in zip((-1, 1), of_class, strict=True)
        ]
        # the factor preserves the sums over all rows
        self.factor = np.where(y[self.rows] > 0, counts[1], counts[0])[:, None]
        self.design = PatchDesign(patches, balanced_weights(y), pool=pool, n_bins=settings.n_bins)
        self.basis = hat_basis(settings.n_bins)
        blocks = [self.rows[first : first + ROWS] for first in range(0, len(self.rows), ROWS)]
        codes = np.zeros((len(blocks), self.design.n_features, ROWS), np.uint8)
        for block, rows in zip(codes, blocks, strict=True):
            block[:, : len(rows)] = self.design.codes(rows).T
        self.some = CodeLearners(codes, len(self.rows), self.basis)

    def gains(self, g, h, features):
        """Return the decrease of the quadratic model by each of ``features`` on the sampled
        rows."""
        return self.some.gains(g[self.rows] * self.factor, h[self.rows] * self.factor, features)

    def step(self, g, h, feature):
        """Fit the response of one feature on all rows, and return the scores (n, 1) to add and the
        values at the knots (1, n_bins + 1).
        """
        codes = in_blocks(self.design.codes(np.arange(len(g)), [feature])[:, 0])
        return CodeLearners(codes[:, None], len(g), self.basis).step(g, h, 0)


def logitboost(
    patches, y, pool: FeaturePool, settings: WindowFitSettings, shrinkage: float = 1.0
) -> KeypointModel:
    """Fit LogitBoost (LB) with one round per feature of the annealed model; each round tries a
    tenth of the features.

    Weak learners are piecewise linear instead of piecewise constant as in the paper, so that they
    match the responses of the other models.
    """
    learners = WindowLearners(patches, y, pool, settings)
    limits: dict[str, Any] = {
        "k": settings.n_features,
        "n_rounds": settings.n_features,
        "subsample": SHARE_TRIED,
        "learning_rate": shrinkage,
    }
    n_features = learners.design.n_features
    made = boost(
        learners,
        n_features,
        y[:, None],
        get_loss("logistic"),
        balanced_weights(y),
        **limits,
        random_state=0,
    )
    chosen = np.array(sorted(made.responses), dtype=int)
    values = np.array([made.responses[j][0] for j in chosen], np.float32)
    return _model(learners.design, chosen, values, float(made.constant[0]))


def histogram_svm(
    patches, y, pool: FeaturePool, settings: WindowFitSettings, C: float
) -> KeypointModel:
    """Fit SVM-PL HOG, a linear SVM (scikit-learn) on the hat functions of all gradient histograms
    without selection.
    """
    design = PatchDesign(
        patches,
        balanced_weights(y),
        pool=pool,
        features=pool.features[pool.n_haar :],
        n_bins=settings.n_bins,
    )
    svm = LinearSVC(C=C, dual=False, class_weight="balanced", random_state=0).fit(
        hat_columns(design), y
    )
    values = svm.coef_.reshape(design.n_features, design.n_knots).astype(np.float32)
    return _model(design, np.arange(design.n_features), values, float(svm.intercept_[0]))


def hat_columns(design: PatchDesign) -> sp.csr_array:
    """Return the hat functions of all features, (n, m (B + 1)); at most two per feature are
    non-zero."""
    n, m = design.n_samples, design.n_features
    first_column = design.n_knots * np.arange(m, dtype=np.int32)
    levels = sublevels(design.n_bins)
    values, columns = np.empty((n, m, 2)), np.empty((n, m, 2), np.int32)
    for first in range(0, n, _BLOCK):
        rows = np.arange(first, min(first + _BLOCK, n))
        place = design.codes(rows) / levels
        left = np.minimum(place.astype(np.int32), design.n_bins - 1)
        values[rows, :, 1] = place - left
        values[rows, :, 0] = 1.0 - values[rows, :, 1]
        columns[rows, :, 0] = first_column + left
        columns[rows, :, 1] = first_column + left + 1
    starts = 2 * m * np.arange(n + 1, dtype=np.int32)  # the solver accepts only this type
    return sp.csr_array((values.ravel(), columns.ravel(), starts), shape=(n, m * design.n_knots))
