"""Turns, time limits and replacement of the worker processes of ``annealed serve``."""

import asyncio
from dataclasses import replace

import pytest
from annealed.pipelines.serve.answers import limits
from annealed.pipelines.serve.answers.limits import LIMITS, MOST_WAITING, Refused
from annealed.pipelines.serve.jobs import Pool

TABLE = b"a,b,y\n" + b"".join(b"%d,%d,%d\n" % (i % 7, i % 5, 3 * (i % 7) - i % 5) for i in range(200))
FIELDS = {"target": ["y"], "k": ["1"]}


def in_pool(work):
    """Run ``work(pool)`` with one worker."""

    async def run():
        pool = Pool(1)
        await pool.start()
        try:
            return await asyncio.wait_for(work(pool), 300)
        finally:
            await pool.stop()

    return asyncio.run(run())


def select(pool, tell=lambda message: None):
    return pool.run("select", "t.csv", TABLE, FIELDS, tell)


def test_work_that_takes_too_long_is_ended_and_the_next_is_answered(monkeypatch):
    told = []

    async def work(pool):
        monkeypatch.setitem(LIMITS, "select", replace(LIMITS["select"], seconds=0.0))
        with pytest.raises(Refused, match="takes longer than 0 seconds") as refused:
            await select(pool)
        assert refused.value.status == 504
        monkeypatch.undo()
        return await select(pool, told.append)

    assert b'"selected"' in in_pool(work) and told


def test_a_worker_that_dies_is_replaced():
    async def work(pool):
        (worker,) = pool._workers
        task = asyncio.ensure_future(select(pool, lambda message: worker.process.kill()))
        with pytest.raises(Refused, match="ended the process that read it") as refused:
            await task
        assert refused.value.status == 413
        answer = await select(pool)
        assert pool._workers and worker not in pool._workers
        return answer

    assert b'"selected"' in in_pool(work)


def test_cancelled_work_ends_its_worker():
    async def work(pool):
        (worker,) = pool._workers
        begun = asyncio.Event()
        task = asyncio.ensure_future(select(pool, lambda message: begun.set()))
        await begun.wait()
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task
        assert worker not in pool._workers
        return await select(pool)

    assert b'"selected"' in in_pool(work)


def test_too_many_that_wait_are_refused(monkeypatch):
    async def work():
        pool = Pool(1)
        pool.waiting = MOST_WAITING
        with pytest.raises(Refused, match=f"busy: {MOST_WAITING} requests are waiting") as refused:
            async with pool.turn():
                pass
        assert refused.value.status == 503
        pool.waiting = 0
        monkeypatch.setattr("annealed.pipelines.serve.jobs.WAIT_SECONDS", 0.01)
        async with pool.turn(), pool.turn(), pool.turn():
            assert pool.running == 1 + limits.READ_AHEAD
            with pytest.raises(Refused, match="no turn within"):
                async with pool.turn():
                    pass
        assert pool.running == pool.waiting == 0

    asyncio.run(work())
