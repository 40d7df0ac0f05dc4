"""Provenance of models and results."""

import subprocess
from pathlib import Path

from ... import __version__


def source_of_code() -> dict[str, str]:
    """Return the version of the package and, if it runs from a git checkout, the commit."""
    root = Path(__file__).resolve().parents[2]
    source = {"version": __version__}
    if (root / ".git").exists():
        ran = subprocess.run(
            ["git", "-C", str(root), "rev-parse", "HEAD"],
            capture_output=True,
            text=True,
            check=False,
        )
        source |= {"commit": ran.stdout.strip()} if ran.returncode == 0 else {}
    return source
