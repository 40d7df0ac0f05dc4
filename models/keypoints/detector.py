"""Keypoint detectors: a pyramid, a pool of features, and one sparse model per keypoint."""

from __future__ import annotations

import pickle
import tempfile
import warnings
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import Any, NamedTuple, Self, TypeVar

import cv2
import numpy as np
from joblib import Parallel, delayed

from ...vision.images import as_rgb
from ...vision.pyramid import Level, gaussian_pyramid
from ...vision.windows.dense_scan import scan_level
from ...vision.windows.feature_pool import FeaturePool
from ...vision.windows.level_features import Buffers, LevelChannels, level_channels
from ...vision.windows.sparse_scan import score_windows
from ..files import read_model, write_model
from .guided_search import MODES, Guide
from .non_maximum_suppression import IED, find_peaks
from .serialisation import read_parts, write_parts
from .shape_regression import Context
from .window_models import KeypointModel

KIND = "keypoint detector"
STRIP = 1 << 20  # pixels of a level that are worked on at a time
Item = TypeVar("Item")
Answer = TypeVar("Answer")


class Detection(NamedTuple):
    """One keypoint found: its name, position and score, and the side of the detection window (image pixels)."""

    keypoint: str
    x: float
    y: float
    score: float
    size: float


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
    guides : dict of str to Guide
        What the modes "regress" and "prune+regress" need, per keypoint.
    context : Context, optional
        Finds some of the keypoints from the answers of the others.

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
    guides: dict[str, Guide] = field(default_factory=dict)
    context: Context | None = None

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

    def check_mode(self, mode: str | None, keypoints: Iterable[str] | None = None, context: bool = True) -> str:
        """Return the mode asked for, by default "prune+regress" where it has been learnt for these keypoints, else "scan".

        Raises
        ------
        ValueError
            If it cannot be had for these keypoints, all by default.
        """
        looked_for = self._looked_for(self.check_keypoints(keypoints), context)
        if mode is None:
            pruned = all(name in self.guides and self.guides[name].prune for name in looked_for)
            return "prune+regress" if pruned else "scan"
        if mode not in MODES:
            raise ValueError(f"mode={mode!r}: expected one of {', '.join(MODES)}")
        for name in looked_for:
            if mode != "scan" and name not in self.guides:
                raise ValueError(f"mode={mode!r}: the model has not learnt it for {name}, only 'scan'")
            if mode == "prune+regress" and not self.guides[name].prune:
                raise ValueError(f"mode={mode!r}: the model has not learnt to prune for {name}, only 'scan' and 'regress'")
        return mode

    def detect(
        self,
        image: np.ndarray,
        keypoints: Sequence[str] | None = None,
        threshold: float | None = None,
        min_size: float | None = None,
        max_size: float | None = None,
        max_detections: int = 200,
        mode: str | None = None,
        context: bool = True,
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
            A smaller ``min_size`` enlarges the image (at most fourfold). Levels outside the range are not looked at.
        max_detections : int
            At most so many of each keypoint, the best.
        mode : {"scan", "regress", "prune+regress"}, optional
            Which windows the classifier looks at: all; those around where the regressor points from a sparse grid; the same from
            grid points that a cheaper classifier leaves (Algorithm 3 of the arXiv text). By default the last, which is the fastest,
            where the model has learnt it, else "scan".
        context : bool
            Whether keypoints that the model knows to tell from others are told from them; if not, they are looked for like the
            others. No matter for models without context.

        Returns
        -------
        list of Detection
            By falling score.

        Raises
        ------
        ValueError
            If the image is none, a keypoint or mode is unknown or not learnt, or the sizes make no sense.
        """
        names = self.check_keypoints(keypoints)
        mode = self.check_mode(mode, names, context)
        levels = self.pyramid(as_rgb(image), min_size, max_size)
        looked_for = self._looked_for(names, context)
        least = {name: self.default_threshold(name, context, mode) if threshold is None else threshold for name in names}
        # Anchors of a context may lie below their own threshold.
        floors = {n: self.classifier(n, mode).threshold - self.context.floor for n in looked_for} if self.context else {}
        asked = {name: min(least.get(name, np.inf), floors.get(name, np.inf)) for name in looked_for}
        peaks = self._peaks(levels, looked_for, mode, asked, max_detections)
        found: list[Detection] = []
        for name in names:
            if name in peaks:
                found += [Detection(name, x, y, s, self.pool.window / scale) for x, y, s, scale in peaks[name].tolist()]
        told = [name for name in names if name not in peaks]
        if told:
            everything = threshold == -np.inf
            found += self._tell(told, peaks, levels, mode, max_detections, everything)
        return sorted((d for d in found if d.score >= least[d.keypoint]), key=lambda detection: -detection.score)

    def anchor_peaks(self, levels: Sequence[Level], mode: str = "scan", most: int = 200) -> dict[str, np.ndarray]:
        """Peaks (n, 4) of the context's anchors: x, y, score, scale."""
        assert self.context is not None
        least = {name: self.classifier(name, mode).threshold - self.context.floor for name in self.context.anchors}
        return self._peaks(levels, self.context.anchors, mode, least, most)

    def detect_many(self, images: Iterable[np.ndarray], n_jobs: int = 1, **options: Any) -> Iterator[list[Detection]]:
        """Find keypoints in one image after the other, several at a time.

        Parameters
        ----------
        images : iterable of ndarray
            As in :meth:`detect`; taken a few ahead of the answers.
        n_jobs : int
            Processes. The answers do not depend on it.
        **options
            Of :meth:`detect`.

        Yields
        ------
        list of Detection
            In the order of the images.

        Raises
        ------
        ValueError
            If ``n_jobs`` is not a whole number of at least 1; as :meth:`detect`, when it is that image's turn.
        """
        return self.each(partial(_detect, options), images, n_jobs)

    def each(self, work: Callable[[Self, Item], Answer], items: Iterable[Item], n_jobs: int = 1) -> Iterator[Answer]:
        """Yield ``work(detector, item)`` in the order of the items.

        Several at a time are done by processes, each with the detector in its memory: threads would wait for one another, since a
        third of a detection is spent in Python.

        Parameters
        ----------
        work : function
            Of a module, or a :func:`functools.partial` of one.
        items : iterable
            Taken a few ahead of the answers.
        n_jobs : int
            Processes.

        Raises
        ------
        ValueError
            If ``n_jobs`` is not a whole number of at least 1; as ``work``, when it is that item's turn.
        """
        if int(n_jobs) != n_jobs or n_jobs < 1:
            raise ValueError(f"n_jobs={n_jobs}: expected a whole number of at least 1")
        if n_jobs == 1:
            yield from (work(self, item) for item in items)
            return
        with tempfile.TemporaryDirectory() as folder:
            frozen = Path(folder) / "detector"
            frozen.write_bytes(pickle.dumps(self))
            processes = Parallel(int(n_jobs), return_as="generator", pre_dispatch=2 * int(n_jobs), batch_size=1)
            answers = processes(delayed(_remote)(frozen, work, item) for item in items)
            try:
                for answer, error in answers:
                    if error is not None:
                        raise error
                    yield answer
            finally:
                with warnings.catch_warnings():
                    warnings.simplefilter("ignore", UserWarning)  # that work is given up is what an early end means
                    answers.close()

    def classifier(self, keypoint: str, mode: str) -> KeypointModel:
        """Return the model that decides about the windows of a mode: that of the scan, or the verifier c1 behind c0."""
        guide = self.guides.get(keypoint) if mode == "prune+regress" else None
        return self.models[keypoint] if guide is None or guide.verifier is None else guide.verifier

    def default_threshold(self, keypoint: str, context: bool = True, mode: str | None = None) -> float:
        """Least score of a detection unless asked otherwise."""
        if context and self.context is not None and keypoint in self.context.refinements:
            return self.context.thresholds.get(keypoint, 0.0)
        return self.classifier(keypoint, self.check_mode(mode, [keypoint], context)).threshold

    def _looked_for(self, names: Sequence[str], context: bool) -> list[str]:
        """Keypoints to look for so that these can be answered, in the order of the model."""
        told = set(self.context.refinements) & set(names) if context and self.context is not None else set()
        needed = set(names) - told
        if told and self.context is not None:
            needed |= set(self.context.anchors)
        return [name for name in self.keypoints if name in needed]

    def _peaks(
        self, levels: Sequence[Level], names: Sequence[str], mode: str, least: dict[str, float], most: int
    ) -> dict[str, np.ndarray]:
        """Peaks of some keypoints, all on one pass over the pyramid."""
        windows: dict[str, list[np.ndarray]] = {name: [np.empty((0, 4))] for name in names}
        buffers = Buffers()
        for level in levels:
            for channels in self.strips(level, mode, buffers, len(names)):
                for name in names:
                    windows[name].append(self.score_strip(level, channels, name, mode))
        peaks = {}
        for name in names:
            x, y, scale, score = np.concatenate(windows[name]).T
            place = self.classifier(name, mode).localisation
            peaks[name] = find_peaks(x, y, scale, score, place, self.suppression, least[name], most)
        return peaks

    def _tell(
        self, names: Sequence[str], peaks: dict[str, np.ndarray], levels: Sequence[Level], mode: str, most: int, everything: bool
    ) -> list[Detection]:
        """Keypoints told from the anchors' peaks."""
        context = self.context
        assert context is not None
        thresholds = {name: self.classifier(name, mode).threshold for name in context.anchors}
        found = []
        for face in context.faces(peaks, thresholds, most):
            if not everything and face.score < context.least:
                continue
            for name in names:
                place, frame, verified = context.place(face, levels, name, self.pool, self.models[name])
                size = abs(frame.turn) / IED * self.pool.window
                found.append(Detection(name, place.real, place.imag, face.score + context.weight * verified, size))
        return found

    def pyramid(self, image: np.ndarray, min_size: float | None = None, max_size: float | None = None) -> list[Level]:
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

    def strips(
        self, level: Level, mode: str = "scan", buffers: Buffers | None = None, n_keypoints: int = 1
    ) -> Iterator[LevelChannels]:
        """Yield a level's tables, strip by strip: what they take of memory is bounded. With ``buffers``, each until the next."""
        height, width = level.image.shape[:2]
        margin = 0 if mode == "scan" else max(guide.margin for guide in self.guides.values())
        rows = max(1, STRIP // width, 4 * margin)
        # Measured: after a grid that was not pruned the windows around its points follow, after one keypoint others.
        expected = 4.0 if mode == "regress" else max(1.0, n_keypoints / 2)
        for top in range(0, height, rows):
            yield level_channels(level.image, self.pool, (top, min(height, top + rows)), margin, buffers, expected)

    def score_strip(self, level: Level, channels: LevelChannels, keypoint: str, mode: str = "scan") -> np.ndarray:
        """Return the windows of a strip that pass all rejection thresholds: (n, 4) x, y (image pixels), scale, score."""
        classifier = self.classifier(keypoint, mode)
        model = classifier.compiled(self.pool)
        if mode == "scan":
            scores = scan_level(channels, model)
            ys, xs = np.nonzero(scores > -np.inf)
            score = scores[ys, xs]
            ys = ys + channels.first
        else:
            prune = mode == "prune+regress"
            xs, ys = self.guides[keypoint].windows(channels, self.pool, prune, classifier.localisation)
            score = score_windows(channels, model, xs, ys)
            left = score > -np.inf
            xs, ys, score = xs[left], ys[left], score[left]
        xy = level.to_image(np.column_stack([xs, ys]))
        return np.column_stack([xy, np.full(len(xy), level.scale), score])

    def score_level(self, level: Level, keypoint: str, mode: str = "scan") -> np.ndarray:
        """The same of a whole level."""
        parts = [self.score_strip(level, channels, keypoint, mode) for channels in self.strips(level, mode)]
        return np.concatenate(parts)

    def save(self, path: str | Path) -> None:
        """Write the detector to a model file.

        Raises
        ------
        ValueError
            If the file cannot be written.
        """
        arrays, described = write_parts(self.models, self.guides, self.context)
        header = {
            "pool": self.pool.to_dict(),
            "keypoints": list(self.models),
            **described,
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
            models, guides, context = read_parts(path, arrays, header, pool)
            scales, suppression = int(header["scales_per_octave"]), float(header["suppression"])
            if not models or scales < 1 or not 0 <= suppression < 100:
                raise ValueError(f"keypoints={list(models)}, scales_per_octave={scales}, suppression={suppression}")
            return cls(models, pool, scales, suppression, dict(header["info"]), guides, context)
        except (KeyError, TypeError, AttributeError, OverflowError) as error:
            raise ValueError(f"{path}: damaged header ({type(error).__name__}: {error})") from None
        except ValueError as error:
            message = str(error)
            raise ValueError(message if message.startswith(str(path)) else f"{path}: damaged ({message})") from None


def _detect(options: dict[str, Any], detector: KeypointDetector, image: np.ndarray) -> list[Detection]:
    return detector.detect(image, **options)


_known: dict[Path, KeypointDetector] = {}  # in a process that works for another: its detector, and where that was found


def _remote(frozen: Path, work: Callable, item) -> tuple[Any, Exception | None]:
    """Return the answer of ``work``, or the exception, which has to wait for its turn."""
    if frozen not in _known:
        cv2.setNumThreads(1)
        _known.clear()
        _known[frozen] = pickle.loads(frozen.read_bytes())
    try:
        return work(_known[frozen], item), None
    except Exception as error:
        return None, error
