"""Keypoint detectors, which combine a pyramid, a feature pool and one sparse model per keypoint."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, fields, replace
from functools import partial
from pathlib import Path
from typing import Any, ClassVar, Self

import numpy as np

from ...vision import FeaturePool, Level, as_rgb
from ..files import ModelFile, check_settings
from .detections import Detection, DetectionOptions, DetectionResult, best_of_each, of_instances
from .instances import Assembly, Instance, InstanceFinder, probability_of, suppress_instances
from .schema import Schema
from .serialisation import read_parts, write_parts
from .windows import (
    ALL_ROUND,
    DEFAULT_REFERENCE_LENGTH,
    DEFAULT_ROLL,
    FaceCascade,
    Guide,
    KeypointModel,
    Mode,
    WindowSearch,
    evened_levels,
    turned_maxima,
)

# side of the box around a face in reference lengths, and the tolerance of that side (heuristic)
_BOX_LENGTHS, _BOX_RANGE = 2.4, 1.8
# reference lengths: a candidate this close to the same keypoint of an object belongs to the object
# (heuristic)
_EXPLAINED = 0.15
# Minimum score of whole faces, as in `InstanceFinder.likely_objects`: of 526 faces detected in
# synthetic views of held-out photographs, 2 score less (measured). A limit of -7 in rotated
# photographs loses faces that are turned to the side.
_LIKELY = -10.0

# part of a photograph, its first pixel x, y, and the range of window sizes to search
_Part = tuple[np.ndarray, tuple[int, int], tuple[float | None, float | None]]


@dataclass
class KeypointDetector(ModelFile):
    """Detector of keypoints in photographs.

    The detector follows section 3.3 of Barbu et al. (2017) [1]_, with the regression-guided search
    of Barbu et al. (2014) [2]_. All keypoints share a pyramid and integral images.

    Parameters
    ----------
    models : dict of str to KeypointModel
        Window classifier for each detected keypoint.
    pool : FeaturePool
        Pool of the window features that the models use.
    scales_per_octave : int, default 4
        Number of pyramid levels per octave (a factor of two in size).
    suppression : float, default 0.3
        Radius of non-maximum suppression, in units of ``reference_length``.
    info : dict
        JSON values that are stored in the model file: descriptions of the training, the scores and
        the terms of use.
    guides : dict of str to Guide
        Models that propose windows for each keypoint, used by the modes "regress" and
        "prune+regress".
    face_cascade : FaceCascade, optional
        Cascade shared by all keypoints, used by the mode "prune+regress".
    reference_length : float, default 28.3
        Reference length (see `Schema`) of the objects on which the models were trained, in pixels
        of a pyramid level.
    finder : InstanceFinder, optional
        Finder that assembles instances from the detections of some keypoints and locates all
        keypoints of each instance.
    schema : Schema, optional
        Definition of the keypoints; None for face models in older files.
    enlarged : float, default 1.0
        Default factor by which images are enlarged to detect small objects, at most 4.

    References
    ----------
    .. [1] A. Barbu, Y. She, L. Ding, G. Gramajo, "Feature Selection with Annealing for Computer
           Vision and Big Data Learning", IEEE Transactions on Pattern Analysis and Machine
           Intelligence 39 (2017).
    .. [2] A. Barbu, Y. She, L. Ding, G. Gramajo, "Feature Selection with Annealing for Regression,
           Classification and Ranking", arXiv:1310.2880v2 (2014), Algorithm 3.

    Examples
    --------
    >>> from annealed.models import load_model  # doctest: +SKIP
    >>> load_model("faces").detect(image, keypoints=["left_eye"])  # doctest: +SKIP
    [Detection(keypoint='left_eye', x=246.5, y=103.4, score=5.1, size=38.1, probability=0.994)]
    """

    KIND: ClassVar[str] = "keypoint detector"
    models: dict[str, KeypointModel]
    pool: FeaturePool = field(default_factory=FeaturePool)
    scales_per_octave: int = 4
    suppression: float = 0.3
    info: dict[str, Any] = field(default_factory=dict)
    guides: dict[str, Guide] = field(default_factory=dict)
    face_cascade: FaceCascade | None = None
    reference_length: float = DEFAULT_REFERENCE_LENGTH
    finder: InstanceFinder | None = None
    schema: Schema | None = None
    enlarged: float = 1.0

    @property
    def search(self) -> WindowSearch:
        """The search object, which applies the window classifiers of the keypoints."""
        return WindowSearch(
            **{part.name: getattr(self, part.name) for part in fields(WindowSearch)}
        )

    @property
    def category(self) -> str | None:
        """Category of the objects; None for faces."""
        return None if self.schema is None or self.schema.landmarks else self.schema.category

    @property
    def keypoints(self) -> list[str]:
        """Names of the keypoints, in the same order as in the annotations."""
        known = [*self.models, *(() if self.finder is None else self.finder.keypoints)]
        order = [*(() if self.schema is None else self.schema.keypoints), *known]
        return sorted(set(known), key=order.index)

    def resolve(self, options: DetectionOptions) -> DetectionOptions:
        """Return the options after setting missing keypoints, mode and assembly to their defaults.

        Parameters
        ----------
        options : DetectionOptions
            Requested options.

        Returns
        -------
        DetectionOptions
            Completed options.

        Raises
        ------
        ValueError
            If the model does not support a keypoint, the mode, the assembly or the sizes.
        """
        default = Assembly.NONE if self.finder is None else self.finder.assembly
        options = replace(
            options, assembly=Assembly(default if options.assembly is None else options.assembly)
        )
        if options.assembly != Assembly.NONE and self.finder is None:
            raise ValueError(
                f"assembly={str(options.assembly)!r} is not available for this model; use "
                "assembly='none'"
            )
        available = self.keypoints if options.assembly != Assembly.NONE else list(self.models)
        names = available if options.keypoints is None else list(dict.fromkeys(options.keypoints))
        for name in names:
            if name not in self.keypoints:
                raise ValueError(
                    f"keypoint {name!r} is unknown; expected one of {', '.join(self.keypoints)}"
                )
            if name not in available:
                raise ValueError(
                    f"keypoint {name!r} has no detector of its own; use an assembly other than "
                    "'none'"
                )
        searched = (
            names
            if options.assembly == Assembly.NONE or self.finder is None
            else self.finder.anchors
        )
        mode = self._mode([name for name in self.models if name in searched], options.mode)
        self.search.smallest_window(options.min_size, options.max_size)
        default_roll = DEFAULT_ROLL if self.category is None else 0.0
        return replace(
            options,
            keypoints=names,
            mode=mode,
            roll=default_roll if options.roll is None else options.roll,
        )

    def _mode(self, names: Sequence[str], mode: str | None) -> Mode:
        """Return the search mode of some keypoints; the default is the fastest one that the model
        supports for them."""
        cascade = self.face_cascade
        prunes = cascade is not None and all(
            name in self.guides and name in cascade.expected for name in names
        )
        if mode is None:
            return Mode.PRUNE if prunes else Mode.SCAN
        for name in names:
            if mode != Mode.SCAN and name not in self.guides:
                raise ValueError(f"mode={str(mode)!r} is not available for {name}; use mode='scan'")
        if mode == Mode.PRUNE and not prunes:
            raise ValueError(
                f"mode={str(mode)!r} is not available for this model; use mode='scan' or 'regress'"
            )
        return Mode(mode)

    def detect(
        self, image: np.ndarray, options: DetectionOptions | None = None, **keywords: Any
    ) -> list[Detection]:
        """Detect keypoints.

        Parameters
        ----------
        image : ndarray
            RGB image of shape (H, W, 3) and type uint8, or any input accepted by
            ``annealed.vision.images.as_rgb``.
        options : DetectionOptions, optional
            Search options.
        **keywords
            Individual options that override ``options``, as in ``detect(image, threshold=0.5,
            mode="scan")``.

        Returns
        -------
        list of Detection
            Detections in order of decreasing score.

        Raises
        ------
        ValueError
            If the image is invalid, a number is out of range, or the model does not support a
            keypoint, the mode or the assembly.
        """
        return self.find(image, options, **keywords).detections

    def find(
        self, image: np.ndarray, options: DetectionOptions | None = None, **keywords: Any
    ) -> DetectionResult:
        """Detect keypoints and the objects to which they belong.

        Parameters
        ----------
        image : ndarray
            Image, as in :meth:`detect`.
        options : DetectionOptions, optional
            Search options, as in :meth:`detect`.
        **keywords
            Individual options, as in :meth:`detect`.

        Returns
        -------
        DetectionResult
            Detections and instances. The instances contain all keypoints, even if only some were
            requested.

        Raises
        ------
        ValueError
            As for :meth:`detect`.
        """
        o = self.resolve(replace(options or DetectionOptions(), **keywords))
        assert o.keypoints is not None and o.mode is not None and o.roll is not None
        pixels = as_rgb(image)
        if o.boxes is not None:
            instances = [self._in_box(pixels, box, o) for box in o.boxes]
            detections = of_instances(
                instances, o.keypoints, self.pool.window / self.reference_length
            )
            return DetectionResult(
                sorted(detections, key=lambda detection: -detection.score), instances
            )
        levels = self.search.pyramid(pixels, o.min_size, o.max_size)
        if o.assembly == Assembly.NONE or self.finder is None:
            return DetectionResult(self._detect_points(levels, o), [])
        min_probability = o.min_probability
        if min_probability is None:
            min_probability = 0.5 if o.threshold is None else 0.0
        upright = self.schema is None or self.schema.upright
        if upright:
            maxima = self._likely_maxima(o, min_probability, levels)
        else:
            search = partial(self._likely_maxima, o, min_probability)
            maxima = turned_maxima(levels, pixels.shape, ALL_ROUND, search)
            maxima = {name: self.search.distinct(candidates) for name, candidates in maxima.items()}
        instances, complete, doubtful = self.finder.find(
            maxima, levels, self.reference_length, min_probability, o.assembly
        )
        # no level, since the photograph is too narrow for a face
        if o.roll and levels and upright and not complete:
            parts = [self._around(pixels, box, 1.0) for box in doubtful]
            further = [
                instance.moved(*corner)
                for part, corner, sizes in parts
                for instance in self._found_again(
                    self.search.pyramid(part, *sizes), part.shape, o, min_probability
                )
            ]
            if not parts:
                further = self._found_again(levels, pixels.shape, o, min_probability)
            instances = self._distinct(instances + further)
        detections = of_instances(instances, o.keypoints, self.pool.window / self.reference_length)
        if min_probability == 0:
            detections += self._other_points(maxima, o.keypoints, instances)
        if o.threshold is not None:
            detections = [d for d in detections if d.score >= o.threshold]
        detections.sort(key=lambda detection: -detection.score)
        return DetectionResult(best_of_each(detections, o.max_detections), instances)

    def _found_again(
        self,
        levels: Sequence[Level],
        shape: tuple[int, ...],
        o: DetectionOptions,
        min_probability: float,
    ) -> list[Instance]:
        """Return the faces in the rotated and equalised photograph.

        ``levels`` is the pyramid of the photograph, which has the given shape (H, W, ...).
        """
        assert self.finder is not None and o.roll is not None
        if not levels:
            return []
        light = evened_levels(levels, shape, self.scales_per_octave)
        search = partial(self._likely_maxima, o, min_probability)
        turned_anchors = turned_maxima(levels, shape, (-o.roll, o.roll), search)
        return [
            instance
            for maxima, searched in ((turned_anchors, levels), (search(light), light))
            for instance in self.finder.find(
                maxima, searched, self.reference_length, min_probability, o.assembly
            ).instances
        ]

    def _distinct(self, instances: list[Instance]) -> list[Instance]:
        """Return the distinct faces by decreasing probability; the most probable of several
        duplicates is retained."""
        assert self.finder is not None
        instances = sorted(instances, key=lambda instance: -instance.probability)
        anchors = [instance.places(self.finder.anchors) for instance in instances]
        lengths = [instance.reference_length for instance in instances]
        return [instances[i] for i in suppress_instances(anchors, lengths)]

    def _around(self, pixels: np.ndarray, box: Sequence[float], margin: float) -> _Part:
        """Return the part of a photograph around a box, with a margin in sides of the box, its
        first pixel x, y, and the range of window sizes of a face in the box."""
        side = float(np.sqrt(np.prod(np.subtract(box[2:], box[:2]))))
        last = np.array(pixels.shape[1::-1]) - 1
        left, top = np.floor(np.subtract(box[:2], margin * side)).clip(0, last).astype(int)
        right, bottom = np.ceil(np.add(box[2:], margin * side)).clip(1, last + 1).astype(int)
        smallest = self.pool.window / 4
        window = max(side / _BOX_LENGTHS * self.pool.window / self.reference_length, smallest)
        sizes = max(window / _BOX_RANGE, smallest), window * _BOX_RANGE
        part = np.ascontiguousarray(pixels[top:bottom, left:right])
        return part, (int(left), int(top)), sizes

    def _in_box(self, pixels: np.ndarray, box: Sequence[float], o: DetectionOptions) -> Instance:
        """Return the most probable face in a box, or the refined mean shape if there is none."""
        assert self.finder is not None
        height, width = pixels.shape[:2]
        low, high = np.maximum(box[:2], 0.0), np.minimum(box[2:], [width - 1.0, height - 1.0])
        if (low >= high).any():
            raise ValueError(
                f"box {tuple(box)} is not valid; "
                f"expected a box inside the image of {width} x {height} pixels"
            )
        part, (left, top), sizes = self._around(pixels, box, 0.5)
        inside = replace(
            o,
            boxes=None,
            roll=0.0,
            threshold=None,
            min_probability=0.0,
            min_size=sizes[0],
            max_size=sizes[1],
        )
        instances = self.find(part, inside).instances
        middles = np.array([instance.landmarks.mean(axis=0) for instance in instances]).reshape(
            -1, 2
        ) + [left, top]
        in_box = ((middles >= low) & (middles <= high)).all(axis=1)
        if in_box.any():
            return instances[int(in_box.argmax())].moved(left, top)
        levels = self.search.pyramid(part, *sizes)
        return self.finder.placed(
            (box[0] - left, box[1] - top, box[2] - left, box[3] - top), levels
        ).moved(left, top)

    def _likely_maxima(
        self, o: DetectionOptions, min_probability: float, levels: Sequence[Level]
    ) -> dict[str, np.ndarray]:
        """Return the local maxima of the anchors.

        Unless all faces are requested, only the neighbourhoods of likely faces are searched.
        """
        assert self.finder is not None and o.mode is not None
        settings = levels, self.finder.anchors, o.mode, o.max_detections
        if min_probability == 0 or self.category is not None:
            return self.anchor_maxima(*settings)
        likely = partial(self.finder.likely_objects, levels, self.reference_length, _LIKELY)
        return self.anchor_maxima(*settings, likely)

    def _other_points(
        self, maxima: dict[str, np.ndarray], names: Sequence[str], instances: Sequence[Instance]
    ) -> list[Detection]:
        """Return candidates that do not belong to a face, with the probability derived from their
        score."""
        assert self.finder is not None
        assembler, alone = self.finder.assembler, self.finder.trained.alone
        detections = []
        for name, slope, offset in zip(self.finder.anchors, assembler.slope, assembler.offset):
            for x, y, score, scale in maxima[name].tolist() if name in names else ():
                if all(
                    np.hypot(x - f.keypoints[name].x, y - f.keypoints[name].y)
                    > _EXPLAINED * f.reference_length
                    for f in instances
                ):
                    log_odds = slope * score + offset + alone
                    detections.append(
                        Detection(
                            name,
                            x,
                            y,
                            log_odds,
                            self.pool.window / scale,
                            float(probability_of(log_odds)),
                        )
                    )
        return detections

    def _detect_points(self, levels: Sequence[Level], o: DetectionOptions) -> list[Detection]:
        assert o.keypoints is not None and o.mode is not None
        thresholds = {
            name: self.models[name].threshold if o.threshold is None else o.threshold
            for name in o.keypoints
        }
        maxima = self.search.maxima(
            levels,
            [n for n in self.models if n in o.keypoints],
            o.mode,
            thresholds,
            o.max_detections,
            self.search.objects(levels),
        )
        detections = [
            Detection(name, x, y, score, self.pool.window / scale)
            for name in o.keypoints
            for x, y, score, scale in maxima[name].tolist()
        ]
        return sorted(detections, key=lambda detection: -detection.score)

    def anchor_maxima(
        self,
        levels: Sequence[Level],
        anchors: Sequence[str],
        mode: str = Mode.SCAN,
        max_detections: int = 200,
        likely: Callable[[np.ndarray], np.ndarray] | None = None,
    ) -> dict[str, np.ndarray]:
        """Compute the local maxima of the keypoint scores, from which instances are assembled.

        Parameters
        ----------
        levels : list of Level
            Pyramid levels from ``search.pyramid``.
        anchors : list of str
            Names of the keypoints.
        mode : Mode, default "scan"
            Search mode.
        max_detections : int, default 200
            Maximum number of maxima per keypoint.
        likely : function, optional
            Function that filters the n detected whole objects: it takes an array of shape (n, 4)
            and returns the rows of the objects near which keypoints are searched for.

        Returns
        -------
        dict of str to ndarray of shape (n, 4)
            Local maxima of each keypoint, with the columns x, y (image pixels), score and scale
            (pixels of the level per image pixel).
        """
        objects = self.search.objects(levels)
        if objects is not None and likely is not None:
            objects = likely(objects)
        return self.search.maxima(
            levels, anchors, mode, dict.fromkeys(anchors, -np.inf), max_detections, objects
        )

    def _to_file(self, path: Path) -> tuple[dict[str, np.ndarray], dict[str, Any]]:
        arrays, described = write_parts(self.models, self.guides, self.face_cascade, self.finder)
        header = {
            "pool": self.pool.to_dict(),
            "keypoints": list(self.models),
            **described,
            "scales_per_octave": self.scales_per_octave,
            "suppression": self.suppression,
            "reference_ied": self.reference_length,  # the name in model files
            "summary": self.info.get("summary", ", ".join(self.keypoints)),
            "info": self.info,
        } | (
            {}
            if self.schema is None
            else {"schema": self.schema.to_dict(), "enlarged": self.enlarged}
        )
        return arrays, header

    @classmethod
    def _from_file(cls, path: Path, arrays: dict[str, np.ndarray], header: dict[str, Any]) -> Self:
        pool = FeaturePool.from_dict(header["pool"])
        models, guides, face_cascade, finder = read_parts(path, arrays, header, pool)
        example: dict[str, Any] = {
            "reference_ied": DEFAULT_REFERENCE_LENGTH,
            "scales_per_octave": 4,
            "suppression": 0.3,
            "enlarged": 1.0,
        }
        limits = {
            "scales_per_octave": (1, 64),
            "suppression": (0, 100),
            "reference_ied": (1, 1000),
            "enlarged": (1, 4),
        }
        numbers = check_settings(
            {name: header.get(name, value) for name, value in example.items()}, example, limits
        )
        if not models:
            raise ValueError("the model has no keypoints; expected at least one")
        numbers["reference_length"] = numbers.pop("reference_ied")
        return cls(
            models,
            pool,
            info=dict(header["info"]),
            guides=guides,
            face_cascade=face_cascade,
            finder=finder,
            schema=None if header.get("schema") is None else Schema.from_dict(header["schema"]),
            **numbers,
        )
