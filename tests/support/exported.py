"""Results of an exported model in SQLite, DuckDB, ONNX Runtime, compiled C, and JSON."""

import ctypes
import io
import json
import math
import os
import sqlite3
import subprocess
import warnings

import numpy as np
import pandas as pd
from annealed.models import export


def in_sqlite(model, frame, folder, keys=()):
    query = written(model, folder / "m.sql", dialect="sqlite", table="the table", keys=keys)
    connection = sqlite3.connect(":memory:")
    plain = frame.astype({name: object for name in frame.columns if frame[name].dtype.kind == "M"})
    plain = plain.apply(
        lambda column: column.map(
            lambda cell: cell.isoformat(sep=" ") if hasattr(cell, "isoformat") else cell
        )
    )
    marks, names = (
        ", ".join("?" * frame.shape[1]),
        ", ".join(f'"{n}"' for n in (c.replace('"', '""') for c in frame.columns)),
    )
    connection.execute(f'CREATE TABLE "the table" ({names})')
    rows = [
        [None if pd.isna(v) else v.item() if hasattr(v, "item") else v for v in row]
        for row in plain.to_numpy(object)
    ]
    connection.executemany(f'INSERT INTO "the table" VALUES ({marks})', rows)
    cursor = connection.execute(query)
    return pd.DataFrame(cursor.fetchall(), columns=[column[0] for column in cursor.description])


def as_text(model, path, folder, place, keys=()):
    """Results of a query on a CSV file loaded with all cells as text; ``place`` is sqlite (by
    ``.import`` of its shell), duckdb or postgres (of the environment variable
    ``ANNEALED_POSTGRES``, such as host=localhost dbname=test)."""
    query, table = (
        written(model, folder / "m.sql", dialect=place, table="the table", keys=keys),
        '"the table"',
    )
    names = path.read_text().split("\n")[0].split(",")
    if place == "duckdb":
        import duckdb

        with duckdb.connect() as connection:
            connection.execute(
                f"CREATE TABLE {table} AS SELECT * FROM read_csv('{path}', all_varchar=true)"
            )
            return connection.execute(query).df()
    if place == "sqlite":
        with sqlite3.connect(folder / "d.sqlite") as connection:
            connection.execute(f"DROP TABLE IF EXISTS {table}")
        command = ["sqlite3", folder / "d.sqlite", ".mode csv", f".import '{path}' {table}"]
        subprocess.run(command, check=True, capture_output=True)
        with sqlite3.connect(folder / "d.sqlite") as connection:
            return pd.read_sql_query(query, connection)
    columns = ", ".join(f'"{name}" TEXT' for name in names)
    script = f"CREATE TEMP TABLE {table} ({columns});\n\\copy {table} FROM '{path}' CSV HEADER\n"
    (folder / "m.psql").write_text(f"\\set ON_ERROR_STOP\n{script}{query}")
    command = ["psql", os.environ["ANNEALED_POSTGRES"], "-q", "--csv", "-f", folder / "m.psql"]
    process = subprocess.run(command, check=True, capture_output=True, text=True)
    return pd.read_csv(io.StringIO(process.stdout))


def in_duckdb(model, frame, folder, keys=()):
    import duckdb

    query = written(model, folder / "m.sql", dialect="duckdb", table="the table", keys=keys)
    with duckdb.connect() as connection:
        connection.register("given", frame)
        connection.execute('CREATE TABLE "the table" AS SELECT * FROM given')
        return connection.execute(query).df()


def written(model, path, **options):
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", message="the query calls EXP")
        export(model, path, **options)
    return path.read_bytes().decode()


def in_onnx(model, frame, folder):
    import onnxruntime

    export(model, folder / "m.onnx")
    session = onnxruntime.InferenceSession(folder / "m.onnx", providers=["CPUExecutionProvider"])
    inputs = {}
    for given in session.get_inputs():
        cells = frame[given.name]
        if given.type == "tensor(string)":
            values = np.array(["" if pd.isna(cell) else str(cell) for cell in cells], object)
        else:
            values = numbers_of(cells).astype(
                np.float64 if given.type == "tensor(double)" else np.float32
            )
        inputs[given.name] = values[:, None]
    return dict(zip([o.name for o in session.get_outputs()], session.run(None, inputs)))


def numbers_of(cells):
    if cells.dtype.kind == "M":
        return ((cells - pd.Timestamp(0)) / pd.Timedelta(days=1)).to_numpy(float)
    return cells.to_numpy(float, na_value=np.nan)


def in_c(model, frame, folder, n_scores, n_results):
    """Scores, and predictions or probabilities with classes."""
    export(model, folder / "m.c")
    flags = ["-std=c99", "-pedantic", "-Wall", "-Wextra", "-Werror", "-O1", "-shared", "-fPIC"]
    subprocess.run(["gcc", *flags, "m.c", "-o", "m.so", "-lm"], cwd=folder, check=True)
    library = ctypes.CDLL(folder / "m.so")
    export(model, folder / "m.json")
    columns = json.loads((folder / "m.json").read_text())["columns"]
    words = [name for name, kind in columns.items() if kind == "text"]
    numbers = np.ascontiguousarray(
        np.column_stack(
            [np.zeros(len(frame)), *(numbers_of(frame[n]) for n in columns if n not in words)]
        )
    )
    text = [
        [None if pd.isna(cell) else str(cell).encode() for cell in row]
        for row in frame[words].to_numpy(object)
    ]
    scores, results, classes = (
        np.empty((len(frame), n_scores)),
        np.empty((len(frame), n_results)),
        [],
    )
    names = (ctypes.c_char_p * max(len(columns) - len(words), 1)).in_dll(library, "m_numbers")
    assert [name and name.decode() for name in names] == (
        [n for n in columns if n not in words] or [None]
    )
    pointer = ctypes.POINTER(ctypes.c_double)
    for i, row in enumerate(text):
        texts = (ctypes.c_char_p * max(len(row), 1))(*row)
        out, result = scores[i].ctypes.data_as(pointer), results[i].ctypes.data_as(pointer)
        classes.append(
            library.m_predict(numbers[i, 1:].ctypes.data_as(pointer), texts, out, result)
        )
    return scores, results, classes


def from_json(model, frame, folder):
    """Results, read as docs/export.md describes the file: kind and output to the values of all
    rows."""
    export(model, folder / "m.json")
    record = json.loads((folder / "m.json").read_text())
    assert (record["format"], record["version"]) == ("annealed formula", 1)
    result: dict = {}
    for i in range(len(frame)):
        row = {name: cell_of(frame[name].iloc[i], kind) for name, kind in record["columns"].items()}
        known: dict = {}
        for stage in record["stages"]:
            known |= {name: value_of(e, row, known) for name, e in stage.items()}
        for what, of, e in record["results"]:
            result.setdefault((what, of), []).append(value_of(e, row, known))
    return result, record["classes"]


def cell_of(cell, kind):
    if pd.isna(cell):
        return None
    return (
        str(cell)
        if kind == "text"
        else (cell - pd.Timestamp(0)) / pd.Timedelta(days=1)
        if kind == "date"
        else cell
    )


def value_of(e, row, known):
    if e is None:
        return math.nan
    if isinstance(e, int | float):
        return e
    if isinstance(e, str):
        return known[e]
    op, *rest = e
    if op == "if":
        return value_of(rest[1 if value_of(rest[0], row, known) else 2], row, known)
    if op in ("cell", "is", "empty"):
        cell = row[rest[0]]
        return cell is None if op == "empty" else cell == rest[1] if op == "is" else cell - rest[1]
    if op == "label":
        return rest[0]
    a, *more = [value_of(x, row, known) for x in rest]
    if op == "+":
        return a + sum(more)
    one = {"none": math.isnan, "exp": math.exp, "log": math.log}
    two = {
        "-": lambda a, b: a - b,
        "*": lambda a, b: a * b,
        "/": lambda a, b: a / b,
        "<": lambda a, b: a < b,
        "max": max,
    }
    return one[op](a) if op in one else two[op](a, *more)
