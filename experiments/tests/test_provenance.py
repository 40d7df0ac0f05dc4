"""Fingerprints of code, descriptions of runs, and the comparison of stored cells with new ones."""

import json
from pathlib import Path
from types import SimpleNamespace

import pytest
from annealed_experiments import checks
from annealed_experiments.checks import CHECKS, Check, compare, selected
from annealed_experiments.provenance import (
    incomplete,
    of_checkout,
    run_command,
    run_of,
    run_script,
    running,
    stale,
)
from annealed_experiments.render import update
from helpers import run

ROOT = Path(__file__).resolve().parents[2]
COMMAND = "python benchmarks/speed.py --runs 3"
FILES = {
    "__init__.py": "import lazy_loader",
    "learners/__init__.py": "import lazy_loader",
    "learners/__init__.pyi": "from .solver import solve\nfrom .other import unused",
    "learners/solver.py": '"""Title."""\nfrom .steps import step\ndef solve():\n    return step()',
    "learners/steps.py": "def step():\n    return 1",
    "learners/other.py": "unused = 0",
    "benchmarks/common.py": "rows = 1",
    "benchmarks/speed.py": (
        "import sys\nfrom annealed.learners import solve\nfrom common import rows\n"
        "print('| a | b |\\n|---|---|\\n| x | ' + sys.argv[-1] + ' |')"
    ),
}


@pytest.fixture(scope="module")
def packages():
    return of_checkout(ROOT), running()


@pytest.fixture
def checkout(tmp_path):
    for name, text in FILES.items():
        (tmp_path / name).parent.mkdir(exist_ok=True, parents=True)
        (tmp_path / name).write_text(text)
    (tmp_path / "experiments" / "results").mkdir(parents=True)
    return tmp_path


def test_the_closure_follows_the_names_that_are_imported(checkout):
    names = {"speed", "common", "annealed.learners.solver", "annealed.learners.steps"}
    assert set(of_checkout(checkout).closure(COMMAND)) == names  # not learners/other.py
    (checkout / "benchmarks/speed.py").write_text("from annealed import learners")
    assert set(of_checkout(checkout).closure(COMMAND)) == {
        "speed",
        "annealed.learners",
        *(f"annealed.learners.{name}" for name in ("solver", "steps", "other")),
    }


@pytest.mark.parametrize(
    "name, text, changes",
    [
        ("learners/steps.py", "def step():\n    return 2", True),
        (
            "learners/steps.py",
            '"""Title."""\n\ndef step():\n    "Text."\n    return 1  # one',
            False,
        ),
        ("learners/other.py", "unused = 1", False),
        ("benchmarks/common.py", "rows = 2", True),
    ],
)
def test_a_fingerprint_changes_with_the_statements_of_what_a_command_imports(
    checkout, tmp_path_factory, name, text, changes
):
    before = of_checkout(checkout).fingerprint(COMMAND)
    other = tmp_path_factory.mktemp("other") / "checkout"
    checkout.rename(other)
    (other / name).write_text(text)
    assert (of_checkout(other).fingerprint(COMMAND) != before) is changes


def test_a_command_without_known_code_has_no_fingerprint(checkout):
    assert of_checkout(checkout).fingerprint("by hand") is None


def test_a_folder_of_tests_has_a_fingerprint(checkout):
    (checkout / "tests/campaign").mkdir(parents=True)
    (checkout / "tests/campaign/test_files.py").write_text("from annealed.learners import solve")
    sources = of_checkout(checkout)
    assert {"test_files", "annealed.learners.steps"} < set(sources.closure("pytest tests/campaign"))


@pytest.mark.parametrize(
    "command",
    [
        "annealed reproduce fsa-regression",
        'reproduce("sdist-simulated", 3)',
        "annealed faces evaluate --data test",
        "annealed reproduce sdist-base --figures DIR",
    ],
)
def test_code_of_commands(packages, command):
    """The installed packages are those of the checkout."""
    checkout, process = packages
    files = checkout.closure(command)
    assert len(files) > 50 and any(name.startswith("annealed.learners.solvers") for name in files)
    assert process.fingerprint(command) == checkout.fingerprint(command)


def test_every_stored_run_is_described_in_full():
    assert incomplete(ROOT / "experiments/results") == []


def test_a_run_is_described_in_full():
    made = run_of("annealed reproduce fsa-regression", {"runs": 5})
    assert made["seeds"] == "0 to 4" and len(made["fingerprint"]) == 16
    assert made["versions"]["numpy"] and made["processor"] and made["date"]
    assert run_of("by hand", {"seeds": [3]})["seeds"] == [3]


def test_the_table_of_a_script_is_stored_until_its_code_changes(checkout, monkeypatch):
    monkeypatch.chdir(checkout)
    monkeypatch.setattr("annealed_experiments.provenance.running", lambda: of_checkout(Path(".")))
    (checkout / "benchmarks/speed.py").write_text(
        FILES["benchmarks/speed.py"].replace("from annealed.learners import solve", "")
    )
    file = checkout / "experiments/results/speed.json"
    run_script("benchmarks/speed.py --runs 3", file)
    record = json.loads(file.read_text())
    assert record["columns"] == ["a", "b"] and record["rows"] == [["x", "3"]]
    assert record["made"][0]["command"] == COMMAND
    assert stale() == [] and incomplete(file.parent) in (
        [],  # a checkout without a commit
        [{"missing": "commit", "files": "speed"}],
    )
    record["made"][0]["fingerprint"] = "0123"
    file.write_text(json.dumps(record))
    assert [row["state"] for row in stale()] == ["code changed"]
    record["made"][0]["fingerprint"] = None
    file.write_text(json.dumps(record))
    assert [row["state"] for row in stale()] == ["no fingerprint"]
    assert "fingerprint" in incomplete(file.parent)[0]["missing"]


def test_a_script_that_fails_or_prints_no_table_changes_nothing(checkout, monkeypatch):
    monkeypatch.chdir(checkout)
    for text, message in (
        ("exit(3)", "exited with code 3"),
        ("print(1)", "the command printed 0 tables"),
    ):
        (checkout / "benchmarks/speed.py").write_text(text)
        with pytest.raises(ValueError, match=message):
            run_script("benchmarks/speed.py", checkout / "speed.json")
    assert not (checkout / "speed.json").exists()
    with pytest.raises(ValueError, match="no such folder; run this command from a checkout"):
        stale(checkout / "learners")


def test_a_file_retains_the_runs_of_its_rows_and_their_common_settings(tmp_path):
    def store(command, *methods, **settings):
        rows = [{"method": method, "DR": 1.0} for method in methods]
        record = {"name": "cells", "settings": settings, "rows": rows}
        update(tmp_path / "cells.json", record, command)
        return json.loads((tmp_path / "cells.json").read_text())

    store("first", "FSA", "L1", runs=3, noisy=False)
    stored = store("second", "FSA", runs=5, noisy=False)
    assert stored["settings"] == {"noisy": False}
    assert [run["settings"]["runs"] for run in stored["made"]] == [3, 5]
    stored = store("third", "L1", runs=5, noisy=False)
    assert [run["command"] for run in stored["made"]] == ["second", "third"]
    assert {row["method"]: row["made"] for row in stored["rows"]} == {"FSA": 0, "L1": 1}


def test_stored_cells_are_compared_within_the_tolerance(tmp_path, monkeypatch):
    row = {"N": 300, "M": 1000, "k": 10, "method": "annealed", "runs": 3, "DR": 90.0, "AUC": None}
    record = {"name": "fsa-classification", "settings": {"noisy": False}, "rows": [row]}
    update(tmp_path / "cells.json", record, "annealed reproduce fsa-classification")
    monkeypatch.setitem(CHECKS, "cells", Check("fsa-classification", {"DR": 2.0, "AUC": 0.1}))

    def values(**changed):
        monkeypatch.setattr(
            checks, "reproduce", lambda *_, **__: record | {"rows": [row | changed]}
        )
        return [value["equal"] for value in compare("cells", tmp_path)]

    assert values(DR=88.0) == [True, True]
    assert values(DR=87.9) == [False, True]
    assert values(AUC=0.5) == [True, False]
    assert values(N=500) == [False, False]


def test_cells_of_a_script_are_compared_number_by_number(tmp_path, monkeypatch):
    made = {
        "columns": ["set", "error", "s"],
        "rows": [["a", "1.0 / 2.0 (5%)", "3"], ["b", "-", "4"]],
    }
    (tmp_path / "cells.json").write_text(json.dumps(made))
    monkeypatch.setitem(CHECKS, "cells", Check("a.py", {"error": 0.1}, keys=("set",)))

    def values(*rows):
        monkeypatch.setattr(checks, "table_of", lambda command: (["set", "error"], rows))
        return [value["equal"] for value in compare("cells", tmp_path)]

    assert values(["a", "1.05 / 1.95 (5%)"], ["b", "-"]) == [True, True]
    assert values(["a", "1.0 / 2.0"], ["b", "0.1"]) == [False, False]
    assert values(["a", "1.0 / 2.2 (5%)"], ["c", "-"]) == [False, False]


def test_the_rows_of_a_command_are_stored(tmp_path, monkeypatch):
    command, file = "annealed sensors evaluate --data homes", tmp_path / "home.json"
    with pytest.raises(ValueError, match="exited with code 2; expected 0"):
        run_command(command, file)
    assert not file.exists()
    printed = {
        "name": "sensors evaluate",
        "settings": {"data": "homes/a"},
        "rows": [{"error": 0.1}],
    }
    ran = SimpleNamespace(returncode=0, stdout=json.dumps(printed))
    monkeypatch.setattr("subprocess.run", lambda *_, **__: ran)
    monkeypatch.setenv("ANNEALED_DATA", "homes")
    run_command(command, file)
    record = json.loads(file.read_text())
    assert record["rows"] == [{"error": 0.1, "made": 0}] and record["settings"] == {
        "data": "DATA/a"
    }
    assert record["made"][0]["command"] == "annealed sensors evaluate --data DATA"


def test_every_check_has_a_file_and_its_columns(monkeypatch):
    for name, check in CHECKS.items():
        record = json.loads((ROOT / f"experiments/results/{name}.json").read_text())
        rows = [record["columns"]] if check.keys else record["rows"]
        assert all(any(column in row for row in rows) for column in check.columns), name
        assert {*check.keys} <= {*record.get("columns", ())}, name
    with pytest.raises(ValueError, match="'fsa' has no check; expected one of fsa-"):
        selected("fsa")
    assert "fsa-challenge" not in selected(None, ROOT / "learners")
    monkeypatch.setattr("annealed_experiments.checks.find_spec", lambda name: None)
    assert "paths" not in selected(None)


def test_the_command_reports_a_difference_with_exit_code_1(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    assert "run this command from a checkout" in run("reproduce", "--check").stderr
    assert "a script or command requires --results" in run("reproduce", "python a.py").stderr
    results = tmp_path / "experiments" / "results"
    results.mkdir(parents=True)
    monkeypatch.setitem(
        CHECKS,
        "fsa-wide",
        Check("fsa-wide", {"PCD": 0.1}, {"methods": ["QTP"], "sizes": [(1000, 3)], "runs": 1}),
    )
    record = json.loads((ROOT / "experiments/results/fsa-wide.json").read_text())
    (results / "fsa-wide.json").write_text(json.dumps(record))
    done = run("reproduce", "--check", "fsa-wide")
    assert done.exit_code == 1
    assert "fsa-wide: regression 1000 100 3 ar1 QTP: PCD is" in done.stdout
    assert done.stdout.endswith("1 values compared; 1 differ\n")
    listed = run("reproduce", "--stale", "--json")
    assert listed.exit_code == 0 and {row["file"] for row in json.loads(listed.stdout)} == {
        "fsa-wide"
    }
