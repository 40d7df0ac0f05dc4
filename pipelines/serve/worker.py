"""A worker process: it decodes and computes, within limits, one request after the other.

Messages on the pipe are JSON and bytes, never pickles: what was decoded from a stranger's file cannot run code in the server.
"""

from __future__ import annotations

import fcntl
import json
import os
import resource
import signal
import warnings
from collections.abc import Callable
from contextlib import suppress
from importlib import import_module
from multiprocessing.connection import Connection
from pathlib import Path
from typing import Any

from ...models.messages import short
from ..console import plain
from .answers.limits import LIMITS, PREPARE_SECONDS

TABS = ("faces", "motion", "pets", "select")
_FILE_BYTES = 512 * 2**20  # that a request may write


def main(pipe: Connection, home: str, memory: int) -> None:
    """Answer requests until the pipe is closed.

    Parameters
    ----------
    pipe : Connection
        A request is two messages: ``kind``, ``name`` and ``fields`` as JSON, and the content of the file. The answer are messages
        with a ``state``: "ready" (the work begins), "progress", and at the end "done" (followed by the content) or "failed".
    home : str
        An empty folder of this process, where the file of a request lies as long as it is worked on.
    memory : int
        Bytes that the process may have for its data.
    """
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # the server ends its workers
    os.chdir(home)
    os.environ["OMP_NUM_THREADS"] = "1"
    resource.setrlimit(resource.RLIMIT_DATA, (memory, memory))
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
    resource.setrlimit(resource.RLIMIT_FSIZE, (_FILE_BYTES, _FILE_BYTES))
    _limit_cpu(PREPARE_SECONDS)
    _prepare("faces")  # of the first tab, before anybody waits for it
    while True:
        try:
            request = json.loads(pipe.recv_bytes())
            data = pipe.recv_bytes()
        except (EOFError, OSError):
            return
        if not _serve(pipe, request, data):
            return


def _serve(pipe: Connection, request: dict[str, Any], data: bytes) -> bool:
    """Answer one request; False where the process is of no more use."""

    def tell(step: str, done: int | None = None, of: int | None = None) -> None:
        _send(pipe, {"state": "progress", "step": step, "done": done, "of": of})

    def note(message: Any, category: type, filename: str, lineno: int, file: Any = None, line: Any = None) -> None:
        if issubclass(category, UserWarning) and "annealed" in filename:
            _send(pipe, {"state": "progress", "note": short(message)})

    kind, path = request["kind"], Path(request["name"])
    try:
        _limit_cpu(PREPARE_SECONDS)
        if kind in TABS:
            _prepare(kind)
        _send(pipe, {"state": "ready"})
        _limit_cpu(LIMITS[kind].seconds)
        with warnings.catch_warnings():
            warnings.showwarning = note
            content = _answer(kind, path, data, request["fields"], tell)
    except (ValueError, OSError, ModuleNotFoundError) as error:
        _send(pipe, {"state": "failed", "status": 400, "message": short(error)})
        return True
    except Exception as error:  # of a library; after a lack of memory the process is of no more use
        full = isinstance(error, MemoryError) or "memory" in str(error).lower()
        reason = "needs more memory than this page allows" if full else f"{type(error).__name__}: {error}"
        _send(pipe, {"state": "failed", "status": 413 if full else 500, "message": short(f"{path}: {reason}")})
        return False
    finally:
        path.unlink(missing_ok=True)
    _send(pipe, {"state": "done"})
    pipe.send_bytes(content)
    return True


def _answer(kind: str, path: Path, data: bytes, fields: dict[str, list[str]], tell: Callable[..., None]) -> bytes:
    from .answers.fields import Fields

    if kind == "sample":
        from .answers.samples import sample

        return sample(str(path))
    if kind == "features":
        from .answers.faces import features

        return _json(features())
    module = import_module(f".answers.{kind}", __package__)
    chosen = Fields(fields, module.FIELDS)
    path.write_bytes(data)
    del data
    return _json(module.answer(path, chosen, tell))


def _prepare(kind: str) -> None:
    """Load what a kind of request needs, one process at a time: what the first compiles is on disk for the others."""
    folder = os.open(Path(__file__).parent, os.O_RDONLY)
    try:
        with suppress(OSError):  # a file system without locks: then several compile
            fcntl.flock(folder, fcntl.LOCK_EX)
        import_module(f".answers.{kind}", __package__).prepare()
    finally:
        os.close(folder)


def _json(record: Any) -> bytes:
    return json.dumps(plain(record), allow_nan=False).encode()


def _send(pipe: Connection, message: dict[str, Any]) -> None:
    pipe.send_bytes(json.dumps(message).encode())


def _limit_cpu(seconds: float) -> None:
    """End this process after so many more seconds of processor time, should nobody else do so."""
    usage = resource.getrusage(resource.RUSAGE_SELF)
    cores = os.cpu_count() or 1
    soft = int(usage.ru_utime + usage.ru_stime + cores * seconds) + 1
    resource.setrlimit(resource.RLIMIT_CPU, (soft, resource.getrlimit(resource.RLIMIT_CPU)[1]))
