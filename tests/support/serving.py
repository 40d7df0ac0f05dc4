"""A running ``annealed serve`` for tests."""

import contextlib
import os
import re
import subprocess
import sys
from pathlib import Path


@contextlib.contextmanager
def serving(*options):
    """Yield the address of a server on a free port, and its process, which is ended like by
    Ctrl-C."""
    command = [sys.executable, "-m", "annealed.pipelines.cli", "serve", "--port", "0", *options]
    server = subprocess.Popen(
        command, stdout=subprocess.PIPE, text=True, env={**os.environ, "ANNEALED_QUIET": "1"}
    )
    try:
        line = server.stdout.readline()
        yield re.search(r"http://\S+", line)[0], server
    finally:
        server.send_signal(2)
        try:
            server.wait(60)
        finally:
            server.kill()
            server.stdout.close()


def family(pid):
    """Ids of a process and of its descendants, from Linux's process list."""
    parents = {}
    for entry in Path("/proc").iterdir():
        if entry.name.isdigit():
            with contextlib.suppress(OSError):
                parents[int(entry.name)] = int(
                    (entry / "stat").read_text().rpartition(")")[2].split()[1]
                )
    processes = {pid}
    while more := {child for child, parent in parents.items() if parent in processes} - processes:
        processes |= more
    return processes


def resident(pids):
    """Proportional set size of processes in bytes."""
    total = 0
    for pid in pids:
        with contextlib.suppress(OSError):
            match = re.search(
                r"^Pss:\s+(\d+) kB", Path(f"/proc/{pid}/smaps_rollup").read_text(), re.MULTILINE
            )
            total += 1024 * int(match[1]) if match else 0
    return total
