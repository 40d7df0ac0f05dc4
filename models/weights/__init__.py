"""Weights shipped with the package: NAME.safetensors, each with a model card NAME.md."""

from pathlib import Path

FOLDER = Path(__file__).parent
