"""Readers of tracks."""

import numpy as np
import pytest
from annealed.vision.tracks.io import read_sequences, read_tracks, write_tracks
from scipy.io import savemat


@pytest.mark.data
def test_official_files_and_npz_read_the_same(data_dir):
    official = read_sequences(data_dir / "hopkins155_official_sample")
    assert [s.name for s in official] == [
        "1R2RC",
        "1R2RCR_g12",
        "arm",
        "cars1",
        "kanatani1",
        "three-cars",
    ]
    for sequence in official:
        other = read_tracks(data_dir / "hopkins155" / f"{sequence.name}.npz")
        np.testing.assert_array_equal(sequence.tracks, other.tracks)
        np.testing.assert_array_equal(sequence.labels, other.labels)
    assert official[1].video == "1R2RCR"
    assert official[0].n_motions == 3


def test_csv_in_any_order_with_gaps(tmp_path):
    path = tmp_path / "walk.csv"
    path.write_text("point,frame,x,y\nb,2,3.5,4\na,1,1,2\nb,1,3,4\na,3,1.5,2\n")
    sequence = read_tracks(path)
    assert sequence.name == "walk" and sequence.labels is None
    nan = np.nan
    np.testing.assert_array_equal(sequence.tracks[:, :, 0], [[1, 3], [nan, 3.5], [1.5, nan]])
    with pytest.raises(ValueError, match="walk: the sequence has no labels"):
        _ = sequence.n_motions


def test_labels_may_be_any_numbers(tmp_path):
    np.savez(tmp_path / "a.npz", tracks=np.zeros((3, 4, 2)), labels=[7, 2, 7, 9])
    np.testing.assert_array_equal(read_tracks(tmp_path / "a.npz").labels, [1, 0, 1, 2])


def bad_files(folder):
    """Name, contents and expected message."""
    np.savez(folder / "none.npz", other=np.zeros(3))
    np.savez(folder / "flat.npz", tracks=np.zeros((3, 4)))
    np.savez(folder / "labels.npz", tracks=np.zeros((3, 4, 2)), labels=np.zeros(5))
    np.savez(folder / "object.npz", tracks=np.array([{}], dtype=object))
    (folder / "text.npz").write_text("no zip")
    (folder / "short.npz").write_bytes(b"PK")
    np.savez(folder / "complex.npz", tracks=np.zeros((3, 4, 2), complex))
    np.savez(folder / "words.npz", tracks=np.full((3, 4, 2), "a"))
    np.savez(folder / "nan.npz", tracks=np.zeros((3, 4, 2)), labels=[0, 1, np.nan, 1])
    savemat(folder / "a_truth.mat", {"y": np.zeros((3, 4, 5)), "s": np.ones((6, 1))})
    savemat(folder / "b_truth.mat", {"y": np.zeros((2, 4, 5)), "s": np.ones((4, 1))})
    savemat(folder / "c_truth.mat", {"x": np.zeros((3, 4, 5))})
    (folder / "d_truth.mat").write_text("no matlab")
    (folder / "column.csv").write_text("frame,point,x\n1,1,1\n")
    (folder / "words.csv").write_text("frame,point,x,y\n1,1,1,left\n")
    (folder / "twice.csv").write_text("frame,point,x,y\n1,1,1,1\n1,1,2,2\n")
    (folder / "empty.csv").write_text("")
    (folder / "head.csv").write_text("frame,point,x,y\n")
    (folder / "other.txt").write_text("")


@pytest.mark.parametrize(
    "name, message",
    [
        ("none.npz", "the array 'tracks' is missing"),
        ("flat.npz", r"shape \(3, 4\); expected \(n_frames, n_points, 2\)"),
        ("short.npz", r"not a readable npz file \(it is not a zip archive, or it is truncated\)"),
        ("complex.npz", "tracks have dtype complex128; expected numbers"),
        ("words.npz", "tracks have dtype <U1; expected numbers"),
        ("nan.npz", "the label of point 2 is NaN; expected a motion number for every point"),
        ("labels.npz", r"labels have shape \(5,\); expected one label for each of the 4 points"),
        ("object.npz", "not a readable npz"),
        ("text.npz", "not a readable npz"),
        ("a_truth.mat", r"y has shape \(3, 4, 5\) and s has shape \(6, 1\)"),
        ("b_truth.mat", r"y has shape \(2, 4, 5\)"),
        ("c_truth.mat", "the array y .* is missing"),
        ("d_truth.mat", "not a readable MATLAB file"),
        ("column.csv", "the column 'y' is missing"),
        ("words.csv", "column 'y' contains text"),
        ("twice.csv", "point 1 appears twice in frame 1"),
        ("empty.csv", "not a readable table"),
        ("head.csv", "no rows"),
        ("other.txt", "unknown file type"),
        ("missing.npz", "no such file"),
    ],
)
def test_bad_files(tmp_path, name, message):
    bad_files(tmp_path)
    with pytest.raises(ValueError, match=message) as error:
        read_tracks(tmp_path / name)
    assert name in str(error.value)
    assert "\n" not in str(error.value)


def test_bad_folders(tmp_path):
    with pytest.raises(ValueError, match="no such folder"):
        read_sequences(tmp_path / "nowhere")
    with pytest.raises(ValueError, match="contains no sequences"):
        read_sequences(tmp_path)


def published(order, name, rng):
    """Tracks of 40 slow points, some hidden in some frames, in the layout of co-tracker or
    TAPIR."""
    tracks = rng.uniform(0, 300, (1, 40, 2)) + np.cumsum(rng.normal(size=(40, 40, 2)), axis=0)[:30]
    visible = rng.uniform(size=(30, 40)) > 0.2
    seen = np.where(visible[..., None], tracks, np.nan)
    flags = ~visible if name == "occluded" else visible
    if order == "points first":
        return seen, tracks.transpose(1, 0, 2), flags.T
    return (
        seen,
        tracks[None] if order == "batch" else tracks,
        flags[None, :, :, None] if order == "batch" else flags,
    )


@pytest.mark.parametrize("order", ["frames first", "points first", "batch"])
@pytest.mark.parametrize("name", ["visibility", "visibles", "occluded"])
def test_layouts_of_co_tracker_and_tapir(order, name, tmp_path):
    seen, tracks, flags = published(order, name, np.random.default_rng(0))
    np.savez(tmp_path / "t.npz", **{"tracks": tracks, name: flags})
    np.testing.assert_array_equal(read_tracks(tmp_path / "t.npz").tracks, seen)
    np.savez(
        tmp_path / "t.npz",
        **{"tracks": tracks, name: flags[..., :5]}
        if order == "points first"
        else {"tracks": tracks, name: 1},
    )
    with pytest.raises(ValueError, match="expected one entry per frame and point"):
        read_tracks(tmp_path / "t.npz")


def test_written_tracks_are_read_again(tmp_path):
    import pandas as pd

    rng = np.random.default_rng(0)
    tracks = rng.uniform(0, 300, (6, 4, 2))
    tracks[:2, 1], tracks[3, 2], tracks[:, 3] = np.nan, np.nan, np.nan
    labels, probability = np.array([0, 1, 0, -1]), np.array([0.9, 0.8, 0.7, np.nan])
    for name in ("t.npz", "t.csv", "t.parquet"):
        write_tracks(tmp_path / name, tracks, labels, probability)
    np.testing.assert_array_equal(read_tracks(tmp_path / "t.npz").tracks, tracks)
    np.testing.assert_array_equal(read_tracks(tmp_path / "t.csv").tracks, tracks[:, :3])
    table = pd.read_parquet(tmp_path / "t.parquet")
    assert list(table) == ["point", "frame", "x", "y", "visible", "label", "probability"]
    assert len(table) == 6 + 4 + 6 and (table.visible == 0).sum() == 1
    pd.testing.assert_frame_equal(table, pd.read_csv(tmp_path / "t.csv"))
    with pytest.raises(ValueError, match="unsupported file type for tracks"):
        write_tracks(tmp_path / "t.txt", tracks, labels, probability)
