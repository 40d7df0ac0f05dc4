"""The weights that ship with the package: NAME.safetensors, each with its card NAME.md."""

from pathlib import Path

FOLDER = Path(__file__).parent


def path_of(name: str) -> Path:
    """Return the path at which the weights of that name lie, or would lie."""
    return FOLDER / f"{name}.safetensors"
