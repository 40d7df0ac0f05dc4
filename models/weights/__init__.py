"""The weights that ship with the package: NAME.safetensors, each with its card NAME.md."""

from pathlib import Path

FOLDER = Path(__file__).parent
