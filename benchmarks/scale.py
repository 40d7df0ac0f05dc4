"""Fits on a matrix that does not fit into memory: bytes read, time and memory, compared with the
cost model.

    python benchmarks/scale.py write FOLDER --layout columns --rows 100000 --columns 50000
    python benchmarks/scale.py fit   FOLDER --layout columns --memory-limit 2GB [--subsample 0.1]
    python benchmarks/scale.py sizes FOLDER --layout columns --memory-limit 2GB

Data: equicorrelated columns, eq. (18) of Barbu et al. (2017), with labels from columns 10, 20, ...,
10 k. ``fit`` prints one line of JSON: bytes read by system calls and from the disk (/proc/self/io;
the file's pages are dropped before each pass), the model (moments + schedule + polishing), the peak
of the anonymous memory (RssAnon), and the bandwidths of disk and memory, measured on the same
machine in the same run. ``sizes`` compares the choice of k among ten sizes by five folds with one
fit of the chosen size.
"""

import json
import os
import threading
import time
from pathlib import Path

import numpy as np
from annealed.learners import FSAClassifier, FSAClassifierCV, on_disk
from annealed.learners.designs.out_of_core import BlockDesign
from annealed.learners.solvers.schedules import inverse
from common import new_parser
from layouts import bytes_of_read

NAMES = {
    "columns": "columns.npy",
    "rows": "rows.npy",
    "hdf5": "chunks.h5",
    "zarr": "chunks.zarr",
    "parquet": "table.parquet",
}


def write(path: Path, layout: str, n: int, m: int, k: int, chunks) -> None:
    """Write column-major files by columns, and row-major and chunked files by rows."""
    rng = np.random.default_rng(0)
    signal = np.zeros(n)
    relevant = 10 * np.arange(1, k + 1) - 1
    if layout == "columns":
        z = rng.standard_normal(n, dtype=np.float32)
        with open(path, "wb") as file:
            np.lib.format.write_array_header_1_0(
                file, {"descr": "<f4", "fortran_order": True, "shape": (n, m)}
            )
            for first in range(0, m, 250):
                block = rng.standard_normal((min(250, m - first), n), dtype=np.float32)
                block += z
                signal += block[np.isin(np.arange(first, first + len(block)), relevant)].sum(axis=0)
                file.write(block.data)
                if first % 5000 == 0:
                    forget(file)
            forget(file)
    else:
        rows = 512 if layout == "rows" else chunks[0]
        add, close = WRITERS[layout](path, n, m, chunks)
        for first in range(0, n, rows):
            block = rng.standard_normal((min(rows, n - first), m), dtype=np.float32)
            block += rng.standard_normal((len(block), 1), dtype=np.float32)
            signal[first : first + len(block)] = block[:, relevant].sum(axis=1)
            add(first, block)
            for file in files(path) if first % (rows * 20) == 0 else []:
                forget(open(file, "r+b"))  # noqa: SIM115
        close()
    for file in files(path):
        forget(open(file, "r+b"))  # noqa: SIM115
    np.save(path.with_suffix(".y.npy"), np.where(signal > 0, 1, -1))


def _rows_writer(path, n, m, chunks):
    file = open(path, "wb")  # noqa: SIM115
    np.lib.format.write_array_header_1_0(
        file, {"descr": "<f4", "fortran_order": False, "shape": (n, m)}
    )
    return lambda first, block: file.write(block.data), file.close


def _hdf5_writer(path, n, m, chunks):
    import h5py

    file = h5py.File(path, "w")
    stored = file.create_dataset("X", (n, m), "f4", chunks=chunks)
    return lambda first, block: stored.write_direct(
        block, dest_sel=np.s_[first : first + len(block)]
    ), file.close


def _zarr_writer(path, n, m, chunks):
    import zarr

    stored = zarr.create_array(str(path), shape=(n, m), chunks=chunks, dtype="f4", compressors=None)
    return lambda first, block: stored.__setitem__(
        np.s_[first : first + len(block)], block
    ), lambda: None


def _parquet_writer(path, n, m, chunks):
    import pyarrow as pa
    from pyarrow.parquet import ParquetWriter

    names = [f"x{j}" for j in range(m)]
    file = ParquetWriter(
        path,
        pa.schema([(name, pa.float32()) for name in names]),
        compression="none",
        use_dictionary=False,
    )
    return lambda first, block: file.write_table(
        pa.table(list(np.ascontiguousarray(block.T)), names), len(block)
    ), file.close


WRITERS = {
    "rows": _rows_writer,
    "hdf5": _hdf5_writer,
    "zarr": _zarr_writer,
    "parquet": _parquet_writer,
}


def files(path: Path) -> list[Path]:
    """Return the size of a file, or of all files in a folder."""
    return [file for file in sorted(path.rglob("*")) if file.is_file()] if path.is_dir() else [path]


def forget(file) -> None:
    """Flush pending writes and drop the file's pages from memory."""
    file.flush()
    os.fsync(file.fileno())
    os.posix_fadvise(file.fileno(), 0, 0, os.POSIX_FADV_DONTNEED)


def status(name: str, field: str) -> int:
    for line in Path(f"/proc/self/{name}").read_text().splitlines():
        if line.startswith(field + ":"):
            return int(line.split()[1])
    return 0


class Memory(threading.Thread):
    """Maximum of the anonymous memory so far, read ten times per second."""

    def __init__(self):
        super().__init__(daemon=True)
        self.largest, self.stop = 0, threading.Event()

    def run(self):
        while not self.stop.wait(0.1):
            self.largest = max(self.largest, status("status", "RssAnon") * 1024)


def forget_pages(path: Path) -> None:
    for name in files(path):
        file = os.open(name, os.O_RDONLY)
        os.posix_fadvise(file, 0, 0, os.POSIX_FADV_DONTNEED)
        os.close(file)


def bandwidths(path: Path) -> dict:
    """Measure the bandwidth of the disk (the file's first 4 GB, uncached, eight MiB at a time) and
    of the memory (sums of 400 MB of float32, the fastest)."""
    forget_pages(path)
    piece, read = bytearray(8 << 20), 0
    start = time.perf_counter()
    for name in files(path):
        with open(name, "rb", buffering=0) as file:
            while read < 4e9 and (got := file.readinto(piece)):
                read += got
    disk = read / (time.perf_counter() - start)
    forget_pages(path)
    x = np.ones(100_000_000, np.float32)
    times = []
    for _ in range(5):
        start = time.perf_counter()
        x.sum()
        times.append(time.perf_counter() - start)
    return {
        "disk_gb_per_s": round(disk / 1e9, 2),
        "memory_gb_per_s": round(x.nbytes / min(times) / 1e9, 1),
    }


def fit(path: Path, k: int, limit: str, subsample: float, cold: bool, seed: int) -> dict:
    y = np.load(path.with_suffix(".y.npy"))
    width = bandwidths(path)
    source = on_disk(path, memory_limit=limit, subsample=subsample)
    passes = []
    gradient = BlockDesign.gradient
    BlockDesign.gradient = lambda self, r: passes.append(self.n_features) or gradient(self, r)
    requested = []
    read = source.read
    source.read = lambda rows, columns, out: (
        requested.append(
            bytes_of_read(source, columns) * (rows.stop - rows.start) // source.shape[0]
        )
        or read(rows, columns, out)
    )
    compile_first(path, source.order)
    passes.clear()
    if cold:
        forget_between_passes(path)
    watch = Memory()
    watch.start()
    before = {field: status("io", field) for field in ("rchar", "read_bytes")}
    wall, cpu = time.perf_counter(), time.process_time()
    model = FSAClassifier(k, random_state=seed).fit(source, y)
    wall, cpu = time.perf_counter() - wall, time.process_time() - cpu
    after = {field: status("io", field) for field in before}
    watch.stop.set()
    n, m = source.shape
    counts = inverse(m, k, 100, 100.0)
    large = counts[counts * n * 4.0 * 2 > source.memory_limit]
    everything = np.arange(m)
    rng = np.random.default_rng(0)
    rounds = passes.count(m) - 1
    # Rows of chunks that do not fit into a block: scores first, then the gradient.
    twice = 1 + (source.row_step * large * source.dtype.itemsize * 6 > source.memory_limit)
    some = [
        bytes_of_read(source, np.sort(rng.choice(m, int(count), replace=False))) for count in large
    ]
    steps = [bytes_of_read(source, np.sort(rng.choice(m, int(counts[len(large)]), replace=False)))]
    steps += [round(subsample * s * reads) for s, reads in zip(some, twice)]
    newcomers = rounds * bytes_of_read(source, everything[:: max(1, m // (5 * k))][: 5 * k])
    model_bytes = bytes_of_read(source, everything) * (1 + rounds) + sum(steps) + newcomers
    selected = model.get_support(indices=True)
    return {
        "file_gb": round(sum(file.stat().st_size for file in files(path)) / 1e9, 2),
        "layout": path.name,
        "memory_limit": limit,
        "subsample": subsample,
        "found": int(np.isin(10 * np.arange(1, k + 1) - 1, selected).sum()),
        "of": k,
        "steps_on_disk": len(large),
        "polishing_passes": rounds,
        "requested_gb": round(sum(requested) / 1e9, 2),
        "rchar_gb": round((after["rchar"] - before["rchar"]) / 1e9, 2),
        "disk_gb": round((after["read_bytes"] - before["read_bytes"]) / 1e9, 2),
        "model_gb": round(model_bytes / 1e9, 2),
        "disk_over_model": round((after["read_bytes"] - before["read_bytes"]) / model_bytes, 2),
        "anonymous_gb": round(watch.largest / 1e9, 2),
        "seconds": round(wall, 1),
        "cpu_seconds": round(cpu, 1),
        **width,
        "seconds_at_disk_bandwidth": round(model_bytes / width["disk_gb_per_s"] / 1e9, 1),
        "cold": cold,
    }


def compile_first(path: Path, order: str) -> None:
    """Compile before timing, on a small matrix in the same layout."""
    small = np.random.default_rng(0).standard_normal((600, 400), dtype=np.float32)
    warm = path.with_name("warm.npy")
    np.save(warm, np.asfortranarray(small) if order == "F" else small)
    FSAClassifier(3).fit(on_disk(warm, memory_limit="300KB"), small[:, 3] > 0)
    warm.unlink()


def forget_between_passes(path: Path) -> None:
    """Drop the cached pages before each pass."""
    blocks, load = BlockDesign._read, BlockDesign._load
    BlockDesign._read = lambda self, columns, tiles: (
        forget_pages(path) or blocks(self, columns, tiles)
    )
    BlockDesign._load = lambda self, columns: forget_pages(path) or load(self, columns)


def sizes(path: Path, k: int, limit: str, cold: bool, seed: int) -> dict:
    """Compare the choice of k among ten sizes by five folds with one fit of the chosen size."""
    y, source = np.load(path.with_suffix(".y.npy")), on_disk(path, memory_limit=limit)
    compile_first(path, source.order)
    if cold:
        forget_between_passes(path)
    tried = np.unique(np.linspace(k / 5, 2 * k, 10).astype(int))
    chooser = FSAClassifierCV(sizes=tried, cv=5, random_state=seed)
    results = {
        "file_gb": round(sum(file.stat().st_size for file in files(path)) / 1e9, 2),
        "memory_limit": limit,
        "sizes": tried.tolist(),
    }
    for name in ("choice", "fit"):
        watch = Memory()
        watch.start()
        read, wall, cpu = status("io", "rchar"), time.perf_counter(), time.process_time()
        model = (
            chooser if name == "choice" else FSAClassifier(chooser.n_features_, random_state=seed)
        )
        model.fit(source, y)
        wall, cpu = time.perf_counter() - wall, time.process_time() - cpu
        watch.stop.set()
        results[name] = {
            "seconds": round(wall, 1),
            "cpu_seconds": round(cpu, 1),
            "rchar_gb": round((status("io", "rchar") - read) / 1e9, 2),
        }
        results[name] |= {
            "anonymous_gb": round(watch.largest / 1e9, 2),
            "columns": model.get_support(indices=True).tolist(),
        }
    results["k"], results["times_one_fit"] = (
        chooser.n_features_,
        round(results["choice"]["seconds"] / results["fit"]["seconds"], 2),
    )
    return results | {
        "mean_scores": chooser.cv_scores_.mean(axis=0).round(4).tolist(),
        "cold": cold,
    }


def main(argv=None):
    parser = new_parser(__doc__)
    parser.add_argument("what", choices=["write", "fit", "sizes"])
    parser.add_argument("folder", type=Path)
    parser.add_argument("--layout", choices=list(NAMES), default="columns")
    parser.add_argument("--rows", type=int, default=100_000)
    parser.add_argument("--columns", type=int, default=50_000)
    parser.add_argument("-k", type=int, default=30)
    parser.add_argument("--chunks", type=int, nargs=2, default=(4096, 64))
    parser.add_argument("--memory-limit", default="2GB")
    parser.add_argument("--subsample", type=float, default=1.0)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--warm", action="store_true", help="leave the file's pages in memory")
    a = parser.parse_args(argv)
    path = a.folder / NAMES[a.layout]
    if a.what == "write":
        write(path, a.layout, a.rows, a.columns, a.k, tuple(a.chunks))
    elif a.what == "sizes":
        print(json.dumps(sizes(path, a.k, a.memory_limit, not a.warm, a.seed)))
    else:
        print(json.dumps(fit(path, a.k, a.memory_limit, a.subsample, not a.warm, a.seed)))


if __name__ == "__main__":
    main()
