"""Reads a form with one file from a request, within limits."""

from __future__ import annotations

import asyncio
import re
from collections.abc import AsyncGenerator
from dataclasses import dataclass, field

from starlette.datastructures import UploadFile
from starlette.exceptions import HTTPException
from starlette.formparsers import MultiPartException, MultiPartParser
from starlette.requests import ClientDisconnect, Request

from .answers.limits import FORM_BYTES, MIB, UPLOAD_SECONDS, Limit


@dataclass
class Upload:
    """A file in memory and the other fields.

    Attributes
    ----------
    name : str
        A plain name, without folders.
    data : bytes
    fields : dict of str to list of str
    """

    name: str
    data: bytes = b""
    fields: dict[str, list[str]] = field(default_factory=dict)


async def read_upload(request: Request, limit: Limit) -> Upload:
    """Read the form of a request: one file, ``file``, and fields of text.

    Raises
    ------
    HTTPException
        If it is no such form, too large, or too slow.
    """
    if not request.headers.get("content-type", "").startswith("multipart/form-data"):
        raise HTTPException(415, "expected a form (multipart/form-data) with a file")
    n_bytes, most = 0, limit.bytes + FORM_BYTES
    too_large = HTTPException(413, f"the file is too large: expected at most {limit.bytes // MIB} MiB")

    async def parts() -> AsyncGenerator[bytes, None]:
        """Read to the end, as browsers show an answer only when they have sent everything; forget
        what is too much.
        """
        nonlocal n_bytes
        async for part in request.stream():
            n_bytes += len(part)
            if n_bytes <= most:
                yield part

    try:
        async with asyncio.timeout(UPLOAD_SECONDS):
            form = await MultiPartParser(request.headers, parts(), max_files=1).parse()
    except TimeoutError:
        slow = HTTPException(408, f"the file did not arrive within {UPLOAD_SECONDS:.0f} seconds")
        raise (slow if n_bytes <= most else too_large) from None
    except (MultiPartException, ClientDisconnect, KeyError, ValueError) as error:
        raise HTTPException(400, f"not a readable form: {getattr(error, 'message', error)}") from None
    file = form.get("file")
    data = await file.read() if isinstance(file, UploadFile) else b""
    await form.close()
    if n_bytes > most or len(data) > limit.bytes:
        raise too_large
    if not isinstance(file, UploadFile):
        raise HTTPException(400, "expected a form with a file in the field 'file'")
    fields = {name: [value for value in form.getlist(name) if isinstance(value, str)] for name in form if name != "file"}
    return Upload(plain_name(file.filename or ""), data, fields)


def plain_name(name: str) -> str:
    """Return the end of a file's name, at most 60 characters, without folders and control
    characters.

    Examples
    --------
    >>> plain_name("../../etc/cat.jpg")
    'cat.jpg'
    """
    last = re.split(r"[/\\]", name)[-1]
    return "".join(c if c.isprintable() else "_" for c in last)[-60:].strip().lstrip(".") or "upload"
