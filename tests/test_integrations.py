"""Snippets of pages that need other packages: each after those that need none."""

import importlib
import re
from pathlib import Path

import pytest

DOCS = Path(__file__).resolve().parents[1] / "docs"
PAGES = ("integrations.md", "tutorials/insurance.md")
BLOCK = re.compile(
    r"(?:<!-- needs: (?P<needs>[\w.]+) -->\n+)?^```python\n(?P<code>.*?)^```$",
    re.MULTILINE | re.DOTALL,
)
BLOCKS = {
    page: [(match["needs"], match["code"]) for match in BLOCK.finditer((DOCS / page).read_text())]
    for page in PAGES
}


@pytest.mark.filterwarnings("ignore")  # of the other packages
@pytest.mark.parametrize(
    "page, package", [(page, needs) for page in PAGES for needs, _ in BLOCKS[page] if needs]
)
def test_a_snippet_runs(page, package, tmp_path, monkeypatch):
    try:
        importlib.import_module(package)
    except ModuleNotFoundError:
        pytest.skip("needs annealed[integrations]")
    monkeypatch.chdir(tmp_path)
    names: dict = {}
    for needs, code in BLOCKS[page]:
        if needs in (None, package):
            exec(code, names)
