"""Segmentation of tracks and videos in files, and training of rankers."""

from collections import deque
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import cv2
import numpy as np

from ...models.files import replacing
from ...models.messages import first_of
from ...models.motion import (
    Segmentation,
    SegmentationRanker,
    background_of,
    joined,
    label_maps,
    label_probabilities,
)
from ...vision.tracks import (
    ALL_PARTS,
    REPRESENTATIONS,
    SHIPPED_FAMILIES,
    Features,
    JoinedFeatures,
    PairFeatures,
    SegmentationFeatures,
    Tracker,
    TrackSequence,
    open_video,
    read_frames,
    read_tracks,
    thin_tracks,
    write_tracks,
)
from ..common.video import write_video
from ..console import naming
from .benchmark import shuffled_tracks
from .drawing import COLOURS, draw_tracks, frames_on_black

Bar = Callable[[Iterable], Iterable]  # function that wraps an iterable and shows progress
TRACK_FILES = (".npz", ".csv", ".mat")
# Maximum number of files that are segmented without compilation, at a cost of half a second per
# file (heuristic)
MAX_FEW = 4
# Weights of a user's sequence relative to a synthetic sequence in the ranking and in the choice of
# the number of motions, chosen by cross-validation (experiments/notebook/motion.md)
OWN_WEIGHT, OWN_WEIGHT_OF_NUMBERS = 10, 3
UNCLEAR = 0.8  # below this probability, the second number of motions is also reported (heuristic)
# Maximum number of tracks of a video; longer tracks have priority. Heuristic: the affinities of all
# pairs are in memory
MAX_TRACKS = 1500


@dataclass(frozen=True)
class FileSegmentation:
    """Segmentation of one file.

    ``labels`` contains one entry per track; -1 denotes outliers and video tracks with too few
    frames. ``unseen`` contains the indices of tracks that are assigned to the largest motion
    because of insufficient data. ``tracks``, of shape (F, P, 2), contains positions in pixels, or
    NaN where a point is not visible.
    """

    sequence: str
    labels: np.ndarray
    segmentation: Segmentation
    unseen: np.ndarray
    tracks: np.ndarray

    def record(self) -> dict[str, Any]:
        """Return the JSON object that the command line prints."""
        result = self.segmentation
        listed = zip(self.segmentation.candidates, self.segmentation.scores)
        return {
            "sequence": self.sequence,
            "motions": result.n_motions,
            "probability_of_motions": result.probabilities[result.n_motions],
            "numbers": [
                {"motions": number, "probability": probability}
                for number, probability in result.probabilities.items()
            ],
            "labels": self.labels.tolist(),
            "unseen": self.unseen.tolist(),
            "candidates": [
                {"family": c.family, "dimension": c.dimension, "score": float(score)}
                for c, score in listed
            ],
        }

    def describe(self) -> str:
        """Return a line of text with the name of the file and the size of each motion."""
        sizes = np.bincount(self.labels[self.labels >= 0], minlength=self.segmentation.n_motions)
        text = (
            f"{self.sequence}: {self.segmentation.n_motions} motions of "
            f"{', '.join(str(n) for n in sizes)} tracks"
        )
        (_, probability), *others = self.segmentation.probabilities.items()
        if probability < 1.0:
            text += f"; probability of this number {probability:.2f}"
        if probability < UNCLEAR and others:
            text += f", of {others[0][0]} motions {others[0][1]:.2f}"
        if len(self.unseen):
            text += (
                f"; {len(self.unseen)} tracks are visible in too few frames and were assigned "
                f"to the largest motion: {first_of(list(map(str, self.unseen)), 10)}"
            )
        return text


def segment_file(
    ranker: SegmentationRanker,
    path: Path,
    n_motions: int | None,
    overlay: Path | None = None,
    outliers: bool = False,
    on_frame: Callable[[], object] | None = None,
    tracks_out: Path | None = None,
    masks: Path | None = None,
) -> FileSegmentation:
    """Segment a file of tracks or a video.

    Parameters
    ----------
    ranker : SegmentationRanker
    path : path
        ``.npz``, ``.csv`` or ``.mat``; any other file is opened as a video.
    n_motions : int or None
        Number of motions. If None, it is chosen automatically.
    overlay : path or None, default None
        Output video with coloured tracks, on a black background if the file contains only tracks.
    outliers : bool, default False
        Whether to assign the label -1 to points that do not fit any motion.
    on_frame : function or None, default None
        Function called without arguments after each tracked frame of a video.
    tracks_out : path or None, default None
        Output file for the labelled tracks; see :func:`.io.write_tracks`.
    masks : path or None, default None
        Output folder for masks of the moving objects in a video; see :func:`write_overlay`.

    Returns
    -------
    FileSegmentation

    Raises
    ------
    ValueError
        If the file cannot be read or segmented, or the overlay cannot be written.
    """
    if path.exists() and not path.is_file():
        raise ValueError(
            f"{path}: this is {'a folder' if path.is_dir() else 'not a regular file'}; expected "
            "tracks or a video"
        )
    if path.suffix.lower() in TRACK_FILES:
        sequence = read_tracks(path)
        result = ranker.segment(sequence.tracks, n_motions, outliers)
        if masks is not None:
            raise ValueError(f"{path}: masks require images; expected a video instead of tracks")
        if overlay is not None:
            write_video(overlay, frames_on_black(sequence.tracks, result.labels), 10.0)
        _write_tracks(tracks_out, sequence.tracks, result.labels)
        return FileSegmentation(
            sequence.name, result.labels, result, result.unseen, sequence.tracks
        )
    tracks = Tracker().track(path, on_frame)
    long_tracks, kept = thin_tracks(tracks, max(2, min(len(tracks), 20, max(5, len(tracks) // 4))))
    if not len(kept):
        raise ValueError(f"{path}: no point could be tracked over enough frames")
    if len(kept) > MAX_TRACKS:
        seen = np.isfinite(long_tracks).all(axis=2).sum(axis=0)
        longest = np.sort(np.argsort(-seen, kind="stable")[:MAX_TRACKS])
        long_tracks, kept = long_tracks[:, longest], kept[longest]
    result = ranker.segment(long_tracks, n_motions, outliers)
    labels = np.full(tracks.shape[1], -1, np.int64)
    labels[kept] = result.labels
    _write_tracks(tracks_out, tracks, labels)
    if masks is not None or overlay is not None:
        write_overlay(path, overlay, tracks, labels, masks)
    return FileSegmentation(path.stem, labels, result, kept[result.unseen], tracks)


def _write_tracks(out: Path | None, tracks: np.ndarray, labels: np.ndarray) -> None:
    if out is not None:
        with replacing(out) as temporary:
            write_tracks(temporary, tracks, labels, label_probabilities(tracks, labels))


def write_overlay(
    video: str | Path,
    out: Path | None,
    tracks: np.ndarray,
    labels: np.ndarray,
    masks: Path | None = None,
) -> None:
    """Write a video with coloured tracks, and masks of the moving objects.

    The mask of the first frame is named ``000001.png.png``, as COLMAP expects for the image
    ``000001.png`` that ``ffmpeg -i VIDEO %06d.png`` writes. Its values are 0 (not to be matched) on
    moving objects and 255 in the background, which is the motion whose tracks span the largest
    area.

    Parameters
    ----------
    video : path
        Tracked video.
    out : path or None
        Output video. Its suffix (mp4 or avi) determines the container format. If None, only masks
        are written.
    tracks : ndarray of shape (F, P, 2)
        Positions in pixels; NaN where a point is not visible.
    labels : ndarray of shape (P,), int
        Motion of each point; points with label -1 are not drawn.
    masks : path or None, default None
        Existing folder for the masks. If given, the video also shows the masks in the colours of
        the motions.

    Raises
    ------
    ValueError
        If the video cannot be read, or a file cannot be written.
    """
    background, frames = background_of(tracks, labels), read_frames(video)
    labelled = (
        ((frame, None) for frame in frames) if masks is None else label_maps(frames, tracks, labels)
    )

    def drawn() -> Iterator[np.ndarray]:
        for t, (frame, motions) in zip(range(len(tracks)), labelled):
            if masks is not None and motions is not None:
                moving = (motions >= 0) & (motions != background)
                with replacing(masks / f"{t + 1:06d}.png.png") as temporary:
                    temporary.write_bytes(
                        cv2.imencode(".png", np.where(moving, 0, 255).astype(np.uint8))[1].tobytes()
                    )
                frame = np.where(
                    moving[..., None], frame // 2 + COLOURS[motions % len(COLOURS)] // 2, frame
                )
            yield draw_tracks(frame, tracks, labels, t)

    if out is None:
        deque(drawn(), 0)
        return
    capture = open_video(video)
    rate = capture.get(cv2.CAP_PROP_FPS) or 25.0
    capture.release()
    write_video(out, drawn(), rate)


def shipped_settings(min_motion_size: int = 0) -> SegmentationRanker:
    """Return an untrained ranker with the settings of the shipped model."""
    from .methods import SHIPPED

    features = JoinedFeatures((SegmentationFeatures(), PairFeatures(ALL_PARTS)))
    return SegmentationRanker(SHIPPED_FAMILIES, features, SHIPPED, min_motion_size)


def shipped_columns(features: Features) -> np.ndarray:
    """Return the features that the shipped model may select.

    Distances to subspaces in spaces with more than 2.5 dimensions per motion are excluded, since
    they are slow to compute and do not improve the ranking.
    """
    slow = [
        f.space.startswith(tuple(REPRESENTATIONS)) and not f.space.endswith((" 2K", " 2.5K"))
        for f in features.features()
    ]
    return np.flatnonzero(features.is_prior() | ~np.array(slow))


def train_ranker(
    sequences: Sequence[TrackSequence],
    min_motion_size: int = 0,
    synthetic: int = 0,
    driving: int = 0,
    progress: Bar = iter,
) -> SegmentationRanker:
    """Train a ranker on labelled sequences.

    Parameters
    ----------
    sequences : sequence of TrackSequence
    min_motion_size : int, default 0
        Minimum number of points in a motion. Candidates with smaller motions are not considered.
    synthetic : int, default 0
        Number of synthetic perspective sequences, at most 80.
    driving : int, default 0
        Number of synthetic driving scenes of each kind in ``TRAINING_KINDS``.
    progress : function
        Function that wraps an iterable and shows its progress.

    Returns
    -------
    SegmentationRanker

    Raises
    ------
    ValueError
        If a sequence has no labels or cannot be segmented. The message names the sequence.
    """
    from .driving import TRAINING_KINDS, driving_sequence
    from .synthetic import TRAINING_SEEDS, perspective_sequence

    ranker = shipped_settings(min_motion_size)
    columns = shipped_columns(ranker.features)
    made = [perspective_sequence(seed) for seed in TRAINING_SEEDS[:synthetic]]
    made += [driving_sequence(kind, seed) for seed in range(driving) for kind in TRAINING_KINDS]
    every = [*sequences, *made]
    sets, mixed, numbers = [], [], [one.n_motions for one in every]
    for number, sequence in enumerate(progress(every)):
        with naming(sequence.name):
            tracks, shuffled = shuffled_tracks(sequence, number)
            by_number = ranker.sets_by_number(tracks, shuffled, columns)
            k = numbers[number]
            sets.append(by_number.get(k) or ranker.candidate_set(tracks, k, shuffled, columns))
            mixed.append(joined(list(by_number.values())))
    n = len(sequences)
    ranker.fit(
        sets[:n] * OWN_WEIGHT + sets[n:],
        mixed[:n] * OWN_WEIGHT_OF_NUMBERS + mixed[n:],
        numbers[:n] * OWN_WEIGHT_OF_NUMBERS + numbers[n:],
        columns,
    )
    ranker.training = {
        "sequences": len(sequences),
        "videos": len({s.video for s in sequences}),
        "names": [s.name for s in sequences],
        "synthetic": [s.name for s in made],
    }
    return ranker
