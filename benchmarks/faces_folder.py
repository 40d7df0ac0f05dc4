"""Detection in a folder of many photographs, which are varied copies of a few: a run that is killed
twice and resumed, compared with an uninterrupted one; memory; and one process compared with two.

    python benchmarks/faces_folder.py --data DATA/faces/train [--photographs 10000]

``--workers N`` compares one process with N local Dask workers instead, one of which is killed after
a third of the time.
"""

import os
import resource
import signal
import subprocess
import sys
import tempfile
import threading
import time
from pathlib import Path

import cv2
import numpy as np
from annealed.pipelines.keypoints.data import read_annotations
from annealed.vision.images import read_image
from common import new_parser
from dask.distributed import Client, LocalCluster

SIDE = 200
PROGRAM = (
    sys.executable,
    "-c",
    "from annealed.pipelines.cli import main; main()",
    "faces",
    "detect",
)


def write_copies(images, folder, n):
    """Write copies of the part around the face into subfolders, each brighter or darker and with
    noise."""
    for i in range(n):
        image, rng = images[i % len(images)], np.random.default_rng(i)
        scale = rng.uniform(35, 55) / float(image.reference_length[0])
        matrix = np.column_stack(
            [np.eye(2) * scale, SIDE / 2 - scale * image.instances[0, :6].mean(axis=0)]
        )
        pixels = cv2.warpAffine(read_image(image.path), matrix, (SIDE, SIDE), flags=cv2.INTER_AREA)
        pixels = np.clip(
            pixels * rng.uniform(0.7, 1.2) + 3 * rng.normal(size=pixels.shape), 0, 255
        ).astype(np.uint8)
        path = folder / f"{i % 10}" / f"{i:05d}.jpg"
        path.parent.mkdir(exist_ok=True, parents=True)
        cv2.imwrite(str(path), pixels[..., ::-1])


def run(*arguments, seconds=None):
    """Return the seconds of a run, which is killed after a given time."""
    start = time.perf_counter()
    process = subprocess.Popen(
        [*PROGRAM, *map(str, arguments), "--quiet"], stdout=subprocess.DEVNULL
    )
    try:
        process.wait(seconds)
    except subprocess.TimeoutExpired:
        process.kill()
        process.wait()
    return time.perf_counter() - start


def compare_workers(folder, table, n, one):
    """Repeat the run on N workers, one of which is killed, and print the seconds of both."""
    with LocalCluster(n, threads_per_worker=1, dashboard_address=None) as cluster:
        with Client(cluster, set_as_default=False) as client:
            victims = list(client.run(os.getpid).values())
        killer = threading.Timer(one / 3, os.kill, [victims[0], signal.SIGKILL])
        killer.start()
        several = run(folder, "--out", table, "--dask", cluster.scheduler_address)
        killer.cancel()
        with Client(cluster, set_as_default=False) as client:
            killed = victims[0] not in client.run(os.getpid).values()
    same = table.read_bytes() == table.with_name("whole.csv").read_bytes()
    print(
        f"one process: {one:.0f} s; {n} workers on {len(os.sched_getaffinity(0))} processors, "
        f"one killed ({killed}): {several:.0f} s; identical output: {same}"
    )


def main(argv=None):
    parser = new_parser(__doc__)
    parser.add_argument("--data", type=Path, required=True)
    parser.add_argument("--workers", type=int, default=0, metavar="N")
    parser.add_argument("--photographs", type=int, default=10_000)
    args = parser.parse_args(argv)
    images = [
        image
        for image in read_annotations(args.data)
        if len(image.reference_length) == 1 and np.isfinite(image.instances).all()
    ][:50]
    with tempfile.TemporaryDirectory() as name:
        folder, whole, stopped = (
            Path(name) / "photographs",
            Path(name) / "whole",
            Path(name) / "stopped",
        )
        write_copies(images, folder, args.photographs)
        run(folder / "0" / "00000.jpg", "--out", Path(name) / "warm.csv")
        if args.workers:
            one = run(folder, "--out", whole.with_suffix(".csv"))
            return compare_workers(folder, Path(name) / "workers.csv", args.workers, one)
        for ending in (".csv", ".parquet"):
            one = run(folder, "--out", whole.with_suffix(ending))
            peak = resource.getrusage(resource.RUSAGE_CHILDREN).ru_maxrss / 1024
            table = stopped.with_suffix(ending)
            for _ in range(2):
                run(folder, "--out", table, "--resume", seconds=one / 3)
            n_finished = sum(1 for _ in table.with_name(table.name + ".unfinished").open()) - 1
            run(folder, "--out", table, "--resume")
            same = table.read_bytes() == whole.with_suffix(ending).read_bytes()
            print(
                f"{ending}: {one:.0f} s, at most {peak:.0f} MiB; killed after {n_finished} "
                f"finished photographs; identical output: {same}",
                flush=True,
            )
        both = run(folder, "--out", Path(name) / "two.csv", "--jobs", 2)
        print(
            f"{args.photographs / one:.1f} photographs a second, with --jobs 2 "
            f"{args.photographs / both:.1f}: {one / both:.2f} times"
        )


if __name__ == "__main__":
    main()
