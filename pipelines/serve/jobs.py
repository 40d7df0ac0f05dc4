"""The worker processes of the local page: turns, limits of time and memory, cancellation."""

from __future__ import annotations

import asyncio
import contextlib
import fcntl
import json
import multiprocessing
import os
import resource
import signal
import tempfile
import warnings
from collections.abc import AsyncIterator
from importlib import import_module
from multiprocessing.connection import Connection
from pathlib import Path
from typing import Any

from ...models.messages import short
from ..console import plain
from .answers.fields import Fields
from .answers.limits import LIMITS, MEMORY
from .uploads import Upload

PROGRESS = 102  # "Processing" in HTTP: a message before the answer
_CONTEXT = multiprocessing.get_context("forkserver")
_CONTEXT.set_forkserver_preload([f"{__package__}.answers.{tab}" for tab in LIMITS])


class Worker:
    """A process that answers one request at a time, and the server's end of its pipe.

    Parameters
    ----------
    memory : int
        Bytes that the process may have for its data.
    """

    def __init__(self, memory: int):
        self.pipe, theirs = _CONTEXT.Pipe()
        self.process = _CONTEXT.Process(target=_work, args=(theirs, memory), daemon=True)
        self.process.start()
        theirs.close()

    def stop(self) -> None:
        """End the process at once, whatever it does."""
        self.process.kill()
        self.process.join()


class WorkerPool:
    """Worker processes that take turns.

    Parameters
    ----------
    n_workers : int
        Processes, each of which answers one request at a time.
    memory : int, default MEMORY
        Bytes that each may have for its data.
    """

    def __init__(self, n_workers: int, memory: int = MEMORY):
        self.n_workers, self.memory = n_workers, memory
        self.waiting = self.running = 0
        self._workers: set[Worker] = set()
        self._idle: asyncio.Queue[Worker] = asyncio.Queue()

    def start(self) -> None:
        """Start the processes."""
        for _ in range(self.n_workers):
            self._idle.put_nowait(self._new())

    def stop(self) -> None:
        """End the processes."""
        for worker in self._workers:
            worker.stop()

    def _new(self) -> Worker:
        worker = Worker(self.memory)
        self._workers.add(worker)
        return worker

    async def answer(self, kind: str, upload: Upload) -> AsyncIterator[tuple[int, bytes]]:
        """Yield statuses of HTTP with JSON objects: ``PROGRESS`` as it comes, at last the answer,
        or why there is none.

        A worker whose request was given up, or cost too much, is replaced.
        """
        self.waiting += 1
        try:
            worker = await self._idle.get()
        finally:
            self.waiting -= 1
        self.running += 1
        status, seconds = PROGRESS, LIMITS[kind].seconds
        try:
            with tempfile.TemporaryDirectory(prefix="annealed-") as folder:
                (Path(folder) / upload.name).write_bytes(upload.data)
                worker.pipe.send((kind, folder, upload.name, upload.fields, seconds))
                while status == PROGRESS:
                    message = await asyncio.to_thread(worker.pipe.recv_bytes)
                    status = int(message[:3])
                    yield status, message[3:]
        except (EOFError, OSError):  # the process has ended
            worker.stop()
            if worker.process.exitcode == -signal.SIGALRM:
                yield 504, _error(f"{upload.name}: takes longer than {seconds:g} seconds, and was stopped", 504)
            else:
                yield 413, _error(f"{upload.name}: ended the process that read it; too large for this page, or damaged", 413)
        finally:
            self.running -= 1
            if status not in (200, 400):
                worker.stop()
                self._workers.remove(worker)
                worker = self._new()
            self._idle.put_nowait(worker)


def _error(message: str, status: int) -> bytes:
    return json.dumps({"error": short(message), "status": status}).encode()


# What follows runs in the worker processes.


def _work(pipe: Connection, memory: int) -> None:
    """Answer requests until the server ends; messages go back as JSON after a status of three
    digits.
    """
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # the server ends its workers
    os.environ["OMP_NUM_THREADS"] = "1"
    resource.setrlimit(resource.RLIMIT_DATA, (memory, memory))
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
    with contextlib.suppress(Exception):  # who asks for it is told
        _prepared("faces")  # the first tab, before anybody waits for it
    with contextlib.suppress(EOFError, OSError):  # the server has ended
        while True:
            kind, folder, name, fields, seconds = pipe.recv()
            with contextlib.chdir(folder):
                status, answer = _answer(pipe, kind, name, fields, seconds)
            pipe.send_bytes(b"%d" % status + answer)


def _prepared(kind: str) -> Any:
    """Load what a tab needs, one process at a time: what the first compiles is on disk for the
    others.
    """
    with open(__file__) as lock:
        with contextlib.suppress(OSError):  # a file system without locks: then several compile
            fcntl.flock(lock, fcntl.LOCK_EX)
        tab = import_module(f".answers.{kind}", __package__)
        tab.prepare()
    return tab


def _answer(pipe: Connection, kind: str, name: str, fields: dict[str, list[str]], seconds: float) -> tuple[int, bytes]:
    """Return the status and the JSON of an answer; every error is one line. Past its time the
    process ends by an alarm.
    """

    def send(**message: Any) -> None:
        pipe.send_bytes(b"%d" % PROGRESS + json.dumps(message).encode())

    def report(step: str, done: int | None = None, of: int | None = None) -> None:
        send(step=step, done=done, of=of)

    def report_warning(message: Any, category: type, filename: str, lineno: int, file: Any = None, line: Any = None) -> None:
        if issubclass(category, UserWarning) and "annealed" in filename:
            send(note=short(message))

    try:
        tab = _prepared(kind)
        signal.setitimer(signal.ITIMER_REAL, seconds)
        with warnings.catch_warnings():
            warnings.showwarning = report_warning
            record = tab.answer(Path(name), Fields(fields, tab.FIELDS), report)
        return 200, json.dumps(plain(record), allow_nan=False).encode()
    except (ValueError, OSError, ModuleNotFoundError) as error:
        return 400, _error(str(error), 400)
    except Exception as error:  # of a library; after a lack of memory the process is of no more use
        if isinstance(error, MemoryError) or "memory" in str(error).lower():
            return 413, _error(f"{name}: needs more memory than this page allows", 413)
        return 500, _error(f"{name}: {type(error).__name__}: {error}", 500)
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)
