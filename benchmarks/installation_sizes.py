"""Number and disk space of the packages that an installation of ``annealed`` requires, as installed
in the current environment.

    python benchmarks/installation_sizes.py [--extras vision export]

The requirements are those of ``pyproject.toml`` and, in turn, those of the required packages. Disk
space includes compiled Python files.
"""

from __future__ import annotations

import tomllib
from importlib.metadata import distribution
from pathlib import Path

from common import new_parser, print_head, print_line
from packaging.requirements import Requirement
from packaging.utils import canonicalize_name


def required(lines: list[str], extras: dict[str, list[str]]) -> set[str]:
    """Return the names of the packages that requirements lead to, in canonical form."""
    waiting, visited = [(Requirement(line), frozenset({""})) for line in lines], set()
    while waiting:
        requirement, active = waiting.pop()
        marker = requirement.marker
        if marker and not any(marker.evaluate({"extra": extra}) for extra in active):
            continue
        name, chosen = canonicalize_name(requirement.name), frozenset({"", *requirement.extras})
        if (name, chosen) in visited:
            continue
        visited.add((name, chosen))
        if name == "annealed":
            below = [line for extra in requirement.extras for line in extras[extra]]
        else:
            below = distribution(name).requires or []
        waiting += [(Requirement(line), chosen) for line in below]
    return {name for name, _ in visited} - {"annealed"}


def disk_space(name: str) -> int:
    """Return the bytes of the installed files of a package."""
    paths = [Path(str(file.locate())) for file in distribution(name).files or []]
    return sum(path.stat().st_size for path in paths if path.is_file())


def main(argv=None):
    parser = new_parser(__doc__)
    parser.add_argument("--extras", nargs="*", default=["vision"], help="extras, one row each")
    chosen = parser.parse_args(argv).extras
    project = tomllib.loads((Path(__file__).parents[1] / "pyproject.toml").read_text())["project"]
    extras = project["optional-dependencies"]
    print_head("installed", "required packages", "disk space")
    for extra in [None, *chosen]:
        lines = project["dependencies"] + (extras[extra] if extra else [])
        names = required(lines, extras)
        title = f"`annealed[{extra}]`" if extra else "`annealed`"
        print_line(title, len(names), f"{sum(map(disk_space, names)) / 1e9:.2f} GB")


if __name__ == "__main__":
    main()
