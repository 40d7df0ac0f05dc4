"""The model file: same bytes for the same content, one clear line for each kind of damage, nothing half-written."""

import json
import os
import struct

import numpy as np
import pytest
from annealed.models.files import FORMAT, check_array, read_header, read_model, replacing, write_model

ARRAYS = {"a": np.arange(6, dtype=np.float32).reshape(2, 3), "b": np.array([True, False]), "c": np.int64([1, 2])}


def test_round_trip_and_same_bytes(tmp_path):
    one, two = tmp_path / "one.safetensors", tmp_path / "two.safetensors"
    write_model(one, "thing", ARRAYS, {"settings": {"x": 1, "y": [1.5]}, "name": "ä"})
    write_model(two, "thing", dict(reversed(ARRAYS.items())), {"name": "ä", "settings": {"y": [1.5], "x": 1}})
    assert one.read_bytes() == two.read_bytes()
    arrays, header = read_model(one, "thing")
    for name, array in ARRAYS.items():
        assert arrays[name].dtype == array.dtype
        np.testing.assert_array_equal(arrays[name], array)
    assert header["settings"] == {"x": 1, "y": [1.5]} and header["name"] == "ä" and header["kind"] == "thing"
    assert read_header(one) == header
    assert sorted(p.name for p in tmp_path.iterdir()) == ["one.safetensors", "two.safetensors"]
    assert (one.stat().st_mode & 0o777) == (0o666 & ~current_umask())


def current_umask():
    mask = os.umask(0)
    os.umask(mask)
    return mask


def write_raw(path, header: bytes, body: bytes = b""):
    path.write_bytes(struct.pack("<Q", len(header)) + header + body)


@pytest.mark.parametrize(
    "damage",
    [
        lambda data: b"",
        lambda data: b"hello, I am a text file",
        lambda data: data[:7],
        lambda data: data[:40],
        lambda data: data[:-1],
        lambda data: data + b"x",
        lambda data: b"\xff" * 8 + data[8:],
        lambda data: data.replace(b"F32", b"Q32"),
    ],
)
def test_damage_is_one_line_with_the_name(tmp_path, damage):
    path = tmp_path / "model.safetensors"
    write_model(path, "thing", ARRAYS, {})
    path.write_bytes(damage(path.read_bytes()))
    with pytest.raises(ValueError, match=r"model\.safetensors: damaged, or not a safetensors file") as error:
        read_model(path, "thing")
    assert "\n" not in str(error.value)


def test_other_headers(tmp_path):
    path = tmp_path / "m.safetensors"
    with pytest.raises(ValueError, match="no such file"):
        read_model(path, "thing")
    for text in (None, "{", "[1]", json.dumps({"format": "other"})):
        write_raw(path, json.dumps({"__metadata__": {"annealed": text} if text else {}}).encode())
        with pytest.raises(ValueError, match="not an annealed model"):
            read_model(path, "thing")
    write_raw(path, json.dumps({"__metadata__": {"annealed": json.dumps({"format": FORMAT})}}).encode())
    with pytest.raises(ValueError, match="lacks its version"):
        read_model(path, "thing")
    newer = json.dumps({"format": FORMAT, "version": 99, "kind": "thing"})
    write_raw(path, json.dumps({"__metadata__": {"annealed": newer}}).encode())
    with pytest.raises(ValueError, match="format version 99"):
        read_model(path, "thing")
    write_model(path, "another", {}, {})
    with pytest.raises(ValueError, match="kind 'another', expected 'thing'"):
        read_model(path, "thing")


def test_check_array():
    assert check_array("f", ARRAYS, "a", np.float32, (None, 3)) is ARRAYS["a"]
    with pytest.raises(ValueError, match="'z' is missing"):
        check_array("f", ARRAYS, "z", np.float32, (1,))
    with pytest.raises(ValueError, match=r"'a' is float32 \(2, 3\), expected float32 \('any', 4\)"):
        check_array("f", ARRAYS, "a", np.float32, (None, 4))
    with pytest.raises(ValueError, match="expected float64"):
        check_array("f", ARRAYS, "a", np.float64, (2, 3))
    with pytest.raises(ValueError, match="holds NaN"):
        check_array("f", {"n": np.array([np.nan])}, "n", np.float64, (1,))


def test_nothing_half_written(tmp_path, monkeypatch):
    path = tmp_path / "m.safetensors"
    write_model(path, "thing", ARRAYS, {})
    before = path.read_bytes()
    with pytest.raises(RuntimeError), replacing(path) as temporary:
        temporary.write_bytes(b"half")
        raise RuntimeError

    def full(self, data):
        with open(self, "wb") as file:
            file.write(data[:10])
        raise OSError(28, "No space left on device")

    monkeypatch.setattr("pathlib.Path.write_bytes", full)
    with pytest.raises(ValueError, match=r"m\.safetensors: cannot be written \(No space left on device\)"):
        write_model(path, "thing", {}, {})
    assert path.read_bytes() == before and [p.name for p in tmp_path.iterdir()] == ["m.safetensors"]
    with pytest.raises(ValueError, match="cannot be written"):
        write_model(tmp_path / "nowhere" / "m.safetensors", "thing", {}, {})
    with pytest.raises(ValueError, match="JSON"):
        write_model(path, "thing", {}, {"bad": float("nan")})
