"""Sparse models of a window: whether a keypoint is there, and where it lies."""

from __future__ import annotations

from dataclasses import dataclass, field, replace

import numpy as np

from ...vision.windows.feature_pool import FeaturePool, response_tables
from ...vision.windows.kernels import accumulate
from ...vision.windows.responses import Additive, additive
from .non_maximum_suppression import IED, Localisation


@dataclass(frozen=True)
class KeypointModel:
    """What finds one keypoint: a sum of piecewise-linear responses to few features of a window.

    Attributes
    ----------
    features : ndarray of shape (k, 8), int32
        Features of the pool, in the order in which they are evaluated.
    lo, step : ndarray of shape (k,), float32
        Left border and width of each feature's bins.
    coef : ndarray of shape (k, n_bins + 1), float32
        Responses at the borders of the bins.
    thresholds : ndarray of shape (k,), float32
        A window is rejected when its running sum after feature t falls below entry t; -inf never rejects.
    intercept : float
        Start of the running sum.
    localisation : Localisation
        Where the keypoint lies, seen from the windows that find it.
    threshold : float
        Default threshold for detections.
    """

    features: np.ndarray
    lo: np.ndarray
    step: np.ndarray
    coef: np.ndarray
    thresholds: np.ndarray
    intercept: float
    localisation: Localisation = field(default_factory=Localisation)
    threshold: float = 0.0

    def mirrored(self, pool: FeaturePool) -> KeypointModel:
        """Return the model that finds the mirror image of this keypoint."""
        features, signs = pool.mirrored(self.features)
        turned = signs < 0
        n_bins = self.coef.shape[1] - 1
        lo = np.where(turned, -(self.lo + n_bins * self.step), self.lo).astype(np.float32)
        coef = np.where(turned[:, None], self.coef[:, ::-1], self.coef)
        # A window has an even side: its pixel lies right of the middle, in the mirror left of it.
        place = replace(self.localisation, offset_x=-self.localisation.offset_x - 1.0 / IED)
        return replace(self, features=features, lo=lo, coef=coef, localisation=place)

    def compiled(self, pool: FeaturePool) -> Additive:
        """The form that the compiled loops read; kept for the next call."""
        if "_compiled" not in self.__dict__:
            made = additive(pool, self.features, self.lo, self.step, self.coef, self.intercept, self.thresholds)
            object.__setattr__(self, "_compiled", made)
        return self.__dict__["_compiled"]

    def scores(self, patches: np.ndarray, pool: FeaturePool) -> np.ndarray:
        """Return the scores (n,) of windows given as patches (n, 26, 26, 3), without rejection."""
        return _last_sums(pool.evaluate(patches, self.compiled(pool).program), self.lo, self.step, self.coef, self.intercept)


@dataclass(frozen=True)
class OffsetModel:
    """Where something lies, seen from a window: the regressor f of Algorithm 3, with features shared by dx and dy.

    Attributes
    ----------
    features : ndarray of shape (k, 8), int32
        Features of the pool.
    lo, step : ndarray of shape (k,), float32
        Left border and width of each feature's bins.
    coef : ndarray of shape (k, n_bins + 1, 2), float32
        Responses of dx and dy at the borders of the bins, in pixels of the level.
    intercept : ndarray of shape (2,), float32
        dx and dy without any response.
    """

    features: np.ndarray
    lo: np.ndarray
    step: np.ndarray
    coef: np.ndarray
    intercept: np.ndarray

    def mirrored(self, pool: FeaturePool) -> OffsetModel:
        """Return the model of the mirror image."""
        features, signs = pool.mirrored(self.features)
        turned = signs < 0
        n_bins = self.coef.shape[1] - 1
        lo = np.where(turned, -(self.lo + n_bins * self.step), self.lo).astype(np.float32)
        coef = np.where(turned[:, None, None], self.coef[:, ::-1], self.coef) * np.array([-1, 1], np.float32)
        # A window has an even side: its pixel lies right of the middle, in the mirror left of it.
        intercept = self.intercept * np.array([-1, 1], np.float32) - np.array([1, 0], np.float32)
        return replace(self, features=features, lo=lo, coef=coef.astype(np.float32), intercept=intercept.astype(np.float32))

    def compiled(self, pool: FeaturePool) -> Additive:
        """The form that the compiled loops read; kept for the next call."""
        if "_compiled" not in self.__dict__:
            made = additive(pool, self.features, self.lo, self.step, self.coef, self.intercept)
            object.__setattr__(self, "_compiled", made)
        return self.__dict__["_compiled"]

    def predict(self, patches: np.ndarray, pool: FeaturePool) -> np.ndarray:
        """Return dx, dy (n, 2) of windows given as patches (n, 26, 26, 3)."""
        values = pool.evaluate(patches, self.compiled(pool).program)
        return np.stack(
            [_last_sums(values, self.lo, self.step, self.coef[:, :, q], self.intercept[q]) for q in range(2)], axis=1
        )  # fmt: skip


def _last_sums(values: np.ndarray, lo: np.ndarray, step: np.ndarray, coef: np.ndarray, intercept: float) -> np.ndarray:
    low, inverse_step, top, start, rises = response_tables(values.shape[1], lo, step, coef)
    sums = np.empty_like(values)
    accumulate(values, low, inverse_step, top, start, rises, np.float32(intercept), sums)
    return sums[:, -1]
