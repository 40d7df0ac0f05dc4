"""Check the contents of a wheel and of a source distribution: ``python .ci/contents.py WHEEL
SDIST``."""

import sys
import tarfile
import zipfile

wheel, sdist = sys.argv[1:]
inside = {name for name in zipfile.ZipFile(wheel).namelist() if ".dist-info/" not in name}
with tarfile.open(sdist) as archive:
    source = {name.partition("/")[2] for name in archive.getnames()}
stray = sorted(name for name in inside if not name.startswith("annealed/"))
assert not stray, f"the wheel holds more than annealed/: {stray[:5]}"
folders = tuple(
    f"annealed/{folder}/" for folder in ("tests", "docs", "build", "examples", "benchmarks")
)
unwanted = sorted(name for name in inside if name.startswith(folders))
assert not unwanted, f"the wheel holds {unwanted[:5]}"
missing = sorted(inside - {f"annealed/{name}" for name in source})
assert not missing, f"the source distribution lacks {missing[:5]}"
for name in (
    "models/weights/LICENSE",
    "models/weights/faces.safetensors",
    "py.typed",
    "learners/__init__.pyi",
    "learners/sklearn_bases.pyi",
):
    assert f"annealed/{name}" in inside, f"the wheel lacks {name}"
assert {"LICENSE", "README.md", "pyproject.toml", "models/weights/LICENSE"} <= source
print(f"wheel: {len(inside)} files; source distribution: {len(source)}")
