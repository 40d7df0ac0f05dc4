"""What a request may cost: numbers that are choices, for a page on one's computer."""

from __future__ import annotations

from typing import NamedTuple

MIB = 2**20
MEMORY = 896 * MIB  # of a worker process: detection in a photograph of 25 million pixels takes 600 MiB
UPLOAD_SECONDS = 60.0  # for a file to arrive
FORM_BYTES = 256 * 1024  # of a form beside its file


class Limit(NamedTuple):
    """What one kind of request may cost: bytes of the file, pixels of a picture, frames of a video,
    seconds of work.
    """

    bytes: int
    seconds: float
    pixels: int = 0
    frames: int = 0


LIMITS = {
    "faces": Limit(32 * MIB, 120.0, pixels=25_000_000),
    "motion": Limit(64 * MIB, 300.0, pixels=4_000_000, frames=600),
    "pets": Limit(32 * MIB, 60.0, pixels=25_000_000),
    "select": Limit(32 * MIB, 300.0),
}
