"""Search of a pyramid's windows with the classifiers of some keypoints."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from ...vision.pyramid import Level, gaussian_pyramid
from ...vision.windows.dense_scan import scan_level
from ...vision.windows.feature_pool import FeaturePool
from ...vision.windows.level_features import Buffers, LevelChannels, level_channels
from ...vision.windows.sparse_scan import score_windows
from .guided_search import Guide, Mode
from .non_maximum_suppression import DEFAULT_REFERENCE_IED, suppress_non_maxima
from .window_models import KeypointModel

STRIP_PIXELS = 1 << 20
"""Pixels of a level whose tables are in memory at a time. A choice: about 100 MB with orientation histograms."""

_REQUESTS_AFTER_GRID = 4.0
"""Requests for histograms in the mode "regress", as a multiple of the grid points: the windows around them follow (measured)."""


@dataclass
class WindowSearch:
    """Classifiers of windows and where they search; the parameters are those of `KeypointDetector`."""

    models: dict[str, KeypointModel]
    pool: FeaturePool = field(default_factory=FeaturePool)
    scales_per_octave: int = 4
    suppression: float = 0.3
    info: dict[str, Any] = field(default_factory=dict)
    guides: dict[str, Guide] = field(default_factory=dict)
    reference_ied: float = DEFAULT_REFERENCE_IED

    def classifier(self, keypoint: str, mode: str) -> KeypointModel:
        """Return the model that scores the windows of a mode: that of the scan, or the verifier c1 behind c0.

        Parameters
        ----------
        keypoint : str
            Name of the keypoint.
        mode : Mode
            Which windows are scored.

        Returns
        -------
        KeypointModel
        """
        guide = self.guides.get(keypoint) if mode == Mode.PRUNE else None
        return self.models[keypoint] if guide is None or guide.verifier is None else guide.verifier

    def pyramid(self, image: np.ndarray, min_size: float | None = None, max_size: float | None = None) -> list[Level]:
        """Return the levels to scan for windows of the given sizes.

        Parameters
        ----------
        image : ndarray of shape (H, W, 3), uint8
        min_size, max_size : float, optional
            As in :meth:`detect`.

        Returns
        -------
        list of Level
            From large to small.

        Raises
        ------
        ValueError
            If the sizes make no sense.
        """
        window = self.pool.window
        smallest = window if min_size is None else min_size
        if not window / 4 <= smallest < np.inf:
            raise ValueError(f"min_size={min_size}: expected at least {window / 4:g} pixels, a quarter of the window")
        if max_size is not None and not max_size >= smallest:
            raise ValueError(f"max_size={max_size}: expected at least min_size, {smallest:g} pixels")
        return gaussian_pyramid(
            image, self.scales_per_octave, min_scale=0.0 if max_size is None else window / max_size, max_scale=window / smallest
        )

    def strips(
        self, level: Level, mode: str = Mode.SCAN, buffers: Buffers | None = None, n_keypoints: int = 1
    ) -> Iterator[LevelChannels]:
        """Yield a level's tables, strip by strip: their memory is bounded.

        Parameters
        ----------
        level : Level
            Level of the pyramid.
        mode : Mode, default "scan"
            Other modes need rows around each strip.
        buffers : Buffers, optional
            Memory to reuse: each strip is valid until the next one.
        n_keypoints : int, default 1
            Keypoints that will be searched in each strip: a guess of the work, it does not change values.

        Yields
        ------
        LevelChannels
        """
        height, width = level.image.shape[:2]
        margin = 0 if mode == Mode.SCAN else max(guide.margin for guide in self.guides.values())
        rows = max(1, STRIP_PIXELS // width, 4 * margin)
        expected = _REQUESTS_AFTER_GRID if mode == Mode.REGRESS else max(1.0, n_keypoints / 2)
        for top in range(0, height, rows):
            yield level_channels(level.image, self.pool, (top, min(height, top + rows)), margin, buffers, expected)

    def score_strip(self, level: Level, channels: LevelChannels, keypoint: str, mode: str = Mode.SCAN) -> np.ndarray:
        """Score the windows of a strip.

        Parameters
        ----------
        level : Level
            Level of the pyramid.
        channels : LevelChannels
            Tables of the strip, from :meth:`strips` with the same mode.
        keypoint : str
            Name of the keypoint.
        mode : Mode, default "scan"
            Which windows are scored.

        Returns
        -------
        ndarray of shape (n, 4)
            Columns x, y (image pixels), scale and score of the windows that pass all rejection thresholds.
        """
        classifier = self.classifier(keypoint, mode)
        model = classifier.compiled(self.pool)
        if mode == Mode.SCAN:
            scores = scan_level(channels, model)
            ys, xs = np.nonzero(scores > -np.inf)
            score = scores[ys, xs]
            ys = ys + channels.first
        else:
            guide = self.guides[keypoint]
            xs, ys = guide.windows(channels, self.pool, mode == Mode.PRUNE, self.reference_ied, classifier.localisation)
            score = score_windows(channels, model, xs, ys)
            passed = score > -np.inf
            xs, ys, score = xs[passed], ys[passed], score[passed]
        xy = level.to_image(np.column_stack([xs, ys]))
        return np.column_stack([xy, np.full(len(xy), level.scale), score])

    def score_level(self, level: Level, keypoint: str, mode: str = Mode.SCAN) -> np.ndarray:
        """Score the windows of a whole level.

        Parameters
        ----------
        level : Level
            Level of the pyramid.
        keypoint : str
            Name of the keypoint.
        mode : Mode, default "scan"
            Which windows are scored.

        Returns
        -------
        ndarray of shape (n, 4)
            As :meth:`score_strip`.
        """
        parts = [self.score_strip(level, channels, keypoint, mode) for channels in self.strips(level, mode)]
        return np.concatenate(parts)

    def _search(
        self, levels: Sequence[Level], names: Sequence[str], mode: str, least: dict[str, float], max_detections: int
    ) -> dict[str, np.ndarray]:
        """Local maxima (n, 4) x, y, score, scale of some keypoints, all in one pass over the pyramid."""
        windows: dict[str, list[np.ndarray]] = {name: [np.empty((0, 4))] for name in names}
        buffers = Buffers()
        for level in levels:
            for channels in self.strips(level, mode, buffers, len(names)):
                for name in names:
                    windows[name].append(self.score_strip(level, channels, name, mode))
        maxima = {}
        for name in names:
            x, y, scale, score = np.concatenate(windows[name]).T
            place = self.classifier(name, mode).localisation
            maxima[name] = suppress_non_maxima(
                x, y, scale, score, place, self.reference_ied, self.suppression, least[name], max_detections
            )
        return maxima
