"""Prints the oldest release of everything that the package and its tests say they work with, as
constraints for pip."""

import re
import tomllib
from pathlib import Path

project = tomllib.loads((Path(__file__).resolve().parents[1] / "pyproject.toml").read_text())[
    "project"
]


def with_extras(requirements: list[str]) -> set[str]:
    """Requirements, and in place of extras of the package itself what these bring."""
    found = set()
    for requirement in requirements:
        own = re.fullmatch(r"annealed\[([\w,]+)\]", requirement)
        extras = own[1].split(",") if own else []
        found |= (
            with_extras([r for extra in extras for r in project["optional-dependencies"][extra]])
            if own
            else {requirement}
        )
    return found


for requirement in sorted(with_extras([*project["dependencies"], "annealed[test]"])):
    name, oldest = re.fullmatch(r"([\w.-]+)(?:\[[\w,]+\])?>=([\d.]+)", requirement).groups()
    print(f"{name}=={oldest}")
