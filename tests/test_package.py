"""The package as an installed whole: names, list of packages, doctests."""

import doctest
import importlib
import pkgutil
import tomllib
from pathlib import Path

import annealed
import pytest

ROOT = Path(__file__).resolve().parents[1]
MODULES = sorted(m.name for m in pkgutil.walk_packages(annealed.__path__, "annealed."))
PACKAGES = ("learners", "vision", "models", "pipelines")


def test_public_names_resolve():
    for name in annealed.__all__:
        assert getattr(annealed, name) is not None
    with pytest.raises(AttributeError, match="No annealed attribute FSAClassfier"):
        _ = annealed.FSAClassfier


def test_every_package_is_listed():
    listed = set(
        tomllib.loads((ROOT / "pyproject.toml").read_text())["tool"]["setuptools"]["packages"]
    )
    found = {"annealed"} | {
        "annealed." + ".".join(init.parent.relative_to(ROOT).parts)
        for package in PACKAGES
        for init in (ROOT / package).rglob("__init__.py")
    }
    assert listed == found


@pytest.mark.filterwarnings("ignore:annealed.pipelines.faces is:FutureWarning")
@pytest.mark.parametrize(
    "name", [m for m in MODULES if m.split(".")[1] in PACKAGES and not m.endswith("__main__")]
)
def test_doctests(name):
    for extra in ("dask", "torch"):  # what a design on them imports is optional
        if name.endswith(f".{extra}_design"):
            pytest.importorskip(extra, reason=f"needs annealed[{extra}]")
    result = doctest.testmod(
        importlib.import_module(name), optionflags=doctest.NORMALIZE_WHITESPACE | doctest.ELLIPSIS
    )
    assert result.failed == 0
