"""Public text uses the field's words: docstrings and messages of the package, its pages and
cards."""

import ast
import re
from pathlib import Path

from rules import assert_no_offenders

ROOT = Path(__file__).resolve().parents[1]
PAGES = [ROOT / name for name in ("README.md", "CHANGELOG.md")]
PAGES += [
    page
    for folder in ("docs", "experiments", "models")
    for page in sorted((ROOT / folder).rglob("*.md"))
]
SOURCES = sorted(
    path
    for package in ("learners", "vision", "models", "pipelines", "experiments/annealed_experiments")
    for path in (ROOT / package).rglob("*.py")
)
# The word to write -> the words that only we would understand.
TERMS = {
    "package, module, layer": r"\b(rooms?|houses?)\b",
    "predicted from, estimated by": r"\btold (from|by|apart by)\b",
    "evaluated, searched": r"\blook(ed|s|ing)? (at|for)\b",
    "annotation, landmark": r"\b(un)?marks\b|\bmarked (by|points?|faces?)\b",
    "dropped, remaining": r"\b(fallen|fell|survivors?|survives?)\b",
    "out of core": r"\boutside memory\b",
    "competitor, baseline": r"\bpeers?\b",
    "custom": r"\b(a user|one)'s own\b|\bof your own\b",
    "synthetic": r"\bmade[- ]up\b",
    "author and year": r"\b(PAMI text|arXiv text|the thesis)\b",
    "similarity transform": r"\bturn and shift\b",
    "0.05": r"(?<![\w.:%*)\]}\\/])\.\d+\b(?!\w)",
}


def texts(path):
    """Pieces of public text of a file."""
    if path.suffix == ".md":
        yield re.sub(
            r"`[^`\n]*`|\]\([^)]*\)|^```.*?^```$",
            "",
            path.read_text(),
            flags=re.MULTILINE | re.DOTALL,
        )
        return
    skipped = set()
    for node in ast.walk(ast.parse(path.read_text())):
        if isinstance(node, ast.FormattedValue) and node.format_spec is not None:
            skipped |= {id(part) for part in ast.walk(node.format_spec)}
        if (
            isinstance(node, ast.Constant)
            and isinstance(node.value, str)
            and id(node) not in skipped
        ):
            yield node.value


def private_words(path):
    found = []
    for text in texts(path):
        for word, pattern in TERMS.items():
            found += [f"{m[0]!r} -> {word}" for m in re.finditer(pattern, text, re.IGNORECASE)]
    return found


def test_words_of_the_field():
    assert_no_offenders(
        (path.relative_to(ROOT), word)
        for path in (*SOURCES, *PAGES)
        for word in private_words(path)
    )


def test_private_words_are_found(tmp_path):
    (tmp_path / "a.md").write_text("The survivors are told from .05 of the room.")
    assert len(private_words(tmp_path / "a.md")) == 4
