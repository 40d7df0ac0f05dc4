"""The worker processes of the local page: turns, limits of time and memory, cancellation."""

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
from collections.abc import AsyncIterator, Callable
from concurrent.futures import ProcessPoolExecutor
from concurrent.futures.process import BrokenProcessPool
from contextlib import asynccontextmanager, suppress
from importlib import import_module
from multiprocessing.connection import Connection
from pathlib import Path
from typing import Any

from ...models.messages import short
from ..console import plain
from .answers.fields import Fields
from .answers.limits import LIMITS, MAX_WAITING, MEMORY, PREPARE_SECONDS, WAIT_SECONDS, RequestError
from .answers.samples import sample
from .uploads import Upload

TABS = ("faces", "camera", "motion", "pets", "select")
ProgressCallback = Callable[[dict[str, Any]], object]
_CONTEXT = multiprocessing.get_context("forkserver")
_CONTEXT.set_forkserver_preload([f"{__package__}.answers.{tab}" for tab in TABS])


class Worker:
    """A pool of one process, which can be ended without the others, with a folder and a pipe for
    its progress.

    Parameters
    ----------
    memory : int
        Bytes that the process may have for its data.
    """

    def __init__(self, memory: int):
        # In memory, where a folder lies there.
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
        self._executor.submit(_prepare, "faces")  # of the first tab, before anybody waits for it
        self.usable = True

    def stop(self) -> None:
        """End the process at once, whatever it does; nothing of it remains."""
        with suppress(ProcessLookupError):
            os.kill(self.pid, signal.SIGKILL)
        self._executor.shutdown(cancel_futures=True)
        self._progress.close()
        shutil.rmtree(self._folder, ignore_errors=True)

    async def run(self, kind: str, upload: Upload, report: ProgressCallback) -> bytes:
        """Answer a request; the worker is ``usable`` afterwards unless the request was given up, or
        cost too much.

        Raises
        ------
        RequestError
            If the request is bad, or costs more than is allowed.
        """
        loop, seconds = asyncio.get_running_loop(), LIMITS[kind].seconds

        def forward() -> None:
            with suppress(EOFError):  # the process has ended; its executor says so
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
                504, f"{upload.name}: takes longer than {seconds:.0f} seconds, and was stopped"
            ) from None
        except (BrokenProcessPool, OSError):
            raise RequestError(
                413,
                f"{upload.name}: ended the process that read it; too large for this page, or damaged",
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
        self.workers: set[Worker] = set()
        self._idle: asyncio.LifoQueue[Worker] = asyncio.LifoQueue()
        self._closed = False

    def start(self) -> None:
        """Start the processes."""
        for _ in range(self.n_workers):
            self._add(Worker(self.memory))

    def stop(self) -> None:
        """End the processes; nothing remains."""
        self._closed = True
        while self.workers:
            self.workers.pop().stop()

    @asynccontextmanager
    async def turn(self) -> AsyncIterator[Worker]:
        """Wait for a worker; the file of a request is read inside, so that no more than a few are
        held in memory.

        Raises
        ------
        RequestError
            With status 503, if too many are waiting, or this one for too long.
        """
        if self.waiting >= MAX_WAITING:
            raise RequestError(
                503, f"busy: {self.waiting} requests are waiting; try again in a minute"
            )
        self.waiting += 1
        try:
            async with asyncio.timeout(WAIT_SECONDS):
                worker = await self._idle.get()
        except TimeoutError:
            raise RequestError(
                503, f"busy: no turn within {WAIT_SECONDS:.0f} seconds; try again in a minute"
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

    def _add(self, worker: Worker) -> None:
        self.workers.add(worker)
        self._idle.put_nowait(worker)


# What follows runs in the worker processes.

_progress: Connection  # to the server


def _start(progress: Connection, folder: str, memory: int) -> None:
    """Set the limits of this process; it ends with the server."""
    global _progress
    _progress = progress
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # the server ends its workers
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


def _prepare(kind: str) -> None:
    """Load what a tab needs, one process at a time: what the first compiles is on disk for the
    others."""
    if kind in TABS:
        folder = os.open(Path(__file__).parent, os.O_RDONLY)
        try:
            with suppress(OSError):  # a file system without locks: then several compile
                fcntl.flock(folder, fcntl.LOCK_EX)
            import_module(f".answers.{kind}", __package__).prepare()
        finally:
            os.close(folder)


def _answer(kind: str, name: str, fields: dict[str, list[str]]) -> bytes:
    """Return the content of an answer; every error is a RequestError of one line."""
    path = Path(name)
    try:
        with warnings.catch_warnings():
            warnings.showwarning = _report_warning
            if kind == "sample":
                return sample(name)
            if kind == "features":
                record = import_module(".answers.faces", __package__).features()
            else:
                tab = import_module(f".answers.{kind}", __package__)
                record = tab.answer(path, Fields(fields, tab.FIELDS), _report)
            return json.dumps(plain(record), allow_nan=False).encode()
    except (ValueError, OSError, ModuleNotFoundError) as error:
        raise RequestError(400, short(error)) from None
    except Exception as error:  # of a library; after a lack of memory the process is of no more use
        full = isinstance(error, MemoryError) or "memory" in str(error).lower()
        reason = (
            "needs more memory than this page allows"
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
