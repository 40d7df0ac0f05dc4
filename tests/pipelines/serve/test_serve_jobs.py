"""Turns, time limits and replacement of the worker processes of ``annealed serve``."""

import asyncio
import os
import signal
from dataclasses import replace

import pytest
from annealed.pipelines.serve.answers.limits import LIMITS, MAX_WAITING, RequestError
from annealed.pipelines.serve.jobs import WorkerPool
from annealed.pipelines.serve.uploads import Upload, read_upload

TABLE = b"a,b,y\n" + b"".join(
    b"%d,%d,%d\n" % (i % 7, i % 5, 3 * (i % 7) - i % 5) for i in range(200)
)
FIELDS = {"target": ["y"], "k": ["1"]}


def in_pool(work):
    """Run ``work(pool)`` with one worker."""

    async def run():
        pool = WorkerPool(1)
        pool.start()
        try:
            return await asyncio.wait_for(work(pool), 300)
        finally:
            pool.stop()

    return asyncio.run(run())


async def select(pool, report=lambda message: None):
    async with pool.turn() as worker:
        return await worker.run("select", Upload("t.csv", TABLE, FIELDS), report)


def test_work_that_takes_too_long_is_ended_and_the_next_is_answered(monkeypatch):
    told = []

    async def work(pool):
        monkeypatch.setitem(LIMITS, "select", replace(LIMITS["select"], seconds=0.0))
        with pytest.raises(
            RequestError, match="processing was stopped after the time limit of 0 seconds"
        ) as refused:
            await select(pool)
        assert refused.value.status == 504
        monkeypatch.undo()
        return await select(pool, told.append)

    assert b'"selected"' in in_pool(work) and told


def test_a_worker_that_dies_is_replaced():
    async def work(pool):
        (worker,) = pool.workers
        task = asyncio.ensure_future(
            select(pool, lambda message: os.kill(worker.pid, signal.SIGKILL))
        )
        with pytest.raises(RequestError, match="the worker crashed") as refused:
            await task
        assert refused.value.status == 413
        answer = await select(pool)
        assert pool.workers and worker not in pool.workers
        return answer

    assert b'"selected"' in in_pool(work)


def test_cancelled_work_ends_its_worker():
    async def work(pool):
        (worker,) = pool.workers
        begun = asyncio.Event()
        task = asyncio.ensure_future(select(pool, lambda message: begun.set()))
        await begun.wait()
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task
        assert worker not in pool.workers
        return await select(pool)

    assert b'"selected"' in in_pool(work)


def test_uploads_together_have_a_limit(monkeypatch):
    monkeypatch.setattr("annealed.pipelines.serve.jobs.MAX_HELD", 10)
    pool = WorkerPool(1)
    with pool.room() as first, pool.room() as second:
        first(4)
        second(6)
        with pytest.raises(RequestError, match="busy, and too many uploads are waiting") as refused:
            second(1)
    assert refused.value.status == 503 and pool.held == 0


class Paused:
    """A request whose body stops after its first part."""

    def __init__(self):
        self.headers = {"Content-Type": "multipart/form-data; boundary=x"}

    async def stream(self):
        yield b"--x\r\n"
        await asyncio.sleep(60)


def test_an_upload_that_stops_is_refused(monkeypatch):
    monkeypatch.setattr("annealed.pipelines.serve.uploads.STALL_SECONDS", 0.05)
    with pytest.raises(RequestError, match="or paused for more than") as refused:
        asyncio.run(read_upload(Paused(), LIMITS["faces"], lambda n_bytes: None))
    assert refused.value.status == 408


def test_too_many_that_wait_are_refused(monkeypatch):
    async def work():
        pool = WorkerPool(1)
        pool.waiting = MAX_WAITING
        with pytest.raises(
            RequestError, match=f"the server is busy, and {MAX_WAITING} requests are waiting"
        ) as refused:
            async with pool.turn():
                pass
        assert refused.value.status == 503
        pool.waiting = 0
        monkeypatch.setattr("annealed.pipelines.serve.jobs.WAIT_SECONDS", 0.01)
        with pytest.raises(RequestError, match="no worker became free within"):
            async with pool.turn():
                pass
        assert pool.running == pool.waiting == 0

    asyncio.run(work())
