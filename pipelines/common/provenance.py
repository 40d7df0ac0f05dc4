"""Where results and models come from: the source, its dependencies, the computer, the date."""

import platform
import re
import subprocess
from datetime import date
from importlib.metadata import version
from pathlib import Path
from typing import Any

from ... import __version__


def source_of_code() -> dict[str, str]:
    """Version of the package, and the commit where it runs from a checkout of its repository."""
    root = Path(__file__).resolve().parents[2]
    found = {"version": __version__}
    if (root / ".git").exists():
        ran = subprocess.run(["git", "-C", str(root), "rev-parse", "HEAD"], capture_output=True, text=True, check=False)
        found |= {"commit": ran.stdout.strip()} if ran.returncode == 0 else {}
    return found


def run_of(command: str, settings: dict[str, Any]) -> dict[str, Any]:
    """What a file of results says of a run."""
    info = Path("/proc/cpuinfo")
    names = re.findall(r"^model name\s*: (.+)", info.read_text(), re.MULTILINE) if info.exists() else []
    versions = {"python": platform.python_version()} | {name: version(name) for name in ("numpy", "scipy", "scikit-learn", "numba")}
    made = {"command": command, "date": str(date.today()), **source_of_code(), "versions": versions}
    return made | {"processor": names[0] if names else platform.processor(), "settings": settings}
