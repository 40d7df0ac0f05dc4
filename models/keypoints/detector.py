"""Keypoint detectors: a pyramid, a pool of features, and one sparse model per keypoint."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from ...vision.images import as_rgb
from ...vision.pyramid import Level
from ...vision.windows.feature_pool import FeaturePool
from ..faces.assembly import Assembly
from ..faces.face_finder import Face, FaceFinder
from ..faces.probabilities import probability_of
from ..files import check_settings, read_model, reading, write_model
from .detections import Detection, Found, best_of_each, of_faces
from .guided_search import Mode
from .non_maximum_suppression import DEFAULT_REFERENCE_IED
from .serialisation import read_parts, write_parts
from .turned_photographs import DEFAULT_ROLL, MAX_ROLL, turned_maxima
from .window_search import WindowSearch

KIND = "keypoint detector"

_EXPLAINED = 0.15  # IED: a candidate this near to the same keypoint of a face belongs to it. A choice


@dataclass
class KeypointDetector(WindowSearch):
    """Finds keypoints in photographs; all keypoints share one pyramid and its integral images.

    The detectors of section 3.3 of Barbu et al. (2017) [1]_, with the regression-guided search of Barbu et al. (2014) [2]_.

    Parameters
    ----------
    models : dict of str to KeypointModel
        One sparse model per keypoint that is searched in windows.
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
    faces : FaceFinder, optional
        Assembles faces from the detections of some keypoints, and finds all keypoints of these.

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
    [Detection(keypoint='left_eye', x=246.5, y=103.4, score=5.1, size=38.1, probability=0.994)]
    """

    faces: FaceFinder | None = None

    @property
    def keypoints(self) -> list[str]:
        """Names of the keypoints."""
        found = () if self.faces is None else self.faces.keypoints
        return list(dict.fromkeys([*self.models, *found]))

    def check_keypoints(self, keypoints: Iterable[str] | None, assembly: str | None = None) -> list[str]:
        """Return the names asked for, all by default.

        Parameters
        ----------
        keypoints : iterable of str or None
            None: all that can be found.
        assembly : str, optional
            As in :meth:`detect`.

        Returns
        -------
        list of str
            Each name once.

        Raises
        ------
        ValueError
            If one is unknown, or is found in assembled faces only.
        """
        alone = self.check_assembly(assembly) == Assembly.NONE
        every = list(self.models) if alone else self.keypoints
        chosen = every if keypoints is None else list(dict.fromkeys(keypoints))
        for name in chosen:
            if name not in self.keypoints:
                raise ValueError(f"keypoint {name!r} is unknown; expected one of {', '.join(self.keypoints)}")
            if name not in every:
                raise ValueError(f"keypoint {name!r} has no detector of its own; expected an assembly of faces, not 'none'")
        return chosen

    def check_assembly(self, assembly: str | None) -> Assembly:
        """Return how faces are assembled, by default as the model says, not at all where it cannot.

        Parameters
        ----------
        assembly : str or None
            A name of :class:`~annealed.models.faces.assembly.Assembly`.

        Returns
        -------
        Assembly

        Raises
        ------
        ValueError
            If the name is unknown, or the model cannot assemble faces.
        """
        if assembly is None:
            return Assembly.NONE if self.faces is None else Assembly(self.faces.assembly)
        if assembly not in list(Assembly):
            raise ValueError(f"assembly={assembly!r}: expected one of {', '.join(Assembly)}")
        if assembly != Assembly.NONE and self.faces is None:
            raise ValueError(f"assembly={str(assembly)!r}: the model cannot assemble faces; expected 'none'")
        return Assembly(assembly)

    def check_mode(self, mode: str | None, keypoints: Iterable[str] | None = None, assembly: str | None = None) -> Mode:
        """Return the mode asked for, by default "prune+regress" where the model has it for these keypoints, else "scan".

        Parameters
        ----------
        mode : str or None
            A name of :class:`~annealed.models.keypoints.guided_search.Mode`.
        keypoints : iterable of str, optional
            All by default.
        assembly : str, optional
            As in :meth:`detect`.

        Returns
        -------
        Mode

        Raises
        ------
        ValueError
            If the mode is unknown, or the model does not have it for these keypoints.
        """
        searched = self._searched(self.check_keypoints(keypoints, assembly), self.check_assembly(assembly))
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
        assembly: str | None = None,
        min_probability: float | None = None,
        roll: float = DEFAULT_ROLL,
    ) -> list[Detection]:
        """Find keypoints.

        Parameters
        ----------
        image : ndarray
            uint8 RGB (H, W, 3), or what ``annealed.vision.images.as_rgb`` takes.
        keypoints : list of str, optional
            Which ones; all by default.
        threshold : float, optional
            Least score, in place of ``min_probability``; ``-inf`` gives every candidate. Without assembly by default each
            keypoint's own.
        min_size, max_size : float, optional
            Side of the detection window in image pixels; by default from the window of the pool (24) up to the image.
            A smaller ``min_size`` enlarges the image (at most fourfold). Levels outside the range are skipped.
        max_detections : int, default 200
            At most this many of each keypoint, the best.
        mode : {"scan", "regress", "prune+regress"}, optional
            Which windows the classifier scores (see :class:`~annealed.models.keypoints.guided_search.Mode`). By default the
            last, which is the fastest, where the model has it, else "scan".
        assembly : {"2d", "3d", "none"}, optional
            How faces are assembled (see :class:`~annealed.models.faces.assembly.Assembly`); "none": each keypoint by itself.
            By default as the model says.
        min_probability : float, optional
            Least probability of a face whose keypoints are returned, 0.5 by default; 0 gives every candidate. Only with assembly.
        roll : float, default 30.0
            Degrees, at most 50: where no face is found, the image, of at most 4 million pixels, is searched again turned by so
            much to either side; 0: it is not.

        Returns
        -------
        list of Detection
            By falling score.

        Raises
        ------
        ValueError
            If the image is none, a keypoint, mode or assembly is unknown or missing in the model, or the numbers make no sense.
        """
        return self.find(
            image, keypoints, threshold, min_size, max_size, max_detections, mode, assembly, min_probability, roll
        ).detections

    def find(
        self,
        image: np.ndarray,
        keypoints: Sequence[str] | None = None,
        threshold: float | None = None,
        min_size: float | None = None,
        max_size: float | None = None,
        max_detections: int = 200,
        mode: str | None = None,
        assembly: str | None = None,
        min_probability: float | None = None,
        roll: float = DEFAULT_ROLL,
    ) -> Found:
        """Find keypoints and faces.

        Parameters
        ----------
        image : ndarray
            As in :meth:`detect`, and so are all others and the errors.
        keypoints, threshold, min_size, max_size, max_detections, mode, assembly, min_probability, roll : optional
            As in :meth:`detect`.

        Returns
        -------
        Found
            Faces have all their keypoints, whichever were asked for.
        """
        assembly = self.check_assembly(assembly)
        names = self.check_keypoints(keypoints, assembly)
        mode = self.check_mode(mode, names, assembly)
        if threshold is not None and np.isnan(threshold):
            raise ValueError(f"threshold={threshold}: expected a number")
        if min_probability is not None and not 0 <= min_probability <= 1:
            raise ValueError(f"min_probability={min_probability}: expected a number from 0 to 1")
        if min_probability is not None and threshold is not None:
            raise ValueError(f"threshold={threshold} and min_probability={min_probability}: expected one of them")
        if not 0 <= roll <= MAX_ROLL:
            raise ValueError(f"roll={roll}: expected degrees from 0 to {MAX_ROLL:g}")
        pixels = as_rgb(image)
        levels = self.pyramid(pixels, min_size, max_size)
        if assembly == Assembly.NONE or self.faces is None:
            if min_probability is not None:
                raise ValueError(f"min_probability={min_probability}: expected an assembly of faces, or a threshold of the score")
            return Found(self._detect_alone(levels, names, mode, threshold, max_detections), [])
        if min_probability is None:
            min_probability = 0.5 if threshold is None else 0.0
        anchors = self.faces.anchors
        maxima = self.anchor_maxima(levels, anchors, mode, max_detections)
        faces = self.faces.find(maxima, levels, self.reference_ied, min_probability, assembly)
        if roll and not faces and min_probability > 0:

            def search(turned: np.ndarray, factor: float) -> dict[str, np.ndarray]:
                sizes = [None if size is None else max(size * factor, min(size, self.pool.window)) for size in (min_size, max_size)]
                return self.anchor_maxima(self.pyramid(turned, *sizes), anchors, mode, max_detections)

            maxima = turned_maxima(pixels, (-roll, roll), search)
            faces = self.faces.find(maxima, levels, self.reference_ied, min_probability, assembly)
        found = of_faces(faces, names, self.pool.window / self.reference_ied)
        if min_probability == 0:
            found += self._candidates_alone(maxima, names, faces)
        if threshold is not None:
            found = [d for d in found if d.score >= threshold]
        found.sort(key=lambda detection: -detection.score)
        return Found(best_of_each(found, max_detections), faces)

    def _candidates_alone(self, maxima: dict[str, np.ndarray], names: Sequence[str], faces: Sequence[Face]) -> list[Detection]:
        """Candidates that no face explains, with the probability that their score suggests."""
        assert self.faces is not None and self.faces.probabilities is not None
        assembler, alone = self.faces.assembler, self.faces.probabilities.alone
        found = []
        for i, name in enumerate(self.faces.anchors):
            if name not in names:
                continue
            for x, y, score, scale in maxima[name].tolist():
                if any(np.hypot(x - f.keypoints[name].x, y - f.keypoints[name].y) <= _EXPLAINED * f.ied for f in faces):
                    continue
                log_odds = assembler.slope[i] * score + assembler.offset[i] + alone
                found.append(Detection(name, x, y, log_odds, self.pool.window / scale, float(probability_of(log_odds))))
        return found

    def _detect_alone(
        self, levels: Sequence[Level], names: Sequence[str], mode: Mode, threshold: float | None, max_detections: int
    ) -> list[Detection]:
        least = {name: self.default_threshold(name, mode) if threshold is None else threshold for name in names}
        maxima = self._search(levels, [name for name in self.models if name in names], mode, least, max_detections)
        found = [
            Detection(name, x, y, score, self.pool.window / scale) for name in names for x, y, score, scale in maxima[name].tolist()
        ]
        return sorted(found, key=lambda detection: -detection.score)

    def anchor_maxima(
        self, levels: Sequence[Level], anchors: Sequence[str], mode: str = Mode.SCAN, max_detections: int = 200
    ) -> dict[str, np.ndarray]:
        """Find all local maxima of some keypoints' scores, from which faces are assembled.

        Parameters
        ----------
        levels : list of Level
            From :meth:`pyramid`.
        anchors : list of str
            Names of the keypoints.
        mode : Mode, default "scan"
            In which their windows are searched.
        max_detections : int, default 200
            At most this many of each.

        Returns
        -------
        dict of str to ndarray of shape (n, 4)
            Columns x, y (image pixels), score and scale (pixels of the level per image pixel).
        """
        return self._search(levels, anchors, mode, dict.fromkeys(anchors, -np.inf), max_detections)

    def default_threshold(self, keypoint: str, mode: str | None = None) -> float:
        """Return the least score of a detection without assembly, unless asked otherwise.

        Parameters
        ----------
        keypoint : str
            Name of the keypoint.
        mode : Mode, optional
            As in :meth:`detect`.

        Returns
        -------
        float
        """
        return self.models[keypoint].threshold

    def _searched(self, names: Sequence[str], assembly: Assembly) -> list[str]:
        """Keypoints whose windows are searched to find these, in the order of the model."""
        needed = names if assembly == Assembly.NONE or self.faces is None else self.faces.anchors
        return [name for name in self.models if name in needed]

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
        arrays, described = write_parts(self.models, self.guides, self.face_cascade, self.faces)
        header = {
            "pool": self.pool.to_dict(),
            "keypoints": list(self.models),
            **described,
            "scales_per_octave": self.scales_per_octave,
            "suppression": self.suppression,
            "reference_ied": self.reference_ied,
            "summary": self.info.get("summary", ", ".join(self.keypoints)),
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
            models, guides, face_cascade, faces = read_parts(path, arrays, header, pool)
            example: dict[str, Any] = {"scales_per_octave": 4, "suppression": 0.3, "reference_ied": DEFAULT_REFERENCE_IED}
            limits = {"scales_per_octave": (1, 64), "suppression": (0, 100), "reference_ied": (1, 1000)}
            found = {name: header[name] for name in example if name in header}
            numbers = check_settings({"reference_ied": DEFAULT_REFERENCE_IED, **found}, example, limits)
            if not models:
                raise ValueError("the model has no keypoint")
            info = dict(header["info"])
            return cls(models, pool, info=info, guides=guides, face_cascade=face_cascade, faces=faces, **numbers)
