"""The reference pages name every command, every option and every public name: ``python
.ci/pages.py`` writes them."""

import importlib
import re
from pathlib import Path

import pytest
from annealed.pipelines.cli.app import app
from rules import assert_no_offenders
from typer.main import get_command

DOCS = Path(__file__).resolve().parents[1] / "docs"


def commands(command, name="annealed"):
    for part, below in getattr(command, "commands", {}).items():
        yield f"{name} {part}", below
        yield from commands(below, f"{name} {part}")


def test_the_page_names_every_command_and_its_options():
    page = (DOCS / "commands.md").read_text()
    sections = dict(re.findall(r"^#+ (annealed .*)\n((?:(?!^#).*\n)*)", page, re.MULTILINE))
    offenders = []
    for name, command in commands(get_command(app)):
        named = [
            option
            for parameter in command.params
            if not getattr(parameter, "hidden", False)  # former names
            for option in (*parameter.opts, *parameter.secondary_opts)
        ]
        options = {option for option in named if option.startswith("-")}
        cells = re.findall(r"^\| (`-[^|]*)\|", sections.get(name, ""), re.MULTILINE)
        on_page = {option for cell in cells for option in re.findall(r"`(-+[a-z-]+)`", cell)}
        if name not in sections or options != on_page:
            offenders.append((name, f"has {sorted(options)}, docs/commands.md {sorted(on_page)}"))
    assert_no_offenders(offenders)


@pytest.mark.parametrize("package", ["learners", "vision", "models"])
def test_the_page_names_every_public_name(package):
    page = (DOCS / "api.md").read_text()
    section = page.partition(f"## annealed.{package}\n")[2].partition("\n## ")[0]
    assert set(re.findall(r"^\| `(\w+)`", section, re.MULTILINE)) == set(
        importlib.import_module(f"annealed.{package}").__all__
    )


PAGES = [DOCS.parent / "README.md"]
PAGES += [
    page
    for folder in ("docs", "experiments", "models")
    for page in sorted((DOCS.parent / folder).rglob("*.md"))
]


def test_files_that_a_page_names_are_there():
    folders = "benchmarks|experiments|tests|examples|docs|learners|vision|models|pipelines"
    file_name = re.compile(rf"`(?:python )?((?:{folders})/[\w/]+\.\w+)")
    named = [
        (page.relative_to(DOCS.parent), file)
        for page in PAGES
        for file in file_name.findall(page.read_text())
    ]
    assert_no_offenders((page, file) for page, file in named if not (DOCS.parent / file).exists())


def test_the_citation_has_the_version():
    version = importlib.import_module("annealed").__version__
    assert re.search(
        rf"^version: {re.escape(version)}$",
        (DOCS.parent / "CITATION.cff").read_text(),
        re.MULTILINE,
    )


def test_the_architecture_names_every_folder():
    root = DOCS.parent
    packages = (
        "learners/*",
        "vision/*",
        "models/*",
        "pipelines/*",
        "experiments/annealed_experiments",
    )
    modules = [path for package in packages for path in root.glob(f"{package}/**/__init__.py")]
    folders = {path.parent.relative_to(root).as_posix() for path in modules}
    named = set(
        re.findall(r"^\| `([\w/]+)` \|", (DOCS / "architecture.md").read_text(), re.MULTILINE)
    )
    assert named == folders
