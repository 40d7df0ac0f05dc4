"""Time limits, cancellation and replacement of the worker processes of ``annealed serve``."""

import asyncio
import json
import os
import signal

import pytest
from annealed.pipelines.serve.answers.limits import LIMITS
from annealed.pipelines.serve.jobs import PROGRESS, WorkerPool
from annealed.pipelines.serve.uploads import Upload

TABLE = b"a,b,y\n" + b"".join(b"%d,%d,%d\n" % (i % 7, i % 5, 3 * (i % 7) - i % 5) for i in range(200))
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
    """Status and record of the answer; ``report`` gets each message before it."""
    async for status, body in pool.answer("select", Upload("t.csv", TABLE, FIELDS)):
        message = json.loads(body)
        if status == PROGRESS:
            report(message)
    return status, message


def worker(pool):
    """The one idle worker."""
    (found,) = pool._idle._queue
    return found


def test_work_that_takes_too_long_is_ended_and_the_next_is_answered(monkeypatch):
    told = []

    async def work(pool):
        monkeypatch.setitem(LIMITS, "select", LIMITS["select"]._replace(seconds=0.001))
        refused = await select(pool)
        assert refused == (504, {"error": "t.csv: takes longer than 0.001 seconds, and was stopped", "status": 504})
        monkeypatch.undo()
        return await select(pool, told.append)

    status, record = in_pool(work)
    assert status == 200 and "selected" in record and told


def test_a_worker_that_dies_is_replaced():
    async def work(pool):
        first = worker(pool)
        status, refused = await select(pool, lambda message: os.kill(first.process.pid, signal.SIGKILL))
        assert status == 413 and refused["error"].startswith("t.csv: ended the process that read it")
        assert worker(pool) is not first
        return await select(pool)

    status, record = in_pool(work)
    assert status == 200 and "selected" in record


def test_cancelled_work_ends_its_worker():
    async def work(pool):
        first = worker(pool)
        begun = asyncio.Event()
        task = asyncio.ensure_future(select(pool, lambda message: begun.set()))
        await begun.wait()
        assert pool.running == 1
        waiting = asyncio.ensure_future(select(pool))
        await asyncio.sleep(0)
        assert pool.waiting == 1
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task
        assert first.process.exitcode == -signal.SIGKILL
        answer = await waiting
        assert pool.running == pool.waiting == 0
        return answer

    status, record = in_pool(work)
    assert status == 200 and "selected" in record
