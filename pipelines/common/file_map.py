"""Application of a model to many files, in one or several processes or on a Dask cluster."""

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
from typing import Any

from ...learners.compilation import all_threads, numpy_backend
from ...learners.parameters import check_integer
from ..console import log

# ``file_map(work, model, items)`` yields ``work(model, item)`` in the order of the items; ``work``
# is a module-level function, or a partial of one. An error is raised when its item is reached.
FileMap = Callable[[Callable[[Any, Any], Any], Any, Iterable[Any]], Iterator[Any]]
Jobs = int | FileMap  # number of threads of this process, or a cluster
_Answer = tuple[Any, Exception | None, list[str]]
TIMEOUT = 10.0  # seconds to wait for a scheduler (heuristic)


def by_processes(n_jobs: int = 1) -> FileMap:
    """Return a function that maps over items in parallel processes, at most one per core.

    The returned function takes a function, a model and the items, and yields the results of
    ``function(model, item)`` in the order of the items. Each process has a copy of the model.
    Threads are not used, since they would block one another in Python code. Only a few items are
    read ahead. The results do not depend on ``n_jobs``.

    Parameters
    ----------
    n_jobs : int, default 1
        Number of processes. If it is 1, the items are processed in the current process.

    Returns
    -------
    FileMap

    Raises
    ------
    ValueError
        If ``n_jobs`` is below 1.

    Examples
    --------
    >>> list(by_processes()(pow, 2, [1, 5, 3]))
    [2, 32, 8]
    """
    check_integer("n_jobs", n_jobs, 1)
    return partial(_in_processes, min(int(n_jobs), all_threads()))


def by_dask(address: str) -> FileMap:
    """Return a function that maps over items on the workers of a Dask cluster.

    The returned function has the same arguments as that of :func:`by_processes`. The workers read
    the files. The model is sent to one worker and passed on from worker to worker. Each worker
    processes one item at a time. If a worker dies, another worker repeats its item. Relative file
    names refer to the working directory of the current process if this directory exists on the
    worker.

    Parameters
    ----------
    address : str
        Address of the scheduler, such as ``tcp://host:8786``.

    Returns
    -------
    FileMap
        Mapping function, which raises a ValueError if no scheduler responds, the connection is
        lost, the package is not installed on the workers, or an item crashes several workers in a
        row.

    Raises
    ------
    ModuleNotFoundError
        If ``annealed[dask]`` is not installed.

    Examples
    --------
    >>> results = by_dask("tcp://host:8786")(pow, 2, [1, 5, 3])  # doctest: +SKIP
    """
    import distributed  # noqa: F401

    return partial(_on_workers, address)


def limit_jobs(requested: int, n_items: int, quiet: bool) -> int:
    """Return the number of parallel jobs.

    The requested number, where 0 means one job per core, is limited to the number of items and the
    number of cores.
    """
    if requested < 0:
        raise ValueError(
            f"--jobs {requested} is not valid; expected an integer >= 1, or 0 for one per core"
        )
    jobs = max(1, min(requested or n_items, n_items, all_threads()))
    if jobs < requested:
        log(
            f"--jobs {requested}: reduced to {jobs}, because there are {n_items} "
            f"photographs and {all_threads()} cores",
            quiet,
        )
    return jobs


def make_file_map(jobs: int, dask: str | None, n_items: int, quiet: bool) -> FileMap:
    """Return a mapping function for parallel processes (see :func:`limit_jobs`) or a cluster.

    Raises
    ------
    ValueError
        If both ``jobs`` and ``dask`` are given.

    Examples
    --------
    >>> list(make_file_map(1, None, 3, quiet=True)(pow, 2, [1, 5, 3]))
    [2, 32, 8]
    """
    if dask is None:
        return by_processes(limit_jobs(jobs, n_items, quiet))
    if jobs != 1:
        raise ValueError(f"--jobs {jobs} is not available with --dask; use only one of them")
    return by_dask(dask)


def resolve_jobs(jobs: int, dask: str | None, n_items: int, quiet: bool) -> Jobs:
    """Return a number of threads (see :func:`limit_jobs`) or a mapping function for a cluster.

    Raises
    ------
    ValueError
        If both ``jobs`` and ``dask`` are given, or no scheduler responds.

    Examples
    --------
    >>> resolve_jobs(1, None, 3, quiet=True)
    1
    """
    if dask is None:
        return limit_jobs(jobs, n_items, quiet)
    file_map = make_file_map(jobs or 1, dask, n_items, quiet)
    check_scheduler(dask)
    return file_map


def map_items(file_map: FileMap, work: Callable[[Any], Any], items: Sequence[Any]) -> Iterator[Any]:
    """Apply ``work`` to ``items`` with a mapping function.

    The function and the items are sent to the workers once, and not again for each item.

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
    """Apply a function to a file, and return the result and None, or None and an error message.

    The message names the file. If ``plain`` is set, loops are not compiled.

    Examples
    --------
    >>> try_file(pow, 2, 3), try_file(lambda model, path: range(2).index(model), 2, "a.npz")
    ((8, None), (None, 'a.npz: 2 is not in range'))
    """
    try:
        with numpy_backend(plain):
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
                # work is dropped on purpose if the iteration ends early
                warnings.simplefilter("ignore", UserWarning)
                answers.close()


_one_at_a_time = Lock()  # threads of a worker share warnings and the working directory
# in a worker process, its model by the file from which it was read
_loaded: dict[Path, Any] = {}


def _of_file(pickled: Path, folder: str, work: Callable, item: Any) -> _Answer:
    """Return the answer computed in a worker process, which caches the model."""
    if pickled not in _loaded:
        _loaded.clear()
        _loaded[pickled] = pickle.loads(pickled.read_bytes())
    return _answer(folder, work, _loaded[pickled], item)


def _answer(folder: str, work: Callable, model: Any, item: Any) -> _Answer:
    """Return the result or exception of ``work`` and its warnings; relative file names refer to
    ``folder``."""
    import cv2

    cv2.setNumThreads(1)
    in_folder = chdir(folder) if os.path.isdir(folder) else nullcontext()
    with _one_at_a_time, in_folder, warnings.catch_warnings(record=True) as noted:
        try:
            result, failure = work(model, item), None
        except Exception as error:
            result, failure = None, error
    return result, failure, [str(note.message) for note in noted if note.category is UserWarning]


def _unwrap(answer: _Answer) -> Any:
    """Show the warnings of an answer, and return its result or raise its exception."""
    result, error, notes = answer
    for note in notes:
        warnings.warn(note, stacklevel=2)
    if error is not None:
        raise error
    return result


# -- a cluster -------------------------------------------------------------------------------------


class _PickledTask:
    """Function in pickled form. If workers passed unpickled arrays to one another, the memory
    alignment would differ, which can change the last digits of sums."""

    def __init__(self, pickled: bytes):
        self.pickled = pickled

    def __reduce__(self) -> "tuple[type[_PickledTask], tuple[bytes]]":
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
            # The model is a task instead of scattered data, so that other workers recreate it if
            # the workers that hold it die. Messages refer to builtins only, so that a worker
            # without the package can read them and respond with an error.
            carried = _PickledTask(cloudpickle.dumps(partial(_answer, os.getcwd(), work, model)))
            held = client.submit(pickle.loads, pickle.dumps(carried), pure=False)
        while True:
            with _scheduler_errors(address):
                ahead = 2 * max(1, len(client.nthreads()))  # the number of workers varies
                futures += [
                    client.submit(operator.call, held, item, pure=False)
                    for item in islice(todo, max(0, ahead - len(futures)))
                ]
                if not futures:
                    return
                answer = futures.popleft().result()
            yield _unwrap(answer)


def check_scheduler(address: str) -> None:
    """Check that a scheduler responds within ten seconds.

    Raises
    ------
    ValueError
        If no scheduler responds, or another program is listening at the address.
    ModuleNotFoundError
        If ``annealed[dask]`` is not installed.

    Examples
    --------
    >>> check_scheduler("nowhere")  # doctest: +SKIP
    Traceback (most recent call last):
    ValueError: --dask nowhere: no scheduler responds (...); expected an address such as ...
    """
    from distributed import Security, rpc
    from distributed.comm import get_address_host_port

    async def kind() -> str:
        options = Security().get_connection_args("client")
        async with rpc(address, timeout=TIMEOUT, connection_args=options) as scheduler:
            return (await scheduler.identity())["type"]

    try:
        # the first call fails immediately if nothing listens; the second waits for an answer, as
        # Client does without a time limit
        socket.create_connection(get_address_host_port(address), TIMEOUT).close()
        if (name := asyncio.run(asyncio.wait_for(kind(), TIMEOUT))) != "Scheduler":
            raise ValueError(f"this address belongs to a {name}")
    except Exception as error:  # OSError, ValueError or ImportError, depending on the address
        why = " ".join(str(error).split())[:200] or f"no response within {TIMEOUT:g} seconds"
        raise ValueError(
            f"--dask {address}: no scheduler responds ({why}); "
            "expected an address such as tcp://host:8786"
        ) from None


@contextmanager
def running_on(address: str) -> Iterator[None]:
    """Context manager that runs Dask computations on the cluster with the given address.

    Raises
    ------
    ValueError
        If no scheduler responds, the connection is lost, or the package is not installed on the
        workers.
    """
    with _quiet_client(address, set_as_default=True), _scheduler_errors(address):
        yield


@contextmanager
def _quiet_client(address: str, set_as_default: bool) -> Iterator[Any]:
    """Return a Dask client that reports each error in one line."""
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
                warnings.warn(f"--dask {address}: waiting for a worker", stacklevel=2)
            yield client
        finally:
            with suppress(Exception):  # the scheduler may not answer
                client.close(TIMEOUT)


@contextmanager
def _scheduler_errors(address: str) -> Iterator[None]:
    """Context manager that converts errors of the cluster, but not those of the work, to a
    ValueError."""
    try:
        yield
    except ValueError:  # raised by the work
        raise
    except (CancelledError, OSError):
        raise ValueError(
            f"--dask {address}: the connection to the scheduler was lost before all work was "
            "finished"
        ) from None
    except Exception as error:  # a worker lacks the package, or an item crashed several workers
        cause = error.__cause__ or error
        raise ValueError(
            f"--dask {address}: {type(cause).__name__}: {' '.join(str(cause).split())}"
        ) from None
