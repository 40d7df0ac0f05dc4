"""What the commands print with --json is what docs/commands.md and docs/schemas.json say."""

import importlib.util
import json
from pathlib import Path

import numpy as np
import pytest
from annealed.pipelines.cli.app import app
from helpers import picture, rigid_motions, run
from PIL import Image
from typer.main import get_command

jsonschema = pytest.importorskip("jsonschema")
ROOT = Path(__file__).resolve().parents[3]
SCHEMAS = json.loads((ROOT / "docs" / "schemas.json").read_text())["$defs"]


def script():
    spec = importlib.util.spec_from_file_location("schemas", ROOT / ".ci" / "schemas.py")
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def commands(command, name="annealed"):
    for part, below in getattr(command, "commands", {}).items():
        if any("--json" in parameter.opts for parameter in below.params):
            yield f"{name} {part}"
        yield from commands(below, f"{name} {part}")


def test_every_command_with_json_has_its_schema():
    assert set(SCHEMAS) == set(commands(get_command(app)))
    assert script().schemas()["$defs"] == SCHEMAS


def test_types_and_their_schemas():
    checked = jsonschema.Draft202012Validator(
        script().schema_of(
            '{"a": str, "b"?: [int, ...], "c": [float, "x"], "d": {str: any} | null}'
        )
    )
    for value, good in (
        ({"a": "", "c": [1.5, "x"], "d": None}, True),
        ({"a": "", "b": [1, 2], "c": [1, "x"], "d": {"z": []}}, True),
        ({"a": "", "c": [1, "y"], "d": None}, False),
        ({"a": "", "c": [1], "d": None}, False),
        ({"a": "", "b": [1.5], "c": [1, "x"], "d": None}, False),
        ({"a": 1, "c": [1, "x"], "d": None}, False),
        ({"a": "", "c": [1, "x"], "d": None, "e": 0}, False),
    ):
        assert checked.is_valid(value) == good, value


def check(name, *arguments, code=0):
    """Every line of a command's output fits its schema; the first one."""
    result = run(*name.split()[1:], *arguments, "--json")
    assert result.exit_code == code, result.output
    records = [json.loads(line) for line in result.stdout.splitlines()]
    validator = jsonschema.Draft202012Validator(SCHEMAS[name])
    errors = [jsonschema.exceptions.best_match(validator.iter_errors(record)) for record in records]
    assert (
        records
        and [(error.json_path, error.message) for error in errors if error is not None] == []
    )
    assert any("error" not in record for record in records) or code == 2
    return records[0]


@pytest.fixture
def table(tmp_path):
    rng = np.random.default_rng(0)
    x, kind = rng.normal(size=(120, 4)).round(3), rng.choice(["p", "q", "r"], 120)
    path = tmp_path / "table.csv"
    lines = [
        f"{','.join(map(str, row))},{k},{2 * row[0] - row[2] + (k == 'p'):.3f}\n"
        for row, k in zip(x, kind, strict=True)
    ]
    path.write_text("a,b,c,d,kind,y\n" + "".join(lines))
    return path


def test_tables(table, tmp_path):
    model = tmp_path / "model.safetensors"
    check("annealed select", table, "--target", "y", "-k", "2", "--out", model)
    check("annealed select", table, "--target", "y", "-k", "auto", "--response", "piecewise")
    check("annealed select", table, "--target", "y", "--fdr", "0.2", "--intervals")
    check("annealed select", table, "--target", "none", code=2)
    check("annealed predict", model, table)
    check("annealed predict", model, table, "--contributions")
    check("annealed export", model, tmp_path / "m.sql")


def test_faces_and_pets(tmp_path):
    Image.fromarray(picture("ring", 0, (48, 64))).save(tmp_path / "a.png")
    (tmp_path / "b.png").write_bytes(b"no")
    check("annealed faces detect", "--landmarks")
    check("annealed faces detect", "--assembly", "none")
    check("annealed faces detect", tmp_path / "a.png", tmp_path / "b.png", code=1)
    check("annealed pets classify", tmp_path / "a.png", tmp_path / "b.png", code=1)


def test_motion(tmp_path):
    np.savez(tmp_path / "two.npz", tracks=rigid_motions()[0])
    check("annealed motion segment", tmp_path / "two.npz", tmp_path / "none.npz", code=1)


def test_sets_models_and_tables_of_papers(tmp_path):
    check("annealed data list")
    check("annealed models list")
    check("annealed models show", "faces")
    check("annealed models convert", "pets", "--out", tmp_path / "p.safetensors")
    check("annealed reproduce", "--list")
    check("annealed reproduce", "none", code=2)


def test_sensors(tmp_path):
    events, activities = ["start,end,sensor,type,place"], ["start,end,activity"]
    for day in range(1, 5):
        for hours, activity, sensor in (
            ("00:00 07:00", "Sleeping", "Bed"),
            ("07:10 08:00", "Cooking", "Stove"),
            ("13:00 17:00", "Reading", "Seat"),
        ):
            start, end = (f"2024-03-{day:02d} {hour}:00" for hour in hours.split())
            activities.append(f"{start},{end},{activity}")
            events.append(f"{start},{end},{sensor},Pressure,Room")
    (tmp_path / "flat_events.csv").write_text("\n".join(events) + "\n")
    (tmp_path / "flat_activities.csv").write_text("\n".join(activities) + "\n")
    assert (
        run("sensors", "train", "--data", tmp_path, "--out", tmp_path / "m.safetensors").exit_code
        == 0
    )
    check("annealed sensors predict", "--data", tmp_path, "--model", tmp_path / "m.safetensors")
    check("annealed sensors evaluate", "--data", tmp_path)
