"""File format of trained models: safetensors arrays with a JSON header.

Loading a model never executes code. Models shipped with the package are loaded by name.

The metadata of the safetensors file has one entry, ``annealed``, whose value is a JSON object with
``format`` (``FORMAT``), ``version`` (``VERSION``), ``kind`` (the type of model), ``sha256`` (digest
of the whole file, computed with the digest itself set to zeros), and entries specific to the kind,
such as settings, training and scores. The same arrays and header always give the same bytes.
"""

import hashlib
import json
import os
import secrets
import warnings
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from importlib import import_module
from pathlib import Path
from typing import Any, ClassVar, Self

import numpy as np
import numpy.typing as npt
from safetensors import SafetensorError, safe_open
from safetensors.numpy import save

from .messages import plain, short
from .weights import FOLDER

FORMAT = "annealed model"
# incremented when current readers would misread the new files; version 1 has no checksum
VERSION = 2
_KEY = "annealed"
_NO_DIGEST = "0" * 64
# Heuristic limits, far above the needs of the models: length and nesting of the header, and
# magnitude of a number in an array.
_MAX_HEADER, _MAX_DEPTH, _LARGEST = 10_000_000, 32, 1e12
# Kind of a model file -> module and class that read it. A new kind of model needs an entry here.
KINDS = {
    "keypoint detector": ("keypoints.detector", "KeypointDetector"),
    "segmentation ranker": ("motion.ranker", "SegmentationRanker"),
    "image classifier": ("images.classifier", "ImageClassifier"),
    "activity model": ("sensors.activity_model", "ActivityModel"),
    "tabular model": ("tabular.model", "TabularModel"),
}


@contextmanager
def replacing(path: str | Path) -> Iterator[Path]:
    """Context manager that writes a file under a temporary name and renames it on success.

    The temporary file is in the folder of ``path`` and has the same suffix. If writing fails, it is
    removed, so that no partial file remains. A ValueError that names ``path`` is raised if the file
    cannot be written.
    """
    path = Path(path)
    try:
        temporary = path.with_name(f".{path.stem}.{secrets.token_hex(4)}{path.suffix}")
        temporary.touch(exist_ok=False)
    except OSError as error:
        raise ValueError(f"{path}: the file cannot be written ({error.strerror})") from None
    try:
        yield temporary
        with temporary.open("rb") as file:
            os.fsync(file.fileno())
        temporary.replace(path)
    except OSError as error:
        raise ValueError(
            f"{path}: the file cannot be written ({error.strerror or error})"
        ) from None
    finally:
        temporary.unlink(missing_ok=True)


def check_writable(path: Path) -> None:
    """Check that a file can be written before a long computation starts."""
    folder = path.resolve().parent
    if not folder.is_dir() or not os.access(folder, os.W_OK):
        raise ValueError(
            f"{path}: the file cannot be written (the folder does not exist or is not writable)"
        )
    if path.is_dir():
        raise ValueError(f"{path}: this is a folder; expected the name of a file")


def make_folder(path: Path | None) -> None:
    """Create a folder and its parents if they do not exist; None is ignored."""
    try:
        if path is not None:
            path.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise ValueError(f"{path}: the folder cannot be created ({error.strerror})") from None


def write_texts(folder: Path, texts: Mapping[str, Any]) -> None:
    """Write the files of a report to a folder, which is created if it does not exist.

    ``texts`` maps file names to contents. Values other than strings are written as JSON.
    """
    make_folder(folder)
    for name, content in texts.items():
        text = (
            content
            if isinstance(content, str)
            else json.dumps(plain(content), allow_nan=False, indent=1)
        )
        with replacing(folder / name) as temporary:
            temporary.write_text(text, encoding="utf-8")


def write_model(
    path: str | Path, kind: str, arrays: dict[str, np.ndarray], header: dict[str, Any]
) -> None:
    """Write a model file; an existing file is replaced atomically.

    ``kind`` names the type of model and is checked when the file is read. ``header`` contains JSON
    values without NaN or infinity.
    """
    header = {**header, "format": FORMAT, "version": VERSION, "kind": kind, "sha256": _NO_DIGEST}
    text = json.dumps(header, sort_keys=True, allow_nan=False)
    data = save(
        {name: np.ascontiguousarray(array) for name, array in arrays.items()}, metadata={_KEY: text}
    )
    # The digest replaces the zeros; double quotes are escaped, because this is JSON inside JSON.
    key = b'\\"sha256\\": \\"'
    digest = hashlib.sha256(data).hexdigest().encode()
    with replacing(path) as temporary:
        temporary.write_bytes(data.replace(key + _NO_DIGEST.encode(), key + digest, 1))


def read_header(path: str | Path) -> dict[str, Any]:
    """Read only the header of a model file.

    The function raises the same errors as :func:`read_model`.
    """
    return _read(Path(path), arrays=False)[1]


def read_model(path: str | Path, kind: str) -> tuple[dict[str, np.ndarray], dict[str, Any]]:
    """Read the arrays and the header of a model file with the given kind of model.

    A ValueError that names the file is raised if the file is missing or damaged, is not a model, or
    is of a different kind or a newer version.
    """
    arrays, header = _read(Path(path), arrays=True)
    if header["kind"] != kind:
        raise ValueError(
            f"{path}: the file contains a model of kind {header['kind']!r}; expected {kind!r}"
        )
    return arrays, header


def _read(path: Path, arrays: bool) -> tuple[dict[str, np.ndarray], dict[str, Any]]:
    if not path.is_file():
        raise ValueError(f"{path}: no such file")
    try:
        with safe_open(path, framework="np") as file:
            text = (file.metadata() or {}).get(_KEY)
            data = {name: file.get_tensor(name) for name in file.keys()} if arrays else {}  # noqa: SIM118
    except (SafetensorError, OSError, TypeError, ValueError, AttributeError, KeyError) as error:
        raise ValueError(
            short(f"{path}: the file is damaged or not a safetensors file ({error})")
        ) from None
    try:
        header = json.loads(text) if text and len(text) <= _MAX_HEADER else None
    except (ValueError, RecursionError):
        header = None
    if not isinstance(header, dict) or header.get("format") != FORMAT:
        raise ValueError(f"{path}: the file is a safetensors file but not an annealed model")
    version = header.get("version")
    if type(version) is not int or version < 1 or not isinstance(header.get("kind"), str):
        raise ValueError(f"{path}: the file is damaged (the header has no version or kind)")
    if version > VERSION:
        raise ValueError(
            short(
                f"{path}: the file has format version {version}, but this version of annealed "
                f"reads only versions up to {VERSION}; install a newer annealed"
            )
        )
    _check_values(path, header)
    recorded = header.pop("sha256", None)
    if recorded is None and version == 1:
        if arrays:
            warnings.warn(
                f"{path}: the file has an older format without a checksum; "
                "convert it with `annealed models convert`",
                stacklevel=4,
            )
    elif (
        not isinstance(recorded, str)
        or len(recorded) != len(_NO_DIGEST)
        or _digest(path, recorded) != recorded
    ):
        raise ValueError(f"{path}: the file is damaged (the checksum does not match the content)")
    return data, header


def _check_values(path: Path, header: dict[str, Any]) -> None:
    """Reject headers that `write_model` never writes: numbers that are not finite, and deep
    nesting."""
    level: list[Any] = [header]
    for _ in range(_MAX_DEPTH):
        if any(isinstance(value, float) and not np.isfinite(value) for value in level):
            raise ValueError(
                f"{path}: the file is damaged (the header contains a non-finite number)"
            )
        groups = [
            value.values() if isinstance(value, dict) else value
            for value in level
            if isinstance(value, dict | list)
        ]
        level = [value for group in groups for value in group]
        if not level:
            return
    raise ValueError(
        f"{path}: the file is damaged (the header is nested more than {_MAX_DEPTH} levels deep)"
    )


def _digest(path: Path, recorded: str) -> str:
    """Compute the SHA-256 of a file with its own digest zeroed."""
    with path.open("rb") as file:
        start = file.read(8)
        digest = hashlib.sha256(start)
        digest.update(
            file.read(int.from_bytes(start, "little")).replace(
                recorded.encode(), _NO_DIGEST.encode(), 1
            )
        )
        while block := file.read(1 << 20):
            digest.update(block)
    return digest.hexdigest()


@contextmanager
def reading(path: str | Path) -> Iterator[None]:
    """Context manager that converts errors while reading a damaged file to a short ValueError."""
    try:
        yield
    except ValueError as error:
        message = str(error)
        raise ValueError(
            short(
                message
                if message.startswith(str(path))
                else f"{path}: the file is damaged ({message})"
            )
        ) from None
    except (LookupError, TypeError, AttributeError, ArithmeticError, RecursionError) as error:
        raise ValueError(
            short(f"{path}: the file is damaged ({type(error).__name__}: {error})")
        ) from None


class ModelFile:
    """Base class for models that are stored in files.

    A subclass defines ``KIND``, the name of its type in files, and the conversion to and from
    arrays and a header.
    """

    KIND: ClassVar[str]

    def save(self, path: str | Path) -> None:
        """Write a model file: safetensors arrays and a JSON header.

        Parameters
        ----------
        path : path
            Model file; an existing file is replaced.

        Raises
        ------
        ValueError
            If the model is not trained, the file cannot be written, or it would not be readable.
        """
        write_model(path, self.KIND, *self._to_file(Path(path)))

    @classmethod
    def load(cls, path: str | Path) -> Self:
        """Read a model file.

        Parameters
        ----------
        path : path
            Model file written by :meth:`save`.

        Returns
        -------
        model
            Model of this class.

        Raises
        ------
        ValueError
            If the file is missing or damaged, or contains a different kind of model or a newer
            version.
        """
        arrays, header = read_model(path, cls.KIND)
        with reading(path):
            return cls._from_file(Path(path), arrays, header)

    def _to_file(self, path: Path) -> tuple[dict[str, np.ndarray], dict[str, Any]]:
        """Return the arrays and the header. Error messages name the file."""
        raise NotImplementedError

    @classmethod
    def _from_file(cls, path: Path, arrays: dict[str, np.ndarray], header: dict[str, Any]) -> Self:
        """Build the model from checked arrays and a checked header."""
        raise NotImplementedError


def check_settings(
    record: Any,
    defaults: Mapping[str, Any],
    limits: Mapping[str, tuple[float, float]] | None = None,
) -> dict[str, Any]:
    """Convert a JSON object of a header to settings, and validate each setting.

    Lists are converted to tuples. Each setting must have the same type as its value in ``example``:
    bool, int, float, str, or a tuple of these. ``limits`` contains the minimum and maximum of some
    numbers. All other numbers must be between -1e6 and 1e6.
    """
    if not isinstance(record, dict) or record.keys() != defaults.keys():
        raise ValueError(
            f"the settings are {record}; expected a dict with the keys {', '.join(defaults)}"
        )
    for name, example in defaults.items():
        value, several = record[name], isinstance(example, tuple)
        low, high = (limits or {}).get(name, (-1e6, 1e6))
        if not isinstance(value, list if several else type(example) | int) or (
            several and not 0 < len(value) <= 1000
        ):
            raise ValueError(
                f"{name}={value!r} is not valid; "
                f"expected {'a list' if several else type(example).__name__}"
            )
        entries: list[Any] = value if several else [value]
        for entry in entries:
            wanted = type(example[0] if several else example)
            right = type(entry) is wanted or (wanted is float and type(entry) is int)
            if not right or (wanted in (int, float) and not low <= entry <= high):
                bounds = f" from {low:g} to {high:g}" if wanted in (int, float) else ""
                raise ValueError(
                    f"{name}={value!r} is not valid; expected {wanted.__name__}{bounds}"
                )
    return {
        name: tuple(value) if isinstance(value, list) else value for name, value in record.items()
    }


def check_array(
    path: str | Path,
    arrays: dict[str, np.ndarray],
    name: str,
    dtype: npt.DTypeLike,
    shape: tuple[int | None, ...],
    low: float = -_LARGEST,
    high: float = _LARGEST,
) -> np.ndarray:
    """Validate and return an array of a model file.

    The array must have the given type and shape, and its values must be in the given range. None in
    the shape means any length.
    """
    if name not in arrays:
        raise ValueError(f"{path}: the file is damaged (array {name!r} is missing)")
    array = arrays[name]
    fits = array.ndim == len(shape) and all(
        want is None or want == have for want, have in zip(shape, array.shape)
    )
    if array.dtype != np.dtype(dtype) or not fits:
        wanted = tuple("any" if want is None else want for want in shape)
        raise ValueError(
            f"{path}: the file is damaged (array {name!r} has dtype {array.dtype} and shape "
            f"{array.shape}; expected {np.dtype(dtype)} and {wanted})"
        )
    limited = array.size and (array.dtype.kind == "f" or (low, high) != (-_LARGEST, _LARGEST))
    if limited and not (float(array.min()) >= low and float(array.max()) <= high):  # NaN fails both
        raise ValueError(
            f"{path}: the file is damaged (array {name!r} contains NaN or a value outside "
            f"[{low:g}, {high:g}])"
        )
    return array


def list_models() -> list[str]:
    """List the names of the shipped models.

    Returns
    -------
    list of str
        Sorted names.
    """
    return sorted(path.stem for path in FOLDER.glob("*.safetensors"))


def resolve_model(name_or_path: str | Path) -> Path:
    """Return the path of a model, given its name or path.

    Parameters
    ----------
    name_or_path : str or path
        Name of a shipped model, or a model file.

    Returns
    -------
    Path
        Path of the model file.

    Raises
    ------
    ValueError
        If there is neither a shipped model nor a file with that name.
    """
    name = str(name_or_path)
    if name in list_models():
        return FOLDER / f"{name}.safetensors"
    path = Path(name_or_path)
    if path.is_file():
        return path
    shipped = ", ".join(list_models()) or "none"
    raise ValueError(f"model {name!r} is neither a file nor a shipped model ({shipped})")


def load_model(name_or_path: str | Path) -> Any:
    """Load a model, given its name or path.

    Parameters
    ----------
    name_or_path : str or path
        Name of a shipped model, or a model file.

    Returns
    -------
    model
        Loaded model. Its class depends on the file, for example :class:`KeypointDetector`.

    Raises
    ------
    ValueError
        If there is no such model, or the file is damaged.
    """
    path = resolve_model(name_or_path)
    kind = read_header(path)["kind"]
    if kind not in KINDS:
        raise ValueError(
            f"{path}: the file contains a model of unknown kind {kind!r}; "
            f"expected one of {', '.join(KINDS)}"
        )
    module, name = KINDS[kind]
    return getattr(import_module(f".{module}", __package__), name).load(path)
