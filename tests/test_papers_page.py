"""docs/papers.md against the papers' own tables, figures and algorithms, and against ``annealed
reproduce --list``."""

import re
from itertools import pairwise
from pathlib import Path

import pytest
from annealed.pipelines.reproduce.registry import FIGURES, TABLES, entries

ROOT = Path(__file__).resolve().parents[1]
# What each paper prints, as its captions number it.
ROMAN = ("I", "II", "III", "IV", "V", "VI", "VII")
PRINTED = {
    "Barbu et al. (2014)": {"Algorithm": (1, 2, 3), "Table": range(1, 6), "Figure": range(1, 10)},
    "Barbu et al. (2017)": {"Algorithm": (1,), "Table": ROMAN, "Figure": range(1, 8)},
    "Liu et al. (2014)": {"Algorithm": (1,), "Table": (1, 2), "Figure": (1, 2)},
    "Tan et al. (2013)": {"Algorithm": (1, 2, 3), "Table": ROMAN[:3], "Figure": range(1, 9)},
    "Ma (thesis)": {
        "Algorithm": (2.1, 2.2, 3.1, 3.2, 3.3, 3.4),
        "Table": (2.1, 2.2, 2.3, 2.4, 3.1, 3.2, 3.3, 3.4),
        "Figure": (2.1, 2.2, 2.3, 2.4, 2.5, 3.1, 3.2, 3.3, 3.4, 3.5, 4.1, 4.2, 4.3, 4.4, 4.5, 4.6),
    },
}
NUMBER = r"(?:[IVX]+|\d+(?:\.\d+)?)(?![\w.]*\w)"
ITEMS = re.compile(rf"(Table|Figure|Algorithm)s? ({NUMBER}(?:(?:, | and | to ){NUMBER})*)")
PAPER = re.compile(r"(?:Barbu et al\. )?\(201[47]\)(?: and \(201[47]\))?|Liu et al\. \(2014\)|Tan et al\. \(2013\)|Ma \(thesis\)")


def numbered(text):
    """Kind and number of the tables, figures and algorithms that a text names."""
    found = set()
    for kind, numbers in ITEMS.findall(re.sub(r"(\d)\(\w\)", r"\1", text)):
        for part in re.split(", | and ", numbers):
            first, _, last = part.partition(" to ")
            *chapter, low = first.split(".")
            high = last.split(".")[-1]
            ends = [low] if not last else [str(n) for n in range(int(low), int(high) + 1)]
            found |= {(kind, ".".join([*chapter, end])) for end in ends}
    return found


def sections():
    """Paper -> rows of its table: what, where and state, and the names that ``annealed reproduce``
    gets."""
    found = {}
    for part in (ROOT / "docs" / "papers.md").read_text().split("\n## ")[1:]:
        lines = [re.split(r"(?<!\\) \| ", line.strip("| ")) for line in part.splitlines() if line.startswith("| ")][1:]
        assert all(len(line) == 3 and line[2] for line in lines), "every item has a state"
        found[part.splitlines()[0]] = [(*line, re.findall(r"annealed reproduce ([a-z][\w-]*)", line[1])) for line in lines]
    return found


def listed():
    """(paper, kind, number) of every table and figure in ``annealed reproduce --list``, with the
    name."""
    found = {}
    for name, shows in entries():
        marks = [*PAPER.finditer(shows)]
        for mark, after in pairwise([*marks, None]):
            papers = [mark[0]] if "al. (2013)" in mark[0] or "Liu" in mark[0] or "Ma" in mark[0] else None
            papers = papers or [f"Barbu et al. ({year})" for year in re.findall(r"\((\d+)\)", mark[0])]
            text = shows[mark.end() : after.start() if after else None]
            for paper in papers:
                for kind, number in numbered(text) | ({("Table", "III")} if "III: --noisy" in text else set()):
                    found.setdefault((paper, kind, number), set()).add(name)
    return found


def test_numbers_are_read():
    assert numbered("Figures 2.1, 2.3; Tables 3.1 to 3.3 and 4; Algorithm 1, (2); Figure 6(a)") == {
        *(("Figure", n) for n in ("2.1", "2.3", "6")),
        *(("Table", n) for n in ("3.1", "3.2", "3.3", "4")),
        ("Algorithm", "1"),
    }
    assert listed()["Barbu et al. (2014)", "Figure", "2"] == {"fsa-coefficients"}


@pytest.mark.parametrize("paper", PRINTED)
def test_every_printed_item_has_a_row(paper):
    rows = sections()[paper]
    expected = {(kind, str(n)) for kind, numbers in PRINTED[paper].items() for n in numbers}
    assert set().union(*(numbered(what) for what, *_ in rows)) == expected


@pytest.mark.parametrize("paper", PRINTED)
def test_named_commands_and_files_exist(paper):
    for what, where, state, names in sections()[paper]:
        for name in names:
            assert name in TABLES or name in FIGURES, f"{what}: no table or figure {name!r}"
            assert name in TABLES or f"`annealed reproduce {name} --figures DIR`" in where, f"{what}: {name} is a figure only"
        assert names == [] or "the same with `--figures DIR`" not in where or names[-1] in FIGURES, f"{what}: no figure"
        for path in re.findall(r"`([\w/]+(?:\.py|/\w+))`", where + state):
            assert (ROOT / path).exists() or [*ROOT.glob(f"*/*/{path}")] or [*ROOT.glob(f"*/{path}")], f"{what}: no file {path}"


@pytest.mark.parametrize("paper", PRINTED)
def test_the_list_names_what_the_page_names(paper):
    """A table or figure with a command stands in the list with its number, and the other way
    round."""
    rows, found = sections()[paper], listed()
    built = {}
    for what, _, _, names in rows:
        for kind, number in numbered(what):
            if kind != "Algorithm" and names:
                built.setdefault((paper, kind, number), set()).update(names)
    missing = {item for item, names in built.items() if not names & found.get(item, set())}
    assert not missing, f"not in the list under the names of the page: {sorted(missing)}"
    unknown = {item for item in found if item[0] == paper and not found[item] & built.get(item, set())}
    assert not unknown, f"in the list and not on the page: {sorted(unknown)}"


def test_every_table_and_figure_stands_on_a_page():
    pages = " ".join(path.read_text() for path in (ROOT / "docs").rglob("*.md"))
    pages = re.sub(r"\s+", " ", pages)
    assert [name for name, _ in entries() if f"annealed reproduce {name}" not in pages] == []
