"""Reads a form with one file from a request, within limits; nothing is written to disk."""

from __future__ import annotations

import asyncio
import re
import time
from collections.abc import AsyncGenerator
from dataclasses import dataclass, field
from typing import Any

from starlette.datastructures import UploadFile
from starlette.formparsers import MultiPartException, MultiPartParser
from starlette.requests import ClientDisconnect, Request

from .answers.limits import FIELD_BYTES, MIB, UPLOAD_SECONDS, Limit, Refused

_MOST_FIELDS = 200
_ROOM = 256 * 1024  # of a form beside its file
_DISCARD_SECONDS = 20.0
_DISCARD_BYTES = 4096 * MIB
_LONGEST_NAME = 120


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
    data: bytes
    fields: dict[str, list[str]] = field(default_factory=dict)


class _InMemory(MultiPartParser):
    spool_max_size = 2**40  # never on disk: the stream is cut off long before


class UploadReader:
    """Reads the form of one request: one file, ``file``, and fields of text.

    Parameters
    ----------
    request : Request
    limit : Limit
    """

    def __init__(self, request: Request, limit: Limit):
        self._request, self._limit = request, limit
        self._most = limit.bytes + _ROOM
        self._finished = False

    def check_head(self) -> None:
        """Raise a Refused for what the head alone shows to be no form, or too large."""
        if not self._request.headers.get("content-type", "").startswith("multipart/form-data"):
            raise Refused(415, "expected a form (multipart/form-data) with a file")
        announced = self._request.headers.get("content-length", "")
        if announced.isdigit() and int(announced) > self._most:
            raise self._too_large()

    async def read(self) -> Upload:
        """Read the form.

        Raises
        ------
        Refused
            If it is no such form, too large, or too slow.
        """
        options: dict[str, Any] = {"max_files": 1, "max_fields": _MOST_FIELDS, "max_part_size": FIELD_BYTES}
        parser = _InMemory(self._request.headers, self._stream(), **options)
        try:
            form = await asyncio.wait_for(parser.parse(), UPLOAD_SECONDS)
        except TimeoutError:
            raise Refused(408, f"the file did not arrive within {UPLOAD_SECONDS:.0f} seconds") from None
        except (MultiPartException, KeyError, ValueError) as error:  # ValueError: of python-multipart itself, in older versions
            raise Refused(400, f"not a readable form: {getattr(error, 'message', error)}") from None
        file = form.get("file")
        if not isinstance(file, UploadFile):
            raise Refused(400, "expected a form with a file in the field 'file'")
        data = await file.read()
        if len(data) > self._limit.bytes:
            raise self._too_large()
        fields: dict[str, list[str]] = {}
        for name, value in form.multi_items():
            if isinstance(value, str):
                fields.setdefault(name, []).append(value)
        await form.close()
        return Upload(plain_name(file.filename or ""), data, fields)

    async def discard(self) -> None:
        """Take in the rest and forget it: browsers show an answer only when they have sent everything."""
        end, n = time.monotonic() + _DISCARD_SECONDS, 0
        try:
            while not self._finished and time.monotonic() < end and n < _DISCARD_BYTES:
                message = await asyncio.wait_for(self._request.receive(), _DISCARD_SECONDS)
                n += len(message.get("body", b""))
                self._finished = message["type"] == "http.disconnect" or not message.get("more_body")
        except TimeoutError:
            return

    async def _stream(self) -> AsyncGenerator[bytes, None]:
        n = 0
        while not self._finished:
            message = await self._request.receive()
            if message["type"] == "http.disconnect":
                raise ClientDisconnect
            self._finished = not message.get("more_body")
            n += len(message.get("body", b""))
            if n > self._most:
                raise self._too_large()
            yield message.get("body", b"")

    def _too_large(self) -> Refused:
        return Refused(413, f"the file is too large: expected at most {self._limit.bytes // MIB} MiB")


def plain_name(name: str) -> str:
    """Return the name of a file without folders and control characters; its ending stays.

    Examples
    --------
    >>> plain_name("../../etc/cat.jpg")
    'cat.jpg'
    """
    last = re.split(r"[/\\]", name)[-1]
    clean = "".join(c if c.isprintable() else "_" for c in last).strip().lstrip(".")
    if len(clean.encode()) > _LONGEST_NAME:
        stem, dot, ending = clean.rpartition(".")
        ending = (dot + ending)[:20] if dot else ""
        clean = (stem or clean).encode()[: _LONGEST_NAME - 60].decode(errors="ignore") + ending
    return clean or "upload"
