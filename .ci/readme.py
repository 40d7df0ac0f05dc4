"""Replace the relative links and pictures of README.md by addresses, for a package index, which has
no checkout: below ``Source`` of ``[project.urls]`` in pyproject.toml. Without it the file stays.

python .ci/readme.py CHECKOUT        a copy, from which the release is built
"""

import re
import sys
import tomllib
from pathlib import Path


def with_addresses(text: str, source: str, version: str) -> str:
    """A page whose relative links point to a version of the sources; pictures to their content."""
    return re.sub(
        r"(!?)\[([^]]*)\]\((?!https?:|#)",
        lambda m: f"{m[1]}[{m[2]}]({source}/{'raw' if m[1] else 'blob'}/v{version}/",
        text,
    )


if __name__ == "__main__":
    root = Path(sys.argv[1])
    project = tomllib.loads((root / "pyproject.toml").read_text())["project"]
    version = re.search(r'__version__ = "(.+)"', (root / "__init__.py").read_text())[1]
    if "Source" in project.get("urls", {}):
        page = root / "README.md"
        page.write_text(with_addresses(page.read_text(), project["urls"]["Source"], version))
    else:
        print("no Source in [project.urls]: the README keeps relative links")
