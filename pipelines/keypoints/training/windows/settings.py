"""Settings of the training of one classifier."""

import math
from dataclasses import dataclass

from .fitting import WindowFitSettings


@dataclass(frozen=True)
class TrainingSettings(WindowFitSettings):
    """Settings of the training of one classifier. Distances are in reference lengths unless said
    otherwise.

    Parameters
    ----------
    rounds : int
        Largest number of rounds of hard-negative mining; the fit after the last one is final.
    n_random : int
        Random negatives of the first fit.
    per_round, per_view : int
        Largest number of new false alarms of one round, and of one view.
    views_per_round : int
        Views (photographs and mirror images) scanned in one round.
    lowered : float
        How far the rejection thresholds are lowered for mining, in units of the score.
    ied_low, ied_high : float
        Range of the reference length in pixels of a pyramid level on which windows are positives;
        it defines `reference_length`.
    enlarged : float
        How much photographs are enlarged, from 1 to 4, where faces are smaller than that.
    positive_radius : float
        Largest distance of a positive window's pixel from the keypoint, in pixels of the level.
    negative_distance : float
        Least distance of a negative window from that keypoint of any face.
    negative_pixels : float
        Least distance of a negative window from it in pixels of the window's level; both hold.
    reject : float
        Share of the held-out positive windows that one rejection threshold may lose, before
        ``reject_margin``.
    reject_margin : float
        How far the rejection thresholds lie below that quantile, in units of the score.
    lost : float
        Share of the held-out keypoints that the rejection thresholds may lose; not for a scan, see
        ``reject``.
    precision : float
        Precision of the default threshold on the held-out photographs.
    seed : int
        Seed of all random choices.

    Other parameters are those of `WindowFitSettings`.
    """

    rounds: int = 7
    n_random: int = 20_000
    per_round: int = 14_000
    per_view: int = 100
    views_per_round: int = 400
    lowered: float = 0.7
    ied_low: float = 20.0
    ied_high: float = 40.0
    enlarged: float = 1.0
    positive_radius: float = 1.0
    negative_distance: float = 0.5
    negative_pixels: float = 0.0
    reject: float = 0.02
    reject_margin: float = 0.0
    lost: float = 0.005
    precision: float = 0.9
    seed: int = 0

    @property
    def reference_length(self) -> float:
        """Reference reference length of the detector in pixels of a level: the geometric mean of
        the range, to a tenth of a pixel.
        """
        return round(math.sqrt(self.ied_low * self.ied_high), 1)
