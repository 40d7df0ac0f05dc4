"""When and how code is compiled: the one place that knows numba, and when it is not needed.

``jit`` declares a hot loop. numba is imported, and the loop compiled, when it is first called:
importing the package and fitting a small problem never meet the compiler. A loop may have a plain
form, the same computation as an expression in NumPy: the readable form, the reference of the tests,
and what runs on small problems.
"""

from __future__ import annotations

import functools
import os
import signal
import stat
import sys
import tempfile
import threading
import time
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from contextvars import ContextVar, copy_context
from pathlib import Path
from typing import Any

import numpy as np

from .types import Matrix

# Values up to which plain expressions serve: a choice. Compiling takes seconds, and
# benchmarks/first_minute.py shows that first fits of this size take about a tenth of one without
# it.
SMALL = 2_000_000
TELL_AFTER = 1.0  # seconds of compilation before a line says what the processor does

_size: ContextVar[float | None] = ContextVar("size of the problem", default=None)


@contextmanager
def problem_of(n_values: float) -> Iterator[None]:
    """Inside, all code is chosen for a problem of so many values: what one fit computes does not depend on what it has left."""
    token = _size.set(n_values)
    try:
        yield
    finally:
        _size.reset(token)


def is_small(n_values: float) -> bool:
    """Whether plain expressions serve: by the size of the problem in hand, or else by this number of values."""
    size = _size.get()
    return (n_values if size is None else size) <= SMALL


_VALUES_PER_ROW = 125  # a row that Python handles by itself takes as long as so many values in an array: some 15 microseconds


def values_of_rows(n_rows: float) -> float:
    """Size of a problem whose rows are handled one after the other, so many in all."""
    return _VALUES_PER_ROW * n_rows


def n_values(X: Matrix) -> int:
    """Values of a matrix that are stored: its entries, or those of a sparse matrix that are not zero."""
    return int(X.nnz) if hasattr(X, "nnz") else int(np.prod(X.shape))


# -- compiled functions -----------------------------------------------------------------------------------------------------------


class Kernel:
    """A function that numba compiles when it is first called; inside other compiled functions it is one of theirs."""

    def __init__(self, function: Callable, plain: Callable | None, options: dict[str, Any]) -> None:
        functools.update_wrapper(self, function)
        self.function, self.plain = function, plain
        self._options = options
        self._dispatcher: Any = None

    def __call__(self, *args: Any) -> Any:
        if self.plain is not None:
            size = _size.get()
            if (sum(a.size for a in args if type(a) is np.ndarray) if size is None else size) <= SMALL:
                return self.plain(*args)
        return self.compiled(*args)

    def compiled(self, *args: Any) -> Any:
        """Call the compiled form, whatever the size."""
        dispatcher = self._dispatcher or self.dispatcher
        result = dispatcher(*[writable(a) if type(a) is np.ndarray else a for a in args])
        if _watch.line_shown:
            _watch.erase()
        return result

    @property
    def dispatcher(self) -> Any:
        """numba's own object for this function, made when it is first asked for."""
        if self._dispatcher is None:
            with _lock:
                if self._dispatcher is None:
                    self._dispatcher = _dispatcher_of(self.function, self._options)
        return self._dispatcher

    @property
    def _numba_type_(self) -> Any:  # how numba sees a global that stands for a function
        return self.dispatcher._numba_type_


def jit(function: Callable | None = None, *, plain: Callable | bool | None = None, **options: Any) -> Any:
    """Declare a function as one to compile; it releases Python's lock and its machine code is kept on disk.

    Parameters
    ----------
    function : callable
        Of arrays and numbers.
    plain : callable, True or None, default None
        The same in NumPy, for small problems; True: the function itself, which plain forms call.
    **options
        Of ``numba.njit``: ``fastmath``, ``forceinline``, ``error_model``.

    Returns
    -------
    Kernel
        Or a decorator, where no function is given.
    """
    if function is None:
        return functools.partial(jit, plain=plain, **options)
    return Kernel(function, function if plain is True else plain or None, options)


def writable(array: np.ndarray) -> np.ndarray:
    """The same memory as a writable array: numba would compile a second variant for a read-only one. Kernels do not write to it."""
    return array if array.flags.writeable else np.asarray(_Memory(array))


class _Memory:
    def __init__(self, array: Any) -> None:
        interface = dict(array.__array_interface__)
        interface["data"] = (interface["data"][0], False)
        self.__array_interface__, self.array = interface, array


_lock = threading.RLock()
_kept_at: str | None = None  # the temporary folder, where machine code could be kept nowhere else


def _dispatcher_of(function: Callable[..., Any], options: dict[str, Any]) -> Any:
    import numba
    from numba.core import event

    if not _watch.listening:
        event.register("numba:compile", _listener(event))
        event.register("numba:compiler_lock", _interrupt_listener(event))
        _watch.listening = True
    dispatcher = numba.njit(nogil=True, **options)(function)
    try:
        dispatcher.enable_caching()
    except RuntimeError:  # neither the package's folder nor the user's home can be written
        _keep_in_temporary_folder(dispatcher, numba.config)
    return dispatcher


def _keep_in_temporary_folder(dispatcher: Any, config: Any) -> None:
    global _kept_at
    temporary = tempfile.gettempdir()
    if temporary == os.path.abspath(os.curdir):  # Python's last resort is the folder of the user's own files
        _kept_at = "nowhere: no folder can be written"
        return
    folder = Path(temporary) / f"annealed-numba-{os.getuid() if hasattr(os, 'getuid') else 'user'}"
    try:
        folder.mkdir(mode=0o700, exist_ok=True)
        found = folder.lstat()
        # Machine code is loaded from there: a folder that someone else made or may write to is left
        # alone.
        if not stat.S_ISDIR(found.st_mode) or (hasattr(os, "getuid") and (found.st_uid != os.getuid() or found.st_mode & 0o022)):
            raise OSError(f"{folder} belongs to someone else")
        before, config.CACHE_DIR = config.CACHE_DIR, str(folder)
        try:
            dispatcher.enable_caching()
        finally:
            config.CACHE_DIR = before
        _kept_at = str(folder)
    except (OSError, RuntimeError):
        _kept_at = "nowhere: no folder can be written"


@contextmanager
def compiled_only() -> Iterator[None]:
    """Inside, nothing is small: every loop is compiled (``annealed warmup``; not for several threads at once)."""
    global SMALL
    before, SMALL = SMALL, -1
    try:
        yield
    finally:
        SMALL = before


def seconds_compiling() -> float:
    """Seconds that this process has spent on compiling, so far."""
    return _watch.spent


class _Watch:
    """Says on stderr that code is compiled, once it has taken a second; on a terminal also which function, until it is done."""

    def __init__(self) -> None:
        self.listening = self.line_shown = self.told = False
        self.spent, self.depth, self.begin = 0.0, 0, 0.0
        self.timer: threading.Timer | None = None

    def start(self, name: str) -> None:
        self.depth += 1
        if self.depth > 1:
            return
        self.begin = time.perf_counter()
        if os.environ.get("ANNEALED_QUIET"):
            return
        self.timer = threading.Timer(max(TELL_AFTER - self.spent, 0.0), self.tell, [name])
        self.timer.daemon = True
        self.timer.start()

    def end(self) -> None:
        self.depth -= 1
        if self.depth:
            return
        self.spent += time.perf_counter() - self.begin
        if self.timer is not None:
            self.timer.cancel()

    def tell(self, name: str) -> None:
        line = "annealed: compiling for this processor, once: some seconds to a minute"
        if _kept_at is not None:
            line += f" (kept in {_kept_at})" if not _kept_at.startswith("nowhere") else f" (kept {_kept_at})"
        try:
            if sys.stderr.isatty():
                sys.stderr.write(f"\r\x1b[K{line}; {name}, {self.spent:.0f} s so far")
                self.line_shown = True
            elif not self.told:
                sys.stderr.write(line + "\n")
            self.told = True
            sys.stderr.flush()
        except (AttributeError, OSError, ValueError):  # no stderr to write to
            pass

    def erase(self) -> None:
        if self.depth == 0:
            self.line_shown = False
            sys.stderr.write("\r\x1b[K")
            sys.stderr.flush()


_watch = _Watch()


def _listener(event: Any) -> Any:
    class Listener(event.Listener):  # type: ignore[name-defined]
        def on_start(self, event: Any) -> None:
            if self.concerns(event):
                _watch.start(event.data["dispatcher"].py_func.__name__)

        def on_end(self, event: Any) -> None:
            if self.concerns(event):
                _watch.end()

        @staticmethod
        def concerns(event: Any) -> bool:
            return event.data["dispatcher"].py_func.__module__.startswith(__name__.split(".")[0] + ".")

    return Listener()


def _interrupt_listener(event: Any) -> Any:
    """Puts Ctrl-C off while the compiler works: LLVM's callbacks swallow a KeyboardInterrupt and fail in another place.

    The signal is raised again, for the handler that was there before, when compiling has ended,
    well or not. Signals are handled by the main thread alone; what others compile is of no concern.
    """

    class Listener(event.Listener):  # type: ignore[name-defined]
        def __init__(self) -> None:
            self.depth, self.interrupted = 0, False
            self.former: Any = None

        def on_start(self, event: Any) -> None:
            if threading.current_thread() is not threading.main_thread():
                return
            self.depth += 1
            if self.depth == 1:
                self.interrupted, self.former = False, signal.getsignal(signal.SIGINT)
                if self.former is not None:  # not a handler of other languages, which could not be restored
                    signal.signal(signal.SIGINT, self.note)

        def on_end(self, event: Any) -> None:
            if threading.current_thread() is not threading.main_thread():
                return
            self.depth -= 1
            if self.depth == 0 and self.former is not None:
                signal.signal(signal.SIGINT, self.former)
                if self.interrupted:
                    signal.raise_signal(signal.SIGINT)

        def note(self, number: int, frame: Any) -> None:
            self.interrupted = True

    return Listener()


# -- threads ----------------------------------------------------------------------------------------------------------------------

_threads = threading.local()
_pool: ThreadPoolExecutor | None = None


def all_threads() -> int:
    """Threads that may be used at most: NUMBA_NUM_THREADS, or the processors of this process."""
    asked = os.environ.get("NUMBA_NUM_THREADS", "")
    if asked.isdigit() and int(asked) > 0:
        return int(asked)
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1


def thread_limit() -> int:
    """Threads that compiled loops use now."""
    return getattr(_threads, "limit", None) or all_threads()


@contextmanager
def threads(limit: int) -> Iterator[None]:
    """Inside, and in this thread, compiled loops use so many threads."""
    before, _threads.limit = getattr(_threads, "limit", None), limit
    try:
        yield
    finally:
        _threads.limit = before


def in_threads(kernel: Callable, n: int, *args: Any) -> None:
    """Call ``kernel(first, last, *args)`` on ranges that make up 0..n, one for each thread.

    Threads of Python and no parallel region of a compiler: a process may fork after any fit.

    Parameters
    ----------
    kernel : callable
        Releases Python's lock; what it writes for one range is of no concern to another.
    n : int
        Chunks, columns, or whatever is shared.
    *args
        Handed on.
    """
    parts = min(thread_limit(), n)
    if parts <= 1:
        kernel(0, n, *args)
        return
    edges = [n * t // parts for t in range(parts + 1)]
    others = [_workers().submit(copy_context().run, kernel, edges[t], edges[t + 1], *args) for t in range(1, parts)]
    kernel(0, edges[1], *args)
    for other in others:
        other.result()


def _workers() -> ThreadPoolExecutor:
    global _pool
    if _pool is None:
        with _lock:
            if _pool is None:
                _pool = ThreadPoolExecutor(max(1, all_threads() - 1), thread_name_prefix="annealed")
    return _pool


def _after_fork() -> None:
    """A child has none of its parent's threads, and must not wait for a lock that one of them held."""
    global _pool, _lock
    _pool, _lock = None, threading.RLock()
    _watch.timer, _watch.depth = None, 0


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_after_fork)
