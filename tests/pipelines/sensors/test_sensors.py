"""Activities from binary sensors: simulation, readers, features, protocols, commands."""

import json

import numpy as np
import pandas as pd
import pytest
from annealed.models import load_model
from annealed.models.sensors.features import SensorMinutes, minute_features
from annealed.pipelines.cli.app import app
from annealed.pipelines.sensors.evaluate import (
    day_folds,
    evaluate_baselines,
    evaluate_selection,
    table_rows,
)
from annealed.pipelines.sensors.readers import IDLE, read_home
from annealed_experiments.render import VIEWS
from annealed_experiments.tables import sensors as sensor_tables
from annealed_experiments.tables.sensors import sensors, sensors_features, sensors_simulated
from annealed_experiments.tables.sensors_simulation import simulate_home
from typer.testing import CliRunner

# -- simulation ------------------------------------------------------------------------------------


def test_a_simulated_home_depends_on_its_seed_alone():
    home, longer, other = simulate_home(2), simulate_home(3), simulate_home(2, random_state=1)
    np.testing.assert_array_equal(home.on, longer.part(range(2)).on)
    np.testing.assert_array_equal(home.true, longer.true)
    assert not np.array_equal(home.on, other.on)
    assert (
        home.on.shape == (1200, 40)
        and set(np.unique(home.on)) == {0.0, 1.0}
        and len(home.true) == 10
    )
    assert longer.part(range(2, 3)).days.tolist() == [2] * 600


# -- files -----------------------------------------------------------------------------------------


DAYS = [f"2024-03-{day:02d}" for day in range(1, 7)]


def write_home(folder, days=DAYS, name="flat"):
    """A person who sleeps, cooks and sits, each in a place with a sensor; one sensor repeats the
    bed's, one never says anything."""
    events, activities = ["start,end,sensor,type,place"], ["start,end,activity"]
    for i, day in enumerate(days):
        spans = [
            ("00:00", "07:00", "Sleeping", "Bed,Pressure,Bedroom"),
            ("07:10", f"07:{40 + i}", "Cooking", "Stove,Heat,Kitchen"),
        ]
        spans += [
            ("12:00", "12:30", "Cooking", "Stove,Heat,Kitchen"),
            ("13:00", f"17:{10 + i}", "Reading", "Seat,Pressure,Living"),
        ]
        for start, end, activity, sensor in spans:
            activities.append(f"{day} {start}:00,{day} {end}:00,{activity}")
            events.append(f"{day} {start}:30,{day} {end}:00,{sensor}")
            if "Bed" in sensor and i % 2:
                events.append(f"{day} {start}:30,{day} {end}:00,Blanket,Pressure,Bedroom")
        events.append(f"{day} 20:00:00,{day} 20:00:01,Cat,PIR,Hall")
        activities.append(f"{day} 22:00:00,{day} 23:59:00,Sleeping")
    (folder / f"{name}_events.csv").write_text("\n".join(events) + "\n")
    (folder / f"{name}_activities.csv").write_text("\n".join(activities) + "\n")


@pytest.fixture
def flat(tmp_path):
    write_home(tmp_path)
    return tmp_path


def test_minutes_of_a_home(flat):
    home = read_home(flat)
    minutes = home.minutes
    assert minutes.sensors == (
        "Bedroom_Bed_Pressure",
        "Bedroom_Blanket_Pressure",
        "Hall_Cat_PIR",
        "Kitchen_Stove_Heat",
        "Living_Seat_Pressure",
    )
    assert home.places == ("Bedroom", "Bedroom", "Hall", "Kitchen", "Living") and home.notes == ()
    assert (
        str(minutes.times[0]) == "2024-03-01T00:00" and str(minutes.times[-1]) == "2024-03-06T23:59"
    )
    bed = minutes.sensors.index("Bedroom_Bed_Pressure")
    assert minutes.on[:421, bed].all() and not minutes.on[421:1440, bed].any()
    assert minutes.started[0, bed] == 31.0 and minutes.started[1:1440, bed].max() == 0.0
    assert minutes.activities[[0, 425, 450, 1380]].tolist() == [
        "Sleeping",
        IDLE,
        "Cooking",
        "Sleeping",
    ]


def test_the_other_layout(tmp_path):
    (tmp_path / "h-sensors.txt").write_text(
        "01-Feb-2008 00:00:10\t01-Feb-2008 00:02:00\t5\t\n01-Feb-2008 00:05:00\t01-Feb-2008 "
        "00:05:01\t7\t\n"
    )
    (tmp_path / "h-activities.txt").write_text(
        "01-Feb-2008 00:00:00\t01-Feb-2008 00:03:59\t14\n01-Feb-2008 00:03:00\t01-Feb-2008 "
        "00:06:59\t15\n"
    )
    (tmp_path / "h-sensor_names.txt").write_text("5,Front door,Outside\n7,Flush,Toilet")
    (tmp_path / "h-activity_names.txt").write_text("14,leave-house\n15,use-toilet\n")
    home = read_home(tmp_path)
    assert home.minutes.sensors == ("Flush (7)", "Front door (5)") and home.places == (
        "Toilet",
        "Outside",
    )
    assert home.minutes.activities.tolist() == ["leave-house"] * 4 + ["use-toilet"] * 3
    assert (
        "1 activities overlap an earlier one, the first being use-toilet at 2008-02-01 00:03:00"
        in home.notes[0]
    )


@pytest.mark.parametrize(
    "file, line, message",
    [
        (
            "events",
            "yesterday,2024-03-01 00:01:00,Bed,Pressure,Bedroom",
            r"flat_events.csv:2: start 'yesterday' is not a time",
        ),
        (
            "events",
            ",2024-03-01 00:01:00,Bed,Pressure,Bedroom",
            r"flat_events.csv:2: start '' is not a time",
        ),
        (
            "events",
            "2024-03-01 00:00:00,2024-03-01 00:01:00, ,Heat,Kitchen",
            r"flat_events.csv:2: the sensor is empty; expected a name",
        ),
        (
            "activities",
            "2024-03-01 02:00:00,2024-03-01 03:00:00,",
            r"flat_activities.csv:2: the activity is empty; expected a name",
        ),
        (
            "activities",
            "2024-03-01 02:00:00,nan,Sleeping",
            r"flat_activities.csv:2: end 'nan' is not a time",
        ),
        (
            "activities",
            "2024-03-01 02:00:00,2024-03-01 01:00:00,Sleeping",
            r"flat_activities.csv:2: the end .* is before the start",
        ),
        (
            "activities",
            "1724-03-01 02:00:00,2024-03-01 01:00:00,Sleeping",
            r"which is too long for a single recording; check for a mistyped year",
        ),
    ],
)
def test_bad_lines_are_named(flat, file, line, message):
    path = flat / f"flat_{file}.csv"
    head, *rest = path.read_text().splitlines()
    path.write_text("\n".join([head, line, *rest]))
    with pytest.raises(ValueError, match=message) as caught:
        read_home(flat)
    assert "\n" not in str(caught.value)


def test_bad_folders_and_quiet_days(flat, tmp_path):
    with pytest.raises(ValueError, match="no such folder"):
        read_home(tmp_path / "nowhere")
    with pytest.raises(ValueError, match="home 'attic' does not exist; expected one of flat"):
        read_home(flat, "attic")
    write_home(flat, name="other")
    with pytest.raises(
        ValueError, match=r"several homes .flat, other.; choose one of them with " r"--home"
    ):
        read_home(flat)
    path = flat / "flat_events.csv"
    path.write_text(
        "\n".join(line for line in path.read_text().splitlines() if not line.startswith(DAYS[2]))
    )
    assert read_home(flat, "flat").notes == ("flat: no sensor was on during 2024-03-03",)
    path.write_text("start,end,sensor\n")
    with pytest.raises(ValueError, match="column 'type' is missing"):
        read_home(flat, "flat")


# -- features, protocols ---------------------------------------------------------------------------


def test_features_of_a_minute():
    on = np.zeros((200, 2), bool)
    on[10:12, 0] = on[100, 1] = True
    started = np.zeros((200, 2))
    started[10, 0], started[100, 1] = 5.0, 3.0
    minutes = SensorMinutes(
        np.datetime64("2024-01-01T00:00") + np.arange(200), ("a", "b"), on, started
    )
    X, sensors = minute_features(minutes, ("on", "start", "history", "last"))
    assert sensors.tolist() == [0] * 6 + [1] * 6
    near, middle, far, last = X[:, 2], X[:, 3], X[:, 4], X[:, 5]
    assert np.flatnonzero(near).tolist() == list(range(11, 17)) and np.flatnonzero(middle)[
        [0, -1]
    ].tolist() == [16, 41]
    assert np.flatnonzero(far)[[0, -1]].tolist() == [41, 131]
    assert (
        np.flatnonzero(last).tolist() == list(range(10, 100)) and np.flatnonzero(X[:, 11])[0] == 100
    )
    alone, _ = minute_features(minutes.keep(["a"]), ("last",))
    # nothing of the other sensor is left
    assert np.flatnonzero(alone).tolist() == list(range(10, 200))
    with pytest.raises(ValueError, match="features when are not valid"):
        minute_features(minutes, ("when",))
    with pytest.raises(ValueError, match="sensor 'c' does not occur in the data"):
        minutes.keep(["c"])


def test_baselines_and_selection_on_days_left_out(tmp_path):
    write_home(tmp_path, DAYS[:4])
    minutes = read_home(tmp_path).minutes
    baselines = evaluate_baselines(minutes, ("on", "start", "last"))
    rows = {row["method"]: row for row in table_rows(minutes, baselines)}
    assert (
        set(rows) == {"majority", "logistic", "HMM", "CRF"}
        and rows["majority"]["error"] > 0.4 > rows["CRF"]["error"]
    )
    low, high = rows["CRF"]["error_interval"]
    assert low <= rows["CRF"]["error"] <= high
    selections = evaluate_selection(
        minutes,
        ("on", "start", "history"),
        range(1, 4),
        ["FoBa", "annealed+swap", "group lasso"],
        n_folds=2,
    )
    rows = table_rows(minutes, selections)
    three = next(row for row in rows if row["method"] == "FoBa" and row["sensors"] == 3)
    assert {"Kitchen_Stove_Heat", "Living_Seat_Pressure", "Bedroom_Bed_Pressure"} == set(
        three["chosen"]
    )
    assert {row["method"] for row in rows} >= {
        "annealed+swap",
        "group lasso",
        "group lasso, shrunk",
    }
    with pytest.raises(ValueError, match="depends on all sensors"):
        evaluate_selection(minutes, ("on", "last"), range(1, 3))
    with pytest.raises(ValueError, match="4 days for 9 folds"):
        day_folds(minutes.days, 9)
    with pytest.raises(ValueError, match="the data contain 1 day; expected at least 2"):
        day_folds(minutes.days[:100])


def test_simulated_table(monkeypatch):
    monkeypatch.setattr(sensor_tables, "N_DAYS", 3)
    table = sensors_simulated(1, methods=["annealed"])
    rows = {row["method"]: row for row in table["rows"]}
    assert rows["true sensors"]["true"] == 10 and rows["annealed"]["sensors"] == 10
    assert all(
        row["oracle_error_same_homes"] == rows["true sensors"]["error"] for row in table["rows"]
    )
    assert "| true sensors | 1 | 10 |" in VIEWS["rows"](table, "method,homes,sensors")
    monkeypatch.setattr(
        sensor_tables,
        "_simulated_cell",
        lambda *_: pytest.fail("worked before it looked at the methods"),
    )
    with pytest.raises(ValueError, match="method 'best' is unknown"):
        sensors_simulated(1, methods=["annealed", "best"])
    with pytest.raises(ValueError, match="method 'best' is unknown"):
        sensors(2, "nowhere", methods=["best"])


# -- the command line ------------------------------------------------------------------------------


def run(*words):
    return CliRunner().invoke(app, ["sensors", *map(str, words)])


def test_resumed_folds_belong_to_the_same_minutes(flat, tmp_path):
    words = ("evaluate", "--data", flat, "--features", "on", "--report", tmp_path / "report")
    assert run(*words, "--folds", 2).exit_code == 0
    assert run(*words, "--folds", 2, "--resume").exit_code == 0
    result = run(*words, "--folds", 3, "--resume")
    assert result.exit_code == 2 and "different settings or data" in result.stderr
    file = flat / "flat_activities.csv"
    file.write_text(file.read_text().replace("Cooking", "Baking"))
    result = run(*words, "--folds", 2, "--resume")
    assert result.exit_code == 2 and "different settings or data" in result.stderr


def test_train_predict_evaluate(flat, tmp_path):
    model, picture, report = tmp_path / "m.safetensors", tmp_path / "day.png", tmp_path / "report"
    done = run("train", "--data", flat, "--out", model, "-k", 3)
    assert done.exit_code == 0, done.output
    trained = load_model(model)
    assert set(trained.sensors) == {
        "Bedroom_Bed_Pressure",
        "Kitchen_Stove_Heat",
        "Living_Seat_Pressure",
    }
    np.testing.assert_array_equal(trained.predict(read_home(flat).minutes)[:400], "Sleeping")
    done = run(
        "predict",
        "--data",
        flat,
        "--model",
        model,
        "--day",
        DAYS[1],
        "--overlay",
        picture,
        "--json",
    )
    spans = [json.loads(line) for line in done.stdout.splitlines()]
    assert (
        spans[0]["start"] == f"{DAYS[1]} 00:00"
        and spans[0]["activity"] == "Sleeping"
        and 0.5 < spans[0]["probability"] <= 1
    )
    assert picture.stat().st_size > 5000
    done = run(
        "evaluate",
        "--data",
        flat,
        "-k",
        2,
        "--method",
        "forward",
        "--folds",
        3,
        "--report",
        report,
        "--json",
    )
    record = json.loads(done.stdout)
    assert {"name", "settings", "rows"} == set(record) and len(record["rows"]) == 6
    assert {path.name for path in report.glob("*.*")} >= {"results.json", "table.md", "sensors.png"}


@pytest.mark.parametrize(
    "words, message",
    [
        (
            ["train", "-k", 9, "--out", "m.safetensors"],
            "n_sensors=9 is not valid; expected an integer from 1 to 5, the number of sensors of "
            "flat",
        ),
        (
            ["train", "-k", 2, "--features", "on,last", "--out", "m.safetensors"],
            "depends on all sensors",
        ),
        (
            ["train", "--features", "colour", "--out", "m.safetensors"],
            "features colour are not valid; valid features are on, start",
        ),
        (
            ["train", "--method", "best", "-k", 2, "--out", "m.safetensors"],
            "method 'best' is unknown",
        ),
        (["predict", "--model", "flat_events.csv"], "not a safetensors file"),
        (["evaluate", "--folds", 40], "6 days for 40 folds"),
        (["evaluate", "--resume"], "--resume requires --report"),
    ],
)
def test_mistakes_are_one_line(flat, monkeypatch, words, message):
    monkeypatch.chdir(flat)
    done = run(words[0], "--data", flat, *words[1:])
    assert (
        done.exit_code == 2
        and message in done.stderr
        and len(done.stderr.strip().splitlines()) == 1
    )


# -- real homes ------------------------------------------------------------------------------------


@pytest.mark.data
@pytest.mark.parametrize("name", ["ordonezA", "ordonezB"])
def test_minutes_are_those_of_the_published_table(data_dir, name):
    minutes = read_home(data_dir / "sensors_adl", name).minutes
    table = pd.read_csv(data_dir / "sensors_adl" / f"{name}_minutes.csv.gz")
    ours = minutes.keep([column[3:] for column in table if column.startswith("on_")])
    assert len(table) == len(minutes.times)
    np.testing.assert_array_equal(ours.on, table.filter(regex="^on_"))
    np.testing.assert_array_equal(ours.started > 0, table.filter(regex="^start_"))
    # two activities share half of a minute
    assert (minutes.activities != table.activity.to_numpy()).sum() < 10


@pytest.mark.data
@pytest.mark.parametrize(
    "name, sensors", [("vankasteren1", 14), ("vankasteren2", 23), ("mit1", 72)]
)
def test_homes_of_the_other_layout(data_dir, name, sensors):
    home = read_home(data_dir / "sensors_homes", name)
    assert len(home.minutes.sensors) == sensors and any("overlap" in note for note in home.notes)


def test_single_features_on_a_simulated_home(monkeypatch):
    """FoBa, forward steps and L1 at equal numbers of features; sensors are counted from them."""
    monkeypatch.setattr(sensor_tables, "N_FEATURES", (3, 6))
    monkeypatch.setattr(sensor_tables, "N_DAYS", 2)
    table = sensors_features(1)
    rows = {(row["method"], row["features"]): row for row in table["rows"]}
    assert {key for key in rows if key[0] != "L1"} == {
        (method, n) for method in ("FoBa", "forward") for n in (3, 6)
    }
    for (method, n), row in rows.items():
        assert row["true"] <= row["sensors"] <= row["taken"] <= n and (
            method == "L1" or row["taken"] == n
        )
        assert 0.1 < row["error"] < 0.9
    with pytest.raises(ValueError, match="group lasso"):
        sensors_features(1, methods=["group lasso"])
