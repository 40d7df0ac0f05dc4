"""Sparse additive models of a window: whether it shows a keypoint, and where the keypoint lies.

Both are `annealed.learners.common.additive.AdditiveModel` in single precision, evaluated by the
compiled loops of `annealed.vision.windows`, which compute features on demand and reject windows
early.
"""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import Self

import numpy as np

from ...vision.windows.feature_pool import FeaturePool
from ...vision.windows.responses import CompiledModel, Responses
from .non_maximum_suppression import Localisation


@dataclass(frozen=True)
class WindowModel:
    """A sum of piecewise-linear responses to few features of a window, eq. (12) of Barbu et al.
    (2017).

    ``features`` (k, 8) are evaluated in their order; the responses have one output, or dx and dy.

    References
    ----------
    .. [1] A. Barbu, Y. She, L. Ding, G. Gramajo, "Feature Selection with Annealing for Computer
           Vision and Big Data Learning", IEEE Transactions on Pattern Analysis and Machine
           Intelligence 39 (2017), section 2.5.
    """

    features: np.ndarray
    responses: Responses
    intercept: float | np.ndarray

    def take(self, order: np.ndarray) -> Self:
        """Return the model of some of the features.

        Parameters
        ----------
        order : ndarray of shape (m,), int
            Positions among the features, in the new order.

        Returns
        -------
        WindowModel
            Of the same class.
        """
        return replace(self, features=self.features[order], responses=self.responses.take(order))

    def compiled(self, pool: FeaturePool) -> CompiledModel:
        """Return the form that the compiled loops read; it is computed once.

        Parameters
        ----------
        pool : FeaturePool
            The pool that the features belong to.

        Returns
        -------
        CompiledModel
        """
        if "_compiled" not in self.__dict__:
            self.__dict__["_compiled"] = self._compile(pool)
        return self.__dict__["_compiled"]

    def _compile(self, pool: FeaturePool) -> CompiledModel:
        return pool.compile_model(self.features, self.responses, self.intercept)

    def _mirrored(self, pool: FeaturePool) -> Self:
        features, signs = pool.mirrored(self.features)
        return replace(self, features=features, responses=self.responses.mirrored(signs))

    def _outputs(self, patches: np.ndarray, pool: FeaturePool) -> np.ndarray:
        """Outputs (n, q) for windows given as patches (n, 26, 26, 3), without rejection."""
        values = pool.evaluate(patches, self.compiled(pool).program)
        intercept = np.atleast_1d(self.intercept)
        sums = [self.responses.running_sums(values, intercept[q], q)[:, -1] for q in range(self.responses.n_outputs)]
        return np.stack(sums, axis=1)


@dataclass(frozen=True)
class KeypointModel(WindowModel):
    """Classifier of the windows that show one keypoint.

    A soft cascade: there is a rejection threshold after each feature.

    Parameters
    ----------
    features : ndarray of shape (k, 8), int32
        Features of the pool, in the order in which they are evaluated.
    responses : Responses
        Of these features, one output.
    intercept : float
        Start of the sum.
    thresholds : ndarray of shape (k,), float32
        A window is rejected when its running sum after feature t falls below entry t; -inf never
        rejects.
    localisation : Localisation
        Where the keypoint lies relative to the windows that show it.
    threshold : float, default 0.0
        Default least score of a detection.
    """

    thresholds: np.ndarray
    localisation: Localisation = field(default_factory=Localisation)
    threshold: float = 0.0

    def mirrored(self, pool: FeaturePool, reference_ied: float) -> KeypointModel:
        """Return the model of the mirror image of this keypoint.

        Parameters
        ----------
        pool : FeaturePool
            The pool that the features belong to.
        reference_ied : float
            Unit of the localisation, in pixels of a level.

        Returns
        -------
        KeypointModel
        """
        # A window has an even side: its pixel lies right of the middle, in the mirror image left of
        # it.
        place = replace(self.localisation, offset_x=-self.localisation.offset_x - 1.0 / reference_ied)
        return replace(self._mirrored(pool), localisation=place)

    def _compile(self, pool: FeaturePool) -> CompiledModel:
        return pool.compile_model(self.features, self.responses, self.intercept, self.thresholds)

    def scores(self, patches: np.ndarray, pool: FeaturePool) -> np.ndarray:
        """Score windows without rejection.

        Parameters
        ----------
        patches : ndarray of shape (n, 26, 26, 3), uint8
            Windows, with one pixel around each.
        pool : FeaturePool
            The pool that the features belong to.

        Returns
        -------
        ndarray of shape (n,), float32
        """
        return self._outputs(patches, pool)[:, 0]

    def partial_scores(self, patches: np.ndarray, pool: FeaturePool) -> np.ndarray:
        """Return the running sums after each feature, without rejection.

        Parameters
        ----------
        patches : ndarray of shape (n, 26, 26, 3), uint8
            Windows, with one pixel around each.
        pool : FeaturePool
            The pool that the features belong to.

        Returns
        -------
        ndarray of shape (n, k), float32
            Entry t: the intercept and the responses of the features up to and including t.
        """
        return pool.partial_scores(patches, self.features, self.responses, float(self.intercept))


@dataclass(frozen=True)
class OffsetModel(WindowModel):
    """Regressor of the offset (dx, dy) from a window's pixel to a keypoint, with features shared by
    both outputs.

    It is the regressor f of Algorithm 3 of Barbu et al. (2014), in pixels of the pyramid level.

    References
    ----------
    .. [1] A. Barbu, Y. She, L. Ding, G. Gramajo, "Feature Selection with Annealing for Regression,
           Classification and Ranking", arXiv:1310.2880v2 (2014), section 7.2.
    """

    def mirrored(self, pool: FeaturePool) -> OffsetModel:
        """Return the model of the mirror image of this keypoint."""
        made = self._mirrored(pool)
        flip = np.array([-1, 1], np.float32)
        # A window has an even side: its pixel lies right of the middle, in the mirror image left of
        # it.
        intercept = (self.intercept * flip - np.array([1, 0], np.float32)).astype(np.float32)
        return replace(made, responses=replace(made.responses, values=made.responses.values * flip), intercept=intercept)

    def predict(self, patches: np.ndarray, pool: FeaturePool) -> np.ndarray:
        """Predict the offsets (n, 2), float32, of windows given as patches (n, 26, 26, 3)."""
        return self._outputs(patches, pool)
