"""The documentation site without sphinx: its map names every page once, pages are linked where they
belong, and examples run."""

import os
import re
import runpy
import subprocess
import sys
from pathlib import Path

from rules import assert_no_offenders

ROOT = Path(__file__).resolve().parents[1]
NAVIGATION = runpy.run_path(str(ROOT / "docs" / "site_map.py"))["NAVIGATION"]
ON_THE_MAP = [page for parts in NAVIGATION.values() for pages in parts.values() for page in pages]
GENERATED = "docs/gallery/index"  # made from examples/gallery
EXAMPLES = sorted((ROOT / "examples" / "gallery").glob("*.py"))


def test_the_map_names_every_page_once():
    folders = [
        ROOT / "docs",
        ROOT / "models" / "weights",
        ROOT / "experiments" / "pages",
        ROOT / "experiments" / "notebook",
    ]
    pages = {
        p.relative_to(ROOT).with_suffix("").as_posix()
        for folder in folders
        for p in folder.rglob("*.md")
    }
    assert sorted([*ON_THE_MAP, "docs/index"]) == sorted(
        {*pages, GENERATED, "CHANGELOG", "SECURITY", "CODE_OF_CONDUCT", "experiments/README"}
    ), "name every page once in docs/site_map.py, and link it from the page above it"
    assert set(NAVIGATION) <= {*ON_THE_MAP, "docs/index"}


def pages_without_link(page):
    """Pages below a page that it does not link."""
    path = ROOT / f"{page}.md"
    targets = re.findall(r"\]\(([\w/.]+\.md)", path.read_text())
    linked = {(path.parent / target).resolve() for target in targets}
    below = {
        (ROOT / f"{child}.md").resolve()
        for pages in NAVIGATION[page].values()
        for child in pages
        if child != GENERATED
    }
    return sorted(below - linked)


def test_a_page_links_those_below_it():
    assert_no_offenders((page, child) for page in NAVIGATION for child in pages_without_link(page))


def test_the_numbers_of_the_readme_stand_on_their_pages():
    text = (ROOT / "README.md").read_text()
    rows = re.findall(r"^\| \*\*([\d.]+)\*\*.*\]\(([\w/.]+\.md)", text, re.MULTILINE)
    assert len(rows) == 3
    for number, page in rows:
        assert re.search(rf"(?<![\d.]){re.escape(number)}(?![\d.])", (ROOT / page).read_text()), (
            f"{page} has no {number}"
        )


def test_the_readme_of_an_index_has_addresses_only():
    with_addresses = runpy.run_path(str(ROOT / ".ci" / "readme.py"))["with_addresses"]
    text = with_addresses((ROOT / "README.md").read_text(), "https://x.org/annealed", "1.2.3")
    assert "<!--" not in text and not re.search(r"\]\((?!https?:|#)", text)
    for place in ("blob/v1.2.3/LICENSE", "raw/v1.2.3/docs/astronaut.png"):
        assert f"](https://x.org/annealed/{place})" in text


def test_examples_have_a_heading():
    """A title, and a line of as many equals signs below it."""
    heads = [(example.name, *example.read_text().split("\n")[1:3]) for example in EXAMPLES]
    assert_no_offenders(head for head in heads if not head[1] or head[2] != "=" * len(head[1]))


def test_examples_run(tmp_path):
    script = (
        "import runpy, sys\nfor example in sys.argv[1:]:\n    runpy.run_path(example)\n    "
        "print(example)\n"
    )
    done = subprocess.run(
        [sys.executable, "-W", "ignore", "-c", script, *map(str, EXAMPLES)],
        cwd=tmp_path,
        env=os.environ | {"MPLBACKEND": "agg", "ANNEALED_QUIET": "1"},
        capture_output=True,
        text=True,
    )
    assert done.returncode == 0, done.stderr[-2000:]
    assert all(str(example) in done.stdout for example in EXAMPLES) and not list(tmp_path.iterdir())
