"""How sure a selection of a table's columns is: what ``annealed select --fdr`` and ``--intervals``
answer."""

import json

import numpy as np
import pandas as pd
import pytest
from annealed.pipelines.cli.app import app
from typer.testing import CliRunner


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    folder, rng = tmp_path_factory.mktemp("tables"), np.random.default_rng(1)
    table = pd.DataFrame(rng.standard_normal((200, 20)), columns=[f"gene{j}" for j in range(20)])
    table["kind"] = rng.choice(["a", "b", "c"], 200)
    dose = (
        2 * table.gene3 - 1.5 * table.gene7 + 2.0 * (table.kind == "a") + rng.standard_normal(200)
    )
    table.assign(dose=dose).to_csv(folder / "dose.csv", index=False)
    table.assign(dose=rng.standard_normal(200)).to_csv(folder / "noise.csv", index=False)
    table.assign(dose=dose, twin=table.gene3).to_csv(folder / "twin.csv", index=False)
    return folder


def run(*arguments):
    return CliRunner().invoke(app, ["select", *map(str, arguments)])


def test_the_columns_that_can_be_trusted(folder):
    done = run(
        folder / "dose.csv",
        "--target",
        "dose",
        "--fdr",
        0.05,
        "--intervals",
        "--json",
        "--quiet",
        "--report",
        folder / "page",
    )
    result = json.loads(done.stdout)
    columns = {column["name"]: column for column in result["selected"]}
    assert (
        set(columns) == {"gene3", "gene7", "kind"}
        and result["chosen_by"] == "the share of false columns"
    )
    assert (
        result["certainty"]["estimated_fdr"] <= 0.05
        and result["certainty"]["method"] == "conditional"
    )
    assert all(column["pvalue"] < 1e-4 for column in columns.values())
    low, high = columns["gene3"]["interval"]
    assert low < 2 < high and columns["kind"]["interval"] is None
    assert result["scores"]["selected"]["R2"] > 0.7
    page = (folder / "page" / "select.html").read_text()
    assert (
        "at most 5% of the selected columns are false discoveries" in page
        and "p-value" in page
        and " to " in page
    )


def test_where_nothing_can_be_trusted_the_answer_says_so(folder):
    done = run(
        folder / "noise.csv", "--target", "dose", "--fdr", 0.05, "--report", folder / "empty"
    )
    assert (
        done.exit_code == 0
        and "no columns were selected at a false discovery rate of 5%" in done.stdout
    )
    assert ("no columns were selected at a false discovery rate") in (
        folder / "empty" / "select.html"
    ).read_text()


def test_the_report_of_a_given_number_has_pvalues_beside_the_stabilities(folder):
    result = json.loads(
        run(
            folder / "dose.csv",
            "--target",
            "dose",
            "-k",
            4,
            "--json",
            "--quiet",
            "--report",
            folder / "p",
        ).stdout
    )
    values = {column["name"]: column["pvalue"] for column in result["selected"]}
    assert len(values) == 4 and max(values["gene3"], values["gene7"], values["kind"]) < 1e-4 < max(
        values.values()
    )
    assert "interval" not in result["selected"][0]


def test_columns_that_cannot_be_tested_leave_a_line(folder):
    result = json.loads(
        run(
            folder / "twin.csv",
            "--target",
            "dose",
            "-k",
            3,
            "--json",
            "--quiet",
            "--report",
            folder / "t",
        ).stdout
    )
    assert {column["pvalue"] for column in result["selected"]} == {None}
    assert result["certainty"]["notes"] == [
        "p-values could not be computed: column twin is a copy of column gene3, so "
        "no test can distinguish them; "
        "exclude one of them"
    ]


@pytest.mark.parametrize(
    "arguments, message",
    [
        ([], "expected exactly one of -k (a number of columns, or auto) and --fdr"),
        (
            ["-k", 3, "--fdr", 0.1],
            "expected exactly one of -k (a number of columns, or auto) and --fdr",
        ),
        (["--fdr", 1.5], "fdr=1.5 is not valid; expected a number in (0, 1)"),
    ],
)
def test_bad_options_are_one_line(folder, arguments, message):
    done = run(folder / "dose.csv", "--target", "dose", *arguments)
    assert done.exit_code == 2 and done.stderr.strip().endswith(message)


def test_a_copy_is_one_line(folder):
    done = run(folder / "twin.csv", "--target", "dose", "--fdr", 0.1)
    assert done.exit_code == 2 and "column twin is a copy of column gene3" in done.stderr
