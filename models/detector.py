"""Keypoint detectors: a pyramid, a pool of features, and one sparse model per keypoint."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from ..vision.images import as_rgb
from ..vision.pool import FeaturePool
from ..vision.pyramid import Level, gaussian_pyramid
from ..vision.scan import level_channels, scan
from .files import check_array, read_model, write_model
from .peaks import IED, Localisation, find_peaks

KIND = "keypoint detector"


class Detection(NamedTuple):
    """One keypoint found: its name, position and score, and the side of the detection window (image pixels)."""

    keypoint: str
    x: float
    y: float
    score: float
    size: float


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


@dataclass
class KeypointDetector:
    """Finds keypoints in photographs; all keypoints share one pyramid and its integral images.

    Parameters
    ----------
    models : dict of str to KeypointModel
        One sparse model per keypoint.
    pool : FeaturePool
        What the models' features mean.
    scales_per_octave : int
        Levels of the pyramid from one halving of the size to the next.
    suppression : float
        Radius within which a better detection of the same keypoint wins, in units of ``IED`` at its level.
    info : dict
        What JSON can hold about training, scores and terms of use; kept in the file.

    Examples
    --------
    >>> from annealed.models import load_model  # doctest: +SKIP
    >>> load_model("faces").detect(image, keypoints=["left_eye"])  # doctest: +SKIP
    [Detection(keypoint='left_eye', x=246.5, y=103.4, score=5.1, size=38.1)]
    """

    models: dict[str, KeypointModel]
    pool: FeaturePool = field(default_factory=FeaturePool)
    scales_per_octave: int = 4
    suppression: float = 0.3
    info: dict[str, Any] = field(default_factory=dict)

    @property
    def keypoints(self) -> list[str]:
        """Names of the keypoints."""
        return list(self.models)

    def check_keypoints(self, keypoints: Iterable[str] | None) -> list[str]:
        """Return the names asked for, all by default.

        Raises
        ------
        ValueError
            If one is unknown.
        """
        chosen = self.keypoints if keypoints is None else list(dict.fromkeys(keypoints))
        for name in chosen:
            if name not in self.models:
                raise ValueError(f"keypoint {name!r} is unknown; expected one of {', '.join(self.models)}")
        return chosen

    def detect(
        self,
        image: np.ndarray,
        keypoints: Sequence[str] | None = None,
        threshold: float | None = None,
        min_size: float | None = None,
        max_size: float | None = None,
        max_detections: int = 200,
    ) -> list[Detection]:
        """Find keypoints.

        Parameters
        ----------
        image : ndarray
            uint8 RGB (H, W, 3), or what ``annealed.vision.images.as_rgb`` takes.
        keypoints : list of str, optional
            Which ones; all by default.
        threshold : float, optional
            Least score; by default each keypoint's own. ``-inf`` gives all local maxima.
        min_size, max_size : float, optional
            Side of the detection window in image pixels; by default from the window of the pool (24) up to the image.
            A smaller ``min_size`` enlarges the image (at most fourfold).
        max_detections : int
            At most so many of each keypoint, the best.

        Returns
        -------
        list of Detection
            By falling score.

        Raises
        ------
        ValueError
            If the image is none, a keypoint is unknown, or the sizes make no sense.
        """
        names = self.check_keypoints(keypoints)
        levels = self.pyramid(as_rgb(image), min_size, max_size)
        windows: dict[str, list[np.ndarray]] = {name: [] for name in names}
        for level in levels:
            channels = level_channels(level.image, self.pool)
            for name in names:
                windows[name].append(self.scan_level(level, channels, name))
        found = []
        for name in names:
            model = self.models[name]
            x, y, scale, score = np.concatenate(windows[name] or [np.empty((0, 4))]).T
            least = model.threshold if threshold is None else threshold
            peaks = find_peaks(x, y, scale, score, model.localisation, self.suppression, least, max_detections)
            found += [Detection(name, px, py, s, self.pool.window / level) for px, py, s, level in peaks.tolist()]
        return sorted(found, key=lambda detection: -detection.score)

    def pyramid(
        self, image: np.ndarray, min_size: float | None = None, max_size: float | None = None
    ) -> list[Level]:
        """Return the levels to scan for windows of the given sizes; see :meth:`detect`."""
        window = self.pool.window
        smallest = window if min_size is None else min_size
        if not window / 4 <= smallest < np.inf:
            raise ValueError(f"min_size={min_size}: expected at least {window / 4:g} pixels, a quarter of the window")
        if max_size is not None and not max_size >= smallest:
            raise ValueError(f"max_size={max_size}: expected at least min_size, {smallest:g} pixels")
        return gaussian_pyramid(
            image,
            self.scales_per_octave,
            min_scale=0.0 if max_size is None else window / max_size,
            max_scale=window / smallest,
        )

    def scan_level(self, level: Level, channels, keypoint: str) -> np.ndarray:
        """Return the windows of a level that pass all rejection thresholds: (n, 4) x, y (image pixels), scale, score."""
        m = self.models[keypoint]
        scores = scan(channels, m.features, m.lo, m.step, m.coef, m.intercept, m.thresholds)
        ys, xs = np.nonzero(scores > -np.inf)
        xy = level.to_image(np.column_stack([xs, ys]))
        return np.column_stack([xy, np.full(len(xy), level.scale), scores[ys, xs]])

    def save(self, path: str | Path) -> None:
        """Write the detector to a model file.

        Raises
        ------
        ValueError
            If the file cannot be written.
        """
        arrays, described = {}, {}
        for name, model in self.models.items():
            for array in ("features", "lo", "step", "coef", "thresholds"):
                arrays[f"{name}/{array}"] = getattr(model, array)
            arrays[f"{name}/intercept"] = np.array([model.intercept], np.float64)
            described[name] = {"threshold": float(model.threshold), "localisation": model.localisation.to_dict()}
        header = {
            "pool": self.pool.to_dict(),
            "keypoints": list(self.models),
            "models": described,
            "scales_per_octave": self.scales_per_octave,
            "suppression": self.suppression,
            "summary": self.info.get("summary", ", ".join(self.models)),
            "info": self.info,
        }
        write_model(path, KIND, arrays, header)

    @classmethod
    def load(cls, path: str | Path) -> KeypointDetector:
        """Read a detector from a model file.

        Raises
        ------
        ValueError
            If the file is missing, damaged or of another kind; names the file.
        """
        arrays, header = read_model(path, KIND)
        try:
            pool = FeaturePool.from_dict(header["pool"])
            models = {name: _model(path, arrays, name, header["models"][name], pool) for name in header["keypoints"]}
            scales, suppression = int(header["scales_per_octave"]), float(header["suppression"])
            if not models or scales < 1 or not 0 <= suppression < 100:
                raise ValueError(f"keypoints={list(models)}, scales_per_octave={scales}, suppression={suppression}")
            return cls(models, pool, scales, suppression, dict(header["info"]))
        except (KeyError, TypeError, AttributeError, OverflowError) as error:
            raise ValueError(f"{path}: damaged header ({type(error).__name__}: {error})") from None
        except ValueError as error:
            message = str(error)
            raise ValueError(message if message.startswith(str(path)) else f"{path}: damaged ({message})") from None


def _model(path, arrays: dict[str, np.ndarray], name: str, described: dict, pool: FeaturePool) -> KeypointModel:
    features = pool.check(check_array(path, arrays, f"{name}/features", np.int32, (None, 8)))
    k = len(features)
    coef = check_array(path, arrays, f"{name}/coef", np.float32, (k, None))
    step = check_array(path, arrays, f"{name}/step", np.float32, (k,))
    if k < 1 or coef.shape[1] < 2 or not (step > 0).all():
        raise ValueError(f"{name}: expected at least one feature, one bin, and bins of a width above 0")
    for array in (coef, step):
        if not np.isfinite(array).all():
            raise ValueError(f"{name}: expected finite numbers")
    threshold = float(described["threshold"])
    if np.isnan(threshold):
        raise ValueError(f"{name}: threshold is not a number")
    return KeypointModel(
        features,
        check_array(path, arrays, f"{name}/lo", np.float32, (k,)),
        step,
        coef,
        check_array(path, arrays, f"{name}/thresholds", np.float32, (k,)),
        float(check_array(path, arrays, f"{name}/intercept", np.float64, (1,))[0]),
        Localisation.from_dict(described["localisation"]),
        threshold,
    )
