"""Damaged files of every kind: refused in one line, or answered properly."""

import io
import json

import cv2
import numpy as np
import pytest
from annealed.learners import FSARegressor, on_disk
from annealed.models import load_model, resolve_model
from annealed.models.files import read_header, read_model, write_model
from annealed.pipelines.common.video import write_video
from annealed.pipelines.keypoints.data import read_annotations
from annealed.pipelines.keypoints.faces import KEYPOINTS
from annealed.vision import Photograph, read_image
from annealed.vision.tracks.io import read_tracks
from annealed.vision.tracks.video import read_frames
from helpers import rigid_motions
from PIL import Image
from skimage.data import astronaut
from trials import altered, damaged

pytestmark = pytest.mark.slow
PHOTO = astronaut()[:96, 180:300]


def finite(values):
    return None if np.isfinite(np.asarray(values, float)).all() else "an answer that is not finite"


def use(model):
    """Answer a small question with any shipped model."""
    if hasattr(model, "detect"):
        return finite([[d.x, d.y, d.score, d.size] for d in model.detect(PHOTO)] or 0)
    if hasattr(model, "segment"):
        result = model.segment(rigid_motions(n_points=10, n_frames=8)[0], 2)
        return finite(result.scores)
    return finite(model.predict_proba([Photograph(PHOTO)]))


@pytest.mark.parametrize("name", ["faces", "motion", "pets"])
def test_damaged_models(tally, tmp_path, name):
    data, rng, path = (
        resolve_model(name).read_bytes(),
        np.random.default_rng(1),
        tmp_path / f"{name}_x.safetensors",
    )

    def must_fail():
        load_model(path)
        return "a damaged model was loaded"

    for i in range(560):
        changed = damaged(data, rng)
        if changed != data:
            path.write_bytes(changed)
            tally.attempt("damaged model files", f"{name} {i}", must_fail, path)
    tally.check("damaged model files")


@pytest.mark.parametrize("name", ["faces", "motion", "pets"])
def test_models_with_a_right_checksum_and_senseless_content(tally, tmp_path, name):
    rng, path = np.random.default_rng(2), tmp_path / f"{name}_x.safetensors"
    kind = read_header(resolve_model(name))["kind"]
    arrays, header = read_model(resolve_model(name), kind)
    skip = {"format", "version", "kind"}
    for i in range(120):
        some, described = (
            dict(arrays),
            {key: value for key, value in header.items() if key not in skip},
        )
        which = list(some)[int(rng.integers(len(some)))]
        array = some[which].copy()
        way = int(rng.integers(5))
        if way == 0 and array.size:
            extreme = (
                [np.nan, np.inf, -np.inf, 1e38, -1e38, 0]
                if array.dtype.kind == "f"
                else [0, 127, 255, 100]
            )
            array.flat[int(rng.integers(array.size))] = extreme[int(rng.integers(len(extreme)))]
            some[which] = array
        elif way == 1:
            some[which] = array[:-1] if array.ndim else array
        elif way == 2:
            del some[which]
        else:
            described = altered(described, rng)
        if not isinstance(described, dict):
            continue
        write_model(path, kind, some, described)
        tally.attempt(
            "model files with invalid content", f"{name} {i}", lambda: use(load_model(path)), path
        )
    tally.check("model files with invalid content")


def image_bytes(kind, mode, **options):
    buffer = io.BytesIO()
    Image.fromarray(PHOTO).convert(mode).save(buffer, kind, **options)
    return buffer.getvalue()


@pytest.mark.parametrize(
    "kind, mode",
    [
        *[("png", mode) for mode in ("RGB", "P", "LA", "1")],
        *[
            ("jpeg", "RGB"),
            ("jpeg", "CMYK"),
            ("tiff", "RGB"),
            ("gif", "P"),
            ("webp", "RGB"),
            ("bmp", "RGB"),
        ],
    ],
)
def test_damaged_images(tally, tmp_path, kind, mode):
    data, rng, path = image_bytes(kind, mode), np.random.default_rng(3), tmp_path / f"x.{kind}"

    def read():
        pixels = read_image(path)
        return (
            None
            if pixels.dtype == np.uint8 and pixels.ndim == 3 and pixels.size
            else f"{pixels.dtype} {pixels.shape}"
        )

    for i in range(80):
        path.write_bytes(damaged(data, rng))
        tally.attempt("images", f"{kind} {mode} {i}", read, path)
    tally.check("images")


def test_damaged_tracks(tally, tmp_path):
    from scipy.io import savemat

    rng, model = np.random.default_rng(4), load_model("motion")
    tracks, labels = rigid_motions(n_points=10, n_frames=6)
    np.savez(tmp_path / "a.npz", tracks=tracks, labels=labels)
    homogeneous = np.concatenate([tracks.transpose(2, 1, 0), np.ones((1, 20, 6))])
    savemat(tmp_path / "a_truth.mat", {"y": homogeneous, "s": labels[:, None] + 1})
    rows = [
        f"{f},{p},{x:.4f},{y:.4f}"
        for f, frame in enumerate(tracks)
        for p, (x, y) in enumerate(frame)
    ]
    (tmp_path / "a.csv").write_text("\n".join(["frame,point,x,y", *rows]))
    for name in ("a.npz", "a_truth.mat", "a.csv"):
        path = tmp_path / ("x" + name)
        for i in range(60):
            path.write_bytes(damaged((tmp_path / name).read_bytes(), rng))

            def segment(path=path):
                sequence = read_tracks(path)
                try:
                    return finite(model.segment(sequence.tracks, 2).scores)
                except ValueError as error:
                    raise ValueError(f"{path}: {error}") from None

            tally.attempt("tracks", f"{name} {i}", segment, path)
    tally.check("tracks")


def test_damaged_videos(tally, tmp_path):
    rng = np.random.default_rng(5)
    for name in ("a.avi", "a.mp4"):
        write_video(tmp_path / name, np.stack([PHOTO] * 12), 10.0)
        path = tmp_path / ("x" + name)
        for i in range(25):
            path.write_bytes(damaged((tmp_path / name).read_bytes(), rng))
            tally.attempt(
                "videos",
                f"{name} {i}",
                lambda p=path: finite([frame.size for frame in read_frames(p)] or 0),
                path,
            )
    tally.check("videos")


def annotations(folder):
    """A folder of one photograph in each format."""
    points = {name: (10.0 + 3 * i, 20.0 + i) for i, name in enumerate(KEYPOINTS)}
    rows = [f"a.png,0,{name},{x},{y},1" for name, (x, y) in points.items()]
    coco = {
        "images": [{"id": 1, "file_name": "a.png"}],
        "categories": [{"id": 1, "keypoints": list(KEYPOINTS)}],
        "annotations": [
            {
                "image_id": 1,
                "category_id": 1,
                "keypoints": [v for x, y in points.values() for v in (x, y, 2)],
            }
        ],
    }
    square = "\n".join(f"{20 + i % 30}.5 {20 + i // 2}.25" for i in range(68))
    texts = {
        "keypoints.csv": "\n".join(["image,face,keypoint,x,y,visible", *rows]),
        "coco.json": json.dumps(coco),
        "a.pts": f"version: 1\nn_points: 68\n{{\n{square}\n}}\n",
    }
    for name, text in texts.items():
        (folder / name).mkdir()
        cv2.imwrite(str(folder / name / "a.png"), PHOTO)
        (folder / name / name).write_text(text)
    return [(folder / name, folder / name / name) for name in texts]


def test_damaged_annotations(tally, tmp_path):
    rng = np.random.default_rng(6)
    for folder, path in annotations(tmp_path):
        data = path.read_bytes()
        for i in range(70):
            path.write_bytes(damaged(data, rng))
            tally.attempt(
                "annotations",
                f"{path.name} {i}",
                lambda f=folder: finite(read_annotations(f)[0].reference_length),
                folder,
            )
    tally.check("annotations")


def matrices(folder, X):
    """The same matrix in every format that fits out of core read: name -> (what is opened, the file
    that is damaged)."""
    import h5py
    import pandas as pd
    import zarr

    np.save(folder / "a.npy", X)
    with h5py.File(folder / "a.h5", "w") as file:
        file.create_dataset("X", data=X, chunks=(20, 8), compression="gzip")
    pd.DataFrame(X, columns=list("abcdefgh")).to_parquet(folder / "a.parquet")
    stored = zarr.open_array(
        str(folder / "a.zarr"), mode="w", shape=X.shape, chunks=(20, 8), dtype="f4"
    )
    stored[:] = X
    result = {name: (folder / name, folder / name) for name in ("a.npy", "a.h5", "a.parquet")}
    for i, path in enumerate(
        sorted(path for path in (folder / "a.zarr").rglob("*") if path.is_file())
    ):
        result[f"a.zarr {i}"] = folder / "a.zarr", path
    return result


def test_damaged_data_on_disk(tally, tmp_path):
    rng = np.random.default_rng(7)
    X = rng.standard_normal((60, 8)).astype(np.float32)
    y = X[:, 2] + 0.1 * rng.standard_normal(60)
    for name, (opened, file) in matrices(tmp_path, X).items():
        data = file.read_bytes()

        def fit(opened=opened):
            matrix = on_disk(opened)
            try:
                return finite(FSARegressor(2).fit(matrix, y).coef_)
            except ValueError as error:
                # sound, but for the values: the column is named
                if "X contains" in str(error) or " of X " in str(error):
                    return None
                raise

        for i in range(140 if name == "a.npy" else 30 if "zarr" in name else 100):
            file.write_bytes(damaged(data, rng))
            tally.attempt("data sets on disk", f"{name} {i}", fit, opened)
        file.write_bytes(data)
    tally.check("data sets on disk")
