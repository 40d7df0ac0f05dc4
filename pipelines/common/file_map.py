"""A function of a model over many files: one after the other, in several processes, or on the
workers of a Dask cluster; and other work there."""

from __future__ import annotations

import asyncio
import logging
import operator
import os
import pickle
import socket
import tempfile
import warnings
from collections import deque
from collections.abc import Callable, Iterable, Iterator, Sequence
from concurrent.futures import CancelledError
from contextlib import ExitStack, chdir, contextmanager, nullcontext, suppress
from functools import cached_property, partial
from itertools import islice
from pathlib import Path
from threading import Lock
from typing import TYPE_CHECKING, Any

from ...learners.compilation import all_threads, plain_forms
from ..console import log

if TYPE_CHECKING:
    from distributed import Client

# ``file_map(work, model, items)`` yields ``work(model, item)`` in the order of the items; ``work``
# is a function of a module, or a partial of one. An error is raised when it is that item's turn.
FileMap = Callable[[Callable[[Any, Any], Any], Any, Iterable[Any]], Iterator[Any]]
Jobs = int | FileMap  # threads of this process, or where else
_Answer = tuple[Any, Exception | None, list[str]]
TIMEOUT = 10.0  # seconds in which a scheduler has to answer. A choice


def by_processes(n_jobs: int = 1) -> FileMap:
    """Work on several items at a time, in processes that each hold the model; no more than there
    are cores.

    Threads would wait for one another, since a third of a detection is spent in Python. Items are
    taken a few ahead of the results, which do not depend on ``n_jobs``.

    Parameters
    ----------
    n_jobs : int, default 1
        1: in this process.

    Returns
    -------
    FileMap

    Raises
    ------
    ValueError
        For a number below 1.

    Examples
    --------
    >>> list(by_processes()(pow, 2, [1, 5, 3]))
    [2, 32, 8]
    """
    if int(n_jobs) != n_jobs or n_jobs < 1:
        raise ValueError(f"n_jobs={n_jobs}: expected a whole number of at least 1")
    return partial(_in_processes, min(int(n_jobs), all_threads()))


def by_dask(address: str) -> FileMap:
    """Work on the workers of a Dask cluster, which read the files.

    The model is sent once, and goes from worker to worker. A worker handles one item at a time;
    what a dead one had is done again by others. Relative names of files are those in this process's
    working directory, where the worker has such a folder.

    Parameters
    ----------
    address : str
        Of the scheduler, such as ``tcp://host:8786``.

    Returns
    -------
    FileMap
        Raises a ValueError where no scheduler answers or it goes away, where workers lack the
        package, and for an item with which worker after worker ended.

    Raises
    ------
    ModuleNotFoundError
        Without ``annealed[dask]``.

    Examples
    --------
    >>> results = by_dask("tcp://host:8786")(pow, 2, [1, 5, 3])  # doctest: +SKIP
    """
    import distributed  # noqa: F401

    return partial(_on_workers, address)


def limit_jobs(asked: int, n_items: int, quiet: bool) -> int:
    """How many photographs are handled at a time: what was asked for (0: one per core), at most
    their number and that of cores."""
    if asked < 0:
        raise ValueError(
            f"--jobs {asked}: expected a whole number of at least 1, or 0: one per core"
        )
    jobs = max(1, min(asked or n_items, n_items, all_threads()))
    if jobs < asked:
        log(
            f"--jobs {asked}: {jobs} at a time (photographs: {n_items}, cores: {all_threads()})",
            quiet,
        )
    return jobs


def make_file_map(jobs: int, dask: str | None, n_items: int, quiet: bool) -> FileMap:
    """Where files are handled: in so many processes, see :func:`limit_jobs`, or on the
    cluster with that address.

    Raises
    ------
    ValueError
        For both.

    Examples
    --------
    >>> list(make_file_map(1, None, 3, quiet=True)(pow, 2, [1, 5, 3]))
    [2, 32, 8]
    """
    if dask is None:
        return by_processes(limit_jobs(jobs, n_items, quiet))
    if jobs != 1:
        raise ValueError(
            f"--jobs {jobs}: with --dask each worker is one; expected one of the two options"
        )
    return by_dask(dask)


def resolve_jobs(jobs: int, dask: str | None, n_items: int, quiet: bool) -> Jobs:
    """So many threads, see :func:`limit_jobs`, or the cluster with that address.

    Raises
    ------
    ValueError
        For both, and where no scheduler answers.

    Examples
    --------
    >>> resolve_jobs(1, None, 3, quiet=True)
    1
    """
    if dask is None:
        return limit_jobs(jobs, n_items, quiet)
    found = make_file_map(jobs or 1, dask, n_items, quiet)
    check_scheduler(dask)
    return found


def map_items(file_map: FileMap, work: Callable[[Any], Any], items: Sequence[Any]) -> Iterator[Any]:
    """``map(work, items)`` elsewhere: function and items are sent once, and items are asked for
    there.

    Examples
    --------
    >>> list(map_items(by_processes(), abs, [-2, 3]))
    [2, 3]
    """
    return file_map(_of_number, (work, items), range(len(items)))


def _of_number(known: tuple[Callable[[Any], Any], Sequence[Any]], number: int) -> Any:
    work, items = known
    return work(items[number])


def try_file(
    work: Callable[[Any, Any], Any], model: Any, path: str | Path, plain: bool = False
) -> tuple[Any, str | None]:
    """What a function finds in a file, and None; or None and the reason why it finds nothing, which
    names the file. ``plain``: by plain forms of the loops.

    Examples
    --------
    >>> try_file(pow, 2, 3), try_file(lambda model, path: range(2).index(model), 2, "a.npz")
    ((8, None), (None, 'a.npz: 2 is not in range'))
    """
    try:
        with plain_forms(plain):
            return work(model, path), None
    except ValueError as error:
        return None, str(error) if str(path) in str(error) else f"{path}: {error}"


# -- processes -------------------------------------------------------------------------------------


def _in_processes(n_jobs: int, work: Callable, model: Any, items: Iterable[Any]) -> Iterator[Any]:
    if n_jobs == 1:
        yield from (work(model, item) for item in items)
        return
    from joblib import Parallel, delayed

    with tempfile.TemporaryDirectory() as folder:
        pickled = Path(folder) / "model"
        pickled.write_bytes(pickle.dumps(model))
        processes = Parallel(n_jobs, return_as="generator", pre_dispatch=2 * n_jobs, batch_size=1)
        answers = processes(delayed(_of_file)(pickled, os.getcwd(), work, item) for item in items)
        try:
            yield from map(_unwrap, answers)
        finally:
            with warnings.catch_warnings():
                # an early end gives up work on purpose
                warnings.simplefilter("ignore", UserWarning)
                answers.close()


_one_at_a_time = Lock()  # of the threads of a worker: they share warnings and the working directory
# in a worker process: its model, and the file that it came from
_loaded: dict[Path, Any] = {}


def _of_file(pickled: Path, folder: str, work: Callable, item: Any) -> _Answer:
    """The answer of a process, which keeps the model."""
    if pickled not in _loaded:
        _loaded.clear()
        _loaded[pickled] = pickle.loads(pickled.read_bytes())
    return _answer(folder, work, _loaded[pickled], item)


def _answer(folder: str, work: Callable, model: Any, item: Any) -> _Answer:
    """The result of ``work``, or the exception, which has to wait for its turn, and what was warned
    of; names of files are those in a folder."""
    import cv2

    cv2.setNumThreads(1)
    there = chdir(folder) if os.path.isdir(folder) else nullcontext()
    with _one_at_a_time, there, warnings.catch_warnings(record=True) as noted:
        try:
            result, failure = work(model, item), None
        except Exception as error:
            result, failure = None, error
    return result, failure, [str(note.message) for note in noted if note.category is UserWarning]


def _unwrap(answer: _Answer) -> Any:
    """The result of the item whose turn it is."""
    result, error, notes = answer
    for note in notes:
        warnings.warn(note, stacklevel=2)
    if error is not None:
        raise error
    return result


# -- a cluster -------------------------------------------------------------------------------------


class _PickledTask:
    """A function that stays the bytes it was pickled to. Arrays that a worker hands on as they are
    lie elsewhere in memory, and sums over them may end in other digits."""

    def __init__(self, pickled: bytes):
        self.pickled = pickled

    def __reduce__(self) -> tuple[type[_PickledTask], tuple[bytes]]:
        return _PickledTask, (self.pickled,)

    def __call__(self, item: Any) -> _Answer:
        return self._function(item)

    @cached_property
    def _function(self) -> Callable[[Any], _Answer]:
        return pickle.loads(self.pickled)


def _on_workers(address: str, work: Callable, model: Any, items: Iterable[Any]) -> Iterator[Any]:
    import cloudpickle

    todo, futures = iter(items), deque[Any]()
    with _quiet_client(address, set_as_default=False) as client:
        with _scheduler_errors(address):
            # A task and no scattered data: when the workers that hold the model die, others make it
            # again. Messages name functions of Python alone: a worker without the package can read
            # them, and answer with an error.
            carried = _PickledTask(cloudpickle.dumps(partial(_answer, os.getcwd(), work, model)))
            held = client.submit(pickle.loads, pickle.dumps(carried), pure=False)
        while True:
            with _scheduler_errors(address):
                ahead = 2 * max(1, len(client.nthreads()))  # workers come and go
                for item in islice(todo, max(0, ahead - len(futures))):
                    futures.append(client.submit(operator.call, held, item, pure=False))
                if not futures:
                    return
                answer = futures.popleft().result()
            yield _unwrap(answer)


def check_scheduler(address: str) -> None:
    """Complain where no scheduler answers; it has ten seconds.

    Raises
    ------
    ValueError
        For that, also where something else listens.
    ModuleNotFoundError
        Without ``annealed[dask]``.

    Examples
    --------
    >>> check_scheduler("nowhere")  # doctest: +SKIP
    Traceback (most recent call last):
    ValueError: --dask nowhere: no scheduler answers (...); expected one such as tcp://host:8786
    """
    from distributed import Security, rpc
    from distributed.comm import get_address_host_port

    async def kind() -> str:
        options = Security().get_connection_args("client")
        async with rpc(address, timeout=TIMEOUT, connection_args=options) as there:
            return (await there.identity())["type"]

    try:
        # the first says at once that nobody listens; the second waits for words, as Client does
        # without an end
        socket.create_connection(get_address_host_port(address), TIMEOUT).close()
        if (found := asyncio.run(asyncio.wait_for(kind(), TIMEOUT))) != "Scheduler":
            raise ValueError(f"it is a {found}")
    except Exception as error:  # by address: OSError, ValueError, ImportError, ...
        why = " ".join(str(error).split())[:200] or f"silent for {TIMEOUT:g} seconds"
        raise ValueError(
            f"--dask {address}: no scheduler answers ({why}); expected one such as tcp://host:8786"
        ) from None


@contextmanager
def running_on(address: str) -> Iterator[None]:
    """What Dask computes inside runs on the cluster with that address.

    Raises
    ------
    ValueError
        Where no scheduler answers or it goes away, and where workers lack the package.
    """
    with _quiet_client(address, set_as_default=True), _scheduler_errors(address):
        yield


@contextmanager
def _quiet_client(address: str, set_as_default: bool) -> Iterator[Client]:
    """A client whose troubles are said in one line alone."""
    from distributed import Client

    loggers = [
        logging.getLogger(name)
        for name in logging.root.manager.loggerDict
        if name.split(".")[0] == "distributed"
    ]
    with ExitStack() as stack:
        for logger in loggers:
            stack.callback(setattr, logger, "disabled", logger.disabled)
            logger.disabled = True
        check_scheduler(address)
        with _scheduler_errors(address):
            client = Client(address, timeout=TIMEOUT, set_as_default=set_as_default)
        try:
            if not client.nthreads():
                warnings.warn(f"--dask {address}: no worker yet, waiting for one", stacklevel=2)
            yield client
        finally:
            with suppress(Exception):  # its scheduler may be gone
                client.close(TIMEOUT)


@contextmanager
def _scheduler_errors(address: str) -> Iterator[None]:
    """What goes wrong in the cluster, and not in the work, as a ValueError."""
    try:
        yield
    except ValueError:  # of the work
        raise
    except (CancelledError, OSError):
        raise ValueError(
            f"--dask {address}: the scheduler has gone, and what was not finished with it"
        ) from None
    except (
        Exception
    ) as error:  # a worker without the package, or one picture after which worker after worker died
        cause = error.__cause__ or error
        raise ValueError(
            f"--dask {address}: {type(cause).__name__}: {' '.join(str(cause).split())}"
        ) from None
