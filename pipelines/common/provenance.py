"""Where models and results come from."""

import subprocess
from pathlib import Path

from ... import __version__


def source_of_code() -> dict[str, str]:
    """Version of the package, and the commit where it runs from a checkout of its repository."""
    root = Path(__file__).resolve().parents[2]
    found = {"version": __version__}
    if (root / ".git").exists():
        ran = subprocess.run(
            ["git", "-C", str(root), "rev-parse", "HEAD"],
            capture_output=True,
            text=True,
            check=False,
        )
        found |= {"commit": ran.stdout.strip()} if ran.returncode == 0 else {}
    return found
