"""The model file: same bytes for the same content, one clear line for each kind of damage, no
partial files."""

import json
import os
import struct

import numpy as np
import pytest
from annealed.models.files import (
    FORMAT,
    check_array,
    check_settings,
    read_header,
    read_model,
    replacing,
    resolve_model,
    write_model,
)

ARRAYS = {
    "a": np.arange(6, dtype=np.float32).reshape(2, 3),
    "b": np.array([True, False]),
    "c": np.int64([1, 2]),
}


def test_round_trip_and_same_bytes(tmp_path):
    one, two = tmp_path / "one.safetensors", tmp_path / "two.safetensors"
    write_model(one, "thing", ARRAYS, {"settings": {"x": 1, "y": [1.5]}, "name": "ä"})
    write_model(
        two,
        "thing",
        dict(reversed(ARRAYS.items())),
        {"name": "ä", "settings": {"y": [1.5], "x": 1}},
    )
    assert one.read_bytes() == two.read_bytes()
    arrays, header = read_model(one, "thing")
    for name, array in ARRAYS.items():
        assert arrays[name].dtype == array.dtype
        np.testing.assert_array_equal(arrays[name], array)
    assert (
        header["settings"] == {"x": 1, "y": [1.5]}
        and header["name"] == "ä"
        and header["kind"] == "thing"
    )
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
    with pytest.raises(
        ValueError, match=r"model\.safetensors: the file is damaged or not a safetensors file"
    ) as error:
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
    write_raw(
        path, json.dumps({"__metadata__": {"annealed": json.dumps({"format": FORMAT})}}).encode()
    )
    with pytest.raises(ValueError, match="has no version"):
        read_model(path, "thing")
    newer = json.dumps({"format": FORMAT, "version": 99, "kind": "thing"})
    write_raw(path, json.dumps({"__metadata__": {"annealed": newer}}).encode())
    with pytest.raises(ValueError, match="format version 99"):
        read_model(path, "thing")
    write_model(path, "another", {}, {})
    with pytest.raises(ValueError, match="kind 'another'; expected 'thing'"):
        read_model(path, "thing")


def test_check_array():
    assert check_array("f", ARRAYS, "a", np.float32, (None, 3)) is ARRAYS["a"]
    with pytest.raises(ValueError, match="'z' is missing"):
        check_array("f", ARRAYS, "z", np.float32, (1,))
    with pytest.raises(
        ValueError,
        match=r"'a' has dtype float32 and shape \(2, 3\); expected float32 and \('any', 4\)",
    ):
        check_array("f", ARRAYS, "a", np.float32, (None, 4))
    with pytest.raises(ValueError, match="expected float64"):
        check_array("f", ARRAYS, "a", np.float64, (2, 3))
    for bad in (np.nan, np.inf, 1e13):
        with pytest.raises(
            ValueError, match=r"'n' contains NaN or a value outside \[-1e\+12, 1e\+12\]"
        ):
            check_array("f", {"n": np.array([bad])}, "n", np.float64, (1,))
    assert (
        check_array("f", {"n": np.array([-np.inf])}, "n", np.float64, (1,), low=-np.inf)[0]
        == -np.inf
    )


def test_every_flipped_bit_is_found(tmp_path):
    path = tmp_path / "m.safetensors"
    write_model(path, "thing", {"a": np.arange(3.0)}, {"settings": {"x": 1.5}})
    data = path.read_bytes()
    for position in range(len(data)):
        path.write_bytes(data[:position] + bytes([data[position] ^ 1]) + data[position + 1 :])
        with pytest.raises(ValueError, match=r"m\.safetensors: "):
            read_model(path, "thing")


def test_older_format_loads_with_a_warning_and_is_converted(tmp_path):
    old = json.dumps({"format": FORMAT, "version": 1, "kind": "thing", "x": 1})
    path = tmp_path / "old.safetensors"
    write_raw(path, json.dumps({"__metadata__": {"annealed": old}}).encode())
    with pytest.warns(UserWarning, match="convert it with `annealed models convert`"):
        assert read_model(path, "thing")[1]["x"] == 1
    without = json.dumps({"format": FORMAT, "version": 2, "kind": "thing", "x": 1})
    write_raw(path, json.dumps({"__metadata__": {"annealed": without}}).encode())
    with pytest.raises(ValueError, match="checksum"):
        read_model(path, "thing")


@pytest.mark.parametrize(
    "text, reason",
    [
        ("[" * 100_000, "not an annealed model"),
        (
            '{"format": "annealed model", "version": 1, "kind": "t", "x": '
            + "[" * 40
            + "]" * 40
            + "}",
            "nested more than 32",
        ),
        ('{"format": "annealed model", "version": 1, "kind": "t", "x": [NaN]}', "non-finite"),
        (
            '{"format": "annealed model", "version": 1, "kind": "t", "x": {"y": 1e999}}',
            "non-finite",
        ),
    ],
)
def test_senseless_headers(tmp_path, text, reason):
    path = tmp_path / "m.safetensors"
    write_raw(path, json.dumps({"__metadata__": {"annealed": text}}).encode())
    with pytest.raises(ValueError, match=reason) as error:
        read_header(path)
    assert len(str(error.value)) <= 300 + len(str(path))


def test_check_settings():
    example = {"n": 3, "rate": 0.5, "kind": "x", "sides": (1, 2)}
    good = {"n": 4, "rate": 1, "kind": "y", "sides": [3]}
    assert check_settings(good, example) == {"n": 4, "rate": 1, "kind": "y", "sides": (3,)}
    bad = [
        {"n": 3.7},
        {"n": True},
        {"rate": "1"},
        {"rate": 1e300},
        {"kind": None},
        {"sides": 3},
        {"sides": ["x"]},
        {"more": 1},
    ]
    for change in bad:
        with pytest.raises(ValueError, match="expected"):
            check_settings({**good, **change}, example)
    with pytest.raises(ValueError, match="n=4 is not valid; expected int from 5 to 6"):
        check_settings(good, example, {"n": (5, 6)})
    with pytest.raises(ValueError, match="expected a dict with the keys n, rate"):
        check_settings(None, example)


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
    with pytest.raises(
        ValueError, match=r"m\.safetensors: the file cannot be written \(No space left on device\)"
    ):
        write_model(path, "thing", {}, {})
    assert path.read_bytes() == before and [p.name for p in tmp_path.iterdir()] == ["m.safetensors"]
    with pytest.raises(ValueError, match="cannot be written"):
        write_model(tmp_path / "nowhere" / "m.safetensors", "thing", {}, {})
    with pytest.raises(ValueError, match="JSON"):
        write_model(path, "thing", {}, {"bad": float("nan")})


def test_a_model_that_is_not_installed(tmp_path, monkeypatch):
    """`.ci/smoke.py` expects this message where the weights were removed."""
    monkeypatch.setattr("annealed.models.files.FOLDER", tmp_path)
    with pytest.raises(ValueError, match=r"neither a file nor a shipped model \(none\)"):
        resolve_model("faces")
