"""Provenance of the stored results: the run, and a fingerprint of the code that it depends on."""

import ast
import functools
import hashlib
import json
import os
import platform
import re
import shlex
import subprocess
import sys
from collections.abc import Iterator
from datetime import date
from importlib.metadata import version
from importlib.util import resolve_name
from itertools import chain
from pathlib import Path
from typing import Any

import annealed
from annealed.models.files import replacing
from annealed.pipelines.common.provenance import source_of_code

_SCRIPT = re.compile(r"(?:benchmarks|examples|tests)/[\w/]+(?:\.py)?")  # or a folder of tests
_TABLE = re.compile(r"(?:annealed reproduce |reproduce\(['\"]|selector_table\(['\"])([\w-]+)")
_GROUP = re.compile(r"annealed (faces|keypoints|motion|pets|sensors|select)\b")
_REQUIRED = ("command", "commit", "versions", "processor", "seeds", "fingerprint")


class Sources:
    """Source files that are reachable by imports.

    Parameters
    ----------
    package, experiments : path
        Folders of the packages ``annealed`` and ``annealed_experiments``.
    checkout : path, default "."
        Folder of the scripts that are named in commands.
    """

    def __init__(self, package: Path, experiments: Path, checkout: Path | str = "."):
        self.folders = {"annealed": Path(package), "annealed_experiments": Path(experiments)}
        self.checkout = Path(checkout)
        self._read = functools.cache(_read)  # each file is parsed once

    def file(self, module: tuple[str, ...], suffix: str = ".py") -> Path | None:
        """Return the file of a module or package of the project."""
        if not module or module[0] not in self.folders:
            return None
        base = self.folders[module[0]].joinpath(*module[1:])
        files = (base / f"__init__{suffix}", base.parent / f"{module[-1]}{suffix}")
        return next((file for file in files if file.is_file()), None)

    def define(self, module: tuple[str, ...], name: str) -> set[tuple[str, ...]]:
        """Return the modules that ``from module import name`` depends on, with "*" for every name.

        A package with a stub imports a name on first use, so only the module of the name counts.
        """
        if self.file((*module, name)):
            return {(*module, name)}
        stub = self.file(module, ".pyi")
        if stub is None:
            return {module} if self.file(module) else set()
        below: set[tuple[str, ...]] = set()
        for base, alias in self._read(stub, module)[0]:
            if name in ("*", alias):
                below |= self.define(base, alias)
        return below or {(*module, "__init__")}  # the name is defined in the package itself

    def roots(self, command: str) -> list[tuple[tuple[str, ...], Path]]:
        """Return the modules and scripts that a command runs, with their files."""
        known = self._registry()
        modules = {
            tuple(resolve_name(f".{known[name]}", "annealed_experiments").split("."))
            for name in _TABLE.findall(command)
            if name in known
        }
        modules |= {("annealed", "pipelines", "cli", group) for group in _GROUP.findall(command)}
        result = [(module, file) for module in modules if (file := self.file(module))]
        named = [self.checkout / name for name in _SCRIPT.findall(command)]
        scripts = [*named, *chain.from_iterable(folder.glob("*.py") for folder in named)]
        return result + [((file.stem,), file) for file in scripts if file.is_file()]

    def _registry(self) -> dict[str, str]:
        """Return the modules of the tables and figures by name."""
        file = self.folders["annealed_experiments"] / "registry.py"
        if not file.is_file():
            return {}
        values = {
            node.target.id: ast.literal_eval(node.value)
            for node in ast.parse(file.read_text(encoding="utf-8")).body
            if isinstance(node, ast.AnnAssign) and isinstance(node.target, ast.Name) and node.value
        }
        figures = {
            name: f"figures.{module}" for name, (module, *_) in values.get("FIGURES", {}).items()
        }
        return figures | {name: module for name, (module, *_) in values["TABLES"].items()}

    def closure(self, command: str) -> dict[str, Path]:
        """Return all source files that a command depends on, by module name."""
        waiting = self.roots(command)
        files: dict[str, Path] = {}
        while waiting:
            module, file = waiting.pop()
            if ".".join(module) in files:
                continue
            files[".".join(module)] = file
            stub = self.file(module, ".pyi")  # all names of the module count
            names = [self._read(path, module)[0] for path in (file, stub) if path]
            for base, name in chain.from_iterable(names):
                if base and base[0] not in self.folders:  # another script in the same folder
                    module_file = file.parent / f"{base[0]}.py"
                    if module[0] not in self.folders and module_file.is_file():
                        waiting.append((base[:1], module_file))
                    continue
                for below in self.define(base, name):
                    path = self.file(below)
                    if path is not None:
                        waiting.append((below, path))
        return files

    def fingerprint(self, command: str) -> str | None:
        """Return a hash of the code that a command depends on, without docstrings and comments.

        The result is None if no module or script is known for the command. Models and printed
        values are data and do not count.
        """
        files = self.closure(command)
        if not files:
            return None
        parts = [
            f"{name} {self._read(file, tuple(name.split('.')))[1]}"
            for name, file in sorted(files.items())
        ]
        return hashlib.sha256("\n".join(parts).encode()).hexdigest()[:16]


def running() -> Sources:
    """Return the sources of the running process, and scripts below the current folder."""
    return Sources(Path(str(annealed.__file__)).parent, Path(__file__).parent)


def of_checkout(checkout: Path | str) -> Sources:
    """Return the sources of a checkout."""
    root = Path(checkout)
    return Sources(root, root / "experiments" / "annealed_experiments", root)


def _read(file: Path, module: tuple[str, ...]) -> tuple[list[tuple[tuple[str, ...], str]], str]:
    """Return the imports of a file and the hash of its statements."""
    tree = ast.parse(file.read_text(encoding="utf-8"))
    code = hashlib.sha256(repr(_plain(tree)).encode()).hexdigest()
    return _imports(tree, file, module), code


def _imports(
    tree: ast.Module, file: Path, module: tuple[str, ...]
) -> list[tuple[tuple[str, ...], str]]:
    """Return the module and name of each import in a file, including imports inside functions."""
    is_package = file.stem == "__init__" and module[-1] != "__init__"
    package = module if is_package else module[:-1]
    result = []
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            result += [(tuple(alias.name.split(".")), "*") for alias in node.names]
        elif isinstance(node, ast.ImportFrom):
            above = package[: len(package) - node.level + 1] if node.level else ()
            base = (*above, *(node.module.split(".") if node.module else ()))
            result += [(base, alias.name) for alias in node.names]
    return result


def _plain(node: Any) -> Any:
    """Return a syntax tree as nested tuples, without docstrings and without empty fields, which
    differ between Python versions.
    """
    if isinstance(node, list):
        return tuple(map(_plain, node))
    if not isinstance(node, ast.AST):
        return node
    fields = dict(ast.iter_fields(node))
    if isinstance(node, (ast.Module, ast.ClassDef, ast.FunctionDef, ast.AsyncFunctionDef)):
        fields["body"] = node.body[ast.get_docstring(node, clean=False) is not None :]
    values = [(key, _plain(value)) for key, value in fields.items() if value not in (None, [])]
    return (type(node).__name__, *values)


def seeds_of(settings: dict[str, Any]) -> Any:
    """Return the seeds in the settings, the seeds from 0 to the number of runs, or "fixed in the
    code".
    """
    runs = settings.get("runs")
    return settings.get("seeds", f"0 to {runs - 1}" if runs else "fixed in the code")


def run_of(command: str, settings: dict[str, Any]) -> dict[str, Any]:
    """Return the description of a run in a results file."""
    info = Path("/proc/cpuinfo")
    names = (
        re.findall(r"^model name\s*: (.+)", info.read_text(), re.MULTILINE) if info.exists() else []
    )
    versions = {"python": platform.python_version()} | {
        name: version(name) for name in ("numpy", "scipy", "scikit-learn", "numba")
    }
    made = {
        "command": _with_data(command),
        "date": str(date.today()),
        **source_of_code(),
        "versions": versions,
    }
    return made | {
        "processor": names[0] if names else platform.processor(),
        "seeds": seeds_of(settings),
        "fingerprint": running().fingerprint(command),
        "settings": settings,
    }


def _with_data(text: str) -> str:
    """Replace the folder of the public data by DATA."""
    folder = os.environ.get("ANNEALED_DATA")
    return text.replace(folder, "DATA") if folder else text


def table_of(command: str) -> tuple[list[str], list[list[str]]]:
    """Run a script of the checkout, and return the columns and rows of the Markdown table that it
    prints.

    Parameters
    ----------
    command : str
        Path of the script below the current folder, with its arguments.
    """
    words = shlex.split(command)
    lines = []
    with subprocess.Popen(
        [sys.executable, *words], stdout=subprocess.PIPE, text=True, encoding="utf-8"
    ) as process:
        assert process.stdout is not None
        for line in process.stdout:
            print(line, end="", flush=True)
            lines.append(line.strip())
    if process.returncode:
        raise ValueError(
            f"{command}: the command exited with code {process.returncode}; expected 0"
        )
    cells = [
        [cell.strip() for cell in line[1:-1].split("|")]
        for line in lines
        if line.startswith("|") and line.endswith("|")
    ]
    rules = [i for i, row in enumerate(cells) if all(re.fullmatch(":?-+:?", cell) for cell in row)]
    heads = {tuple(cells[i - 1]) for i in rules}
    if len(heads) != 1:
        raise ValueError(f"{command}: the command printed {len(heads)} tables; expected one")
    hidden = {*rules, *(i - 1 for i in rules)}
    return list(heads.pop()), [row for i, row in enumerate(cells) if i not in hidden]


def run_script(command: str, file: Path) -> None:
    """Run a script of the checkout, and store the table that it prints in a results file, with the
    cells as printed."""
    made = [run_of(f"python {command}", {})]  # the code as it is at the start
    columns, rows = table_of(command)
    write(file, {"name": file.stem, "made": made, "columns": columns, "rows": rows})


def run_command(command: str, file: Path) -> None:
    """Run a command of the package, and store the rows of its JSON output in a results file."""
    words = [sys.executable, "-m", "annealed.pipelines.cli", *shlex.split(command)[1:], "--json"]
    ran = subprocess.run(words, stdout=subprocess.PIPE, text=True, encoding="utf-8", check=False)
    if ran.returncode:
        raise ValueError(f"{command}: the command exited with code {ran.returncode}; expected 0")
    record = json.loads(_with_data(ran.stdout))
    record["rows"] = [row | {"made": 0} for row in record["rows"]]
    made = [run_of(command, record["settings"])]
    write(file, {"name": record["name"], "settings": record["settings"], "made": made} | record)


def write(file: Path, record: dict[str, Any]) -> None:
    """Write a results file with a line for each run and row."""
    parts = []
    for key, value in record.items():
        lines = ",\n  ".join(map(json.dumps, value)) if key in ("made", "rows") else ""
        parts.append(f' "{key}": ' + (f"[\n  {lines}\n ]" if lines else json.dumps(value)))
    with replacing(file) as temporary:
        temporary.write_text("{\n" + ",\n".join(parts) + "\n}\n", encoding="utf-8")


def _runs(results: Path) -> Iterator[tuple[str, dict[str, Any]]]:
    """Yield the file name and description of each run whose rows are stored."""
    for file in sorted(results.glob("*.json")):
        record = json.loads(file.read_text(encoding="utf-8"))
        used = {row["made"] for row in record["rows"] if isinstance(row, dict)}
        for i, run in enumerate(record["made"]):
            if not used or i in used:
                yield file.stem, run


def incomplete(results: Path) -> list[dict[str, str]]:
    """Return the results files that have a run with an incomplete description, with the missing
    entries."""
    missing: dict[str, set[str]] = {}
    for name, run in _runs(results):
        missing.setdefault(name, set()).update(
            key for key in _REQUIRED if run.get(key) in (None, "")
        )
    files: dict[str, list[str]] = {}
    for name, gaps in missing.items():
        if gaps:
            files.setdefault(", ".join(key for key in _REQUIRED if key in gaps), []).append(name)
    return [{"missing": gaps, "files": ", ".join(names)} for gaps, names in sorted(files.items())]


def stale(checkout: Path | str = ".") -> list[dict[str, str]]:
    """Return the results files whose code has changed since their run, or that have no
    fingerprint."""
    results = Path(checkout) / "experiments" / "results"
    if not results.is_dir():
        raise ValueError(f"{results}: no such folder; run this command from a checkout")
    sources = of_checkout(checkout)
    rows = []
    for name, run in _runs(results):
        stored = run.get("fingerprint")
        state = "no fingerprint" if stored is None else "code changed"
        if stored is None or stored != sources.fingerprint(run["command"]):
            rows.append(
                {"file": name, "state": state, "date": run["date"], "command": run["command"]}
            )
    return rows
