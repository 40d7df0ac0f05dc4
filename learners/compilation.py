"""Compilation with numba, and the choice between compiled loops and plain NumPy.

``jit`` declares a loop to be compiled. On the first call, numba is imported and the loop is
compiled, so importing the package or fitting a small problem compiles nothing. A loop may also have
a plain form: the same computation in NumPy. The plain form is readable, serves as the reference in
tests, and is used for small problems.
"""

import functools
import os
import signal
import stat
import sys
import tempfile
import threading
import time
import warnings
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import AbstractContextManager, contextmanager, nullcontext, suppress
from contextvars import ContextVar, copy_context
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np

from .types import Matrix

# Maximum number of values for plain NumPy (heuristic). Compilation takes seconds; without it, a
# first fit of this size takes about 0.1 seconds (benchmarks/first_minute.py).
SMALL = 2_000_000
REPORT_AFTER = 1.0  # seconds of compilation before it is reported

_size: ContextVar[float | None] = ContextVar("size of the problem", default=None)
_limit: ContextVar[int | None] = ContextVar("maximum number of threads", default=None)


@contextmanager
def _inside(variable: ContextVar, value: Any) -> Iterator[None]:
    token = variable.set(value)
    try:
        yield
    finally:
        variable.reset(token)


@contextmanager
def problem_size(n_values: float, n_threads: int | None = None) -> Iterator[None]:
    """Context manager for a computation on ``n_values`` values, such as a fit.

    ``n_values`` determines whether compiled code is used, and stays fixed while features are
    dropped. Compiled loops use ``n_threads`` threads; None means the current limit. BLAS is limited
    to one thread, since the number of BLAS threads would affect rounding, and idle BLAS threads
    would slow down a fit while other processes use the cores.
    """
    with (
        _inside(_size, n_values),
        _inside(_limit, n_threads or _limit.get()),
        _blas.one_thread(),
    ):
        yield


def numpy_backend(enabled: bool = True) -> AbstractContextManager[None]:
    """Return a context manager that runs loops in plain NumPy, regardless of the problem size.

    Loops without a NumPy version are still compiled.

    Parameters
    ----------
    enabled : bool, default True
        Whether the context has an effect.

    Returns
    -------
    context manager
        Context in which loops run in plain NumPy.

    Examples
    --------
    >>> from annealed.models import load_model  # doctest: +SKIP
    >>> with numpy_backend():  # doctest: +SKIP
    ...     load_model("faces").detect(image)
    """
    return _inside(_size, 0) if enabled else nullcontext()


def plain_forms(wanted: bool = True) -> AbstractContextManager[None]:
    """Deprecated alias for :func:`numpy_backend`."""
    warnings.warn(
        "plain_forms was renamed to numpy_backend; the old name will be removed in 0.4",
        FutureWarning,
        stacklevel=2,
    )
    return numpy_backend(wanted)


def is_small(n_values: float) -> bool:
    """Return whether the current problem is small enough for NumPy.

    Outside a :func:`problem_size` context, this depends on ``n_values``.
    """
    size = _size.get()
    return (n_values if size is None else size) <= SMALL


# Number of array values that NumPy processes in the time that Python takes for one row, about 15
# microseconds. The size of a problem whose rows are processed one at a time is a multiple of it.
VALUES_PER_ROW = 125


def n_values(X: Matrix) -> int:
    """Return the number of stored values: entries of an array, or non-zeros of a sparse matrix."""
    return int(X.nnz) if hasattr(X, "nnz") else int(np.prod(X.shape))


# -- compiled functions ----------------------------------------------------------------------------


class Kernel:
    """Function that numba compiles on the first call; other compiled functions can call it."""

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
        """Call the compiled form, regardless of the problem size."""
        return (self._dispatcher or self.dispatcher)(
            *[writable(a) if type(a) is np.ndarray else a for a in args]
        )

    @property
    def dispatcher(self) -> Any:
        """Numba dispatcher of this function, created on first use."""
        with _lock:
            if self._dispatcher is None:
                self._dispatcher = _dispatcher_of(self.function, self._options)
            return self._dispatcher

    @property
    def _numba_type_(self) -> Any:  # numba calls this to type a global
        return self.dispatcher._numba_type_


def jit(
    function: Callable | None = None,
    *,
    plain: Callable | bool | None = None,
    by_size: bool = True,
    **options: Any,
) -> Any:
    """Declare a function to be compiled, cached on disk, and run without the GIL.

    Parameters
    ----------
    function : callable
        Function whose arguments are arrays and numbers.
    plain : callable, True or None, default None
        NumPy function with the same result, used for small problems; True means ``function``
        itself.
    by_size : bool, default True
        Whether the sizes of the arguments determine which form is called outside a
        :func:`problem_size` context. If False, the compiled form is called there, which suits loops
        over parts of an image.
    **options
        Options passed to ``numba.njit``: ``fastmath``, ``forceinline``, ``error_model``.

    Returns
    -------
    Kernel
        Compiled function, or a decorator if ``function`` is None.
    """
    if function is None:
        return functools.partial(jit, plain=plain, by_size=by_size, **options)
    return Kernel(function, function if plain is True else plain or None, by_size, options)


def writable(array: np.ndarray) -> np.ndarray:
    """Return a writable view of an array that kernels only read.

    Numba would compile a second variant for read-only arrays.
    """
    if array.flags.writeable:
        return array
    interface = array.__array_interface__
    interface = interface | {"data": (interface["data"][0], False)}
    return np.asarray(SimpleNamespace(__array_interface__=interface, owner=array))


_lock = threading.RLock()


@functools.cache
def _numba() -> Any:
    """Import numba, and register the event listeners on the first import."""
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
    except RuntimeError:  # neither the package folder nor the home folder is writable
        folder = _private_folder()
        before, numba.config.CACHE_DIR = numba.config.CACHE_DIR, folder
        try:
            dispatcher.enable_caching()
            _watch.place = f" (cached in {folder})"
        except RuntimeError:
            _watch.place = " (not cached: no writable folder)"
            return dispatcher
        finally:
            numba.config.CACHE_DIR = before
    try:
        dispatcher._cache._cache_file._load_index()
    except Exception:  # from another version: numba would raise at each call
        dispatcher._cache.flush()
    return dispatcher


def _private_folder() -> str:
    """Return a temporary folder that only this user can write to, or "" if none exists.

    Machine code is loaded from this folder. A folder that another user owns or can write to is
    therefore rejected. The same applies to the working folder, which Python uses as a last resort.
    """
    user = os.getuid() if hasattr(os, "getuid") else None
    folder = Path(tempfile.gettempdir(), f"annealed-numba-{'user' if user is None else user}")
    if folder.parent == Path.cwd():
        return ""
    try:
        folder.mkdir(mode=0o700, exist_ok=True)
        status = folder.lstat()
    except OSError:
        return ""
    private = stat.S_ISDIR(status.st_mode) and (
        user is None or (status.st_uid == user and not status.st_mode & 0o022)
    )
    return str(folder) if private else ""


@contextmanager
def compiled_only() -> Iterator[None]:
    """Context manager in which every loop is compiled, for ``annealed warmup``; not thread-safe."""
    global SMALL
    before, SMALL = SMALL, -1
    try:
        yield
    finally:
        SMALL = before


def seconds_compiling() -> float:
    """Return the time in seconds that this process has spent on compilation."""
    return _watch.spent


class _CompilationReporter:
    """Listener that reports a compilation on stderr once it has taken a second.

    On a terminal, the line names the function and is cleared afterwards.
    """

    reported = line_shown = False
    spent = begin = 0.0
    depth = 0
    place = ""  # cache folder, unless it is numba's default
    timer: threading.Timer

    def notify(self, event: Any) -> None:
        """Handle the start or end of a compilation."""
        function = event.data["dispatcher"].py_func
        if not (function.__module__ or "").startswith(__name__.split(".")[0] + "."):
            return
        self.depth += 1 if event.is_start else -1
        if event.is_start and self.depth == 1:
            self.begin = time.perf_counter()
            self.timer = threading.Timer(
                max(REPORT_AFTER - self.spent, 0.0), self.report, [function.__name__]
            )
            self.timer.daemon = True
            self.timer.start()
        elif event.is_end and self.depth == 0:
            self.spent += time.perf_counter() - self.begin
            self.timer.cancel()
            if self.line_shown:
                self.line_shown = False
                print("\r\x1b[K", end="", file=sys.stderr, flush=True)

    def report(self, name: str) -> None:
        line = f"annealed: compiling (first run only; up to a minute){self.place}"
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
            elif not self.reported:
                print(line, file=sys.stderr, flush=True)
            self.reported = True


_watch = _CompilationReporter()


class _Interrupts:
    """Listener that defers Ctrl-C during compilation.

    LLVM callbacks would suppress the KeyboardInterrupt and fail later.

    The signal is raised again, for the previous handler, when compilation ends or fails. Only the
    main thread handles signals, so compilation in other threads is ignored.
    """

    depth, interrupted = 0, False
    former: Any = None

    def notify(self, event: Any) -> None:
        """Handle the start or end of a compilation."""
        if threading.current_thread() is not threading.main_thread():
            return
        self.depth += 1 if event.is_start else -1
        if event.is_start and self.depth == 1:
            self.interrupted, self.former = False, signal.getsignal(signal.SIGINT)
            if self.former is not None:  # a handler set from C could not be restored
                signal.signal(signal.SIGINT, self.note)
        elif event.is_end and self.depth == 0 and self.former is not None:
            signal.signal(signal.SIGINT, self.former)
            if self.interrupted:
                signal.raise_signal(signal.SIGINT)

    def note(self, number: int, frame: Any) -> None:
        self.interrupted = True


# -- threads ---------------------------------------------------------------------------------------


def all_threads() -> int:
    """Return NUMBA_NUM_THREADS if it is set, and otherwise the number of processors."""
    requested = os.environ.get("NUMBA_NUM_THREADS", "")
    if requested.isdigit() and int(requested) > 0:
        return int(requested)
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1


def thread_limit() -> int:
    """Return the number of threads that compiled loops may currently use."""
    return _limit.get() or all_threads()


class _Blas:
    """Limit on the number of BLAS threads.

    The setting applies to the whole process. Of several nested or concurrent computations, the
    first one sets the limit and the last one restores the previous setting.
    """

    active = 0
    before: tuple[tuple[Any, int], ...] = ()

    @contextmanager
    def one_thread(self) -> Iterator[None]:
        """Limit BLAS to one thread within the context."""
        with _lock:
            self.active += 1
            if self.active == 1:
                self.before = tuple((each, each.get_num_threads()) for each in _libraries())
                for library, _ in self.before:
                    library.set_num_threads(1)
        try:
            yield
        finally:
            with _lock:
                self.active -= 1
                if self.active == 0:
                    for library, number in self.before:
                        library.set_num_threads(number)


_blas = _Blas()


@functools.cache
def _libraries() -> list[Any]:
    """Return the BLAS libraries that NumPy and SciPy have loaded.

    They are set directly, since ``limit`` of threadpoolctl also reads their versions.
    """
    import scipy.linalg  # noqa: F401
    from threadpoolctl import ThreadpoolController

    return ThreadpoolController().select(user_api="blas").lib_controllers


def parallel_ranges(kernel: Callable, n: int, *args: Any) -> None:
    """Call ``kernel(first, last, *args)`` in parallel on ranges that partition ``range(n)``.

    Each range is processed by its own Python thread. No parallel region of numba is used, so the
    process can still be forked after a fit.

    Parameters
    ----------
    kernel : callable
        Function that releases the GIL. Calls on different ranges must not write to the same memory.
    n : int
        Number of items, for example chunks or columns.
    *args
        Additional arguments passed to ``kernel``.
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
    """Reset threads and locks in a forked child, which does not inherit its parent's threads."""
    global _lock
    _lock = threading.RLock()
    _blas.active = 0
    _workers.cache_clear()
    _watch.depth = 0


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_after_fork)
