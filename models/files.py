"""The one file format of trained models: safetensors arrays with a JSON header. Loading runs no code.

The metadata of the safetensors file have one entry, ``annealed``: a JSON object with ``format`` (``FORMAT``),
``version`` (``VERSION``), ``kind`` (what the file is), and whatever the kind needs: settings, training, scores. The
same arrays and header always give the same bytes.
"""

from __future__ import annotations

import json
import os
import tempfile
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import numpy as np
from safetensors import SafetensorError, safe_open
from safetensors.numpy import save

FORMAT = "annealed model"
VERSION = 1  # raise it when a reader of the present version would misread the file
_KEY = "annealed"


@contextmanager
def replacing(path: str | Path):
    """Write a file under a temporary name beside ``path`` and rename it when all went well; else leave nothing behind.

    Yields the temporary name, with the suffix of ``path``. A file that cannot be written is a ValueError that names ``path``.
    """
    path = Path(path)
    try:
        handle, name = tempfile.mkstemp(prefix=f".{path.stem}.", suffix=path.suffix, dir=path.parent)
        os.close(handle)
    except OSError as error:
        raise ValueError(f"{path}: cannot be written ({error.strerror})") from None
    temporary = Path(name)
    try:
        yield temporary
        temporary.chmod(0o666 & ~_umask())  # mkstemp makes files that nobody else may read
        with temporary.open("rb") as file:
            os.fsync(file.fileno())
        temporary.replace(path)
    except OSError as error:
        raise ValueError(f"{path}: cannot be written ({error.strerror or error})") from None
    finally:
        temporary.unlink(missing_ok=True)


def check_writable(path: Path) -> None:
    """Find out before hours of work, not after them, whether a file can be written; else a ValueError."""
    folder = path.resolve().parent
    if not folder.is_dir() or not os.access(folder, os.W_OK):
        raise ValueError(f"{path}: cannot be written (no such folder, or no right to write there)")
    if path.is_dir():
        raise ValueError(f"{path}: a folder, expected the name of a file")


def _umask() -> int:
    mask = os.umask(0)
    os.umask(mask)
    return mask


def write_model(path: str | Path, kind: str, arrays: dict[str, np.ndarray], header: dict[str, Any]) -> None:
    """Write a model file; an existing one is replaced as a whole or not at all.

    The header is what JSON can hold, without NaN or infinity; the kind is checked when the file is read.
    """
    text = json.dumps({**header, "format": FORMAT, "version": VERSION, "kind": kind}, sort_keys=True, allow_nan=False)
    data = save({name: np.ascontiguousarray(array) for name, array in arrays.items()}, metadata={_KEY: text})
    with replacing(path) as temporary:
        temporary.write_bytes(data)


def read_header(path: str | Path) -> dict[str, Any]:
    """Header of a model file, without its arrays; errors as in :func:`read_model`."""
    return _read(Path(path), arrays=False)[1]


def read_model(path: str | Path, kind: str) -> tuple[dict[str, np.ndarray], dict[str, Any]]:
    """Arrays and header of a model file of some kind.

    A file that is missing, damaged, no model, of another kind or of a newer version is a ValueError that names the file.
    """
    arrays, header = _read(Path(path), arrays=True)
    if header["kind"] != kind:
        raise ValueError(f"{path}: holds a model of the kind {header['kind']!r}, expected {kind!r}")
    return arrays, header


def _read(path: Path, arrays: bool) -> tuple[dict[str, np.ndarray], dict[str, Any]]:
    if not path.is_file():
        raise ValueError(f"{path}: no such file")
    try:
        with safe_open(path, framework="np") as file:
            text = (file.metadata() or {}).get(_KEY)
            data = {name: file.get_tensor(name) for name in file.keys()} if arrays else {}  # noqa: SIM118
    except (SafetensorError, OSError, TypeError, AttributeError, KeyError) as error:
        reason = " ".join(str(error).split())
        raise ValueError(f"{path}: damaged, or not a safetensors file ({reason})") from None
    try:
        header = json.loads(text or "")
    except (TypeError, ValueError):
        header = None
    if not isinstance(header, dict) or header.get("format") != FORMAT:
        raise ValueError(f"{path}: a safetensors file, but not an annealed model")
    if not isinstance(header.get("version"), int) or not isinstance(header.get("kind"), str):
        raise ValueError(f"{path}: damaged (the header lacks its version or kind)")
    if header["version"] > VERSION:
        raise ValueError(
            f"{path}: format version {header['version']}, this annealed reads up to version {VERSION}: install a newer"
        )
    return data, header


def check_array(path, arrays: dict[str, np.ndarray], name: str, dtype, shape: tuple[int | None, ...]) -> np.ndarray:
    """Return an array of a model file after checking that it is there, of that type and shape (None: any length), and finite."""
    if name not in arrays:
        raise ValueError(f"{path}: damaged (array {name!r} is missing)")
    array = arrays[name]
    fits = array.ndim == len(shape) and all(want is None or want == have for want, have in zip(shape, array.shape))
    if array.dtype != np.dtype(dtype) or not fits:
        wanted = tuple("any" if want is None else want for want in shape)
        raise ValueError(f"{path}: damaged (array {name!r} is {array.dtype} {array.shape}, expected {np.dtype(dtype)} {wanted})")
    if array.dtype.kind == "f" and np.isnan(array).any():
        raise ValueError(f"{path}: damaged (array {name!r} holds NaN)")
    return array
