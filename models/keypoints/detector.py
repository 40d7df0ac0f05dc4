"""Keypoint detectors: a pyramid, a pool of features, and one sparse model per keypoint."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from ...vision.images import as_rgb
from ...vision.pyramid import Level
from ...vision.windows.feature_pool import FeaturePool
from ..files import check_settings, read_model, reading, write_model
from .guided_search import Mode
from .non_maximum_suppression import DEFAULT_REFERENCE_IED
from .serialisation import read_parts, write_parts
from .shape_regression import ShapeRegressor
from .window_search import WindowSearch

KIND = "keypoint detector"


class Detection(NamedTuple):
    """One detected keypoint.

    Parameters
    ----------
    keypoint : str
        Its name.
    x, y : float
        Position in image pixels.
    score : float
        The greater the surer.
    size : float
        Side of the detection window in image pixels.
    """

    keypoint: str
    x: float
    y: float
    score: float
    size: float


@dataclass
class KeypointDetector(WindowSearch):
    """Finds keypoints in photographs; all keypoints share one pyramid and its integral images.

    The detectors of section 3.3 of Barbu et al. (2017) [1]_, with the regression-guided search of Barbu et al. (2014) [2]_.

    Parameters
    ----------
    models : dict of str to KeypointModel
        One sparse model per keypoint.
    pool : FeaturePool
        The pool that the models' features belong to.
    scales_per_octave : int, default 4
        Levels of the pyramid from one halving of the size to the next.
    suppression : float, default 0.3
        Radius of non-maximum suppression, in units of ``reference_ied`` on the detection's level.
    info : dict
        What JSON can hold about training, scores and terms of use; kept in the file.
    guides : dict of str to Guide
        What the modes "regress" and "prune+regress" need, per keypoint.
    face_cascade : FaceCascade, optional
        What the mode "prune+regress" needs besides, for all keypoints.
    reference_ied : float, default 28.3
        Inter-eye distance in pixels of a pyramid level that the models were trained for.
    shape_regressor : ShapeRegressor, optional
        Predicts some of the keypoints from the detections of the others.

    References
    ----------
    .. [1] A. Barbu, Y. She, L. Ding, G. Gramajo, "Feature Selection with Annealing for Computer Vision and Big Data Learning",
       IEEE Transactions on Pattern Analysis and Machine Intelligence 39 (2017).
    .. [2] A. Barbu, Y. She, L. Ding, G. Gramajo, "Feature Selection with Annealing for Regression, Classification and Ranking",
       arXiv:1310.2880v2 (2014), Algorithm 3.

    Examples
    --------
    >>> from annealed.models import load_model  # doctest: +SKIP
    >>> load_model("faces").detect(image, keypoints=["left_eye"])  # doctest: +SKIP
    [Detection(keypoint='left_eye', x=246.5, y=103.4, score=5.1, size=38.1)]
    """

    shape_regressor: ShapeRegressor | None = None

    @property
    def keypoints(self) -> list[str]:
        """Names of the keypoints."""
        return list(self.models)

    def check_keypoints(self, keypoints: Iterable[str] | None) -> list[str]:
        """Return the names asked for, all by default.

        Parameters
        ----------
        keypoints : iterable of str or None
            None: all.

        Returns
        -------
        list of str
            Each name once.

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

    def check_mode(self, mode: str | None, keypoints: Iterable[str] | None = None, shape_regression: bool = True) -> Mode:
        """Return the mode asked for, by default "prune+regress" where the model has it for these keypoints, else "scan".

        Parameters
        ----------
        mode : str or None
            A name of :class:`~annealed.models.keypoints.guided_search.Mode`.
        keypoints : iterable of str, optional
            All by default.
        shape_regression : bool, default True
            As in :meth:`detect`.

        Returns
        -------
        Mode

        Raises
        ------
        ValueError
            If the mode is unknown, or the model does not have it for these keypoints.
        """
        searched = self._searched(self.check_keypoints(keypoints), shape_regression)
        if mode is None:
            return Mode.PRUNE if self._prunes(searched) else Mode.SCAN
        if mode not in list(Mode):
            raise ValueError(f"mode={mode!r}: expected one of {', '.join(Mode)}")
        mode = Mode(mode)
        for name in searched:
            if mode != Mode.SCAN and name not in self.guides:
                raise ValueError(f"mode={str(mode)!r}: the model does not have it for {name}, only 'scan'")
        if mode == Mode.PRUNE and not self._prunes(searched):
            raise ValueError(f"mode={str(mode)!r}: the model does not have it, only 'scan' and 'regress'")
        return mode

    def _prunes(self, names: Iterable[str]) -> bool:
        """Whether these keypoints can be searched near faces only."""
        cascade = self.face_cascade
        return cascade is not None and all(name in self.guides and name in cascade.expected for name in names)

    def detect(
        self,
        image: np.ndarray,
        keypoints: Sequence[str] | None = None,
        threshold: float | None = None,
        min_size: float | None = None,
        max_size: float | None = None,
        max_detections: int = 200,
        mode: str | None = None,
        shape_regression: bool = True,
    ) -> list[Detection]:
        """Find keypoints.

        Parameters
        ----------
        image : ndarray
            uint8 RGB (H, W, 3), or what ``annealed.vision.images.as_rgb`` takes.
        keypoints : list of str, optional
            Which ones; all by default.
        threshold : float, optional
            Least score; by default each keypoint's own. ``-inf`` gives all local maxima, and predicted keypoints of all faces.
        min_size, max_size : float, optional
            Side of the detection window in image pixels; by default from the window of the pool (24) up to the image.
            A smaller ``min_size`` enlarges the image (at most fourfold). Levels outside the range are skipped.
        max_detections : int, default 200
            At most this many of each keypoint, the best.
        mode : {"scan", "regress", "prune+regress"}, optional
            Which windows the classifier scores (see :class:`~annealed.models.keypoints.guided_search.Mode`). By default the
            last, which is the fastest, where the model has it, else "scan".
        shape_regression : bool, default True
            Whether the keypoints of the model's shape regressor are predicted from the others; if not, their own classifiers
            search for them. Without effect for models that have none.

        Returns
        -------
        list of Detection
            By falling score.

        Raises
        ------
        ValueError
            If the image is none, a keypoint or mode is unknown or missing in the model, or the sizes make no sense.
        """
        names = self.check_keypoints(keypoints)
        mode = self.check_mode(mode, names, shape_regression)
        if threshold is not None and np.isnan(threshold):
            raise ValueError(f"threshold={threshold}: expected a number")
        levels = self.pyramid(as_rgb(image), min_size, max_size)
        searched = self._searched(names, shape_regression)
        least = {name: self.default_threshold(name, shape_regression, mode) if threshold is None else threshold for name in names}
        # Anchors may score less than a detection that is returned.
        anchors = self._anchor_thresholds(searched, mode) if self.shape_regressor is not None else {}
        wanted = {name: min(least.get(name, np.inf), anchors.get(name, np.inf)) for name in searched}
        maxima = self._search(levels, searched, mode, wanted, max_detections)
        found: list[Detection] = []
        for name in names:
            if name in maxima:
                found += [Detection(name, x, y, s, self.pool.window / scale) for x, y, s, scale in maxima[name].tolist()]
        predicted = [name for name in names if name not in maxima]
        if predicted:
            found += self._predict(predicted, maxima, levels, mode, max_detections, all_faces=threshold == -np.inf)
        return sorted((d for d in found if d.score >= least[d.keypoint]), key=lambda detection: -detection.score)

    def detect_anchors(self, levels: Sequence[Level], mode: str = Mode.SCAN, max_detections: int = 200) -> dict[str, np.ndarray]:
        """Find the shape regressor's anchors.

        Parameters
        ----------
        levels : list of Level
            From :meth:`pyramid`.
        mode : Mode, default "scan"
            In which their windows are searched.
        max_detections : int, default 200
            At most this many of each.

        Returns
        -------
        dict of str to ndarray of shape (n, 4)
            Columns x, y (image pixels), score and scale (pixels of the level per image pixel).

        Raises
        ------
        ValueError
            If the detector has no shape regressor.
        """
        anchors = self._require_shape_regressor().anchors
        return self._search(levels, anchors, mode, self._anchor_thresholds(anchors, mode), max_detections)

    def default_threshold(self, keypoint: str, shape_regression: bool = True, mode: str | None = None) -> float:
        """Return the least score of a detection unless asked otherwise.

        Parameters
        ----------
        keypoint : str
            Name of the keypoint.
        shape_regression : bool, default True
            As in :meth:`detect`.
        mode : Mode, optional
            As in :meth:`detect`.

        Returns
        -------
        float
        """
        regressor = self.shape_regressor
        if shape_regression and regressor is not None and keypoint in regressor.steps:
            return regressor.thresholds.get(keypoint, 0.0)
        return self.models[keypoint].threshold

    def _require_shape_regressor(self) -> ShapeRegressor:
        if self.shape_regressor is None:
            raise ValueError("the detector has no shape regressor; expected one that was trained with a fast mode")
        return self.shape_regressor

    def _searched(self, names: Sequence[str], shape_regression: bool) -> list[str]:
        """Keypoints whose windows are searched to find or predict these, in the order of the model."""
        regressor = self.shape_regressor if shape_regression else None
        predicted = set(regressor.steps) & set(names) if regressor is not None else set()
        needed = set(names) - predicted
        if predicted and regressor is not None:
            needed |= set(regressor.anchors)
        return [name for name in self.keypoints if name in needed]

    def _anchor_thresholds(self, names: Sequence[str], mode: str) -> dict[str, float]:
        margin = self._require_shape_regressor().anchor_margin
        return {name: self.models[name].threshold - margin for name in names}

    def _predict(
        self,
        names: Sequence[str],
        maxima: dict[str, np.ndarray],
        levels: Sequence[Level],
        mode: str,
        max_faces: int,
        all_faces: bool,
    ) -> list[Detection]:
        """Predict keypoints from the anchors' local maxima."""
        regressor = self._require_shape_regressor()
        thresholds = {name: self.models[name].threshold for name in regressor.anchors}
        found = []
        for face in regressor.faces(maxima, thresholds, self.reference_ied, max_faces):
            if not all_faces and face.score < regressor.min_face_score:
                continue
            for name in names:
                position, transform, own = regressor.predict(face, levels, name, self.pool, self.models[name], self.reference_ied)
                size = transform.ied / self.reference_ied * self.pool.window
                score = face.score + regressor.classifier_weight * own
                found.append(Detection(name, position.real, position.imag, score, size))
        return found

    def save(self, path: str | Path) -> None:
        """Write the detector to a model file.

        Parameters
        ----------
        path : path
            File to write.

        Raises
        ------
        ValueError
            If the file cannot be written.
        """
        arrays, described = write_parts(self.models, self.guides, self.face_cascade, self.shape_regressor)
        header = {
            "pool": self.pool.to_dict(),
            "keypoints": list(self.models),
            **described,
            "scales_per_octave": self.scales_per_octave,
            "suppression": self.suppression,
            "reference_ied": self.reference_ied,
            "summary": self.info.get("summary", ", ".join(self.models)),
            "info": self.info,
        }
        write_model(path, KIND, arrays, header)

    @classmethod
    def load(cls, path: str | Path) -> KeypointDetector:
        """Read a detector from a model file.

        Parameters
        ----------
        path : path
            File to read.

        Returns
        -------
        KeypointDetector

        Raises
        ------
        ValueError
            If the file is missing, damaged or of another kind; names the file.
        """
        arrays, header = read_model(path, KIND)
        with reading(path):
            pool = FeaturePool.from_dict(header["pool"])
            models, guides, face_cascade, shape_regressor = read_parts(path, arrays, header, pool)
            example: dict[str, Any] = {"scales_per_octave": 4, "suppression": 0.3, "reference_ied": DEFAULT_REFERENCE_IED}
            limits = {"scales_per_octave": (1, 64), "suppression": (0, 100), "reference_ied": (1, 1000)}
            found = {name: header[name] for name in example if name in header}
            numbers = check_settings({"reference_ied": DEFAULT_REFERENCE_IED, **found}, example, limits)
            if not models:
                raise ValueError("the model has no keypoint")
            parts = {"guides": guides, "face_cascade": face_cascade, "shape_regressor": shape_regressor}
            return cls(models, pool, info=dict(header["info"]), **parts, **numbers)
