"""`select` on tables as people export them, and `predict` on new rows with what the model has not
seen: never wrong in silence."""

import json
import re

import numpy as np
import pytest
from helpers import run
from odd_tables import changed_copies, odd_tables, training_table

pytestmark = pytest.mark.slow


def poor_lines(result):
    """What is wrong with how a command spoke."""
    lines = result.stderr.splitlines()
    if result.exit_code not in (0, 2):
        return f"exit code {result.exit_code}: {result.exception!r}"
    if any(not line.startswith(("annealed: ", "error: ")) or len(line) > 320 for line in lines):
        return f"poor lines: {lines}"
    return "a line twice" if len(set(lines)) < len(lines) else None


def disagreement(table, result):
    """What an analyst would have done otherwise."""
    if result.exit_code == 2:
        return None if table.may_refuse else f"refused: {result.stdout[-300:]}"
    answer = json.loads(result.stdout)
    # A column's own name, before what was made of it: a level, days.
    outcome = [re.split(r"[ =:(]", one["name"])[0] for one in answer["selected"]]
    missing = [name for name in table.selected if name not in outcome]
    wrong = [name for name in outcome if name in table.never]
    if missing or wrong:
        return f"selected {outcome}, without {missing}, with {wrong}: {result.stderr}"
    silent = [name for name in table.named if name not in result.stderr]
    if silent:
        return f"not said: {silent}: {result.stderr}"
    return (
        "a day became a level"
        if table.kind == "dates" and re.search(r'"name": "sold ?=', result.stdout)
        else None
    )


def test_odd_tables(tally, tmp_path):
    path = tmp_path / "t.csv"
    for i, table in enumerate(odd_tables(120, seed=29)):
        table.frame.to_csv(path, index=False)
        result = run(
            "select",
            path,
            "--target",
            "target",
            "-k",
            "auto" if i % 3 == 0 else min(2, table.frame.shape[1] - 1),
            "--json",
        )
        failure = poor_lines(result) or disagreement(table, result)
        tally.note("unusual tables", f"{table.kind} {i}", failure)
    tally.check("unusual tables")


def test_changed_copies(tally, tmp_path):
    rng = np.random.default_rng(30)
    train, new, model = tmp_path / "train.csv", tmp_path / "new.csv", tmp_path / "m.safetensors"
    for seed in range(6):
        frame = training_table(seed)
        if seed % 2:
            frame["target"] = np.where(frame["target"] > frame["target"].median(), "yes", "no")
        frame.to_csv(train, index=False)
        response = ["--response", "piecewise"] if seed in (2, 3) else []
        selected = run(
            "select",
            train,
            "--target",
            "target",
            "-k",
            "2",
            "--exclude",
            "noise",
            "--out",
            model,
            "--json",
            *response,
        )
        assert selected.exit_code == 0, selected.stderr
        for copy in changed_copies(frame, rng):
            copy.frame.to_csv(new, index=False)
            result = run("predict", model, new, "--json")
            failure = poor_lines(result)
            if (
                failure is None
                and copy.refused is not None
                and (result.exit_code == 2) != copy.refused
            ):
                failure = f"exit code {result.exit_code}: {result.stderr}"
            answered = result.exit_code == 0
            if failure is None and copy.column not in result.stderr + result.stdout * (
                not answered
            ):
                failure = f"not said: {result.stderr}"
            if (
                failure is None
                and answered
                and copy.column not in str(json.loads(result.stdout).get("notes"))
            ):
                failure = "not in the notes"
            tally.note("modified tables", f"{copy.name}, model {seed}", failure)
        blanks = frame.assign(city=frame["city"] + " ").drop(columns="target")
        frame.drop(columns="target").to_csv(new, index=False)
        plain = json.loads(run("predict", model, new, "--json").stdout)["prediction"]
        blanks.to_csv(new, index=False)
        failure = (
            None
            if json.loads(run("predict", model, new, "--json").stdout)["prediction"] == plain
            else "another answer"
        )
        tally.note("modified tables", f"blanks, model {seed}", failure)
    tally.check("modified tables")
