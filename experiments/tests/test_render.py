"""The tables of the pages come from the files of results."""

import json
import re
from pathlib import Path

import numpy as np
import pytest
from annealed_experiments.registry import FIGURES, TABLES
from annealed_experiments.render import VIEWS, numbers_beside, pages_of, render, render_page, update
from helpers import run

ROOT = Path(__file__).resolve().parents[2]
RESULTS = ROOT / "experiments" / "results"
ROW = {
    "N": 300,
    "M": 1000,
    "k": 10,
    "method": "FSA",
    "runs": 5,
    "DR": 44.0,
    "PCD": 99.96,
    "AUC": 0.9951,
    "seconds": 0.0123,
}
RECORD = {
    "name": "fsa-classification",
    "settings": {"noisy": False},
    "rows": [ROW | {"paper_DR": 29.0}],
}


PAGES = pages_of(ROOT)
# Tables of numbers that are no measurements: limits, dates, sizes of sets.
NO_RESULTS = {"docs/sensors.md: Kind", "docs/serve.md: "}
# Printed by the scripts that the pages name, and not stored yet.
PRINTED = {
    "docs/faces.md: ",
    "docs/faces.md: Videos",
    "docs/faces.md: View",
    "docs/tutorials/insurance.md: family",
}
TABLE = re.compile(r"^\|(.+)\|\n\|[ :|-]+\|\n((?:\|.*\|\n)+)", re.MULTILINE)


def name_of(page):
    return page.relative_to(ROOT).as_posix()


def tables_by_hand(page):
    """First heads of the tables outside the blocks in which at least three cells in ten begin with
    a digit."""
    text = re.sub(
        r"<!-- table: .*?<!-- end of table -->",
        "",
        page.read_text(encoding="utf-8"),
        flags=re.DOTALL,
    )
    for head, body in TABLE.findall(text):
        cells = [
            cell.strip() for line in body.splitlines() for cell in line.strip("|").split("|")[1:]
        ]
        numbers = [cell for cell in cells if re.match(r"[*<~-]*\d", cell)]
        if numbers and len(numbers) >= 0.3 * len([*filter(None, cells)]):
            yield f"{name_of(page)}: {head.split('|')[0].strip()}"


@pytest.mark.parametrize("page", PAGES, ids=name_of)
def test_pages_show_what_the_results_hold(page):
    assert render_page(page, RESULTS) == page.read_text(encoding="utf-8"), (
        "run annealed reproduce --render ."
    )


def test_every_table_of_numbers_is_rendered():
    assert {head for page in PAGES for head in tables_by_hand(page)} == NO_RESULTS | PRINTED


@pytest.mark.parametrize(
    "page",
    [
        "models/weights/faces.md",
        "experiments/pages/motion_results.md",
        "experiments/pages/selector_tables_clean.md",
    ],
)
def test_a_digit_that_is_changed_by_hand_is_found(page, tmp_path):
    """In every block and number of the page."""
    text = (ROOT / page).read_text(encoding="utf-8")
    marked = [*re.finditer(r"<!-- (table|number): .*?<!-- end of \1 -->", text, re.DOTALL)]
    assert marked
    for block in marked:
        digit = block.start() + [*re.finditer(r"\d", block[0])][-1].start()
        changed = text[:digit] + str((int(text[digit]) + 1) % 10) + text[digit + 1 :]
        (tmp_path / "page.md").write_text(changed, encoding="utf-8")
        assert render_page(tmp_path / "page.md", RESULTS) == text != changed


def test_a_number_of_the_readme_that_is_changed_by_hand_is_found(tmp_path):
    text = (ROOT / "README.md").read_text(encoding="utf-8")
    places = numbers_beside(ROOT / "README.md", RESULTS)
    assert places and "<!--" not in text
    for place in places:
        pattern = r"(-?\d[\d.]*)".join(map(re.escape, place.split("{}")))
        (number,) = re.findall(pattern, text)
        (tmp_path / "README.md").write_text(
            text.replace(place.format(number), place.format(f"{number}1")), encoding="utf-8"
        )
        assert render_page(tmp_path / "README.md", RESULTS) == text


def test_every_file_of_results_is_shown_and_says_where_it_comes_from():
    pages = "".join(page.read_text(encoding="utf-8") for page in PAGES)
    pages += "".join(
        f"<!-- number: {source} "
        for page in PAGES
        for source in numbers_beside(page, RESULTS).values()
    )
    for file in (RESULTS).glob("*.json"):
        record = json.loads(file.read_text(encoding="utf-8"))
        assert f"<!-- table: {file.stem} " in pages or f"<!-- number: {file.stem} " in pages, (
            file.name
        )
        assert "columns" in record or record["name"] in {
            *TABLES,
            "motion evaluate",
            "sensors evaluate",
            "pets evaluate",
        }, file.name
        for run_made in record["made"]:
            assert (
                run_made["command"]
                and run_made["commit"]
                and re.fullmatch(r"\d{4}-\d\d-\d\d", run_made["date"])
            ), file.name
        if "columns" not in record:
            assert {row["made"] for row in record["rows"]} <= {*range(len(record["made"]))}, (
                file.name
            )


@pytest.mark.parametrize(
    "view, line",
    [
        ("full", "| FSA | 5 | 44 [14-79] / 29 | 99.9 | 0.995 | 0.012 |"),
        ("detection", "| FSA | 44 99.9 / 29 (5) |"),
        ("summary", "| 300, 1000, 10 | 29 |"),
        ("pivot:N,k:method:DR,AUC:.3g", "| 300 | 10 | 44 / 29, 0.995 |"),
        ("rows", "| 300 | 1000 | 10 | FSA | 5 | 44 / 29 | 100 | 0.995 | 0.0123 |"),
    ],
)
def test_views_of_a_row(view, line):
    name, *options = view.split(":")
    assert line in VIEWS[name](RECORD, *options)


def test_the_table_of_online_learners():
    values = {"error": 0.0651, "balanced_error": 0.2, "nonzero": 0.015, "kappa": 0.905}
    values |= {"kappa_equal_k": 0.8, "pass_ratio": 1.84, "data": "dexter", "loss": "hinge"}
    paper = {"paper_error": 0.0658, "paper_nonzero": 0.0198, "paper_kappa": 0.61}
    rows = [values | paper | {"method": "stabilised"}, values | {"method": "SGD"}]
    not_run = " | not run | not run | not run | "
    line = (
        "| dexter, hinge | 6.5 / 1.5 / 0.91 | not run | 6.5 / 1.5 / 0.91, 0.80"
        + not_run
        + "1.8 | 6.58 / 1.98 / 0.61 |"
    )
    assert line in VIEWS["online"]({"rows": rows})
    rows = [row | {"data": "dorothea", "paper_error": None, "nonzero": 0.005} for row in rows]
    table = VIEWS["online"]({"rows": rows})
    assert "| dorothea, hinge | 6.5 (20.0) / 0.50 / 0.91 |" in table and "| 1.8 | - |" in table


def test_blocks_are_filled_and_the_rest_stays(tmp_path):
    results = tmp_path / "experiments" / "results"
    results.mkdir(parents=True)
    update(results / "fsa-classification.json", RECORD, "annealed reproduce fsa-classification")
    page = tmp_path / "README.md"
    page.write_text(
        "before\n<!-- table: fsa-classification detection -->\nold\n<!-- end of table -->\nafter\n"
    )
    assert render(tmp_path) == [page] and render(tmp_path) == []
    text = page.read_text()
    assert (
        text.startswith("before\n")
        and text.endswith("after\n")
        and "old" not in text
        and "44 99.9 / 29" in text
    )
    mark = "<!-- number: fsa-classification DR N=300 method={} -->{}<!-- end of number -->"
    page.write_text(mark.format("FSA", 43))
    assert render(tmp_path) == [page] and page.read_text() == mark.format("FSA", 44)
    page.write_text(mark.format("QTP", 1))
    with pytest.raises(
        ValueError, match="0 rows of fsa-classification have N=300 method=QTP; expected one"
    ):
        render(tmp_path)
    (results / "readme_numbers.toml").write_text(
        '"found in {} of 100" = "fsa-classification DR N=300 method=FSA"'
    )
    page.write_text("found in 4 of 100, in 4 of 10")
    assert render(tmp_path) == [page] and page.read_text() == "found in 44 of 100, in 4 of 10"
    page.write_text("in 4 of 10")
    with pytest.raises(ValueError, match=r"'found in \{\} of 100' occurs 0 times; expected once"):
        render(tmp_path)
    (results / "readme_numbers.toml").unlink()
    page.write_text("<!-- table: nothing full -->\n<!-- end of table -->\n")
    with pytest.raises(ValueError, match=r"nothing.json is missing"):
        render(tmp_path)
    with pytest.raises(ValueError, match="no such folder"):
        render(results)


def test_new_rows_replace_old_ones_of_the_same_method(tmp_path):
    file = tmp_path / "r.json"
    update(file, RECORD | {"rows": [ROW, ROW | {"method": "L1"}]}, "first")
    update(file, RECORD | {"rows": [ROW | {"DR": 50.0}, ROW | {"method": "QTP"}]}, "second")
    found = json.loads(file.read_text())
    rows = [(row["method"], row["DR"], row["made"]) for row in found["rows"]]
    assert rows == [("FSA", 50.0, 1), ("L1", 44.0, 0), ("QTP", 44.0, 1)]
    assert [one["command"] for one in found["made"]] == ["first", "second"]
    assert found["made"][0]["versions"]["numpy"] == np.__version__
    with pytest.raises(ValueError, match="expected results of fsa-regression"):
        update(file, RECORD | {"name": "fsa-regression"}, "")
    file.write_text("thesis")
    with pytest.raises(ValueError, match="expected results of"):
        update(file, RECORD, "")
    assert file.read_text() == "thesis"


def test_the_command_lists_all_tables_and_writes_results(tmp_path):
    listed = run("reproduce", "--list", "--json")
    assert {row["name"] for row in json.loads(listed.stdout)} == {*TABLES, *FIGURES}
    missing = run("reproduce", "sdist-surfaces")
    assert missing.exit_code == 2 and "is not a table; use --figures DIR" in missing.stderr
    made = run(
        "reproduce",
        "fsa-off-design",
        "--method",
        "QTP",
        "--runs",
        1,
        "--quiet",
        "--results",
        tmp_path / "off.json",
    )
    assert made.exit_code == 0 and len(json.loads((tmp_path / "off.json").read_text())["rows"]) == 8
