"""Reading and writing of point tracks.

Tracks are float arrays of shape (F, P, 2) that contain x and y in pixels, or NaN where a point is
not seen.
"""

import re
import zipfile
from collections.abc import Mapping
from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np

TRUTH = "_truth.mat"


@dataclass(frozen=True)
class TrackSequence:
    """Tracks of a sequence, with the true motions if known.

    Parameters
    ----------
    name : str
        Name of the sequence: the file name without its suffix.
    tracks : ndarray of shape (F, P, 2)
        Positions in pixels; NaN where a point is not seen.
    labels : ndarray of shape (P,), int, or None, default None
        True motion of each point, from 0 to K - 1.
    """

    name: str
    tracks: np.ndarray
    labels: np.ndarray | None = None

    @property
    def video(self) -> str:
        """Name of the video: that of the sequence without a suffix ``_g12``, ``_g13`` or ``_g23``.

        Examples
        --------
        >>> TrackSequence("cars2_06_g13", np.zeros((2, 1, 2))).video
        'cars2_06'
        """
        return re.sub(r"_g(12|13|23)$", "", self.name)

    @property
    def n_motions(self) -> int:
        """Number of true motions.

        Raises
        ------
        ValueError
            If the labels are not known.
        """
        if self.labels is None:
            raise ValueError(f"{self.name}: the sequence has no labels")
        return len(np.unique(self.labels))

    def shuffled(self, seed: int) -> "TrackSequence":
        """Return the sequence with its points in random order.

        In Hopkins155, the points are sorted by motion. Without shuffling, a result that depends on
        the order of the points would be optimistic.

        Parameters
        ----------
        seed : int
            Random seed for the permutation.

        Returns
        -------
        TrackSequence
        """
        order = np.random.default_rng(seed).permutation(self.tracks.shape[1])
        return replace(
            self,
            tracks=self.tracks[:, order],
            labels=None if self.labels is None else self.labels[order],
        )


def read_tracks(path: str | Path) -> TrackSequence:
    """Read tracks from a ``.mat`` (Hopkins155), ``.npz`` or ``.csv`` file.

    Parameters
    ----------
    path : path
        Input file. A file named ``NAME_truth.mat`` contains homogeneous pixel coordinates ``y``, of
        shape (3, P, F), and labels ``s``, of shape (P, 1), starting at 1. An ``.npz`` file contains
        ``tracks``, of shape (F, P, 2), and, if known, ``labels``, of shape (P,). A ``.csv`` file
        has the columns frame, point, x and y. An ``.npz`` file with ``visibility``, ``visibles`` or
        ``occluded`` is the output of co-tracker or TAPIR. Its ``tracks`` may also have shape (P, F,
        2) or (1, F, P, 2). The time axis is then the axis along which successive positions are
        closer together.

    Returns
    -------
    TrackSequence

    Raises
    ------
    ValueError
        If the file is missing or damaged, or has an unknown layout. The message names the file.
    """
    path = Path(path)
    if not path.is_file():
        raise ValueError(f"{path}: no such file")
    readers = {".mat": _read_official, ".npz": _read_npz, ".csv": _read_csv}
    if path.suffix.lower() not in readers:
        raise ValueError(f"{path}: unknown file type; expected {', '.join(readers)}")
    name = path.name.removesuffix(TRUTH) if path.name.endswith(TRUTH) else path.stem
    tracks, labels = readers[path.suffix.lower()](path)
    if tracks.ndim != 3 or tracks.shape[2] != 2 or 0 in tracks.shape:
        raise ValueError(
            f"{path}: tracks have shape {tracks.shape}; expected (n_frames, n_points, 2)"
        )
    if labels is not None:
        if labels.shape != (tracks.shape[1],):
            raise ValueError(
                f"{path}: labels have shape {labels.shape}; "
                f"expected one label for each of the {tracks.shape[1]} points"
            )
        if labels.dtype.kind in "fc" and np.isnan(labels).any():
            raise ValueError(
                f"{path}: the label of point {int(np.isnan(labels).argmax())} is NaN; "
                "expected a motion number for every point"
            )
        labels = np.unique(labels, return_inverse=True)[1].astype(np.int64)
    return TrackSequence(name, tracks, labels)


def _read_official(path: Path) -> tuple[np.ndarray, np.ndarray]:
    from scipy.io import loadmat
    from scipy.io.matlab import MatReadError

    try:
        content = loadmat(path)
    except (
        ValueError,
        TypeError,
        OSError,
        NotImplementedError,
        EOFError,
        LookupError,
        MatReadError,
    ) as error:
        raise ValueError(
            f"{path}: the file is not a readable MATLAB file ({' '.join(str(error).split())})"
        ) from None
    y, s = content.get("y"), content.get("s")
    if y is None or s is None:
        raise ValueError(
            f"{path}: the array y or s is missing; expected a Hopkins155 truth file with y (3, "
            "points, frames) and s (points, 1)"
        )
    if y.ndim != 3 or y.shape[0] != 3 or s.size != y.shape[1]:
        raise ValueError(
            f"{path}: y has shape {y.shape} and s has shape {s.shape}; "
            "expected (3, points, frames) and (points, 1)"
        )
    with np.errstate(divide="ignore", invalid="ignore"):
        tracks = (y[:2] / y[2]).transpose(2, 1, 0).astype(float)
    return tracks, s.ravel()


def _read_npz(path: Path) -> tuple[np.ndarray, np.ndarray | None]:
    if not zipfile.is_zipfile(path):
        raise ValueError(
            f"{path}: the file is not a readable npz file (it is not a zip archive, or it is "
            "truncated)"
        )
    try:
        with np.load(path, allow_pickle=False) as content:
            if "tracks" not in content:
                raise ValueError(
                    f"{path}: the array 'tracks' is missing; the file contains only "
                    f"{sorted(content.files)}"
                )
            tracks = content["tracks"]
            if tracks.dtype.kind not in "fiub":
                raise ValueError(f"{path}: tracks have dtype {tracks.dtype}; expected numbers")
            return _seen(tracks.astype(float), content), content.get("labels")
    except (OSError, zipfile.BadZipFile, EOFError, TypeError) as error:
        raise ValueError(
            f"{path}: the file is not a readable npz file ({str(error)[:120]})"
        ) from None
    except ValueError as error:
        message = f"{path}: the file is not a readable npz file ({str(error)[:120]})"
        raise ValueError(str(error) if str(path) in str(error) else message) from None


def _seen(tracks: np.ndarray, content: Mapping[str, np.ndarray]) -> np.ndarray:
    """Return tracks (F, P, 2) from co-tracker or TAPIR, with NaN where a point is not visible;
    other tracks are returned unchanged."""
    name = next((name for name in ("visibility", "visibles", "occluded") if name in content), None)
    if name is None:
        return tracks
    if tracks.ndim == 4 and len(tracks) == 1:
        tracks = tracks[0]
    visible = np.asarray(content[name])
    if tracks.ndim != 3 or visible.size != tracks[..., 0].size:
        raise ValueError(
            f"tracks have shape {tracks.shape} and {name} has shape {visible.shape}; "
            "expected one entry per frame and point"
        )
    hidden = visible.reshape(tracks.shape[:2]) > 0.5
    tracks = np.where((hidden if name == "occluded" else ~hidden)[..., None], np.nan, tracks)
    # Points move little between frames compared with the distances between points.
    steps = [
        np.nanmedian(np.abs(np.diff(tracks, axis=axis))) if np.isfinite(tracks).any() else 0.0
        for axis in (0, 1)
    ]
    return tracks.transpose(1, 0, 2) if steps[1] < steps[0] else tracks


def write_tracks(
    path: str | Path, tracks: np.ndarray, labels: np.ndarray, probability: np.ndarray
) -> None:
    """Write labelled tracks to a file.

    :func:`read_tracks` can read the formats except Parquet.

    Parameters
    ----------
    path : path
        Output file. An ``.npz`` file contains ``tracks``, of shape (F, P, 2), ``visible``, of shape
        (F, P), and ``labels`` and ``probability``, of shape (P,). ``.csv`` and ``.parquet`` files
        have the columns point, frame, x, y, visible, label and probability, with one row for each
        point and frame, from the first to the last frame in which the point is seen.
    tracks : ndarray of shape (F, P, 2)
        Positions in pixels; NaN where a point is not visible.
    labels : ndarray of shape (P,), int
        Index of the motion that each point follows; -1 if it is not assigned to any.
    probability : ndarray of shape (P,)
        Probability of each point's label; NaN if unknown.

    Raises
    ------
    ValueError
        If the suffix of the file name is not supported.
    """
    import pandas as pd

    path = Path(path)
    check_tracks_name(path)
    visible = np.isfinite(tracks).all(axis=2)
    if path.suffix.lower() == ".npz":
        with path.open("wb") as file:
            np.savez_compressed(
                file, tracks=tracks, visible=visible, labels=labels, probability=probability
            )
        return
    alive = np.logical_or.accumulate(visible) & np.logical_or.accumulate(visible[::-1])[::-1]
    point, frame = np.nonzero(alive.T)
    x, y = np.where(visible[..., None], tracks, np.nan)[frame, point].T
    columns = {
        "point": point,
        "frame": frame,
        "x": x,
        "y": y,
        "visible": visible[frame, point].astype(int),
    }
    table = pd.DataFrame(columns | {"label": labels[point], "probability": probability[point]})
    if path.suffix.lower() == ".csv":
        table.to_csv(path, index=False)
    else:
        table.to_parquet(path, index=False)


def check_tracks_name(path: Path) -> None:
    """Check that a file name has a supported suffix, and raise a ValueError otherwise."""
    if path.suffix.lower() not in (".npz", ".csv", ".parquet"):
        raise ValueError(
            f"{path}: unsupported file type for tracks; expected .npz, .csv or .parquet"
        )


def _read_csv(path: Path) -> tuple[np.ndarray, np.ndarray | None]:
    import pandas as pd

    try:
        table = pd.read_csv(path, skipinitialspace=True)
    except (ValueError, OSError) as error:
        raise ValueError(
            f"{path}: the file is not a readable table ({' '.join(str(error).split())})"
        ) from None
    missing = [c for c in ("frame", "point", "x", "y") if c not in table]
    if missing:
        raise ValueError(
            f"{path}: the column {missing[0]!r} is missing; expected frame, point, x and y"
        )
    if table.empty:
        raise ValueError(f"{path}: the table has no rows")
    for column in ("frame", "x", "y"):
        if not pd.api.types.is_numeric_dtype(table[column]):
            raise ValueError(f"{path}: column {column!r} contains text; expected numbers")
    if table[["frame", "point"]].isna().any(axis=None):
        raise ValueError(f"{path}: a row has no frame number or no point number")
    twice = table.duplicated(["frame", "point"])
    if twice.any():
        row = table[twice].iloc[0]
        raise ValueError(f"{path}: point {row['point']} appears twice in frame {row['frame']}")
    frames = np.unique(table["frame"])
    points, p = np.unique(
        table["point"].astype(str) if table["point"].dtype == object else table["point"],
        return_inverse=True,
    )
    tracks = np.full((len(frames), len(points), 2), np.nan)
    tracks[np.searchsorted(frames, table["frame"]), p] = table[["x", "y"]].to_numpy(float)
    return tracks, None


def read_sequences(folder: str | Path) -> list[TrackSequence]:
    """Read all sequences in a folder.

    Parameters
    ----------
    folder : path
        Folder that contains the files ``NAME/NAME_truth.mat`` of Hopkins155, or ``.npz`` files.

    Returns
    -------
    list of TrackSequence
        Sequences sorted by name.

    Raises
    ------
    ValueError
        If the folder is missing or empty, or a file is damaged.
    """
    folder = Path(folder)
    if not folder.is_dir():
        raise ValueError(f"{folder}: no such folder")
    files = sorted(folder.glob(f"*/*{TRUTH}")) or sorted(folder.glob("*.npz"))
    if not files:
        raise ValueError(
            f"{folder}: the folder contains no sequences; expected NAME/NAME{TRUTH} or .npz files"
        )
    return sorted((read_tracks(path) for path in files), key=lambda sequence: sequence.name)
