"""Features of a segmentation based on two-frame models, and combinations of features."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cache, partial

import numpy as np

from .dominant import MEASURES, dominant_measures
from .features import Feature, FeatureSet, SegmentationFeatures, evaluated
from .pairs.frame_pairs import KERNELS
from .pairs.geometry import GEOMETRIES
from .pairs.measures import CUTS, RANGES, RESIDUALS, RIVALS, cut_measures, fit_measures
from .tracks import Tracks, as_tracks

PARTS = ("residuals", "rivals", "gric", "cuts")
ALL_PARTS = (*PARTS, "dominant")


@dataclass(frozen=True)
class PairFeatures(FeatureSet):
    """Likelihood and prior features of segmentations, based on two-frame geometric models.

    In each of several pairs of frames, four models (planar affinity, homography, fundamental matrix
    and affine epipolar geometry) are fitted to those points of each motion that are visible in both
    frames. Missing entries need not be completed.

    Parameters
    ----------
    parts : tuple of str, default ("residuals", "rivals", "gric", "cuts")
        Groups of features. "residuals": distances of the points from the model of their motion.
        "rivals": fractions of points that the model of another motion fits better, and the
        differences in fit. "gric": the geometric robust information criterion of Torr [2]_, for
        each model and for the best model of each motion. "cuts": prior features, namely cuts
        between motions in graphs weighted by the number of shared motion hypotheses [1]_.
        "dominant": agreement with the deviations from the dominant motion, and prior features,
        namely cuts between neighbours with similar motion. All other features are likelihood
        features.

    Raises
    ------
    ValueError
        If the name of a group is unknown.

    References
    ----------
    .. [1] X. Xu, L.-F. Cheong, Z. Li, "Motion segmentation by exploiting complementary geometric
           models", CVPR 2018.
    .. [2] P. H. S. Torr, "Geometric motion segmentation and model selection", Philosophical
           Transactions of the Royal Society A 356 (1998).

    Examples
    --------
    >>> len(PairFeatures().get_feature_names_out())
    213
    >>> PairFeatures(("cuts",)).get_feature_names_out()[0]
    'affinity: prior, normalised cut'
    """

    parts: tuple[str, ...] = PARTS

    def __post_init__(self) -> None:
        for part in self.parts:
            if part not in ALL_PARTS:
                raise ValueError(
                    f"feature part {part!r} is unknown; expected one of {', '.join(ALL_PARTS)}"
                )

    def features(self) -> list[Feature]:
        """Return all features, in the order of the columns of :meth:`compute`.

        Returns
        -------
        list of Feature
            Features in the order of the columns.
        """
        listed = []
        wanted = [
            *(RESIDUALS if "residuals" in self.parts else ()),
            *(RIVALS if "rivals" in self.parts else ()),
        ]
        for geometry in GEOMETRIES:
            for name in RANGES:
                listed += [
                    Feature("likelihood", f"{geometry.name}, {name}", quantity)
                    for quantity in wanted
                ]
        if "gric" in self.parts:
            names = [*(geometry.name for geometry in GEOMETRIES), "best model"]
            listed += [
                Feature("likelihood", f"{model}, {name}", "GRIC")
                for name in RANGES
                for model in names
            ]
        if "cuts" in self.parts:
            listed += [Feature("prior", kernel, cut) for kernel in KERNELS for cut in CUTS]
        if "dominant" in self.parts:
            listed += [
                *(Feature("likelihood", "dominant motion", name) for name in MEASURES),
                *(Feature("prior", "neighbours", cut) for cut in CUTS),
            ]
        return listed

    def compute(
        self,
        tracks: Tracks | np.ndarray,
        segmentations: Sequence[np.ndarray],
        columns: np.ndarray | None = None,
    ) -> np.ndarray:
        """Compute the features of several segmentations of the same tracks.

        Parameters
        ----------
        tracks : Tracks or ndarray of shape (F, P, 2)
            Tracks in pixels.
        segmentations : sequence of ndarray of shape (P,)
            Labels of each segmentation.
        columns : ndarray of int or None, default None
            Columns to compute; the values of other columns are undefined. None means all columns.

        Returns
        -------
        ndarray of shape (n_segmentations, n_features)
            Features. Average residuals are logarithms of distances in pixels, and cuts are
            fractions in [0, 1].
        """
        tracks = as_tracks(tracks)
        labels = [np.asarray(one)[tracks.canonical_order] for one in segmentations]
        first = 0 if "residuals" in self.parts else len(RESIDUALS)
        last = len(RESIDUALS) + (len(RIVALS) if "rivals" in self.parts else 0)
        fits = cache(lambda: fit_measures(tracks.pairs, labels))
        blocks: list[tuple[int, Callable[[], np.ndarray]]] = []
        if first < last:
            blocks += [
                (last - first, partial(lambda *key: fits()[0](*key)[:, first:last], g.name, r))
                for g in GEOMETRIES
                for r in RANGES
            ]
        if "gric" in self.parts:
            blocks.append(
                (len(RANGES) * (len(GEOMETRIES) + 1), lambda: fits()[1].reshape(len(labels), -1))
            )
        if "cuts" in self.parts:
            blocks += [
                (
                    len(CUTS),
                    partial(lambda name: cut_measures(tracks.pairs.kernels[name], labels), name),
                )
                for name in KERNELS
            ]
        if "dominant" in self.parts:
            blocks += [
                (len(MEASURES), lambda: dominant_measures(tracks, labels)),
                (len(CUTS), lambda: cut_measures(tracks.neighbour_affinity(14), labels)),
            ]
        return evaluated(blocks, len(labels), columns)


@dataclass(frozen=True)
class JoinedFeatures(FeatureSet):
    """Features of several feature sets, concatenated by columns.

    Parameters
    ----------
    parts : tuple of SegmentationFeatures or PairFeatures
        Feature sets, in the order of the columns.

    Examples
    --------
    >>> len(JoinedFeatures().get_feature_names_out())
    709
    """

    parts: tuple[SegmentationFeatures | PairFeatures, ...] = (
        SegmentationFeatures(),
        PairFeatures(),
    )

    def features(self) -> list[Feature]:
        """Return all features, in the order of the columns of :meth:`compute`.

        Returns
        -------
        list of Feature
            Features in the order of the columns.
        """
        return [feature for part in self.parts for feature in part.features()]

    def compute(
        self,
        tracks: Tracks | np.ndarray,
        segmentations: Sequence[np.ndarray],
        columns: np.ndarray | None = None,
    ) -> np.ndarray:
        """Compute the features of several segmentations into the same number of motions.

        Parameters
        ----------
        tracks : Tracks or ndarray of shape (F, P, 2)
            Tracks in pixels.
        segmentations : sequence of ndarray of shape (P,)
            Labels of each segmentation.
        columns : ndarray of int or None, default None
            Columns to compute; the values of other columns are undefined. None means all columns.

        Returns
        -------
        ndarray of shape (n_segmentations, n_features)
            Columns of all feature sets.
        """
        tracks = as_tracks(tracks)
        blocks, start = [], 0
        for part in self.parts:
            stop = start + len(part.features())
            inside = (
                None if columns is None else columns[(columns >= start) & (columns < stop)] - start
            )
            blocks.append(part.compute(tracks, segmentations, inside))
            start = stop
        return np.concatenate(blocks, axis=1)


Features = SegmentationFeatures | PairFeatures | JoinedFeatures
