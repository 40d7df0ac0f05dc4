"""A million rows scored by an exported query in DuckDB, compared with the model on a pandas
frame.

    python benchmarks/export_rows.py [--rows 1000000] [--threads 1]

Data: five numeric columns with missing values, and a category; models with linear and with
piecewise-linear responses. The table is stored in DuckDB, the frame in memory; the probabilities
and predictions of all rows are computed and stored, by DuckDB the scores as well. Prints the
processor seconds of the faster of two runs, and the largest difference between probabilities.
"""

import warnings
from pathlib import Path
from tempfile import TemporaryDirectory

import numpy as np
import pandas as pd
from annealed.learners import FSAClassifier
from annealed.models import TabularModel, export
from annealed.models.tabular.encoding import ColumnEncoding, TableEncoding
from common import new_parser, print_head, print_line, timed

CITIES = ("Oslo", "Rome", "Paris")


def table(n_rows, seed):
    rng = np.random.default_rng(seed)
    frame = pd.DataFrame(rng.standard_normal((n_rows, 5)), columns=list("abcde"))
    frame.loc[rng.random(n_rows) < 0.05, "b"] = np.nan
    return frame.assign(
        city=pd.Categorical.from_codes(rng.integers(0, 4, n_rows), [*CITIES, "Bonn"]).astype(str)
    )


def fitted(response):
    frame = table(5000, 1)
    fill = None if response == "piecewise" else 0.0
    numbers = [ColumnEncoding(name, fill=fill) for name in "abcde"]
    encoding = TableEncoding((*numbers, ColumnEncoding("city", "category", None, CITIES, "Bonn")))
    score = frame["a"] + np.nan_to_num(frame["b"]) ** 2 - frame["c"] + (frame["city"] == "Rome")
    y = np.where(score > 1, "yes", "no")
    return TabularModel.from_estimator(
        FSAClassifier(8, response=response).fit(encoding.encode(frame), y), encoding
    )


def best_of_two(work):
    runs = [timed(work) for _ in range(2)]
    return min(seconds for _, seconds in runs), runs[-1][0]


def in_pandas(model, frame):
    """Compute probabilities and labels in one pass over the frame."""
    chances = model.predict_proba(frame)
    return pd.DataFrame(
        {
            "no": chances[:, 0],
            "yes": chances[:, 1],
            "prediction": model.classes[(chances[:, 1] > 0.5).astype(int)],
        }
    )


def main(arguments=None):
    parser = new_parser(__doc__)
    parser.add_argument("--rows", type=int, default=1_000_000)
    parser.add_argument("--threads", type=int, default=1)
    options = parser.parse_args(arguments)
    import duckdb

    frame = table(options.rows, 0)
    print_head("response", "DuckDB", "pandas", "ratio", "largest difference of probabilities")
    with (
        TemporaryDirectory() as folder,
        duckdb.connect(f"{folder}/rows.duckdb", config={"threads": options.threads}) as connection,
    ):
        connection.execute("CREATE TABLE rows AS SELECT * FROM frame")
        for response in ("linear", "piecewise"):
            model, path = fitted(response), Path(folder) / "m.sql"
            with warnings.catch_warnings():
                warnings.simplefilter("ignore")
                export(model, path, dialect="duckdb", table="rows")
            query = path.read_text().strip().removesuffix(";")
            ours, _ = best_of_two(
                lambda query=query: connection.execute(f"CREATE OR REPLACE TABLE scored AS {query}")
            )
            theirs, result = best_of_two(lambda model=model: in_pandas(model, frame))
            chances = connection.execute("SELECT probability_yes FROM scored").df()[
                "probability_yes"
            ]
            difference = np.abs(chances - result["yes"]).max()
            print_line(
                response,
                f"{ours:.2f} s",
                f"{theirs:.2f} s",
                f"{theirs / ours:.1f}",
                f"{difference:.0e}",
            )


if __name__ == "__main__":
    main()
