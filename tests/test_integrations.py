"""The snippets of docs/integrations.md: each after those that need no other package."""

import importlib
import re
from pathlib import Path

import pytest

PAGE = Path(__file__).resolve().parents[1] / "docs" / "integrations.md"
BLOCK = re.compile(
    r"(?:<!-- needs: (?P<needs>[\w.]+) -->\n+)?^```python\n(?P<code>.*?)^```$",
    re.MULTILINE | re.DOTALL,
)
BLOCKS = [(match["needs"], match["code"]) for match in BLOCK.finditer(PAGE.read_text())]


@pytest.mark.filterwarnings("ignore")  # of the other packages
@pytest.mark.parametrize("package", [package for package, _ in BLOCKS if package])
def test_a_snippet_runs(package, tmp_path, monkeypatch):
    try:
        importlib.import_module(package)
    except ModuleNotFoundError:
        pytest.skip("needs annealed[integrations]")
    monkeypatch.chdir(tmp_path)
    names: dict = {}
    for needs, code in BLOCKS:
        if needs in (None, package):
            exec(code, names)
