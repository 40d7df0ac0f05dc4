"""Figure of docs/scale.md: bytes and time of fits on files by size, and the overhead of Dask by
number of rows.

python benchmarks/scale.py fit ... >> files.jsonl            (each layout, several sizes)
python benchmarks/scale_dask.py --rows ... > dask.jsonl
python benchmarks/scale_figures.py files.jsonl dask.jsonl docs/images/scale.png
"""

import json
from pathlib import Path

import matplotlib.pyplot as plt
from common import new_parser

LAYOUTS = {
    "columns.npy": "column-major",
    "table.parquet": "Parquet",
    "chunks.h5": "HDF5, 1024 x 64",
    "chunks.zarr": "Zarr, 1024 x 64",
    "rows.npy": "row-major",
}


def lines(path: Path) -> list[dict]:
    return [json.loads(line) for line in path.read_text().splitlines()]


def draw(files: Path, dask: Path, out: Path) -> None:
    figure, (volume, seconds, overhead) = plt.subplots(
        1, 3, figsize=(12, 3.6), layout="constrained"
    )
    results = lines(files)
    for i, (name, label) in enumerate(LAYOUTS.items()):
        runs = sorted(
            (run for run in results if run["layout"] == name), key=lambda run: run["file_gb"]
        )
        size = [run["file_gb"] for run in runs]
        volume.plot(size, [run["disk_gb"] for run in runs], f"C{i}o-", label=label)
        volume.plot(size, [run["model_gb"] for run in runs], f"C{i}+:")
        seconds.plot(size, [run["cpu_seconds"] for run in runs], f"C{i}o-", label=label)
    volume.set(xlabel="file, GB", ylabel="GB", title="from disk (dotted: model)", ylim=0, xlim=0)
    seconds.set(xlabel="file, GB", ylabel="s", title="processor time of a fit", ylim=0, xlim=0)
    volume.legend(fontsize=8)
    runs = lines(dask)
    rows = [run["rows"] for run in runs]
    overhead.plot(rows, [run["ratio"] for run in runs], "o-", label="time")
    overhead.plot(
        rows, [run["cpu_ratio"] for run in runs], "s-", label="processor time, all processes"
    )
    overhead.axhline(1.0, color="grey", linewidth=0.8)
    overhead.set(
        xlabel=f"rows of {runs[0]['columns']} columns",
        title="two Dask workers / in memory",
        ylim=0,
        xlim=0,
    )
    overhead.legend(fontsize=8)
    figure.savefig(out, dpi=80)


def main(argv=None):
    parser = new_parser(__doc__)
    for name in ("files", "dask", "out"):
        parser.add_argument(name, type=Path)
    a = parser.parse_args(argv)
    draw(a.files, a.dask, a.out)


if __name__ == "__main__":
    main()
