"""Reading of a form with one file from a request, within limits and without writing to disk."""

import asyncio
import re
from collections.abc import AsyncGenerator, Callable
from contextlib import suppress
from dataclasses import dataclass, field
from typing import Any

from starlette.datastructures import UploadFile
from starlette.formparsers import MultiPartException, MultiPartParser
from starlette.requests import ClientDisconnect, Request

from .answers.limits import (
    FIELD_BYTES,
    MIB,
    STALL_SECONDS,
    UPLOAD_SECONDS,
    Limit,
    RequestError,
)

_FORM_BYTES = 256 * 1024  # maximum size of a form without its file
_DISCARD_SECONDS = 20.0
_FORM_LIMITS: dict[str, Any] = {"max_files": 1, "max_fields": 200, "max_part_size": FIELD_BYTES}
_MAX_NAME_BYTES = 120


@dataclass
class Upload:
    """Uploaded file in memory, with the other fields of its form.

    Attributes
    ----------
    name : str
        File name without folders.
    data : bytes
    fields : dict of str to list of str
    """

    name: str
    data: bytes = b""
    fields: dict[str, list[str]] = field(default_factory=dict)


class _InMemory(MultiPartParser):
    spool_max_size = 2**40  # never on disk, since the stream is limited to a much smaller size


def check_head(request: Request, limit: Limit) -> None:
    """Check, based on the header, that the request is a form and is not too large."""
    if not request.headers.get("content-type", "").startswith("multipart/form-data"):
        raise RequestError(
            415, "the request is not a form; expected multipart/form-data with a file"
        )
    announced = request.headers.get("content-length", "")
    if announced.isdigit():
        _check_size(int(announced) - _FORM_BYTES, limit)


async def read_upload(request: Request, limit: Limit, hold: Callable[[int], object]) -> Upload:
    """Read the form of a request, with one file named ``file`` and text fields. ``hold`` is called
    with the size of each part in bytes.

    Raises
    ------
    RequestError
        If the form is invalid, too large or too slow.
    """

    async def stream() -> AsyncGenerator[bytes, None]:
        n_bytes = 0
        async for part in request.stream():
            n_bytes += len(part)
            _check_size(n_bytes - _FORM_BYTES, limit)
            hold(len(part))
            clock.reschedule(min(end, now() + STALL_SECONDS))
            yield part

    now = asyncio.get_running_loop().time
    end = now() + UPLOAD_SECONDS
    try:
        async with asyncio.timeout_at(now() + STALL_SECONDS) as clock:
            form = await _InMemory(request.headers, stream(), **_FORM_LIMITS).parse()
    except TimeoutError:
        raise RequestError(
            408,
            f"the upload took more than {UPLOAD_SECONDS:.0f} seconds, or paused for more than "
            f"{STALL_SECONDS:.0f} seconds",
        ) from None
    # older versions of python-multipart raise a ValueError
    except (MultiPartException, KeyError, ValueError) as error:
        raise RequestError(
            400, f"the form cannot be parsed: {getattr(error, 'message', error)}"
        ) from None
    file = form.get("file")
    if not isinstance(file, UploadFile):
        raise RequestError(400, "the form contains no file; expected one in the field 'file'")
    data = await file.read()
    _check_size(len(data), limit)
    fields = {
        name: [value for value in form.getlist(name) if isinstance(value, str)]
        for name in form
        if name != "file"
    }
    await form.close()
    return Upload(plain_name(file.filename or ""), data, fields)


async def discard(request: Request) -> None:
    """Read and discard the rest of a request, since browsers show an answer only after they have
    sent everything."""
    # a RuntimeError means that the request was already read completely
    with suppress(TimeoutError, ClientDisconnect, RuntimeError):
        async with asyncio.timeout(_DISCARD_SECONDS):
            async for _ in request.stream():
                pass


def _check_size(n_bytes: int, limit: Limit) -> None:
    if n_bytes > limit.bytes:
        raise RequestError(413, f"the file is too large; expected at most {limit.bytes // MIB} MiB")


def plain_name(name: str) -> str:
    """Return a file name without folders and control characters, but with its suffix.

    Examples
    --------
    >>> plain_name("../../etc/cat.jpg")
    'cat.jpg'
    """
    last = re.split(r"[/\\]", name)[-1]
    clean = "".join(c if c.isprintable() else "_" for c in last).strip().lstrip(".")
    if len(clean.encode()) > _MAX_NAME_BYTES:
        stem, dot, ending = clean.rpartition(".")
        ending = (dot + ending)[:20] if dot else ""
        clean = (stem or clean).encode()[: _MAX_NAME_BYTES - 60].decode(errors="ignore") + ending
    return clean or "upload"
