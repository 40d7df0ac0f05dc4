"""A folder of Parquet files in a simulated S3 bucket, compared with a local copy of the files.

    python benchmarks/parquet_s3.py [--rows 20000] [--columns 50]

Both are read out of core. Prints the processor seconds of the fits, and whether the coefficients
are identical. Requires pyarrow, boto3 and moto (`pip install 'moto[server]' boto3`).
"""

from __future__ import annotations

import logging
import os
import tempfile
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
from annealed.learners import FSAClassifier, on_disk
from common import new_parser, print_head, print_line, timed

BUCKET = "tables"
KEYS = {"AWS_ACCESS_KEY_ID": "testing", "AWS_SECRET_ACCESS_KEY": "testing"}


def main(argv: list[str] | None = None) -> None:
    """Write the files, copy them to the bucket, and fit both."""
    parser = new_parser(__doc__)
    parser.add_argument("--rows", type=int, default=20_000)
    parser.add_argument("--columns", type=int, default=50)
    args = parser.parse_args(argv)

    import boto3
    from moto.server import ThreadedMotoServer

    rng = np.random.default_rng(0)
    X = rng.standard_normal((args.rows, args.columns), dtype=np.float32)
    y = X[:, [3, 7]].sum(axis=1) > 0
    logging.getLogger("werkzeug").setLevel(logging.ERROR)
    server = ThreadedMotoServer(port=0, verbose=False)
    server.start()
    host, port = server.get_host_and_port()
    address = f"http://{host}:{port}"
    os.environ.update(KEYS, AWS_DEFAULT_REGION="us-east-1")
    client = boto3.client("s3", endpoint_url=address)
    client.create_bucket(Bucket=BUCKET)
    print_head("files", "processor seconds", "coefficients")
    with tempfile.TemporaryDirectory() as folder:
        for part, rows in enumerate(np.array_split(X, 4)):
            table = pa.table(list(rows.T), [f"x{j}" for j in range(args.columns)])
            path = Path(folder, f"{part}.parquet")
            pq.write_table(table, path)
            client.upload_file(str(path), BUCKET, f"big/{path.name}")
        url = f"s3://{BUCKET}/big?scheme=http&endpoint_override={host}:{port}&region=us-east-1"
        models = {}
        for name, place in (("local", folder), ("s3", url)):
            source = on_disk(place, memory_limit="1MB")
            models[name], seconds = timed(lambda source=source: FSAClassifier(2).fit(source, y))
            same = np.array_equal(models[name].coef_, models["local"].coef_)
            print_line(name, f"{seconds:.1f}", "identical" if same else "different")
    server.stop()


if __name__ == "__main__":
    main()
