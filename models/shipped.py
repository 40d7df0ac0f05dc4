"""The models that ship with the package, and reading a model file of any kind."""

from importlib import import_module
from pathlib import Path
from typing import Any

from .files import read_header
from .weights import FOLDER

# Kind of a model file -> module and class that read it. A new kind of model is a new line.
KINDS = {
    "keypoint detector": ("keypoints.detector", "KeypointDetector"),
    "segmentation ranker": ("motion.ranker", "SegmentationRanker"),
    "image classifier": ("images.classifier", "ImageClassifier"),
    "activity model": ("sensors.activity_model", "ActivityModel"),
    "tabular model": ("tabular.model", "TabularModel"),
}


def list_models() -> list[str]:
    """Names of the models that ship with the package.

    Returns
    -------
    list of str
        The names, sorted.
    """
    return sorted(path.stem for path in FOLDER.glob("*.safetensors"))


def resolve_model(name_or_path: str | Path) -> Path:
    """Return the file of a model: a shipped name, or a path.

    Parameters
    ----------
    name_or_path : str or path
        Name of a shipped model, or a model file.

    Returns
    -------
    Path
        The file.

    Raises
    ------
    ValueError
        If there is neither.
    """
    name = str(name_or_path)
    if name in list_models():
        return FOLDER / f"{name}.safetensors"
    path = Path(name_or_path)
    if path.is_file():
        return path
    shipped = ", ".join(list_models()) or "none"
    raise ValueError(f"model {name!r}: neither a file nor a model that ships with the package ({shipped})")


def load_model(name_or_path: str | Path) -> Any:
    """Load a model: a shipped name, or a path.

    Parameters
    ----------
    name_or_path : str or path
        Name of a shipped model, or a model file.

    Returns
    -------
    model
        Of the class that belongs to the file's kind, e.g. :class:`KeypointDetector`.

    Raises
    ------
    ValueError
        If there is no such model, or the file is damaged.
    """
    path = resolve_model(name_or_path)
    kind = read_header(path)["kind"]
    if kind not in KINDS:
        raise ValueError(f"{path}: holds a model of the unknown kind {kind!r}; expected one of {', '.join(KINDS)}")
    module, name = KINDS[kind]
    return getattr(import_module(f".{module}", __package__), name).load(path)
