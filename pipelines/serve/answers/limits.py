"""Limits of requests, and errors by which requests are rejected.

All limits are heuristic and are intended for a page on the user's computer.
"""

from dataclasses import dataclass

MIB = 2**20
# memory limit of a worker process; a photograph of 25 million pixels requires 600 MiB
MEMORY = 896 * MIB
PREPARE_SECONDS = 900.0  # for loading a model and compiling its code once
WAIT_SECONDS = 120.0  # for waiting until a worker is free
UPLOAD_SECONDS, STALL_SECONDS = 60.0, 15.0  # for receiving a file, and for receiving its next bytes
MAX_WAITING = 128  # number of waiting requests; further requests are rejected
MAX_HELD = 256 * MIB  # total size of all uploads that are being received or waiting
FIELD_BYTES = 10_000  # maximum size of a form field


@dataclass(frozen=True)
class Limit:
    """Limits for one type of request.

    The limits are the maximum number of bytes in the file, pixels in an image, frames in a video,
    and seconds of processing.
    """

    bytes: int
    seconds: float
    pixels: int = 0
    frames: int = 0


LIMITS = {
    "faces": Limit(32 * MIB, 120.0, pixels=25_000_000),
    "camera": Limit(8 * MIB, 30.0, pixels=4_000_000),
    "pets": Limit(32 * MIB, 60.0, pixels=25_000_000),
    "motion": Limit(64 * MIB, 300.0, pixels=4_000_000, frames=600),
    "select": Limit(32 * MIB, 300.0),
    "label": Limit(64 * MIB, 120.0, pixels=50_000_000),
    "features": Limit(0, 60.0),
    "sample": Limit(0, 60.0),
}


class RequestError(Exception):
    """Error by which a request is rejected, with an HTTP status and a one-line reason."""

    def __init__(self, status: int, message: str):
        # both arguments, because exceptions are pickled by their arguments
        super().__init__(status, message)
        self.status, self.message = status, message

    def __str__(self) -> str:
        return self.message
