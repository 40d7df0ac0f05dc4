"""The architecture: imports go down only, without circles, and a folder stays small enough to be
read at once."""

import ast
from pathlib import Path

import annealed
import pytest
from rules import assert_no_offenders

ROOT = Path(__file__).resolve().parents[1]
PACKAGES = ("learners", "vision", "models", "pipelines")  # from the bottom up
MAX_MODULES = 12
# Inside a package: levels from the bottom up. A part imports parts of lower levels only, never one
# of its own level.
LEVELS = {
    "learners": [
        {"types", "sklearn_bases"},
        {"compilation"},
        {"parameters"},
        {"objective", "sources"},
        {"designs"},
        {"solvers"},
        {"common"},
        {"model_selection", "plots"},
        {"fsa", "kernel_machines", "metric_learning", "online", "selectors", "sequences"},
        {"inference", "stability"},
    ],
    "vision": [
        {"images", "pyramid", "tracks.pairs"},
        {"point_histograms", "tracks", "windows", "words"},
    ],
    "models": [
        {"messages", "pages", "weights"},
        {"files"},
        {"keypoints.windows"},
        {"keypoints.instances"},
        {"images", "keypoints", "motion", "sensors", "tabular"},
    ],
    "pipelines": [
        {"console"},
        {"common"},
        {"model_selection"},
        {"motion", "pets", "sensors", "tabular"},
        {"keypoints"},
        {"keypoints.training"},
        {"faces", "serve.answers", "warmup"},
        {"serve"},
        {"cli"},
    ],
}


def python_files():
    return sorted(path for package in PACKAGES for path in (ROOT / package).rglob("*.py"))


def dotted(path: Path) -> tuple[str, ...]:
    """Parts of a module's name below ``annealed``; a package's own name for its ``__init__``."""
    parts = path.relative_to(ROOT).with_suffix("").parts
    return parts[:-1] if parts[-1] == "__init__" else parts


MODULES = {dotted(path): path for path in python_files()}


# The module behind each name that the stub of a package lists.
LISTED = {
    (*package, alias.name): (*package, *(node.module or alias.name).split("."))
    for package in MODULES
    for stub in [MODULES[package].with_suffix(".pyi")]
    if stub.is_file()
    for node in ast.parse(stub.read_text()).body
    if isinstance(node, ast.ImportFrom)
    for alias in node.names
}


def resolve(parts: tuple[str, ...]) -> tuple[str, ...] | None:
    """The module that a dotted name means, if it is one of ours: names inside a module are cut
    off."""
    parts = LISTED.get(parts, parts)
    while parts and parts not in MODULES:
        parts = parts[:-1]
    return parts or None


def imports_in(source: str, module: tuple[str, ...], is_package: bool):
    """Modules of this project that a source imports anywhere in it, with the line; relative imports
    of any depth are seen."""
    for node in ast.walk(ast.parse(source)):
        names: list[tuple[str, ...]] = []
        if isinstance(node, ast.Import):
            names = [
                tuple(a.name.split(".")[1:])
                for a in node.names
                if a.name.split(".")[0] == "annealed"
            ]
        elif isinstance(node, ast.ImportFrom):
            stem = tuple(node.module.split(".")) if node.module else ()
            if node.level == 0:
                if stem[:1] != ("annealed",):
                    continue
                base = stem[1:]
            else:
                home = module if is_package else module[:-1]
                base = home[: len(home) - (node.level - 1)] + stem
            names = [(*base, a.name) for a in node.names]
        for name in names:
            found = resolve(name)
            if found is not None:
                yield found, node.lineno


def imports_of(path: Path):
    return imports_in(path.read_text(), dotted(path), path.name == "__init__.py")


GRAPH = {
    dotted(path): {target for target, _ in imports_of(path) if target != dotted(path)}
    for path in python_files()
}


@pytest.mark.parametrize(
    "line, target",
    [
        ("from ..models import files", ("models", "files")),
        ("from .. import models", ("models",)),
        ("from ..models.files import read_header", ("models", "files")),
        ("from ..models import load_model", ("models", "files")),
        ("import annealed.models.files", ("models", "files")),
        ("from annealed.models import files as f", ("models", "files")),
        ("def f():\n    from ..models.files import read_header", ("models", "files")),
    ],
)
def test_every_form_of_import_is_seen(line, target):
    assert target in {found for found, _ in imports_in(line, ("vision", "images"), False)}


def test_deeper_relative_imports_are_seen():
    assert ("models", "files") in {
        t for t, _ in imports_in("from ...models.files import x", ("vision", "windows", "x"), False)
    }
    assert ("models", "files") in {
        t for t, _ in imports_in("from ..models.files import x", ("vision",), True)
    }


def offending_imports(forbidden):
    """Imports of ours that a rule forbids, as lines to click on; the rule gets the importing module
    and the imported one."""
    return [
        f"{path.relative_to(ROOT)}:{line} imports {'.'.join(target)}"
        for path in python_files()
        for target, line in imports_of(path)
        if forbidden(dotted(path), target)
    ]


def test_imports_only_go_down():
    assert_no_offenders(
        offending_imports(
            lambda module, target: PACKAGES.index(target[0]) > PACKAGES.index(module[0])
        )
    )


def part_of(module: tuple[str, ...]) -> str:
    """The deepest part of the table that holds a module; empty for a package's own ``__init__``."""
    names = {name for level in LEVELS[module[0]] for name in level}
    parts = [".".join(module[1:end]) for end in range(2, len(module) + 1)]
    found = [part for part in parts if part in names]
    return found[-1] if found else ".".join(module[1:2])


def level_of(module: tuple[str, ...]) -> int:
    part = part_of(module)
    if not part:  # the package's own names stand above its parts
        return len(LEVELS[module[0]])
    return next((i for i, level in enumerate(LEVELS[module[0]]) if part in level), -1)


def test_every_module_is_in_a_part():
    """Of the table above: a new part is added there."""
    assert_no_offenders(".".join(module) for module in MODULES if level_of(module) < 0)


def climbs(module, target):
    """Whether an import within a package reaches another part that is not lower."""
    return (
        target[0] == module[0]
        and part_of(target) != part_of(module)
        and level_of(target) >= level_of(module)
    )


def test_parts_import_lower_parts():
    assert_no_offenders(offending_imports(climbs))


def test_offenders_would_be_found():
    assert climbs(("learners", "solvers", "annealing"), ("learners", "fsa", "path"))
    assert not climbs(("learners", "fsa", "path"), ("learners", "solvers", "annealing"))
    assert "learners/solvers/annealing.py:" in "".join(
        offending_imports(lambda module, target: True)
    )


def circles(graph):
    """Groups of modules that import each other, by depth-first search (Tarjan)."""
    order, low, stack, found = {}, {}, [], []

    def visit(v):
        order[v] = low[v] = len(order)
        stack.append(v)
        for w in graph[v]:
            if w not in order:
                visit(w)
                low[v] = min(low[v], low[w])
            elif w in stack:
                low[v] = min(low[v], order[w])
        if low[v] == order[v]:
            group = []
            while not group or group[-1] != v:
                group.append(stack.pop())
            if len(group) > 1:
                found.append(sorted(".".join(m) for m in group))

    for v in graph:
        if v not in order:
            visit(v)
    return found


def test_a_circle_would_be_found():
    assert circles({"a": {"b"}, "b": {"c"}, "c": {"b"}}) == [["b", "c"]]


def test_no_circles():
    assert_no_offenders(" <-> ".join(group) for group in circles(GRAPH))


def test_folders_are_small():
    folders = sorted({path.parent for path in python_files()})
    modules = {
        folder: [path for path in folder.glob("*.py") if path.name != "__init__.py"]
        for folder in folders
    }
    assert_no_offenders(
        (folder, len(found)) for folder, found in modules.items() if len(found) > MAX_MODULES
    )


def test_every_module_is_installed():
    """What the wheel holds: every module of the four packages, the weights, and nothing beside
    ``annealed``."""
    installed = Path(annealed.__file__).resolve().parent
    if installed == ROOT:
        pytest.skip(
            "the package is used from the checkout; install it to test what the wheel holds"
        )
    for path in [
        *python_files(),
        *(ROOT / package / "__init__.pyi" for package in ("learners", "models", "vision")),
    ]:
        assert (installed / path.relative_to(ROOT)).is_file(), (
            f"{path} is not in the installed package"
        )
    for path in (ROOT / "models" / "weights").glob("*.safetensors"):
        assert (installed / "models" / "weights" / path.name).stat().st_size == path.stat().st_size
    strangers = {path.name for path in installed.iterdir()} - {
        *PACKAGES,
        "__init__.py",
        "__init__.pyi",
        "py.typed",
        "__pycache__",
    }
    assert not strangers
