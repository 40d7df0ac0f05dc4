"""Worker processes of the local page, with a queue, time and memory limits, and cancellation."""

import asyncio
import fcntl
import json
import multiprocessing
import os
import resource
import shutil
import signal
import tempfile
import threading
import warnings
from collections.abc import AsyncIterator, Callable, Iterator
from concurrent.futures import ProcessPoolExecutor
from concurrent.futures.process import BrokenProcessPool
from contextlib import asynccontextmanager, contextmanager, suppress
from importlib import import_module
from multiprocessing.connection import Connection
from pathlib import Path
from typing import Any

from ...models.messages import plain, short
from .. import common
from .answers.limits import (
    LIMITS,
    MAX_HELD,
    MAX_WAITING,
    MEMORY,
    PREPARE_SECONDS,
    WAIT_SECONDS,
    RequestError,
)
from .uploads import Upload

TABS = ("faces", "camera", "motion", "pets", "select")
ProgressCallback = Callable[[dict[str, Any]], object]
_CONTEXT = multiprocessing.get_context("forkserver")
_MODULES = ("faces", "motion", "pets", "select")
_CONTEXT.set_forkserver_preload([f"{__package__}.answers.{module}" for module in _MODULES])


class Worker:
    """Worker process with its own folder and progress pipe, which can be stopped independently.

    Parameters
    ----------
    memory : int
        Memory limit of the process in bytes.
    """

    def __init__(self, memory: int):
        # The folder is in memory if there is a tmpfs.
        shared = (
            "/dev/shm"
            if os.path.isdir("/dev/shm") and shutil.disk_usage("/dev/shm").free > 256 * 2**20
            else None
        )
        self._folder = Path(tempfile.mkdtemp(prefix="annealed-", dir=shared))
        self._progress, theirs = _CONTEXT.Pipe(duplex=False)
        self._executor = ProcessPoolExecutor(
            1, _CONTEXT, _start, (theirs, str(self._folder), memory)
        )
        self.pid = self._executor.submit(os.getpid).result()
        theirs.close()
        self._executor.submit(_prepare, "faces")  # prepares the first tab before the first request
        self.usable = True

    def stop(self) -> None:
        """Kill the process and remove its folder."""
        with suppress(ProcessLookupError):
            os.kill(self.pid, signal.SIGKILL)
        self._executor.shutdown(cancel_futures=True)
        self._progress.close()
        shutil.rmtree(self._folder, ignore_errors=True)

    async def run(self, kind: str, upload: Upload, report: ProgressCallback) -> bytes:
        """Answer a request; the worker remains ``usable`` unless the request was cancelled or
        exceeded a limit.

        Raises
        ------
        RequestError
            If the request is invalid or exceeds a limit.
        """
        loop, seconds = asyncio.get_running_loop(), LIMITS[kind].seconds

        def forward() -> None:
            with suppress(EOFError):  # the process has ended, which its executor reports
                while self._progress.poll():
                    report(json.loads(self._progress.recv_bytes()))

        self.usable = False
        loop.add_reader(self._progress.fileno(), forward)
        try:
            await self._submit(PREPARE_SECONDS, _prepare, kind)
            (self._folder / upload.name).write_bytes(upload.data)
            answer = await self._submit(seconds, _answer, kind, upload.name, upload.fields)
            forward()
        except TimeoutError:
            raise RequestError(
                504,
                f"{upload.name}: processing was stopped after the time limit of "
                f"{seconds:.0f} seconds",
            ) from None
        except (BrokenProcessPool, OSError):
            raise RequestError(
                413,
                f"{upload.name}: the worker crashed; the file may be too large or damaged",
            ) from None
        except RequestError as error:
            self.usable = error.status == 400
            raise
        finally:
            loop.remove_reader(self._progress.fileno())
        self.usable = True
        return answer

    async def _submit(self, seconds: float, function: Callable, *args: Any) -> Any:
        async with asyncio.timeout(seconds):
            return await asyncio.wrap_future(self._executor.submit(function, *args))


class WorkerPool:
    """Queue of worker processes.

    Parameters
    ----------
    n_workers : int
        Number of processes. Each process handles one request at a time.
    memory : int, default MEMORY
        Memory limit of each process in bytes.
    """

    def __init__(self, n_workers: int, memory: int = MEMORY):
        self.n_workers, self.memory = n_workers, memory
        self.waiting = self.running = self.held = 0
        self.workers: set[Worker] = set()
        self._idle: asyncio.LifoQueue[Worker] = asyncio.LifoQueue()
        self._closed = False

    def start(self) -> None:
        """Start the processes."""
        for _ in range(self.n_workers):
            self._add(Worker(self.memory))

    def stop(self) -> None:
        """Stop the processes and remove their folders."""
        self._closed = True
        while self.workers:
            self.workers.pop().stop()

    @asynccontextmanager
    async def turn(self) -> AsyncIterator[Worker]:
        """Wait for a free worker.

        Raises
        ------
        RequestError
            If too many requests are waiting or this one has waited too long (status 503).
        """
        if self.waiting >= MAX_WAITING:
            raise RequestError(
                503,
                f"the server is busy, and {self.waiting} requests are waiting; try again in a "
                "minute",
            )
        self.waiting += 1
        try:
            async with asyncio.timeout(WAIT_SECONDS):
                worker = await self._idle.get()
        except TimeoutError:
            raise RequestError(
                503,
                f"the server is busy, and no worker became free within {WAIT_SECONDS:.0f} "
                "seconds; try again in a minute",
            ) from None
        finally:
            self.waiting -= 1
        self.running += 1
        try:
            yield worker
        finally:
            self.running -= 1
            if worker in self.workers and not worker.usable:
                self.workers.remove(worker)
                worker.stop()
                worker = Worker(self.memory)
            if not self._closed:
                self._add(worker)

    @contextmanager
    def room(self) -> Iterator[Callable[[int], None]]:
        """Context manager that counts the bytes of an upload in memory until the response is sent.

        Raises
        ------
        RequestError
            If all uploads together require too much memory (status 503).
        """
        mine = 0

        def hold(n_bytes: int) -> None:
            nonlocal mine
            mine, self.held = mine + n_bytes, self.held + n_bytes
            if self.held > MAX_HELD:
                raise RequestError(
                    503,
                    "the server is busy, and too many uploads are waiting; try again in a minute",
                )

        try:
            yield hold
        finally:
            self.held -= mine

    def _add(self, worker: Worker) -> None:
        self.workers.add(worker)
        self._idle.put_nowait(worker)


# The remaining functions run in the worker processes.

_progress: Connection  # connection to the server


def _start(progress: Connection, folder: str, memory: int) -> None:
    """Set the limits of this process, which ends when the server ends."""
    global _progress
    _progress = progress
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # the server stops its workers
    threading.Thread(target=_end_with_server, daemon=True).start()
    os.chdir(folder)
    os.environ["OMP_NUM_THREADS"] = "1"
    resource.setrlimit(resource.RLIMIT_DATA, (memory, memory))
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))


def _end_with_server() -> None:
    server = multiprocessing.parent_process()
    assert server is not None
    server.join()
    os._exit(1)


def _module(kind: str) -> Any:
    """Return the module that answers a kind of request; requests about keypoints share one
    module."""
    return import_module(f".answers.{kind if kind in _MODULES else 'faces'}", __package__)


def _prepare(kind: str) -> None:
    """Load the model of a tab in one process at a time, so that the others reuse the compiled code
    on disk."""
    if kind in TABS:
        folder = os.open(Path(__file__).parent, os.O_RDONLY)
        try:
            with suppress(OSError):  # without file locks, several processes compile
                fcntl.flock(folder, fcntl.LOCK_EX)
            _module(kind).prepare()
        finally:
            os.close(folder)


def _answer(kind: str, name: str, fields: dict[str, list[str]]) -> bytes:
    """Return the content of an answer, converting every error to a one-line RequestError."""
    path = Path(name)
    try:
        with warnings.catch_warnings():
            warnings.showwarning = _report_warning
            if kind == "sample":
                return common.sample(name)
            record = getattr(_module(kind), kind)(path, fields, _report)
            return json.dumps(plain(record), allow_nan=False).encode()
    except (ValueError, OSError, ModuleNotFoundError) as error:
        raise RequestError(400, short(error)) from None
    except Exception as error:  # raised by a library; after a MemoryError, the process is unusable
        full = isinstance(error, MemoryError) or "memory" in str(error).lower()
        reason = (
            "processing this file exceeds the memory limit"
            if full
            else f"{type(error).__name__}: {error}"
        )
        raise RequestError(413 if full else 500, short(f"{path}: {reason}")) from None
    finally:
        path.unlink(missing_ok=True)


def _report(step: str, done: int | None = None, of: int | None = None) -> None:
    _progress.send_bytes(json.dumps({"step": step, "done": done, "of": of}).encode())


def _report_warning(
    message: Any, category: type, filename: str, lineno: int, file: Any = None, line: Any = None
) -> None:
    if issubclass(category, UserWarning) and "annealed" in filename:
        _progress.send_bytes(json.dumps({"note": short(message)}).encode())
