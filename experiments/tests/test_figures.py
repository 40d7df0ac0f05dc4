"""The figures of the papers, small."""

import re
from pathlib import Path

import pytest
from annealed_experiments import registry
from annealed_experiments.figures import metric as metric_figures
from annealed_experiments.figures.sensors import by_sensors
from annealed_experiments.registry import FIGURES, draw
from annealed_experiments.tables import annealing, sensors
from helpers import run

ROOT = Path(__file__).resolve().parents[2]


def test_the_figure_of_stability_is_drawn(tmp_path, monkeypatch):
    monkeypatch.setattr(
        annealing, "STABILITY", {name: [values[2]] for name, values in annealing.STABILITY.items()}
    )
    result = run("reproduce", "fsa-stability", "--figures", tmp_path / "new", "--runs", 1)
    path = tmp_path / "new" / "fsa-stability.png"
    assert (
        result.exit_code == 0
        and result.stdout.strip() == str(path)
        and path.read_bytes().startswith(b"\x89PNG")
    )


@pytest.mark.parametrize(
    "name, options",
    [
        ("fsa-schedules", {}),
        ("fsa-losses", {}),
        ("fsa-coefficients", {}),
        ("mslr-synthetic", {"shrink": 0.02, "setups": ["tall"]}),
        ("mslr-conditioning", {}),
        ("sdist-surfaces", {}),
        ("online-rejection", {}),
    ],
)
def test_figures_of_simulated_data_are_drawn(name, options, tmp_path):
    assert draw(name, tmp_path, **options) == [tmp_path / f"{name}.png"]
    assert (tmp_path / f"{name}.png").stat().st_size > 5_000


def test_the_figure_of_rows_is_drawn_from_the_table(tmp_path):
    draw("fsa-large", tmp_path, methods=["FSL"], sizes=[(1000, 10), (3000, 10)])
    assert (tmp_path / "fsa-large.png").stat().st_size > 5_000


@pytest.mark.data
@pytest.mark.parametrize(
    "name",
    ["online-nonzeros", "online-sparsity", "online-error", "mslr-leukemia", "pets-keypoints"],
)
def test_figures_of_real_data_are_drawn(name, data_dir, tmp_path):
    draw(name, tmp_path, data_dir)
    assert (tmp_path / f"{name}.png").stat().st_size > 10_000


@pytest.mark.data
def test_mean_distances_against_votes_on_ionosphere(data_dir, tmp_path):
    """With one neighbour of each class, both return the class of the nearer one; f_W has the lower
    error with five."""
    sizes, (means, votes) = metric_figures.base_errors(data_dir, 3, (1, 5))
    assert sizes == (1, 5) and means[0] == votes[0] and means[1] < votes[1] < 0.2
    draw("sdist-base", tmp_path, data_dir, runs=1)
    assert (tmp_path / "sdist-base.png").stat().st_size > 5_000


@pytest.mark.data
@pytest.mark.slow
def test_sensitivity_on_madelon_is_drawn(data_dir, tmp_path, monkeypatch):
    monkeypatch.setattr(
        metric_figures,
        "SENSITIVITY",
        {name: values[2:3] for name, values in metric_figures.SENSITIVITY.items()},
    )
    draw("sdist-sensitivity", tmp_path, data_dir, checkpoint=tmp_path / "cells.jsonl")
    assert (tmp_path / "sdist-sensitivity.png").stat().st_size > 5_000


def test_sensors_are_drawn_by_their_number(tmp_path, monkeypatch):
    monkeypatch.setattr("annealed_experiments.tables.sensors.N_DAYS", 2)
    options = {"runs": 1, "sets": [], "sizes": (8, 16)}
    assert draw("sensors-features", tmp_path, **options)[0].stat().st_size > 5000


def test_sensors_are_drawn_from_rows_with_and_without_activities():
    rows = [
        {"home": home, "method": method, "sensors": 10, "error": 0.2, "by_activity": [0.1, 0.3]}
        for home in (0, 1, "ordonezA")
        for method in sensors.FEATURE_METHODS
    ]
    assert len(by_sensors(rows=rows).axes) == 3
    rows = [{k: v for k, v in row.items() if k != "by_activity"} for row in rows[:6]]
    assert len(by_sensors(rows=rows).axes) == 1


@pytest.mark.data
def test_features_are_selected_in_a_public_home(data_dir):
    rows = sensors.sensors_features(
        data_dir=data_dir, sets=["ordonezA"], methods=["FoBa"], sizes=[3, 6]
    )["rows"]
    assert [row["home"] for row in rows] == ["ordonezA"] * 2
    assert rows[1]["error"] < rows[0]["error"] < 0.6 and rows[1]["sensors"] <= 6


def test_all_figures_use_the_stored_rows(tmp_path, monkeypatch):
    monkeypatch.setattr(
        registry, "FIGURES", {name: FIGURES[name] for name in ("mslr-synthetic", "faces-curves")}
    )
    monkeypatch.setattr("annealed_experiments.figures.minimax.mslr_synthetic", None)
    drawn = draw(None, tmp_path, results=ROOT / "experiments" / "results")
    assert drawn == [tmp_path / "mslr-synthetic.png"] and drawn[0].stat().st_size > 5_000


def test_the_page_of_figures_shows_every_figure():
    page = (ROOT / "experiments" / "pages" / "figures.md").read_text()
    for name in FIGURES:
        assert f"`annealed reproduce {name} --figures DIR`" in page, name
    for name in re.findall(r"\(figures/([\w-]+)\.png\)", page):
        assert (ROOT / "experiments" / "pages" / "figures" / f"{name}.png").is_file(), name
    for name, minutes in registry.MINUTES.items():
        assert re.search(rf"`annealed reproduce {name} [^`]*`[^`]*\b{minutes} min", page), name


def test_unknown_figures_and_options_are_named(tmp_path):
    with pytest.raises(
        ValueError, match=f"'fsa-wide' has no figure; expected one of {', '.join(FIGURES)}"
    ):
        draw("fsa-wide", tmp_path)
    with pytest.raises(
        ValueError, match="runs: this option is not available for the figure fsa-losses"
    ):
        draw("fsa-losses", tmp_path, runs=3)
    with pytest.raises(ValueError, match="runs=0 is not valid; expected an integer >= 1"):
        draw("motion-table", tmp_path, runs=0)
    result = run("reproduce", "--figures", tmp_path, "--checkpoint", tmp_path / "c")
    assert (
        result.exit_code == 2
        and "requires a NAME" in result.stderr
        and not list(tmp_path.iterdir())
    )
