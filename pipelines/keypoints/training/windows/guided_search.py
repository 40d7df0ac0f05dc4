"""Training of the parts of Algorithm 3 of Barbu et al. (2014), section 7.2.

The parts are a cascade c0 for whole faces and, for each keypoint, a regressor f and a classifier
c1.
"""

import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any, ClassVar, NamedTuple

import numpy as np

from .....models.keypoints.detector import KeypointDetector
from .....models.keypoints.windows.window_models import FaceCascade, Guide, KeypointModel, Mode
from .....vision import FeaturePool, Level, extract_patches, gaussian_pyramid
from ....common.file_map import Jobs
from .classifier import ClassifierTraining
from .fitting import TrainingSettings, WindowFitSettings, fit_offsets
from .views import SCALES_PER_OCTAVE, NamedView, View, each, open_view, positive_windows, since

#: Settings of c1. Negatives lie closer to the keypoint than in a scan, since the guide's windows
#: lie around it and determine the accuracy of the position (4 pixels or more in Barbu et al.
#: (2014), section 7.2).
GUIDED = TrainingSettings(
    rounds=4, per_round=12_000, negative_distance=0.15, negative_pixels=4.0, copies="none"
)


#: Scale of the level for the search of a face, relative to the level of its keypoints.
COARSER = 2.0**-1.5
#: Settings of the face cascade, whose windows of 24 pixels show whole faces.
FACE_CASCADE = TrainingSettings(
    n_features=300,
    rounds=3,
    per_round=12_000,
    views_per_round=300,
    ied_low=20.0 * COARSER,
    ied_high=40.0 * COARSER,
    lost_fraction=0.01,
    copies="all",
)


@dataclass(frozen=True)
class GuideSettings:
    """Settings of a guide, which is a regressor that predicts a keypoint from nearby windows.

    Distances are in pixels of a pyramid level.

    Parameters
    ----------
    n_offsets : int
        Number of features that the guide selects, which are shared by dx and dy.
    near : float
        Maximum distance between the keypoint and the windows on which the guide is trained.
    ied_low, ied_high : float
        Range of reference lengths, in pixels of a pyramid level, for which windows near a keypoint
        are sampled.
    per_level : int
        Number of windows near a keypoint that are sampled from each level of a view.
    first_rows : int
        Number of rows sampled for the first stage of the fit.
    shrinkage : float
        Ridge penalty of the guide. It is required since windows of the same face are very
        similar.
    seed : int
        Random seed.
    """

    n_offsets: int = 1000
    near: float = 10.0
    ied_low: float = 20.0
    ied_high: float = 40.0
    per_level: int = 2
    first_rows: int = 6_000
    shrinkage: float = 0.1
    seed: int = 0


class Near(NamedTuple):
    """Windows near a keypoint, and the offset (dx, dy) from each window to the keypoint.

    The windows are stored as patches of shape (n, 26, 26, 3).
    """

    patches: np.ndarray
    offsets: np.ndarray


def near_windows(view: View, s: GuideSettings, rng: np.random.Generator, window: int) -> Near:
    """Sample windows around the visible keypoints in a view.

    The windows are taken from the pyramid levels at which the reference length of the faces is
    between ``ied_low`` and ``ied_high``.
    """
    seen = view.visible & np.isfinite(view.points).all(axis=1)
    patches, offsets = [np.empty((0, window + 2, window + 2, 3), np.uint8)], [np.empty((0, 2))]
    if not seen.any():
        return Near(patches[0], offsets[0])
    low, high = (
        s.ied_low / view.reference_length[seen].max(),
        s.ied_high / view.reference_length[seen].min(),
    )
    for level in gaussian_pyramid(
        view.pixels, SCALES_PER_OCTAVE, min_scale=low, max_scale=min(high, 1.0)
    ):
        xy = positive_windows(level, view, (s.ied_low, s.ied_high), s.near)
        xy = xy[rng.permutation(len(xy))[: s.per_level]]
        points = level.from_image(view.points[seen])
        nearest = np.hypot(*(xy[:, None] - points[None]).transpose(2, 0, 1)).argmin(axis=1)
        patches.append(extract_patches(level.image, xy[:, 0], xy[:, 1], window))
        offsets.append(points[nearest] - xy)
    return Near(np.concatenate(patches), np.concatenate(offsets))


def train_guide(
    keypoint: str,
    views: Sequence[NamedView],
    held_out_views: Sequence[NamedView],
    settings: GuideSettings,
    pool: FeaturePool,
    say: Callable[[str], None] = print,
    n_jobs: Jobs = 1,
) -> tuple[Guide, dict[str, float]]:
    """Train the guide of a keypoint.

    The function also returns its median error, in pixels, on the held-out views.
    """
    s, clock = settings, time.monotonic()

    def near(part: Sequence[NamedView], salt: int) -> Near:
        def sample(item: tuple[int, NamedView]) -> Near:
            number, (image, flip) = item
            return near_windows(
                open_view(image, keypoint, flip),
                s,
                np.random.default_rng([s.seed, salt, number]),
                pool.window,
            )

        return Near(*map(np.concatenate, zip(*each(enumerate(part), sample, n_jobs))))

    fitted, reference = near(views, 1), near(held_out_views, 2)
    if not len(fitted.patches) or not len(reference.patches):
        raise ValueError(
            f"{keypoint}: no face with a reference length above {s.ied_low:g} px has a "
            "visible point; expected at least one face for training and one held out"
        )
    fit = WindowFitSettings(n_features=s.n_offsets, first_rows=s.first_rows, shrinkage=s.shrinkage)
    offsets = fit_offsets(*fitted, pool, fit, [s.seed, 3])
    error = np.hypot(*(offsets.predict(reference.patches, pool) - reference.offsets).T)
    say(
        f"{keypoint}: regressor trained on {len(fitted.patches)} windows, median error "
        f"{np.median(error):.2f} px, {since(clock)}"
    )
    return Guide(offsets), {"offset_error": float(np.median(error))}


@dataclass
class GuidedTraining(ClassifierTraining):
    """Trainer of classifiers on the windows that the face cascade and the guides propose.

    The rejection thresholds are such that at most a given fraction of the held-out keypoints is
    lost.
    """

    face_cascade: FaceCascade | None = None
    guides: dict[str, Guide] = field(default_factory=dict)

    stage: ClassVar[str] = "classifier"
    mode: ClassVar[Mode] = Mode.PRUNE
    after: ClassVar[float | None] = 0.0

    def detector(self, keypoint: str, model: KeypointModel, **more: Any) -> KeypointDetector:
        """Return a detector whose model scores the windows that the guide proposes."""
        return super().detector(
            keypoint,
            model,
            guides={keypoint: self.guides[keypoint]},
            face_cascade=self.face_cascade,
            **more,
        )

    def candidates(self, keypoint: str) -> Callable[[Sequence[Level]], list[np.ndarray]]:
        """Return a function that computes the windows proposed by the guide on each level."""
        parts: dict[str, Any] = {"guides": self.guides, "face_cascade": self.face_cascade}
        detector = KeypointDetector(
            {},
            self.pool,
            SCALES_PER_OCTAVE,
            reference_length=self.settings.reference_length,
            **parts,
        )
        return lambda levels: detector.search.proposed_windows(levels, keypoint)


class FaceCascadeTraining(ClassifierTraining):
    """Trainer of the classifier for whole faces, with hard-negative mining in all windows.

    The rejection thresholds are such that at most a given fraction of the held-out faces is lost.
    """

    stage: ClassVar[str] = "face_cascade"
    after: ClassVar[float | None] = (
        20_000.0  # cost of the search around one accepted window (heuristic)
    )
