"""Benchmarks that nobody imports rot: each one is named on a page, imports, and explains its
options."""

import importlib.util
import json
import sys
from pathlib import Path

import numpy as np
import pytest
from annealed_experiments.tables.metric import sdist_simulated
from helpers import rigid_motions

ROOT = Path(__file__).resolve().parents[1]
SHARED = {"common", "layouts"}  # imported by scripts
SCRIPTS = sorted({path.stem for path in (ROOT / "benchmarks").glob("*.py")} - SHARED)
# What the projects that they compare with bring; the scripts that need it say so on their pages.
OPTIONAL = {  # module and extra
    "scale_dask": ("distributed", "dask"),
    "dask_boosting": ("distributed", "dask"),
    "torch_devices": ("torch", "torch"),
}
NOT_OF_READERS = {"faces_others"}  # started by faces_comparison


def load(name):
    sys.path.insert(0, str(ROOT / "benchmarks"))
    try:
        spec = importlib.util.spec_from_file_location(
            f"benchmark_{name}", ROOT / "benchmarks" / f"{name}.py"
        )
        module = importlib.util.module_from_spec(spec)
        spec.loader.exec_module(module)
    finally:
        sys.path.remove(str(ROOT / "benchmarks"))
    return module


@pytest.mark.parametrize("name", SCRIPTS)
def test_every_benchmark_imports_and_explains_its_options(name, capsys):
    if name in OPTIONAL:
        module, extra = OPTIONAL[name]
        pytest.importorskip(module, reason=f"needs annealed[{extra}]")
    with pytest.raises(SystemExit) as end:
        load(name).main(["--help"])
    assert end.value.code == 0 and capsys.readouterr().out.startswith("usage:")


def test_every_benchmark_is_named_on_a_page():
    pages = "".join(
        path.read_text()
        for folder in ("docs", "experiments")
        for path in (ROOT / folder).rglob("*.md")
    )
    assert [
        name
        for name in SCRIPTS
        if f"benchmarks/{name}.py" not in pages and name not in NOT_OF_READERS
    ] == []


def test_logical_lines_of_code(capsys):
    lines = load("code_lines")
    source = (
        '"""What it is."""\n\n# why\nx = """a\nb"""\n\n\ndef f():\n    "One line."\n    return '
        "(\n        x\n    )\n"
    )
    assert lines.code_lines(source) == 3
    n_lines = lines.count(ROOT)
    assert n_lines["all"] > n_lines["pipelines"] > 1000
    assert lines.main(["--ceiling", str(n_lines["all"])]) == 0
    assert lines.main(["--ceiling", str(n_lines["all"] - 1)]) == 1
    assert (
        f"{n_lines['all']} logical lines, expected at most {n_lines['all'] - 1}"
        in capsys.readouterr().err
    )


def test_a_journey_counts_first_calls_and_stays():
    journeys = load("journeys")
    row = journeys.measure(journeys.paper)
    assert (
        row["returns"] == row["stays"] - row["modules"]
        and row["calls"] >= row["functions"] >= row["stays"]
    )
    assert sum(row["entries"].values()) == row["stays"] and len(row["entries"]) == row["modules"]
    assert sum(map(len, row["functions_of"].values())) == row["functions"]
    assert "FSAEstimator.fit" in row["functions_of"]["learners.fsa.estimators"]
    assert row == journeys.measure(journeys.paper)


def test_limits_of_journeys(capsys, monkeypatch):
    journeys = load("journeys")
    monkeypatch.setitem(journeys.LIMITS, "paper", {"modules": 1})
    assert journeys.main(["--only", "paper", "--limits", "--json"]) == 1
    printed = capsys.readouterr()
    assert (
        json.loads(printed.out)["rows"][0]["journey"] == "paper"
        and "modules, expected at most 1" in printed.err
    )
    monkeypatch.setitem(journeys.LIMITS, "paper", {"modules": 1000})
    assert journeys.main(["--only", "paper", "--limits", "--modules"]) == 0
    assert "  learners.fsa.estimators, 4: " in capsys.readouterr().out


def test_several_journeys_run_in_processes_of_their_own(capsys):
    journeys = load("journeys")
    assert (
        journeys.main(["--only", "segment", "select", "--json"]) == 0
    )  # a process has the commands of one call
    rows = json.loads(capsys.readouterr().out)["rows"]
    assert [row["journey"] for row in rows] == ["segment", "select"]
    assert (
        "vision.tracks.candidates" in rows[0]["entries"]
        and "vision.tracks.candidates" not in rows[1]["entries"]
    )


def test_runs_are_removed_as_tracks_are_lost():
    made = load("motion_gaps")
    tracks, truth = rigid_motions(2, 20, 20)
    gaps = made.without_runs(made.TrackSequence("a", tracks, truth), 0.3, 0)
    seen = np.isfinite(gaps.tracks).all(axis=2)
    assert abs(1 - seen.mean() - 0.3) < 0.01 and seen.sum(axis=0).min() >= 3
    assert (
        np.abs(np.diff(seen.astype(int), axis=0)).sum(axis=0) <= 1
    ).all()  # at one end of a track
    np.testing.assert_array_equal(gaps.tracks[seen], tracks[seen])


@pytest.mark.data
def test_a_face_that_leaves_and_comes_back_keeps_its_person(data_dir, tmp_path):
    made = load("faces_persons")
    images = [
        im
        for im in made.read_annotations(data_dir / "faces" / "train")
        if len(im.reference_length) == 1 and made.np.isfinite(im.instances).all()
    ]
    rng = made.np.random.default_rng(0)
    paths, picture = (
        made.paths_of("leave and come back", 45, rng),
        made.np.full((480, 640, 3), 120, made.np.uint8),
    )
    made.write_video(
        tmp_path / "v.avi",
        made.frames_of([made.Pasted(image) for image in images[:20:10]], paths, picture, rng),
        25.0,
    )
    n_switches, n_found, n_shown = made.switches(
        made.detect_video(made.load_model("faces"), str(tmp_path / "v.avi")), paths
    )
    assert n_switches == 0 and n_found > 0.8 * n_shown


@pytest.mark.data
def test_annotated_heads_of_pets(data_dir, tmp_path):
    made = load("keypoints_dlib")
    names = {}
    for part, n_pictures in (("train", 110), ("test", 40)):
        made.copy_heads(data_dir, tmp_path / part, part)
        schema = made.schema_of(tmp_path / part)
        assert (
            schema.mirrored
            and schema.opposite["left_ear_tip"] == "right_ear_tip"
            and schema.opposite["nose"] == "nose"
        )
        images = made.read_objects(tmp_path / part, schema)
        names[part] = {image.name for image in images} | {
            path.name for path in made.list_images(tmp_path / part / "background")
        }
        assert len(images) == n_pictures and len(names[part]) == n_pictures + 60
        for image in images:
            x, y = image.instances[image.visible].T
            x0, y0, x1, y1 = image.boxes[0]
            assert (
                image.visible.sum() >= 3
                and x0 <= x.min() <= x.max() <= x1
                and y0 <= y.min() <= y.max() <= y1
            )
            assert x1 - x0 == pytest.approx(y1 - y0, abs=0.2)
    assert not names["train"] & names["test"]


# What metric-learn has: fit stops at once, or works until it is stopped.
METRIC_LEARN = """
import numpy as np

class LMNN:
    def __init__(self, n_neighbors, random_state):
        self.n_neighbors = n_neighbors

    def fit(self, X, y):
        L = np.diag([2.0] * X.shape[1])
        while len(X) > 500:
            L[0, 0] += 1.0
        self.components_ = L
        return self
"""


@pytest.fixture
def python(tmp_path, monkeypatch):
    (tmp_path / "metric_learn.py").write_text(METRIC_LEARN)
    monkeypatch.setenv("PYTHONPATH", str(tmp_path))
    return sys.executable


def test_lmnn_is_fitted_by_another_python(python):
    X = np.random.default_rng(0).standard_normal((20, 3))
    model = load("sdist_speed").LMNN(python, standardize=False).fit(X, X[:, 0] > 0)
    np.testing.assert_array_equal(model.components_, 2.0 * np.eye(3))
    assert model.finished_ and model.seconds_ >= 0.0 and model.predict(X[:2]).shape == (2,)
    rows = sdist_simulated(1, sizes=[(60, 4)], methods=["kNN", "LMNN"], others={"LMNN": model})[
        "rows"
    ]
    assert [row["method"] for row in rows[:2]] == ["kNN", "LMNN"] and rows[1]["seconds"] >= 0.0


def test_lmnn_stops_at_its_limit_with_the_metric_that_it_has(python):
    model = (
        load("sdist_speed").LMNN(python, seconds=0.5).fit(np.zeros((501, 2)), np.arange(501) % 2)
    )
    assert not model.finished_ and model.components_[0, 0] > 2.0 and 0.4 < model.seconds_ < 2.0


def test_a_python_without_metric_learn_says_so(monkeypatch):
    monkeypatch.delenv("PYTHONPATH", raising=False)
    with pytest.raises(ValueError, match="LMNN failed"):
        load("sdist_speed").LMNN(sys.executable).fit(np.zeros((4, 1)), [0, 1, 0, 1])


@pytest.mark.parametrize("kind", ["indoors", "driving"])
def test_rendered_videos_and_the_truth_of_their_tracks(kind):
    made = load("motion_videos")
    frames, labels = made.render(kind, seed=1, n_frames=5)
    assert (
        frames.shape == (5, 360, 640, 3)
        and frames.dtype == np.uint8
        and labels.shape == (5, 360, 640)
    )
    n_bodies = {"indoors": 2, "driving": 3}[kind]
    shares = np.bincount(labels[0].ravel(), minlength=n_bodies + 1) / labels[0].size
    assert shares[0] > 0.7 and (shares[1:] > 0.001).all() and labels.max() == n_bodies
    again = made.render(kind, seed=1, n_frames=5)
    assert (again[0] == frames).all() and (again[1] == labels).all()
    y, x = (np.median(np.nonzero(labels[2] == n_bodies), axis=1)).round().astype(int)
    tracks = np.full((5, 2, 2), np.nan)
    tracks[2:4, 0], tracks[:, 1] = (x, y), (0, 0)
    assert made.truth_of(tracks, labels).tolist() == [n_bodies, 0]
