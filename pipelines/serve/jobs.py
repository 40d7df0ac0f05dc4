"""The worker processes as the server sees them: turns, time limits, cancellation."""

from __future__ import annotations

import asyncio
import json
import multiprocessing
import shutil
import tempfile
import time
from collections.abc import AsyncIterator, Callable
from concurrent.futures import ThreadPoolExecutor
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

from .answers.limits import LIMITS, MEMORY, MOST_WAITING, PREPARE_SECONDS, READ_AHEAD, WAIT_SECONDS, Refused
from .worker import main

Tell = Callable[[dict[str, Any]], object]
_PRELOAD = ["annealed.pipelines.serve.preload"]


class Worker:
    """One process, its pipe, and its folder."""

    def __init__(self, context: Any, threads: ThreadPoolExecutor, memory: int):
        self._threads = threads
        self._home = Path(tempfile.mkdtemp(prefix="annealed-", dir=_memory_folder()))
        self._pipe, theirs = context.Pipe()
        self.process = context.Process(target=main, args=(theirs, str(self._home), memory), daemon=True)
        self.process.start()
        theirs.close()

    def stop(self) -> None:
        """End the process at once, whatever it does; nothing of it remains.

        The pipe closes with its last user: a thread may still read it, and a new pipe that took its number would lose messages.
        """
        self.process.kill()
        self.process.join()
        shutil.rmtree(self._home, ignore_errors=True)

    async def work(self, request: dict[str, Any], data: bytes, tell: Tell) -> bytes:
        """Send a request and wait for its answer.

        Raises
        ------
        Refused
            If the request is bad, or takes too long.
        EOFError
            If the process has ended.
        """
        seconds = LIMITS[request["kind"]].seconds
        deadline = time.monotonic() + PREPARE_SECONDS
        await self._in_thread(self._pipe.send_bytes, json.dumps(request).encode())
        await self._in_thread(self._pipe.send_bytes, data)
        while True:
            try:
                raw = await asyncio.wait_for(self._in_thread(self._pipe.recv_bytes), deadline - time.monotonic())
            except TimeoutError:
                raise Refused(504, f"{request['name']}: takes longer than {seconds:.0f} seconds, and was stopped") from None
            message = json.loads(raw)
            state = message.pop("state")
            if state == "ready":
                deadline = time.monotonic() + seconds
            elif state == "progress":
                tell(message)
            elif state == "failed":
                raise Refused(message["status"], message["message"])
            else:
                return await self._in_thread(self._pipe.recv_bytes)

    async def _in_thread(self, function: Callable, *args: Any) -> Any:
        return await asyncio.get_running_loop().run_in_executor(self._threads, function, *args)


class Pool:
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
        self._context = multiprocessing.get_context("forkserver")
        self._context.set_forkserver_preload(_PRELOAD)
        # A thread per worker waits for its pipe; those of workers that were stopped end with it.
        self._threads = ThreadPoolExecutor(2 * n_workers + 2, thread_name_prefix="annealed-serve")
        self._workers: set[Worker] = set()
        self._idle: asyncio.LifoQueue[Worker] = asyncio.LifoQueue()
        self._turns = asyncio.Semaphore(n_workers + READ_AHEAD)
        self._replacing: set[asyncio.Task] = set()
        self._closed = False

    async def start(self) -> None:
        """Start the processes."""
        for _ in range(self.n_workers):
            await self._add()

    async def stop(self) -> None:
        """End the processes; nothing remains."""
        self._closed = True
        await asyncio.gather(*self._replacing, return_exceptions=True)
        for worker in self._workers:
            worker.stop()
        self._workers.clear()
        self._threads.shutdown(wait=False)

    @asynccontextmanager
    async def turn(self) -> AsyncIterator[None]:
        """Wait for a turn; the file of a request is read inside, so that no more than a few are held in memory.

        Raises
        ------
        Refused
            With status 503, if too many are waiting, or this one for too long.
        """
        if self.waiting >= MOST_WAITING:
            raise Refused(503, f"busy: {self.waiting} requests are waiting; try again in a minute")
        self.waiting += 1
        try:
            await asyncio.wait_for(self._turns.acquire(), WAIT_SECONDS)
        except TimeoutError:
            raise Refused(503, f"busy: no turn within {WAIT_SECONDS:.0f} seconds; try again in a minute") from None
        finally:
            self.waiting -= 1
        self.running += 1
        try:
            yield
        finally:
            self.running -= 1
            self._turns.release()

    async def run(self, kind: str, name: str, data: bytes, fields: dict[str, list[str]], tell: Tell) -> bytes:
        """Let a worker answer; if this is cancelled, the worker is ended and another takes its place.

        Raises
        ------
        Refused
            If the request is bad, or costs more than is allowed.
        """
        worker = await self._idle.get()
        good = False
        try:
            content = await worker.work({"kind": kind, "name": name, "fields": fields}, data, tell)
            good = True
            return content
        except Refused as refused:
            good = refused.status == 400
            raise
        except (EOFError, OSError):
            raise Refused(413, f"{name}: ended the process that read it; too large for this page, or damaged") from None
        finally:
            if good:
                self._idle.put_nowait(worker)
            else:
                worker.stop()
                self._workers.discard(worker)
                task = asyncio.get_running_loop().create_task(self._add())
                self._replacing.add(task)
                task.add_done_callback(self._replacing.discard)

    async def _add(self) -> None:
        if self._closed:
            return
        make = asyncio.get_running_loop().run_in_executor(self._threads, Worker, self._context, self._threads, self.memory)
        worker = await make
        self._workers.add(worker)
        self._idle.put_nowait(worker)


def _memory_folder() -> str | None:
    """A folder that lies in memory, where there is one; else that for temporary files."""
    shared = Path("/dev/shm")
    return str(shared) if shared.is_dir() and shutil.disk_usage(shared).free > 256 * 2**20 else None
