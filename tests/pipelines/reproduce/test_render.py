"""The tables of the pages come from the files of results."""

import json
from pathlib import Path

import pytest
from annealed.pipelines.reproduce.registry import FIGURES, TABLES
from annealed.pipelines.reproduce.render import VIEWS, render, render_page, update
from helpers import run

DOCS = Path(__file__).resolve().parents[3] / "docs"
ROW = {"N": 300, "M": 1000, "k": 10, "method": "FSA", "runs": 5, "DR": 44.0, "PCD": 99.96, "AUC": 0.9951, "seconds": 0.0123}
RECORD = {"name": "fsa-classification", "settings": {"noisy": False}, "rows": [ROW | {"paper_DR": 29.0}]}


@pytest.mark.parametrize("page", sorted([*DOCS.rglob("*.md"), DOCS.parent / "README.md"]), ids=lambda page: page.name)
def test_pages_show_what_the_results_hold(page):
    assert render_page(page, DOCS / "results") == page.read_text(encoding="utf-8"), "run annealed reproduce --render docs"


def test_every_file_of_results_belongs_to_a_table():
    for file in (DOCS / "results").glob("*.json"):
        assert json.loads(file.read_text())["name"] in {*TABLES, "sensors evaluate"}  # the last is of its own command


@pytest.mark.parametrize(
    "view, line",
    [
        ("full", "| FSA | 5 | 44 / 29 | 99.9 | 0.995 | 0.012 |"),
        ("detection", "| FSA | 44 99.9 / 29 (5) |"),
        ("summary", "| 300, 1000, 10 | 34 |"),
        ("rows", "| 300 | 1000 | 10 | FSA | 5 | 44 / 29 | 100 | 0.995 | 0.0123 |"),
    ],
)
def test_views_of_a_row(view, line):
    assert line in VIEWS[view](RECORD)


def test_blocks_are_filled_and_the_rest_stays(tmp_path):
    (tmp_path / "results").mkdir()
    update(tmp_path / "results" / "fsa-classification.json", RECORD)
    page = tmp_path / "page.md"
    page.write_text("before\n<!-- table: fsa-classification detection -->\nold\n<!-- end of table -->\nafter\n")
    assert render(tmp_path) == [page] and render(tmp_path) == []
    text = page.read_text()
    assert text.startswith("before\n") and text.endswith("after\n") and "old" not in text and "44 99.9 / 29" in text
    mark = "<!-- number: fsa-classification DR N=300 method={} -->{}<!-- end of number -->"
    page.write_text(mark.format("FSA", 43))
    assert render(tmp_path) == [page] and page.read_text() == mark.format("FSA", 44)
    page.write_text(mark.format("QTP", 1))
    with pytest.raises(ValueError, match="0 rows of fsa-classification have N=300 method=QTP; expected one"):
        render(tmp_path)
    page.write_text("<!-- table: nothing full -->\n<!-- end of table -->\n")
    with pytest.raises(ValueError, match=r"nothing.json is missing"):
        render(tmp_path)
    with pytest.raises(ValueError, match="no such folder"):
        render(tmp_path / "results")


def test_new_rows_replace_old_ones_of_the_same_method(tmp_path):
    file = tmp_path / "r.json"
    update(file, RECORD)
    update(file, RECORD | {"rows": [ROW | {"DR": 50.0}, ROW | {"method": "QTP"}]})
    assert [(row["method"], row["DR"]) for row in json.loads(file.read_text())["rows"]] == [("FSA", 50.0), ("QTP", 44.0)]
    with pytest.raises(ValueError, match="expected results of fsa-regression"):
        update(file, RECORD | {"name": "fsa-regression"})
    file.write_text("thesis")
    with pytest.raises(ValueError, match="expected results of"):
        update(file, RECORD)
    assert file.read_text() == "thesis"


def test_the_command_lists_all_tables_and_writes_results(tmp_path):
    listed = run("reproduce", "--list", "--json")
    assert {row["name"] for row in json.loads(listed.stdout)} == {*TABLES, *FIGURES}
    missing = run("reproduce", "sdist-surfaces")
    assert missing.exit_code == 2 and "is no table; give --figures DIR" in missing.stderr
    made = run("reproduce", "fsa-off-design", "--method", "QTP", "--runs", 1, "--quiet", "--results", tmp_path / "off.json")
    assert made.exit_code == 0 and len(json.loads((tmp_path / "off.json").read_text())["rows"]) == 8
