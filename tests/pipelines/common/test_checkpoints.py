"""Checkpoints: nothing finished is lost, nothing foreign is touched, and other settings are
refused."""

import json
import signal
import subprocess
import sys
import time

import numpy as np
import pytest
from annealed.pipelines.common.checkpoints import Checkpoint, is_finished, read_part, write_part

SETTINGS = {"table": "a", "sizes": (1, 2)}


@pytest.fixture
def path(tmp_path):
    return tmp_path / "cells.jsonl"


def fail():
    pytest.fail("made twice")


def test_a_last_line_that_was_cut_short_is_made_again(path):
    Checkpoint(path, SETTINGS)({"N": 1}, lambda: {"error": 0.5})
    with path.open("a") as file:
        file.write('[{"N": 2}, {"err')
    again = Checkpoint(path, SETTINGS)
    assert again({"N": 1}, fail) == {"error": 0.5}
    assert {"N": 2} not in again
    again({"N": 2}, lambda: 3)
    assert Checkpoint(path, SETTINGS)({"N": 2}, fail) == 3


@pytest.mark.parametrize("length", [35, 50])
def test_a_header_that_was_cut_short_is_written_again(path, length):
    Checkpoint(path, SETTINGS)
    path.write_bytes(path.read_bytes()[:length])
    Checkpoint(path, SETTINGS)({}, lambda: 1)
    assert Checkpoint(path, SETTINGS)({}, fail) == 1


@pytest.mark.parametrize(
    "content",
    [b"thesis\n", b"half a line", b'[{"N": 1}, 2]\n', b'{"format": "other"}\n', b"\x00\xff" * 40],
)
@pytest.mark.parametrize("resume", [True, False])
def test_foreign_files_are_refused_and_left_as_they_are(path, content, resume):
    path.write_bytes(content)
    with pytest.raises(ValueError, match="is not an annealed checkpoint"):
        Checkpoint(path, SETTINGS, resume=resume)
    assert path.read_bytes() == content


def test_damaged_lines_are_named(path):
    Checkpoint(path, SETTINGS)({}, lambda: 1)
    with path.open("a") as file:
        file.write("noise\n")
    with pytest.raises(ValueError, match="line 3 is not a valid result"):
        Checkpoint(path, SETTINGS)


def test_places_where_no_file_can_be_written_are_refused_at_once(tmp_path):
    for nowhere in (tmp_path, tmp_path / "no folder" / "cells.jsonl"):
        with pytest.raises(ValueError, match="it is a folder or not writable"):
            Checkpoint(nowhere)


def test_other_settings_are_refused_also_after_a_trip_through_json(path):
    Checkpoint(path, SETTINGS)
    Checkpoint(path, SETTINGS)
    with pytest.raises(ValueError, match="created with different settings or data"):
        Checkpoint(path, {**SETTINGS, "table": "b"})


def test_finished_cells_are_not_thrown_away_when_resume_is_forgotten(path):
    Checkpoint(path, SETTINGS, resume=False)
    # nothing was finished: another header replaces the first
    Checkpoint(path, {"table": "b"}, resume=False)({"N": 1}, lambda: 1)
    before = path.read_bytes()
    with pytest.raises(
        ValueError, match="contains finished results; use --resume or another folder"
    ):
        Checkpoint(path, SETTINGS, resume=False)
    assert path.read_bytes() == before


def test_two_writers_share_a_file(path):
    first, second = Checkpoint(path), Checkpoint(path)
    for n in range(5):
        first({"first": n}, lambda n=n: n)
        second({"second": n}, lambda n=n: -n)
    cells = Checkpoint(path)
    assert all(
        cells({"first": n}, fail) == n and cells({"second": n}, fail) == -n for n in range(5)
    )


def test_what_a_killed_writer_left_does_not_spoil_the_other_ones_line(path):
    cells = Checkpoint(path)
    with path.open("a") as file:
        file.write('[{"N"')
    cells({"N": 3}, lambda: 4)
    assert Checkpoint(path)({"N": 3}, fail) == 4


def test_a_file_that_was_removed_begins_again_with_its_header(path):
    cells = Checkpoint(path)
    path.unlink()
    cells({"N": 3}, lambda: 4)
    assert Checkpoint(path)({"N": 3}, fail) == 4


def test_a_killed_process_leaves_whole_cells(path):
    code = (
        "import itertools, sys; from annealed.pipelines.common.checkpoints import Checkpoint\n"
        "cells = Checkpoint(sys.argv[1])\nfor n in itertools.count(): cells({'n': n}, "
        "lambda: 'x' * 10000)"
    )
    process = subprocess.Popen([sys.executable, "-c", code, str(path)])
    while not path.exists() or path.stat().st_size < 300_000:
        time.sleep(0.01)
        assert process.poll() is None
    process.send_signal(signal.SIGKILL)
    process.wait()
    cells = Checkpoint(path)
    assert cells({"n": 20}, fail) == "x" * 10000
    assert all(json.loads(line) for line in path.read_text().splitlines())


def test_arrays_and_numbers_keep_all_digits(path):
    values = [*np.random.default_rng(0).standard_normal(50).tolist(), float("nan")]
    Checkpoint(path)({}, lambda: values)
    np.testing.assert_array_equal(Checkpoint(path)({}, fail), values)


def test_parts_hold_arrays_and_are_used_for_the_same_settings_only(tmp_path):
    path = tmp_path / "rows.safetensors"
    assert read_part(path, "rows", SETTINGS) is None
    write_part(path, "rows", {"keys": np.arange(3)}, SETTINGS, round=2)
    arrays, header = read_part(path, "rows", SETTINGS)
    assert (
        header["round"] == 2
        and arrays["keys"].tolist() == [0, 1, 2]
        and is_finished(path, SETTINGS)
    )
    with pytest.raises(ValueError, match="created with different settings or data"):
        is_finished(path, {})
    path.write_bytes(path.read_bytes()[:50])
    with pytest.raises(ValueError, match="damaged"):
        is_finished(path, SETTINGS)
