"""Prints the oldest supported release of each requirement of the package and its tests, as
constraints for pip."""

import re
import tomllib
from pathlib import Path

project = tomllib.loads((Path(__file__).resolve().parents[1] / "pyproject.toml").read_text())[
    "project"
]


def with_extras(requirements: list[str]) -> set[str]:
    """Requirements, and in place of extras of the package itself what these bring."""
    requirements_of = set()
    for requirement in requirements:
        match = re.fullmatch(r"annealed\[([\w,]+)\]", requirement)
        extras = match[1].split(",") if match else []
        requirements_of |= (
            with_extras([r for extra in extras for r in project["optional-dependencies"][extra]])
            if match
            else {requirement}
        )
    return requirements_of


for requirement in sorted(with_extras([*project["dependencies"], "annealed[test]"])):
    name, oldest = re.fullmatch(r"([\w.-]+)(?:\[[\w,]+\])?>=([\d.]+)", requirement).groups()
    print(f"{name}=={oldest}")
