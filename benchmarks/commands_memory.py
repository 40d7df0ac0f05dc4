"""Peak resident memory of whole commands, each in its own process, on simulated files.

    python benchmarks/commands_memory.py [CASE ...] [--folder DIR] [--frames 60 240] [--rows 100000]
    [--columns 200] [--memory-limit 200MB]

Cases: photograph (144 million pixels), video (640 x 480, two lengths, for the memory per frame),
motion (tracks of the same videos), csv and parquet (a numeric table for `annealed select`, two of
whose columns matter), blocks (the same table with a memory limit), single (two classes that depend
on ten columns, in single precision). Commands run on one thread; the peak includes Python and the
libraries. Processor time is that of the command.
"""

import os
import sys
import tempfile
from pathlib import Path

import numpy as np
from common import measure_command, new_parser


def photograph(folder, options):
    from PIL import Image
    from skimage.data import astronaut

    path = folder / "photograph.jpg"
    Image.fromarray(astronaut()).resize((12_000, 12_000)).save(path, quality=90)
    yield "photograph of 144 million pixels", ["faces", "detect", path, "--json"]


def videos(folder, options):
    """Yield frames of a face that moves over noise."""
    import cv2
    from annealed.pipelines.common.video import write_video
    from skimage.data import astronaut

    face = astronaut()[20:260, 100:340]
    ground = np.asarray(
        cv2.resize(
            np.random.default_rng(0).integers(0, 256, (60, 80, 3), dtype=np.uint8), (640, 480)
        )
    )

    def frames(n):
        for i in range(n):
            frame, x = ground.copy(), 200 + round(150 * np.sin(i / 30))
            frame[120:360, x : x + 240] = face
            yield frame

    for n in options.frames:
        path = folder / f"{n}.mp4"
        write_video(path, frames(n), 25.0)
        yield n, path


def video(folder, options):
    for n, path in videos(folder, options):
        yield f"video of {n} frames, 640 x 480", ["faces", "detect", path, "--json"]


def motion(folder, options):
    for n, path in videos(folder, options):
        yield (
            f"tracks of {n} frames, 640 x 480",
            ["motion", "segment", path, "--motions", "2", "--json"],
        )


def table(folder, options, name, *more, single=False):
    import pandas as pd

    path, n, m = folder / name, options.rows, options.columns
    writer = None
    rng, columns = np.random.default_rng(0), [f"c{j}" for j in range(m)]
    for part in range(0, n, 100_000):
        X = rng.standard_normal((min(100_000, n - part), m))
        noise = rng.standard_normal(len(X))
        if single:
            X = X.astype(np.float32)
            target = np.where(X[:, :10].sum(axis=1) + noise > 0, "yes", "no")
        else:
            X = X.round(4)
            target = (X[:, 0] - X[:, 1] + noise).round(4)
        frame = pd.DataFrame(X, columns=columns).assign(price=target)
        if name.endswith("csv"):
            frame.to_csv(path, index=False, mode="a", header=part == 0)
        else:
            import pyarrow as pa
            import pyarrow.parquet as pq

            rows = pa.Table.from_pandas(frame)
            writer = writer or pq.ParquetWriter(path, rows.schema)
            writer.write_table(rows)
    if writer is not None:
        writer.close()
    yield (
        f"{n:,} x {m} numbers, {name} of {path.stat().st_size / 1e6:.0f} MB",
        ["select", path, "--target", "price", "-k", "10", "--json", *more],
    )


CASES = {
    "photograph": photograph,
    "video": video,
    "motion": motion,
    "csv": lambda folder, options: table(folder, options, "table.csv"),
    "parquet": lambda folder, options: table(folder, options, "table.parquet"),
    "single": lambda folder, options: table(folder, options, "single.parquet", single=True),
    "blocks": lambda folder, options: table(
        folder, options, "table.parquet", "--memory-limit", options.memory_limit
    ),
}


def measure(words):
    """Return the peak memory in GiB and the processor seconds of a command."""
    one = dict.fromkeys(["OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "NUMBA_NUM_THREADS"], "1")
    command = [sys.executable, "-m", "annealed.pipelines.cli", *map(str, words)]
    peak, seconds, _ = measure_command(command, {**os.environ, **one})
    return peak / 2**30, seconds


def main(argv=None):
    parser = new_parser(__doc__)
    parser.add_argument(
        "cases",
        nargs="*",
        metavar="CASE",
        default=list(CASES),
        help=f"cases to run, from: {', '.join(CASES)}",
    )
    parser.add_argument(
        "--folder", type=Path, help="folder for the simulated files; by default a temporary folder"
    )
    parser.add_argument("--frames", type=int, nargs="+", default=[60, 240])
    parser.add_argument("--rows", type=int, default=100_000)
    parser.add_argument("--columns", type=int, default=200)
    parser.add_argument("--memory-limit", default="200MB", help="memory limit of the case blocks")
    options = parser.parse_args(argv)
    print("| command | data | GiB | processor seconds |\n|---|---|---|---|")
    with tempfile.TemporaryDirectory(dir=options.folder) as folder:
        for case in options.cases:
            for data, words in CASES[case](Path(folder), options):
                peak, seconds = measure(words)
                print(
                    f"| `{' '.join(words[:2] if words[0] != 'select' else words[:1])}` | {data} | "
                    f"{peak:.2f} | {seconds:.0f} |",
                    flush=True,
                )


if __name__ == "__main__":
    main()
