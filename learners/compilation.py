"""When and how code is compiled: the one place that knows numba, and when it is not needed.

``jit`` declares a hot loop. numba is imported, and the loop compiled, when it is first called:
importing the package and fitting a small problem never meet the compiler. A loop may have a plain
form, the same computation as an expression in NumPy: the readable form, the reference of the tests,
and what runs on small problems.
"""

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
from contextlib import AbstractContextManager, contextmanager, nullcontext, suppress
from contextvars import ContextVar, copy_context
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np

from .types import Matrix

# Values up to which plain expressions serve: a choice. Compiling takes seconds, and
# benchmarks/first_minute.py shows that first fits of this size take about a tenth of one without
# it.
SMALL = 2_000_000
REPORT_AFTER = 1.0  # seconds of compilation before a line says what the processor does

_size: ContextVar[float | None] = ContextVar("size of the problem", default=None)
_limit: ContextVar[int | None] = ContextVar("threads at most", default=None)


@contextmanager
def _inside(variable: ContextVar, value: Any) -> Iterator[None]:
    token = variable.set(value)
    try:
        yield
    finally:
        variable.reset(token)


def problem_size(n_values: float) -> AbstractContextManager[None]:
    """Inside, all code is chosen for a problem of so many values.

    What one fit computes does not depend on what it has left.
    """
    return _inside(_size, n_values)


def numpy_backend(enabled: bool = True) -> AbstractContextManager[None]:
    """Inside, loops that have a plain form run in it, whatever the size: nothing is compiled.

    Parameters
    ----------
    enabled : bool, default True
        False: nothing changes.

    Returns
    -------
    context manager

    Examples
    --------
    >>> from annealed.models import load_model  # doctest: +SKIP
    >>> with numpy_backend():  # doctest: +SKIP
    ...     load_model("faces").detect(image)
    """
    return problem_size(0) if enabled else nullcontext()


def is_small(n_values: float) -> bool:
    """Whether plain expressions serve: by the size of the problem in hand, or else by this number
    of values.
    """
    size = _size.get()
    return (n_values if size is None else size) <= SMALL


_VALUES_PER_ROW = 125  # a row that Python handles by itself takes as long as so many values in an array: some 15 microseconds


def values_of_rows(n_rows: float) -> float:
    """Size of a problem whose rows are handled one after the other, so many in all."""
    return _VALUES_PER_ROW * n_rows


def n_values(X: Matrix) -> int:
    """Values of a matrix that are stored: its entries, or those of a sparse matrix that are not
    zero.
    """
    return int(X.nnz) if hasattr(X, "nnz") else int(np.prod(X.shape))


# -- compiled functions ----------------------------------------------------------------------------


class Kernel:
    """A function that numba compiles when it is first called; inside other compiled functions it is
    one of theirs.
    """

    def __init__(
        self, function: Callable, plain: Callable | None, by_size: bool, options: dict[str, Any]
    ) -> None:
        functools.update_wrapper(self, function)
        self.function, self.plain = function, plain
        self._by_size, self._options = by_size, options
        self._dispatcher: Any = None

    def __call__(self, *args: Any) -> Any:
        if self.plain is not None:
            size = _size.get()
            if size is None:
                size = (
                    sum(a.size for a in args if type(a) is np.ndarray) if self._by_size else np.inf
                )
            if size <= SMALL:
                return self.plain(*args)
        return self.compiled(*args)

    def compiled(self, *args: Any) -> Any:
        """Call the compiled form, whatever the size."""
        dispatcher = self._dispatcher or self.dispatcher
        return dispatcher(*[writable(a) if type(a) is np.ndarray else a for a in args])

    @property
    def dispatcher(self) -> Any:
        """numba's own object for this function, made when it is first asked for."""
        with _lock:
            if self._dispatcher is None:
                self._dispatcher = _dispatcher_of(self.function, self._options)
            return self._dispatcher

    @property
    def _numba_type_(self) -> Any:  # how numba sees a global that stands for a function
        return self.dispatcher._numba_type_


def jit(
    function: Callable | None = None,
    *,
    plain: Callable | bool | None = None,
    by_size: bool = True,
    **options: Any,
) -> Any:
    """Declare a function as one to compile; it releases Python's lock and its machine code is kept
    on disk.

    Parameters
    ----------
    function : callable
        Of arrays and numbers.
    plain : callable, True or None, default None
        The same in NumPy, for small problems; True: the function itself, which plain forms call.
    by_size : bool, default True
        Whether the arrays of a call decide where no problem is in hand; False: the loop is compiled
        then, as one that works on parts of an image.
    **options
        Of ``numba.njit``: ``fastmath``, ``forceinline``, ``error_model``.

    Returns
    -------
    Kernel
        Or a decorator, where no function is given.
    """
    if function is None:
        return functools.partial(jit, plain=plain, by_size=by_size, **options)
    return Kernel(function, function if plain is True else plain or None, by_size, options)


def writable(array: np.ndarray) -> np.ndarray:
    """The same memory as a writable array; kernels do not write to it.

    numba would compile a second variant for a read-only one.
    """
    if array.flags.writeable:
        return array
    interface = array.__array_interface__
    interface = interface | {"data": (interface["data"][0], False)}
    return np.asarray(SimpleNamespace(__array_interface__=interface, owner=array))


_lock = threading.RLock()


@functools.cache
def _numba() -> Any:
    """Return numba; when it is first imported, our listeners begin to listen."""
    import numba
    from numba.core import event

    for kind, listener in (("numba:compile", _watch), ("numba:compiler_lock", _Interrupts())):
        event.Listener.register(type(listener))
        event.register(kind, listener)
    return numba


def _dispatcher_of(function: Callable[..., Any], options: dict[str, Any]) -> Any:
    numba = _numba()
    dispatcher = numba.njit(nogil=True, **options)(function)
    if dispatcher is function:  # NUMBA_DISABLE_JIT
        return function
    try:
        dispatcher.enable_caching()
    except RuntimeError:  # neither the package's folder nor the user's home can be written
        folder = _private_folder()
        before, numba.config.CACHE_DIR = numba.config.CACHE_DIR, folder
        try:
            dispatcher.enable_caching()
            _watch.place = f" (kept in {folder})"
        except RuntimeError:
            _watch.place = " (kept nowhere: no folder can be written)"
            return dispatcher
        finally:
            numba.config.CACHE_DIR = before
    try:
        dispatcher._cache._cache_file._load_index()
    except Exception:  # written by other versions: it names classes that are elsewhere now, and numba would raise at each call
        dispatcher._cache.flush()
    return dispatcher


def _private_folder() -> str:
    """Folder below the temporary one that only this user can write to; empty where there is none.

    Machine code is loaded from there: a folder that someone else made or may write to is left
    alone, and so is Python's last resort, the working folder, which holds the user's own files.
    """
    user = os.getuid() if hasattr(os, "getuid") else None
    folder = Path(tempfile.gettempdir(), f"annealed-numba-{'user' if user is None else user}")
    if folder.parent == Path.cwd():
        return ""
    try:
        folder.mkdir(mode=0o700, exist_ok=True)
        found = folder.lstat()
    except OSError:
        return ""
    private = stat.S_ISDIR(found.st_mode) and (
        user is None or (found.st_uid == user and not found.st_mode & 0o022)
    )
    return str(folder) if private else ""


@contextmanager
def compiled_only() -> Iterator[None]:
    """Inside, nothing is small: every loop is compiled (``annealed warmup``; not for several
    threads at once).
    """
    global SMALL
    before, SMALL = SMALL, -1
    try:
        yield
    finally:
        SMALL = before


def seconds_compiling() -> float:
    """Seconds that this process has spent on compiling, so far."""
    return _watch.spent


class _CompilationReporter:
    """Says on stderr that code is compiled, once it has taken a second.

    On a terminal the line says which function it is, and goes when it is compiled.
    """

    told = line_shown = False
    spent = begin = 0.0
    depth = 0
    place = ""  # where machine code is kept, if not where numba keeps it
    timer: threading.Timer

    def notify(self, event: Any) -> None:
        """Note that numba begins, or has ended, to compile a function: one of ours or another."""
        function = event.data["dispatcher"].py_func
        if not (function.__module__ or "").startswith(__name__.split(".")[0] + "."):
            return
        self.depth += 1 if event.is_start else -1
        if event.is_start and self.depth == 1:
            self.begin = time.perf_counter()
            self.timer = threading.Timer(
                max(REPORT_AFTER - self.spent, 0.0), self.tell, [function.__name__]
            )
            self.timer.daemon = True
            self.timer.start()
        elif event.is_end and self.depth == 0:
            self.spent += time.perf_counter() - self.begin
            self.timer.cancel()
            if self.line_shown:
                self.line_shown = False
                print("\r\x1b[K", end="", file=sys.stderr, flush=True)

    def tell(self, name: str) -> None:
        line = f"annealed: compiling for this processor, once: some seconds to a minute{self.place}"
        with suppress(AttributeError, OSError, ValueError):  # no stderr to write to
            if os.environ.get("ANNEALED_QUIET"):
                return
            if sys.stderr.isatty():
                print(
                    f"\r\x1b[K{line}; {name}, {self.spent:.0f} s so far",
                    end="",
                    file=sys.stderr,
                    flush=True,
                )
                self.line_shown = True
            elif not self.told:
                print(line, file=sys.stderr, flush=True)
            self.told = True


_watch = _CompilationReporter()


class _Interrupts:
    """Puts Ctrl-C off while the compiler works: LLVM's callbacks swallow a KeyboardInterrupt and
    fail in another place.

    The signal is raised again, for the handler that was there before, when compiling has ended,
    well or not. Signals are handled by the main thread alone; what others compile is of no concern.
    """

    depth, interrupted = 0, False
    former: Any = None

    def notify(self, event: Any) -> None:
        """Take note that numba begins, or has ended, to compile."""
        if threading.current_thread() is not threading.main_thread():
            return
        self.depth += 1 if event.is_start else -1
        if event.is_start and self.depth == 1:
            self.interrupted, self.former = False, signal.getsignal(signal.SIGINT)
            if (
                self.former is not None
            ):  # not a handler of other languages, which could not be restored
                signal.signal(signal.SIGINT, self.note)
        elif event.is_end and self.depth == 0 and self.former is not None:
            signal.signal(signal.SIGINT, self.former)
            if self.interrupted:
                signal.raise_signal(signal.SIGINT)

    def note(self, number: int, frame: Any) -> None:
        self.interrupted = True


# -- threads ---------------------------------------------------------------------------------------


def all_threads() -> int:
    """Threads that may be used at most: NUMBA_NUM_THREADS, or the processors of this process."""
    asked = os.environ.get("NUMBA_NUM_THREADS", "")
    if asked.isdigit() and int(asked) > 0:
        return int(asked)
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1


def thread_limit() -> int:
    """Threads that compiled loops use now."""
    return _limit.get() or all_threads()


def threads(limit: int) -> AbstractContextManager[None]:
    """Inside, and in this thread, compiled loops use so many threads."""
    return _inside(_limit, limit)


def parallel_ranges(kernel: Callable, n: int, *args: Any) -> None:
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
    others = [
        _workers().submit(copy_context().run, kernel, edges[t], edges[t + 1], *args)
        for t in range(1, parts)
    ]
    kernel(0, edges[1], *args)
    for other in others:
        other.result()


@functools.cache
def _workers() -> ThreadPoolExecutor:
    return ThreadPoolExecutor(max(1, all_threads() - 1), thread_name_prefix="annealed")


def _after_fork() -> None:
    """A child has none of its parent's threads, and must not wait for a lock that one held."""
    global _lock
    _lock = threading.RLock()
    _workers.cache_clear()
    _watch.depth = 0


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_after_fork)
